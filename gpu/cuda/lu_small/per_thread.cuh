/* gpu/cuda/lu_small/per_thread.cuh: the smallest orders, a matrix per thread.
 *
 * At these orders the memory is all that counts, and a launch of a million matrices may take ten
 * microseconds: what costs is the time until a warp's first bytes come, and every instruction. A
 * warp takes a run of matrices, its lanes neighbouring ones, `Each` a lane, and asks for all of
 * them before it works on the first. Orders 1 and 2 come straight from global memory: a matrix of
 * up to 16 bytes is one access of its lane; one of 32 bytes is two, and two lanes exchange halves,
 * so that an access leaves no gaps. Larger ones go through shared memory, as those of stage.cuh.
 *
 * The rules are those of inverse_rows.cuh and factor_rows.cuh. Device code, warp-wide: every lane
 * calls, converged.
 */
#ifndef GPU_CUDA_LU_SMALL_PER_THREAD_CUH
#define GPU_CUDA_LU_SMALL_PER_THREAD_CUH

#include <type_traits>

#include "gpu/cuda/base/check.cuh"
#include "gpu/cuda/lu_small/inverse_layout.cuh"

#define CUDA__PER_THREAD_N_MAX 5

/* ---- Between global memory and registers ---- */

/* Of neighbouring matrices, whose first is at `a`: fetch() asks for the lane's, take() has it after
 * arrive() of all that were asked for, give() stores it after sync() of all that were taken. */
template <typename T, int N> struct cuda__per_thread_direct {
    static constexpr int bytes = N * N * (int)sizeof(T);
    static constexpr bool halves = bytes == 32;
    static constexpr int piece = halves ? bytes / 2 : bytes;
    struct alignas(piece) numbers {
        T of[piece / (int)sizeof(T)];
    };
    struct memory {
    };

    static __device__ __forceinline__ bool fits(const void *item)
    {
        return (uintptr_t)item % piece == 0;
    }

    /* Of two lanes the first has the first halves of both, the second the others; and back. */
    static __device__ __forceinline__ void exchange(numbers (&x)[2], int lane)
    {
        bool second = lane % 2 != 0;
#pragma unroll
        for (int v = 0; v < piece / (int)sizeof(T); v++) {
            T given = second ? x[0].of[v] : x[1].of[v];
            given = __shfl_xor_sync(CUDA__ALL, given, 1);
            x[0].of[v] = second ? given : x[0].of[v];
            x[1].of[v] = second ? x[1].of[v] : given;
        }
    }

    static __device__ __forceinline__ int fetch(memory &, T *x, const T *a, int lane)
    {
        const numbers *from = (const numbers *)a;
        if constexpr (halves) {
            int at = lane / 2 * 4 + lane % 2;
            numbers both[2] = {from[at], from[at + 2]};
            __builtin_memcpy(x, both, bytes);
        } else {
            numbers all = from[lane];
            __builtin_memcpy(x, &all, bytes);
        }
        return 0;
    }

    static __device__ __forceinline__ void arrive()
    {
    }

    static __device__ __forceinline__ void take(const memory &, T *x, int, int lane)
    {
        if constexpr (halves) {
            numbers both[2];
            __builtin_memcpy(both, x, bytes);
            exchange(both, lane);
            __builtin_memcpy(x, both, bytes);
        }
    }

    static __device__ __forceinline__ void sync()
    {
    }

    static __device__ __forceinline__ void give(memory &, T *result, const T *x, int lane)
    {
        numbers *to = (numbers *)result;
        if constexpr (halves) {
            int at = lane / 2 * 4 + lane % 2;
            numbers both[2];
            __builtin_memcpy(both, x, bytes);
            exchange(both, lane);
            to[at] = both[0];
            to[at + 2] = both[1];
        } else {
            numbers all;
            __builtin_memcpy(&all, x, bytes);
            to[lane] = all;
        }
    }
};

