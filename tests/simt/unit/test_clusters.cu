/* Clusters in the SIMT stand-in: blocks that meet, reach each other's shared memory and send each
 * other messages; and one that fails, or asks for what there is not, ends them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "gpu/cuda/base/ptx.cuh"
#include "tests/simt/sanitizers.h"
#include "tests/simt/unit/held.h"

#define BLOCKS 4
#define CLUSTERS 2
#define THREADS 64
#define ROUNDS 5

template <typename... Parameters, typename... Arguments>
static cudaError_t start_wide(void (*kernel)(Parameters...), unsigned cluster, unsigned threads,
                              Arguments... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(BLOCKS * CLUSTERS);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = 4096;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <typename... Parameters, typename... Arguments>
static cudaError_t start(void (*kernel)(Parameters...), unsigned cluster, Arguments... arguments)
{
    return start_wide(kernel, cluster, THREADS, arguments...);
}

static unsigned rank()
{
    return blockIdx.x % BLOCKS;
}

/* ---- Meetings ---- */

/* Each round every thread writes to the next block, and reads what the one before it wrote. */
static __global__ void pass_round(int *to)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int *mine = (int *)cuda__memory, sum = 0;
    int *next = cuda__of_block(mine, (rank() + 1) % BLOCKS);
    cuda__cluster_sync();
    for (int k = 0; k < ROUNDS; k++) {
        next[threadIdx.x] = (int)(rank() * 1000 + threadIdx.x) + k;
        cuda__cluster_sync();
        sum += mine[threadIdx.x];
        cuda__cluster_sync();
    }
    to[blockIdx.x * THREADS + threadIdx.x] = sum;
}

static void test_meetings(void **)
{
    static int to[BLOCKS * CLUSTERS * THREADS];
    assert_int_equal(start(pass_round, BLOCKS, to), cudaSuccess);
    for (int i = 0; i < BLOCKS * CLUSTERS * THREADS; i++) {
        int from = (i / THREADS + BLOCKS - 1) % BLOCKS * 1000 + i % THREADS;
        assert_int_equal(to[i], ROUNDS * from + ROUNDS * (ROUNDS - 1) / 2);
    }
}

/* ---- Messages ---- */

struct alignas(16) letter {
    int words[4], more[4];
};

struct box {
    letter in[2][BLOCKS], out;
    cuda__signal come[2];
};

static __device__ void send(box *shared, unsigned to, int turn)
{
    cuda__address come = cuda__address_in(&shared->come[turn], to);
    cuda__send(cuda__address_in(&shared->in[turn][rank()].words, to), come, shared->out.words);
    cuda__send(cuda__address_in(&shared->in[turn][rank()].more, to), come, shared->out.more);
}

/* Each round every block sends a letter to all, itself among them. `late`: one announces its
 * letters after some of them have come. */
static __global__ void correspond(int *to, bool late)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    box *shared = (box *)cuda__memory;
    int sum = 0;
    if (threadIdx.x < 2)
        cuda__signal_begin(&shared->come[threadIdx.x]);
    cuda__cluster_sync();
    for (int k = 0; k < ROUNDS; k++) {
        int turn = k & 1;
        if (threadIdx.x == 0) {
            shared->out = {{k, (int)rank(), k * 7, 1}, {(int)rank() * 10}};
            for (int i = 0; late && rank() == 2 && i < 100; i++)
                __nanosleep(1);
            cuda__signal_expect(&shared->come[turn], BLOCKS * sizeof(letter));
        }
        __syncthreads();
        if (threadIdx.x < BLOCKS)
            send(shared, threadIdx.x, turn);
        cuda__signal_await(&shared->come[turn], (unsigned)k >> 1 & 1);
        for (int from = 0; from < BLOCKS; from++) {
            const letter &read = shared->in[turn][from];
            bool right = read.words[0] == k && read.words[1] == from && read.words[2] == k * 7;
            sum += right ? read.more[0] : 100000;
        }
        __syncthreads();
    }
    to[blockIdx.x * THREADS + threadIdx.x] = sum;
}

static void test_messages(void **)
{
    static int to[BLOCKS * CLUSTERS * THREADS];
    for (int late = 0; late < 2; late++) {
        for (uint32_t seed = 1; seed <= 3; seed++) {
            simt_set_order(SIMT_SHUFFLED, seed);
            assert_int_equal(start(correspond, BLOCKS, to, late != 0), cudaSuccess);
            for (int sum : to)
                assert_int_equal(sum, ROUNDS * (0 + 10 + 20 + 30));
        }
    }
    simt_set_order(SIMT_FORWARD, 0);
}

/* ---- What must not be ---- */

