/* bench/host/iterative.c: times of an iterative inverse on the CPU, and of what it is compared
 * with.
 *
 *   host/iterative WHAT N PRECISION THREADS ROUNDS [SCHEME [INITIAL [DISTANCE]]]
 *
 * WHAT: iterative, lu or gauss_jordan, the host engine's methods; plain, the elimination of the
 * data-assimilation paper (Varalakshmi, Kesarkar and Lopez 2018): the identity next to A, one row
 * operation after another, no pivoting, on one thread; norms, the pass that gives both norms and
 * finds whether A is dominant; transpose; copy, of as many bytes as transpose moves. PRECISION is
 * fp32 or fp64, plain's always fp64. SCHEME and INITIAL are the options of `iterative`. DISTANCE:
 * of a given V0, |I - V0 A| in the 1-norm.
 *
 * The matrix has entries in [-1, 1) and 2 more on the diagonal. Prints one line of JSON: the
 * fastest and the median of the rounds in milliseconds by the clock, the median in the processor's
 * time, and of an inverse INFO, steps, the start and the measured residual. `iterative` is timed as
 * it is without the output RESIDUAL; the residual is that of a call more.
 *
 * One thread, and the helpers of a team.
 */
#include <math.h>
#include <stdbool.h>

#include "bench/host/program.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/identify.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/methods/iterative.h"

#define ROUNDS_MAX 1000
#define BUDGET_NS (2 * CLOCK_S) /* fewer rounds when they take longer */
#define ORDER_MAX 32768

struct bench {
    const char *what;
    int64_t n;
    enum precision precision;
    struct host_team *team;
    int64_t options[METHOD_OPTIONS_MAX];
    void *a, *v0, *x, *scratch; /* of the method */
    double *plain;              /* A and the identity, n x 2 n */
    bool measures;              /* RESIDUAL is wanted */
    /* Of the last round: */
    int32_t info, algorithm, iterations;
    double residual;
};

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1;
}

/* ---- What is timed ---- */

static void run_method(struct bench *bench, const char *name)
{
    union {
        float narrow;
        double wide;
    } rcond, residual = {.wide = 0};
    struct host_matrix matrix = {.inputs = {bench->a, bench->v0},
                                 .outputs = {bench->x, &bench->info, &rcond},
                                 .n = bench->n,
                                 .options = bench->options,
                                 .team = bench->team,
                                 .scratch = bench->scratch};
    if (strcmp(name, "iterative") == 0) {
        matrix.outputs[METHOD_ITERATIVE_ALGORITHM] = &bench->algorithm;
        matrix.outputs[METHOD_ITERATIVE_ITERATIONS] = &bench->iterations;
        matrix.outputs[METHOD_ITERATIVE_RESIDUAL] = bench->measures ? &residual : NULL;
    }
    host_method_of(name, bench->precision)->run(&matrix);
    bench->residual = bench->precision == PRECISION_FP32 ? (double)residual.narrow : residual.wide;
}

/* The paper's: R_i /= a_ii, then R_j -= R_i a_ji for every other row of both matrices. */
static void run_plain(struct bench *bench)
{
    int64_t n = bench->n, width = 2 * n;
    double *rows = bench->plain;
    for (int64_t k = 0; k < n * width; k++)
        rows[k] = k % width < n ? load(bench->precision, bench->a, k / width * n + k % width)
                                : (double)(k % width - n == k / width);
    for (int64_t i = 0; i < n; i++) {
        double *active = rows + i * width, pivot = active[i];
        for (int64_t k = 0; k < width; k++)
            active[k] /= pivot;
        for (int64_t j = 0; j < n; j++) {
            double *row = rows + j * width, factor = row[i];
            for (int64_t k = 0; k < width && j != i; k++)
                row[k] -= factor * active[k];
        }
    }
}

static void run_norms(struct bench *bench)
{
    int64_t n = bench->n;
    struct host_identity identity;
    if (bench->precision == PRECISION_FP32)
        identity = host__identify_f32(bench->team, bench->a, n, n, bench->scratch, n);
    else
        identity = host__identify_f64(bench->team, bench->a, n, n, bench->scratch, n);
    bench->info = identity.finite ? 0 : -1;
}

static void run_transpose(struct bench *bench)
{
    int64_t n = bench->n;
    if (bench->precision == PRECISION_FP32)
        host__transpose_f32(bench->team, bench->a, n, bench->x, n, n, 0.5F);
    else
        host__transpose_f64(bench->team, bench->a, n, bench->x, n, n, 0.5);
}

static void run_copy(struct bench *bench)
{
    int64_t n = bench->n;
    if (bench->precision == PRECISION_FP32)
        host__copy_f32(bench->team, bench->a, n, bench->x, n, n, 0.5F);
    else
        host__copy_f64(bench->team, bench->a, n, bench->x, n, n, 0.5);
}

