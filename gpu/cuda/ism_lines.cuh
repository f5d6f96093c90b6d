/* gpu/cuda/ism_lines.cuh: the first half of an update of ism_stream.cuh: the lines of n numbers
 * that it takes, K, T B and -R K, and what belongs to them. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_LINES_CUH
#define GPU_CUDA_ISM_LINES_CUH

#include <type_traits>

#include "gpu/cuda/ism_pivot.cuh"
#include "gpu/cuda/ism_few.cuh"
#include "gpu/cuda/ism_trial.cuh"
#include "gpu/cuda/ism_turn.cuh"
#include "gpu/cuda/launch.cuh"

#define CUDA__ISM_MEET_TILES 4 /* of 8 columns of a warp */
#define CUDA__ISM_MEET_WARPS (CUDA__ISM_STREAM_SLAB / (8 * CUDA__ISM_MEET_TILES))
#define CUDA__ISM_COUPLE_FEW 4 /* warps of a block where m is small */
#define CUDA__ISM_MEET_ROWS 32 /* of K that are added up together; FP32 has digits to spare */

/* Where things are. */
template <typename S> struct cuda__ism_stream {
    typedef typename cuda__ism_pair<S>::type pair;
    static constexpr int tried = CUDA__ISM_TRIED;

    const cuda__ism_call &call;
    int64_t slot;
    int n, m, ld; /* ld: of the lines that are kept, columns */

    static __device__ __forceinline__ cuda__ism_stream of(const cuda__ism_call &call)
    {
        return {call, (int64_t)blockIdx.y, (int)call.n, (int)call.m, (int)call.plan.stream_ld};
    }

    __device__ __forceinline__ int wide() const
    {
        return (m + 7) / 8 * 8;
    }

    __device__ __forceinline__ double *lines(int array) const
    {
        return (double *)cuda__ism_array_of<S>(call, slot, array);
    }

    __device__ __forceinline__ const S *input(int which, int columns) const
    {
        return cuda__ism_input<S>(call, slot, which, (int64_t)n * columns);
    }

    __device__ __forceinline__ cuda__ism_answer *answer() const
    {
        return cuda__ism_answer_of<S>(call, slot);
    }

    /* Do the rows of a matrix begin at multiples of 16 bytes? */
    __device__ __forceinline__ bool is_even(const S *matrix) const
    {
        return n % cuda__real<S>::width == 0 && (uintptr_t)matrix % 16 == 0;
    }

    /* Line l of T. */
    __device__ __forceinline__ const S *weights(int l) const
    {
        return (const S *)call.lines + l * call.ld;
    }
};

/* A kernel behind what is in the stream; it begins by waiting for that (cuda__follow_previous).
 * scripts/check looks for it. */
template <typename... Parameters, typename... Arguments>
static cudaError_t cuda__ism_follow(void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                                    size_t shared_bytes, cudaStream_t stream,
                                    const Arguments &...arguments)
{
    return cuda__follow(kernel, blocks, threads, shared_bytes, cuda__overlaps(), stream,
                        arguments...);
}

/* ---- Reach ---- */

/* What ism_lost.cuh wants of X and Y; notes what of them is not finite. A block a slot. */
template <typename S, int Threads>
static __global__ void __launch_bounds__(Threads) cuda__ism_reach_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    constexpr int warps = Threads / CUDA__WARP;
    __shared__ double parts[Threads], scratch[warps];
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const S *x = at.input(CUDA__ISM_GIVEN_X, at.m), *y = at.input(CUDA__ISM_GIVEN_Y, at.m);
    const int count = Threads / at.m;
    const int c = (int)threadIdx.x % at.m, part = (int)threadIdx.x / at.m;
    double sum = 0, most = 0;
    S excess = 0;
