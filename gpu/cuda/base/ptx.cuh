/* gpu/cuda/base/ptx.cuh: the instructions that CUDA C++ has no words for. All inline PTX is here,
 * so that the SIMT stand-in (tests/simt), which runs the kernels on a CPU, has one file to replace.
 * Device code.
 */
#ifndef GPU_CUDA_BASE_PTX_CUH
#define GPU_CUDA_BASE_PTX_CUH

#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "the kernels need compute capability 9.0: clusters, and launches that overlap"
#endif

/* A place in shared memory, as instructions want it. */
typedef unsigned cuda__address;

static __device__ __forceinline__ cuda__address cuda__address_of(const void *shared)
{
    return (cuda__address)__cvta_generic_to_shared(shared);
}

/* The same place in shared memory, whose address is kept in a register: not found anew, in some
 * thirty cycles, in every round of a loop. */
template <typename S> static __device__ __forceinline__ S *cuda__held(S *shared)
{
    cuda__address address = cuda__address_of(shared);
    asm volatile("" : "+r"(address));
    return (S *)__cvta_shared_to_generic(address);
}

/* 16 bytes to shared memory where `wanted` holds. */
static __device__ __forceinline__ void cuda__store_if(bool wanted, cuda__address to, const float *x)
{
    asm volatile(
        "{.reg .pred p; setp.ne.s32 p, %0, 0; @p st.shared.v4.f32 [%1], {%2, %3, %4, %5};}" ::"r"(
            (int)wanted),
        "r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
        : "memory");
}

static __device__ __forceinline__ void cuda__store_if(bool wanted, cuda__address to,
                                                      const double *x)
{
    asm volatile("{.reg .pred p; setp.ne.s32 p, %0, 0; @p st.shared.v2.f64 [%1], {%2, %3};}" ::"r"(
                     (int)wanted),
                 "r"(to), "d"(x[0]), "d"(x[1])
                 : "memory");
}

/* 1/x to 23 bits; what is not a normal number becomes zero, before and after. */
static __device__ __forceinline__ float cuda__estimate_reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* The same to 20 bits. */
static __device__ __forceinline__ double cuda__estimate_reciprocal(double x)
{
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    return r;
}

/* Starts copying 4, 8 or 16 bytes from global to shared memory; both begin at a multiple of that.
 */
template <int Bytes>
static __device__ __forceinline__ void cuda__copy_async(void *to, const void *from)
{
    cuda__address address = cuda__address_of(to);
    if (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from),
                     "n"(Bytes)
                     : "memory");
}

/* A number of global memory that the second-level cache may let go before others. */
template <typename T> static __device__ __forceinline__ T cuda__load_stream(const T *from)
{
    return __ldcs(from);
}

/* 16 bytes to global memory that the device will not read again. */
static __device__ __forceinline__ void cuda__store_stream(float4 *to, const float *x)
{
    __stcs(to, make_float4(x[0], x[1], x[2], x[3]));
}

static __device__ __forceinline__ void cuda__store_stream(double2 *to, const double *x)
{
    __stcs(to, make_double2(x[0], x[1]));
}

/* The same of one number. */
template <typename T> static __device__ __forceinline__ void cuda__store_stream(T *to, T x)
{
    __stcs(to, x);
}

/* A barrier for a block of so many threads: as __syncthreads, but warps may come to it from
 * different places in the code. */
template <int Threads> static __device__ __forceinline__ void cuda__block_sync()
{
    asm volatile("barrier.cta.sync 1, %0;" ::"r"(Threads) : "memory");
}

/* In shared memory: one thread of a block publishes how far it is, others wait until it is as far;
 * what it and those it waited for wrote before is then seen. */
static __device__ __forceinline__ void cuda__tell(int *progress, int now)
{
    asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(cuda__address_of(progress)), "r"(now)
                 : "memory");
}

static __device__ __forceinline__ void cuda__await(const int *progress, int least)
{
    int now;
    do {
        asm volatile("ld.acquire.cta.shared.s32 %0, [%1];"
                     : "=r"(now)
                     : "r"(cuda__address_of((void *)progress))
                     : "memory");
    } while (now < least);
}

/* Waits for the copies that the lane started. Others see them behind the next barrier. */
static __device__ __forceinline__ void cuda__copy_arrive()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* c (16 x 8) += a (16 x 8) b (8 x 8), on the tensor cores, by a warp. With g = lane / 4 and
 * t = lane % 4 a lane has c at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1); a at (g, t),
 * (g + 8, t), (g, t + 4), (g + 8, t + 4); b at (t, g), (t + 4, g). */
