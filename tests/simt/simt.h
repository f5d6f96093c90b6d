/* tests/simt/simt.h: the SIMT stand-in: runs CUDA kernels on a CPU, for tests.
 *
 * The sources in gpu/cuda are compiled by g++ as they are: `-Itests/simt` comes first, so that the
 * headers here are found in the place of the toolkit's and of gpu/cuda/base/ptx.cuh, and
 * device.cuh, which is included by force, gives the words of the device language a meaning.
 *
 * The threads of a block are fibers of the thread that launches. One runs until it waits for
 * others: at a barrier, or where a warp's lanes exchange values. Blocks run one after the other,
 * but for those of a cluster, each of which has a thread of its own. So a lane is as far ahead of
 * its warp as the language allows, and what depends on the order shows: SIMT_ORDER in the
 * environment, or simt_set_order(), has the threads run forward, backward or shuffled, or each warp
 * as far ahead of the others as it can.
 *
 * Checked: lanes that wait for each other for ever, with different masks or at different calls; a
 * value asked of a lane that takes no part; a thread that ends without having waited for the launch
 * before its own, where that may not have ended; shared memory beyond what the launch asked for
 * (with AddressSanitizer). Dynamic shared memory begins as NaN, and static in the first block of a
 * launch and in every block of a cluster; else it is what the block before left in it. Asynchronous
 * copies are made as late as allowed, but those that a gate is reported of when it is reported.
 * Built with ThreadSanitizer, the threads of a block are threads to it, which only __syncwarp,
 * __syncthreads, and what ptx.cuh has for threads that wait for others, order: it finds races on
 * shared memory. Shuffles and votes order nothing, as in the language. Streams do what they are
 * given at once, or, by simt_set_streams(), as late as others allow or as early, in the order that
 * events demand: what two streams do without an event between them shows in the answer. Not
 * modelled: blocks that wait for each other, the device's own roundings of what is not IEEE, time.
 *
 * What goes wrong is printed, kept for simt_report(), and ends the launch with
 * cudaErrorLaunchFailure, or cudaErrorIllegalAddress, which every later call returns too; so does a
 * launch that finds no memory when it is late. Threads: any may launch; each has its own shared
 * memory.
 */
#ifndef TESTS_SIMT_SIMT_H
#define TESTS_SIMT_SIMT_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_WARP 32
#define SIMT_THREADS_MAX 1024
#define SIMT_CLUSTER_MAX 16 /* blocks */
#define SIMT_SHARED_MAX (227 * 1024)
#define SIMT_COPIES_MAX 256           /* of a thread under way; then the first are made */
#define SIMT_SHARED_USUAL (48 * 1024) /* more only after cudaFuncSetAttribute */
#define SIMT_CLOSURE_MAX 4096         /* bytes of a kernel and its parameters */

enum simt_order {
    SIMT_FORWARD,
    SIMT_BACKWARD,
    SIMT_SHUFFLED, /* anew in each round, from a seed */
    SIMT_AHEAD,    /* warp after warp until it waits for others, from one that a seed draws */
};

/* Of all launches to come. Not while one is running. */
void simt_set_order(enum simt_order order, uint32_t seed);

/* When a stream does what it is given; but the default stream does it at once. */
enum simt_streams {
    SIMT_STREAMS_AT_ONCE,
    SIMT_STREAMS_LATE,  /* when somebody waits for it: the host, or a stream for an event */
    SIMT_STREAMS_EARLY, /* the same, but others do what they may before any other step */
};

/* From now on; all is done by then. But at once, streams want one thread that uses them. */
void simt_set_streams(enum simt_streams how);

/* What the calling thread's last failed launch said, or "". */
const char *simt_report(void);

/* Device memory and pinned memory that is not yet freed, in pieces. */
int64_t simt_allocations(void);

/* What the device has from now on; 1 and SIMT_SHARED_MAX as a rule. Not while a kernel runs. */
void simt_set_multiprocessors(int count);
void simt_set_shared(int bytes);

/* Whether others have all of the device's memory that is not ours yet. */
void simt_fill_memory(bool full);

/* Of cuBLAS's loads to come: the machine has none. */
void simt_hide_library(bool hidden);

/* ---- For the runtime's calls ---- */

/* What a call returns: the status it found, unless the context is lost. */
cudaError_t simt_say(cudaError_t status);

/* Work for a stream, by a copy of the context. */
void simt_put(cudaStream_t stream, void (*work)(const void *context), const void *context,
              size_t bytes);
/* Until the stream, or all, have done what they were given. */
void simt_await(cudaStream_t stream);
void simt_await_all(void);

/* ---- For dlfcn.h ---- */

/* The library, or NULL; and a function of it. */
void *simt_library(const char *name);
void *simt_library_function(const char *name);

/* ---- For device.cuh ---- */

/* An asynchronous copy that is not made yet. */
struct simt_copy {
    void *to;
    const void *from;
    size_t bytes;
};

struct simt_copies {
    int count;
    struct simt_copy *copies; /* room for SIMT_COPIES_MAX */
};

#ifdef __cplusplus
/* Of the CUDA thread that runs. */
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;
extern thread_local struct simt_copies *simt_copies_here;
#endif

struct simt_words {
    uint64_t word[2];
};

/* What the lanes of one meeting gave; 0 of those that had ended. */
struct simt_party {
    struct simt_words given[SIMT_WARP];
    uint32_t lanes;
    int readers; /* lanes that have not gone on yet */
};

/* Where the device code calls. */
struct simt_call {
    const char *name, *file;
    int line;
};

/* Waits for the lanes in `mask`, which make the same call. Returns what each of them gave, lent
 * until the lane's next call. orders: memory too, as a barrier does. */
const struct simt_party *simt_meet(struct simt_call call, uint32_t mask, struct simt_words given,
                                   bool orders);
/* The tensor cores' cuda__multiply_add (gpu/cuda/base/ptx.cuh), for which all lanes of the warp
 * meet. */
void simt_multiply_add(struct simt_call call, double *c, const double *a, const double *b);
/* Waits for the block's threads that have not ended; returns how many gave true, and all. */
struct simt_words simt_meet_block(struct simt_call call, bool given);
/* Waits for all threads of the cluster that have not ended. */
void simt_meet_cluster(struct simt_call call);
/* The same place in the shared memory of another block of the cluster. */
void *simt_of_block(struct simt_call call, void *shared, unsigned rank);
/* Lets the others run, and those of the cluster's other blocks; ends the launch if one of them has
 * failed, or if all threads of a block without a cluster do nothing but this. */
void simt_pause_cluster(struct simt_call call);
/* What threads look at between such pauses has changed. */
void simt_note_change(void);
/* The thread has waited for the launch before this one. */
void simt_note_wait(void);
/* Ends the launch: a lane asks for what there is not. */
void simt_fail(struct simt_call call, const char *problem);
/* Lets the others run. */
void simt_pause(void);

/* Runs body(closure) once for each thread of the grid, when it is the stream's turn: by a copy of
 * the closure. */
cudaError_t simt_launch(const cudaLaunchConfig_t *config, const void *kernel,
                        void (*body)(const void *closure), const void *closure, size_t bytes);

/* ---- Between simt.cc and runtime.c ---- */

/* The dynamic shared memory that a kernel may have, in bytes. */
size_t simt_shared_allowed(const void *kernel);
/* A status that all calls return, once the context is lost. */
cudaError_t simt_lost(void);
void simt_lose(cudaError_t status);

#ifdef __cplusplus
}
#endif

#endif
