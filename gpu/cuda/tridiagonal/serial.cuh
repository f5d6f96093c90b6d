/* gpu/cuda/tridiagonal/serial.cuh: the inverses of many small dominant tridiagonal matrices, a
 * thread a matrix for its O(n) numbers, and a warp a matrix for X.
 *
 * A scan (sweep.cuh) does a matrix's rows side by side, and takes some hundred times as many
 * instructions as the recurrence it stands for. Where matrices are many and small, their rows
 * follow one another, and the matrices go side by side: from above by one warp and from below by
 * another, with the formulas of sweep.cuh, on numbers of double's own range. Of the row above
 * or below, a row needs only w. What follows from both sweeps is found by a thread a row.
 *
 * X is written from shared memory. A matrix whose numbers leave the range, whose pivots disagree,
 * that is not dominant, or falls apart, is left to the kernel behind this one, which does any
 * (kernels.cuh), and so is one that is not finite. Where matrices are to be merged, that kernel
 * does it for all of them, and gets |X| and the diagonal from here.
 *
 * Memory: nine arrays of n + 2 doubles a matrix.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_SERIAL_CUH
#define GPU_CUDA_TRIDIAGONAL_SERIAL_CUH

#include "gpu/cuda/tridiagonal/solve.cuh"
#include "gpu/cuda/tridiagonal/tile.cuh"
#include "gpu/cuda/tuning/h200/tridiagonal.h"

#define CUDA__TRI_SERIAL_THREADS 256
#define CUDA__TRI_SERIAL_WARPS (CUDA__TRI_SERIAL_THREADS / CUDA__WARP)
/* Exponents of the generators that grow, and of those that are X_jj over them. */
#define CUDA__TRI_GROWING_RANGE 900
#define CUDA__TRI_FALLING_RANGE 1000

/* Arrays of a matrix. What both sweeps give takes the place of what they leave. */
enum cuda__tri_serial_array {
    CUDA__TRI_OF_SUB,
    CUDA__TRI_OF_MIDDLE,
    CUDA__TRI_OF_SUP,
    CUDA__TRI_OF_UPPER_ROW, /* f */
    CUDA__TRI_OF_LOWER_ROW, /* g */
    CUDA__TRI_OF_SHARE,     /* w from above, and from below */
    CUDA__TRI_OF_OTHER_SHARE,
    CUDA__TRI_OF_SUM, /* |f_j| of the rows above, over |f_i|; and |g_j| of those below */
    CUDA__TRI_OF_OTHER_SUM,
    CUDA__TRI_SERIAL_ARRAYS,
    CUDA__TRI_OF_UPPER_COLUMN = CUDA__TRI_OF_SHARE,
    CUDA__TRI_OF_LOWER_COLUMN = CUDA__TRI_OF_OTHER_SHARE,
    CUDA__TRI_OF_DIAGONAL = CUDA__TRI_OF_SUM
};

/* Numbers from array to array: odd, so that threads that go along one each do not collide. */
static inline __host__ __device__ int cuda__tri_serial_pitch(int n)
{
    return (n + 2) | 1;
}

/* What is known of a matrix. */
struct cuda__tri_serial_place {
    const cuda_tensors *item;
    int64_t within;
    cuda__tri_look look;
    int good;
};

/* Bytes of a matrix. */
static inline __host__ __device__ int cuda__tri_serial_bytes(int n)
{
    return CUDA__TRI_SERIAL_ARRAYS * cuda__tri_serial_pitch(n) * (int)sizeof(double) +
           (int)sizeof(cuda__tri_serial_place);
}

/* Of one matrix. Row i of an array is at i + 1; before and behind them are zeros. */
struct cuda__tri_serial_matrix {
    double *memory;
    int pitch;

    __device__ __forceinline__ double *array(int which) const
    {
        return memory + which * pitch + 1;
    }
};

/* 2^-range to 2^range, in magnitude. */
static __device__ __forceinline__ bool cuda__tri_is_within(double x, int range)
{
    unsigned high = (unsigned)__double2hiint(x) & 0x7fffffffu;
    return high - ((unsigned)(CUDA__EXPONENT_BIAS - range) << 20) < (unsigned)(2 * range) << 20;
}

