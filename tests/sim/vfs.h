/* tests/sim/vfs.h: SQLite's way to the files of a sim_disk (tests/sim/disk.h). One connection to a
 * database at a time. */
#ifndef TESTS_SIM_VFS_H
#define TESTS_SIM_VFS_H

#include "tests/sim/disk.h"

struct sim_vfs;

/* Registers it, under a name of its own; borrows the disk. */
struct sim_vfs *sim_vfs_create(struct sim_disk *sim);
void sim_vfs_destroy(struct sim_vfs **vfs);
const char *sim_vfs_name(const struct sim_vfs *vfs); /* lent */

#endif
