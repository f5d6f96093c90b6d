/* bench/host/tridiagonal.c: times of one tridiagonal inverse on the CPU, ours and others'.
 *
 *   tridiagonal WHAT N PRECISION THREADS ROUNDS
 *
 * WHAT: auto, sherman_morrison, two_sweep or pivoted: the host engine's method, written by a team
 * of so many threads; pivoted is given a matrix that is not dominant. diagonal: the same without
 * the inverse. corner: 100 rows and columns at the lower left of the inverse. gtsv: LAPACK's, on
 * the identity, each thread on its share of the columns. poster: the recursion by Demere,
 * Hormenou and Yoon as their poster prints it, every entry of a block computed by itself at every
 * level. fill, stream: so many numbers written with plain stores, and with stores past the caches.
 *
 * The matrix is dominant, with signs for which the poster's form holds. Prints one line of JSON:
 * the fastest and the median of the rounds in milliseconds, and the largest difference from the
 * answer of gtsv in a few columns, by the largest entry; null where no whole inverse is written.
 */
#include <assert.h>
#include <emmintrin.h>
#include <lapacke.h>
#include <math.h>
#include <stdbool.h>

#include "bench/host/program.h"
#include "gpu/methods/tridiagonal.h"

#define ROUNDS_MAX 1000
#define NUMBER_MAX (1 << 24)
#define COLUMNS_CHECKED 3
#define CORNER_SIDE 100

struct bench {
    int64_t n;
    enum precision precision;
    int threads;
    struct host_team *team;
    double *dl, *d, *du;      /* the matrix, in double */
    void *bands[3];           /* the same in the precision */
    void *x;                  /* n x n */
    void *diagonal, *scratch; /* of the method */
    float *work_f32;          /* copies that gtsv uses up, 3 n a thread */
    double *work_f64;
    double *halves[2]; /* of the poster: B before and after a level */
};

static int64_t size_of(const struct bench *bench)
{
    return precision_bytes(bench->precision);
}

static void make_matrix(struct bench *bench, bool dominant)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    double *bands[] = {bench->dl, bench->d, bench->du};
    for (int64_t i = 0; i < 3 * bench->n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double uniform = (double)(state >> 11) * 0x1p-53;
        bool middle = i % 3 == 1;
        double value = dominant ? (middle ? 2.0 + uniform / 8 : -0.5 - uniform / 2)
                                : (middle ? uniform / 4 - 0.125 : 0.5 + uniform);
        bands[i % 3][i / 3] = bench->precision == PRECISION_FP32 ? (double)(float)value : value;
    }
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < bench->n; i++)
            store(bench->precision, bench->bands[k], i, bands[k][i]);
    }
}

/* ---- The host engine's method ---- */

enum part {
    WHOLE,
    CORNER,
    DIAGONAL
};

static void run_method(struct bench *bench, int64_t variant, enum part part)
{
    int64_t n = bench->n, side = n < CORNER_SIDE ? n : CORNER_SIDE;
    int64_t options[METHOD_OPTIONS_MAX];
    int32_t info;
    double rcond;
    method_default_options(method_find("tridiagonal"), options);
    options[METHOD_TRIDIAGONAL_VARIANT] = variant;
    if (part == CORNER) {
        options[METHOD_TRIDIAGONAL_ROWS] = method_range_pack((struct method_range){n - side, n});
        options[METHOD_TRIDIAGONAL_COLUMNS] = method_range_pack((struct method_range){0, side});
    }
    struct host_matrix matrix = {.inputs = {bench->bands[0], bench->bands[1], bench->bands[2]},
                                 .outputs = {part != DIAGONAL ? bench->x : NULL,
                                             part == DIAGONAL ? bench->diagonal : NULL, &info,
                                             &rcond},
                                 .n = bench->n,
                                 .options = options,
                                 .team = bench->team,
                                 .scratch = bench->scratch};
    host_method_of("tridiagonal", bench->precision)->run(&matrix);
}

static void run_auto(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_AUTO, WHOLE);
}

static void run_merged(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_SHERMAN_MORRISON, WHOLE);
}

static void run_swept(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_TWO_SWEEP, WHOLE);
}

static void run_pivoted(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_PIVOTED, WHOLE);
}

static void run_diagonal(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_AUTO, DIAGONAL);
}

static void run_corner(struct bench *bench)
{
    run_method(bench, METHOD_TRIDIAGONAL_AUTO, CORNER);
}

/* ---- LAPACK on the identity ---- */

