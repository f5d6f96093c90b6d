/* gpu/cuda/tri_sweep.cuh: two sweeps over a dominant tridiagonal matrix, by one block of threads.
 *
 * The recurrences of gpu/host/tri_sweep.c, delta_i = d_i - dl_{i-1} du_{i-1} / delta_{i-1} and the
 * same from below, as scans. A row that is dominant by `excess` = |d| - |left| - |right| >= 0 has
 *      |delta_i| = s_i + h_i,  h_i = |right|,  s_i = excess + |left| w,
 *      w = s_{i-1} / (s_{i-1} + h_{i-1}), or 2 - w in its place where the signs add.
 * So (s, h), up to a factor, is a product of matrices [e+g, e(+2g); h, h] without a negative
 * number: nothing cancels, in whatever order the product is taken, and every s is as accurate as
 * the excesses are. The serial recurrence, which subtracts, is less accurate. X_jj is one over
 * d_j (s_j + h_j w of the other sweep), again without cancelling. Dominance by columns is that of
 * the transposed matrix, whose deltas are the same.
 *
 * A thread takes ROWS rows at a time; the block's round is the product of the threads' products
 * by a scan whose shape is fixed by the number of threads, and each thread then goes over its rows
 * again one by one. Rows are scaled by the power of two of their diagonal entry.
 *
 * Cost: about 120 operations in double a row, and two scans a round.
 */
#ifndef GPU_CUDA_TRI_SWEEP_CUH
#define GPU_CUDA_TRI_SWEEP_CUH

#include "gpu/cuda/tri.cuh"
#include "gpu/cuda/tri_block.cuh"

struct cuda__tri_sums {
    double norm;  /* |X| */
    double error; /* as struct host_tri_sweep's */
    bool good;    /* no division by zero, no overflow */
};

/* Row i over 2^k, as one of the sweeps comes by it. */
struct cuda__tri_row {
    double excess, gain, hold; /* gain: beside the diagonal where the sweep comes from */
    int k;
    bool adds; /* the link to the row before: its term makes the pivot larger */
};

/* [a, b; c, d] up to a factor, nothing in it negative. */
struct cuda__tri_product {
    double a, b, c, d;
};

static __device__ __forceinline__ void cuda__tri_keep_in_range(cuda__tri_product *m)
{
    /* Of numbers that are not negative the high words are ordered as they are. */
    int high = max(max(__double2hiint(m->a), __double2hiint(m->b)),
                   max(__double2hiint(m->c), __double2hiint(m->d)));
    int exponent = (high >> 20) - CUDA__EXPONENT_BIAS;
    if (exponent > -256 && exponent < 256)
        return;
    double factor = cuda__power_of_two(exponent < -1000  ? 1000
                                       : exponent > 1000 ? -1000
                                                         : -exponent);
    m->a *= factor;
    m->b *= factor;
    m->c *= factor;
    m->d *= factor;
}

static __device__ __forceinline__ cuda__tri_product cuda__tri_then(const cuda__tri_product &earlier,
                                                                   const cuda__tri_product &later)
{
    cuda__tri_product m = {
        later.a * earlier.a + later.b * earlier.c, later.a * earlier.b + later.b * earlier.d,
        later.c * earlier.a + later.d * earlier.c, later.c * earlier.b + later.d * earlier.d};
    cuda__tri_keep_in_range(&m);
    return m;
}

/* S becomes a S + b. */
struct cuda__tri_affine {
    double a, b;
};

static __device__ __forceinline__ cuda__tri_affine cuda__tri_after(const cuda__tri_affine &earlier,
                                                                   const cuda__tri_affine &later)
{
    return {later.a * earlier.a, later.a * earlier.b + later.b};
}

/* What the sweep from above carries beside the pivots: products of ratios, the sum, and the last
 * row's w. */
struct cuda__tri_chain {
    cuda__number above, below;
    cuda__tri_affine sum;
    double last;
};

static __device__ __forceinline__ cuda__tri_chain cuda__tri_follow(const cuda__tri_chain &earlier,
                                                                   const cuda__tri_chain &later)
{
    return {cuda__times(earlier.above, later.above), cuda__times(earlier.below, later.below),
            cuda__tri_after(earlier.sum, later.sum), later.last};
}

/* A ratio as a factor of a chain. */
static __device__ __forceinline__ cuda__number cuda__tri_link(double ratio)
{
    cuda__number number = cuda__normal(ratio, 0);
    return number.mantissa == 0 ? cuda__number{0.5, 1 - CUDA__NOTHING} : number;
}

