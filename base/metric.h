/* base/metric.h: the table of metrics, counted with relaxed atomics, shown in Prometheus text
 * format.
 *
 * One row a metric: name, kind, labels, help. A series (a metric with its label values) is made
 * at its first use and lives as long as the registry; hot paths look it up once and keep the
 * pointer.
 *
 * Threads: any. metric_series takes a lock; adding and observing do not.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/text.h"

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM
};

#define METRIC_BUCKETS_MAX 32

/* Upper bounds of a histogram's buckets, +Inf left out. */
struct metric_buckets {
    int count;
    double bounds[METRIC_BUCKETS_MAX];
};

/* X(id, name, kind, scale, label names joined by ",", buckets, help)
 * Values are counted as integers (events, bytes, nanoseconds, microseconds); scale turns them into
 * the base unit shown: 1e-9 where nanoseconds are counted and seconds shown. */
#define METRIC_TABLE(X)                                                                            \
    X(REQUESTS, "invertd_requests_total", COUNTER, 1, "route,code", NONE,                          \
      "Requests answered, by route and HTTP status code.")                                         \
    X(REQUEST_DURATION, "invertd_request_duration_seconds", HISTOGRAM, 1e-9, "route", SECONDS,     \
      "Time from the request's header to its answer's last byte handed to the socket.")            \
    X(INVERSIONS, "invertd_inversions_total", COUNTER, 1, "method,precision,info", NONE,           \
      "Matrices answered, by method, precision and what INFO said.")                               \
    X(QUEUE_DEPTH, "invertd_queue_depth", GAUGE, 1, "method", NONE,                                \
      "Requests waiting for a batch.")                                                             \
    X(QUEUE_DURATION, "invertd_queue_duration_seconds", HISTOGRAM, 1e-9, "method", SECONDS,        \
      "Time a request waited before its first batch started.")                                     \
    X(BATCH_SIZE, "invertd_batch_size", HISTOGRAM, 1, "method", SIZES, "Matrices in a batch.")     \
    X(BATCH_REQUESTS, "invertd_batch_requests", HISTOGRAM, 1, "method", SIZES,                     \
      "Requests that share a batch.")                                                              \
    X(BATCH_DURATION, "invertd_batch_duration_seconds", HISTOGRAM, 1e-9, "method", SECONDS,        \
      "Time an engine took for a batch.")                                                          \
    X(BATCH_RUNNING, "invertd_batch_running_seconds", GAUGE, 1e-9, "method", NONE,                 \
      "How long the oldest batch that runs now has run; 0: none runs.")                            \
    X(BATCH_PROGRESS, "invertd_batch_progress_ratio", GAUGE, 1e-3, "method", NONE,                 \
      "How much of that batch is known to be done; 0 as well where its engine cannot tell.")       \
    X(BATCHES, "invertd_batches_total", COUNTER, 1, "reason", NONE,                                \
      "Batches sent to engines, by the reason they closed.")                                       \
    X(BYTES, "invertd_bytes_total", COUNTER, 1, "direction", NONE,                                 \
      "Body bytes received (in) and sent (out).")                                                  \
    X(ARENA_BYTES, "invertd_arena_bytes", GAUGE, 1, "state", NONE,                                 \
      "Bytes of the arena, used and free.")                                                        \
    X(MEMORY_WAITING, "invertd_memory_waiting", GAUGE, 1, "", NONE,                                \
      "Requests that are not read, or not decoded, until others give memory back.")                \
    X(DEVICE_UP, "invertd_device_up", GAUGE, 1, "device", NONE,                                    \
      "1 while the device's engine runs and answers.")                                             \
    X(DEVICE_INFO, "invertd_device_info", GAUGE, 1, "device,model", NONE,                          \
      "1, with what decides an answer's bits: the CPU kernel family, the GPU model.")              \
    X(DEVICE_BATCHES, "invertd_device_batches_total", COUNTER, 1, "device", NONE,                  \
      "Batches that ended well, by device.")                                                       \
    X(DEVICE_MATRICES, "invertd_device_matrices_total", COUNTER, 1, "device", NONE,                \
      "Matrices in them.")                                                                         \
    X(DEVICE_BUSY, "invertd_device_busy_seconds_total", COUNTER, 1e-9, "device", NONE,             \
      "Time in which it worked on some batch.")                                                    \
    X(DEVICE_STOPPED, "invertd_device_batches_stopped_total", COUNTER, 1, "device", NONE,          \
      "Batches left before their end, for no one waited for them any more, by device.")            \
    X(DEVICE_SPARES, "invertd_device_spares", GAUGE, 1, "device", NONE,                            \
      "Spare engines of the device that are up.")                                                  \
    X(ENGINE_TAKEOVERS, "invertd_engine_takeovers_total", COUNTER, 1, "device", NONE,              \
      "Times a spare engine took the place of the device's own.")                                  \
    X(ENGINE_RESTARTS, "invertd_engine_restarts_total", COUNTER, 1, "device,reason", NONE,         \
      "Engines replaced, by device and reason.")                                                   \
    X(BATCH_RETRIES, "invertd_batch_retries_total", COUNTER, 1, "reason", NONE,                    \
      "Batches run again, by reason (engine_died, out_of_memory).")                                \
    X(REJECTED, "invertd_rejected_total", COUNTER, 1, "reason", NONE,                              \
      "Requests refused, by the name of the error.")                                               \
    X(CANCELLED, "invertd_cancelled_total", COUNTER, 1, "reason", NONE,                            \
      "Requests dropped before their answer, by reason (client_left, timeout).")                   \
    X(CLIENT_REQUESTS, "invertd_client_requests_total", COUNTER, 1, "client,code", NONE,           \
      "Requests of a client answered, by its name and the status code's class.")                   \
    X(CLIENT_INVERSIONS, "invertd_client_inversions_total", COUNTER, 1, "client", NONE,            \
      "Matrices answered to it.")                                                                  \
    X(CLIENT_DEVICE, "invertd_client_device_seconds_total", COUNTER, 1e-9, "client", NONE,         \
      "Time that devices have worked for it: its part of each batch, by matrices.")                \
    X(CLIENT_BYTES, "invertd_client_bytes_total", COUNTER, 1, "client,direction", NONE,            \
      "Body bytes received from it (in) and sent to it (out).")                                    \
    X(CLIENT_USED, "invertd_client_quota_used", GAUGE, 1e-3, "client,quota", NONE,                 \
      "What it uses of a quota, in the quota's unit.")                                             \
    X(CLIENT_QUOTA, "invertd_client_quota", GAUGE, 1e-3, "client,quota", NONE,                     \
      "A quota of it; 0: it has none.")                                                            \
    X(STORE_TRANSACTIONS, "invertd_store_transactions_total", COUNTER, 1, "", NONE,                \
      "Transactions of the store of jobs that are durable, or have only read.")                    \
    X(STORE_CALLS, "invertd_store_calls", HISTOGRAM, 1, "", SIZES,                                 \
      "Calls of the store that share a transaction, and its sync.")                                \
    X(STORE_DURATION, "invertd_store_duration_seconds", HISTOGRAM, 1e-9, "", SECONDS,              \
      "Time that a transaction took, its sync among it.")                                          \
    X(STORE_FAILURES, "invertd_store_failures_total", COUNTER, 1, "", NONE,                        \
      "Times the disk did not take a transaction, and the store had to be opened anew.")           \
    X(JOBS, "invertd_jobs", GAUGE, 1, "status", NONE, "Jobs that have not expired, by status.")    \
    X(JOB_DURATION, "invertd_job_duration_seconds", HISTOGRAM, 1e-9, "status", SECONDS,            \
      "Time from a job's acceptance to its end, by how it ended.")                                 \
    X(JOB_RETRIES, "invertd_job_retries_total", COUNTER, 1, "", NONE,                              \
      "Attempts at jobs after their first.")                                                       \
    X(JOB_BYTES, "invertd_job_bytes", GAUGE, 1, "", NONE,                                          \
      "Bytes of the spool that jobs take, or have reserved.")                                      \
    X(CALLBACKS, "invertd_callbacks_total", COUNTER, 1, "outcome", NONE,                           \
      "Attempts at callbacks, by outcome: delivered, unwanted (410), retried, failed (the last).") \
    X(CONNECTIONS, "invertd_connections", GAUGE, 1, "", NONE, "Open client connections.")          \
    X(STREAMS, "invertd_streams", GAUGE, 1, "", NONE, "Streams of events that clients listen to.") \
    X(READY, "invertd_ready", GAUGE, 1, "", NONE, "1 while the service is ready.")                 \
    X(SECCOMP, "invertd_seccomp", GAUGE, 1, "process", NONE,                                       \
      "1 while the system refuses the process calls that it does not need.")                       \
    X(BUILD_INFO, "invertd_build_info", GAUGE, 1, "version,cpu", NONE,                             \
      "1, with the version and the CPU kernel family as labels.")                                  \
    X(PROCESS_CPU, "process_cpu_seconds_total", COUNTER, 1e-9, "", NONE,                           \
      "Processor time of the front, in user mode and in the system.")                              \
    X(PROCESS_START, "process_start_time_seconds", GAUGE, 1e-3, "", NONE,                          \
      "When the front started, in seconds since 1970.")                                            \
    X(PROCESS_VIRTUAL, "process_virtual_memory_bytes", GAUGE, 1, "", NONE,                         \
      "Address space of the front, the arena with it.")                                            \
    X(PROCESS_RESIDENT, "process_resident_memory_bytes", GAUGE, 1, "", NONE,                       \
      "Memory of the front, what it uses of the arena with it.")                                   \
    X(PROCESS_OPEN_FDS, "process_open_fds", GAUGE, 1, "", NONE, "Open descriptors of the front.")  \
    X(PROCESS_MAX_FDS, "process_max_fds", GAUGE, 1, "", NONE, "How many it may have.")             \
    X(NV_SUCCESS, "nv_inference_request_success", COUNTER, 1, "model,version", NONE,               \
      "Requests answered with success.")                                                           \
    X(NV_FAILURE, "nv_inference_request_failure", COUNTER, 1, "model,version", NONE,               \
      "Requests answered with an error.")                                                          \
    X(NV_COUNT, "nv_inference_count", COUNTER, 1, "model,version", NONE,                           \
      "Requests' leading dimensions summed: matrices inverted.")                                   \
    X(NV_EXEC_COUNT, "nv_inference_exec_count", COUNTER, 1, "model,version", NONE,                 \
      "Batches executed.")                                                                         \
    X(NV_REQUEST_DURATION, "nv_inference_request_duration_us", COUNTER, 1e-3, "model,version",     \
      NONE, "Microseconds of all successful requests, end to end.")                                \
    X(NV_QUEUE_DURATION, "nv_inference_queue_duration_us", COUNTER, 1e-3, "model,version", NONE,   \
      "Microseconds of waiting in the queue.")                                                     \
    X(NV_INPUT_DURATION, "nv_inference_compute_input_duration_us", COUNTER, 1e-3, "model,version", \
      NONE, "Microseconds of decoding inputs.")                                                    \
    X(NV_INFER_DURATION, "nv_inference_compute_infer_duration_us", COUNTER, 1e-3, "model,version", \
      NONE, "Microseconds of computing.")                                                          \
    X(NV_OUTPUT_DURATION, "nv_inference_compute_output_duration_us", COUNTER, 1e-3,                \
      "model,version", NONE, "Microseconds of encoding outputs.")                                  \
    X(NV_PENDING, "nv_inference_pending_request_count", GAUGE, 1, "model,version", NONE,           \
      "Requests that wait for an engine or are being computed.")

