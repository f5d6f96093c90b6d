/* gpu/cuda/ism/norm.cuh: |A| of A = D + X Y^T for large orders, where D is diagonal: the search of
 * check.cuh in six short kernels. They take the check's probe vectors and what is given, and leave
 * WEIGHTS and of the answer `terms` and norm_a, so that they can run next to the work.
 *
 *      begin    the norms of X's columns, and L X for eight lines L, those of the check
 *      score    bounds and scores of A's columns, by |Y| and by Y (L X)^T
 *      columns  the eight with the largest scores: norms and signs, by X and their rows of Y; and
 *               L X of those signs
 *      score    by that
 *      columns  four by their scores, and four by their bounds: norms
 *      largest  of these norms
 *
 * A block has a part of the rows. What it leaves the next kernel lies in workspace: sums over its
 * rows, which each block of that kernel adds up, or the largest of its scores, of which each block
 * makes the same choice. Products are made on the tensor cores, in FP64 whatever the precision of
 * what is given; sums are taken in an order that n and m alone decide.
 *
 * Cost: X is read four times, once of these from a cache, and Y twice. Device code; a slot a
 * blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_NORM_CUH
#define GPU_CUDA_ISM_NORM_CUH

#include "gpu/cuda/ism/norm_room.h"
#include "gpu/cuda/ism/team.cuh"
#include "gpu/cuda/ism/check.cuh"

#define CUDA__ISM_NORM_THREADS (CUDA__ISM_NORM_WARPS * CUDA__WARP)
#define CUDA__ISM_NORM_ACROSS (CUDA__ISM_NORM_PIECE / CUDA__ISM_NORM_UNIT) /* warps of a piece */
#define CUDA__ISM_NORM_HELD 4 /* products whose numbers are read together */
static_assert(CUDA__ISM_NORM_ACROSS * CUDA__ISM_NORM_DOWN == CUDA__ISM_NORM_WARPS, "all warps");
static_assert(CUDA__ISM_NORM_HELD * CUDA__ISM_NORM_UNIT == CUDA__ISM_NORM_PIECE, "a row's piece");
static_assert(CUDA__ISM_PROBES == 8, "as many as a product has columns");

/* ---- The largest ---- */

/* `Count` keys of a lane. */
template <int Count> struct cuda__ism_norm_keys {
    cuda__ism_key keys[Count];

    /* The largest of the warp's, the one that comes first of equals; it is not there any more. */
    __device__ __forceinline__ cuda__ism_key take()
    {
        cuda__ism_key own = {0, INT32_MAX};
#pragma unroll
        for (int k = 0; k < Count; k++) {
            const cuda__ism_key &key = keys[k];
            if (key.value > own.value || (key.value == own.value && key.at < own.at))
                own = key;
        }
        const cuda__ism_key best = cuda__ism_warp_best(own);
#pragma unroll
        for (int k = 0; k < Count; k++)
            keys[k].value = keys[k].at == best.at ? 0 : keys[k].value;
        return best;
    }

    /* The largest of the warp's, in their order. */
    __device__ __forceinline__ void list(cuda__ism_norm_list *to, int lane)
    {
#pragma unroll
        for (int c = 0; c < CUDA__ISM_PROBES; c++) {
            const cuda__ism_key best = take();
            if (lane == 0) {
                to->value[c] = best.value;
                to->at[c] = best.at;
            }
        }
    }
};

/* ---- A block ---- */

/* In a product a lane has the rows g and g + 8 of the left factor, g being a quarter of its number,
 * and columns t + 4 e, t being what is left of it. */
