/* gpu/host/tridiagonal/tile.c: parts of the inverse of a tridiagonal matrix, written from its
 * generators; see tridiagonal.h.
 *
 * An entry is the product of two numbers with exponents of their own. A panel of rows is written
 * with plain numbers: its rows' factors are scaled down by the largest exponent among them, the
 * columns' factors up by the same, and where a column's factor underflows, so does every entry of
 * it. That works while the rows' exponents are near each other, as they are but for matrices whose
 * entries fall very fast; then the panel is halved. Scaling by a power of two is exact, so that an
 * entry is its two mantissas' product, rounded once, however it was reached. Zeros are positive:
 * the sign of what underflowed would depend on how.
 *
 * Stores: a matrix that is larger than the caches is written past them, in whole cache lines; that
 * saves reading what is overwritten. The ends of a row, which are parts of lines, go through them.
 *
 * Subnormal numbers: where a product or a conversion ends in one, some processors take a microcode
 * assist of a hundred cycles and more, once a vector. A matrix whose entries fall fast has a band
 * of them on either side of the diagonal, and they would cost as much as all stores. So a row's
 * products that may be that small are made by another algorithm, with the same bits: the smallest
 * normal number, or in FP32 one whose last place is the smallest number's, is added to the
 * magnitude, and what the sum's bits lie above that number's are the subnormal's.
 *
 * Threads: any. Cost: see tridiagonal.h.
 */
#include "gpu/host/base/speed.h"

#include <emmintrin.h>
#include <float.h>

#include "gpu/host/tridiagonal/number.h"

#include "gpu/host/base/by_precision.h"

#define STRIP 512        /* columns whose factors are made together: they stay in the first cache */
#define PIECE 64         /* columns of which some may be subnormal */
#define EXPONENT_SPAN 12 /* of a panel's rows */
#define EXPONENT_MAX 12  /* of an entry, for that much to be left above a column's factor */

/* Of an entry that does not underflow, mantissas at their largest. */
#define EXPONENT_MIN (REAL_BITS == 32 ? -3 : -17)

#define SHIFT                                                                                      \
    160 /* by so much the columns' factors are scaled up, next to what the panel asks for */
#define LINE_BYTES 64

/* The two triangles of a panel: rows, factors of its columns, and their largest exponents. */
struct side {
    const struct host_tri_line *row, *column;
    const int32_t *column_max;
    int64_t strip_first;
    int64_t first, end;    /* the columns it has in the strip; end <= first: none */
    int32_t max;           /* exponent of its rows */
    double factors[STRIP]; /* of the strip's columns, from first to end - 1 */
    /* The smallest magnitude but 0 among each PIECE of them; infinite: there is none. */
    double min[STRIP / PIECE];
};

/* Can rows first to end - 1 be written with plain numbers? Sets the rows' largest exponent. */
static bool is_level(struct side *side, int64_t first, int64_t end)
{
    int32_t min = side->row->exponent[first], max = min, column = INT32_MIN;
    for (int64_t i = first; i < end; i++) {
        int32_t exponent = side->row->exponent[i];
        min = exponent < min ? exponent : min;
        max = exponent > max ? exponent : max;
    }
    side->max = max;
    if (side->end <= side->first)
        return true;
    for (int64_t c = side->first / HOST_TRI_CHUNK; c <= (side->end - 1) / HOST_TRI_CHUNK; c++)
        column = side->column_max[c] > column ? side->column_max[c] : column;
    return (int64_t)max - min <= EXPONENT_SPAN && (int64_t)column + max <= EXPONENT_MAX;
}

/* The sides of rows first to end - 1 in a strip of columns. */
static void find_sides(const struct host_tri_generators *generators, struct method_range strip,
                       int64_t first, int64_t end, struct side sides[2])
{
    sides[0].row = &generators->lower_row;
    sides[0].column = &generators->lower_column;
    sides[0].column_max = generators->lower_max;
    sides[0].strip_first = sides[0].first = strip.first;
    sides[0].end = end - 1 < strip.end ? end - 1 : strip.end;
    sides[1].row = &generators->upper_row;
    sides[1].column = &generators->upper_column;
    sides[1].column_max = generators->upper_max;
    sides[1].strip_first = strip.first;
    sides[1].first = first + 1 > strip.first ? first + 1 : strip.first;
    sides[1].end = strip.end;
}

