/* gpu/cuda/lu_small/recover.cu: unverified inverses are made anew (lu_small.h).
 *
 * Element growth under partial pivoting spoils the inverses of some matrices (Wilkinson's, Wright's
 * and Foster's), though the matrices may be well conditioned. Under complete pivoting elements
 * hardly grow. Both residuals of the new inverse, I - X A and I - A X, are measured, and one that
 * breaks the contract is refused. None is known: of 200,000 matrices, graded ones and of every
 * spread of singular values, the ratios were below 0.3 at all orders. So no Newton's step follows;
 * X + (I - X A) X, rounded, would spoil I - A X in any case, by the condition number. The inverse
 * of a matrix that is symmetric to the bit is made so before it is measured.
 *
 * A zero pivot of a matrix that was scaled down, or whose numbers are far apart, is handled here
 * too: the matrix is taken as it is, and partial pivoting must find the zero again.
 *
 * Scaling is not singularity: a matrix with INFO 1 to n + 1, recovered or not, is inverted once
 * more as S = R A C, R and C being the powers of two that equilibrate it. Where S is good A^-1 is
 * C S^-1 R, INFO 0 unless that overflows, and RCOND that of A as sent. Else the first answer stays.
 *
 * A warp takes 32 matrices of the batch, reads their INFO, and recovers the unverified ones in
 * turn, in shared memory: lane j has column j. Threads: any, as lu_small.h. Cost: rare; some n^3
 * operations at the pace of shared memory.
 */
#include "gpu/cuda/lu_small/lu_small.h"

#include "gpu/cuda/base/equilibrate.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/stage.cuh"

const int RECOVER_LINE = CUDA_SMALL_N_MAX;
/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
const float RECOVER_RATIO_ACCEPTED = 14;
const int RECOVER_GROWN = 8; /* of a pivot, as inverse_rows.cuh's */

template <typename T> struct cuda__recover_memory {
    T a[CUDA_SMALL_N_MAX * RECOVER_LINE],
        x[CUDA_SMALL_N_MAX * RECOVER_LINE]; /* n x n, rows RECOVER_LINE apart */
    T column[CUDA_SMALL_N_MAX];
    int rows[CUDA_SMALL_N_MAX], columns[CUDA_SMALL_N_MAX]; /* of the pivots, as exchanged */
    int exponents[2][CUDA_SMALL_N_MAX];                    /* of R and C */
};

