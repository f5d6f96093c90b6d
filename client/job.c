/* client/job.c: see job.h. */
#include "client/job.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/digest.h"
#include "client/direct.h"

#define WAIT_S 20       /* of a long poll that no person looks at */
#define WAIT_SLACK_S 15 /* after which a server that should have answered is given up */
#define FORGET_S 10
#define POLL_MIN_NS ((int64_t)(300 * CLOCK_MS))
#define LOSSES_MAX 5
#define PATH_MAX_BYTES 160

/* ---- Life ---- */

static void make_key(struct job *job)
{
    unsigned char bytes[16];
    const char *given = job->session->arguments->idempotency_key;
    if (given != NULL) {
        snprintf(job->key, sizeof job->key, "%s", given);
        return;
    }
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        memcpy(bytes, &(uint64_t[2]){clock_now_ns(), clock_wall_ms()}, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(job->key + 2 * i, 3, "%02x", bytes[i]);
}

void job_open(struct job *job, struct session *session, struct files_input *input, const char *id)
{
    *job = (struct job){.session = session, .input = input};
    text_init(&job->json, WIRE_BODY_MAX);
    make_key(job);
    if (id != NULL)
        snprintf(job->document.id, sizeof job->document.id, "%s", id);
    snprintf(session->outcome->id, sizeof session->outcome->id, "%s", job->document.id);
}

void job_close(struct job *job)
{
    text_free(&job->json);
    files_say_at_signal(NULL);
}

static bool end(struct job *job, enum outcome_code code, const char *message)
{
    job->session->outcome->code = code;
    outcome_say(job->session->outcome, message);
    return code == OUTCOME_DONE;
}

/* Takes the document out of an answer. */
static bool take_document(struct job *job, struct wire_answer *answer)
{
    char line[200];
    struct document document;
    if (!document_read(&answer->body, &document))
        return end(job, OUTCOME_SERVER, "the server sent no document of a job");
    job->document = document;
    text_free(&job->json);
    job->json = answer->body;
    answer->body = (struct text){0};
    memcpy(job->session->outcome->id, document.id, sizeof document.id);
    memcpy(job->session->outcome->method, document.method, sizeof document.method);
    snprintf(line, sizeof line,
             "\ninvert: the job %s goes on; invert fetch has its answer, invert cancel ends it.\n",
             document.id);
    if (job->input != NULL)
        files_say_at_signal(line);
    return true;
}

/* ---- The upload ---- */

static bool on_upload_body(void *context, struct wire_answer *answer, const char *data, size_t size)
{
    struct receive *receive = context;
    if (answer->status != 200 || answer->info < 0 || answer->applied)
        return false;
    if (receive->output == NULL)
        snprintf(answer->message, sizeof answer->message,
                 "the server has no jobs: it answers at once");
    else
        receive_piece(receive, answer, data, size);
    return true;
}

/* Once it is here: a document, or an answer; or one of a job that was cancelled before. */
static bool note_upload(struct job *job, struct wire_answer *answer)
{
    job->answered = answer->status == 200 && answer->info >= 0 && !answer->applied;
    if (job->answered)
        return true;
    if (!take_document(job, answer))
        return false;
    if (strcmp(job->document.id, job->lost_id) == 0)
        return end(job, OUTCOME_CANCELLED, "the job was cancelled");
    session_renew(job->session);
    return true;
}

/* What a refusal of an upload means. */
static void note_refusal(struct job *job, const struct wire_answer *answer, bool detached)
{
    struct outcome *outcome = job->session->outcome;
    bool is_off = answer->status == 503 && answer->body.data != NULL &&
                  strstr(answer->body.data, "no-jobs") != NULL; /* the problem's type */
    job->refused =
        is_off || answer->status == 403 || answer->status == 405 || answer->status == 501;
    if (answer->status == 422 && answer->info < 0)
        outcome->code = OUTCOME_INVALID; /* the key belongs to another request */
    if (is_off && detached)
        outcome->code = OUTCOME_INVALID; /* there will be none later either */
    if (answer->status == 200 && answer->info >= 0 && answer->end == WIRE_LOCAL && detached)
        outcome->code = OUTCOME_INVALID; /* no fault of a local file's */
    if (outcome->code == OUTCOME_NOT_FOUND && job->lost_id[0] != '\0')
        (void)end(job, OUTCOME_CANCELLED, "the job was cancelled");
}

bool job_upload(struct job *job, struct files_output *output)
{
    char type[100], key[JOB_KEY_MAX + 32];
    struct wire_answer answer;
    struct receive receive = {job->session, output, .total = 0};
    bool done, again;
    snprintf(key, sizeof key, "Idempotency-Key: %s", job->key);
    do {
        struct wire_request request = direct_request(job->session, job->input, type);
        request.fields[1] = "Prefer: respond-async";
        request.fields[2] = key;
        request.context = &receive;
        request.on_body = on_upload_body;
        request.on_progress = receive_progress;
        receive_ask(&receive, &request);
        done = session_send(job->session, &request, &answer);
        if (done)
            done = note_upload(job, &answer);
        else
            note_refusal(job, &answer, output == NULL);
        again = !done && !job->refused && session_pause(job->session, &answer, true);
        text_free(&answer.body);
    } while (again);
    return done;
}

/* ---- What is asked of a job ---- */

static struct wire_request request_of(const struct job *job, const char *verb, const char *behind,
                                      char path[PATH_MAX_BYTES])
{
    snprintf(path, PATH_MAX_BYTES, "/v1/jobs/%s%s", job->document.id, behind);
    return (struct wire_request){.verb = verb, .path = path};
}

static bool has_ended(const struct job *job)
{
    return job->document.status == DOCUMENT_SUCCESSFUL || job->document.status == DOCUMENT_FAILED;
}

static void show(struct job *job)
{
    const struct document *document = &job->document;
    struct progress_state state = {PROGRESS_WAITING, document->position, 0};
    if (has_ended(job))
        return;
    if (document->status == DOCUMENT_RUNNING)
        state =
            (struct progress_state){PROGRESS_RUNNING, (int64_t)(document->progress * 100), 10000};
    session_show(job->session, &state);
}

bool job_ask(struct job *job, int wait_s)
{
    char path[PATH_MAX_BYTES], wait[32] = "";
    struct wire_answer answer;
    bool done, again;
    if (wait_s > 0)
        snprintf(wait, sizeof wait, "?wait=%d", wait_s);
    do {
        struct wire_request request = request_of(job, "GET", wait, path);
        request.limit_ns = (int64_t)(wait_s + WAIT_SLACK_S) * (int64_t)CLOCK_S;
        done = session_send(job->session, &request, &answer) && take_document(job, &answer);
        again = !done && session_pause(job->session, &answer, true);
        text_free(&answer.body);
    } while (again);
    if (done)
        session_renew(job->session);
    if (done && job->document.status == DOCUMENT_DISMISSED)
        done = end(job, OUTCOME_CANCELLED, "the job was cancelled");
    return done;
}

/* A person wants to see it move. */
static int poll_seconds(const struct session *session)
{
    int wait_s = session->progress.wanted ? 1 : WAIT_S;
    if (session->deadline_ns > 0) {
        int64_t left_s = ((int64_t)(session->deadline_ns - clock_now_ns())) / (int64_t)CLOCK_S;
        wait_s = left_s < 1 ? 1 : left_s < wait_s ? (int)left_s : wait_s;
    }
    return wait_s;
}

/* A server, or a proxy, may answer a long poll early, and again and again. */
static void slow_down(const struct job *job, uint64_t asked_ns)
{
    int64_t left_ns = POLL_MIN_NS - (int64_t)(clock_now_ns() - asked_ns);
    if (left_ns > 0 && !has_ended(job))
        session_sleep(left_ns);
}

bool job_wait(struct job *job)
{
    bool known = job->json.length > 0;
    do {
        uint64_t asked_ns = clock_now_ns();
        if (!job_ask(job, poll_seconds(job->session))) {
            if (known && job->session->outcome->code == OUTCOME_NOT_FOUND)
                end(job, OUTCOME_CANCELLED, "the job was cancelled, or the server has lost it");
            return false;
        }
        known = true;
        show(job);
        if (!has_ended(job) && job->session->deadline_ns > 0 &&
            clock_now_ns() > job->session->deadline_ns)
            return end(job, OUTCOME_TIMED_OUT, "--timeout is over, and the job has not ended");
        slow_down(job, asked_ns);
    } while (!has_ended(job));
    progress_end(&job->session->progress);
    return true;
}

bool job_fetch(struct job *job, struct files_output *output)
{
    char path[PATH_MAX_BYTES];
    struct wire_answer answer;
    struct receive receive = {job->session, output, .total = 0};
    bool done, again;
    do {
        int64_t before = output != NULL ? output->at : 0;
        struct wire_request request = request_of(job, "GET", "/result", path);
        request.context = &receive;
        request.on_body = receive_piece;
        request.on_progress = receive_progress;
        receive_ask(&receive, &request);
        done = session_send(job->session, &request, &answer);
        if (output != NULL && output->at > before)
            session_renew(job->session);
        /* The failure of a failed job is no failure to answer. */
        again = !done && session_pause(job->session, &answer,
                                       job->document.status != DOCUMENT_FAILED ||
                                           answer.end != WIRE_ANSWERED);
        text_free(&answer.body);
    } while (again);
    if (done && output != NULL)
        job->session->outcome->received_bytes = output->at;
    return done;
}

static bool delete_job(struct job *job, int64_t limit_ns)
{
    char path[PATH_MAX_BYTES];
    struct wire_answer answer;
    bool done, again, persists = limit_ns == 0;
    do {
        struct wire_request request = request_of(job, "DELETE", "", path);
        request.limit_ns = limit_ns;
        done = session_send(job->session, &request, &answer);
        again = !done && persists && session_pause(job->session, &answer, true);
        text_free(&answer.body);
    } while (again);
    return done;
}

bool job_cancel(struct job *job)
{
    return delete_job(job, 0);
}

void job_forget(struct job *job)
{
    struct outcome kept = *job->session->outcome;
    if (job->document.id[0] != '\0' && has_ended(job))
        (void)delete_job(job, (int64_t)(FORGET_S * CLOCK_S));
    *job->session->outcome = kept;
}

/* ---- All of it ---- */

/* The server does not know the job: by a cancellation, of which it keeps the key, or because its
 * data folder is another one. The upload finds out. True: it is sent again. */
static bool is_lost(struct job *job)
{
    enum outcome_code code = job->session->outcome->code;
    if ((code != OUTCOME_NOT_FOUND && code != OUTCOME_CANCELLED) ||
        job->session->outcome->status != 404 || job->losses == LOSSES_MAX)
        return false;
    job->losses++;
    memcpy(job->lost_id, job->document.id, sizeof job->lost_id);
    job->document = (struct document){0};
    return true;
}

void job_run(struct job *job, struct files_output *output)
{
    bool again = true;
    while (again && job_upload(job, output)) {
        if (job->answered || (job_wait(job) && job_fetch(job, output)))
            return;
        again = is_lost(job);
        if (again && !files_rewind(output))
            again = !end(job, OUTCOME_UNREACHABLE,
                         "the server has lost the job while its answer was written to a pipe");
    }
}