#pragma unroll 4
    for (int i = part; part < count && i < at.n; i += count) {
        excess += x[i * at.m + c] * 0;
        sum += (double)fabs(x[i * at.m + c]);
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (part == 0) {
        for (int p = 1; p < count; p++)
            sum += parts[p * at.m + c];
        parts[c] = sum;
    }
    __syncthreads();
    /* Lanes share a row of Y, 8, 16 or all of them. */
    const int width = at.m > 16 ? 32 : at.m > 8 ? 16 : 8, lane = (int)threadIdx.x % CUDA__WARP;
    const int rows = Threads / width, own = (int)threadIdx.x / width;
#pragma unroll 4
    for (int first = 0; first < at.n; first += rows) {
        const S *of_y = y + (int64_t)(first + own) * at.m;
        double row = 0;
        for (int l = lane % width; l < at.m && first + own < at.n; l += width) {
            excess += of_y[l] * 0;
            row = fma(parts[l], (double)fabs(of_y[l]), row);
        }
        for (int reach = width / 2; reach > 0; reach /= 2)
            row += __shfl_xor_sync(CUDA__ALL, row, reach);
        most = cuda__lu_larger(most, row);
    }
    for (int l = (int)threadIdx.x; l < at.m; l += Threads)
        at.lines(CUDA__ISM_STREAM_NORMS)[l] = parts[l];
    most = cuda__lu_block_largest<warps>(most, scratch);
    const bool bad = __syncthreads_or(!(excess == 0));
    if (threadIdx.x == 0) {
        cuda__ism_answer answer = {};
        answer.det = 1;
        answer.reach = most;
        answer.bad = bad;
        *at.answer() = answer;
    }
}

/* ---- Meet ---- */

/* A warp with 32 columns, `Lines` tiles of 16 lines of Y^T and T from line `begin` on. Column c is
 * that of tile c % 4, so that a lane reads four of them that are side by side. */
template <typename S, int Lines> struct cuda__ism_meeter {
    static constexpr int tiles = CUDA__ISM_MEET_TILES;

    cuda__ism_stream<S> at;
    int begin, column, g, t;
    const S *b, *y;
    bool even; /* 16 bytes of B can be moved */
    double sums[Lines][tiles][4], sizes[tiles];

    /* Number `i` of line `line`. */
    __device__ __forceinline__ double left(int line, int i) const
    {
        if (i >= at.n || line >= at.m + at.tried)
            return 0;
        return line < at.m ? (double)y[i * at.m + line] : (double)at.weights(line - at.m)[i];
    }

    /* Four columns of row i, side by side, one of each tile: the lane's. */
    __device__ __forceinline__ void take(int i, double (&to)[tiles]) const
    {
        constexpr int width = cuda__real<S>::width;
        const int first = column + tiles * g;
        const S *from = b + (int64_t)i * at.n + first;
#pragma unroll
        for (int v = 0; v < tiles; v += width) {
            S numbers[width] = {};
            const bool inside = i < at.n && first + v < at.n;
            if (even && inside) {
                cuda__ism_fetch(from + v, numbers);
            } else if (inside) {
                for (int e = 0; e < width; e++)
                    numbers[e] = first + v + e < at.n ? from[v + e] : S(0);
            }
#pragma unroll
            for (int e = 0; e < width; e++)
                to[v + e] = (double)numbers[e];
        }
    }

    __device__ __forceinline__ void step(int first)
    {
        const int i = first + t;
        double from[Lines][4], rows[2][tiles];
        take(i, rows[0]);
        take(i + 4, rows[1]);
#pragma unroll
        for (int l = 0; l < Lines; l++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                from[l][e] = left(begin + l * 16 + e % 2 * 8 + g, i + e / 2 * 4);
        }
#pragma unroll
        for (int j = 0; j < tiles; j++) {
            const double both[2] = {rows[0][j], rows[1][j]};
            sizes[j] += fabs(both[0]) + fabs(both[1]);
#pragma unroll
            for (int l = 0; l < Lines; l++)
                cuda__multiply_add(sums[l][j], from[l], both);
        }
    }

    /* The sums of magnitudes of the columns; notes what is not finite. */
    __device__ __forceinline__ void keep_sizes() const
    {
        const int first = column + tiles * g;
        double *to = at.lines(CUDA__ISM_STREAM_SIZES) + first;
#pragma unroll
        for (int j = 0; j < tiles; j++) {
            double sum = sizes[j] + __shfl_xor_sync(CUDA__ALL, sizes[j], 1);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
            if (t == 0)
                to[j] = sum;
            if (sum <= cuda__real<double>::largest)
                continue;
            S excess = 0;
            for (int i = t; i < at.n && first + j < at.n; i += 4)
                excess += b[(int64_t)i * at.n + first + j] * 0;
            if (!(excess == 0))
                atomicMax(&at.answer()->bad, 1);
        }
    }

    /* A lane has eight columns of a line side by side: of each tile two. */
    __device__ __forceinline__ void keep_lines() const
    {
        double *k = at.lines(CUDA__ISM_STREAM_K) + column + 8 * t;
#pragma unroll
        for (int e = 0; e < Lines * 8; e++) {
            const int line = begin + e / 8 * 16 + e / 4 % 2 * 8 + g, from = e / 4 % 2 * 2;
            const int half = e / 2 % 2, first = e % 2 * 2;
            if (line < at.m + at.tried)
                *(double2 *)(k + (int64_t)line * at.ld + half * 4 + first) = make_double2(
                    sums[e / 8][first][from + half], sums[e / 8][first + 1][from + half]);
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int e = 0; e < 4 * Lines * tiles; e++)
            sums[e / (4 * tiles)][e / 4 % tiles][e % 4] = 0;
    }

    __device__ __forceinline__ void run()
    {
        constexpr bool wide = sizeof(S) == sizeof(double);
        double before[wide ? Lines : 1][tiles][4] = {};
#pragma unroll
        for (int j = 0; j < tiles; j++)
            sizes[j] = 0;
        clear();
        for (int first = 0; first < at.n; first += CUDA__ISM_MEET_ROWS) {
#pragma unroll 2
            for (int i = 0; i < CUDA__ISM_MEET_ROWS; i += 8)
                step(first + i);
            if constexpr (wide) {
#pragma unroll
                for (int e = 0; e < 4 * Lines * tiles; e++)
                    before[e / (4 * tiles)][e / 4 % tiles][e % 4] +=
                        sums[e / (4 * tiles)][e / 4 % tiles][e % 4];
                clear();
            }
        }
        if constexpr (wide) {
#pragma unroll
            for (int e = 0; e < 4 * Lines * tiles; e++)
                sums[e / (4 * tiles)][e / 4 % tiles][e % 4] =
                    before[e / (4 * tiles)][e / 4 % tiles][e % 4];
        }
        keep_lines();
        if (begin == 0)
            keep_sizes();
    }
};

