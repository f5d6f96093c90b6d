/* Work that no one waits for any more is left: at a step's beginning or at its end, on the caller's
 * own thread, with every helper done; and the team serves the one that comes next. What methods do
 * without steps is left soon, too. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/base/team.h"
#include "gpu/methods/ism.h"
#include "gpu/methods/tridiagonal.h"

#define PIECES 64
#define STEPS 30

/* An algorithm of STEPS steps, whose piece `at` of step `step` finds the word set. */
struct walk {
    struct host_team *team;
    _Atomic uint32_t unwanted;
    int step, at; /* step -1: before the first; STEPS: never */
    bool nested;  /* a piece is a step itself */
    int steps;    /* begun */
    _Atomic int pieces, busy;
    bool ended;
};

static struct host_team *create(int helpers)
{
    struct failure failure = {0};
    struct host_team *team = NULL;
    assert_int_equal(host_team_create(helpers, 0, &team, &failure), ERROR_NONE);
    return team;
}

static void do_nothing(void *context, int64_t index)
{
    (void)context;
    (void)index;
}

static void piece(void *context, int64_t index)
{
    struct walk *walk = context;
    atomic_fetch_add(&walk->busy, 1);
    atomic_fetch_add(&walk->pieces, 1);
    if (walk->steps - 1 == walk->step && index == walk->at)
        atomic_store(&walk->unwanted, 1);
    if (walk->nested)
        host_team_run(walk->team, 4, do_nothing, NULL);
    sched_yield();
    atomic_fetch_sub(&walk->busy, 1);
}

static void walk_on(void *context)
{
    struct walk *walk = context;
    for (; walk->steps < STEPS;) {
        walk->steps++;
        host_team_run(walk->team, PIECES, piece, walk);
    }
    walk->ended = true;
}

static void test_a_step_is_left(void **state)
{
    (void)state;
    static const struct {
        int step, at, begun;
    } rows[] = {{0, 0, 1}, {0, PIECES - 1, 1}, {7, 20, 8}, {STEPS - 1, 5, STEPS}};
    for (int helpers = -1; helpers < 4; helpers++) {
        struct host_team *team = helpers >= 0 ? create(helpers) : NULL;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct walk walk = {.team = team, .step = rows[i].step, .at = rows[i].at};
            assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
            assert_false(walk.ended);
            assert_int_equal(atomic_load(&walk.busy), 0);
            assert_int_equal(walk.steps, rows[i].begun);
            assert_in_range(atomic_load(&walk.pieces), (rows[i].begun - 1) * PIECES + 1,
                            rows[i].begun * PIECES);
            host_stop_check(); /* nothing is watched any more */
            struct walk next = {.team = team, .step = STEPS};
            assert_true(host_stop_watch(&next.unwanted, walk_on, &next));
            assert_true(next.ended);
            assert_int_equal(atomic_load(&next.pieces), STEPS * PIECES);
        }
        host_team_destroy(&team);
    }
}

/* No piece of the first step is done, nor is a second one begun. */
static void test_unwanted_from_the_start(void **state)
{
    (void)state;
    struct host_team *team = create(2);
    struct walk walk = {.team = team, .unwanted = 1, .step = -1};
    assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
    assert_int_equal(walk.steps, 1);
    assert_int_equal(atomic_load(&walk.pieces), 0);
    host_team_destroy(&team);
}

/* A step within a piece, on a helper or on the caller, is not where a team's step is left. */
static void test_within_a_piece(void **state)
{
    (void)state;
    for (int helpers = 0; helpers < 3; helpers++) {
        struct walk walk = {.team = create(helpers), .step = 3, .at = 11, .nested = true};
        assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
        assert_int_equal(walk.steps, 4);
        assert_int_equal(atomic_load(&walk.busy), helpers == 0 ? 1 : 0);
        host_team_destroy(&walk.team);
    }
}

static void loop(void *context)
{
    struct walk *walk = context;
    for (; walk->steps < STEPS; walk->steps++) {
        atomic_store(&walk->unwanted, walk->steps == walk->step);
        host_stop_check();
    }
    walk->ended = true;
}

/* A loop without steps. Who watches nothing runs on, whatever the word says. */
static void test_a_loop_is_left(void **state)
{
    (void)state;
    struct walk walk = {.step = 9}, unwatched = {.step = 9};
    assert_false(host_stop_watch(&walk.unwanted, loop, &walk));
    assert_int_equal(walk.steps, 9);
    loop(&unwatched);
    assert_true(unwatched.ended);
}

/* ---- Methods, on one thread ---- */

#define MOMENTS 10 /* at which a method is stopped, spread over the time that it takes */
#define SHARE 0.05 /* of that time, in which it must have been left */
#define CLOCK_S 2e-3

