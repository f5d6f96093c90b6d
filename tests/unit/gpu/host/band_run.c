/* tests/unit/gpu/host/band_run.c: see band_run.h. */
#include "tests/unit/gpu/host/band_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/methods/tridiagonal.h"
#include "tests/unit/gpu/host/matrices.h"

#define GUARD 16 /* elements before and after a tensor: a cache line at least */
#define GUARD_BYTE 0x5a

static int64_t size_of(enum precision precision)
{
    return precision == PRECISION_FP32 ? 4 : 8;
}

static unsigned char *tensor(int64_t count, enum precision precision)
{
    size_t bytes = (size_t)((count + 2 * GUARD) * size_of(precision));
    unsigned char *raw = malloc(bytes);
    assert_non_null(raw);
    memset(raw, GUARD_BYTE, bytes);
    return raw + GUARD * size_of(precision);
}

static unsigned char *load(const double *from, int64_t count, enum precision precision)
{
    unsigned char *to = tensor(count, precision);
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = from[i];
    }
    return to;
}

static void release(unsigned char *data, int64_t count, enum precision precision)
{
    int64_t guard = GUARD * size_of(precision), bytes = count * size_of(precision);
    for (int64_t i = 0; i < guard; i++) {
        assert_int_equal(data[-1 - i], GUARD_BYTE);
        assert_int_equal(data[bytes + i], GUARD_BYTE);
    }
    free(data - guard);
}

static double *unload(unsigned char *data, int64_t count, enum precision precision)
{
    double *to = gputest_numbers(count);
    for (int64_t i = 0; i < count; i++)
        to[i] = precision == PRECISION_FP32 ? ((float *)data)[i] : ((double *)data)[i];
    release(data, count, precision);
    return to;
}

/* Outputs, where they are wanted. */
struct outputs {
    unsigned char *x, *diagonal, *generators, *rcond;
    int64_t numbers; /* of x */
};

static int64_t option_of(struct method_range range)
{
    return range.end == 0 ? 0 : method_range_pack(range);
}

static void call(const struct gputest_bands *a, const struct gputest_band_request *request,
                 const struct outputs *outputs, struct gputest_band_answer *answer)
{
    enum precision p = a->precision;
    int64_t n = a->n, options[METHOD_OPTIONS_MAX];
    const struct method *method = method_find("tridiagonal");
    const struct host_method *host = host_method_at((uint32_t)method_index(method), p);
    unsigned char *dl = load(a->dl, n - 1, p), *d = load(a->d, n, p), *du = load(a->du, n - 1, p);
    size_t bytes = (size_t)host->scratch_bytes(n, 0);
    void *scratch = aligned_alloc(HOST_ALIGN_BYTES, bytes);
    assert_non_null(scratch);
    memset(scratch, 0xa5, bytes);
    method_default_options(method, options);
    options[METHOD_TRIDIAGONAL_VARIANT] = request->variant;
    options[METHOD_TRIDIAGONAL_ROWS] = option_of(request->rows);
    options[METHOD_TRIDIAGONAL_COLUMNS] = option_of(request->columns);
    struct host_matrix matrix = {.inputs = {dl, d, du},
                                 .outputs = {outputs->x, outputs->diagonal, &answer->info,
                                             outputs->rcond, &answer->algorithm,
                                             outputs->generators, answer->exponents},
                                 .n = n,
                                 .options = options,
                                 .team = request->team,
                                 .scratch = scratch};
    host->run(&matrix);
    free(scratch);
    release(dl, n - 1, p);
    release(d, n, p);
    release(du, n - 1, p);
}

struct gputest_band_answer gputest_band_run(const struct gputest_bands *a,
                                            const struct gputest_band_request *request)
{
    enum precision p = a->precision;
    int64_t n = a->n;
    struct method_range rows = method_range_unpack(option_of(request->rows), n);
    struct method_range columns = method_range_unpack(option_of(request->columns), n);
    struct gputest_band_answer answer = {0};
    struct outputs outputs = {.numbers = (rows.end - rows.first) * (columns.end - columns.first)};
    outputs.x = request->inverse ? tensor(outputs.numbers, p) : NULL;
    outputs.diagonal = request->diagonal ? tensor(n, p) : NULL;
    outputs.generators = request->generators ? tensor(4 * n, p) : NULL;
    outputs.rcond = tensor(1, p);
    if (request->generators) {
        answer.exponents = calloc((size_t)(4 * n), sizeof *answer.exponents);
        assert_non_null(answer.exponents);
    }
    call(a, request, &outputs, &answer);
    double *number = unload(outputs.rcond, 1, p);
    answer.rcond = *number;
    free(number);
    answer.x = outputs.x ? unload(outputs.x, outputs.numbers, p) : NULL;
    answer.diagonal = outputs.diagonal ? unload(outputs.diagonal, n, p) : NULL;
    answer.generators = outputs.generators ? unload(outputs.generators, 4 * n, p) : NULL;
    return answer;
}

void gputest_band_free(struct gputest_band_answer *answer)
{
    free(answer->x);
    free(answer->diagonal);
    free(answer->generators);
    free(answer->exponents);
}

/* ---- Measures ---- */

long double gputest_band_norm(const struct gputest_bands *a)
{
    long double largest = 0;
    for (int64_t j = 0; j < a->n; j++) {
        long double sum =
            fabsl((long double)a->d[j]) + (long double)gputest_bands_around(a, j, true);
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

long double gputest_dense_norm(const double *x, int64_t n)
{
    long double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += fabsl((long double)x[i * n + j]);
        largest = !(sum <= largest) ? sum : largest;
    }
    return largest;
}

/* Entry (i, j) of A X, or of X A. */
static long double product(const struct gputest_bands *a, const double *x, int64_t i, int64_t j,
                           bool left)
{
    int64_t n = a->n, at = left ? j : i, step = left ? 1 : n;
    const double *middle = x + i * n + j, *before = left ? a->du : a->dl;
    const double *after = left ? a->dl : a->du;
    long double sum = (long double)a->d[at] * *middle;
    sum += at > 0 ? (long double)before[at - 1] * middle[-step] : 0;
    sum += at + 1 < n ? (long double)after[at] * middle[step] : 0;
    return sum;
}

/* The larger ratio of |I - X A| and |I - A X| to n |A| |X| eps. */
double gputest_band_ratio(const struct gputest_bands *a, const double *x)
{
    int64_t n = a->n;
    long double largest = 0, size = gputest_band_norm(a) * gputest_dense_norm(x, n);
    for (int side = 0; side < 2; side++) {
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += fabsl(product(a, x, i, j, side) - (i == j));
            largest = !(sum <= largest) ? sum : largest;
        }
    }
    return (double)(largest / ((long double)n * size * (long double)gputest_eps(a->precision)));
}