template <typename T> struct cuda__ism_norm_block {
    static constexpr int probes = CUDA__ISM_PROBES, unit = CUDA__ISM_NORM_UNIT;
    static constexpr int piece = CUDA__ISM_NORM_PIECE, warps = CUDA__ISM_NORM_WARPS;
    static constexpr int across = CUDA__ISM_NORM_ACROSS, down = CUDA__ISM_NORM_DOWN;
    static constexpr int held = CUDA__ISM_NORM_HELD, all_sums = CUDA__ISM_NORM_SUMS;

    const cuda__ism_call &call;
    const cuda__ism_norm_room &room;
    unsigned char *memory;
    int first, end, m; /* rows; columns of X and Y */
    int lane, warp, g, t;

    __device__ __forceinline__ cuda__ism_norm_block(const cuda__ism_call &of,
                                                    const cuda__ism_norm_room &shape,
                                                    unsigned char *shared, int rows)
        : call(of), room(shape), memory(shared), first((int)blockIdx.x * rows),
          end(min(first + rows, (int)of.n)), m((int)of.m), lane((int)threadIdx.x % CUDA__WARP),
          warp((int)threadIdx.x / CUDA__WARP), g(lane / 4), t(lane % 4)
    {
    }

    __device__ __forceinline__ double *reals(int at) const
    {
        return (double *)(memory + at);
    }
    __device__ __forceinline__ int32_t *chosen() const
    {
        return (int32_t *)(memory + room.chosen);
    }
    __device__ __forceinline__ cuda__ism_norm_list *lists() const
    {
        return (cuda__ism_norm_list *)(memory + room.lists);
    }
    __device__ __forceinline__ unsigned char *signs() const
    {
        return memory + room.signs;
    }
    __device__ __forceinline__ const T *array(int which) const
    {
        return cuda__ism_array_of<T>(call, blockIdx.y, which);
    }
    /* What blocks leave, from number `at` on. */
    __device__ __forceinline__ double *adjacent(int at) const
    {
        return (double *)cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_OVERLAPPED) + at;
    }

    /* The sum of four lanes that have the same rows. */
    static __device__ __forceinline__ double over_quarter(double value)
    {
        value += __shfl_xor_sync(CUDA__ALL, value, 1);
        return value + __shfl_xor_sync(CUDA__ALL, value, 2);
    }

    /* ---- Sums over rows ---- */

    /* a from number(k, e, is), `is` being known where all numbers are there. */
    template <typename F>
    static __device__ __forceinline__ void read(double (&a)[held][8], bool whole, F number)
    {
        if (whole) {
#pragma unroll
            for (int e = 0; e < held * 8; e++)
                a[e / 8][e % 8] = (double)number(e / 8, e % 8, true);
        } else {
#pragma unroll
            for (int e = 0; e < held * 8; e++)
                a[e / 8][e % 8] = (double)number(e / 8, e % 8, false);
        }
    }

    /* Numbers of X, as left factors of products that have its columns from c on as rows, and of
     * its rows from `row` on `apart`; zeros beyond its ends. */
    __device__ __forceinline__ void read_down(double (&a)[held][8], int row, int apart, int c) const
    {
        const T *x = array(CUDA__ISM_X) + (int64_t)(row + t) * call.ldm + c + g;
        const int ld = (int)call.ldm;
        const int rows = end - row - t, columns = m - c - g;
        read(a, row + (held - 1) * apart + unit <= end && c + unit <= m,
             [&](int k, int e, bool is) {
                 const int down_by = k * apart + e / 2 * 4, over = e % 2 * 8;
                 return is || (down_by < rows && over < columns) ? x[down_by * ld + over] : T(0);
             });
    }

    /* Numbers of the lines in those rows, as right factors. */
    template <bool Signs>
    __device__ __forceinline__ void read_lines(double (&b)[held][4], int row, int apart) const
    {
        const T *line = (const T *)call.probes + g * call.ld;
#pragma unroll
        for (int k = 0; k < held; k++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int r = row + t + k * apart + 4 * e;
                if constexpr (Signs)
                    b[k][e] = r < end && (signs()[r - first] >> g & 1) ? -1 : 1;
                else
                    b[k][e] = r < end ? (double)line[r] : 0;
            }
        }
    }

    /* L X of `piece` columns from `column` on over the warp's rows, for lines of T, or for SIGNS,
     * to SUMS; and the sums of magnitudes, with lines of T. */
    template <bool Signs> __device__ __forceinline__ void go_down(int column) const
    {
        constexpr int apart = down * unit;
        const int c = column + warp % across * unit;
        double sums[4] = {}, sizes[2] = {}, scaled[2] = {}, a[held][8], b[held][4];
#pragma unroll 1
        for (int row = first + warp / across * unit; row < end; row += held * apart) {
            read_down(a, row, apart, c);
            read_lines<Signs>(b, row, apart);
#pragma unroll
            for (int k = 0; k < held; k++) {
                cuda__multiply_add_16(sums, a[k], b[k]);
#pragma unroll
                for (int e = 0; e < 8 && !Signs; e++) {
                    sizes[e % 2] += fabs(a[k][e]);
                    scaled[e % 2] = fma(fabs(a[k][e]), CUDA__ISM_TERMS_SCALE, scaled[e % 2]);
                }
            }
        }
        double *to = reals(room.sums) + warp / across * all_sums * piece + c - column + g;
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[(2 * t + e % 2) * piece + e / 2 * 8] = sums[e];
#pragma unroll
        for (int h = 0; h < 2 && !Signs; h++) {
            const double size = over_quarter(sizes[h]), part = over_quarter(scaled[h]);
            if (t == 0) {
                to[probes * piece + h * 8] = size;
                to[(probes + 1) * piece + h * 8] = part;
            }
        }
    }

    /* The block's sums over its rows, left for the next kernel. */
    template <bool Signs> __device__ __forceinline__ void leave_sums() const
    {
        constexpr int lines = Signs ? probes : all_sums;
        const double *from = reals(room.sums);
        double *to = adjacent((int)blockIdx.x * all_sums * room.wide);
        for (int column = 0; column < m; column += piece) {
            go_down<Signs>(column);
            __syncthreads();
            for (int e = (int)threadIdx.x; e < lines * piece; e += CUDA__ISM_NORM_THREADS) {
                const int line = e / piece, c = e % piece;
                double sum = 0;
#pragma unroll
                for (int w = 0; w < down; w++)
                    sum += from[(w * all_sums + line) * piece + c];
                if (column + c < room.wide)
                    to[line * room.wide + column + c] = sum;
            }
            __syncthreads();
        }
    }

    /* Of all blocks, of column c. */
    __device__ __forceinline__ double sum_of(int line, int c) const
    {
        const double *from = adjacent(line * room.wide + c);
        double sum = 0;
#pragma unroll 16
        for (int part = 0; part < room.parts; part++)
            sum += from[part * all_sums * room.wide];
        return sum;
    }

    /* L X to the lines; and the norms of X's columns, as in terms.cuh. */
    __device__ __forceinline__ void take_sums(bool norms) const
    {
        for (int e = (int)threadIdx.x; e < probes * room.wide; e += CUDA__ISM_NORM_THREADS) {
            const int line = e / room.wide, c = e % room.wide;
            reals(room.lines)[line * room.line + c] = sum_of(line, c);
        }
        for (int c = (int)threadIdx.x; norms && c < room.wide; c += CUDA__ISM_NORM_THREADS) {
            const double size = sum_of(probes, c);
            reals(room.norms)[c] = size < 1 ? -size : sum_of(probes + 1, c);
        }
        __syncthreads();
    }

    /* ---- Rows times lines ---- */

    /* 16 rows of X or Y from `row` on, of `piece` columns, as left factors. */
    __device__ __forceinline__ void read_along(double (&a)[held][8], const T *from, int row,
                                               int column) const
    {
        const int ld = (int)call.ldm, rows = end - row - g, columns = m - column - t;
        from += (int64_t)(row + g) * ld + column + t;
        read(a, row + unit <= end && column + piece <= m, [&](int k, int e, bool is) {
            const int over = k * unit + e / 2 * 4, down_by = e % 2 * 8;
            return is || (down_by < rows && over < columns) ? from[down_by * ld + over] : T(0);
        });
    }

    /* sums: these rows times the eight lines. weigh(h, x, c) sees each number, of row g + 8 h. */
    template <typename F>
    __device__ __forceinline__ void go_along(double (&sums)[4], const T *from, int row,
                                             F weigh) const
    {
        const double *lines = reals(room.lines) + g * room.line + t;
        double a[held][8];
#pragma unroll 1
        for (int column = 0; column < room.wide; column += piece) {
            read_along(a, from, row, column);
#pragma unroll
            for (int k = 0; k < held; k++) {
                double b[4];
                const int c = column + k * unit;
                if (c >= room.wide)
                    break;
#pragma unroll
                for (int e = 0; e < 4; e++)
                    b[e] = lines[c + 4 * e];
#pragma unroll
                for (int e = 0; e < 8; e++)
                    weigh(e % 2, a[k][e], c + t + e / 2 * 4);
                cuda__multiply_add_16(sums, a[k], b);
            }
        }
    }

    /* ---- Scores ---- */

    /* Scores of the block's rows, and before the first ones their bounds; a warp 16 rows. Returns
     * the bits of the largest of the lane's terms. */
    template <bool Begins> __device__ __forceinline__ unsigned long long score() const
    {
        const double *norms = reals(room.norms);
        const int row = first + warp * unit;
        double sums[4] = {}, bounds[2] = {};
        unsigned long long terms = 0;
        if (row < end)
            go_along(sums, array(CUDA__ISM_Y), row, [&](int h, double value, int c) {
                if constexpr (Begins) {
                    const double weight = norms[c], size = fabs(value);
                    bounds[h] = fma(fabs(weight), weight < 0 ? size * CUDA__ISM_TERMS_SCALE : size,
                                    bounds[h]);
                }
            });
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const double square = fma(sums[2 * h], sums[2 * h], sums[2 * h + 1] * sums[2 * h + 1]);
            const double squares = over_quarter(square), bound = over_quarter(bounds[h]);
            const int j = row + g + 8 * h;
            if (t == 0 && j < end)
                terms = max(terms, note_score<Begins>(j, squares, bound));
        }
        return terms;
    }

    /* Returns the bits of the column's terms, scaled. */
    template <bool Begins>
    __device__ __forceinline__ unsigned long long note_score(int j, double squares,
                                                             double sum) const
    {
        double *weight = cuda__ism_weights<T>(call, blockIdx.y) + j, *own = reals(room.own);
        const T entry = array(CUDA__ISM_D)[j];
        const double size = fabs((double)entry);
        const double bound = Begins ? sum / CUDA__ISM_TERMS_SCALE + size : *weight;
        if (Begins)
            *weight = bound;
        own[j - first] = cuda__ism_score_of(call.n, entry, squares, bound);
        own[room.scored + j - first] = bound;
        return (unsigned long long)__double_as_longlong(fma(size, CUDA__ISM_TERMS_SCALE, sum));
    }

    /* The largest scores, by a warp, and the largest bounds by another one. A list's end may be of
     * rows that there are not, with keys of 0: n is large enough for eight others. */
    __device__ __forceinline__ void leave_list(bool bounds) const
    {
        constexpr int each = CUDA__ISM_NORM_WARPS * CUDA__ISM_NORM_UNIT / CUDA__WARP;
        const double *own = reals(room.own) + (bounds ? room.scored : 0);
        cuda__ism_norm_keys<each> of;
#pragma unroll
        for (int k = 0; k < each; k++) {
            const int r = lane + k * CUDA__WARP;
            of.keys[k] = {first + r < end ? cuda__ism_key_of(own[r]) : 0, first + r};
        }
        of.list((cuda__ism_norm_list *)adjacent(bounds ? room.by_bounds : room.by_scores) +
                    blockIdx.x,
                lane);
    }

    /* ---- The choice ---- */

    /* Chosen columns from number `begin` to stop - 1, from the lists of all blocks, of those that
     * are not among the ones before. */
    __device__ __forceinline__ void choose(int at, int begin, int stop) const
    {
        constexpr int units_max = CUDA_ISM_N_MAX / (CUDA__ISM_NORM_WARPS * CUDA__ISM_NORM_UNIT);
        constexpr int each = units_max * CUDA__ISM_PROBES / CUDA__ISM_NORM_THREADS;
        static_assert(each * CUDA__ISM_NORM_THREADS == units_max * CUDA__ISM_PROBES,
                      "all lists fit");
        const cuda__ism_norm_list *from = (const cuda__ism_norm_list *)adjacent(at);
        cuda__ism_norm_keys<each> of;
        cuda__ism_norm_keys<warps * probes / CUDA__WARP> best;
#pragma unroll
        for (int k = 0; k < each; k++) {
            const int e = (int)threadIdx.x + k * CUDA__ISM_NORM_THREADS;
            of.keys[k] = {0, INT32_MAX};
            if (e < room.blocks * probes)
                of.keys[k] = {from[e / probes].value[e % probes], from[e / probes].at[e % probes]};
            for (int before = 0; before < begin; before++)
                of.keys[k].value = of.keys[k].at == chosen()[before] ? 0 : of.keys[k].value;
        }
        of.list(&lists()[warp], lane);
        __syncthreads();
        if (warp == 0) {
#pragma unroll
            for (int k = 0; k < warps * probes / CUDA__WARP; k++) {
                const int e = lane + k * CUDA__WARP;
                best.keys[k] = {lists()[e / probes].value[e % probes],
                                lists()[e / probes].at[e % probes]};
            }
            for (int c = begin; c < stop; c++) {
                const cuda__ism_key next = best.take();
                if (lane == 0)
                    chosen()[c] = next.at;
            }
        }
        __syncthreads();
    }

    /* The chosen columns' rows of Y to the lines. */
    __device__ __forceinline__ void take_chosen() const
    {
        const T *y = array(CUDA__ISM_Y);
        for (int e = (int)threadIdx.x; e < probes * room.wide; e += CUDA__ISM_NORM_THREADS) {
            const int line = e / room.wide, c = e % room.wide;
            reals(room.lines)[line * room.line + c] =
                c < m ? (double)y[(int64_t)chosen()[line] * call.ldm + c] : 0.0;
        }
        __syncthreads();
    }

    /* ---- Norms ---- */

    /* The norms of the chosen columns, as far as the block's rows go, to `to`; and their signs. */
    __device__ __forceinline__ void measure(double *to) const
    {
        double *own = reals(room.own), sizes[2] = {};
        for (int row = first + warp * unit; row < end; row += warps * unit) {
            double sums[4] = {};
            go_along(sums, array(CUDA__ISM_X), row, [](int, double, int) {});
#pragma unroll
            for (int h = 0; h < 2; h++)
                look(row + g + 8 * h, &sums[2 * h], sizes);
        }
#pragma unroll
        for (int l = 0; l < 2; l++) {
#pragma unroll
            for (int reach = CUDA__WARP / 2; reach >= 4; reach /= 2)
                sizes[l] += __shfl_xor_sync(CUDA__ALL, sizes[l], reach);
            if (g == 0)
                own[warp * probes + 2 * t + l] = sizes[l];
        }
        __syncthreads();
        if (threadIdx.x < probes) {
            double size = 0;
            for (int w = 0; w < warps; w++)
                size += own[w * probes + (int)threadIdx.x];
            to[threadIdx.x] = size;
        }
    }

    /* Two lines' numbers of row i of A. */
    __device__ __forceinline__ void look(int i, const double *sums, double (&sizes)[2]) const
    {
        unsigned bits = 0;
#pragma unroll
        for (int l = 0; l < 2; l++) {
            double value = sums[l];
            if (i < end && chosen()[2 * t + l] == i)
                value += (double)array(CUDA__ISM_D)[i];
            bits |= (unsigned)(value < 0) << (2 * t + l);
            sizes[l] += fabs(value);
        }
        bits |= __shfl_xor_sync(CUDA__ALL, bits, 1);
        bits |= __shfl_xor_sync(CUDA__ALL, bits, 2);
        if (t == 0 && i < end)
            signs()[i - first] = (unsigned char)bits;
    }
};

