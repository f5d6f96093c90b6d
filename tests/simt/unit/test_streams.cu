/* Streams of the SIMT stand-in: what one is given is done when somebody waits for it, or before
 * others go on, so that a wait that is missing shows; and events order them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "gpu/cuda/base/ptx.cuh"
#include "tests/simt/sanitizers.h"
#include "tests/simt/unit/held.h"

#define SIDES 2

static cudaStream_t stream, sides[SIDES];
static cudaEvent_t forked, begun, joined;
static int seen[4];

static __global__ void put(int *to, int value)
{
    *to = value;
}

static __global__ void copy(int *to, const int *from)
{
    *to = *from;
}

template <typename... Parameters, typename... Arguments>
static void start(cudaStream_t where, cudaEvent_t event, void (*kernel)(Parameters...),
                  Arguments... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
    attribute.val.launchCompletionEvent.event = event;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = where;
    config.attrs = &attribute;
    config.numAttrs = event ? 1 : 0;
    assert_int_equal(cudaLaunchKernelEx(&config, kernel, arguments...), cudaSuccess);
}

static void record(cudaEvent_t event, cudaStream_t by)
{
    assert_int_equal(cudaEventRecord(event, by), cudaSuccess);
}

static void await(cudaStream_t who, cudaEvent_t event)
{
    assert_int_equal(cudaStreamWaitEvent(who, event, 0), cudaSuccess);
}

static void finish()
{
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

static void forget()
{
    for (int &value : seen)
        value = 0;
}

static int set_up(void **)
{
    cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (cudaStream_t &side : sides)
        status = status == cudaSuccess ? cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking)
                                       : status;
    for (cudaEvent_t *event : {&forked, &begun, &joined})
        status = status == cudaSuccess ? cudaEventCreateWithFlags(event, cudaEventDisableTiming)
                                       : status;
    return status != cudaSuccess;
}

static int tear_down(void **)
{
    simt_set_streams(SIMT_STREAMS_AT_ONCE);
    bool good = true;
    for (cudaEvent_t event : {forked, begun, joined})
        good = cudaEventDestroy(event) == cudaSuccess && good;
    for (cudaStream_t side : sides)
        good = cudaStreamDestroy(side) == cudaSuccess && good;
    return !(cudaStreamDestroy(stream) == cudaSuccess && good);
}

/* seen[0] = 1; a side reads it; what the side has read is read. What is missing is not there. */
static void cross(cudaStream_t first, bool forks, bool joins)
{
    forget();
    start(first, nullptr, put, &seen[0], 1);
    record(forked, first);
    if (forks)
        await(sides[0], forked);
    start(sides[0], nullptr, copy, &seen[1], &seen[0]);
    record(joined, sides[0]);
    if (joins)
        await(first, joined);
    start(first, nullptr, copy, &seen[2], &seen[1]);
    finish();
}

static void test_waits_that_are_missing(void **)
{
    for (int how = SIMT_STREAMS_AT_ONCE; how <= SIMT_STREAMS_EARLY; how++) {
        simt_set_streams((enum simt_streams)how);
        cross(stream, true, true);
        assert_int_equal(seen[2], 1);
        cross(stream, false, true);
        assert_int_equal(seen[2], how == SIMT_STREAMS_EARLY ? 0 : 1);
        cross(stream, true, false);
        assert_int_equal(seen[2], how == SIMT_STREAMS_LATE ? 0 : 1);
    }
    /* The default stream is never late; what it waits for is done. */
    simt_set_streams(SIMT_STREAMS_LATE);
    cross(nullptr, true, true);
    assert_int_equal(seen[2], 1);
    cross(nullptr, true, false);
    assert_int_equal(seen[2], 0);
}

/* A wait is for the record before it, not for the next. */
static void test_records_have_numbers(void **)
{
    simt_set_streams(SIMT_STREAMS_LATE);
    forget();
    await(stream, forked); /* nothing was recorded: no wait */
    start(sides[0], nullptr, put, &seen[0], 1);
    record(forked, sides[0]);
    await(stream, forked);
    start(stream, nullptr, copy, &seen[1], &seen[0]);
    start(sides[0], nullptr, put, &seen[0], 2);
    record(forked, sides[0]);
    finish();
    assert_int_equal(seen[1], 1);
    assert_int_equal(seen[0], 1);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(seen[0], 2);
}

/* An event may be recorded in several streams, which come to their records in any order: a wait is
 * for the one that was the last when it was asked, the one that has been there meanwhile. */
static void test_records_in_two_streams(void **)
{
    for (int how = SIMT_STREAMS_LATE; how <= SIMT_STREAMS_EARLY; how++) {
        simt_set_streams((enum simt_streams)how);
        forget();
        start(sides[0], nullptr, put, &seen[0], 1);
        record(forked, sides[0]);
        await(stream, forked);
        start(stream, nullptr, copy, &seen[1], &seen[0]);
        record(forked, sides[1]); /* the second record is made before the first */
        assert_int_equal(cudaStreamSynchronize(sides[1]), cudaSuccess);
        finish();
        assert_int_equal(seen[1], 1);
        assert_int_equal(cudaStreamSynchronize(sides[0]), cudaSuccess);
        await(stream, forked); /* for the second still */
        finish();
    }
    /* A wait for the second is none for the first. */
    simt_set_streams(SIMT_STREAMS_LATE);
    forget();
    start(sides[0], nullptr, put, &seen[0], 1);
    record(forked, sides[0]);
    start(sides[1], nullptr, put, &seen[1], 1);
    record(forked, sides[1]);
    await(stream, forked);
    start(stream, nullptr, copy, &seen[2], &seen[0]);
    start(stream, nullptr, copy, &seen[3], &seen[1]);
    finish();
    assert_int_equal(seen[2], 0);
    assert_int_equal(seen[3], 1);
}

