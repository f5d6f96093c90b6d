/* gpu/cuda/ism/capacitance.cuh: the capacitance matrix I + K X of an update of stream.cuh: its
 * inverse R, -R K, |X K|, and what lost.cuh needs. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_CAPACITANCE_CUH
#define GPU_CUDA_ISM_CAPACITANCE_CUH

#include <type_traits>

#include "gpu/cuda/ism/lines.cuh"
#include "gpu/cuda/ism/pivot.cuh"
#include "gpu/cuda/ism/check.cuh"
#include "gpu/cuda/ism/turn.cuh"

#define CUDA__ISM_CAPACITANCE_FEW 4 /* warps of a block where m is small */
#define CUDA__ISM_LINES_BLOCKS 4    /* a multiprocessor; slabs beyond those go double-buffered */

/* What a block of a matrix finds out: its blockIdx.x. */
enum cuda__ism_capacitance_task {
    CUDA__ISM_CAPACITANCE_R,
    CUDA__ISM_CAPACITANCE_CHANGE, /* |X K| */
    CUDA__ISM_CAPACITANCE_REACH,  /* what lost.cuh wants of X and Y, and what is not finite */
    CUDA__ISM_CAPACITANCE_TASKS
};

/* A block of a matrix of `Most` columns or fewer. Up to those that a warp can invert it is small,
 * so that many of them are at once where that chain of steps waits for itself. */
