/* gpu/cuda/tridiagonal/solve.cuh: the O(n) numbers of one tridiagonal matrix and its report, by one
 * block of threads, or one a chunk of rows: which way is taken, INFO, RCOND, METHOD and the
 * diagonal, algorithm by algorithm as gpu/host/tridiagonal/tridiagonal.c has it.
 *
 * Dominant matrices take the two sweeps, and from there the merging where it is asked for; others
 * the minors. A way that divides by zero, overflows, or fails its check leaves the matrix to the
 * next one.
 *
 * The inputs are read by the first kernel alone: once, and of matrices of several chunks once by
 * each of a chunk's four blocks.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_SOLVE_CUH
#define GPU_CUDA_TRIDIAGONAL_SOLVE_CUH

#include "gpu/cuda/tridiagonal/device.cuh"
#include "gpu/cuda/tridiagonal/join.cuh"
#include "gpu/cuda/tridiagonal/merge.cuh"
#include "gpu/cuda/tridiagonal/minors.cuh"
#include "gpu/cuda/tridiagonal/sweep.cuh"

/* ---- Generators ---- */

/* The lines of X as the outputs GENERATORS and EXPONENTS have them: mantissa * 2^(64 exponent),
 * 32 bits for the exponent, and the mantissa from 2^-32 to 2^32.
 *
 * Where A falls apart, lines hold a factor that no such exponent has room for. It is taken out, and
 * exponents are moved by as little as makes products across the gap underflow, as
 * gpu/host/tridiagonal/generators.c does it: one thread for each side of the diagonal.
 *
 * Cost: O(n), and where A falls apart some ten cycles a row for those two.
 */

#define CUDA__TRI_UNIT 64         /* of exponents */
#define CUDA__TRI_UNDERFLOW (-18) /* units below which a product of two mantissas underflows */

template <typename T, int Threads> struct cuda__tri_generators {
    cuda__tri_part part;
    int64_t n;

    /* Exponents of line k. The sweep from below, and the sums, are no longer needed. */
    __device__ __forceinline__ int32_t *exponents(int k) const
    {
        return (int32_t *)part.array(CUDA__TRI_REST) + k * part.pitch;
    }

    /* How often a number holds CUDA__NOTHING: exponents are smaller than half of that otherwise. */
    static __device__ __forceinline__ int64_t nothings(const cuda__number &number)
    {
        return (number.exponent + CUDA__NOTHING / 2) >> 38;
    }

    /* The exponent without them. */
    static __device__ __forceinline__ int64_t clean(const cuda__number &number)
    {
        return number.exponent - (nothings(number) << 38);
    }

    static __device__ __forceinline__ int32_t units(const cuda__number &number)
    {
        return (int32_t)((clean(number) + CUDA__TRI_UNIT / 2 - 1) >> 6);
    }

    /* The part of A that row i is in, by a number that differs from its neighbours'. A line that is
     * zero there shows nothing. */
    __device__ __forceinline__ int64_t segment(int early, int late, int64_t i,
                                               int64_t otherwise) const
    {
        cuda__number row = part.line(early)[i], column = part.line(late)[i];
        if (row.mantissa != 0)
            return nothings(row);
        return column.mantissa != 0 ? -nothings(column) : otherwise;
    }

    __device__ __forceinline__ int64_t larger(int line, int64_t i, int64_t most) const
    {
        int64_t here = exponents(line)[i];
        return part.line(line)[i].mantissa != 0 && here > most ? here : most;
    }

    /* Numbers of `early` in one part of A times numbers of `late` in a later one underflow. */
    __device__ __forceinline__ void separate(int early, int late) const
    {
        const int64_t none = -(INT64_C(1) << 40);
        int64_t max_early = none, here = segment(early, late, 0, 0);
        for (int64_t first = 0, end = 0; first < n; first = end) {
            int64_t number = here, widest = none, most = none;
            for (end = first; end < n && here == number; end++) {
                widest = larger(early, end, widest);
                most = larger(late, end, most);
                here = end + 1 < n ? segment(early, late, end + 1, number) : number + 1;
            }
            int64_t down = max_early + most - CUDA__TRI_UNDERFLOW;
            down = down > 0 ? down : 0;
            for (int64_t i = first; i < end; i++) {
                exponents(early)[i] += (int32_t)down;
                exponents(late)[i] -= (int32_t)down;
            }
            max_early = widest + down > max_early ? widest + down : max_early;
        }
    }

    /* All threads, together. NULL: not wanted. */
    __device__ __forceinline__ void write(T *mantissas, int32_t *wanted) const
    {
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            for (int k = 0; k < CUDA__TRI_LINES; k++)
                exponents(k)[i] = units(part.line(k)[i]);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            separate(CUDA__TRI_UPPER_ROW, CUDA__TRI_UPPER_COLUMN);
        if (threadIdx.x == 1)
            separate(CUDA__TRI_LOWER_COLUMN, CUDA__TRI_LOWER_ROW);
        __syncthreads();
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            for (int k = 0; k < CUDA__TRI_LINES; k++) {
                cuda__number number = part.line(k)[i];
                int down = (int)(clean(number) - (int64_t)units(number) * CUDA__TRI_UNIT);
                if (mantissas)
                    mantissas[k * n + i] = (T)cuda__scale(number.mantissa, down);
                if (wanted)
                    wanted[k * n + i] = exponents(k)[i];
            }
        }
    }

    /* There are none. */
    __device__ __forceinline__ void refuse(T *mantissas, int32_t *wanted) const
    {
        for (int64_t i = threadIdx.x; i < CUDA__TRI_LINES * n; i += Threads) {
            if (mantissas)
                mantissas[i] = cuda__real<T>::nan();
            if (wanted)
                wanted[i] = 0;
        }
    }
};

