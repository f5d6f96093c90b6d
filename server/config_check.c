/* server/config_check.c: what the table of options cannot say. Threads: the starting thread. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/choices.h"
#include "callback/hosts.h"
#include "server/config.h"

#define ENGINE_MEMORY_MIN (INT64_C(1) << 20)

/* OpenBLAS's own names, in no case that matters. It would take a name it does not know for none. */
static const char cpu_names[] =
    "Prescott|Core2|Penryn|Dunnington|Atom|Nano|Nehalem|Sandybridge|Haswell|SkylakeX|Cooperlake|"
    "SapphireRapids|Opteron|Opteron_SSE3|Barcelona|Bobcat|Bulldozer|Piledriver|Steamroller|"
    "Excavator|Zen";

static enum error check_cpu(const char *cpu, struct failure *failure)
{
    const char *name;
    size_t length;
    if (cpu == NULL)
        return ERROR_NONE;
    for (int i = 0; (name = choices_at(cpu_names, i, &length)) != NULL; i++)
        if (strncasecmp(name, cpu, length) == 0 && cpu[length] == '\0')
            return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION, "--cpu \"%.40s\" is not allowed; it takes %s.",
                       cpu, cpu_names);
}

/* Sizes that are 0 or no less than what anything at all needs. */
static enum error check_sizes(const struct config *config, struct failure *failure)
{
    const struct {
        const char *flag;
        int64_t bytes, min;
    } sizes[] = {{"arena-size", config->arena_size_bytes, CONFIG_ARENA_MIN},
                 {"engine-scratch-max", config->engine_scratch_max_bytes, ENGINE_MEMORY_MIN},
                 {"device-memory-max", config->device_memory_max_bytes, ENGINE_MEMORY_MIN}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (sizes[k].bytes != 0 && sizes[k].bytes < sizes[k].min)
            return failure_set(failure, ERROR_BAD_OPTION,
                               "--%s %lld is not allowed; it takes 0, or %lldMiB or more.",
                               sizes[k].flag, (long long)sizes[k].bytes,
                               (long long)(sizes[k].min >> 20));
    return ERROR_NONE;
}

static enum error check_tls(const struct config *config, struct failure *failure)
{
    bool cert = config->tls_cert != NULL, key = config->tls_key != NULL;
    if (cert != key)
        return failure_set(failure, ERROR_BAD_OPTION, "--%s is given without --%s; give both.",
                           cert ? "tls-cert" : "tls-key", cert ? "tls-key" : "tls-cert");
    if (!cert && config->tls_client_ca != NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--tls-client-ca is given without --tls-cert and --tls-key; give all.");
    return ERROR_NONE;
}

static enum error check_callbacks(const struct option_list *entries, struct failure *failure)
{
    struct callback_hosts *hosts = calloc(1, sizeof *hosts);
    enum error error = hosts != NULL ? callback_hosts_read(entries, hosts, failure)
                                     : failure_set(failure, ERROR_INTERNAL, "out of memory");
    free(hosts);
    return error;
}

enum error config_check(struct config *config, struct failure *failure)
{
    enum error error = check_sizes(config, failure);
    if (error == ERROR_NONE)
        error = check_cpu(config->cpu, failure);
    if (error == ERROR_NONE)
        error = check_tls(config, failure);
    if (error == ERROR_NONE)
        error = site_check_hosts(&config->allowed_hosts, failure);
    if (error == ERROR_NONE)
        error = site_check_origins(&config->cors_origins, failure);
    if (error == ERROR_NONE)
        error = check_callbacks(&config->allow_callbacks, failure);
    if (error == ERROR_NONE)
        error = proxy_list_read(&config->proxy_protocol, &config->proxies, failure);
    return error != ERROR_NONE ? error
                               : engine_choice_parse(config->engine, &config->engines, failure);
}
