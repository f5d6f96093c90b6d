/* queue/jobs/store_sqlite.c: what is done with the tables of store_sqlite_tables.c. See store.h.
 *
 * The counts of states lie in memory, and go into the file once a transaction.
 *
 * Before the file is opened, its log is written over with what is there, and synced: an earlier
 * life may have ended with a failed sync, after which the system takes for written what is not
 * (fsyncgate); then SQLite would read frames that a power loss takes away, together with all that
 * was acknowledged after them. The log is empty after an orderly end. The file is not looked
 * through at the start, which takes seconds a gigabyte: a torn log is cut where its checksums end,
 * and damage of the file is met when it is read.
 *
 * Cost: put, claim, renew, finish, cancel, get: look-ups in trees, 10 to 60 us, however many jobs
 * there are. list: 5 us a job.
 */
#include "queue/jobs/store_sqlite.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "queue/jobs/store_sqlite_private.h"

#define PATH_BYTES 1152

/* ---- Transactions ---- */

static enum error store_begin(struct store *store, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    if (sqlite_is_broken(self->sqlite))
        return failure_set(failure, ERROR_STORE_FAILED, "The store of jobs has failed.");
    self->at_begin = self->totals;
    return sqlite_begin(self->sqlite, failure);
}

static enum error write_totals(struct sqlite_store *self, struct failure *failure)
{
    const int64_t *jobs = self->totals.jobs;
    sqlite_bind(self->sqlite, STORE_SET_TOTALS, "iiiiii", jobs[JOB_ACCEPTED], jobs[JOB_RUNNING],
                jobs[JOB_SUCCESSFUL], jobs[JOB_FAILED], jobs[JOB_DISMISSED],
                self->totals.spool_bytes);
    return sqlite_run(self->sqlite, STORE_SET_TOTALS, failure);
}

static enum error store_commit(struct store *store, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    enum error error = self->changed ? write_totals(self, failure) : ERROR_NONE;
    if (error == ERROR_NONE)
        error = sqlite_commit(self->sqlite, failure);
    if (error == ERROR_NONE)
        self->changed = false;
    return error;
}

static void store_rollback(struct store *store)
{
    struct sqlite_store *self = queue__store_of(store);
    sqlite_rollback(self->sqlite);
    self->totals = self->at_begin;
    self->changed = false;
}

/* ---- What every change keeps right ---- */

/* Counts of the owner; more or fewer. */
enum error queue__store_change_owner(struct sqlite_store *self, const char *owner, int64_t open,
                                     int64_t spool_bytes, struct failure *failure)
{
    if (open == 0 && spool_bytes == 0)
        return ERROR_NONE;
    bool found;
    sqlite_bind(self->sqlite, STORE_OWNER, "t", owner);
    enum error error = sqlite_step(self->sqlite, STORE_OWNER, &found, failure);
    if (error != ERROR_NONE)
        return error;
    if (found) {
        open += sqlite_int(self->sqlite, STORE_OWNER, 0);
        spool_bytes += sqlite_int(self->sqlite, STORE_OWNER, 1);
        sqlite_reset(self->sqlite, STORE_OWNER);
    }
    open = max_i64(open, 0); /* a damaged row may have another owner */
    spool_bytes = max_i64(spool_bytes, 0);
    if (open == 0 && spool_bytes == 0) {
        sqlite_bind(self->sqlite, STORE_REMOVE_OWNER, "t", owner);
        return sqlite_run(self->sqlite, STORE_REMOVE_OWNER, failure);
    }
    sqlite_bind(self->sqlite, STORE_SET_OWNER, "tii", owner, open, spool_bytes);
    return sqlite_run(self->sqlite, STORE_SET_OWNER, failure);
}

/* Counts the job's move, and its bytes in the spool from now on. The row is the caller's to write.
 */
