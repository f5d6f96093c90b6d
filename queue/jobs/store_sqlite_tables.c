/* queue/jobs/store_sqlite_tables.c: what lies in the file of jobs, and the statements on it.
 *
 * jobs.db has user_version 2 and application_id 0x696a6f62. Times are milliseconds of Unix time.
 *
 *     jobs     a row a job, short, for it changes with every step: who, what, where it stands
 *     inputs   what it came with: the task (job.c), the handlers' answer, a body of up to 64 KiB
 *     results  how it ended, and a result of up to 64 KiB
 *     callbacks  who hears of its end, and where that stands; of a few jobs alone
 *     owners   of each client: jobs that are not over, and bytes in the spool; no row: 0 of both
 *     totals   one row: jobs that have not expired, of each state, and all bytes in the spool
 *
 * seq is the order of acceptance. kind is "METHOD/PRECISION", so that a claim looks only at what
 * its runner can take. is_dropped: the job has expired, and its key and bytes have gone. Errors
 * are kept by name.
 *
 * A newer version adds its changes to `migrations`, which are done one after the other, each in a
 * transaction with its user_version.
 */
#include <stdio.h>
#include <string.h>

#include "queue/jobs/store_sqlite_private.h"

#define APPLICATION 0x696a6f62 /* "ijob" */

static const char *const migrations[] = {
    "CREATE TABLE jobs ("
    " seq INTEGER PRIMARY KEY, id BLOB NOT NULL, state INTEGER NOT NULL, owner TEXT NOT NULL,"
    " priority INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL,"
    " matrix_bytes INTEGER NOT NULL, created INTEGER NOT NULL, started INTEGER NOT NULL DEFAULT 0,"
    " finished INTEGER NOT NULL DEFAULT 0, expires INTEGER NOT NULL,"
    " progress INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0,"
    " lease INTEGER NOT NULL DEFAULT 0, node BLOB, kills INTEGER NOT NULL DEFAULT 0,"
    " spool INTEGER NOT NULL, is_dropped INTEGER NOT NULL DEFAULT 0, key TEXT, key_digest BLOB);"
    "CREATE UNIQUE INDEX by_id ON jobs (id);"
    "CREATE UNIQUE INDEX by_key ON jobs (owner, key) WHERE key IS NOT NULL;"
    "CREATE INDEX by_owner ON jobs (owner, state, created, id);"
    "CREATE INDEX by_state ON jobs (state, created, id);"
    "CREATE INDEX waiting ON jobs (kind, priority DESC, created, seq, n, matrix_bytes)"
    " WHERE state = 0;"
    "CREATE INDEX running ON jobs (lease) WHERE state = 1;"
    "CREATE INDEX ended ON jobs (is_dropped, expires) WHERE state >= 2;"
    "CREATE TABLE inputs (seq INTEGER PRIMARY KEY, task BLOB NOT NULL, answer BLOB NOT NULL,"
    " body BLOB);"
    "CREATE TABLE results (seq INTEGER PRIMARY KEY, error TEXT NOT NULL, message TEXT NOT NULL,"
    " kernel TEXT NOT NULL, queue_ns INTEGER NOT NULL, compute_ns INTEGER NOT NULL,"
    " has_result INTEGER NOT NULL, digest BLOB NOT NULL, bytes BLOB);"
    "CREATE TABLE owners (owner TEXT PRIMARY KEY, open INTEGER NOT NULL, spool INTEGER NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE totals (only INTEGER PRIMARY KEY, accepted INTEGER NOT NULL,"
    " running INTEGER NOT NULL, successful INTEGER NOT NULL, failed INTEGER NOT NULL,"
    " dismissed INTEGER NOT NULL, spool INTEGER NOT NULL);"
    "INSERT INTO totals VALUES (1, 0, 0, 0, 0, 0, 0);"
    "PRAGMA application_id = 0x696a6f62;"
    "PRAGMA user_version = 1",
    "CREATE TABLE callbacks (seq INTEGER PRIMARY KEY, url TEXT NOT NULL, place TEXT NOT NULL,"
    " standing INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL DEFAULT "
    "0,"
    " is_claimed INTEGER NOT NULL DEFAULT 0, problem TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX due ON callbacks (place, due) WHERE standing = 2;"
    "CREATE INDEX claimed ON callbacks (seq) WHERE is_claimed = 1;"
    "PRAGMA user_version = 2",
};
#define VERSION ((int64_t)(sizeof migrations / sizeof migrations[0]))

