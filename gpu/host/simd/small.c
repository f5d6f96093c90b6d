/* gpu/host/simd/small.c: see small.h. Which code a group takes, and what becomes of its lanes.
 *
 * Threads: any; constant data. Cost: some ten nanoseconds a matrix next to the inversion.
 */
#include "gpu/host/simd/small.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "gpu/host/linalg/dense.h"

#include "gpu/host/base/by_precision.h"

/* A matrix's time is predicted as a fixed part, and a group's as one for every vector and one for
 * every vector of every step (measured on one core of Zen 4, n = 2 to 32). */
#define MATRIX_NS 20.0
#define NUMBER_NS 4.8
#define STEP_NS 0.32
#define GROUP_BYTES 32.0

static bool has_sse2(void)
{
    return true;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

#define CODE(width, order_max, isa)                                                                \
    {                                                                                              \
        "host lu simd " #isa " " REAL_TEXT, width, order_max, has_##isa,                           \
            R(host__small_invert_v##width), R(host__small_update_v##width)                         \
    }
static const struct R(host_small_code) codes[] = {
    CODE(16, HOST_SMALL_ORDER_MAX, sse2),
    CODE(32, HOST_SMALL_ORDER_MAX, avx2),
    CODE(64, 8, avx512),
};
#undef CODE
#define CODES ((int)(sizeof codes / sizeof codes[0]))

const struct R(host_small_code) * R(host__small_code)(int index)
{
    return index < CODES && codes[index].supported() ? &codes[index] : NULL;
}

const struct R(host_small_code) * R(host__small_choose)(int64_t n, int count)
{
    const struct R(host_small_code) *code = &codes[0];
    for (int i = 1; i < CODES && code->vector_bytes / (int)sizeof(REAL) < count; i++) {
        const struct R(host_small_code) *wider = R(host__small_code)(i);
        if (!wider || n > wider->order_max)
            break;
        code = wider;
    }
    return code;
}

int64_t R(host__lu_scratch_bytes)(int64_t n, int64_t m)
{
    int64_t bytes = R(host__dense_scratch_bytes)(n, m);
    int64_t small = n <= HOST_SMALL_ORDER_MAX ? host__small_scratch_bytes(n) : 0;
    return bytes >= 0 && small > bytes ? small : bytes;
}

int64_t R(host__lu_whole_bytes)(int64_t n, int64_t m)
{
    return R(host__bytes_with_inverse)(R(host__lu_scratch_bytes)(n, m), n, false);
}

int64_t R(host__lu_task_bytes)(const struct host_task *task)
{
    return R(host__bytes_with_inverse)(R(host__lu_scratch_bytes)(task->n, 0), task->n,
                                       task->outputs & UINT32_C(1) << HOST_INVERSE);
}

struct host_matrix R(host__lu_whole)(const struct host_matrix *matrix)
{
    return R(host__with_inverse)(matrix, R(host__lu_scratch_bytes)(matrix->n, 0));
}

int R(host__small_group)(int64_t n)
{
    if (n > HOST_SMALL_ORDER_MAX)
        return 1;
    return R(host__small_choose)(n, HOST_GROUP_MAX)->vector_bytes / (int)sizeof(REAL);
}

double R(host__small_matrix_ns)(int64_t n)
{
    double order = (double)n, bytes = (double)sizeof(REAL);
    double group_bytes = R(host__small_group)(n) * bytes;
    /* Vectors wider than that gain little. */
    double lanes = fmin(group_bytes, GROUP_BYTES) / bytes;
    return MATRIX_NS + (NUMBER_NS + STEP_NS * order) * order * order / lanes;
}

const char *R(host__small_kernel)(int64_t n)
{
    return R(host__small_choose)(n, HOST_GROUP_MAX)->kernel;
}

static void invert(const struct host_matrix *matrices, int count, const struct host_matrix *next,
                   int next_count, struct R(host_small_group) * group)
{
    int64_t n = matrices[0].n;
    const struct R(host_small_code) *code = R(host__small_choose)(n, count);
    int lanes = (int)(code->vector_bytes / (int64_t)sizeof(REAL));
    assert(count >= 1 && count <= lanes && n <= HOST_SMALL_ORDER_MAX);
    for (int lane = 0; lane < lanes; lane++) {
        group->a[lane] = matrices[lane < count ? lane : 0].inputs[0];
        group->next[lane] = lane < next_count ? next[lane].inputs[0] : group->a[lane];
        group->x[lane] = lane < count ? matrices[lane].outputs[HOST_INVERSE] : NULL;
    }
    code->invert(group, n, matrices[0].scratch);
}

void R(host__small_lu)(const struct host_matrix *matrices, int count,
                       const struct host_matrix *next, int next_count)
{
    struct R(host_small_group) group;
    invert(matrices, count, next, next_count, &group);
    for (int lane = 0; lane < count; lane++) {
        group.good[lane] = group.good[lane] && group.rcond[lane] >= REAL_EPS;
        if (group.good[lane])
            R(host__report)(&matrices[lane], group.rcond[lane], METHOD_ALGORITHM_LU);
    }
    /* Only now, for it uses the scratch up. */
    for (int lane = 0; lane < count; lane++) {
        if (group.good[lane])
            continue;
        struct host_matrix matrix = matrices[lane];
        matrix.scratch = matrices[0].scratch;
        matrix = R(host__lu_whole)(&matrix);
        R(host__lu_alone)(&matrix);
    }
}
