/* queue/jobs/sqlite.c: see sqlite.h.
 *
 * The file is in WAL mode: a commit appends the pages that have changed to PATH-wal and syncs that,
 * once (synchronous=FULL); now and then, within a commit, the pages go from there into the file,
 * and the log begins anew. It is not shortened, for writing over what is there is faster. Others
 * may read meanwhile, so that a backup needs no pause: hence SQLite's locks, and PATH-shm, which is
 * mapped.
 */
#include "queue/jobs/sqlite.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MAX 64
#define BUSY_MS 1000 /* how long another process may hold the file: no other one should write */

struct sqlite {
    sqlite3 *database;
    bool broken;
    const char *const *texts;
    int count;
    sqlite3_stmt *statements[STATEMENTS_MAX]; /* NULL: not used yet */
    sqlite3_stmt *begin, *commit;             /* likewise */
};

static enum error fail(struct sqlite *sqlite, struct failure *failure)
{
    int code = sqlite->database ? sqlite3_extended_errcode(sqlite->database) : SQLITE_NOMEM;
    if ((code & 255) == SQLITE_CONSTRAINT)
        return failure_set(failure, ERROR_INTERNAL, "The store of jobs has such a row already.");
    sqlite->broken = true;
    switch (code & 255) {
    case SQLITE_FULL:
        return failure_set(failure, ERROR_STORE_FAILED, "The disk that keeps the jobs is full.");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The file of jobs is damaged, or is none; put a backup in its place, or "
                           "move it away.");
    case SQLITE_BUSY:
        return failure_set(failure, ERROR_STORE_FAILED,
                           "Another process writes to the file of jobs; only the daemon may.");
    case SQLITE_NOMEM:
        return failure_set(failure, ERROR_STORE_FAILED, "Out of memory for the store of jobs.");
    default:
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The disk that keeps the jobs does not take them: %s (%d).",
                           sqlite3_errstr(code), code);
    }
}

/* ---- Open and close ---- */

/* secure_delete=FAST: what is deleted is overwritten where that costs no page. */
static const char settings[] = "PRAGMA journal_mode=WAL;"
                               "PRAGMA mmap_size=0;"
                               "PRAGMA temp_store=MEMORY;"
                               "PRAGMA secure_delete=FAST;"
                               "PRAGMA trusted_schema=OFF;"
                               "PRAGMA cache_size=-16384;"
                               "PRAGMA wal_autocheckpoint=4096";

enum error sqlite_open(const char *path, const char *vfs, bool no_sync, struct sqlite **sqlite,
                       struct failure *failure)
{
    *sqlite = NULL;
    struct sqlite *made = calloc(1, sizeof *made);
    if (!made)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the store of jobs.");
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
    enum error error = ERROR_NONE;
    if (sqlite3_open_v2(path, &made->database, flags, vfs) != SQLITE_OK)
        error = fail(made, failure);
    if (error == ERROR_NONE) {
        sqlite3_busy_timeout(made->database, BUSY_MS);
        error = sqlite_do(made, settings, failure);
    }
    if (error == ERROR_NONE)
        error = sqlite_do(made, no_sync ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL",
                          failure);
    if (error != ERROR_NONE) {
        sqlite_close(&made);
        return error;
    }
    *sqlite = made;
    return ERROR_NONE;
}

