/* client/session.c: see session.h. */
#include "client/session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define PAUSE_FIRST_NS ((int64_t)(200 * CLOCK_MS))
#define PAUSE_MAX_NS ((int64_t)(5 * CLOCK_S))

enum error session_open(struct session *session, const struct arguments *arguments,
                        struct outcome *outcome, bool show, struct failure *failure)
{
    enum error error = ERROR_NONE;
    *session =
        (struct session){.arguments = arguments, .outcome = outcome, .begun_ns = clock_now_ns()};
    if (arguments->timeout_ns > 0)
        session->deadline_ns = session->begun_ns + (uint64_t)arguments->timeout_ns;
    if (arguments->token_file != NULL)
        error =
            files_read_token(arguments->token_file, session->token, sizeof session->token, failure);
    if (error == ERROR_NONE && arguments->key != NULL)
        error = files_check_key(arguments->key, failure);
    if (error != ERROR_NONE)
        return error;
    struct wire_server server = {.address = arguments->address.data,
                                 .socket = arguments->socket,
                                 .token = session->token[0] != '\0' ? session->token : NULL,
                                 .cacert = arguments->cacert,
                                 .cert = arguments->cert,
                                 .key = arguments->key};
    session->wire = wire_open(&server);
    if (session->wire == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    progress_begin(&session->progress, show);
    session_renew(session);
    return ERROR_NONE;
}

void session_stop(struct session *session)
{
    progress_end(&session->progress);
    session->outcome->seconds = (double)(clock_now_ns() - session->begun_ns) * 1e-9;
}

void session_close(struct session *session)
{
    wire_close(&session->wire);
    explicit_bzero(session->token, sizeof session->token);
}

/* ---- One request ---- */

static enum outcome_code code_of(enum wire_end end)
{
    static const enum outcome_code codes[] = {
        [WIRE_ANSWERED] = OUTCOME_DONE,       [WIRE_NO_CONNECTION] = OUTCOME_UNREACHABLE,
        [WIRE_BROKEN] = OUTCOME_UNREACHABLE,  [WIRE_REFUSED_TLS] = OUTCOME_UNREACHABLE,
        [WIRE_TIMED_OUT] = OUTCOME_TIMED_OUT, [WIRE_LOCAL] = OUTCOME_LOCAL,
    };
    return codes[end];
}

static void note(struct session *session, const struct wire_answer *answer)
{
    struct outcome *outcome = session->outcome;
    outcome->tries++;
    outcome->status = answer->status;
    if (answer->sent > 0) /* what asks how a job is has no body */
        outcome->sent_bytes = answer->sent;
    outcome->received_bytes = answer->received;
    outcome->code = code_of(answer->end);
    outcome->message[0] = '\0';
    if (answer->method[0] != '\0')
        memcpy(outcome->method, answer->method, sizeof outcome->method);
    if (answer->info >= 0)
        outcome->info = answer->info;
    if (answer->end != WIRE_ANSWERED)
        outcome_say(outcome, answer->message);
    else if (outcome_of_status(answer->status) != OUTCOME_DONE)
        outcome_refused(outcome, answer->status, answer->type, &answer->body);
    if (answer->status > 0 || answer->end == WIRE_BROKEN)
        session->reached = true;
}

/* What is left until the deadline; at least a millisecond, for 0 would be no limit. */
static int64_t left_ns(const struct session *session)
{
    int64_t left = (int64_t)(session->deadline_ns - clock_now_ns());
    return left > (int64_t)CLOCK_MS ? left : (int64_t)CLOCK_MS;
}

bool session_send(struct session *session, struct wire_request *request, struct wire_answer *answer)
{
    struct wire_request limited = *request;
    uint64_t begun_ns = clock_now_ns();
    if (session->deadline_ns > 0 && (limited.limit_ns == 0 || limited.limit_ns > left_ns(session)))
        limited.limit_ns = left_ns(session);
    wire_send(session->wire, &limited, answer);
    progress_end(&session->progress);
    note(session, answer);
    if (answer->end == WIRE_NO_CONNECTION || (answer->end == WIRE_TIMED_OUT && answer->status == 0))
        session->patience_ns -= (int64_t)(clock_now_ns() - begun_ns);
    return session->outcome->code == OUTCOME_DONE;
}

/* ---- Pauses ---- */

void session_renew(struct session *session)
{
    session->patience_ns = session->arguments->retry_max_ns;
    session->pause_ns = PAUSE_FIRST_NS;
}

static bool may_come_again(const struct session *session, const struct wire_answer *answer,
                           bool persists)
{
    if (session->outcome->code == OUTCOME_NO_ROOM)
        return true;
    if (!persists || !session->reached)
        return false;
    return answer->end == WIRE_NO_CONNECTION || answer->end == WIRE_BROKEN ||
           answer->end == WIRE_TIMED_OUT || answer->status == 408 || answer->status == 502 ||
           answer->status == 504;
}

void session_sleep(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / (int64_t)CLOCK_S, .tv_nsec = ns % (int64_t)CLOCK_S};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static bool time_is_over(struct session *session, int64_t pause_ns)
{
    char message[sizeof session->outcome->message];
    if (session->deadline_ns == 0 || clock_now_ns() + (uint64_t)pause_ns < session->deadline_ns)
        return false;
    session->outcome->code = OUTCOME_TIMED_OUT;
    snprintf(message, sizeof message, "--timeout is over; the last that was heard: %.400s",
             session->outcome->message);
    outcome_say(session->outcome, message);
    return true;
}

bool session_pause(struct session *session, const struct wire_answer *answer, bool persists)
{
    int64_t pause_ns = (int64_t)answer->retry_after_s * (int64_t)CLOCK_S;
    if (!may_come_again(session, answer, persists))
        return false;
    if (pause_ns == 0)
        pause_ns = session->outcome->code == OUTCOME_NO_ROOM && session->pause_ns < (int64_t)CLOCK_S
                       ? (int64_t)CLOCK_S
                       : session->pause_ns;
    if (time_is_over(session, pause_ns) || pause_ns > session->patience_ns)
        return false;
    if (session->progress.wanted)
        fprintf(stderr, "invert: %s; again in %.1f s\n", session->outcome->message,
                (double)pause_ns * 1e-9);
    session_sleep(pause_ns);
    session->patience_ns -= pause_ns;
    session->pause_ns = 2 * session->pause_ns < PAUSE_MAX_NS ? 2 * session->pause_ns : PAUSE_MAX_NS;
    return true;
}

void session_show(struct session *session, const struct progress_state *state)
{
    progress_update(&session->progress, state);
}
