/* gpu/cuda/lu/lu.cu: the launchers of lu.h: from precision and order to kernels. */
#include "gpu/cuda/lu/lu.h"

#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/block.cuh"
#include "gpu/cuda/base/equilibrate.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/lu/strip_launch.cuh"
#include "gpu/cuda/lu/wide.cuh"

/* ---- Recovery by a block ---- */

/* Unverified inverses of orders above CUDA_SMALL_N_MAX are made anew.
 *
 * The rules are those of lu_small/recover.cu: elimination with complete pivoting, where elements
 * hardly grow; then both residuals, I - X A and I - A X, are measured, and an inverse that breaks
 * the contract is refused. None is known: of some 300 matrices of order 64 and 160, graded ones,
 * Gaussian kernels and of every spread of singular values, the ratios were below 0.03. And what has
 * INFO 1 to n + 1 is tried equilibrated. A block recovers one matrix, in the workspace: two n x n,
 * rows n apart. Its threads share rows and columns in a fixed way: the bits depend on the matrix, n
 * and the precision alone.
 *
 * Cost: rare. Some 6 n^3 operations by one multiprocessor: about 0.2 s for n = 1024.
 */

#define CUDA__LU_RECOVER_WARPS 16
#define CUDA__LU_RECOVER_THREADS (CUDA__LU_RECOVER_WARPS * CUDA__WARP)
#define CUDA__LU_RECOVER_ROWS 4 /* of a residual that are measured together */
/* The contract's ratio is 15. What is measured is off by 0.5 at most. */
#define CUDA__LU_RATIO_ACCEPTED 14

/* A block's part of the workspace. */
template <typename T> struct cuda__lu_recovery_space {
    T *a, *x;            /* n x n */
    T *column;           /* n */
    int *rows, *columns; /* of the pivots, as exchanged */
    int *exponents;      /* 2 n: of the rows and columns of S = R A C */
};

template <typename T>
static __host__ __device__ inline unsigned char *
cuda__lu_lay_out_recovery(cuda__lu_recovery_space<T> &space, unsigned char *at, int64_t n)
{
    auto take = [&at](size_t bytes) {
        unsigned char *from = at;
        at += (bytes + 255) / 256 * 256;
        return from;
    };
    space.a = (T *)take(n * n * sizeof(T));
    space.x = (T *)take(n * n * sizeof(T));
    space.column = (T *)take(n * sizeof(T));
    space.rows = (int *)take(n * sizeof(int));
    space.columns = (int *)take(n * sizeof(int));
    space.exponents = (int *)take(2 * n * sizeof(int));
    return at;
}

template <typename T> static inline size_t cuda__lu_recovery_bytes(int64_t n)
{
    cuda__lu_recovery_space<T> space;
    unsigned char *none = nullptr;
    return (size_t)(cuda__lu_lay_out_recovery(space, none, n) - none);
}

/* The largest entry seen so far, the first of equals. */
template <typename T> struct cuda__lu_best {
    T size;
    int at; /* i * n + j */

    __device__ __forceinline__ void see(T other, int place)
    {
        bool better = other > size || (other == size && place < at);
        at = better ? place : at;
        size = better ? other : size;
    }
};

/* What the block's threads share. */
template <typename T> struct cuda__lu_recover_shared {
    T max[CUDA__LU_RECOVER_WARPS];
    int at[CUDA__LU_RECOVER_WARPS];
};