template <typename S, int Most> struct cuda__ism_capacitance {
    static constexpr int most = Most, line = most + 2;
    static constexpr bool by_warp = most <= CUDA__WARP;
    static constexpr int warps = by_warp ? CUDA__ISM_CAPACITANCE_FEW : CUDA__ISM_TURN_WARPS;
    static constexpr int threads = warps * CUDA__WARP;
    struct nothing {
    };
    struct shared {
        alignas(16) double c[most][line]; /* I + K X, then R */
        double parts[warps][16 * 8];
        double thin[threads], column[most], sums[warps];
        cuda__ism_key best[warps];
        std::conditional_t<by_warp, nothing, cuda__ism_square<double>::shared> square;
    };

    cuda__ism_stream<S> at;
    shared &memory;
    int warp, lane, g, t;
    const S *x;
    const double *k;

    __device__ __forceinline__ double k_at(int l, int j) const
    {
        return l < at.m ? k[(int64_t)l * at.ld + j] : 0;
    }

    __device__ __forceinline__ double x_at(int i, int c) const
    {
        return i < at.n && c < at.m ? (double)x[i * at.m + c] : 0;
    }

    /* Part number `part` of `parts` of the sums of a tile of K X. */
    __device__ __forceinline__ void multiply_tile(int i, int j, int part, int parts,
                                                  double (&sums)[4]) const
    {
        const int share = (at.ld / 8 + parts - 1) / parts * 8;
        const int end = (part + 1) * share < at.ld ? (part + 1) * share : at.ld;
#pragma unroll 4
        for (int step = part * share; step < end; step += 8) {
            const int inner = step + 2 * t;
            const double left[4] = {k_at(i + g, inner), k_at(i + g + 8, inner),
                                    k_at(i + g, inner + 1), k_at(i + g + 8, inner + 1)};
            const double right[2] = {x_at(inner, j + g), x_at(inner + 1, j + g)};
            cuda__multiply_add(sums, left, right);
        }
    }

    /* I + K X: a warp has some tiles, or a part of one's sums where there are few. */
    __device__ __forceinline__ void multiply()
    {
        const int down = (at.m + 15) / 16, tiles = down * ((at.m + 7) / 8);
        const int parts = tiles < warps ? warps / tiles : 1;
        for (int piece = warp; piece < tiles * parts; piece += warps) {
            const int tile = piece / parts, i = tile % down * 16, j = tile / down * 8;
            double sums[4] = {};
            multiply_tile(i, j, piece % parts, parts, sums);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = g + e / 2 * 8, column = 2 * t + e % 2;
                if (parts > 1)
                    memory.parts[warp][row * 8 + column] = sums[e];
                else
                    memory.c[i + row][j + column] = sums[e] + (i + row == j + column);
            }
        }
        __syncthreads();
        for (int e = (int)threadIdx.x; parts > 1 && e < tiles * 16 * 8; e += threads) {
            const int tile = e / (16 * 8), at_tile = e % (16 * 8);
            const int row = tile % down * 16 + at_tile / 8, column = tile / down * 8 + at_tile % 8;
            double sum = row == column;
            for (int p = 0; p < parts; p++)
                sum += memory.parts[tile * parts + p][at_tile];
            memory.c[row][column] = sum;
        }
        __syncthreads();
    }

    /* R takes the place of I + K X, zeros around it. */
    __device__ __forceinline__ void invert()
    {
        if constexpr (by_warp)
            invert_by_warp();
        else
            invert_by_block();
    }

    __device__ __forceinline__ void invert_by_warp()
    {
        cuda__ism_answer *answer = at.answer();
        if (warp == 0)
            cuda__ism_pivot_block<most>(memory.c[0], line, at.m, lane, &answer->det,
                                        &answer->det_exponent);
        if (threadIdx.x == 0)
            answer->broken = 0;
        __syncthreads();
    }

    __device__ __forceinline__ void invert_by_block()
    {
        cuda__ism_answer *answer = at.answer();
        cuda__ism_square<double> square = {memory.square, at.m, warp, lane, {}, {}, false};
        const int wide = at.wide();
        square.each(0, [&](int i, int j, double &number) { number = memory.c[i][j]; });
        const bool whole = square.invert();
        if (warp == 0) {
            double det = 1;
            int64_t exponent = 0;
            if (whole)
                square.multiply_pivots(&det, &exponent);
            if (lane == 0) {
                answer->det = det;
                answer->det_exponent = exponent;
                answer->broken = !whole;
            }
        }
        for (int e = (int)threadIdx.x; e < wide * wide; e += threads)
            memory.c[e / wide][e % wide] = 0;
        __syncthreads();
        /* Row place[k] has the inverse's row k, and its column l that of row place[l]. */
        square.each(at.m, [&](int i, int j, double number) {
            if (whole)
                memory.c[memory.square.of_row[i]][memory.square.place[j]] = number;
        });
        __syncthreads();
    }

    /* A line of T times X. */
    __device__ __forceinline__ void find_thin()
    {
        const int wide = at.wide(), parts = threads / wide;
        const int c = (int)threadIdx.x % wide, part = (int)threadIdx.x / wide;
        double sum = 0;
#pragma unroll 16
        for (int i = part; part < parts && i < at.n; i += parts)
            sum = fma((double)at.weights(0)[i], x_at(i, c), sum);
        memory.thin[threadIdx.x] = sum;
        __syncthreads();
        if (part == 0)
            for (int p = 1; p < parts; p++)
                sum += memory.thin[p * wide + c];
        __syncthreads();
        if (part == 0)
            memory.thin[c] = sum;
        __syncthreads();
    }

    /* |X K|: of the column at which the line times X K is the largest. */
    __device__ __forceinline__ void measure()
    {
        find_thin();
        cuda__ism_key best = {0, 0};
        for (int j = (int)threadIdx.x; j < at.n; j += threads) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < at.m; l++)
                product = fma(memory.thin[l], k_at(l, j), product);
            best.see((unsigned long long)__double_as_longlong(fabs(product)) + 1, j);
        }
        best = cuda__ism_warp_best(best);
        if (lane == 0)
            memory.best[warp] = best;
        __syncthreads();
        best = cuda__ism_warp_best(memory.best[lane % warps]);
        if ((int)threadIdx.x < at.m)
            memory.column[threadIdx.x] = k_at((int)threadIdx.x, best.at);
        __syncthreads();
        double change = 0;
        for (int i = (int)threadIdx.x; i < at.n; i += threads) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < at.m; l++)
                product = fma((double)x[i * at.m + l], memory.column[l], product);
            change += fabs(product);
        }
        change = cuda__warp_sum(change);
        if (lane == 0)
            memory.sums[warp] = change;
        __syncthreads();
        for (int w = 1; w < warps; w++)
            change += memory.sums[w];
        if (threadIdx.x == 0)
            at.answer()->change = change;
    }

    /* The sums of magnitudes of X's columns, to `thin` and to the lines that are kept. */
    __device__ __forceinline__ S find_norms()
    {
        const int count = threads / at.m;
        const int c = (int)threadIdx.x % at.m, part = (int)threadIdx.x / at.m;
        double sum = 0;
        S excess = 0;
#pragma unroll 16
        for (int i = part; part < count && i < at.n; i += count) {
            excess += x[i * at.m + c] * 0;
            sum += (double)fabs(x[i * at.m + c]);
        }
        memory.thin[threadIdx.x] = sum;
        __syncthreads();
        if (part == 0) {
            for (int p = 1; p < count; p++)
                sum += memory.thin[p * at.m + c];
            memory.thin[c] = sum;
            at.lines(CUDA__ISM_STREAM_NORMS)[c] = sum;
        }
        __syncthreads();
        return excess;
    }

    /* The largest row of |Y| times those: lanes share a row, 8, 16 or all of them. */
    __device__ __forceinline__ double find_row(S *excess) const
    {
        const S *y = at.input(METHOD_ISM_Y, at.m);
        const int width = at.m > 16 ? 32 : at.m > 8 ? 16 : 8;
        const int rows = threads / width, own = (int)threadIdx.x / width;
        double max_row = 0;
#pragma unroll 8
        for (int first = 0; first < at.n; first += rows) {
            const S *of_y = y + (int64_t)(first + own) * at.m;
            double row = 0;
#pragma unroll
            for (int q = 0; q < most / CUDA__WARP; q++) {
                const int l = lane % width + q * CUDA__WARP;
                const bool inside = l < at.m && first + own < at.n;
                const S number = inside ? of_y[l] : S(0);
                *excess += number * 0;
                row = fma(inside ? memory.thin[l] : 0, (double)fabs(number), row);
            }
            for (int reach = width / 2; reach > 0; reach /= 2)
                row += __shfl_xor_sync(CUDA__ALL, row, reach);
            max_row = cuda__max_or_nan(max_row, row);
        }
        return max_row;
    }

    __device__ __forceinline__ void find_reach()
    {
        const double *sizes = at.lines(CUDA__ISM_STREAM_SIZES);
        S excess = find_norms();
        const double reach = cuda__block_max<warps>(find_row(&excess), memory.sums);
        bool bad = !(excess == 0);
        for (int j = (int)threadIdx.x; j < at.n; j += threads)
            bad = bad || isnan(sizes[j]);
        bad = __syncthreads_or(bad);
        cuda__ism_answer *answer = at.answer();
        if (threadIdx.x == 0) {
            answer->reach = reach;
            answer->loss = 0;
            answer->bad = bad;
        }
    }

    /* wide x wide */
    __device__ __forceinline__ void keep_r() const
    {
        const int wide = at.wide();
        double *to = at.lines(CUDA__ISM_STREAM_R);
        for (int e = (int)threadIdx.x; e < wide * wide; e += threads)
            to[e] = memory.c[e / wide][e % wide];
    }

    __device__ __forceinline__ void run(int task)
    {
        if (task == CUDA__ISM_CAPACITANCE_CHANGE) {
            measure();
        } else if (task == CUDA__ISM_CAPACITANCE_REACH) {
            find_reach();
        } else {
            multiply();
            invert();
            keep_r();
        }
    }
};