/* ---- Kernels ---- */

template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_NORM_THREADS)
    cuda__ism_norm_begin_kernel(const cuda__ism_call call, const cuda__ism_norm_room room)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const cuda__ism_norm_block<T> block(call, room, cuda__memory, room.rows);
    block.template leave_sums<false>();
}

/* Begins: bounds are found too, the answer's `terms` and WEIGHTS; else scores and bounds are
 * listed. */
template <typename T, bool Begins>
static __global__ void __launch_bounds__(CUDA__ISM_NORM_THREADS)
    cuda__ism_norm_score_kernel(const cuda__ism_call call, const cuda__ism_norm_room room)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const cuda__ism_norm_block<T> block(call, room, cuda__memory, room.scored);
    block.take_sums(Begins);
    unsigned long long terms = block.template score<Begins>();
    __syncthreads();
    if (block.warp < (Begins ? 1 : 2))
        block.leave_list(block.warp > 0);
    if constexpr (Begins) {
        terms = cuda__ism_warp_best({terms, 0}).value;
        if (block.lane == 0)
            atomicMax(&cuda__ism_answer_of<T>(call, blockIdx.y)->terms, terms);
    }
}

/* Begins: all are chosen by scores, and are not chosen again; lines of their signs go down. */
template <typename T, bool Begins>
static __global__ void __launch_bounds__(CUDA__ISM_NORM_THREADS)
    cuda__ism_norm_columns_kernel(const cuda__ism_call call, const cuda__ism_norm_room room)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    constexpr int half = CUDA__ISM_PROBES / 2;
    const cuda__ism_norm_block<T> block(call, room, cuda__memory, room.rows);
    block.choose(room.by_scores, 0, Begins ? CUDA__ISM_PROBES : half);
    if constexpr (!Begins)
        block.choose(room.by_bounds, half, CUDA__ISM_PROBES);
    if (Begins && blockIdx.x == 0 && threadIdx.x < CUDA__ISM_PROBES)
        cuda__ism_weights<T>(call, blockIdx.y)[block.chosen()[threadIdx.x]] = 0;
    block.take_chosen();
    block.measure(block.adjacent(room.sizes +
                                 ((Begins ? 0 : room.parts) + (int)blockIdx.x) * CUDA__ISM_PROBES));
    if constexpr (Begins)
        block.template leave_sums<true>();
}

/* norm_a: the largest norm of the chosen columns; one beyond the precision's range is infinite. A
 * warp a slot: a lane a column of either round. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__WARP)
    cuda__ism_norm_largest_kernel(const cuda__ism_call call, const cuda__ism_norm_room room)
{
    cuda__follow_previous();
    const int line = (int)threadIdx.x % CUDA__ISM_PROBES;
    const int round = (int)threadIdx.x / CUDA__ISM_PROBES % 2;
    const double *sizes =
        (const double *)cuda__ism_array_of<T>(call, blockIdx.y, CUDA__ISM_OVERLAPPED) + room.sizes +
        round * room.parts * CUDA__ISM_PROBES + line;
    double size = 0;
#pragma unroll 16
    for (int part = 0; part < room.parts; part++)
        size += sizes[part * CUDA__ISM_PROBES];
    size = cuda__ism_warp_largest((double)(T)size);
    if (threadIdx.x == 0)
        cuda__ism_answer_of<T>(call, blockIdx.y)->norm_a = size;
}

#endif
