/* callback/post.c: see post.h. */
#include "callback/post.h"

#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WAIT_MS 1000
#define FINAL_STATUS 200 /* those below announce another */

struct attempt {
    struct post *post;
    CURL *curl; /* NULL: the slot is free */
    struct curl_slist *fields;
    struct callback_request request;
    size_t answer_bytes;
    long status; /* 0: the head has not come yet */
    char problem[CALLBACK_PROBLEM_BYTES], error[CURL_ERROR_SIZE];
};

struct post {
    struct post_options options;
    CURLM *multi;
    struct attempt attempts[CALLBACK_SLOTS];
};

/* ---- What libcurl calls ---- */

static bool read_address(const struct sockaddr *from, struct callback_address *address, int *port)
{
    *address = (struct callback_address){.family = from->sa_family};
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(address->bytes, &v4->sin_addr, sizeof v4->sin_addr);
        *port = ntohs(v4->sin_port);
        return true;
    }
    const struct sockaddr_in6 *v6 = (const void *)from;
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(address->bytes, &v6->sin6_addr, sizeof v6->sin6_addr);
    *port = ntohs(v6->sin6_port);
    return true;
}

/* The one place that all connections go through, with the address that they are made to. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct attempt *attempt = context;
    struct callback_address address;
    char text[INET6_ADDRSTRLEN] = "";
    int port;
    if (purpose != CURLSOCKTYPE_IPCXN || !read_address(&to->addr, &address, &port))
        return CURL_SOCKET_BAD;
    if (callback_hosts_allow(attempt->post->options.hosts, &address, port))
        return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    inet_ntop(address.family, address.bytes, text, sizeof text);
    snprintf(attempt->problem, sizeof attempt->problem,
             "the host has the address %s, which is not public, and not listed with port %d", text,
             port);
    return CURL_SOCKET_BAD;
}

static bool add_answer(struct attempt *attempt, size_t bytes)
{
    attempt->answer_bytes += bytes;
    return attempt->answer_bytes <= POST_ANSWER_MAX;
}

/* A line of the head; an empty one ends it. */
static size_t on_field(char *line, size_t size, size_t count, void *context)
{
    struct attempt *attempt = context;
    size_t bytes = size * count;
    long status = 0;
    if (!add_answer(attempt, bytes)) {
        snprintf(attempt->problem, sizeof attempt->problem,
                 "the head of the answer is longer than %d bytes", POST_ANSWER_MAX);
        return 0;
    }
    curl_easy_getinfo(attempt->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= FINAL_STATUS && (line[0] == '\r' || line[0] == '\n'))
        attempt->status = status;
    return bytes;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    return add_answer(context, size * count) ? size * count : 0;
}

/* ---- One attempt ---- */

static void end(struct attempt *attempt, CURLcode result)
{
    const struct post_options *options = &attempt->post->options;
    struct callback_reply reply = {.slot = attempt->request.slot,
                                   .status = (int32_t)attempt->status};
    const char *problem = attempt->problem[0] != '\0' ? attempt->problem
                          : attempt->error[0] != '\0' ? attempt->error
                                                      : curl_easy_strerror(result);
    if (attempt->status == 0)
        snprintf(reply.problem, sizeof reply.problem, "%.*s", (int)sizeof reply.problem - 1,
                 problem);
    curl_easy_cleanup(attempt->curl);
    curl_slist_free_all(attempt->fields);
    memset(attempt, 0, sizeof *attempt);
    options->on_end(options->context, &reply);
}

static bool add_field(struct attempt *attempt, const char *field)
{
    struct curl_slist *longer = curl_slist_append(attempt->fields, field);
    if (longer != NULL)
        attempt->fields = longer;
    return longer != NULL;
}

static bool add_fields(struct attempt *attempt)
{
    bool good = add_field(attempt, "Content-Type: application/json") &&
                add_field(attempt, "Expect:"); /* not sent: the body is short */
    for (int i = 0; i < CALLBACK_FIELDS_MAX && attempt->request.fields[i][0] != '\0'; i++)
        good = good && add_field(attempt, attempt->request.fields[i]);
    return good;
}

#define SET(option, value) good = good && curl_easy_setopt(attempt->curl, option, value) == CURLE_OK

static bool prepare(struct attempt *attempt)
{
    const struct post_options *options = &attempt->post->options;
    bool good = add_fields(attempt);
    SET(CURLOPT_URL, attempt->request.url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, ""); /* nor one that the environment names */
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (options->ca != NULL)
        SET(CURLOPT_CAINFO, options->ca);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, attempt);
    SET(CURLOPT_HEADERFUNCTION, on_field);
    SET(CURLOPT_HEADERDATA, attempt);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, attempt);
    SET(CURLOPT_ERRORBUFFER, attempt->error);
    SET(CURLOPT_PRIVATE, attempt);
    SET(CURLOPT_USERAGENT, options->agent);
    SET(CURLOPT_HTTPHEADER, attempt->fields);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDS, attempt->request.body);
    SET(CURLOPT_POSTFIELDSIZE, (long)attempt->request.body_bytes);
    SET(CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    SET(CURLOPT_NOSIGNAL, 1L);
    return good;
}
#undef SET

void post_start(struct post *post, const struct callback_request *request)
{
    assert(request->slot >= 0 && request->slot < CALLBACK_SLOTS);
    struct attempt *attempt = &post->attempts[request->slot];
    assert(attempt->curl == NULL);
    attempt->post = post;
    attempt->request = *request;
    attempt->curl = curl_easy_init();
    if (attempt->curl == NULL || !prepare(attempt) ||
        curl_multi_add_handle(post->multi, attempt->curl) != CURLM_OK)
        end(attempt, CURLE_OUT_OF_MEMORY);
}

/* ---- All attempts ---- */

void post_wait(struct post *post, int fd)
{
    struct curl_waitfd also = {.fd = fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_poll(post->multi, &also, 1, WAIT_MS, NULL);
}

void post_step(struct post *post)
{
    int running, left;
    const CURLMsg *message;
    (void)curl_multi_perform(post->multi, &running);
    while ((message = curl_multi_info_read(post->multi, &left)) != NULL) {
        char *attempt = NULL;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &attempt);
        curl_multi_remove_handle(post->multi, message->easy_handle);
        end((void *)attempt, result);
    }
}

enum error post_create(const struct post_options *options, struct post **result,
                       struct failure *failure)
{
    struct post *post = calloc(1, sizeof *post);
    *result = post;
    if (post != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        post->multi = curl_multi_init();
    if (post != NULL && post->multi != NULL) {
        post->options = *options;
        return ERROR_NONE;
    }
    post_destroy(result);
    return failure_set(failure, ERROR_INTERNAL, "libcurl cannot be used");
}

void post_destroy(struct post **post_pointer)
{
    struct post *post = *post_pointer;
    *post_pointer = NULL;
    if (post == NULL)
        return;
    for (int i = 0; i < CALLBACK_SLOTS; i++) {
        if (post->attempts[i].curl == NULL)
            continue;
        curl_multi_remove_handle(post->multi, post->attempts[i].curl);
        curl_easy_cleanup(post->attempts[i].curl);
        curl_slist_free_all(post->attempts[i].fields);
    }
    curl_multi_cleanup(post->multi);
    curl_global_cleanup();
    free(post);
}
