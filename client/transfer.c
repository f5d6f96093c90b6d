/* client/transfer.c: see transfer.h. The only door to libcurl.
 *
 * The body is read from its file as curl asks for it, the answer is written as it comes: neither is
 * ever whole in memory. A large body waits for `100 Continue` (curl does by itself), so a refusal
 * costs no upload.
 */
#include "client/transfer.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/progress.h"

#define REFUSAL_MAX (64 << 10)    /* bytes of a refusal that are read */
#define BUFFER_BYTES (256L << 10) /* of curl's, each way */
#define CONNECT_SECONDS 10L

struct transfer {
    const struct arguments *arguments;
    struct files_input *input;
    struct files_output *output;
    struct outcome *outcome;
    CURL *curl;
    struct curl_slist *fields;
    struct text refusal;
    struct progress progress;
    char error[CURL_ERROR_SIZE];
};

/* ---- What curl calls ---- */

static size_t on_read(char *buffer, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    int64_t left = t->input->size - t->input->at;
    size_t wanted = size * count;
    if ((int64_t)wanted > left)
        wanted = (size_t)left;
    ssize_t got = pread(t->input->fd, buffer, wanted, t->input->start + t->input->at);
    if (got < 0 || (got == 0 && wanted > 0)) {
        snprintf(t->outcome->message, sizeof t->outcome->message, "cannot read %.200s: %s",
                 t->arguments->input, got < 0 ? strerror(errno) : "it became shorter");
        return CURL_READFUNC_ABORT;
    }
    t->input->at += got;
    return (size_t)got;
}

static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct transfer *t = context;
    if (origin != SEEK_SET || offset < 0 || offset > t->input->size)
        return CURL_SEEKFUNC_FAIL;
    t->input->at = offset;
    return CURL_SEEKFUNC_OK;
}

static long status_of(struct transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_write(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    if (outcome_of_status(status_of(t)) != OUTCOME_DONE) {
        text_append(&t->refusal, data, size * count);
        return size * count;
    }
    int number = files_write(t->output, data, size * count);
    if (number == 0)
        return size * count;
    snprintf(t->outcome->message, sizeof t->outcome->message, "cannot write %.200s: %s",
             t->arguments->output, strerror(number));
    return 0;
}

static int on_progress(void *context, curl_off_t to_receive, curl_off_t received,
                       curl_off_t to_send, curl_off_t sent)
{
    struct transfer *t = context;
    progress_update(&t->progress, &(struct progress_bytes){sent, to_send, received, to_receive});
    return 0;
}

/* ---- One try ---- */

static bool add_field(struct transfer *t, const char *name, const char *value)
{
    char field[1200];
    snprintf(field, sizeof field, "%s:%s%s", name, value[0] != '\0' ? " " : "", value);
    struct curl_slist *longer = curl_slist_append(t->fields, field);
    t->fields = longer != NULL ? longer : t->fields;
    return longer != NULL;
}

/* An ending that says nothing leaves it to the server: it looks at the first bytes. */
static bool add_fields(struct transfer *t, const char *token)
{
    char bearer[1100];
    const char *type = arguments_media_type(t->arguments->input);
    const char *wanted = arguments_media_type(t->arguments->output);
    snprintf(bearer, sizeof bearer, "Bearer %s", token != NULL ? token : "");
    return add_field(t, "Content-Type", type != NULL ? type : "") &&
           (wanted == NULL || add_field(t, "Accept", wanted)) &&
           (token == NULL || add_field(t, "Authorization", bearer));
}

static bool prepare(struct transfer *t, const char *token)
{
    const struct arguments *a = t->arguments;
    bool good = t->curl != NULL && add_fields(t, token);
#define SET(option, value) good = good && curl_easy_setopt(t->curl, option, value) == CURLE_OK
    SET(CURLOPT_URL, a->url.data);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_UNIX_SOCKET_PATH, a->socket);
    SET(CURLOPT_CAINFO, a->cacert);
    SET(CURLOPT_HTTPHEADER, t->fields);
    SET(CURLOPT_USERAGENT, "invert");
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->input->size);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, t);
    SET(CURLOPT_SEEKFUNCTION, on_seek);
    SET(CURLOPT_SEEKDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_write);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);
