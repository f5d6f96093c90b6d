/* client/wire.c: see wire.h. The only door to libcurl.
 *
 * A large body waits for `100 Continue` (curl does by itself), so a refusal costs no upload.
 */
#include "client/wire.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define BUFFER_BYTES (256L << 10) /* of curl's, each way */
#define CONNECT_SECONDS 10L
#define STALL_SECONDS 120L

struct wire {
    struct wire_server server;
    CURL *curl;
    const struct wire_request *request; /* NULL between requests */
    struct wire_answer *answer;
    bool noted;
    char error[CURL_ERROR_SIZE];
};

/* ---- What curl calls ---- */

static size_t on_read(char *buffer, size_t size, size_t count, void *context)
{
    struct wire *wire = context;
    struct files_input *input = wire->request->body;
    int64_t left = input->size - input->at;
    size_t wanted = size * count;
    if ((int64_t)wanted > left)
        wanted = (size_t)left;
    ssize_t got = pread(input->fd, buffer, wanted, input->start + input->at);
    if (got < 0 || (got == 0 && wanted > 0)) {
        snprintf(wire->answer->message, sizeof wire->answer->message, "cannot read %.200s: %s",
                 wire->request->body_name, got < 0 ? strerror(errno) : "it became shorter");
        return CURL_READFUNC_ABORT;
    }
    input->at += got;
    return (size_t)got;
}

static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct wire *wire = context;
    if (origin != SEEK_SET || offset < 0 || offset > wire->request->body->size)
        return CURL_SEEKFUNC_FAIL;
    wire->request->body->at = offset;
    return CURL_SEEKFUNC_OK;
}

static const char *field(struct wire *wire, const char *name)
{
    struct curl_header *found;
    return curl_easy_header(wire->curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK
               ? found->value
               : NULL;
}

static void copy_field(struct wire *wire, const char *name, char *text, size_t size)
{
    const char *value = field(wire, name);
    snprintf(text, size, "%s", value != NULL && strlen(value) < size ? value : "");
}

static int64_t number_field(struct wire *wire, const char *name, const char *before)
{
    const char *value = field(wire, name);
    char *end;
    if (value == NULL || strncmp(value, before, strlen(before)) != 0)
        return -1;
    long long number = strtoll(value + strlen(before), &end, 10);
    return end != value + strlen(before) && number >= 0 ? number : -1;
}

static void note_head(struct wire *wire)
{
    struct wire_answer *answer = wire->answer;
    curl_off_t pause_s = 0;
    const char *preference = field(wire, "Preference-Applied");
    curl_easy_getinfo(wire->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_easy_getinfo(wire->curl, CURLINFO_RETRY_AFTER, &pause_s);
    answer->retry_after_s = pause_s > 0 && pause_s < INT32_MAX ? (int)pause_s : 0;
    answer->applied = preference != NULL && strstr(preference, "respond-async") != NULL;
    answer->info = number_field(wire, "Invertd-Info", "");
    answer->length = number_field(wire, "Content-Length", "");
    answer->range_from = number_field(wire, "Content-Range", "bytes ");
    copy_field(wire, "Content-Type", answer->type, sizeof answer->type);
    copy_field(wire, "ETag", answer->etag, sizeof answer->etag);
    copy_field(wire, "Invertd-Method", answer->method, sizeof answer->method);
    wire->noted = true;
}

static size_t on_write(char *data, size_t size, size_t count, void *context)
{
    struct wire *wire = context;
    const struct wire_request *request = wire->request;
    if (!wire->noted)
        note_head(wire);
    if (request->on_body == NULL ||
        !request->on_body(request->context, wire->answer, data, size * count))
        text_append(&wire->answer->body, data, size * count);
    return wire->answer->message[0] == '\0' ? size * count : 0;
}

static int on_progress(void *context, curl_off_t to_receive, curl_off_t received,
                       curl_off_t to_send, curl_off_t sent)
{
    struct wire *wire = context;
    (void)to_receive;
    if (wire->request != NULL && wire->request->on_progress != NULL)
        wire->request->on_progress(wire->request->context, sent, to_send, received);
    return 0;
}

/* ---- One request ---- */

static bool add_field(struct curl_slist **list, const char *field)
{
    struct curl_slist *longer = curl_slist_append(*list, field);
    *list = longer != NULL ? longer : *list;
    return longer != NULL;
}

static bool add_fields(struct wire *wire, struct curl_slist **list)
{
    char bearer[1200];
    bool good = true;
    for (int i = 0; i < WIRE_FIELDS_MAX && wire->request->fields[i] != NULL; i++)
        good = good && add_field(list, wire->request->fields[i]);
    if (wire->server.token != NULL) {
        snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", wire->server.token);
        good = good && add_field(list, bearer);
        explicit_bzero(bearer, sizeof bearer);
    }
    return good;
}

#define SET(option, value) good = good && curl_easy_setopt(wire->curl, option, value) == CURLE_OK

static bool prepare_server(struct wire *wire)
{
    const struct wire_server *server = &wire->server;
    bool good = true;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_UNIX_SOCKET_PATH, server->socket);
    SET(CURLOPT_CAINFO, server->cacert);
    SET(CURLOPT_SSLCERT, server->cert);
    SET(CURLOPT_SSLKEY, server->key);
    SET(CURLOPT_USERAGENT, "invert");
    SET(CURLOPT_WRITEFUNCTION, on_write);
    SET(CURLOPT_WRITEDATA, wire);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, wire);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, wire->error);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    return good;
}

