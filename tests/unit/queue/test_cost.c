/* tests/unit/queue/test_cost.c: what work is predicted to cost on each device class, and what
 * batches teach. */
#include "queue/queue_private.h"
#include "tests/unit/queue/bed.h"

static struct queue_work work_of(const char *method, int64_t n, int64_t matrices)
{
    return (struct queue_work){
        .method = method_find(method), .precision = PRECISION_FP64, .n = n, .matrices = matrices};
}

static double cost_ns(struct queue *queue, enum queue_class_id device_class, int64_t n)
{
    struct queue_work work = work_of("lu", n, 1);
    return queue__cost_ns(queue, device_class, &work);
}

/* A device that takes 12 us for whatever is small: a thousand batches of one teach it little, and a
 * few large ones undo it. */
static void test_small_batches_teach_little(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work one = work_of("lu", 8, 1), many = work_of("lu", 8, 4096);
    double first_ns = cost_ns(bench.queue, QUEUE_CUDA, 8);
    for (int i = 0; i < 1000; i++)
        queue__cost_learn(bench.queue, QUEUE_CUDA, &one, 30000);
    assert_true(cost_ns(bench.queue, QUEUE_CUDA, 8) < 1.5 * first_ns);
    assert_true(2000 * cost_ns(bench.queue, QUEUE_CUDA, 8) < (double)limits.long_cost_ns / 100);
    for (int i = 0; i < 100; i++) /* 20 ns a matrix, truly */
        queue__cost_learn(bench.queue, QUEUE_CUDA, &many, 10000 + 20 * 4096);
    double measured_ns = queue__cost_batch_ns(bench.queue, QUEUE_CUDA, &many);
    assert_true(measured_ns > 0.95 * (10000 + 20 * 4096) &&
                measured_ns < 1.05 * (10000 + 20 * 4096));
    assert_true(cost_ns(bench.queue, QUEUE_HOST, 8) > 100); /* the host has learnt nothing */
    bench_close(&bench);
}

/* On the host starting costs nothing, and a batch of one teaches as much as any. */
static void test_the_host_learns_from_all(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work one = work_of("lu", 8, 1);
    for (int i = 0; i < 100; i++)
        queue__cost_learn(bench.queue, QUEUE_HOST, &one, 3000);
    double learnt_ns = cost_ns(bench.queue, QUEUE_HOST, 8);
    assert_true(learnt_ns > 2990 && learnt_ns < 3010);
    assert_true(cost_ns(bench.queue, QUEUE_CUDA, 8) < 100);
    assert_true(queue__cost_batch_ns(bench.queue, QUEUE_CUDA, &one) > 5000); /* to start it */
    bench_close(&bench);
}

/* What one method teaches says nothing of another, and bytes cost what operations do not tell. */
static void test_methods_and_bytes(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work diagonal = work_of("tridiagonal", 4096, 1), inverse = diagonal;
    inverse.bytes = INT64_C(4096) * 4096 * 8;
    double lu_ns = cost_ns(bench.queue, QUEUE_HOST, 4096);
    assert_true(queue__cost_ns(bench.queue, QUEUE_HOST, &inverse) >
                100 * queue__cost_ns(bench.queue, QUEUE_HOST, &diagonal));
    for (int i = 0; i < 100; i++)
        queue__cost_learn(bench.queue, QUEUE_HOST, &diagonal, 1);
    assert_true(cost_ns(bench.queue, QUEUE_HOST, 4096) == lu_ns);
    bench_close(&bench);
}

/* Easy matrices teach what to expect, and take no time from the difficult ones. */
static void test_difficult_matrices_get_their_time(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work easy = work_of("auto", 1000, 1), thin = work_of("ism", 4096, 1);
    double first_ns = queue__cost_max_ns(bench.queue, QUEUE_HOST, &easy);
    for (int i = 0; i < 100; i++)
        queue__cost_learn(bench.queue, QUEUE_HOST, &easy, 1);
    assert_true(queue__cost_ns(bench.queue, QUEUE_HOST, &easy) < first_ns / 50);
    assert_true(queue__cost_max_ns(bench.queue, QUEUE_HOST, &easy) == first_ns);
    for (int i = 0; i < 100; i++)
        queue__cost_learn(bench.queue, QUEUE_HOST, &easy, (uint64_t)(3 * first_ns));
    assert_true(queue__cost_max_ns(bench.queue, QUEUE_HOST, &easy) > 2 * first_ns);
    thin.m = 1; /* and may have to be formed and inverted by lu */
    assert_true(queue__cost_max_ns(bench.queue, QUEUE_HOST, &thin) >
                100 * queue__cost_ns(bench.queue, QUEUE_HOST, &thin));
    bench_close(&bench);
}

/* The diagonal alone by sherman_morrison, of the order n log n: up to 36.5 s on a busy host, and an
 * engine is given 20 times the most. Others go by what the two sweeps take. */
static void test_merging_gets_its_time(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work diagonal = work_of("tridiagonal", 1 << 24, 1);
    for (int i = 0; i < QUEUE_CLASSES; i++) {
        enum queue_class_id device_class = (enum queue_class_id)i;
        double expected_ns = queue__cost_ns(bench.queue, device_class, &diagonal);
        assert_true(queue__cost_max_ns(bench.queue, device_class, &diagonal) > 20 * expected_ns);
    }
    assert_true(20 * queue__cost_max_ns(bench.queue, QUEUE_HOST, &diagonal) > 5 * 36.5e9);
    assert_true(queue__cost_ns(bench.queue, QUEUE_HOST, &diagonal) < 2e9);
    bench_close(&bench);
}

/* 512 MB of answer in memory that no one has used yet took up to 1.6 s, and 11 s on a machine that
 * had five times as much to do as it has cores; a deadline is 20 times the most. A CUDA engine has
 * touched it all. */
static void test_new_memory_gets_its_time(void **state)
{
    (void)state;
    struct bench bench = bench_open(&limits);
    struct queue_work inverse = work_of("tridiagonal", 8001, 1);
    inverse.bytes = INT64_C(8001) * 8001 * 8;
    double expected_ns = queue__cost_ns(bench.queue, QUEUE_HOST, &inverse);
    assert_true(20 * queue__cost_max_ns(bench.queue, QUEUE_HOST, &inverse) > 20e9);
    assert_true(expected_ns < 0.5e9); /* no one else waits for it */
    for (int i = 0; i < 100; i++)
        queue__cost_learn(bench.queue, QUEUE_HOST, &inverse, 1);
    assert_true(20 * queue__cost_max_ns(bench.queue, QUEUE_HOST, &inverse) > 20e9);
    assert_true(20 * queue__cost_max_ns(bench.queue, QUEUE_CUDA, &inverse) < 2e9);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_batches_teach_little),
        cmocka_unit_test(test_the_host_learns_from_all),
        cmocka_unit_test(test_methods_and_bytes),
        cmocka_unit_test(test_difficult_matrices_get_their_time),
        cmocka_unit_test(test_merging_gets_its_time),
        cmocka_unit_test(test_new_memory_gets_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
