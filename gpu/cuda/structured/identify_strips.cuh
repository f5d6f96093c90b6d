/* gpu/cuda/structured/identify_strips.cuh: the second kernel of identify.cu. Device code; a matrix
 * a blockIdx.y; the first block adds up what the pairs have, each of the others groups of 32
 * columns and their rows.
 *
 * A group's lines are added up by one warp to CUDA__IDENTIFY_ADDERS, always as so many sums, which
 * are then added in their order: the number of warps does not show. What a group finds is reported
 * by atomic operations, whose order does not show either: the largest, the least, the first and the
 * union of all.
 *
 * Cost: reads what the first kernel wrote, and the diagonal.
 */
#ifndef GPU_CUDA_STRUCTURED_IDENTIFY_STRIPS_CUH
#define GPU_CUDA_STRUCTURED_IDENTIFY_STRIPS_CUH

#include "gpu/cuda/structured/identify_pairs.cuh"

#define CUDA__IDENTIFY_ADDERS 8 /* sums of a column's lines; warps of a block */
#define CUDA__IDENTIFY_ADDING (CUDA__IDENTIFY_ADDERS * CUDA__WARP)
#define CUDA__IDENTIFY_BLOCKS 3 /* of a multiprocessor, at least: a batch wants them */

/* ---- What a group reports ---- */

/* What a column and its row have; of a lane. */
struct cuda__identify_line {
    double column, row, dominance; /* sums of magnitudes; the row's others by its own */
    double min;                    /* of the two sums */
    int32_t zero_column, zero_row; /* its number, from 1, where it holds zeros alone */
    uint32_t parts;
    int32_t dominant;
};

static __device__ __forceinline__ cuda__identify_line cuda__identify_no_line()
{
    return {0, 0, 0, HUGE_VAL, CUDA_NO_LINE, CUDA_NO_LINE, 0, 1};
}

/* The largest of the warp's numbers, none of them below 0, as its bits: those of such numbers have
 * their order, and NaN is above them all. */
static __device__ __forceinline__ unsigned long long cuda__identify_largest(double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned high = (unsigned)(bits >> 32);
    const unsigned top = __reduce_max_sync(CUDA__ALL, high);
    const unsigned low = __reduce_max_sync(CUDA__ALL, high == top ? (unsigned)bits : 0u);
    return (unsigned long long)top << 32 | low;
}

static __device__ __forceinline__ unsigned long long cuda__identify_min(double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned high = (unsigned)(bits >> 32);
    const unsigned top = __reduce_min_sync(CUDA__ALL, high);
    const unsigned low = __reduce_min_sync(CUDA__ALL, high == top ? (unsigned)bits : ~0u);
    return (unsigned long long)top << 32 | low;
}

/* The matrix learns what the lines of a group have; of `Warps` warps that have the same lines each
 * reports every so many things, from `warp` on. Warp-wide. */
template <int Warps>
static __device__ __forceinline__ void cuda__identify_tell(struct cuda_identity *matrix,
                                                           const cuda__identify_line &line,
                                                           int warp, int lane)
{
    auto is_own = [=](int thing) { return thing % Warps == warp; };
    auto tell_largest = [=](double *known, double x) {
        const unsigned long long bits = cuda__identify_largest(x);
        if (lane == 0)
            atomicMax((unsigned long long *)known, bits);
    };
    auto tell_first = [=](int32_t *known, int32_t number) {
        const int32_t first = __reduce_min_sync(CUDA__ALL, number);
        if (lane == 0 && first != CUDA_NO_LINE)
            atomicMin(known, first);
    };
    if (is_own(0))
        tell_largest(&matrix->norm_1, line.column);
    if (is_own(1))
        tell_largest(&matrix->norm_inf, line.row);
    if (is_own(2))
        tell_largest(&matrix->dominance, line.dominance);
    if (is_own(3)) {
        const unsigned long long least = cuda__identify_min(line.min);
        if (lane == 0)
            atomicMin((unsigned long long *)&matrix->min, least);
    }
    if (is_own(4))
        tell_first(&matrix->zero_column, line.zero_column);
    if (is_own(5))
        tell_first(&matrix->zero_row, line.zero_row);
    if (is_own(6)) {
        if (!__all_sync(CUDA__ALL, line.dominant) && lane == 0)
            atomicMin(&matrix->dominant, 0);
    }
    if (is_own(7)) {
        const uint32_t parts = __reduce_or_sync(CUDA__ALL, line.parts);
        if (lane == 0 && parts)
            atomicOr(&matrix->parts, parts);
    }
}

/* ---- Strips ---- */

/* The second kernel's shared memory, of a group: sums of every CUDA__IDENTIFY_ADDERS-th line. */
struct cuda__identify_sums {
    double columns[CUDA__IDENTIFY_ADDERS][CUDA__WARP], rows[CUDA__IDENTIFY_ADDERS][CUDA__WARP];
};

