/* gpu/cuda/ism/fused.cuh: the fused update of small matrices: A0^-1 is read once, for the check of
 * an update beyond n = 8 twice, the inverse written once. Of few columns, where A is not known,
 * few.cuh makes it.
 *
 * A team of `Threads` threads (8, 16, 32, or a block of 64) holds a matrix in shared memory, rows
 * of an odd length, so that its threads can go along a row each or along a column each. Thread t
 * has row t and column t. The columns of X and Y are taken `CUDA__ISM_STEP` at a time:
 *
 *      G = Z X_s, K = Y_s^T Z, R = (I + K X_s)^-1, Z := Z - G R K,
 *
 * Z being A0^-1 at first; R is inverted by every thread for itself. Then the check of
 * gpu/host/ism/ism.h is made, with |A| from all columns, and the numbers and Z are written. A0 that
 * is diagonal is treated alike: Z begins as its inverse.
 *
 * Shared memory a team: n^2 numbers, 2 n m for X and Y, and with A0_INVERSE n m for Y^T A0^-1.
 * Every sum is taken in an order that n alone decides.
 */
#ifndef GPU_CUDA_ISM_FUSED_CUH
#define GPU_CUDA_ISM_FUSED_CUH

#include "gpu/cuda/ism/team.cuh"
#include "gpu/cuda/base/launch.cuh"

#define CUDA__ISM_STEP 4 /* columns that are taken together, at most */
/* Blocks of a multiprocessor at least, where there is one column: of small teams, of one team. */
#define CUDA__ISM_ALONE_BLOCKS 5
#define CUDA__ISM_ALONE_TEAMS 8

/* Where a team's arrays are in its shared memory, in numbers. */
struct cuda__ism_room {
    int ld; /* of z: odd */
    int z, x, y, k0, gr, tb, tz, thin, scratch, numbers;

    template <int Lines>
    static __host__ __device__ __forceinline__ cuda__ism_room make(int n, int m, bool update)
    {
        cuda__ism_room room;
        room.ld = n | 1;
        room.z = 0;
        room.x = room.z + n * room.ld;
        room.y = room.x + n * m;
        room.k0 = room.y + n * m;
        room.gr = (room.k0 + (update ? n * m : 0) + 3) / 4 * 4;
        room.tb = room.gr + n * CUDA__ISM_STEP;
        room.tz = room.tb + (update ? Lines * n : 0);
        room.thin = room.tz + Lines * n;
        room.scratch = room.thin + Lines * m;
        room.numbers = (room.scratch + 2 * CUDA__ISM_STEP * CUDA__ISM_STEP + 3) / 4 * 4;
        return room;
    }
};

/* r becomes its inverse, by elimination with partial pivoting; the product of pivots is multiplied
 * by theirs. A zero pivot leaves what is not finite. */