/* One matrix and the block that recovers it. Every function leaves the block at a barrier. */
template <typename T> struct cuda__lu_recovery {
    typedef cuda__real<T> real;

    cuda__lu_recovery_space<T> of;
    cuda__lu_recover_shared<T> &shared;
    int n, thread, warp, lane;
    T norm, factor; /* |factor A|; factor is a power of two, and x the inverse of factor A */

    __device__ T largest_of(T value) const
    {
        return cuda__block_max<CUDA__LU_RECOVER_WARPS>(value, shared.max);
    }

    /* The 1-norm; NaN where there is one. */
    __device__ T norm_of(const T *m, T by) const
    {
        T most = 0;
        for (int j = thread; j < n; j += CUDA__LU_RECOVER_THREADS) {
            T sum = 0;
            for (int i = 0; i < n; i++)
                sum += fabs(m[(int64_t)i * n + j] * by);
            most = cuda__max_or_nan(most, sum);
        }
        return largest_of(most);
    }

    /* The power of two that suits A, which is finite. */
    __device__ T suitable(const T *from) const
    {
        T size = norm_of(from, 1);
        if (!(size < real::huge))
            return real::lower;
        return size < real::tiny && size > 0 ? real::raise : T(1);
    }

    /* x and a become `by` times A. */
    __device__ void take(const T *from, T by)
    {
        factor = by;
        for (int64_t e = thread; e < (int64_t)n * n; e += CUDA__LU_RECOVER_THREADS)
            of.x[e] = of.a[e] = from[e] * by;
        __syncthreads();
        norm = norm_of(of.a, 1);
    }

    /* ---- Complete pivoting ---- */

    /* The block's best entry; its row and column go to the notes of step k. false: all are zero. */
    __device__ bool agree(cuda__lu_best<T> best, int k) const
    {
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            T other = __shfl_xor_sync(CUDA__ALL, best.size, reach);
            best.see(other, __shfl_xor_sync(CUDA__ALL, best.at, reach));
        }
        if (lane == 0) {
            shared.max[warp] = best.size;
            shared.at[warp] = best.at;
        }
        __syncthreads();
        for (int w = 0; w < CUDA__LU_RECOVER_WARPS; w++)
            best.see(shared.max[w], shared.at[w]);
        if (thread == 0 && best.size > 0) {
            of.rows[k] = best.at / n;
            of.columns[k] = best.at % n;
        }
        __syncthreads();
        return best.size > 0;
    }

    __device__ cuda__lu_best<T> none() const
    {
        return cuda__lu_best<T>{T(0), INT32_MAX};
    }

    /* Of all entries. */
    __device__ cuda__lu_best<T> look() const
    {
        cuda__lu_best<T> best = none();
        for (int e = thread; e < n * n; e += CUDA__LU_RECOVER_THREADS)
            best.see(fabs(of.x[e]), e);
        return best;
    }

    __device__ void exchange(T *one, T *other, int step) const
    {
        for (int i = thread; one != other && i < n; i += CUDA__LU_RECOVER_THREADS) {
            T old = one[(int64_t)i * step];
            one[(int64_t)i * step] = other[(int64_t)i * step];
            other[(int64_t)i * step] = old;
        }
        __syncthreads();
    }

    __device__ void exchange_rows(int one, int other) const
    {
        exchange(of.x + (int64_t)one * n, of.x + (int64_t)other * n, 1);
    }

    __device__ void exchange_columns(int one, int other) const
    {
        exchange(of.x + one, of.x + other, n);
    }

    /* One step of Gauss-Jordan elimination in place, with the pivot at (k, k). Returns the thread's
     * best entry for the next. */
    __device__ cuda__lu_best<T> eliminate(int k) const
    {
        cuda__lu_best<T> best = none();
        T *pivot_row = of.x + (int64_t)k * n;
        for (int i = thread; i < n; i += CUDA__LU_RECOVER_THREADS)
            of.column[i] = of.x[(int64_t)i * n + k];
        __syncthreads();
        T pivot = of.column[k];
        for (int j = thread; j < n; j += CUDA__LU_RECOVER_THREADS)
            pivot_row[j] = (j == k ? T(1) : pivot_row[j]) / pivot;
        __syncthreads();
        for (int i = warp; i < n; i += CUDA__LU_RECOVER_WARPS) {
            T *row = of.x + (int64_t)i * n, m = -of.column[i];
            for (int j = lane; i != k && j < n; j += CUDA__WARP) {
                T x = fma(m, pivot_row[j], j == k ? T(0) : row[j]);
                row[j] = x;
                if (i > k && j > k)
                    best.see(fabs(x), i * n + j);
            }
        }
        __syncthreads();
        return best;
    }

    /* x = the inverse of factor A; false when a pivot is zero. */
    __device__ bool invert() const
    {
        cuda__lu_best<T> best = look();
        for (int k = 0; k < n; k++) {
            if (!agree(best, k))
                return false;
            exchange_rows(k, of.rows[k]);
            exchange_columns(k, of.columns[k]);
            best = eliminate(k);
        }
        for (int k = n - 1; k >= 0; k--) {
            exchange_rows(k, of.columns[k]);
            exchange_columns(k, of.rows[k]);
        }
        return true;
    }

    /* ---- Residuals ---- */

    /* |I - left right|. */
    __device__ T residual(const T *left, const T *right) const
    {
        T most = 0;
        for (int j = thread; j < n; j += CUDA__LU_RECOVER_THREADS) {
            T total = 0;
            for (int i = 0; i < n; i += CUDA__LU_RECOVER_ROWS) {
                int count = n - i < CUDA__LU_RECOVER_ROWS ? n - i : CUDA__LU_RECOVER_ROWS;
                const T *rows = left + (int64_t)i * n;
                T sums[CUDA__LU_RECOVER_ROWS] = {};
                for (int k = 0; k < n; k++) {
                    T x = right[(int64_t)k * n + j];
#pragma unroll
                    for (int r = 0; r < CUDA__LU_RECOVER_ROWS; r++)
                        sums[r] = fma(rows[(int64_t)(r < count ? r : 0) * n + k], x, sums[r]);
                }
#pragma unroll
                for (int r = 0; r < CUDA__LU_RECOVER_ROWS; r++)
                    total += r < count ? fabs((i + r == j ? T(1) : T(0)) - sums[r]) : T(0);
            }
            most = cuda__max_or_nan(most, total);
        }
        return largest_of(most);
    }

    /* Do both residuals keep the contract? False where x is not finite. */
    __device__ bool is_good() const
    {
        T unit = (T)n * real::eps, size = norm_of(of.x, 1);
        T left = residual(of.x, of.a) / unit / norm / size;
        T right = residual(of.a, of.x) / unit / norm / size;
        return left <= CUDA__LU_RATIO_ACCEPTED && right <= CUDA__LU_RATIO_ACCEPTED;
    }

    /* invert(); of A as it is where, scaled down, a small pivot has vanished or has no reciprocal
     * any more. The norm may then overflow: RCOND is 0. */
    __device__ bool invert_scaled(const T *from)
    {
        take(from, suitable(from));
        bool inverted = invert();
        if (factor != real::lower || (inverted && norm_of(of.x, 1) <= real::largest))
            return inverted;
        take(from, 1);
        return invert();
    }

    /* Stores factor x and RCOND; returns INFO. zero_step: where partial pivoting found a zero, or
     * 0.
     */
    __device__ int recovered(const cuda__place<T> &place, int zero_step)
    {
        bool inverted = invert_scaled(place.a), good = inverted && is_good();
        T size = norm_of(of.x, factor);
        T rcond = size > 0 && size <= real::largest ? 1 / norm / size * factor : T(0);
        /* What is neither good nor singular cannot be had. */
        bool none = !inverted || (!good && rcond >= real::eps);
        int info = !inverted && zero_step ? zero_step : none || !(rcond >= real::eps) ? n + 1 : 0;
        for (int64_t e = thread; place.result && e < (int64_t)n * n; e += CUDA__LU_RECOVER_THREADS)
            place.result[e] = none ? real::nan() : of.x[e] * factor;
        if (thread == 0 && place.extra)
            ((T *)place.extra)[place.within] = none ? T(0) : rcond;
        return info;
    }

    /* ---- Equilibrated ---- */

    /* The inverse of S, scaled back, goes to x and the result. Are all its entries in the range? */
    __device__ bool scale_back(const cuda__place<T> &place) const
    {
        const int *rows = of.exponents, *columns = of.exponents + n;
        T largest = 0;
        for (int i = warp; i < n; i += CUDA__LU_RECOVER_WARPS) {
            for (int j = lane; j < n; j += CUDA__WARP) {
                const int64_t at = (int64_t)i * n + j;
                const T x = of.x[at] = cuda__times_two_to(of.x[at], columns[i] + rows[j]);
                largest = cuda__max_or_nan(largest, fabs(x));
                if (place.result)
                    place.result[at] = x;
            }
        }
        return largest_of(largest) <= real::largest;
    }

    /* The answer by S, if that is good. */
    __device__ bool is_answered_equilibrated(const cuda__place<T> &place)
    {
        const int *rows = of.exponents, *columns = of.exponents + n;
        const cuda__equilibration<T, CUDA__LU_RECOVER_THREADS> equilibration = {
            place.a, n, n, of.exponents, of.exponents + n, of.rows, of.columns};
        if (!equilibration.run())
            return false;
        const T by = suitable(place.a), sent = norm_of(place.a, by);
        for (int i = warp; i < n; i += CUDA__LU_RECOVER_WARPS) {
            for (int j = lane; j < n; j += CUDA__WARP) {
                const int64_t at = (int64_t)i * n + j;
                of.x[at] = of.a[at] = cuda__times_two_to(place.a[at], rows[i] + columns[j]);
            }
        }
        __syncthreads();
        norm = norm_of(of.a, 1);
        if (!invert() || !is_good() || !(1 / norm / norm_of(of.x, 1) >= real::eps))
            return false;
        const bool known = scale_back(place);
        /* In an order that leaves the range at the end alone. */
        const T size = norm_of(of.x, real::lower);
        if (thread == 0 && place.extra)
            ((T *)place.extra)[place.within] = known ? by / sent / size * real::lower : T(0);
        if (thread == 0)
            place.info[place.within] = known ? 0 : n + 1;
        return true;
    }

    /* What is done about INFO below -1. */
    __device__ void answer(const cuda__place<T> &place, int info)
    {
        __syncthreads(); /* all have read it */
        if (info > CUDA_INFO_AWAITING(n))
            info -= CUDA_INFO_AWAITING(n);
        else
            info = recovered(place, info - CUDA_INFO_UNVERIFIED);
        __syncthreads();
        if (!(info > 0 && is_answered_equilibrated(place)) && thread == 0)
            place.info[place.within] = info;
    }
};

