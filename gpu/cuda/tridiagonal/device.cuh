/* gpu/cuda/tridiagonal/device.cuh: `tridiagonal` on the device: what its kernels share.
 *
 * A (n x n): sub[i] = A[i,i-1], middle[i] = A[i,i], sup[i] = A[i,i+1], with zeros outside;
 * X = A^-1. Blocks of threads find the O(n) numbers of a matrix (solve.cuh), all in double;
 * from these alone any part of X can be written (write.cuh). The ways to them, and which one is
 * taken, are those of gpu/host/tridiagonal/tridiagonal.h.
 *
 * X by its lines, for the two sweeps and the minors:
 *      X_ij = upper_row[i] upper_column[j] for i < j, lower_row[i] lower_column[j] for i > j,
 * numbers with exponents. A zero between i and j on the band gives a factor so small that the
 * product is zero. X by levels, for the merging:
 *      X_ij = -sum of column[l][i] row[l][j] over the levels l at which i and j are in one block,
 * and for the two rows of a leaf the entries of its inverse besides that.
 * On the diagonal X has `diagonal`.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_DEVICE_CUH
#define GPU_CUDA_TRIDIAGONAL_DEVICE_CUH

#include <stdint.h>

#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/number.cuh"

enum cuda__tri_line {
    CUDA__TRI_UPPER_ROW,
    CUDA__TRI_UPPER_COLUMN,
    CUDA__TRI_LOWER_ROW,
    CUDA__TRI_LOWER_COLUMN,
    CUDA__TRI_LINES
};

/* How X is to be written. */
enum cuda__tri_form {
    CUDA__TRI_NAN, /* there is none */
    CUDA__TRI_BY_LINES,
    CUDA__TRI_BY_LEVELS
};

/* What became of a matrix: at the start of its part of the workspace. */
struct cuda__tri_answer {
    void *x; /* NULL: not wanted */
    int32_t form, info, algorithm, levels;
    /* While its chunks are under way: how many are done, and the bits of the largest numbers. */
    unsigned long long arrived, norm, error, growth, difference;
};

/* The arrays of a part, of n numbers of 8 bytes each, or 16 for lines and sums. */
enum cuda__tri_array {
    CUDA__TRI_LINE,                       /* CUDA__TRI_LINES of two */
    CUDA__TRI_REST = 2 * CUDA__TRI_LINES, /* sums of columns, then exponents of generators: two */
    CUDA__TRI_SUB = CUDA__TRI_REST + 2,
    CUDA__TRI_MIDDLE,
    CUDA__TRI_SUP,
    CUDA__TRI_FOUND,
    CUDA__TRI_ARRAYS,
    /* Merging: the border and the diagonal of each block's inverse, the leaves' entries off the
     * diagonal, the largest numbers of each merger, then the mergers, level after level. */
    CUDA__TRI_FIRST_ROW = CUDA__TRI_ARRAYS,
    CUDA__TRI_LAST_ROW,
    CUDA__TRI_FIRST_COLUMN,
    CUDA__TRI_LAST_COLUMN,
    CUDA__TRI_MERGED,
    CUDA__TRI_CHUNK_MERGED, /* the diagonal as it was before chunks were joined */
    CUDA__TRI_LEAVES,
    CUDA__TRI_LARGEST,
    CUDA__TRI_MERGERS
};

#define CUDA__TRI_ANSWER_BYTES 128

