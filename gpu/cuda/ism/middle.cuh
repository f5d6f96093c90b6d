/* gpu/cuda/ism/middle.cuh: the fused update of known inverses of middle orders on the tensor cores,
 * in FP64 whatever the precision of what is given: A0^-1 is read once, the inverse written once.
 *
 * A block has a matrix in its shared memory, and a warp 16 columns of it and 16 rows. With B =
 * A0^-1 and T the lines of the check
 *
 *      K = Y^T B, T B, G = B X; R = (I + K X)^-1; Z = B - G R K, T Z; (T Z) X and the check.
 *
 * K and T B are made of the warp's columns, G of its rows, which wait in registers for R (in shared
 * memory those of the warp that finds R, where m is above 16). A warp
 * makes its columns of Z from the top to the bottom, writes them, and starts copying the next
 * matrix to where B was. Meanwhile sums over rows add up in its registers. R is found by one warp,
 * and by another one the size of the change, as of the algorithm by blocks: |X K| is that of the
 * column at which a line times X K is the largest.
 *
 * Every sum is taken in an order that n and m alone decide. Blocks go from matrix to matrix; seven
 * barriers for each.
 */
#ifndef GPU_CUDA_ISM_MIDDLE_CUH
#define GPU_CUDA_ISM_MIDDLE_CUH

#include "gpu/cuda/ism/middle_measures.cuh"
#include "gpu/cuda/ism/pivot.cuh"
#include "gpu/cuda/ism/check.cuh"

