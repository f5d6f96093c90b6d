/* `auto` of the CUDA engine, on the SIMT stand-in: matrices of every kind, in one batch. Sorted, as
 * large orders are, each takes the algorithm that the host's `auto` finds for large orders; else it
 * is lu's, but for what `spd` asks to average. Its inverse keeps the contract; and its answer is
 * the same bits alone, with any neighbours, whatever the workspace holds at a time. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/host/base/host.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/methods/auto.h"
#include "tests/simt/simt.h"
#include "tests/support/gallery.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VISITS_MAX 100
#define NOISE 0xff /* a NaN, of whatever is read before it is written */

enum kind {
    DENSE,
    DIAGONAL,
    LOWER,
    TRIDIAGONAL,
    DEFINITE,
    UPPER,
    CORNER_ZEROS, /* dense, but for the entries that tell most dense ones */
    NOT_A_NUMBER,
    GRADED,         /* upper, of entries near the range's lower end */
    SINGULAR_BAND,  /* tridiagonal, its first and last rows multiples of the others */
    SINGULAR_LOWER, /* zeros on the diagonal */
    SINGULAR_DIAGONAL,
    GROWTH, /* as Wilkinson's matrix, which spoils partial pivoting */
    HUGE_UPPER,
    DIAGONAL_INFINITE,
    SINGULAR, /* of rank 1 */
    ROUNDED,  /* definite, and different from its transpose in last bits */
    INDEFINITE,
    SADDLE, /* symmetric, random, of either sign */
    SYMMETRIC_BAND,
    SYMMETRIC_GROWTH,
    ONE_PAIR, /* definite but for one entry, which is not the other's image */
    FAR_ENDS, /* upper; scaled down, its small entries would have no reciprocals */
    KINDS
};

static double entry(enum kind kind, enum precision precision, int64_t n, int64_t i, int64_t j)
{
    int64_t low = i < j ? i : j, high = i < j ? j : i;
    uint64_t mirrored = (uint64_t)(low * 1000 + high + n), own = mirrored + (i > j ? 7919 : 0);
    double symmetric = gputest_random(&mirrored), any = gputest_random(&own);
    double end = precision == PRECISION_FP32 ? 0x1p100 : 0x1p900;
    double far = precision == PRECISION_FP32 ? 0x1p116 : 0x1p1000;
    double last = precision == PRECISION_FP32 ? 0x1p-23 : 0x1p-52;
    double definite = i == j ? (double)n + symmetric : symmetric;
    switch (kind) {
    case DEFINITE:
        return definite;
    case ROUNDED:
        return i > j && (i + j) % 3 == 1 ? definite * (1 + last) : definite;
    case INDEFINITE:
        return i == j ? 1 : -0.75;
    case SADDLE:
        return i == j ? (i % 2 ? 2 : -2) + symmetric : symmetric;
    case SYMMETRIC_BAND:
        return high - low > 1 ? 0 : i == j ? (i % 2 ? 3 : -3) + symmetric : symmetric;
    case SYMMETRIC_GROWTH: /* [[0, G], [G^T, 0]] */
        return high >= n / 2 * 2              ? (double)(i == j)
               : low < n / 2 && high >= n / 2 ? gallery_growing_inexact(low, high - n / 2, n / 2)
                                              : 0;
    case ONE_PAIR:
        return i == n - 1 && j == n / 2 - 1 ? definite + 0.5 : definite;
    case FAR_ENDS:
        return i == j ? (i % 2 ? 1 / far : far) : i == 0 && j == 1 ? far / 2 : 0;
    case CORNER_ZEROS:
        return (i == 0 && j == 1) || (i == 1 && j == 0) ? 0 : i == j ? 2 + any : any;
    case DIAGONAL:
    case SINGULAR_DIAGONAL:
        return i != j || (kind == SINGULAR_DIAGONAL && i == n / 2) ? 0 : 1 + any / 2;
    case LOWER:
    case SINGULAR_LOWER:
        return i == j ? (kind == LOWER || i % 3 != 1 ? 2.0 : 0.0) : i > j ? any : 0;
    case UPPER:
        return i == j ? 2 : i < j ? any : 0;
    case GRADED:
        return (i == j ? 2 : i < j ? any : 0) * 16 / end;
    case HUGE_UPPER:
        return (i == j ? 2 : i < j ? any : 0) * end * 16;
    case TRIDIAGONAL:
        return i == j ? 3 : high - low == 1 ? any : 0;
    case SINGULAR_BAND:
        return i == j ? (i == 0 || i == n - 1 ? 1.0 : 2.0) : high - low == 1 ? -1 : 0;
    case NOT_A_NUMBER:
        return i == n - 1 && j == n - 1 ? NAN : any;
    case DIAGONAL_INFINITE:
        return i != j ? 0 : i == n - 1 ? -INFINITY : 1;
    case GROWTH:
        return gallery_growing_inexact(i, j, n);
    case SINGULAR:
        return 1;
    default:
        return any;
    }
}

