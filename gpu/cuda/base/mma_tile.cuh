/* gpu/cuda/base/mma_tile.cuh: C += M R by a warp, for tiles of C that are whole units of 16 x 16.
 *
 * FP64 runs on the tensor cores, FP32 on the multipliers (TF32 would lose the precision). M and R
 * are in shared memory, C anywhere. An entry's products are added in the order of the inner index,
 * so that FP32's results are bitwise independent of the tiles; FP64's are those of the device.
 *
 * Wavefronts of shared memory for a unit and 8 inner indices: FP64 (8 + 4 / Columns + 4 / Rows for
 * M and R) / 2, FP32 as much less as its numbers are shorter. Bank conflicts are absent where the
 * distances of rows are as in cuda__mma_line. Device code, warp-wide.
 */
#ifndef GPU_CUDA_BASE_MMA_TILE_CUH
#define GPU_CUDA_BASE_MMA_TILE_CUH

#include "gpu/cuda/base/stage.cuh"

#define CUDA__UNIT 16 /* rows and columns of a unit; orders are padded to it */

/* Distances, in elements, at which rows of shared memory are read without conflicts. */
template <typename T> struct cuda__mma_line;

template <> struct cuda__mma_line<double> {
    /* Of C: half the banks further from row to row. Of M and R: a quarter. */
    static constexpr int of_tile(int columns)
    {
        return columns / 16 * 16 + (columns % 16 <= 8 ? 8 : 24);
    }
    static constexpr int of_factor(int columns)
    {
        return columns / 16 * 16 + (columns % 16 <= 4 ? 4 : columns % 16 <= 12 ? 12 : 20);
    }
};

template <> struct cuda__mma_line<float> {
    static constexpr int of_tile(int columns)
    {
        return columns / 32 * 32 + (columns % 32 <= 16 ? 16 : 48);
    }
    static constexpr int of_factor(int columns)
    {
        return columns + 4;
    }
};

/* A warp's tile of C, Rows x Columns units. */
template <typename T, int Rows, int Columns> struct cuda__mma_tile;

template <int Rows, int Columns> struct cuda__mma_tile<double, Rows, Columns> {
    alignas(16) double c[Rows][2 * Columns][4];

    /* Calls f(row, column, two numbers) for the pairs of C that are the lane's. */
    template <typename F> __device__ __forceinline__ void each(int lane, F f)
    {
#pragma unroll
        for (int i = 0; i < Rows; i++) {
#pragma unroll
            for (int j = 0; j < 2 * Columns; j++) {
                f(i * 16 + lane / 4, j * 8 + lane % 4 * 2, &c[i][j][0]);
                f(i * 16 + lane / 4 + 8, j * 8 + lane % 4 * 2, &c[i][j][2]);
            }
        }
    }

    /* Inner: a multiple of 8. m: the tile's first row, r: its first column. */
    template <int Inner>
    __device__ __forceinline__ void multiply(const double *m, int m_line, const double *r,
                                             int r_line, int lane)
    {
        multiply_by<Inner>(m, m_line, r, r_line, 1, lane);
    }

    /* R transposed: r is its first column, in rows as m's. */
    template <int Inner>
    __device__ __forceinline__ void multiply_turned(const double *m, int m_line, const double *r,
                                                    int r_line, int lane)
    {
        multiply_by<Inner>(m, m_line, r, 1, r_line, lane);
    }

    /* R's rows lie r_row apart, its columns r_column. */
    template <int Inner>
    __device__ __forceinline__ void multiply_by(const double *m, int m_line, const double *r,
                                                int r_row, int r_column, int lane)
    {
        const double *m_lane = m + lane / 4 * m_line + lane % 4;
        const double *r_lane = r + lane % 4 * r_row + lane / 4 * r_column;
#pragma unroll 1
        for (int k = 0; k < Inner; k += 8) {
            double a[Rows][4], b[2];
#pragma unroll
            for (int i = 0; i < Rows; i++) {
#pragma unroll
                for (int v = 0; v < 4; v++)
                    a[i][v] = m_lane[(i * 16 + v % 2 * 8) * m_line + k + v / 2 * 4];
            }
#pragma unroll
            for (int j = 0; j < 2 * Columns; j++) {
                b[0] = r_lane[k * r_row + j * 8 * r_column];
                b[1] = r_lane[(k + 4) * r_row + j * 8 * r_column];
#pragma unroll
                for (int i = 0; i < Rows; i++)
                    cuda__multiply_add(c[i][j], a[i], b);
            }
        }
    }
};

