/* Every allocation on a request's way fails once: the k-th, for each k until none is left to fail,
 * and the same of what is taken of the arena. No crash, an answer each time, nothing left behind.
 *
 * malloc and its like are this program's own here, so that the libraries' allocations are counted
 * too. A sanitizer has its own ones, and its builds leave this out.
 */
#include "fakes.h"

#include <errno.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#define BODY_MAX (2 << 20)
#define K_MAX 400
#define PATIENT_MS 20000
#define WAITS_MS 100 /* where there may be no memory to come */

/* Allocations until one fails; 0: none does. */
static _Atomic int countdown;
static _Atomic int64_t live;

#if !IS_SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static bool fails(void)
{
    int left = atomic_load(&countdown);
    while (left > 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1))
        continue;
    if (left == 1)
        errno = ENOMEM;
    return left == 1;
}

static void *counted(void *memory)
{
    if (memory != NULL)
        atomic_fetch_add(&live, 1);
    return memory;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__libc_calloc(count, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    void *moved = __libc_realloc(memory, bytes);
    if (memory == NULL)
        counted(moved);
    return moved;
}

void free(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&live, 1);
    __libc_free(memory);
}
#endif

/* ---- One request ---- */

struct request {
    const char *path, *type, *coding, *accept_coding;
    size_t (*write)(unsigned char *body, size_t max); /* NULL: a GET */
    int status;                                       /* when nothing fails */
    const char *prefer;                               /* and then a key as well */
};

static unsigned char body[BODY_MAX];

static size_t write_one(unsigned char *to, size_t max)
{
    return (size_t)snprintf((char *)to, max,
                            "{\"matrix\":[[4,7],[2,6]],\"outputs\":[\"inverse\",\"info\"]}");
}

static size_t write_many(unsigned char *to, size_t max)
{
    return fake_json_body(to, max, 60, "2.5");
}

static size_t write_npy(unsigned char *to, size_t max)
{
    return fake_npy_body(to, max, 2, 40, "<f8", "True");
}

/* Its body is a file of the spool; and one that is written as it comes. */
static size_t write_large(unsigned char *to, size_t max)
{
    return fake_npy_body(to, max, 2, 100, "<f8", "False");
}

static size_t write_longest(unsigned char *to, size_t max)
{
    return fake_npy_body(to, max, 1, 400, "<f8", "False");
}

static size_t write_nothing(unsigned char *to, size_t max)
{
    (void)to;
    (void)max;
    return 0;
}

static size_t write_garbage(unsigned char *to, size_t max)
{
    return (size_t)snprintf((char *)to, max, "{\"matrix\":[[4,7],[2");
}

/* gzip of {"matrix":[[2]]}. */
static size_t write_gzip(unsigned char *to, size_t max)
{
    static const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                           0x03, 0xab, 0x56, 0xca, 0x4d, 0x2c, 0x29, 0xca, 0xac,
                                           0x50, 0xb2, 0x8a, 0x8e, 0x36, 0x8a, 0x8d, 0xad, 0x05,
                                           0x00, 0x11, 0x85, 0xa1, 0xc7, 0x10, 0x00, 0x00, 0x00};
    assert_true(sizeof packed <= max);
    memcpy(to, packed, sizeof packed);
    return sizeof packed;
}

static const struct request requests[] = {
    {"/v1/invert", "application/json", NULL, NULL, write_one, 200, NULL},
    {"/v1/invert", NULL, NULL, NULL, write_garbage, 400, NULL},
    {"/v1/invert", "application/json", "gzip", NULL, write_gzip, 200, NULL},
    {"/v1/invert", "application/x-npy", NULL, "gzip", write_npy, 200, NULL},
    {"/v2/models/lu/infer", NULL, NULL, "gzip", write_many, 200, NULL},
    {"/v2/models/lu/infer", NULL, NULL, "deflate", write_many, 200, NULL},
    {"/v2/repository/index", NULL, NULL, NULL, write_nothing, 200, NULL},
    {"/v2/models/lu", NULL, NULL, NULL, NULL, 200, NULL},
    {"/v2/models/lu/config", NULL, NULL, NULL, NULL, 200, NULL},
    {"/v2/models/stats", NULL, NULL, NULL, NULL, 200, NULL},
    {"/v2/models/none", NULL, NULL, NULL, NULL, 404, NULL},
    {"/v1/methods", NULL, NULL, NULL, NULL, 200, NULL},
    {"/metrics", NULL, NULL, NULL, NULL, 200, NULL},
    {"/", NULL, NULL, NULL, NULL, 200, NULL},
    {"/v1/jobs", NULL, NULL, NULL, NULL, 200, NULL},
    {"/v1/invert", "application/json", NULL, NULL, write_one, 202, "respond-async"},
    {"/v1/invert", "application/x-npy", NULL, NULL, write_large, 202, "respond-async"},
    {"/v1/invert", "application/x-npy", NULL, NULL, write_longest, 202, "respond-async"},
};
#define REQUESTS ((int)(sizeof requests / sizeof requests[0]))

/* The door's copy of the answer is no part of what may fail. */
static void answer_safely(struct exchange *x, const struct exchange_reply *reply)
{
    int left = atomic_exchange(&countdown, 0);
    fake_answer(x, reply);
    atomic_store(&countdown, left);
}

static const struct exchange_door safe_door = {.header = fake_header,
                                               .query = fake_query,
                                               .answer = answer_safely,
                                               .deadline_moved = fake_deadline_moved,
                                               .room_made = fake_room_made,
                                               .address = fake_address,
                                               .more = fake_more};

