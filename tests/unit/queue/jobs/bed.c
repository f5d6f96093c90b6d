/* tests/unit/queue/jobs/bed.c: see bed.h. */
#include "tests/unit/queue/jobs/bed.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_store(struct bed *bed)
{
    char path[128];
    snprintf(path, sizeof path, "%s/jobs.db", bed->folder);
    struct store_sqlite_config config = {.path = path, .disk = &disk_system};
    must(store_sqlite_open(&config, &bed->store, failure));
}

void bed_open(struct bed *bed)
{
    strcpy(bed->folder, "/tmp/invertd-store-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    open_store(bed);
}

void bed_reopen(struct bed *bed)
{
    if (bed->store)
        bed->store->ops->destroy(&bed->store);
    open_store(bed);
}

void bed_close(struct bed *bed)
{
    if (bed->store)
        bed->store->ops->destroy(&bed->store);
    static const char *const names[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm"};
    for (int i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", bed->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(bed->folder), 0);
}

void bed_sql(const struct bed *bed, const char *text)
{
    char path[128];
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/jobs.db", bed->folder);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

struct job_task bed_task(int64_t n)
{
    struct job_task task = {.method = method_find("lu"),
                            .precision = PRECISION_FP64,
                            .batch = 1,
                            .n = n,
                            .body_bytes = n * n * 8,
                            .result_bytes = n * n * 8 + 8};
    method_default_options(task.method, task.options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task.inputs[i].offset_bytes = -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        task.outputs[i].offset_bytes = -1;
    task.inputs[0].offset_bytes = 0;
    task.outputs[METHOD_OUTPUT_INVERSE].offset_bytes = 0;
    task.outputs[METHOD_OUTPUT_INFO].offset_bytes = n * n * 8;
    return task;
}

struct job_id bed_id(int number)
{
    struct job_id id;
    uint64_t seed = (uint64_t)number * 77;
    for (int i = 0; i < JOB_ID_BYTES; i++)
        id.bytes[i] = (uint8_t)sim_next(&seed);
    return id;
}

struct store_new bed_new(int number, int64_t n)
{
    static uint8_t body[JOB_INLINE_MAX];
    struct store_new new_job = {.job = {.id = bed_id(number),
                                        .state = JOB_ACCEPTED,
                                        .owner = "a",
                                        .task = bed_task(n),
                                        .answer_bytes = 3,
                                        .created_ms = 1000,
                                        .expires_ms = 5000}};
    memcpy(new_job.job.answer, "npy", 3);
    memset(body, number, sizeof body);
    if (new_job.job.task.body_bytes <= JOB_INLINE_MAX)
        new_job.body = body;
    if (new_job.job.task.body_bytes > JOB_INLINE_MAX)
        new_job.job.spool_bytes = new_job.job.task.body_bytes + new_job.job.task.result_bytes;
    return new_job;
}

struct store_claim bed_claim(int64_t now_ms)
{
    struct store_claim claim = {
        .now_ms = now_ms, .lease_until_ms = now_ms + 1000, .matrix_bytes_max = INT64_MAX};
    for (int i = 0; i < ENGINE_METHODS_MAX; i++) {
        for (int precision = 0; precision < PRECISION_COUNT; precision++)
            claim.n_max[i][precision] = INT64_MAX;
    }
    return claim;
}
