/* tests/simt/gpu/cuda/base/ptx.cuh: gpu/cuda/base/ptx.cuh for the SIMT stand-in: the same functions
 * in C++.
 *
 * Estimates are no better than the device's. Copies are made when they are waited for, or when a
 * gate is reported to wait for them: what reads them earlier reads what was there before.
 */
#ifndef TESTS_SIMT_GPU_CUDA_BASE_PTX_CUH
#define TESTS_SIMT_GPU_CUDA_BASE_PTX_CUH

#include <time.h>

#include "device.cuh"

typedef unsigned char *cuda__address;

static inline cuda__address cuda__address_of(void *shared)
{
    return (cuda__address)shared;
}

template <typename S> static inline S *cuda__held(S *shared)
{
    return shared;
}

template <typename T> static inline void cuda__store_if(bool wanted, cuda__address to, const T *x)
{
    struct alignas(16) piece {
        T numbers[16 / sizeof(T)];
    };
    if (!wanted)
        return;
    if ((uintptr_t)to % 16 != 0)
        simt_fail({__func__, __FILE__, __LINE__}, "it stores to a place that is not aligned");
    for (unsigned v = 0; v < 16 / sizeof(T); v++)
        ((piece *)to)->numbers[v] = x[v];
}

static inline float cuda__estimate_reciprocal(float x)
{
    x = fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
    float r = __uint_as_float(__float_as_uint(1 / x) & ~1u);
    return fpclassify(r) == FP_SUBNORMAL ? copysignf(0, r) : r;
}

static inline double cuda__estimate_reciprocal(double x)
{
    x = fpclassify(x) == FP_SUBNORMAL ? copysign(0, x) : x;
    double r = __hiloint2double(__double2hiint(1 / __hiloint2double(__double2hiint(x), 0)), 0);
    return fpclassify(r) == FP_SUBNORMAL ? copysign(0, r) : r;
}

template <typename T> static inline T cuda__load_stream(const T *from)
{
    return *from;
}

template <typename V, typename T> static inline void cuda__store_stream(V *to, const T *x)
{
    if ((uintptr_t)to % sizeof(V) != 0)
        simt_fail({__func__, __FILE__, __LINE__}, "it stores to a place that is not aligned");
    memcpy((void *)to, x, sizeof(V));
}

template <typename T> static inline void cuda__store_stream(T *to, T x)
{
    *to = x;
}

/* A kernel begins when the one before it is done; but that it waits is looked at. */
static inline void cuda__wait_for_previous()
{
    simt_note_wait();
}

static inline void cuda__release_next()
{
}

static inline void cuda__follow_previous()
{
    cuda__wait_for_previous();
    cuda__release_next();
}

template <int Threads> static inline void cuda__block_sync(SIMT_CALLER)
{
    if (Threads != (int)(blockDim.x * blockDim.y * blockDim.z))
        simt_fail(SIMT_CALL, "it is a barrier for a part of the block");
    simt_meet_block(SIMT_CALL, false);
}

static inline void cuda__tell(int *progress, int now)
{
    __atomic_store_n(progress, now, __ATOMIC_RELEASE);
    simt_note_change();
}

static inline void cuda__await(const int *progress, int least, SIMT_CALLER)
{
    while (__atomic_load_n(progress, __ATOMIC_ACQUIRE) < least)
        simt_pause_cluster(SIMT_CALL);
}

static inline void cuda__copy_arrive()
{
    simt_copies &begun = *simt_copies_here;
    for (int i = 0; i < begun.count; i++)
        memcpy(begun.copies[i].to, begun.copies[i].from, begun.copies[i].bytes);
    begun.count = 0;
}

template <int Bytes> static inline void cuda__copy_async(void *to, const void *from)
{
    static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "what the device can copy");
    if ((uintptr_t)to % Bytes != 0 || (uintptr_t)from % Bytes != 0)
        simt_fail({__func__, __FILE__, __LINE__}, "it copies what is not aligned");
    if (simt_copies_here->count == SIMT_COPIES_MAX)
        cuda__copy_arrive();
    simt_copies_here->copies[simt_copies_here->count++] = {to, from, Bytes};
}

static inline void cuda__multiply_add(double *c, const double *a, const double *b)
{
    simt_multiply_add({__func__, __FILE__, __LINE__}, c, a, b);
}