/* Blocks go round the batch; each has a part of the workspace. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_RECOVER_THREADS)
    cuda__lu_recover_kernel(const cuda_batch batch, unsigned char *space, size_t bytes, int n)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_recovery<T> recovery = {{},
                                     *(cuda__lu_recover_shared<T> *)cuda__memory,
                                     n,
                                     (int)threadIdx.x,
                                     (int)(threadIdx.x / CUDA__WARP),
                                     (int)(threadIdx.x % CUDA__WARP),
                                     0,
                                     1};
    for (int64_t index = blockIdx.x; index < batch.matrices; index += gridDim.x) {
        cuda__place<T> place = cuda__find<T>(batch, index, n * n);
        int info = place.info ? place.info[place.within] : 0;
        if (info >= -1)
            continue;
        cuda__lu_lay_out_recovery(recovery.of, space + blockIdx.x * bytes, n);
        recovery.answer(place, info);
        __syncthreads();
    }
}

/* Unverified matrices that are recovered side by side, where each takes a part of a workspace that
 * the inverse did not need. */
#define RECOVERED_TOGETHER 64
/* Up to this order a block recovers a matrix by complete pivoting; beyond, that would take too
 * long, and columns are mixed instead. */
#define RECOVERED_BY_BLOCK_N_MAX 1024
/* What a factorisation without need of a workspace asks for. */
#define ALIGN ((size_t)256)
/* Blocks that spill: more than devices have multiprocessors. */
#define SPILLS_MAX 256

