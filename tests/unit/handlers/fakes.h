/* tests/unit/handlers/fakes.h: a door of the test's own, over the queue of fake_queue.h. Included
 * once by each program.
 *
 * An item is finished as an engine would, with outputs that show where they come from (INVERSE is a
 * copy of A). The door keeps the answer: status,
 * fields and body, and whether the segments were given back. `fake_start` makes the whole
 * surroundings of the handlers, `fake_stop` checks that nothing is left of any request.
 */
#ifndef TESTS_UNIT_HANDLERS_FAKES_H
#define TESTS_UNIT_HANDLERS_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fake_jobs.h"
#include "fake_queue.h"
#include "handlers/handlers.h"

#define FAKE_FIELDS 12
#define FAKE_PIECE 4096 /* bytes that a stream is asked for at once */
#define FAKE_ARENA_BYTES (4 << 20)

/* ---- The door ---- */

struct fake_pair {
    const char *name, *value;
};

struct fake_answer {
    int status;
    struct {
        char name[64], value[256];
    } fields[EXCHANGE_HEADERS_MAX];
    int field_count;
    bool close;
    unsigned char *body; /* a copy */
    size_t bytes;
    void (*release)(void *context); /* owed */
    void *context;
    struct exchange_stream stream; /* where it is one */
};

struct fake_exchange {
    struct exchange x; /* first */
    struct fake_pair headers[FAKE_FIELDS], query[FAKE_FIELDS];
    const char *address; /* NULL: 127.0.0.1 */
    struct fake_answer answer;
    int deadline_moves, rooms_made, mores;
};

static const char *fake_header(const struct exchange *x, const char *name, int index)
{
    const struct fake_exchange *f = (const struct fake_exchange *)x;
    for (int i = 0; i < FAKE_FIELDS && f->headers[i].name != NULL; i++)
        if (strcasecmp(f->headers[i].name, name) == 0 && index-- == 0)
            return f->headers[i].value;
    return NULL;
}

static void fake_query(const struct exchange *x,
                       bool (*each)(void *context, const char *name, const char *value),
                       void *context)
{
    const struct fake_exchange *f = (const struct fake_exchange *)x;
    for (int i = 0; i < FAKE_FIELDS && f->query[i].name != NULL; i++)
        if (!each(context, f->query[i].name, f->query[i].value))
            return;
}

static void fake_answer(struct exchange *x, const struct exchange_reply *reply)
{
    struct fake_answer *answer = &((struct fake_exchange *)x)->answer;
    assert_int_equal(answer->status, 0);
    answer->status = reply->status;
    answer->close = reply->close;
    answer->field_count = reply->field_count;
    for (int i = 0; i < reply->field_count; i++) {
        snprintf(answer->fields[i].name, sizeof answer->fields[i].name, "%s",
                 reply->fields[i].name);
        snprintf(answer->fields[i].value, sizeof answer->fields[i].value, "%s",
                 reply->fields[i].value);
    }
    for (int i = 0; i < reply->segment_count; i++)
        answer->bytes += reply->segments[i].iov_len;
    if (reply->file != NULL)
        answer->bytes += (size_t)reply->file->bytes;
    answer->body = malloc(answer->bytes + 1);
    assert_non_null(answer->body);
    size_t at = 0;
    for (int i = 0; i < reply->segment_count; i++) {
        memcpy(answer->body + at, reply->segments[i].iov_base, reply->segments[i].iov_len);
        at += reply->segments[i].iov_len;
    }
    if (reply->file != NULL) {
        assert_int_equal(pread(reply->file->fd, answer->body + at, (size_t)reply->file->bytes,
                               reply->file->offset),
                         reply->file->bytes);
        at += (size_t)reply->file->bytes;
        close(reply->file->fd);
    }
    answer->body[at] = '\0';
    answer->release = reply->release;
    answer->context = reply->context;
    if (reply->stream != NULL)
        answer->stream = *reply->stream;
}

