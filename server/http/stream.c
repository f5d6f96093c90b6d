/* server/http/stream.c: answers that are a file, or of unknown length. See private.h.
 *
 * A file goes out by sendfile. Where the door speaks TLS, or segments stand before it, it goes in
 * pieces through memory: of the library's own, 4 KiB, each costs a turn of the loop.
 *
 * A stream's source is asked for a piece whenever the one before has gone to the socket. A source
 * that has nothing lets its connection be suspended (DRY), in no epoll set of the library's, until
 * http__stream_more. The library would else ask again without end. The watch goes on looking at the
 * socket.
 *
 * Threads: one event loop's. Cost: a dry stream costs nothing.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/http/private.h"

#define BLOCK_BYTES (16 << 10) /* of a piece in HTTP/1.0; else the library's pool is the limit */
#define FILE_BLOCK_BYTES (32 << 10) /* of a piece of a file: two records of TLS */

/* ---- Files ---- */

/* A part of a file, with what stands before it. */
struct piecewise {
    struct exchange_file file;
    int64_t head_bytes; /* of the segments */
    struct iovec segments[];
};

/* What the segments have from a position on, or a part of it. */
static ssize_t read_segments(const struct piecewise *answer, uint64_t position, char *buffer,
                             size_t max)
{
    int i = 0;
    while (position >= answer->segments[i].iov_len)
        position -= answer->segments[i++].iov_len;
    size_t length = answer->segments[i].iov_len - (size_t)position;
    if (length > max)
        length = max;
    memcpy(buffer, (const char *)answer->segments[i].iov_base + position, length);
    return (ssize_t)length;
}

static ssize_t on_read_piece(void *context, uint64_t position, char *buffer, size_t max)
{
    const struct piecewise *answer = context;
    int64_t at = (int64_t)position - answer->head_bytes;
    if (at < 0)
        return read_segments(answer, position, buffer, max);
    ssize_t count = pread(answer->file.fd, buffer, max, (off_t)(answer->file.offset + at));
    return count > 0 ? count : MHD_CONTENT_READER_END_WITH_ERROR; /* 0: it became shorter */
}

static void on_close_file(void *context)
{
    struct piecewise *answer = context;
    close(answer->file.fd);
    free(answer);
}

/* NULL, and the descriptor stays open: out of memory. */
static struct MHD_Response *make_piecewise(const struct exchange_reply *reply)
{
    size_t count = (size_t)reply->segment_count;
    struct piecewise *answer = malloc(sizeof *answer + count * sizeof answer->segments[0]);
    if (answer == NULL)
        return NULL;
    answer->file = *reply->file;
    answer->head_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        answer->segments[i] = reply->segments[i];
        answer->head_bytes += (int64_t)reply->segments[i].iov_len;
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback((uint64_t)(answer->head_bytes + answer->file.bytes),
                                          FILE_BLOCK_BYTES, on_read_piece, answer, on_close_file);
    if (response == NULL)
        free(answer);
    return response;
}

/* sendfile at the end of a file sends nothing, and the library would try again without end. */
static bool is_whole(const struct exchange_file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && status.st_size - file->offset >= file->bytes;
}

struct MHD_Response *http__file_response(const struct http__connection *c,
                                         const struct exchange_reply *reply)
{
    const struct exchange_file *file = reply->file;
    struct MHD_Response *response = NULL;
    assert(file->fd >= 0 && file->offset >= 0 && file->bytes >= 0);
    const bool has_head = reply->segment_count > 0;
    if (file->bytes == 0 && !has_head)
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    else if (c->session != NULL || has_head || !is_whole(file))
        response = make_piecewise(reply);
    else
        response = MHD_create_response_from_fd_at_offset64((uint64_t)file->bytes, file->fd,
                                                           (uint64_t)file->offset);
    if ((file->bytes == 0 && !has_head) || response == NULL)
        close(file->fd); /* else it is closed with the response */
    else
        (void)posix_fadvise(file->fd, file->offset, file->bytes, POSIX_FADV_SEQUENTIAL);
    return response;
}

/* ---- Streams ---- */

/* The library asks for a piece. */
static ssize_t on_read(void *context, uint64_t position, char *buffer, size_t max)
{
    struct http__connection *c = context;
    (void)position;
    if (c->phase == HTTP_GONE)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (c->phase == HTTP_DRY)
        return 0; /* it is to be suspended when this call of the library's is over */
    assert(c->phase == HTTP_SENDING);
    if (c->http->draining)
        return MHD_CONTENT_READER_END_OF_STREAM;
    int64_t count = c->stream.read(c->release_context, buffer, max);
    assert(count >= EXCHANGE_STREAM_END && count <= (int64_t)max);
    if (count == EXCHANGE_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (count == EXCHANGE_STREAM_DRY) {
        http__move(c, HTTP_DRY);
        http__set_deadline(c, UINT64_MAX);
        http__suspend_later(c);
        return 0;
    }
    c->answer_bytes += count;
    http__set_deadline(c, c->http->now_ns + (uint64_t)c->http->options.limits.send_timeout_ns);
    return (ssize_t)count;
}

struct MHD_Response *http__stream_response(struct http__connection *c)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, c, NULL);
    /* To HEAD it would send the last chunk: not without chunks, and the connection closes. */
    if (response != NULL && c->x.verb == EXCHANGE_HEAD)
        (void)MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

/* The library is to ask again. */
static void unpark(struct http__connection *c)
{
    c->http->stirred = true;
    if (c->parked)
        MHD_resume_connection(c->library);
    c->parked = false;
}

void http__stream_more(struct exchange *x)
{
    struct http__connection *c = (struct http__connection *)x;
    if (c->phase != HTTP_DRY)
        return;
    http__move(c, HTTP_SENDING);
    http__set_deadline(c, c->http->now_ns + (uint64_t)c->http->options.limits.send_timeout_ns);
    unpark(c);
}

void http__stream_drop(struct http__connection *c, bool left)
{
    assert(c->phase == HTTP_DRY);
    http__drop(c, left);
    unpark(c);
}