template <int Threads> struct cuda__tri_sweeper {
    static constexpr int rows = 4; /* a thread's, of a round */
    static constexpr int round = rows * Threads;

    cuda__tri_part part;
    cuda__block<Threads> block;
    int64_t n;
    bool by_rows;

    /* Does the link between rows i - 1 and i make the pivots larger? */
    __device__ __forceinline__ bool adds(int64_t i) const
    {
        if (i <= 0 || i >= n)
            return false;
        int signs = __double2hiint(part.middle()[i - 1]) ^ __double2hiint(part.middle()[i]) ^
                    __double2hiint(part.sub()[i]) ^ __double2hiint(part.sup()[i - 1]);
        return signs < 0;
    }

    template <bool Down> __device__ __forceinline__ cuda__tri_row row(int64_t i) const
    {
        double size = fabs(part.middle()[i]);
        double left = fabs(by_rows ? part.sub()[i] : i > 0 ? part.sup()[i - 1] : 0);
        double right = fabs(by_rows ? part.sup()[i] : i + 1 < n ? part.sub()[i + 1] : 0);
        /* What the sum loses by rounding is `lost`, exactly. */
        double sum = left + right, shifted = sum - left;
        double lost = (left - (sum - shifted)) + (right - shifted);
        double excess = fmax((size - sum) - lost, 0.0);
        int k = (int)cuda__normal(size, 0).exponent;
        return {cuda__scale(excess, -k), cuda__scale(Down ? left : right, -k),
                cuda__scale(Down ? right : left, -k), k, adds(Down ? i : i + 1)};
    }

    /* One row more in front of a product. */
    static __device__ __forceinline__ void extend(cuda__tri_product *m, const cuda__tri_row &row)
    {
        double first = row.excess + row.gain;
        double second = row.adds ? row.excess + 2 * row.gain : row.excess;
        *m = {first * m->a + second * m->c, first * m->b + second * m->d, row.hold * (m->a + m->c),
              row.hold * (m->b + m->d)};
        cuda__tri_keep_in_range(m);
    }

    /* The rows of this thread in a round, and their product. Position p of a sweep is row p, or
     * from below n - 1 - p. */
    template <bool Down>
    __device__ __forceinline__ cuda__tri_product gather(int64_t p, cuda__tri_row *mine) const
    {
        cuda__tri_product m = {1, 0, 0, 1};
#pragma unroll
        for (int q = 0; q < rows; q++) {
            if (p + q >= n)
                continue;
            mine[q] = row<Down>(Down ? p + q : n - 1 - p - q);
            extend(&m, mine[q]);
        }
        return m;
    }

    /* w before the rows of this thread: the state (1, 0) is as good as any before the first. */
    static __device__ __forceinline__ double begin(const cuda__tri_product &before)
    {
        return before.a * cuda__real<double>::reciprocal(before.a + before.c);
    }

    static __device__ __forceinline__ double own(const cuda__tri_row &row, double w)
    {
        return row.excess + row.gain * (row.adds ? 2 - w : w);
    }

    /* x over 2^k, with the sign that the diagonal entry of row i turns it to. */
    __device__ __forceinline__ double against(double x, int64_t i, int k) const
    {
        x = cuda__scale(x, -k);
        return part.middle()[i] < 0 ? -x : x;
    }

    /* Fills rest (w), below and tail: the sum of the magnitudes in column i of X
     * below the diagonal, by |X_ii|. */
    __device__ __forceinline__ void sweep_up()
    {
        cuda__tri_product carry = {1, 0, 0, 1};
        cuda__tri_affine carried = {1, 0};
        for (int64_t base = 0; base < n; base += round) {
            int64_t p = base + (int64_t)threadIdx.x * rows;
            cuda__tri_row mine[rows];
            double ratios[rows];
            cuda__tri_affine sum = {1, 0};
            double w = begin(block.scan(gather<false>(p, mine), &carry, cuda__tri_then));
#pragma unroll
            for (int q = 0; q < rows; q++) {
                int64_t i = n - 1 - p - q;
                if (i < 0)
                    continue;
                double s = own(mine[q], w);
                double inverse = cuda__real<double>::reciprocal(s + mine[q].hold);
                double below = -against(part.sub()[i], i, mine[q].k) * inverse;
                w = s * inverse;
                part.rest()[i] = w;
                part.below()[i] = below;
                ratios[q] = fabs(below);
                sum = cuda__tri_after(sum, {ratios[q], ratios[q]});
            }
            double tail = block.scan(sum, &carried, cuda__tri_after).b;
#pragma unroll
            for (int q = 0; q < rows; q++) {
                int64_t i = n - 1 - p - q;
                if (i < 0)
                    continue;
                part.tail()[i] = tail;
                tail = ratios[q] * (1 + tail);
            }
        }
        block.sync();
    }

    /* What the sweep from below adds to a row's pivot, by the entry that links them. */
    __device__ __forceinline__ double other(int64_t i) const
    {
        if (i >= n)
            return 1;
        double w = part.rest()[i];
        return adds(i) ? 2 - w : w;
    }

    /* Row i's numbers, from the chain of the rows before it, which row i then joins. Returns the
     * sum of column i of |X|. */
    __device__ __forceinline__ double finish(int64_t i, double above, double inverse, int k,
                                             cuda__tri_chain *chain) const
    {
        cuda__number x = cuda__normal(copysign(inverse, part.middle()[i]), -k);
        double diagonal = cuda__assemble(x.mantissa, x.exponent);
        double column = fabs(diagonal) * (1 + chain->sum.b + part.tail()[i]);
        part.diagonal()[i] = diagonal;
        part.line(CUDA__TRI_UPPER_ROW)[i] = cuda__inverse(chain->above);
        part.line(CUDA__TRI_UPPER_COLUMN)[i] = cuda__times(chain->above, x);
        join(i, above, chain);
        part.line(CUDA__TRI_LOWER_ROW)[i] = chain->below;
        part.line(CUDA__TRI_LOWER_COLUMN)[i] = cuda__times(x, cuda__inverse(chain->below));
        return column;
    }

    /* `above` leads from row i to the next one, `below` to row i. */
    __device__ __forceinline__ void join(int64_t i, double above, cuda__tri_chain *chain) const
    {
        if (i > 0)
            chain->below = cuda__times(chain->below, cuda__tri_link(part.below()[i]));
        chain->above = cuda__times(chain->above, cuda__tri_link(above));
        chain->sum = cuda__tri_after(chain->sum, {fabs(above), fabs(above)});
    }

    /* How far the w that a thread began with is from the one that the thread before it came to, as
     * delta_{i-1} X_{i-1,i-1} and gamma_i X_ii then disagree. Elsewhere they agree to rounding. */
    __device__ __forceinline__ double disagreement(int64_t i, double begun, double came) const
    {
        if (i == 0 || i >= n)
            return 0;
        double link = other(i);
        return fabs((begun - came) * (1 - link)) / (came + (1 - came) * link);
    }

    /* Fills the lines and the diagonal, after sweep_up. */
    __device__ __forceinline__ cuda__tri_sums sweep_down()
    {
        const cuda__number one = {0.5, 1};
        cuda__tri_product carry = {1, 0, 0, 1};
        cuda__tri_chain carried = {one, one, {1, 0}, 1};
        double norm = 0, error = 0, excess = 0;
        for (int64_t base = 0; base < n; base += round) {
            int64_t p = base + (int64_t)threadIdx.x * rows;
            cuda__tri_row mine[rows];
            double above[rows], inverses[rows];
            cuda__tri_chain chain = {one, one, {1, 0}, 1};
            double w = begin(block.scan(gather<true>(p, mine), &carry, cuda__tri_then)), begun = w;
#pragma unroll
            for (int q = 0; q < rows; q++) {
                if (p + q >= n)
                    continue;
                double s = own(mine[q], w);
                double inverse = cuda__real<double>::reciprocal(s + mine[q].hold);
                double whole = s + mine[q].hold * other(p + q + 1);
                above[q] = -against(part.sup()[p + q], p + q, mine[q].k) * inverse;
                inverses[q] = cuda__real<double>::reciprocal(whole);
                w = s * inverse;
                chain.last = w;
                join(p + q, above[q], &chain);
            }
            chain = block.scan(chain, &carried, cuda__tri_follow);
            error = fmax(error, disagreement(p, begun, chain.last));
#pragma unroll
            for (int q = 0; q < rows; q++) {
                if (p + q >= n)
                    continue;
                double column = finish(p + q, above[q], inverses[q], mine[q].k, &chain);
                norm = fmax(norm, column);
                excess += column * 0;
            }
        }
        norm = block.largest(norm);
        error = block.largest(error);
        return {norm, error, block.all(excess == 0)};
    }

    __device__ __forceinline__ cuda__tri_sums run()
    {
        sweep_up();
        return sweep_down();
    }
};

/* The threads must be together, and are afterwards. by_rows: A is dominant by rows, not by columns
 * alone. */
template <int Threads>
static __device__ __noinline__ cuda__tri_sums cuda__tri_sweep(
    cuda__tri_part part, typename cuda__block<Threads>::shared *memory, int64_t n, bool by_rows)
{
    cuda__tri_sweeper<Threads> sweeper = {part, cuda__block<Threads>::begin(memory), n, by_rows};
    cuda__tri_sums sums = sweeper.run();
    __syncthreads();
    return sums;
}

#endif