/* What a method runs, by precision. */
struct middle {
    bool factor;
    struct {
        cuda__lu_strip_launcher *block;
        cuda__lu_wide_launcher *wide;
        cuda__lu_clusters *clusters;
        cuda__lu_grouper *groups; /* of an inverse */
    } of[PRECISION_COUNT];
};

static const struct middle inverse = {
    false,
    {{cuda__lu_strip_f32, cuda__lu_invert_wide_f32, cuda__lu_clusters_f32, cuda__lu_groups_f32},
     {cuda__lu_strip_f64, cuda__lu_invert_wide_f64, cuda__lu_clusters_f64, cuda__lu_groups_f64}}};

static const struct middle factor = {
    true,
    {{cuda__lu_factor_f32, cuda__lu_factor_wide_f32, cuda__lu_clusters_f32, nullptr},
     {cuda__lu_factor_f64, cuda__lu_factor_wide_f64, cuda__lu_clusters_f64, nullptr}}};

static bool takes(enum precision precision, int64_t n)
{
    return precision >= 0 && precision < PRECISION_COUNT && n > CUDA_SMALL_N_MAX &&
           n <= CUDA_MIDDLE_N_MAX;
}

static cuda__lu_strip_needs needs_of(enum precision precision, bool factors, int64_t n)
{
    bool narrow = precision == PRECISION_FP32;
    if (!factors)
        return narrow ? cuda__lu_strip_needs_of<float>(n) : cuda__lu_strip_needs_of<double>(n);
    return {narrow ? cuda__lu_block_bytes<float>(n) : cuda__lu_block_bytes<double>(n), 0};
}