/* Reads the stream until it is dry, or at its end; returns which. */
static inline int64_t fake_drain(struct fake_exchange *f)
{
    struct fake_answer *answer = &f->answer;
    int64_t count;
    do {
        answer->body = realloc(answer->body, answer->bytes + FAKE_PIECE + 1);
        assert_non_null(answer->body);
        count = answer->stream.read(answer->context, answer->body + answer->bytes, FAKE_PIECE);
        answer->bytes += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    answer->body[answer->bytes] = '\0';
    return count;
}

static void fake_deadline_moved(struct exchange *x)
{
    ((struct fake_exchange *)x)->deadline_moves++;
}

static void fake_room_made(struct exchange *x)
{
    ((struct fake_exchange *)x)->rooms_made++;
}

static void fake_more(struct exchange *x)
{
    ((struct fake_exchange *)x)->mores++;
}

static void fake_address(const struct exchange *x, char *text, size_t size)
{
    const struct fake_exchange *f = (const struct fake_exchange *)x;
    snprintf(text, size, "%s", f->address != NULL ? f->address : "127.0.0.1");
}

static const struct exchange_door fake_door = {.header = fake_header,
                                               .query = fake_query,
                                               .answer = fake_answer,
                                               .deadline_moved = fake_deadline_moved,
                                               .room_made = fake_room_made,
                                               .address = fake_address,
                                               .more = fake_more};

static inline const char *fake_field(const struct fake_exchange *f, const char *name)
{
    for (int i = 0; i < f->answer.field_count; i++)
        if (strcasecmp(f->answer.fields[i].name, name) == 0)
            return f->answer.fields[i].value;
    return NULL;
}

/* ---- The surroundings ---- */

struct fake {
    struct queue queue;
    struct jobs jobs; /* services.jobs is NULL until a test sets it */
    struct handlers_services services;
    struct handlers *handlers;
    struct mailbox mailbox;
    int32_t iterations; /* of every matrix */
};

static void fake_wake(void *context)
{
    (void)context;
}

static inline void fake_start(struct fake *fake)
{
    struct failure failure;
    memset(fake, 0, sizeof *fake);
    fake->services.queue = &fake->queue;
    fake_jobs_start(&fake->jobs);
    fake->services.version = "1.2.3";
    fake->services.limits = (struct handlers_limits){.body_max_bytes = 1 << 20,
                                                     .job_max_bytes = 64 << 20,
                                                     .streams_max = 8,
                                                     .compress_min_bytes = 2048,
                                                     .compress_level = 1};
    atomic_store(&fake->services.live, true);
    atomic_store(&fake->services.ready, true);
    fake->services.metrics = metric_registry_create();
    assert_non_null(fake->services.metrics);
    assert_int_equal(arena_create(FAKE_ARENA_BYTES, &fake->services.arena, &failure), ERROR_NONE);
    assert_int_equal(workers_create(1, 4, &fake->services.pool, &failure), ERROR_NONE);
    mailbox_init(&fake->mailbox, fake_wake, fake);
    assert_int_equal(handlers_create(&fake->services, &fake->handlers, &failure), ERROR_NONE);
}

static inline void fake_stop(struct fake *fake)
{
    workers_destroy(&fake->services.pool);
    mailbox_run(&fake->mailbox);
    assert_int_equal(fake->queue.entered, fake->queue.left);
    assert_int_equal(fake->queue.count, 0);
    assert_int_equal(atomic_load(&fake->queue.reserved_bytes), 0);
    assert_int_equal(arena_used_bytes(fake->services.arena), 0);
    fake_jobs_stop(&fake->jobs);
    handlers_destroy(&fake->handlers);
    assert_null(fake->handlers);
    arena_destroy(&fake->services.arena);
    metric_registry_destroy(&fake->services.metrics);
    mailbox_fini(&fake->mailbox);
}

/* A request without body; fill in more before handlers_begin. */
static inline void fake_request(struct fake *fake, struct fake_exchange *f, enum exchange_verb verb,
                                const char *path)
{
    memset(f, 0, sizeof *f);
    f->x.door = &fake_door;
    f->x.handlers = fake->handlers;
    f->x.mailbox = &fake->mailbox;
    f->x.verb = verb;
    f->x.path = path;
    f->x.content_length = verb == EXCHANGE_POST ? 0 : -1;
    f->x.client = 5;
    f->x.caller = &client_anyone;
    f->x.arrived_ns = clock_now_ns();
    f->x.deadline_ns = f->x.arrived_ns + 60 * CLOCK_S;
}

static inline void fake_set_header(struct fake_exchange *f, const char *name, const char *value)
{
    int i = 0;
    while (f->headers[i].name != NULL)
        i++;
    assert_true(i < FAKE_FIELDS - 1);
    f->headers[i] = (struct fake_pair){name, value};
}

static inline void fake_set_query(struct fake_exchange *f, const char *name, const char *value)
{
    int i = 0;
    while (f->query[i].name != NULL)
        i++;
    assert_true(i < FAKE_FIELDS - 1);
    f->query[i] = (struct fake_pair){name, value};
}

/* Asks for room, and waits for it where it comes later. false: the exchange was answered. */
static inline bool fake_make_room(struct fake_exchange *f, int64_t bytes)
{
    const int made = f->rooms_made;
    if (handlers_make_room(&f->x, bytes))
        return true;
    for (int i = 0; i < 300000 && !f->x.answered && f->rooms_made == made; i++) {
        mailbox_run(f->x.mailbox);
        usleep(100);
    }
    assert_true(f->x.answered || f->rooms_made == made + 1);
    return !f->x.answered;
}

/* Brings the body to the sink, in pieces of 20,000 bytes, unless it is refused meanwhile. */
static inline void fake_bring(struct fake_exchange *f, const void *body, size_t bytes)
{
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = bytes - at < 20000 ? bytes - at : 20000;
        int64_t end = (int64_t)(at + piece);
        if (f->x.sink_offset + f->x.sink_bytes < end && !fake_make_room(f, end))
            return;
        assert_true(f->x.sink_offset + f->x.sink_bytes >= end);
        memcpy(f->x.sink + ((int64_t)at - f->x.sink_offset), (const char *)body + at, piece);
        f->x.body_bytes = (int64_t)(at + piece);
    }
}

