/* tests/device/rig.h: an engine process and the bed it serves, for tests that drive a real engine
 * through the lane contract. INVERTD_ENGINE names its program (a path); without it, it is the
 * invertd-cuda of the same build. One thread.
 */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

#include "tests/unit/gpu/host/bed.h"
#include "tests/unit/gpu/host/child.h"

#define RIG_WAIT_MS 20000

struct rig {
    struct gputest_bed bed;
    struct gputest_child child;
};

/* fault: what a build with faults is to do, and then that build's program is run; NULL: none. Fails
 * the test when the engine does not become ready. */
void rig_start(struct rig *rig, uint64_t arena_bytes, const char *fault);
/* Starts another engine over the same arena, once the one before has ended. */
void rig_restart(struct rig *rig, const char *fault);
/* The path of the program with faults. */
void rig_faulty_program(char *path, size_t size);
/* The engine must end well. */
void rig_stop(struct rig *rig);
/* The largest order of a method in FP64, or INVERTD_ENGINE_N_MAX where that is less. */
int64_t rig_order_max(const struct rig *rig, const char *method);
bool rig_is_cuda(const struct rig *rig);
/* The SIMT stand-in (tests/simt), of which no speed is asked. */
bool rig_is_simt(const struct rig *rig);

/* Submits, waits for DONE; the status must be OK. */
void rig_run(struct rig *rig, enum engine_lane_id lane, struct engine_batch *batch);
/* Submits and spins until DONE; returns the time it took. */
uint64_t rig_run_spinning(struct rig *rig, enum engine_lane_id lane, struct engine_batch *batch);

/* Matrices that differ from each other, some of them singular, not finite or such that partial
 * pivoting spoils their inverse. pool: numbers of the precision, n x n each. */
#define RIG_POOL 61
#define RIG_POOL_GROWTH 7 /* the index of one whose inverse partial pivoting spoils (n >= 20) */
void rig_fill_pool(enum precision precision, int64_t n, void *pool);

/* Bytes of one matrix in an item's outputs, and where they lie for matrix `index` of the item. */
int64_t rig_output_bytes(const struct engine_batch *batch, int output);
unsigned char *rig_output(struct rig *rig, const struct engine_batch *batch,
                          const struct engine_item *item, int output, int64_t index);

#endif
