/* tests/unit/gpu/host/bed.c: see bed.h. */
#include "tests/unit/gpu/host/bed.h"

#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static void *map_memfd(const char *name, uint64_t bytes, int *fd)
{
    *fd = memfd_create(name, MFD_CLOEXEC);
    assert_true(*fd >= 0);
    assert_int_equal(ftruncate(*fd, (off_t)bytes), 0);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    assert_true(map != MAP_FAILED);
    return map;
}

static void make_shared(struct gputest_bed *bed)
{
    bed->shared = map_memfd("lanes", sizeof *bed->shared, &bed->shared_fd);
    bed->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(bed->event_fd >= 0);
    bed->shared->contract_hash = engine_contract_hash();
    bed->shared->arena_bytes = bed->arena_bytes;
    memcpy(bed->shared->front_version, "test", sizeof "test");
}

static void drop_shared(struct gputest_bed *bed)
{
    munmap(bed->shared, sizeof *bed->shared);
    close(bed->shared_fd);
    close(bed->event_fd);
}

void gputest_bed_create(struct gputest_bed *bed, uint64_t arena_bytes)
{
    *bed = (struct gputest_bed){.arena_bytes = arena_bytes};
    bed->arena = map_memfd("arena", arena_bytes, &bed->arena_fd);
    make_shared(bed);
}

void gputest_bed_destroy(struct gputest_bed *bed)
{
    munmap(bed->arena, bed->arena_bytes);
    close(bed->arena_fd);
    drop_shared(bed);
    *bed = (struct gputest_bed){0};
}

void gputest_bed_renew(struct gputest_bed *bed)
{
    drop_shared(bed);
    make_shared(bed);
    memset(bed->submitted, 0, sizeof bed->submitted);
    gputest_bed_reset(bed);
}

uint64_t gputest_bed_take(struct gputest_bed *bed, int64_t bytes, int64_t align)
{
    uint64_t unit = (uint64_t)align, offset = (bed->used_bytes + unit - 1) / unit * unit;
    if (offset % (2 * unit) == 0)
        offset += unit;
    bed->used_bytes = offset + (uint64_t)bytes;
    assert_true(bed->used_bytes <= bed->arena_bytes);
    return offset;
}

void gputest_bed_reset(struct gputest_bed *bed)
{
    bed->used_bytes = 0;
}

struct engine_batch *gputest_bed_next(struct gputest_bed *bed, enum engine_lane_id lane,
                                      const char *name, enum precision precision, int64_t n)
{
    struct engine_batch *batch =
        &bed->shared->lanes[lane].batches[bed->submitted[lane] % ENGINE_BATCH_SLOTS];
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_FREE);
    memset(batch, 0, offsetof(struct engine_batch, items));
    batch->method = (uint32_t)method_index(method_find(name));
    batch->precision = precision;
    batch->n = n;
    method_default_options(method_find(name), batch->options);
    batch->sequence = bed->submitted[lane] + 1;
    batch->status = UINT32_MAX;
    return batch;
}

void gputest_bed_drop(const struct engine_batch *batch, struct engine_item *item, int output)
{
    const struct method *method = method_at((int)batch->method);
    for (int i = 0; method->outputs[i].name; i++) {
        if (i == output || (method->outputs[i].needs >> output & 1) != 0)
            item->outputs[i] = (struct engine_tensor){.region = ENGINE_REGION_NONE};
    }
}

struct engine_item *gputest_bed_item(struct gputest_bed *bed, struct engine_batch *batch,
                                     int64_t count)
{
    const struct method *method = method_at((int)batch->method);
    enum precision precision = (enum precision)batch->precision;
    int64_t align = precision_bytes(precision);
    assert_true(batch->item_count < ENGINE_BATCH_ITEMS);
    struct engine_item *item = &batch->items[batch->item_count++];
    *item = (struct engine_item){.count = count};
    batch->matrices += count;
    for (int i = 0; method->inputs[i].name; i++) {
        if (method->inputs[i].optional) {
            item->inputs[i].region = ENGINE_REGION_NONE;
            continue;
        }
        int64_t bytes =
            method_tensor_bytes(&method->inputs[i], precision, batch->n, 0, NULL) * count;
        item->inputs[i].offset_bytes = gputest_bed_take(bed, bytes, align);
    }
    for (int i = 0; method->outputs[i].name; i++) {
        int64_t bytes =
            method_tensor_bytes(&method->outputs[i], precision, batch->n, 0, batch->options) *
            count;
        item->outputs[i].offset_bytes = gputest_bed_take(bed, bytes, align);
        memset(bed->arena + item->outputs[i].offset_bytes, 0xa5, (size_t)bytes);
    }
    return item;
}

void gputest_bed_submit(struct gputest_bed *bed, enum engine_lane_id lane,
                        struct engine_batch *batch)
{
    struct engine_lane *shared = &bed->shared->lanes[lane];
    bed->submitted[lane]++;
    atomic_store_explicit(&batch->state, ENGINE_BATCH_SUBMITTED, memory_order_release);
    atomic_fetch_add(&shared->submitted, 1);
    syscall(SYS_futex, &shared->submitted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool gputest_bed_wait(struct gputest_bed *bed, enum engine_lane_id lane, struct engine_batch *batch,
                      int timeout_ms)
{
    uint64_t count, until = clock_now_ns() + (uint64_t)timeout_ms * CLOCK_MS;
    for (;;) {
        atomic_store(&bed->shared->lanes[lane].front_waits, 1);
        if (atomic_load(&batch->state) == ENGINE_BATCH_DONE)
            break;
        uint64_t now = clock_now_ns();
        struct pollfd poller = {.fd = bed->event_fd, .events = POLLIN};
        if (now >= until || poll(&poller, 1, (int)((until - now) / CLOCK_MS) + 1) != 1)
            return false;
        assert_int_equal(read(bed->event_fd, &count, sizeof count), sizeof count);
    }
    atomic_store(&bed->shared->lanes[lane].front_waits, 0);
    return true;
}

void gputest_bed_release(struct engine_batch *batch)
{
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    atomic_store(&batch->state, ENGINE_BATCH_FREE);
}
