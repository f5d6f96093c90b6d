/* gpu/cuda/ism_tile.cuh: the update of ism_few.cuh in FP64, for n from 17 to 32 and m from 5 to 8,
 * by a warp on the tensor cores.
 *
 * With a thread a column, what all threads read of X, Y and G R from shared memory takes the longer
 * the larger m is. Here the inverse is an accumulator of 32 x 32, and products have 8 columns or
 * lines of everything, with zeros behind m and n. The two lines of the trial's T are multiplied
 * along with Y^T.
 *
 * An accumulator has of every 8 columns two of a thread, whose rows are 8 apart. Sums over columns
 * are halved among the threads that have other rows of the same columns, until each thread has one
 * column: its own.
 *
 * Shared memory a warp: 1,824 numbers. Cost: 65,536 updates of n = 32 took an H200 705 us at m = 8,
 * and 1,009 us by ism_few.cuh; at m = 4 615 us, and there 534 (2026-11-22).
 */
#ifndef GPU_CUDA_ISM_TILE_CUH
#define GPU_CUDA_ISM_TILE_CUH

#include "gpu/cuda/ism_few.cuh"

#define CUDA__ISM_TILE_ORDER 32
#define CUDA__ISM_TILE_COLUMNS 8
#define CUDA__ISM_TILE_WARPS 2  /* of a block */
#define CUDA__ISM_TILE_BLOCKS 6 /* of a multiprocessor, at least */

/* A warp's shared memory, in numbers. Rows of 32 and of 8 numbers lie so far apart that they are
 * read without conflicts. */
struct cuda__ism_tile_room {
    static constexpr int line = 36, thin_line = 12;
    static constexpr int b = 0; /* and in its place, when it is no longer needed: */
    static constexpr int k = 0, tb = k + CUDA__ISM_TILE_COLUMNS * line;
    static constexpr int g = tb + CUDA__ISM_TRIED * line;
    static constexpr int r = g + CUDA__ISM_TILE_ORDER * thin_line;
    static constexpr int thin = r + CUDA__ISM_TILE_COLUMNS * thin_line;
    static constexpr int y = CUDA__ISM_TILE_ORDER * line; /* Y^T */
    static constexpr int x = y + CUDA__ISM_TILE_COLUMNS * line;
    static constexpr int numbers = x + CUDA__ISM_TILE_ORDER * thin_line;
    static_assert(thin + CUDA__ISM_TRIED * CUDA__ISM_TILE_COLUMNS <= y, "it is the smaller one");
};

/* C += M R for Rows x Columns pieces of 16 x 8. The last 8 rows of the first piece of M may be
 * elsewhere: at `high`. */
template <int Rows, int Columns> struct cuda__ism_product {
    alignas(16) double c[Rows][Columns][4];

    template <int Inner>
    __device__ __forceinline__ void add(const double *m, const double *high, int m_line,
                                        const double *r, int r_line, int lane)
    {
        const int at = lane / 4 * m_line + lane % 4;
        const double *r_lane = r + lane % 4 * r_line + lane / 4;
#pragma unroll
        for (int inner = 0; inner < Inner; inner += 8) {
            double a[Rows][4];
#pragma unroll
            for (int i = 0; i < Rows; i++) {
#pragma unroll
                for (int v = 0; v < 4; v++)
                    a[i][v] = (v % 2 ? high : m)[i * 16 * m_line + at + inner + v / 2 * 4];
            }
#pragma unroll
            for (int j = 0; j < Columns; j++) {
                double b[2] = {r_lane[inner * r_line + j * 8],
                               r_lane[(inner + 4) * r_line + j * 8]};
#pragma unroll
                for (int i = 0; i < Rows; i++)
                    cuda__multiply_add(c[i][j], a[i], b);
            }
        }
    }

    template <int Inner>
    __device__ __forceinline__ void add(const double *m, int m_line, const double *r, int r_line,
                                        int lane)
    {
        add<Inner>(m, m + 8 * m_line, m_line, r, r_line, lane);
    }

    /* Calls f(row, column, two numbers) for all that is the lane's. */
    template <typename F> __device__ __forceinline__ void each(int lane, F f)
    {
#pragma unroll
        for (int i = 0; i < Rows; i++) {
#pragma unroll
            for (int j = 0; j < Columns; j++) {
                f(i * 16 + lane / 4, j * 8 + lane % 4 * 2, &c[i][j][0]);
                f(i * 16 + lane / 4 + 8, j * 8 + lane % 4 * 2, &c[i][j][2]);
            }
        }
    }
};

/* Sums over the lanes whose numbers differ in the bits from `Reach` down: halves of the values are
 * exchanged, step by step. */
