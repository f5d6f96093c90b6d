/* gpu/cuda/ism/middle.cuh: the fused update of known inverses of middle orders on the tensor cores,
 * in FP64 whatever the precision of what is given: A0^-1 is read once, the inverse written once.
 *
 * A block has a matrix in its shared memory, and a warp 16 columns of it and 16 rows. With B =
 * A0^-1 and T the probe vectors of the check
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

#include "gpu/cuda/ism/check.cuh"
#include "gpu/cuda/ism/device.cuh"
#include "gpu/cuda/ism/middle_room.h"
#include "gpu/cuda/ism/pivot.cuh"
#include "gpu/cuda/ism/team.cuh"

/* ---- What is given ---- */

/* A block of threads: where its shared memory is, and how a matrix comes into it. S: of what is
 * given and of the answer. */
template <typename S> struct cuda__ism_middle_block {
    static constexpr int slab = CUDA__ISM_MIDDLE_SLAB, probes = CUDA__ISM_MIDDLE_PROBES;

    const cuda__ism_call &call;
    const cuda__ism_middle_room &room;
    unsigned char *memory;
    int n, m, threads, warp, lane, g, t; /* g, t: the lane's row and pair of columns in a tile */
    int row;  /* of eight: some are exchanged in FP64, against conflicts */
    int turn; /* which place and result are the matrix's */

    __device__ __forceinline__ S *given(int place) const
    {
        return (S *)(memory + place);
    }

    __device__ __forceinline__ double *reals(int place) const
    {
        return (double *)(memory + place);
    }

    __device__ __forceinline__ cuda__ism_middle_found *found() const
    {
        return (cuda__ism_middle_found *)(memory + room.found);
    }

    __device__ __forceinline__ cuda__ism_middle_result &result() const
    {
        return found()->results[turn];
    }

    __device__ __forceinline__ int first_column() const
    {
        return warp * slab;
    }

    /* Calls f(row, column, number) for what is the thread's of n x m numbers. */
    template <typename F> __device__ __forceinline__ void each_thin(F f) const
    {
        int i = (int)threadIdx.x / m, j = (int)threadIdx.x % m;
        const int down = threads / m, over = threads % m;
        for (int e = (int)threadIdx.x; e < n * m; e += threads) {
            f(i, j, e);
            i += down + (j + over >= m ? 1 : 0);
            j += over - (j + over >= m ? m : 0);
        }
    }

    /* By one thread. */
    __device__ __forceinline__ void find(int64_t index, int which) const
    {
        const int64_t square = (int64_t)n * n, thin = (int64_t)n * m;
        cuda__ism_middle_place place;
        const cuda_tensors *item = cuda__ism_item(call, index, &place.within);
        S *inverse = (S *)item->outputs[METHOD_ISM_INVERSE];
        place.item = item;
        place.b = (const S *)item->inputs[METHOD_ISM_A0_INVERSE] + place.within * square;
        place.x = (const S *)item->inputs[METHOD_ISM_X] + place.within * thin;
        place.y = (const S *)item->inputs[METHOD_ISM_Y] + place.within * thin;
        place.inverse = inverse ? inverse + place.within * square : nullptr;
        found()->places[which] = place;
    }

    __device__ __forceinline__ void fetch_x(int which) const
    {
        const S *from = (const S *)found()->places[which].x;
        each_thin([&](int i, int j, int e) {
            cuda__copy_async<sizeof(S)>(given(room.x) + i * room.x_line + j, from + e);
        });
    }

    /* Y, with the check's probe vectors next to it, and zeros below it. */
    __device__ __forceinline__ void fetch_y(int which) const
    {
        const S *from = (const S *)found()->places[which].y;
        S *y = given(room.y);
        each_thin([&](int i, int j, int e) {
            cuda__copy_async<sizeof(S)>(y + i * room.y_line + j, from + e);
        });
        for (int e = (int)threadIdx.x; e < probes * room.order; e += threads)
            y[e / probes * room.y_line + m + e % probes] =
                (S)reals(room.weights)[e % probes * room.order + e / probes];
        for (int e = (int)threadIdx.x; e < (room.order - n) * m; e += threads)
            y[(n + e / m) * room.y_line + e % m] = 0;
    }

    /* The warp's columns of 16 rows of B, `Width` numbers at a time. */
    template <int Width> __device__ __forceinline__ void copy_strip(const S *from, int first) const
    {
        constexpr int pieces = slab / Width, step = CUDA__WARP / pieces;
        const int j = first_column() + lane % pieces * Width;
#pragma unroll
        for (int i = 0; i < slab; i += step) {
            int r = first + i + lane / pieces;
            if (r < n && j < n)
                cuda__copy_async<Width * sizeof(S)>(given(room.b) + r * room.b_line + j,
                                                    from + r * n + j);
        }
    }

    __device__ __forceinline__ void fetch_strip(const S *from, int first) const
    {
        if (n * sizeof(S) % 16 == 0 && (uintptr_t)from % 16 == 0)
            copy_strip<cuda__real<S>::width>(from, first);
        else
            copy_strip<1>(from, first);
    }

    /* Zeros to all that is filled up, and the check's probe vectors. */
    __device__ __forceinline__ void begin(int64_t index) const
    {
        for (int e = (int)threadIdx.x; e < room.bytes / 16; e += threads)
            ((double2 *)memory)[e] = make_double2(0, 0);
        __syncthreads();
        for (int e = (int)threadIdx.x; e < probes * n; e += threads)
            reals(room.weights)[e / n * room.order + e % n] =
                (double)cuda__ism_weight(n, e % n, e / n);
        if (threadIdx.x == 0)
            find(index, 0);
        __syncthreads();
    }

    __device__ __forceinline__ void fetch(int which) const
    {
        const S *from = (const S *)found()->places[which].b;
        for (int first = 0; first < room.order; first += slab)
            fetch_strip(from, first);
        fetch_y(which);
        fetch_x(which);
    }
};

