/* gpu/cuda/ism_last.cuh: the last product of `ism` in FP64 where there are few columns:
 * Z = A0^-1 - (G R) K, which goes from the registers to the answer, and what the trial wants of Z
 * with it: T Z, and the sums of magnitudes of its columns. Z is written once and never read.
 *
 * A block has a strip of columns and goes down a part of its rows, 32 at a time; a warp has some of
 * the columns, whose part of K stays in its registers all the way. Lines of (G R)^T and of T, and
 * A0^-1 where it is not diagonal, go through shared memory in two places by turns. Each lane adds
 * up what it has seen of its columns; the lanes of a column are added at the end, and the blocks of
 * a strip by a second kernel, in an order that n alone decides.
 *
 * Cost: n^2 numbers written, and read where A0^-1 is given; (G R)^T read once a strip, from the
 * second-level cache. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_LAST_CUH
#define GPU_CUDA_ISM_LAST_CUH

#include "gpu/cuda/ism_kernels.cuh"

#define CUDA__ISM_LAST_UNIT 16 /* rows of a product */
#define CUDA__ISM_LAST_SUMS 3  /* of a column: two lines of T Z, and its magnitudes */

/* A block's shape: Warps of Across pieces of 8 columns; Blocks of a multiprocessor at least. Inner:
 * columns of X and Y, filled up with zeros. Given: A0^-1 is. */
template <int Inner_, bool Given_, int Across, int Warps, int Blocks> struct cuda__ism_last_shape {
    static constexpr int inner = Inner_, across = Across, warps = Warps, blocks = Blocks;
    static constexpr bool given = Given_;
    static constexpr int threads = Warps * CUDA__WARP, columns = Across * 8;
    static constexpr int strip = Warps * columns;
    /* Distances of lines that are read without conflicts. */
    static constexpr int line = CUDA__ISM_LAST_ROWS + 4, given_line = strip + 4;
    struct shared {
        alignas(16) double lines[2][inner + CUDA__ISM_TRIED][line];
        alignas(16) double known[given ? 2 : 1][given ? CUDA__ISM_LAST_ROWS : 1]
                                [given ? given_line : 2];
    };
};