_Static_assert(JOB_CALLBACK_PENDING == 1 && JOB_CALLBACK_WAITING == 2, "as in the statements");
_Static_assert(JOB_ACCEPTED == 0 && JOB_RUNNING == 1 && JOB_SUCCESSFUL == 2, "as in the indexes");

/* The columns of a whole job, in the order in which read_row reads them. */
#define COLUMNS                                                                                    \
    "SELECT jobs.seq, id, state, owner, created, started, finished, expires, progress, attempt,"   \
    " lease, kills, spool, is_dropped, key_digest, task, answer, error, message, kernel,"          \
    " queue_ns, compute_ns, has_result, digest,"                                                   \
    " standing, attempts, due, problem FROM jobs"
#define JOINED                                                                                     \
    " JOIN inputs ON inputs.seq = jobs.seq LEFT JOIN results ON results.seq = jobs.seq"            \
    " LEFT JOIN callbacks ON callbacks.seq = jobs.seq"
#define LIST(index)                                                                                \
    COLUMNS " INDEXED BY " index JOINED                                                            \
            " WHERE state = ?1 AND created >= ?2 AND (created, id) < (?3, ?4)"
#define LIST_END " ORDER BY created DESC, id DESC"
#define LIST_ALL LIST("by_state") LIST_END
#define LIST_OWNER LIST("by_owner") " AND owner = ?5" LIST_END

#define LEASE " WHERE id = ?1 AND attempt = ?2 AND state = 1"

