/* queue/jobs/store_sqlite_work.c: a job's steps from its first claim to its end. See
 * store_sqlite.c.
 */
#include <assert.h>

#include "base/minmax.h"
#include "queue/jobs/store_sqlite_private.h"

#define UNREADABLE_MAX 16 /* that one claim fails before it gives up */

/* The one that a claim takes. */
struct candidate {
    int64_t seq, priority, created_ms; /* seq 0: none */
};

static void consider(struct candidate *best, const struct candidate *other)
{
    bool is_better = best->seq == 0 || other->priority > best->priority;
    if (best->seq != 0 && other->priority == best->priority)
        is_better = other->created_ms < best->created_ms ||
                    (other->created_ms == best->created_ms && other->seq < best->seq);
    if (is_better)
        *best = *other;
}

/* Of the columns seq, priority, created. */
static struct candidate candidate_of(struct sqlite *sqlite, int statement)
{
    return (struct candidate){sqlite_int(sqlite, statement, 0), sqlite_int(sqlite, statement, 1),
                              sqlite_int(sqlite, statement, 2)};
}

static enum error look_at_waiting(struct sqlite_store *self, const struct store_claim *claim,
                                  struct candidate *best, struct failure *failure)
{
    char kind[STORE_KIND_BYTES] = "";
    enum error error;
    while ((error = queue__store_next_kind(self, kind, failure)) == ERROR_NONE && kind[0] != '\0') {
        bool found;
        int64_t n_max = queue__store_kind_n_max(claim, kind);
        if (n_max == 0)
            continue;
        sqlite_bind(self->sqlite, STORE_FIRST_WAITING, "tii", kind, n_max, claim->matrix_bytes_max);
        error = sqlite_step(self->sqlite, STORE_FIRST_WAITING, &found, failure);
        if (error != ERROR_NONE)
            break;
        if (found) {
            struct candidate other = candidate_of(self->sqlite, STORE_FIRST_WAITING);
            consider(best, &other);
        }
        sqlite_reset(self->sqlite, STORE_FIRST_WAITING);
    }
    return error;
}

/* Of those that run, few, whose leases have run out. */
static enum error look_at_lapsed(struct sqlite_store *self, const struct store_claim *claim,
                                 struct candidate *best, struct failure *failure)
{
    struct sqlite *sqlite = self->sqlite;
    bool found;
    char kind[STORE_KIND_BYTES];
    sqlite_bind(sqlite, STORE_LAPSED, "i", claim->now_ms);
    enum error error;
    while ((error = sqlite_step(sqlite, STORE_LAPSED, &found, failure)) == ERROR_NONE && found) {
        struct candidate other = candidate_of(sqlite, STORE_LAPSED);
        if (sqlite_text(sqlite, STORE_LAPSED, 3, kind, sizeof kind) &&
            sqlite_int(sqlite, STORE_LAPSED, 4) <= queue__store_kind_n_max(claim, kind) &&
            sqlite_int(sqlite, STORE_LAPSED, 5) <= claim->matrix_bytes_max)
            consider(best, &other);
    }
    return error;
}

static enum error end(struct sqlite_store *self, const struct job_outcome *outcome,
                      const uint8_t *result, int64_t now_ms, int64_t expires_ms,
                      struct failure *failure);

/* A job that cannot be read would be claimed for ever. */
static enum error fail_unreadable(struct sqlite_store *self, int64_t now_ms,
                                  struct failure *failure)
{
    struct job_outcome outcome = {.error = ERROR_INTERNAL,
                                  .message = "The job was accepted by another version of the "
                                             "daemon, and this one cannot read it."};
    enum error error = ERROR_NONE;
    if (self->row.job.state == JOB_ACCEPTED)
        error =
            queue__store_move(self, &self->row, JOB_RUNNING, self->row.job.spool_bytes, failure);
    self->row.job.state = JOB_RUNNING;
    return error == ERROR_NONE
               ? end(self, &outcome, NULL, now_ms, self->row.job.expires_ms, failure)
               : error;
}

static enum error take(struct sqlite_store *self, const struct store_claim *claim, int64_t seq,
                       struct failure *failure)
{
    sqlite_bind(self->sqlite, STORE_GET_SEQ, "i", seq);
    enum error error = queue__store_read_one(self, STORE_GET_SEQ, failure);
    if (error != ERROR_NONE)
        return error;
    error = queue__store_move(self, &self->row, JOB_RUNNING, self->row.job.spool_bytes, failure);
    if (error != ERROR_NONE)
        return error;
    sqlite_bind(self->sqlite, STORE_TAKE, "ibii", seq, claim->node.bytes, (size_t)JOB_ID_BYTES,
                claim->lease_until_ms, claim->now_ms);
    error = sqlite_run(self->sqlite, STORE_TAKE, failure);
    struct job *job = &self->row.job;
    job->state = JOB_RUNNING;
    job->lease_until_ms = claim->lease_until_ms;
    job->progress = 0;
    job->attempt++;
    if (job->started_ms == 0)
        job->started_ms = claim->now_ms;
    return error;
}

