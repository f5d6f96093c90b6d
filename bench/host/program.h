/* bench/host/program.h: what the bench programs of the host engine's methods share: how they end
 * with a message, what PRECISION may be, and memory that begins at a page. One thread. */
#ifndef BENCH_HOST_PROGRAM_H
#define BENCH_HOST_PROGRAM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choices.h"
#include "base/datatype.h"

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

#endif
