/* demo/demo.h: what the parts of the demonstration share.
 *
 * The demonstration is a client like any other: it starts the daemon as a child, talks HTTP to it
 * over a plain socket, and checks the answers by itself, with libc and jansson alone. It shares no
 * code with the daemon, so that it cannot share its mistakes.
 *
 * One thread. Every call blocks until it has its result or fails; a failure is reported on stderr.
 */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- daemon.c: the daemon's life ---- */

struct demo_daemon {
    pid_t pid;
    int port;
    char folder[64]; /* of its log and its port file; removed by demo_daemon_stop */
};

/* Starts program on a free port of 127.0.0.1; returns when it is ready to invert. */
bool demo_daemon_start(const char *program, struct demo_daemon *daemon);
/* SIGTERM, then waits. True when it ended with status 0. Shows its log when it did not. */
bool demo_daemon_stop(struct demo_daemon *daemon);

/* ---- http.c: a small HTTP client ---- */

struct demo_answer {
    int status;
    size_t json_bytes; /* Inference-Header-Content-Length; the whole body when it has none */
    size_t length;
    char *body; /* owned; NUL-terminated behind its length; demo_answer_free gives it back */
    double seconds;
    char algorithm[32]; /* Invertd-Method; empty when there is none */
};

/* One request on a connection of its own. body may be NULL. json_bytes > 0: the body is that much
 * JSON with binary tensors behind it. False when there is no proper answer. */
bool demo_http(int port, const char *verb, const char *path, const void *body, size_t length,
               size_t json_bytes, struct demo_answer *answer);
void demo_answer_free(struct demo_answer *answer);

/* ---- problems.c: matrices that people invert ---- */

struct demo_problem {
    const char *title;
    const char *story; /* where the matrices come from, and what the inverse is for */
    bool fp32;
    int64_t batch, n;
    bool tridiagonal; /* goes to methods that take the three diagonals too */
    double *a;        /* [batch, n, n]; owned; with fp32 every number is a float's */
    double *v0; /* likewise: known approximate inverses, for methods that take them, or NULL */
    int64_t m;  /* a is a diagonal a0 [batch, n] plus x y^T, [batch, n, m] each; 0: it is not */
    double *x, *y, *a0; /* owned; for methods that take them, or NULL */
    /* A check by the subject's own laws, NULL when there is none: prints one line about the inverse
     * of the first matrix, and says whether it holds. */
    bool (*law)(const struct demo_problem *problem, const double *inverse);
};

#define DEMO_PROBLEMS 6

/* Fills problems[0 .. DEMO_PROBLEMS). False when out of memory. */
bool demo_problems_make(struct demo_problem *problems);
void demo_problems_free(struct demo_problem *problems);

/* ---- residual.c: how good an answer is ---- */

#define DEMO_RATIO_MAX 15.0 /* the service's promise for every answer with INFO 0 */

/* The largest |I - X A| / (n |A| |X| eps) of the batch, in the 1-norm. NaN when an X is not finite,
 * infinity when out of memory. */
double demo_ratio_inverse(const struct demo_problem *problem, const double *x);
/* The largest |P A - L U| / (n |A| eps) of the batch; pivots are LAPACK's, 1-based. */
double demo_ratio_factors(const struct demo_problem *problem, const double *lu,
                          const int32_t *pivots);

#endif