enum metric_id {
#define METRIC_ENUM(id, name, kind, scale, labels, buckets, help) METRIC_##id,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
    METRIC_COUNT
};

struct metric_registry;
struct metric_series;

struct metric_registry *metric_registry_create(void); /* NULL when out of memory */
void metric_registry_destroy(struct metric_registry **registry);

/* The series with these label values (as many const char * as the row has labels); made when new.
 * Never NULL: past the limit of 8192 series, for labels longer than 500 bytes and when out of
 * memory, a catch-all series of the same kind that is not shown. */
struct metric_series *metric_series(struct metric_registry *registry, enum metric_id id, ...);

void metric_add(struct metric_series *series,
                uint64_t amount); /* counters; gauges, where (uint64_t)-1 takes 1 away */
void metric_set(struct metric_series *series, int64_t value);      /* gauges */
void metric_observe(struct metric_series *series, uint64_t value); /* histograms, unscaled */
uint64_t metric_value(const struct metric_series *series);         /* a counter's or gauge's */

/* What histograms of one row of the table have counted, together. Zeroed by the caller. */
struct metric_counts {
    int bounds;                              /* buckets, +Inf left out */
    const uint64_t *limits;                  /* [bounds], unscaled; lent by the registry */
    uint64_t counts[METRIC_BUCKETS_MAX + 1]; /* [bounds + 1] */
};
void metric_counts_add(const struct metric_series *series, struct metric_counts *counts);

/* The series of a metric in the order in which they were made; before NULL: the first. NULL: there
 * is no further one. */
struct metric_series *metric_next(struct metric_registry *registry, enum metric_id id,
                                  const struct metric_series *before);
/* The value of a label, without the text format's escapes, cut to size; "": no such label. */
void metric_label(const struct metric_series *series, const char *name, char *value, size_t size);

/* Appends the whole page (text/plain; version=0.0.4): HELP and TYPE for every row, shown or not. */
void metric_render(struct metric_registry *registry, struct text *page);

#endif