/* One of `Warps` warps that add up a group's lines. */
template <typename T, int Warps> struct cuda__identify_adder {
    static constexpr int each = CUDA__IDENTIFY_ADDERS / Warps; /* sums of a warp */
    static constexpr int rounds = Warps > 1 ? Warps / 2 : 1;   /* of eight lines, read together */
    const cuda__identify_shape &shape;
    const cuda__identify_space<T> &space;
    int64_t group;
    int warp, lane;

    __device__ __forceinline__ void add_lines(cuda__identify_sums &sums) const
    {
        const int64_t i = group * CUDA__WARP + lane, j = i < shape.n ? i : 0;
        const int64_t last = shape.strips - 1;
        double column[each] = {}, row[each] = {};
        for (int64_t first = warp; first <= last; first += rounds * CUDA__IDENTIFY_ADDERS) {
            /* What there is no line for reads the last: reads that depend on nothing are put on
             * their way together. */
#pragma unroll
            for (int r = 0; r < rounds; r++) {
#pragma unroll
                for (int e = 0; e < each; e++) {
                    const int64_t line = first + r * CUDA__IDENTIFY_ADDERS + e * Warps;
                    const int64_t at = (line < last ? line : last) * shape.n + j;
                    const T of_column = space.columns[at], of_row = space.rows[at];
                    column[e] += line <= last ? (double)of_column : 0;
                    row[e] += line <= last ? (double)of_row : 0;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < each; e++) {
            sums.columns[warp + e * Warps][lane] = column[e];
            sums.rows[warp + e * Warps][lane] = row[e];
        }
    }
};

/* A group's entry of the diagonal, a lane each. */
template <typename T>
static __device__ __forceinline__ T cuda__identify_own(const cuda_identification &task, int64_t k,
                                                       int64_t j)
{
    if (j >= task.n)
        return 0;
    return cuda__identify_matrix<T>(task, k)[j * (task.a.stride + 1)] *
           cuda__identify_factor<T>(task, k);
}

/* Column and row `lane` of a group, from what has been added up and the diagonal. */
template <typename T>
static __device__ __forceinline__ cuda__identify_line
cuda__identify_line_of(const cuda__identify_shape &shape, const cuda__identify_sums &sums, T own,
                       int64_t group, int lane)
{
    const int64_t j = group * CUDA__WARP + lane;
    cuda__identify_line line = cuda__identify_no_line();
    if (j >= shape.n)
        return line;
    for (int w = 0; w < CUDA__IDENTIFY_ADDERS; w++) {
        line.column += sums.columns[w][lane];
        line.row += sums.rows[w][lane];
    }
    const double size = fabs((double)own), others = line.row - size;
    line.dominance = size > 0 ? fmax(others / size, 0.0) : HUGE_VAL;
    line.dominant = others < size;
    line.min = fmin(line.column, line.row);
    line.zero_column = line.column == 0 ? (int32_t)j + 1 : CUDA_NO_LINE;
    line.zero_row = line.row == 0 ? (int32_t)j + 1 : CUDA_NO_LINE;
    line.parts = own > 0 ? 0 : CUDA_PART_NOT_POSITIVE;
    return line;
}

/* What all pairs have; the threads of a block. */
template <typename T>
static __device__ __forceinline__ void
cuda__identify_add_pairs(struct cuda_identity *matrix, const cuda__identify_shape &shape,
                         const cuda__identify_space<T> &space)
{
    __shared__ double squares_of[CUDA__IDENTIFY_ADDERS];
    const int64_t pairs = shape.pairs();
    double squares = 0;
    uint32_t parts = 0;
    for (int64_t first = threadIdx.x; first < pairs; first += 4 * CUDA__IDENTIFY_ADDING) {
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int64_t i = first + b * CUDA__IDENTIFY_ADDING;
            const struct cuda__identify_pair pair =
                i < pairs ? space.pairs[i] : cuda__identify_pair{0, 0};
            squares += pair.squares;
            parts |= pair.parts;
        }
    }
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        squares += __shfl_xor_sync(CUDA__ALL, squares, reach);
    parts = __reduce_or_sync(CUDA__ALL, parts);
    if (threadIdx.x % CUDA__WARP == 0) {
        squares_of[threadIdx.x / CUDA__WARP] = squares;
        atomicOr(&matrix->parts, parts);
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < CUDA__IDENTIFY_ADDERS; w++)
        squares += squares_of[w];
    matrix->frobenius = sqrt(squares);
}

/* A group has `Warps` warps, a block behind the first as many groups as it has warps for. */
template <typename T, int Warps>
static __global__ void __launch_bounds__(CUDA__IDENTIFY_ADDING, CUDA__IDENTIFY_BLOCKS)
    cuda__identify_strips_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    constexpr int held = CUDA__IDENTIFY_ADDERS / Warps;
    __shared__ cuda__identify_sums all[held];
    const int lane = (int)threadIdx.x % CUDA__WARP, place = (int)threadIdx.x / CUDA__WARP;
    const int64_t k = blockIdx.y, group = ((int64_t)blockIdx.x - 1) * held + place / Warps;
    const bool adds_pairs = blockIdx.x == 0, is_group = !adds_pairs && group < shape.groups();
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    struct cuda_identity *matrix = cuda__identify_to(task, k);
    cuda__identify_sums &sums = all[place / Warps];
    /* A and its factors were there before the first kernel released this one; the sums were not. */
    const T own = is_group ? cuda__identify_own<T>(task, k, group * CUDA__WARP + lane) : T(0);
    cuda__wait_for_previous();
    if (adds_pairs) {
        cuda__identify_add_pairs(matrix, shape, space);
        return;
    }
    if (is_group) {
        const cuda__identify_adder<T, Warps> adder = {shape, space, group, place % Warps, lane};
        adder.add_lines(sums);
    }
    __syncthreads();
    if (is_group)
        cuda__identify_tell<Warps>(matrix, cuda__identify_line_of<T>(shape, sums, own, group, lane),
                                   place % Warps, lane);
}

#endif