/* How many rows from `first` on can be written together; sets the sides. *level: with plain
 * numbers? A single row may need others. */
static int64_t panel_end(const struct host_tri_generators *generators, struct method_range strip,
                         int64_t first, int64_t end, struct side sides[2], bool *level)
{
    for (;;) {
        find_sides(generators, strip, first, end, sides);
        bool lower = is_level(&sides[0], first, end), upper = is_level(&sides[1], first, end);
        *level = lower && upper;
        if (*level || end - first == 1)
            return end;
        end = first + (end - first) / 2;
    }
}

/* What row i's factor is multiplied by a column's factor of. */
static double row_factor(const struct side *side, int64_t i)
{
    return side->row->mantissa[i] * tri_power(64 * (side->row->exponent[i] - side->max) - SHIFT);
}

/* The smallest magnitude that is not 0. A zero's bits, less 1, wrap round to the largest. */
HOST_INLINE double min_magnitude(const double *factors, int64_t count)
{
    int64_t min = INT64_MAX;
    for (int64_t j = 0; j < count; j++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): find_factors has set them. */
        int64_t bits = (int64_t)(((tri_bits(factors[j]) & INT64_MAX) - 1) & INT64_MAX);
        min = bits < min ? bits : min;
    }
    return tri_with_bits(min == INT64_MAX ? tri_bits(INFINITY) : (uint64_t)min + 1);
}

/* exponent_min: exponent of an entry that does not underflow. */
HOST_INLINE void find_factors(struct side *side, int32_t exponent_min)
{
    double *restrict factors = side->factors;
    const double *restrict mantissa = side->column->mantissa;
    const int32_t *restrict exponents = side->column->exponent;
    const int64_t shift = side->strip_first;
    for (int64_t j = side->first; j < side->end;) {
        int64_t chunk = j / HOST_TRI_CHUNK, end = (chunk + 1) * HOST_TRI_CHUNK;
        end = end < side->end ? end : side->end;
        bool underflows = (int64_t)side->column_max[chunk] + side->max < exponent_min;
        if (underflows)
            memset(factors + (j - shift), 0, (size_t)(end - j) * sizeof *factors);
        for (int64_t k = j; !underflows && k < end; k++) {
            int64_t exponent = (int64_t)exponents[k] + side->max;
            double power = tri_power(64 * (exponent < exponent_min ? 0 : exponent) + SHIFT);
            factors[k - shift] = exponent < exponent_min ? 0 : mantissa[k] * power;
        }
        j = end;
    }
    for (int64_t j = 0; j < STRIP; j += PIECE) {
        int64_t from = side->first - shift, to = side->end - shift;
        from = from > j ? from : j;
        to = to < j + PIECE ? to : j + PIECE;
        side->min[j / PIECE] = min_magnitude(factors + from, to - from);
    }
}

/* Where the columns of the strip end, from j on, that may be subnormal as the one at j may, or may
 * not as it may not; `limit` times the row's factor is the smallest normal number. */
HOST_INLINE int64_t run_end(const struct side *side, double limit, int64_t j, int64_t end,
                            bool *is_small)
{
    int64_t piece = j / PIECE;
    *is_small = side->min[piece] < limit;
    do
        piece++;
    while (piece * PIECE < end && (side->min[piece] < limit) == *is_small);
    return piece * PIECE < end ? piece * PIECE : end;
}

#if REAL_BITS == 64
/* A cache line of products, past the caches. */
HOST_INLINE void stream_line(REAL *x, double factor, const double *factors)
{
    __m128d both = _mm_set1_pd(factor), zero = _mm_setzero_pd();
    for (int k = 0; k < 8; k += 2)
        _mm_stream_pd(x + k, _mm_add_pd(_mm_mul_pd(both, _mm_loadu_pd(factors + k)), zero));
}

/* x_j = factor * factors_j as multiply has it, where some of them are subnormal. A fused sum
 * rounds the product as storing it would. */