/* Does a block of the current device have what a matrix takes? */
static bool is_block(enum precision precision, bool factors, int64_t n)
{
    size_t bytes = needs_of(precision, factors, n).shared_bytes;
    return bytes > 0 && bytes <= (size_t)cuda__shared_max();
}

/* Of so many blocks, how many each of the matrices gets: together no more than there are
 * multiprocessors. Results are bitwise independent of them. */
static int blocks_of_each(int most, int64_t matrices)
{
    int64_t all = cuda__multiprocessors();
    while (most > 1 && most * matrices > all)
        most /= 2;
    return most;
}

/* Has clusters eliminate the columns where the table says so. A width of 0: by groups, or the
 * current device has no cluster that holds the rows. */
static void choose_clusters(enum precision precision, int64_t n, int64_t matrices,
                            cuda__lu_manner *manner)
{
    const struct middle *method = manner->factor ? &factor : &inverse;
    cuda__lu_cluster_shape shape = precision == PRECISION_FP32
                                       ? cuda__lu_cluster_shape_of<float>(manner->factor, n)
                                       : cuda__lu_cluster_shape_of<double>(manner->factor, n);
    if (shape.width == 0)
        return;
    int most = n <= CUDA_NEAR_N_MAX ? blocks_of_each(shape.blocks, matrices) : shape.blocks;
    int padded = cuda__lu_padded(n), blocks = method->of[precision].clusters(padded, most);
    int columns = shape.width < padded ? shape.width : padded;
    manner->width = blocks > 0 ? columns : 0;
    manner->blocks = blocks;
    manner->behind = n <= CUDA_NEAR_N_MAX && matrices > 1;
}

/* May clusters take groups of columns? */
static bool takes_groups(const cuda__lu_manner *manner)
{
    return !manner->factor && !manner->recovery && manner->width == 0;
}

/* Has clusters take groups of columns where there are so few matrices that all have theirs at once.
 * Results are bitwise independent of it. */
static void choose_groups(enum precision precision, int64_t n, int64_t matrices,
                          cuda__lu_manner *manner)
{
    int most = blocks_of_each(CUDA__LU_CLUSTER_MAX, matrices);
    if (!takes_groups(manner) || most * CUDA__LU_GROUP_ROWS_MAX < n)
        return;
    manner->blocks = inverse.of[precision].groups(n, CUDA__LU_GROUP_MAX, most, matrices);
    manner->group = manner->blocks > 0 ? CUDA__LU_GROUP_MAX : 0;
}

/* But for groups. */
static cuda__lu_manner plain_manner_of(enum precision precision, bool factors, int64_t n,
                                       int64_t matrices, bool recovery)
{
    cuda__lu_manner manner = {};
    manner.factor = factors;
    manner.recovery = recovery;
    choose_clusters(precision, n, matrices, &manner);
    return manner;
}

static cuda__lu_manner manner_of(enum precision precision, bool factors, int64_t n,
                                 int64_t matrices, bool recovery)
{
    cuda__lu_manner manner = plain_manner_of(precision, factors, n, matrices, recovery);
    choose_groups(precision, n, matrices, &manner);
    return manner;
}

