/* bench/host/program.h: what the bench programs of the host engine's methods share: how they end
 * with a message, what PRECISION may be, memory that begins at a page, numbers of either precision,
 * methods and teams, and medians. One thread. */
#ifndef BENCH_HOST_PROGRAM_H
#define BENCH_HOST_PROGRAM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/choices.h"
#include "base/clock.h"
#include "base/datatype.h"
#include "gpu/host/base/host.h"
#include "gpu/host/base/team.h"

#define ALIGN_BYTES 4096

static inline _Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(2);
}

static inline enum precision precision_of(const char *argument)
{
    int place = choices_find("fp32|fp64", argument);
    if (place < 0)
        die("PRECISION is fp32 or fp64");
    return place == 0 ? PRECISION_FP32 : PRECISION_FP64;
}

/* Zeroed; never NULL; kept until the program ends. */
static inline void *take(int64_t bytes)
{
    int64_t rounded = (bytes + ALIGN_BYTES) / ALIGN_BYTES * ALIGN_BYTES;
    void *memory = aligned_alloc(ALIGN_BYTES, (size_t)rounded);
    if (!memory)
        die("out of memory");
    memset(memory, 0, (size_t)rounded);
    return memory;
}

static inline void store(enum precision precision, void *to, int64_t i, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)to)[i] = (float)value;
    else
        ((double *)to)[i] = value;
}

static inline double load(enum precision precision, const void *from, int64_t i)
{
    return precision == PRECISION_FP32 ? (double)((const float *)from)[i]
                                       : ((const double *)from)[i];
}

static inline const struct host_method *host_method_of(const char *name, enum precision precision)
{
    return host_method_at((uint32_t)method_index(method_find(name)), precision);
}

/* Of so many threads, the caller's own among them. */
static inline struct host_team *team_of(int threads)
{
    struct failure failure;
    struct host_team *team = NULL;
    if (host_team_create(threads - 1, 0, &team, &failure) != ERROR_NONE)
        die(failure.detail);
    return team;
}

static inline int program_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The shortest first; returns the median. */
static inline double sort_times(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, program_compare);
    return times[count / 2];
}

/* Of one thread (CLOCK_THREAD_CPUTIME_ID), or of the process. */
static inline uint64_t processor_ns(clockid_t whose)
{
    struct timespec time;
    if (clock_gettime(whose, &time) != 0)
        die("no clock");
    return (uint64_t)time.tv_sec * CLOCK_S + (uint64_t)time.tv_nsec;
}

#endif
