/* bench/gpu/tune.cu: times the kernels in all the shapes that tune.py had compiled.
 *
 *   cuda_tune CSV
 *
 * Each shape inverts or factorises the same random matrices on the device, in several sets where
 * they are few bytes. The figure is the best of three rounds after one that is not counted: noise
 * only ever adds time. Whether the answers are right is for gpu --check lu_small, once a table is
 * chosen. Uses the first device that CUDA shows and up to 6 GB of its memory.
 */
#include "bench/gpu/clock.h"
#include "bench/gpu/tune.cuh"

namespace
{

const size_t SET_BYTES = (size_t)1 << 30; /* of matrices, about */
const int64_t MATRICES_MAX = 1000000;
const size_t ROUND_BYTES = (size_t)4 << 30; /* moved in a round, about */

std::vector<const struct tune_shape *> &shapes()
{
    static std::vector<const struct tune_shape *> all;
    return all;
}

/* Of the fastest round. */
template <typename F> double seconds(F call, int calls)
{
    return clock_rounds([] {}, call, calls)[0];
}

void report(const struct tune_shape &shape, double million, double share, FILE *csv)
{
    cudaFuncAttributes function = {};
    int blocks = 0;
    TRY(cudaFuncGetAttributes(&function, shape.function));
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, shape.function, shape.threads,
                                                      shape.shared_bytes));
    fprintf(csv, "%s,%s,%d,\"%s\",%.2f,%.2f,%d,%zu,%d,%zu\n", lu_name(shape.kernel),
            precision_name(shape.precision), shape.n, shape.shape, million, share, function.numRegs,
            function.localSizeBytes, blocks * shape.threads / CUDA__WARP, shape.shared_bytes);
    fflush(csv);
}

/* All shapes of one order and precision. */
template <typename T> void time_order(int n, FILE *csv)
{
    size_t bytes = (size_t)n * n * sizeof(T);
    int64_t count = std::min<int64_t>(MATRICES_MAX, (int64_t)(SET_BYTES / bytes));
    size_t entries = (size_t)n * n * count;
    int sets = (int)(CLOCK_CACHE_BYTES / (entries * sizeof(T)) + 1);
    device_array<T> in(entries * sets), out(entries * sets);
    int64_t extras = count * std::max(n, 2);
    device_array<int32_t> extra(extras * sets), info(count * sets);
    device_array<cuda_item> items(sets);
    std::vector<cuda_item> all;
    for (int s = 0; s < sets; s++)
        all.push_back(
            {in.at(s * entries), out.at(s * entries), extra.at(s * extras), info.at(s * count), 0});
    items.put(all);
    draw(in.at(0), entries * sets);
    int calls = (int)std::min<size_t>(40, std::max<size_t>(2, ROUND_BYTES / (2 * count * bytes)));
    double copies[LU_KINDS];
    for (int k = 0; k < LU_KINDS; k++) {
        size_t extra_bytes = lu_extra_bytes((enum lu_kind)k, number<T>::precision, n) + 4;
        copies[k] = clock_copies(out.at(0), in.at(0), entries * sets * sizeof(T),
                                 count * (2 * bytes + extra_bytes), calls)[0];
    }
    for (const struct tune_shape *shape : shapes()) {
        if (shape->n != n || shape->precision != number<T>::precision)
            continue;
        double taken = seconds(
            [&](int i) {
                struct cuda_batch batch = {items.at(i % sets), 1, count, nullptr};
                TRY(shape->launch(batch));
            },
            calls);
        report(*shape, (double)count / taken * 1e-6, 100 * copies[shape->kernel] / taken, csv);
    }
}

bool any(int n, enum precision precision)
{
    return std::any_of(shapes().begin(), shapes().end(), [&](const struct tune_shape *shape) {
        return shape->n == n && shape->precision == precision;
    });
}

} // namespace

void tune_add(const struct tune_shape *shape)
{
    shapes().push_back(shape);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: cuda_tune CSV\n");
        return 2;
    }
    FILE *csv = fopen(argv[1], "w");
    if (!csv) {
        perror(argv[1]);
        return 2;
    }
    struct cudaDeviceProp device;
    TRY(cudaGetDeviceProperties(&device, 0));
    fprintf(csv,
            "# %s\nkernel,precision,n,shape,million_per_s,percent_of_copy,registers,"
            "local_bytes,warps_a_multiprocessor,shared_bytes\n",
            device.name);
    for (int n = 1; n <= CUDA_SMALL_N_MAX; n++) {
        if (any(n, PRECISION_FP32))
            time_order<float>(n, csv);
        if (any(n, PRECISION_FP64))
            time_order<double>(n, csv);
    }
    if (fclose(csv) != 0) {
        perror(argv[1]);
        return 2;
    }
    return 0;
}
