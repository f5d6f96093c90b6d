/* gpu/cuda/tridiagonal/warps.cuh: matrices of middle orders by chunks of a warp's rows: as many
 * blocks of threads as there are chunks, so that one matrix has the whole device, and few steps a
 * chunk.
 *
 * A first kernel scans each chunk, a warp for each way of dominance and each direction. A second
 * one joins the chunks, in every block anew, and finds the lines of X in its own chunk's rows.
 * These are counted, and when all are there the third kernel writes X: it does not wait for the
 * report, which the last block of the second one makes.
 *
 * The third kernel begins when all blocks of the second one have begun, so it may wait for their
 * count. Where lines do not hold it waits for the second kernel's end, and does as its answer says.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_WARPS_CUH
#define GPU_CUDA_TRIDIAGONAL_WARPS_CUH

#include "gpu/cuda/tridiagonal/solve.cuh"

/* What a chunk adds to the count whose lines do not hold, next to 1. */
#define CUDA__TRI_BAD_LINES (UINT64_C(1) << 32)

#define CUDA__TRI_WARP_WAYS 4 /* warps of a chunk: by rows and by columns, down and up */
#define CUDA__TRI_SCAN_THREADS (CUDA__TRI_WARP_WAYS * CUDA__WARP)

static inline __host__ __device__ int64_t cuda__tri_warp_chunks(int64_t n)
{
    return (n + CUDA__WARP - 1) / CUDA__WARP;
}

/* What chunks multiply by, in one direction: each word of the struct for all of them together, so
 * that a warp that reads them reads whole lines. */
struct cuda__tri_totals {
    double *words;
    int64_t chunks; /* there is room for */

    __device__ __forceinline__ void put(int64_t chunk, const cuda__tri_span &of) const
    {
        const double all[] = {of.a,
                              of.b,
                              of.c,
                              of.d,
                              of.v,
                              of.p,
                              of.q,
                              __longlong_as_double(of.e),
                              __longlong_as_double(of.f),
                              __longlong_as_double(of.g)};
#pragma unroll
        for (int k = 0; k < (int)(sizeof all / sizeof *all); k++)
            words[k * chunks + chunk] = all[k];
    }

    __device__ __forceinline__ cuda__tri_span get(int64_t chunk) const
    {
        const double *from = words + chunk;
        return {from[0],
                from[chunks],
                from[2 * chunks],
                from[3 * chunks],
                from[4 * chunks],
                from[5 * chunks],
                from[6 * chunks],
                __double_as_longlong(from[7 * chunks]),
                __double_as_longlong(from[8 * chunks]),
                __double_as_longlong(from[9 * chunks])};
    }
};

__device__ __forceinline__ cuda__tri_totals cuda__tri_part::totals(bool by_rows, bool up) const
{
    const int64_t room = pitch / CUDA__WARP + 1, words = CUDA__TRI_SPAN_BYTES / sizeof(double);
    const int index = (by_rows ? 0 : 2) + (up ? 1 : 0);
    return {(double *)(end - CUDA__TRI_TAIL_BYTES * pitch) + index * words * room, room};
}

/* A chunk's rows, and one more on either side, from the inputs: by so many threads. */
template <typename T>
static __device__ __forceinline__ void
cuda__tri_load_rows(const cuda_tensors *item, int64_t within, int64_t n, int64_t first, int thread,
                    int threads, cuda__tri_band<CUDA__WARP> *band)
{
    constexpr int rows = CUDA__WARP + 2;
    const T *dl = (const T *)item->inputs[METHOD_TRIDIAGONAL_DL] + within * (n - 1);
    const T *d = (const T *)item->inputs[METHOD_TRIDIAGONAL_D] + within * n;
    const T *du = (const T *)item->inputs[METHOD_TRIDIAGONAL_DU] + within * (n - 1);
    for (int k = thread; k < 3 * rows; k += threads) {
        const int which = k / rows, t = k % rows;
        const int64_t i = first + t - 1;
        const bool in = i >= 0 && i < n;
        if (which == METHOD_TRIDIAGONAL_DL)
            band->sub[t] = in && i > 0 ? (double)dl[i - 1] : 0;
        if (which == METHOD_TRIDIAGONAL_D)
            band->middle[t] = in ? (double)d[i] : 0;
        if (which == METHOD_TRIDIAGONAL_DU)
            band->sup[t] = in && i + 1 < n ? (double)du[i] : 0;
    }
}

