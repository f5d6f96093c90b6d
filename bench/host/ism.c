/* bench/host/ism.c: times of one inverse of A0 + X Y^T on the CPU, ours and LAPACK's.
 *
 *   ism WHAT N M PRECISION THREADS ROUNDS [VARIANT [BLOCK-SIZE]]
 *
 * WHAT: diagonal (A0 = a diagonal), update (A0_INVERSE is given), checked (A0 next to it): the host
 * engine's method, with a team of so many threads, as the options say (auto, 0). lapack: A formed
 * by gemm, then getrf and getri of the OpenBLAS that the engine links, which has so many threads of
 * its own. lu: A formed by gemm, rows by the team, then the engine's own lu with the team, of small
 * orders a full group at a time. getri: getrf and getri alone, A being there, as lapack. Small
 * updates go a full group at a time, too. OPENBLAS_NUM_THREADS has no part in it.
 *
 * Prints one line of JSON: the fastest and the median of the rounds in milliseconds by the clock,
 * the median of the thread's own processor time, the scratch that the engine reserves and what of
 * it was written, in bytes, the variant taken, and |I - X A| / (n |A| |X| eps).
 */
#include <math.h>
#include <stdbool.h>

#include "base/minmax.h"
#include "bench/host/program.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/methods/ism.h"

#define ROUNDS_MAX 1000
#define ORDER_MAX 16384
#define SPAN_NS 2000000 /* of a round, which repeats what takes less */
#define POISON 0xa7
#define FORM_ROWS 256 /* of A, that a piece takes */

enum what {
    DIAGONAL,
    UPDATE,
    CHECKED,
    LAPACK,
    LU,
    GETRI
};
static const char whats[] = "diagonal|update|checked|lapack|lu|getri";

struct bench {
    enum what what;
    enum precision precision;
    int64_t n, m;
    int64_t options[METHOD_OPTIONS_MAX];
    struct host_team *team;
    int threads;
    void *x, *y, *d, *a0, *b, *a, *inverse; /* in the precision; a: what is inverted */
    unsigned char *scratch;
    int64_t scratch_bytes;
    int32_t *pivots;
    int32_t info, algorithm;
    double rcond, det_ratio;
    int group; /* matrices that lu takes at once */
};

/* c = (or +=) a b, or a b^T */
static void multiply(const struct bench *bench, bool transposed, int64_t rows, int64_t columns,
                     int64_t inner, const void *a, const void *b, double beta, void *c)
{
    int64_t ldb = transposed ? inner : columns;
    if (inner == 0)
        return;
    if (bench->precision == PRECISION_FP32)
        host__product_f32(false, transposed, rows, columns, inner, 1, a, inner, b, ldb, (float)beta,
                          c, columns);
    else
        host__product_f64(false, transposed, rows, columns, inner, 1, a, inner, b, ldb, beta, c,
                          columns);
}

/* ---- The contestants ---- */

/* Rows of a = A0 + X Y^T. */
static void form_rows(const struct bench *bench, int64_t first, int64_t rows, void *a)
{
    const int64_t n = bench->n, m = bench->m, unit = precision_bytes(bench->precision);
    unsigned char *to = (unsigned char *)a + first * n * unit;
    const unsigned char *x = (const unsigned char *)bench->x + first * m * unit;
    memcpy(to, (const unsigned char *)bench->a0 + first * n * unit, (size_t)(rows * n * unit));
    multiply(bench, true, rows, n, m, x, bench->y, 1, to);
}

static void form_piece(void *context, int64_t index)
{
    const struct bench *bench = context;
    const int64_t first = index * FORM_ROWS;
    form_rows(bench, first, min_i64(FORM_ROWS, bench->n - first), bench->a);
}

/* a = A0 + X Y^T, by the team. */
static void form(struct bench *bench)
{
    host_team_run(bench->team, pieces(bench->n, FORM_ROWS), form_piece, bench);
}

/* As many times the same as the method takes at once. */
static void run_group(const struct bench *bench, const struct host_method *method,
                      const struct host_matrix *matrix)
{
    struct host_matrix matrices[HOST_GROUP_MAX];
    for (int i = 0; i < bench->group; i++)
        matrices[i] = *matrix;
    if (bench->group > 1)
        method->run_group(matrices, bench->group, matrices, 0);
    else
        method->run(matrices);
}

static void run_lu(struct bench *bench)
{
    const struct host_matrix matrix = {.inputs = {bench->a},
                                       .outputs = {bench->inverse, &bench->info, &bench->rcond},
                                       .n = bench->n,
                                       .options = bench->options,
                                       .team = bench->team,
                                       .scratch = bench->scratch};
    for (int i = 0; i < bench->group; i++)
        form(bench);
    run_group(bench, host_method_of("lu", bench->precision), &matrix);
}