enum error queue__store_claim(struct store *store, const struct store_claim *claim, struct job *job,
                              struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    job->state = JOB_STATES;
    for (int left = UNREADABLE_MAX; left > 0; left--) {
        struct candidate best = {.seq = 0};
        enum error error = look_at_waiting(self, claim, &best, failure);
        if (error == ERROR_NONE)
            error = look_at_lapsed(self, claim, &best, failure);
        if (error != ERROR_NONE || best.seq == 0)
            return error;
        error = take(self, claim, best.seq, failure);
        if (error == ERROR_NONE)
            *job = self->row.job;
        if (error != ERROR_INTERNAL)
            return error;
        error = fail_unreadable(self, claim->now_ms, failure);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

static enum error lease_lost(struct failure *failure)
{
    return failure_set(failure, ERROR_LEASE_LOST,
                       "The job is another attempt's by now, or over, or gone.");
}

enum error queue__store_end_leases(struct store *store, const struct job_id *node,
                                   struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    sqlite_bind(self->sqlite, STORE_END_LEASES, "b", node->bytes, (size_t)JOB_ID_BYTES);
    enum error error = sqlite_run(self->sqlite, STORE_END_LEASES, failure);
    sqlite_bind(self->sqlite, STORE_FREE_CALLBACKS, "");
    return error == ERROR_NONE ? sqlite_run(self->sqlite, STORE_FREE_CALLBACKS, failure) : error;
}

enum error queue__store_renew(struct store *store, const struct store_lease *lease,
                              int64_t lease_until_ms, int64_t progress, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    assert(progress >= 0 && progress <= JOB_PROGRESS_WHOLE);
    sqlite_bind(self->sqlite, STORE_RENEW, "biii", lease->id.bytes, (size_t)JOB_ID_BYTES,
                (int64_t)lease->attempt, lease_until_ms, progress);
    enum error error = sqlite_run(self->sqlite, STORE_RENEW, failure);
    if (error == ERROR_NONE && sqlite_changes(self->sqlite) == 0)
        return lease_lost(failure);
    return error;
}

/* The job of a lease that holds, into self->row. */
static enum error find_leased(struct sqlite_store *self, const struct store_lease *lease,
                              struct failure *failure)
{
    enum error error = queue__store_find(self, &lease->id, failure);
    if (error == ERROR_NOT_FOUND)
        return lease_lost(failure);
    if (error == ERROR_NONE &&
        (self->row.job.state != JOB_RUNNING || self->row.job.attempt != lease->attempt))
        return lease_lost(failure);
    return error;
}

/* self->row is over, as the outcome says. */
static enum error end(struct sqlite_store *self, const struct job_outcome *outcome,
                      const uint8_t *result, int64_t now_ms, int64_t expires_ms,
                      struct failure *failure)
{
    const struct job *job = &self->row.job;
    bool good = outcome->error == ERROR_NONE;
    bool in_spool = (good || outcome->has_result) && !result;
    int64_t result_bytes = job->task.result_bytes;
    int64_t spool_bytes = in_spool ? min_i64(result_bytes, job->spool_bytes) : 0;
    enum job_state to = good ? JOB_SUCCESSFUL : JOB_FAILED;
    sqlite_bind(self->sqlite, STORE_END, "iiiiii", self->row.seq, (int64_t)to, now_ms, expires_ms,
                good ? (int64_t)JOB_PROGRESS_WHOLE : job->progress, spool_bytes);
    enum error error = sqlite_run(self->sqlite, STORE_END, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_DROP_BODY, self->row.seq, failure);
    if (error != ERROR_NONE)
        return error;
    sqlite_bind(self->sqlite, STORE_PUT_RESULT, "itttiiibb", self->row.seq,
                error_name(outcome->error), outcome->message, outcome->kernel,
                (int64_t)outcome->queue_ns, (int64_t)outcome->compute_ns,
                (int64_t)outcome->has_result, outcome->digest, (size_t)JOB_DIGEST_BYTES, result,
                (size_t)result_bytes);
    error = sqlite_run(self->sqlite, STORE_PUT_RESULT, failure);
    if (error == ERROR_NONE && job->callback.state == JOB_CALLBACK_PENDING) {
        sqlite_bind(self->sqlite, STORE_CALLBACK_DUE, "ii", self->row.seq, now_ms);
        error = sqlite_run(self->sqlite, STORE_CALLBACK_DUE, failure);
    }
    return error == ERROR_NONE ? queue__store_move(self, &self->row, to, spool_bytes, failure)
                               : error;
}

enum error queue__store_finish(struct store *store, const struct store_lease *lease,
                               const struct job_outcome *outcome, const uint8_t *result,
                               int64_t now_ms, int64_t expires_ms, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    enum error error = find_leased(self, lease, failure);
    if (error != ERROR_NONE)
        return error;
    assert(!result || self->row.job.task.result_bytes <= JOB_INLINE_MAX);
    return end(self, outcome, result, now_ms, expires_ms, failure);
}

enum error queue__store_release(struct store *store, const struct store_lease *lease, bool killed,
                                struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    enum error error = find_leased(self, lease, failure);
    if (error != ERROR_NONE)
        return error;
    sqlite_bind(self->sqlite, STORE_RELEASE, "bii", lease->id.bytes, (size_t)JOB_ID_BYTES,
                (int64_t)lease->attempt, (int64_t)killed);
    error = sqlite_run(self->sqlite, STORE_RELEASE, failure);
    return error == ERROR_NONE ? queue__store_move(self, &self->row, JOB_ACCEPTED,
                                                   self->row.job.spool_bytes, failure)
                               : error;
}

enum error queue__store_cancel(struct store *store, const struct job_id *id, int64_t now_ms,
                               struct job *was, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    enum error error = queue__store_find(self, id, failure);
    if (error != ERROR_NONE)
        return error;
    *was = self->row.job;
    int64_t finished_ms = was->finished_ms > 0 ? was->finished_ms : now_ms;
    sqlite_bind(self->sqlite, STORE_END, "iiiiii", self->row.seq, (int64_t)JOB_DISMISSED,
                finished_ms, was->expires_ms, was->progress, INT64_C(0));
    error = sqlite_run(self->sqlite, STORE_END, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_DROP_BODY, self->row.seq, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_DROP_RESULT, self->row.seq, failure);
    if (error == ERROR_NONE && was->callback.state != JOB_CALLBACK_NONE)
        error = queue__store_run(self, STORE_REMOVE_CALLBACK, self->row.seq, failure);
    return error == ERROR_NONE ? queue__store_move(self, &self->row, JOB_DISMISSED, 0, failure)
                               : error;
}

/* ---- Expiring ---- */

/* The next row that is over since then; seq 0: none. */
static enum error next_ended(struct sqlite_store *self, bool is_dropped, int64_t expires_ms,
                             int64_t *seq, struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, STORE_NEXT_ENDED, "ii", (int64_t)is_dropped, expires_ms);
    enum error error = sqlite_step(self->sqlite, STORE_NEXT_ENDED, &found, failure);
    *seq = 0;
    if (error != ERROR_NONE || !found)
        return error;
    *seq = sqlite_int(self->sqlite, STORE_NEXT_ENDED, 0);
    sqlite_reset(self->sqlite, STORE_NEXT_ENDED);
    return ERROR_NONE;
}

static enum error drop(struct sqlite_store *self, int64_t seq, struct store_gone *gone,
                       struct failure *failure)
{
    sqlite_bind(self->sqlite, STORE_GET_SEQ, "i", seq);
    enum error error = queue__store_read_one(self, STORE_GET_SEQ, failure);
    if (error != ERROR_NONE && error != ERROR_INTERNAL)
        return error;
    const struct job *job = &self->row.job;
    *gone = (struct store_gone){.id = job->id, .attempt = job->attempt};
    self->totals.jobs[job->state]--;
    self->totals.spool_bytes -= job->spool_bytes;
    self->changed = true;
    error = queue__store_run(self, STORE_DROP, seq, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_DROP_BODY, seq, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_DROP_RESULT, seq, failure);
    return error == ERROR_NONE
               ? queue__store_change_owner(self, job->owner, 0, -job->spool_bytes, failure)
               : error;
}

static enum error remove_row(struct sqlite_store *self, int64_t seq, struct failure *failure)
{
    enum error error = queue__store_run(self, STORE_REMOVE_JOB, seq, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_REMOVE_INPUT, seq, failure);
    if (error == ERROR_NONE)
        error = queue__store_run(self, STORE_REMOVE_CALLBACK, seq, failure);
    return error == ERROR_NONE ? queue__store_run(self, STORE_REMOVE_RESULT, seq, failure) : error;
}

enum error queue__store_expire(struct store *store, int64_t now_ms, int64_t keep_ms,
                               struct store_gone *gone, int *count, bool *is_more,
                               struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    const int max = *count;
    enum error error = ERROR_NONE;
    int64_t seq = 0;
    int removed = 0;
    for (; removed < max && error == ERROR_NONE; removed++) {
        error = next_ended(self, true, now_ms - keep_ms, &seq, failure);
        if (error != ERROR_NONE || seq == 0)
            break;
        error = remove_row(self, seq, failure);
    }
    for (*count = 0; *count < max && error == ERROR_NONE; (*count)++) {
        error = next_ended(self, false, now_ms, &seq, failure);
        if (error != ERROR_NONE || seq == 0)
            break;
        error = drop(self, seq, &gone[*count], failure);
    }
    *is_more = removed == max || *count == max;
    return error;
}
