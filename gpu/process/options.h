/* gpu/process/options.h: the command line of an engine process.
 *
 * A flag is a row: its name, whether a value follows, the function that takes it, and what --help
 * says of it. --help, --log-format and --log-level are every engine's; an engine adds rows of its
 * own.
 *
 * Threads: main alone, before any other thread starts.
 */
#ifndef GPU_PROCESS_OPTIONS_H
#define GPU_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "gpu/process/fault.h"

#define PROCESS_FLAGS_MAX 16

struct process_flag {
    const char *name; /* without its dashes; NULL ends a table */
    bool has_value;
    /* text: the value; NULL for a flag without one. false: refused, and logged. */
    bool (*parse)(const char *text, void *settings);
    const char *help; /* a flag with a value: begins with what stands for it */
};

struct process_logging {
    enum log_format format;
    enum log_level level;
};

/* What the two rows below set; an engine that has them begins its settings with it. */
struct process_test_flags {
    bool self_test, has_faults;
    struct process_faults faults;
};

/* For {"self-test", false, ...} and {"fault", true, ...}, of a struct that begins with those. */
bool process_parse_self_test(const char *text, void *settings);
#ifdef ENGINE_FAULTS
bool process_parse_fault(const char *text, void *settings);
#endif

/* Parses the whole line; what is wrong with it is logged, and false comes back. --help prints the
 * flags and ends the process with 0. `flags` are the engine's own, at most PROCESS_FLAGS_MAX;
 * `settings` goes to their functions. */
bool process_parse(int argc, char **argv, const struct process_flag *flags, void *settings,
                   struct process_logging *logging);

/* 0 .. max, in decimal; else complaint is logged, and false comes back. */
bool process_parse_number(const char *text, int64_t max, const char *complaint, int64_t *number);

#endif
