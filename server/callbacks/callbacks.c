/* server/callbacks/callbacks.c: see callbacks.h.
 *
 * A slot is an attempt from its claim until the store knows how it ended. One claim is asked for at
 * a time, while a slot is free; without one that is due the timer waits for the next.
 */
#include "server/callbacks/callbacks.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "callback/message.h"
#include "callback/retry.h"
#include "callback/sign.h"
#include "handlers/judge.h"
#include "server/callbacks/sender.h"
#include "server/engines/command.h"

#define PER_PLACE_MAX 2   /* attempts at a time at one host and port */
#define ATTEMPT_MS 15000  /* that one may take */
#define CLAIM_MS 60000    /* after which one that was lost is made anew */
#define LOOK_MAX_MS 60000 /* between two looks, for the wall clock may be set */
#define RESTART_MS 1000   /* until invertd-post is started again */
#define STATUS_GONE 410   /* the receiver wants no more */
#define PLACES_MAX CALLBACK_SLOTS

struct slot {
    struct desk_call settle; /* first */
    struct callbacks *callbacks;
    bool is_used, is_settling;
    struct job_id id;
    struct callback_history history;
    char place[JOB_PLACE_BYTES];
    struct store_callback_end end;
    char problem[JOB_PROBLEM_BYTES];
};

struct callbacks {
    struct callbacks_options options;
    char path[ENGINE_PATH_MAX];
    struct mailbox mailbox;
    uv_async_t async;
    uv_timer_t timer, restart;
    struct sender *sender; /* NULL: it has ended, and restart waits */
    atomic_bool is_open;   /* async may be used */
    atomic_bool is_due;    /* a job has ended that has a callback */
    bool stops, is_claiming, is_woken;
    struct desk_call claim;
    struct store_callback_claim wanted;
    const char *busy[PLACES_MAX];
    struct job job;
    struct store_callback callback;
    struct slot slots[CALLBACK_SLOTS];
    struct metric_series *delivered, *unwanted, *retried, *failed;
};

static void step(struct callbacks *callbacks);

/* ---- The end of an attempt ---- */

static void on_settled(struct message *message)
{
    struct slot *slot = (struct slot *)message;
    slot->is_used = slot->is_settling = false;
    step(slot->callbacks);
}

static void report(const struct slot *slot, enum log_level level, const char *message)
{
    char id[JOB_ID_TEXT];
    job_id_write(&slot->id, id);
    log_line(level, message, "job", LOG_STR, id, "receiver", LOG_STR, slot->place, "attempt",
             LOG_I64, (int64_t)slot->history.attempts, "why", LOG_STR, slot->problem, NULL);
}

static void settle(struct slot *slot, enum job_callback_state state, int64_t due_ms)
{
    struct desk_call *call = &slot->settle;
    slot->is_settling = true;
    slot->end = (struct store_callback_end){.id = slot->id,
                                            .attempts = slot->history.attempts,
                                            .state = state,
                                            .due_ms = due_ms,
                                            .problem = slot->problem};
    *call = (struct desk_call){.message.run = on_settled,
                               .mailbox = &slot->callbacks->mailbox,
                               .kind = DESK_SETTLE_CALLBACK,
                               .in.settle_callback = &slot->end};
    desk_post(jobs_desk(slot->callbacks->options.jobs), call);
}