/* One matrix and the warp that recovers it. */
template <typename T> struct cuda__recovery {
    typedef cuda__real<T> real;

    cuda__recover_memory<T> *of;
    int n, lane;
    T norm, factor; /* |factor A|; factor is a power of two, and x the inverse of factor A */

    __device__ bool mine() const
    {
        return lane < n;
    }

    /* NaN where there is one. */
    static __device__ T largest_of(T value)
    {
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            T other = __shfl_xor_sync(CUDA__ALL, value, reach);
            value = other > value || isnan(other) ? other : value;
        }
        return value;
    }

    /* The 1-norm; NaN where there is one. */
    __device__ T norm_of(const T *m, T by) const
    {
        T sum = 0;
        for (int i = 0; mine() && i < n; i++)
            sum += fabs(m[i * RECOVER_LINE + lane] * by);
        return largest_of(sum);
    }

    __device__ void read(const T *from)
    {
        for (int i = 0; mine() && i < n; i++)
            of->a[i * RECOVER_LINE + lane] = from[i * n + lane];
        __syncwarp();
    }

    /* The power of two that suits A, which is finite. */
    __device__ T suitable() const
    {
        T size = norm_of(of->a, 1);
        if (!(size < real::huge))
            return real::lower;
        return size < real::tiny && size > 0 ? real::raise : T(1);
    }

    /* x and a become `by` times A. */
    __device__ void scale(T by)
    {
        factor = by;
        norm = norm_of(of->a, factor);
        for (int i = 0; mine() && i < n; i++)
            of->x[i * RECOVER_LINE + lane] = of->a[i * RECOVER_LINE + lane] *= factor;
        __syncwarp();
    }

    /* The first largest magnitude of the rows and columns from k on; false when all are zero. */
    __device__ bool choose(int k) const
    {
        T largest = 0;
        int at = k * RECOVER_LINE + k;
        for (int i = k; mine() && lane >= k && i < n; i++) {
            T magnitude = fabs(of->x[i * RECOVER_LINE + lane]);
            at = magnitude > largest ? i * RECOVER_LINE + lane : at;
            largest = magnitude > largest ? magnitude : largest;
        }
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            T other = __shfl_xor_sync(CUDA__ALL, largest, reach);
            int place = __shfl_xor_sync(CUDA__ALL, at, reach);
            bool better = other > largest || (other == largest && place < at);
            at = better ? place : at;
            largest = better ? other : largest;
        }
        if (lane == 0) {
            of->rows[k] = at / RECOVER_LINE;
            of->columns[k] = at % RECOVER_LINE;
        }
        __syncwarp();
        return largest > 0;
    }

    __device__ void exchange(T *one, T *other) const
    {
        T old = *one;
        if (mine()) {
            *one = *other;
            *other = old;
        }
        __syncwarp();
    }

    __device__ void exchange_rows(int one, int other) const
    {
        exchange(of->x + one * RECOVER_LINE + lane, of->x + other * RECOVER_LINE + lane);
    }

    __device__ void exchange_columns(int one, int other) const
    {
        exchange(of->x + lane * RECOVER_LINE + one, of->x + lane * RECOVER_LINE + other);
    }

    /* One step of Gauss-Jordan elimination in place, with the pivot at (k, k). */
    __device__ void eliminate(int k) const
    {
        of->column[lane] = mine() ? of->x[lane * RECOVER_LINE + k] : T(0);
        __syncwarp();
        T *at = of->x + lane;
        T entry = mine() ? (lane == k ? T(1) : at[k * RECOVER_LINE]) / of->column[k] : T(0);
        for (int i = 0; mine() && i < n; i++)
            at[i * RECOVER_LINE] =
                i == k ? entry
                       : fma(-of->column[i], entry, lane == k ? T(0) : at[i * RECOVER_LINE]);
        __syncwarp();
    }

    /* x = the inverse of factor A; false when a pivot is zero. */
    __device__ bool invert() const
    {
        for (int k = 0; k < n; k++) {
            if (!choose(k))
                return false;
            exchange_rows(k, of->rows[k]);
            exchange_columns(k, of->columns[k]);
            eliminate(k);
        }
        for (int k = n - 1; k >= 0; k--) {
            exchange_rows(k, of->columns[k]);
            exchange_columns(k, of->rows[k]);
        }
        return true;
    }

    /* Column sum of I - one other, the lane's. */
    __device__ T residual(const T *one, const T *other) const
    {
        T total = 0;
        for (int i = 0; mine() && i < n; i++) {
            T sum = lane == i;
            for (int k = 0; k < n; k++)
                sum = fma(-one[i * RECOVER_LINE + k], other[k * RECOVER_LINE + lane], sum);
            total += fabs(sum);
        }
        return total;
    }

    /* x = (x + x^T) / 2 where A is symmetric to the bit. */
    __device__ void keep_symmetry() const
    {
        bool differs = false;
        for (int i = 0; mine() && i < lane; i++)
            differs =
                differs || !(of->a[i * RECOVER_LINE + lane] == of->a[lane * RECOVER_LINE + i]);
        if (__any_sync(CUDA__ALL, differs))
            return;
        for (int i = 0; mine() && i < lane; i++) {
            T &upper = of->x[i * RECOVER_LINE + lane], &lower = of->x[lane * RECOVER_LINE + i];
            upper = lower = cuda__mean(lower, upper);
        }
        __syncwarp();
    }

    /* Do both residuals keep the contract? False where x is not finite. */
    __device__ bool is_good() const
    {
        const T left = largest_of(residual(of->x, of->a));
        const T right = largest_of(residual(of->a, of->x));
        const T unit = (T)n * real::eps, size = norm_of(of->x, 1);
        return left / unit / norm / size <= RECOVER_RATIO_ACCEPTED &&
               right / unit / norm / size <= RECOVER_RATIO_ACCEPTED;
    }

    /* Are all entries of factor x in the range? Their sums need not be. */
    __device__ bool fits() const
    {
        T largest = 0;
        for (int i = 0; mine() && i < n; i++)
            largest = fmax(largest, fabs(of->x[i * RECOVER_LINE + lane] * factor));
        return largest_of(largest) <= real::largest;
    }

    /* invert(); of A as it is where, scaled down, a small pivot has vanished or has no reciprocal
     * any more. The norm may then overflow: RCOND is 0. */
    __device__ bool invert_scaled(const T *from)
    {
        read(from);
        scale(suitable());
        bool inverted = invert();
        if (factor != real::lower || (inverted && norm_of(of->x, 1) <= real::largest))
            return inverted;
        __syncwarp();
        read(from);
        scale(1);
        return invert();
    }

    /* The first largest magnitude of column k from row k on; *row: its row. */
    __device__ T choose_row(int k, int *row) const
    {
        T size = mine() && lane >= k ? fabs(of->x[lane * RECOVER_LINE + k]) : T(-1);
        size = size <= real::largest ? size : real::largest; /* a NaN is no zero */
        *row = lane;
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            T other = __shfl_xor_sync(CUDA__ALL, size, reach);
            int place = __shfl_xor_sync(CUDA__ALL, *row, reach);
            bool better = other > size || (other == size && place < *row);
            *row = better ? place : *row;
            size = better ? other : size;
        }
        return size;
    }

    /* The step in which LU with partial pivoting of A, not scaled down, finds a zero, from 1; 0: in
     * none, or a pivot before it has no reciprocal. grown: a pivot before it is so far beyond A
     * that growth may have made the zero. x is used up. */
    __device__ int find_zero(const T *from, bool *grown)
    {
        read(from);
        scale(suitable() == real::raise ? real::raise : T(1));
        for (int k = 0; k < n; k++) {
            int row;
            T size = choose_row(k, &row);
            if (size == 0)
                return k + 1;
            if (!(1 / size <= real::largest))
                return 0;
            *grown = *grown || size > RECOVER_GROWN * norm;
            exchange_rows(k, row);
            T *at = of->x + lane;
            of->column[lane] =
                mine() ? of->x[lane * RECOVER_LINE + k] / of->x[k * RECOVER_LINE + k] : T(0);
            __syncwarp();
            for (int i = k + 1; mine() && lane > k && i < n; i++)
                at[i * RECOVER_LINE] =
                    fma(-of->column[i], at[k * RECOVER_LINE], at[i * RECOVER_LINE]);
            __syncwarp();
        }
        return 0;
    }

    /* Stores factor x and RCOND; returns INFO. found_zero: partial pivoting seemed to find a zero.
     */
    __device__ int recovered(const cuda__place<T> &place, bool found_zero)
    {
        bool grown = false;
        int zero = found_zero ? find_zero(place.a, &grown) : 0;
        bool inverted = (!zero || grown) && invert_scaled(place.a);
        if (inverted)
            keep_symmetry();
        bool good = inverted && is_good();
        zero = inverted ? 0 : found_zero ? zero : find_zero(place.a, &grown);
        T size = norm_of(of->x, 1);
        bool known = size > 0 && size <= real::largest && fits();
        T rcond = known ? 1 / norm / size : T(0);
        /* What is neither good nor singular cannot be had. */
        bool none = !inverted || (!good && rcond >= real::eps);
        int info = zero ? zero : none || !(rcond >= real::eps) ? n + 1 : 0;
        T *to = place.result;
        for (int i = 0; to && mine() && i < n; i++)
            to[i * n + lane] = none ? real::nan() : of->x[i * RECOVER_LINE + lane] * factor;
        if (lane == 0 && place.extra)
            ((T *)place.extra)[place.within] = none ? T(0) : rcond;
        return info;
    }

    /* The answer by S, if that is good. */
    __device__ bool is_answered_equilibrated(const cuda__place<T> &place)
    {
        const int *rows = of->exponents[0], *columns = of->exponents[1];
        const cuda__equilibration<T, CUDA__WARP> equilibration = {
            of->a, RECOVER_LINE, n, of->exponents[0], of->exponents[1], of->rows, of->columns};
        read(place.a);
        if (!equilibration.run())
            return false;
        const T by = suitable(), sent = norm_of(of->a, by);
        for (int i = 0; mine() && i < n; i++) {
            const int at = i * RECOVER_LINE + lane;
            of->x[at] = of->a[at] = cuda__times_two_to(of->a[at], rows[i] + columns[lane]);
        }
        __syncwarp();
        factor = 1;
        norm = norm_of(of->a, 1);
        if (!invert())
            return false;
        keep_symmetry();
        if (!is_good() || !(1 / norm / norm_of(of->x, 1) >= real::eps))
            return false;
        for (int i = 0; mine() && i < n; i++) {
            const int at = i * RECOVER_LINE + lane;
            of->x[at] = cuda__times_two_to(of->x[at], columns[i] + rows[lane]);
            if (place.result)
                place.result[i * n + lane] = of->x[at];
        }
        const bool known = fits();
        /* In an order that leaves the range at the end alone. */
        const T rcond = known ? by / sent / norm_of(of->x, real::lower) * real::lower : T(0);
        if (lane == 0 && place.extra)
            ((T *)place.extra)[place.within] = rcond;
        if (lane == 0)
            place.info[place.within] = known ? 0 : n + 1;
        return true;
    }

    /* What is done about INFO below -1. */
    __device__ void answer(const cuda__place<T> &place)
    {
        int info = place.info[place.within];
        __syncwarp();
        if (info > CUDA_INFO_AWAITING(n))
            info -= CUDA_INFO_AWAITING(n);
        else
            info = recovered(place, info > CUDA_INFO_UNVERIFIED);
        __syncwarp();
        if (!(info > 0 && is_answered_equilibrated(place)) && lane == 0)
            place.info[place.within] = info;
    }
};

