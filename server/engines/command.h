/* server/engines/command.h: what an engine is started with: program, arguments, environment.
 *
 * Threads: the starting thread's.
 */
#ifndef SERVER_ENGINES_COMMAND_H
#define SERVER_ENGINES_COMMAND_H

#include "base/error.h"
#include "server/engines/spawner.h"

#define ENGINE_PATH_MAX 4096
#define ENGINE_ARGUMENTS_MAX 16
#define ENGINE_HOST_PROGRAM "invertd-host"
#define ENGINE_CUDA_PROGRAM "invertd-cuda"

/* argv, NULL-terminated, of words that are borrowed. Zeroed to begin with. */
struct engine_command {
    char *arguments[ENGINE_ARGUMENTS_MAX + 1];
    int count;
};

/* Borrows the words for as long as the command is used. A NULL word is not added, nor is a flag
 * whose value is NULL. */
void engine_command_add(struct engine_command *command, const char *word);
void engine_command_add_flag(struct engine_command *command, const char *flag, const char *value);

/* The path of a program in this program's folder, whether it is there or not. false: this program
 * does not know where it is itself. */
ERROR_MUST_CHECK bool engine_command_path(const char *name, char path[ENGINE_PATH_MAX]);
/* The path of an engine's program: given, else `name` in this program's folder. NOT_FOUND: no
 * program is there; INTERNAL: it cannot be run. option: the flag that says where it is. */
ERROR_MUST_CHECK enum error engine_command_find(const char *given, const char *name,
                                                const char *option, char path[ENGINE_PATH_MAX],
                                                struct failure *failure);

/* The spawner, which starts the two engines' programs, invertd-post and no other, with an
 * environment of listed variables. Paths: as given. cpu: forced OpenBLAS core name; NULL: detected.
 */
ERROR_MUST_CHECK enum error engine_command_make_spawner(const char *host_path,
                                                        const char *cuda_path, const char *cpu,
                                                        struct spawner **spawner,
                                                        struct failure *failure);

#endif
