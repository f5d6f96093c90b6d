/* tests/unit/handlers/fake_jobs.h: jobs of the test's own. Included once by each program.
 *
 * The desk does what it is asked at once, and answers by the mailbox. Files of the spool are those
 * of memfd_create. The test says when a job runs and how it ends.
 */
#ifndef TESTS_UNIT_HANDLERS_FAKE_JOBS_H
#define TESTS_UNIT_HANDLERS_FAKE_JOBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "queue/jobs/jobs.h"

#define FAKE_JOBS_MAX 16
#define FAKE_FILES_MAX 16
#define FAKE_NOW_MS INT64_C(1700000000000)

struct spool_file {
    struct spool *spool;
    struct job_id id;
    int32_t attempt;
    int64_t bytes;
    int fd; /* a memfd */
    bool is_named, is_handle;
};

struct spool {
    pthread_mutex_t lock;
    struct spool_file *files[FAKE_FILES_MAX]; /* that have their names */
    enum error write_error;
    _Atomic int puts, closed_unkept;
};

struct fake_row {
    struct job job;
    unsigned char *body, *result;
    char key[JOB_KEY_BYTES];
    uint8_t digest[JOB_DIGEST_BYTES];
};

struct jobs_watch {
    struct mailbox *mailbox;
    struct message *message;
    bool is_posted;
};

struct jobs {
    struct spool spool;
    struct fake_row *rows; /* [FAKE_JOBS_MAX] */
    int count;
    int64_t now_ms;
    enum error open_error, put_error, check_error;
    struct desk_call *held; /* with hold: calls wait for fake_desk_go */
    bool hold;
    struct jobs_watch *watches[FAKE_JOBS_MAX];
    int watch_count, unwatched;
};

static enum error fake_refuse(struct failure *failure, enum error error)
{
    return error == ERROR_NONE ? ERROR_NONE : failure_set(failure, error, "the store says no");
}

/* ---- The spool ---- */

static struct spool_file *fake_file(struct spool *spool, const struct job_id *id, int32_t attempt)
{
    for (int i = 0; i < FAKE_FILES_MAX; i++) {
        struct spool_file *file = spool->files[i];
        if (file != NULL && memcmp(&file->id, id, sizeof *id) == 0 && file->attempt == attempt)
            return file;
    }
    return NULL;
}

enum error spool_write(struct spool *spool, const struct job_id *id, int32_t attempt, int64_t bytes,
                       struct spool_file **file, struct failure *failure)
{
    if (spool->write_error != ERROR_NONE)
        return fake_refuse(failure, spool->write_error);
    struct spool_file *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fake_refuse(failure, ERROR_INTERNAL);
    *made = (struct spool_file){spool, *id, attempt, bytes, memfd_create("fake", 0), false, false};
    assert_true(made->fd >= 0 && ftruncate(made->fd, bytes) == 0);
    *file = made;
    return ERROR_NONE;
}

enum error spool_put(struct spool_file *file, int64_t offset_bytes, const void *data, int64_t bytes,
                     struct failure *failure)
{
    (void)failure;
    assert_true(offset_bytes >= 0 && offset_bytes + bytes <= file->bytes);
    assert_int_equal(pwrite(file->fd, data, (size_t)bytes, offset_bytes), bytes);
    atomic_fetch_add(&file->spool->puts, 1);
    return ERROR_NONE;
}

enum error spool_keep(struct spool_file **file, struct failure *failure)
{
    struct spool *spool = (*file)->spool;
    (void)failure;
    pthread_mutex_lock(&spool->lock);
    int i = 0;
    while (spool->files[i] != NULL)
        i++;
    assert_true(i < FAKE_FILES_MAX);
    spool->files[i] = *file;
    (*file)->is_named = true;
    pthread_mutex_unlock(&spool->lock);
    *file = NULL;
    return ERROR_NONE;
}

enum error spool_read(struct spool *spool, const struct job_id *id, int32_t attempt, int64_t bytes,
                      struct spool_file **file, struct failure *failure)
{
    pthread_mutex_lock(&spool->lock);
    struct spool_file *found = fake_file(spool, id, attempt);
    pthread_mutex_unlock(&spool->lock);
    if (found == NULL)
        return failure_set(failure, ERROR_NOT_FOUND, "no such file");
    assert_int_equal(found->bytes, bytes);
    struct spool_file *handle = malloc(sizeof *handle);
    assert_non_null(handle);
    *handle = *found;
    handle->is_handle = true;
    *file = handle;
    return ERROR_NONE;
}

