/* gpu/cuda/structured/identify.cu: see identify.h.
 *
 * Two kernels, each put on the device while the one before it ends. The first reads A by pairs of
 * tiles, T above the diagonal and U opposite below it, of 32 x 32 numbers, and writes for each
 * strip of tiles a line of sums of its columns and one of its rows. The second adds the lines up,
 * in double, and tells the matrix what it finds by atomic operations, so that no block waits for
 * the others. One matrix wants many warps for a group, which share its lines; a batch has groups
 * enough for a warp each. The sums have the same order, so a matrix has the same answer in any
 * batch.
 *
 * One kernel could do both: the block that completes a strip adds up its sums, if those that come
 * are counted; or one cluster of 16 blocks holds all sums of n = 512. Both were tried on an H100,
 * 2026-11-27, and took longer than two launches: the first waits for its fences and counts, and 16
 * multiprocessors read slower than all do (bench/results/iterative.md).
 */
#include "gpu/cuda/structured/identify.h"

#include "gpu/cuda/structured/identify_strips.cuh"
#include "gpu/cuda/base/launch.cuh"

/* Warps of the second kernel, where there are groups for so many; by timing batches of 256 MiB on
 * an H200, 2026-11-24, before its lines were read together. */
#define CUDA__IDENTIFY_ENOUGH 4096

size_t cuda_identify_bytes(enum precision precision, int64_t n, int64_t matrices)
{
    struct cuda__identify_shape shape =
        cuda__identify_shape_of(n, cuda__identify_tiles(precision, n));
    size_t one = precision == PRECISION_FP32 ? cuda__identify_matrix_bytes<float>(shape)
                                             : cuda__identify_matrix_bytes<double>(shape);
    return one * (size_t)matrices;
}

/* The second kernel, with as few warps for a group as there are groups for. */
template <typename T, int Warps>
static cudaError_t cuda__identify_add_up(const struct cuda_identification &task,
                                         const cuda__identify_shape &shape, cudaStream_t stream)
{
    constexpr int held = CUDA__IDENTIFY_ADDERS / Warps;
    const int64_t all = task.count * task.sets, groups = shape.groups();
    if constexpr (Warps < CUDA__IDENTIFY_ADDERS) {
        if (all * groups * Warps < CUDA__IDENTIFY_ENOUGH)
            return cuda__identify_add_up<T, 2 * Warps>(task, shape, stream);
    }
    return cuda__follow(cuda__identify_strips_kernel<T, Warps>,
                        dim3((unsigned)(1 + (groups + held - 1) / held), (unsigned)all),
                        CUDA__IDENTIFY_ADDING, 0, cuda__overlaps(), stream, task, shape);
}

template <typename T, int Tiles>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, cudaStream_t stream)
{
    struct cuda__identify_shape shape = cuda__identify_shape_of(task.n, Tiles);
    cudaError_t status =
        cuda__follow(cuda__identify_pairs_kernel<T, Tiles>,
                     dim3((unsigned)shape.pairs(), (unsigned)(task.count * task.sets)),
                     CUDA__IDENTIFY_WARPS * CUDA__WARP, 0, cuda__overlaps(), stream, task, shape);
    if (status == cudaSuccess)
        status = cuda__identify_add_up<T, 1>(task, shape, stream);
    return status;
}

template <typename T>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, int tiles,
                                        cudaStream_t stream)
{
    switch (tiles) {
    case 1:
        return cuda__identify_start<T, 1>(task, stream);
    case 2:
        return cuda__identify_start<T, 2>(task, stream);
    default:
        return cuda__identify_start<T, 4>(task, stream);
    }
}

cudaError_t cuda_identify_by(const struct cuda_identification *task, int tiles, cudaStream_t stream)
{
    if (task->n < 1 || task->a.stride > INT32_MAX || task->count < 0 || task->sets < 1 ||
        task->count > CUDA_IDENTIFY_MATRICES_MAX / task->sets ||
        (tiles != 1 && tiles != 2 && tiles != 4) ||
        tiles < cuda__identify_tiles(task->precision, task->n))
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? cuda__identify_start<float>(*task, tiles, stream)
                                             : cuda__identify_start<double>(*task, tiles, stream);
}

cudaError_t cuda_identify(const struct cuda_identification *task, cudaStream_t stream)
{
    return cuda_identify_by(task, cuda__identify_tiles(task->precision, task->n), stream);
}
