/* gpu/engine.h: the contract between the front and an engine.
 *
 * An engine is a child process that owns the numerical work of one device. Front and engine share
 * two memfds: the arena (region 0: bodies, tensors, outputs) and a `struct engine_shared` with two
 * lanes: SHORT, and LONG for work that would keep small items waiting. A lane is a ring of batch
 * descriptors. The front alone moves a batch from FREE to SUBMITTED; the engine alone from
 * SUBMITTED to RUNNING and from RUNNING to DONE; the front alone from DONE to FREE. All other
 * fields belong to the side that the state names; states are stored with release, loaded with
 * acquire.
 *
 *      FREE --front--> SUBMITTED --engine--> RUNNING --engine--> DONE --front--> FREE
 *                      SUBMITTED --front, of an engine that is ending--> FREE
 *
 * An engine that is ending, by its own word (ENGINE_LOST) or because the front ends it, gets no
 * more batches, and the front takes back those that it has not begun, to send them to another one.
 * So both leave SUBMITTED by compare-exchange, and an engine that finds its batch taken begins
 * nothing more. What is RUNNING stays until the process is reaped: its device may still write.
 *
 * Cancelled: when every item of a batch has been dropped, the front sets `unwanted`.
 * An engine that sees it leaves what it has not done of the batch, soon but in its own time, and
 * ends it with ENGINE_STOPPED. The front never takes the word back. Until DONE the slot and the
 * items' tensors stay the engine's, as those of any batch.
 *
 * Progress: while a batch is RUNNING its engine may raise `progress`, which never falls: whole
 * matrices that are done, and shares of those that are under way where the method knows them. It
 * need not, where a batch is short or the method cannot know; DONE alone says that all is done.
 *
 * Memory: an engine that finds the memory of its device in use waits for it before it begins a
 * batch, which stays SUBMITTED. A batch that has begun may need more, once: while it waits for
 * that, with nothing of it on the device, `waits` is 1, and when it goes on its engine moves
 * started_ns on by as long as it has waited. The front counts a batch's time anew from when it sees
 * it begin or go on, and bounds the waiting.
 *
 * Waking: the front adds 1 to `lane.submitted` and wakes its futex; the engine sleeps on it
 * (spinning briefly first). The engine, having stored DONE, exchanges lane.front_waits with 0 and
 * when it was 1 writes 1 to the event descriptor (an eventfd shared by all lanes).
 *
 * Control: descriptor ENGINE_FD_CONTROL is a socket of base/descriptor.h, over which the front may
 * send messages with descriptors to a running engine. A message begins with its kind, 4 bytes; none
 * is defined yet. An engine ignores a kind that it does not know, and closes the descriptor.
 *
 * Life: the engine ends when ENGINE_FD_CONTROL is at its end, and never outlives the front. It
 * beats `heartbeat` at least every ENGINE_HEARTBEAT_MS, from a thread that does no numerical work.
 * It says who it is and what it takes (engine_contract_hash to n_max below) and then sets `ready`
 * once it can take batches. An engine that cannot go on ends with one of enum engine_exit, which
 * says to the front what to do. One whose device lost its context says so in `ready` before it
 * ends, for its end may take most of a second. Trust: the front checks nothing an engine computes,
 * but never uses a number written by an engine as an offset, a length or an index.
 *
 * The answer never depends on the rest of its batch: bits are a function of method, precision, n,
 * m, options and the matrix, on one device model.
 */
#ifndef GPU_ENGINE_H
#define GPU_ENGINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "gpu/method.h"

#define ENGINE_CONTRACT                                                                            \
    11                       /* raised with every change of this file or of a descriptor's meaning \
                              */
#define ENGINE_BATCH_SLOTS 4 /* of a lane; power of two */
#define ENGINE_BATCH_ITEMS                                                                         \
    4096 /* items in a batch at most: enough to keep a bus busy both ways                          \
          */
#define ENGINE_TENSORS_MAX (METHOD_INPUTS_MAX + METHOD_OUTPUTS_MAX)
#define ENGINE_HEARTBEAT_MS 100
/* How long an engine may wait for memory of its device that others hold: an engine that is ending,
 * say. The front extends the deadline of a batch that it has not begun, or that `waits`, by this.
 */
#define ENGINE_MEMORY_WAIT_NS (UINT64_C(4) * 1000000000)
#define ENGINE_KERNEL_NAME_MAX 48
#define ENGINE_NAME_MAX 64
#define ENGINE_METHODS_MAX 32 /* in the registry at most */
#define ENGINE_DEVICES_MAX 16

/* Descriptors an engine finds open; every other one is closed. 2 is stderr, for its log. */
enum engine_fd {
    ENGINE_FD_CONTROL = 0,
    ENGINE_FD_ARENA = 3,
    ENGINE_FD_SHARED = 4,
    ENGINE_FD_EVENT = 5
};

/* Each gives way to those before it. */
enum engine_lane_id {
    ENGINE_LANE_SHORT,
    ENGINE_LANE_LONG,
    ENGINE_LANE_BACKGROUND, /* what no client waits for */
    ENGINE_LANES
};

enum engine_batch_state {
    ENGINE_BATCH_FREE,
    ENGINE_BATCH_SUBMITTED,
    ENGINE_BATCH_RUNNING,
    ENGINE_BATCH_DONE
};