/* ---- Batches ---- */

/* One matrix of each kind, and their answers. */
struct bench {
    enum precision precision;
    bool sorts, averages;
    int64_t n, bytes;
    unsigned char *a, *x;
    int32_t info[KINDS], algorithm[KINDS];
    double rcond[KINDS]; /* room for either precision, side by side in it */
};

static struct cuda_products *products(void)
{
    static struct cuda_products *made;
    if (!made)
        assert_int_equal(cuda_products_create(NULL, &made), cudaSuccess);
    return made;
}

/* spd: the option. */
static void bench_open(struct bench *bench, enum precision precision, int64_t n, bool sorts,
                       bool spd)
{
    int64_t unit = precision_bytes(precision);
    *bench = (struct bench){
        .precision = precision, .sorts = sorts, .averages = spd, .n = n, .bytes = n * n * unit};
    bench->a = malloc((size_t)(KINDS * bench->bytes));
    bench->x = malloc((size_t)(KINDS * bench->bytes));
    assert_true(bench->a && bench->x);
    for (int64_t k = 0; k < KINDS * n * n; k++) {
        double wide = entry((enum kind)(k / (n * n)), precision, n, k / n % n, k % n);
        float narrow = (float)wide;
        memcpy(bench->a + k * unit, unit == 4 ? (void *)&narrow : (void *)&wide, (size_t)unit);
    }
}

static void bench_close(struct bench *bench)
{
    free(bench->a);
    free(bench->x);
}

static double get(const struct bench *bench, const void *data, int64_t index)
{
    return bench->precision == PRECISION_FP32 ? (double)((const float *)data)[index]
                                              : ((const double *)data)[index];
}

/* A batch of `count` matrices from `first` on, `each` to an item, all wanted but for the inverse of
 * `unwanted`. */
struct batch {
    int64_t first, count, each;
    int unwanted; /* -1: none */
    struct cuda_tensors items[KINDS];
    struct cuda_call call;
};

static void batch_open(struct batch *batch, struct bench *bench)
{
    static const int64_t options[2][METHOD_OPTIONS_MAX] = {[1] = {[METHOD_AUTO_SPD] = 1}};
    int64_t items = (batch->count + batch->each - 1) / batch->each;
    int64_t unit = precision_bytes(bench->precision);
    for (int64_t i = 0; i < items; i++) {
        int64_t at = batch->first + i * batch->each;
        batch->items[i] = (struct cuda_tensors){
            .inputs = {bench->a + at * bench->bytes},
            .outputs = {at == batch->unwanted ? NULL : bench->x + at * bench->bytes,
                        &bench->info[at], (unsigned char *)bench->rcond + at * unit,
                        &bench->algorithm[at]},
            .first = i * batch->each};
    }
    batch->call = (struct cuda_call){.precision = bench->precision,
                                     .n = bench->n,
                                     .options = options[bench->averages],
                                     .item_count = items,
                                     .matrices = batch->count,
                                     .inputs = 1,
                                     .wanted = 15,
                                     .tensors = batch->items,
                                     .products = products()};
    memset(bench->x, NOISE, (size_t)(KINDS * bench->bytes));
    memset(bench->info, NOISE, sizeof bench->info);
    memset(bench->algorithm, NOISE, sizeof bench->algorithm);
    memset(bench->rcond, NOISE, sizeof bench->rcond);
}

/* Makes the call to its end, with a workspace for `at_once` of its matrices. Returns the visits. */
static int run(struct cuda_call *call, bool sorts, int64_t at_once)
{
    struct cuda_notes notes;
    int visits = 1;
    memset(&notes, NOISE, sizeof notes);
    call->notes = call->d_notes = &notes;
    call->workspace_bytes = cuda__auto_bytes(call, sorts, at_once);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), cudaSuccess);
    cudaMemset(call->workspace, NOISE, call->workspace_bytes);
    notes.asked = 0;
    cudaError_t status = cuda__auto_begin(call, sorts, NULL);
    for (; status == cudaSuccess && notes.asked && visits < VISITS_MAX; visits++) {
        notes.asked = 0;
        status = cuda_auto_again(call, NULL);
    }
    if (status != cudaSuccess || notes.asked)
        fail_msg("status %d: %s", (int)status, simt_report());
    cudaFree(call->workspace);
    return visits;
}

