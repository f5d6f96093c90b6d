/* gpu/host/linalg/family.c: which of OpenBLAS's kernel families the engine takes, and whether its
 * own kernels go with it; see lapack.h and panels.h.
 *
 * Threads: main, before any other; later any. Cost: none, but on a processor that OpenBLAS does not
 * know, where the program is executed again.
 */
#include "gpu/host/linalg/lapack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gpu/host/linalg/openblas.h"
#include "gpu/host/linalg/panels.h"

/* What OpenBLAS takes a processor for that is younger than itself. These kernels are slow, and in
 * OpenBLAS 0.3.21 strsm of odd orders reads at addresses that are no multiples of 16 bytes and
 * crashes. */
#define UNKNOWN_CPU "Prescott"
#define CPU_VARIABLE "OPENBLAS_CORETYPE"
#define ARGUMENT_BYTES 65536
#define ARGUMENTS_MAX 1024

/* The family whose instructions this processor has, if OpenBLAS does not know it; else NULL. */
static const char *family_of_unknown(void)
{
    if (strcmp(openblas_get_corename(), UNKNOWN_CPU) != 0 || getenv(CPU_VARIABLE))
        return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
    if (__builtin_cpu_supports("avx"))
        return "Sandybridge";
    return __builtin_cpu_supports("sse4.2") ? "Nehalem" : NULL;
}

/* The program begins again, with its own arguments; returns where it cannot. */
static void begin_again(void)
{
    static char text[ARGUMENT_BYTES + 1], path[4096];
    static char *arguments[ARGUMENTS_MAX + 1];
    size_t length = 0, count = 0;
    ssize_t got = readlink("/proc/self/exe", path, sizeof path - 1);
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (got <= 0 || file < 0)
        return;
    while (length < ARGUMENT_BYTES &&
           (got = read(file, text + length, ARGUMENT_BYTES - length)) > 0)
        length += (size_t)got;
    close(file);
    if (got != 0) /* there is more than fits, or an error */
        return;
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        if (count == ARGUMENTS_MAX)
            return;
        arguments[count++] = text + at;
    }
    if (count > 0)
        execv(path, arguments);
}

void host__lapack_init(void)
{
    const char *family = family_of_unknown();
    if (family && setenv(CPU_VARIABLE, family, 1) == 0)
        begin_again(); /* OpenBLAS chooses its kernels when it is loaded, once */
    openblas_set_num_threads(1);
}

void host__lapack_threads(int threads)
{
    openblas_set_num_threads(threads);
}

const char *host__lapack_cpu(void)
{
    return openblas_get_corename();
}

bool host__panels_work(void)
{
    static const char *const families[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *family = host__lapack_cpu();
    bool wide = false;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        wide = wide || strcasecmp(family, families[i]) == 0;
    return wide && __builtin_cpu_supports("avx512f");
}