/* Matrices of which all but a few steps is in loops, or of ism much of the work. */
static const struct long_work {
    const char *label, *method;
    int64_t variant; /* of tridiagonal and ism */
    int64_t n;
    double outside, diagonal; /* outside: next to the diagonal, or in X and Y; 0: none */
    bool full;                /* INVERSE, of auto and ism; else DIAGONAL, GENERATORS, EXPONENTS */
    int64_t m, block_size;    /* of ism */
    bool apart;               /* X is large, Y is small */
} long_works[] = {
    {"two sweeps", "tridiagonal", METHOD_TRIDIAGONAL_TWO_SWEEP, 1 << 21, -1, 4, false, 0, 0, false},
    {"minors", "tridiagonal", METHOD_TRIDIAGONAL_PIVOTED, 1 << 20, 4, 1, false, 0, 0, false},
    {"merging", "tridiagonal", METHOD_TRIDIAGONAL_SHERMAN_MORRISON, 1 << 20, -1, 4, false, 0, 0,
     false},
    {"singular", "tridiagonal", METHOD_TRIDIAGONAL_AUTO, 1 << 21, 0, 0, false, 0, 0, false},
    {"not finite", "tridiagonal", METHOD_TRIDIAGONAL_AUTO, 1 << 21, 0, INFINITY, false, 0, 0,
     false},
    {"a diagonal", "auto", 0, 4096, 0, 2, true, 0, 0, false},
    {"zeros", "auto", 0, 4096, 0, 0, true, 0, 0, false},
    {"not finite", "auto", 0, 4096, 0, INFINITY, true, 0, 0, false},
    {"not finite", "ism", METHOD_ISM_AUTO, 4096, 0, INFINITY, true, 4096, 0, false},
    {"factors", "ism", METHOD_ISM_BLOCK, 800, 0x1p-6, 1, true, 2400, 800, false},
    {"balancing", "ism", METHOD_ISM_REDUCED_MEMORY, 128, 0x1p-10, 1, true, 32768, 0, true},
    {"factors, scaled", "ism", METHOD_ISM_BLOCK, 64, 0x1p-10, 1, true, 2048, 0, true},
};

struct long_run {
    const struct host_method *method;
    enum precision precision;
    struct host_matrix matrix;
    /* Who stops it: */
    clockid_t clock; /* of the thread that runs it */
    double at_s;     /* by that clock, when the word is set */
    _Atomic uint32_t unwanted;
    _Atomic bool over;
    double set_s; /* when it was set; 0: it has not been */
};

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *fill(int64_t count, enum precision precision, int64_t step, double value)
{
    void *numbers = calloc((size_t)count, (size_t)precision_bytes(precision));
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i += step) {
        if (precision == PRECISION_FP32)
            ((float *)numbers)[i] = (float)value;
        else
            ((double *)numbers)[i] = value;
    }
    return numbers;
}

static void *room(int64_t bytes)
{
    void *data = aligned_alloc(HOST_ALIGN_BYTES, (size_t)((bytes + HOST_ALIGN_BYTES - 1) /
                                                          HOST_ALIGN_BYTES * HOST_ALIGN_BYTES));
    assert_non_null(data);
    memset(data, 0, (size_t)bytes); /* no page is new */
    return data;
}

/* X and Y of one number each, and A0_INVERSE; or A alone. */
static void set_ism_inputs(const struct long_work *work, struct long_run *run)
{
    const int64_t n = work->n, numbers = n * work->m;
    const int apart = !work->apart ? 0 : run->precision == PRECISION_FP32 ? 50 : 500;
    if (work->outside == 0) {
        run->matrix.inputs[METHOD_ISM_A] = fill(n * n, run->precision, n + 1, work->diagonal);
        return;
    }
    run->matrix.inputs[METHOD_ISM_X] =
        fill(numbers, run->precision, 1, ldexp(work->outside, apart));
    run->matrix.inputs[METHOD_ISM_Y] =
        fill(numbers, run->precision, 1, ldexp(work->outside, -apart));
    run->matrix.inputs[METHOD_ISM_A0_INVERSE] = fill(n * n, run->precision, n + 1, work->diagonal);
}

static void set_inputs(const struct long_work *work, struct long_run *run)
{
    const int64_t n = work->n;
    if (strcmp(work->method, "ism") == 0) {
        set_ism_inputs(work, run);
    } else if (work->full) {
        run->matrix.inputs[0] = fill(n * n, run->precision, n + 1, work->diagonal);
    } else {
        run->matrix.inputs[0] = fill(n - 1, run->precision, 1, work->outside);
        run->matrix.inputs[1] = fill(n, run->precision, 1, work->diagonal);
        run->matrix.inputs[2] = fill(n - 1, run->precision, 1, work->outside);
    }
}