static void run_part(struct bench *bench, int64_t first, int64_t count, int64_t each,
                     int64_t at_once)
{
    struct batch batch = {.first = first, .count = count, .each = each, .unwanted = -1};
    batch_open(&batch, bench);
    (void)run(&batch.call, bench->sorts, at_once);
}

/* ---- Next to the host ---- */

struct answer {
    int32_t info, algorithm;
    double rcond;
};

/* The host's auto on one matrix; its inverse goes to x. */
static struct answer of_host(const struct bench *bench, int64_t k, void *x)
{
    const struct host_method *method =
        host_method_at((uint32_t)method_index(method_find("auto")), bench->precision);
    int64_t options[METHOD_OPTIONS_MAX] = {[METHOD_AUTO_SPD] = bench->averages};
    struct answer answer = {0};
    void *scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)method->scratch_bytes(bench->n, 0));
    double rcond = 0;
    assert_non_null(scratch);
    struct host_matrix matrix = {.inputs = {bench->a + k * bench->bytes},
                                 .outputs = {x, &answer.info, &rcond, &answer.algorithm},
                                 .n = bench->n,
                                 .options = options,
                                 .scratch = scratch};
    method->run(&matrix);
    answer.rcond = get(bench, &rcond, 0);
    free(scratch);
    return answer;
}

static void assert_inverse(const struct bench *bench, int64_t k)
{
    int64_t numbers = bench->n * bench->n;
    double *a = gputest_numbers(numbers), *x = gputest_numbers(numbers);
    /* The judge's sums shall not leave the range. */
    double by =
        k == GRADED || k == HUGE_UPPER ? 1 / entry((enum kind)k, bench->precision, 1, 0, 0) : 1;
    for (int64_t e = 0; e < numbers; e++) {
        a[e] = get(bench, bench->a, k * numbers + e) * by;
        x[e] = get(bench, bench->x, k * numbers + e) / by;
    }
    double ratio = gputest_inverse_ratio(bench->precision, bench->n, a, x);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        fail_msg("n = %d, %s, kind %d: ratio %g", (int)bench->n, precision_name(bench->precision),
                 (int)k, ratio);
    free(a);
    free(x);
}

/* Is it Cholesky's? The host leaves those of small orders to lu. */
static bool is_definite(const struct bench *bench, int64_t k)
{
    bool symmetric = k == DEFINITE || (k == ROUNDED && bench->n < 2) ||
                     ((k == INDEFINITE || k == ONE_PAIR) && bench->n == 2);
    if (k == ROUNDED && bench->n >= 2)
        return bench->averages;
    return symmetric && bench->sorts && bench->n >= 2 && k != ONE_PAIR;
}

/* Matrix k at `data`, NaN for NaN. */
static bool is_symmetric(const struct bench *bench, const void *data, int64_t k)
{
    bool symmetric = true;
    for (int64_t n = bench->n, first = k * n * n, e = 0; e < n * n; e++) {
        double one = get(bench, data, first + e), two = get(bench, data, first + e % n * n + e / n);
        symmetric = symmetric && (one == two || (isnan(one) && isnan(two)));
    }
    return symmetric;
}

