/* gpu/cuda/base/stage.cuh: a warp's matrices between global and shared memory.
 *
 * A warp works on `held` consecutive matrices of the batch at a time. Lane k < held keeps the
 * addresses of matrix k (cuda__place); all lanes copy all matrices, 16 bytes at a time where
 * everything is aligned to that, element by element elsewhere. The copies in are asynchronous.
 * Warp-wide: every lane of the warp calls, converged.
 */
#ifndef GPU_CUDA_BASE_STAGE_CUH
#define GPU_CUDA_BASE_STAGE_CUH

#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/base/batch.h"
#include "gpu/cuda/base/real.cuh"

#define CUDA__WARP 32
#define CUDA__ALL 0xffffffffu

/* Where one matrix and its results are. */
template <typename T> struct cuda__place {
    const T *a;
    T *result;
    int32_t *info;
    void *extra;
    int64_t within; /* its number in its item */
    bool valid;     /* false: past the batch's end; then the place is that of the last matrix */
};

/* The item that holds matrix `index`. */
static __device__ __forceinline__ int64_t cuda__find_item(const cuda_batch &batch, int64_t index)
{
    return cuda__item_of(batch.items, batch.item_count, batch.matrices, index);
}

/* Of matrices of `entries` numbers. */
template <typename T>
static __device__ __forceinline__ cuda__place<T> cuda__find(const cuda_batch &batch, int64_t index,
                                                            int entries)
{
    cuda__place<T> place;
    place.valid = index < batch.matrices;
    index = place.valid ? index : batch.matrices - 1;
    const cuda_item *item = batch.items + cuda__find_item(batch, index);
    place.within = index - item->first;
    place.a = (const T *)item->a + place.within * entries;
    place.result = item->result ? (T *)item->result + place.within * entries : nullptr;
    place.info = item->info;
    place.extra = item->extra;
    return place;
}

/* Do lanes 0 .. held - 1 point at consecutive matrices, all of them wanted? */
template <typename T, int N, int Held>
static __device__ __forceinline__ bool cuda__together(const T *matrix, bool valid, int lane)
{
    unsigned long long first = __shfl_sync(CUDA__ALL, (unsigned long long)matrix, 0);
    bool follows = valid && (unsigned long long)matrix == first + lane * (sizeof(T) * N * N);
    return __all_sync(CUDA__ALL, follows || lane >= Held);
}

template <typename P> static __device__ __forceinline__ P *cuda__shuffle_pointer(P *p, int lane)
{
    return (P *)__shfl_sync(CUDA__ALL, (unsigned long long)p, lane);
}

/* The copies of all lanes have come. */
static __device__ __forceinline__ void cuda__copy_wait()
{
    cuda__copy_arrive();
    __syncwarp();
}

/* How the matrices lie in shared memory: element (i, j) of matrix k at k * Stride + i * Line + j.
 *
 * A copy takes `Width` elements a lane. A round of it moves as many whole lines as the warp's lanes
 * reach, of one matrix or of several, so that a lane's addresses in the next round are those of
 * this one and a constant. */