/* A chunk's scan in one direction, by the warp of that number. */
static __device__ __forceinline__ void cuda__tri_scan_rows(const cuda__tri_part &part,
                                                           const cuda__tri_band<CUDA__WARP> &band,
                                                           int64_t n, int64_t chunk, int warp)
{
    typedef cuda__tri_sweeper<CUDA__WARP> sweeper;
    const int lane = threadIdx.x % CUDA__WARP;
    const bool by_rows = warp % 2 == 0, up = warp / 2 == 1;
    const int at = up ? CUDA__WARP - 1 - lane : lane;
    sweeper sweep = {band, nullptr, chunk * CUDA__WARP, n};
    cuda__tri_row row = sweep.row(at, by_rows);
    cuda__tri_span rows =
        sweeper::scan_lanes(up ? sweep.up(row, at) : sweep.down(row, at), CUDA__WARP);
    cuda__tri_span before = sweeper::left_of(rows);
    if (lane == CUDA__WARP - 1)
        part.totals(by_rows, up).put(chunk, rows);
    if (sweep.is_in(at))
        part.spans(by_rows, up)[chunk * CUDA__WARP + at] = lane > 0 ? before : cuda__tri_no_rows();
    if (warp != 0)
        return;
    const unsigned mine = (unsigned)sweep.look(lane).flags;
    unsigned flags = 0;
    for (unsigned flag = CUDA__TRI_NOT_FINITE; flag <= CUDA__TRI_NOT_BY_COLUMNS; flag *= 2)
        flags |= __any_sync(CUDA__ALL, (mine & flag) != 0) ? flag : 0;
    if (lane == 0)
        part.flags()[chunk] = flags;
    if (lane == 0 && chunk == 0) {
        cuda__tri_answer *answer = part.answer();
        *part.lined() = answer->arrived = 0;
        answer->norm = answer->error = answer->growth = answer->difference = 0;
    }
    if (sweep.is_in(lane)) {
        int64_t i = chunk * CUDA__WARP + lane;
        part.sub()[i] = band.sub[lane + 1];
        part.middle()[i] = band.middle[lane + 1];
        part.sup()[i] = band.sup[lane + 1];
    }
}

#define CUDA__TRI_LINE_CHUNKS 8 /* of a block at most */

struct cuda__tri_line_memory {
    cuda__tri_band<CUDA__WARP> bands[CUDA__TRI_LINE_CHUNKS];
    cuda__tri_states states[CUDA__TRI_LINE_CHUNKS];
};