/* The numbers of an array: whole lines of a cache. */
static inline __host__ __device__ int64_t cuda__tri_pitch(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* Beyond CUDA__TRI_BLOCK_N_MAX, at the end of a part: of each row a struct cuda__tri_span for each
 * way of dominance and each direction. */
#define CUDA__TRI_SPANS 4
#define CUDA__TRI_SPAN_BYTES 80
/* And before them, what is known of chunks of rows, and of all of them a count. */
#define CUDA__TRI_CHUNK_BYTES 12
#define CUDA__TRI_COUNT_BYTES 4
#define CUDA__TRI_TAIL_BYTES                                                                       \
    (CUDA__TRI_SPANS * CUDA__TRI_SPAN_BYTES + CUDA__TRI_CHUNK_BYTES + CUDA__TRI_COUNT_BYTES)

struct cuda__tri_chunk;
struct cuda__tri_span;
struct cuda__tri_totals;

/* One matrix's part of the workspace. */
struct cuda__tri_part {
    unsigned char *start, *end;
    int64_t pitch;

    __device__ __forceinline__ double *array(int index) const
    {
        return (double *)(start + CUDA__TRI_ANSWER_BYTES) + index * pitch;
    }
    __device__ __forceinline__ cuda__tri_answer *answer() const
    {
        return (cuda__tri_answer *)start;
    }
    __device__ __forceinline__ cuda__number *line(int line) const
    {
        return (cuda__number *)array(CUDA__TRI_LINE + 2 * line);
    }
    __device__ __forceinline__ cuda__number *sums() const
    {
        return (cuda__number *)array(CUDA__TRI_REST);
    }
    __device__ __forceinline__ cuda__tri_chunk *chunks() const
    {
        return (cuda__tri_chunk *)(end - CUDA__TRI_TAIL_BYTES * pitch);
    }
    /* Of chunks of a warp's rows: what each multiplies by, word by word; and its flags. */
    __device__ __forceinline__ cuda__tri_totals totals(bool by_rows, bool up) const;
    __device__ __forceinline__ uint32_t *flags() const
    {
        return (uint32_t *)(end - CUDA__TRI_TAIL_BYTES * pitch +
                            CUDA__TRI_SPANS * CUDA__TRI_SPAN_BYTES * (pitch / 32 + 1));
    }
    /* Chunks whose lines are there (warps.cuh). */
    __device__ __forceinline__ unsigned long long *lined() const
    {
        return (unsigned long long *)(end - (CUDA__TRI_TAIL_BYTES - CUDA__TRI_CHUNK_BYTES) * pitch);
    }
    /* by_rows: of dominance by rows; up: of the sweep from below. */
    __device__ __forceinline__ cuda__tri_span *spans(bool by_rows, bool up) const
    {
        int index = (by_rows ? 0 : 2) + (up ? 1 : 0);
        return (cuda__tri_span *)(end - (index + 1) * CUDA__TRI_SPAN_BYTES * pitch);
    }
    __device__ __forceinline__ double *sub() const
    {
        return array(CUDA__TRI_SUB);
    }
    __device__ __forceinline__ double *middle() const
    {
        return array(CUDA__TRI_MIDDLE);
    }
    __device__ __forceinline__ double *sup() const
    {
        return array(CUDA__TRI_SUP);
    }
    __device__ __forceinline__ double *diagonal() const
    {
        return array(CUDA__TRI_FOUND);
    }
    __device__ __forceinline__ double *merged() const
    {
        return array(CUDA__TRI_MERGED);
    }
    __device__ __forceinline__ double *leaves() const
    {
        return array(CUDA__TRI_LEAVES);
    }
    /* Of a level, from 1 on. */
    __device__ __forceinline__ double *column(int level) const
    {
        return array(CUDA__TRI_MERGERS + 2 * (level - 1));
    }
    __device__ __forceinline__ double *row(int level) const
    {
        return array(CUDA__TRI_MERGERS + 2 * (level - 1) + 1);
    }
};

/* Part `slot` of the workspace. */
static __device__ __forceinline__ cuda__tri_part cuda__tri_find_part(const cuda__tri_call &call,
                                                                     int64_t slot)
{
    unsigned char *start = call.workspace + slot * call.part_bytes;
    return {start, start + call.part_bytes, cuda__tri_pitch(call.n)};
}

/* Where the matrix's X goes; NULL: it is not wanted. */
template <typename T>
static __device__ __forceinline__ T *cuda__tri_start_of(const cuda__tri_call &call,
                                                        const cuda_tensors *item, int64_t within)
{
    T *x = (T *)item->outputs[METHOD_TRIDIAGONAL_INVERSE];
    return x ? x + within * (call.rows.end - call.rows.first) *
                       (call.columns.end - call.columns.first)
             : nullptr;
}

/* The matrix `index` of the batch: its item, and its number there. */
static __device__ __forceinline__ const cuda_tensors *cuda__tri_find(const cuda__tri_call &call,
                                                                     int64_t index, int64_t *within)
{
    const cuda_tensors *item =
        call.tensors + cuda__item_of(call.tensors, call.item_count, call.matrices, index);
    *within = index - item->first;
    return item;
}

#endif