/* X(id, text) */
#define STATEMENTS(X)                                                                              \
    X(PUT_JOB, "INSERT INTO jobs (id, state, owner, priority, kind, n, matrix_bytes, created,"     \
               " expires, spool, key, key_digest)"                                                 \
               " VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, ''), ?11)")            \
    X(PUT_INPUT, "INSERT INTO inputs (seq, task, answer, body) VALUES (?1, ?2, ?3, ?4)")           \
    X(GET, COLUMNS JOINED " WHERE id = ?1")                                                        \
    X(GET_SEQ, COLUMNS JOINED " WHERE jobs.seq = ?1")                                              \
    X(GET_KEY, COLUMNS JOINED " WHERE owner = ?1 AND key = ?2")                                    \
    X(FREE_KEY, "UPDATE jobs SET key = NULL, key_digest = NULL WHERE seq = ?1")                    \
    X(BODY, "SELECT body FROM inputs JOIN jobs ON jobs.seq = inputs.seq WHERE id = ?1")            \
    X(RESULT, "SELECT bytes FROM results JOIN jobs ON jobs.seq = results.seq WHERE id = ?1")       \
    X(NEXT_KIND, "SELECT kind FROM jobs INDEXED BY waiting WHERE state = 0 AND kind > ?1"          \
                 " ORDER BY kind LIMIT 1")                                                         \
    X(FIRST_WAITING, "SELECT seq, priority, created FROM jobs INDEXED BY waiting WHERE state = 0"  \
                     " AND kind = ?1 AND n <= ?2 AND matrix_bytes <= ?3"                           \
                     " ORDER BY priority DESC, created, seq LIMIT 1")                              \
    X(LAPSED, "SELECT seq, priority, created, kind, n, matrix_bytes FROM jobs INDEXED BY running"  \
              " WHERE state = 1 AND lease <= ?1")                                                  \
    X(TAKE, "UPDATE jobs SET state = 1, node = ?2, lease = ?3, progress = 0,"                      \
            " attempt = attempt + 1, started = CASE started WHEN 0 THEN ?4 ELSE started END"       \
            " WHERE seq = ?1")                                                                     \
    X(END_LEASES, "UPDATE jobs INDEXED BY running SET lease = 0 WHERE state = 1 AND node = ?1")    \
    X(RENEW, "UPDATE jobs SET lease = ?3, progress = ?4" LEASE)                                    \
    X(RELEASE, "UPDATE jobs SET state = 0, lease = 0, kills = kills + ?3" LEASE)                   \
    X(END, "UPDATE jobs SET state = ?2, finished = ?3, expires = ?4, progress = ?5, spool = ?6,"   \
           " lease = 0 WHERE seq = ?1")                                                            \
    X(PUT_RESULT, "INSERT INTO results (seq, error, message, kernel, queue_ns, compute_ns,"        \
                  " has_result, digest, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")       \
    X(DROP_BODY, "UPDATE inputs SET body = NULL WHERE seq = ?1 AND body IS NOT NULL")              \
    X(DROP_RESULT, "UPDATE results SET bytes = NULL WHERE seq = ?1 AND bytes IS NOT NULL")         \
    X(DROP, "UPDATE jobs SET is_dropped = 1, key = NULL, key_digest = NULL, spool = 0"             \
            " WHERE seq = ?1")                                                                     \
    X(NEXT_ENDED, "SELECT seq FROM jobs INDEXED BY ended WHERE state >= 2 AND is_dropped = ?1"     \
                  " AND expires <= ?2 ORDER BY expires LIMIT 1")                                   \
    X(REMOVE_JOB, "DELETE FROM jobs WHERE seq = ?1")                                               \
    X(REMOVE_INPUT, "DELETE FROM inputs WHERE seq = ?1")                                           \
    X(REMOVE_RESULT, "DELETE FROM results WHERE seq = ?1")                                         \
    X(PUT_CALLBACK, "INSERT INTO callbacks (seq, url, place, standing) VALUES (?1, ?2, ?3, 1)")    \
    X(NEXT_PLACE, "SELECT place FROM callbacks INDEXED BY due WHERE standing = 2 AND place > ?1"   \
                  " ORDER BY place LIMIT 1")                                                       \
    X(FIRST_CALLBACK, "SELECT seq, due FROM callbacks INDEXED BY due WHERE standing = 2"           \
                      " AND place = ?1 ORDER BY due LIMIT 1")                                      \
    X(CALLBACK_URL, "SELECT url, place FROM callbacks WHERE seq = ?1")                             \
    X(TAKE_CALLBACK, "UPDATE callbacks SET attempts = attempts + 1, due = ?2, is_claimed = 1"      \
                     " WHERE seq = ?1")                                                            \
    X(CALLBACK_DUE, "UPDATE callbacks SET standing = 2, due = ?2 WHERE seq = ?1 AND standing = 1") \
    X(SETTLE_CALLBACK,                                                                             \
      "UPDATE callbacks SET standing = ?3, due = ?4, problem = ?5, is_claimed = 0"                 \
      " WHERE seq = (SELECT seq FROM jobs WHERE id = ?1) AND attempts = ?2"                        \
      " AND standing = 2")                                                                         \
    X(FREE_CALLBACKS, "UPDATE callbacks INDEXED BY claimed SET due = 0, is_claimed = 0"            \
                      " WHERE is_claimed = 1")                                                     \
    X(REMOVE_CALLBACK, "DELETE FROM callbacks WHERE seq = ?1")                                     \
    X(COUNT_ABOVE, "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY waiting WHERE state = 0"   \
                   " AND kind = ?1 AND priority > ?2 LIMIT ?3)")                                   \
    X(COUNT_AHEAD, "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY waiting WHERE state = 0"   \
                   " AND kind = ?1 AND priority = ?2 AND (created, seq) < (?4, ?5) LIMIT ?3)")     \
    X(OLDEST, "SELECT created FROM jobs INDEXED BY by_state WHERE state = 0 ORDER BY created"      \
              " LIMIT 1")                                                                          \
    X(OWNER, "SELECT open, spool FROM owners WHERE owner = ?1")                                    \
    X(SET_OWNER, "INSERT OR REPLACE INTO owners (owner, open, spool) VALUES (?1, ?2, ?3)")         \
    X(REMOVE_OWNER, "DELETE FROM owners WHERE owner = ?1")                                         \
    X(TOTALS, "SELECT accepted, running, successful, failed, dismissed, spool FROM totals")        \
    X(SET_TOTALS, "UPDATE totals SET accepted = ?1, running = ?2, successful = ?3, failed = ?4,"   \
                  " dismissed = ?5, spool = ?6")                                                   \
    X(LIST_ALL_ACCEPTED, LIST_ALL)                                                                 \
    X(LIST_ALL_RUNNING, LIST_ALL)                                                                  \
    X(LIST_ALL_SUCCESSFUL, LIST_ALL)                                                               \
    X(LIST_ALL_FAILED, LIST_ALL)                                                                   \
    X(LIST_OWNER_ACCEPTED, LIST_OWNER)                                                             \
    X(LIST_OWNER_RUNNING, LIST_OWNER)                                                              \
    X(LIST_OWNER_SUCCESSFUL, LIST_OWNER)                                                           \
    X(LIST_OWNER_FAILED, LIST_OWNER)

