/* client/document.h: the documents of jobs that the server sends. Threads: pure functions. */
#ifndef CLIENT_DOCUMENT_H
#define CLIENT_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

enum document_status {
    DOCUMENT_ACCEPTED,
    DOCUMENT_RUNNING,
    DOCUMENT_SUCCESSFUL,
    DOCUMENT_FAILED,
    DOCUMENT_DISMISSED, /* cancelled */
    DOCUMENT_STATUSES
};

struct document {
    char id[68], method[32], created[40], message[256];
    enum document_status status;
    double progress;  /* of 100 */
    int64_t position; /* in the queue; 0: unknown */
    int64_t n, batch; /* -1: unknown */
};

/* False: it is none that makes sense. */
bool document_read(const struct text *body, struct document *document);
const char *document_status_name(enum document_status status);
/* A line for a person, of columns with the heads of document_print_head. */
void document_print(const struct document *document, FILE *stream);
void document_print_head(FILE *stream);

/* The server's own, on one line. */
void document_print_json(const struct text *body, FILE *stream);

/* A page of GET /v1/jobs: calls each for every document, with the document's own JSON; next: the
 * cursor of the next page, empty: none. Returns how many, or -1: it makes no sense. */
int document_read_page(const struct text *body, char *next, size_t next_size, int max,
                       void (*each)(void *context, const struct document *document,
                                    const char *json),
                       void *context);

#endif
