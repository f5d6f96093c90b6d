/* gpu/cuda/engine/flight.h: one batch on the device, from SUBMITTED to DONE.
 *
 *      IDLE --launch--> WAITING --memory, if it takes any--> RUNNING
 *                       WAITING --refused, unwanted, or its launch failed--> IDLE
 *                       RUNNING --over, nothing unverified--> IDLE
 *                       RUNNING --over, some unverified--> RECOVERY --over--> IDLE
 *                       RUNNING --the same, and it has not the memory to recover one--> LACKING
 *                       LACKING --memory--> RECOVERY
 *                       LACKING --none to be had, unwanted, or its launch failed--> IDLE
 *                       RUNNING --over, the device asks for more--> RUNNING
 *                       RUNNING --over, it would go on but is unwanted--> IDLE
 *                       RUNNING, RECOVERY --over, residuals are wanted--> MEASURING --over--> IDLE
 *
 * A batch that needs a workspace takes it from the engine's pool and gives it back when it is over.
 * Where others have the memory it waits for it, as SUBMITTED still, and those behind it in the lane
 * that need some wait for their turn. What the pool can never give, for the launch or for recovery,
 * is ENGINE_OUT_OF_MEMORY before anything is launched.
 *
 * Recovery goes on in what the batch has, in parts where it must; it takes a larger block where one
 * is to be had at once and no batch of the lane waits. Where even one matrix needs more than it
 * has, it gives that back, so that no lane waits for memory with some in hand, reports to the front
 * that it `waits`, and comes before those that have not begun. One flight of a lane asks the pool
 * at a time, the first of its line: what the pool does for it no other one undoes. If the device
 * has no memory after all, the batch is ENGINE_OUT_OF_MEMORY.
 *
 * A flight is a slot of a lane's ring with what a batch needs on the device, made once: a stream,
 * so that batches overlap and end in any order, and the table of items. Small tables are read by
 * the kernels where the CPU has written them; larger ones, and those the kernels search, are copied
 * to device memory first, in the same stream. Inputs and outputs are read and written in the
 * arena.
 *
 * Completion: a small batch ends with a word in pinned memory that the stream writes behind the
 * kernel. Looking at it costs nothing; now and then the stream itself is asked, for a fault never
 * writes the word. For a large batch the stream alone is asked. A fatal status ends the process in
 * here; the front hears first that the context is lost. A batch that no client waits for
 * any more is not launched, and gets no further launch; what is on the device already ends there.
 * What a launcher that is called again says of the progress is reported to the front then.
 *
 * Threads: the lane's own. After create nothing is allocated but workspaces (pool.h), and nothing
 * waited for but the pool's freeing and the rest of a launch that failed.
 */
#ifndef GPU_CUDA_ENGINE_FLIGHT_H
#define GPU_CUDA_ENGINE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "gpu/cuda/engine/device.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/engine.h"
#include "gpu/process/fault.h"

enum cuda_flight_state {
    CUDA_FLIGHT_IDLE,
    CUDA_FLIGHT_WAITING,
    CUDA_FLIGHT_RUNNING,
    CUDA_FLIGHT_LACKING, /* memory to recover in; nothing of it is on the device */
    CUDA_FLIGHT_RECOVERY,
    CUDA_FLIGHT_MEASURING /* residuals of what the method has answered */
};

struct cuda_flight_memory; /* pinned: the word, the count of the unverified, the table of items */

/* Those that wait for memory: each takes a ticket, and they are served in turn. */
struct cuda_flight_line {
    uint64_t next, served;
};

/* What the flights of a lane share: constant, but for the lines. */
struct cuda_flight_lane {
    const struct cuda_device *device;
    struct engine_shared *engine; /* where a lost context is reported; NULL: nowhere */
    struct region_map d_arena;
    struct cuda_pool *pool;
    const struct process_faults *faults; /* NULL: none */
    enum engine_lane_id kind;
    struct cuda_products *neighbour;          /* the first flight's, once it is made */
    struct cuda_flight_line waiting, lacking; /* of the states; `lacking` goes first */
};

struct cuda_flight {
    enum cuda_flight_state state;
    struct engine_batch *batch; /* not IDLE */
    const struct cuda_method *method;
    struct cuda_call call; /* what the launchers get */
    struct cuda_block block;
    struct cuda_products *products; /* the stream's; NULL: no method takes any */
    bool takes_memory;              /* before it begins */
    bool measures;                  /* some item wants a residual */
    uint64_t ticket;                /* WAITING, if it takes memory, and LACKING */
    uint64_t lacking_ns;            /* LACKING: since when */
    cudaStream_t stream;
    struct cuda_flight_memory *h_memory;
    struct cuda_flight_memory *seen; /* h_memory, as the device sees it */
    void *d_table;
    bool has_word;       /* the word shows its end */
    uint32_t awaited;    /* what the word will be */
    uint64_t queried_ns; /* when the stream was asked last */
    uint32_t launches;   /* so far, of all batches */
    uint64_t reported;   /* of the batch's progress */
    struct cuda_flight_lane *lane;
};

/* Once, before the lane serves. priority: of the stream, as CUDA counts it. lane: borrowed for
 * ever. */
enum engine_exit cuda_flight_create(struct cuda_flight *flight, struct cuda_flight_lane *lane,
                                    int priority);

/* IDLE -> RUNNING or WAITING. false: the batch could not be launched and is DONE, with a status. */
bool cuda_flight_launch(struct cuda_flight *flight, struct engine_batch *batch);

/* Looks whether the batch is over, or can begin; true: it is DONE, and the flight IDLE. now_ns:
 * clock_now_ns. */
bool cuda_flight_look(struct cuda_flight *flight, uint64_t now_ns);

#endif