/* A block. In a unit a lane has the rows 2 g and 2 g + 1, g being a quarter of its number. */
template <typename Shape> struct cuda__ism_last_block {
    typedef typename Shape::shared shared;
    static constexpr int steps = Shape::inner / 8, across = Shape::across, line_ld = Shape::line;
    static constexpr int inner = Shape::inner;

    const cuda__ism_call &call;
    shared &memory;
    int n, ld, column; /* column: of the strip */
    int lane, warp;
    double *to;                 /* the answer; NULL: nobody wants it */
    bool wide;                  /* its rows begin at 16 bytes */
    double k[steps][across][2]; /* less K */
    double sums[CUDA__ISM_LAST_SUMS][across][2];

    __device__ __forceinline__ const double *line(int array, int64_t number) const
    {
        return cuda__ism_array_of<double>(call, blockIdx.y, array) + number * ld;
    }

    /* `left` is how many numbers there are; behind them come zeros. */
    static __device__ __forceinline__ void stage(double *to, const double *from, int left)
    {
        if (left >= 2) {
            cuda__copy_async<16>(to, from);
            return;
        }
        to[0] = left > 0 ? from[0] : 0;
        to[1] = 0;
    }

    /* Rows `row` and on. */
    __device__ __forceinline__ void fetch(int row, int turn)
    {
        constexpr int pieces = CUDA__ISM_LAST_ROWS / 2, step = Shape::threads / pieces;
        const int l = (int)threadIdx.x / pieces, i = (int)threadIdx.x % pieces * 2;
        const int left = n - row - i;
        const double *from = line(CUDA__ISM_GR, l) + row + i;
        double *to_lines = &memory.lines[turn][l][i];
        if (call.m == inner && row + CUDA__ISM_LAST_ROWS <= n) {
#pragma unroll
            for (int at = 0; at < inner; at += step, from += step * ld, to_lines += step * line_ld)
                cuda__copy_async<16>(to_lines, from);
        } else {
#pragma unroll 1
            for (int at = l; at < call.m; at += step, from += step * ld, to_lines += step * line_ld)
                stage(to_lines, from, left);
        }
        if (l < CUDA__ISM_TRIED)
            stage(&memory.lines[turn][inner + l][i], (const double *)call.lines + l * ld + row + i,
                  left);
        if constexpr (Shape::given) {
            constexpr int across_pieces = Shape::strip / 2;
            constexpr int at_once = Shape::threads / across_pieces; /* whole rows */
            const int j = (int)threadIdx.x % across_pieces * 2;
            const int of = (int)threadIdx.x / across_pieces;
            const double *given = line(CUDA__ISM_B, row) + column + j;
#pragma unroll
            for (int r = of; of < at_once && r < CUDA__ISM_LAST_ROWS; r += at_once)
                stage(&memory.known[turn][r][j], given + r * ld, row + r < n ? n - column - j : 0);
        }
    }

    /* The warp's part of K; and zeros behind m. */
    __device__ __forceinline__ void begin()
    {
        const int j = column + warp * Shape::columns + lane / 4;
        const double *lines = line(CUDA__ISM_K, 0) + j;
#pragma unroll
        for (int step = 0; step < steps; step++) {
#pragma unroll
            for (int e = 0; e < across * 2; e++) {
                int l = step * 8 + lane % 4 + e % 2 * 4;
                bool inside = l < call.m && j + e / 2 * 8 < n;
                k[step][e / 2][e % 2] = inside ? -lines[l * ld + e / 2 * 8] : 0;
            }
        }
        const int behind = (inner - (int)call.m) * line_ld;
        for (int e = (int)threadIdx.x; e < 2 * behind; e += Shape::threads)
            memory.lines[e / behind][call.m + e % behind / line_ld][e % behind % line_ld] = 0;
    }

    /* z: the lane's numbers of rows i and i + 1, columns from j on; both are even. */
    __device__ __forceinline__ void add_diagonal(double (&z)[across][4], int i, int j) const
    {
        const double *diagonal = line(CUDA__ISM_E, 0) + i;
        const double2 e =
            i + 1 < n ? *(const double2 *)diagonal : make_double2(i < n ? diagonal[0] : 0, 0);
#pragma unroll
        for (int c = 0; c < across; c++) {
            z[c][0] += i == j + c * 8 ? e.x : 0;
            z[c][3] += i == j + c * 8 ? e.y : 0;
        }
    }

    __device__ __forceinline__ void store(const double (&z)[across][4], int i, int j) const
    {
        double *corner = to + i * n + j;
#pragma unroll
        for (int c = 0; c < across; c++) {
            const int first = j + c * 8;
            if (i >= n || first >= n)
                continue;
            if (wide) { /* n is even */
                *(double2 *)(corner + c * 8) = make_double2(z[c][0], z[c][1]);
                *(double2 *)(corner + n + c * 8) = make_double2(z[c][2], z[c][3]);
                continue;
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (i + e / 2 < n && first + e % 2 < n)
                    corner[e / 2 * n + c * 8 + e % 2] = z[c][e];
            }
        }
    }

    /* 16 rows, of which the first is `row`; of the ones that are staged, `at`. */
    __device__ __forceinline__ void multiply(int row, int at, int turn)
    {
        const double *m = &memory.lines[turn][lane % 4][at + lane / 4 * 2];
        const int i = row + lane / 4 * 2, first = column + warp * Shape::columns;
        const int j = first + lane % 4 * 2;
        alignas(16) double z[across][4] = {};
        if constexpr (Shape::given) {
#pragma unroll
            for (int c = 0; c < across * 2; c++)
                *(double2 *)&z[c / 2][c % 2 * 2] =
                    *(const double2 *)&memory
                         .known[turn][at + lane / 4 * 2 + c % 2][j - column + c / 2 * 8];
        }
        double2 near = *(const double2 *)m, far = *(const double2 *)(m + 4 * line_ld);
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const double a[4] = {near.x, near.y, far.x, far.y};
            if (step + 1 < steps) {
                near = *(const double2 *)(m + (step * 8 + 8) * line_ld);
                far = *(const double2 *)(m + (step * 8 + 12) * line_ld);
            }
#pragma unroll
            for (int c = 0; c < across; c++)
                cuda__multiply_add(z[c], a, k[step][c]);
            __syncwarp(); /* what is read too early takes registers */
        }
        if (!Shape::given && row < first + Shape::columns && first < row + CUDA__ISM_LAST_UNIT)
            add_diagonal(z, i, j);
#pragma unroll
        for (int l = 0; l < CUDA__ISM_TRIED; l++) {
            const double2 weight =
                *(const double2 *)&memory.lines[turn][inner + l][at + lane / 4 * 2];
#pragma unroll
            for (int c = 0; c < across * 2; c++)
                sums[l][c / 2][c % 2] = fma(weight.y, z[c / 2][c % 2 + 2],
                                            fma(weight.x, z[c / 2][c % 2], sums[l][c / 2][c % 2]));
        }
#pragma unroll
        for (int c = 0; c < across * 4; c++)
            sums[CUDA__ISM_TRIED][c / 4][c % 2] += fabs(z[c / 4][c % 4]);
        if (to)
            store(z, i, j);
    }

    /* The block's sums, to its lines of PARTS. */
    __device__ __forceinline__ void conclude()
    {
        double *parts = cuda__ism_array_of<double>(call, blockIdx.y, CUDA__ISM_PARTS) +
                        blockIdx.z * CUDA__ISM_LAST_SUMS * ld;
        const int j = column + warp * Shape::columns + lane % 4 * 2;
#pragma unroll
        for (int c = 0; c < CUDA__ISM_LAST_SUMS * across * 2; c++) {
            double sum = sums[c / (across * 2)][c / 2 % across][c % 2];
            int place = j + c / 2 % across * 8 + c % 2;
#pragma unroll
            for (int reach = CUDA__WARP / 2; reach >= 4; reach /= 2)
                sum += __shfl_xor_sync(CUDA__ALL, sum, reach);
            if (lane < 4 && place < n)
                parts[c / (across * 2) * ld + place] = sum;
        }
    }

    /* Rows from `row` to `end`. */
    __device__ __forceinline__ void run(int row, int end)
    {
        int turn = 0;
        begin();
        fetch(row, 0);
#pragma unroll 1
        for (; row < end; row += CUDA__ISM_LAST_ROWS, turn ^= 1) {
            cuda__copy_arrive();
            __syncthreads();
            if (row + CUDA__ISM_LAST_ROWS < end)
                fetch(row + CUDA__ISM_LAST_ROWS, turn ^ 1);
            __syncwarp(); /* the tensor cores want the lanes together */
#pragma unroll 1
            for (int at = 0; at < CUDA__ISM_LAST_ROWS; at += CUDA__ISM_LAST_UNIT)
                multiply(row + at, at, turn);
        }
        conclude();
    }
};

