/* gpu/cuda/base/status.c: see status.h. Grouped by verdict, in the order of the numbers. What only
 * the graphics, texture and profiler calls return is left out: the engine makes none.
 *
 * Cost: a walk through the table, on errors alone; success and "not ready" come first.
 */
#include "gpu/cuda/base/status.h"

#include <assert.h>
#include <stddef.h>

static const struct {
    cudaError_t status;
    enum cuda_verdict verdict;
} runtime[] = {
    {cudaSuccess, CUDA_GOOD},
    {cudaErrorNotReady, CUDA_NOT_YET},
    {cudaErrorMemoryAllocation, CUDA_SMALLER},
    {cudaErrorStubLibrary, CUDA_DEVICE_ABSENT},
    {cudaErrorInsufficientDriver, CUDA_DEVICE_ABSENT},
    {cudaErrorNoDevice, CUDA_DEVICE_ABSENT},
    {cudaErrorInvalidDevice, CUDA_DEVICE_ABSENT},
    {cudaErrorInitializationError, CUDA_DEVICE_OUT},
    {cudaErrorCallRequiresNewerDriver, CUDA_DEVICE_OUT},
    {cudaErrorDevicesUnavailable, CUDA_DEVICE_OUT},
    {cudaErrorIncompatibleDriverContext, CUDA_DEVICE_OUT},
    {cudaErrorDeviceNotLicensed, CUDA_DEVICE_OUT},
    {cudaErrorSoftwareValidityNotEstablished, CUDA_DEVICE_OUT},
    {cudaErrorStartupFailure, CUDA_DEVICE_OUT},
    {cudaErrorNoKernelImageForDevice, CUDA_DEVICE_OUT},
    {cudaErrorECCUncorrectable, CUDA_DEVICE_OUT},
    {cudaErrorDeviceAlreadyInUse, CUDA_DEVICE_OUT},
    {cudaErrorInvalidPtx, CUDA_DEVICE_OUT},
    {cudaErrorNvlinkUncorrectable, CUDA_DEVICE_OUT},
    {cudaErrorJitCompilerNotFound, CUDA_DEVICE_OUT},
    {cudaErrorUnsupportedPtxVersion, CUDA_DEVICE_OUT},
    {cudaErrorJitCompilationDisabled, CUDA_DEVICE_OUT},
    {cudaErrorNotPermitted, CUDA_DEVICE_OUT},
    {cudaErrorSystemNotReady, CUDA_DEVICE_OUT},
    {cudaErrorSystemDriverMismatch, CUDA_DEVICE_OUT},
    {cudaErrorCompatNotSupportedOnDevice, CUDA_DEVICE_OUT},
    {cudaErrorMpsConnectionFailed, CUDA_DEVICE_OUT},
    {cudaErrorMpsServerNotReady, CUDA_DEVICE_OUT},
    {cudaErrorMpsMaxClientsReached, CUDA_DEVICE_OUT},
    {cudaErrorMpsMaxConnectionsReached, CUDA_DEVICE_OUT},
    {cudaErrorExternalDevice, CUDA_DEVICE_OUT},
    {cudaErrorCudartUnloading, CUDA_CONTEXT_LOST},
    {cudaErrorSynchronizationError, CUDA_CONTEXT_LOST},
    {cudaErrorPriorLaunchFailure, CUDA_CONTEXT_LOST},
    {cudaErrorDeviceUninitialized, CUDA_CONTEXT_LOST},
    {cudaErrorContained, CUDA_CONTEXT_LOST},
    {cudaErrorOperatingSystem, CUDA_CONTEXT_LOST},
    {cudaErrorIllegalAddress, CUDA_CONTEXT_LOST},
    {cudaErrorLaunchTimeout, CUDA_CONTEXT_LOST},
    {cudaErrorContextIsDestroyed, CUDA_CONTEXT_LOST},
    {cudaErrorAssert, CUDA_CONTEXT_LOST},
    {cudaErrorHardwareStackError, CUDA_CONTEXT_LOST},
    {cudaErrorIllegalInstruction, CUDA_CONTEXT_LOST},
    {cudaErrorMisalignedAddress, CUDA_CONTEXT_LOST},
    {cudaErrorInvalidAddressSpace, CUDA_CONTEXT_LOST},
    {cudaErrorInvalidPc, CUDA_CONTEXT_LOST},
    {cudaErrorLaunchFailure, CUDA_CONTEXT_LOST},
    {cudaErrorTensorMemoryLeak, CUDA_CONTEXT_LOST},
    {cudaErrorMpsRpcFailure, CUDA_CONTEXT_LOST},
    {cudaErrorMpsClientTerminated, CUDA_CONTEXT_LOST},
    {cudaErrorTimeout, CUDA_CONTEXT_LOST},
    {cudaErrorUnknown, CUDA_CONTEXT_LOST},
    {cudaErrorInvalidValue, CUDA_BUG},
    {cudaErrorInvalidConfiguration, CUDA_BUG},
    {cudaErrorInvalidPitchValue, CUDA_BUG},
    {cudaErrorInvalidSymbol, CUDA_BUG},
    {cudaErrorInvalidHostPointer, CUDA_BUG},
    {cudaErrorInvalidDevicePointer, CUDA_BUG},
    {cudaErrorInvalidMemcpyDirection, CUDA_BUG},
    {cudaErrorNotYetImplemented, CUDA_BUG},
    {cudaErrorMissingConfiguration, CUDA_BUG},
    {cudaErrorInvalidDeviceFunction, CUDA_BUG},
    {cudaErrorInvalidKernelImage, CUDA_BUG},
    {cudaErrorUnsupportedLimit, CUDA_BUG},
    {cudaErrorPeerAccessUnsupported, CUDA_BUG},
    {cudaErrorInvalidSource, CUDA_BUG},
    {cudaErrorFileNotFound, CUDA_BUG},
    {cudaErrorSharedObjectSymbolNotFound, CUDA_BUG},
    {cudaErrorSharedObjectInitFailed, CUDA_BUG},
    {cudaErrorInvalidResourceHandle, CUDA_BUG},
    {cudaErrorIllegalState, CUDA_BUG},
    {cudaErrorSymbolNotFound, CUDA_BUG},
    {cudaErrorLaunchOutOfResources, CUDA_BUG},
    {cudaErrorPeerAccessAlreadyEnabled, CUDA_BUG},
    {cudaErrorPeerAccessNotEnabled, CUDA_BUG},
    {cudaErrorSetOnActiveProcess, CUDA_BUG},
    {cudaErrorTooManyPeers, CUDA_BUG},
    {cudaErrorHostMemoryAlreadyRegistered, CUDA_BUG},
    {cudaErrorHostMemoryNotRegistered, CUDA_BUG},
    {cudaErrorCooperativeLaunchTooLarge, CUDA_BUG},
    {cudaErrorNotSupported, CUDA_BUG},
    {cudaErrorStreamCaptureUnsupported, CUDA_BUG},
    {cudaErrorStreamCaptureInvalidated, CUDA_BUG},
    {cudaErrorStreamCaptureMerge, CUDA_BUG},
    {cudaErrorStreamCaptureUnmatched, CUDA_BUG},
    {cudaErrorStreamCaptureUnjoined, CUDA_BUG},
    {cudaErrorStreamCaptureIsolation, CUDA_BUG},
    {cudaErrorStreamCaptureImplicit, CUDA_BUG},
    {cudaErrorCapturedEvent, CUDA_BUG},
    {cudaErrorStreamCaptureWrongThread, CUDA_BUG},
    {cudaErrorGraphExecUpdateFailure, CUDA_BUG},
    {cudaErrorInvalidClusterSize, CUDA_BUG},
    {cudaErrorFunctionNotLoaded, CUDA_BUG},
};