static const char *const statements[STORE_STATEMENTS] = {
#define STATEMENT_TEXT(id, text) [STORE_##id] = (text),
    STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

/* ---- Versions ---- */

static enum error migrate(struct sqlite *sqlite, int64_t version, struct failure *failure)
{
    enum error error = sqlite_begin(sqlite, failure);
    if (error == ERROR_NONE)
        error = sqlite_do(sqlite, migrations[version], failure);
    if (error == ERROR_NONE)
        error = sqlite_commit(sqlite, failure);
    return error;
}

enum error queue__store_open_tables(struct sqlite *sqlite, struct failure *failure)
{
    int64_t version = 0, application = 0;
    enum error error = sqlite_pragma(sqlite, "user_version", &version, failure);
    if (error == ERROR_NONE)
        error = sqlite_pragma(sqlite, "application_id", &application, failure);
    if (error != ERROR_NONE)
        return error;
    if (version < 0 || (version > 0 && application != APPLICATION))
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The file of jobs is a database of another program.");
    if (version > VERSION)
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The file of jobs is of version %lld, and this daemon knows those up to "
                           "%lld; start the newer daemon, or another data folder.",
                           (long long)version, (long long)VERSION);
    for (; version < VERSION && error == ERROR_NONE; version++)
        error = migrate(sqlite, version, failure);
    if (error == ERROR_NONE)
        sqlite_set_statements(sqlite, statements, STORE_STATEMENTS);
    return error;
}

/* ---- Rows ---- */

/* Columns of COLUMNS. */
enum {
    SEQ,
    ID,
    STATE,
    OWNER,
    CREATED,
    STARTED,
    FINISHED,
    EXPIRES,
    PROGRESS,
    ATTEMPT,
    LEASE_UNTIL,
    KILLS,
    SPOOL,
    IS_DROPPED,
    KEY_DIGEST,
    TASK,
    ANSWER,
    ERROR_NAME,
    MESSAGE,
    KERNEL,
    QUEUE_NS,
    COMPUTE_NS,
    HAS_RESULT,
    DIGEST,
    CALLBACK_STATE,
    CALLBACK_ATTEMPTS,
    CALLBACK_DUE,
    CALLBACK_PROBLEM
};

/* false: it has another length. NULL counts as zeros. */
static bool read_bytes(struct sqlite *sqlite, int statement, int column, uint8_t *to, size_t bytes)
{
    size_t length;
    const void *data = sqlite_blob(sqlite, statement, column, &length);
    memset(to, 0, bytes);
    if (data && length == bytes)
        memcpy(to, data, bytes);
    return !data || length == bytes;
}

/* INTERNAL for a name that is none any more. */
static enum error error_of(const char *name)
{
    for (int i = 0; i < ERROR_COUNT; i++) {
        if (strcmp(error_name((enum error)i), name) == 0)
            return (enum error)i;
    }
    return ERROR_INTERNAL;
}

static bool read_outcome(struct sqlite *sqlite, int statement, struct job_outcome *outcome)
{
    char name[64];
    if (!sqlite_text(sqlite, statement, ERROR_NAME, name, sizeof name))
        return false;
    outcome->error = error_of(name);
    outcome->queue_ns = (uint64_t)sqlite_int(sqlite, statement, QUEUE_NS);
    outcome->compute_ns = (uint64_t)sqlite_int(sqlite, statement, COMPUTE_NS);
    outcome->has_result = sqlite_int(sqlite, statement, HAS_RESULT) != 0;
    return sqlite_text(sqlite, statement, MESSAGE, outcome->message, sizeof outcome->message) &&
           sqlite_text(sqlite, statement, KERNEL, outcome->kernel, sizeof outcome->kernel) &&
           read_bytes(sqlite, statement, DIGEST, outcome->digest, sizeof outcome->digest);
}

