/* tests/sim/disk.h: a disk in memory that loses what was not synced when its power goes.
 *
 *     struct sim_disk *sim = sim_disk_create(seed);
 *     spool_create("/spool", sim_disk_of(sim), ...);       files by queue/jobs/disk.h
 *     store_sqlite_open({.vfs = sim_vfs_name(vfs), ...})   the same files, by tests/sim/vfs.h
 *     sim_disk_cut_after(sim, 17);   the 17th step from here on, and all after it, fail with EIO
 *     ... work, until it fails; destroy what was open ...
 *     sim_disk_restart(sim);         what has survived is there again
 *
 * Of the writes that were not synced each restart drops all, keeps all, keeps some, or keeps some
 * of their sectors (512 bytes): so they are lost, torn and reordered. Names that were not synced
 * survive up to some step. A sync that is made to fail forgets what it should have written: it is
 * read as it was written, a later sync succeeds, and a power cut takes it away (fsyncgate).
 *
 * The same seed and the same steps give the same disk. One thread at a time.
 */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/jobs/disk.h"

struct sim_disk;

struct sim_disk *sim_disk_create(uint64_t seed);
void sim_disk_destroy(struct sim_disk **sim);
struct disk *sim_disk_of(struct sim_disk *sim); /* lent */

void sim_disk_cut_after(struct sim_disk *sim, int64_t steps); /* 0: never */
bool sim_disk_is_off(const struct sim_disk *sim);
/* The power is on again, whether it had gone or goes now. No file may be open. */
void sim_disk_restart(struct sim_disk *sim);
/* The sync that comes after so many fails, once; -1: none does. */
void sim_disk_fail_sync(struct sim_disk *sim, int syncs);
/* Files may grow by so many bytes more; -1: as much as they like. */
void sim_disk_set_room(struct sim_disk *sim, int64_t bytes);
/* A disk that says it has synced and has not: a control must lose on it. */
void sim_disk_lie(struct sim_disk *sim, bool lies);

/* ---- For tests/sim/vfs.c ---- */

bool sim_disk_has(struct sim_disk *sim, const char *path);
int sim_disk_truncate(struct disk_file *file, int64_t bytes);

/* ---- Numbers ---- */

/* The next of a seed's (splitmix64). */
uint64_t sim_next(uint64_t *seed);
/* 0 .. bound - 1. */
int64_t sim_below(uint64_t *seed, int64_t bound);

#endif
