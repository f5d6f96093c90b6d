/* gpu/cuda/tridiagonal/strip.cuh: writes X from its lines where rows begin at multiples of 16
 * bytes: wide strips of a warp's rows, a block of threads each, of which a device holds many at
 * once.
 *
 * The rows' numbers are in shared memory, a thread's columns in registers; an entry is one
 * multiplication, in double, rounded once. What write.cuh has for other cases is not here, for
 * its registers: entries whose exponents range too far are put together one by one, by the threads
 * that have them.
 *
 * Cost: for 16 bytes a thread some 25 instructions in double.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_STRIP_CUH
#define GPU_CUDA_TRIDIAGONAL_STRIP_CUH

#include "gpu/cuda/tridiagonal/write.cuh"
#include "gpu/cuda/tuning/h200/tridiagonal.h"

#define CUDA__TRI_STRIP_THREADS 256
#define CUDA__TRI_STRIP_ROWS CUDA__WARP

struct cuda__tri_strip_memory {
    __align__(16) double row[CUDA__TRI_STRIP_ROWS][2]; /* by sides */
    double diagonal[CUDA__TRI_STRIP_ROWS];
    int64_t scale[2];
    int fits[2];
};

template <typename T> struct cuda__tri_strip {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;
    static constexpr int step = CUDA__TRI_STRIP_THREADS * width;

    const cuda__tri_call &call;
    const cuda__tri_part &part;
    cuda__tri_strip_memory *memory;
    T *x;
    int64_t first_row, end_row, column; /* of this thread's 16 bytes */

    static inline __host__ __device__ int64_t across(int64_t columns)
    {
        return (columns + step - 1) / step;
    }

    /* Strips of X. */
    static inline __host__ __device__ int64_t number(const cuda__tri_call &call)
    {
        int64_t rows = call.rows.end - call.rows.first;
        return across(call.columns.end - call.columns.first) *
               ((rows + CUDA__TRI_STRIP_ROWS - 1) / CUDA__TRI_STRIP_ROWS);
    }

    __device__ __forceinline__ void place(int64_t strip)
    {
        const int64_t beside = across(call.columns.end - call.columns.first);
        first_row = call.rows.first + strip / beside * CUDA__TRI_STRIP_ROWS;
        end_row = first_row + CUDA__TRI_STRIP_ROWS;
        end_row = end_row < call.rows.end ? end_row : call.rows.end;
        column = call.columns.first + strip % beside * step + threadIdx.x * width;
    }

    /* A warp brings the rows' numbers of a side to shared memory, as doubles. */
    __device__ __forceinline__ void share_rows(int side) const
    {
        const int lane = threadIdx.x % CUDA__WARP;
        const int64_t i = first_row + lane;
        const cuda__number row =
            i < end_row ? part.line(cuda__tri_row_line(side))[i] : cuda__number{0, 0};
        const int64_t base = __shfl_sync(CUDA__ALL, row.exponent, 0);
        const int own = row.mantissa != 0 ? cuda__tri_clamp(row.exponent - base) : INT32_MIN;
        const int most = __reduce_max_sync(CUDA__ALL, own);
        const int64_t scale = base + (most == INT32_MIN ? 0 : most) + CUDA__TRI_ROW_TOP;
        double value = 0;
        const bool fits = cuda__tri_flatten_row(row, scale, &value);
        memory->row[lane][side] = value;
        const bool all = __all_sync(CUDA__ALL, fits);
        if (lane == 0) {
            memory->scale[side] = scale;
            memory->fits[side] = all;
        }
    }

    __device__ __forceinline__ bool is_wanted(int side) const
    {
        return column < call.columns.end &&
               (side == CUDA__TRI_ABOVE ? column + width - 1 > first_row : column < end_row - 1);
    }

    /* The numbers of this thread's columns on the side, or zeros where the strip needs none. */
    __device__ __forceinline__ void fetch_columns(int side, cuda__number *to) const
    {
        const cuda__number *line = part.line(cuda__tri_column_line(side)) + column;
        const bool wanted = is_wanted(side);
#pragma unroll
        for (int c = 0; c < width; c++)
            to[c] = wanted ? line[c] : cuda__number{0, 0};
    }

    __device__ __forceinline__ bool flatten(int side, const cuda__number *from, double *to) const
    {
        bool fits = memory->fits[side];
        const int64_t scale = memory->scale[side];
#pragma unroll
        for (int c = 0; c < width; c++)
            fits = cuda__tri_flatten_column(from[c], scale, &to[c]) && fits;
        return fits;
    }

    __device__ __forceinline__ void write_products(const double *above, const double *under) const
    {
        const int64_t length = call.columns.end - call.columns.first;
        const int rows = (int)(end_row - first_row);
        const int beyond = (int)(first_row - column); /* of the diagonal, from the first */
        T *to = x + (first_row - call.rows.first) * length + (column - call.columns.first);
        if (column >= call.columns.end)
            return;
#pragma unroll 4
        for (int k = 0; k < rows; k++, to += length) {
            const double up = memory->row[k][CUDA__TRI_ABOVE];
            const double down = memory->row[k][CUDA__TRI_UNDER];
            const int at = beyond + k;
            T values[width];
#pragma unroll
            for (int c = 0; c < width; c++)
                values[c] = (T)((at < c ? up : down) * (at < c ? above[c] : under[c]));
            if (at >= 0 && at < width) {
                const T diagonal = (T)memory->diagonal[k];
#pragma unroll
                for (int c = 0; c < width; c++)
                    values[c] = at == c ? diagonal : values[c];
            }
            cuda__store_stream((vector *)to, values);
        }
    }

    /* Entry by entry: find(i, j) gives them. */
    template <typename F> __device__ __forceinline__ void write_each(F find) const
    {
        const int64_t length = call.columns.end - call.columns.first;
#pragma unroll 1
        for (int64_t i = first_row; i < end_row; i++) {
#pragma unroll 1
            for (int64_t j = column; j < column + width && j < call.columns.end; j++)
                x[(i - call.rows.first) * length + (j - call.columns.first)] = find(i, j);
        }
    }

    __device__ __forceinline__ void write_nan() const
    {
        write_each([](int64_t, int64_t) { return cuda__real<T>::nan(); });
    }

    /* By all threads of the block, from lines. */
    __device__ __forceinline__ void write_lines() const
    {
        const int warp = threadIdx.x / CUDA__WARP, lane = threadIdx.x % CUDA__WARP;
        cuda__number above_numbers[width], under_numbers[width];
        double above[width], under[width];
        fetch_columns(CUDA__TRI_ABOVE, above_numbers);
        fetch_columns(CUDA__TRI_UNDER, under_numbers);
        if (warp < 2)
            share_rows(warp);
        if (warp == 2 && first_row + lane < end_row)
            memory->diagonal[lane] = part.diagonal()[first_row + lane];
        __syncthreads();
        const bool fits = flatten(CUDA__TRI_ABOVE, above_numbers, above);
        if (flatten(CUDA__TRI_UNDER, under_numbers, under) && fits && (uintptr_t)x % 16 == 0)
            write_products(above, under);
        else
            write_each([&](int64_t i, int64_t j) { return (T)cuda__tri_entry(part, i, j); });
    }
};

#endif