/* Of a job without one all is zero. */
static bool read_callback(struct sqlite *sqlite, int statement, struct job_callback *callback)
{
    int64_t state = sqlite_int(sqlite, statement, CALLBACK_STATE);
    bool is_state = state >= 0 && state < JOB_CALLBACK_STATES;
    callback->state = is_state ? (enum job_callback_state)state : JOB_CALLBACK_NONE;
    callback->attempts = (int32_t)sqlite_int(sqlite, statement, CALLBACK_ATTEMPTS);
    callback->due_ms = sqlite_int(sqlite, statement, CALLBACK_DUE);
    return is_state && sqlite_text(sqlite, statement, CALLBACK_PROBLEM, callback->problem,
                                   sizeof callback->problem);
}

static bool read_answer(struct sqlite *sqlite, int statement, struct job *job)
{
    size_t bytes;
    const void *answer = sqlite_blob(sqlite, statement, ANSWER, &bytes);
    if (!answer || bytes > sizeof job->answer)
        return false;
    memcpy(job->answer, answer, bytes);
    job->answer_bytes = (int)bytes;
    return true;
}

static bool read_state(struct sqlite *sqlite, int statement, struct store_row *row)
{
    struct job *job = &row->job;
    int64_t state = sqlite_int(sqlite, statement, STATE);
    row->seq = sqlite_int(sqlite, statement, SEQ);
    row->is_dropped = sqlite_int(sqlite, statement, IS_DROPPED) != 0;
    job->created_ms = sqlite_int(sqlite, statement, CREATED);
    job->started_ms = sqlite_int(sqlite, statement, STARTED);
    job->finished_ms = sqlite_int(sqlite, statement, FINISHED);
    job->expires_ms = sqlite_int(sqlite, statement, EXPIRES);
    job->progress = sqlite_int(sqlite, statement, PROGRESS);
    job->attempt = (int32_t)sqlite_int(sqlite, statement, ATTEMPT);
    job->lease_until_ms = sqlite_int(sqlite, statement, LEASE_UNTIL);
    job->kills = (int32_t)sqlite_int(sqlite, statement, KILLS);
    job->spool_bytes = sqlite_int(sqlite, statement, SPOOL);
    bool is_state = state >= 0 && state < JOB_STATES;
    job->state = is_state ? (enum job_state)state : JOB_FAILED;
    return is_state && read_bytes(sqlite, statement, ID, job->id.bytes, JOB_ID_BYTES) &&
           read_bytes(sqlite, statement, KEY_DIGEST, row->key_digest, JOB_DIGEST_BYTES) &&
           sqlite_text(sqlite, statement, OWNER, job->owner, sizeof job->owner);
}

enum error queue__store_read_row(struct sqlite *sqlite, int statement, struct store_row *row,
                                 struct failure *failure)
{
    struct job *job = &row->job;
    memset(&job->outcome, 0, sizeof job->outcome);
    bool is_whole = read_state(sqlite, statement, row) && read_answer(sqlite, statement, job) &&
                    read_outcome(sqlite, statement, &job->outcome) &&
                    read_callback(sqlite, statement, &job->callback);
    size_t bytes;
    const uint8_t *task = sqlite_blob(sqlite, statement, TASK, &bytes);
    row->is_readable =
        is_whole && task && job_task_read(task, bytes, &job->task, failure) == ERROR_NONE;
    if (row->is_readable)
        return ERROR_NONE;
    job->task = (struct job_task){.method = NULL};
    return failure_set(failure, ERROR_INTERNAL,
                       "The job was accepted by another version of the daemon, and this one cannot "
                       "read it.");
}

/* ---- Kinds ---- */

static void write_kind(const struct method *method, enum precision precision,
                       char kind[STORE_KIND_BYTES])
{
    snprintf(kind, STORE_KIND_BYTES, "%s/%s", method->name, precision_name(precision));
}

void queue__store_write_kind(const struct job_task *task, char kind[STORE_KIND_BYTES])
{
    write_kind(task->method, task->precision, kind);
}

int64_t queue__store_kind_n_max(const struct store_claim *claim, const char *kind)
{
    char name[STORE_KIND_BYTES];
    for (int i = 0; i < method_count(); i++) {
        for (int precision = 0; precision < PRECISION_COUNT; precision++) {
            write_kind(method_at(i), (enum precision)precision, name);
            if (strcmp(name, kind) == 0)
                return claim->n_max[i][precision];
        }
    }
    return 0;
}
