/* base/log.h: one JSON object a line on stderr, or plain text for people.
 *
 * Raw client text never goes into a log line unescaped; bodies never do at all.
 * Threads: any; one line is one write(2).
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_DEBUG,
    LOG_INFO,
    LOG_WARNING,
    LOG_ERROR
};
enum log_format {
    LOG_JSON,
    LOG_TEXT
};

/* Once, before other threads start. path NULL: stderr. false when path cannot be opened. */
bool log_open(enum log_level min, enum log_format format, const char *program, const char *path);
/* From any thread. */
void log_set_level(enum log_level min);
/* Opens path anew (SIGHUP after a rotation). Does nothing on stderr. */
void log_reopen(void);

/* Fields come as triples before a closing NULL: log_line(LOG_INFO, "engine started",
 * "pid", LOG_I64, (int64_t)pid, "name", LOG_STR, name, NULL). Message and names are literals. */
enum log_kind {
    LOG_STR,
    LOG_I64,
    LOG_F64
};
void log_line(enum log_level level, const char *message, ...);
bool log_wanted(enum log_level level);

#endif