template <typename T, int N, int Held, int Line, int Stride> struct cuda__stage {
    static constexpr int width = cuda__real<T>::width;
    /* What is copied as lines: the matrix is a single one where its lines follow one another. */
    static constexpr int lines = Line == N ? 1 : N;
    static constexpr int length = Line == N ? N * N : N;
    /* Can 16 bytes be moved at a time, addresses permitting? */
    static constexpr bool wide =
        length % width == 0 && (lines == 1 || Line % width == 0) && Stride % width == 0;

    template <int Width> struct rounds {
        static constexpr int pieces = length / Width;                               /* of a line */
        static constexpr int reach = pieces < CUDA__WARP ? CUDA__WARP / pieces : 1; /* lines */
        static constexpr int matrices = reach >= lines ? reach / lines : 1;
        static constexpr int step = reach >= lines ? lines : reach; /* lines of a matrix */
    };

    /* Calls move(element of shared memory, matrix, element of it) for all that is this lane's. */
    template <int Width, typename F> static __device__ __forceinline__ void each(int lane, F move)
    {
        typedef rounds<Width> r;
        int column = lane % r::pieces * Width, line = lane / r::pieces;
        int matrix = r::matrices > 1 ? line / lines : 0;
        line -= matrix * lines;
        bool mine = r::pieces > CUDA__WARP || (matrix < r::matrices && line < r::step);
#pragma unroll(r::matrices > 1 ? 4 : 1)
        for (int k = 0; k < Held; k += r::matrices) {
#pragma unroll
            for (int i = 0; i < lines; i += r::step) {
#pragma unroll
                for (int c = 0; c < r::pieces; c += CUDA__WARP) {
                    bool inside = mine && (lines % r::step == 0 || i + line < lines) &&
                                  (Held % r::matrices == 0 || k + matrix < Held) &&
                                  (r::pieces <= CUDA__WARP || r::pieces % CUDA__WARP == 0 ||
                                   c + lane < r::pieces);
                    int at = r::pieces > CUDA__WARP ? (c + lane) * Width : column;
                    move(inside, (k + matrix) * Stride + (i + line) * Line + at, k + matrix,
                         (i + line) * N + at);
                }
            }
        }
    }

    template <int Width>
    static __device__ __forceinline__ void load(T *stage, const T *a, bool together, int lane)
    {
        const T *first = cuda__shuffle_pointer(a, 0);
        if (together) {
            each<Width>(lane, [&](bool inside, int to, int k, int e) {
                if (inside)
                    cuda__copy_async<Width * sizeof(T)>(stage + to, first + k * (N * N) + e);
            });
        } else {
            each<Width>(lane, [&](bool inside, int to, int k, int e) {
                const T *from = cuda__shuffle_pointer(a, k & (CUDA__WARP - 1));
                if (inside)
                    cuda__copy_async<Width * sizeof(T)>(stage + to, from + e);
            });
        }
    }

    static constexpr bool shifts = false; /* the matrices begin where shared memory does */

    /* Starts copying the matrices in; returns the shift. */
    static __device__ __forceinline__ int load(T *stage, const T *a, bool together, int lane)
    {
        if (wide && __all_sync(CUDA__ALL, (uintptr_t)a % 16 == 0))
            load<wide ? width : 1>(stage, a, together, lane);
        else
            load<1>(stage, a, together, lane);
        return 0;
    }

    template <int Width> static __device__ __forceinline__ void put(T *to, const T *from)
    {
        if (Width == 1)
            *to = *from;
        else
            *(typename cuda__real<T>::vector *)to = *(const typename cuda__real<T>::vector *)from;
    }

    template <int Width>
    static __device__ __forceinline__ void store(const T *stage, T *result, bool together, int lane)
    {
        T *first = cuda__shuffle_pointer(result, 0);
        if (together) {
            each<Width>(lane, [&](bool inside, int from, int k, int e) {
                if (inside)
                    put<Width>(first + k * (N * N) + e, stage + from);
            });
        } else {
            each<Width>(lane, [&](bool inside, int from, int k, int e) {
                T *to = cuda__shuffle_pointer(result, k & (CUDA__WARP - 1));
                if (inside && to)
                    put<Width>(to + e, stage + from);
            });
        }
    }

    /* Copies the matrices out; a lane's NULL leaves its matrix out. */
    static __device__ __forceinline__ void store(const T *stage, T *result, bool together, int lane)
    {
        if (wide && __all_sync(CUDA__ALL, (uintptr_t)result % 16 == 0))
            store<wide ? width : 1>(stage, result, together, lane);
        else
            store<1>(stage, result, together, lane);
    }
};

/* Starts copying a warp's matrices in. cuda__copy_wait() before they are read. Returns how many
 * elements late they begin. */
template <typename T, int N, int Held, typename Stage>
static __device__ __forceinline__ int cuda__load(T *stage, const cuda_batch &batch, int64_t index,
                                                 int lane)
{
    cuda__place<T> place = cuda__find<T>(batch, index, N * N);
    bool together = cuda__together<T, N, Held>(place.a, place.valid, lane);
    return Stage::load(stage, place.a, together, lane);
}

/* How many elements late cuda__store expects them. */
template <typename T, int N, int Held, typename Stage>
static __device__ __forceinline__ int cuda__store_shift(const cuda_batch &batch, int64_t index,
                                                        int lane)
{
    if constexpr (Stage::shifts) {
        cuda__place<T> place = cuda__find<T>(batch, index, N * N);
        const T *result = place.valid ? place.result : nullptr;
        return Stage::shift(result, cuda__together<T, N, Held>(result, result != nullptr, lane));
    }
    return 0;
}

template <typename T, int N, int Held, typename Stage>
static __device__ __forceinline__ void cuda__store(const T *stage, const cuda__place<T> &place,
                                                   int lane)
{
    T *result = place.valid ? place.result : nullptr;
    bool together = cuda__together<T, N, Held>(result, result != nullptr, lane);
    Stage::store(stage, result, together, lane);
}

#endif