/* What all rows say: |X|; how far the determinants that they have are apart; and whether the
 * numbers are in range. */
struct cuda__tri_serial_found {
    double norm, error;
    bool fits;
};

/* The rows of a matrix. */
struct cuda__tri_serial_sweeper {
    cuda__tri_serial_matrix matrix;
    int n;
    bool by_rows; /* as of the scans */

    struct row {
        double excess, left, right;
        double before, behind, middle;
        bool left_adds, right_adds;
    };

    /* One over the entry, with the sign of the pivot against it. */
    static __device__ __forceinline__ double onward(double entry, double middle)
    {
        double inverse = cuda__real<double>::reciprocal(entry);
        return middle < 0 ? inverse : -inverse;
    }

    __device__ __forceinline__ row find(int i) const
    {
        const double *sub = matrix.array(CUDA__TRI_OF_SUB) + i;
        const double *middle = matrix.array(CUDA__TRI_OF_MIDDLE) + i;
        const double *sup = matrix.array(CUDA__TRI_OF_SUP) + i;
        row r;
        r.before = sub[0];
        r.middle = middle[0];
        r.behind = sup[0];
        r.left = fabs(by_rows ? sub[0] : sup[-1]);
        r.right = fabs(by_rows ? sup[0] : sub[1]);
        r.excess = cuda__tri_excess(fabs(r.middle), r.left, r.right);
        r.left_adds = i > 0 && cuda__tri_adds(middle[-1], r.middle, sub[0], sup[-1]);
        r.right_adds = i + 1 < n && cuda__tri_adds(r.middle, middle[1], sub[1], sup[0]);
        return r;
    }

    /* A sweep, by one thread. */
    __device__ __forceinline__ void go(bool up) const
    {
        double *shares = matrix.array(up ? CUDA__TRI_OF_OTHER_SHARE : CUDA__TRI_OF_SHARE);
        double *sums = matrix.array(up ? CUDA__TRI_OF_OTHER_SUM : CUDA__TRI_OF_SUM);
        double *lines = matrix.array(up ? CUDA__TRI_OF_LOWER_ROW : CUDA__TRI_OF_UPPER_ROW);
        const int step = up ? -1 : 1, last = up ? 0 : n - 1;
        double share = 1, sum = 0, line = 1;
        row r = find(n - 1 - last);
        for (int k = 0, i = n - 1 - last; k < n; k++, i += step) {
            row next = find(i == last ? i : i + step);
            double back = up ? r.right : r.left, onto = up ? r.before : r.behind;
            bool adds = up ? r.right_adds : r.left_adds;
            shares[i] = share;
            sums[i] = sum;
            lines[i] = line;
            double s = r.excess + back * (adds ? 2 - share : share);
            double pivot = s + (up ? r.left : r.right);
            double inverse = cuda__real<double>::reciprocal(pivot);
            share = s * inverse;
            sum = (1 + sum) * (fabs(onto) * inverse);
            line *= pivot * onward(onto, r.middle);
            r = next;
        }
    }

    /* The lines of X in row i, once both sweeps are done. *pivot: from above; *whole: one over
     * X_ii. Returns *whole over the pivot from below. Times *pivot over *whole of the row before,
     * that is the ratio of the determinants that the two rows have. */
    __device__ __forceinline__ double finish(int i, double *pivot, double *whole,
                                             cuda__tri_serial_found *is) const
    {
        const row r = find(i);
        const double share = matrix.array(CUDA__TRI_OF_SHARE)[i];
        const double other = matrix.array(CUDA__TRI_OF_OTHER_SHARE)[i];
        const double f = matrix.array(CUDA__TRI_OF_UPPER_ROW)[i];
        const double g = matrix.array(CUDA__TRI_OF_LOWER_ROW)[i];
        double s = r.excess + r.left * (r.left_adds ? 2 - share : share);
        double t = r.right * (r.right_adds ? 2 - other : other);
        double upward = r.excess + t + r.left;
        *whole = s + t;
        *pivot = s + r.right;
        double x = cuda__real<double>::reciprocal(*whole), diagonal = copysign(x, r.middle);
        double column = diagonal * cuda__real<double>::reciprocal(f);
        double under = diagonal * cuda__real<double>::reciprocal(g);
        double sums = matrix.array(CUDA__TRI_OF_SUM)[i] + matrix.array(CUDA__TRI_OF_OTHER_SUM)[i];
        is->norm = fmax(is->norm, x * (1 + sums));
        is->fits = is->fits && cuda__tri_is_within(f, CUDA__TRI_GROWING_RANGE) &&
                   cuda__tri_is_within(g, CUDA__TRI_GROWING_RANGE) &&
                   cuda__tri_is_within(x, CUDA__TRI_FALLING_RANGE) &&
                   cuda__tri_is_within(column, CUDA__TRI_FALLING_RANGE) &&
                   cuda__tri_is_within(under, CUDA__TRI_FALLING_RANGE);
        matrix.array(CUDA__TRI_OF_UPPER_COLUMN)[i] = column;
        matrix.array(CUDA__TRI_OF_LOWER_COLUMN)[i] = under;
        matrix.array(CUDA__TRI_OF_DIAGONAL)[i] = diagonal;
        return *whole * cuda__real<double>::reciprocal(upward);
    }

