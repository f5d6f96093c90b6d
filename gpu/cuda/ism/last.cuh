/* gpu/cuda/ism/last.cuh: the last product of `ism` in FP64 where there are few columns:
 * Z = A0^-1 - (G R) K, which goes from the registers to the answer, and what the check wants of Z
 * with it: T Z, and the sums of magnitudes of its columns. Z is written once and never read.
 *
 * A block has a strip of columns and goes down a part of its rows, 64 at a time or, where A0^-1 is
 * given, 32, and half of that where shared memory is less; a warp has some of the columns, whose
 * part of K stays in its registers all the way. Lines of (G R)^T and of T, and A0^-1 where it is
 * not diagonal, go through shared memory, in places double-buffered. The warps do not wait for one
 * another, but for what they take: a place has one gate that opens when it is filled, and one that
 * opens when all threads have done with it. Each lane adds up what it has seen of its columns; the
 * lanes of a column are added at the end, and the blocks of a strip by a second kernel, in an
 * order that n alone decides.
 *
 * Cost: n^2 numbers written, and read where A0^-1 is given; (G R)^T read once a strip, from the
 * second-level cache. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_LAST_CUH
#define GPU_CUDA_ISM_LAST_CUH

#include "gpu/cuda/ism/kernels.cuh"
#include "gpu/cuda/ism/last_row.cuh"

#define CUDA__ISM_LAST_UNIT 16 /* rows of a product */
#define CUDA__ISM_LAST_STEP 16 /* columns of X and Y that an instruction takes */
#define CUDA__ISM_LAST_SUMS 3  /* of a column: two probe vectors times Z, and its magnitudes */

/* A block's shape: Inner columns of X and Y, filled up with zeros; Rows that a place has. Given:
 * A0^-1 is. With more warps, or wider ones, registers are too few (an H200, 2026-11-23). */
template <int Inner_, bool Given_, int Rows_> struct cuda__ism_last_shape {
    static constexpr int inner = Inner_, across = 2, warps = 8; /* across: 8 columns each */
    static constexpr bool given = Given_;
    static constexpr int threads = warps * CUDA__WARP, columns = across * 8;
    static constexpr int strip = warps * columns;
    /* Of a multiprocessor, as the plan has it (ism.c); 0: one, whose threads may have any number of
     * registers. */
    static constexpr int blocks = Inner_ <= CUDA__ISM_LAST_MAX / 2 && !Given_ ? 2 : 0;
    static constexpr int rows = Rows_;
    static constexpr int places = Given_ ? 3 : 4; /* of which one is filled, and one let go */
    /* Distances of lines that are read without conflicts. */
    static constexpr int line = rows + 4, given_line = strip + 4;
    struct shared {
        alignas(16) double lines[places][inner + CUDA__ISM_CHECK_PROBES][line];
        alignas(16) double known[given ? places : 1][given ? rows : 1][given ? given_line : 2];
        cuda__gate filled[places], left[places];
    };
};

/* How a unit's numbers go to the answer. */
enum cuda__ism_last_way {
    CUDA__ISM_LAST_NOWHERE,
    CUDA__ISM_LAST_NUMBERS, /* one by one: some are beyond its end */
    CUDA__ISM_LAST_SHIFTED, /* 16 bytes at a time, in other lanes: see last_row.cuh */
    CUDA__ISM_LAST_PAIRS    /* 16 bytes at a time */
};

