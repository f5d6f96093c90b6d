/* server/machine.c: see machine.h.
 *
 * A control group's limit is in memory.max (version 2) or in memory/.../memory.limit_in_bytes
 * (version 1). The limits of the groups above it hold too. Within a container the path of the group
 * may be the host's, which cannot be seen; the root is then the container's own group.
 */
#include "server/machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

#define PATH_BYTES 4096
#define LIMIT_1 "memory.limit_in_bytes"
#define LIMIT_2 "memory.max"

/* The number in root/group/name; INT64_MAX when there is none ("max", no such file). */
static int64_t read_limit(const char *root, const char *group, const char *name)
{
    char path[PATH_BYTES];
    int64_t bytes = INT64_MAX;
    if (snprintf(path, sizeof path, "%s%s/%s", root, group, name) >= (int)sizeof path)
        return INT64_MAX;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return INT64_MAX;
    if (fscanf(file, "%" SCNd64, &bytes) != 1 || bytes <= 0)
        bytes = INT64_MAX;
    fclose(file);
    return bytes;
}

/* The smallest limit of a group and of those above it, up to root. Shortens group. */
static int64_t min_limit(const char *root, char *group, const char *name)
{
    int64_t min = read_limit(root, "", name);
    while (*group != '\0') {
        int64_t bytes = read_limit(root, group, name);
        min = bytes < min ? bytes : min;
        char *slash = strrchr(group, '/');
        *(slash != NULL ? slash : group) = '\0';
    }
    return min;
}

/* The group in a line of /proc/self/cgroup, `ID:controllers:/path`, where one of the controllers,
 * separated by commas, is this one; else NULL. Version 2 has none: "". */
static char *group_of(char *line, const char *controller)
{
    char *names = strchr(line, ':');
    char *group = names != NULL ? strchr(names + 1, ':') : NULL;
    if (group == NULL)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    size_t length = strlen(controller);
    for (const char *name = names + 1;; name++) {
        size_t bytes = strcspn(name, ",:");
        if (bytes == length && strncmp(name, controller, length) == 0)
            return group + 1;
        name += bytes;
        if (*name == ':')
            return NULL;
    }
}

int64_t machine_group_limit_bytes(const char *groups, const char *root)
{
    char line[PATH_BYTES], root_1[PATH_BYTES];
    if (snprintf(root_1, sizeof root_1, "%s/memory", root) >= (int)sizeof root_1)
        return INT64_MAX;
    int64_t min = read_limit(root_1, "", LIMIT_1);
    FILE *file = fopen(groups, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int64_t bytes = INT64_MAX;
        char *group = group_of(line, "");
        if (group != NULL)
            bytes = min_limit(root, group, LIMIT_2);
        else if ((group = group_of(line, "memory")) != NULL)
            bytes = min_limit(root_1, group, LIMIT_1);
        min = bytes < min ? bytes : min;
    }
    if (file != NULL)
        fclose(file);
    return min;
}

int64_t machine_memory_bytes(void)
{
    int64_t bytes;
    if (!checked_mul(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE), &bytes))
        bytes = INT64_MAX;
    int64_t limit = machine_group_limit_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
    return limit < bytes ? limit : bytes;
}

bool machine_has_nvidia(void)
{
    return access("/dev/nvidiactl", R_OK | W_OK) == 0;
}

/* Descriptors 0, 1 and 2 that are closed would become sockets, with messages written to them. */
void machine_hold_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR); /* engines have them too */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Staging memory (handlers/inference/memory.h) comes and goes with each longer body. The allocator
 * keeps so much of it a thread: to give it back to the system and take it again is a twentieth of
 * the processor time of a request of 1 MiB. */
void machine_keep_free_memory(void)
{
    const int kept_bytes = 2 << 20;
    (void)mallopt(M_TRIM_THRESHOLD, kept_bytes);
    (void)mallopt(M_MMAP_THRESHOLD, kept_bytes); /* else what is taken so is not kept */
}

int machine_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
