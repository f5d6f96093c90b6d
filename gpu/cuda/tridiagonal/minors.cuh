/* gpu/cuda/tridiagonal/minors.cuh: the inverse of any nonsingular tridiagonal matrix from its
 * minors, by one block of threads: gpu/host/tridiagonal/minors.c has the formulas and why they
 * are safe.
 *
 * The recurrences of the minors subtract, and have no scan that is as safe: two threads run them,
 * the leading minors from above and the trailing ones from below, side by side, on numbers that the
 * other warps bring to shared memory meanwhile. Everything else is done by all threads.
 *
 * Cost: some 50 cycles a row for the two threads, and 400 where numbers are far from 1.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_MINORS_CUH
#define GPU_CUDA_TRIDIAGONAL_MINORS_CUH

#include "gpu/cuda/tridiagonal/device.cuh"
#include "gpu/cuda/tridiagonal/block.cuh"

#define CUDA__TRI_STAGE 64 /* rows brought to shared memory together */
/* Rows that are followed as doubles. A row whose numbers are within 2^+-CUDA__TRI_NEAR makes a
 * minor larger by a factor of 2^46 at most, or smaller by 2^97 where it cancels to the last bit;
 * with minors 2^CUDA__TRI_APART apart at the start nothing leaves the range of double. */
#define CUDA__TRI_GROUP 8
#define CUDA__TRI_NEAR 45
#define CUDA__TRI_APART 200

/* Shared memory of the serial parts: rows, from above and from below, double-buffered. */
struct cuda__tri_stage {
    struct {
        cuda__number middle[2][CUDA__TRI_STAGE], crossing[2][CUDA__TRI_STAGE];
    } places[2];
    int64_t found;
};

struct cuda__tri_pair {
    cuda__number upper, lower;
};

struct cuda__tri_minor_sums {
    cuda__number norm; /* |X| */
    double error;      /* as struct host_tri_minors' */
    int64_t info;      /* not 0: the step of a zero pivot, and there is no inverse */
};

