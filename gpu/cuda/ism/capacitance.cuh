/* gpu/cuda/ism/capacitance.cuh: an update of stream.cuh up to its capacitance matrix I + K X: the
 * lines K and T B, the inverse R, -R K, |X K|, and what lost.cuh needs. Device code; a slot a
 * blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_CAPACITANCE_CUH
#define GPU_CUDA_ISM_CAPACITANCE_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/ism/check.cuh"
#include "gpu/cuda/ism/few.cuh"
#include "gpu/cuda/ism/pivot.cuh"
#include "gpu/cuda/ism/turn.cuh"

#define CUDA__ISM_MEET_TILES 4 /* of 8 columns of a warp */
#define CUDA__ISM_MEET_COLUMNS (8 * CUDA__ISM_MEET_TILES)
#define CUDA__ISM_MEET_WARPS 4 /* of a block, at most */
/* Orders whose rows a warp does not share: what the others hold in store costs a batch more than a
 * single matrix gains (an H100, 2026-11-26). */
#define CUDA__ISM_MEET_ALONE 256
#define CUDA__ISM_MEET_ROWS 32      /* that are added up together; FP32 has digits to spare */
#define CUDA__ISM_CAPACITANCE_FEW 4 /* warps of a block where m is small */
#define CUDA__ISM_LINES_BLOCKS 4    /* a multiprocessor; slabs beyond those go double-buffered */

/* Where things are. */
template <typename S> struct cuda__ism_stream {
    typedef typename cuda__ism_pair<S>::type pair;
    static constexpr int probes = CUDA__ISM_CHECK_PROBES;

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
        return (const S *)call.probes + l * call.ld;
    }
};

/* ---- Meet ---- */

/* What a warp of a block has, of its own rows. */
struct cuda__ism_met {
    static constexpr int lines = 16, pitch = CUDA__ISM_MEET_COLUMNS + 2; /* against conflicts */

    alignas(16) double sums[lines][pitch];
    double sizes[CUDA__ISM_MEET_COLUMNS];
};

/* A warp of a block that has 32 columns, `Lines` tiles of 16 lines of Y^T and T from line `begin`
 * on; the warps share the rows, and add up what they have in their order, with no more roundings
 * than by one of them (lost.cuh). Column c is that of tile c % 4, so that a lane reads four of
 * them that are side by side. */
