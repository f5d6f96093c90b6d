/* tests/simt/streams.c: the streams and events of the SIMT stand-in (simt.h).
 *
 * A stream that is not served at once is a list of what is to be done: work, the record of an
 * event, the wait for one. It goes on when somebody waits for it, or before others do (simt.h). The
 * default stream does everything when it is asked. An event has numbers, one for each record, so
 * that records of several streams may be made in any order; a wait is for the last one when it is
 * asked. A record that is in no list has been made.
 *
 * Threads: any, where streams are served at once; else one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simt.h"

#define DEPTH_MAX 1000 /* streams that wait for one another */

/* What is to be done. event: work(NULL) is its record, or the wait for it. */
struct op {
    struct op *next;
    void (*work)(const void *context);
    cudaEvent_t event;
    uint64_t number;
    bool waits;
    _Alignas(16) unsigned char context[];
};

struct CUstream_st {
    struct op *first, **end;
    struct CUstream_st *next;
};

struct CUevent_st {
    uint64_t recorded; /* the number of the last record */
};

static enum simt_streams mode;
static struct CUstream_st *streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */

void simt_set_streams(enum simt_streams how)
{
    simt_await_all();
    mode = how;
}

/* ---- Lists ---- */

static struct op *append(cudaStream_t stream, size_t bytes)
{
    struct op *op = calloc(1, sizeof *op + bytes);
    if (!op)
        abort();
    *stream->end = op;
    stream->end = &op->next;
    return op;
}

static void do_first(cudaStream_t stream)
{
    struct op *op = stream->first;
    stream->first = op->next;
    if (!stream->first)
        stream->end = &stream->first;
    if (op->work)
        op->work(op->context);
    free(op);
}

/* The stream that has the record yet to make; NULL: it has been made. */
static cudaStream_t recorder_of(cudaEvent_t event, uint64_t number)
{
    for (cudaStream_t stream = streams; stream; stream = stream->next) {
        for (const struct op *op = stream->first; op; op = op->next) {
            if (op->event == event && !op->waits && op->number == number)
                return stream;
        }
    }
    return NULL;
}

static bool may_do_first(cudaStream_t stream)
{
    const struct op *op = stream->first;
    return op && !(op->waits && recorder_of(op->event, op->number));
}

/* What the others may do, where they are early. */
static void let_others(const struct CUstream_st *but)
{
    for (cudaStream_t stream = streams; stream && mode == SIMT_STREAMS_EARLY;) {
        const bool does = stream != but && may_do_first(stream);
        if (does)
            do_first(stream);
        stream = does ? streams : stream->next; /* others may have waited for it */
    }
}

static void go_on(cudaStream_t stream);

/* Until the record has been made. Streams that wait for each other end the process. */
static void await_event(cudaEvent_t event, uint64_t number)
{
    static int depth;
    cudaStream_t stream;
    if (++depth > DEPTH_MAX)
        abort();
    while ((stream = recorder_of(event, number)))
        go_on(stream);
    depth--;
}

/* By one step. */
static void go_on(cudaStream_t stream)
{
    let_others(stream);
    if (stream->first->waits)
        await_event(stream->first->event, stream->first->number);
    do_first(stream);
}

void simt_await(cudaStream_t stream)
{
    while (stream && stream->first)
        go_on(stream);
}

void simt_await_all(void)
{
    for (cudaStream_t stream = streams; stream && mode != SIMT_STREAMS_AT_ONCE;
         stream = stream->next)
        simt_await(stream);
}

void simt_put(cudaStream_t stream, void (*work)(const void *context), const void *context,
              size_t bytes)
{
    if (!stream || mode == SIMT_STREAMS_AT_ONCE) {
        if (mode == SIMT_STREAMS_EARLY)
            let_others(NULL);
        work(context);
        return;
    }
    struct op *op = append(stream, bytes);
    op->work = work;
    memcpy(op->context, context, bytes);
}

/* ---- The runtime's calls ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)flags;
    (void)priority;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return simt_say(cudaErrorMemoryAllocation);
    (*stream)->end = &(*stream)->first;
    pthread_mutex_lock(&lock);
    (*stream)->next = streams;
    streams = *stream;
    pthread_mutex_unlock(&lock);
    return simt_say(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream)
        return simt_say(cudaErrorInvalidValue);
    simt_await(stream);
    pthread_mutex_lock(&lock);
    cudaStream_t *at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&lock);
    free(stream);
    return simt_say(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return cudaStreamSynchronize(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    simt_await(stream);
    return simt_say(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    simt_await_all();
    return simt_say(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    if (!event || flags != 0)
        return simt_say(cudaErrorInvalidValue);
    if (mode == SIMT_STREAMS_AT_ONCE || !recorder_of(event, event->recorded))
        return simt_say(cudaSuccess);
    if (!stream) {
        await_event(event, event->recorded);
    } else {
        struct op *op = append(stream, 0);
        op->event = event;
        op->number = event->recorded;
        op->waits = true;
    }
    return simt_say(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    return simt_say(*event && flags == cudaEventDisableTiming ? cudaSuccess
                                                              : cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event)
        return simt_say(cudaErrorInvalidValue);
    simt_await_all();
    free(event);
    return simt_say(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!event)
        return simt_say(cudaErrorInvalidValue);
    if (mode == SIMT_STREAMS_AT_ONCE)
        return simt_say(cudaSuccess); /* no one waits; threads may share nothing then */
    event->recorded++;
    if (stream) {
        struct op *op = append(stream, 0);
        op->event = event;
        op->number = event->recorded;
    }
    return simt_say(cudaSuccess);
}
