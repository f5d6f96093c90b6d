/* The SIMT stand-in itself: lanes exchange what they should, in whatever order they run; and a
 * kernel that does what it must not is found out. Run with an argument it is one kernel alone, for
 * ThreadSanitizer to judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "gpu/cuda/base/device_limits.h"
#include "gpu/cuda/base/ptx.cuh"
#include "tests/simt/sanitizers.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ALL 0xffffffffu

static const struct {
    const char *name;
    enum simt_order order;
    uint32_t seed;
} orders[] = {
    {"forward", SIMT_FORWARD, 0},     {"backward", SIMT_BACKWARD, 0},
    {"shuffled 1", SIMT_SHUFFLED, 1}, {"shuffled 2", SIMT_SHUFFLED, 2},
    {"shuffled 3", SIMT_SHUFFLED, 3}, {"ahead 1", SIMT_AHEAD, 1},
    {"ahead 2", SIMT_AHEAD, 2},
};

template <typename... Parameters, typename... Arguments>
static cudaError_t start(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, size_t shared,
                         Arguments... arguments)
{
    cudaLaunchConfig_t config = {blocks, threads, shared, nullptr};
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* ---- What lanes do together ---- */

struct exchanged {
    int plain, turned, rotated, up, down, halves, max, min, sum;
    unsigned odd, any, all;
    double wide;
};

static __global__ void exchange(exchanged *to)
{
    int lane = threadIdx.x % 32;
    exchanged *mine = to + threadIdx.x;
    mine->plain = __shfl_sync(ALL, lane * 10, 5);
    mine->turned = __shfl_xor_sync(ALL, lane, 3);
    mine->rotated = __shfl_sync(ALL, lane, lane + 1);
    mine->up = __shfl_up_sync(ALL, lane, 2);
    mine->down = __shfl_down_sync(ALL, lane, 2, 8);
    mine->halves = __shfl_sync(ALL, lane, 1, 16);
    mine->max = __reduce_max_sync(ALL, lane % 7 - 20);
    mine->min = __reduce_min_sync(ALL, lane % 7 - 20);
    mine->sum = __reduce_add_sync(ALL, lane);
    mine->odd = __ballot_sync(ALL, lane % 2);
    mine->any = __any_sync(ALL, lane == 31);
    mine->all = __all_sync(ALL, lane != 31);
    mine->wide = __shfl_sync(ALL, lane + 0.25, 31);
}

static void test_exchange(void **)
{
    exchanged to[64];
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        memset(to, 0xa5, sizeof to);
        assert_int_equal(start(exchange, 1, 64, 0, to), cudaSuccess);
        for (int i = 0; i < 64; i++) {
            int lane = i % 32;
            assert_int_equal(to[i].plain, 50);
            assert_int_equal(to[i].turned, lane ^ 3);
            assert_int_equal(to[i].rotated, (lane + 1) % 32);
            assert_int_equal(to[i].up, lane < 2 ? lane : lane - 2);
            assert_int_equal(to[i].down, lane % 8 >= 6 ? lane : lane + 2);
            assert_int_equal(to[i].halves, lane / 16 * 16 + 1);
            assert_int_equal(to[i].max, -14);
            assert_int_equal(to[i].min, -20);
            assert_int_equal(to[i].sum, 496);
            assert_int_equal(to[i].odd, 0xaaaaaaaa);
            assert_true(to[i].any && !to[i].all);
            assert_true(to[i].wide == 31.25);
        }
    }
}

/* Groups of 8 lanes, and lanes that go apart and come together. */
static __global__ void part(int *to)
{
    int lane = threadIdx.x;
    unsigned group = 0xffu << lane / 8 * 8;
    int sum = __reduce_add_sync(group, lane);
    if (lane < 16)
        sum += 1000 * __shfl_sync(0xffffu, lane, 15);
    else if (lane >= 24)
        sum += 1000 * __popc(__ballot_sync(0xff000000u, lane % 3 == 0));
    __syncwarp();
    to[lane] = __shfl_xor_sync(ALL, sum, 31);
}

