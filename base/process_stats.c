/* base/process_stats.c: see process_stats.h. */
#include "base/process_stats.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

struct process_stats {
    struct metric_series *cpu, *virtual_bytes, *resident_bytes, *open_fds, *max_fds;
    _Atomic uint64_t cpu_shown_ns;
};

/* When the process started, on the wall's clock; 0: unknown. The field comes as ticks since the
 * machine's own start, behind the program's name, which may hold anything. */
static int64_t start_ms(void)
{
    char text[1024];
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL)
        return 0;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL || sscanf(at, "%llu", &ticks) != 1)
        return 0;
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    int64_t up_ms = (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / (int64_t)CLOCK_MS;
    int64_t started_ms = (int64_t)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
    return (int64_t)clock_wall_ms() - (up_ms - started_ms);
}

struct process_stats *process_stats_create(struct metric_registry *registry)
{
    struct process_stats *stats = calloc(1, sizeof *stats);
    if (stats == NULL)
        return NULL;
    stats->cpu = metric_series(registry, METRIC_PROCESS_CPU);
    stats->virtual_bytes = metric_series(registry, METRIC_PROCESS_VIRTUAL);
    stats->resident_bytes = metric_series(registry, METRIC_PROCESS_RESIDENT);
    stats->open_fds = metric_series(registry, METRIC_PROCESS_OPEN_FDS);
    stats->max_fds = metric_series(registry, METRIC_PROCESS_MAX_FDS);
    metric_set(metric_series(registry, METRIC_PROCESS_START), start_ms());
    return stats;
}

/* Two that look at once count a moment once. */
static void update_cpu(struct process_stats *stats)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return;
    uint64_t ns = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * CLOCK_S +
                  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * CLOCK_US;
    uint64_t shown_ns = atomic_load(&stats->cpu_shown_ns);
    if (ns > shown_ns && atomic_compare_exchange_strong(&stats->cpu_shown_ns, &shown_ns, ns))
        metric_add(stats->cpu, ns - shown_ns);
}

static void update_memory(struct process_stats *stats)
{
    long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%lld %lld", &pages, &resident) == 2) {
        metric_set(stats->virtual_bytes, pages * sysconf(_SC_PAGESIZE));
        metric_set(stats->resident_bytes, resident * sysconf(_SC_PAGESIZE));
    }
    (void)fclose(file);
}

static void update_descriptors(struct process_stats *stats)
{
    struct rlimit limit;
    int64_t open = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;)
        open += entry->d_name[0] != '.';
    if (folder != NULL) {
        (void)closedir(folder);
        metric_set(stats->open_fds, open - 1); /* the folder's own has gone */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        metric_set(stats->max_fds, (int64_t)limit.rlim_cur);
}

void process_stats_update(struct process_stats *stats)
{
    update_cpu(stats);
    update_memory(stats);
    update_descriptors(stats);
}

void process_stats_destroy(struct process_stats **stats)
{
    free(*stats);
    *stats = NULL;
}
