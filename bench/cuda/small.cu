/* bench/cuda/small.cu: checks and times the kernels for small matrices on an NVIDIA GPU.
 *
 *   cuda_small --check [--n N] [--most MATRICES]
 *   cuda_small --time [--n N] [--results FOLDER]
 *   cuda_small --arena [--results FOLDER]
 *
 * --check tries every order, precision and kernel against a host reference, in batches up to a
 * million, and ends with 1 when an answer is wrong; --most leaves out larger batches. --time prints
 * a table and writes it to FOLDER/DATE-NAME-small.csv, where NAME is the device's; --arena to
 * FOLDER/DATE-NAME-arena.csv. Uses the first device that CUDA shows; nothing else should run there.
 * Needs up to 26 GB of its memory. An error of CUDA or of the command line ends with 2.
 */
#include "bench/cuda/small.cuh"

#include <cstring>

#include "bench/cuda/results.cuh"

static int check_all(int n, int64_t most)
{
    int passed = 0, failed = 0;
    for (int order = n ? n : 1; order <= (n ? n : CUDA_SMALL_N_MAX); order++) {
        for (int k = 0; k < SMALL_KERNELS * PRECISION_COUNT; k++) {
            bool right = small_check((enum small_kernel)(k / PRECISION_COUNT),
                                     (enum precision)(k % PRECISION_COUNT), order, most);
            passed += right;
            failed += !right;
        }
    }
    printf("cuda_small: %d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

enum mode {
    MODE_NONE,
    MODE_CHECK,
    MODE_TIME,
    MODE_ARENA
};

static void measure(enum mode mode, int n, FILE *csv)
{
    if (mode == MODE_TIME)
        small_time(n, csv);
    else
        small_arena(csv);
}

static int measure_to(enum mode mode, int n, const char *folder, const char *device)
{
    return results_to(folder, device, mode == MODE_TIME ? "small" : "arena", [&](FILE *csv) {
        measure(mode, n, csv);
        return 0;
    });
}

int main(int argc, char **argv)
{
    enum mode mode = MODE_NONE;
    bool known = true;
    const char *folder = nullptr;
    long n = 0, most = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--check") == 0)
            mode = MODE_CHECK;
        else if (strcmp(argv[i], "--time") == 0)
            mode = MODE_TIME;
        else if (strcmp(argv[i], "--arena") == 0)
            mode = MODE_ARENA;
        else if (strcmp(argv[i], "--n") == 0 && more)
            n = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--most") == 0 && more)
            most = strtol(argv[++i], nullptr, 10);
        else if (strcmp(argv[i], "--results") == 0 && more)
            folder = argv[++i];
        else
            known = false;
    }
    if (!known || mode == MODE_NONE || n < 0 || most < 0 || n > CUDA_SMALL_N_MAX) {
        fprintf(stderr, "usage: cuda_small --check|--time|--arena [--n N] [--most MATRICES] "
                        "[--results FOLDER]\n");
        return 2;
    }
    struct cudaDeviceProp device;
    SMALL_TRY(cudaGetDeviceProperties(&device, 0));
    printf("%s\n", device.name);
    return mode == MODE_CHECK ? check_all((int)n, most)
                              : measure_to(mode, (int)n, folder, device.name);
}