HOST_INLINE void multiply_small(REAL *restrict x, double factor, const double *restrict factors,
                                int64_t count)
{
    const double size = fabs(factor), limit = DBL_MIN / size * (1 - DBL_EPSILON);
    for (int64_t j = 0; j < count; j++) {
        double column = factors[j], magnitude = fabs(column);
        bool small = magnitude < limit;
        uint64_t low = tri_bits(fma(size, small ? magnitude : 0, DBL_MIN)) - tri_bits(DBL_MIN);
        uint64_t sign = (tri_bits(factor) ^ tri_bits(column)) & ~(uint64_t)INT64_MAX;
        double plain = factor * (small ? 0 : column) + 0;
        x[j] = tri_with_bits(tri_bits(plain) | low | (low ? sign : 0));
    }
}
#else
HOST_INLINE void stream_line(REAL *x, double factor, const double *factors)
{
    __m128d both = _mm_set1_pd(factor);
    for (int k = 0; k < 16; k += 4) {
        __m128 low = _mm_cvtpd_ps(_mm_mul_pd(both, _mm_loadu_pd(factors + k)));
        __m128 high = _mm_cvtpd_ps(_mm_mul_pd(both, _mm_loadu_pd(factors + k + 2)));
        _mm_stream_ps(x + k, _mm_add_ps(_mm_movelh_ps(low, high), _mm_setzero_ps()));
    }
}

/* unit's last place is the smallest number's. */
HOST_INLINE void multiply_small(REAL *restrict x, double factor, const double *restrict factors,
                                int64_t count)
{
    const double unit = 0x1p-97;
    for (int64_t j = 0; j < count; j++) {
        double product = factor * factors[j];
        uint64_t small = -(uint64_t)(fabs(product) < (double)FLT_MIN), all = tri_bits(product);
        float plain = (float)tri_with_bits(all & ~small) + 0;
        uint64_t low = tri_bits(fabs(tri_with_bits(all & small)) + unit) - tri_bits(unit);
        uint32_t sign = (uint32_t)(all >> 32) & ~(uint32_t)INT32_MAX, bits;
        memcpy(&bits, &plain, sizeof bits);
        bits |= (uint32_t)low | (sign & (uint32_t) - (uint64_t)(low != 0));
        memcpy(&x[j], &bits, sizeof bits);
    }
}
#endif
/* A cache line, past the caches. */
HOST_INLINE void copy_line(void *to, const void *from)
{
    for (int k = 0; k < LINE_BYTES / 16; k++)
        _mm_stream_si128((__m128i *)to + k, _mm_loadu_si128((const __m128i *)from + k));
}

/* How a row is written. */
struct manner {
    bool past_caches;
    bool fused; /* the processor has fused sums, so that subnormal numbers can be made by one */
};

/* x_j = factor * factors_j; adding 0 makes a negative zero positive. */
HOST_INLINE void multiply(REAL *restrict x, double factor, const double *restrict factors,
                          int64_t count)
{
    for (int64_t j = 0; j < count; j++)
        x[j] = (REAL)(factor * factors[j]) + 0;
}

HOST_INLINE void multiply_past(REAL *restrict x, double factor, const double *restrict factors,
                               int64_t count)
{
    const int64_t line = LINE_BYTES / (int64_t)sizeof *x;
    int64_t head = (int64_t)(-(uintptr_t)x % LINE_BYTES / sizeof *x), j = 0;
    head = head < count ? head : count;
    multiply(x, factor, factors, head);
    for (j = head; j + line <= count; j += line)
        stream_line(x + j, factor, factors + j);
    multiply(x + j, factor, factors + j, count - j);
}

HOST_INLINE void copy_past(REAL *restrict x, const REAL *restrict from, int64_t count)
{
    const int64_t line = LINE_BYTES / (int64_t)sizeof *x;
    int64_t head = (int64_t)(-(uintptr_t)x % LINE_BYTES / sizeof *x), j = 0;
    head = head < count ? head : count;
    memcpy(x, from, (size_t)head * sizeof *x);
    for (j = head; j + line <= count; j += line)
        copy_line(x + j, from + j);
    memcpy(x + j, from + j, (size_t)(count - j) * sizeof *x);
}