static void assert_as_host(const struct bench *bench, int64_t k)
{
    int64_t n = bench->n, numbers = n * n;
    void *x = malloc((size_t)bench->bytes);
    assert_non_null(x);
    struct answer theirs = of_host(bench, k, x);
    double rcond = get(bench, bench->rcond, k);
    bool lu = !bench->sorts && theirs.algorithm != METHOD_ALGORITHM_NONE;
    int algorithm = is_definite(bench, k) ? METHOD_ALGORITHM_CHOLESKY
                    : lu                  ? METHOD_ALGORITHM_LU
                                          : theirs.algorithm;
    lu = algorithm == METHOD_ALGORITHM_LU;
    /* At which step lu meets a zero is its own affair. */
    bool same = bench->info[k] == theirs.info || (lu && theirs.info > 0 && bench->info[k] > 0);
    if (bench->algorithm[k] != algorithm || !(same || k == SINGULAR_BAND))
        fail_msg("n = %d, %s, kind %d: %s and INFO %d, not %s and %d", (int)n,
                 precision_name(bench->precision), (int)k,
                 method_algorithm_name(bench->algorithm[k]), (int)bench->info[k],
                 method_algorithm_name(algorithm), (int)theirs.info);
    assert_true(!is_symmetric(bench, bench->a, k) || is_symmetric(bench, bench->x, k));
    assert_true((bench->info[k] > 0) == (theirs.info > 0) && isnan(rcond) == isnan(theirs.rcond));
    if (bench->info[k] == 0) {
        assert_inverse(bench, k);
        assert_true(fabs(rcond - theirs.rcond) <= 1e-3 * theirs.rcond);
    }
    for (int64_t e = 0; k == FAR_ENDS && e < numbers; e++)
        assert_true(isfinite(get(bench, bench->x, k * numbers + e)));
    bool none = bench->info[k] < 0 || (bench->info[k] > 0 && bench->info[k] <= n);
    for (int64_t e = 0; none && e < numbers; e++)
        assert_true(isnan(get(bench, bench->x, k * numbers + e)));
    if (none && bench->info[k] > 0)
        assert_true(rcond == 0);
    free(x);
}

/* ---- The same bits ---- */

struct kept {
    unsigned char *x;
    int32_t info[KINDS], algorithm[KINDS];
    double rcond[KINDS];
};

static void keep(struct kept *kept, const struct bench *bench)
{
    kept->x = malloc((size_t)(KINDS * bench->bytes));
    assert_non_null(kept->x);
    memcpy(kept->x, bench->x, (size_t)(KINDS * bench->bytes));
    memcpy(kept->info, bench->info, sizeof kept->info);
    memcpy(kept->algorithm, bench->algorithm, sizeof kept->algorithm);
    memcpy(kept->rcond, bench->rcond, sizeof kept->rcond);
}

static void assert_as_kept(const struct kept *kept, const struct bench *bench, int64_t k)
{
    size_t unit = (size_t)precision_bytes(bench->precision);
    assert_int_equal(bench->info[k], kept->info[k]);
    assert_int_equal(bench->algorithm[k], kept->algorithm[k]);
    assert_memory_equal((const char *)bench->rcond + (size_t)k * unit,
                        (const char *)kept->rcond + (size_t)k * unit, unit);
    assert_memory_equal(bench->x + k * bench->bytes, kept->x + k * bench->bytes,
                        (size_t)bench->bytes);
}

/* All in one item, then parts of the batch in items of other sizes, with more or less room. */
static void try_order(enum precision precision, int64_t n, bool sorts, bool spd)
{
    static const struct {
        int64_t first, count, each, at_once;
    } parts[] = {{0, KINDS, 1, 1},   {1, 1, 1, 1},         {2, 1, 1, 5},
                 {3, 3, 2, 3},       {8, KINDS - 8, 3, 2}, {6, 4, 4, 2},
                 {GROWTH, 1, 1, 1},  {0, 6, 5, 4},         {DENSE, 1, 1, 1},
                 {ROUNDED, 1, 1, 1}, {SINGULAR, 4, 2, 1},  {DEFINITE, 1, 1, 1},
                 {SADDLE, 3, 2, 1},  {SADDLE, 1, 1, 1},    {SYMMETRIC_GROWTH, 1, 1, 1}};
    struct bench bench;
    struct kept kept;
    bench_open(&bench, precision, n, sorts, spd);
    run_part(&bench, 0, KINDS, KINDS, KINDS);
    keep(&kept, &bench);
    for (int64_t k = 0; k < KINDS; k++)
        assert_as_host(&bench, k);
    for (size_t p = 0; p < COUNT(parts); p++) {
        run_part(&bench, parts[p].first, parts[p].count, parts[p].each, parts[p].at_once);
        for (int64_t k = 0; k < parts[p].count; k++)
            assert_as_kept(&kept, &bench, parts[p].first + k);
    }
    free(kept.x);
    bench_close(&bench);
}

/* By whether they are sorted. */
static void test_orders(void **state)
{
    static const int64_t orders[2][9] = {{1, 2, 7, 32, 33, 50}, {2, 3, 8, 31, 32, 33, 64, 65}};
    (void)state;
    for (int k = 0; k < 36; k++) {
        if (orders[k / 18][k / 2 % 9] > 0)
            try_order((enum precision)(k % 2), orders[k / 18][k / 2 % 9], k / 18 == 1, k % 3 == 1);
    }
}

