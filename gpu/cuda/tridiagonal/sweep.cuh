/* gpu/cuda/tridiagonal/sweep.cuh: two sweeps over a dominant tridiagonal matrix, by blocks of
 * threads, a row a thread.
 *
 * The recurrences of gpu/host/tridiagonal/sweep.c, delta_i = d_i - dl_{i-1} du_{i-1} / delta_{i-1}
 * and the same from below, as scans. A row that is dominant by `excess` = |d| - |left| - |right| >=
 * 0 has |delta_i| = s_i + h_i,  h_i = |right|,  s_i = excess + |left| w, w = s_{i-1} / (s_{i-1} +
 * h_{i-1}), or 2 - w in its place where the signs add. So (s, h), up to a factor, is a product of
 * matrices [e+g, e(+2g); h, h] without a negative number, and their sum is the leading minor
 * (sweep.cuh): nothing cancels, in whatever order the product is taken, and all of these are as
 * accurate as the excesses are. The serial recurrence, which subtracts, is less accurate. X_jj is
 * one over d_j (s_j + h_j w of the other sweep), again without cancelling. Dominance by columns is
 * that of the transposed matrix, whose deltas are the same.
 *
 * With f_i the minor of the rows above row i by the product of their -du (and their signs), and
 * g_i the same from below,
 *      X_ij = f_i (X_jj / f_j) for i < j,  g_i (X_jj / g_j) for i > j,
 * and the sums of columns of |X| follow from those of |f| and |g|, which the scans bring along.
 *
 * Matrices of more rows than one block takes are cut into chunks. A first kernel scans each chunk
 * by a block for each way of dominance and each direction, and leaves for every row what the rows
 * before it in the chunk multiply by; a second one joins the chunks and goes over the rows. Rows
 * are scaled by the power of two of their diagonal entry.
 *
 * Cost: a scan of a chunk in one direction takes a warp some 1,300 instructions.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_SWEEP_CUH
#define GPU_CUDA_TRIDIAGONAL_SWEEP_CUH

#include "gpu/cuda/tridiagonal/device.cuh"
#include "gpu/cuda/tridiagonal/block.cuh"

/* ---- Spans ---- */

/* Consecutive rows of a dominant tridiagonal matrix as one factor of a product, and the product
 * of the rows that a sweep has passed.
 *
 * One direction of sweep.cuh: rows come in the order of the sweep. Before a row the state is
 * (x, y) with x + y the magnitude of the minor of the rows before it, v the product of one over
 * their entries towards the next row, and `sum` what (x + y) |v| has added up to. A row multiplies
 * (x, y) by a matrix without a negative number, so that nothing cancels, whatever the order in
 * which rows are joined. Numbers have exponents of their own; they are brought near 1 only when
 * they have gone far.
 *
 * Device code, any thread. Cost: some 50 instructions a join, 25 a step.
 */

#define CUDA__TRI_FAR 256                     /* exponents of what is brought near again */
#define CUDA__TRI_NEVER (-(INT64_C(1) << 60)) /* the exponent of a sum of nothing */

/* [a, b; c, d] 2^e, v 2^f, and (p, q) 2^g: what the rows add to `sum` per x and y. */
struct __align__(16) cuda__tri_span
{
    double a, b, c, d, v, p, q;
    int64_t e, f, g;
};

static_assert(sizeof(cuda__tri_span) == CUDA__TRI_SPAN_BYTES, "the workspace counts on it");

struct cuda__tri_state {
    double x, y, v, sum;
    int64_t e, f, g; /* of (x, y), v and sum */
};