static cudaError_t launch(const struct middle *method, enum precision precision, int64_t n,
                          const struct cuda_batch *batch, void *workspace, size_t workspace_bytes,
                          struct cuda_products *products, cudaStream_t stream)
{
    if (!takes(precision, n) || batch->matrices < 0 ||
        (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    if (batch->matrices == 0)
        return cudaSuccess;
    if (is_block(precision, method->factor, n))
        return method->of[precision].block(n, *batch, workspace, workspace_bytes, stream);
    return method->of[precision].wide(
        n, *batch, workspace, workspace_bytes,
        manner_of(precision, method->factor, n, batch->matrices, false), products, stream);
}

cudaError_t cuda_inverse_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream)
{
    return launch(&inverse, precision, n, batch, workspace, workspace_bytes, products, stream);
}

cudaError_t cuda_factor_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               void *workspace, size_t workspace_bytes,
                               struct cuda_products *products, cudaStream_t stream)
{
    return launch(&factor, precision, n, batch, workspace, workspace_bytes, products, stream);
}

/* ---- Recovery ---- */

static size_t recovery_bytes(enum precision precision, int64_t n)
{
    return precision == PRECISION_FP32 ? cuda__lu_recovery_bytes<float>(n)
                                       : cuda__lu_recovery_bytes<double>(n);
}

cudaError_t cuda_recover_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream)
{
    if (!takes(precision, n) || batch->matrices < 0 ||
        (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    if (batch->matrices == 0)
        return cudaSuccess;
    if (n > RECOVERED_BY_BLOCK_N_MAX) {
        cuda__lu_manner manner = manner_of(precision, false, n, batch->matrices, true);
        cudaError_t status = inverse.of[precision].wide(n, *batch, workspace, workspace_bytes,
                                                        manner, products, stream);
        manner.equilibrated = true;
        return status != cudaSuccess
                   ? status
                   : inverse.of[precision].wide(n, *batch, workspace, workspace_bytes, manner,
                                                products, stream);
    }
    size_t bytes = recovery_bytes(precision, n);
    int64_t blocks = (int64_t)(workspace_bytes / bytes), most = 1024;
    if (blocks < 1)
        return cudaErrorMemoryAllocation;
    blocks = blocks < batch->matrices ? blocks : batch->matrices;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    unsigned char *space = (unsigned char *)workspace;
    if (precision == PRECISION_FP32)
        return cuda__start(cuda__lu_recover_kernel<float>, grid, CUDA__LU_RECOVER_THREADS,
                           sizeof(cuda__lu_recover_shared<float>), stream, *batch, space, bytes, n);
    return cuda__start(cuda__lu_recover_kernel<double>, grid, CUDA__LU_RECOVER_THREADS,
                       sizeof(cuda__lu_recover_shared<double>), stream, *batch, space, bytes, n);
}

/* ---- Workspace ---- */

/* Groups take no more. */
static size_t wide_bytes(enum precision precision, int64_t n, bool factors)
{
    cuda__lu_manner manner = plain_manner_of(precision, factors, n, 1, false);
    return precision == PRECISION_FP32 ? cuda__lu_space_bytes<float>(n, manner)
                                       : cuda__lu_space_bytes<double>(n, manner);
}

size_t cuda_inverse_middle_workspace(enum precision precision, int64_t n, int64_t matrices)
{
    if (!takes(precision, n) || matrices < 1)
        return 0;
    size_t recover = n > RECOVERED_BY_BLOCK_N_MAX ? 0 : recovery_bytes(precision, n);
    if (is_block(precision, false, n)) {
        size_t spill = needs_of(precision, false, n).spill_bytes;
        recover *= (size_t)(matrices < RECOVERED_TOGETHER ? matrices : RECOVERED_TOGETHER);
        spill *= (size_t)(matrices < SPILLS_MAX ? matrices : SPILLS_MAX);
        return spill > recover ? spill : recover;
    }
    size_t all = wide_bytes(precision, n, false) * (size_t)matrices;
    return all > recover ? all : recover;
}

size_t cuda_factor_middle_workspace(enum precision precision, int64_t n, int64_t matrices)
{
    if (!takes(precision, n) || matrices < 1)
        return 0;
    return is_block(precision, true, n) ? ALIGN : wide_bytes(precision, n, true) * (size_t)matrices;
}
