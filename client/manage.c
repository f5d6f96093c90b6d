/* client/manage.c: see manage.h. */
#include "client/manage.h"

#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "client/convert.h"
#include "client/job.h"

#define PAGE_MAX 1000 /* jobs, as the server's */

typedef void (*each_fn)(const struct arguments *arguments, const struct outcome *outcome,
                        bool printed);

/* ---- One job. Each returns whether it has printed what was asked for. ---- */

static bool status_of(struct job *job)
{
    const struct arguments *arguments = job->session->arguments;
    if (!job_ask(job, 0) && job->json.length == 0)
        return false;
    if (arguments->json)
        document_print_json(&job->json, stdout);
    else
        document_print(&job->document, stdout);
    return true;
}

static bool wait_for(struct job *job)
{
    if (job_wait(job) && job->document.status == DOCUMENT_FAILED)
        (void)job_fetch(job, NULL); /* it says why */
    return false;
}

static bool cancel(struct job *job)
{
    (void)job_cancel(job);
    return false;
}

static bool fetch(struct job *job)
{
    const struct arguments *arguments = job->session->arguments;
    struct outcome *outcome = job->session->outcome;
    struct failure failure = {0};
    struct convert_output output;
    enum error error = convert_open_output(arguments, &output, &failure);
    if (error == ERROR_NONE && job_ask(job, 0)) {
        if (job->document.status == DOCUMENT_ACCEPTED || job->document.status == DOCUMENT_RUNNING) {
            outcome->code = OUTCOME_NOT_READY;
            outcome_say(outcome, "the job has not ended yet; invert wait waits for it");
        } else if (job_fetch(job, output.receives)) {
            error = convert_commit(arguments, &output, &failure);
        }
    }
    if (error != ERROR_NONE) {
        outcome->code = OUTCOME_LOCAL;
        outcome_say(outcome, failure.detail);
    }
    convert_close_output(&output);
    return false;
}

/* ---- All of them ---- */

static void list_one(void *context, const struct document *document, const char *json)
{
    const struct session *session = context;
    if (session->arguments->json)
        puts(json);
    else
        document_print(document, stdout);
}

static void list_path(const struct arguments *arguments, int64_t left, const char *cursor,
                      struct text *path)
{
    const char *const values[][2] = {
        {"status", arguments->status}, {"since", arguments->since}, {"cursor", cursor}};
    text_free(path);
    text_init(path, 4096);
    text_printf(path, "/v1/jobs?limit=%lld", (long long)min_i64(left, PAGE_MAX));
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i][1] == NULL || values[i][1][0] == '\0')
            continue;
        text_printf(path, "&%s=", values[i][0]);
        arguments_escape(path, values[i][1], strlen(values[i][1]));
    }
}

/* One page; false: it was the last, or an error. */
static bool list_page(struct session *session, struct text *path, int64_t *left, char cursor[1024])
{
    struct wire_answer answer;
    bool done, again;
    list_path(session->arguments, *left, cursor, path);
    do {
        struct wire_request request = {.verb = "GET", .path = path->data};
        done = session_send(session, &request, &answer);
        again = !done && session_pause(session, &answer, true);
        if (again)
            text_free(&answer.body);
    } while (again);
    int count = done ? document_read_page(&answer.body, cursor, 1024, (int)min_i64(*left, PAGE_MAX),
                                          list_one, session)
                     : 0;
    text_free(&answer.body);
    *left -= count > 0 ? count : 0;
    if (count < 0) {
        session->outcome->code = OUTCOME_SERVER;
        outcome_say(session->outcome, "the server sent no list of jobs");
    }
    return done && count > 0 && *left > 0 && cursor[0] != '\0';
}

static void list(struct session *session)
{
    char cursor[1024] = "";
    struct text path = {0};
    int64_t left = session->arguments->limit;
    if (!session->arguments->json && !session->arguments->quiet)
        document_print_head(stdout);
    while (list_page(session, &path, &left, cursor))
        continue;
    text_free(&path);
}

static bool one(struct session *session, const char *id)
{
    static bool (*const steps[])(struct job *) = {[COMMAND_STATUS] = status_of,
                                                  [COMMAND_WAIT] = wait_for,
                                                  [COMMAND_FETCH] = fetch,
                                                  [COMMAND_CANCEL] = cancel};
    struct job job;
    job_open(&job, session, NULL, id);
    session_renew(session);
    bool printed = steps[session->arguments->command](&job);
    progress_end(&session->progress);
    job_close(&job);
    return printed;
}

enum outcome_code manage_run(struct session *session, each_fn each)
{
    const struct arguments *arguments = session->arguments;
    enum outcome_code first = OUTCOME_DONE;
    if (arguments->command == COMMAND_LIST) {
        list(session);
        session_stop(session);
        each(arguments, session->outcome, session->outcome->code == OUTCOME_DONE);
        return session->outcome->code;
    }
    if (arguments->command == COMMAND_STATUS && !arguments->json && !arguments->quiet)
        document_print_head(stdout);
    for (int i = 0; i < arguments->id_count; i++) {
        *session->outcome = (struct outcome){.info = -1};
        bool printed = one(session, arguments->ids[i]);
        session_stop(session);
        each(arguments, session->outcome, printed);
        if (first == OUTCOME_DONE)
            first = session->outcome->code;
    }
    return first;
}
