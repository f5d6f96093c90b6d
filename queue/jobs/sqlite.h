/* queue/jobs/sqlite.h: a database of SQLite's and its prepared statements. The only door to SQLite.
 *
 * What a store needs and no more: durable transactions, statements by number, errors in our words.
 * Every failure but a broken constraint is one of the disk, or as bad: the database takes nothing
 * more (sqlite_is_broken) until it is opened anew.
 *
 * Threads: one at a time. Every call may block for as long as the disk takes.
 */
#ifndef QUEUE_JOBS_SQLITE_H
#define QUEUE_JOBS_SQLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sqlite;

/* Makes the file if it is missing. vfs: NULL is the system's. STORE_FAILED. */
ERROR_MUST_CHECK enum error sqlite_open(const char *path, const char *vfs, bool no_sync,
                                        struct sqlite **sqlite, struct failure *failure);
/* One that is broken leaves its log as it is: what lies there is looked at when it is opened. */
void sqlite_close(struct sqlite **sqlite);
bool sqlite_is_broken(const struct sqlite *sqlite);

/* Does several, with ";" between, of which none returns rows. */
ERROR_MUST_CHECK enum error sqlite_do(struct sqlite *sqlite, const char *text,
                                      struct failure *failure);
/* PRAGMA NAME, of a number. */
ERROR_MUST_CHECK enum error sqlite_pragma(struct sqlite *sqlite, const char *name, int64_t *value,
                                          struct failure *failure);

/* texts[i], borrowed, is statement i. Each is prepared when it is first bound: to prepare all of
 * them takes longer than to open the file. */
void sqlite_set_statements(struct sqlite *sqlite, const char *const *texts, int count);
/* Begins statement `number` anew with its parameters from ?1 on, one for each letter of types:
 * i int64_t; t const char *; b const void * and size_t, where NULL is NULL. Borrowed until the
 * statement is reset, or has no more rows. */
void sqlite_bind(struct sqlite *sqlite, int number, const char *types, ...);
/* Of a statement that is bound. *row: there is one, whose columns can be read until the next call
 * for this statement. INTERNAL: it breaks a constraint, and has done nothing. */
ERROR_MUST_CHECK enum error sqlite_step(struct sqlite *sqlite, int number, bool *row,
                                        struct failure *failure);
/* Bind, for a statement that returns no rows, or whose rows are not wanted, and step. */
ERROR_MUST_CHECK enum error sqlite_run(struct sqlite *sqlite, int number, struct failure *failure);
void sqlite_reset(struct sqlite *sqlite, int number);

int64_t sqlite_int(struct sqlite *sqlite, int number, int column);
/* NULL: the column is NULL. Lent until the next call for this statement. */
const void *sqlite_blob(struct sqlite *sqlite, int number, int column, size_t *bytes);
/* NULL is "". false: it does not fit. */
ERROR_MUST_CHECK bool sqlite_text(struct sqlite *sqlite, int number, int column, char *text,
                                  size_t size);
int64_t sqlite_changes(struct sqlite *sqlite); /* rows that the last statement changed */
int64_t sqlite_last_id(struct sqlite *sqlite); /* of the last row that was inserted */

ERROR_MUST_CHECK enum error sqlite_begin(struct sqlite *sqlite, struct failure *failure);
ERROR_MUST_CHECK enum error sqlite_commit(struct sqlite *sqlite, struct failure *failure);
void sqlite_rollback(struct sqlite *sqlite);

#endif