    /* All rows, by a warp. */
    __device__ __forceinline__ cuda__tri_serial_found finish_all(int lane) const
    {
        typedef cuda__block<CUDA__WARP> warp;
        cuda__tri_serial_found is = {0, 0, true};
        double ratio = 0;                      /* pivot over whole of the row before `base` */
        double drift = 0, most = 0, least = 0; /* of the determinant, from row to row */
        for (int base = 0; base < n; base += CUDA__WARP) {
            double pivot = 0, whole = 1, off = 0;
            double own = base + lane < n ? finish(base + lane, &pivot, &whole, &is) : 0;
            double mine = pivot * cuda__real<double>::reciprocal(whole);
            double before = warp::shuffle(mine, lane > 0 ? lane - 1 : 0);
            before = lane > 0 ? before : ratio;
            if (base + lane > 0 && base + lane < n)
                off = fma(before, own, -1.0);
            off = warp::warp_scan<CUDA__WARP>(off, lane, [](double a, double b) { return a + b; });
            off += drift;
            most = fmax(most, off);
            least = fmin(least, off);
            is.fits = is.fits && off * 0 == 0;
            drift = warp::shuffle(off, CUDA__WARP - 1);
            ratio = warp::shuffle(mine, CUDA__WARP - 1);
        }
        warp all = {nullptr, 0};
        is.norm = all.largest(is.norm);
        is.error = all.largest(fmax(most - drift, drift - least));
        is.fits = __all_sync(CUDA__ALL, is.fits);
        return is;
    }
};

