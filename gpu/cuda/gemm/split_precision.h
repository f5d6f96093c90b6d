/* gpu/cuda/gemm/split_precision.h: the kernels behind gemm.h's split-precision GEMM: FP32 products
 * by tensor cores that multiply in TF32 or BF16 and add in FP32.
 *
 * An entry is a = high + low, high being a rounded to the 11 significant bits of TF32, which is
 * exact there however a device rounds. Then
 *
 *   A B = low(A) B + high(A) low(B) + high(A) high(B)
 *
 * The first two are small, 2^-11 of |A| |B|, so that all of their factors can be rounded to the 8
 * bits of BF16, where tensor cores are twice as fast: that is at most 2^-18 of |A| |B| off, and
 * 2^-22 where factors do not conspire. Both are one product, of twice the inner indices:
 *
 *   C  = [low(A) A] [B; low(B)]       inner indices by blocks of CUDA__SPLIT_BLOCK
 *   C += high(A) high(B)              inner indices by pieces of CUDA__SPLIT_DEPTH
 *
 * Up to CUDA__SPLIT_SHALLOW inner indices, where going over C takes as long as multiplying, all
 * three products are one in TF32, the small ones first:
 *
 *   C  = [low(A) high(A) high(A)] [high(B); low(B); high(B)]
 *
 * Tensor cores cut a sum off where they add to it instead of rounding it, which is a bias; it ends
 * with a piece, as pieces are added to C by an ordinary FP32 addition.
 *
 * Operands whose largest entry is far from 1 are scaled by a power of two, and alpha by its
 * inverse, both on the device: low would underflow, or high overflow. alpha times that inverse must
 * be a float: |alpha| below 4, and operands whose largest entries have a product of 2^-149 or more,
 * or the product counts as zero. An operand with NaN or infinities is not scaled; they are in
 * `high` alone, and where there is an infinity in an operand C may have NaN where an FP32 product
 * has the infinity. It is never finite.
 *
 * Host code, any thread, with its own stream. Nothing is awaited. Cost: a read of both operands,
 * then three times their bytes. Private to the folder.
 */
#ifndef GPU_CUDA_GEMM_SPLIT_PRECISION_H
#define GPU_CUDA_GEMM_SPLIT_PRECISION_H

#include "gpu/cuda/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA__SPLIT_DEPTH 512 /* inner indices that are added up in a tensor core */
#define CUDA__SPLIT_SHALLOW 384
#define CUDA__SPLIT_PARTS 3    /* of a shallow product's operands */
#define CUDA__SPLIT_BLOCK 2048 /* inner indices whose parts are made together */

/* On the device: what cuBLAS multiplies with. */
struct cuda__split_scalars {
    uint32_t max[2]; /* the bits of the largest |a| of A and of B */
    float alpha;     /* that undoes the scaling too */
    float beta, one;
};

/* A block of an operand as it is stored, and where its parts go, rounded up, with zeros there.
 * Parts of the same kind lie `part` numbers behind one another. */
struct cuda__split_side {
    const float *from;
    int64_t height, width, stride;
    int64_t to_height, to_width, part;
    float *high; /* high alone; of shallow products low, high, high, or high, low, high */
    int64_t high_stride;
    uint16_t *cross; /* of BF16: low, the entry, or the entry, low. NULL: shallow */
    int64_t cross_stride;
    bool low_first;
};

struct cuda__split_task {
    struct cuda__split_side sides[2]; /* of A and B */
    struct cuda__split_scalars *scalars;
    float alpha, beta;
};

/* Sets scalars->max from the whole operands; `to` is not used. */
cudaError_t cuda__split_measure(const struct cuda__split_task *task, cudaStream_t stream);
/* Fills the parts, and the other scalars. */
cudaError_t cuda__split_fill(const struct cuda__split_task *task, cudaStream_t stream);

/* The algorithm itself, of a valid FP32 product of any shape that is not empty, with the bytes
 * below for scratch, on a machine that has cuBLAS: gemm.c. Both sides of an operand are below 2^16.
 */
cudaError_t cuda__product_split(struct cuda_products *with, const struct cuda_product *product,
                                cudaStream_t stream);
size_t cuda__product_split_bytes(const struct cuda_product *product);

#ifdef __cplusplus
}
#endif

#endif