/* ---- What the check needs: |X K|, and what lost.cuh takes ---- */

/* A call of its own: the kernel's loops would have fewer registers. */
template <typename S>
static __device__ __noinline__ double cuda__ism_middle_loss(int n, int m, int j, const S *b,
                                                            const S *x, const S *y, const double *k,
                                                            int k_line)
{
    return cuda__ism_loss_of<double>(n, m, j, b, x, y, k, k_line);
}

template <typename S> struct cuda__ism_middle_measures : cuda__ism_middle_block<S> {
    typedef cuda__ism_middle_block<S> block;
    using block::call;
    using block::found;
    using block::g;
    using block::given;
    using block::lane;
    using block::m;
    using block::n;
    using block::probes;
    using block::reals;
    using block::result;
    using block::room;
    using block::t;
    using block::turn;
    using block::warp;
    /* FP32 has digits to spare: its K is added up at once, and what that loses is never found out.
     */
    static constexpr bool narrow = sizeof(S) < sizeof(double);

    /* |X K|, by a warp. */
    __device__ __forceinline__ void measure_change() const
    {
        const S *x = given(room.x);
        const double *line = reals(room.thin) + probes * room.wide, *k = reals(room.k);
        double change = 0;
        cuda__ism_key best = {0, 0};
        for (int j = lane; j < n; j += CUDA__WARP) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < m; l++)
                product = fma(line[l], k[l * room.k_line + j], product);
            best.see((unsigned long long)__double_as_longlong(fabs(product)) + 1, j);
        }
        best = cuda__ism_warp_best(best);
        for (int i = lane; i < n; i += CUDA__WARP) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < m; l++)
                product =
                    fma((double)x[i * room.x_line + l], k[l * room.k_line + best.at], product);
            change += fabs(product);
        }
        change = cuda__warp_sum(change);
        if (lane == 0)
            result().change = change;
    }

    /* The norm of the column of X that is the lane's: lane, or lane less 8 or 16 and so on. Lanes
     * share the rows of one that is theirs. */
    __device__ __forceinline__ double norm_of_column() const
    {
        const int width = m > 16 ? 32 : m > 8 ? 16 : 8, parts = CUDA__WARP / width;
        const S *x = given(room.x) + lane % width;
        double sum = 0;
#pragma unroll 4
        for (int i = lane / width; i < room.order; i += parts)
            sum += fabs((double)x[i * room.x_line]);
        for (int reach = CUDA__WARP / 2; reach >= width; reach /= 2)
            sum += __shfl_xor_sync(CUDA__ALL, sum, reach);
        return sum;
    }

    /* The largest row of |Y| times the norms of X's columns, of the rows that are a warp's: number
     * `share` of `shares`. */
    __device__ __forceinline__ void measure_reach(int share, int shares) const
    {
        const S *y = given(room.y);
        const double norm = norm_of_column();
        if (share == 0 && lane < m)
            reals(room.thin)[(probes + 1) * room.wide + lane] = norm;
        double largest = 0;
        for (int first = CUDA__WARP * share; first < n; first += CUDA__WARP * shares) {
            const int i = first + lane < n ? first + lane : n - 1;
            double row = 0;
#pragma unroll 4
            for (int c = 0; c < m; c++)
                row =
                    fma(__shfl_sync(CUDA__ALL, norm, c), fabs((double)y[i * room.y_line + c]), row);
            largest = cuda__max_or_nan(largest, row);
        }
        largest = cuda__ism_warp_largest(largest);
        if (lane == 0)
            atomicMax(&result().reach, (unsigned long long)__double_as_longlong(largest));
    }

    /* What the terms of a column of X K come to at most. */
    __device__ __forceinline__ double terms_of(const cuda__ism_middle_result &of) const
    {
        double norm = 0;
        for (int w = 0; w < room.warps; w++)
            norm = cuda__max_or_nan(norm, of.size_b[w]);
        return __longlong_as_double((long long)of.reach) * norm;
    }

    /* By how many eps X K is off. All threads call, once what it takes was written and a barrier
     * passed; K is as it was left. */
    __device__ __forceinline__ void find_lost() const
    {
        const cuda__ism_middle_place &place = found()->places[turn];
        cuda__ism_middle_result &of = result();
        const double terms = terms_of(of);
        double lost = cuda__ism_lost<S, double>(n, block::slab, terms);
        if (cuda__ism_cancels(n, lost, of.change)) {
            const int j = (int)threadIdx.x;
            double loss = 0;
            if (j < n)
                loss = cuda__ism_middle_loss(n, m, j, (const S *)place.b, (const S *)place.x,
                                             (const S *)place.y, reals(room.k) + j, room.k_line);
            loss = cuda__ism_warp_largest(loss);
            __syncthreads();
            if (threadIdx.x == 0)
                of.reach = 0;
            __syncthreads();
            if (lane == 0)
                atomicMax(&of.reach, (unsigned long long)__double_as_longlong(loss));
            __syncthreads();
            loss = __longlong_as_double((long long)of.reach);
            lost = cuda__ism_lost_by<S, double>(n, loss, terms);
        }
        if (threadIdx.x == 0)
            of.lost = lost;
    }
};

