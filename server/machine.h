/* server/machine.h: what the machine has that defaults follow from; and what the process settles
 * with it before anything else.
 *
 * Threads: any; reads files.
 */
#ifndef SERVER_MACHINE_H
#define SERVER_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory that this process may use: the machine's, or a control group's limit. */
int64_t machine_memory_bytes(void);
/* The smallest memory limit of the control groups that `groups` names, in the form of
 * /proc/self/cgroup, below the folder `root` (/sys/fs/cgroup); INT64_MAX when there is none. */
int64_t machine_group_limit_bytes(const char *groups, const char *root);
/* An NVIDIA driver is loaded and its devices can be seen. */
bool machine_has_nvidia(void);

/* Processors that this process may use. */
int machine_cores(void);

/* First of all: fills descriptors 0, 1 and 2 where they are closed. */
void machine_hold_standard_descriptors(void);
/* Before other threads: how much free memory the allocator keeps. */
void machine_keep_free_memory(void);

#endif
