/* tests/unit/gpu/host/child.h: an engine process over a bed: started, waited for, ended. One
 * thread. */
#ifndef TESTS_UNIT_GPU_HOST_CHILD_H
#define TESTS_UNIT_GPU_HOST_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "tests/unit/gpu/host/bed.h"

#define GPUTEST_ARGUMENTS_MAX 8

struct gputest_child {
    pid_t pid;
    int control; /* our end of the socket; -1: closed */
};

/* The path of a program of the same build as this test: `name` in one of the folders above it.
 * Fails the test when there is none. */
void gputest_child_program(const char *name, char *path, size_t size);

/* arguments end with NULL, GPUTEST_ARGUMENTS_MAX at most. log_fd: where it logs; -1: with the test.
 */
void gputest_child_start(struct gputest_child *child, const struct gputest_bed *bed,
                         const char *path, const char *const *arguments, int log_fd);
/* What `ready` says then, ENGINE_STARTING when it still says nothing or the process has ended. */
enum engine_ready gputest_child_wait_ready(const struct gputest_child *child,
                                           const struct gputest_bed *bed, int timeout_ms);
/* The exit status as waitpid has it; -1 when it did not end in time (and is killed). */
int gputest_child_wait(struct gputest_child *child, int timeout_ms);
/* Closes the pipe, as the front does, and waits. */
int gputest_child_end(struct gputest_child *child, int timeout_ms);

#endif