/* Columns of the inverse, column-major: share `index` of as many as there are threads. */
static void solve_share(void *context, int64_t index)
{
    struct bench *bench = context;
    int64_t n = bench->n, first = index * n / bench->threads;
    int64_t end = (index + 1) * n / bench->threads, count = end - first;
    unsigned char *x = (unsigned char *)bench->x + first * n * size_of(bench);
    memset(x, 0, (size_t)(count * n * size_of(bench)));
    for (int64_t j = 0; j < count; j++)
        store(bench->precision, x, j * n + first + j, 1);
    if (bench->precision == PRECISION_FP32) {
        float *work = bench->work_f32 + 3 * n * index;
        for (int k = 0; k < 3; k++)
            memcpy(work + k * n, bench->bands[k], (size_t)n * sizeof *work);
        LAPACKE_sgtsv_work(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)count, work, work + n,
                           work + 2 * n, (float *)x, (lapack_int)n);
        return;
    }
    double *work = bench->work_f64 + 3 * n * index;
    for (int k = 0; k < 3; k++)
        memcpy(work + k * n, bench->bands[k], (size_t)n * sizeof *work);
    LAPACKE_dgtsv_work(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)count, work, work + n,
                       work + 2 * n, (double *)x, (lapack_int)n);
}

static void run_gtsv(struct bench *bench)
{
    host_team_run(bench->team, bench->threads, solve_share, bench);
}

/* ---- The poster, in double ---- */

struct level {
    struct bench *bench;
    const double *before; /* B: blocks of `half` rows along the diagonal, else zeros */
    double *after;
    int64_t half;
};

/* Row `index` of the blocks of 2 half rows: each entry by formula (5), from the level before. */
static void raise_row(void *context, int64_t index)
{
    const struct level *level = context;
    const struct bench *bench = level->bench;
    int64_t n = bench->n, half = level->half, first = index / (2 * half) * 2 * half;
    int64_t h = first + half - 1, end = first + 2 * half;
    const double *b = level->before, *row = b + index * n;
    double c = bench->dl[h], up = bench->du[h];
    for (int64_t j = first; j < end; j++) {
        double corner = c * (b[h * n + h] + b[h * n + h + 1]);
        corner += up * (b[(h + 1) * n + h] + b[(h + 1) * n + h + 1]);
        double left = row[h] + row[h + 1], right = c * b[h * n + j] + up * b[(h + 1) * n + j];
        level->after[index * n + j] = row[j] - left * right / (1 + corner);
    }
}

static void run_poster(struct bench *bench)
{
    int64_t n = bench->n;
    double *before = bench->halves[0], *after = bench->halves[1];
    memset(before, 0, (size_t)(n * n) * sizeof *before);
    memset(after, 0, (size_t)(n * n) * sizeof *after);
    for (int64_t i = 0; i < n; i += 2) {
        double a = bench->d[i] - (i > 0 ? bench->du[i - 1] : 0);
        double e = bench->d[i + 1] - (i + 2 < n ? bench->dl[i + 1] : 0);
        double det = a * e - bench->du[i] * bench->dl[i];
        before[i * n + i] = e / det;
        before[i * n + i + 1] = -bench->du[i] / det;
        before[(i + 1) * n + i] = -bench->dl[i] / det;
        before[(i + 1) * n + i + 1] = a / det;
    }
    for (int64_t half = 2; half < n; half *= 2) {
        struct level level = {bench, before, after, half};
        host_team_run(bench->team, n, raise_row, &level);
        double *swapped = before;
        before = after;
        after = swapped;
    }
    bench->halves[0] = before;
    bench->halves[1] = after;
}

/* ---- Writing alone ---- */

static void fill_share(void *context, int64_t index)
{
    struct bench *bench = context;
    int64_t bytes = bench->n * bench->n * size_of(bench) / bench->threads / 64 * 64;
    memset((unsigned char *)bench->x + index * bytes, 0x3f, (size_t)bytes);
}

static void run_fill(struct bench *bench)
{
    host_team_run(bench->team, bench->threads, fill_share, bench);
}

static void stream_share(void *context, int64_t index)
{
    struct bench *bench = context;
    int64_t bytes = bench->n * bench->n * size_of(bench) / bench->threads / 64 * 64;
    double *x = (double *)((unsigned char *)bench->x + index * bytes);
    __m128d two = _mm_set1_pd(1.5);
    for (int64_t i = 0; i < bytes / 8; i += 2)
        _mm_stream_pd(x + i, two);
    _mm_sfence();
}

static void run_stream(struct bench *bench)
{
    host_team_run(bench->team, bench->threads, stream_share, bench);
}

/* ---- The program ---- */

enum check {
    NO_CHECK,
    CHECK_ROWS,    /* the answer is in x, row-major */
    CHECK_COLUMNS, /* column-major */
    CHECK_HALF     /* in halves[0], row-major double */
};

