/* The table of statuses: what the engine must do for each. Needs the toolkit's headers, no device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/cuda/base/status.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    cudaError_t status;
    enum cuda_verdict verdict;
} rows[] = {
    {cudaSuccess, CUDA_GOOD},
    {cudaErrorNotReady, CUDA_NOT_YET},
    {cudaErrorMemoryAllocation, CUDA_SMALLER},
    {cudaErrorInvalidValue, CUDA_BUG},
    {cudaErrorInvalidConfiguration, CUDA_BUG},
    {cudaErrorInvalidDeviceFunction, CUDA_BUG},
    {cudaErrorLaunchOutOfResources, CUDA_BUG},
    {cudaErrorHostMemoryAlreadyRegistered, CUDA_BUG},
    {cudaErrorIllegalAddress, CUDA_CONTEXT_LOST},
    {cudaErrorLaunchTimeout, CUDA_CONTEXT_LOST},
    {cudaErrorAssert, CUDA_CONTEXT_LOST},
    {cudaErrorHardwareStackError, CUDA_CONTEXT_LOST},
    {cudaErrorIllegalInstruction, CUDA_CONTEXT_LOST},
    {cudaErrorMisalignedAddress, CUDA_CONTEXT_LOST},
    {cudaErrorInvalidAddressSpace, CUDA_CONTEXT_LOST},
    {cudaErrorInvalidPc, CUDA_CONTEXT_LOST},
    {cudaErrorLaunchFailure, CUDA_CONTEXT_LOST},
    {cudaErrorUnknown, CUDA_CONTEXT_LOST},
    {(cudaError_t)12345, CUDA_CONTEXT_LOST},
    {cudaErrorECCUncorrectable, CUDA_DEVICE_OUT},
    {cudaErrorNvlinkUncorrectable, CUDA_DEVICE_OUT},
    {cudaErrorDevicesUnavailable, CUDA_DEVICE_OUT},
    {cudaErrorNoKernelImageForDevice, CUDA_DEVICE_OUT},
    {cudaErrorSystemNotReady, CUDA_DEVICE_OUT},
    {cudaErrorSystemDriverMismatch, CUDA_DEVICE_OUT},
    {cudaErrorNoDevice, CUDA_DEVICE_ABSENT},
    {cudaErrorInvalidDevice, CUDA_DEVICE_ABSENT},
    {cudaErrorInsufficientDriver, CUDA_DEVICE_ABSENT},
};

static const struct {
    cublasStatus_t status;
    enum cuda_verdict verdict;
} cublas_rows[] = {
    {CUBLAS_STATUS_SUCCESS, CUDA_GOOD},
    {CUBLAS_STATUS_ALLOC_FAILED, CUDA_SMALLER},
    {CUBLAS_STATUS_NOT_INITIALIZED, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_EXECUTION_FAILED, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_INTERNAL_ERROR, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_ARCH_MISMATCH, CUDA_DEVICE_OUT},
    {CUBLAS_STATUS_INVALID_VALUE, CUDA_BUG},
    {CUBLAS_STATUS_NOT_SUPPORTED, CUDA_BUG},
    {(cublasStatus_t)99, CUDA_CONTEXT_LOST},
};

static void test_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(cuda_verdict_of(rows[i].status), rows[i].verdict);
    for (size_t i = 0; i < COUNT(cublas_rows); i++)
        assert_int_equal(cuda_verdict_of_cublas(cublas_rows[i].status), cublas_rows[i].verdict);
}

/* No status but success lets a process believe that all is well, and a fatal one always ends it. */
static void test_every_number(void **state)
{
    (void)state;
    for (int number = 1; number < 2000; number++) {
        enum cuda_verdict verdict = cuda_verdict_of((cudaError_t)number);
        assert_int_not_equal(verdict, CUDA_GOOD);
        assert_int_not_equal(cuda_verdict_exit(verdict), ENGINE_EXIT_OK);
        if (cuda_verdict_is_fatal(verdict))
            assert_true(cuda_verdict_exit(verdict) >= ENGINE_EXIT_FAULT);
        else if (number != cudaErrorNotReady)
            assert_int_not_equal(cuda_verdict_status(verdict), ENGINE_OK);
    }
}

static void test_demands(void **state)
{
    (void)state;
    assert_int_equal(cuda_verdict_status(CUDA_GOOD), ENGINE_OK);
    assert_int_equal(cuda_verdict_status(CUDA_SMALLER), ENGINE_OUT_OF_MEMORY);
    assert_int_equal(cuda_verdict_status(CUDA_BUG), ENGINE_UNSUPPORTED);
    assert_int_equal(cuda_verdict_exit(CUDA_GOOD), ENGINE_EXIT_OK);
    assert_int_equal(cuda_verdict_exit(CUDA_SMALLER), ENGINE_EXIT_FAILURE);
    assert_int_equal(cuda_verdict_exit(CUDA_CONTEXT_LOST), ENGINE_EXIT_FAULT);
    assert_int_equal(cuda_verdict_exit(CUDA_DEVICE_OUT), ENGINE_EXIT_DEVICE_OUT);
    assert_int_equal(cuda_verdict_exit(CUDA_DEVICE_ABSENT), ENGINE_EXIT_DEVICE_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_demands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
