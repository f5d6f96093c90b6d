/* gpu/cuda/ism/few.cuh: the fused update of known inverses of small matrices by few columns, which
 * are taken all at once: A0^-1 is read once, or twice where all of the residual is wanted, and the
 * inverse written once.
 *
 * A team of Lanes threads (8, 16 or 32) has a matrix of N <= Lanes rows or fewer. Thread t has
 * column t of it in its registers, next to zeros, and row t of X and Y; n and m are filled up with
 * zeros to N and M, which change nothing. With B = A0^-1
 *
 *      K = Y^T B, G = B X, R = (I + K X)^-1, Z = B - G R K,
 *
 * and then the check of gpu/host/ism/ism.h is made, and the numbers and Z are written. R has two
 * entries a thread and is inverted in place, by Gauss-Jordan's elimination with partial pivoting;
 * rows are not exchanged.
 *
 * Shared memory a team: N Lanes numbers, for B's rows and later for what is smaller, and 2 Lanes M.
 * Every sum is taken in an order that n and m alone decide. Cost: 65,536 updates of n = 32 in FP64
 * took an H200 335 us at m = 1 and 414 us at m = 2, 79% and 66% of a copy (2026-11-23). At n = 8
 * and 12 shared memory is at work nine tenths of the time.
 */
#ifndef GPU_CUDA_ISM_FEW_CUH
#define GPU_CUDA_ISM_FEW_CUH

#include "gpu/cuda/ism/team.cuh"
#include "gpu/cuda/base/launch.cuh"

/* Numbers that go to or from shared memory at once, of M side by side: 16 bytes at most. */
template <typename T, int M> struct cuda__ism_pack {
    static constexpr int vector = cuda__real<T>::width;
    static constexpr int width = M % vector == 0 ? vector : M % 2 == 0 ? 2 : 1;
    struct alignas(width * sizeof(T)) type {
        T numbers[width];
    };
};

/* M numbers, which begin at a multiple of a pack. */
template <int M, typename T>
static __device__ __forceinline__ void cuda__ism_fetch(const T *from, T (&to)[M])
{
    typedef cuda__ism_pack<T, M> pack;
#pragma unroll
    for (int k = 0; k < M; k += pack::width) {
        const typename pack::type piece = *(const typename pack::type *)(from + k);
#pragma unroll
        for (int e = 0; e < pack::width; e++)
            to[k + e] = piece.numbers[e];
    }
}

template <int M, typename T>
static __device__ __forceinline__ void cuda__ism_keep(T *to, const T (&from)[M])
{
    typedef cuda__ism_pack<T, M> pack;
#pragma unroll
    for (int k = 0; k < M; k += pack::width) {
        typename pack::type piece;
#pragma unroll
        for (int e = 0; e < pack::width; e++)
            piece.numbers[e] = from[k + e];
        *(typename pack::type *)(to + k) = piece;
    }
}

/* The shared memory of a team, in numbers: multiples of 4. */
template <int N, int Lanes, int M> struct cuda__ism_few_room {
    static constexpr int probes = cuda__ism_team<Lanes>::probes;
    static constexpr int ld = Lanes | 1;
    static constexpr int square = (N * ld + 3) / 4 * 4;
    /* What takes the square's place, unless the check needs it. */
    static constexpr int late = probes == N ? square : 0;
    static constexpr int g = late, r = g + (Lanes * M + 3) / 4 * 4;
    static constexpr int tz = r + (M * M + 3) / 4 * 4;
    static constexpr int thin = tz + CUDA__ISM_CHECK_PROBES * Lanes;
    static constexpr int end = thin + (probes * M + 3) / 4 * 4;
    static constexpr int x = end > square ? end : square;
    static constexpr int y = x + (Lanes * M + 3) / 4 * 4;
    static constexpr int used = y + (Lanes * M + 3) / 4 * 4;
    /* Where a warp has several teams, what they read at once lies in different banks. */
    static constexpr int numbers = Lanes < CUDA__WARP && used % 8 == 0 ? used + 4 : used;
};