enum error spool_get(struct spool_file *file, int64_t offset_bytes, void *data, int64_t bytes,
                     struct failure *failure)
{
    (void)failure;
    assert_int_equal(pread(file->fd, data, (size_t)bytes, offset_bytes), bytes);
    return ERROR_NONE;
}

int spool_fd(const struct spool_file *file)
{
    return file->fd;
}

void spool_close(struct spool_file **file)
{
    if (*file == NULL)
        return;
    if (!(*file)->is_handle) {
        close((*file)->fd);
        atomic_fetch_add(&(*file)->spool->closed_unkept, 1);
    }
    free(*file);
    *file = NULL;
}

void spool_remove(struct spool *spool, const struct job_id *id, int32_t attempt)
{
    pthread_mutex_lock(&spool->lock);
    for (int i = 0; i < FAKE_FILES_MAX; i++) {
        struct spool_file *file = spool->files[i];
        if (file == NULL || memcmp(&file->id, id, sizeof *id) != 0 || file->attempt != attempt)
            continue;
        close(file->fd);
        free(file);
        spool->files[i] = NULL;
    }
    pthread_mutex_unlock(&spool->lock);
}

static inline int fake_files(struct spool *spool)
{
    int count = 0;
    pthread_mutex_lock(&spool->lock);
    for (int i = 0; i < FAKE_FILES_MAX; i++)
        count += spool->files[i] != NULL;
    pthread_mutex_unlock(&spool->lock);
    return count;
}

/* ---- The desk ---- */

static struct fake_row *fake_row(struct jobs *jobs, const struct job_id *id)
{
    for (int i = 0; i < jobs->count; i++)
        if (memcmp(&jobs->rows[i].job.id, id, sizeof *id) == 0)
            return &jobs->rows[i];
    return NULL;
}

static enum error fake_put(struct jobs *jobs, struct desk_call *call)
{
    const struct store_new *fresh = call->in.put;
    if (jobs->put_error != ERROR_NONE)
        return fake_refuse(&call->failure, jobs->put_error);
    call->job->state = JOB_STATES;
    for (int i = 0; i < jobs->count; i++) {
        struct fake_row *row = &jobs->rows[i];
        if (fresh->key[0] == '\0' || strcmp(row->key, fresh->key) != 0 ||
            strcmp(row->job.owner, fresh->job.owner) != 0)
            continue;
        if (memcmp(row->digest, fresh->key_digest, JOB_DIGEST_BYTES) != 0)
            return failure_set(&call->failure, ERROR_KEY_REUSED, "another request has the key");
        *call->job = row->job;
        return ERROR_NONE;
    }
    assert_true(jobs->count < FAKE_JOBS_MAX);
    struct fake_row *row = &jobs->rows[jobs->count++];
    row->job = fresh->job;
    strcpy(row->key, fresh->key);
    memcpy(row->digest, fresh->key_digest, JOB_DIGEST_BYTES);
    const int64_t bytes = fresh->job.task.body_bytes;
    assert_true((bytes <= JOB_INLINE_MAX) == (fresh->body != NULL));
    if (fresh->body != NULL) {
        row->body = malloc((size_t)bytes + 1);
        if (row->body == NULL) {
            jobs->count--;
            return fake_refuse(&call->failure, ERROR_INTERNAL);
        }
        memcpy(row->body, fresh->body, (size_t)bytes);
    }
    return ERROR_NONE;
}

static void fake_list(struct jobs *jobs, struct desk_call *call)
{
    const struct store_list *list = call->in.list;
    call->count = 0;
    for (int i = jobs->count - 1; i >= 0 && call->count < list->limit; i--) {
        const struct job *job = &jobs->rows[i].job;
        bool is_older = list->before_ms == 0 || job->created_ms < list->before_ms;
        if ((list->owner == NULL || strcmp(list->owner, job->owner) == 0) && is_older &&
            (list->states >> job->state & 1) != 0 && job->created_ms >= list->since_ms)
            call->jobs[call->count++] = *job;
    }
}

