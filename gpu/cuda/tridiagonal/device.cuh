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
#include "gpu/cuda/base/real.cuh"

/* ---- Numbers with exponents of their own ---- */

/* Numbers with an exponent of their own, for quantities that leave the range of double: minors
 * and products of many ratios. Device code, any thread.
 */

/* mantissa * 2^exponent; the mantissa is 0 or of a magnitude in [1/2, 1). */
struct __align__(16) cuda__number
{
    double mantissa;
    int64_t exponent;
};

/* A factor in place of zero, for generators are divided by it: so small that what holds it once
 * comes out as zero, whatever else it holds. A chain of 2^24 of them fits an exponent. */
#define CUDA__NOTHING (INT64_C(1) << 38)
#define CUDA__EXPONENT_BIAS 1023

/* 2^exponent, -1022 <= exponent <= 1023. */
static __device__ __forceinline__ double cuda__power_of_two(int exponent)
{
    return __hiloint2double((exponent + CUDA__EXPONENT_BIAS) << 20, 0);
}

/* x * 2^exponent for -2000 <= exponent <= 2000: only the last product rounds. */
static __device__ __forceinline__ double cuda__scale(double x, int exponent)
{
    int half = exponent / 2;
    return x * cuda__power_of_two(half) * cuda__power_of_two(exponent - half);
}

/* The biased exponent, 0 for zeros and subnormal numbers. */
static __device__ __forceinline__ int cuda__biased(double x)
{
    return __double2hiint(x) >> 20 & 0x7ff;
}

/* Of any finite double. */
static __device__ __forceinline__ cuda__number cuda__normal(double x, int64_t exponent)
{
    if (cuda__biased(x) == 0) {
        x *= 0x1p64;
        exponent -= 64;
    }
    if (x == 0)
        return {0, 0};
    int high = __double2hiint(x);
    exponent += (high >> 20 & 0x7ff) - (CUDA__EXPONENT_BIAS - 1);
    high = (high & ~0x7ff00000) | (CUDA__EXPONENT_BIAS - 1) << 20;
    return {__hiloint2double(high, __double2loint(x)), exponent};
}

static __device__ __forceinline__ cuda__number cuda__times(cuda__number a, cuda__number b)
{
    return cuda__normal(a.mantissa * b.mantissa, a.exponent + b.exponent);
}

static __device__ __forceinline__ cuda__number cuda__over(cuda__number a, cuda__number b)
{
    return cuda__normal(a.mantissa / b.mantissa, a.exponent - b.exponent);
}

/* 1 / a, within an ulp. */
static __device__ __forceinline__ cuda__number cuda__inverse(cuda__number a)
{
    return cuda__normal(cuda__real<double>::reciprocal(a.mantissa), -a.exponent);
}

static __device__ __forceinline__ cuda__number cuda__plus(cuda__number a, cuda__number b)
{
    if (a.mantissa == 0 || (b.mantissa != 0 && b.exponent > a.exponent)) {
        cuda__number swapped = a;
        a = b;
        b = swapped;
    }
    int64_t down = a.exponent - b.exponent;
    double small = b.mantissa == 0 || down > 200 ? 0 : cuda__scale(b.mantissa, -(int)down);
    return cuda__normal(a.mantissa + small, a.exponent);
}

static __device__ __forceinline__ cuda__number cuda__magnitude(cuda__number a)
{
    return {fabs(a.mantissa), a.exponent};
}

/* Of numbers that are not negative. */
static __device__ __forceinline__ bool cuda__is_larger(cuda__number a, cuda__number b)
{
    if (a.mantissa == 0 || b.mantissa == 0)
        return a.mantissa > b.mantissa;
    return a.exponent != b.exponent ? a.exponent > b.exponent : a.mantissa > b.mantissa;
}

/* As a double: 0 or infinite where it is out of range. */
static __device__ __forceinline__ double cuda__assemble(double mantissa, int64_t exponent)
{
    if (exponent < -2000)
        return 0;
    return cuda__scale(mantissa, exponent > 2000 ? 2000 : (int)exponent);
}

/* a * b as a double, rounded once; zeros have its sign. */
static __device__ __forceinline__ double cuda__product(cuda__number a, cuda__number b)
{
    int64_t exponent = a.exponent + b.exponent;
    if (exponent < -2000)
        return copysign(0.0, a.mantissa * b.mantissa);
    int all = exponent > 2000 ? 2000 : (int)exponent, half = all / 2;
    return a.mantissa * cuda__power_of_two(half) * (b.mantissa * cuda__power_of_two(all - half));
}

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