/* I + K X of M columns, two entries a thread: of row `row`, from column `column` on. Threads
 * beyond M^2 / 2 have what others have. Threads of a team are side by side in a warp. */
template <typename T, int Lanes, int M> struct cuda__ism_few_block {
    static constexpr int across = M / 2, threads = M * across;

    int row, column;
    T v[2];

    static __device__ __forceinline__ T of(T value, int row, int column)
    {
        return __shfl_sync(CUDA__ALL, value, row * across + column / 2, Lanes);
    }

    /* The row with the largest entry of a column, by its leading bits, among those that had no
     * pivot yet; the first of equals. */
    __device__ __forceinline__ int choose(T entry, unsigned used) const
    {
        unsigned key = (cuda__real<T>::lead(fabs(entry)) & ~15u) | (unsigned)(15 - row);
        key = used >> row & 1 ? 0u : key;
#pragma unroll
        for (int reach = across; reach < threads; reach *= 2) {
            unsigned other = __shfl_xor_sync(CUDA__ALL, key, reach);
            key = other > key ? other : key;
        }
        return 15 - (int)(key & 15u);
    }

    /* The inverse goes to r (M x M, rows `line` apart). Returns the determinant but for its
     * exponent, to all. A zero pivot leaves what is not finite. */
    __device__ __forceinline__ double invert(T *r, int line, int64_t *exponent)
    {
        unsigned used = 0, places = 0; /* places: row of each column's pivot */
        int pivoted = 0;               /* column whose pivot is in this row */
        int changes = 0, shift = 0;
        double own = 1; /* the pivot of the column of the lane's number */
#pragma unroll
        for (int k = 0; k < M; k++) {
            T factor = of(v[k % 2], row, k);
            int place = choose(factor, used);
            T pivot = of(v[k % 2], place, k);
            T adjacent[2] = {of(v[0], place, column), of(v[1], place, column)};
            T by = cuda__real<T>::reciprocal(pivot);
            bool mine = row == place;
            changes += __popc(~used & ((1u << place) - 1));
            own = (int)threadIdx.x % M == k ? (double)pivot : own;
            factor *= by;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                T other = mine ? adjacent[e] * by : fma(-factor, adjacent[e], v[e]);
                v[e] = column + e != k ? other : mine ? by : -factor;
            }
            pivoted = mine ? k : pivoted;
            places |= (unsigned)place << (4 * k);
            used |= 1u << place;
        }
#pragma unroll
        for (int e = 0; e < 2; e++)
            r[pivoted * line + (places >> (4 * (column + e)) & 15u)] = v[e];
        own = frexp(own, &shift);
#pragma unroll
        for (int reach = M / 2; reach > 0; reach /= 2) {
            own *= __shfl_xor_sync(CUDA__ALL, own, reach);
            shift += __shfl_xor_sync(CUDA__ALL, shift, reach);
        }
        *exponent += shift;
        return changes % 2 ? -own : own;
    }
};