template <int Threads> struct cuda__tri_minors {
    cuda__tri_part part;
    cuda__block<Threads> block;
    cuda__tri_stage *stage;
    int64_t n;

    /* -A[i,i-1] A[i-1,i], or 0 outside. */
    __device__ __forceinline__ cuda__number crossing(int64_t i) const
    {
        if (i <= 0 || i >= n)
            return {0, 0};
        return cuda__times(cuda__normal(-part.sub()[i], 0), cuda__normal(part.sup()[i - 1], 0));
    }

    __device__ __forceinline__ cuda__number middle(int64_t i) const
    {
        return cuda__normal(part.middle()[i], 0);
    }

    /* The same number, with exponent 0 if it is near 1, or 0. */
    static __device__ __forceinline__ cuda__number near(const cuda__number &a)
    {
        bool is_far = a.exponent < -CUDA__TRI_NEAR || a.exponent > CUDA__TRI_NEAR;
        return is_far ? a : cuda__number{cuda__scale(a.mantissa, (int)a.exponent), 0};
    }

    /* A minor and the one before it, which rows of the stage lead on from. */
    struct minors {
        cuda__number before, now;
    };

    /* CUDA__TRI_GROUP rows from `at` on, if they and the minors are near each other, as doubles
     * with one exponent. Products and sums round as numbers do: the bits are those of the slow way.
     */
    __device__ __forceinline__ bool follow_near(int turn, int up, int at, minors *m) const
    {
        cuda__number *middles = stage->places[turn].middle[up] + at;
        cuda__number *crossings = stage->places[turn].crossing[up] + at;
        double middle[CUDA__TRI_GROUP], crossing[CUDA__TRI_GROUP];
        int64_t exponent = m->now.mantissa != 0 ? m->now.exponent : m->before.exponent;
        int64_t apart = m->before.mantissa != 0 ? m->before.exponent - exponent : 0, far = 0;
#pragma unroll
        for (int k = 0; k < CUDA__TRI_GROUP; k++) {
            middle[k] = middles[k].mantissa;
            crossing[k] = crossings[k].mantissa;
            far |= middles[k].exponent | crossings[k].exponent;
        }
        if (far != 0 || apart < -CUDA__TRI_APART || apart > CUDA__TRI_APART)
            return false;
        double now = m->now.mantissa, before = cuda__scale(m->before.mantissa, (int)apart);
#pragma unroll
        for (int k = 0; k < CUDA__TRI_GROUP; k++) {
            middles[k] = {now, exponent};
            double next = __dadd_rn(__dmul_rn(now, middle[k]), __dmul_rn(before, crossing[k]));
            before = now;
            now = next;
        }
        *m = {cuda__normal(before, exponent), cuda__normal(now, exponent)};
        return true;
    }

    /* Rows of the stage, whose middles become the minors before them. */
    __device__ __forceinline__ void follow_rows(int turn, int up, int held, minors *m) const
    {
        cuda__number *middles = stage->places[turn].middle[up];
        cuda__number *crossings = stage->places[turn].crossing[up];
        for (int at = 0; at < held;) {
            if (at + CUDA__TRI_GROUP <= held && follow_near(turn, up, at, m)) {
                at += CUDA__TRI_GROUP;
                continue;
            }
            int end = at + CUDA__TRI_GROUP < held ? at + CUDA__TRI_GROUP : held;
            for (; at < end; at++) {
                cuda__number next = cuda__plus(cuda__times(m->now, middles[at]),
                                               cuda__times(m->before, crossings[at]));
                middles[at] = m->now;
                *m = {m->now, next};
            }
        }
    }

    /* Rows of a stage that begins `base` rows from either end. */
    __device__ __forceinline__ int held_at(int64_t base) const
    {
        return (int)(n - base < CUDA__TRI_STAGE ? n - base : CUDA__TRI_STAGE);
    }

    /* Writes the minors of the stage before this one, where there is one, and brings the stage
     * behind this one in, to the same place; by threads `first`, first + step, ... */
    __device__ __forceinline__ void move_stages(int64_t base, int turn, int first, int step) const
    {
        auto &place = stage->places[turn ^ 1];
        const int64_t before = base - CUDA__TRI_STAGE, behind = base + CUDA__TRI_STAGE;
        for (int k = first; k < 2 * CUDA__TRI_STAGE; k += step) {
            const int up = k >= CUDA__TRI_STAGE, at = up ? k - CUDA__TRI_STAGE : k;
            if (before >= 0 && at < held_at(before)) {
                const cuda__number &minor = place.middle[up][at];
                int64_t i = up ? n - 1 - before - at : before + at;
                part.line(up ? CUDA__TRI_UPPER_COLUMN : CUDA__TRI_UPPER_ROW)[i] =
                    cuda__normal(minor.mantissa, minor.exponent);
            }
            if (behind < n && at < held_at(behind)) {
                int64_t i = up ? n - 1 - behind - at : behind + at;
                place.middle[up][at] = near(middle(i));
                place.crossing[up][at] = near(crossing(up ? i + 1 : i));
            }
        }
    }

    /* upper_row[i] = the leading minor of order i, upper_column[i] = the trailing one that begins
     * at row i + 1. */
    __device__ __forceinline__ void find_minors()
    {
        constexpr int alone = Threads > CUDA__WARP ? CUDA__WARP : 0; /* threads of the two's warp */
        minors found = {{0, 0}, {0.5, 1}};
        int turn = 0;
        block.sync();
        move_stages(-CUDA__TRI_STAGE, turn ^ 1, threadIdx.x, Threads);
        for (int64_t base = 0; base < n; base += CUDA__TRI_STAGE, turn ^= 1) {
            block.sync();
            if (threadIdx.x < 2)
                follow_rows(turn, threadIdx.x, held_at(base), &found);
            if ((int)threadIdx.x >= alone)
                move_stages(base, turn, threadIdx.x - alone, Threads - alone);
        }
        block.sync();
        /* Behind the last one there is nothing to bring. */
        move_stages((n + CUDA__TRI_STAGE - 1) / CUDA__TRI_STAGE * CUDA__TRI_STAGE, turn,
                    threadIdx.x, Threads);
        block.sync();
    }

    /* det A as row and column j of A X and X A have it. */
    __device__ __forceinline__ cuda__number determinant(int64_t j) const
    {
        const cuda__number *leading = part.line(CUDA__TRI_UPPER_ROW);
        const cuda__number *trailing = part.line(CUDA__TRI_UPPER_COLUMN);
        cuda__number sum = cuda__times(cuda__times(leading[j], trailing[j]), middle(j));
        if (j > 0)
            sum =
                cuda__plus(sum, cuda__times(crossing(j), cuda__times(leading[j - 1], trailing[j])));
        if (j + 1 < n)
            sum = cuda__plus(
                sum, cuda__times(crossing(j + 1), cuda__times(leading[j], trailing[j + 1])));
        return sum;
    }

    __device__ __forceinline__ double largest_error(const cuda__number &det)
    {
        double largest = 0;
        for (int64_t j = threadIdx.x; j < n; j += Threads) {
            cuda__number error = cuda__plus(cuda__over(determinant(j), det), {-0.5, 1});
            largest = fmax(largest, fabs(cuda__assemble(error.mantissa, error.exponent)));
        }
        return block.largest(largest);
    }

    /* An entry next to the diagonal as a factor of a chain. */
    static __device__ __forceinline__ cuda__number link(double entry)
    {
        cuda__number number = cuda__normal(-entry, 0);
        return number.mantissa == 0 ? cuda__number{0.5, 1 - CUDA__NOTHING} : number;
    }

    static __device__ __forceinline__ cuda__tri_pair follow(const cuda__tri_pair &earlier,
                                                            const cuda__tri_pair &later)
    {
        return {cuda__times(earlier.upper, later.upper), cuda__times(earlier.lower, later.lower)};
    }

    /* Minors become lines; sums: of the magnitudes of each column of X down to the diagonal. */
    __device__ __forceinline__ void find_lines(const cuda__number &det)
    {
        cuda__tri_pair carried = {{0.5, 1}, {0.5, 1}};
        cuda__number above = {0, 0};
        for (int64_t base = 0; base < n; base += Threads) {
            int64_t i = base + threadIdx.x;
            cuda__tri_pair chain = {{0.5, 1}, {0.5, 1}};
            if (i + 1 < n)
                chain = {link(part.sup()[i]), link(part.sub()[i + 1])};
            chain = block.scan(chain, &carried, follow);
            cuda__number row = {0, 0}, column = {0, 0};
            if (i < n) {
                cuda__number leading = part.line(CUDA__TRI_UPPER_ROW)[i];
                cuda__number trailing = cuda__over(part.line(CUDA__TRI_UPPER_COLUMN)[i], det);
                cuda__number diagonal = cuda__times(leading, trailing);
                row = cuda__over(leading, chain.upper);
                column = cuda__times(trailing, chain.upper);
                part.diagonal()[i] = cuda__assemble(diagonal.mantissa, diagonal.exponent);
                part.line(CUDA__TRI_UPPER_ROW)[i] = row;
                part.line(CUDA__TRI_UPPER_COLUMN)[i] = column;
                part.line(CUDA__TRI_LOWER_ROW)[i] = cuda__times(trailing, chain.lower);
                part.line(CUDA__TRI_LOWER_COLUMN)[i] = cuda__over(leading, chain.lower);
            }
            cuda__number size = cuda__magnitude(row);
            cuda__number sum = cuda__plus(block.scan(size, &above, cuda__plus), size);
            if (i < n)
                part.sums()[i] = cuda__times(sum, cuda__magnitude(column));
        }
    }

    /* |X|: the rows below the diagonal join the sums. */
    __device__ __forceinline__ cuda__number find_norm()
    {
        cuda__number below = {0, 0}, largest = {0, 0};
        for (int64_t base = 0; base < n; base += Threads) {
            int64_t j = n - 1 - base - threadIdx.x;
            cuda__number size = {0, 0};
            if (j >= 0)
                size = cuda__magnitude(part.line(CUDA__TRI_LOWER_ROW)[j]);
            cuda__number sum = block.scan(size, &below, cuda__plus);
            if (j < 0)
                continue;
            cuda__number factor = cuda__magnitude(part.line(CUDA__TRI_LOWER_COLUMN)[j]);
            cuda__number column = cuda__plus(part.sums()[j], cuda__times(sum, factor));
            largest = cuda__is_larger(column, largest) ? column : largest;
        }
        return block.reduce(largest, [](const cuda__number &a, const cuda__number &b) {
            return cuda__is_larger(b, a) ? b : a;
        });
    }

    /* The first zero pivot of elimination with row interchanges; n when rounding has left none. */
    __device__ __forceinline__ int64_t zero_pivot() const
    {
        double pivot = part.middle()[0], right = part.sup()[0];
        for (int64_t k = 0; k + 1 < n; k++) {
            double below = part.sub()[k + 1], next = part.middle()[k + 1],
                   adjacent = part.sup()[k + 1];
            bool keeps = fabs(pivot) >= fabs(below);
            if (keeps && pivot == 0)
                return k + 1;
            double factor = keeps ? below / pivot : pivot / below;
            pivot = keeps ? next - factor * right : right - factor * next;
            right = keeps ? adjacent : -factor * adjacent;
        }
        return n;
    }

    __device__ __forceinline__ cuda__tri_minor_sums run()
    {
        cuda__tri_minor_sums sums = {{0, 0}, 0, 0};
        find_minors();
        cuda__number det = determinant(n / 2);
        if (det.mantissa == 0) {
            if (threadIdx.x == 0)
                stage->found = zero_pivot();
            block.sync();
            sums.info = stage->found;
            return sums;
        }
        sums.error = largest_error(det);
        block.sync();
        find_lines(det);
        block.sync();
        sums.norm = find_norm();
        return sums;
    }
};

/* The threads must be together, and are afterwards. */
template <int Threads>
static __device__ __noinline__ cuda__tri_minor_sums
cuda__tri_find_minors(cuda__tri_part part, typename cuda__block<Threads>::shared *memory,
                      cuda__tri_stage *stage, int64_t n)
{
    cuda__tri_minors<Threads> minors = {part, cuda__block<Threads>::begin(memory), stage, n};
    cuda__tri_minor_sums sums = minors.run();
    __syncthreads();
    return sums;
}

#endif