static __device__ __forceinline__ void cuda__multiply_add(double *c, const double *a,
                                                          const double *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/* c (16 x 8) += a (16 x 16) b (16 x 8): as two of the above, a's columns 8 on being in a[4] on, and
 * b's rows 8 on in b[2] on. Between such instructions the tensor cores rest as long as between the
 * smaller ones. */
static __device__ __forceinline__ void cuda__multiply_add_16(double *c, const double *a,
                                                             const double *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
                   "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

/* The number is worked out here, whether it is wanted or not. */
static __device__ __forceinline__ void cuda__keep(float &x)
{
    asm volatile("" : "+f"(x));
}

static __device__ __forceinline__ void cuda__keep(double &x)
{
    asm volatile("" : "+d"(x));
}

static __device__ __forceinline__ void cuda__keep(int &x)
{
    asm volatile("" : "+r"(x));
}

/* What is read behind this is not read before it: values that wait for their use take registers. */
static __device__ __forceinline__ void cuda__in_order()
{
    asm volatile("" ::: "memory");
}

/* Hides from the compiler where the pointer came from: what it has worked out about the old one is
 * not kept in registers for the new one. */
template <typename P> static __device__ __forceinline__ P *cuda__renewed(P *pointer)
{
    asm volatile("" : "+l"(pointer));
    return pointer;
}

/* Waits for all threads of the cluster; what they wrote until now, to any memory, the others see.
 */
static __device__ __forceinline__ void cuda__cluster_sync()
{
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

/* The same place in the shared memory of another block of the cluster. */
template <typename S> static __device__ __forceinline__ S *cuda__of_block(S *shared, unsigned rank)
{
    uint64_t other;
    asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(shared), "r"(rank));
    return (S *)other;
}

/* ---- Arrivals of a block's threads ---- */

/* In shared memory: opens when as many have arrived as it was begun with, and counts anew. Its
 * phases alternate: 0, 1, 0, ... What those who arrive wrote before, those who await
 * the phase see. */
struct alignas(8) cuda__gate {
    uint64_t word;
};

/* By one thread; a barrier of the block must follow. */
static __device__ __forceinline__ void cuda__gate_begin(cuda__gate *gate, unsigned count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(cuda__address_of(gate)), "r"(count)
                 : "memory");
}

static __device__ __forceinline__ void cuda__gate_arrive(cuda__gate *gate)
{
    asm volatile("{\n\t.reg .b64 state;\n\t"
                 "mbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(cuda__address_of(gate))
                 : "memory");
}

/* Arrives when the copies that the thread has started are done, and does not wait for that. Only
 * they are promised: what the thread wrote itself takes cuda__gate_arrive. */
static __device__ __forceinline__ void cuda__gate_arrive_behind_copies(cuda__gate *gate)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(cuda__address_of(gate))
                 : "memory");
}

/* Until the phase has ended; not later than in the phase after it. */
static __device__ __forceinline__ void cuda__gate_await(cuda__gate *gate, unsigned phase)
{
    asm volatile("{\n\t.reg .pred done;\n"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t}" ::"r"(cuda__address_of(gate)),
                 "r"(phase)
                 : "memory");
}

/* ---- Messages between the blocks of a cluster ---- */

/* In shared memory: opens when so many bytes of messages have come. Its phases
 * alternate: 0, 1, 0, ... */
struct alignas(8) cuda__signal {
    uint64_t word;
};

/* By one thread; a barrier of the cluster must follow before messages are sent. */
static __device__ __forceinline__ void cuda__signal_begin(cuda__signal *signal)
{
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
            cuda__address_of(signal))
        : "memory");
}

/* By one thread, in each phase: it ends when these bytes have come. */
static __device__ __forceinline__ void cuda__signal_expect(cuda__signal *signal, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(cuda__address_of(signal)),
        "r"(bytes)
        : "memory");
}

/* Until the phase has ended; the messages are then there. Not later than in the phase after it. */
static __device__ __forceinline__ void cuda__signal_await(cuda__signal *signal, unsigned phase)
{
    asm volatile("{\n\t.reg .pred done;\n"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t}" ::"r"(cuda__address_of(signal)),
                 "r"(phase)
                 : "memory");
}

/* The address of a place in the shared memory of another block, for messages. */
static __device__ __forceinline__ cuda__address cuda__address_in(const void *shared, unsigned rank)
{
    cuda__address other;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(other)
        : "r"(cuda__address_of(shared)), "r"(rank));
    return other;
}

/* 16 bytes of the own shared memory go to a place of another block, whose signal counts them. */
static __device__ __forceinline__ void cuda__send(cuda__address to, cuda__address signal,
                                                  const void *from)
{
    uint4 x = *(const uint4 *)from;
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
                 "{%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(signal)
                 : "memory");
}

/* Of a launch with programmatic serialization: waits until the kernel before it in the stream is
 * done, and what it wrote is seen. */
static __device__ __forceinline__ void cuda__wait_for_previous()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Lets such a launch behind this kernel put its blocks where there is room. */
static __device__ __forceinline__ void cuda__release_next()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* Begins a kernel in its turn: behind the one before it, however that was launched. The one behind
 * it may be put on the device meanwhile, for that begins with this too, or is launched plainly. */
static __device__ __forceinline__ void cuda__follow_previous()
{
    cuda__wait_for_previous();
    cuda__release_next();
}

/* The device's clock, of a microsecond's grain or so. */
static __device__ __forceinline__ uint64_t cuda__now_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#endif
