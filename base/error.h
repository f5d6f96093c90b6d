/* base/error.h: the one table of errors. Code, HTTP status, whether a retry can help, name, title.
 *
 * A function that can fail returns `enum error`; what was wrong, in words for the client, goes into
 * a caller's `struct failure`. A failed call is not a singular matrix: that is INFO, see
 * gpu/method.h.
 *
 * Threads: everything here is pure, or touches only the caller's struct.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

/* X(code, HTTP status, retryable, name of the RFC 9457 problem type, title). Whether a retry can
 * help is for clients: docs/errors.md says it. */
#define ERROR_TABLE(X)                                                                             \
    X(NONE, 200, false, "none", "No error")                                                        \
    X(MALFORMED, 400, false, "malformed-request", "The request is malformed")                      \
    X(BAD_OPTION, 400, false, "bad-option", "An option is unknown or has a bad value")             \
    X(BAD_SHAPE, 400, false, "bad-shape", "The shape of a matrix is not usable")                   \
    X(BAD_DATATYPE, 400, false, "bad-datatype", "The data type is not supported")                  \
    X(UNAUTHORIZED, 401, false, "unauthorized", "A token is needed that the service knows")        \
    X(FORBIDDEN, 403, false, "forbidden", "This is not allowed to this client")                    \
    X(NOT_FOUND, 404, false, "not-found", "There is nothing at this path")                         \
    X(METHOD_NOT_ALLOWED, 405, false, "method-not-allowed", "The HTTP method is not allowed here") \
    X(NOT_ACCEPTABLE, 406, false, "not-acceptable", "No answer in an accepted format")             \
    X(BODY_TOO_SLOW, 408, true, "body-too-slow", "The body took too long to arrive")               \
    X(LENGTH_REQUIRED, 411, false, "length-required", "A Content-Length is needed")                \
    X(TOO_LARGE, 413, false, "too-large", "The request is over a limit")                           \
    X(URI_TOO_LONG, 414, false, "uri-too-long", "The URI is too long")                             \
    X(UNSUPPORTED_MEDIA, 415, false, "unsupported-media-type", "The body is in an unknown format") \
    X(BAD_RANGE, 416, false, "bad-range", "The range lies outside the result")                     \
    X(EXPECTATION_FAILED, 417, false, "expectation-failed", "The expectation cannot be met")       \
    X(MISDIRECTED, 421, false, "misdirected-request", "This host is not served here")              \
    X(NOT_INVERTIBLE, 422, false, "not-invertible",                                                \
      "At least one matrix has no inverse, or none was found")                                     \
    X(CLIENT_QUOTA, 429, true, "client-quota", "This client is over its quota")                    \
    X(HEADERS_TOO_LARGE, 431, false, "headers-too-large", "The header fields are too large")       \
    X(RESULT_NOT_READY, 404, true, "result-not-ready", "The job has not ended yet")                \
    X(RESULT_EXPIRED, 410, false, "result-expired", "The job's result is no longer kept")          \
    X(KEY_REUSED, 422, false, "idempotency-key-reused", "The key was used for another request")    \
    X(LEASE_LOST, 500, false, "lease-lost", "Another attempt has the job")                         \
    X(INTERNAL, 500, false, "internal-error", "The service failed")                                \
    X(POISON, 500, false, "engine-killed", "The computation of this request ends its engine")      \
    X(FULL, 503, true, "service-full", "The service is full")                                      \
    X(DRAINING, 503, true, "service-draining", "The service is shutting down")                     \
    X(NO_ENGINE, 503, true, "no-engine", "No engine is running")                                   \
    X(TIMEOUT, 504, true, "deadline-passed", "The deadline passed before the answer was ready")    \
    X(JOBS_OFF, 503, true, "no-jobs", "Jobs are not taken now")                                    \
    X(NO_ROOM, 507, true, "no-room", "There is no room for the job")                               \
    X(STORE_FAILED, 507, true, "store-failed", "The disk does not take the job")                   \
    X(CANCELLED, 500, false, "cancelled", "The request was cancelled")

enum error {
#define ERROR_ENUM(code, status, retryable, name, title) ERROR_##code,
    ERROR_TABLE(ERROR_ENUM)
#undef ERROR_ENUM
    ERROR_COUNT
};

#define ERROR_MUST_CHECK __attribute__((warn_unused_result))

/* What went wrong, in words a client can act on. No internals, no raw client text. */
struct failure {
    enum error code;
    int retry_after_s; /* when to come again, where that is known; 0: not */
    char detail[384];
};

/* Fills *failure, with retry_after_s 0, and returns code, so that `return failure_set(...)` reads
 * well. failure may be NULL. What was set before is overwritten: the first failure is the one worth
 * reporting, so return at once. A detail that is too long is cut between characters. */
enum error failure_set(struct failure *failure, enum error code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int error_http_status(enum error code);
const char *error_name(enum error code);  /* "bad-shape": last part of the problem type */
const char *error_title(enum error code); /* "The shape of a matrix is not usable" */

#endif