template <typename T, int N> struct cuda__per_thread_staged {
    typedef cuda__inverse_layout<T, N, N, N> layout;
    typedef typename layout::stage stage;
    struct memory {
        alignas(16) T numbers[layout::places];
    };

    static __device__ __forceinline__ bool fits(const void *)
    {
        return true;
    }

    /* How many numbers late the matrices begin. */
    static __device__ __forceinline__ int fetch(memory &shared, T *, const T *a, int lane)
    {
        return stage::load(shared.numbers, a, true, lane);
    }

    static __device__ __forceinline__ void arrive()
    {
        cuda__copy_wait();
    }

    static __device__ __forceinline__ void sync()
    {
        __syncwarp();
    }

    static __device__ __forceinline__ void take(const memory &shared, T *x, int late, int lane)
    {
        constexpr int grain = layout::whole ? layout::width : 1;
        const T *from = shared.numbers + late + lane * layout::io_stride;
#pragma unroll
        for (int e = 0; e < N * N; e += grain)
            cuda__take<grain>(x + e, from + e);
    }

    static __device__ __forceinline__ void give(memory &shared, T *result, const T *x, int lane)
    {
        int late = 0;
        if constexpr (stage::shifts)
            late = stage::shift(result, true);
        T *to = shared.numbers + late + lane * layout::io_stride;
#pragma unroll
        for (int e = 0; e < N * N; e++)
            to[e] = x[e];
        __syncwarp();
        stage::store(shared.numbers, result, true, lane);
    }
};

template <typename T, int N>
using cuda__per_thread_place =
    typename std::conditional<(N * N * sizeof(T) <= 32 && N <= 2), cuda__per_thread_direct<T, N>,
                              cuda__per_thread_staged<T, N>>::type;

/* `Count` numbers of each matrix, of a warp's: in one access of the lane, or by shared memory, so
 * that an access leaves no gaps. */
template <typename U, int Count> struct cuda__per_thread_extras {
    static constexpr bool direct = Count == 1 || Count == 2 || Count == 4;
    struct alignas(direct ? Count * sizeof(U) : sizeof(U)) numbers {
        U of[Count];
    };
    struct none {
    };
    struct all {
        U numbers[direct ? 1 : Count * CUDA__WARP];
    };
    typedef typename std::conditional<direct, none, all>::type memory;

    static __device__ __forceinline__ bool fits(const void *item)
    {
        return (uintptr_t)item % sizeof(numbers) == 0 || !direct;
    }

    static __device__ __forceinline__ void give(memory &shared, U *to, const U (&x)[Count],
                                                int lane)
    {
        if constexpr (direct) {
            numbers mine;
#pragma unroll
            for (int k = 0; k < Count; k++)
                mine.of[k] = x[k];
            ((numbers *)to)[lane] = mine;
        } else {
#pragma unroll
            for (int k = 0; k < Count; k++)
                shared.numbers[lane * Count + k] = x[k];
            __syncwarp();
#pragma unroll
            for (int k = 0; k < Count; k++)
                to[k * CUDA__WARP + lane] = shared.numbers[k * CUDA__WARP + lane];
        }
    }
};

/* ---- The work ---- */

template <typename T>
static __device__ __forceinline__ void cuda__exchange_if(bool wanted, T &one, T &other)
{
    T old = one;
    one = wanted ? other : one;
    other = wanted ? old : other;
}

/* Of rows k and below the first with the largest magnitude in column k; row k becomes that one. */
template <typename T, int N>
static __device__ __forceinline__ int cuda__interchange(T (&x)[N][N], int k)
{
    int row = k;
    T largest = fabs(x[k][k]);
#pragma unroll
    for (int i = k + 1; i < N; i++) {
        row = fabs(x[i][k]) > largest ? i : row;
        largest = fabs(x[i][k]) > largest ? fabs(x[i][k]) : largest;
    }
#pragma unroll
    for (int i = k + 1; i < N; i++) {
#pragma unroll
        for (int j = 0; j < N; j++)
            cuda__exchange_if(row == i, x[k][j], x[i][j]);
    }
    return row;
}