/* One past the exponent of the largest of numbers that are not negative, by their high words. */
static __device__ __forceinline__ int cuda__tri_far(int high)
{
    int exponent = (high >> 20 & 0x7ff) - CUDA__EXPONENT_BIAS;
    if (exponent > -CUDA__TRI_FAR && exponent < CUDA__TRI_FAR)
        return 0;
    return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

static __device__ __forceinline__ cuda__tri_span cuda__tri_no_rows()
{
    return {1, 0, 0, 1, 1, 0, 0, 0, 0, CUDA__TRI_NEVER};
}

static __device__ __forceinline__ cuda__tri_state cuda__tri_at_start()
{
    return {1, 0, 1, 0, 0, 0, CUDA__TRI_NEVER};
}

/* What the larger exponent's side keeps as it is, and the other is multiplied by. */
static __device__ __forceinline__ double cuda__tri_lower(int64_t down)
{
    return down >= 1000 ? 0 : cuda__power_of_two(-(int)down);
}

static __device__ __forceinline__ void cuda__tri_bring_near(cuda__tri_span *s)
{
    int64_t far = cuda__tri_far(max(max(__double2hiint(s->a), __double2hiint(s->b)),
                                    max(__double2hiint(s->c), __double2hiint(s->d))));
    if (far) {
        double factor = cuda__power_of_two(-(int)far);
        s->a *= factor;
        s->b *= factor;
        s->c *= factor;
        s->d *= factor;
        s->e += far;
    }
    far = cuda__tri_far(__double2hiint(s->v));
    if (far) {
        s->v *= cuda__power_of_two(-(int)far);
        s->f += far;
    }
    far = cuda__tri_far(max(__double2hiint(s->p), __double2hiint(s->q)));
    if (far) {
        double factor = cuda__power_of_two(-(int)far);
        s->p *= factor;
        s->q *= factor;
        s->g += far;
    }
}

/* Rows, and then others. */
static __device__ __forceinline__ cuda__tri_span cuda__tri_join(const cuda__tri_span &earlier,
                                                                const cuda__tri_span &later)
{
    cuda__tri_span s;
    s.a = later.a * earlier.a + later.b * earlier.c;
    s.b = later.a * earlier.b + later.b * earlier.d;
    s.c = later.c * earlier.a + later.d * earlier.c;
    s.d = later.c * earlier.b + later.d * earlier.d;
    s.e = earlier.e + later.e;
    s.v = earlier.v * later.v;
    s.f = earlier.f + later.f;
    double size = fabs(earlier.v);
    double p = size * (later.p * earlier.a + later.q * earlier.c);
    double q = size * (later.p * earlier.b + later.q * earlier.d);
    int64_t g = later.g + earlier.e + earlier.f, above = g - earlier.g;
    double mine = above > 0 ? cuda__tri_lower(above) : 1;
    double theirs = above > 0 ? 1 : cuda__tri_lower(-above);
    s.p = earlier.p * mine + p * theirs;
    s.q = earlier.q * mine + q * theirs;
    s.g = above > 0 ? g : earlier.g;
    cuda__tri_bring_near(&s);
    return s;
}

/* The state before some rows becomes the one behind them. */
static __device__ __forceinline__ cuda__tri_state cuda__tri_step(const cuda__tri_state &before,
                                                                 const cuda__tri_span &rows)
{
    cuda__tri_state s;
    s.x = rows.a * before.x + rows.b * before.y;
    s.y = rows.c * before.x + rows.d * before.y;
    s.e = before.e + rows.e;
    s.v = before.v * rows.v;
    s.f = before.f + rows.f;
    double added = fabs(before.v) * (rows.p * before.x + rows.q * before.y);
    int64_t g = rows.g + before.e + before.f, above = g - before.g;
    double mine = above > 0 ? cuda__tri_lower(above) : 1;
    double theirs = above > 0 ? 1 : cuda__tri_lower(-above);
    s.sum = before.sum * mine + added * theirs;
    s.g = above > 0 ? g : before.g;
    int64_t far = cuda__tri_far(max(__double2hiint(s.x), __double2hiint(s.y)));
    if (far) {
        s.x *= cuda__power_of_two(-(int)far);
        s.y *= cuda__power_of_two(-(int)far);
        s.e += far;
    }
    far = cuda__tri_far(__double2hiint(s.v));
    if (far) {
        s.v *= cuda__power_of_two(-(int)far);
        s.f += far;
    }
    far = cuda__tri_far(__double2hiint(s.sum));
    if (far) {
        s.sum *= cuda__power_of_two(-(int)far);
        s.g += far;
    }
    return s;
}

/* What is known of A before anything else; norms as the largest sum of a column. */
struct cuda__tri_look {
    double largest, quarter; /* of quarters, for sums that overflow */
    uint64_t flags;
};

#define CUDA__TRI_NOT_FINITE 1
#define CUDA__TRI_NOT_BY_ROWS 2 /* not dominant by rows */
#define CUDA__TRI_NOT_BY_COLUMNS 4

static __device__ __forceinline__ cuda__tri_look cuda__tri_both_looks(const cuda__tri_look &a,
                                                                      const cuda__tri_look &b)
{
    return {fmax(a.largest, b.largest), fmax(a.quarter, b.quarter), a.flags | b.flags};
}

/* Of a row and its column: A[i,i-1], A[i,i], A[i,i+1], and above and below them. */
static __device__ __forceinline__ cuda__tri_look cuda__tri_look_at(double before, double middle,
                                                                   double behind, double above,
                                                                   double below)
{
    double size = fabs(middle), left = fabs(before), right = fabs(behind);
    double upper = fabs(above), lower = fabs(below);
    double excess = left * 0 + size * 0 + right * 0;
    uint64_t flags = excess == 0 ? 0 : CUDA__TRI_NOT_FINITE;
    flags |= size >= left + right ? 0 : CUDA__TRI_NOT_BY_ROWS;
    flags |= size >= lower + upper ? 0 : CUDA__TRI_NOT_BY_COLUMNS;
    return {upper + size + lower, upper / 4 + size / 4 + lower / 4, flags};
}

/* |A|: sums that overflow are taken of quarters. */
static __device__ __forceinline__ cuda__number cuda__tri_norm(const cuda__tri_look &look)
{
    return look.largest <= cuda__real<double>::largest ? cuda__normal(look.largest, 0)
                                                       : cuda__normal(look.quarter, 2);
}

/* What a row is dominant by, 0 or more. */
static __device__ __forceinline__ double cuda__tri_excess(double size, double left, double right)
{
    /* What the sum loses by rounding is `lost`, exactly. */
    double sum = left + right, shifted = sum - left;
    double lost = (left - (sum - shifted)) + (right - shifted);
    return fmax((size - sum) - lost, 0.0);
}

/* Does the link of two rows make the pivot larger? By their entries on the diagonal, and below and
 * above it. */
static __device__ __forceinline__ bool cuda__tri_adds(double d, double next, double below,
                                                      double right)
{
    return (__double2hiint(d) ^ __double2hiint(next) ^ __double2hiint(below) ^
            __double2hiint(right)) < 0;
}

/* What the first kernel leaves of a chunk. */
struct cuda__tri_chunk {
    cuda__tri_span down[2], up[2]; /* by rows, by columns */
    cuda__tri_look look;
};

/* Three diagonals of a chunk and one row more on either side, with zeros outside of A. */
template <int Rows> struct cuda__tri_band {
    double sub[Rows + 2], middle[Rows + 2], sup[Rows + 2];
};

/* A row over 2^k. */
struct cuda__tri_row {
    double excess, left, right, before, behind, middle; /* the last three as they are in A */
    bool left_adds, right_adds;                         /* the link's term makes the pivot larger */
    int64_t k;
};

struct cuda__tri_states {
    cuda__tri_state down, up;
};

/* Each: rows of a thread, which are neighbours. */
template <int Threads, int Each = 1> struct cuda__tri_sweeper {
    static constexpr int warps = Threads / CUDA__WARP;

    struct shared {
        cuda__tri_span down[warps], up[warps];
        cuda__tri_states begin;
        cuda__number det;
    };

    const cuda__tri_band<Threads * Each> &band;
    shared *memory;
    int64_t first, n; /* row of thread 0 */

    __device__ __forceinline__ bool is_in(int at) const
    {
        return first + at < n;
    }

    /* Of row `at` of the chunk, and its column. */
    __device__ __forceinline__ cuda__tri_look look(int at) const
    {
        int t = at + 1;
        if (!is_in(at))
            return {0, 0, 0};
        return cuda__tri_look_at(band.sub[t], band.middle[t], band.sup[t], band.sup[t - 1],
                                 band.sub[t + 1]);
    }

    /* Row `at` of the chunk. by_rows: A is dominant by rows, not by columns alone. */
    __device__ __forceinline__ cuda__tri_row row(int at, bool by_rows) const
    {
        int t = at + 1;
        cuda__tri_row r;
        r.middle = band.middle[t];
        r.before = band.sub[t];
        r.behind = band.sup[t];
        double size = fabs(r.middle);
        double left = fabs(by_rows ? r.before : band.sup[t - 1]);
        double right = fabs(by_rows ? r.behind : band.sub[t + 1]);
        double excess = cuda__tri_excess(size, left, right);
        r.k = cuda__normal(size, 0).exponent;
        r.excess = cuda__scale(excess, -(int)r.k);
        r.left = cuda__scale(left, -(int)r.k);
        r.right = cuda__scale(right, -(int)r.k);
        int64_t i = first + at;
        r.left_adds =
            i > 0 && cuda__tri_adds(band.middle[t - 1], r.middle, r.before, band.sup[t - 1]);
        r.right_adds =
            i + 1 < n && cuda__tri_adds(r.middle, band.middle[t + 1], band.sub[t + 1], r.behind);
        return r;
    }

    /* One over the entry that leads on from a row, with the sign of the pivot against it. */
    static __device__ __forceinline__ cuda__number onward(double entry, double middle)
    {
        cuda__number number = cuda__normal(entry, 0);
        if (number.mantissa == 0)
            return {1, CUDA__NOTHING};
        double inverse = cuda__real<double>::reciprocal(number.mantissa);
        return {middle < 0 ? inverse : -inverse, -number.exponent};
    }

    __device__ __forceinline__ cuda__tri_span down(const cuda__tri_row &r, int at) const
    {
        cuda__number v = onward(r.behind, r.middle);
        if (!is_in(at))
            return cuda__tri_no_rows();
        return {r.excess + r.left,
                r.left_adds ? r.excess + 2 * r.left : r.excess,
                r.right,
                r.right,
                v.mantissa,
                1,
                1,
                r.k,
                v.exponent,
                0};
    }

    __device__ __forceinline__ cuda__tri_span up(const cuda__tri_row &r, int at) const
    {
        cuda__number v = onward(r.before, r.middle);
        if (!is_in(at))
            return cuda__tri_no_rows();
        return {r.excess + r.right,
                r.right_adds ? r.excess + 2 * r.right : r.excess,
                r.left,
                r.left,
                v.mantissa,
                1,
                1,
                r.k,
                v.exponent,
                0};
    }

    template <int Lanes>
    static __device__ __forceinline__ void scan_warp(cuda__tri_span *down, cuda__tri_span *up)
    {
        int lane = threadIdx.x % CUDA__WARP;
#pragma unroll 1
        for (int step = 1; step < Lanes; step *= 2) {
            cuda__tri_span earlier =
                cuda__block<Threads>::shuffle(*down, lane >= step ? lane - step : lane);
            cuda__tri_span later =
                cuda__block<Threads>::shuffle(*up, lane + step < Lanes ? lane + step : lane);
            earlier = cuda__tri_join(earlier, *down);
            later = cuda__tri_join(later, *up);
            *down = lane >= step ? earlier : *down;
            *up = lane + step < Lanes ? later : *up;
        }
    }

    /* Each thread gives some rows, from above and from below, and gets the states before them, from
     * those at the ends. *all: of the whole block, from above. */
    __device__ __forceinline__ cuda__tri_states scan(cuda__tri_span down, cuda__tri_span up,
                                                     cuda__tri_states states,
                                                     cuda__tri_span *all) const
    {
        int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
        scan_warp<CUDA__WARP>(&down, &up);
        __syncthreads();
        if (lane == CUDA__WARP - 1)
            memory->down[warp] = down;
        if (lane == 0)
            memory->up[warp] = up;
        __syncthreads();
        cuda__tri_span totals = memory->down[lane < warps ? lane : warps - 1];
        cuda__tri_span others = memory->up[lane < warps ? lane : warps - 1];
        scan_warp<warps>(&totals, &others);
        *all = cuda__block<Threads>::shuffle(totals, warps - 1);
        totals = cuda__block<Threads>::shuffle(totals, warp > 0 ? warp - 1 : 0);
        others = cuda__block<Threads>::shuffle(others, warp < warps - 1 ? warp + 1 : warp);
        down = cuda__block<Threads>::shuffle(down, lane > 0 ? lane - 1 : 0);
        up = cuda__block<Threads>::shuffle(up, lane < CUDA__WARP - 1 ? lane + 1 : lane);
        if (warp > 0)
            states.down = cuda__tri_step(states.down, totals);
        if (warp < warps - 1)
            states.up = cuda__tri_step(states.up, others);
        if (lane > 0)
            states.down = cuda__tri_step(states.down, down);
        if (lane < CUDA__WARP - 1)
            states.up = cuda__tri_step(states.up, up);
        return states;
    }

    static __device__ __forceinline__ cuda__tri_states at_ends()
    {
        return {cuda__tri_at_start(), cuda__tri_at_start()};
    }

    /* Lane k gets what lanes 0 to k have, of the first `lanes`. */
    static __device__ __forceinline__ cuda__tri_span scan_lanes(cuda__tri_span rows, int lanes)
    {
        int lane = threadIdx.x % CUDA__WARP;
#pragma unroll 1
        for (int step = 1; step < lanes; step *= 2) {
            cuda__tri_span earlier =
                cuda__block<Threads>::shuffle(rows, lane >= step ? lane - step : lane);
            earlier = cuda__tri_join(earlier, rows);
            rows = lane >= step ? earlier : rows;
        }
        return rows;
    }

    static __device__ __forceinline__ cuda__tri_span left_of(const cuda__tri_span &rows)
    {
        int lane = threadIdx.x % CUDA__WARP;
        return cuda__block<Threads>::shuffle(rows, lane > 0 ? lane - 1 : 0);
    }

    /* Each thread gives a row, in the order of the sweep, and gets those before it. Returns all of
     * them. */
    __device__ __forceinline__ cuda__tri_span scan_chunk(const cuda__tri_span &row,
                                                         cuda__tri_span *before) const
    {
        int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
        cuda__tri_span rows = scan_lanes(row, CUDA__WARP);
        cuda__tri_span left = left_of(rows);
        *before = lane > 0 ? left : cuda__tri_no_rows();
        if (lane == CUDA__WARP - 1)
            memory->down[warp] = rows;
        __syncthreads();
        rows = scan_lanes(memory->down[lane < warps ? lane : warps - 1], warps);
        cuda__tri_span earlier = cuda__block<Threads>::shuffle(rows, warp > 0 ? warp - 1 : 0);
        if (warp > 0)
            *before = cuda__tri_join(earlier, *before);
        return cuda__block<Threads>::shuffle(rows, warps - 1);
    }

    /* Chunks are in the order of a thread's sweep: half of the threads go from above, half from
     * below, with as many chunks each. */
    struct share {
        bool is_up;
        int64_t number, begin, end;
    };

    static __device__ __forceinline__ share share_of(int64_t number)
    {
        constexpr int half = Threads / 2;
        int64_t each = (number + half - 1) / half, begin = each * (threadIdx.x % half);
        return {threadIdx.x >= half, number, begin, begin + each < number ? begin + each : number};
    }

    /* Number i of a sweep, by its place in A. */
    static __device__ __forceinline__ int64_t place_of(const share &mine, int64_t i)
    {
        return mine.is_up ? mine.number - 1 - i : i;
    }

    /* The states at the ends of chunks, from what the first kernel left of all: from above by one
     * half of the threads, from below by the other. rows: this thread's first chunk; span(is_up,
     * chunk): any; keep(is_up, chunk, state) gets each state once. *det: the magnitude of A's
     * determinant. */
    template <typename Span, typename Keep>
    __device__ __forceinline__ void find_states(int64_t number, cuda__tri_span rows, Span span,
                                                Keep keep, cuda__number *det) const
    {
        const share mine = share_of(number);
        const int warp = threadIdx.x / CUDA__WARP;
        const cuda__tri_span own = rows;
        for (int64_t i = mine.begin + 1; i < mine.end; i++)
            rows = cuda__tri_join(rows, span(mine.is_up, place_of(mine, i)));
        rows = scan_lanes(rows, number < CUDA__WARP ? (int)number : CUDA__WARP);
        cuda__tri_span left = left_of(rows);
        if (threadIdx.x % CUDA__WARP == CUDA__WARP - 1)
            memory->down[warp] = rows;
        __syncthreads();
        cuda__tri_state state = cuda__tri_at_start();
        for (int w = mine.is_up ? warps / 2 : 0; w < warp && mine.begin < mine.end; w++)
            state = cuda__tri_step(state, memory->down[w]);
        if (!mine.is_up && mine.begin < number && mine.end == number) {
            cuda__tri_state last = cuda__tri_step(state, rows);
            memory->det = {last.x + last.y, last.e};
        }
        if (threadIdx.x % CUDA__WARP > 0)
            state = cuda__tri_step(state, left);
        for (int64_t i = mine.begin; i < mine.end; i++) {
            keep(mine.is_up, place_of(mine, i), state);
            if (i + 1 < mine.end)
                state = cuda__tri_step(state,
                                       i == mine.begin ? own : span(mine.is_up, place_of(mine, i)));
        }
        __syncthreads();
        *det = memory->det;
    }

    /* The numbers of a row, and what they say of the whole. */
    struct found {
        double diagonal;
        double column; /* the sum of the column of |X| */
        double error;  /* of the determinant, as row and column i of A X and X A have it */
    };

    __device__ __forceinline__ found finish(int row, const cuda__tri_row &r,
                                            const cuda__tri_states &at, const cuda__number &det,
                                            const cuda__tri_part &part) const
    {
        if (!is_in(row))
            return {0, 0, 0};
        double theta = at.down.x + at.down.y, phi = at.up.x + at.up.y;
        double from_left = at.down.x * cuda__real<double>::reciprocal(theta);
        double from_right = at.up.x * cuda__real<double>::reciprocal(phi);
        double whole = r.excess + r.left * (r.left_adds ? 2 - from_left : from_left) +
                       r.right * (r.right_adds ? 2 - from_right : from_right);
        cuda__number pivot = cuda__normal(copysign(whole, r.middle), r.k);
        cuda__number x = cuda__inverse(pivot);
        cuda__number f = cuda__normal(theta * at.down.v, at.down.e + at.down.f);
        cuda__number g = cuda__normal(phi * at.up.v, at.up.e + at.up.f);
        cuda__number upper = cuda__times(x, cuda__inverse(f));
        cuda__number lower = cuda__times(x, cuda__inverse(g));
        int64_t i = first + row;
        found is;
        is.diagonal = cuda__assemble(x.mantissa, x.exponent);
        part.diagonal()[i] = is.diagonal;
        part.line(CUDA__TRI_UPPER_ROW)[i] = f;
        part.line(CUDA__TRI_UPPER_COLUMN)[i] = upper;
        part.line(CUDA__TRI_LOWER_ROW)[i] = g;
        part.line(CUDA__TRI_LOWER_COLUMN)[i] = lower;
        cuda__number above = cuda__times(upper, cuda__normal(at.down.sum, at.down.g));
        cuda__number below = cuda__times(lower, cuda__normal(at.up.sum, at.up.g));
        cuda__number column = cuda__plus(
            cuda__magnitude(x), cuda__plus(cuda__magnitude(above), cuda__magnitude(below)));
        is.column = cuda__assemble(column.mantissa, column.exponent);
        double all = det.mantissa;
        cuda__number same = cuda__times(cuda__normal(theta, at.down.e), cuda__magnitude(pivot));
        same = cuda__times(same, cuda__normal(phi, at.up.e - det.exponent));
        is.error = fabs(cuda__assemble(same.mantissa, same.exponent) / all - 1);
        if (!(theta > 0 && phi > 0 && whole > 0 && all > 0))
            is.column = is.error = cuda__real<double>::nan();
        return is;
    }
};

#endif