static void run_once(struct bench *bench)
{
    if (strcmp(bench->what, "plain") == 0)
        run_plain(bench);
    else if (strcmp(bench->what, "norms") == 0)
        run_norms(bench);
    else if (strcmp(bench->what, "transpose") == 0)
        run_transpose(bench);
    else if (strcmp(bench->what, "copy") == 0)
        run_copy(bench);
    else
        run_method(bench, bench->what);
}

/* ---- Before ---- */

static void fill(struct bench *bench)
{
    uint64_t state = 1;
    int64_t n = bench->n;
    for (int64_t i = 0; i < n * n; i++)
        store(bench->precision, bench->a, i, uniform(&state) + (i / n == i % n ? 2 : 0));
}

/* V0 = (I - E) A^-1 with a random E, |E| = distance. */
static void warm(struct bench *bench, double distance)
{
    int64_t n = bench->n;
    uint64_t state = 7;
    double *e = take(n * n * (int64_t)sizeof *e), *row = take(n * (int64_t)sizeof *row), norm = 0;
    run_method(bench, "lu");
    for (int64_t i = 0; i < n * n; i++) {
        e[i] = uniform(&state);
        row[i % n] += fabs(e[i]);
    }
    for (int64_t j = 0; j < n; j++)
        norm = fmax(norm, row[j]);
    bench->v0 = take(n * n * precision_bytes(bench->precision));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            row[j] = load(bench->precision, bench->x, i * n + j);
        for (int64_t k = 0; k < n; k++) {
            double factor = e[i * n + k] * distance / norm;
            for (int64_t j = 0; j < n; j++)
                row[j] -= factor * load(bench->precision, bench->x, k * n + j);
        }
        for (int64_t j = 0; j < n; j++)
            store(bench->precision, bench->v0, i * n + j, row[j]);
    }
    free(e);
    free(row);
}

static int64_t choice(enum method_iterative_option option, const char *name)
{
    const char *choices = method_find("iterative")->options[option].choices;
    int64_t index = choices_find(choices, name);
    if (index < 0)
        die("there is no such scheme, or start");
    return index;
}

static int64_t scratch_bytes(const struct bench *bench)
{
    static const char *const names[] = {"iterative", "lu", "gauss_jordan"};
    int64_t largest = 0;
    for (int i = 0; i < 3; i++) {
        int64_t bytes = host_method_of(names[i], bench->precision)->scratch_bytes(bench->n, 0);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* ---- After ---- */

/* The first round finds nothing in the caches and counts only when it is the only one. */
static void report(struct bench *bench, int rounds)
{
    static double elapsed[ROUNDS_MAX], used[ROUNDS_MAX];
    uint64_t begun = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = -1; i < rounds; i++) {
        uint64_t before = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t start = clock_now_ns();
        run_once(bench);
        int at = i < 0 ? 0 : i;
        elapsed[at] = (double)(clock_now_ns() - start) * 1e-6;
        uint64_t now = processor_ns(CLOCK_PROCESS_CPUTIME_ID);
        used[at] = (double)(now - before) * 1e-6;
        if (now - begun > BUDGET_NS)
            rounds = at + 1;
    }
    bench->measures = true;
    if (strcmp(bench->what, "iterative") == 0)
        run_once(bench);
    double median = sort_times(elapsed, rounds), processor = sort_times(used, rounds);
    printf("{\"best_ms\": %.4f, \"median_ms\": %.4f, \"processor_ms\": %.4f, \"info\": %d, "
           "\"steps\": %d, \"start\": \"%s\", \"residual\": %.3g}\n",
           elapsed[0], median, processor, bench->info, bench->iterations,
           method_algorithm_name(bench->algorithm), bench->residual);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    if (argc < 6 || argc > 9)
        die("usage: WHAT N PRECISION THREADS ROUNDS [SCHEME [INITIAL [DISTANCE]]]");
    bench.what = argv[1];
    bench.n = strtoll(argv[2], NULL, 10);
    bench.precision = precision_of(argv[3]);
    long threads = strtol(argv[4], NULL, 10), rounds = strtol(argv[5], NULL, 10);
    if (bench.n < 1 || bench.n > ORDER_MAX || threads < 1 || threads > 64 || rounds < 1 ||
        rounds > ROUNDS_MAX)
        die("a number out of range");
    host__lapack_init();
    bench.team = team_of((int)threads);
    method_default_options(method_find("iterative"), bench.options);
    if (argc > 6)
        bench.options[METHOD_ITERATIVE_SCHEME] = choice(METHOD_ITERATIVE_SCHEME, argv[6]);
    if (argc > 7)
        bench.options[METHOD_ITERATIVE_INITIAL] = choice(METHOD_ITERATIVE_INITIAL, argv[7]);
    int64_t bytes = bench.n * bench.n * precision_bytes(bench.precision);
    bench.a = take(bytes);
    bench.x = take(bytes);
    bench.scratch = take(scratch_bytes(&bench));
    if (strcmp(bench.what, "plain") == 0)
        bench.plain = take(bench.n * bench.n * 2 * (int64_t)sizeof(double));
    fill(&bench);
    if (argc > 8)
        warm(&bench, strtod(argv[8], NULL));
    report(&bench, (int)rounds);
    return 0;
}