/* Begins, brings the body to the sink and runs, as the door does. */
static inline void fake_send(struct fake_exchange *f, const void *body, size_t bytes)
{
    if (bytes > 0)
        f->x.content_length = (int64_t)bytes;
    handlers_begin(&f->x);
    if (f->x.answered)
        return;
    if (f->x.takes_body)
        fake_bring(f, body, bytes);
    if (!f->x.answered)
        handlers_run(&f->x);
}

/* Finishes the oldest item as an engine would. infos: one for each matrix; NULL: all 0. */
static inline void fake_compute(struct fake *fake, const int32_t *infos)
{
    struct queue_item *item = fake_take_item(&fake->queue);
    unsigned char *base = arena_base(fake->services.arena);
    const struct method *method = item->method;
    int64_t each = item->n * item->n * precision_bytes(item->precision);
    for (int i = 0; i < method_output_count(method); i++) {
        const struct method_tensor *tensor = &method->outputs[i];
        if (item->outputs[i].region == ENGINE_REGION_NONE)
            continue;
        unsigned char *out = base + item->outputs[i].offset_bytes;
        for (int64_t b = 0; b < item->batch; b++) {
            if (tensor->rank == 2 && item->inputs[0].region == ENGINE_REGION_NONE)
                memset(out + b * each, 0, (size_t)each); /* no A to hand back */
            else if (tensor->rank == 2)
                memcpy(out + b * each, base + item->inputs[0].offset_bytes + b * each,
                       (size_t)each);
            else if (strcmp(tensor->name, "INFO") == 0)
                ((int32_t *)out)[b] = infos == NULL ? 0 : infos[b];
            else if (tensor->kind == METHOD_INT32)
                ((int32_t *)out)[b] = fake->iterations;
            else if (tensor->kind == METHOD_ALGORITHM)
                ((int32_t *)out)[b] = METHOD_ALGORITHM_LU;
            else if (item->precision == PRECISION_FP32)
                ((float *)out)[b] = 0.1F;
            else if (tensor->kind == METHOD_REAL)
                ((double *)out)[b] = 0.1 / (double)(b + 1);
        }
    }
    item->started_ns = item->queued_ns + 1000000;
    item->compute_ns = 2500000;
    item->finished_ns = item->started_ns + item->compute_ns;
    snprintf(item->kernel, sizeof item->kernel, "fake kernel");
    item->on_done(item);
}

