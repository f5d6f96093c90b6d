/* tests/unit/gpu/cuda/iter_host.h: `iterative` of the CUDA engine in the guise of a method of the
 * host engine, so that the host's cases try its kernels too, on the SIMT stand-in. One thread.
 */
#ifndef TESTS_UNIT_GPU_CUDA_ITER_HOST_H
#define TESTS_UNIT_GPU_CUDA_ITER_HOST_H

#include "gpu/cuda/base/call.h"
#include "gpu/host/base/host.h"

/* In place of host_method_at, of one method alone. Its scratch is for show. */
const struct host_method *cudatest_iterative_at(uint32_t index, enum precision precision);
/* From now on that is the host's own method, or ours again. */
void cudatest_iterative_of_host(bool is_host);

/* What a visit does of the steps that are said to follow one: those; none; or as many as there may
 * be, whether they are said to follow or not. */
enum cudatest_steps {
    CUDATEST_STEPS_REPORTED,
    CUDATEST_STEPS_NONE,
    CUDATEST_STEPS_MAX
};
void cudatest_iterative_steps(enum cudatest_steps steps);

/* Makes a call to its end; the workspace is for `at_once` of its matrices. Returns the launches. */
int cudatest_iterative_run(struct cuda_call *call, int64_t at_once);

#endif