template <typename T, int Threads>
static __device__ __noinline__ void cuda__tri_write_generators(cuda__tri_part part, int64_t n,
                                                               bool found, T *mantissas,
                                                               int32_t *exponents)
{
    cuda__tri_generators<T, Threads> generators = {part, n};
    if (found)
        generators.write(mantissas, exponents);
    else
        generators.refuse(mantissas, exponents);
    __syncthreads();
}

#define CUDA__TRI_GROWTH_MAX 4 /* as the host's */
#define CUDA__TRI_ERROR_MAX 4

template <int Threads, int Each = 1> struct cuda__tri_memory {
    typename cuda__block<Threads>::shared scans;
    typename cuda__tri_sweeper<Threads, Each>::shared sweeps;
    cuda__tri_band<Threads * Each> band;
    typename cuda__tri_chunk_merger<Threads>::shared merges;
    cuda__tri_stage stage;
    bool last;
};

static inline __host__ __device__ int64_t cuda__tri_chunks(int64_t n, int threads)
{
    return (n + threads - 1) / threads;
}

/* From |A| and |X|; 0 where |X| is out of range. */
template <typename T>
static __device__ __forceinline__ T cuda__tri_rcond(const cuda__number &norm,
                                                    const cuda__number &norm_x)
{
    cuda__number most = cuda__normal((double)cuda__real<T>::largest, 0);
    cuda__number inverse = cuda__over(cuda__over({0.5, 1}, norm), norm_x);
    T found = (T)cuda__assemble(inverse.mantissa, inverse.exponent);
    return cuda__is_larger(norm_x, most) ? T(0) : found;
}