template <typename S, int Most>
static __global__ void __launch_bounds__(cuda__ism_capacitance<S, Most>::threads,
                                         512 / cuda__ism_capacitance<S, Most>::threads)
    cuda__ism_capacitance_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typedef typename cuda__ism_capacitance<S, Most>::shared shared;
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP;
    cuda__ism_capacitance<S, Most> one = {
        at,       *(shared *)cuda__memory,      (int)threadIdx.x / CUDA__WARP, lane, lane / 4,
        lane % 4, at.input(METHOD_ISM_X, at.m), at.lines(CUDA__ISM_STREAM_K)};
    one.run((int)blockIdx.x);
}

/* -R K: a block has slabs of 64 columns double-buffered, a warp a tile of them, of which all of K
 * is read at once. */
template <typename S, int Most> struct cuda__ism_liner {
    static constexpr int pitch = Most + 8; /* against conflicts */

    cuda__ism_stream<S> at;
    double (*r)[pitch];
    int g, t;

    __device__ __forceinline__ void fetch() const
    {
        const int wide = at.wide();
        const double *from = at.lines(CUDA__ISM_STREAM_R);
        for (int e = (int)threadIdx.x * 2; e < wide * wide; e += CUDA__ISM_THREADS * 2)
            *(double2 *)&r[e / wide][e % wide] = *(const double2 *)(from + e);
    }

    /* Eight columns from `column` on. */
    __device__ __forceinline__ void multiply(int column) const
    {
        const int wide = at.wide();
        const double *k = at.lines(CUDA__ISM_STREAM_K) + column + g;
        double *to = at.lines(CUDA__ISM_STREAM_RK) + column + 2 * t, right[Most / 8][2];
#pragma unroll
        for (int e = 0; e < Most / 4; e++) {
            const int l = e / 2 * 8 + 2 * t + e % 2;
            right[e / 2][e % 2] = l < at.m ? k[(int64_t)l * at.ld] : 0;
        }
        for (int i = g; i < wide; i += 16) {
            const bool deep = i + 8 < wide;
            double sums[4] = {};
#pragma unroll
            for (int q = 0; q < Most / 8; q++) {
                if (q * 8 >= wide)
                    continue;
                const double2 low = *(const double2 *)&r[i][q * 8 + 2 * t];
                const double2 high =
                    deep ? *(const double2 *)&r[i + 8][q * 8 + 2 * t] : make_double2(0, 0);
                const double left[4] = {low.x, high.x, low.y, high.y};
                cuda__multiply_add(sums, left, right[q]);
            }
            double *place = to + (int64_t)i * at.ld;
            *(double2 *)place = make_double2(-sums[0], -sums[1]);
            if (deep)
                *(double2 *)(place + 8 * (int64_t)at.ld) = make_double2(-sums[2], -sums[3]);
        }
    }
};