static void test_groups(void **)
{
    int to[32];
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        assert_int_equal(start(part, 1, 32, 0, to), cudaSuccess);
        for (int i = 0; i < 32; i++) {
            int lane = i ^ 31, first = lane / 8 * 8;
            int more = lane < 16 ? 15000 : lane < 24 ? 0 : 3000;
            assert_int_equal(to[i], 8 * first + 28 + more);
        }
    }
}

struct whole {
    int count, any, all;
    unsigned total;
};

/* Sums over blocks of several warps, by shared memory of both kinds, by barriers and atomics. */
static __global__ void add_up(whole *to, unsigned *grand)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    __shared__ unsigned total;
    unsigned *numbers = (unsigned *)cuda__memory;
    unsigned size = blockDim.x * blockDim.y * blockDim.z;
    unsigned i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (numbers[i] != ALL)
        return; /* it does not begin as NaN */
    if (i == 0)
        total = 0;
    numbers[i] = i;
    __syncthreads();
    atomicAdd(&total, numbers[size - 1 - i]);
    int count = __syncthreads_count(i % 3 == 0), any = __syncthreads_or(i == size - 1);
    int all = __syncthreads_and(i != size - 1);
    if (i == 1)
        to[block] = {count, any, all, total};
    atomicAdd(grand, 1u);
}

static __global__ void hand_down(unsigned *to)
{
    static __shared__ unsigned left;
    to[blockIdx.x] = left;
    left = blockIdx.x;
}

/* Static shared memory is not zeros: a launch's first block finds NaN, as floats, and the others
 * what the one before left. */
static void test_static_memory(void **)
{
    unsigned to[3];
    simt_set_order(SIMT_FORWARD, 0);
    for (int launch = 0; launch < 2; launch++) {
        assert_int_equal(start(hand_down, dim3(3), dim3(1), 0, to), cudaSuccess);
        assert_int_equal(to[0], ALL);
        assert_int_equal(to[1], 0);
        assert_int_equal(to[2], 1);
    }
}

static void test_blocks(void **)
{
    for (size_t o = 0; o < COUNT(orders); o++) {
        whole to[12];
        unsigned grand = 0;
        simt_set_order(orders[o].order, orders[o].seed);
        memset(to, 0, sizeof to);
        assert_int_equal(
            start(add_up, dim3(2, 3, 2), dim3(4, 5, 5), 100 * sizeof(unsigned), to, &grand),
            cudaSuccess);
        for (int b = 0; b < 12; b++) {
            assert_int_equal(to[b].count, 34);
            assert_int_equal(to[b].any, 1);
            assert_int_equal(to[b].all, 0);
            assert_int_equal(to[b].total, 4950);
        }
        assert_int_equal(grand, 1200);
    }
}

/* Lanes that end early are not waited for. */
static __global__ void leave_early(int *to)
{
    if (threadIdx.x % 4 == 3)
        return;
    __syncwarp();
    __syncthreads();
    to[threadIdx.x] = __popc(__ballot_sync(ALL, 1));
}

static void test_early_end(void **)
{
    for (size_t o = 0; o < COUNT(orders); o++) {
        int to[64] = {0};
        simt_set_order(orders[o].order, orders[o].seed);
        assert_int_equal(start(leave_early, 1, 64, 0, to), cudaSuccess);
        for (int i = 0; i < 64; i++)
            assert_int_equal(to[i], i % 4 == 3 ? 0 : 24);
    }
}

/* A lane reads its neighbour's number, with a barrier or without. */
static __global__ void pass_on(int *to, bool waits)
{
    __shared__ int numbers[32];
    int lane = threadIdx.x;
    numbers[lane] = -1;
    __syncwarp();
    numbers[lane] = lane;
    if (waits)
        __syncwarp();
    to[lane] = numbers[lane ^ 1];
}

/* A barrier left out shows in the answers. */
static void test_missing_barrier(void **)
{
    bool wrong = false;
    for (size_t o = 0; o < COUNT(orders); o++) {
        int with[32], without[32];
        simt_set_order(orders[o].order, orders[o].seed);
        assert_int_equal(start(pass_on, 1, 32, 0, with, true), cudaSuccess);
        if (!TSAN_IS_HERE)
            assert_int_equal(start(pass_on, 1, 32, 0, without, false), cudaSuccess);
        for (int i = 0; i < 32; i++) {
            assert_int_equal(with[i], i ^ 1);
            wrong = wrong || TSAN_IS_HERE || without[i] != (i ^ 1);
        }
    }
    assert_true(wrong);
}