template <typename T, int N> struct cuda__per_thread_inverse {
    typedef T number;
    typedef T extra; /* of a matrix; `extras` of them */
    typedef cuda__real<T> real;
    static constexpr int n = N, extras = 1;
    /* Up to order 3 both sides of an inverse are good: of 24,000 symmetric matrices of conditions
     * from 1e4 (FP64: 1e9) up, the ratios were at most 0.6. */
    static constexpr bool mean_checked = N > 3;

    T x[N][N]; /* A, then its inverse */
    T rcond;
    int info;

    /* The 1-norm of `by` times x, and whether all its sums are finite. */
    __device__ __forceinline__ T norm(T by, bool &finite) const
    {
        T largest = 0;
        finite = true;
#pragma unroll
        for (int j = 0; j < N; j++) {
            T sum = 0;
#pragma unroll
            for (int i = 0; i < N; i++)
                sum += fabs(x[i][j] * by);
            finite = finite && sum <= real::largest;
            largest = sum > largest ? sum : largest;
        }
        return largest;
    }

    __device__ __forceinline__ void scale(T by)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                x[i][j] *= by;
        }
    }

    /* Something is not finite, or the norm is far from 1: the power of two that suits A, which it
     * is multiplied by. */
    __device__ __forceinline__ T suit(T &size)
    {
        bool finite;
        T lowered = norm(real::lower, finite), factor = 1;
        info = finite ? 0 : -1;
        if (lowered >= real::huge * real::lower)
            factor = real::lower;
        else if (size < real::tiny && size > 0)
            factor = real::raise;
        size = factor == real::lower ? lowered : size * factor;
        scale(factor);
        return factor;
    }

    /* Gauss-Jordan elimination in place. A row is scaled by its pivot at the end. */
    __device__ __forceinline__ void invert()
    {
        T reciprocal[N];
        int row[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            row[k] = cuda__interchange(x, k);
            info = x[k][k] == 0 && info == 0 ? k + 1 : info;
            reciprocal[k] = real::reciprocal(x[k][k]);
#pragma unroll
            for (int i = 0; i < N; i++) {
                T multiplier = -x[i][k] * reciprocal[k];
#pragma unroll
                for (int j = 0; j < N && i != k; j++)
                    x[i][j] = j == k ? multiplier : fma(multiplier, x[k][j], x[i][j]);
            }
            x[k][k] = 1;
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                x[k][j] *= reciprocal[k];
        }
#pragma unroll
        for (int k = N - 1; k >= 0; k--) {
#pragma unroll
            for (int e = (k + 1) * N; e < N * N; e++)
                cuda__exchange_if(row[k] == e / N, x[e % N][k], x[e % N][e / N]);
        }
    }

    __device__ __forceinline__ bool is_symmetric() const
    {
        bool symmetric = true;
#pragma unroll
        for (int e = 0; e < N * N; e++) {
            if (e % N < e / N)
                symmetric = symmetric && x[e / N][e % N] == x[e % N][e / N];
        }
        return symmetric;
    }

    /* X = (X + X^T) / 2: the inverse of a symmetric matrix is so to the bit. */
    __device__ __forceinline__ void make_symmetric()
    {
#pragma unroll
        for (int e = 0; e < N * N; e++) {
            if (e % N < e / N)
                x[e / N][e % N] = x[e % N][e / N] = cuda__mean(x[e / N][e % N], x[e % N][e / N]);
        }
    }

    /* x times the vector of signs. */
    __device__ __forceinline__ void multiply_signs(T (&product)[N]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            product[i] = 0;
#pragma unroll
            for (int j = 0; j < N; j++)
                product[i] += cuda__negative(j) ? -x[i][j] : x[i][j];
        }
    }

    /* Has one side of x spoilt the mean? product: `factor` A times the signs; size: |A| |X|. */
    __device__ __forceinline__ bool is_spoilt(const T (&product)[N], T factor, T size) const
    {
        const T allowed = cuda__mean_allowed(N, (T)cuda__root(N), size) * factor * real::eps;
        bool large = false;
#pragma unroll
        for (int i = 0; i < N; i++) {
            T sum = cuda__negative(i) ? factor : -factor;
#pragma unroll
            for (int j = 0; j < N; j++)
                sum = fma(x[i][j], product[j], sum);
            large = large || !(fabs(sum) <= allowed);
        }
        return large;
    }

    __device__ __forceinline__ void solve()
    {
        const bool symmetric = is_symmetric();
        bool finite;
        T size = norm(1, finite), factor = 1, product[N];
        info = 0;
        if (!(finite && size < real::huge && (size >= real::tiny || size == 0)))
            factor = suit(size);
        if (mean_checked && symmetric)
            multiply_signs(product);
        invert();
        scale(factor);
        if (symmetric)
            make_symmetric();
        T inverse_size = norm(1, finite);
        rcond = finite && inverse_size > 0 ? 1 / size / inverse_size * factor : T(0);
        if (info == 0 && !finite)
            info = CUDA_INFO_UNVERIFIED; /* perhaps a pivot had no reciprocal */
        if (mean_checked && symmetric && info == 0 && rcond >= real::eps &&
            is_spoilt(product, factor, size * inverse_size / factor))
            info = CUDA_INFO_UNVERIFIED;
        info = info == 0 && !(rcond >= real::eps) ? N + 1 : info;
        rcond = info < 0 ? real::nan() : info > 0 && info <= N ? T(0) : rcond;
#pragma unroll
        for (int e = 0; e < N * N; e++)
            x[e / N][e % N] = info != 0 && info <= N ? real::nan() : x[e / N][e % N];
        /* Scaled down, a small pivot may have vanished. */
        if (info > 0 && info <= N && factor == real::lower)
            info += CUDA_INFO_UNVERIFIED;
        info = cuda__await_scaling(info, N);
    }

    __device__ __forceinline__ T extra_of(int) const
    {
        return rcond;
    }
};