template <typename S, int Most>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_lines_kernel(const cuda__ism_call call, int slabs)
{
    cuda__follow_previous();
    typedef cuda__ism_liner<S, Most> liner;
    static_assert(CUDA__ISM_WARPS * 8 == CUDA__ISM_STREAM_SLAB, "a tile a warp");
    __shared__ __align__(16) double r[Most][liner::pitch];
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const liner one = {cuda__ism_stream<S>::of(call), r, lane / 4, lane % 4};
    one.fetch();
    __syncthreads();
    for (int slab = (int)blockIdx.x; slab < slabs; slab += (int)gridDim.x)
        one.multiply(slab * CUDA__ISM_STREAM_SLAB + warp * 8);
}

/* All of it, for call.count slots. */
template <typename S, int Most>
static cudaError_t cuda__ism_start_capacitance(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_capacitance<S, Most> capacitance;
    const int64_t slabs = call.plan.stream_ld / CUDA__ISM_STREAM_SLAB;
    const int64_t enough = CUDA__ISM_LINES_BLOCKS * cuda__multiprocessors() / call.count + 1;
    cudaError_t error =
        cuda__ism_follow(cuda__ism_capacitance_kernel<S, Most>,
                         dim3(CUDA__ISM_CAPACITANCE_TASKS, (unsigned)call.count),
                         capacitance::threads, sizeof(typename capacitance::shared), stream, call);
    if (error == cudaSuccess)
        error = cuda__ism_follow(
            cuda__ism_lines_kernel<S, Most>,
            dim3((unsigned)(slabs < enough ? slabs : enough), (unsigned)call.count),
            CUDA__ISM_THREADS, 0, stream, call, (int)slabs);
    return error;
}

#endif