/* Copies come when they are waited for, and not before. */
static __global__ void copy_in(const double *from, double *early, double *late)
{
    __shared__ __align__(16) double stage[64];
    int lane = threadIdx.x;
    stage[2 * lane] = stage[2 * lane + 1] = -1;
    cuda__copy_async<16>(stage + 2 * lane, from + 2 * lane);
    early[lane] = stage[2 * lane + 1];
    cuda__copy_arrive();
    __syncwarp();
    late[lane] = stage[63 - lane];
}

static void test_copies(void **)
{
    alignas(16) double from[64], early[32], late[32];
    for (int i = 0; i < 64; i++)
        from[i] = i;
    assert_int_equal(start(copy_in, 1, 32, 0, from, early, late), cudaSuccess);
    for (int i = 0; i < 32; i++) {
        assert_true(early[i] == -1);
        assert_true(late[i] == 63 - i);
    }
}

/* ---- Gates ---- */

#define ROUNDS 7

/* Both warps fill one place and take what is there. waits: until both have done with it. */
static __global__ void fill_and_take(const double *from, double *to, bool waits)
{
    __shared__ double stage[64];
    __shared__ cuda__gate filled, left;
    if (threadIdx.x == 0) {
        cuda__gate_begin(&filled, 64);
        cuda__gate_begin(&left, 2);
    }
    __syncthreads();
    for (int k = 0; k < ROUNDS; k++) {
        if (waits && k > 0)
            cuda__gate_await(&left, (unsigned)(k - 1) & 1);
        cuda__copy_async<8>(&stage[threadIdx.x], from + k * 64 + threadIdx.x);
        cuda__gate_arrive_behind_copies(&filled);
        cuda__gate_await(&filled, (unsigned)k & 1);
        to[k * 64 + threadIdx.x] = stage[63 - threadIdx.x];
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            cuda__gate_arrive(&left);
    }
}

static bool takes_all(bool waits)
{
    double from[ROUNDS * 64], to[ROUNDS * 64] = {};
    bool all = true;
    for (int i = 0; i < ROUNDS * 64; i++)
        from[i] = i;
    assert_int_equal(start(fill_and_take, 1, 64, 0, from, to, waits), cudaSuccess);
    for (int i = 0; i < ROUNDS * 64; i++)
        all = all && to[i] == i / 64 * 64 + 63 - i % 64;
    return all;
}

/* A warp that does not wait for the other one is seen where it is as far ahead as it can be. */
static void test_gates(void **)
{
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        assert_true(takes_all(true));
        if (orders[o].order == SIMT_AHEAD && !TSAN_IS_HERE) /* which would tell of a race */
            assert_false(takes_all(false));
    }
}

/* ---- What must not be ---- */

enum mistake {
    LANE_STAYS_AWAY,
    MASKS_DIFFER,
    CALLS_DIFFER,
    MASK_LACKS_CALLER,
    MASK_BEYOND_BLOCK,
    LANE_HAS_ENDED,
    BARRIERS_CROSS,
    BARRIERS_DIFFER,
    MISALIGNED_COPY,
    GATE_STAYS_SHUT,
};

static __global__ void err(enum mistake mistake, int *sink)
{
    __shared__ __align__(16) unsigned char stage[32];
    __shared__ cuda__gate gate;
    int lane = threadIdx.x % 32;
    switch (mistake) {
    case LANE_STAYS_AWAY:
        if (lane == 7)
            __syncthreads();
        else
            __syncwarp();
        break;
    case MASKS_DIFFER:
        __ballot_sync(lane < 16 ? 0xffffu : ALL, 1);
        __syncwarp();
        break;
    case CALLS_DIFFER:
        *sink = lane < 16 ? __any_sync(ALL, 1) : __all_sync(ALL, 1);
        break;
    case MASK_LACKS_CALLER:
        __syncwarp(0xfffffffeu);
        break;
    case MASK_BEYOND_BLOCK:
        __syncwarp(ALL);
        break;
    case LANE_HAS_ENDED:
        if (lane != 9)
            *sink = __shfl_sync(ALL, lane, 9);
        break;
    case BARRIERS_CROSS:
        if (threadIdx.x < 32)
            __shfl_sync(ALL, lane, 0);
        __syncthreads();
        if (threadIdx.x == 40)
            __syncwarp();
        __syncthreads();
        break;
    case BARRIERS_DIFFER:
        if (threadIdx.x < 32)
            __syncthreads();
        else
            *sink = __syncthreads_or(1);
        break;
    case MISALIGNED_COPY:
        cuda__copy_async<8>(stage + 4, stage + 8);
        break;
    case GATE_STAYS_SHUT:
        if (lane == 0)
            cuda__gate_begin(&gate, 33);
        __syncwarp();
        cuda__gate_arrive(&gate);
        cuda__gate_await(&gate, 0);
        break;
    }
}

