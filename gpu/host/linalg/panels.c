/* gpu/host/linalg/panels.c: see panels.h. The precision-dependent part is panels.inc.
 *
 * The innermost loop holds HOST_PANEL_ROWS rows of VECTORS vectors in registers, 24 of the 32 that
 * AVX-512 has, and takes DEPTH steps before it goes to memory: the lines of a group fit the first
 * cache, those of a panel and of all groups of a tile the second.
 *
 * Threads: any. Cost: see panels.h.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/panels.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"

#define VECTORS 3 /* of a panel's line */
#define DEPTH 256
#define VECTOR_BYTES 64
#define ROWS HOST_PANEL_ROWS

typedef __m512 vector_f32;
typedef __m512d vector_f64;

#define LOAD_f32 _mm512_loadu_ps
#define LOAD_f64 _mm512_loadu_pd
#define STORE_f32 _mm512_storeu_ps
#define STORE_f64 _mm512_storeu_pd
#define SPREAD_f32 _mm512_set1_ps
#define SPREAD_f64 _mm512_set1_pd
#define LESS_f32 _mm512_fnmadd_ps /* c - a b */
#define LESS_f64 _mm512_fnmadd_pd
#define ADD_f32 _mm512_add_ps
#define ADD_f64 _mm512_add_pd

bool host__panels_work(void)
{
    static const char *const families[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *family = host__lapack_cpu();
    bool wide = false;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        wide = wide || strcasecmp(family, families[i]) == 0;
    return wide && __builtin_cpu_supports("avx512f");
}

int64_t host__panel_columns(enum precision precision)
{
    return VECTORS * VECTOR_BYTES / precision_bytes(precision);
}

#define REAL_FILE "gpu/host/linalg/panels.inc"
#include "gpu/host/linalg/real.inc"