HOST_INLINE void write_run(REAL *x, double factor, const double *factors, int64_t count,
                           bool is_small, bool past_caches)
{
    REAL small[STRIP];
    if (is_small)
        multiply_small(past_caches ? small : x, factor, factors, count);
    if (is_small && past_caches)
        copy_past(x, small, count);
    else if (past_caches)
        multiply_past(x, factor, factors, count);
    else if (!is_small)
        multiply(x, factor, factors, count);
}

/* The side's columns from first to end - 1 of row i; x: where the strip's first column is. */
HOST_INLINE void write_span(const struct side *side, REAL *x, int64_t i, int64_t first, int64_t end,
                            struct manner manner)
{
    const double factor = row_factor(side, i), limit = manner.fused ? REAL_MIN / fabs(factor) : 0;
    bool is_small;
    first -= side->strip_first;
    end -= side->strip_first;
    for (int64_t j = first, next; j < end; j = next) {
        next = run_end(side, limit, j, end, &is_small);
        write_run(x + j, factor, side->factors + j, next - j, is_small, manner.past_caches);
    }
}

/* The same, all of them, where no plain numbers will do. */
static void write_slowly(const struct side *side, REAL *x, int64_t i)
{
    for (int64_t j = side->first; j < side->end; j++)
        x[j - side->strip_first] =
            (REAL)tri_product(tri_get(side->row, i), tri_get(side->column, j)) + 0;
}

/* Row i of the strip. */
HOST_INLINE void write_row(const struct side sides[2], bool level, struct manner manner, REAL *x,
                           int64_t i)
{
    int64_t first = sides[0].strip_first, end = sides[1].end;
    for (int k = 0; !level && k < 2; k++)
        write_slowly(&sides[k], x, i);
    if (level) {
        write_span(&sides[0], x, i, first, i < end ? i : end, manner);
        write_span(&sides[1], x, i, i + 1 > first ? i + 1 : first, end, manner);
    }
}

/* A strip of columns of the tile's rows; x: where the first row has the strip's first column. */
HOST_INLINE void write_strip(const struct host_tri_generators *generators, const double *diagonal,
                             const struct host_tri_tile *tile, struct method_range strip,
                             bool fused, REAL *x)
{
    const struct manner manner = {.past_caches = tile->past_caches, .fused = fused};
    struct side sides[2];
    bool level;
    for (int64_t i = tile->rows.first, end; i < tile->rows.end;) {
        end = i + HOST_TRI_TILE_ROWS < tile->rows.end ? i + HOST_TRI_TILE_ROWS : tile->rows.end;
        end = panel_end(generators, strip, i, end, sides, &level);
        for (int k = 0; level && k < 2; k++)
            find_factors(&sides[k], EXPONENT_MIN);
        for (; i < end; i++, x += tile->ld) {
            write_row(sides, level, manner, x, i);
            if (i >= strip.first && i < strip.end)
                x[i - strip.first] = (REAL)diagonal[i];
        }
    }
}

HOST_INLINE void write_strips(const struct host_tri_generators *generators, const double *diagonal,
                              const struct host_tri_tile *tile, bool fused)
{
    REAL *x = tile->x;
    for (int64_t first = tile->columns.first; first < tile->columns.end; first += STRIP) {
        struct method_range strip = {first, tile->columns.end};
        if (strip.end - first > STRIP)
            strip.end = first + STRIP;
        write_strip(generators, diagonal, tile, strip, fused, x + (first - tile->columns.first));
    }
}

HOST_AVX512 static void write_strips_avx512(const struct host_tri_generators *generators,
                                            const double *diagonal,
                                            const struct host_tri_tile *tile)
{
    write_strips(generators, diagonal, tile, true);
}

HOST_FMA static void write_strips_avx2(const struct host_tri_generators *generators,
                                       const double *diagonal, const struct host_tri_tile *tile)
{
    write_strips(generators, diagonal, tile, true);
}

/* The same operations, whatever the width of the vectors. */
void R(host__tri_tile)(const struct host_tri_generators *generators, const double *diagonal,
                       const struct host_tri_tile *tile)
{
    if (__builtin_cpu_supports("avx512f"))
        write_strips_avx512(generators, diagonal, tile);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        write_strips_avx2(generators, diagonal, tile);
    else
        write_strips(generators, diagonal, tile, false);
    _mm_sfence(); /* stores past the caches are in no order with others */
}