template <int Half, int Reach, int Count>
static __device__ __forceinline__ void cuda__ism_halve(double (&values)[Count], int lane)
{
    const bool up = lane & Reach;
#pragma unroll
    for (int q = 0; q < Half; q++) {
        double given = up ? values[q] : values[q + Half];
        double kept = up ? values[q + Half] : values[q];
        values[q] = kept + __shfl_xor_sync(CUDA__ALL, given, Reach);
    }
    if constexpr (Half > 1)
        cuda__ism_halve<Half / 2, Reach / 2>(values, lane);
}

/* Returns the one of values[Count] that is the lane's. */
template <int Count>
static __device__ __forceinline__ double cuda__ism_share(double (&values)[Count], int lane)
{
    cuda__ism_halve<Count / 2, CUDA__WARP / 2>(values, lane);
    return values[0];
}

/* One matrix and its warp. */
struct cuda__ism_tile_update {
    typedef cuda__ism_tile_room room;
    typedef cuda__ism_team<CUDA__WARP> team;
    static constexpr int order = CUDA__ISM_TILE_ORDER, most = CUDA__ISM_TILE_COLUMNS;

    const cuda__ism_call &call;
    const cuda_tensors *item;
    int64_t within;
    int n, m, lane, own; /* own: the lane's column */
    double *memory;
    const double *weights; /* T, 8 lines of room::line, of which two are not zeros */
    cuda__ism_product<2, 4> z;
    double excess;

    /* Which column a lane has that is left with one of eight sums. */
    static __device__ __forceinline__ int own_column(int lane)
    {
        int q = (lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1);
        return q / 2 * 8 + lane % 4 * 2 + q % 2;
    }

    /* Do rows begin at 16 bytes, and are they whole? */
    __device__ __forceinline__ bool is_wide(const double *at) const
    {
        return n == order && (uintptr_t)at % 16 == 0;
    }

    /* Sums over rows of f(row, entry), of the own column. */
    template <typename F> __device__ __forceinline__ double sum_rows(F f)
    {
        double sums[8] = {};
#pragma unroll
        for (int e = 0; e < 2 * 4 * 4; e++)
            sums[e / 4 % 4 * 2 + e % 2] +=
                f(e / 16 * 16 + e / 2 % 2 * 8 + lane / 4, z.c[e / 16][e / 4 % 4][e % 4]);
        return cuda__ism_share(sums, lane);
    }

    /* B to registers and shared memory. */
    __device__ __forceinline__ void load_inverse()
    {
        const double *b = (const double *)item->inputs[CUDA__ISM_GIVEN_INVERSE] + within * n * n;
        if (is_wide(b)) {
            z.each(lane, [&](int i, int j, double *pair) {
                const double2 both = *(const double2 *)(b + i * order + j);
                pair[0] = both.x;
                pair[1] = both.y;
            });
            return;
        }
        z.each(lane, [&](int i, int j, double *pair) {
            pair[0] = i < n && j < n ? b[i * n + j] : 0;
            pair[1] = i < n && j + 1 < n ? b[i * n + j + 1] : 0;
        });
    }

    /* X and Y^T to shared memory; behind n and m there are zeros from the start. */
    __device__ __forceinline__ void load_columns()
    {
        const double *x = (const double *)item->inputs[CUDA__ISM_GIVEN_X] + within * n * m;
        const double *y = (const double *)item->inputs[CUDA__ISM_GIVEN_Y] + within * n * m;
        int row = lane / m, column = lane % m;
        const int down = CUDA__WARP / m, across = CUDA__WARP % m;
        excess = 0;
#pragma unroll
        for (int k = 0; k < most; k++) {
            if (row < n) {
                double left = x[row * m + column], right = y[row * m + column];
                excess += left * 0 + right * 0;
                memory[room::x + row * room::thin_line + column] = left;
                memory[room::y + column * room::line + row] = right;
            }
            row += down;
            column += across;
            row += column >= m ? 1 : 0;
            column -= column >= m ? m : 0;
        }
    }

    /* K and T B, and G, to shared memory, in the place of B. */
    __device__ __forceinline__ void multiply()
    {
        cuda__ism_product<1, 4> k = {};
        cuda__ism_product<2, 1> g = {};
        z.each(lane, [&](int i, int j, const double *pair) {
            memory[room::b + i * room::line + j] = pair[0];
            memory[room::b + i * room::line + j + 1] = pair[1];
        });
        __syncwarp();
        k.add<order>(memory + room::y, weights, room::line, memory + room::b, room::line, lane);
        g.add<order>(memory + room::b, room::line, memory + room::x, room::thin_line, lane);
        __syncwarp();
        k.each(lane, [&](int i, int j, const double *pair) {
            if (i < most + CUDA__ISM_TRIED) {
                memory[room::k + i * room::line + j] = pair[0];
                memory[room::k + i * room::line + j + 1] = pair[1];
            }
        });
        g.each(lane, [&](int i, int j, const double *pair) {
            memory[room::g + i * room::thin_line + j] = pair[0];
            memory[room::g + i * room::thin_line + j + 1] = pair[1];
        });
        __syncwarp();
    }