/* One matrix and its team. All threads of the warp call, converged. */
template <typename T, int N, int Lanes, int M> struct cuda__ism_few_update {
    typedef cuda__ism_team<Lanes> team;
    typedef cuda__ism_few_room<N, Lanes, M> room;
    static constexpr int probes = team::probes;
    static constexpr bool is_whole = probes == N;
    static constexpr int rows = N > 16 ? 8 : 4; /* of K that are added up together */
    static constexpr int kept = (int)(sizeof(cuda__ism_check) / sizeof(T)); /* numbers */

    const cuda__ism_call &call;
    const cuda_tensors *item;
    int64_t within;
    int n, m, t;      /* t: the thread's row and column */
    T *memory;        /* the team's */
    const T *weights; /* N x probes: T transposed */
    T z[N];           /* the thread's column */
    T x[M], y[M], k[M];
    T excess; /* 0 while all that was read is finite */
    double det;
    int64_t det_exponent;

    __device__ __forceinline__ bool mine() const
    {
        return t < n;
    }

    __device__ __forceinline__ void load()
    {
        const T *b = (const T *)item->inputs[METHOD_ISM_A0_INVERSE] + within * n * n + t;
        const T *from_x = (const T *)item->inputs[METHOD_ISM_X] + (within * n + t) * m;
        const T *from_y = (const T *)item->inputs[METHOD_ISM_Y] + (within * n + t) * m;
        excess = 0;
#pragma unroll
        for (int i = 0; i < N; i++)
            z[i] = mine() && i < n ? b[i * n] : T(0);
#pragma unroll
        for (int c = 0; c < M; c++) {
            x[c] = mine() && c < m ? from_x[c] : T(0);
            y[c] = mine() && c < m ? from_y[c] : T(0);
            excess += x[c] * 0 + y[c] * 0;
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            memory[i * room::ld + t] = z[i];
        cuda__ism_keep(memory + room::x + t * M, x);
        cuda__ism_keep(memory + room::y + t * M, y);
        team::sync();
    }

    /* The norms of X's columns. */
    __device__ __forceinline__ void measure(T (&norms)[M]) const
    {
#pragma unroll
        for (int c = 0; c < M; c++)
            norms[c] = fabs(x[c]);
        team::sum(norms, memory);
    }

    /* A row of |Y|, or a column of |K|, times them. */
    static __device__ __forceinline__ T weigh(const T (&norms)[M], const T (&numbers)[M])
    {
        T sum = 0;
#pragma unroll
        for (int c = 0; c < M; c++)
            sum = fma(norms[c], (T)fabs(numbers[c]), sum);
        return sum;
    }

    /* The column's part of T Z; returns the sum of its magnitudes. */
    __device__ __forceinline__ T look(T (&to)[CUDA__ISM_CHECK_PROBES]) const
    {
        T size = 0;
        to[0] = to[1] = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            size += fabs(z[i]);
            if (!is_whole) {
                to[0] = fma(weights[2 * i], z[i], to[0]);
                to[1] = fma(weights[2 * i + 1], z[i], to[1]);
            }
        }
        return size;
    }

    /* to = the thread's row of what is in the square times X; so many terms are unrolled. */
    template <int Terms> __device__ __forceinline__ void multiply_row(T (&to)[M]) const
    {
        const T *row = memory + (t < N ? t : N - 1) * room::ld;
        T line[M];
#pragma unroll
        for (int c = 0; c < M; c++)
            to[c] = 0;
#pragma unroll Terms
        for (int i = 0; i < N; i++) {
            const T value = row[i];
            cuda__ism_fetch(memory + room::x + i * M, line);
#pragma unroll
            for (int c = 0; c < M; c++)
                to[c] = fma(value, line[c], to[c]);
        }
    }

    /* k: the column of Y^T B; x becomes the row of B X. */
    __device__ __forceinline__ void multiply()
    {
        T line[M];
#pragma unroll
        for (int c = 0; c < M; c++)
            k[c] = 0;
#pragma unroll
        for (int first = 0; first < N; first += rows) {
            T part[M] = {};
#pragma unroll
            for (int i = first; i < first + rows; i++) {
                cuda__ism_fetch(memory + room::y + i * M, line);
#pragma unroll
                for (int c = 0; c < M; c++)
                    part[c] = fma(line[c], z[i], part[c]);
            }
#pragma unroll
            for (int c = 0; c < M; c++)
                k[c] += part[c];
        }
        multiply_row<N>(x);
    }

    /* x: the row of B X becomes that of B X R. */
    __device__ __forceinline__ void apply_r()
    {
        if constexpr (M == 1) {
            T sum[1] = {k[0] * memory[room::x + t]};
            team::sum(sum, memory);
            sum[0] += 1;
            cuda__ism_times(&det, &det_exponent, (double)sum[0]);
            x[0] *= 1 / sum[0];
        } else {
            typedef cuda__ism_few_block<T, Lanes, M> block;
            static_assert(block::threads <= Lanes, "a thread has two entries");
            const int at = t % block::threads;
            block r = {at / block::across, at % block::across * 2, {}};
            T g[M] = {}, line[M];
            team::sync();
            cuda__ism_keep(memory + room::y + t * M, k); /* Y is not read any more */
            team::sync();
#pragma unroll
            for (int e = 0; e < 2; e++)
                r.v[e] = r.row == r.column + e;
#pragma unroll 8
            for (int i = 0; i < N; i++) {
                const T left = memory[room::y + i * M + r.row];
                T both[2];
                cuda__ism_fetch(memory + room::x + i * M + r.column, both);
#pragma unroll
                for (int e = 0; e < 2; e++)
                    r.v[e] = fma(left, both[e], r.v[e]);
            }
            det = r.invert(memory + room::r, M, &det_exponent);
            team::sync();
#pragma unroll
            for (int a = 0; a < M; a++) {
                cuda__ism_fetch(memory + room::r + a * M, line);
#pragma unroll
                for (int c = 0; c < M; c++)
                    g[c] = fma(x[a], line[c], g[c]);
            }
#pragma unroll
            for (int c = 0; c < M; c++)
                x[c] = g[c];
        }
    }

    /* Z = B - G R K */
    __device__ __forceinline__ void update()
    {
        T line[M];
        team::sync();
        cuda__ism_keep(memory + room::g + t * M, x);
        team::sync();
#pragma unroll
        for (int i = 0; i < N; i++) {
            cuda__ism_fetch(memory + room::g + i * M, line);
#pragma unroll
            for (int c = 0; c < M; c++)
                z[i] = fma(-line[c], k[c], z[i]);
        }
    }

    /* thin (probes x M) = (T Z) X */
    __device__ __forceinline__ void find_thin(const T (&tz)[CUDA__ISM_CHECK_PROBES])
    {
        if constexpr (is_whole) {
            T zx[M];
#pragma unroll
            for (int i = 0; i < N; i++)
                memory[i * room::ld + t] = z[i];
            team::sync();
            multiply_row<N>(zx);
            cuda__ism_keep(memory + room::thin + t * M, zx);
        } else {
#pragma unroll
            for (int l = 0; l < CUDA__ISM_CHECK_PROBES; l++)
                memory[room::tz + l * Lanes + t] = tz[l];
            team::sync();
            T sum = 0;
            const int at = t % (CUDA__ISM_CHECK_PROBES * M);
#pragma unroll 8
            for (int i = 0; i < N; i++)
                sum = fma(memory[room::tz + at / M * Lanes + i], memory[room::x + i * M + at % M],
                          sum);
            memory[room::thin + at] = sum;
        }
        team::sync();
    }

    /* The sum of magnitudes of the column of X K. */
    __device__ __forceinline__ T size_of_change() const
    {
        T size = 0, line[M];
#pragma unroll
        for (int i = 0; i < N; i++) {
            T value = 0;
            cuda__ism_fetch(memory + room::x + i * M, line);
#pragma unroll
            for (int c = 0; c < M; c++)
                value = fma(line[c], k[c], value);
            size += fabs(value);
        }
        return size;
    }

    /* The column's part of T (B - Z M), by probe vectors: the largest, or their sum where they are
     * all. b: T B, or B itself. */
    template <int Lines> __device__ __forceinline__ T error(const T *b, const T *tz) const
    {
        T worst = 0, line[M];
#pragma unroll
        for (int l = 0; l < Lines; l++) {
            T sum = tz[l];
            cuda__ism_fetch(memory + room::thin + l * M, line);
#pragma unroll
            for (int c = 0; c < M; c++)
                sum = fma(line[c], k[c], sum);
            T off = fabs(b[l] - sum);
            worst = is_whole ? worst + off : cuda__max_or_nan(worst, off);
        }
        return worst;
    }

    /* By how many eps X K is off. */
    __device__ __forceinline__ double lost(double terms) const
    {
        const T *b = (const T *)item->inputs[METHOD_ISM_A0_INVERSE] + within * n * n;
        const T *all_x = (const T *)item->inputs[METHOD_ISM_X] + within * n * m;
        const T *all_y = (const T *)item->inputs[METHOD_ISM_Y] + within * n * m;
        T *columns = memory + kept;
#pragma unroll
        for (int c = 0; c < M; c++)
            columns[c * Lanes + t] = k[c];
        const double loss =
            mine() ? cuda__ism_loss_of<T>(n, m, t, b, all_x, all_y, columns + t, Lanes) : 0;
        return cuda__ism_lost_by<T, T>(n, team::largest(loss, (double *)columns), terms);
    }

    /* The column's sum of |B - Z M|. Of what is in shared memory X is kept; B is read again. */
    __device__ __forceinline__ T whole_error() const
    {
        const T *b = (const T *)item->inputs[METHOD_ISM_A0_INVERSE] + within * n * n + t;
        T zx[M], line[M], size = 0;
        team::sync();
#pragma unroll
        for (int i = 0; i < N; i++)
            memory[i * room::ld + t] = z[i];
        team::sync();
        multiply_row<8>(zx);
        cuda__ism_keep(memory + room::y + t * M, zx);
        team::sync();
#pragma unroll
        for (int i = 0; i < N; i++) {
            T left = (mine() && i < n ? b[i * n] : T(0)) - z[i];
            cuda__ism_fetch(memory + room::y + i * M, line);
#pragma unroll
            for (int c = 0; c < M; c++)
                left = fma(-line[c], k[c], left);
            size += fabs(left);
        }
        return size;
    }

    /* Is there more of B - Z M than is allowed that its probe vectors may not have seen? Of several
     * columns |G| |R| |K| counts, for which |Z| times `met` stands, by a search: it is no bound of
     * it. All threads of the warp call. */
    __device__ __forceinline__ bool hides(const cuda__ism_check &check, double met) const
    {
        const double share = cuda__max_or_nan(check.norm_a / check.norm_x, M > 1 ? met : 1.0);
        const bool may = cuda__ism_hides<T, T>(n, met, share, check.change);
        if (!__any_sync(CUDA__ALL, may))
            return false;
        const double error = (double)team::largest(whole_error(), memory);
        return may && cuda__ism_was_hidden<T>(n, error, check.norm_x * (1 + check.change));
    }

    /* The verdict, by the check that lies in shared memory. */
    __device__ __forceinline__ void conclude(bool writes) const
    {
        cuda__ism_check check = *(const cuda__ism_check *)memory;
        const double terms = check.lost;
        check.lost = cuda__ism_lost<T, T>(n, rows, terms);
        const bool cancels = cuda__ism_cancels(n, check.lost, check.change);
        if (__any_sync(CUDA__ALL, cancels)) {
            const double found = lost(terms);
            check.lost = cancels ? found : check.lost;
        }
        if (writes && t == 0)
            cuda__ism_judge<T>(call, item, within, check, METHOD_ALGORITHM_BLOCK);
    }

    __device__ __forceinline__ void run(bool writes)
    {
        T tb[CUDA__ISM_CHECK_PROBES], tz[CUDA__ISM_CHECK_PROBES], b[is_whole ? N : 1];
        cuda__ism_check check;
        load();
        T size_b = look(tb), norms[M];
        measure(norms);
        const T row = weigh(norms, y);
        /* A sum that is finite is one of finite numbers. */
        if (!(size_b <= cuda__real<T>::largest)) {
#pragma unroll
            for (int i = 0; i < N; i++)
                excess += z[i] * 0;
        }
#pragma unroll
        for (int i = 0; is_whole && i < N; i++)
            b[is_whole ? i : 0] = z[i];
        multiply();
        const T met = weigh(norms, k);
        det = 1;
        det_exponent = 0;
        apply_r();
        update();
        T size_z = look(tz);
        find_thin(tz);
        T worst =
            is_whole ? error < is_whole ? N : 1 > (b, z) : error<CUDA__ISM_CHECK_PROBES>(tb, tz);
        T largest[8] = {worst, size_z, size_b, size_of_change(), row, met, (T)fabs(excess), 0};
        team::largest_of_eight(largest, memory);
        check.error = (double)largest[0];
        check.norm_x = (double)largest[1];
        check.norm_a = (double)largest[2];
        check.change = (double)largest[3];
        check.lost = (double)largest[4] * check.norm_a; /* its terms, as yet */
        check.bad = !(largest[6] == 0);
        const double max_met = (double)largest[5];
        bool hidden = false;
        if constexpr (!is_whole)
            hidden = hides(check, max_met);
        check.blind = hidden || cuda__ism_blinds<T, T>(n, n, max_met, check.change);
        check.det_ratio = cuda__ism_value(det, det_exponent);
        team::sync();
        if (t == 0)
            *(cuda__ism_check *)memory = check;
        T *inverse = (T *)item->outputs[METHOD_ISM_INVERSE];
        if (inverse)
            inverse += within * n * n + t;
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (writes && inverse && mine() && i < n)
                inverse[i * n] = check.bad ? cuda__real<T>::nan() : z[i];
        }
        team::sync();
        conclude(writes);
        team::sync();
    }
};