enum error queue__store_move(struct sqlite_store *self, struct store_row *row, enum job_state to,
                             int64_t spool_bytes, struct failure *failure)
{
    struct job *job = &row->job;
    assert(job_may_move(job->state, to));
    if (!row->is_dropped) {
        self->totals.jobs[job->state]--;
        self->totals.jobs[to]++;
    }
    self->totals.spool_bytes += spool_bytes - job->spool_bytes;
    self->changed = true;
    int64_t open = (int64_t)job_is_over(job->state) - (int64_t)job_is_over(to);
    return queue__store_change_owner(self, job->owner, open, spool_bytes - job->spool_bytes,
                                     failure);
}

/* Runs a statement of one number for the row. */
enum error queue__store_run(struct sqlite_store *self, int statement, int64_t seq,
                            struct failure *failure)
{
    sqlite_bind(self->sqlite, statement, "i", seq);
    return sqlite_run(self->sqlite, statement, failure);
}

/* Into self->row, from a statement that is bound. NOT_FOUND; INTERNAL: the row is there, and cannot
 * be read whole. */
enum error queue__store_read_one(struct sqlite_store *self, int statement, struct failure *failure)
{
    bool found;
    enum error error = sqlite_step(self->sqlite, statement, &found, failure);
    if (error != ERROR_NONE)
        return error;
    if (!found)
        return failure_set(failure, ERROR_NOT_FOUND, "There is no such job.");
    error = queue__store_read_row(self->sqlite, statement, &self->row, failure);
    sqlite_reset(self->sqlite, statement);
    return error;
}

/* Not one that was cancelled. */
enum error queue__store_find(struct sqlite_store *self, const struct job_id *id,
                             struct failure *failure)
{
    sqlite_bind(self->sqlite, STORE_GET, "b", id->bytes, (size_t)JOB_ID_BYTES);
    enum error error = queue__store_read_one(self, STORE_GET, failure);
    if (error == ERROR_NONE && self->row.job.state == JOB_DISMISSED)
        return failure_set(failure, ERROR_NOT_FOUND, "There is no such job.");
    return error;
}

/* ---- Accepting ---- */

/* As store_ops.find_key; row: the one that has the key, or none. */
static enum error look_for_key(struct sqlite_store *self, const char *owner, const char *key,
                               const uint8_t digest[JOB_DIGEST_BYTES], bool *found,
                               struct failure *failure)
{
    sqlite_bind(self->sqlite, STORE_GET_KEY, "tt", owner, key);
    enum error error = queue__store_read_one(self, STORE_GET_KEY, failure);
    *found = error == ERROR_NONE;
    if (error == ERROR_NOT_FOUND)
        return failure_set(failure, ERROR_NONE, "%s", "");
    if (error == ERROR_NONE && memcmp(self->row.key_digest, digest, JOB_DIGEST_BYTES) != 0)
        return failure_set(failure, ERROR_KEY_REUSED,
                           "This Idempotency-Key came with another request before; give each "
                           "request a key of its own.");
    return error;
}

static enum error store_find_key(struct store *store, const char *owner, const char *key,
                                 const uint8_t digest[JOB_DIGEST_BYTES], struct job *found,
                                 struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    bool is_there;
    found->state = JOB_STATES;
    enum error error = look_for_key(self, owner, key, digest, &is_there, failure);
    if (error == ERROR_NONE && is_there)
        *found = self->row.job;
    return error;
}

static enum error check_quotas(struct sqlite_store *self, const struct store_new *new_job,
                               struct failure *failure)
{
    const struct job *job = &new_job->job;
    bool found;
    sqlite_bind(self->sqlite, STORE_OWNER, "t", job->owner);
    enum error error = sqlite_step(self->sqlite, STORE_OWNER, &found, failure);
    if (error != ERROR_NONE)
        return error;
    long long open = found ? sqlite_int(self->sqlite, STORE_OWNER, 0) : 0;
    long long bytes = found ? sqlite_int(self->sqlite, STORE_OWNER, 1) : 0;
    sqlite_reset(self->sqlite, STORE_OWNER);
    if (new_job->owner_jobs_max > 0 && open >= new_job->owner_jobs_max)
        return failure_set(
            failure, ERROR_CLIENT_QUOTA,
            "This client's quota is jobs=%lld, and %lld have not ended; wait for one "
            "of them, or cancel it.",
            (long long)new_job->owner_jobs_max, open);
    if (new_job->owner_bytes_max > 0 && job->spool_bytes > new_job->owner_bytes_max - bytes)
        return failure_set(failure, ERROR_CLIENT_QUOTA,
                           "This client's quota is spool=%lld bytes, of which its jobs have %lld "
                           "and this one needs %lld; delete jobs that have ended.",
                           (long long)new_job->owner_bytes_max, bytes, (long long)job->spool_bytes);
    if (new_job->bytes_max > 0 && job->spool_bytes > new_job->bytes_max - self->totals.spool_bytes)
        return failure_set(failure, ERROR_NO_ROOM,
                           "There is no room for the %lld bytes of disk that the job and its "
                           "result take; try again later, or send a smaller one.",
                           (long long)job->spool_bytes);
    return ERROR_NONE;
}

