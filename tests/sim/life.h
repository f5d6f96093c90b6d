/* tests/sim/life.h: the lives of jobs in one process, by a seed: two runners, a store and a spool
 * on a disk that loses what was not synced, clients that post, retry, cancel and read.
 *
 * Time, order, faults and crashes come from the seed alone. At the end the world heals, and then
 * must hold: every job that was acknowledged has ended, once, with the right result; a job that
 * was cancelled is gone; past expiry nothing is left.
 */
#ifndef TESTS_SIM_LIFE_H
#define TESTS_SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What is left out, to see that it is missed. */
enum life_mutant {
    LIFE_WHOLE,
    LIFE_NO_FENCE,       /* the store finishes a job for any attempt */
    LIFE_NO_SYNC,        /* the disk says it has synced, and has not */
    LIFE_NO_FOLDER_SYNC, /* the spool does not sync its folders */
    LIFE_MUTANTS
};

/* Returns NULL, or what went wrong, until the next call. trace: NULL for none. */
const char *life_run(uint64_t seed, enum life_mutant mutant, FILE *trace);

#endif