/* Panels with products between them, and lu in the workspace. */
static void test_larger_orders(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n;
        enum kind kind;
    } rows[] = {{PRECISION_FP64, 150, LOWER},       {PRECISION_FP32, 150, UPPER},
                {PRECISION_FP64, 150, SADDLE},      {PRECISION_FP64, 150, TRIDIAGONAL},
                {PRECISION_FP32, 300, LOWER},       {PRECISION_FP64, 300, UPPER},
                {PRECISION_FP64, 300, DIAGONAL},    {PRECISION_FP32, 300, TRIDIAGONAL},
                {PRECISION_FP64, 150, DEFINITE},    {PRECISION_FP64, 300, SINGULAR_LOWER},
                {PRECISION_FP64, 600, TRIDIAGONAL}, {PRECISION_FP32, 330, DEFINITE},
                {PRECISION_FP64, 150, ROUNDED},     {PRECISION_FP32, 150, ROUNDED},
                {PRECISION_FP64, 150, INDEFINITE},  {PRECISION_FP64, 150, ONE_PAIR},
                {PRECISION_FP32, 257, SADDLE},      {PRECISION_FP64, 257, SYMMETRIC_BAND}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench bench;
        bench_open(&bench, rows[i].precision, rows[i].n, true, rows[i].kind == ROUNDED);
        run_part(&bench, rows[i].kind, 1, 1, 1);
        assert_as_host(&bench, rows[i].kind);
        bench_close(&bench);
    }
}

/* Which orders are sorted; and that dense matrices are not held up: one visit where nothing is
 * sorted, else two. */
static void test_visits(void **state)
{
    static const struct {
        enum kind kind;
        int64_t n;
        bool sorts;
        int visits;
    } rows[] = {
        {DENSE, 8, false, 1},         {DENSE, 33, false, 1},       {GROWTH, 32, false, 2},
        {GROWTH, 50, false, 2},       {DENSE, 33, true, 2},        {DENSE, 8, true, 2},
        {GROWTH, 50, true, 5},        {DIAGONAL, 33, true, 3},     {LOWER, 8, true, 3},
        {DEFINITE, 40, true, 3},      {NOT_A_NUMBER, 40, true, 2}, {SINGULAR, 8, true, 5},
        {INDEFINITE, 9, true, 4},     {ONE_PAIR, 9, true, 3},      {DIAGONAL, 1, true, 2},
        {SINGULAR_BAND, 33, true, 5}, {SADDLE, 33, false, 2},      {SYMMETRIC_GROWTH, 50, false, 2},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bench bench;
        struct batch batch = {.first = rows[i].kind, .count = 1, .each = 1, .unwanted = -1};
        bench_open(&bench, PRECISION_FP64, rows[i].n, rows[i].sorts, false);
        batch_open(&batch, &bench);
        int visits = run(&batch.call, bench.sorts, 1);
        if (visits != rows[i].visits)
            fail_msg("kind %d, n = %d: %d visits", (int)rows[i].kind, (int)rows[i].n, visits);
        bench_close(&bench);
    }
}

/* One matrix by the method itself, which knows from which order on it sorts. Returns whether it
 * asked for a second visit. */
static bool run_method(struct bench *bench, enum kind kind)
{
    struct cuda_notes notes = {0};
    struct batch batch = {.first = kind, .count = 1, .each = 1, .unwanted = -1};
    struct cuda_call *call = &batch.call;
    batch_open(&batch, bench);
    call->notes = call->d_notes = &notes;
    call->workspace_bytes = cuda_auto_workspace(call, 1);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), 0);
    assert_int_equal(cuda_auto(call, NULL), 0);
    bool asked = notes.asked != 0;
    while (notes.asked) {
        notes.asked = 0;
        assert_int_equal(cuda_auto_again(call, NULL), 0);
    }
    cudaFree(call->workspace);
    return asked;
}

static void test_least_order_that_is_sorted(void **state)
{
    (void)state;
    for (int64_t n = CUDA_AUTO_SORTED_N_MIN - 1; n <= CUDA_AUTO_SORTED_N_MIN; n++) {
        struct bench bench;
        bench_open(&bench, PRECISION_FP32, n, true, false);
        assert_int_equal(run_method(&bench, LOWER), n >= CUDA_AUTO_SORTED_N_MIN);
        bench.sorts = n >= CUDA_AUTO_SORTED_N_MIN;
        assert_as_host(&bench, LOWER);
        bench_close(&bench);
    }
}