static inline void cuda__multiply_add_16(double *c, const double *a, const double *b)
{
    cuda__multiply_add(c, a, b);
    cuda__multiply_add(c, a + 4, b + 2);
}

template <typename T> static inline void cuda__keep(T &)
{
}

static inline void cuda__in_order()
{
}

template <typename P> static inline P *cuda__renewed(P *pointer)
{
    return pointer;
}

static inline void cuda__cluster_sync(SIMT_CALLER)
{
    simt_meet_cluster(SIMT_CALL);
}

template <typename S> static inline S *cuda__of_block(S *shared, unsigned rank, SIMT_CALLER)
{
    return (S *)simt_of_block(SIMT_CALL, shared, rank);
}

/* From the highest bits down: the number of the phase, how many arrivals a phase has, and how many
 * are still to come. */
struct alignas(8) cuda__gate {
    uint64_t word;
};

#define SIMT_GATE_BITS 16

static inline void cuda__gate_begin(cuda__gate *gate, unsigned count)
{
    __atomic_store_n(&gate->word, (uint64_t)count << SIMT_GATE_BITS | count, __ATOMIC_RELEASE);
}

static inline void cuda__gate_arrive(cuda__gate *gate)
{
    const uint64_t mask = ((uint64_t)1 << SIMT_GATE_BITS) - 1;
    uint64_t old = __atomic_load_n(&gate->word, __ATOMIC_RELAXED), next;
    do {
        const uint64_t all = old >> SIMT_GATE_BITS & mask, phase = old >> 2 * SIMT_GATE_BITS;
        next = (old & mask) > 1 ? old - 1
                                : (phase + 1) << 2 * SIMT_GATE_BITS | all << SIMT_GATE_BITS | all;
    } while (!__atomic_compare_exchange_n(&gate->word, &old, next, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    simt_note_change();
}

static inline void cuda__gate_arrive_behind_copies(cuda__gate *gate)
{
    cuda__copy_arrive();
    cuda__gate_arrive(gate);
}

static inline void cuda__gate_await(cuda__gate *gate, unsigned phase, SIMT_CALLER)
{
    while ((__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) >> 2 * SIMT_GATE_BITS & 1) == phase)
        simt_pause_cluster(SIMT_CALL);
}

/* The number of the phase in the upper half; in the lower one, the bytes that are still to come.
 * Until they are announced that is SIMT_SIGNAL_PENDING less those that came early. */
struct alignas(8) cuda__signal {
    uint64_t word;
};

#define SIMT_SIGNAL_PENDING ((uint64_t)1 << 31)

static inline void cuda__signal_begin(cuda__signal *signal)
{
    __atomic_store_n(&signal->word, SIMT_SIGNAL_PENDING, __ATOMIC_RELEASE);
}

/* The phase ends when all that was announced has come. */
static inline void simt_signal_add(cuda__signal *signal, uint64_t bytes)
{
    uint64_t old = __atomic_load_n(&signal->word, __ATOMIC_RELAXED), next;
    do {
        uint32_t left = (uint32_t)(old + bytes);
        next = (old >> 32) << 32 | left;
        if (left == 0)
            next = ((old >> 32) + 1) << 32 | SIMT_SIGNAL_PENDING;
    } while (!__atomic_compare_exchange_n(&signal->word, &old, next, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
}

static inline void cuda__signal_expect(cuda__signal *signal, unsigned bytes)
{
    simt_signal_add(signal, bytes - SIMT_SIGNAL_PENDING);
}

static inline void cuda__signal_await(cuda__signal *signal, unsigned phase, SIMT_CALLER)
{
    while ((__atomic_load_n(&signal->word, __ATOMIC_ACQUIRE) >> 32 & 1) == phase)
        simt_pause_cluster(SIMT_CALL);
}

static inline cuda__address cuda__address_in(void *shared, unsigned rank, SIMT_CALLER)
{
    return (cuda__address)simt_of_block(SIMT_CALL, shared, rank);
}

static inline void cuda__send(cuda__address to, cuda__address signal, const void *from)
{
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        simt_fail({__func__, __FILE__, __LINE__}, "it sends what is not aligned");
    memcpy(to, from, 16);
    simt_signal_add((cuda__signal *)signal, (uint64_t)-16);
}

static inline uint64_t cuda__now_ns()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
