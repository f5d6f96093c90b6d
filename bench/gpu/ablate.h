/* bench/gpu/ablate.h: paths through the product that a measurement can leave out. The bench is
 * linked with --wrap for the functions that decide (Makefile); the product knows nothing of it.
 * C++, host code, one thread.
 */
#ifndef BENCH_GPU_ABLATE_H
#define BENCH_GPU_ABLATE_H

enum ablation {
    WITHOUT_NOTHING,
    WITHOUT_SPLIT_PRODUCTS, /* cuda_product_scratch: FP32 products in TF32 and BF16 parts */
    WITHOUT_OVERLAP, /* cuda__overlaps: kernels that are put on the device while others end */
    WITHOUT_ISM_OVERLAPPED, /* cuda__ism_plan.next to: |A| by norm.cuh in another stream */
    WITHOUT_ISM_FEW_12,     /* few.cuh for n = 12: by the kernel that was last launched
                             * for n = 16, with as many matrices and columns */
    ABLATIONS
};

/* Leaves a path out until the end of its scope; one at a time. */
class ablation_scope
{
  public:
    explicit ablation_scope(enum ablation without);
    ~ablation_scope();
    ablation_scope(const ablation_scope &) = delete;
    ablation_scope &operator=(const ablation_scope &) = delete;

    /* Was the path taken since, but for this? */
    bool applied() const;
};

#endif