static void prepare(struct fake *fake, struct fake_exchange *f, const struct request *request)
{
    fake_request(fake, f, request->write != NULL ? EXCHANGE_POST : EXCHANGE_GET, request->path);
    f->x.door = &safe_door;
    if (request->type != NULL)
        fake_set_header(f, "Content-Type", request->type);
    if (request->coding != NULL)
        fake_set_header(f, "Content-Encoding", request->coding);
    fake->services.jobs = &fake->jobs;
    if (request->prefer != NULL) {
        fake_set_header(f, "Prefer", request->prefer);
        fake_set_header(f, "Idempotency-Key", "key");
    }
    if (request->accept_coding != NULL)
        fake_set_header(f, "Accept-Encoding", request->accept_coding);
}

/* As the door does; a body that finds no room waits, in vain here, but for one that goes to the
 * spool. */
static void send_body(struct fake_exchange *f, size_t bytes)
{
    if (bytes > 0)
        f->x.content_length = (int64_t)bytes;
    handlers_begin(&f->x);
    if (f->x.answered)
        return;
    for (size_t at = 0, piece; f->x.takes_body && at < bytes; at += piece) {
        piece = bytes - at < 20000 ? bytes - at : 20000;
        int64_t end = (int64_t)(at + piece);
        bool has_room = f->x.sink_offset + f->x.sink_bytes >= end || handlers_make_room(&f->x, end);
        int made = f->rooms_made, tries = fake_header(&f->x, "Prefer", 0) != NULL ? PATIENT_MS : 0;
        for (int i = 0; i < tries && !has_room && !f->x.answered; i++) {
            mailbox_run(f->x.mailbox);
            has_room = f->rooms_made > made;
            usleep(100);
        }
        if (!has_room && !f->x.answered)
            handlers_expired(&f->x, HANDLERS_LATE_ROOM);
        if (f->x.answered)
            return;
        memcpy(f->x.sink + ((int64_t)at - f->x.sink_offset), body + at, piece);
        f->x.body_bytes = (int64_t)(at + piece);
    }
    handlers_run(&f->x);
}

/* within_ms: then what waits for memory still is refused, as the door does at its deadline. */
static void run(struct fake *fake, struct fake_exchange *f, const struct request *request,
                int within_ms)
{
    uint64_t until_ns = clock_now_ns() + (uint64_t)within_ms * CLOCK_MS;
    size_t bytes = request->write != NULL ? request->write(body, sizeof body) : 0;
    send_body(f, bytes);
    while (!f->x.answered && clock_now_ns() < until_ns) {
        if (fake->queue.count > 0)
            fake_compute(fake, NULL);
        mailbox_run(&fake->mailbox);
        if (!f->x.answered && fake->queue.count == 0)
            usleep(20);
    }
    if (!f->x.answered)
        handlers_expired(&f->x, HANDLERS_LATE_ROOM);
    assert_true(f->x.answered);
}

/* The request in surroundings of its own, its k-th allocation failing; k 0: none. Returns whether
 * there were as many, *status: what was answered. */
static bool try(const struct request *request, int k, int *status)
{
    struct fake fake;
    struct fake_exchange f;
    int64_t before = atomic_load(&live);
    fake_start(&fake);
    prepare(&fake, &f, request);
    atomic_store(&countdown, k);
    run(&fake, &f, request, PATIENT_MS);
    bool reached = k > 0 && atomic_exchange(&countdown, 0) == 0;
    *status = f.answer.status;
    fake_end(&f);
    fake_stop(&fake);
    if (k > 0 && atomic_load(&live) != before)
        fail_msg("%s, allocation %d: %lld left behind", request->path, k,
                 (long long)(atomic_load(&live) - before));
    return reached;
}

static void test_each_allocation(void **state)
{
    (void)state;
    if (IS_SANITIZED)
        skip();
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    fake.queue.enter_error = ERROR_FULL; /* which is logged: the C library's own, once, come now */
    f.x.content_length = 10;
    handlers_begin(&f.x);
    fake_end(&f);
    fake_stop(&fake);
    for (int i = 0; i < REQUESTS; i++) {
        int healthy, status, k = 1, refused = 0;
        (void)try(&requests[i], 0, &healthy);
        assert_int_equal(healthy, requests[i].status);
        for (; try(&requests[i], k, &status) && k < K_MAX; k++) {
            bool known = status == healthy || status == 500 || status == 503;
            if (!known)
                fail_msg("%s, allocation %d: %d", requests[i].path, k, status);
            refused += status != healthy;
        }
        assert_int_equal(status, healthy);
        assert_in_range(k, 2, K_MAX - 1);
        print_message("%s: %d allocations, %d answers differ\n", requests[i].path, k - 1, refused);
    }
}

/* The arena is so full that what is left is too little, for every size of it up to what suffices.
 */
static void test_each_take(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS && requests[i].write != NULL; i++) {
        int good = 0;
        for (int64_t left = 0; left <= 320 << 10 && good < 2; left += 32 << 10) {
            struct fake fake;
            struct fake_exchange f;
            fake_start(&fake);
            struct arena_slot slot = {0};
            enum error full = arena_alloc(fake.services.arena, FAKE_ARENA_BYTES - left, &slot);
            assert_int_equal(full, ERROR_NONE);
            prepare(&fake, &f, &requests[i]);
            run(&fake, &f, &requests[i], WAITS_MS);
            assert_true(f.answer.status == 503 || f.answer.status == 413 ||
                        f.answer.status == 200 || f.answer.status == 400);
            good += f.answer.status == 200 || f.answer.status == 400;
            fake_end(&f);
            arena_free(fake.services.arena, &slot);
            fake_stop(&fake);
        }
        assert_int_equal(good, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation),
        cmocka_unit_test(test_each_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