enum mistake {
    NO_SUCH_BLOCK,
    NOT_SHARED,
    NO_CLUSTER,
    MISALIGNED_LETTER,
    A_BLOCK_FAILS,
    A_BLOCK_FAILS_AWAITED,
};

static __global__ void err(enum mistake mistake, int *sink)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    box *shared = (box *)cuda__memory;
    int other = 0;
    if (threadIdx.x == 0)
        cuda__signal_begin(&shared->come[0]);
    switch (mistake) {
    case NO_SUCH_BLOCK:
        *cuda__of_block((int *)cuda__memory, BLOCKS) = 1;
        break;
    case NOT_SHARED:
        *cuda__of_block(&other, 1) = 1;
        break;
    case NO_CLUSTER:
        cuda__cluster_sync();
        break;
    case MISALIGNED_LETTER:
        cuda__send(cuda__address_in(cuda__memory + 8, 0), cuda__address_in(shared->come, 0),
                   cuda__memory);
        break;
    case A_BLOCK_FAILS:
        if (rank() == 1)
            *sink = __shfl_sync(1u << (threadIdx.x + 1) % 32, 0, 0);
        cuda__cluster_sync();
        break;
    case A_BLOCK_FAILS_AWAITED:
        if (rank() == 1)
            *sink = __shfl_sync(1u << (threadIdx.x + 1) % 32, 0, 0);
        cuda__signal_await(&shared->come[0], 0);
        break;
    }
}

static const struct {
    enum mistake mistake;
    unsigned cluster;
    const char *says;
} mistakes[] = {
    {NO_SUCH_BLOCK, BLOCKS, "the cluster has no block of that rank"},
    {NOT_SHARED, BLOCKS, "the place is not in shared memory"},
    {NO_CLUSTER, 0, "the block is in no cluster"},
    {MISALIGNED_LETTER, BLOCKS, "it sends what is not aligned"},
    {A_BLOCK_FAILS, BLOCKS, "the mask lacks the lane that calls"},
    {A_BLOCK_FAILS_AWAITED, BLOCKS, "the mask lacks the lane that calls"},
};

static cudaError_t start_alone(enum mistake mistake, int *sink)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = 4096;
    return cudaLaunchKernelEx(&config, err, mistake, sink);
}

static void test_mistakes(void **)
{
    int sink = 0, kept = dup(STDERR_FILENO);
    assert_non_null(freopen("/dev/null", "w", stderr)); /* the reports would alarm a reader */
    for (const auto &row : mistakes) {
        cudaError_t status = row.cluster ? start(err, row.cluster, row.mistake, &sink)
                                         : start_alone(row.mistake, &sink);
        assert_int_equal(status, cudaErrorLaunchFailure);
        if (!strstr(simt_report(), row.says))
            fail_msg("not \"%s\": %s", row.says, simt_report());
        assert_int_equal(cudaDeviceReset(), cudaSuccess);
    }
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    test_meetings(nullptr);
}

static void test_limits(void **)
{
    int to = 0;
    assert_int_equal(start(pass_round, 3, &to), cudaErrorInvalidConfiguration);
    assert_int_equal(start(pass_round, 2 * SIMT_CLUSTER_MAX, &to), cudaErrorInvalidConfiguration);
    cudaGetLastError();
}

/* ---- No memory ---- */

static __global__ void count(int *blocks)
{
    if (threadIdx.x == 0)
        atomicAdd(blocks, 1);
}

/* More threads than a block had before, or more blocks than a cluster had, need memory. The launch
 * says that there is none, no block runs, and the next launch with memory does. */
static void test_no_memory(void **)
{
    static const struct {
        unsigned cluster, threads;
    } rows[] = {{BLOCKS, SIMT_THREADS_MAX}, {BLOCKS * CLUSTERS, THREADS}};
    int blocks = 0;
    if (ASAN_IS_HERE || TSAN_IS_HERE)
        skip(); /* they would need some themselves */
    assert_int_equal(start(count, BLOCKS, &blocks), cudaSuccess);
    assert_int_equal(blocks, BLOCKS * CLUSTERS);
    for (const auto &row : rows) {
        blocks = 0;
        hold_memory(true);
        cudaError_t status = start_wide(count, row.cluster, row.threads, &blocks);
        hold_memory(false);
        assert_int_equal(status, cudaErrorMemoryAllocation);
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        assert_int_equal(blocks, 0);
        assert_int_equal(start_wide(count, row.cluster, row.threads, &blocks), cudaSuccess);
        assert_int_equal(blocks, BLOCKS * CLUSTERS);
    }
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meetings),  cmocka_unit_test(test_messages),
        cmocka_unit_test(test_mistakes),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
