/* server/machine.c: see machine.h.
 *
 * A control group's limit is in memory.max (version 2, of the group and each one above it) or in
 * memory.limit_in_bytes (version 1, as seen from within a container).
 */
#include "server/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

#define PATH_BYTES 4096

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

/* The smallest limit of a group and of those above it. */
static int64_t min_limit(const char *root, char *group)
{
    int64_t min = read_limit(root, "", "memory.max");
    while (*group != '\0') {
        int64_t bytes = read_limit(root, group, "memory.max");
        min = bytes < min ? bytes : min;
        char *slash = strrchr(group, '/');
        *(slash != NULL ? slash : group) = '\0';
    }
    return min;
}

int64_t machine_group_limit_bytes(const char *groups, const char *root)
{
    char line[PATH_BYTES];
    int64_t min = read_limit(root, "/memory", "memory.limit_in_bytes");
    FILE *file = fopen(groups, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        int64_t bytes = min_limit(root, line + 3);
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