/* Characters of others, for documents and logs. */
static void copy_problem(struct slot *slot, const char *problem)
{
    snprintf(slot->problem, sizeof slot->problem, "%s", problem);
    for (char *at = slot->problem; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

static void fail(struct slot *slot, const char *problem)
{
    struct callbacks *callbacks = slot->callbacks;
    uint32_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        bits = 0; /* then it is merely earlier */
    copy_problem(slot, problem);
    int64_t next_ms = callback_retry(&slot->history, jobs_now_ms(callbacks->options.jobs),
                                     callbacks->options.retry_ms, bits);
    if (next_ms >= 0) {
        if (slot->history.attempts == 1)
            report(slot, LOG_INFO, "a callback failed; it is tried again");
        metric_add(callbacks->retried, 1);
        settle(slot, JOB_CALLBACK_WAITING, next_ms);
        return;
    }
    report(slot, LOG_WARNING, "a callback failed, and is not tried again");
    metric_add(callbacks->failed, 1);
    settle(slot, JOB_CALLBACK_FAILED, 0);
}

static void answered(struct slot *slot, int status)
{
    char problem[JOB_PROBLEM_BYTES];
    struct callbacks *callbacks = slot->callbacks;
    if (status / 100 == 2) {
        report(slot, LOG_DEBUG, "a callback was delivered");
        metric_add(callbacks->delivered, 1);
        settle(slot, JOB_CALLBACK_DELIVERED, 0);
    } else if (status == STATUS_GONE) {
        copy_problem(slot, "the answer was 410: the receiver wants no more");
        report(slot, LOG_INFO, "a callback is unwanted");
        metric_add(callbacks->unwanted, 1);
        settle(slot, JOB_CALLBACK_UNWANTED, 0);
    } else {
        snprintf(problem, sizeof problem, "the answer was %d", status);
        fail(slot, problem);
    }
}

static void on_reply(void *context, const struct callback_reply *reply)
{
    struct callbacks *callbacks = context;
    if (reply->slot < 0 || reply->slot >= CALLBACK_SLOTS)
        return;
    struct slot *slot = &callbacks->slots[reply->slot];
    if (!slot->is_used || slot->is_settling || callbacks->stops)
        return;
    if (reply->status >= 100 && reply->status <= 999)
        answered(slot, reply->status);
    else
        fail(slot, reply->problem[0] != '\0' ? reply->problem : "there was no answer");
}

/* ---- The start of an attempt ---- */

static void write_field(struct callback_request *request, int field, const char *name,
                        const char *value)
{
    int length = snprintf(request->fields[field], CALLBACK_FIELD_BYTES, "%s: %s", name, value);
    assert(length > 0 && length < CALLBACK_FIELD_BYTES);
}

/* false: there is no memory. */
static bool write_request(const struct callbacks *callbacks, const struct slot *slot,
                          struct callback_request *request)
{
    char text[JOB_ID_TEXT], number[32], signature[CALLBACK_SIGNATURE_BYTES];
    struct job shown = callbacks->job;
    struct text body;
    struct callback_secret secret;
    int64_t now_s = jobs_now_ms(callbacks->options.jobs) / 1000;
    shown.callback.due_ms = 0;
    request->slot = (int32_t)(slot - callbacks->slots);
    memcpy(request->url, callbacks->callback.url, sizeof request->url);
    text_init_fixed(&body, request->body, sizeof request->body);
    handlers_job_document(&shown, &body);
    request->body_bytes = (int32_t)body.length;
    job_id_write(&slot->id, text);
    write_field(request, 0, "Invertd-Job", text);
    snprintf(number, sizeof number, "%d", slot->history.attempts);
    write_field(request, 1, "Invertd-Attempt", number);
    snprintf(number, sizeof number, "%lld", (long long)now_s);
    write_field(request, 2, "Invertd-Timestamp", number);
    if (callbacks->options.access == NULL ||
        !access_secret(callbacks->options.access, shown.owner, &secret))
        return !body.failed;
    if (!callback_sign(&secret, now_s, request->body, body.length, signature))
        return false;
    write_field(request, 3, "Invertd-Signature", signature);
    return !body.failed;
}

static void begin(struct callbacks *callbacks, struct slot *slot)
{
    struct callback_url url;
    const struct job *job = &callbacks->job;
    slot->is_used = true;
    slot->is_settling = false;
    slot->id = job->id;
    slot->history =
        (struct callback_history){job->finished_ms, job->expires_ms, job->callback.attempts};
    slot->problem[0] = '\0';
    memcpy(slot->place, callbacks->callback.place, sizeof slot->place);
    if (callback_url_read(callbacks->callback.url, &url, NULL) != ERROR_NONE ||
        !callback_hosts_list_url(callbacks->options.hosts, &url)) {
        fail(slot, "the host is not listed any more");
        return;
    }
    struct callback_request *request = calloc(1, sizeof *request);
    bool good = request != NULL && write_request(callbacks, slot, request);
    if (!good)
        fail(slot, "the service is out of memory");
    else if (callbacks->sender == NULL || !sender_send(callbacks->sender, request))
        fail(slot, "the process that sends callbacks does not run");
    free(request);
}

/* ---- Claims ---- */

static struct slot *free_slot(struct callbacks *callbacks)
{
    for (int i = 0; i < CALLBACK_SLOTS; i++)
        if (!callbacks->slots[i].is_used)
            return &callbacks->slots[i];
    return NULL;
}

/* The places of as many attempts as one may have. */
static int find_busy(struct callbacks *callbacks)
{
    int busy = 0;
    for (int i = 0; i < CALLBACK_SLOTS; i++) {
        int at_it = 0;
        for (int k = 0; k <= i && callbacks->slots[i].is_used; k++)
            at_it += callbacks->slots[k].is_used &&
                     strcmp(callbacks->slots[k].place, callbacks->slots[i].place) == 0;
        if (at_it == PER_PLACE_MAX)
            callbacks->busy[busy++] = callbacks->slots[i].place;
    }
    return busy;
}

static void on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void look_in(struct callbacks *callbacks, int64_t ms)
{
    if (!callbacks->stops)
        uv_timer_start(&callbacks->timer, on_timer, (uint64_t)min_i64(max_i64(ms, 1), LOOK_MAX_MS),
                       0);
}

static void on_claimed(struct message *message)
{
    struct callbacks *callbacks =
        (struct callbacks *)((char *)message - offsetof(struct callbacks, claim));
    int64_t now_ms = jobs_now_ms(callbacks->options.jobs);
    callbacks->is_claiming = false;
    if (callbacks->stops)
        return; /* what was claimed is due again in the next life */
    if (callbacks->claim.failure.code != ERROR_NONE) {
        look_in(callbacks, RESTART_MS);
        return;
    }
    if (callbacks->job.state != JOB_STATES) {
        begin(callbacks, free_slot(callbacks));
        step(callbacks);
        return;
    }
    int64_t due_ms = callbacks->callback.next_due_ms;
    look_in(callbacks, due_ms > 0 ? due_ms - now_ms : LOOK_MAX_MS);
    if (callbacks->is_woken)
        step(callbacks);
}

static void step(struct callbacks *callbacks)
{
    if (callbacks->stops || callbacks->sender == NULL)
        return;
    if (callbacks->is_claiming) {
        callbacks->is_woken = true;
        return;
    }
    if (free_slot(callbacks) == NULL)
        return;
    int64_t now_ms = jobs_now_ms(callbacks->options.jobs);
    callbacks->is_claiming = true;
    callbacks->is_woken = false;
    callbacks->wanted = (struct store_callback_claim){.now_ms = now_ms,
                                                      .again_ms = now_ms + CLAIM_MS,
                                                      .busy = callbacks->busy,
                                                      .busy_count = find_busy(callbacks)};
    callbacks->claim = (struct desk_call){.message.run = on_claimed,
                                          .mailbox = &callbacks->mailbox,
                                          .kind = DESK_CLAIM_CALLBACK,
                                          .in.claim_callback = &callbacks->wanted,
                                          .job = &callbacks->job,
                                          .callback = &callbacks->callback};
    desk_post(jobs_desk(callbacks->options.jobs), &callbacks->claim);
}

/* ---- invertd-post ---- */

static void on_restart(uv_timer_t *timer);

static void on_ended(void *context)
{
    struct callbacks *callbacks = context;
    callbacks->sender = NULL;
    if (callbacks->stops)
        return;
    uv_timer_start(&callbacks->restart, on_restart, RESTART_MS, 0);
    for (int i = 0; i < CALLBACK_SLOTS; i++)
        if (callbacks->slots[i].is_used && !callbacks->slots[i].is_settling)
            fail(&callbacks->slots[i], "the process that sends callbacks has ended");
}

static bool write_arguments(const struct callbacks_options *options, struct text *hosts,
                            struct text *agent)
{
    text_init(hosts, (size_t)CALLBACK_HOSTS_MAX * CALLBACK_ENTRY_BYTES);
    text_init(agent, 256);
    for (int i = 0; i < options->entries->count; i++)
        text_printf(hosts, "%s%s", i > 0 ? "," : "", options->entries->items[i]);
    text_printf(agent, "invertd/%s", options->version);
    return !hosts->failed && !agent->failed;
}

static enum error start_sender(struct callbacks *callbacks, struct failure *failure)
{
    struct text hosts, agent;
    char timeout[16];
    struct engine_command command = {.count = 0};
    const struct callbacks_options *options = &callbacks->options;
    bool good = write_arguments(options, &hosts, &agent);
    snprintf(timeout, sizeof timeout, "%d", ATTEMPT_MS);
    engine_command_add(&command, CALLBACK_PROGRAM);
    engine_command_add(&command, hosts.data);
    engine_command_add(&command, options->ca != NULL ? options->ca : "");
    engine_command_add(&command, agent.data);
    engine_command_add(&command, timeout);
    engine_command_add(&command, options->confined ? "1" : "0");
    const struct sender_options sender = {.loop = options->loop,
                                          .spawner = options->spawner,
                                          .path = callbacks->path,
                                          .arguments = command.arguments,
                                          .on_reply = on_reply,
                                          .on_ended = on_ended,
                                          .context = callbacks};
    enum error error = good ? sender_start(&sender, &callbacks->sender, failure)
                            : failure_set(failure, ERROR_FULL, "out of memory");
    text_free(&hosts);
    text_free(&agent);
    return error;
}

static void on_restart(uv_timer_t *timer)
{
    struct callbacks *callbacks = timer->data;
    struct failure failure = {0};
    if (start_sender(callbacks, &failure) == ERROR_NONE) {
        step(callbacks);
        return;
    }
    log_line(LOG_ERROR, "no callbacks can be sent", "why", LOG_STR, failure.detail, NULL);
    uv_timer_start(&callbacks->restart, on_restart, LOOK_MAX_MS, 0);
}

/* ---- Life ---- */

static void wake_loop(void *context)
{
    uv_async_send(&((struct callbacks *)context)->async);
}

static void on_async(uv_async_t *async)
{
    struct callbacks *callbacks = async->data;
    mailbox_run(&callbacks->mailbox);
    if (atomic_exchange(&callbacks->is_due, false))
        step(callbacks);
}

static void make_series(struct callbacks *callbacks)
{
    struct metric_registry *metrics = callbacks->options.metrics;
    callbacks->delivered = metric_series(metrics, METRIC_CALLBACKS, "delivered");
    callbacks->unwanted = metric_series(metrics, METRIC_CALLBACKS, "unwanted");
    callbacks->retried = metric_series(metrics, METRIC_CALLBACKS, "retried");
    callbacks->failed = metric_series(metrics, METRIC_CALLBACKS, "failed");
}

static void watch(struct callbacks *callbacks)
{
    uv_loop_t *loop = callbacks->options.loop;
    int status = uv_async_init(loop, &callbacks->async, on_async);
    assert(status == 0);
    uv_timer_init(loop, &callbacks->timer);
    uv_timer_init(loop, &callbacks->restart);
    callbacks->async.data = callbacks->timer.data = callbacks->restart.data = callbacks;
    callbacks->is_open = true;
}

enum error callbacks_create(const struct callbacks_options *options, struct callbacks **result,
                            struct failure *failure)
{
    *result = NULL;
    if (options->hosts->count == 0 || options->jobs == NULL)
        return ERROR_NONE;
    struct callbacks *callbacks = calloc(1, sizeof *callbacks);
    if (callbacks == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    callbacks->options = *options;
    for (int i = 0; i < CALLBACK_SLOTS; i++)
        callbacks->slots[i].callbacks = callbacks;
    mailbox_init(&callbacks->mailbox, wake_loop, callbacks);
    make_series(callbacks);
    watch(callbacks);
    *result = callbacks;
    if (!engine_command_path(CALLBACK_PROGRAM, callbacks->path) ||
        access(callbacks->path, X_OK) != 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--allow-callbacks needs the program %s, which is not in the folder of "
                           "invertd.",
                           CALLBACK_PROGRAM);
    enum error error = start_sender(callbacks, failure);
    if (error == ERROR_NONE)
        look_in(callbacks, 1);
    return error;
}

void callbacks_wake(struct callbacks *callbacks)
{
    if (callbacks == NULL || !callbacks->is_open)
        return;
    atomic_store(&callbacks->is_due, true);
    wake_loop(callbacks);
}

void callbacks_stop(struct callbacks *callbacks)
{
    if (callbacks != NULL)
        callbacks->stops = true;
}

void callbacks_close(struct callbacks *callbacks)
{
    if (callbacks == NULL)
        return;
    callbacks_stop(callbacks);
    mailbox_run(&callbacks->mailbox);
    callbacks->is_open = false;
    sender_end(&callbacks->sender);
    uv_close((uv_handle_t *)&callbacks->async, NULL);
    uv_close((uv_handle_t *)&callbacks->timer, NULL);
    uv_close((uv_handle_t *)&callbacks->restart, NULL);
}

void callbacks_free(struct callbacks **callbacks)
{
    if (*callbacks == NULL)
        return;
    mailbox_fini(&(*callbacks)->mailbox);
    free(*callbacks);
    *callbacks = NULL;
}