static enum error fake_one(struct jobs *jobs, struct desk_call *call)
{
    const struct job_id *id = call->kind == DESK_CANCEL        ? &call->in.cancel.id
                              : call->kind == DESK_READ_RESULT ? &call->in.read.id
                                                               : &call->in.get;
    struct fake_row *row = fake_row(jobs, id);
    if (row == NULL || row->job.state == JOB_DISMISSED)
        return failure_set(&call->failure, ERROR_NOT_FOUND, "no such job");
    if (call->kind == DESK_READ_RESULT) {
        if (row->result == NULL)
            return failure_set(&call->failure, ERROR_NOT_FOUND, "no such result");
        memcpy(call->in.read.to, row->result, (size_t)call->in.read.bytes);
        return ERROR_NONE;
    }
    if (call->kind == DESK_POSITION) {
        call->position = row->job.state == JOB_ACCEPTED ? 3 : -1;
        return ERROR_NONE;
    }
    *call->job = row->job;
    if (call->kind == DESK_CANCEL)
        row->job.state = JOB_DISMISSED;
    return ERROR_NONE;
}

static void fake_do(struct jobs *jobs, struct desk_call *call)
{
    call->failure.code = ERROR_NONE;
    if (call->kind == DESK_PUT)
        (void)fake_put(jobs, call);
    else if (call->kind == DESK_LIST)
        fake_list(jobs, call);
    else
        (void)fake_one(jobs, call);
    mailbox_post(call->mailbox, &call->message);
}

void desk_post(struct desk *desk, struct desk_call *call)
{
    struct jobs *jobs = (struct jobs *)desk;
    if (jobs->hold) {
        assert_null(jobs->held);
        jobs->held = call;
        return;
    }
    fake_do(jobs, call);
}

/* Does the call that is held. */
static inline void fake_desk_go(struct jobs *jobs)
{
    struct desk_call *call = jobs->held;
    assert_non_null(call);
    jobs->held = NULL;
    jobs->hold = false;
    fake_do(jobs, call);
}

/* ---- Jobs ---- */

struct desk *jobs_desk(struct jobs *jobs)
{
    return (struct desk *)jobs;
}

struct spool *jobs_spool(struct jobs *jobs)
{
    return &jobs->spool;
}

int64_t jobs_now_ms(const struct jobs *jobs)
{
    return jobs->now_ms;
}

enum error jobs_open_for(const struct jobs *jobs, int64_t spool_bytes, struct failure *failure)
{
    bool refuses =
        jobs->open_error == ERROR_JOBS_OFF || (jobs->open_error != ERROR_NONE && spool_bytes > 0);
    return refuses ? fake_refuse(failure, jobs->open_error) : ERROR_NONE;
}

enum error jobs_check(const struct jobs *jobs, const struct job_task *task, struct failure *failure)
{
    (void)task;
    return fake_refuse(failure, jobs->check_error);
}

void jobs_accept(struct jobs *jobs, struct desk_call *put)
{
    struct store_new *fresh = (struct store_new *)(uintptr_t)put->in.put;
    struct failure failure;
    if (fresh->body != NULL)
        assert_int_equal(job_id_make(&fresh->job.id, &failure), ERROR_NONE);
    fresh->job.created_ms = jobs->now_ms++;
    fresh->job.expires_ms = fresh->job.created_ms + 3600000;
    desk_post(jobs_desk(jobs), put);
}

void jobs_cancel(struct jobs *jobs, struct desk_call *cancel)
{
    desk_post(jobs_desk(jobs), cancel);
}

enum error jobs_watch(struct jobs *jobs, const struct job_id *id, struct mailbox *mailbox,
                      struct message *message, struct jobs_watch **watch, struct failure *failure)
{
    (void)id;
    (void)failure;
    struct jobs_watch *made = calloc(1, sizeof *made);
    assert_true(made != NULL && jobs->watch_count < FAKE_JOBS_MAX);
    made->mailbox = mailbox;
    made->message = message;
    jobs->watches[jobs->watch_count++] = made;
    *watch = made;
    return ERROR_NONE;
}

struct jobs_news jobs_watch_take(struct jobs_watch *watch)
{
    watch->is_posted = false;
    return (struct jobs_news){0};
}

static struct jobs *fake_watched;

bool jobs_unwatch(struct jobs_watch **watch)
{
    bool is_free = !(*watch)->is_posted;
    struct jobs *jobs = fake_watched;
    for (int i = 0; i < jobs->watch_count; i++)
        if (jobs->watches[i] == *watch)
            jobs->watches[i] = jobs->watches[--jobs->watch_count];
    jobs->unwatched++;
    free(*watch);
    *watch = NULL;
    return is_free;
}