static const struct subject {
    const char *name;
    void (*run)(struct bench *bench);
    enum check check;
    bool not_dominant;
} subjects[] = {
    {"auto", run_auto, CHECK_ROWS, false},
    {"sherman_morrison", run_merged, CHECK_ROWS, false},
    {"two_sweep", run_swept, CHECK_ROWS, false},
    {"pivoted", run_pivoted, CHECK_ROWS, true},
    {"diagonal", run_diagonal, NO_CHECK, false},
    {"corner", run_corner, NO_CHECK, false},
    {"gtsv", run_gtsv, CHECK_COLUMNS, false},
    {"poster", run_poster, CHECK_HALF, false},
    {"fill", run_fill, NO_CHECK, false},
    {"stream", run_stream, NO_CHECK, false},
};

static const struct subject *find_subject(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (strcmp(subjects[i].name, name) == 0)
            return &subjects[i];
    }
    die("no such subject");
}

/* Column j of A^-1, by LAPACK in double. */
static void true_column(const struct bench *bench, int64_t j, double *column)
{
    int64_t n = bench->n;
    double *work = bench->work_f64;
    memcpy(work, bench->dl, (size_t)n * sizeof *work);
    memcpy(work + n, bench->d, (size_t)n * sizeof *work);
    memcpy(work + 2 * n, bench->du, (size_t)n * sizeof *work);
    memset(column, 0, (size_t)n * sizeof *column);
    column[j] = 1;
    LAPACKE_dgtsv_work(LAPACK_COL_MAJOR, (lapack_int)n, 1, work, work + n, work + 2 * n, column,
                       (lapack_int)n);
}

static double difference(const struct bench *bench, enum check check)
{
    assert(check != NO_CHECK);
    int64_t n = bench->n;
    double *column = take(n * (int64_t)sizeof *column), largest = 0, size = 0;
    for (int64_t k = 0; k < COLUMNS_CHECKED; k++) {
        int64_t j = k * (n - 1) / (COLUMNS_CHECKED - 1);
        true_column(bench, j, column);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = check == CHECK_COLUMNS ? j * n + i : i * n + j;
            double x =
                check == CHECK_HALF ? bench->halves[0][at] : load(bench->precision, bench->x, at);
            if (!isfinite(x))
                die("the inverse is not finite");
            largest = fmax(largest, fabs(x - column[i]));
            size = fmax(size, fabs(column[i]));
        }
    }
    free(column);
    return largest / size;
}

static void prepare(struct bench *bench, const struct subject *subject)
{
    int64_t n = bench->n, line = n * (int64_t)sizeof(double);
    bench->team = team_of(bench->threads);
    bench->dl = take(line);
    bench->d = take(line);
    bench->du = take(line);
    for (int k = 0; k < 3; k++)
        bench->bands[k] = take(line);
    bench->diagonal = take(line);
    bench->scratch = take(host_method_of("tridiagonal", bench->precision)->scratch_bytes(n, 0));
    bench->work_f32 = take(3 * line * bench->threads);
    bench->work_f64 = take(3 * line * bench->threads);
    int64_t numbers = subject->run == run_corner ? CORNER_SIDE * CORNER_SIDE : n * n;
    if (subject->run != run_diagonal && subject->run != run_poster)
        bench->x = take(numbers * size_of(bench));
    for (int k = 0; subject->run == run_poster && k < 2; k++)
        bench->halves[k] = take(n * line);
    make_matrix(bench, !subject->not_dominant);
}

static int64_t number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != 0 || value < 1 || value > NUMBER_MAX)
        die("N, THREADS and ROUNDS are whole numbers from 1 on");
    return value;
}

int main(int count, char **arguments)
{
    if (count != 6)
        die("usage: tridiagonal WHAT N PRECISION THREADS ROUNDS");
    const struct subject *subject = find_subject(arguments[1]);
    struct bench bench = {.n = number(arguments[2]), .threads = (int)number(arguments[4])};
    bench.precision = precision_of(arguments[3]);
    int rounds = (int)number(arguments[5]);
    bool power = (bench.n & (bench.n - 1)) == 0;
    if (bench.n < 2 || rounds > ROUNDS_MAX)
        die("N or ROUNDS is out of range");
    if (subject->run == run_poster && (!power || bench.precision != PRECISION_FP64))
        die("the poster's form needs FP64 and a power of two");
    static double ms[ROUNDS_MAX];
    prepare(&bench, subject);
    subject->run(&bench);
    char wrong[32] = "null";
    if (subject->check != NO_CHECK)
        snprintf(wrong, sizeof wrong, "%.3g", difference(&bench, subject->check));
    for (int i = 0; i < rounds; i++) {
        uint64_t start = clock_now_ns();
        subject->run(&bench);
        ms[i] = (double)(clock_now_ns() - start) / 1e6;
    }
    double median = sort_times(ms, rounds);
    printf("{\"best_ms\": %.6g, \"median_ms\": %.6g, \"difference\": %s}\n", ms[0], median, wrong);
    host_team_destroy(&bench.team);
    return 0;
}
