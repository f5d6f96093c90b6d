/* base/process_stats.h: the process_* metrics that Prometheus's own client libraries have: this
 * process's processor time, memory, descriptors and start.
 *
 * What the system does not say (no /proc) stays 0. Threads: any. Cost: some files of /proc, once a
 * page of metrics.
 */
#ifndef BASE_PROCESS_STATS_H
#define BASE_PROCESS_STATS_H

#include "base/metric.h"

struct process_stats;

/* NULL when out of memory. Borrows the registry. */
struct process_stats *process_stats_create(struct metric_registry *registry);
/* Brings the metrics up to date. */
void process_stats_update(struct process_stats *stats);
void process_stats_destroy(struct process_stats **stats);

#endif
