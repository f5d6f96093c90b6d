/* queue/jobs/store_sqlite_look.c: the calls of a store that change nothing. See store_sqlite.c. */
#include <assert.h>
#include <string.h>

#include "queue/jobs/store_sqlite_private.h"

#define POSITION_MAX 10000
#define LISTED_STATES 4

enum error queue__store_get(struct store *store, const struct job_id *id, struct job *job,
                            struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    enum error error = queue__store_find(self, id, failure);
    if (error == ERROR_NONE)
        *job = self->row.job;
    return error;
}

static enum error read_bytes(struct sqlite_store *self, int statement, const struct job_id *id,
                             uint8_t *to, int64_t bytes, struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, statement, "b", id->bytes, (size_t)JOB_ID_BYTES);
    enum error error = sqlite_step(self->sqlite, statement, &found, failure);
    if (error != ERROR_NONE)
        return error;
    size_t there_bytes = 0;
    const void *data = found ? sqlite_blob(self->sqlite, statement, 0, &there_bytes) : NULL;
    if (data && there_bytes == (size_t)bytes)
        memcpy(to, data, there_bytes);
    bool is_whole = !data || there_bytes == (size_t)bytes;
    sqlite_reset(self->sqlite, statement);
    if (!data)
        return failure_set(failure, ERROR_NOT_FOUND, "The job has no such bytes.");
    return is_whole ? ERROR_NONE
                    : failure_set(failure, ERROR_INTERNAL, "The job's bytes have another length.");
}

enum error queue__store_read_body(struct store *store, const struct job_id *id, uint8_t *body,
                                  int64_t bytes, struct failure *failure)
{
    return read_bytes(queue__store_of(store), STORE_BODY, id, body, bytes, failure);
}

enum error queue__store_read_result(struct store *store, const struct job_id *id, uint8_t *result,
                                    int64_t bytes, struct failure *failure)
{
    return read_bytes(queue__store_of(store), STORE_RESULT, id, result, bytes, failure);
}

/* The newest of several lists' heads; -1: all are at their ends. */
static int newest_of(struct sqlite *sqlite, const int *lists, const bool *has_row, int count)
{
    int newest = -1;
    int64_t newest_ms = 0;
    const void *newest_id = NULL;
    size_t bytes;
    for (int i = 0; i < count; i++) {
        if (!has_row[i])
            continue;
        int64_t created_ms = sqlite_int(sqlite, lists[i], STORE_CREATED);
        const void *id = sqlite_blob(sqlite, lists[i], STORE_ID, &bytes);
        if (newest < 0 || created_ms > newest_ms ||
            (created_ms == newest_ms && memcmp(id, newest_id, JOB_ID_BYTES) > 0)) {
            newest = i;
            newest_ms = created_ms;
            newest_id = id;
        }
    }
    return newest;
}

/* Takes rows from the lists, the newest first. One that cannot be read is left out. */
static enum error merge(struct sqlite_store *self, const int *lists, int lists_count, int limit,
                        struct job *jobs, int *count, struct failure *failure)
{
    bool has_row[LISTED_STATES];
    enum error error = ERROR_NONE;
    for (int i = 0; i < lists_count && error == ERROR_NONE; i++)
        error = sqlite_step(self->sqlite, lists[i], &has_row[i], failure);
    *count = 0;
    while (error == ERROR_NONE && *count < limit) {
        int newest = newest_of(self->sqlite, lists, has_row, lists_count);
        if (newest < 0)
            break;
        if (queue__store_read_row(self->sqlite, lists[newest], &self->row, NULL) == ERROR_NONE)
            jobs[(*count)++] = self->row.job;
        error = sqlite_step(self->sqlite, lists[newest], &has_row[newest], failure);
    }
    for (int i = 0; i < lists_count; i++)
        sqlite_reset(self->sqlite, lists[i]);
    return error;
}