static bool prepare_body(struct wire *wire)
{
    bool good = true;
    wire->request->body->at = 0;
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)wire->request->body->size);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, wire);
    SET(CURLOPT_SEEKFUNCTION, on_seek);
    SET(CURLOPT_SEEKDATA, wire);
    return good;
}

static bool prepare(struct wire *wire, struct curl_slist **fields)
{
    const struct wire_request *request = wire->request;
    struct text url;
    text_init(&url, 128 << 10);
    text_printf(&url, "%s%s", wire->server.address, request->path);
    curl_easy_reset(wire->curl);
    bool good = !url.failed && add_fields(wire, fields) && prepare_server(wire);
    SET(CURLOPT_URL, url.data);
    if (request->body != NULL)
        good = good && prepare_body(wire);
    SET(CURLOPT_CUSTOMREQUEST, request->verb);
    SET(CURLOPT_HTTPHEADER, *fields);
    SET(CURLOPT_TIMEOUT_MS, (long)((request->limit_ns + 999999) / 1000000));
    SET(CURLOPT_LOW_SPEED_LIMIT, request->may_stall ? 0L : 1L);
    SET(CURLOPT_LOW_SPEED_TIME, request->may_stall ? 0L : STALL_SECONDS);
    text_free(&url);
    return good;
}
#undef SET

static enum wire_end end_of(CURLcode result)
{
    static const struct {
        CURLcode code;
        enum wire_end end;
    } ends[] = {
        {CURLE_OK, WIRE_ANSWERED},
        {CURLE_COULDNT_CONNECT, WIRE_NO_CONNECTION},
        {CURLE_COULDNT_RESOLVE_HOST, WIRE_NO_CONNECTION},
        {CURLE_COULDNT_RESOLVE_PROXY, WIRE_NO_CONNECTION},
        {CURLE_OPERATION_TIMEDOUT, WIRE_TIMED_OUT},
        {CURLE_SSL_CONNECT_ERROR, WIRE_REFUSED_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, WIRE_REFUSED_TLS},
        {CURLE_SSL_CACERT_BADFILE, WIRE_LOCAL},
        {CURLE_SSL_CERTPROBLEM, WIRE_LOCAL},
        {CURLE_URL_MALFORMAT, WIRE_LOCAL},
        {CURLE_OUT_OF_MEMORY, WIRE_LOCAL},
    };
    size_t i = 0;
    while (i < sizeof ends / sizeof ends[0] && ends[i].code != result)
        i++;
    return i < sizeof ends / sizeof ends[0] ? ends[i].end : WIRE_BROKEN;
}

/* A message that is there is of a local file. */
static void note_end(struct wire *wire, CURLcode result)
{
    struct wire_answer *answer = wire->answer;
    curl_off_t sent = 0, received = 0;
    curl_easy_getinfo(wire->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_easy_getinfo(wire->curl, CURLINFO_SIZE_DOWNLOAD_T, &received);
    answer->sent = sent;
    answer->received = received;
    answer->end = answer->message[0] != '\0' ? WIRE_LOCAL : end_of(result);
    if (answer->end != WIRE_ANSWERED && answer->message[0] == '\0')
        snprintf(answer->message, sizeof answer->message, "%.200s: %s", wire->server.address,
                 wire->error[0] != '\0' ? wire->error : curl_easy_strerror(result));
    if (!wire->noted && result == CURLE_OK)
        note_head(wire);
}

void wire_send(struct wire *wire, const struct wire_request *request, struct wire_answer *answer)
{
    struct curl_slist *fields = NULL;
    *answer = (struct wire_answer){.info = -1, .length = -1, .range_from = -1};
    text_init(&answer->body, WIRE_BODY_MAX);
    wire->request = request;
    wire->answer = answer;
    wire->noted = false;
    wire->error[0] = '\0';
    note_end(wire, prepare(wire, &fields) ? curl_easy_perform(wire->curl) : CURLE_OUT_OF_MEMORY);
    curl_slist_free_all(fields);
    wire->request = NULL;
    wire->answer = NULL;
}

/* ---- Life ---- */

struct wire *wire_open(const struct wire_server *server)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        return NULL;
    wire->server = *server;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        wire->curl = curl_easy_init();
    if (wire->curl == NULL)
        wire_close(&wire);
    return wire;
}

void wire_close(struct wire **wire)
{
    if (*wire == NULL)
        return;
    curl_easy_cleanup((*wire)->curl);
    curl_global_cleanup();
    free(*wire);
    *wire = NULL;
}