static inline void fake_news(struct jobs *jobs)
{
    for (int i = 0; i < jobs->watch_count; i++) {
        struct jobs_watch *watch = jobs->watches[i];
        if (watch->is_posted)
            continue;
        watch->is_posted = true;
        mailbox_post(watch->mailbox, watch->message);
    }
}

enum error jobs_result_read(const struct jobs_result *result, int64_t offset_bytes, void *data,
                            int64_t bytes, struct failure *failure)
{
    (void)failure;
    memcpy(data, (const unsigned char *)result + offset_bytes, (size_t)bytes);
    return ERROR_NONE;
}

/* ---- For the test ---- */

static inline void fake_jobs_start(struct jobs *jobs)
{
    memset(jobs, 0, sizeof *jobs);
    pthread_mutex_init(&jobs->spool.lock, NULL);
    jobs->now_ms = FAKE_NOW_MS;
    jobs->rows = calloc(FAKE_JOBS_MAX, sizeof *jobs->rows);
    assert_non_null(jobs->rows);
    fake_watched = jobs;
}

static inline void fake_jobs_stop(struct jobs *jobs)
{
    assert_int_equal(jobs->watch_count, 0);
    assert_null(jobs->held);
    for (int i = 0; i < jobs->count; i++) {
        spool_remove(&jobs->spool, &jobs->rows[i].job.id, 0);
        spool_remove(&jobs->spool, &jobs->rows[i].job.id, jobs->rows[i].job.attempt);
        free(jobs->rows[i].body);
        free(jobs->rows[i].result);
    }
    assert_int_equal(fake_files(&jobs->spool), 0); /* none without a job */
    free(jobs->rows);
    pthread_mutex_destroy(&jobs->spool.lock);
}

/* Computes a job: each matrix of its first output is its A, INFO as given (NULL: all 0). */
static inline void fake_jobs_compute(struct jobs *jobs, struct fake_row *row, const int32_t *infos,
                                     enum error error)
{
    struct job *job = &row->job;
    const struct job_task *task = &job->task;
    struct failure failure;
    unsigned char *result = calloc(1, (size_t)task->result_bytes + 1);
    assert_non_null(result);
    const struct method *method = task->method;
    for (int i = 0; i < method_output_count(method); i++) {
        int64_t one = method_tensor_bytes(&method->outputs[i], task->precision, task->n, task->m,
                                          task->options);
        unsigned char *out = result + task->outputs[i].offset_bytes;
        if (task->outputs[i].offset_bytes < 0)
            continue;
        if (i == 0 && row->body != NULL) {
            memcpy(out, row->body + task->inputs[0].offset_bytes, (size_t)(one * task->batch));
        } else if (i == 0) {
            struct spool_file *body = fake_file(&jobs->spool, &job->id, 0);
            assert_non_null(body);
            assert_int_equal(
                pread(body->fd, out, (size_t)(one * task->batch), task->inputs[0].offset_bytes),
                one * task->batch);
        }
        for (int64_t b = 0; b < task->batch; b++) {
            if (strcmp(method->outputs[i].name, "INFO") == 0)
                ((int32_t *)out)[b] = infos == NULL ? 0 : infos[b];
            else if (method->outputs[i].kind == METHOD_ALGORITHM)
                ((int32_t *)out)[b] = METHOD_ALGORITHM_LU;
            else if (method->outputs[i].rank == 0 && task->precision == PRECISION_FP64 &&
                     method->outputs[i].kind == METHOD_REAL)
                ((double *)out)[b] = 0.1 / (double)(b + 1);
        }
    }
    job->attempt = 1;
    job->started_ms = jobs->now_ms;
    job->finished_ms = jobs->now_ms;
    job->state = error == ERROR_NONE ? JOB_SUCCESSFUL : JOB_FAILED;
    job->outcome = (struct job_outcome){.error = error,
                                        .kernel = "fake kernel",
                                        .queue_ns = 1000000,
                                        .compute_ns = 2500000,
                                        .has_result = true,
                                        .digest = {0xab}};
    if (task->result_bytes <= JOB_INLINE_MAX) {
        row->result = result;
        return;
    }
    struct spool_file *file;
    assert_int_equal(spool_write(&jobs->spool, &job->id, 1, task->result_bytes, &file, &failure),
                     ERROR_NONE);
    assert_int_equal(spool_put(file, 0, result, task->result_bytes, &failure), ERROR_NONE);
    assert_int_equal(spool_keep(&file, &failure), ERROR_NONE);
    free(result);
}

#endif
