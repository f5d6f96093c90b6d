/* gpu/cuda/ism/lines.cuh: where things of an update of stream.cuh are, and its first kernel:
 * the lines K and T B. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_LINES_CUH
#define GPU_CUDA_ISM_LINES_CUH

#include "gpu/cuda/ism/few.cuh"
#include "gpu/cuda/base/launch.cuh"

#define CUDA__ISM_MEET_TILES 4 /* of 8 columns of a warp */
#define CUDA__ISM_MEET_COLUMNS (8 * CUDA__ISM_MEET_TILES)
#define CUDA__ISM_MEET_WARPS 4 /* of a block, at most */
/* Orders whose rows a warp does not share: what the others hold in store costs a batch more than a
 * single matrix gains (an H100, 2026-11-26). */
#define CUDA__ISM_MEET_ALONE 256
#define CUDA__ISM_MEET_ROWS 32 /* that are added up together; FP32 has digits to spare */

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
            if (i >= at.n || line >= at.m + at.tried)
                return 0;
            return line < at.m ? y[i * at.m + line] : at.weights(line - at.m)[i];
        }
        const S *from = line < at.m ? y + i * at.m + line : at.weights(line - at.m) + i;
        return i < at.n && line < at.m + at.tried ? *from : S(0);
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
                if (line < at.m + at.tried)
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
    const int all = (at.m + at.tried + Lines * 16 - 1) / (Lines * 16);
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
    const int64_t all = (call.m + CUDA__ISM_TRIED + Lines * 16 - 1) / (Lines * 16);
    return cuda__ism_follow(
        cuda__ism_meet_kernel<S, Lines>,
        dim3((unsigned)(call.plan.stream_ld / CUDA__ISM_MEET_COLUMNS * all), (unsigned)call.count),
        warps * CUDA__WARP, warps * sizeof(cuda__ism_met), stream, call);
}

#endif