template <typename T, int N> struct cuda__per_thread_factor {
    typedef T number;
    typedef int extra;
    typedef cuda__real<T> real;
    static constexpr int n = N, extras = N;

    T x[N][N]; /* A, then its factors */
    int pivots[N];
    int info;

    /* Step k. Where a pivot's reciprocal is not a normal number both are scaled first. A column of
     * zeros has nothing to eliminate. */
    __device__ __forceinline__ void eliminate(int k)
    {
        T pivot = x[k][k], scale = 1;
        scale = fabs(pivot) < real::min_safe ? real::raise : scale;
        scale = fabs(pivot) > real::max_safe ? real::lower : scale;
        T reciprocal = pivot == 0 ? T(0) : real::reciprocal(pivot * scale);
        info = pivot == 0 && info == 0 ? k + 1 : info;
#pragma unroll
        for (int i = k + 1; i < N; i++) {
            x[i][k] = x[i][k] * scale * reciprocal;
#pragma unroll
            for (int j = k + 1; j < N; j++)
                x[i][j] = fma(-x[i][k], x[k][j], x[i][j]);
        }
    }

    __device__ __forceinline__ void solve()
    {
        bool finite = true;
#pragma unroll
        for (int e = 0; e < N * N; e++)
            finite = finite && fabs(x[e / N][e % N]) <= real::largest;
        info = finite ? 0 : -1;
#pragma unroll
        for (int k = 0; k < N; k++) {
            pivots[k] = finite ? cuda__interchange(x, k) + 1 : 0;
            eliminate(k);
        }
#pragma unroll
        for (int e = 0; e < N * N; e++)
            x[e / N][e % N] = finite ? x[e / N][e % N] : real::nan();
    }

    __device__ __forceinline__ int extra_of(int k) const
    {
        return pivots[k];
    }
};