static __device__ bool cuda__is_unverified(const cuda_batch &batch, int64_t index)
{
    if (index >= batch.matrices)
        return false;
    const cuda_item *item = batch.items + cuda__find_item(batch, index);
    return item->info && item->info[index - item->first] < -1;
}

template <typename T>
__global__ void __launch_bounds__(CUDA__WARP) cuda__recover_kernel(const cuda_batch batch, int n)
{
    __shared__ cuda__recover_memory<T> memory;
    int lane = threadIdx.x;
    for (int64_t first = (int64_t)blockIdx.x * CUDA__WARP; first < batch.matrices;
         first += (int64_t)gridDim.x * CUDA__WARP) {
        unsigned left = __ballot_sync(CUDA__ALL, cuda__is_unverified(batch, first + lane));
        for (; left; left &= left - 1) {
            cuda__place<T> place = cuda__find<T>(batch, first + __ffs((int)left) - 1, n * n);
            struct cuda__recovery<T> recovery = {
                &memory, n, lane
            };
            recovery.answer(place);
            __syncwarp();
        }
    }
}

cudaError_t cuda_recover_small(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               cudaStream_t stream)
{
    const int64_t most = INT32_MAX;
    if (precision < 0 || precision >= PRECISION_COUNT || n < 1 || n > CUDA_SMALL_N_MAX)
        return cudaErrorInvalidValue;
    if (batch->matrices < 0 || (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    int64_t blocks = (batch->matrices + CUDA__WARP - 1) / CUDA__WARP;
    if (blocks == 0)
        return cudaSuccess;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    return cuda__start(precision == PRECISION_FP32 ? cuda__recover_kernel<float>
                                                   : cuda__recover_kernel<double>,
                       grid, CUDA__WARP, 0, stream, *batch, (int)n);
}