/* How a whole batch ended. A singular matrix is not a failure: see INFO. */
enum engine_status {
    ENGINE_OK,
    ENGINE_OUT_OF_MEMORY, /* nothing of it counts; the front halves it and tries again */
    ENGINE_UNSUPPORTED,   /* this engine has no such method or size: a bug, answered 500 */
    ENGINE_STOPPED,       /* it was unwanted, and nothing of it counts */
    ENGINE_STATUS_COUNT
};

/* What `ready` says. */
enum engine_ready {
    ENGINE_STARTING,
    ENGINE_READY,
    ENGINE_MISMATCH, /* built from another contract; has ended */
    ENGINE_LOST      /* was READY; is about to end with ENGINE_EXIT_FAULT, or to be killed */
};

/* How a process ends that ends by itself. */
enum engine_exit {
    ENGINE_EXIT_OK,         /* the front closed the control socket */
    ENGINE_EXIT_FAILURE,    /* it could not start, and has logged why */
    ENGINE_EXIT_BAD_OPTION, /* likewise */
    ENGINE_EXIT_FAULT = 10, /* the device's context is lost: start it again. What ran is suspect */
    ENGINE_EXIT_DEVICE_OUT, /* the device itself is out of order: no batch is to blame */
    ENGINE_EXIT_DEVICE_ABSENT /* there is no such device, or no driver for it */
};

enum engine_region {
    ENGINE_REGION_ARENA = 0,
    ENGINE_REGION_NONE = 0xffffffff
};

/* Where a tensor of an item starts: dense, row-major, `count` matrices one after the other.
 * Aligned to its element at least; alignment never changes an answer's bits. */
struct engine_tensor {
    uint64_t offset_bytes;
    uint32_t region; /* ENGINE_REGION_NONE: an absent input, or an output that is not wanted */
    uint32_t reserved;
};

struct engine_item {
    int64_t count;                                    /* matrices, >= 1 */
    struct engine_tensor inputs[METHOD_INPUTS_MAX];   /* in the descriptor's order */
    struct engine_tensor outputs[METHOD_OUTPUTS_MAX]; /* in the descriptor's order */
};

struct engine_batch {
    _Atomic uint32_t state;
    /* written by the front */
    uint32_t method; /* method_at(method) */
    uint32_t precision;
    uint32_t item_count;
    uint64_t sequence; /* unique in the life of the front */
    int64_t n, m;      /* n >= 1 */
    int64_t matrices;  /* sum of the items' counts */
    int64_t options[METHOD_OPTIONS_MAX];
    /* written by the engine */
    uint32_t status; /* enum engine_status */
    /* written by the front: 0 before SUBMITTED; 1 at any time after it, when no client waits for
     * any of the items */
    _Atomic uint32_t unwanted;
    /* written by the front: 0 before SUBMITTED; after it by the engine: what is done, in parts of
     * which a matrix has METHOD_PROGRESS_WHOLE */
    _Atomic uint64_t progress;
    /* written by the front: 0 before SUBMITTED; after it by the engine: 1 while RUNNING and waiting
     * for memory */
    _Atomic uint32_t waits;
    /* written by the engine: clock_now_ns, later by as long as it has waited since; the front looks
     * at it while RUNNING too */
    _Atomic uint64_t started_ns;
    uint64_t finished_ns;                /* clock_now_ns */
    char kernel[ENGINE_KERNEL_NAME_MAX]; /* NUL-terminated: "host lapack getrf+getri" */
    /* written by the front */
    struct engine_item items[ENGINE_BATCH_ITEMS];
};

struct engine_lane {
    _Alignas(64) _Atomic uint32_t submitted; /* futex word: batches submitted since the start */
    _Alignas(64) _Atomic uint32_t front_waits;
    struct engine_batch batches[ENGINE_BATCH_SLOTS]; /* used in turn: submission k in k mod SLOTS */
};

struct engine_shared {
    /* written by the front before the engine starts */
    uint64_t contract_hash; /* engine_contract_hash() of the front's build */
    char front_version[ENGINE_NAME_MAX];
    uint64_t arena_bytes;
    uint32_t confine; /* 1: the engine shall enter base/confine.h's list before it is ready */
    /* written by the engine */
    uint64_t engine_contract_hash;
    char engine_version[ENGINE_NAME_MAX];
    char device[ENGINE_NAME_MAX]; /* "host", "cuda:0" */
    char model[ENGINE_NAME_MAX];  /* what decides an answer's bits: OpenBLAS core, GPU model */
    uint32_t confined;            /* 1: it has done so */
    int32_t device_count;         /* devices of its kind that it sees; the host: 1 */
    /* The largest order it takes of method_at(m) in a precision; 0: none. */
    int64_t n_max[ENGINE_METHODS_MAX][PRECISION_COUNT];
    _Alignas(64) _Atomic uint32_t ready; /* enum engine_ready */
    _Alignas(64) _Atomic uint64_t heartbeat;
    struct engine_lane lanes[ENGINE_LANES];
};

/* A hash over ENGINE_CONTRACT, the layout above and every descriptor in the registry: gpu/method.c.
 * Front and engine work together when theirs are equal; their versions are only reported. */
uint64_t engine_contract_hash(void);

#endif