static void run_lapack(struct bench *bench)
{
    int64_t n = bench->n, bytes = n * n * precision_bytes(bench->precision);
    host__lapack_threads(bench->threads);
    if (bench->what == LAPACK)
        form_rows(bench, 0, n, bench->inverse);
    else
        memcpy(bench->inverse, bench->a, (size_t)bytes);
    if (bench->precision == PRECISION_FP32) {
        host__getrf_f32(n, bench->inverse, n, bench->pivots);
        host__getri_f32(n, bench->inverse, n, bench->pivots, (float *)bench->scratch);
    } else {
        host__getrf_f64(n, bench->inverse, n, bench->pivots);
        host__getri_f64(n, bench->inverse, n, bench->pivots, (double *)bench->scratch);
    }
    host__lapack_threads(1);
}

static void run_ism(struct bench *bench)
{
    struct host_matrix matrix = {.n = bench->n,
                                 .m = bench->m,
                                 .options = bench->options,
                                 .team = bench->team,
                                 .scratch = bench->scratch};
    matrix.inputs[METHOD_ISM_X] = bench->x;
    matrix.inputs[METHOD_ISM_Y] = bench->y;
    matrix.inputs[METHOD_ISM_A0_DIAGONAL] = bench->what == DIAGONAL ? bench->d : NULL;
    matrix.inputs[METHOD_ISM_A0_INVERSE] = bench->what == DIAGONAL ? NULL : bench->b;
    matrix.inputs[METHOD_ISM_A0_DENSE] = bench->what == CHECKED ? bench->a0 : NULL;
    matrix.outputs[METHOD_ISM_INVERSE] = bench->inverse;
    matrix.outputs[METHOD_ISM_INFO] = &bench->info;
    matrix.outputs[METHOD_ISM_RCOND] = &bench->rcond;
    matrix.outputs[METHOD_ISM_ALGORITHM] = &bench->algorithm;
    matrix.outputs[METHOD_ISM_DET_RATIO] = &bench->det_ratio;
    run_group(bench, host_method_of("ism", bench->precision), &matrix);
}

static void run_once(struct bench *bench)
{
    if (bench->what < LAPACK)
        run_ism(bench);
    else if (bench->what == LU)
        run_lu(bench);
    else
        run_lapack(bench);
}

/* ---- The problem ---- */

static int64_t scratch_bytes_of(const struct bench *bench)
{
    uint32_t wanted = METHOD_INPUT(METHOD_ISM_DET_RATIO + 1) - 1;
    struct host_task task = {.n = bench->n,
                             .m = bench->m,
                             .options = bench->options,
                             .inputs = METHOD_ISM_XY,
                             .outputs = wanted,
                             .wanted = wanted};
    task.inputs |=
        METHOD_INPUT(bench->what == DIAGONAL ? METHOD_ISM_A0_DIAGONAL : METHOD_ISM_A0_INVERSE);
    if (bench->what < LAPACK)
        return host_method_of("ism", bench->precision)->task_scratch_bytes(&task);
    int64_t bytes = host__getri_work(bench->n) * precision_bytes(bench->precision);
    int64_t lu_bytes =
        (bench->precision == PRECISION_FP32 ? host__dense_scratch_bytes_f32(bench->n, 0)
                                            : host__dense_scratch_bytes_f64(bench->n, 0));
    return bytes > lu_bytes ? bytes : lu_bytes;
}

/* A0 with a dominant diagonal, and alone that for `diagonal`; X Y^T of the size of A0. */
static void fill(struct bench *bench)
{
    uint64_t state = 1;
    int64_t n = bench->n, m = bench->m;
    double scale = 1 / sqrt((double)n * (double)(m > 4 ? m : 4));
    for (int64_t i = 0; i < n * m; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        store(bench->precision, bench->x, i, (double)(int32_t)(state >> 32) * 0x1p-31);
        store(bench->precision, bench->y, i,
              (double)(int32_t)(state & 0xffffffff) * 0x1p-31 * scale);
    }
    for (int64_t i = 0; i < n * n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double number = (double)(int32_t)(state >> 32) * 0x1p-31;
        if (i % (n + 1) == 0)
            store(bench->precision, bench->d, i / n, 2 + number / 2);
        if (bench->what != DIAGONAL)
            store(bench->precision, bench->a0, i, number / sqrt((double)n));
        if (i % (n + 1) == 0)
            store(bench->precision, bench->a0, i, 2 + number / 2);
    }
}

static int group_of(const struct host_method *method, const struct bench *bench)
{
    return method->group(bench->n, bench->m);
}

static void prepare(struct bench *bench)
{
    int64_t n = bench->n, m = bench->m, unit = precision_bytes(bench->precision);
    int64_t lu_bytes = host_method_of("lu", bench->precision)->scratch_bytes(n, 0);
    void **squares[] = {&bench->a0, &bench->b, &bench->a, &bench->inverse};
    for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++)
        *squares[i] = take(n * n * unit);
    bench->x = take(n * m * unit);
    bench->y = take(n * m * unit);
    bench->d = take(n * unit);
    bench->pivots = take(n * (int64_t)sizeof *bench->pivots);
    fill(bench);
    bench->scratch_bytes = scratch_bytes_of(bench);
    bench->scratch = take(bench->scratch_bytes > lu_bytes ? bench->scratch_bytes : lu_bytes);
    struct host_matrix known = {.inputs = {bench->a0},
                                .outputs = {bench->b, &bench->info, &bench->rcond},
                                .n = n,
                                .options = bench->options,
                                .scratch = bench->scratch};
    if (bench->what == UPDATE || bench->what == CHECKED)
        host_method_of("lu", bench->precision)->run(&known);
    form(bench);
    bench->group =
        bench->what >= LAPACK && bench->what != LU
            ? 1
            : group_of(host_method_of(bench->what == LU ? "lu" : "ism", bench->precision), bench);
}