/* Through a stream between, and a stream with nothing to do. */
static void test_chains(void **)
{
    for (int how = SIMT_STREAMS_AT_ONCE; how <= SIMT_STREAMS_EARLY; how++) {
        simt_set_streams((enum simt_streams)how);
        forget();
        start(stream, nullptr, put, &seen[0], 5);
        record(forked, stream);
        await(sides[1], forked);
        record(begun, sides[1]);
        await(sides[0], begun);
        start(sides[0], nullptr, copy, &seen[1], &seen[0]);
        record(joined, sides[0]);
        await(stream, joined);
        start(stream, nullptr, copy, &seen[2], &seen[1]);
        finish();
        assert_int_equal(seen[2], 5);
    }
}

/* Blocks that have begun have not ended. */
static void test_begun_is_not_ended(void **)
{
    simt_set_streams(SIMT_STREAMS_LATE);
    forget();
    start(sides[0], nullptr, put, &seen[0], 1);
    start(sides[0], begun, put, &seen[1], 1);
    await(stream, begun);
    start(stream, nullptr, copy, &seen[2], &seen[0]);
    start(stream, nullptr, copy, &seen[3], &seen[1]);
    finish();
    assert_int_equal(seen[2], 1);
    assert_int_equal(seen[3], 0);
}

/* Copies wait for their turn; what a stream has is done before memory is freed. */
static void test_copies_and_memory(void **)
{
    void *memory;
    simt_set_streams(SIMT_STREAMS_LATE);
    forget();
    assert_int_equal(cudaMalloc(&memory, sizeof(int)), cudaSuccess);
    start(stream, nullptr, put, &seen[0], 7);
    assert_int_equal(
        cudaMemcpyAsync(memory, &seen[0], sizeof(int), cudaMemcpyDeviceToDevice, stream),
        cudaSuccess);
    assert_int_equal(
        cudaMemcpyAsync(&seen[1], memory, sizeof(int), cudaMemcpyDeviceToDevice, stream),
        cudaSuccess);
    assert_int_equal(seen[1], 0);
    assert_int_equal(cudaFree(memory), cudaSuccess);
    assert_int_equal(seen[1], 7);
}

static __global__ void go_wrong()
{
    __syncwarp(2); /* a lane that there is not */
}

/* The status of a stream that has something wrong to do, perhaps without memory. Its report would
 * alarm a reader. */
static cudaError_t finish_silently(bool held)
{
    FILE *nowhere = fopen("/dev/null", "w");
    int kept = dup(STDERR_FILENO);
    assert_true(nowhere && kept >= 0);
    fflush(stderr);
    assert_true(dup2(fileno(nowhere), STDERR_FILENO) >= 0);
    hold_memory(held);
    cudaError_t status = cudaStreamSynchronize(stream);
    hold_memory(false);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    fclose(nowhere);
    return status;
}

/* What goes wrong late is said by the one that waits. */
static void test_late_mistakes(void **)
{
    simt_set_streams(SIMT_STREAMS_LATE);
    start(stream, nullptr, go_wrong);
    assert_int_equal(finish_silently(false), cudaErrorLaunchFailure);
    cudaDeviceReset();
}

/* More threads than there were before need memory. At once the launch says that there is none, as
 * on a device; late it is too late, and the context is lost. */
static void test_no_memory(void **)
{
    if (ASAN_IS_HERE || TSAN_IS_HERE)
        skip(); /* they would need some themselves */
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(SIMT_THREADS_MAX);
    simt_set_streams(SIMT_STREAMS_LATE);
    forget();
    hold_memory(true);
    cudaError_t at_once = cudaLaunchKernelEx(&config, put, &seen[0], 1);
    hold_memory(false);
    assert_int_equal(at_once, cudaErrorMemoryAllocation);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    config.stream = stream;
    assert_int_equal(cudaLaunchKernelEx(&config, put, &seen[0], 1), cudaSuccess);
    start(sides[0], nullptr, put, &seen[1], 1);
    assert_int_equal(finish_silently(true), cudaErrorLaunchFailure);
    assert_non_null(strstr(simt_report(), "found no memory"));
    assert_int_equal(cudaStreamSynchronize(sides[0]), cudaErrorLaunchFailure);
    assert_int_equal(seen[0] + seen[1], 0);
    cudaDeviceReset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_that_are_missing), cmocka_unit_test(test_records_have_numbers),
        cmocka_unit_test(test_records_in_two_streams), cmocka_unit_test(test_chains),
        cmocka_unit_test(test_begun_is_not_ended),     cmocka_unit_test(test_copies_and_memory),
        cmocka_unit_test(test_late_mistakes),          cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
