/* gpu/cuda/identify_strips.cuh: the second kernel of identify.cu. Device code; a matrix a
 * blockIdx.y, groups of 32 columns and their rows a blockIdx.x.
 *
 * A group's lines are added up by one warp to CUDA__IDENTIFY_ADDERS, always as so many sums, which
 * are then added in their order: the number of warps does not show.
 *
 * Cost: reads what the first kernel wrote, and the diagonal.
 */
#ifndef GPU_CUDA_IDENTIFY_STRIPS_CUH
#define GPU_CUDA_IDENTIFY_STRIPS_CUH

#include "gpu/cuda/identify_pairs.cuh"
#include "gpu/cuda/norm.cuh"

#define CUDA__IDENTIFY_ADDERS 8 /* sums of a column's lines; warps of a block */
#define CUDA__IDENTIFY_ADDING (CUDA__IDENTIFY_ADDERS * CUDA__WARP)

/* ---- Strips ---- */

/* What two strips have together. */
static __device__ __forceinline__ void cuda__identify_join(cuda__identify_strip *to,
                                                           const cuda__identify_strip &other)
{
    to->column = cuda__larger(to->column, other.column);
    to->row = cuda__larger(to->row, other.row);
    to->dominance = cuda__larger(to->dominance, other.dominance);
    to->least = fmin(to->least, other.least);
    to->squares += other.squares;
    to->zero_column = min(to->zero_column, other.zero_column);
    to->zero_row = min(to->zero_row, other.zero_row);
    to->parts |= other.parts;
    to->dominant = to->dominant && other.dominant;
}

static __device__ __forceinline__ cuda__identify_strip cuda__identify_nothing()
{
    return {0, 0, 0, HUGE_VAL, 0, INT32_MAX, INT32_MAX, 0, 1};
}

/* The warp's strips joined; in every lane. */
static __device__ __forceinline__ void cuda__identify_join_warp(cuda__identify_strip *strip)
{
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        cuda__identify_strip other;
        other.column = __shfl_xor_sync(CUDA__ALL, strip->column, reach);
        other.row = __shfl_xor_sync(CUDA__ALL, strip->row, reach);
        other.dominance = __shfl_xor_sync(CUDA__ALL, strip->dominance, reach);
        other.least = __shfl_xor_sync(CUDA__ALL, strip->least, reach);
        other.squares = __shfl_xor_sync(CUDA__ALL, strip->squares, reach);
        other.zero_column = __shfl_xor_sync(CUDA__ALL, strip->zero_column, reach);
        other.zero_row = __shfl_xor_sync(CUDA__ALL, strip->zero_row, reach);
        other.parts = __shfl_xor_sync(CUDA__ALL, strip->parts, reach);
        other.dominant = __shfl_xor_sync(CUDA__ALL, strip->dominant, reach);
        cuda__identify_join(strip, other);
    }
}

/* The second kernel's shared memory, of a group: sums of every CUDA__IDENTIFY_ADDERS-th line and
 * pair. */
struct cuda__identify_sums {
    double columns[CUDA__IDENTIFY_ADDERS][CUDA__WARP], rows[CUDA__IDENTIFY_ADDERS][CUDA__WARP];
    double squares[CUDA__IDENTIFY_ADDERS];
    uint32_t parts[CUDA__IDENTIFY_ADDERS];
};

