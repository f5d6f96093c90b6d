/* handlers/upload.c: see upload.h. */
#include "handlers/upload.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "handlers/jobs/keep.h"

#define WINDOW_BYTES (INT64_C(256) << 10)
#define KEEP_NS (600 * CLOCK_S) /* for what the disk still owes when the body has come */

enum upload_state {
    UPLOAD_HEAD,
    UPLOAD_OPENING,
    UPLOAD_FILLING,
    UPLOAD_ENDING
};

struct upload {
    struct workers_task task; /* first, so that a task is found to be an upload's */
    struct message message;
    struct handlers *handlers;
    struct mailbox *mailbox;
    struct posting *posting; /* NULL: it was left */
    enum upload_state state;
    bool in_pool;    /* which works on it, or has posted message */
    bool is_waiting; /* the door is paused */
    bool received;
    /* The window that is being filled. */
    int window;
    int64_t from; /* of the body */
    unsigned char *windows[2];
    /* What the pool writes, and where it goes. */
    const unsigned char *piece;
    int64_t piece_from, piece_bytes;
    int64_t data_offset; /* of the body: what is before it is no part of the file */
    struct spool *spool;
    struct job_id id;
    int64_t file_bytes;
    struct spool_file *file;
    uint8_t *body; /* instead of a file: of file_bytes that the store keeps in its row */
    struct digest_stream *digest; /* NULL: none is wanted */
    unsigned char body_digest[DIGEST_BYTES];
    bool is_kept;
    struct failure failure; /* the pool's; code NONE: all is well */
};

/* ---- In the pool ---- */

static enum error write_piece(struct upload *upload)
{
    int64_t skip = upload->data_offset - upload->piece_from;
    skip = skip < 0 ? 0 : skip < upload->piece_bytes ? skip : upload->piece_bytes;
    int64_t bytes = upload->piece_bytes - skip;
    int64_t offset = upload->piece_from + skip - upload->data_offset;
    if (upload->digest != NULL)
        digest_add(upload->digest, upload->piece, (size_t)upload->piece_bytes);
    if (bytes == 0)
        return ERROR_NONE;
    if (upload->body != NULL) {
        memcpy(upload->body + offset, upload->piece + skip, (size_t)bytes);
        return ERROR_NONE;
    }
    enum error error =
        spool_put(upload->file, offset, upload->piece + skip, bytes, &upload->failure);
    /* The disk begins at once, so that the sync at the end has little left to do. */
    if (error == ERROR_NONE && spool_fd(upload->file) >= 0)
        (void)sync_file_range(spool_fd(upload->file), offset, bytes, SYNC_FILE_RANGE_WRITE);
    return error;
}

static enum error end_body(struct upload *upload)
{
    if (upload->digest != NULL && !digest_end(&upload->digest, upload->body_digest))
        return failure_set(&upload->failure, ERROR_INTERNAL,
                           "The service cannot digest the request.");
    if (upload->body != NULL)
        return ERROR_NONE;
    enum error error = spool_keep(&upload->file, &upload->failure);
    upload->is_kept = error == ERROR_NONE;
    return error;
}

/* Where the body goes: into memory, if the store keeps it in its row, else into a file. */
static enum error open_body(struct upload *upload)
{
    if (upload->file_bytes > JOB_INLINE_MAX)
        return spool_write(upload->spool, &upload->id, 0, upload->file_bytes, &upload->file,
                           &upload->failure);
    upload->body = malloc((size_t)upload->file_bytes);
    if (upload->body != NULL)
        return ERROR_NONE;
    return failure_set(&upload->failure, ERROR_FULL,
                       "The service is out of memory; try again later.");
}

static void on_written(struct message *message);

static void work_in_pool(struct workers_task *task)
{
    struct upload *upload = (struct upload *)task;
    enum error error;
    if (upload->state == UPLOAD_OPENING)
        error = open_body(upload);
    else
        error = write_piece(upload);
    if (error == ERROR_NONE && upload->state == UPLOAD_ENDING)
        error = end_body(upload);
    if (error == ERROR_NONE)
        upload->failure.code = ERROR_NONE;
    upload->message.run = on_written;
    mailbox_post(upload->mailbox, &upload->message);
}

static bool to_pool(struct upload *upload, enum upload_state state)
{
    assert(!upload->in_pool);
    enum upload_state before = upload->state;
    upload->state = state; /* before a thread of the pool reads it */
    upload->task.run = work_in_pool;
    upload->in_pool = true;
    if (workers_submit(upload->handlers->services->pool, &upload->task) == ERROR_NONE)
        return true;
    upload->in_pool = false;
    upload->state = before;
    return false;
}

