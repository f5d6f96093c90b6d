/* gpu/cuda/ism/tile.cuh: the update of few.cuh by a warp on the tensor cores, in FP64 whatever
 * the precision of what is given.
 *
 * With a thread a column, what all threads read of X, Y and G R from shared memory takes the longer
 * the larger m is. Here the inverse is an accumulator of Order x Order, and products have 8 columns
 * or lines of everything, with zeros behind m and n. The two probe vectors of the check's T are
 * multiplied along with Y^T. Where an accumulator is the left factor of the next product it is one
 * as it is: of every 8 columns a lane has two that lie side by side, and the right factor's rows
 * are taken in that order. So B X, Y^T B X, B X R and the product with K need no way through shared
 * memory.
 *
 * Order is 24 or 32; of 24 the last rows of the tiles are zeros that are never read. Sums over rows
 * are halved among the threads that have other rows of the same columns, until each thread has one
 * column: its own, or with 24 columns none. A warp goes from matrix to matrix. The next one is on
 * its way to shared memory while this one is worked on, and the verdicts on several are reached
 * together, by as many lanes.
 *
 * Shared memory a warp: 2,800 numbers for n = 32, 1,968 for 24. Six blocks of a multiprocessor are
 * the fastest for Order 24, and four for 32 (an H200, 2026-11-23); a thread then lacks registers
 * for 108 bytes in FP64, and for 68.
 */
#ifndef GPU_CUDA_ISM_TILE_CUH
#define GPU_CUDA_ISM_TILE_CUH

#include "gpu/cuda/ism/few.cuh"

#define CUDA__ISM_TILE_COLUMNS 8
#define CUDA__ISM_TILE_WARPS 2    /* of a block */
#define CUDA__ISM_TILE_RECORDS 16 /* matrices that are judged together */

/* What is known of a matrix until it is judged. */
struct cuda__ism_record {
    double error, norm_x, norm_a, change, lost, det;
    int64_t index;
    int32_t det_exponent;
    bool bad, blind;
};

/* A warp's shared memory: what is given, in the precision S, and behind that numbers of FP64. Rows
 * lie so far apart that they are read without conflicts, as far as that is possible. */
template <typename S, int Order> struct cuda__ism_tile_room {
    static constexpr int columns_max = CUDA__ISM_TILE_COLUMNS;
    static constexpr bool narrow = sizeof(S) < sizeof(double);
    static constexpr int b_line = narrow ? Order + 8 : Order + 4;
    static constexpr int y_line = narrow ? columns_max : columns_max + 4,
                         x_line = narrow ? columns_max + 4 : columns_max + 2;
    static constexpr int b = 0, y = b + Order * b_line;
    static constexpr int x = y + Order * y_line; /* in two places double-buffered */
    static constexpr int given = (x + 2 * Order * x_line) * (int)sizeof(S) / (int)sizeof(double);
    static constexpr int line = Order + 4, r_line = columns_max + 2, k_line = Order + 2;
    static constexpr int k = given, r = k + columns_max * k_line;
    static constexpr int tz = r + columns_max * r_line, tb = tz + CUDA__ISM_CHECK_PROBES * line;
    static constexpr int records = tb + CUDA__ISM_CHECK_PROBES * line;
    static constexpr int numbers =
        records + CUDA__ISM_TILE_RECORDS * (int)(sizeof(cuda__ism_record) / sizeof(double));
};

