/* tests/simt/machine.hh: what simt.cc and launch.cc share: the fibers of one block.
 *
 * Each thread that runs a block owns a machine, and no other looks at it. Private to the stand-in.
 */
#ifndef TESTS_SIMT_MACHINE_HH
#define TESTS_SIMT_MACHINE_HH

#include "simt.h"

#include <stddef.h>

#include "sanitizers.h"

#define STACK_BYTES (256 * 1024)
#define PAGE_BYTES 4096
/* Stacks that began at the same place in a page would share the few cache lines of that place. */
#define STACK_STEP_BYTES (9 * 64)
#define REPORT_BYTES 4096
#define WARPS_MAX (SIMT_THREADS_MAX / SIMT_WARP)

enum state {
    READY,
    IN_WARP,
    IN_BLOCK,
    IN_CLUSTER,
    ENDED
};

/* Small, because each round looks at all of them. */
struct fiber {
    uint3 thread;
    simt_copies copies;
    unsigned char *stack;
    void *top;  /* of the stack, while it does not run */
    void *tsan; /* its name to ThreadSanitizer */
    enum state state;
    bool waited;    /* for the launch before this one */
    simt_call call; /* in which it waits */
    uint32_t mask;
    bool orders;
    simt_words given, got;
    simt_party *party;
    double factors[2][6]; /* of its last two simt_multiply_add: of a 4, of b 2 */
    int factors_turn;
};

struct warp {
    uint32_t all, waiting, ended;
    char tokens[SIMT_WARP];            /* a group's order is that of its first lane's */
    simt_party parties[SIMT_WARP + 1]; /* free without readers */
};

struct machine {
    fiber fibers[SIMT_THREADS_MAX];
    warp warps[WARPS_MAX];
    int order[SIMT_THREADS_MAX];
    simt_copy copies[SIMT_THREADS_MAX][SIMT_COPIES_MAX]; /* the fibers' */
    int threads, ended, arrived;
    int abroad;       /* fibers that wait for other blocks of the cluster */
    int rank;         /* in the cluster; -1: none */
    bool overlaps;    /* may the launch begin before the one ahead of it has ended? */
    simt_words votes; /* in the block's meeting */
    bool moved;       /* did some fiber do more than rest? */
    bool changed;     /* or what those that rest may wait for? */
    void *scheduler;  /* the top of its stack */
    void *tsan;
    fiber *running;
    void (*body)(const void *closure);
    const void *closure;
    cudaError_t status;
    uint32_t random;
    char began, ended_all, met; /* tokens: of a block's start, its end, its barriers */
    char report[REPORT_BYTES];
};

/* The calling thread's; NULL until it has launched. */
extern thread_local machine *simt_machine;
/* Where kernels find their dynamic shared memory. */
extern thread_local unsigned char cuda__memory[SIMT_SHARED_MAX];

/* Fibers for the block's threads; false: no memory. */
bool simt_make_fibers(machine *m, int threads);
/* After a failure: what the fibers were at is forgotten. */
void simt_forget_fibers(machine *m);
/* Runs block number `index` of the grid to its end, or to what m->status says. */
void simt_run_block(machine *m, const cudaLaunchConfig_t *config, uint64_t index);
/* The order of the threads, and of the blocks. */
enum simt_order simt_order_now(void);

/* The fiber that runs is at fault: says where, and does not return. */
void simt_on_fault(void);

/* ---- Clusters (launch.cc) ---- */

/* Waits for the other blocks of the cluster that have not ended; false: one has failed. token: of
 * their order in memory. */
bool simt_meet_cluster_blocks(void);
char *simt_cluster_token(void);
bool simt_cluster_failed(void);
/* The dynamic shared memory of a block of the cluster; NULL: there is none of that rank. */
unsigned char *simt_cluster_memory(unsigned rank);

/* The calling thread's static shared memory that the kernel may use becomes NaN. */
void simt_spoil_static(const void *kernel);

#endif
