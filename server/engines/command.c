/* server/engines/command.c: see command.h. */
#include "server/engines/command.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "callback/message.h"

#define ENVIRONMENT_MAX 64

/* ---- Arguments ---- */

void engine_command_add(struct engine_command *command, const char *word)
{
    if (word == NULL)
        return;
    assert(command->count < ENGINE_ARGUMENTS_MAX);
    /* libuv's argv is not const, but it is never written. */
    command->arguments[command->count++] = (char *)(uintptr_t)word;
}

void engine_command_add_flag(struct engine_command *command, const char *flag, const char *value)
{
    engine_command_add(command, value != NULL ? flag : NULL);
    engine_command_add(command, value);
}

/* ---- Environment ---- */

/* Allow-listed, NULL-terminated. Zeroed to begin with. */
struct environment {
    char *entries[ENVIRONMENT_MAX + 1];
    int count;
};

static const char *const inherited_prefixes[] = {
    "CUDA_",          "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "TSAN_OPTIONS=",
    "UBSAN_OPTIONS=", "LSAN_OPTIONS=",    "NVIDIA_",       "TZ=",
};

/* Adds name followed by value. */
static enum error environment_add(struct environment *environment, const char *name,
                                  const char *value, struct failure *failure)
{
    if (environment->count == ENVIRONMENT_MAX)
        return failure_set(failure, ERROR_INTERNAL,
                           "more than %d environment variables are meant for the engines; unset "
                           "some of those that begin with CUDA_ or NVIDIA_",
                           ENVIRONMENT_MAX);
    char *entry = NULL;
    if (asprintf(&entry, "%s%s", name, value) < 0)
        return failure_set(failure, ERROR_INTERNAL, "out of memory for the engines' environment");
    environment->entries[environment->count++] = entry;
    return ERROR_NONE;
}

static bool is_inherited(const char *entry)
{
    for (size_t i = 0; i < sizeof inherited_prefixes / sizeof inherited_prefixes[0]; i++)
        if (strncmp(entry, inherited_prefixes[i], strlen(inherited_prefixes[i])) == 0)
            return true;
    return false;
}

static enum error make_environment(const char *cpu, struct environment *environment,
                                   struct failure *failure)
{
    enum error error = environment_add(environment, "OPENBLAS_NUM_THREADS=", "1", failure);
    if (error == ERROR_NONE && cpu != NULL)
        error = environment_add(environment, "OPENBLAS_CORETYPE=", cpu, failure);
    for (char **entry = environ; error == ERROR_NONE && *entry != NULL; entry++)
        if (is_inherited(*entry))
            error = environment_add(environment, *entry, "", failure);
    return error;
}

static void free_environment(struct environment *environment)
{
    for (int i = 0; i < environment->count; i++)
        free(environment->entries[i]);
}

/* ---- Program ---- */

/* false: this program does not know where it is itself. */
static bool find_path(const char *given, const char *name, char path[ENGINE_PATH_MAX])
{
    if (given != NULL) {
        snprintf(path, ENGINE_PATH_MAX, "%s", given);
        return true;
    }
    size_t length = ENGINE_PATH_MAX - strlen(name) - 1;
    if (uv_exepath(path, &length) != 0)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    memcpy(slash != NULL ? slash + 1 : path, name, strlen(name) + 1);
    return true;
}

bool engine_command_path(const char *name, char path[ENGINE_PATH_MAX])
{
    return find_path(NULL, name, path);
}

enum error engine_command_find(const char *given, const char *name, const char *option,
                               char path[ENGINE_PATH_MAX], struct failure *failure)
{
    if (!find_path(given, name, path))
        return failure_set(failure, ERROR_INTERNAL, "cannot find this program's own path");
    struct stat status;
    errno = 0;
    if (access(path, X_OK) == 0 && stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        errno = EACCES; /* a folder, say */
    if (errno != 0)
        return failure_set(failure, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INTERNAL,
                           "cannot run the engine %.200s: %s; --%s says where it is", path,
                           strerror(errno), option);
    return ERROR_NONE;
}

/* ---- The spawner ---- */

enum error engine_command_make_spawner(const char *host_path, const char *cuda_path,
                                       const char *cpu, struct spawner **spawner,
                                       struct failure *failure)
{
    char host[ENGINE_PATH_MAX], cuda[ENGINE_PATH_MAX], post[ENGINE_PATH_MAX];
    struct environment environment = {0};
    const char *paths[4] = {NULL};
    int count = 0;
    if (find_path(host_path, ENGINE_HOST_PROGRAM, host))
        paths[count++] = host;
    if (find_path(cuda_path, ENGINE_CUDA_PROGRAM, cuda))
        paths[count++] = cuda;
    if (find_path(NULL, CALLBACK_PROGRAM, post))
        paths[count++] = post;
    const struct spawner_rules rules = {paths, environment.entries};
    enum error error = make_environment(cpu, &environment, failure);
    if (error == ERROR_NONE)
        error = spawner_create(&rules, spawner, failure);
    free_environment(&environment);
    return error;
}
