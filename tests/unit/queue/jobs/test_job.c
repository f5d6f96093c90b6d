/* tests/unit/queue/jobs/test_job.c: ids, the table of states, and tasks as bytes: each as it was
 * written, and none that is cut or changed read as anything that could not be written. */
#include "tests/unit/queue/jobs/bed.h"

#include <string.h>

#include "queue/jobs/job.h"

static void test_ids(void **state)
{
    (void)state;
    struct job_id a, b;
    char text[JOB_ID_TEXT];
    must(job_id_make(&a, failure));
    must(job_id_make(&b, failure));
    assert_memory_not_equal(&a, &b, sizeof a);
    job_id_write(&a, text);
    assert_int_equal(strlen(text), 32);
    assert_true(job_id_read(text, 32, &b));
    assert_memory_equal(&a, &b, sizeof a);
    static const char *const wrong[] = {"", "00", "0123456789ABCDEF0123456789abcdef",
                                        "0123456789abcdeg0123456789abcdef",
                                        "0123456789abcdef0123456789abcdef0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(job_id_read(wrong[i], strlen(wrong[i]), &b));
}

static void test_states(void **state)
{
    (void)state;
    static const char moves[JOB_STATES][JOB_STATES + 1] = {
        /* to ACCEPTED, RUNNING, SUCCESSFUL, FAILED, DISMISSED */
        [JOB_ACCEPTED] = ".x..x", [JOB_RUNNING] = "xxxxx",   [JOB_SUCCESSFUL] = "....x",
        [JOB_FAILED] = "....x",   [JOB_DISMISSED] = ".....",
    };
    for (int from = 0; from < JOB_STATES; from++) {
        for (int to = 0; to < JOB_STATES; to++)
            assert_int_equal(job_may_move((enum job_state)from, (enum job_state)to),
                             moves[from][to] == 'x');
        enum job_state found;
        const char *name = job_state_name((enum job_state)from);
        assert_true(job_state_find(name, strlen(name), &found));
        assert_int_equal(found, from);
        assert_int_equal(job_is_over((enum job_state)from), from >= JOB_SUCCESSFUL);
    }
    enum job_state found;
    assert_false(job_state_find("run", 3, &found));
}

/* A task of each method and precision, with all of its tensors, one after the other. */
static struct job_task whole_task(const struct method *method, enum precision precision)
{
    struct job_task task = {.method = method,
                            .precision = precision,
                            .batch = 3,
                            .n = 6,
                            .m = 2,
                            .priority = 1,
                            .nan_on_singular = true};
    method_default_options(method, task.options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task.inputs[i].offset_bytes = -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        task.outputs[i].offset_bytes = -1;
    for (int i = 0; i < method_input_count(method); i++) {
        task.inputs[i].offset_bytes = task.body_bytes;
        task.inputs[i].column_major = i % 2 == 1;
        task.body_bytes +=
            8 *
            ((3 * method_tensor_bytes(&method->inputs[i], precision, 6, 2, task.options) + 7) / 8);
    }
    for (int i = 0; i < method_output_count(method); i++) {
        task.outputs[i].offset_bytes = task.result_bytes;
        task.result_bytes +=
            8 *
            ((3 * method_tensor_bytes(&method->outputs[i], precision, 6, 2, task.options) + 7) / 8);
    }
    return task;
}

static void test_tasks(void **state)
{
    (void)state;
    for (int i = 0; i < method_count(); i++) {
        for (int precision = 0; precision < PRECISION_COUNT; precision++) {
            struct job_task task = whole_task(method_at(i), (enum precision)precision), read;
            uint8_t bytes[JOB_TASK_MAX];
            size_t count;
            job_task_write(&task, bytes, &count);
            must(job_task_read(bytes, count, &read, failure));
            assert_memory_equal(&read, &task, sizeof task);
            assert_true(job_matrix_bytes(&read) * 3 <= read.body_bytes + read.result_bytes);
            for (size_t length = 0; length < count; length++)
                assert_int_equal(job_task_read(bytes, length, &read, NULL), ERROR_MALFORMED);
            bytes[count] = 0;
            assert_int_equal(job_task_read(bytes, count + 1, &read, NULL), ERROR_MALFORMED);
        }
    }
}

/* What is read after bytes have been changed can be written, and is right in itself. */
static void test_changed(void **state)
{
    (void)state;
    uint64_t seed = 1;
    int refused = 0;
    for (int i = 0; i < 200000; i++) {
        const struct method *method = method_at((int)sim_below(&seed, method_count()));
        struct job_task task = whole_task(method, PRECISION_FP64), read;
        uint8_t bytes[JOB_TASK_MAX], again[JOB_TASK_MAX];
        size_t count, again_count;
        job_task_write(&task, bytes, &count);
        for (int64_t left = 1 + sim_below(&seed, 3); left > 0; left--)
            bytes[sim_below(&seed, (int64_t)count)] = (uint8_t)sim_next(&seed);
        if (job_task_read(bytes, count, &read, NULL) != ERROR_NONE) {
            refused++;
            continue;
        }
        must(job_task_check(&read, failure));
        job_task_write(&read, again, &again_count);
        assert_true(again_count <= JOB_TASK_MAX && job_matrix_bytes(&read) >= 0);
    }
    assert_in_range(refused, 100000, 199999);
}

/* Rows that are wrong in one number. */
static void test_wrong(void **state)
{
    (void)state;
    const struct job_task right = bed_task(8);
    struct job_task wrong[] = {right, right, right, right, right, right, right, right, right};
    wrong[0].batch = 0;
    wrong[1].n = -1;
    wrong[2].n = INT64_MAX;
    wrong[3].batch = INT64_MAX;
    wrong[4].body_bytes = 511;
    wrong[5].result_bytes = 515;
    wrong[6].inputs[0].offset_bytes = 4;
    wrong[7].priority = JOB_PRIORITY_MAX + 1;
    wrong[8].outputs[METHOD_OUTPUT_INVERSE].offset_bytes = -2;
    must(job_task_check(&right, failure));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(job_task_check(&wrong[i], NULL), ERROR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),     cmocka_unit_test(test_states), cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_changed), cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