template <typename S, int Lines> struct cuda__ism_meeter {
    static constexpr int tiles = CUDA__ISM_MEET_TILES, columns = CUDA__ISM_MEET_COLUMNS;

    cuda__ism_stream<S> at;
    cuda__ism_met *met; /* a warp each */
    int warps, warp, begin, column, g, t;
    const S *b, *y;
    bool even; /* 16 bytes of B can be moved */
    double sums[Lines][tiles][4], sizes[tiles];

    /* Number `i` of line `line`. Loads that are chosen by branches wait for one another, but of
     * FP64 with more lines than one tile all at once would take registers that are not there. */
    __device__ __forceinline__ S left(int line, int i) const
    {
        if (sizeof(S) == sizeof(double) && Lines > 1) {
            if (i >= at.n || line >= at.m + at.probes)
                return 0;
            return line < at.m ? y[i * at.m + line] : at.weights(line - at.m)[i];
        }
        const S *from = line < at.m ? y + i * at.m + line : at.weights(line - at.m) + i;
        return i < at.n && line < at.m + at.probes ? *from : S(0);
    }

    /* Four columns of row i, side by side, one of each tile: the lane's. */
    __device__ __forceinline__ void take(int i, S (&to)[tiles]) const
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
                to[v + e] = numbers[e];
        }
    }

    /* Eight rows. */
    __device__ __forceinline__ void step(int first)
    {
        const int i = first + t;
        S from[Lines][4], rows[2][tiles];
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
            const double both[2] = {(double)rows[0][j], (double)rows[1][j]};
            sizes[j] += fabs(both[0]) + fabs(both[1]);
#pragma unroll
            for (int l = 0; l < Lines; l++) {
                const double of[4] = {(double)from[l][0], (double)from[l][1], (double)from[l][2],
                                      (double)from[l][3]};
                cuda__multiply_add(sums[l][j], of, both);
            }
        }
    }

    /* The sums of magnitudes of the columns; NaN where a number is not finite. */
    __device__ __forceinline__ void keep_sizes() const
    {
#pragma unroll
        for (int j = 0; j < tiles; j++) {
            double sum = sizes[j] + __shfl_xor_sync(CUDA__ALL, sizes[j], 1);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
            if (t == 0)
                met[warp].sizes[tiles * g + j] = sum;
        }
        __syncthreads();
        const int lane = (int)threadIdx.x, j = column + lane;
        if (lane >= columns)
            return;
        double sum = met[0].sizes[lane];
        for (int w = 1; w < warps; w++)
            sum += met[w].sizes[lane];
        if (!(sum <= cuda__real<double>::largest)) {
            S excess = 0;
            for (int i = 0; i < at.n && j < at.n; i++)
                excess += b[(int64_t)i * at.n + j] * 0;
            sum = excess == 0 ? sum : (double)cuda__real<double>::nan();
        }
        at.lines(CUDA__ISM_STREAM_SIZES)[j] = sum;
    }

    /* A lane has eight columns of a line side by side: of each tile two. */
    __device__ __forceinline__ void keep_lines() const
    {
        double *k = at.lines(CUDA__ISM_STREAM_K) + column;
#pragma unroll
        for (int l = 0; l < Lines; l++) {
            double(&own)[cuda__ism_met::lines][cuda__ism_met::pitch] = met[warp].sums;
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const int from = e / 4 * 2 + e / 2 % 2, first = e % 2 * 2;
                *(double2 *)&own[e / 4 * 8 + g][8 * t + e / 2 % 2 * 4 + first] =
                    make_double2(sums[l][first][from], sums[l][first + 1][from]);
            }
            __syncthreads();
            for (int e = (int)threadIdx.x; e < cuda__ism_met::lines * columns;
                 e += warps * CUDA__WARP) {
                const int i = e / columns, j = e % columns, line = begin + l * 16 + i;
                double sum = met[0].sums[i][j];
                for (int w = 1; w < warps; w++)
                    sum += met[w].sums[i][j];
                if (line < at.m + at.probes)
                    k[(int64_t)line * at.ld + j] = sum;
            }
            __syncthreads();
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
        for (int first = warp * CUDA__ISM_MEET_ROWS; first < at.n;
             first += warps * CUDA__ISM_MEET_ROWS) {
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

/* Of the blocks of 32 columns each takes `Lines` tiles of lines of Y^T and T. The fewest of FP32
 * have registers for five blocks at once. */
template <typename S, int Lines>
static __global__ void __launch_bounds__(CUDA__ISM_MEET_WARPS *CUDA__WARP,
                                         sizeof(S) < sizeof(double) && Lines == 1 ? 5 : 1)
    cuda__ism_meet_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP;
    /* By a shuffle, so that the compiler knows it as the same for all lanes. */
    const int warp = __shfl_sync(CUDA__ALL, (int)threadIdx.x / CUDA__WARP, 0);
    const int all = (at.m + at.probes + Lines * 16 - 1) / (Lines * 16);
    const int column = (int)blockIdx.x / all * CUDA__ISM_MEET_COLUMNS;
    const int begin = (int)blockIdx.x % all * Lines * 16;
    const S *b = at.input(METHOD_ISM_A0_INVERSE, at.n);
    cuda__ism_meeter<S, Lines> one = {at,
                                      (cuda__ism_met *)cuda__memory,
                                      (int)blockDim.x / CUDA__WARP,
                                      warp,
                                      begin,
                                      column,
                                      lane / 4,
                                      lane % 4,
                                      b,
                                      at.input(METHOD_ISM_Y, at.m),
                                      at.is_even(b),
                                      {},
                                      {}};
    one.run();
}

/* Warps of a block: those that share the rows have as many each as they can. */
static inline unsigned cuda__ism_meet_warps(int64_t n)
{
    const int64_t pieces = (n + CUDA__ISM_MEET_ROWS - 1) / CUDA__ISM_MEET_ROWS;
    const int64_t each = (pieces + CUDA__ISM_MEET_WARPS - 1) / CUDA__ISM_MEET_WARPS;
    return n <= CUDA__ISM_MEET_ALONE ? 1 : (unsigned)((pieces + each - 1) / each);
}

/* All of it, for call.count slots. */
template <typename S, int Lines>
static cudaError_t cuda__ism_start_meet(const cuda__ism_call &call, cudaStream_t stream)
{
    const unsigned warps = cuda__ism_meet_warps(call.n);
    const int64_t all = (call.m + CUDA__ISM_CHECK_PROBES + Lines * 16 - 1) / (Lines * 16);
    return cuda__ism_follow(
        cuda__ism_meet_kernel<S, Lines>,
        dim3((unsigned)(call.plan.stream_ld / CUDA__ISM_MEET_COLUMNS * all), (unsigned)call.count),
        warps * CUDA__WARP, warps * sizeof(cuda__ism_met), stream, call);
}

/* ---- The capacitance matrix ---- */

/* What a block of a matrix finds out: its blockIdx.x. */
enum cuda__ism_capacitance_task {
    CUDA__ISM_CAPACITANCE_R,
    CUDA__ISM_CAPACITANCE_CHANGE, /* |X K| */
    CUDA__ISM_CAPACITANCE_REACH,  /* what lost.cuh wants of X and Y, and what is not finite */
    CUDA__ISM_CAPACITANCE_TASKS
};

/* A block of a matrix of `Columns` columns or fewer. Up to those that a warp can invert it is
 * small, so that many of them are at once where that chain of steps waits for itself. */
template <typename S, int Columns> struct cuda__ism_capacitance {
    static constexpr int columns_max = Columns, line = columns_max + 2;
    static constexpr bool by_warp = columns_max <= CUDA__WARP;
    static constexpr int warps = by_warp ? CUDA__ISM_CAPACITANCE_FEW : CUDA__ISM_TURN_WARPS;
    static constexpr int threads = warps * CUDA__WARP;
    struct nothing {
    };
    struct shared {
        alignas(16) double c[columns_max][line]; /* I + K X, then R */
        double parts[warps][16 * 8];
        double thin[threads], column[columns_max], sums[warps];
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
            cuda__ism_pivot_block<columns_max>(memory.c[0], line, at.m, lane, &answer->det,
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
            for (int q = 0; q < columns_max / CUDA__WARP; q++) {
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

template <typename S, int Columns>
static __global__ void __launch_bounds__(cuda__ism_capacitance<S, Columns>::threads,
                                         512 / cuda__ism_capacitance<S, Columns>::threads)
    cuda__ism_capacitance_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typedef typename cuda__ism_capacitance<S, Columns>::shared shared;
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP;
    cuda__ism_capacitance<S, Columns> one = {
        at,       *(shared *)cuda__memory,      (int)threadIdx.x / CUDA__WARP, lane, lane / 4,
        lane % 4, at.input(METHOD_ISM_X, at.m), at.lines(CUDA__ISM_STREAM_K)};
    one.run((int)blockIdx.x);
}

/* -R K: a block has slabs of 64 columns double-buffered, a warp a tile of them, of which all of K
 * is read at once. */
template <typename S, int Columns> struct cuda__ism_liner {
    static constexpr int pitch = Columns + 8; /* against conflicts */

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
        double *to = at.lines(CUDA__ISM_STREAM_RK) + column + 2 * t, right[Columns / 8][2];
#pragma unroll
        for (int e = 0; e < Columns / 4; e++) {
            const int l = e / 2 * 8 + 2 * t + e % 2;
            right[e / 2][e % 2] = l < at.m ? k[(int64_t)l * at.ld] : 0;
        }
        for (int i = g; i < wide; i += 16) {
            const bool deep = i + 8 < wide;
            double sums[4] = {};
#pragma unroll
            for (int q = 0; q < Columns / 8; q++) {
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

template <typename S, int Columns>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_lines_kernel(const cuda__ism_call call, int slabs)
{
    cuda__follow_previous();
    typedef cuda__ism_liner<S, Columns> liner;
    static_assert(CUDA__ISM_WARPS * 8 == CUDA__ISM_STREAM_SLAB, "a tile a warp");
    __shared__ __align__(16) double r[Columns][liner::pitch];
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const liner one = {cuda__ism_stream<S>::of(call), r, lane / 4, lane % 4};
    one.fetch();
    __syncthreads();
    for (int slab = (int)blockIdx.x; slab < slabs; slab += (int)gridDim.x)
        one.multiply(slab * CUDA__ISM_STREAM_SLAB + warp * 8);
}

/* All of it, for call.count slots. */
template <typename S, int Columns>
static cudaError_t cuda__ism_start_capacitance(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_capacitance<S, Columns> capacitance;
    const int64_t slabs = call.plan.stream_ld / CUDA__ISM_STREAM_SLAB;
    const int64_t enough = CUDA__ISM_LINES_BLOCKS * cuda__multiprocessors() / call.count + 1;
    cudaError_t error =
        cuda__ism_follow(cuda__ism_capacitance_kernel<S, Columns>,
                         dim3(CUDA__ISM_CAPACITANCE_TASKS, (unsigned)call.count),
                         capacitance::threads, sizeof(typename capacitance::shared), stream, call);
    if (error == cudaSuccess)
        error = cuda__ism_follow(
            cuda__ism_lines_kernel<S, Columns>,
            dim3((unsigned)(slabs < enough ? slabs : enough), (unsigned)call.count),
            CUDA__ISM_THREADS, 0, stream, call, (int)slabs);
    return error;
}

#endif