static enum error insert(struct sqlite_store *self, const struct store_new *new_job,
                         struct failure *failure)
{
    const struct job *job = &new_job->job;
    uint8_t task[JOB_TASK_MAX];
    size_t task_bytes;
    char kind[STORE_KIND_BYTES];
    job_task_write(&job->task, task, &task_bytes);
    queue__store_write_kind(&job->task, kind);
    bool has_key = new_job->key[0] != '\0';
    sqlite_bind(self->sqlite, STORE_PUT_JOB, "btitiiiiitb", job->id.bytes, (size_t)JOB_ID_BYTES,
                job->owner, (int64_t)job->task.priority, kind, job->task.n,
                job_matrix_bytes(&job->task), job->created_ms, job->expires_ms, job->spool_bytes,
                new_job->key, has_key ? new_job->key_digest : NULL, (size_t)JOB_DIGEST_BYTES);
    enum error error = sqlite_run(self->sqlite, STORE_PUT_JOB, failure);
    if (error != ERROR_NONE)
        return error;
    const int64_t seq = sqlite_last_id(self->sqlite);
    sqlite_bind(self->sqlite, STORE_PUT_INPUT, "ibbb", seq, task, task_bytes, job->answer,
                (size_t)job->answer_bytes, new_job->body, (size_t)job->task.body_bytes);
    error = sqlite_run(self->sqlite, STORE_PUT_INPUT, failure);
    if (error == ERROR_NONE && new_job->callback_url[0] != '\0') {
        sqlite_bind(self->sqlite, STORE_PUT_CALLBACK, "itt", seq, new_job->callback_url,
                    new_job->callback_place);
        error = sqlite_run(self->sqlite, STORE_PUT_CALLBACK, failure);
    }
    if (error != ERROR_NONE)
        return error;
    self->totals.jobs[JOB_ACCEPTED]++;
    self->totals.spool_bytes += job->spool_bytes;
    self->changed = true;
    return queue__store_change_owner(self, job->owner, 1, job->spool_bytes, failure);
}

static enum error store_put(struct store *store, const struct store_new *new_job, struct job *known,
                            struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    const struct job *job = &new_job->job;
    assert(job->state == JOB_ACCEPTED && job->attempt == 0 && job->spool_bytes >= 0);
    assert((new_job->body != NULL) == (job->task.body_bytes <= JOB_INLINE_MAX));
    bool found = false;
    known->state = JOB_STATES;
    enum error error = ERROR_NONE;
    if (new_job->key[0] != '\0')
        error = look_for_key(self, job->owner, new_job->key, new_job->key_digest, &found, failure);
    bool is_free =
        found || error == ERROR_KEY_REUSED
            ? job_is_over(self->row.job.state) && self->row.job.expires_ms <= job->created_ms
            : false;
    if (is_free)
        error = queue__store_run(self, STORE_FREE_KEY, self->row.seq, failure);
    else if (found)
        *known = self->row.job;
    if (error != ERROR_NONE || (found && !is_free))
        return error;
    error = check_quotas(self, new_job, failure);
    return error == ERROR_NONE ? insert(self, new_job, failure) : error;
}

/* ---- Opening ---- */

