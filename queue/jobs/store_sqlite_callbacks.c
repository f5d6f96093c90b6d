/* queue/jobs/store_sqlite_callbacks.c: callbacks in the file of jobs. See store_sqlite.c.
 *
 * Places take turns by what is due first at each: one that answers slowly, and has many waiting, is
 * left out while it is busy, and holds up no other. Cost: a look into the index a place.
 */
#include <string.h>

#include "queue/jobs/store_sqlite_private.h"

/* The place after one in the alphabet where callbacks wait; "": there is none. */
static enum error next_place(struct sqlite_store *self, char place[JOB_PLACE_BYTES],
                             struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, STORE_NEXT_PLACE, "t", place);
    enum error error = sqlite_step(self->sqlite, STORE_NEXT_PLACE, &found, failure);
    if (error != ERROR_NONE)
        return error;
    if (!found || !sqlite_text(self->sqlite, STORE_NEXT_PLACE, 0, place, JOB_PLACE_BYTES))
        place[0] = '\0';
    sqlite_reset(self->sqlite, STORE_NEXT_PLACE);
    return ERROR_NONE;
}

static bool is_busy(const struct store_callback_claim *claim, const char *place)
{
    for (int i = 0; i < claim->busy_count; i++)
        if (strcmp(claim->busy[i], place) == 0)
            return true;
    return false;
}

/* The one that is due first; *seq 0: none waits. */
static enum error find_first(struct sqlite_store *self, const struct store_callback_claim *claim,
                             int64_t *seq, int64_t *due_ms, struct failure *failure)
{
    struct sqlite *sqlite = self->sqlite;
    char place[JOB_PLACE_BYTES] = "";
    enum error error;
    *seq = *due_ms = 0;
    while ((error = next_place(self, place, failure)) == ERROR_NONE && place[0] != '\0') {
        bool found;
        if (is_busy(claim, place))
            continue;
        sqlite_bind(sqlite, STORE_FIRST_CALLBACK, "t", place);
        error = sqlite_step(sqlite, STORE_FIRST_CALLBACK, &found, failure);
        if (error != ERROR_NONE)
            break;
        if (found && (*seq == 0 || sqlite_int(sqlite, STORE_FIRST_CALLBACK, 1) < *due_ms)) {
            *seq = sqlite_int(sqlite, STORE_FIRST_CALLBACK, 0);
            *due_ms = sqlite_int(sqlite, STORE_FIRST_CALLBACK, 1);
        }
        sqlite_reset(sqlite, STORE_FIRST_CALLBACK);
    }
    return error;
}

static enum error read_url(struct sqlite_store *self, int64_t seq, struct store_callback *callback,
                           struct failure *failure)
{
    bool found;
    sqlite_bind(self->sqlite, STORE_CALLBACK_URL, "i", seq);
    enum error error = sqlite_step(self->sqlite, STORE_CALLBACK_URL, &found, failure);
    if (error != ERROR_NONE)
        return error;
    bool good = found &&
                sqlite_text(self->sqlite, STORE_CALLBACK_URL, 0, callback->url, JOB_URL_BYTES) &&
                sqlite_text(self->sqlite, STORE_CALLBACK_URL, 1, callback->place, JOB_PLACE_BYTES);
    sqlite_reset(self->sqlite, STORE_CALLBACK_URL);
    return good ? ERROR_NONE : failure_set(failure, ERROR_INTERNAL, "The callback cannot be read.");
}

static enum error take(struct sqlite_store *self, const struct store_callback_claim *claim,
                       int64_t seq, struct job *job, struct store_callback *callback,
                       struct failure *failure)
{
    sqlite_bind(self->sqlite, STORE_GET_SEQ, "i", seq);
    enum error error = queue__store_read_one(self, STORE_GET_SEQ, failure);
    if (error == ERROR_NONE)
        error = read_url(self, seq, callback, failure);
    if (error == ERROR_INTERNAL || error == ERROR_NOT_FOUND) /* it would be claimed for ever */
        return queue__store_run(self, STORE_REMOVE_CALLBACK, seq, failure);
    if (error != ERROR_NONE)
        return error;
    sqlite_bind(self->sqlite, STORE_TAKE_CALLBACK, "ii", seq, claim->again_ms);
    error = sqlite_run(self->sqlite, STORE_TAKE_CALLBACK, failure);
    *job = self->row.job;
    job->callback.attempts++;
    return error;
}

enum error queue__store_claim_callback(struct store *store,
                                       const struct store_callback_claim *claim, struct job *job,
                                       struct store_callback *callback, struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    int64_t seq, due_ms;
    job->state = JOB_STATES;
    callback->next_due_ms = 0;
    enum error error = find_first(self, claim, &seq, &due_ms, failure);
    if (error != ERROR_NONE || seq == 0)
        return error;
    if (due_ms <= claim->now_ms)
        return take(self, claim, seq, job, callback, failure);
    callback->next_due_ms = due_ms;
    return ERROR_NONE;
}

enum error queue__store_settle_callback(struct store *store, const struct store_callback_end *end,
                                        struct failure *failure)
{
    struct sqlite_store *self = queue__store_of(store);
    sqlite_bind(self->sqlite, STORE_SETTLE_CALLBACK, "biiit", end->id.bytes, (size_t)JOB_ID_BYTES,
                (int64_t)end->attempts, (int64_t)end->state, end->due_ms, end->problem);
    return sqlite_run(self->sqlite, STORE_SETTLE_CALLBACK, failure);
}
