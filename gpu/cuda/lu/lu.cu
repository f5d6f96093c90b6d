/* gpu/cuda/lu/lu.cu: the launchers of lu.h: from precision and order to kernels. */
#include "gpu/cuda/lu/lu.h"

#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/lu/block_launch.cuh"
#include "gpu/cuda/lu/recover.cuh"
#include "gpu/cuda/lu/strip_launch.cuh"
#include "gpu/cuda/lu/wide_launch.cuh"

/* Unverified matrices that are recovered side by side, where each takes a part of a workspace that
 * the inverse did not need. */
#define RECOVERED_TOGETHER 64
/* Up to this order a block recovers a matrix by complete pivoting; beyond, that would take too
 * long, and columns are mixed instead. */
#define RECOVERED_BY_BLOCK_N_MAX 1024
/* What a factorisation without need of a workspace asks for. */
#define ALIGN ((size_t)256)
/* Blocks that spill: more than devices have multiprocessors. */
#define SPILLS_MAX 256

/* What a method runs, by precision. */
struct middle {
    bool factor;
    struct {
        cuda__lu_strip_launcher *block;
        cuda__lu_wide_launcher *wide;
        cuda__lu_clusters *clusters;
        cuda__lu_grouper *groups; /* of an inverse */
    } of[PRECISION_COUNT];
};

static const struct middle inverse = {
    false,
    {{cuda__lu_strip_f32, cuda__lu_invert_wide_f32, cuda__lu_clusters_f32, cuda__lu_groups_f32},
     {cuda__lu_strip_f64, cuda__lu_invert_wide_f64, cuda__lu_clusters_f64, cuda__lu_groups_f64}}};

static const struct middle factor = {
    true,
    {{cuda__lu_factor_f32, cuda__lu_factor_wide_f32, cuda__lu_clusters_f32, nullptr},
     {cuda__lu_factor_f64, cuda__lu_factor_wide_f64, cuda__lu_clusters_f64, nullptr}}};

static bool takes(enum precision precision, int64_t n)
{
    return precision >= 0 && precision < PRECISION_COUNT && n > CUDA_SMALL_N_MAX &&
           n <= CUDA_MIDDLE_N_MAX;
}

static cuda__lu_strip_needs needs_of(enum precision precision, bool factors, int64_t n)
{
    bool narrow = precision == PRECISION_FP32;
    if (!factors)
        return narrow ? cuda__lu_strip_needs_of<float>(n) : cuda__lu_strip_needs_of<double>(n);
    return {narrow ? cuda__lu_block_bytes<float>(n) : cuda__lu_block_bytes<double>(n), 0};
}

/* Does a block of the current device have what a matrix takes? */
static bool is_block(enum precision precision, bool factors, int64_t n)
{
    size_t bytes = needs_of(precision, factors, n).shared_bytes;
    return bytes > 0 && bytes <= (size_t)cuda__shared_max();
}

/* Of so many blocks, how many each of the matrices gets: together no more than there are
 * multiprocessors. Results are bitwise independent of them. */
static int blocks_of_each(int most, int64_t matrices)
{
    int64_t all = cuda__multiprocessors();
    while (most > 1 && most * matrices > all)
        most /= 2;
    return most;
}

/* Has clusters eliminate the columns where the table says so. A width of 0: by halves, or the
 * current device has no cluster that holds the rows. */
static void choose_clusters(enum precision precision, int64_t n, int64_t matrices,
                            cuda__lu_manner *manner)
{
    const struct middle *method = manner->factor ? &factor : &inverse;
    cuda__lu_cluster_shape shape = precision == PRECISION_FP32
                                       ? cuda__lu_cluster_shape_of<float>(manner->factor, n)
                                       : cuda__lu_cluster_shape_of<double>(manner->factor, n);
    if (shape.width == 0)
        return;
    int most = n <= CUDA_NEAR_N_MAX ? blocks_of_each(shape.blocks, matrices) : shape.blocks;
    int padded = cuda__lu_padded(n), blocks = method->of[precision].clusters(padded, most);
    int columns = shape.width < padded ? shape.width : padded;
    manner->width = blocks > 0 ? columns : 0;
    manner->blocks = blocks;
    manner->behind = n <= CUDA_NEAR_N_MAX && matrices > 1;
}

/* May clusters take groups of columns? */
static bool takes_groups(const cuda__lu_manner *manner)
{
    return !manner->factor && !manner->recovery && manner->width == 0;
}

/* Has clusters take groups of columns where there are so few matrices that all have theirs at once.
 * Results are bitwise independent of it. */
static void choose_groups(enum precision precision, int64_t n, int64_t matrices,
                          cuda__lu_manner *manner)
{
    int most = blocks_of_each(CUDA__LU_CLUSTER_MAX, matrices);
    if (!takes_groups(manner) || most * CUDA__LU_GROUP_ROWS_MAX < n)
        return;
    manner->blocks = inverse.of[precision].groups(n, CUDA__LU_GROUP_MAX, most, matrices);
    manner->group = manner->blocks > 0 ? CUDA__LU_GROUP_MAX : 0;
}