/* A block. Tiles: of 8 columns of X. */
template <typename S, int Tiles> struct cuda__ism_middle_update : cuda__ism_middle_measures<S> {
    typedef cuda__ism_middle_measures<S> block;
    typedef typename cuda__ism_pair<S>::type pair;
    using block::begin;
    using block::call;
    using block::fetch;
    using block::fetch_strip;
    using block::fetch_x;
    using block::fetch_y;
    using block::find;
    using block::find_lost;
    using block::first_column;
    using block::found;
    using block::g;
    using block::given;
    using block::lane;
    using block::m;
    using block::measure_change;
    using block::measure_reach;
    using block::n;
    using block::narrow;
    using block::reals;
    using block::result;
    using block::room;
    using block::row;
    using block::slab;
    using block::t;
    using block::terms_of;
    using block::tried;
    using block::turn;
    using block::warp;
    static constexpr int wide = Tiles * CUDA__ISM_MIDDLE_TILE;
    static constexpr int line_tiles = Tiles + 1; /* of 8 lines of K and T B */
    static constexpr bool keeps = Tiles > 2;

    double z[Tiles][4]; /* of the warp's rows: G */

    /* ---- The update ---- */

    /* An accumulator as a left factor, whose columns are then taken in the order of pairs. */
    static __device__ __forceinline__ void turn_left(double (&left)[4], const double *c)
    {
        left[0] = c[0];
        left[1] = c[2];
        left[2] = c[1];
        left[3] = c[3];
    }

    static __device__ __forceinline__ void turn_left(double (&left)[4], const pair &low,
                                                     const pair &high)
    {
        left[0] = low.x;
        left[1] = high.x;
        left[2] = low.y;
        left[3] = high.y;
    }

    /* Eight columns of G. */
    __device__ __forceinline__ void meet_rows(int step)
    {
        const S *b = given(room.b) + (warp * slab + row) * room.b_line + step + 2 * t;
        const S *x = given(room.x) + (step + 2 * t) * room.x_line + g;
        double left[4];
        turn_left(left, *(const pair *)b, *(const pair *)(b + 8 * room.b_line));
#pragma unroll
        for (int c = 0; c < Tiles; c++) {
            const double right[2] = {(double)x[c * 8], (double)x[room.x_line + c * 8]};
            cuda__multiply_add(z[c], left, right);
        }
    }

    /* Eight rows more of K and T B of the warp's columns, and of the columns' sizes. */
    __device__ __forceinline__ void meet_columns(int step, double (&sums)[line_tiles][4],
                                                 double (&sizes)[2]) const
    {
        const S *b = given(room.b) + (step + t) * room.b_line + first_column() + g;
        const S *y = given(room.y) + (step + t) * room.y_line + g, *next = b + 4 * room.b_line;
        const double left[4] = {(double)b[0], (double)b[8], (double)next[0], (double)next[8]};
        sizes[0] += fabs(left[0]) + fabs(left[2]);
        sizes[1] += fabs(left[1]) + fabs(left[3]);
#pragma unroll
        for (int l = 0; l < line_tiles; l++) {
            if (l * 8 >= m + tried)
                break;
            const bool is = l * 8 + g < m + tried;
            const double right[2] = {is ? (double)y[l * 8] : 0,
                                     is ? (double)y[4 * room.y_line + l * 8] : 0};
            cuda__multiply_add(sums[l], left, right);
        }
    }

    /* K and T B of the warp's columns, and G of its rows. */
    __device__ __forceinline__ void meet()
    {
        double sums[line_tiles][4] = {}, sizes[2] = {0, 0};
#pragma unroll
        for (int c = 0; c < Tiles; c++)
            z[c][0] = z[c][1] = z[c][2] = z[c][3] = 0;
        if constexpr (narrow) {
#pragma unroll 2
            for (int step = 0; step < n; step += 8) {
                meet_columns(step, sums, sizes);
                meet_rows(step);
            }
        } else {
            meet_by_slabs(sums, sizes);
#pragma unroll 2
            for (int step = 0; step < n; step += 8)
                meet_rows(step);
        }
        look_at_products(sums);
        keep_lines(sums);
        keep_sizes(sizes);
    }

    /* K and T B: sums of a slab of rows, two next to one another, and then of those. */
    __device__ __forceinline__ void meet_by_slabs(double (&sums)[line_tiles][4],
                                                  double (&sizes)[2]) const
    {
#pragma unroll 1
        for (int first = 0; first < room.order; first += 2 * slab) {
            double some[2][line_tiles][4] = {};
#pragma unroll
            for (int step = 0; step < slab; step += 8) {
                meet_columns(first + step, some[0], sizes);
                if (first + slab < room.order)
                    meet_columns(first + slab + step, some[1], sizes);
            }
#pragma unroll
            for (int e = 0; e < line_tiles * 4; e++)
                sums[e / 4][e % 4] += some[0][e / 4][e % 4] + some[1][e / 4][e % 4];
        }
    }

    /* Notes numbers of X and Y that are not finite: if there are, products are not either. */
    __device__ __forceinline__ void look_at_products(const double (&sums)[line_tiles][4]) const
    {
        const S *x = given(room.x), *y = given(room.y);
        double excess = 0;
        S inputs = 0;
#pragma unroll
        for (int e = 0; e < line_tiles * 4; e++)
            excess += sums[e / 4][e % 4] * 0;
#pragma unroll
        for (int e = 0; e < Tiles * 4; e++)
            excess += z[e / 4][e % 4] * 0;
        if (excess == 0)
            return;
        for (int e = 0; e < n * m; e++)
            inputs += x[e / m * room.x_line + e % m] * 0 + y[e / m * room.y_line + e % m] * 0;
        if (!(inputs == 0))
            atomicMax(&result().bad, 1);
    }

    /* sums: of columns, a line a column. */
    __device__ __forceinline__ void keep_lines(const double (&sums)[line_tiles][4]) const
    {
        const int lines = m + tried > wide ? m + tried : wide;
        double *k = reals(room.k) + first_column() + g;
#pragma unroll
        for (int e = 0; e < line_tiles * 4; e++) {
            const int line = e / 4 * 8 + 2 * t + e % 2;
            if (line < lines)
                k[line * room.k_line + e / 2 % 2 * 8] = sums[e / 4][e % 4];
        }
    }

    /* sizes: of the lane's rows of two columns. */
    __device__ __forceinline__ void keep_sizes(const double (&sizes)[2]) const
    {
        double most = 0;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            double sum = sizes[j] + __shfl_xor_sync(CUDA__ALL, sizes[j], 1);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
            most = cuda__max_or_nan(most, sum);
        }
        most = cuda__ism_warp_largest(most);
        if (lane == 0)
            result().size_b[warp] = most;
        /* A sum that is finite is one of finite numbers. */
        if (most <= cuda__real<double>::largest)
            return;
        const S *b = given(room.b) + first_column();
        S excess = 0;
        for (int e = lane; e < room.order * slab; e += CUDA__WARP)
            excess += b[e / slab * room.b_line + e % slab] * 0;
        if (!(excess == 0))
            atomicMax(&result().bad, 1);
    }

    /* A tile of I + K X. */
    __device__ __forceinline__ void multiply_tile(int i, int j) const
    {
        const double *k = reals(room.k) + (i + g) * room.k_line + 2 * t;
        const S *x = given(room.x) + 2 * t * room.x_line + j + g;
        double *c = reals(room.c) + (i + g) * room.c_line + j + 2 * t;
        const bool deep = i + 8 < wide;
        double sums[2][4] = {};
        for (int step = 0; step < room.order; step += 16) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const double *of = k + step + 8 * h;
                const S *by = x + (step + 8 * h) * room.x_line;
                const double2 low = *(const double2 *)of;
                const double2 high =
                    deep ? *(const double2 *)(of + 8 * room.k_line) : make_double2(0, 0);
                const double left[4] = {low.x, high.x, low.y, high.y};
                const double right[2] = {(double)by[0], (double)by[room.x_line]};
                cuda__multiply_add(sums[h], left, right);
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int down = e / 2 * 8, over = e % 2;
            const bool one = i + down + g == j + 2 * t + over;
            if (e < 2 || deep)
                c[down * room.c_line + over] = sums[0][e] + sums[1][e] + one;
        }
    }

    /* Column c of a line of T times X. */
    __device__ __forceinline__ void multiply_line(int c) const
    {
        const double *weights = reals(room.weights);
        const S *x = given(room.x) + c;
        double sum = 0;
        for (int i = lane; i < room.order; i += CUDA__WARP)
            sum = fma(weights[i], (double)x[i * room.x_line], sum);
        sum = cuda__warp_sum(sum);
        if (lane == 0)
            reals(room.thin)[tried * wide + c] = sum;
    }

    /* I + K X, and a line of T times X. */
    __device__ __forceinline__ void multiply_lines() const
    {
        constexpr int tiles = (Tiles + 1) / 2 * Tiles;
        for (int task = warp; task < tiles + m; task += room.warps) {
            if (task < tiles)
                multiply_tile(task / Tiles * 16, task % Tiles * 8);
            else
                multiply_line(task - tiles);
        }
    }

    /* -G R of the warp's rows takes the place of Y. */
    __device__ __forceinline__ void apply_r() const
    {
        const double *r = reals(room.c) + 2 * t * room.c_line + g;
        double *to = reals(room.y) + (warp * slab + row) * room.g_line + 2 * t;
#pragma unroll
        for (int j = 0; j < Tiles; j++) {
            double sums[4] = {}, left[4];
#pragma unroll
            for (int c = 0; c < Tiles; c++) {
                const double *of = r + c * 8 * room.c_line + j * 8;
                const double right[2] = {of[0], of[room.c_line]};
                turn_left(left, z[c]);
                cuda__multiply_add(sums, left, right);
            }
            *(double2 *)(to + j * 8) = make_double2(-sums[0], -sums[1]);
            *(double2 *)(to + 8 * room.g_line + j * 8) = make_double2(-sums[2], -sums[3]);
        }
    }

    /* ---- Out ---- */

    __device__ __forceinline__ void store(S *to, int i, int j, double first, double second,
                                          bool bad) const
    {
        const S nan = cuda__real<S>::nan();
        const pair both = {bad ? nan : (S)first, bad ? nan : (S)second};
        if (i >= n || j >= n)
            return;
        to += i * n + j;
        if (n % 2 == 0 && (uintptr_t)to % sizeof(pair) == 0) {
            *(pair *)to = both;
            return;
        }
        to[0] = both.x;
        if (j + 1 < n)
            to[1] = both.y;
    }

    /* The warp's columns of 16 rows of B. */
    __device__ __forceinline__ void take_strip(int first, double (&strip)[2][4]) const
    {
        const S *b = given(room.b) + (first + row) * room.b_line + first_column() + 2 * t;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const pair both = *(const pair *)(b + e % 2 * 8 * room.b_line + e / 2 * 8);
            strip[e / 2][e % 2 * 2] = both.x;
            strip[e / 2][e % 2 * 2 + 1] = both.y;
        }
    }

    /* They become those of Z; sums: of magnitudes, and of the check's lines. */
    __device__ __forceinline__ void update_strip(int first, double (&strip)[2][4],
                                                 const double (&right)[2][Tiles][2], S *to,
                                                 bool bad, double (&sums)[1 + tried][4]) const
    {
        const double *gr = reals(room.y) + (first + row) * room.g_line + 2 * t;
        const double *weights = reals(room.weights) + first + row;
#pragma unroll
        for (int c = 0; c < Tiles; c++) {
            const double2 low = *(const double2 *)(gr + c * 8);
            const double2 high = *(const double2 *)(gr + 8 * room.g_line + c * 8);
            const double left[4] = {low.x, high.x, low.y, high.y};
            cuda__multiply_add(strip[0], left, right[0][c]);
            cuda__multiply_add(strip[1], left, right[1][c]);
        }
#pragma unroll
        for (int e = 0; e < 4 && to; e++)
            store(to, first + e % 2 * 8 + row, first_column() + e / 2 * 8 + 2 * t,
                  strip[e / 2][e % 2 * 2], strip[e / 2][e % 2 * 2 + 1], bad);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int q = e / 4 * 2 + e % 2, down = e / 2 % 2 * 8;
            const double value = strip[e / 4][e % 4];
            sums[0][q] += fabs(value);
#pragma unroll
            for (int l = 0; l < tried; l++)
                sums[1 + l][q] = fma(weights[l * room.order + down], value, sums[1 + l][q]);
        }
    }

    /* T Z of the warp's columns, the size of the largest one, and its part of (T Z) X. */
    __device__ __forceinline__ void keep_sums(double (&sums)[1 + tried][4]) const
    {
        const int q = (lane >> 4 & 1) * 2 + (lane >> 3 & 1);
        double *tz = reals(room.tz) + first_column();
        double thin[Tiles][4] = {};
#pragma unroll
        for (int l = 0; l <= tried; l++) {
            cuda__ism_halve<2, CUDA__WARP / 2>(sums[l], lane);
            sums[l][0] += __shfl_xor_sync(CUDA__ALL, sums[l][0], 4);
            if (l > 0 && lane / 4 % 2 == 0)
                tz[(l - 1) * room.order + q / 2 * 8 + t * 2 + q % 2] = sums[l][0];
        }
        const double size = cuda__ism_warp_largest(sums[0][0]);
        if (lane == 0)
            result().size_z[warp] = size;
        __syncwarp();
#pragma unroll
        for (int step = 0; step < slab; step += 8) {
            const double *of = tz + g * room.order + step + t;
            const S *x = given(room.x) + (first_column() + step + t) * room.x_line + g;
            const bool is = g < tried;
            const double left[4] = {is ? of[0] : 0, 0, is ? of[4] : 0, 0};
#pragma unroll
            for (int c = 0; c < Tiles; c++) {
                const double right[2] = {(double)x[c * 8], (double)x[4 * room.x_line + c * 8]};
                cuda__multiply_add(thin[c], left, right);
            }
        }
        double *parts = reals(room.parts) + (warp * tried + g) * wide + 2 * t;
#pragma unroll
        for (int c = 0; c < Tiles; c++) {
            if (g < tried)
                *(double2 *)(parts + c * 8) = make_double2(thin[c][0], thin[c][1]);
        }
    }

    /* The warp's columns of Z, which go to `to`. next: the inverse that is copied in. */
    __device__ __forceinline__ void update(const S *next, S *to) const
    {
        const bool bad = result().bad != 0;
        const double *k = reals(room.k) + 2 * t * room.k_line + first_column() + g;
        double right[2][Tiles][2], sums[1 + tried][4] = {}, strip[2][2][4];
#pragma unroll
        for (int e = 0; e < 4 * Tiles; e++)
            right[e / 2 % 2][e / 4][e % 2] = k[(e / 4 * 8 + e % 2) * room.k_line + e / 2 % 2 * 8];
        take_strip(0, strip[0]);
        for (int first = 0; first < room.order; first += slab) {
            __syncwarp();
            if (next)
                fetch_strip(next, first);
            if (first + slab < room.order)
                take_strip(first + slab, strip[1]);
            update_strip(first, strip[0], right, to, bad, sums);
#pragma unroll
            for (int e = 0; e < 8; e++)
                strip[0][e / 4][e % 4] = strip[1][e / 4][e % 4];
        }
        keep_sums(sums);
    }

    /* ---- The check ---- */

    /* (T Z) X, of which every warp has left its part. */
    __device__ __forceinline__ void find_thin() const
    {
        const double *parts = reals(room.parts) + threadIdx.x;
        double sum = 0;
        if ((int)threadIdx.x >= tried * wide)
            return;
        for (int w = 0; w < room.warps; w++)
            sum += parts[w * tried * wide];
        reals(room.thin)[threadIdx.x] = sum;
    }

    /* The largest magnitude of T (B - Z M): threads have a number each. */
    __device__ __forceinline__ void find_error() const
    {
        const int line = (int)threadIdx.x / room.order, j = (int)threadIdx.x % room.order;
        const double *k = reals(room.k) + j, *thin = reals(room.thin) + line * wide;
        const double *norms = reals(room.thin) + (tried + 1) * wide;
        double sum = reals(room.tz)[line * room.order + j], met = 0;
#pragma unroll 8
        for (int l = 0; l < m; l++) {
            const double number = k[l * room.k_line];
            sum = fma(thin[l], number, sum);
            met = fma(norms[l], fabs(number), met);
        }
        double worst = fabs(k[(m + line) * room.k_line] - sum);
        worst = cuda__ism_warp_largest(worst);
        met = cuda__ism_warp_largest(met);
        if (lane == 0) {
            result().worst[warp] = worst;
            atomicMax(&result().met, (unsigned long long)__double_as_longlong(met));
        }
    }

    /* The verdict on the matrix of that turn, by one thread. */
    __device__ __forceinline__ void judge(int which) const
    {
        const cuda__ism_middle_place *place = &found()->places[which];
        cuda__ism_middle_result *of = &found()->results[which];
        cuda__ism_check check = {};
        for (int w = 0; w < room.warps; w++) {
            check.error = cuda__max_or_nan(check.error, of->worst[w]);
            check.norm_x = cuda__max_or_nan(check.norm_x, of->size_z[w]);
            check.norm_a = cuda__max_or_nan(check.norm_a, of->size_b[w]);
        }
        check.change = of->change;
        check.lost = narrow ? cuda__ism_lost<S, double>(n, n, terms_of(*of)) : of->lost;
        check.blind = cuda__ism_misses<S, double>(n, slab + room.warps,
                                                  __longlong_as_double((long long)of->met),
                                                  check.norm_a / check.norm_x, check.change);
        check.det_ratio = cuda__ism_value(of->det, of->det_exponent);
        check.bad = of->bad != 0;
        of->bad = 0;
        of->reach = of->met = 0;
        cuda__ism_judge<S>(call, place->item, place->within, check, METHOD_ALGORITHM_BLOCK);
    }

    /* ---- All of it ---- */

    /* R. The warp's G waits in shared memory where an inversion takes all registers. */
    __device__ __forceinline__ void invert_capacitance()
    {
        double *kept = reals(room.kept) + lane;
#pragma unroll
        for (int e = 0; keeps && e < Tiles * 4; e++)
            kept[e * CUDA__WARP] = z[e / 4][e % 4];
        cuda__ism_pivot_block<wide>(reals(room.c), room.c_line, m, lane, &result().det,
                                    &result().det_exponent);
#pragma unroll
        for (int e = 0; keeps && e < Tiles * 4; e++)
            z[e / 4][e % 4] = kept[e * CUDA__WARP];
    }

    /* What single warps do while others wait. judges: the matrix before is due. */
    __device__ __forceinline__ void invert(int64_t next, bool judges)
    {
        const int last = room.warps - 1;
        if (warp == 0)
            invert_capacitance();
        if (warp == 1)
            measure_change();
        if (last <= 2 ? warp == last : warp > 1 && warp < last)
            measure_reach(last <= 2 ? 0 : warp - 2, last <= 2 ? 1 : last - 2);
        if (warp == last && lane == 0) {
            if (judges)
                judge(turn ^ 1);
            if (next < call.matrices)
                find(next, turn ^ 1);
        }
    }

    /* The matrix that was fetched; `next` begins to be fetched meanwhile. */
    __device__ __forceinline__ void run(int64_t next, bool judges)
    {
        const cuda__ism_middle_place *places = found()->places;
        const bool follows = next < call.matrices;
        cuda__copy_arrive();
        __syncthreads();
        meet();
        __syncthreads();
        multiply_lines();
        __syncthreads();
        invert(next, judges);
        __syncthreads();
        apply_r();
        __syncthreads();
        update(follows ? (const S *)places[turn ^ 1].b : nullptr, (S *)places[turn].inverse);
        __syncthreads();
        if (follows)
            fetch_y(turn ^ 1);
        find_thin();
        __syncthreads();
        if (follows)
            fetch_x(turn ^ 1);
        find_error();
        if constexpr (!narrow)
            find_lost();
    }

    /* Matrices `index` and every `step` more. */
    __device__ __forceinline__ void run_all(int64_t index, int64_t step)
    {
        bool judges = false;
        begin(index);
        fetch(0);
        for (; index < call.matrices; index += step, turn ^= 1, judges = true)
            run(index + step, judges);
        __syncthreads();
        if (threadIdx.x == 0 && judges)
            judge(turn ^ 1);
    }
};

#endif