static const struct {
    enum mistake mistake;
    unsigned threads;
    const char *says; /* the report, among other words */
} mistakes[] = {
    {LANE_STAYS_AWAY, 32, "threads 7 to 7 wait in __syncthreads"},
    {MASKS_DIFFER, 32, "__ballot_sync, mask ffffffff"},
    {CALLS_DIFFER, 32, "meet in __any_sync, mask ffffffff"},
    {MASK_LACKS_CALLER, 32, "the mask lacks the lane that calls"},
    {MASK_BEYOND_BLOCK, 8, "the mask has lanes that the block lacks"},
    {LANE_HAS_ENDED, 32, "it asks a lane that takes no part"},
    {BARRIERS_CROSS, 64, "threads 40 to 40 wait in __syncwarp"},
    {BARRIERS_DIFFER, 64, "meet in __syncthreads"},
    {MISALIGNED_COPY, 32, "it copies what is not aligned"},
    {GATE_STAYS_SHUT, 32, "threads 0 to 31 wait in cuda__gate_await"},
};

/* The report goes to stderr too, where it would alarm a reader of the test. */
static int silence(void)
{
    int kept = dup(STDERR_FILENO);
    assert_non_null(freopen("/dev/null", "w", stderr));
    return kept;
}

static void speak(int kept)
{
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
}

static void test_mistakes(void **)
{
    int sink = 0;
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        for (size_t i = 0; i < COUNT(mistakes); i++) {
            int kept = silence();
            cudaError_t status = start(err, 1, mistakes[i].threads, 0, mistakes[i].mistake, &sink);
            speak(kept);
            if (!strstr(simt_report(), mistakes[i].says) || !strstr(simt_report(), ".cu"))
                fail_msg("%s, mistake %zu: %s", orders[o].name, i, simt_report());
            assert_int_equal(status, cudaErrorLaunchFailure);
            /* The context is lost, until it is made anew. */
            assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
            assert_int_equal(start(exchange, 1, 32, 0, (exchanged *)nullptr),
                             cudaErrorLaunchFailure);
            assert_int_equal(cudaDeviceReset(), cudaSuccess);
        }
    }
    test_exchange(nullptr);
}

static __global__ void write_to(int *to)
{
    *(volatile int *)to = 1;
}

static void test_bad_address(void **)
{
    if (TSAN_IS_HERE || ASAN_IS_HERE)
        skip(); /* the sanitizer ends the process */
    int kept = silence();
    assert_int_equal(start(write_to, 1, 32, 0, (int *)64), cudaErrorIllegalAddress);
    speak(kept);
    assert_non_null(strstr(simt_report(), "used a bad address"));
    assert_int_equal(cudaDeviceReset(), cudaSuccess);
    int to = 0;
    assert_int_equal(start(write_to, 1, 32, 0, &to), cudaSuccess);
    assert_int_equal(to, 1);
}