/* Blocks of a multiprocessor, at least: as many as registers allow without many spills. */
template <typename T, int N, int M> static constexpr int cuda__ism_few_blocks()
{
    return sizeof(T) == sizeof(float) || (N <= 16 && M <= 2) ? 5 : 4;
}

template <typename T, int N, int Lanes, int M>
static __global__ void __launch_bounds__(CUDA__ISM_TEAM_BLOCK, cuda__ism_few_blocks<T, N, M>())
    cuda__ism_few_kernel(const cuda__ism_call call)
{
    typedef cuda__ism_team<Lanes> team;
    typedef cuda__ism_few_room<N, Lanes, M> room;
    constexpr int held = (N * CUDA__ISM_CHECK_PROBES + 3) / 4 * 4; /* numbers of weights */
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int n = (int)call.n, number = (int)threadIdx.x / Lanes;
    T *weights = (T *)cuda__memory, *memory = weights + held + number * room::numbers;
    for (int e = threadIdx.x; e < held; e += CUDA__ISM_TEAM_BLOCK)
        weights[e] =
            e / CUDA__ISM_CHECK_PROBES < n
                ? (T)cuda__ism_weight(n, e / CUDA__ISM_CHECK_PROBES, e % CUDA__ISM_CHECK_PROBES)
                : T(0);
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * team::teams; first < call.matrices;
         first += (int64_t)gridDim.x * team::teams) {
        int64_t index = first + number, within;
        bool writes = index < call.matrices;
        const cuda_tensors *item =
            cuda__ism_item(call, writes ? index : call.matrices - 1, &within);
        cuda__ism_few_update<T, N, Lanes, M> one = {
            call, item, within, n, (int)call.m, (int)threadIdx.x % Lanes, memory, weights};
        one.run(writes);
    }
}

template <typename T, int N, int Lanes, int M>
static cudaError_t cuda__ism_start_few(const cuda__ism_call &call, cudaStream_t stream)
{
    constexpr int teams = cuda__ism_team<Lanes>::teams;
    constexpr size_t numbers =
        (N * CUDA__ISM_CHECK_PROBES + 3) / 4 * 4 + teams * cuda__ism_few_room<N, Lanes, M>::numbers;
    int64_t blocks = (call.matrices + teams - 1) / teams;
    return cuda__start(cuda__ism_few_kernel<T, N, Lanes, M>,
                       (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), CUDA__ISM_TEAM_BLOCK,
                       numbers * sizeof(T), stream, call);
}

/* m > 0. More columns than a block of them has are not for this. */
template <typename T, int N, int Lanes>
static cudaError_t cuda__ism_launch_few(const cuda__ism_call &call, cudaStream_t stream)
{
    if (call.m == 1)
        return cuda__ism_start_few<T, N, Lanes, 1>(call, stream);
    if (call.m == 2)
        return cuda__ism_start_few<T, N, Lanes, 2>(call, stream);
    if (call.m <= 4)
        return cuda__ism_start_few<T, N, Lanes, 4>(call, stream);
    return cudaErrorInvalidValue;
}

#endif