/* ---- Life ---- */

static void free_upload(struct upload *upload)
{
    spool_close(&upload->file);
    if (upload->is_kept)
        spool_remove(upload->spool, &upload->id, 0);
    (void)digest_end(&upload->digest, NULL);
    free(upload->body);
    free(upload->windows[0]);
    free(upload->windows[1]);
    free(upload);
}

static void free_in_pool(struct workers_task *task)
{
    free_upload((struct upload *)task);
}

/* To remove a large file takes long. */
static void end(struct upload *upload)
{
    assert(!upload->in_pool);
    atomic_fetch_sub(&upload->handlers->uploads, 1);
    upload->task.run = free_in_pool;
    const struct handlers_services *services = upload->handlers->services;
    bool has_file = upload->file != NULL || upload->is_kept;
    if (!has_file || atomic_load(&services->draining) || /* the pool may be gone by now */
        workers_submit(services->pool, &upload->task) != ERROR_NONE)
        free_upload(upload);
}

void handlers__upload_leave(struct upload **left)
{
    struct upload *upload = *left;
    *left = NULL;
    if (upload == NULL)
        return;
    upload->posting = NULL;
    if (!upload->in_pool)
        end(upload);
}

static struct upload *make_upload(struct inference *inference)
{
    struct upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL)
        return NULL;
    upload->handlers = inference->handlers;
    upload->mailbox = inference->mailbox;
    upload->posting = inference->posting;
    upload->spool = jobs_spool(inference->handlers->services->jobs);
    upload->windows[0] = malloc((size_t)WINDOW_BYTES);
    upload->windows[1] = malloc((size_t)WINDOW_BYTES);
    bool wants_digest = handlers__posting_has_key(inference->posting);
    if (wants_digest)
        upload->digest = digest_begin();
    if (upload->windows[0] != NULL && upload->windows[1] != NULL &&
        (!wants_digest || upload->digest != NULL))
        return upload;
    free_upload(upload);
    return NULL;
}

enum error handlers__upload_begin(struct inference *inference, struct failure *failure)
{
    struct handlers *handlers = inference->handlers;
    if (atomic_fetch_add(&handlers->uploads, 1) >= UPLOADS_MAX) {
        atomic_fetch_sub(&handlers->uploads, 1);
        return failure_set(failure, ERROR_FULL,
                           "As many large bodies are being written to the disk as are taken at "
                           "once (%d); try again later.",
                           UPLOADS_MAX);
    }
    struct upload *upload = make_upload(inference);
    if (upload == NULL) {
        atomic_fetch_sub(&handlers->uploads, 1);
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    }
    inference->posting->upload = upload;
    return ERROR_NONE;
}

static void refuse(struct upload *upload, const struct failure *failure)
{
    const struct failure copy = *failure; /* the upload goes with the inference */
    handlers__inference_refuse(upload->posting->inference, &copy);
}

/* ---- The head ---- */

/* From the head to a task with room in the spool: all that can be refused is refused here. */
static enum error read_head(struct upload *upload, struct failure *failure)
{
    static char mark; /* that the input is there */
    struct inference *inference = upload->posting->inference;
    const struct exchange *x = inference->x;
    struct job *job = &upload->posting->fresh.job;
    struct proto_npy_place place;
    struct proto_request request;
    const struct method *method = handlers__item_method(inference->item);
    proto_request_init(&request, PROTO_FORMAT_NPY, method);
    enum error error = proto_npy_head(upload->windows[0], x->body_bytes, x->content_length,
                                      &request, &place, failure);
    if (error != ERROR_NONE)
        return error;
    if (request.batch == 0 || request.n == 0)
        return failure_set(failure, ERROR_BAD_SHAPE, "The array is empty; send a shorter one.");
    request.inputs[place.input].data = &mark;
    handlers__item_adopt(inference->item, &request);
    error = handlers__inference_admit(inference, failure);
    if (error == ERROR_NONE)
        error = job_id_make(&job->id, failure);
    if (error != ERROR_NONE)
        return error;
    if (!handlers__keep_place_input(&job->task, place.input, place.column_major))
        return failure_set(failure, ERROR_TOO_LARGE, "The request is too large.");
    upload->data_offset = place.data_offset;
    upload->file_bytes = job->task.body_bytes;
    upload->id = job->id;
    return handlers__posting_find_room(upload->posting, failure);
}