/* Outputs but INVERSE, unless it is wanted, and of ism's factors those of blocks alone; numbers for
 * all of them. */
static struct long_run begin(const struct long_work *work, enum precision precision,
                             int64_t options[METHOD_OPTIONS_MAX])
{
    const struct method *method = method_find(work->method);
    struct long_run run = {.precision = precision};
    const bool ism = strcmp(work->method, "ism") == 0;
    int64_t n = work->n, m = work->m;
    method_default_options(method, options);
    if (ism) {
        options[METHOD_ISM_VARIANT] = work->variant;
        options[METHOD_ISM_BLOCK_SIZE] = work->block_size;
    } else if (!work->full) {
        options[METHOD_TRIDIAGONAL_VARIANT] = work->variant;
    }
    run.method = host_method_at((uint32_t)method_index(method), precision);
    run.matrix = (struct host_matrix){.n = n, .m = m, .options = options};
    set_inputs(work, &run);
    for (int i = 0; method->outputs[i].name; i++) {
        if (ism ? i < METHOD_ISM_U || work->variant == METHOD_ISM_BLOCK : i > 0 || work->full)
            run.matrix.outputs[i] =
                room(method_tensor_bytes(&method->outputs[i], precision, n, m, options));
    }
    run.matrix.scratch = room(run.method->scratch_bytes(n, m));
    return run;
}

static void end(struct long_run *run)
{
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        free((void *)(uintptr_t)run->matrix.inputs[i]);
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        free(run->matrix.outputs[i]);
    free(run->matrix.scratch);
}

static void compute(void *context)
{
    struct long_run *run = context;
    run->method->run(&run->matrix);
}

/* The time is looked up after the word is set: who is late here is lenient. */
static void *stop_in_time(void *context)
{
    struct long_run *run = context;
    while (!atomic_load(&run->over)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (seconds(run->clock) < run->at_s)
            continue;
        atomic_store(&run->unwanted, 1);
        run->set_s = seconds(run->clock);
        break;
    }
    return NULL;
}

/* Processor time from the word to the end of a run that is stopped `after_s` after its begin. */
static double delay_of(struct long_run *run, double after_s)
{
    pthread_t thread;
    atomic_store(&run->unwanted, 0);
    atomic_store(&run->over, false);
    run->set_s = 0;
    run->at_s = seconds(run->clock) + after_s;
    assert_int_equal(pthread_create(&thread, NULL, stop_in_time, run), 0);
    host_stop_watch(&run->unwanted, compute, run);
    double left_s = seconds(run->clock);
    atomic_store(&run->over, true);
    pthread_join(thread, NULL);
    return run->set_s > 0 ? left_s - run->set_s : 0;
}

/* The least of some tries: a machine that others use stands still at times, and counts it as
 * processor time. A loop that does not look is late in every try. */
static double steady_delay_of(struct long_run *run, double after_s, double limit_s)
{
    double min_s = delay_of(run, after_s);
    for (int again = 0; again < 3 && min_s >= limit_s; again++) {
        double delay_s = delay_of(run, after_s);
        min_s = delay_s < min_s ? delay_s : min_s;
    }
    return min_s;
}

static void test_long_loops_are_left(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX];
    for (size_t i = 0; i < 2 * sizeof long_works / sizeof long_works[0]; i++) {
        const struct long_work *work = &long_works[i / 2];
        enum precision precision = i % 2 ? PRECISION_FP32 : PRECISION_FP64;
        struct long_run run = begin(work, precision, options);
        assert_int_equal(pthread_getcpuclockid(pthread_self(), &run.clock), 0);
        double before_s = seconds(run.clock);
        compute(&run);
        double whole_s = seconds(run.clock) - before_s, longest_s = 0;
        const double limit_s = SHARE * whole_s + CLOCK_S;
        for (int k = 0; k < MOMENTS; k++) {
            double delay_s = steady_delay_of(&run, whole_s * k / MOMENTS, limit_s);
            longest_s = delay_s > longest_s ? delay_s : longest_s;
        }
        print_message("%s of %s, %s: %.0f ms, left within %.1f ms\n", work->label, work->method,
                      precision_name(precision), whole_s * 1e3, longest_s * 1e3);
        assert_true(longest_s < limit_s);
        end(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_left),      cmocka_unit_test(test_unwanted_from_the_start),
        cmocka_unit_test(test_within_a_piece),      cmocka_unit_test(test_a_loop_is_left),
        cmocka_unit_test(test_long_loops_are_left),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