/* Each: rows of a thread in the sweeps; with more than 1 nothing is merged. */
template <typename T, int Threads, int Each = 1> struct cuda__tri_solver {
    static constexpr int rows = Threads * Each; /* of a chunk */

    const cuda__tri_call &call;
    cuda__tri_memory<Threads, Each> *memory;
    cuda__tri_part part;
    const cuda_tensors *item;
    int64_t within, n;
    cuda__block<Threads> block;
    cuda__number norm; /* |A| */
    bool finite, by_rows, dominant;
    /* The answer: */
    cuda__number norm_x;
    const double *diagonal;
    int64_t info;
    int algorithm, form, levels;

    /* Matrix k of the call, in part `slot` of the workspace. */
    __device__ __forceinline__ cuda__tri_solver(const cuda__tri_call &of, int64_t k, int64_t slot,
                                                cuda__tri_memory<Threads, Each> *shared)
        : call(of), memory(shared), part(cuda__tri_find_part(of, slot)),
          item(cuda__tri_find(of, of.first + k, &within)),
          n(of.n), block{&shared->scans, 0}, norm{0, 0}, finite(false), by_rows(false),
          dominant(false), norm_x{0, 0}, diagonal(nullptr), info(0),
          algorithm(METHOD_ALGORITHM_NONE), form(CUDA__TRI_NAN), levels(0)
    {
    }

    template <typename V> __device__ __forceinline__ V *output(int index, int64_t length) const
    {
        V *data = (V *)item->outputs[index];
        return data ? data + within * length : nullptr;
    }

    __device__ __forceinline__ cuda__tri_sweeper<Threads, Each> sweeper(int64_t first) const
    {
        return {memory->band, &memory->sweeps, first, n};
    }

    /* The band of a chunk as doubles, with zeros outside of A, from the inputs. keeps: and for
     * later, in the workspace. */
    __device__ __forceinline__ void load(int64_t first, bool keeps) const
    {
        const T *dl = (const T *)item->inputs[METHOD_TRIDIAGONAL_DL] + within * (n - 1);
        const T *d = (const T *)item->inputs[METHOD_TRIDIAGONAL_D] + within * n;
        const T *du = (const T *)item->inputs[METHOD_TRIDIAGONAL_DU] + within * (n - 1);
        for (int t = threadIdx.x; t < rows + 2; t += Threads) {
            int64_t i = first + t - 1;
            bool in = i >= 0 && i < n;
            double sub = in && i > 0 ? (double)dl[i - 1] : 0, middle = in ? (double)d[i] : 0;
            double sup = in && i + 1 < n ? (double)du[i] : 0;
            memory->band.sub[t] = sub;
            memory->band.middle[t] = middle;
            memory->band.sup[t] = sup;
            if (!keeps || !in || t < 1 || t > rows)
                continue;
            part.sub()[i] = sub;
            part.middle()[i] = middle;
            part.sup()[i] = sup;
        }
        block.sync();
    }

    /* The same from the workspace. */
    __device__ __forceinline__ void load_again(int64_t first) const
    {
        for (int t = threadIdx.x; t < rows + 2; t += Threads) {
            int64_t i = first + t - 1;
            bool in = i >= 0 && i < n;
            memory->band.sub[t] = in ? part.sub()[i] : 0;
            memory->band.middle[t] = in ? part.middle()[i] : 0;
            memory->band.sup[t] = in ? part.sup()[i] : 0;
        }
        block.sync();
    }

    /* |A|. Is A dominant? */
    __device__ __forceinline__ void see(const cuda__tri_look &look)
    {
        norm = cuda__tri_norm(look);
        finite = !(look.flags & CUDA__TRI_NOT_FINITE);
        by_rows = !(look.flags & CUDA__TRI_NOT_BY_ROWS);
        dominant = by_rows || !(look.flags & CUDA__TRI_NOT_BY_COLUMNS);
    }

    /* Numbers that are not negative, and NaN, which is the largest of all. */
    __device__ __forceinline__ unsigned long long largest_bits(double value)
    {
        unsigned long long bits = (unsigned long long)__double_as_longlong(value);
        return block.reduce(
            bits, [](unsigned long long a, unsigned long long b) { return a > b ? a : b; });
    }

    static __device__ __forceinline__ double number_of(unsigned long long bits)
    {
        return __longlong_as_double((long long)bits);
    }

    static __device__ __forceinline__ unsigned long long larger(unsigned long long bits,
                                                                double value)
    {
        unsigned long long other = (unsigned long long)__double_as_longlong(value);
        return other > bits ? other : bits;
    }

    __device__ __forceinline__ bool sweeps() const
    {
        return finite && dominant && call.variant != METHOD_TRIDIAGONAL_PIVOTED;
    }

    /* |A| |X|; infinite where that is out of range. */
    __device__ __forceinline__ double condition() const
    {
        cuda__number product = cuda__times(norm, norm_x);
        return cuda__assemble(product.mantissa, product.exponent);
    }

    __device__ __forceinline__ bool merges() const
    {
        return Each == 1 && sweeps() && call.variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON;
    }

    /* The chunk's part of the merging: the growth in it, as bits. */
    __device__ __forceinline__ unsigned long long merge_chunk(int64_t first)
    {
        cuda__tri_chunk_merger<Threads> merger = {memory->band,     &memory->merges, part, first, n,
                                                  call.keeps_levels};
        return largest_bits(merger.run());
    }

    /* What the chunks have found. */
    struct sums {
        double norm;  /* |X| */
        double error; /* the largest of the determinant */
        /* Of the merging, and NaN where it divided by zero: */
        double growth;     /* no product of a column and a row was larger */
        double difference; /* of its diagonal and the two sweeps' */
    };

    /* Are the levels above chunks the work of all of them? */
    __device__ __forceinline__ bool joins() const
    {
        return merges() && n > CUDA__TRI_BLOCK_N_MAX &&
               cuda__tri_joins(call.variant, cuda__tri_chunks(n, Threads), Threads);
    }

    /* Of the merging's diagonal and the two sweeps'. */
    __device__ __forceinline__ double largest_difference()
    {
        unsigned long long largest = 0;
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < n; i += Threads)
            largest = larger(largest, fabs(part.merged()[i] - part.diagonal()[i]));
        return number_of(largest_bits(number_of(largest)));
    }

    /* The levels above chunks, by this block. */
    __device__ __forceinline__ void merge_above(sums *of)
    {
        cuda__tri_merged merged =
            cuda__tri_merge<Threads>(part, block.memory, n, call.keeps_levels);
        of->difference = largest_difference();
        of->growth = merged.growth <= of->growth || isnan(of->growth) ? of->growth : merged.growth;
        of->growth = merged.levels < 0 ? cuda__real<double>::nan() : of->growth;
    }

    /* Did the merging's blocks stay as small as X, and does the diagonal that it found agree with
     * the two sweeps'? */
    __device__ __forceinline__ bool is_merged(double size, double growth, double difference)
    {
        for (levels = 0; INT64_C(2) << levels < n;)
            levels++;
        return growth <= CUDA__TRI_GROWTH_MAX * size &&
               difference <= (double)n * (double)cuda__real<T>::eps * size;
    }

    __device__ __forceinline__ bool has_merged(sums of)
    {
        if (!joins())
            merge_above(&of);
        return is_merged(of.norm, of.growth, of.difference);
    }

    /* Do the sweeps hold? The sum of a column of |X|, and the error of the determinant. */
    __device__ __forceinline__ bool holds(double sum, double error) const
    {
        return sum <= (double)cuda__real<T>::largest &&
               error <= CUDA__TRI_ERROR_MAX * (double)n * (double)cuda__real<T>::eps;
    }

    /* The ways for dominant matrices, after the sweeps. False: neither holds. */
    __device__ __forceinline__ bool accept(const sums &of)
    {
        if (!holds(of.norm, of.error))
            return false;
        norm_x = cuda__normal(of.norm, 0);
        algorithm = METHOD_ALGORITHM_SHERMAN_MORRISON;
        form = CUDA__TRI_BY_LEVELS;
        diagonal = part.merged();
        if (merges() && has_merged(of))
            return true;
        algorithm = METHOD_ALGORITHM_TWO_SWEEP;
        form = CUDA__TRI_BY_LINES;
        diagonal = part.diagonal();
        return true;
    }

    /* Sets info: 0, a zero pivot's step, or n + 1 when the inverse that came out is not good. */
    __device__ __forceinline__ void run_minors()
    {
        cuda__tri_minor_sums sums =
            cuda__tri_find_minors<Threads>(part, block.memory, &memory->stage, n);
        double eps = (double)cuda__real<T>::eps;
        algorithm = METHOD_ALGORITHM_PIVOTED;
        info = sums.info;
        if (info)
            return;
        norm_x = sums.norm;
        diagonal = part.diagonal();
        form = CUDA__TRI_BY_LINES;
        bool good = sums.error <= CUDA__TRI_ERROR_MAX * (double)n * eps * condition();
        if (!good && condition() * eps <= 1) {
            info = n + 1;
            form = CUDA__TRI_NAN;
        }
    }

    /* RCOND, and INFO where it follows from it. */
    __device__ __forceinline__ T rcond()
    {
        if (form == CUDA__TRI_NAN)
            return info < 0 ? cuda__real<T>::nan() : (T)0;
        T found = cuda__tri_rcond<T>(norm, norm_x);
        info = found < cuda__real<T>::eps ? n + 1 : 0;
        return found;
    }

    __device__ __forceinline__ void report()
    {
        T *wanted = output<T>(METHOD_TRIDIAGONAL_DIAGONAL, n);
        T number = rcond();
        for (int64_t i = threadIdx.x; wanted && i < n; i += Threads)
            wanted[i] = form == CUDA__TRI_NAN ? cuda__real<T>::nan() : (T)diagonal[i];
        if (threadIdx.x != 0)
            return;
        *part.answer() = {cuda__tri_start_of<T>(call, item, within),
                          form,
                          (int32_t)info,
                          algorithm,
                          levels,
                          0,
                          0,
                          0,
                          0};
        if (int32_t *to = output<int32_t>(METHOD_TRIDIAGONAL_INFO, 1))
            *to = (int32_t)info;
        if (T *to = output<T>(METHOD_TRIDIAGONAL_RCOND, 1))
            *to = number;
        if (int32_t *to = output<int32_t>(METHOD_TRIDIAGONAL_ALGORITHM, 1))
            *to = algorithm;
    }

    /* Everything after the sweeps. */
    __device__ __forceinline__ void conclude(const sums &of)
    {
        if (!finite)
            info = -1;
        else if (!sweeps() || !accept(of))
            run_minors();
        report();
        T *mantissas = output<T>(METHOD_TRIDIAGONAL_GENERATORS, CUDA__TRI_LINES * n);
        int32_t *exponents = output<int32_t>(METHOD_TRIDIAGONAL_EXPONENTS, CUDA__TRI_LINES * n);
        if (mantissas || exponents)
            cuda__tri_write_generators<T, Threads>(part, n, form != CUDA__TRI_NAN, mantissas,
                                                   exponents);
    }

    /* Both sweeps over a matrix that is one chunk. */
    __device__ __forceinline__ void sweep_all(sums *of)
    {
        cuda__tri_sweeper<Threads, Each> sweep = sweeper(0);
        const int at = threadIdx.x * Each, end = at + Each - 1;
        cuda__tri_row row[Each];
        cuda__tri_states before[Each]; /* each row, from either side */
        cuda__tri_span all;
#pragma unroll
        for (int k = 0; k < Each; k++)
            row[k] = sweep.row(at + k, by_rows);
        cuda__tri_span down = sweep.down(row[0], at), up = sweep.up(row[Each - 1], end);
#pragma unroll
        for (int k = 1; k < Each; k++) {
            down = cuda__tri_join(down, sweep.down(row[k], at + k));
            up = cuda__tri_join(up, sweep.up(row[Each - 1 - k], end - k));
        }
        cuda__tri_states states = sweep.scan(down, up, sweep.at_ends(), &all);
        before[0].down = states.down;
        before[Each - 1].up = states.up;
#pragma unroll
        for (int k = 1; k < Each; k++) {
            before[k].down = cuda__tri_step(before[k - 1].down, sweep.down(row[k - 1], at + k - 1));
            before[Each - 1 - k].up =
                cuda__tri_step(before[Each - k].up, sweep.up(row[Each - k], end - k + 1));
        }
        unsigned long long norm = 0, error = 0;
#pragma unroll
        for (int k = 0; k < Each; k++) {
            auto found = sweep.finish(at + k, row[k], before[k], {all.a + all.c, all.e}, part);
            norm = larger(norm, found.column);
            error = larger(error, found.error);
        }
        of->norm = number_of(largest_bits(number_of(norm)));
        of->error = number_of(largest_bits(number_of(error)));
    }

    /* A matrix that is one chunk. */
    __device__ __forceinline__ void run()
    {
        sums of = {0, 0, 0, 0};
        cuda__tri_look look = {0, 0, 0};
        load(0, true);
        for (int k = 0; k < Each; k++)
            look = cuda__tri_both_looks(look, sweeper(0).look(threadIdx.x * Each + k));
        see(block.reduce(look, cuda__tri_both_looks));
        if (sweeps())
            sweep_all(&of);
        if constexpr (Each == 1) {
            if (merges())
                of.growth = number_of(merge_chunk(0));
        }
        block.sync();
        conclude(of);
    }

    /* The merging alone, of a matrix that is one chunk; found: |X|, and the diagonal, by the
     * sweeps. False: it does not hold, and nothing was reported. */
    __device__ __forceinline__ bool run_merging(const double *found)
    {
        if constexpr (Each == 1) {
            const int i = threadIdx.x;
            load(0, false);
            see(block.reduce(sweeper(0).look(i), cuda__tri_both_looks));
            double growth = number_of(merge_chunk(0));
            double difference = i < n ? fabs(part.merged()[i] - found[1 + i]) : 0;
            difference = number_of(largest_bits(difference));
            if (!is_merged(found[0], growth, difference))
                return false;
            norm_x = cuda__normal(found[0], 0);
            algorithm = METHOD_ALGORITHM_SHERMAN_MORRISON;
            form = CUDA__TRI_BY_LEVELS;
            diagonal = part.merged();
            block.sync();
            report();
        }
        return Each == 1;
    }

    /* ---- Matrices of more rows: chunk by chunk ---- */

    /* What a chunk multiplies by, and its rows before each one, in one direction. by_rows: if A is
     * dominant by rows. The chunk is loaded. */
    __device__ __forceinline__ void scan_chunk(int64_t chunk, bool by_rows, bool up) const
    {
        const int64_t first = chunk * Threads;
        const int at = up ? Threads - 1 - threadIdx.x : threadIdx.x;
        cuda__tri_chunk *to = part.chunks() + chunk;
        cuda__tri_sweeper<Threads> sweep = sweeper(first);
        cuda__tri_row row = sweep.row(at, by_rows);
        cuda__tri_span before,
            all = sweep.scan_chunk(up ? sweep.up(row, at) : sweep.down(row, at), &before);
        if (first + at < n)
            part.spans(by_rows, up)[first + at] = before;
        if (threadIdx.x == 0)
            (up ? to->up : to->down)[by_rows ? 0 : 1] = all;
    }

    /* Looks at a chunk, which is loaded; of the first one all is made ready for the others. */
    __device__ __forceinline__ void look_at_chunk(int64_t chunk)
    {
        cuda__tri_look look =
            block.reduce(sweeper(chunk * Threads).look(threadIdx.x), cuda__tri_both_looks);
        if (threadIdx.x == 0)
            part.chunks()[chunk].look = look;
        if (threadIdx.x == 0 && chunk == 0)
            part.answer()->arrived = part.answer()->norm = part.answer()->error =
                part.answer()->growth = part.answer()->difference = 0;
    }

    __device__ __forceinline__ void begin_chunk(int64_t chunk, bool by_rows, bool up)
    {
        const bool looks = by_rows && !up;
        load(chunk * Threads, looks);
        scan_chunk(chunk, by_rows, up);
        if (looks)
            look_at_chunk(chunk);
    }

    /* Was this the last of all chunks to come here? */
    __device__ __forceinline__ bool arrive(int64_t chunks) const
    {
        __threadfence();
        block.sync();
        if (threadIdx.x == 0)
            memory->last =
                atomicAdd(&part.answer()->arrived, 1ull) + 1 == (unsigned long long)chunks;
        block.sync();
        __threadfence();
        return memory->last;
    }

    /* Of each chunk of the merging. */
    __device__ __forceinline__ double *growths() const
    {
        return part.array(CUDA__TRI_REST);
    }

    /* The merging of a chunk, before anything is known of A. */
    __device__ __forceinline__ void begin_merging(int64_t chunk)
    {
        load(chunk * Threads, false);
        double growth = number_of(merge_chunk(chunk * Threads));
        joiner(cuda__tri_chunks(n, Threads), chunk).prepare();
        if (threadIdx.x == 0)
            growths()[chunk] = growth;
    }

    /* Looks at all chunks. Returns how many there are. */
    __device__ __forceinline__ int64_t see_chunks()
    {
        int64_t number = cuda__tri_chunks(n, Threads);
        cuda__tri_look look = {0, 0, 0};
        for (int64_t i = threadIdx.x; i < number; i += Threads)
            look = cuda__tri_both_looks(look, part.chunks()[i].look);
        see(block.reduce(look, cuda__tri_both_looks));
        return number;
    }

    __device__ __forceinline__ sums found_sums() const
    {
        const volatile cuda__tri_answer *seen = part.answer();
        return {number_of(seen->norm), number_of(seen->error), number_of(seen->growth),
                number_of(seen->difference)};
    }

    /* Before and behind a chunk. All threads, together. */
    __device__ __forceinline__ cuda__tri_states states_of(const cuda__tri_sweeper<Threads> &sweep,
                                                          int64_t chunk, int64_t number,
                                                          cuda__number *det) const
    {
        typedef cuda__tri_sweeper<Threads> sweeper_type;
        const cuda__tri_chunk *chunks = part.chunks();
        const int way = by_rows ? 0 : 1;
        const auto mine = sweeper_type::share_of(number);
        auto span = [&](bool is_up, int64_t i) -> cuda__tri_span {
            return is_up ? chunks[i].up[way] : chunks[i].down[way];
        };
        cuda__tri_span first = cuda__tri_no_rows();
        if (mine.begin < mine.end)
            first = span(mine.is_up, sweeper_type::place_of(mine, mine.begin));
        sweep.find_states(
            number, first, span,
            [&](bool is_up, int64_t i, const cuda__tri_state &state) {
                if (i == chunk)
                    (is_up ? memory->sweeps.begin.up : memory->sweeps.begin.down) = state;
            },
            det);
        return memory->sweeps.begin;
    }

    /* The numbers of a chunk's rows, once all chunks have begun; and then of the matrix. The chunk
     * is loaded, and all are seen. */
    __device__ __forceinline__ void finish_chunk(int64_t chunk, int64_t number)
    {
        cuda__tri_answer *answer = part.answer();
        if (sweeps()) {
            const int64_t i = chunk * Threads + threadIdx.x;
            cuda__tri_sweeper<Threads> sweep = sweeper(chunk * Threads);
            cuda__number det;
            cuda__tri_span above = cuda__tri_no_rows(), below = above;
            if (i < n) {
                above = part.spans(by_rows, false)[i];
                below = part.spans(by_rows, true)[i];
            }
            cuda__tri_states at = states_of(sweep, chunk, number, &det);
            at = {cuda__tri_step(at.down, above), cuda__tri_step(at.up, below)};
            auto found = sweep.finish(threadIdx.x, sweep.row(threadIdx.x, by_rows), at, det, part);
            unsigned long long sum = largest_bits(found.column), error = largest_bits(found.error);
            if (threadIdx.x == 0) {
                atomicMax(&answer->norm, sum);
                atomicMax(&answer->error, error);
            }
        }
        if (merges()) {
            unsigned long long growth = merge_chunk(chunk * Threads);
            if (threadIdx.x == 0)
                atomicMax(&answer->growth, growth);
        }
        if (joins()) {
            joiner(number, chunk).prepare();
            return;
        }
        if (arrive(number))
            conclude(found_sums());
    }

    __device__ __forceinline__ void end_chunk(int64_t chunk)
    {
        int64_t number = see_chunks();
        load_again(chunk * Threads);
        finish_chunk(chunk, number);
    }

    __device__ __forceinline__ cuda__tri_joiner<Threads> joiner(int64_t number, int64_t chunk) const
    {
        return {&memory->band, &memory->merges, part, n, number, chunk, call.keeps_levels};
    }

    /* The merging above chunks, once all chunks have ended. */
    __device__ __forceinline__ void join_chunk(int64_t chunk)
    {
        int64_t number = see_chunks();
        if (!merges())
            return;
        cuda__tri_joiner<Threads> joined = joiner(number, chunk);
        unsigned long long difference = largest_bits(joined.run());
        if (threadIdx.x == 0)
            atomicMax(&part.answer()->difference, difference);
        if (!arrive(number))
            return;
        sums of = found_sums();
        double growth = number_of(largest_bits(joined.growth()));
        of.growth = growth <= of.growth || isnan(of.growth) ? of.growth : growth;
        conclude(of);
    }
};

#endif
