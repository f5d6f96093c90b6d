/* gpu/cuda/tridiagonal/span.cuh: consecutive rows of a dominant tridiagonal matrix as one factor of
 * a product, and the product of the rows that a sweep has passed.
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
#ifndef GPU_CUDA_TRIDIAGONAL_SPAN_CUH
#define GPU_CUDA_TRIDIAGONAL_SPAN_CUH

#include "gpu/cuda/tridiagonal/device.cuh"

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

#endif