static void test_least_order_of_cholesky(void **state)
{
    (void)state;
    for (int p = 0; p < PRECISION_COUNT; p++) {
        for (int64_t min = CUDA_AUTO_DEFINITE_N_MIN((enum precision)p), n = min - 1; n <= min;
             n++) {
            struct bench bench;
            bench_open(&bench, (enum precision)p, n, true, false);
            (void)run_method(&bench, DEFINITE);
            bench.sorts = n == min;
            assert_as_host(&bench, DEFINITE);
            bench_close(&bench);
        }
    }
}

/* INVERSE that no one wants is not written; all else is as with it. */
static void test_unwanted_inverse(void **state)
{
    (void)state;
    for (int64_t k = 0; k < KINDS * 2; k++) {
        struct bench bench;
        struct kept kept;
        int64_t kind = k / 2;
        struct batch batch = {.first = kind, .count = 1, .each = 1, .unwanted = (int)kind};
        bench_open(&bench, PRECISION_FP64, k % 2 ? 40 : 9, true, k % 4 > 1);
        run_part(&bench, kind, 1, 1, 1);
        keep(&kept, &bench);
        batch_open(&batch, &bench);
        (void)run(&batch.call, true, 1);
        assert_true(bench.info[kind] == kept.info[kind] &&
                    bench.algorithm[kind] == kept.algorithm[kind]);
        assert_true(bench.rcond[kind] == kept.rcond[kind] || isnan(kept.rcond[kind]) ||
                    is_symmetric(&bench, bench.a, kind)); /* then it is the mean's */
        for (int64_t i = 0; i < KINDS * bench.bytes; i++)
            assert_int_equal(bench.x[i], NOISE);
        free(kept.x);
        bench_close(&bench);
    }
}

/* More odd matrices than there are places: round by round. */
static void test_rounds(void **state)
{
    (void)state;
    for (int64_t each = 1; each <= 4; each += 3) {
        struct bench bench;
        struct kept kept;
        struct batch batch = {.first = DIAGONAL, .count = 3, .each = each, .unwanted = -1};
        bench_open(&bench, PRECISION_FP32, 37, true, false);
        run_part(&bench, DIAGONAL, 3, 3, 3);
        keep(&kept, &bench);
        batch_open(&batch, &bench);
        assert_true(run(&batch.call, true, 1) > 4);
        for (int64_t k = 0; k < 3; k++)
            assert_as_kept(&kept, &bench, DIAGONAL + k);
        bench_close(&bench);
        free(kept.x);
    }
}

static void test_refusals(void **state)
{
    static const int64_t orders[] = {0, -1, CUDA_AUTO_N_MAX + 1};
    struct cuda_notes notes = {0};
    struct cuda_tensors tensors = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct cuda_call call = {.n = orders[i],
                                 .item_count = 1,
                                 .matrices = 1,
                                 .tensors = &tensors,
                                 .notes = &notes,
                                 .d_notes = &notes};
        assert_int_equal(cuda_auto(&call, NULL), cudaErrorInvalidValue);
    }
    struct cuda_call call = {
        .n = 40, .tensors = &tensors, .item_count = 1, .notes = &notes, .d_notes = &notes};
    assert_int_equal(cuda_auto(&call, NULL), cudaSuccess);
    assert_int_equal(notes.asked, 0);
    call.matrices = 1;
    size_t bytes = cuda_auto_workspace(&call, 1);
    assert_int_equal(cudaMalloc(&call.workspace, bytes), cudaSuccess);
    call.workspace_bytes = bytes - 1;
    assert_int_equal(cuda_auto(&call, NULL), cudaErrorMemoryAllocation);
    cudaFree(call.workspace);
    /* What one matrix takes grows with n, and is counted to the end. */
    for (int64_t n = 1; n < CUDA_AUTO_N_MAX; n *= 2) {
        struct cuda_call less = {.precision = PRECISION_FP64, .n = n, .item_count = 1};
        struct cuda_call more = {.precision = PRECISION_FP64, .n = 2 * n, .item_count = 1};
        assert_true(cuda_auto_workspace(&less, 1) <= cuda_auto_workspace(&more, 1));
        assert_true(cuda_auto_workspace(&more, INT64_C(1) << 40) < SIZE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visits),
        cmocka_unit_test(test_least_order_that_is_sorted),
        cmocka_unit_test(test_least_order_of_cholesky),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_larger_orders),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_unwanted_inverse),
        cmocka_unit_test(test_refusals),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