    /* G becomes -G R. Returns the determinant but for its exponent. */
    __device__ __forceinline__ double couple(int64_t *exponent)
    {
        cuda__ism_product<1, 1> inner = {};
        cuda__ism_product<2, 1> gr = {};
        inner.add<order>(memory + room::y, weights, room::line, memory + room::g, room::thin_line,
                         lane);
        cuda__ism_few_block<double, CUDA__WARP, most> block = {lane / 4, lane % 4 * 2, {}};
        block.v[0] = inner.c[0][0][0] + (block.row == block.column ? 1 : 0);
        block.v[1] = inner.c[0][0][1] + (block.row == block.column + 1 ? 1 : 0);
        double det = block.invert(memory + room::r, room::thin_line, exponent);
        __syncwarp();
        gr.add<most>(memory + room::g, room::thin_line, memory + room::r, room::thin_line, lane);
        __syncwarp();
        gr.each(lane, [&](int i, int j, const double *pair) {
            memory[room::g + i * room::thin_line + j] = -pair[0];
            memory[room::g + i * room::thin_line + j + 1] = -pair[1];
        });
        __syncwarp();
        return det;
    }

    /* The sum of magnitudes of the own column of X K. */
    __device__ __forceinline__ double size_of_change() const
    {
        double sums[8];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            cuda__ism_product<2, 1> change = {};
            change.add<most>(memory + room::x, room::thin_line, memory + room::k + j * 8,
                             room::line, lane);
            sums[2 * j] = sums[2 * j + 1] = 0;
            change.each(lane, [&](int, int, const double *pair) {
                sums[2 * j] += fabs(pair[0]);
                sums[2 * j + 1] += fabs(pair[1]);
            });
        }
        return cuda__ism_share(sums, lane);
    }

    /* The own column of T (B - Z M): the largest magnitude of the lines. */
    __device__ __forceinline__ double error(const double (&tz)[CUDA__ISM_TRIED]) const
    {
        double x[most], products[CUDA__ISM_TRIED * most], worst = 0;
        cuda__ism_fetch(memory + room::x + own * room::thin_line, x);
#pragma unroll
        for (int e = 0; e < CUDA__ISM_TRIED * most; e++)
            products[e] = tz[e / most] * x[e % most];
        double sum = cuda__ism_share(products, lane);
        sum += __shfl_xor_sync(CUDA__ALL, sum, 1);
        memory[room::thin + lane / 2 % 2 + (lane / 4 % 2) * 2 + (lane / 8 % 2) * 4 +
               lane / 16 * 8] = sum;
        __syncwarp();
#pragma unroll
        for (int l = 0; l < CUDA__ISM_TRIED; l++) {
            double rest = tz[l];
            cuda__ism_fetch(memory + room::thin + l * most, x);
#pragma unroll
            for (int c = 0; c < most; c++)
                rest = fma(x[c], memory[room::k + c * room::line + own], rest);
            worst = cuda__lu_larger(worst, fabs(memory[room::tb + l * room::line + own] - rest));
        }
        return worst;
    }

    __device__ __forceinline__ void store(double *to, bool bad)
    {
        const double nan = cuda__real<double>::nan();
        if (is_wide(to)) {
            z.each(lane, [&](int i, int j, const double *pair) {
                *(double2 *)(to + i * order + j) =
                    make_double2(bad ? nan : pair[0], bad ? nan : pair[1]);
            });
            return;
        }
        z.each(lane, [&](int i, int j, const double *pair) {
            if (i < n && j < n)
                to[i * n + j] = bad ? nan : pair[0];
            if (i < n && j + 1 < n)
                to[i * n + j + 1] = bad ? nan : pair[1];
        });
    }

    __device__ __forceinline__ void run(bool writes)
    {
        cuda__ism_trial trial;
        int64_t det_exponent = 0;
        load_inverse();
        load_columns();
        double size_b = sum_rows([](int, double value) { return fabs(value); });
        /* A sum that is finite is one of finite numbers. */
        if (__any_sync(CUDA__ALL, !(size_b <= cuda__real<double>::largest)))
            z.each(lane,
                   [&](int, int, const double *pair) { excess += pair[0] * 0 + pair[1] * 0; });
        multiply();
        double det = couple(&det_exponent), change = size_of_change();
        z.add<most>(memory + room::g, room::thin_line, memory + room::k, room::line, lane);
        double size_z = sum_rows([](int, double value) { return fabs(value); });
        const double tz[CUDA__ISM_TRIED] = {
            sum_rows([&](int i, double value) { return weights[i] * value; }),
            sum_rows([&](int i, double value) { return weights[room::line + i] * value; })};
        double worst = error(tz), all[1] = {excess};
        team::sum(all, memory);
        trial.bad = !(all[0] == 0);
        trial.error = team::largest(worst, memory);
        trial.norm_x = team::largest(size_z, memory);
        trial.norm_a = team::largest(size_b, memory);
        trial.change = team::largest(change, memory);
        trial.det_ratio = cuda__ism_value(det, det_exponent);
        if (writes && lane == 0)
            cuda__ism_judge<double>(call, item, within, trial, METHOD_ROAD_BLOCK);
        double *inverse = (double *)item->outputs[CUDA__ISM_WANTED_INVERSE];
        if (writes && inverse)
            store(inverse + within * n * n, trial.bad);
        __syncwarp();
    }
};