/* The lines of some chunks, and the report of the matrix by its last block. */
template <typename T, int Threads> struct cuda__tri_liner {
    typedef cuda__tri_sweeper<Threads> sweeper;

    cuda__tri_solver<T, Threads> &solver;
    cuda__tri_line_memory *memory;
    int64_t first, held, chunks; /* of the block: chunks first to first + held - 1, a warp each */

    /* Which way is A dominant, if it is? By the flags of all chunks. */
    __device__ __forceinline__ void see_flags() const
    {
        const uint32_t *all = solver.part.flags();
        unsigned flags = 0;
        for (int64_t i = threadIdx.x; i < chunks; i += Threads)
            flags |= all[i];
        cuda__tri_look look = {0, 0, 0};
        look.flags |= __syncthreads_or(flags & CUDA__TRI_NOT_FINITE) ? CUDA__TRI_NOT_FINITE : 0;
        look.flags |= __syncthreads_or(flags & CUDA__TRI_NOT_BY_ROWS) ? CUDA__TRI_NOT_BY_ROWS : 0;
        look.flags |=
            __syncthreads_or(flags & CUDA__TRI_NOT_BY_COLUMNS) ? CUDA__TRI_NOT_BY_COLUMNS : 0;
        solver.see(look);
    }

    /* Numbers that are not negative, or NaN: the largest of the warp. */
    static __device__ __forceinline__ unsigned long long largest_bits(double value)
    {
        unsigned long long bits = (unsigned long long)__double_as_longlong(value);
        for (int step = CUDA__WARP / 2; step > 0; step /= 2) {
            unsigned long long other = __shfl_xor_sync(CUDA__ALL, bits, step);
            bits = other > bits ? other : bits;
        }
        return bits;
    }

    __device__ __forceinline__ int64_t chunk() const
    {
        return first + threadIdx.x / CUDA__WARP;
    }

    /* Has this warp a chunk? */
    __device__ __forceinline__ bool is_busy() const
    {
        return (int64_t)threadIdx.x / CUDA__WARP < held && chunk() < chunks;
    }

    /* A warp's rows, from the inputs. */
    __device__ __forceinline__ void load() const
    {
        if (is_busy())
            cuda__tri_load_rows<T>(solver.item, solver.within, solver.n, chunk() * CUDA__WARP,
                                   threadIdx.x % CUDA__WARP, CUDA__WARP,
                                   &memory->bands[threadIdx.x / CUDA__WARP]);
        __syncwarp();
    }

    __device__ __forceinline__ cuda__tri_totals totals(bool by_rows) const
    {
        return solver.part.totals(by_rows, sweeper::share_of(chunks).is_up);
    }

    /* What this thread begins the states with. */
    __device__ __forceinline__ cuda__tri_span first_span(bool by_rows) const
    {
        const auto mine = sweeper::share_of(chunks);
        return mine.begin < mine.end ? totals(by_rows).get(sweeper::place_of(mine, mine.begin))
                                     : cuda__tri_no_rows();
    }

    /* The states at the ends of this block's chunks. */
    __device__ __forceinline__ void find_states(const cuda__tri_span &rows, cuda__number *det) const
    {
        const cuda__tri_totals all = totals(solver.by_rows);
        solver.sweeper(0).find_states(
            chunks, rows, [&](bool, int64_t i) { return all.get(i); },
            [&](bool is_up, int64_t i, const cuda__tri_state &state) {
                if (i >= first && i < first + held)
                    (is_up ? memory->states[i - first].up : memory->states[i - first].down) = state;
            },
            det);
    }

    /* By one thread, which has met with those that wrote the lines. */
    __device__ __forceinline__ void count(int64_t number, bool good) const
    {
        __threadfence();
        atomicAdd(solver.part.lined(),
                  (unsigned long long)number + (good ? 0 : CUDA__TRI_BAD_LINES));
    }

    /* The rows of a chunk by its warp; all threads call. */
    __device__ __forceinline__ void find_lines(const cuda__tri_span &rows) const
    {
        const int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
        const int64_t i = chunk() * CUDA__WARP + lane;
        const bool by_rows = solver.by_rows, busy = is_busy();
        const cuda__tri_sweeper<CUDA__WARP> sweep = {memory->bands[busy ? warp : 0], nullptr,
                                                     (busy ? chunk() : first) * CUDA__WARP,
                                                     solver.n};
        cuda__tri_answer *answer = solver.part.answer();
        cuda__number det;
        cuda__tri_span above = cuda__tri_no_rows(), below = above;
        cuda__tri_row row = {};
        if (busy)
            row = sweep.row(lane, by_rows);
        if (busy && i < solver.n) {
            above = solver.part.spans(by_rows, false)[i];
            below = solver.part.spans(by_rows, true)[i];
        }
        find_states(rows, &det);
        if (!busy)
            return;
        cuda__tri_states at = memory->states[warp];
        at = {cuda__tri_step(at.down, above), cuda__tri_step(at.up, below)};
        auto found = sweep.finish(lane, row, at, det, solver.part);
        const bool good = __all_sync(CUDA__ALL, solver.holds(found.column, found.error));
        __syncwarp(); /* the lines are written: a vote orders nothing */
        if (lane == 0)
            count(1, good);
        unsigned long long sum = largest_bits(found.column), error = largest_bits(found.error);
        if (lane == 0) {
            atomicMax(&answer->norm, sum);
            atomicMax(&answer->error, error);
        }
    }

    /* |A|, of all rows. */
    __device__ __forceinline__ void see_norm() const
    {
        const double *sub = solver.part.sub(), *middle = solver.part.middle();
        const double *sup = solver.part.sup();
        cuda__tri_look look = {0, 0, 0};
#pragma unroll 4
        for (int64_t i = threadIdx.x; i < solver.n; i += Threads)
            look = cuda__tri_both_looks(look, cuda__tri_look_at(sub[i], middle[i], sup[i],
                                                                i > 0 ? sup[i - 1] : 0,
                                                                i + 1 < solver.n ? sub[i + 1] : 0));
        solver.see(solver.block.reduce(look, cuda__tri_both_looks));
    }

    /* The report, by the last of so many blocks. */
    __device__ __forceinline__ void end(int64_t blocks) const
    {
        if (!solver.arrive(blocks))
            return;
        see_norm();
        solver.conclude(solver.merges() ? merged_sums() : solver.found_sums());
    }

    /* With what the merging has left. */
    __device__ __forceinline__ typename cuda__tri_solver<T, Threads>::sums merged_sums() const
    {
        auto sums = solver.found_sums();
        const int64_t number = cuda__tri_chunks(solver.n, Threads);
        double growth = solver.joiner(number, 0).growth();
        for (int64_t i = threadIdx.x; i < number; i += Threads) {
            double seen = solver.growths()[i];
            growth = seen <= growth || isnan(growth) ? growth : seen;
        }
        sums.growth = solver.number_of(solver.largest_bits(growth));
        sums.difference = solver.largest_difference();
        return sums;
    }

    __device__ __forceinline__ void run(int64_t blocks) const
    {
        const cuda__tri_span rows = first_span(true), columns = first_span(false);
        see_flags();
        if (solver.sweeps())
            find_lines(solver.by_rows ? rows : columns);
        else if (threadIdx.x == 0)
            count(chunks - first < held ? chunks - first : held, false);
        end(blocks);
    }

    /* Of the merging: the levels above a chunk. */
    __device__ __forceinline__ void join(int64_t which, int64_t blocks) const
    {
        see_flags();
        if (solver.merges())
            solver.joiner(cuda__tri_chunks(solver.n, Threads), which).run();
        end(blocks);
    }
};

/* Waits until the matrix's lines are there. Do they hold? All threads of the block, together. */
static __device__ __forceinline__ bool cuda__tri_await(const cuda__tri_part &part, int64_t chunks)
{
    const volatile unsigned long long *lined = part.lined();
    bool bad = false;
    if (threadIdx.x == 0) {
        unsigned long long seen;
        while ((uint32_t)(seen = *lined) != (uint32_t)chunks)
            __nanosleep(40);
        bad = seen >= CUDA__TRI_BAD_LINES;
        __threadfence();
    }
    return !__syncthreads_or(bad);
}

#endif
