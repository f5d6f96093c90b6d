/* tests/unit/queue/jobs/bed.h: jobs, and stores of a temporary folder or of a disk in memory. */
#ifndef TESTS_UNIT_QUEUE_JOBS_BED_H
#define TESTS_UNIT_QUEUE_JOBS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "queue/jobs/store_sqlite.h"
#include "tests/sim/disk.h"
#include "tests/sim/vfs.h"

#define must(call)                                                                                 \
    do {                                                                                           \
        struct failure failure_ = {.code = ERROR_NONE};                                            \
        struct failure *failure = &failure_;                                                       \
        if ((call) != ERROR_NONE)                                                                  \
            fail_msg("%s: %s", #call, failure->detail);                                            \
    } while (0)

struct bed {
    char folder[64];
    struct store *store;
};

void bed_open(struct bed *bed); /* of a new temporary folder */
void bed_reopen(struct bed *bed);
void bed_close(struct bed *bed);                       /* removes the folder */
void bed_sql(const struct bed *bed, const char *text); /* on its file, while the store is closed */

/* lu in FP64, one matrix of order n, body and result inline or in the spool by their size. */
struct job_task bed_task(int64_t n);
/* Of owner "a", accepted at 1000, expires at 5000. number makes its id. The body's bytes are bed's,
 * until the next call. */
struct store_new bed_new(int number, int64_t n);
struct job_id bed_id(int number);
/* Of everything, until 2000. */
struct store_claim bed_claim(int64_t now_ms);

#endif
