/* gpu/cuda/lu/space.cuh: the workspace of a matrix that does not fit into shared memory.
 *
 * W starts as A, padded with zeros to whole panels, and is worked on in place. The kernels of
 * wide.cuh and ends.cuh take the matrices of a chunk of the batch: blockIdx.y numbers them.
 * Device and host code.
 */
#ifndef GPU_CUDA_LU_SPACE_CUH
#define GPU_CUDA_LU_SPACE_CUH

#include "gpu/cuda/lu/panel.cuh"
#include "gpu/cuda/base/mma_tile.cuh"
#include "gpu/cuda/gemm/gemm.h"

#define CUDA__LU_PANEL_MAX 32 /* columns of a panel at most; orders are padded to it */
#define CUDA__LU_STRIP 32     /* columns that are summed together */

/* Columns that a cluster eliminates together at most, and the columns of its panels. */
#define CUDA__LU_WIDTH_MAX 256
#define CUDA__LU_CLUSTER_COLUMNS_MAX 16

#define CUDA__LU_ONE_BLOCK_MAX 1024 /* rows of a panel that one block eliminates */

/* What is known of one matrix. */
template <typename T> struct cuda__lu_numbers {
    T norm, factor; /* of A times the factor, a power of two */
    int info;       /* -1, 0, or the first zero pivot's step */
    int beyond;     /* a pivot is far beyond A */
    /* While inverses are recovered: this one is; and where partial pivoting found a zero, or 0.
     * While they are equilibrated the latter is INFO before that, then after it. */
    int recovered, zero_step;
};

/* One matrix's part of the workspace. */
template <typename T> struct cuda__lu_view {
    T *w; /* padded x padded */
    /* By groups: the factors, padded x padded: row k is that of step k. Left of the diagonal it is
     * -L, right of it U; the panels' squares on the diagonal hold the inverses of L's. */
    T *factors;
    T *r;     /* by clusters: the chosen rows, width x padded, each column at its place */
    T *rows;  /* by clusters: a panel's chosen rows, CUDA__LU_CLUSTER_COLUMNS_MAX x width */
    T *m;     /* inverse by clusters: what is added to a row, padded x width, negated (rows.cuh) */
    T *v;     /* inverse by clusters: L^-1 times R, as R */
    T *lower; /* by clusters, width x width: LU, -L without the ones; inverse, L^-1 */
    T *pivot, *product, *scale, *error; /* n each, and so are order, place and step */
    T *sums;                            /* two for each strip */
    int *order, *place, *step;
    int *origin;    /* by clusters: the row of A that is there; n */
    int *row_place; /* padded: of each row, see cuda__lu_panel */
    int *exponents; /* 2 n: where W starts as A equilibrated, those of rows and columns */
    cuda__lu_numbers<T> *numbers;
};

/* How matrices are worked on. */
struct cuda__lu_manner {
    bool factor;
    bool recovery;     /* only inverses that are to be recovered are worked on */
    bool equilibrated; /* recovery: only those that await it (base/batch.h) are, and so scaled */
    /* By clusters (cluster.cuh): so many columns together, a multiple of CUDA__LU_PANEL_MAX. 0: an
     * inverse up to CUDA__LU_ONE_BLOCK_MAX, by groups (wide.cuh). */
    int width;
    /* By groups: a cluster eliminates so many columns in a launch (group.cuh), a multiple of
     * CUDA__LU_PANEL_MAX; 0: each panel is a launch. */
    int group;
    int blocks;  /* of a cluster: with a width at most, 0: as many as the device gives; of groups */
    bool behind; /* the next columns are not begun while the others are worked on */
};

/* The chunk that a launch works on. */
struct cuda__lu_chunk {
    unsigned char *space;
    size_t stride; /* bytes of a matrix */
    int64_t first; /* matrices of the batch before it */
    int n, padded;
    cuda__lu_manner manner;
};

static __host__ __device__ __forceinline__ int cuda__lu_padded(int64_t n)
{
    return (int)((n + CUDA__LU_PANEL_MAX - 1) / CUDA__LU_PANEL_MAX * CUDA__LU_PANEL_MAX);
}

/* Lays the view out from `at` on; returns what follows it. Aligned to 256 bytes if `at` is. */
template <typename T>
static __host__ __device__ __forceinline__ unsigned char *
cuda__lu_lay_out(cuda__lu_view<T> &view, unsigned char *at, int n, int padded,
                 cuda__lu_manner manner)
{
    size_t strips = ((size_t)n + CUDA__LU_STRIP - 1) / CUDA__LU_STRIP;
    auto take = [&at](size_t bytes) {
        unsigned char *from = at;
        at += (bytes + 255) / 256 * 256;
        return from;
    };
    view.w = (T *)take((size_t)padded * padded * sizeof(T));
    size_t width = (size_t)manner.width;
    view.factors = (T *)take((width > 0 ? 0 : (size_t)padded * padded) * sizeof(T));
    view.r = (T *)take(width * padded * sizeof(T));
    view.v = (T *)take((manner.factor ? 0 : width * padded) * sizeof(T));
    view.rows = (T *)take(CUDA__LU_CLUSTER_COLUMNS_MAX * width * sizeof(T));
    view.m = (T *)take((manner.factor ? 0 : width * padded) * sizeof(T));
    view.lower = (T *)take(width * width * sizeof(T));
    view.pivot = (T *)take(n * sizeof(T));
    view.product = (T *)take(n * sizeof(T));
    view.scale = (T *)take(n * sizeof(T));
    view.error = (T *)take(n * sizeof(T));
    view.sums = (T *)take(2 * strips * sizeof(T));
    view.order = (int *)take(n * sizeof(int));
    view.place = (int *)take(n * sizeof(int));
    view.step = (int *)take(n * sizeof(int));
    view.origin = (int *)take(n * sizeof(int));
    view.row_place = (int *)take(padded * sizeof(int));
    view.exponents = (int *)take(2 * (size_t)n * sizeof(int));
    view.numbers = (cuda__lu_numbers<T> *)take(sizeof *view.numbers);
    return at;
}

/* What the largest product takes besides the matrix, by clusters in FP32; behind its view. */
template <typename T> static inline size_t cuda__lu_scratch_bytes(int64_t n, cuda__lu_manner manner)
{
    struct cuda_product largest = {};
    largest.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
    largest.rows = largest.columns = n;
    largest.inner = manner.width;
    return manner.width > 0 ? (cuda_product_scratch(&largest) + 255) / 256 * 256 : 0;
}

template <typename T> static inline size_t cuda__lu_space_bytes(int64_t n, cuda__lu_manner manner)
{
    cuda__lu_view<T> view;
    unsigned char *none = nullptr;
    return (size_t)(cuda__lu_lay_out(view, none, (int)n, cuda__lu_padded(n), manner) - none) +
           cuda__lu_scratch_bytes<T>(n, manner);
}

template <typename T>
static __device__ __forceinline__ cuda__lu_view<T> cuda__lu_view_of(const cuda__lu_chunk &chunk)
{
    cuda__lu_view<T> view;
    cuda__lu_lay_out(view, chunk.space + chunk.stride * blockIdx.y, chunk.n, chunk.padded,
                     chunk.manner);
    return view;
}

template <typename T>
static __device__ __forceinline__ bool cuda__lu_rests(const cuda__lu_chunk &chunk,
                                                      const cuda__lu_view<T> &view)
{
    return chunk.manner.recovery && !view.numbers->recovered;
}

#endif