/* But for groups. */
static cuda__lu_manner plain_manner_of(enum precision precision, bool factors, int64_t n,
                                       int64_t matrices, bool recovery)
{
    cuda__lu_manner manner = {};
    manner.factor = factors;
    manner.recovery = recovery;
    choose_clusters(precision, n, matrices, &manner);
    return manner;
}

static cuda__lu_manner manner_of(enum precision precision, bool factors, int64_t n,
                                 int64_t matrices, bool recovery)
{
    cuda__lu_manner manner = plain_manner_of(precision, factors, n, matrices, recovery);
    choose_groups(precision, n, matrices, &manner);
    return manner;
}

static cudaError_t launch(const struct middle *method, enum precision precision, int64_t n,
                          const struct cuda_batch *batch, void *workspace, size_t workspace_bytes,
                          struct cuda_products *products, cudaStream_t stream)
{
    if (!takes(precision, n) || batch->matrices < 0 ||
        (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    if (batch->matrices == 0)
        return cudaSuccess;
    if (is_block(precision, method->factor, n))
        return method->of[precision].block(n, *batch, workspace, workspace_bytes, stream);
    return method->of[precision].wide(
        n, *batch, workspace, workspace_bytes,
        manner_of(precision, method->factor, n, batch->matrices, false), products, stream);
}

cudaError_t cuda_inverse_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream)
{
    return launch(&inverse, precision, n, batch, workspace, workspace_bytes, products, stream);
}

cudaError_t cuda_factor_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                               void *workspace, size_t workspace_bytes,
                               struct cuda_products *products, cudaStream_t stream)
{
    return launch(&factor, precision, n, batch, workspace, workspace_bytes, products, stream);
}

/* ---- Recovery ---- */

static size_t recovery_bytes(enum precision precision, int64_t n)
{
    return precision == PRECISION_FP32 ? cuda__lu_recovery_bytes<float>(n)
                                       : cuda__lu_recovery_bytes<double>(n);
}

cudaError_t cuda_recover_middle(enum precision precision, int64_t n, const struct cuda_batch *batch,
                                void *workspace, size_t workspace_bytes,
                                struct cuda_products *products, cudaStream_t stream)
{
    if (!takes(precision, n) || batch->matrices < 0 ||
        (batch->matrices > 0 && batch->item_count < 1))
        return cudaErrorInvalidValue;
    if (batch->matrices == 0)
        return cudaSuccess;
    if (n > RECOVERED_BY_BLOCK_N_MAX)
        return inverse.of[precision].wide(n, *batch, workspace, workspace_bytes,
                                          manner_of(precision, false, n, batch->matrices, true),
                                          products, stream);
    size_t bytes = recovery_bytes(precision, n);
    int64_t blocks = (int64_t)(workspace_bytes / bytes), most = 1024;
    if (blocks < 1)
        return cudaErrorMemoryAllocation;
    blocks = blocks < batch->matrices ? blocks : batch->matrices;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    unsigned char *space = (unsigned char *)workspace;
    if (precision == PRECISION_FP32)
        return cuda__start(cuda__lu_recover_kernel<float>, grid, CUDA__LU_RECOVER_THREADS,
                           sizeof(cuda__lu_recover_shared<float>), stream, *batch, space, bytes, n);
    return cuda__start(cuda__lu_recover_kernel<double>, grid, CUDA__LU_RECOVER_THREADS,
                       sizeof(cuda__lu_recover_shared<double>), stream, *batch, space, bytes, n);
}

/* ---- Workspace ---- */

/* Enough for groups too, whether or not the driver grants them. */
static size_t wide_bytes(enum precision precision, int64_t n, bool factors)
{
    cuda__lu_manner manner = plain_manner_of(precision, factors, n, 1, false);
    manner.group = takes_groups(&manner) ? CUDA__LU_GROUP_MAX : 0;
    return precision == PRECISION_FP32 ? cuda__lu_space_bytes<float>(n, manner)
                                       : cuda__lu_space_bytes<double>(n, manner);
}

size_t cuda_inverse_middle_workspace(enum precision precision, int64_t n, int64_t matrices)
{
    if (!takes(precision, n) || matrices < 1)
        return 0;
    size_t recover = n > RECOVERED_BY_BLOCK_N_MAX ? 0 : recovery_bytes(precision, n);
    if (is_block(precision, false, n)) {
        size_t spill = needs_of(precision, false, n).spill_bytes;
        recover *= (size_t)(matrices < RECOVERED_TOGETHER ? matrices : RECOVERED_TOGETHER);
        spill *= (size_t)(matrices < SPILLS_MAX ? matrices : SPILLS_MAX);
        return spill > recover ? spill : recover;
    }
    size_t all = wide_bytes(precision, n, false) * (size_t)matrices;
    return all > recover ? all : recover;
}

size_t cuda_factor_middle_workspace(enum precision precision, int64_t n, int64_t matrices)
{
    if (!takes(precision, n) || matrices < 1)
        return 0;
    return is_block(precision, true, n) ? ALIGN : wide_bytes(precision, n, true) * (size_t)matrices;
}