/* T: double. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TILE_WARPS *CUDA__WARP, CUDA__ISM_TILE_BLOCKS)
    cuda__ism_tile_kernel(const cuda__ism_call call)
{
    typedef cuda__ism_tile_room room;
    constexpr int threads = CUDA__ISM_TILE_WARPS * CUDA__WARP;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, warp = (int)threadIdx.x / CUDA__WARP;
    const int lane = (int)threadIdx.x % CUDA__WARP;
    double *weights = (double *)cuda__memory, *all = weights + CUDA__ISM_PROBES * room::line;
    for (int e = threadIdx.x; e < CUDA__ISM_PROBES * room::line; e += threads) {
        int i = e % room::line, line = e / room::line;
        weights[e] = i < n && line < CUDA__ISM_TRIED ? (double)cuda__ism_weight(n, i, line) : 0.0;
    }
    for (int e = threadIdx.x; e < CUDA__ISM_TILE_WARPS * room::numbers; e += threads)
        all[e] = 0;
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * CUDA__ISM_TILE_WARPS; first < call.matrices;
         first += (int64_t)gridDim.x * CUDA__ISM_TILE_WARPS) {
        int64_t index = first + warp, within;
        bool writes = index < call.matrices;
        const cuda_tensors *item =
            cuda__ism_item(call, writes ? index : call.matrices - 1, &within);
        cuda__ism_tile_update one = {call,
                                     item,
                                     within,
                                     n,
                                     (int)call.m,
                                     lane,
                                     cuda__ism_tile_update::own_column(lane),
                                     all + warp * room::numbers,
                                     weights,
                                     {},
                                     0};
        one.run(writes);
    }
}

/* Blocks go over the batch in strides: that many fill an H200 some times over. */
#define CUDA__ISM_TILE_GRID (132 * CUDA__ISM_TILE_BLOCKS * 4)

template <typename T>
static cudaError_t cuda__ism_launch_tile(const cuda__ism_call &call, cudaStream_t stream)
{
    int64_t blocks = (call.matrices + CUDA__ISM_TILE_WARPS - 1) / CUDA__ISM_TILE_WARPS;
    size_t numbers = CUDA__ISM_PROBES * cuda__ism_tile_room::line +
                     CUDA__ISM_TILE_WARPS * cuda__ism_tile_room::numbers;
    return cuda__start(cuda__ism_tile_kernel<T>,
                       (unsigned)(blocks < CUDA__ISM_TILE_GRID ? blocks : CUDA__ISM_TILE_GRID),
                       CUDA__ISM_TILE_WARPS * CUDA__WARP, numbers * sizeof(double), stream, call);
}

/* Is this a call for an update at once? To this order and this many columns, where A is not known.
 */
static inline bool cuda__ism_is_few(const cuda__ism_call &call)
{
    return !cuda__ism_knows(call) && call.m > 0 && call.n <= 32 && call.m <= (call.n > 16 ? 8 : 4);
}

template <typename T>
static cudaError_t cuda__ism_few(const cuda__ism_call &call, cudaStream_t stream)
{
    if constexpr (sizeof(T) == sizeof(double)) {
        if (call.n > 16 && call.m > 4)
            return cuda__ism_launch_tile<T>(call, stream);
    }
    if (call.n <= 8)
        return cuda__ism_launch_few<T, 8>(call, stream);
    if (call.n <= 16)
        return cuda__ism_launch_few<T, 16>(call, stream);
    return cuda__ism_launch_few<T, 32>(call, stream);
}

#endif
