/* bench/gpu/ablate.cu: see ablate.h. __wrap_NAME takes the place of NAME in the whole program,
 * __real_NAME is the product's own.
 */
#include "bench/gpu/ablate.h"

#include <cassert>

#include "bench/gpu/bench.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/ism/call.h"

namespace
{

enum ablation left_out;
bool was_left_out; /* since the scope began */

/* Is the path left out, where the product would take it? */
bool leaves_out(enum ablation path, bool taken)
{
    bool here = taken && left_out == path;
    was_left_out = was_left_out || here;
    return here;
}

/* The last launch of an update of n = 16, which one of n <= 12 takes over. */
struct {
    cudaLaunchConfig_t config;
    const void *kernel;
} of_16;

} // namespace

ablation_scope::ablation_scope(enum ablation without)
{
    assert(left_out == WITHOUT_NOTHING);
    left_out = without;
    was_left_out = false;
}

ablation_scope::~ablation_scope()
{
    left_out = WITHOUT_NOTHING;
}

bool ablation_scope::applied() const
{
    return was_left_out;
}

extern "C" {

size_t __real_cuda_product_scratch(const struct cuda_product *product);
cudaError_t __real_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                       void **arguments);
cuda__ism_launcher __real_cuda__ism_launch_f32, __real_cuda__ism_launch_f64;

size_t __wrap_cuda_product_scratch(const struct cuda_product *product)
{
    size_t bytes = __real_cuda_product_scratch(product);
    return leaves_out(WITHOUT_SPLIT_PRODUCTS, bytes > 0) ? 0 : bytes;
}

cudaError_t __wrap_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t status = __real_cudaDeviceGetAttribute(value, attribute, device);
    if (leaves_out(WITHOUT_OVERLAP, attribute == cudaDevAttrComputeCapabilityMajor))
        *value = 8;
    return status;
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                       void **arguments)
{
    if (left_out != WITHOUT_ISM_FEW_12)
        return __real_cudaLaunchKernelExC(config, kernel, arguments);
    const int64_t n = ((const struct cuda__ism_call *)arguments[0])->n;
    if (n == 16) {
        of_16.config = *config;
        of_16.config.numAttrs = 0; /* they lie on the caller's stack */
        of_16.kernel = kernel;
    }
    if (leaves_out(WITHOUT_ISM_FEW_12, n > 8 && n <= 12 && of_16.kernel))
        return __real_cudaLaunchKernelExC(&of_16.config, of_16.kernel, arguments);
    return __real_cudaLaunchKernelExC(config, kernel, arguments);
}

static struct cuda__ism_call planned(const struct cuda__ism_call *work)
{
    struct cuda__ism_call other = *work;
    other.plan.adjacent =
        work->plan.adjacent && !leaves_out(WITHOUT_ISM_OVERLAPPED, work->plan.adjacent);
    return other;
}

cudaError_t __wrap_cuda__ism_launch_f32(const struct cuda__ism_call *work,
                                        struct cuda_products *products, cudaStream_t stream)
{
    const struct cuda__ism_call other = planned(work);
    return __real_cuda__ism_launch_f32(&other, products, stream);
}

cudaError_t __wrap_cuda__ism_launch_f64(const struct cuda__ism_call *work,
                                        struct cuda_products *products, cudaStream_t stream)
{
    const struct cuda__ism_call other = planned(work);
    return __real_cuda__ism_launch_f64(&other, products, stream);
}
}
