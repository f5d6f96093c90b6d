/* gpu/cuda/ptx.cuh: the instructions that CUDA C++ has no words for. All inline PTX is here, so
 * that the SIMT stand-in (tests/simt), which runs the kernels on a CPU, has one file to replace.
 * Device code.
 */
#ifndef GPU_CUDA_PTX_CUH
#define GPU_CUDA_PTX_CUH

#include <stdint.h>

/* A place in shared memory, as instructions want it. */
typedef unsigned cuda__address;

static __device__ __forceinline__ cuda__address cuda__address_of(const void *shared)
{
    return (cuda__address)__cvta_generic_to_shared(shared);
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

/* 16 bytes to global memory that the device will not read again. */
static __device__ __forceinline__ void cuda__store_stream(float4 *to, const float *x)
{
    __stcs(to, make_float4(x[0], x[1], x[2], x[3]));
}

static __device__ __forceinline__ void cuda__store_stream(double2 *to, const double *x)
{
    __stcs(to, make_double2(x[0], x[1]));
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
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
                     "{%0, %1};"
                     : "+d"(c[i % 2 * 2]), "+d"(c[i % 2 * 2 + 1])
                     : "d"(a[i]), "d"(b[i / 2]));
#endif
}

/* Hides from the compiler where the pointer came from: what it has worked out about the old one is
 * not kept in registers for the new one. */
template <typename P> static __device__ __forceinline__ P *cuda__renewed(P *pointer)
{
    asm volatile("" : "+l"(pointer));
    return pointer;
}

/* The device's clock, of a microsecond's grain or so. */
static __device__ __forceinline__ uint64_t cuda__now_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#endif