/* A warp's run of matrices: lane l has matrices l, l + 32, ... of it. */
template <typename Work, int Each> struct cuda__per_thread_run {
    typedef typename Work::number T;
    typedef typename Work::extra U;
    static constexpr int entries = Work::n * Work::n, extras = Work::extras;
    static constexpr int matrices = CUDA__WARP * Each;
    typedef cuda__per_thread_place<T, Work::n> place;
    typedef cuda__per_thread_extras<U, extras> places_of_extras;

    struct memory {
        typename place::memory of[Each];
        typename places_of_extras::memory extras[Each];
    };
    static constexpr size_t shared_bytes = Work::n <= 2 ? 0 : sizeof(memory);

    /* The run, all of it in one item: place() does so from matrix `within` of the item on. */
    static __device__ __forceinline__ void whole(memory &shared, const cuda_item &item,
                                                 int64_t within, int lane, uint32_t *unverified)
    {
        const T *a = (const T *)item.a + within * entries;
        T *result = item.result ? (T *)item.result + within * entries : nullptr;
        int32_t *info = item.info ? item.info + within + lane : nullptr;
        U *extra = item.extra ? (U *)item.extra + within * extras : nullptr;
        Work work[Each];
        int shift[Each];
#pragma unroll
        for (int g = 0; g < Each; g++)
            shift[g] = place::fetch(shared.of[g], work[g].x[0], a + g * CUDA__WARP * entries, lane);
        place::arrive();
#pragma unroll
        for (int g = 0; g < Each; g++)
            place::take(shared.of[g], work[g].x[0], shift[g], lane);
        place::sync();
#pragma unroll
        for (int g = 0; g < Each; g++) {
            U all[extras];
            work[g].solve();
            if (result)
                place::give(shared.of[g], result + g * CUDA__WARP * entries, work[g].x[0], lane);
            if (info)
                info[g * CUDA__WARP] = work[g].info;
#pragma unroll
            for (int k = 0; k < extras; k++)
                all[k] = work[g].extra_of(k);
            if (extra)
                places_of_extras::give(shared.extras[g], extra + g * CUDA__WARP * extras, all,
                                       lane);
            if (work[g].info < -1 && unverified)
                atomicAdd(unverified, 1);
        }
        place::sync();
    }

    /* One matrix, wherever it is. */
    static __device__ __forceinline__ void single(const cuda_batch &batch, int64_t index)
    {
        cuda__place<T> at = cuda__find<T>(batch, index, entries);
        Work work;
#pragma unroll
        for (int e = 0; e < entries; e++)
            work.x[e / Work::n][e % Work::n] = at.a[e];
        work.solve();
#pragma unroll
        for (int e = 0; e < entries && at.result; e++)
            at.result[e] = work.x[e / Work::n][e % Work::n];
        if (at.info)
            at.info[at.within] = work.info;
#pragma unroll
        for (int k = 0; k < extras && at.extra; k++)
            ((U *)at.extra)[at.within * extras + k] = work.extra_of(k);
        if (work.info < -1 && batch.unverified)
            atomicAdd(batch.unverified, 1);
    }

    static __device__ __forceinline__ void run(memory &shared, const cuda_batch &batch,
                                               int64_t first, int lane)
    {
        int64_t k = cuda__find_item(batch, first);
        const cuda_item item = batch.items[k];
        int64_t end = k + 1 < batch.item_count ? batch.items[k + 1].first : batch.matrices;
        if (first + matrices <= end && place::fits(item.a) && place::fits(item.result) &&
            places_of_extras::fits(item.extra)) {
            whole(shared, item, first - item.first, lane, batch.unverified);
            return;
        }
#pragma unroll 1
        for (int g = 0; g < Each; g++) {
            if (first + g * CUDA__WARP + lane < batch.matrices)
                single(batch, first + g * CUDA__WARP + lane);
        }
    }
};

template <typename Work, int Each, int Warps, int Blocks>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Blocks)
    cuda__per_thread_kernel(const cuda_batch batch)
{
    typedef cuda__per_thread_run<Work, Each> run;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typename run::memory &shared = ((typename run::memory *)cuda__memory)[threadIdx.x / CUDA__WARP];
    int64_t warp = (int64_t)blockIdx.x * Warps + threadIdx.x / CUDA__WARP;
    int64_t step = (int64_t)gridDim.x * Warps * run::matrices;
    for (int64_t first = warp * run::matrices; first < batch.matrices; first += step)
        run::run(shared, batch, first, threadIdx.x % CUDA__WARP);
}

#endif