template <int S, typename T>
static __device__ __forceinline__ void cuda__ism_invert_step(T (&r)[S * S], double *det,
                                                             int64_t *exponent)
{
    T other[S * S];
#pragma unroll
    for (int e = 0; e < S * S; e++)
        other[e] = e / S == e % S;
#pragma unroll
    for (int k = 0; k < S; k++) {
#pragma unroll
        for (int i = k + 1; i < S; i++) {
            /* The largest of the column comes to row k, exchange by exchange. */
            bool better = fabs(r[i * S + k]) > fabs(r[k * S + k]);
#pragma unroll
            for (int j = 0; j < S; j++) {
                T old = r[k * S + j], left = other[k * S + j];
                r[k * S + j] = better ? r[i * S + j] : old;
                r[i * S + j] = better ? old : r[i * S + j];
                other[k * S + j] = better ? other[i * S + j] : left;
                other[i * S + j] = better ? left : other[i * S + j];
            }
            *det = better ? -*det : *det;
        }
        cuda__ism_times(det, exponent, (double)r[k * S + k]);
        T by = T(1) / r[k * S + k];
#pragma unroll
        for (int j = 0; j < S; j++) {
            r[k * S + j] *= by;
            other[k * S + j] *= by;
        }
#pragma unroll
        for (int i = 0; i < S; i++) {
            T factor = r[i * S + k];
#pragma unroll
            for (int j = 0; i != k && j < S; j++) {
                r[i * S + j] = fma(-factor, r[k * S + j], r[i * S + j]);
                other[i * S + j] = fma(-factor, other[k * S + j], other[i * S + j]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < S * S; e++)
        r[e] = other[e];
}

/* One matrix and its team. All threads call, converged. Step: columns that are taken together; one
 * needs far fewer registers. */
template <typename T, int Threads, int Step> struct cuda__ism_update {
    typedef cuda__ism_team<Threads> team;
    static constexpr int probes = team::probes;
    static constexpr bool is_whole = probes == CUDA__ISM_PROBES; /* T is the identity */
    static constexpr int rows = 8; /* of k0 that are added up together */

    const cuda__ism_call &call;
    const cuda_tensors *item;
    int64_t within;
    int n, m, t; /* t: the thread's row and column */
    bool mine;   /* false: there is no row t; row `at` is read in its place */
    bool update; /* A0_INVERSE is given, without A0 */
    int at;
    cuda__ism_room room;
    T *memory;
    const T *weights; /* n x probes: T transposed */
    T excess;         /* 0 while all that was read is finite */
    double det;
    int64_t det_exponent;
    double reach, met; /* see lost.cuh */

    template <typename P> __device__ __forceinline__ const T *input(int which, P numbers) const
    {
        return item->inputs[which] ? (const T *)item->inputs[which] + within * numbers : nullptr;
    }

    /* Entry t of A0's diagonal. */
    __device__ __forceinline__ T diagonal() const
    {
        const T *scale = input(METHOD_ISM_A0_SCALE, 1), *d = input(METHOD_ISM_A0_DIAGONAL, n);
        return d ? d[at] : scale ? *scale : T(1);
    }

    /* Z, X and Y; `d`: of A0, where A0^-1 is not given. */
    __device__ __forceinline__ void load(const T *b, T d)
    {
        T *z = memory + room.z;
        for (int i = 0; b && i < n; i++) {
            if (mine)
                cuda__copy_async<sizeof(T)>(z + i * room.ld + t, b + (int64_t)i * n + t);
        }
        for (int i = 0; !b && i < n; i++) {
            if (mine)
                z[i * room.ld + t] = i == t ? 1 / d : T(0);
        }
        const T *x = input(METHOD_ISM_X, (int64_t)n * m), *y = input(METHOD_ISM_Y, (int64_t)n * m);
        for (int e = t; x && y && e < n * m; e += Threads) {
            cuda__copy_async<sizeof(T)>(memory + room.x + e, x + e);
            cuda__copy_async<sizeof(T)>(memory + room.y + e, y + e);
        }
        cuda__copy_arrive();
        team::sync();
        excess = b ? T(0) : d * 0;
        for (int e = t; e < n * m; e += Threads)
            excess += memory[room.x + e] * 0 + memory[room.y + e] * 0;
    }

    /* to (probes x n) = T Z, the thread's column of it; returns the column's sum of magnitudes. */
    __device__ __forceinline__ T look(T *to)
    {
        const T *column = memory + room.z + at;
        T size = 0;
#pragma unroll
        for (int l = 0; l < probes; l += 2) {
            T one = 0, other = 0;
#pragma unroll 8
            for (int i = 0; i < n; i++) {
                T value = column[i * room.ld];
                if (l == 0)
                    size += fabs(value);
                one = fma(weights[i * probes + l], value, one);
                other = fma(weights[i * probes + l + 1], value, other);
            }
            if (mine) {
                to[l * n + t] = one;
                to[(l + 1) * n + t] = other;
            }
        }
        return mine ? size : T(0);
    }

    /* k0 (m x n) = Y^T Z, the thread's column of it. */
    __device__ __forceinline__ void meet()
    {
        const T *column = memory + room.z + at;
        for (int c = 0; c < m; c++) {
            const T *y = memory + room.y + c;
            T sum = 0;
            for (int first = 0; first < n; first += rows) {
                T part = 0;
#pragma unroll
                for (int i = first; i < first + rows; i++) {
                    if (i < n)
                        part = fma(y[i * m], column[i * room.ld], part);
                }
                sum += part;
            }
            if (mine)
                memory[room.k0 + c * n + t] = sum;
        }
    }

    /* The largest row of |Y|, and the largest column of |k0|, times the norms of X's columns. */
    __device__ __forceinline__ void weigh()
    {
        T *norms = memory + room.thin, row = 0, column = 0;
        for (int c = t; c < m; c += Threads) {
            T size = 0;
            for (int i = 0; i < n; i++)
                size += fabs(memory[room.x + i * m + c]);
            norms[c] = size;
        }
        team::sync();
        for (int c = 0; mine && c < m; c++) {
            row = fma(norms[c], (T)fabs(memory[room.y + t * m + c]), row);
            if (update)
                column = fma(norms[c], (T)fabs(memory[room.k0 + c * n + t]), column);
        }
        reach = (double)team::largest(row, memory + room.scratch);
        met = (double)team::largest(column, memory + room.scratch);
    }

    /* Columns first to first + S - 1 of X and Y. */
    template <int S> __device__ __forceinline__ void step(int first)
    {
        const T *row = memory + room.z + at * room.ld, *x = memory + room.x + first;
        const T *y = memory + room.y + first;
        T *column = memory + room.z + at, *gr = memory + room.gr;
        T g[S] = {}, k[S] = {}, r[S * S];
#pragma unroll 8
        for (int j = 0; j < n; j++) {
            T value = row[j];
#pragma unroll
            for (int c = 0; c < S; c++)
                g[c] = fma(value, x[j * m + c], g[c]);
        }
        if (update && first == 0) {
#pragma unroll
            for (int c = 0; c < S; c++)
                k[c] = memory[room.k0 + c * n + at];
        } else {
#pragma unroll 8
            for (int i = 0; i < n; i++) {
                T value = column[i * room.ld];
#pragma unroll
                for (int c = 0; c < S; c++)
                    k[c] = fma(y[i * m + c], value, k[c]);
            }
        }
#pragma unroll
        for (int e = 0; e < S * S; e++)
            r[e] = mine ? k[e / S] * x[at * m + e % S] : T(0);
        team::sum(r, memory + room.scratch);
#pragma unroll
        for (int c = 0; c < S; c++)
            r[c * (S + 1)] += 1;
        cuda__ism_invert_step<S>(r, &det, &det_exponent);
#pragma unroll
        for (int c = 0; c < S; c++) {
            T sum = 0;
#pragma unroll
            for (int a = 0; a < S; a++)
                sum = fma(g[a], r[a * S + c], sum);
            if (mine)
                gr[t * S + c] = sum;
        }
        team::sync();
#pragma unroll 8
        for (int i = 0; i < n; i++) {
            T value = column[i * room.ld];
#pragma unroll
            for (int c = 0; c < S; c++)
                value = fma(-gr[i * S + c], k[c], value);
            if (mine)
                column[i * room.ld] = value;
        }
        team::sync();
    }

    /* thin (probes x m) = (T Z) X */
    __device__ __forceinline__ void thin()
    {
        if (m == 1 && probes == CUDA__ISM_CHECK_PROBES) { /* two threads would do it all */
            T sums[probes];
#pragma unroll
            for (int l = 0; l < probes; l++)
                sums[l] = mine ? memory[room.tz + l * n + t] * memory[room.x + t] : T(0);
            team::sum(sums, memory + room.scratch);
            if (t < CUDA__ISM_CHECK_PROBES)
                memory[room.thin + t] = t == 0 ? sums[0] : sums[1];
            return;
        }
        for (int e = t; e < probes * m; e += Threads) {
            const T *line = memory + room.tz + e / m * n, *x = memory + room.x + e % m;
            T sum = 0;
#pragma unroll 4
            for (int i = 0; i < n; i++)
                sum = fma(line[i], x[i * m], sum);
            memory[room.thin + e] = sum;
        }
    }

    /* The thread's column of T (I - Z A), and the sum of A's column. Where T is the identity, Z is
     * multiplied by A's column formed: see gpu/host/ism/check.c. */
    __device__ __forceinline__ T residual(T (&error)[probes], T d)
    {
        const T *a0 = input(METHOD_ISM_A0_DENSE, (int64_t)n * n), *y = memory + room.y + at * m;
        const T *tz = memory + room.tz;
        T size = 0;
#pragma unroll
        for (int l = 0; l < probes; l++) {
            T sum = 0;
            for (int c = 0; !is_whole && c < m; c++)
                sum = fma(memory[room.thin + l * m + c], y[c], sum);
            if (!is_whole && !a0)
                sum = fma(tz[l * n + at], d, sum);
            error[l] = sum;
        }
        for (int i = 0; i < n; i++) {
            const T *x = memory + room.x + i * m;
            T value = a0 ? a0[(int64_t)i * n + at] : i == at ? d : T(0);
            excess += a0 ? value * 0 : T(0);
#pragma unroll
            for (int l = 0; !is_whole && l < probes; l++)
                error[l] = a0 ? fma(tz[l * n + i], value, error[l]) : error[l];
            for (int c = 0; c < m; c++)
                value = fma(x[c], y[c], value);
#pragma unroll
            for (int l = 0; is_whole && l < probes; l++)
                error[l] = fma(tz[l * n + i], value, error[l]);
            size += fabs(value);
        }
#pragma unroll
        for (int l = 0; l < probes; l++)
            error[l] = weights[at * probes + l] - error[l];
        return size;
    }

    /* The sum of the thread's column of X K, of M columns and M lines. */
    template <int M> __device__ __forceinline__ T size_of_change() const
    {
        const T *x = memory + room.x, *k0 = memory + room.k0 + at;
        T size = 0, k[M];
#pragma unroll
        for (int c = 0; c < M; c++)
            k[c] = k0[c * n];
#pragma unroll 8
        for (int i = 0; i < n; i++) {
            T value = 0;
#pragma unroll
            for (int c = 0; c < M; c++)
                value = fma(x[i * M + c], k[c], value);
            size += fabs(value);
        }
        return size;
    }

    /* The same of T (A0^-1 - Z M), and the sum of M - I's column. */
    __device__ __forceinline__ T rest(T (&error)[probes])
    {
        const T *k0 = memory + room.k0 + at;
        T size = 0;
#pragma unroll
        for (int l = 0; l < probes; l++) {
            T sum = memory[room.tz + l * n + at];
            for (int c = 0; c < m; c++)
                sum = fma(memory[room.thin + l * m + c], k0[c * n], sum);
            error[l] = memory[room.tb + l * n + at] - sum;
        }
        if (m == 1)
            return size_of_change<1>();
        if (m == 2)
            return size_of_change<2>();
        if (m == CUDA__ISM_STEP)
            return size_of_change<CUDA__ISM_STEP>();
        for (int i = 0; i < n; i++) {
            const T *x = memory + room.x + i * m;
            T value = 0;
            for (int c = 0; c < m; c++)
                value = fma(x[c], k0[c * n], value);
            size += fabs(value);
        }
        return size;
    }

    /* Is there more of A0^-1 - Z M than is allowed that few probe vectors may not have seen? After
     * several steps, whose inverses may have been large, it is all found out, and A0^-1 read again.
     * Y is used up. */
    __device__ __forceinline__ bool hides(const cuda__ism_check &check)
    {
        const T *b = input(METHOD_ISM_A0_INVERSE, (int64_t)n * n) + at;
        const T *row = memory + room.z + at * room.ld, *column = memory + room.z + at;
        const T *x = memory + room.x, *k0 = memory + room.k0 + at;
        T *zx = memory + room.y, size = 0;
        for (int c = 0; mine && c < m; c++) {
            T sum = 0;
#pragma unroll 8
            for (int j = 0; j < n; j++)
                sum = fma(row[j], x[j * m + c], sum);
            zx[t * m + c] = sum;
        }
        team::sync();
        for (int i = 0; i < n; i++) {
            T left = b[(int64_t)i * n] - column[i * room.ld];
#pragma unroll 4
            for (int c = 0; c < m; c++)
                left = fma(-zx[i * m + c], k0[c * n], left);
            size += fabs(left);
        }
        const double error = (double)team::largest(mine ? size : T(0), memory + room.scratch);
        return cuda__ism_was_hidden<T>(n, error, check.norm_x * (1 + check.change));
    }

    /* All but the last one. */
    __device__ __forceinline__ cuda__ism_check judge(T d, T size_b)
    {
        T *scratch = memory + room.scratch, error[probes], worst = 0;
        cuda__ism_check check;
        T size_z = look(memory + room.tz);
        team::sync();
        if (update || !is_whole)
            thin();
        team::sync();
        T size = update ? rest(error) : residual(error, d);
        const double max_reach = 2 * (is_whole ? CUDA__ISM_LOST_WHOLE_RATIO : CUDA__ISM_LOST_RATIO);
#pragma unroll
        for (int l = 0; l < probes; l++)
            worst = is_whole ? worst + fabs(error[l]) : cuda__max_or_nan(worst, (T)fabs(error[l]));
        T all[1] = {excess};
        team::sum(all, scratch);
        check.bad = !(all[0] == 0);
        check.error = (double)team::largest(mine ? worst : T(0), scratch);
        check.norm_x = (double)team::largest(size_z, scratch);
        size = team::largest(mine ? size : T(0), scratch);
        check.change = update ? (double)size : 0;
        check.norm_a = update ? (double)team::largest(mine ? size_b : T(0), scratch) : (double)size;
        check.lost = update ? cuda__ism_lost<T, T>(n, rows, reach * check.norm_a) : 0;
        /* Where A is known the check takes ((T Z) X) Y^T, or X Y^T itself, with the rounding errors
         * of its terms. */
        bool hidden = false;
        if constexpr (!is_whole)
            hidden = update && hides(check);
        check.blind = update ? hidden || cuda__ism_blinds<T, T>(n, n, met, check.change)
                             : !(reach <= max_reach * check.norm_a);
        check.det_ratio = cuda__ism_value(det, det_exponent);
        const bool cancels = cuda__ism_cancels(n, check.lost, check.change);
        if (__any_sync(CUDA__ALL, cancels)) {
            const double found = lost(reach * check.norm_a);
            check.lost = cancels ? found : check.lost;
        }
        return check;
    }

    /* By how many eps X k0 is off. */
    __device__ __forceinline__ double lost(double terms)
    {
        const T *b = input(METHOD_ISM_A0_INVERSE, (int64_t)n * n);
        const double loss =
            b ? cuda__ism_loss_of<T>(n, m, at, b, input(METHOD_ISM_X, (int64_t)n * m),
                                     input(METHOD_ISM_Y, (int64_t)n * m), memory + room.k0 + at, n)
              : 0;
        const T largest = team::largest((T)loss, memory + room.scratch);
        return cuda__ism_lost_by<T, T>(n, (double)largest, terms);
    }

    __device__ __forceinline__ void run(bool writes)
    {
        const T *b = input(METHOD_ISM_A0_INVERSE, (int64_t)n * n);
        T d = b ? T(0) : diagonal(), size_b = 0;
        load(b, d);
        if (update) {
            size_b = look(memory + room.tb);
            meet();
        }
        /* A sum that is finite is one of finite numbers. */
        if (b && !(update && size_b <= cuda__real<T>::largest)) {
            for (int i = 0; i < n; i++)
                excess += memory[room.z + i * room.ld + at] * 0;
        }
        team::sync();
        weigh();
        team::sync();
        int first = 0;
        for (; Step >= 4 && first + 4 <= m; first += 4)
            step<Step >= 4 ? 4 : 1>(first);
        for (; Step >= 2 && first + 2 <= m; first += 2)
            step<Step >= 2 ? 2 : 1>(first);
        if (first < m)
            step<1>(first);
        cuda__ism_check check = judge(d, size_b);
        T *inverse = (T *)item->outputs[METHOD_ISM_INVERSE];
        int info = check.bad ? -1 : 0;
        if (writes && t == 0)
            cuda__ism_judge<T>(call, item, within, check, METHOD_ALGORITHM_BLOCK);
        for (int i = 0; writes && mine && inverse && i < n; i++)
            inverse[within * n * n + (int64_t)i * n + t] =
                info < 0 ? cuda__real<T>::nan() : memory[room.z + i * room.ld + t];
        team::sync();
    }
};

template <typename T, int Threads, int Step>
static __global__ void __launch_bounds__(cuda__ism_team<Threads>::block,
                                         Step > 1                ? 1
                                         : Threads <= CUDA__WARP ? CUDA__ISM_ALONE_BLOCKS
                                                                 : CUDA__ISM_ALONE_TEAMS)
    cuda__ism_fused_kernel(const cuda__ism_call call)
{
    typedef cuda__ism_team<Threads> team;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int n = (int)call.n, m = (int)call.m, t = (int)threadIdx.x % Threads;
    int number = (int)threadIdx.x / Threads;
    bool update = !cuda__ism_knows(call);
    cuda__ism_room room = cuda__ism_room::make<team::probes>(n, m, update);
    T *weights = (T *)cuda__memory, *memory = weights + (n * team::probes + 3) / 4 * 4;
    for (int e = threadIdx.x; e < n * team::probes; e += team::block)
        weights[e] = (T)cuda__ism_weight(n, e / team::probes, e % team::probes);
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * team::teams; first < call.matrices;
         first += (int64_t)gridDim.x * team::teams) {
        int64_t index = first + number, within;
        bool writes = index < call.matrices;
        const cuda_tensors *item =
            cuda__ism_item(call, writes ? index : call.matrices - 1, &within);
        cuda__ism_update<T, Threads, Step> one = {call,
                                                  item,
                                                  within,
                                                  n,
                                                  m,
                                                  t,
                                                  t < n,
                                                  update,
                                                  t < n ? t : n - 1,
                                                  room,
                                                  memory + number * room.numbers,
                                                  weights,
                                                  T(0),
                                                  1,
                                                  0,
                                                  0,
                                                  0};
        one.run(writes);
    }
}

template <typename T, int Threads, int Step>
static cudaError_t cuda__ism_launch_fused(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_team<Threads> team;
    cuda__ism_room room =
        cuda__ism_room::make<team::probes>((int)call.n, (int)call.m, !cuda__ism_knows(call));
    size_t numbers = (size_t)(call.n * team::probes + 3) / 4 * 4 + team::teams * room.numbers;
    int64_t blocks = (call.matrices + team::teams - 1) / team::teams;
    return cuda__start(cuda__ism_fused_kernel<T, Threads, Step>,
                       (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), team::block,
                       numbers * sizeof(T), stream, call);
}

template <typename T, int Threads>
static cudaError_t cuda__ism_launch_team(const cuda__ism_call &call, cudaStream_t stream)
{
    return call.m > 1 ? cuda__ism_launch_fused<T, Threads, CUDA__ISM_STEP>(call, stream)
                      : cuda__ism_launch_fused<T, Threads, 1>(call, stream);
}

/* n up to CUDA_ISM_FUSED_N_MAX, m up to CUDA_ISM_FUSED_M_MAX. */
template <typename T>
static cudaError_t cuda__ism_fused(const cuda__ism_call &call, cudaStream_t stream)
{
    if (call.n <= 8)
        return cuda__ism_launch_team<T, 8>(call, stream);
    if (call.n <= 16)
        return cuda__ism_launch_team<T, 16>(call, stream);
    if (call.n <= 32)
        return cuda__ism_launch_team<T, 32>(call, stream);
    return cuda__ism_launch_team<T, 64>(call, stream);
}

#endif