/* The one that asks for how much: a kernel that is launched by several threads keeps its limit. */
static void test_one_limit_for_all(void **)
{
    const void *kernel = (const void *)leave_early;
    assert_int_equal(cuda__allow_shared(kernel, SIMT_SHARED_USUAL + 2), cudaSuccess);
    assert_int_equal(simt_shared_allowed(kernel), SIMT_SHARED_MAX);
    assert_int_equal(cuda__allow_shared(kernel, 1), cudaSuccess);
    assert_int_equal(simt_shared_allowed(kernel), SIMT_SHARED_MAX);
    assert_int_equal(cuda__allow_shared(kernel, SIMT_SHARED_MAX + 1), cudaErrorInvalidValue);
    simt_set_shared(100 * 1024);
    assert_int_equal(cuda__allow_shared(kernel, 100 * 1024 + 1), cudaErrorInvalidValue);
    assert_int_equal(cuda__allow_shared(kernel, 100 * 1024), cudaSuccess);
    assert_int_equal(simt_shared_allowed(kernel), 100 * 1024);
    simt_set_shared(SIMT_SHARED_MAX);
}

static void test_limits(void **)
{
    int to[32];
    assert_int_equal(start(pass_on, 0, 32, 0, to, true), cudaErrorInvalidConfiguration);
    assert_int_equal(start(pass_on, 1, 1025, 0, to, true), cudaErrorInvalidConfiguration);
    assert_int_equal(start(pass_on, 1, 32, SIMT_SHARED_USUAL + 1, to, true), cudaErrorInvalidValue);
    assert_int_equal(cudaFuncSetAttribute((const void *)pass_on,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          SIMT_SHARED_MAX),
                     cudaSuccess);
    assert_int_equal(start(pass_on, 1, 32, SIMT_SHARED_MAX, to, true), cudaSuccess);
    assert_int_equal(start(pass_on, 1, 32, SIMT_SHARED_MAX + 1, to, true),
                     cudaErrorInvalidConfiguration);
    cudaGetLastError();
}

/* ---- Launches that may overlap those before them ---- */

/* Threads from `first` on wait for the launch before. */
static __global__ void wait_from(int first)
{
    if ((int)threadIdx.x >= first)
        cuda__follow_previous();
}

static cudaError_t start_waiting(int first, bool overlaps)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = overlaps;
    cudaLaunchConfig_t config = {2, 64, 0, nullptr, &attribute, 1};
    return cudaLaunchKernelEx(&config, wait_from, first);
}

static void test_overlapping(void **)
{
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        assert_int_equal(start_waiting(0, true), cudaSuccess);
        assert_int_equal(start_waiting(64, false), cudaSuccess);
        int kept = silence();
        assert_int_equal(start_waiting(1, true), cudaErrorLaunchFailure);
        speak(kept);
        assert_non_null(strstr(simt_report(), "thread 0 did not wait for the launch before"));
        assert_int_equal(cudaDeviceReset(), cudaSuccess);
        kept = silence();
        assert_int_equal(start_waiting(64, true), cudaErrorLaunchFailure);
        speak(kept);
        assert_int_equal(cudaDeviceReset(), cudaSuccess);
    }
}

/* ---- Races, which ThreadSanitizer alone sees ---- */

/* Each thread runs to its end before the next begins, and no barrier orders them. */
static __global__ void write_same(int *to)
{
    *to = 7;
}

static int run_alone(const char *what)
{
    int to[32];
    simt_set_order(SIMT_FORWARD, 0);
    cudaError_t status = strcmp(what, "same place") == 0
                             ? start(write_same, 1, 2, 0, to)
                             : start(pass_on, 1, 32, 0, to, strcmp(what, "sound") == 0);
    return status == cudaSuccess ? 0 : 1;
}

static int exit_of(const char *what)
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        silence();
        setenv("TSAN_OPTIONS", "exitcode=66:log_path=stderr", 1);
        execl("/proc/self/exe", "test_simt", what, (char *)nullptr);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_race(void **)
{
    if (!TSAN_IS_HERE)
        skip();
    assert_int_equal(exit_of("sound"), 0);
    assert_int_equal(exit_of("no barrier"), 66);
    assert_int_equal(exit_of("same place"), 66);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),      cmocka_unit_test(test_groups),
        cmocka_unit_test(test_blocks),        cmocka_unit_test(test_early_end),
        cmocka_unit_test(test_static_memory), cmocka_unit_test(test_missing_barrier),
        cmocka_unit_test(test_copies),        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_mistakes),      cmocka_unit_test(test_bad_address),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_one_limit_for_all),
        cmocka_unit_test(test_overlapping),   cmocka_unit_test(test_race),
    };
    if (argc > 1)
        return run_alone(argv[1]);
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