/* A lane has 2 rows and 4 columns of a unit: rows 8 apart, columns side by side. */
template <int Rows, int Columns> struct cuda__mma_tile<float, Rows, Columns> {
    alignas(16) float c[2 * Rows][Columns][4];

    /* Four numbers at a time. */
    template <typename F> __device__ __forceinline__ void each(int lane, F f)
    {
#pragma unroll
        for (int i = 0; i < 2 * Rows; i++) {
#pragma unroll
            for (int j = 0; j < Columns; j++)
                f(i * 8 + lane / 4, j * 16 + lane % 4 * 4, c[i][j]);
        }
    }

    template <int Inner>
    __device__ __forceinline__ void multiply(const float *m, int m_line, const float *r, int r_line,
                                             int lane)
    {
        const float *m_lane = m + lane / 4 * m_line, *r_lane = r + lane % 4 * 4;
#pragma unroll
        for (int k = 0; k < Inner; k += 4) {
            float4 a[2 * Rows];
#pragma unroll
            for (int i = 0; i < 2 * Rows; i++)
                a[i] = *(const float4 *)(m_lane + i * 8 * m_line + k);
#pragma unroll
            for (int q = 0; q < 4; q++)
                multiply_one(a, q, r_lane + (k + q) * r_line);
        }
    }

    /* R transposed: r is its first column, in rows as m's. */
    template <int Inner>
    __device__ __forceinline__ void multiply_turned(const float *m, int m_line, const float *r,
                                                    int r_line, int lane)
    {
        const float *m_lane = m + lane / 4 * m_line, *r_lane = r + lane % 4 * 4 * r_line;
#pragma unroll 2
        for (int k = 0; k < Inner; k += 4) {
            float4 a[2 * Rows];
#pragma unroll
            for (int i = 0; i < 2 * Rows; i++)
                a[i] = *(const float4 *)(m_lane + i * 8 * m_line + k);
#pragma unroll
            for (int j = 0; j < 4 * Columns; j++) {
                float4 b = *(const float4 *)(r_lane + (j / 4 * 16 + j % 4) * r_line + k);
#pragma unroll
                for (int i = 0; i < 2 * Rows; i++) {
                    float *to = &c[i][j / 4][j % 4];
                    *to = fmaf(a[i].x, b.x, *to);
                    *to = fmaf(a[i].y, b.y, *to);
                    *to = fmaf(a[i].z, b.z, *to);
                    *to = fmaf(a[i].w, b.w, *to);
                }
            }
        }
    }

    __device__ __forceinline__ void multiply_one(const float4 *a, int q, const float *r_lane)
    {
#pragma unroll
        for (int j = 0; j < Columns; j++) {
            float4 b = *(const float4 *)(r_lane + j * 16);
#pragma unroll
            for (int i = 0; i < 2 * Rows; i++) {
                float x = q == 0 ? a[i].x : q == 1 ? a[i].y : q == 2 ? a[i].z : a[i].w;
                c[i][j][0] = fmaf(x, b.x, c[i][j][0]);
                c[i][j][1] = fmaf(x, b.y, c[i][j][1]);
                c[i][j][2] = fmaf(x, b.z, c[i][j][2]);
                c[i][j][3] = fmaf(x, b.w, c[i][j][3]);
            }
        }
    }
};

/* Between a tile and memory whose rows begin at 16 bytes. */
template <typename T, typename Tile>
static __device__ __forceinline__ void cuda__mma_load(Tile &tile, const T *from, int64_t line,
                                                      int lane)
{
    typedef typename cuda__real<T>::vector vector;
    tile.each(lane,
              [&](int i, int j, T *to) { *(vector *)to = *(const vector *)(from + i * line + j); });
}

template <typename T, typename Tile>
static __device__ __forceinline__ void cuda__mma_store(Tile &tile, T *to, int64_t line, int lane)
{
    typedef typename cuda__real<T>::vector vector;
    tile.each(lane, [&](int i, int j, T *from) {
        *(vector *)(to + i * line + j) = *(const vector *)from;
    });
}

#endif