void sqlite_close(struct sqlite **sqlite)
{
    struct sqlite *old = *sqlite;
    if (!old)
        return;
    *sqlite = NULL;
    for (int i = 0; i < old->count; i++)
        sqlite3_finalize(old->statements[i]);
    sqlite3_finalize(old->begin);
    sqlite3_finalize(old->commit);
    if (old->broken && old->database)
        sqlite3_db_config(old->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int status = sqlite3_close(old->database);
    assert(status == SQLITE_OK);
    free(old);
}

bool sqlite_is_broken(const struct sqlite *sqlite)
{
    return sqlite->broken;
}

enum error sqlite_do(struct sqlite *sqlite, const char *text, struct failure *failure)
{
    if (sqlite3_exec(sqlite->database, text, NULL, NULL, NULL) == SQLITE_OK)
        return ERROR_NONE;
    return fail(sqlite, failure);
}

enum error sqlite_pragma(struct sqlite *sqlite, const char *name, int64_t *value,
                         struct failure *failure)
{
    char text[64];
    snprintf(text, sizeof text, "PRAGMA %s", name);
    sqlite3_stmt *statement = NULL;
    bool is_good = sqlite3_prepare_v2(sqlite->database, text, -1, &statement, NULL) == SQLITE_OK &&
                   sqlite3_step(statement) == SQLITE_ROW;
    enum error error = is_good ? ERROR_NONE : fail(sqlite, failure);
    if (is_good)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return error;
}

/* ---- Statements ---- */

void sqlite_set_statements(struct sqlite *sqlite, const char *const *texts, int count)
{
    assert(sqlite->count == 0 && count <= STATEMENTS_MAX);
    sqlite->texts = texts;
    sqlite->count = count;
}

/* NULL: it cannot be prepared, and the database says why. */
static sqlite3_stmt *prepared(struct sqlite *sqlite, const char *text, sqlite3_stmt **statement)
{
    if (!*statement)
        (void)sqlite3_prepare_v3(sqlite->database, text, -1, SQLITE_PREPARE_PERSISTENT, statement,
                                 NULL);
    return *statement;
}

/* NULL: as above; until it is bound. */
static sqlite3_stmt *statement_of(struct sqlite *sqlite, int number)
{
    assert(number >= 0 && number < sqlite->count);
    return sqlite->statements[number];
}

static int bind_blob(sqlite3_stmt *statement, int place, const void *data, size_t bytes)
{
    if (!data)
        return sqlite3_bind_null(statement, place);
    return sqlite3_bind_blob64(statement, place, data, bytes, SQLITE_STATIC);
}

void sqlite_bind(struct sqlite *sqlite, int number, const char *types, ...)
{
    assert(number >= 0 && number < sqlite->count);
    sqlite3_stmt *statement = prepared(sqlite, sqlite->texts[number], &sqlite->statements[number]);
    if (!statement)
        return; /* sqlite_step fails */
    sqlite3_reset(statement);
    va_list values;
    va_start(values, types);
    for (int place = 1; types[place - 1] != '\0'; place++) {
        int status = SQLITE_MISUSE;
        const void *data;
        switch (types[place - 1]) {
        case 'i':
            status = sqlite3_bind_int64(statement, place, va_arg(values, int64_t));
            break;
        case 't':
            status = sqlite3_bind_text(statement, place, va_arg(values, const char *), -1,
                                       SQLITE_STATIC);
            break;
        case 'b':
            data = va_arg(values, const void *);
            status = bind_blob(statement, place, data, va_arg(values, size_t));
            break;
        default:
            break;
        }
        assert(status == SQLITE_OK); /* static data: nothing is allocated */
    }
    va_end(values);
}

enum error sqlite_step(struct sqlite *sqlite, int number, bool *row, struct failure *failure)
{
    sqlite3_stmt *statement = statement_of(sqlite, number);
    int status = statement ? sqlite3_step(statement) : SQLITE_ERROR;
    *row = status == SQLITE_ROW;
    if (*row)
        return ERROR_NONE;
    enum error error = status == SQLITE_DONE ? ERROR_NONE : fail(sqlite, failure);
    sqlite3_reset(statement);
    return error;
}

enum error sqlite_run(struct sqlite *sqlite, int number, struct failure *failure)
{
    bool row;
    enum error error = sqlite_step(sqlite, number, &row, failure);
    if (row)
        sqlite_reset(sqlite, number);
    return error;
}

void sqlite_reset(struct sqlite *sqlite, int number)
{
    sqlite3_reset(statement_of(sqlite, number));
}

int64_t sqlite_int(struct sqlite *sqlite, int number, int column)
{
    return sqlite3_column_int64(statement_of(sqlite, number), column);
}

const void *sqlite_blob(struct sqlite *sqlite, int number, int column, size_t *bytes)
{
    sqlite3_stmt *statement = statement_of(sqlite, number);
    const void *data = sqlite3_column_blob(statement, column);
    *bytes = data ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    bool is_empty = !data && sqlite3_column_type(statement, column) == SQLITE_BLOB;
    return is_empty ? "" : data;
}

bool sqlite_text(struct sqlite *sqlite, int number, int column, char *text, size_t size)
{
    sqlite3_stmt *statement = statement_of(sqlite, number);
    const unsigned char *data = sqlite3_column_text(statement, column);
    size_t length = data ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    if (length >= size)
        return false;
    if (length > 0)
        memcpy(text, data, length);
    text[length] = '\0';
    return true;
}

int64_t sqlite_changes(struct sqlite *sqlite)
{
    return sqlite3_changes64(sqlite->database);
}

int64_t sqlite_last_id(struct sqlite *sqlite)
{
    return sqlite3_last_insert_rowid(sqlite->database);
}

/* ---- Transactions ---- */

static enum error step_alone(struct sqlite *sqlite, const char *text, sqlite3_stmt **statement,
                             struct failure *failure)
{
    bool is_good = prepared(sqlite, text, statement) && sqlite3_step(*statement) == SQLITE_DONE;
    enum error error = is_good ? ERROR_NONE : fail(sqlite, failure);
    sqlite3_reset(*statement);
    return error;
}

enum error sqlite_begin(struct sqlite *sqlite, struct failure *failure)
{
    return step_alone(sqlite, "BEGIN IMMEDIATE", &sqlite->begin, failure);
}

enum error sqlite_commit(struct sqlite *sqlite, struct failure *failure)
{
    return step_alone(sqlite, "COMMIT", &sqlite->commit, failure);
}

void sqlite_rollback(struct sqlite *sqlite)
{
    for (int i = 0; i < sqlite->count; i++)
        sqlite3_reset(sqlite->statements[i]);
    if (sqlite3_get_autocommit(sqlite->database) == 0)
        sqlite3_exec(sqlite->database, "ROLLBACK", NULL, NULL, NULL);
}