/* Whether there is a head to be read, or what is no head. */
static bool has_head(const struct upload *upload, int64_t body_bytes)
{
    int64_t bytes = proto_npy_head_bytes(upload->windows[0], body_bytes);
    return body_bytes == WINDOW_BYTES || upload->received || (bytes > 0 && bytes <= body_bytes);
}

/* Refuses what the head is refused for, or goes on. */
static void open_file(struct upload *upload)
{
    struct failure failure;
    enum error error = read_head(upload, &failure);
    if (error == ERROR_NONE && !to_pool(upload, UPLOAD_OPENING))
        error = failure_set(&failure, ERROR_FULL,
                            "Too many bodies wait to be written; try again later.");
    if (error != ERROR_NONE)
        refuse(upload, &failure);
    else
        upload->is_waiting = true;
}

/* ---- The windows ---- */

/* The window that is being filled has room for so many bytes. */
static void show(struct upload *upload, int64_t bytes)
{
    struct exchange *x = upload->posting->inference->x;
    x->sink = upload->windows[upload->window];
    x->sink_offset = upload->from;
    x->sink_bytes = bytes;
}

/* Gives the window that was filled to the pool, and has the other one filled. false: refused. */
static bool hand_over(struct upload *upload, enum upload_state state)
{
    static const struct failure full = {
        .code = ERROR_FULL, .detail = "Too many bodies wait to be written; try again later."};
    const struct exchange *x = upload->posting->inference->x;
    upload->piece = upload->windows[upload->window];
    upload->piece_from = upload->from;
    upload->piece_bytes = x->body_bytes - upload->from;
    if (!to_pool(upload, state)) {
        refuse(upload, &full);
        return false;
    }
    upload->window = 1 - upload->window;
    upload->from = x->body_bytes;
    show(upload, WINDOW_BYTES);
    return true;
}

bool handlers__upload_make_room(struct inference *inference, int64_t bytes)
{
    struct upload *upload = inference->posting->upload;
    struct exchange *x = inference->x;
    assert(bytes - x->body_bytes <= WINDOW_BYTES && !upload->is_waiting);
    if (upload->state == UPLOAD_FILLING) {
        upload->is_waiting = upload->in_pool;
        return !upload->in_pool && hand_over(upload, UPLOAD_FILLING);
    }
    assert(upload->state == UPLOAD_HEAD);
    if (has_head(upload, x->body_bytes) || bytes > WINDOW_BYTES) {
        open_file(upload);
        return false;
    }
    show(upload, bytes); /* so that the next piece is heard of */
    return true;
}

void handlers__upload_run(struct inference *inference)
{
    struct upload *upload = inference->posting->upload;
    struct exchange *x = inference->x;
    upload->received = true;
    x->deadline_ns = clock_now_ns() + KEEP_NS;
    x->door->deadline_moved(x);
    if (upload->state == UPLOAD_HEAD)
        open_file(upload);
    else if (!upload->in_pool)
        (void)hand_over(upload, UPLOAD_ENDING);
}

/* ---- Back from the pool ---- */

static void accept(struct upload *upload)
{
    struct posting *posting = upload->posting;
    struct inference *inference = posting->inference;
    memcpy(posting->body_digest, upload->body_digest, sizeof posting->body_digest);
    posting->has_file = upload->is_kept;
    posting->body = upload->body;
    posting->fresh.body = upload->body;
    upload->is_kept = false; /* file or body are the posting's */
    upload->body = NULL;
    handlers__upload_leave(&posting->upload);
    handlers__inference_move(inference, INFERENCE_ACCEPTING);
    inference->busy = true;
    handlers__posting_accept(posting);
}

/* The disk has what was handed over: the door may go on, unless that was all. */
static void go_on(struct upload *upload)
{
    struct exchange *x = upload->posting->inference->x;
    bool opened = upload->state == UPLOAD_OPENING, was_waiting = upload->is_waiting;
    upload->state = UPLOAD_FILLING;
    upload->is_waiting = false;
    if (upload->received) {
        (void)hand_over(upload, UPLOAD_ENDING);
        return;
    }
    if (!was_waiting)
        return;
    if (opened)
        show(upload, WINDOW_BYTES);
    else if (!hand_over(upload, UPLOAD_FILLING))
        return;
    x->door->room_made(x);
}

static void on_written(struct message *message)
{
    struct upload *upload = (struct upload *)((char *)message - offsetof(struct upload, message));
    upload->in_pool = false;
    if (upload->posting == NULL)
        end(upload);
    else if (upload->failure.code != ERROR_NONE)
        refuse(upload, &upload->failure);
    else if (upload->state == UPLOAD_ENDING)
        accept(upload);
    else
        go_on(upload);
}
