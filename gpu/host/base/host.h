/* gpu/host/base/host.h: what the files of the host engine share: a matrix's work, a method's row,
 * the registry.
 *
 * A method is one file, NAME.c, that is compiled for each precision (by_precision.h) and defines
 * `const struct host_method R(host_method_NAME)`. A worker thread calls run for one matrix at a
 * time and lends it scratch that no other thread touches. run never fails: what is wrong with a
 * matrix goes into its INFO. It never writes an input. It never allocates or locks, for it may be
 * left in the middle (stop.h); where it goes on for long without a step of the team it calls
 * host_stop_check. Its bits are a function of the matrix, n, m, precision and options alone, on one
 * CPU family.
 */
#ifndef GPU_HOST_BASE_HOST_H
#define GPU_HOST_BASE_HOST_H

#include <stdint.h>

#include "base/datatype.h"
#include "gpu/method.h"

struct host_progress;
struct host_team;

#define HOST_ALIGN_BYTES 64 /* of scratch, and of every array laid out in it */
#define HOST_GROUP_MAX 16   /* matrices that a method takes at once, at most */
/* An array of so many bytes is larger than caches are, and is written past them where whole lines
 * are. It has no part in an answer's bits. */
#define HOST_PAST_CACHES_BYTES (INT64_C(16) << 20)

/* One matrix: its part of every tensor, aligned to the element only. NULL: absent or unwanted, or
 * RESIDUAL_LEFT or _RIGHT, which engine/job.c measures when run is done. */
struct host_matrix {
    const void *inputs[METHOD_INPUTS_MAX];
    void *outputs[METHOD_OUTPUTS_MAX];
    int64_t n, m;
    const int64_t *options;
    struct host_team *team;         /* may help; NULL: no helpers */
    struct host_progress *progress; /* takes reports; NULL: none are wanted */
    void *scratch; /* scratch_bytes() of them, aligned to HOST_ALIGN_BYTES, contents undefined */
};

/* What the matrices of a batch have in common. */
struct host_task {
    int64_t n, m;
    const int64_t *options;
    uint32_t inputs;  /* which there are: a bit each */
    uint32_t outputs; /* which every matrix wants */
    uint32_t wanted;  /* which any matrix wants */
};

/* A method in one precision. */
struct host_method {
    const char *name; /* the descriptor's */
    void (*run)(const struct host_matrix *matrix);
    /* The next three are NULL, or make the same answers, bit for bit, of 1 to group() matrices of
     * one order at once, which share the first one's scratch. `next` are those whose turn is next,
     * 0 or more: their numbers may be fetched, and nothing else. */
    void (*run_group)(const struct host_matrix *matrices, int count, const struct host_matrix *next,
                      int next_count);
    int (*group)(int64_t n, int64_t m); /* 1: run is to be called */
    /* predicted, group() > 1; NULL: by its operations, as of others */
    double (*group_matrix_ns)(int64_t n);
    /* -1 when it does not fit 64 bits */
    int64_t (*scratch_bytes)(int64_t n, int64_t m);
    /* NULL, or what is enough for a batch: no more than scratch_bytes. */
    int64_t (*task_scratch_bytes)(const struct host_task *task);
    /* Which code a matrix of order n takes: "host lapack getrf+getri". */
    const char *(*kernel)(int64_t n);
};

/* The row of method_at(index); NULL for an index or a precision outside the registry. */
const struct host_method *host_method_at(uint32_t index, enum precision precision);

#endif