enum error queue__store_list(struct store *store, const struct store_list *list, struct job *jobs,
                             int *count, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    assert(list->limit >= 1 && list->limit <= STORE_LIST_MAX);
    int first = list->owner ? STORE_LIST_OWNER_ACCEPTED : STORE_LIST_ALL_ACCEPTED;
    int lists[LISTED_STATES], lists_count = 0;
    int64_t before_ms = list->before_ms > 0 ? list->before_ms : INT64_MAX;
    for (int state = 0; state < LISTED_STATES; state++) {
        if ((list->states >> state & 1) == 0)
            continue;
        int statement = first + state;
        sqlite_bind(self->sqlite, statement, list->owner ? "iiibt" : "iiib", (int64_t)state,
                    list->since_ms, before_ms, list->before_id.bytes, (size_t)JOB_ID_BYTES,
                    list->owner);
        lists[lists_count++] = statement;
    }
    return merge(self, lists, lists_count, list->limit, jobs, count, failure);
}

/* The kind after one in the alphabet, of jobs that wait; "": there is none. */
enum error queue__store_next_kind(struct sqlite_store *self, char kind[STORE_KIND_BYTES],
                                  struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, STORE_NEXT_KIND, "t", kind);
    enum error error = sqlite_step(self->sqlite, STORE_NEXT_KIND, &found, failure);
    if (error != ERROR_NONE)
        return error;
    bool fits = found && sqlite_text(self->sqlite, STORE_NEXT_KIND, 0, kind, STORE_KIND_BYTES);
    if (!fits)
        kind[0] = '\0';
    sqlite_reset(self->sqlite, STORE_NEXT_KIND);
    return ERROR_NONE;
}

/* Adds what a statement counts, which has been bound. */
static enum error add_count(struct sqlite_store *self, int statement, int64_t *sum,
                            struct failure *failure)
{
    bool found;
    enum error error = sqlite_step(self->sqlite, statement, &found, failure);
    if (error != ERROR_NONE)
        return error;
    *sum += sqlite_int(self->sqlite, statement, 0);
    sqlite_reset(self->sqlite, statement);
    return ERROR_NONE;
}

enum error queue__store_position(struct store *store, const struct job_id *id, int64_t *position,
                                 struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    *position = -1;
    enum error error = queue__store_find(self, id, failure);
    const struct job *job = &self->row.job;
    if (error != ERROR_NONE || job->state != JOB_ACCEPTED)
        return error;
    char kind[STORE_KIND_BYTES] = "";
    int64_t sum = 0, priority = job->task.priority;
    while (sum < POSITION_MAX) {
        error = queue__store_next_kind(self, kind, failure);
        if (error != ERROR_NONE || kind[0] == '\0')
            break;
        sqlite_bind(self->sqlite, STORE_COUNT_ABOVE, "tii", kind, priority, POSITION_MAX - sum);
        error = add_count(self, STORE_COUNT_ABOVE, &sum, failure);
        if (error != ERROR_NONE)
            break;
        sqlite_bind(self->sqlite, STORE_COUNT_AHEAD, "tiiii", kind, priority, POSITION_MAX - sum,
                    job->created_ms, self->row.seq);
        error = add_count(self, STORE_COUNT_AHEAD, &sum, failure);
        if (error != ERROR_NONE)
            break;
    }
    *position = sum;
    return error;
}

enum error queue__store_totals(struct store *store, struct store_totals *totals,
                               struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    bool found;
    sqlite_bind(self->sqlite, STORE_OLDEST, "");
    enum error error = sqlite_step(self->sqlite, STORE_OLDEST, &found, failure);
    if (error != ERROR_NONE)
        return error;
    *totals = self->totals;
    totals->oldest_accepted_ms = found ? sqlite_int(self->sqlite, STORE_OLDEST, 0) : 0;
    sqlite_reset(self->sqlite, STORE_OLDEST);
    return ERROR_NONE;
}