/* Runs messages until the exchange is answered, or for half a minute at most. */
static inline void fake_await(struct fake *fake, const struct fake_exchange *f)
{
    for (int i = 0; i < 300000 && !f->x.answered; i++) {
        mailbox_run(&fake->mailbox);
        if (!f->x.answered)
            usleep(100);
    }
    assert_true(f->x.answered);
}

/* Runs messages until the queue holds an item. */
static inline void fake_await_item(struct fake *fake)
{
    for (int i = 0; i < 300000 && fake->queue.count == 0; i++) {
        mailbox_run(&fake->mailbox);
        if (fake->queue.count == 0)
            usleep(100);
    }
    assert_int_equal(fake->queue.count, 1);
}

/* The connection is done with the exchange: gives the segments back and ends it. */
static inline void fake_end(struct fake_exchange *f)
{
    if (f->answer.release != NULL)
        f->answer.release(f->answer.context);
    f->answer.release = NULL;
    handlers_end(&f->x);
    free(f->answer.body);
    f->answer.body = NULL;
}

static inline const char *fake_body(const struct fake_exchange *f)
{
    return (const char *)f->answer.body;
}

/* ---- Bodies ---- */

/* A v2 request of one binary FP64 matrix of order n, all its elements 2; returns the bytes, and
 * those of its JSON. The answer is binary too. */
static inline size_t fake_v2_body(unsigned char *body, size_t most, int64_t batch, int64_t n,
                                  const char *parameters, size_t *json_bytes)
{
    size_t count = (size_t)(batch * n * n);
    int length = snprintf((char *)body, most,
                          "{\"id\":\"a\",\"inputs\":[{\"name\":\"A\",\"shape\":[%lld,%lld,%lld],"
                          "\"datatype\":\"FP64\",\"parameters\":{\"binary_data_size\":%zu}}],"
                          "\"parameters\":{\"binary_data_output\":true%s}}",
                          (long long)batch, (long long)n, (long long)n, 8 * count, parameters);
    assert_true((size_t)length + 8 * count <= most);
    *json_bytes = (size_t)length;
    const double two = 2;
    for (size_t i = 0; i < count; i++)
        memcpy(body + *json_bytes + 8 * i, &two, sizeof two);
    return *json_bytes + 8 * count;
}

/* A v2 request of one FP64 matrix of order n in JSON, every element as `element` says. */
static inline size_t fake_json_body(unsigned char *body, size_t most, int64_t n,
                                    const char *element)
{
    struct text text;
    text_init_fixed(&text, (char *)body, most);
    text_printf(&text,
                "{\"inputs\":[{\"name\":\"A\",\"datatype\":\"FP64\",\"shape\":[1,%lld,%lld],"
                "\"data\":[%s",
                (long long)n, (long long)n, element);
    for (int64_t e = 1; e < n * n; e++)
        text_printf(&text, ",%s", element);
    text_puts(&text, "]}]}");
    assert_false(text.failed);
    return text.length;
}

/* An .npy of `batch` matrices of order n; descr "<f8" of 3s, or another that the test means. */
static inline size_t fake_npy_body(unsigned char *body, size_t most, int64_t batch, int64_t n,
                                   const char *descr, const char *fortran)
{
    size_t count = (size_t)(batch * n * n);
    memset(body, ' ', 128);
    memcpy(body, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length = snprintf((char *)body + 10, 118,
                          "{'descr': '%s', 'fortran_order': %s, 'shape': (%lld, %lld, %lld), }",
                          descr, fortran, (long long)batch, (long long)n, (long long)n);
    body[10 + length] = ' ';
    body[127] = '\n';
    assert_true(128 + 8 * count <= most);
    const double three = 3;
    for (size_t i = 0; i < count; i++)
        memcpy(body + 128 + 8 * i, &three, sizeof three);
    return 128 + 8 * count;
}

#endif