static const struct {
    cublasStatus_t status;
    enum cuda_verdict verdict;
} cublas[] = {
    {CUBLAS_STATUS_SUCCESS, CUDA_GOOD},
    {CUBLAS_STATUS_ALLOC_FAILED, CUDA_SMALLER},
    {CUBLAS_STATUS_NOT_INITIALIZED, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_MAPPING_ERROR, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_EXECUTION_FAILED, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_INTERNAL_ERROR, CUDA_CONTEXT_LOST},
    {CUBLAS_STATUS_ARCH_MISMATCH, CUDA_DEVICE_OUT},
    {CUBLAS_STATUS_LICENSE_ERROR, CUDA_DEVICE_OUT},
    {CUBLAS_STATUS_INVALID_VALUE, CUDA_BUG},
    {CUBLAS_STATUS_NOT_SUPPORTED, CUDA_BUG},
};

/* What a verdict asks for. exit of one that is not fatal: where the call was one of the start. */
static const struct {
    enum engine_status status;
    enum engine_exit exit;
    bool fatal;
} demands[] = {
    [CUDA_GOOD] = {ENGINE_OK, ENGINE_EXIT_OK, false},
    [CUDA_NOT_YET] = {ENGINE_UNSUPPORTED, ENGINE_EXIT_FAILURE, false},
    [CUDA_SMALLER] = {ENGINE_OUT_OF_MEMORY, ENGINE_EXIT_FAILURE, false},
    [CUDA_BUG] = {ENGINE_UNSUPPORTED, ENGINE_EXIT_FAILURE, false},
    [CUDA_CONTEXT_LOST] = {ENGINE_STATUS_COUNT, ENGINE_EXIT_FAULT, true},
    [CUDA_DEVICE_OUT] = {ENGINE_STATUS_COUNT, ENGINE_EXIT_DEVICE_OUT, true},
    [CUDA_DEVICE_ABSENT] = {ENGINE_STATUS_COUNT, ENGINE_EXIT_DEVICE_ABSENT, true},
};

enum cuda_verdict cuda_verdict_of(cudaError_t status)
{
    for (size_t i = 0; i < sizeof runtime / sizeof runtime[0]; i++) {
        if (runtime[i].status == status)
            return runtime[i].verdict;
    }
    return CUDA_CONTEXT_LOST;
}

enum cuda_verdict cuda_verdict_of_cublas(cublasStatus_t status)
{
    for (size_t i = 0; i < sizeof cublas / sizeof cublas[0]; i++) {
        if (cublas[i].status == status)
            return cublas[i].verdict;
    }
    return CUDA_CONTEXT_LOST;
}

cudaError_t cuda_status_of_cublas(cublasStatus_t status)
{
    static const cudaError_t alike[] = {
        [CUDA_GOOD] = cudaSuccess,
        [CUDA_NOT_YET] = cudaErrorNotReady,
        [CUDA_SMALLER] = cudaErrorMemoryAllocation,
        [CUDA_BUG] = cudaErrorInvalidValue,
        [CUDA_CONTEXT_LOST] = cudaErrorUnknown,
        [CUDA_DEVICE_OUT] = cudaErrorNoKernelImageForDevice,
        [CUDA_DEVICE_ABSENT] = cudaErrorNoDevice,
    };
    return alike[cuda_verdict_of_cublas(status)];
}

bool cuda_verdict_is_fatal(enum cuda_verdict verdict)
{
    return demands[verdict].fatal;
}

enum engine_exit cuda_verdict_exit(enum cuda_verdict verdict)
{
    return demands[verdict].exit;
}

enum engine_status cuda_verdict_status(enum cuda_verdict verdict)
{
    assert(!demands[verdict].fatal);
    return demands[verdict].status;
}