/* A warp. S: of what is given and of the answer; the work is done in FP64. */
template <typename S, int Order> struct cuda__ism_tile_update {
    typedef cuda__ism_tile_room<S, Order> room;
    typedef typename cuda__ism_pair<S>::type pair;
    static constexpr int columns_max = CUDA__ISM_TILE_COLUMNS, rows = (Order + 15) / 16;
    static constexpr int across = Order / 8, halved = 4; /* sums of so many pairs are shared out */
    static_assert(Order == 24 || Order == 32, "eight sums for eight lanes");
    /* Rows of K that are added up together. FP32 has digits to spare, so it takes all of them, and
     * what that loses is never found out. */
    static constexpr int rounded = room::narrow ? Order : 16;

    const cuda__ism_call &call;
    int n, m, lane, g, t; /* g, t: the lane's row and pair of columns in a tile */
    double *memory;
    const double *weights; /* T, lines of room::line */
    alignas(16) double z[rows][across][4];
    double k[across][4];     /* K, and T B below */
    double right[across][2]; /* of K: rows 2 t and 2 t + 1 of columns g, g + 8, ... */
    double excess;

    /* Which column a lane has that is left with one of its sums; Order or more: none. */
    __device__ __forceinline__ int own_column() const
    {
        int q = (lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1);
        return q / 2 * 8 + t * 2 + q % 2;
    }

    /* Has the lane's pair `half` of rows of tile i a row of the matrix? Known to the compiler. */
    static __device__ __forceinline__ constexpr bool is_row(int i, int half)
    {
        return i * 16 + half * 8 < Order;
    }

    /* The lane's row of eight of the inverse: some are exchanged, against conflicts. */
    __device__ __forceinline__ int own_row() const
    {
        return room::narrow ? g : (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
    }

    __device__ __forceinline__ S *given(int at) const
    {
        return (S *)memory + at;
    }

    __device__ __forceinline__ S *given_x(int turn) const
    {
        return given(room::x + turn * Order * room::x_line);
    }

    __device__ __forceinline__ const S *input(const cuda_tensors *item, int64_t within, int which,
                                              int columns) const
    {
        return (const S *)item->inputs[which] + within * (n * columns);
    }

    /* ---- In ---- */

    /* n x m numbers, which follow one another, to rows of `line`. */
    __device__ __forceinline__ void fetch_thin(S *to, int line, const S *from) const
    {
        int row = lane / m, column = lane % m;
        const int down = CUDA__WARP / m, over = CUDA__WARP % m;
        for (int e = lane; e < n * m; e += CUDA__WARP) {
            cuda__copy_async<sizeof(S)>(to + row * line + column, from + e);
            row += down + (column + over >= m ? 1 : 0);
            column += over - (column + over >= m ? m : 0);
        }
    }

    /* Starts copying a matrix in. */
    __device__ __forceinline__ void fetch(int64_t index, int turn)
    {
        int64_t within;
        const cuda_tensors *item = cuda__ism_item(call, index, &within);
        const S *b = input(item, within, METHOD_ISM_A0_INVERSE, n);
        fetch_thin(given(room::y), room::y_line, input(item, within, METHOD_ISM_Y, m));
        fetch_thin(given_x(turn), room::x_line, input(item, within, METHOD_ISM_X, m));
        constexpr int width = cuda__real<S>::width, pieces = Order / width;
        constexpr int fit = CUDA__WARP / pieces, step = Order % fit == 0 ? fit : fit - 1;
        const bool wide = n * sizeof(S) % 16 == 0 && (uintptr_t)b % 16 == 0;
        const int row = lane / pieces, column = lane % pieces * width;
        static_assert(Order % step == 0, "rows are fetched without a rest");
        if (wide && n == Order) {
#pragma unroll
            for (int i = 0; i < Order; i += step) {
                if (step * pieces == CUDA__WARP || row < step)
                    cuda__copy_async<16>(given(room::b + (i + row) * room::b_line + column),
                                         b + (i + row) * Order + column);
            }
            return;
        }
        if (wide) {
#pragma unroll
            for (int i = 0; i < Order; i += step) {
                if (row < step && i + row < n && column < n)
                    cuda__copy_async<16>(given(room::b + (i + row) * room::b_line + column),
                                         b + (i + row) * n + column);
            }
            return;
        }
        for (int e = lane; e < n * Order; e += CUDA__WARP) {
            int i = e / Order, j = e % Order;
            if (j < n)
                cuda__copy_async<sizeof(S)>(given(room::b + i * room::b_line + j), b + i * n + j);
        }
    }

    /* ---- Sums ---- */

    /* Sums over rows of f(row, entry), of the own column. */
    template <typename F> __device__ __forceinline__ double sum_rows(F f) const
    {
        const int row = own_row();
        double sums[2 * halved] = {};
#pragma unroll
        for (int e = 0; e < rows * across * 4; e++) {
            const int i = e / (4 * across), half = e / 2 % 2;
            if (is_row(i, half))
                sums[e / 4 % across * 2 + e % 2] +=
                    f(i * 16 + half * 8 + row, z[i][e / 4 % across][e % 4]);
        }
        return share(sums);
    }

    /* Returns the one of the sums that is the lane's. */
    __device__ __forceinline__ double share(double (&sums)[2 * halved]) const
    {
        cuda__ism_halve<halved, CUDA__WARP / 2>(sums, lane);
        return sums[0];
    }

    /* ---- The update ---- */

    /* The norm of column g of X. */
    __device__ __forceinline__ double measure(const S *x) const
    {
        double size = 0;
#pragma unroll
        for (int i = 0; i < Order; i += 4)
            size += fabs((double)x[(i + t) * room::x_line + g]);
        size += __shfl_xor_sync(CUDA__ALL, size, 1);
        size += __shfl_xor_sync(CUDA__ALL, size, 2);
        return size;
    }

    /* A row of |Y| times the norms of X's columns. */
    __device__ __forceinline__ double reach(double norm) const
    {
        double row = 0;
#pragma unroll
        for (int c = 0; c < columns_max; c++) {
            const double y = (double)given(room::y)[lane % Order * room::y_line + c];
            row = fma(shuffle(norm, c * 4), fabs(y), row);
        }
        return row;
    }

    /* A column of |K| times them. */
    __device__ __forceinline__ double met(double norm) const
    {
        double sums[2 * halved] = {};
#pragma unroll
        for (int j = 0; j < 2 * across; j++)
            sums[j] = norm * fabs(k[j / 2][j % 2]);
        return share(sums);
    }

    /* K and T B. */
    __device__ __forceinline__ void meet()
    {
        const S *b = given(room::b + t * room::b_line + g);
        const S *y = given(room::y + t * room::y_line + g);
        const double *weight = weights + g * room::line + t;
        double before[across][4] = {};
#pragma unroll
        for (int j = 0; j < across * 4; j++)
            k[j / 4][j % 4] = 0;
#pragma unroll
        for (int step = 0; step < Order; step += 8) {
            const bool probes = g < CUDA__ISM_CHECK_PROBES;
            double left[4] = {(double)y[step * room::y_line], probes ? weight[step] : 0,
                              (double)y[(step + 4) * room::y_line], probes ? weight[step + 4] : 0};
            excess += left[0] * 0 + left[2] * 0;
            if (step == rounded) {
#pragma unroll
                for (int j = 0; j < across * 4; j++) {
                    before[j / 4][j % 4] = k[j / 4][j % 4];
                    k[j / 4][j % 4] = 0;
                }
            }
#pragma unroll
            for (int j = 0; j < across; j++) {
                double both[2] = {(double)b[step * room::b_line + j * 8],
                                  (double)b[(step + 4) * room::b_line + j * 8]};
                cuda__multiply_add(k[j], left, both);
            }
        }
#pragma unroll
        for (int j = 0; j < across * 4; j++)
            k[j / 4][j % 4] += before[j / 4][j % 4];
    }

    /* An accumulator as a left factor, whose columns are then taken in the order of pairs. */
    static __device__ __forceinline__ void turn_left(double (&left)[4], const double *c)
    {
        left[0] = c[0];
        left[1] = c[2];
        left[2] = c[1];
        left[3] = c[3];
    }

    /* The entries of I + K X that are the lane's, and B X. */
    __device__ __forceinline__ void multiply(const S *x, double (&inner)[4],
                                             double (&product)[rows][4])
    {
        double left[4];
#pragma unroll
        for (int j = 0; j < across; j++) {
            const double both[2] = {(double)x[(j * 8 + 2 * t) * room::x_line + g],
                                    (double)x[(j * 8 + 2 * t + 1) * room::x_line + g]};
            excess += both[0] * 0 + both[1] * 0;
            turn_left(left, k[j]);
            cuda__multiply_add(inner, left, both);
#pragma unroll
            for (int i = 0; i < rows; i++) {
                turn_left(left, z[i][j]);
                cuda__multiply_add(product[i], left, both);
            }
        }
        inner[0] += g == 2 * t;
        inner[1] += g == 2 * t + 1;
    }

    static __device__ __forceinline__ double shuffle(double value, int from)
    {
        return __shfl_sync(CUDA__ALL, value, from);
    }

    /* The inverse of m columns of a block, two entries a lane, goes to R. Returns the determinant
     * but for its exponent, to lane 0. A zero pivot leaves what is not finite. */
    __device__ __forceinline__ double invert(double (&v)[4], int *exponent)
    {
        unsigned used = 0, places = 0x76543210u; /* places: row of each column's pivot */
        int pivoted = g, changes = 0;            /* pivoted: column whose pivot is in this row */
        double own = 1;
#pragma unroll
        for (int c = 0; c < columns_max; c++) {
            if (c >= m)
                break;
            double factor = shuffle(v[c % 2], g * 4 + c / 2);
            unsigned key = (cuda__real<double>::lead(fabs(factor)) & ~15u) | (unsigned)(15 - g);
            unsigned best = __reduce_max_sync(CUDA__ALL, used >> g & 1 ? 0u : key);
            int place = (15 - (int)(best & 15u)) & (columns_max - 1);
            double pivot = shuffle(v[c % 2], place * 4 + c / 2);
            double adjacent[2] = {shuffle(v[0], place * 4 + t), shuffle(v[1], place * 4 + t)};
            double by = cuda__real<double>::reciprocal(pivot);
            bool mine = g == place;
            changes += __popc(~used & ((1u << place) - 1));
            own = lane == c ? pivot : own;
            factor *= by;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                double other = mine ? adjacent[e] * by : fma(-factor, adjacent[e], v[e]);
                v[e] = 2 * t + e != c ? other : mine ? by : -factor;
            }
            pivoted = mine ? c : pivoted;
            places = (places & ~(15u << (4 * c))) | (unsigned)place << (4 * c);
            used |= 1u << place;
        }
#pragma unroll
        for (int e = 0; e < 2; e++)
            memory[room::r + pivoted * room::r_line + (places >> (4 * (2 * t + e)) & 15u)] = v[e];
        double fraction = frexp(own, exponent);
#pragma unroll
        for (int reach = columns_max / 2; reach > 0; reach /= 2) {
            fraction *= __shfl_xor_sync(CUDA__ALL, fraction, reach);
            *exponent += __shfl_xor_sync(CUDA__ALL, *exponent, reach);
        }
        return changes % 2 ? -fraction : fraction;
    }

    /* K and T B to shared memory, and the part of K that later products have on their right. */
    __device__ __forceinline__ void keep()
    {
#pragma unroll
        for (int j = 0; j < across; j++) {
            *(double2 *)(memory + room::k + g * room::k_line + j * 8 + 2 * t) =
                make_double2(k[j][0], k[j][1]);
            if (g < CUDA__ISM_CHECK_PROBES)
                *(double2 *)(memory + room::tb + g * room::line + j * 8 + 2 * t) =
                    make_double2(k[j][2], k[j][3]);
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < across; j++) {
            right[j][0] = memory[room::k + 2 * t * room::k_line + j * 8 + g];
            right[j][1] = memory[room::k + (2 * t + 1) * room::k_line + j * 8 + g];
        }
    }

    /* The sum of magnitudes of the own column of X K. */
    __device__ __forceinline__ double size_of_change(const S *x) const
    {
        double sums[2 * halved] = {};
#pragma unroll
        for (int i = 0; i < rows; i++) {
            const pair low = *(const pair *)(x + (i * 16 + g) * room::x_line + 2 * t);
            const pair high = is_row(i, 1)
                                  ? *(const pair *)(x + (i * 16 + g + 8) * room::x_line + 2 * t)
                                  : pair();
            const double left[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
            for (int j = 0; j < across; j++) {
                double change[4] = {};
                cuda__multiply_add(change, left, right[j]);
                sums[2 * j] += fabs(change[0]) + fabs(change[2]);
                sums[2 * j + 1] += fabs(change[1]) + fabs(change[3]);
            }
        }
        return share(sums);
    }

    /* Z = B - G R K */
    __device__ __forceinline__ void update(const double (&product)[rows][4])
    {
        const double both[2] = {memory[room::r + 2 * t * room::r_line + g],
                                memory[room::r + (2 * t + 1) * room::r_line + g]};
#pragma unroll
        for (int i = 0; i < rows; i++) {
            double left[4], sum[4] = {};
            turn_left(left, product[i]);
            cuda__multiply_add(sum, left, both);
#pragma unroll
            for (int e = 0; e < 4; e++)
                left[e] = -sum[e / 2 + e % 2 * 2];
#pragma unroll
            for (int j = 0; j < across; j++)
                cuda__multiply_add(z[i][j], left, right[j]);
        }
    }

    /* The largest magnitude of what the lane has of T (B - Z M), T Z being in shared memory. */
    __device__ __forceinline__ double error(const S *x) const
    {
        const bool probes = g < CUDA__ISM_CHECK_PROBES;
        double thin[4] = {}, rest[across][4], worst = 0;
#pragma unroll
        for (int j = 0; j < across; j++) {
            const double2 tz =
                probes ? *(const double2 *)(memory + room::tz + g * room::line + j * 8 + 2 * t)
                       : make_double2(0, 0);
            const double left[4] = {tz.x, 0, tz.y, 0};
            const double both[2] = {(double)x[(j * 8 + 2 * t) * room::x_line + g],
                                    (double)x[(j * 8 + 2 * t + 1) * room::x_line + g]};
            cuda__multiply_add(thin, left, both);
            rest[j][0] = tz.x;
            rest[j][1] = tz.y;
            rest[j][2] = rest[j][3] = 0;
        }
        const double left[4] = {thin[0], 0, thin[1], 0};
#pragma unroll
        for (int j = 0; j < across; j++) {
            const double2 tb =
                probes ? *(const double2 *)(memory + room::tb + g * room::line + j * 8 + 2 * t)
                       : make_double2(0, 0);
            cuda__multiply_add(rest[j], left, right[j]);
            worst = cuda__max_or_nan(worst, fabs(tb.x - rest[j][0]));
            worst = cuda__max_or_nan(worst, fabs(tb.y - rest[j][1]));
        }
        return worst;
    }

    /* ---- Out ---- */

    __device__ __forceinline__ void store(S *to, bool bad) const
    {
        const S nan = cuda__real<S>::nan();
        const bool wide = n % 2 == 0 && (uintptr_t)to % sizeof(pair) == 0;
        const int row = own_row();
#pragma unroll
        for (int e = 0; e < rows * across * 2; e++) {
            const int i = e / (2 * across) * 16 + e % 2 * 8 + row, j = e / 2 % across * 8 + 2 * t;
            const double *from = &z[e / (2 * across)][e / 2 % across][e % 2 * 2];
            if (!is_row(e / (2 * across), e % 2))
                continue;
            const pair both = {bad ? nan : (S)from[0], bad ? nan : (S)from[1]};
            if (wide && n == Order) {
                *(pair *)(to + i * Order + j) = both;
                continue;
            }
            if (i >= n || j >= n)
                continue;
            if (wide) {
                *(pair *)(to + i * n + j) = both;
                continue;
            }
            to[i * n + j] = both.x;
            if (j + 1 < n)
                to[i * n + j + 1] = both.y;
        }
    }

    __device__ __forceinline__ cuda__ism_record *record(int number) const
    {
        return (cuda__ism_record *)(memory + room::records) + number;
    }

    /* By how many eps X K is off. */
    __device__ __forceinline__ double lost(const cuda_tensors *item, int64_t within,
                                           double terms) const
    {
        const S *b = input(item, within, METHOD_ISM_A0_INVERSE, n);
        const S *x = input(item, within, METHOD_ISM_X, m);
        const S *y = input(item, within, METHOD_ISM_Y, m);
        const double loss = lane < n
                                ? cuda__ism_loss_of<double>(n, m, lane, b, x, y,
                                                            memory + room::k + lane, room::k_line)
                                : 0;
        return cuda__ism_lost_by<S, double>(n, cuda__ism_warp_largest(loss), terms);
    }

    /* The matrix that was fetched becomes the accumulator. */
    __device__ __forceinline__ void take()
    {
        const S *b = given(room::b + own_row() * room::b_line + 2 * t);
#pragma unroll
        for (int e = 0; e < rows * across * 2; e++) {
            const pair both =
                is_row(e / (2 * across), e % 2)
                    ? *(const pair *)(b + (e / (2 * across) * 16 + e % 2 * 8) * room::b_line +
                                      e / 2 % across * 8)
                    : pair();
            z[e / (2 * across)][e / 2 % across][e % 2 * 2] = both.x;
            z[e / (2 * across)][e / 2 % across][e % 2 * 2 + 1] = both.y;
        }
    }

    /* The matrix that was fetched; `next` begins to be fetched meanwhile. */
    __device__ __forceinline__ void run(int64_t index, int64_t next, int turn, int number)
    {
        const S *x = given_x(turn);
        cuda__copy_arrive();
        __syncwarp();
        excess = 0;
        take();
        const double norm = measure(x), row = reach(norm);
        double size_b = sum_rows([](int, double value) { return fabs(value); });
        /* A sum that is finite is one of finite numbers. */
        if (!(size_b <= cuda__real<double>::largest)) {
#pragma unroll
            for (int e = 0; e < rows * across * 4; e++)
                excess += z[e / (4 * across)][e / 4 % across][e % 4] * 0;
        }
        __syncwarp();
        meet();
        const double column = met(norm);
        __syncwarp();
        if (next < call.matrices)
            fetch(next, turn ^ 1);
        __syncwarp();
        double inner[4] = {}, product[rows][4] = {};
        int det_exponent = 0;
        multiply(x, inner, product);
        keep();
        double det = invert(inner, &det_exponent), change = size_of_change(x);
        __syncwarp();
        update(product);
        double size_z = sum_rows([](int, double value) { return fabs(value); });
#pragma unroll
        for (int l = 0; l < CUDA__ISM_CHECK_PROBES; l++) {
            const double *line = weights + l * room::line;
            double tz = sum_rows([&](int i, double value) { return line[i] * value; });
            if (own_column() < Order)
                memory[room::tz + l * room::line + own_column()] = tz;
        }
        __syncwarp();
        double worst = error(x);
        bool bad = __any_sync(CUDA__ALL, !(excess == 0));
        cuda__ism_record found = {cuda__ism_warp_largest<double>(worst),
                                  cuda__ism_warp_largest<double>(size_z),
                                  cuda__ism_warp_largest<double>(size_b),
                                  cuda__ism_warp_largest<double>(change),
                                  0,
                                  det,
                                  index,
                                  det_exponent,
                                  bad,
                                  false};
        const double terms = cuda__ism_warp_largest(row) * found.norm_a;
        found.lost = cuda__ism_lost<S, double>(n, rounded, terms);
        found.blind = cuda__ism_misses<S, double>(n, Order, cuda__ism_warp_largest(column),
                                                  found.norm_a / found.norm_x, found.change);
        int64_t within;
        const cuda_tensors *item = cuda__ism_item(call, index, &within);
        S *inverse = (S *)item->outputs[METHOD_ISM_INVERSE];
        if (inverse)
            store(inverse + within * (n * n), bad);
        if (!room::narrow && cuda__ism_cancels(n, found.lost, found.change))
            found.lost = lost(item, within, terms);
        if (lane == 0)
            *record(number) = found;
    }

    /* The verdict on `count` matrices, by as many lanes. */
    __device__ __forceinline__ void judge(int count) const
    {
        __syncwarp();
        if (lane < count) {
            int64_t within;
            const cuda__ism_record &of = *record(lane);
            const cuda_tensors *item = cuda__ism_item(call, of.index, &within);
            cuda__ism_check check = {};
            check.error = of.error;
            check.norm_x = of.norm_x;
            check.norm_a = of.norm_a;
            check.change = of.change;
            check.lost = of.lost;
            check.blind = of.blind;
            check.det_ratio = cuda__ism_value(of.det, of.det_exponent);
            check.bad = of.bad;
            cuda__ism_judge<S>(call, item, within, check, METHOD_ALGORITHM_BLOCK);
        }
        __syncwarp();
    }
};

/* ---- The launches: by a thread a column (few.cuh), or from some columns of X on by this ---- */

template <typename T, int Order, int Blocks>
static __global__ void __launch_bounds__(CUDA__ISM_TILE_WARPS *CUDA__WARP, Blocks)
    cuda__ism_tile_kernel(const cuda__ism_call call)
{
    typedef cuda__ism_tile_room<T, Order> room;
    constexpr int threads = CUDA__ISM_TILE_WARPS * CUDA__WARP;
    constexpr int held = CUDA__ISM_CHECK_PROBES * room::line;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, warp = (int)threadIdx.x / CUDA__WARP;
    const int lane = (int)threadIdx.x % CUDA__WARP;
    double *weights = (double *)cuda__memory, *all = weights + held;
    for (int e = threadIdx.x; e < held; e += threads) {
        int i = e % room::line;
        weights[e] = i < n ? (double)cuda__ism_weight(n, i, e / room::line) : 0.0;
    }
    for (int e = threadIdx.x; e < CUDA__ISM_TILE_WARPS * room::numbers; e += threads)
        all[e] = 0;
    __syncthreads();
    cuda__ism_tile_update<T, Order> one = {
        call,    n,  (int)call.m, lane, lane / 4, lane % 4, all + warp * room::numbers,
        weights, {}, {},          {},   0};
    const int64_t step = (int64_t)gridDim.x * CUDA__ISM_TILE_WARPS;
    int64_t index = (int64_t)blockIdx.x * CUDA__ISM_TILE_WARPS + warp;
    int turn = 0, number = 0;
    if (index < call.matrices)
        one.fetch(index, 0);
    for (; index < call.matrices; index += step, turn ^= 1) {
        one.run(index, index + step, turn, number++);
        if (number == CUDA__ISM_TILE_RECORDS || index + step >= call.matrices) {
            one.judge(number);
            number = 0;
        }
    }
}

/* Blocks fill an H200 once and go over the batch in strides. */
template <typename T, int Order, int Blocks>
static cudaError_t cuda__ism_launch_tile(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_tile_room<T, Order> room;
    constexpr int64_t blocks_max = 132 * Blocks;
    int64_t blocks = (call.matrices + CUDA__ISM_TILE_WARPS - 1) / CUDA__ISM_TILE_WARPS;
    size_t numbers = CUDA__ISM_CHECK_PROBES * room::line + CUDA__ISM_TILE_WARPS * room::numbers;
    return cuda__start(cuda__ism_tile_kernel<T, Order, Blocks>,
                       (unsigned)(blocks < blocks_max ? blocks : blocks_max),
                       CUDA__ISM_TILE_WARPS * CUDA__WARP, numbers * sizeof(double), stream, call);
}

/* Is this a call for an update at once? To this order and this many columns, where A is not known.
 */
static inline bool cuda__ism_is_few(const cuda__ism_call &call)
{
    return !cuda__ism_knows(call) && call.m > 0 && call.n <= 32 && call.m <= (call.n > 16 ? 8 : 4);
}

/* Columns from which on the tensor cores are faster, for n > 16. */
template <typename T> static constexpr int cuda__ism_tile_min = sizeof(T) == sizeof(float) ? 5 : 3;

template <typename T>
static cudaError_t cuda__ism_few(const cuda__ism_call &call, cudaStream_t stream)
{
    if (call.n > 24 && call.m >= cuda__ism_tile_min<T>)
        return cuda__ism_launch_tile<T, 32, 4>(call, stream);
    if (call.n > 16 && call.m >= cuda__ism_tile_min<T>)
        return cuda__ism_launch_tile<T, 24, 6>(call, stream);
    if (call.n <= 8)
        return cuda__ism_launch_few<T, 8, 8>(call, stream);
    if (call.n <= 12)
        return cuda__ism_launch_few<T, 12, 16>(call, stream);
    if (call.n <= 16)
        return cuda__ism_launch_few<T, 16, 16>(call, stream);
    if (call.n <= 24)
        return cuda__ism_launch_few<T, 24, 32>(call, stream);
    return cuda__ism_launch_few<T, 32, 32>(call, stream);
}

#endif