/* blockIdx.x: the strip, blockIdx.z: the part of its rows, `rows` each. */
template <typename Shape>
static __global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cuda__ism_last_kernel(const cuda__ism_call call, int rows)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, begin = (int)blockIdx.z * rows, end = begin + rows;
    double *to =
        cuda__ism_output<double>(call, blockIdx.y, CUDA__ISM_WANTED_INVERSE, call.n * call.n);
    cuda__ism_last_block<Shape> block = {call,
                                         *(typename Shape::shared *)cuda__memory,
                                         n,
                                         (int)call.ld,
                                         (int)blockIdx.x * Shape::strip,
                                         (int)threadIdx.x % CUDA__WARP,
                                         (int)threadIdx.x / CUDA__WARP,
                                         to,
                                         n % 2 == 0 && (uintptr_t)to % 16 == 0,
                                         {},
                                         {}};
    block.run(begin, end < n ? end : n);
}

/* TZ and SIZES, from `parts` of rows. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_last_sum_kernel(const cuda__ism_call call, int parts)
{
    int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x, slot = blockIdx.y;
    const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PARTS) + e;
    T *tz = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TZ);
    T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    T sum = 0;
    if (e >= CUDA__ISM_LAST_SUMS * call.ld || e % call.ld >= call.n)
        return;
    for (int part = 0; part < parts; part++)
        sum += from[part * CUDA__ISM_LAST_SUMS * call.ld];
    if (e < CUDA__ISM_TRIED * call.ld)
        tz[e] = sum;
    else
        sizes[e - CUDA__ISM_TRIED * call.ld] = sum;
}

#endif