static void store_destroy(struct store **store)
{
    struct sqlite_store *self = queue__store_of(*store);
    *store = NULL;
    sqlite_close(&self->sqlite);
    free(self);
}

static const struct store_ops ops = {
    .begin = store_begin,
    .commit = store_commit,
    .rollback = store_rollback,
    .put = store_put,
    .find_key = store_find_key,
    .get = queue__store_get,
    .read_body = queue__store_read_body,
    .read_result = queue__store_read_result,
    .claim = queue__store_claim,
    .end_leases = queue__store_end_leases,
    .renew = queue__store_renew,
    .finish = queue__store_finish,
    .release = queue__store_release,
    .cancel = queue__store_cancel,
    .list = queue__store_list,
    .position = queue__store_position,
    .expire = queue__store_expire,
    .claim_callback = queue__store_claim_callback,
    .settle_callback = queue__store_settle_callback,
    .totals = queue__store_totals,
    .destroy = store_destroy,
};

static int write_over(struct disk *disk, struct disk_file *file)
{
    char piece[16 << 9];
    int64_t bytes = 0;
    int status = disk->ops->size(file, &bytes);
    for (int64_t at = 0; at < bytes && status == 0; at += (int64_t)sizeof piece) {
        int64_t count = min_i64(bytes - at, (int64_t)sizeof piece);
        status = disk->ops->read(file, at, piece, count);
        if (status == 0)
            status = disk->ops->write(file, at, piece, count);
    }
    return status == 0 ? disk->ops->sync(file) : status;
}

/* Makes durable what SQLite is going to read of its log. */
static enum error renew_log(const struct store_sqlite_config *config, struct failure *failure)
{
    char path[PATH_BYTES];
    struct disk_file *file = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s-wal", config->path) >= sizeof path)
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The path of the folder of jobs is too long.");
    int status = config->disk->ops->open(config->disk, path, DISK_WRITE, &file);
    if (status == ENOENT)
        return ERROR_NONE;
    if (status == 0)
        status = write_over(config->disk, file);
    config->disk->ops->close(&file);
    if (status == 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_STORE_FAILED,
                       "The disk that keeps the jobs does not take them: %s.", strerror(status));
}

/* SQLite syncs the names of its logs, and not that of its file. */
static enum error sync_name(const struct store_sqlite_config *config, struct failure *failure)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", config->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    int status = config->disk->ops->sync_folder(config->disk, slash ? folder : ".");
    if (status == 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_STORE_FAILED,
                       "The disk that keeps the jobs does not take them: %s.", strerror(status));
}

static enum error read_totals(struct sqlite_store *self, struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, STORE_TOTALS, "");
    enum error error = sqlite_step(self->sqlite, STORE_TOTALS, &found, failure);
    if (error != ERROR_NONE)
        return error;
    if (!found)
        return failure_set(failure, ERROR_STORE_FAILED, "The file of jobs has lost its counts.");
    for (int state = 0; state < JOB_STATES; state++)
        self->totals.jobs[state] = sqlite_int(self->sqlite, STORE_TOTALS, state);
    self->totals.spool_bytes = sqlite_int(self->sqlite, STORE_TOTALS, JOB_STATES);
    sqlite_reset(self->sqlite, STORE_TOTALS);
    return ERROR_NONE;
}

enum error store_sqlite_open(const struct store_sqlite_config *config, struct store **store,
                             struct failure *failure)
{
    *store = NULL;
    struct sqlite_store *self = calloc(1, sizeof *self);
    if (!self)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the store of jobs.");
    self->store.ops = &ops;
    enum error error = renew_log(config, failure);
    if (error == ERROR_NONE)
        error = sqlite_open(config->path, config->vfs, config->no_sync, &self->sqlite, failure);
    if (error == ERROR_NONE)
        error = queue__store_open_tables(self->sqlite, failure);
    if (error == ERROR_NONE)
        error = sync_name(config, failure);
    if (error == ERROR_NONE)
        error = read_totals(self, failure);
    struct store *made = &self->store;
    if (error == ERROR_NONE)
        *store = made;
    else
        store_destroy(&made);
    return error;
}
