/* gpu/cuda/ism/middle_in.cuh: a block of threads that updates a known inverse of a middle order
 * (middle.cuh): where its shared memory is, and how a matrix comes into it. Device code.
 */
#ifndef GPU_CUDA_ISM_MIDDLE_IN_CUH
#define GPU_CUDA_ISM_MIDDLE_IN_CUH

#include "gpu/cuda/ism/device.cuh"
#include "gpu/cuda/ism/middle_room.h"

/* S: of what is given and of the answer. */
template <typename S> struct cuda__ism_middle_block {
    static constexpr int slab = CUDA__ISM_MIDDLE_SLAB, tried = CUDA__ISM_MIDDLE_LINES;

    const cuda__ism_call &call;
    const cuda__ism_middle_room &room;
    unsigned char *memory;
    int n, m, threads, warp, lane, g, t; /* g, t: the lane's row and pair of columns in a tile */
    int row;  /* of eight: some are exchanged in FP64, against conflicts */
    int turn; /* which place and result are the matrix's */

    __device__ __forceinline__ S *given(int place) const
    {
        return (S *)(memory + place);
    }

    __device__ __forceinline__ double *reals(int place) const
    {
        return (double *)(memory + place);
    }

    __device__ __forceinline__ cuda__ism_middle_found *found() const
    {
        return (cuda__ism_middle_found *)(memory + room.found);
    }

    __device__ __forceinline__ cuda__ism_middle_result &result() const
    {
        return found()->results[turn];
    }

    __device__ __forceinline__ int first_column() const
    {
        return warp * slab;
    }

    /* Calls f(row, column, number) for what is the thread's of n x m numbers. */
    template <typename F> __device__ __forceinline__ void each_thin(F f) const
    {
        int i = (int)threadIdx.x / m, j = (int)threadIdx.x % m;
        const int down = threads / m, over = threads % m;
        for (int e = (int)threadIdx.x; e < n * m; e += threads) {
            f(i, j, e);
            i += down + (j + over >= m ? 1 : 0);
            j += over - (j + over >= m ? m : 0);
        }
    }

    /* By one thread. */
    __device__ __forceinline__ void find(int64_t index, int which) const
    {
        const int64_t square = (int64_t)n * n, thin = (int64_t)n * m;
        cuda__ism_middle_place place;
        const cuda_tensors *item = cuda__ism_item(call, index, &place.within);
        S *inverse = (S *)item->outputs[METHOD_ISM_INVERSE];
        place.item = item;
        place.b = (const S *)item->inputs[METHOD_ISM_A0_INVERSE] + place.within * square;
        place.x = (const S *)item->inputs[METHOD_ISM_X] + place.within * thin;
        place.y = (const S *)item->inputs[METHOD_ISM_Y] + place.within * thin;
        place.inverse = inverse ? inverse + place.within * square : nullptr;
        found()->places[which] = place;
    }

    __device__ __forceinline__ void fetch_x(int which) const
    {
        const S *from = (const S *)found()->places[which].x;
        each_thin([&](int i, int j, int e) {
            cuda__copy_async<sizeof(S)>(given(room.x) + i * room.x_line + j, from + e);
        });
    }

    /* Y, with the check's lines next to it, and zeros below it. */
    __device__ __forceinline__ void fetch_y(int which) const
    {
        const S *from = (const S *)found()->places[which].y;
        S *y = given(room.y);
        each_thin([&](int i, int j, int e) {
            cuda__copy_async<sizeof(S)>(y + i * room.y_line + j, from + e);
        });
        for (int e = (int)threadIdx.x; e < tried * room.order; e += threads)
            y[e / tried * room.y_line + m + e % tried] =
                (S)reals(room.weights)[e % tried * room.order + e / tried];
        for (int e = (int)threadIdx.x; e < (room.order - n) * m; e += threads)
            y[(n + e / m) * room.y_line + e % m] = 0;
    }

    /* The warp's columns of 16 rows of B, `Width` numbers at a time. */
    template <int Width> __device__ __forceinline__ void copy_strip(const S *from, int first) const
    {
        constexpr int pieces = slab / Width, step = CUDA__WARP / pieces;
        const int j = first_column() + lane % pieces * Width;
#pragma unroll
        for (int i = 0; i < slab; i += step) {
            int r = first + i + lane / pieces;
            if (r < n && j < n)
                cuda__copy_async<Width * sizeof(S)>(given(room.b) + r * room.b_line + j,
                                                    from + r * n + j);
        }
    }

    __device__ __forceinline__ void fetch_strip(const S *from, int first) const
    {
        if (n * sizeof(S) % 16 == 0 && (uintptr_t)from % 16 == 0)
            copy_strip<cuda__real<S>::width>(from, first);
        else
            copy_strip<1>(from, first);
    }

    /* Zeros to all that is filled up, and the check's lines. */
    __device__ __forceinline__ void begin(int64_t index) const
    {
        for (int e = (int)threadIdx.x; e < room.bytes / 16; e += threads)
            ((double2 *)memory)[e] = make_double2(0, 0);
        __syncthreads();
        for (int e = (int)threadIdx.x; e < tried * n; e += threads)
            reals(room.weights)[e / n * room.order + e % n] =
                (double)cuda__ism_weight(n, e % n, e / n);
        if (threadIdx.x == 0)
            find(index, 0);
        __syncthreads();
    }

    __device__ __forceinline__ void fetch(int which) const
    {
        const S *from = (const S *)found()->places[which].b;
        for (int first = 0; first < room.order; first += slab)
            fetch_strip(from, first);
        fetch_y(which);
        fetch_x(which);
    }
};

#endif