/* ---- The update ---- */

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
    using block::probes;
    using block::reals;
    using block::result;
    using block::room;
    using block::row;
    using block::slab;
    using block::t;
    using block::terms_of;
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
            if (l * 8 >= m + probes)
                break;
            const bool is = l * 8 + g < m + probes;
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
        const int lines = m + probes > wide ? m + probes : wide;
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
        double largest = 0;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            double sum = sizes[j] + __shfl_xor_sync(CUDA__ALL, sizes[j], 1);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
            largest = cuda__max_or_nan(largest, sum);
        }
        largest = cuda__ism_warp_largest(largest);
        if (lane == 0)
            result().size_b[warp] = largest;
        /* A sum that is finite is one of finite numbers. */
        if (largest <= cuda__real<double>::largest)
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
            reals(room.thin)[probes * wide + c] = sum;
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

    /* They become those of Z; sums: of magnitudes, and of the check's probe vectors. */
    __device__ __forceinline__ void update_strip(int first, double (&strip)[2][4],
                                                 const double (&right)[2][Tiles][2], S *to,
                                                 bool bad, double (&sums)[1 + probes][4]) const
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
            for (int l = 0; l < probes; l++)
                sums[1 + l][q] = fma(weights[l * room.order + down], value, sums[1 + l][q]);
        }
    }

    /* T Z of the warp's columns, the size of the largest one, and its part of (T Z) X. */
    __device__ __forceinline__ void keep_sums(double (&sums)[1 + probes][4]) const
    {
        const int q = (lane >> 4 & 1) * 2 + (lane >> 3 & 1);
        double *tz = reals(room.tz) + first_column();
        double thin[Tiles][4] = {};
#pragma unroll
        for (int l = 0; l <= probes; l++) {
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
            const bool is = g < probes;
            const double left[4] = {is ? of[0] : 0, 0, is ? of[4] : 0, 0};
#pragma unroll
            for (int c = 0; c < Tiles; c++) {
                const double right[2] = {(double)x[c * 8], (double)x[4 * room.x_line + c * 8]};
                cuda__multiply_add(thin[c], left, right);
            }
        }
        double *parts = reals(room.parts) + (warp * probes + g) * wide + 2 * t;
#pragma unroll
        for (int c = 0; c < Tiles; c++) {
            if (g < probes)
                *(double2 *)(parts + c * 8) = make_double2(thin[c][0], thin[c][1]);
        }
    }

    /* The warp's columns of Z, which go to `to`. next: the inverse that is copied in. */
    __device__ __forceinline__ void update(const S *next, S *to) const
    {
        const bool bad = result().bad != 0;
        const double *k = reals(room.k) + 2 * t * room.k_line + first_column() + g;
        double right[2][Tiles][2], sums[1 + probes][4] = {}, strip[2][2][4];
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
        if ((int)threadIdx.x >= probes * wide)
            return;
        for (int w = 0; w < room.warps; w++)
            sum += parts[w * probes * wide];
        reals(room.thin)[threadIdx.x] = sum;
    }

    /* The largest magnitude of T (B - Z M): threads have a number each. */
    __device__ __forceinline__ void find_error() const
    {
        const int line = (int)threadIdx.x / room.order, j = (int)threadIdx.x % room.order;
        const double *k = reals(room.k) + j, *thin = reals(room.thin) + line * wide;
        const double *norms = reals(room.thin) + (probes + 1) * wide;
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