/* |I - X A| / (n |A| |X| eps), by the products of one precision. */
static double ratio_of(struct bench *bench)
{
    int64_t n = bench->n;
    void *product = take(n * n * precision_bytes(bench->precision));
    double norms[3] = {0};
    form(bench);
    multiply(bench, false, n, n, n, bench->inverse, bench->a, 0, product);
    for (int64_t j = 0; j < n; j++) {
        double sums[3] = {0};
        for (int64_t i = 0; i < n; i++) {
            sums[0] += fabs((i == j) - load(bench->precision, product, i * n + j));
            sums[1] += fabs(load(bench->precision, bench->a, i * n + j));
            sums[2] += fabs(load(bench->precision, bench->inverse, i * n + j));
        }
        for (int k = 0; k < 3; k++)
            norms[k] = sums[k] > norms[k] ? sums[k] : norms[k];
    }
    free(product);
    double eps = bench->precision == PRECISION_FP32 ? 0x1p-23 : 0x1p-52;
    return norms[0] / ((double)n * norms[1] * norms[2] * eps);
}

/* ---- Measuring ---- */

static int64_t touched_bytes(const struct bench *bench)
{
    int64_t sum = 0;
    for (int64_t page = 0; page < bench->scratch_bytes; page += ALIGN_BYTES) {
        int64_t left = bench->scratch_bytes - page, end = left < ALIGN_BYTES ? left : ALIGN_BYTES;
        int64_t i = 0;
        while (i < end && bench->scratch[page + i] == POISON)
            i++;
        sum += i < end ? end : 0;
    }
    return sum;
}

static void measure(struct bench *bench, int rounds, double *clock_ms, double *processor_ms)
{
    uint64_t start = clock_now_ns();
    run_once(bench);
    int64_t once = (int64_t)(clock_now_ns() - start), repeats = 1 + SPAN_NS / (once + 1);
    double per = 1e-6 / (double)(repeats * bench->group);
    for (int i = 0; i < rounds; i++) {
        uint64_t own = processor_ns(CLOCK_THREAD_CPUTIME_ID);
        start = clock_now_ns();
        for (int64_t k = 0; k < repeats; k++)
            run_once(bench);
        clock_ms[i] = (double)(clock_now_ns() - start) * per;
        processor_ms[i] = (double)(processor_ns(CLOCK_THREAD_CPUTIME_ID) - own) * per;
    }
    (void)sort_times(clock_ms, rounds);
    (void)sort_times(processor_ms, rounds);
}

int main(int argc, char **argv)
{
    static double clock_ms[ROUNDS_MAX], processor_ms[ROUNDS_MAX];
    if (argc < 7 || argc > 9)
        die("usage: ism WHAT N M PRECISION THREADS ROUNDS [VARIANT [BLOCK-SIZE]]");
    struct bench bench = {.n = strtoll(argv[2], NULL, 10), .m = strtoll(argv[3], NULL, 10)};
    int64_t what = choices_find(whats, argv[1]);
    int rounds = (int)strtol(argv[6], NULL, 10);
    bench.threads = (int)strtol(argv[5], NULL, 10);
    int64_t variant = choices_find(method_ism.options[0].choices, argc > 7 ? argv[7] : "auto");
    bench.precision = precision_of(argv[4]);
    if (what < 0 || variant < 0 || bench.n < 1 || bench.n > ORDER_MAX || bench.m < 0 ||
        bench.m > ORDER_MAX || bench.threads < 1 || rounds < 1 || rounds > ROUNDS_MAX)
        die("an argument is out of range");
    bench.what = (enum what)what;
    bench.options[METHOD_ISM_VARIANT] = variant;
    bench.options[METHOD_ISM_BLOCK_SIZE] = argc > 8 ? strtoll(argv[8], NULL, 10) : 0;
    host__lapack_init();
    bench.team = team_of(bench.threads);
    prepare(&bench);
    memset(bench.scratch, POISON, (size_t)bench.scratch_bytes);
    run_once(&bench);
    int64_t touched = touched_bytes(&bench);
    double ratio = ratio_of(&bench);
    measure(&bench, rounds, clock_ms, processor_ms);
    printf("{\"best_ms\": %.6f, \"median_ms\": %.6f, \"processor_ms\": %.6f, "
           "\"scratch_bytes\": %lld, \"touched_bytes\": %lld, \"algorithm\": \"%s\", \"info\": %d, "
           "\"ratio\": %.4g}\n",
           clock_ms[0], clock_ms[rounds / 2], processor_ms[rounds / 2],
           (long long)bench.scratch_bytes, (long long)touched,
           method_algorithm_name(bench.algorithm), bench.info, ratio);
    host_team_destroy(&bench.team);
    return 0;
}