/* Of the blocks of a slab each takes `Lines` tiles of lines of Y^T and T. */
template <typename S, int Lines>
static __global__ void __launch_bounds__(CUDA__ISM_MEET_WARPS *CUDA__WARP)
    cuda__ism_meet_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP;
    const int all = (at.m + at.tried + Lines * 16 - 1) / (Lines * 16);
    const int slab = (int)blockIdx.x / all, begin = (int)blockIdx.x % all * Lines * 16;
    const int warp = slab * CUDA__ISM_MEET_WARPS + (int)threadIdx.x / CUDA__WARP;
    const S *b = at.input(CUDA__ISM_GIVEN_INVERSE, at.n);
    cuda__ism_meeter<S, Lines> one = {
        at,       begin, warp * CUDA__ISM_MEET_TILES * 8,   lane / 4,
        lane % 4, b,     at.input(CUDA__ISM_GIVEN_Y, at.m), at.is_even(b),
        {},       {}};
    one.run();
}

/* All of it, for call.count slots. */
template <typename S, int Lines>
static cudaError_t cuda__ism_start_meet(const cuda__ism_call &call, cudaStream_t stream)
{
    const int64_t slabs = call.plan.stream_ld / CUDA__ISM_STREAM_SLAB;
    const int64_t all = (call.m + CUDA__ISM_TRIED + Lines * 16 - 1) / (Lines * 16);
    return cuda__ism_follow(cuda__ism_meet_kernel<S, Lines>,
                            dim3((unsigned)(slabs * all), (unsigned)call.count),
                            CUDA__ISM_MEET_WARPS * CUDA__WARP, 0, stream, call);
}