/* A block of threads and its matrices. */
template <typename T> struct cuda__tri_serial {
    const cuda__tri_call &call;
    cuda__tri_tiles tiles;
    cuda__tri_serial_place *places;
    double *memory;
    int64_t first; /* of the call's */
    int held, n, lane, warp;

    __device__ __forceinline__ cuda__tri_serial_matrix matrix(int k) const
    {
        int pitch = cuda__tri_serial_pitch(n);
        return {memory + k * CUDA__TRI_SERIAL_ARRAYS * pitch, pitch};
    }

    template <typename V>
    static __device__ __forceinline__ V *output(const cuda__tri_serial_place &of, int index,
                                                int64_t length)
    {
        V *data = (V *)of.item->outputs[index];
        return data ? data + of.within * length : nullptr;
    }

    /* A warp brings matrix k in, and looks at it. */
    __device__ __forceinline__ void load(int k) const
    {
        cuda__tri_serial_place *place = places + k;
        cuda__tri_serial_matrix to = matrix(k);
        double *sub = to.array(CUDA__TRI_OF_SUB), *middle = to.array(CUDA__TRI_OF_MIDDLE);
        double *sup = to.array(CUDA__TRI_OF_SUP);
        int64_t within;
        const cuda_tensors *item = cuda__tri_find(call, call.first + first + k, &within);
        const T *dl = (const T *)item->inputs[METHOD_TRIDIAGONAL_DL] + within * (n - 1);
        const T *d = (const T *)item->inputs[METHOD_TRIDIAGONAL_D] + within * n;
        const T *du = (const T *)item->inputs[METHOD_TRIDIAGONAL_DU] + within * (n - 1);
#pragma unroll 2
        for (int i = lane - 1; i <= n; i += CUDA__WARP) {
            bool in = i >= 0 && i < n;
            double below = in && i > 0 ? (double)dl[i - 1] : 0, own = in ? (double)d[i] : 0;
            double right = in && i + 1 < n ? (double)du[i] : 0;
            sub[i] = below;
            middle[i] = own;
            sup[i] = right;
        }
        __syncwarp();
        cuda__tri_look look = {0, 0, 0};
        for (int i = lane; i < n; i += CUDA__WARP)
            look = cuda__tri_both_looks(
                look, cuda__tri_look_at(sub[i], middle[i], sup[i], sup[i - 1], sub[i + 1]));
        look = cuda__block<CUDA__WARP>{nullptr, 0}.reduce(look, cuda__tri_both_looks);
        if (lane == 0)
            *place = {item, within, look, 0};
    }

    static __device__ __forceinline__ bool is_dominant(const cuda__tri_serial_place &of)
    {
        return !(of.look.flags & CUDA__TRI_NOT_FINITE) &&
               (is_by_rows(of) || !(of.look.flags & CUDA__TRI_NOT_BY_COLUMNS));
    }

    static __device__ __forceinline__ bool is_by_rows(const cuda__tri_serial_place &of)
    {
        return !(of.look.flags & CUDA__TRI_NOT_BY_ROWS);
    }

    __device__ __forceinline__ cuda__tri_serial_sweeper sweeper(int k) const
    {
        return {matrix(k), n, is_by_rows(places[k])};
    }

    /* A thread of the first warp, and one of the second, for each matrix. */
    __device__ __forceinline__ void sweep() const
    {
        if (warp < 2 && lane < held && is_dominant(places[lane]))
            sweeper(lane).go(warp == 1);
    }

    /* A warp finds matrix k's numbers, and reports. */
    __device__ __forceinline__ void solve(int k) const
    {
        cuda__tri_serial_place *place = places + k;
        cuda__tri_serial_found found = {0, 0, false};
        if (is_dominant(*place))
            found = sweeper(k).finish_all(lane);
        const bool good =
            found.fits && found.norm <= (double)cuda__real<T>::largest &&
            found.error <= CUDA__TRI_ERROR_MAX * (double)n * (double)cuda__real<T>::eps;
        if (lane > 0)
            return;
        place->good = good;
        if (call.found)
            call.found[(first + k) * (n + 1)] = good ? found.norm : -1;
        else
            call.left[first + k] = !good;
        if (good)
            report(*place, found.norm);
    }

    /* By one thread. */
    __device__ __forceinline__ void report(const cuda__tri_serial_place &place, double size) const
    {
        T rcond = cuda__tri_rcond<T>(cuda__tri_norm(place.look), cuda__normal(size, 0));
        if (int32_t *to = output<int32_t>(place, METHOD_TRIDIAGONAL_INFO, 1))
            *to = rcond < cuda__real<T>::eps ? n + 1 : 0;
        if (T *to = output<T>(place, METHOD_TRIDIAGONAL_RCOND, 1))
            *to = rcond;
        int32_t *algorithm = output<int32_t>(place, METHOD_TRIDIAGONAL_ALGORITHM, 1);
        if (algorithm && !call.found)
            *algorithm = METHOD_ALGORITHM_TWO_SWEEP;
    }

    /* ---- A warp writes what a matrix has ---- */

    __device__ __forceinline__ void write_piece(const cuda__tri_tile<T, CUDA__WARP> &tile,
                                                const cuda__tri_serial_matrix &of,
                                                int64_t piece) const
    {
        constexpr int width = cuda__tri_tile<T, CUDA__WARP>::width;
        constexpr int window = cuda__tri_tile<T, CUDA__WARP>::window;
        const cuda__tri_factors rows = {{of.array(CUDA__TRI_OF_UPPER_ROW) + tile.first_row,
                                         of.array(CUDA__TRI_OF_LOWER_ROW) + tile.first_row},
                                        of.array(CUDA__TRI_OF_DIAGONAL) + tile.first_row};
        double above[window], under[window];
        int64_t first, last, begin = tile.begin(piece);
#pragma unroll
        for (int k = 0; k < window; k++) {
            bool in = begin + k >= 0 && begin + k < n;
            above[k] = in ? of.array(CUDA__TRI_OF_UPPER_COLUMN)[begin + k] : 0;
            under[k] = in ? of.array(CUDA__TRI_OF_LOWER_COLUMN)[begin + k] : 0;
        }
        tile.find_columns(piece, &first, &last);
        tile.each_run(piece, [&](const typename cuda__tri_tile<T, CUDA__WARP>::run &r) {
            double above_picked[width], under_picked[width];
            tile.pick(above, r.shift, above_picked);
            tile.pick(under, r.shift, under_picked);
            tile.write_run(r, above_picked, under_picked, first, last, rows);
        });
    }

    __device__ __forceinline__ void write_generators(const cuda__tri_serial_matrix &of,
                                                     T *mantissas, int32_t *exponents) const
    {
        static const int lines[] = {CUDA__TRI_OF_UPPER_ROW, CUDA__TRI_OF_UPPER_COLUMN,
                                    CUDA__TRI_OF_LOWER_ROW, CUDA__TRI_OF_LOWER_COLUMN};
        typedef cuda__tri_generators<T, CUDA__WARP> generators;
#pragma unroll
        for (int line = 0; line < CUDA__TRI_LINES; line++) {
            for (int i = lane; i < n; i += CUDA__WARP) {
                cuda__number number = cuda__normal(of.array(lines[line])[i], 0);
                int32_t units = generators::units(number);
                int down = (int)number.exponent - units * CUDA__TRI_UNIT;
                if (mantissas)
                    mantissas[line * n + i] = (T)cuda__scale(number.mantissa, down);
                if (exponents)
                    exponents[line * n + i] = units;
            }
        }
    }

    /* What is wanted of matrix k besides X. */
    __device__ __forceinline__ void write_numbers(int k) const
    {
        const cuda__tri_serial_place &place = places[k];
        const cuda__tri_serial_matrix of = matrix(k);
        T *diagonal = output<T>(place, METHOD_TRIDIAGONAL_DIAGONAL, n);
        for (int i = lane; call.found && i < n; i += CUDA__WARP)
            call.found[(first + k) * (n + 1) + 1 + i] = of.array(CUDA__TRI_OF_DIAGONAL)[i];
        for (int i = lane; diagonal && !call.found && i < n; i += CUDA__WARP)
            diagonal[i] = (T)of.array(CUDA__TRI_OF_DIAGONAL)[i];
        write_generators(of, output<T>(place, METHOD_TRIDIAGONAL_GENERATORS, CUDA__TRI_LINES * n),
                         output<int32_t>(place, METHOD_TRIDIAGONAL_EXPONENTS, CUDA__TRI_LINES * n));
    }

    /* A tile of X of matrix k. */
    __device__ __forceinline__ void write_tile(int k, int number) const
    {
        int64_t entries =
            (call.rows.end - call.rows.first) * (call.columns.end - call.columns.first);
        T *x = output<T>(places[k], METHOD_TRIDIAGONAL_INVERSE, entries);
        cuda__tri_tile<T, CUDA__WARP> tile = {call, tiles, lane,
                                              cuda__tri_tile<T, CUDA__WARP>::width};
        if (!x)
            return;
        tile.place(number, x);
        tile.each_piece([&](int64_t piece) { write_piece(tile, matrix(k), piece); });
    }

    /* By all threads, together. */
    __device__ __forceinline__ void run() const
    {
        const int number = (int)tiles.number;
        for (int k = warp; k < held; k += CUDA__TRI_SERIAL_WARPS)
            load(k);
        __syncthreads();
        sweep();
        __syncthreads();
        for (int k = warp; k < held; k += CUDA__TRI_SERIAL_WARPS)
            solve(k);
        __syncthreads();
        for (int k = warp; k < held; k += CUDA__TRI_SERIAL_WARPS) {
            if (places[k].good)
                write_numbers(k);
        }
        for (int t = warp; call.writes && !call.found && t < held * number;
             t += CUDA__TRI_SERIAL_WARPS) {
            if (places[t / number].good)
                write_tile(t / number, t % number);
        }
        __syncthreads();
    }
};

#endif
