/* gpu/cuda/ism/pivot.cuh: the inverse of a small block by a warp, in FP64: Gauss-Jordan's
 * elimination in place with partial pivoting. Device code; all lanes of a warp call, converged.
 *
 * A lane has a row. The column that is eliminated is always the first: the others move up to it,
 * and what takes its place in the inverse goes to the end, so that registers are named by constants
 * and the code is that of one step. Rows are not exchanged.
 */
#ifndef GPU_CUDA_ISM_PIVOT_CUH
#define GPU_CUDA_ISM_PIVOT_CUH

#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/base/stage.cuh"

/* The row with the largest magnitude, by its leading bits, among those that had no pivot yet; the
 * first of equals. */
static __device__ __forceinline__ int cuda__ism_pivot_row(double entry, unsigned used, int lane)
{
    const unsigned last = CUDA__WARP - 1;
    unsigned key = (cuda__real<double>::lead(fabs(entry)) & ~last) | (last - (unsigned)lane);
    key = used >> lane & 1 ? 0u : key;
    return (int)(last - (__reduce_max_sync(CUDA__ALL, key) & last));
}

/* The product of the pivots, a lane each; `changes`: of the order of rows. Lane 0 writes. */
static __device__ __forceinline__ void cuda__ism_pivot_product(double own, int changes, double *det,
                                                               int64_t *exponent, int lane)
{
    int shift = 0;
    double fraction = frexp(own, &shift);
#pragma unroll
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        fraction *= __shfl_xor_sync(CUDA__ALL, fraction, reach);
        shift += __shfl_xor_sync(CUDA__ALL, shift, reach);
    }
    if (lane == 0) {
        *det = changes % 2 ? -fraction : fraction;
        *exponent = shift;
    }
}

/* A row of pairs to shared memory, but for its first number, in whose place is `first`. */
template <int Order>
static __device__ __forceinline__ void cuda__ism_pivot_tell(double *row, double first,
                                                            const double (&v)[Order])
{
    *(double2 *)row = make_double2(first, v[1]);
#pragma unroll
    for (int j = 2; j < Order; j += 2)
        *(double2 *)(row + j) = make_double2(v[j], v[j + 1]);
}

/* c (Order x Order, lines `line` apart; even, and the first at a multiple of 16 bytes), of which m
 * rows and columns count, becomes the inverse, and zeros around it. The determinant is det times
 * two to the exponent. A zero pivot leaves what is not finite.
 *
 * A step is one chain of dependent instructions, so the next pivot is looked for as soon as its
 * column is ready, and every lane has the reciprocal of its number when the row is known. The row
 * of the pivot goes to all lanes through the first two lines of c, double-buffered. It is not
 * divided by the pivot before the end: until then a lane whose row had its pivot has that row times
 * the pivot.
 */
template <int Order>
static __device__ __forceinline__ void cuda__ism_pivot_block(double *c, int line, int m, int lane,
                                                             double *det, int64_t *exponent)
{
    static_assert(Order % 2 == 0, "rows are reported by pairs");
    double v[Order], own = 1, scale = 1;
    unsigned used = m < CUDA__WARP ? ~0u << m : 0u;
    int pivoted = lane, place_of = lane, changes = 0;
#pragma unroll
    for (int j = 0; j < Order; j += 2) {
        const double2 both =
            lane < m ? *(const double2 *)(c + lane * line + j) : make_double2(0, 0);
        v[j] = both.x;
        v[j + 1] = both.y;
    }
    int place = cuda__ism_pivot_row(v[0], used, lane);
    double ready = cuda__real<double>::reciprocal(v[0]);
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k < m; k++) {
        const bool mine = lane == place;
        double *row = c + k % 2 * line;
        if (mine) {
            cuda__ism_pivot_tell(row, ready, v);
            own = v[0];
            scale = ready;
            pivoted = k;
        }
        place_of = lane == k ? place : place_of;
        changes += __popc(~used & ((1u << place) - 1));
        used |= 1u << place;
        __syncwarp();
        double2 above = *(const double2 *)row;
        const double times = mine ? 0 : -v[0] * above.x;
        v[0] = fma(times, above.y, v[1]);
        place = cuda__ism_pivot_row(v[0], used, lane);
        ready = cuda__real<double>::reciprocal(v[0]);
#pragma unroll
        for (int j = 2; j < Order; j += 2) {
            above = *(const double2 *)(row + j);
            v[j - 1] = fma(times, above.x, v[j]);
            v[j] = fma(times, above.y, v[j + 1]);
            if (j % 8 == 6)
                __syncwarp(); /* what is read too early takes registers */
        }
        v[Order - 1] = mine ? 1 : times;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < Order; j++) {
        const int column = j + m < Order ? j + m : j + m - Order;
        const int to = __shfl_sync(CUDA__ALL, place_of, column & (CUDA__WARP - 1));
        const bool inside = lane < m && column < m;
        if (lane < Order)
            c[pivoted * line + (column < m ? to : column)] = inside ? scale * v[j] : 0.0;
    }
    cuda__ism_pivot_product(own, changes, det, exponent, lane);
}

#endif