/* ---- Couple ---- */

/* A block of a matrix of `Most` columns or fewer. Up to those that a warp can invert it is small,
 * so that many of them are at once where that chain of steps waits for itself. */
template <typename S, int Most> struct cuda__ism_coupler {
    static constexpr int most = Most, line = most + 2;
    static constexpr bool by_warp = most <= CUDA__WARP;
    static constexpr int warps = by_warp ? CUDA__ISM_COUPLE_FEW : CUDA__ISM_TURN_WARPS;
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
        __syncthreads();
    }

    __device__ __forceinline__ void invert_by_block()
    {
        cuda__ism_answer *answer = at.answer();
        cuda__ism_square<double> square = {memory.square, at.m, warp, lane, {}, {}, false};
        const int wide = at.wide();
        square.each(0, [&](int i, int j, double &number) { number = memory.c[i][j]; });
        const bool whole = square.invert();
        if (warp == 0 && whole) {
            double det = 1;
            int64_t exponent = 0;
            square.multiply_pivots(&det, &exponent);
            if (lane == 0) {
                answer->det = det;
                answer->det_exponent = exponent;
            }
        }
        if (threadIdx.x == 0 && !whole)
            answer->broken = 1;
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
#pragma unroll 8
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
        change = cuda__lu_warp_sum(change);
        if (lane == 0)
            memory.sums[warp] = change;
        __syncthreads();
        for (int w = 1; w < warps; w++)
            change += memory.sums[w];
        if (threadIdx.x == 0)
            at.answer()->change = change;
    }

    /* -R K, a tile of columns a warp, of which all of K is read at once. */
    __device__ __forceinline__ void multiply_lines()
    {
        double *to = at.lines(CUDA__ISM_STREAM_RK);
        const int wide = at.wide();
        for (int column = warp * 8; column < at.ld; column += warps * 8) {
            double right[most / 8][2];
#pragma unroll
            for (int q = 0; q < most / 8; q++) {
#pragma unroll
                for (int e = 0; e < 2; e++)
                    right[q][e] = k_at(q * 8 + 2 * t + e, column + g);
            }
            for (int i = 0; i < wide; i += 16) {
                const bool deep = i + 8 < wide;
                double sums[4] = {};
#pragma unroll
                for (int q = 0; q < most / 8; q++) {
                    if (q * 8 >= wide)
                        continue;
                    const double *corner = &memory.c[i + g][q * 8 + 2 * t];
                    const double2 low = *(const double2 *)corner;
                    const double2 high =
                        deep ? *(const double2 *)(corner + 8 * line) : make_double2(0, 0);
                    const double left[4] = {low.x, high.x, low.y, high.y};
                    cuda__multiply_add(sums, left, right[q]);
                }
                double *place = to + (int64_t)(i + g) * at.ld + column + 2 * t;
                *(double2 *)place = make_double2(-sums[0], -sums[1]);
                if (deep)
                    *(double2 *)(place + 8 * (int64_t)at.ld) = make_double2(-sums[2], -sums[3]);
            }
        }
    }

    __device__ __forceinline__ void run()
    {
        multiply();
        invert();
        multiply_lines();
        measure();
    }
};

template <typename S, int Most>
static __global__ void __launch_bounds__(cuda__ism_coupler<S, Most>::threads,
                                         512 / cuda__ism_coupler<S, Most>::threads)
    cuda__ism_couple_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typedef typename cuda__ism_coupler<S, Most>::shared shared;
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP;
    cuda__ism_coupler<S, Most> one = {
        at,       *(shared *)cuda__memory,           (int)threadIdx.x / CUDA__WARP, lane, lane / 4,
        lane % 4, at.input(CUDA__ISM_GIVEN_X, at.m), at.lines(CUDA__ISM_STREAM_K)};
    one.run();
}

template <typename S, int Most>
static cudaError_t cuda__ism_start_couple(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_coupler<S, Most> coupler;
    return cuda__ism_follow(cuda__ism_couple_kernel<S, Most>, dim3(1, (unsigned)call.count),
                            coupler::threads, sizeof(typename coupler::shared), stream, call);
}

#endif