/* One of `Warps` warps that add up a group's lines and pairs. */
template <typename T, int Warps> struct cuda__identify_adder {
    static constexpr int each = CUDA__IDENTIFY_ADDERS / Warps; /* sums of a warp */
    const cuda__identify_shape &shape;
    const cuda__identify_space<T> &space;
    int64_t group;
    int warp, lane;

    __device__ __forceinline__ void add_lines(cuda__identify_sums &sums) const
    {
        const int64_t j = group * CUDA__WARP + lane;
        double column[each] = {}, row[each] = {};
        if (j < shape.n) {
#pragma unroll Warps
            for (int64_t line = warp; line < shape.strips; line += CUDA__IDENTIFY_ADDERS) {
#pragma unroll
                for (int e = 0; e < each; e++) {
                    const int64_t l = line + e * Warps;
                    const bool is_line = l < shape.strips;
                    column[e] += is_line ? (double)space.columns[l * shape.n + j] : 0;
                    row[e] += is_line ? (double)space.rows[l * shape.n + j] : 0;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < each; e++) {
            sums.columns[warp + e * Warps][lane] = column[e];
            sums.rows[warp + e * Warps][lane] = row[e];
        }
    }

    /* A pair belongs to its strip of columns; the groups in a strip share them. */
    __device__ __forceinline__ void add_pairs(cuda__identify_sums &sums) const
    {
        const int64_t most = shape.width / CUDA__WARP, s = group / most, own = group % most;
        const int64_t groups = min(most, shape.groups() - s * most); /* the last may be short */
        const cuda__identify_pair *pairs = space.pairs + s * (s + 1) / 2;
        for (int w = warp; w < CUDA__IDENTIFY_ADDERS; w += Warps) {
            const int64_t first = own + w * CUDA__WARP * groups;
            double squares = 0;
            uint32_t parts = 0;
            for (int64_t i = first + lane * groups; i <= s; i += CUDA__IDENTIFY_ADDING * groups) {
                squares += pairs[i].squares;
                parts |= pairs[i].parts;
            }
            for (int reach = CUDA__WARP / 2; reach > 0 && first <= s; reach /= 2) {
                squares += __shfl_xor_sync(CUDA__ALL, squares, reach);
                parts |= __shfl_xor_sync(CUDA__ALL, parts, reach);
            }
            sums.squares[w] = squares;
            sums.parts[w] = parts;
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

/* Of a group, from what has been added up and the diagonal; in every lane of a warp. */
template <typename T>
static __device__ __forceinline__ cuda__identify_strip
cuda__identify_strip_of(const cuda__identify_shape &shape, const cuda__identify_sums &sums, T own,
                        int64_t group, int lane)
{
    int64_t j = group * CUDA__WARP + lane;
    cuda__identify_strip strip = cuda__identify_nothing();
    if (j < shape.n) {
        for (int w = 0; w < CUDA__IDENTIFY_ADDERS; w++) {
            strip.column += sums.columns[w][lane];
            strip.row += sums.rows[w][lane];
        }
        double size = fabs((double)own), others = strip.row - size;
        strip.dominance = size > 0 ? others / size : HUGE_VAL;
        strip.dominant = others < size;
        strip.least = fmin(strip.column, strip.row);
        strip.zero_column = strip.column == 0 ? (int32_t)j : INT32_MAX;
        strip.zero_row = strip.row == 0 ? (int32_t)j : INT32_MAX;
        strip.parts = own > 0 ? 0 : CUDA_PART_NOT_POSITIVE;
    }
    if (lane < CUDA__IDENTIFY_ADDERS) {
        strip.squares = sums.squares[lane];
        strip.parts |= sums.parts[lane];
    }
    cuda__identify_join_warp(&strip);
    return strip;
}

/* ---- The matrix ---- */

/* Of all strips; the threads of a block. */
template <typename T>
static __device__ __forceinline__ void
cuda__identify_end(const cuda_identification &task, const cuda__identify_shape &shape,
                   const cuda__identify_space<T> &space, int64_t k)
{
    __shared__ cuda__identify_strip found[CUDA__IDENTIFY_ADDERS];
    cuda__identify_strip all = cuda__identify_nothing();
    for (int64_t s = threadIdx.x; s < shape.groups(); s += CUDA__IDENTIFY_ADDING)
        cuda__identify_join(&all, space.strips[s]);
    cuda__identify_join_warp(&all);
    if (threadIdx.x % CUDA__WARP == 0)
        found[threadIdx.x / CUDA__WARP] = all;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < CUDA__IDENTIFY_ADDERS; w++)
        cuda__identify_join(&all, found[w]);
    struct cuda_identity identity = {
        cuda__norm_of<T>(all.column),
        cuda__norm_of<T>(all.row),
        sqrt(all.squares),
        all.dominance,
        all.least,
        all.dominant,
        all.zero_column == INT32_MAX ? 0 : all.zero_column + 1,
        all.zero_row == INT32_MAX ? 0 : all.zero_row + 1,
        all.parts,
    };
    task.to[k / task.count * task.to_step + k % task.count] = identity;
}

/* Of `blocks` whose work others are to see; a thread of each calls, behind a barrier. */
static __device__ __forceinline__ bool cuda__identify_is_last(uint32_t *arrived, uint32_t blocks)
{
    __threadfence();
    bool is_last = atomicAdd(arrived, 1) == blocks - 1;
    __threadfence();
    return is_last;
}

/* A group has `Warps` warps, a block as many groups as it has warps for. */
template <typename T, int Warps>
static __global__ void __launch_bounds__(CUDA__IDENTIFY_ADDING)
    cuda__identify_strips_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    constexpr int held = CUDA__IDENTIFY_ADDERS / Warps;
    __shared__ cuda__identify_sums all[held];
    const int lane = (int)threadIdx.x % CUDA__WARP, place = (int)threadIdx.x / CUDA__WARP;
    const int64_t k = blockIdx.y, group = blockIdx.x * (int64_t)held + place / Warps;
    const bool is_group = group < shape.groups();
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    cuda__identify_sums &sums = all[place / Warps];
    const bool tells = is_group && place % Warps == 0;
    /* A and its factors were there before the first kernel released this one; the sums were not. */
    const T own = tells ? cuda__identify_own<T>(task, k, group * CUDA__WARP + lane) : T(0);
    cuda__wait_for_previous();
    if (is_group) {
        const cuda__identify_adder<T, Warps> adder = {shape, space, group, place % Warps, lane};
        adder.add_lines(sums);
        adder.add_pairs(sums);
    }
    __syncthreads();
    if (tells) {
        cuda__identify_strip strip = cuda__identify_strip_of<T>(shape, sums, own, group, lane);
        if (lane == 0)
            space.strips[group] = strip;
    }
    __syncthreads();
    int last =
        threadIdx.x == 0 && (gridDim.x == 1 || cuda__identify_is_last(space.arrived, gridDim.x));
    if (__syncthreads_or(last))
        cuda__identify_end<T>(task, shape, space, k);
}

#endif