/* A block. In a unit a lane has the rows 2 g and 2 g + 1, g being a quarter of its number. */
template <typename Shape> struct cuda__ism_last_block {
    typedef typename Shape::shared shared;
    static constexpr int steps = Shape::inner / CUDA__ISM_LAST_STEP, across = Shape::across;
    static constexpr int inner = Shape::inner, places = Shape::places, line_ld = Shape::line;
    static constexpr int rows = Shape::rows;

    const cuda__ism_call &call;
    shared &memory;
    int n, ld, column; /* column: of the strip */
    int lane, warp;
    double *to;                 /* the answer; NULL: no one wants it */
    bool within, wide;          /* the strip is all there; and rows of the answer at 16 bytes */
    double k[steps][across][4]; /* less K */
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

    /* Rows `row` and on, to a place; whole: all of them are there. */
    __device__ __forceinline__ void fetch_lines(int row, int place, bool whole)
    {
        constexpr int pieces = rows / 2, step = Shape::threads / pieces;
        static_assert(step >= CUDA__ISM_CHECK_PROBES && inner % step == 0,
                      "lines are fetched at once");
        const int l = (int)threadIdx.x / pieces, i = (int)threadIdx.x % pieces * 2;
        const double *from = line(CUDA__ISM_GR, l) + row + i;
        double *to_lines = &memory.lines[place][l][i];
        if (whole && call.m == inner) {
#pragma unroll
            for (int at = 0; at < inner; at += step, from += step * ld)
                cuda__copy_async<16>(to_lines + at * line_ld, from);
        } else {
#pragma unroll 1
            for (int at = 0; at + l < call.m; at += step, from += step * ld)
                stage(to_lines + at * line_ld, from, n - row - i);
        }
        if (l < CUDA__ISM_CHECK_PROBES)
            stage(to_lines + inner * line_ld, (const double *)call.probes + l * ld + row + i,
                  n - row - i);
    }

    __device__ __forceinline__ void fetch_given(int row, int place, bool whole)
    {
        constexpr int pieces = Shape::strip / 2, all = pieces * rows;
        const double *given = line(CUDA__ISM_B, row) + column;
#pragma unroll 4
        for (int e = (int)threadIdx.x; e < all; e += Shape::threads) {
            const int r = e / pieces, j = e % pieces * 2;
            double *to_known = &memory.known[place][r][j];
            if (whole)
                cuda__copy_async<16>(to_known, given + r * ld + j);
            else
                stage(to_known, given + r * ld + j, row + r < n ? n - column - j : 0);
        }
    }

    /* Fills a place with rows `row` and on. */
    __device__ __forceinline__ void fetch(int row, int place)
    {
        const bool whole = row + rows <= n && (!Shape::given || within);
        fetch_lines(row, place, row + rows <= n);
        if constexpr (Shape::given)
            fetch_given(row, place, whole);
        if (whole) {
            cuda__gate_arrive_behind_copies(&memory.filled[place]);
        } else { /* not by copies alone */
            cuda__copy_arrive();
            cuda__gate_arrive(&memory.filled[place]);
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
            for (int e = 0; e < across * 4; e++) {
                int l = step * CUDA__ISM_LAST_STEP + lane % 4 + e % 4 * 4;
                bool inside = l < call.m && j + e / 4 * 8 < n;
                k[step][e / 4][e % 4] = inside ? -lines[l * ld + e / 4 * 8] : 0;
            }
        }
        const int behind = (inner - (int)call.m) * line_ld;
        for (int e = (int)threadIdx.x; e < places * behind; e += Shape::threads)
            memory.lines[e / behind][call.m + e % behind / line_ld][e % behind % line_ld] = 0;
        if (threadIdx.x < places) {
            cuda__gate_begin(&memory.filled[threadIdx.x], Shape::threads);
            cuda__gate_begin(&memory.left[threadIdx.x], Shape::threads);
        }
        __syncthreads();
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

    /* The same numbers to the answer, of which a part may be beyond its end. */
    __device__ __forceinline__ void store(const double (&z)[across][4], int i, int j) const
    {
        double *corner = to + i * n + j;
#pragma unroll
        for (int e = 0; e < across * 4; e++) {
            const int row = e % 4 / 2, at = e / 4 * 8 + e % 2;
            if (i + row < n && j + at < n)
                corner[row * n + at] = z[e / 4][e % 4];
        }
    }

    /* The same where all of them are there, and pairs of them aligned. */
    static __device__ __forceinline__ void store_pairs(const double (&z)[across][4], double *even,
                                                       double *odd)
    {
#pragma unroll
        for (int c = 0; c < across; c++) {
            cuda__store_stream((double2 *)(even + c * 8), &z[c][0]);
            cuda__store_stream((double2 *)(odd + c * 8), &z[c][2]);
        }
    }

    /* The same where rows begin anywhere. The lane's first number is in an even row and column: all
     * first rows lie as the answer's first one does, and the second ones as its second. */
    __device__ __forceinline__ void store_shifted(const double (&z)[across][4], double *even) const
    {
        typedef cuda__ism_last_row<double, 4> row;
        static_assert(across == 2, "what a lane has of a row");
#pragma unroll
        for (int r = 0; r < 2; r++)
            row::store(&z[0][r * 2], &z[1][r * 2], even + r * n, lane % 4, row::lead(to + r * n));
    }

    /* The lane's numbers of 16 columns of (G R)^T's block that is in place, from line 16 step on.
     */
    static __device__ __forceinline__ void take(double (&to)[8], const double *m)
    {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const double2 pair = *(const double2 *)(m + e * 4 * line_ld);
            to[2 * e] = pair.x;
            to[2 * e + 1] = pair.y;
        }
    }

    /* 16 rows, of which the first is `row`; of the ones in their place, `at`. even: where the
     * lane's first row goes. */
    __device__ __forceinline__ void multiply(int row, int at, int place, double *even, int way)
    {
        const double *m = &memory.lines[place][lane % 4][at + lane / 4 * 2];
        const int i = row + lane / 4 * 2, first = column + warp * Shape::columns;
        const int j = first + lane % 4 * 2;
        alignas(16) double z[across][4] = {}, a[2][8];
        if constexpr (Shape::given) {
#pragma unroll
            for (int c = 0; c < across * 2; c++)
                *(double2 *)&z[c / 2][c % 2 * 2] =
                    *(const double2 *)&memory
                         .known[place][at + lane / 4 * 2 + c % 2][j - column + c / 2 * 8];
        }
        take(a[0], m);
#pragma unroll
        for (int step = 0; step < steps; step++) {
            if (step + 1 < steps)
                take(a[(step + 1) % 2], m + (step + 1) * CUDA__ISM_LAST_STEP * line_ld);
#pragma unroll
            for (int c = 0; c < across; c++)
                cuda__multiply_add_16(z[c], a[step % 2], k[step][c]);
            __syncwarp(); /* what is read too early takes registers */
        }
        if (!Shape::given && row < first + Shape::columns && first < row + CUDA__ISM_LAST_UNIT)
            add_diagonal(z, i, j);
        if (way == CUDA__ISM_LAST_PAIRS)
            store_pairs(z, even, even + n);
        else if (way == CUDA__ISM_LAST_SHIFTED)
            store_shifted(z, even);
        else if (way == CUDA__ISM_LAST_NUMBERS)
            store(z, i, j);
#pragma unroll
        for (int l = 0; l < CUDA__ISM_CHECK_PROBES; l++) {
            const double2 weight =
                *(const double2 *)&memory.lines[place][inner + l][at + lane / 4 * 2];
#pragma unroll
            for (int c = 0; c < across * 2; c++)
                sums[l][c / 2][c % 2] = fma(weight.y, z[c / 2][c % 2 + 2],
                                            fma(weight.x, z[c / 2][c % 2], sums[l][c / 2][c % 2]));
        }
#pragma unroll
        for (int c = 0; c < across * 4; c++)
            sums[CUDA__ISM_CHECK_PROBES][c / 4][c % 2] += fabs(z[c / 4][c % 4]);
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

    /* Of the rows of a place, by the warp's columns. */
    __device__ __forceinline__ enum cuda__ism_last_way way_of(int row) const
    {
        if (wide && row + rows <= n)
            return CUDA__ISM_LAST_PAIRS;
        return !to ? CUDA__ISM_LAST_NOWHERE
               : row + rows <= n && column + (warp + 1) * Shape::columns <= n
                   ? CUDA__ISM_LAST_SHIFTED
                   : CUDA__ISM_LAST_NUMBERS;
    }

    /* Rows from `first` to `end`. A place is filled while the one before the last is let go. */
    __device__ __forceinline__ void run(int first, int end)
    {
        constexpr int ahead = places - 2, unit = CUDA__ISM_LAST_UNIT;
        const int stages = (end - first + rows - 1) / rows;
        const int64_t down = (int64_t)unit * n; /* from unit to unit */
        double *even = to + (int64_t)(first + lane / 4 * 2) * n + column + warp * Shape::columns +
                       lane % 4 * 2;
        begin();
#pragma unroll 1
        for (int s = 0; s < ahead && s < stages; s++)
            fetch(first + s * rows, s);
#pragma unroll 1
        for (int s = 0; s < stages; s++) {
            const int next = s + ahead, place = s % places, row = first + s * rows;
            if (next < stages) {
                if (next >= places)
                    cuda__gate_await(&memory.left[next % places], (next / places - 1) & 1);
                fetch(first + next * rows, next % places);
            }
            cuda__gate_await(&memory.filled[place], s / places & 1);
            __syncwarp(); /* the tensor cores want the lanes together */
            int way = way_of(row);
            cuda__keep(way); /* not worked out anew in every unit */
#pragma unroll 1
            for (int at = 0; at < rows; at += unit, even += down)
                multiply(row + at, at, place, even, way);
            cuda__gate_arrive(&memory.left[place]);
        }
        conclude();
    }
};

/* blockIdx.x: the strip, blockIdx.z: the part of its rows, `rows` each. */
template <typename Shape>
static __global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cuda__ism_last_kernel(const cuda__ism_call call, int rows)
{
    cuda__wait_for_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, begin = (int)blockIdx.z * rows, end = begin + rows;
    const bool within = ((int)blockIdx.x + 1) * Shape::strip <= n;
    double *to = cuda__ism_output<double>(call, blockIdx.y, METHOD_ISM_INVERSE, call.n * call.n);
    cuda__ism_last_block<Shape> block = {call,
                                         *cuda__held((typename Shape::shared *)cuda__memory),
                                         n,
                                         (int)call.ld,
                                         (int)blockIdx.x * Shape::strip,
                                         (int)threadIdx.x % CUDA__WARP,
                                         (int)threadIdx.x / CUDA__WARP,
                                         to,
                                         within,
                                         to && within && n % 2 == 0 && (uintptr_t)to % 16 == 0,
                                         {},
                                         {}};
    block.run(begin, end < n ? end : n);
}

/* TZ and SIZES, from `parts` of rows. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_last_sum_kernel(const cuda__ism_call call, int parts)
{
    cuda__follow_previous();
    int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x, slot = blockIdx.y;
    const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PARTS) + e;
    T *tz = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TZ);
    T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    T sum = 0;
    if (e >= CUDA__ISM_LAST_SUMS * call.ld || e % call.ld >= call.n)
        return;
    for (int part = 0; part < parts; part++)
        sum += from[part * CUDA__ISM_LAST_SUMS * call.ld];
    if (e < CUDA__ISM_CHECK_PROBES * call.ld)
        tz[e] = sum;
    else
        sizes[e - CUDA__ISM_CHECK_PROBES * call.ld] = sum;
}

#endif