#undef SET
    return good;
}

static const char *header(struct transfer *t, const char *name)
{
    struct curl_header *found;
    return curl_easy_header(t->curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value
                                                                                     : NULL;
}

static void note_answer(struct transfer *t)
{
    struct outcome *outcome = t->outcome;
    const char *method = header(t, "Invertd-Method"), *info = header(t, "Invertd-Info");
    curl_off_t sent = 0, received = 0;
    curl_easy_getinfo(t->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_easy_getinfo(t->curl, CURLINFO_SIZE_DOWNLOAD_T, &received);
    outcome->status = status_of(t);
    outcome->sent_bytes = sent;
    outcome->received_bytes = received;
    snprintf(outcome->method, sizeof outcome->method, "%s", method != NULL ? method : "");
    outcome->info = info != NULL ? strtol(info, NULL, 10) : -1;
}

/* A message that is there is of a local file. */
static void note_failure(struct transfer *t, CURLcode result)
{
    struct outcome *outcome = t->outcome;
    char message[sizeof outcome->message];
    bool local = outcome->message[0] != '\0' || result == CURLE_SSL_CACERT_BADFILE ||
                 result == CURLE_URL_MALFORMAT || result == CURLE_OUT_OF_MEMORY;
    outcome->code = local                                ? OUTCOME_LOCAL
                    : result == CURLE_OPERATION_TIMEDOUT ? OUTCOME_TIMED_OUT
                                                         : OUTCOME_UNREACHABLE;
    snprintf(message, sizeof message, "%.200s: %s", t->arguments->server,
             t->error[0] != '\0' ? t->error : curl_easy_strerror(result));
    if (outcome->message[0] == '\0')
        outcome_say(outcome, message);
}

static void try_once(struct transfer *t)
{
    t->input->at = 0;
    t->error[0] = '\0';
    t->outcome->message[0] = '\0';
    text_free(&t->refusal);
    progress_begin(&t->progress, t->progress.wanted);
    CURLcode result = curl_easy_perform(t->curl);
    progress_end(&t->progress);
    t->outcome->tries++;
    note_answer(t);
    if (result != CURLE_OK)
        note_failure(t, result);
    else if (outcome_of_status(t->outcome->status) == OUTCOME_DONE)
        t->outcome->code = OUTCOME_DONE;
    else
        outcome_refused(t->outcome, t->outcome->status, header(t, "Content-Type"), &t->refusal);
}

/* ---- All tries ---- */

static void try_until_room(struct transfer *t)
{
    int64_t left_s = t->arguments->retry_max_ns / (int64_t)CLOCK_S;
    for (;;) {
        curl_off_t pause_s = 0;
        try_once(t);
        curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &pause_s);
        pause_s = pause_s > 0 ? pause_s : 1;
        if (t->outcome->code != OUTCOME_NO_ROOM || pause_s > left_s)
            return;
        if (t->progress.wanted)
            fprintf(stderr, "invert: %s; again in %lld s\n", t->outcome->message,
                    (long long)pause_s);
        sleep((unsigned)pause_s);
        left_s -= pause_s;
    }
}

void transfer_run(const struct arguments *arguments, const char *token, struct files_input *input,
                  struct files_output *output, bool show, struct outcome *outcome)
{
    uint64_t begun_ns = clock_now_ns();
    struct transfer t = {arguments, input, output, outcome, .progress.wanted = show};
    text_init(&t.refusal, REFUSAL_MAX);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        t.curl = curl_easy_init();
    if (prepare(&t, token))
        try_until_room(&t);
    else
        note_failure(&t, CURLE_OUT_OF_MEMORY);
    outcome->seconds = (double)(clock_now_ns() - begun_ns) * 1e-9;
    text_free(&t.refusal);
    curl_slist_free_all(t.fields);
    curl_easy_cleanup(t.curl);
    curl_global_cleanup();
}
