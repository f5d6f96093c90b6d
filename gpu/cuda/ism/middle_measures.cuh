/* gpu/cuda/ism/middle_measures.cuh: what a block of middle.cuh measures for its check: the
 * change |X K|, and what the check is blind to (lost.cuh). Device code.
 */
#ifndef GPU_CUDA_ISM_MIDDLE_MEASURES_CUH
#define GPU_CUDA_ISM_MIDDLE_MEASURES_CUH

#include "gpu/cuda/ism/middle_in.cuh"
#include "gpu/cuda/ism/team.cuh"
#include "gpu/cuda/ism/check.cuh"

/* A call of its own: the kernel's loops would have fewer registers. */
template <typename S>
static __device__ __noinline__ double cuda__ism_middle_loss(int n, int m, int j, const S *b,
                                                            const S *x, const S *y, const double *k,
                                                            int k_line)
{
    return cuda__ism_loss_of<double>(n, m, j, b, x, y, k, k_line);
}

template <typename S> struct cuda__ism_middle_measures : cuda__ism_middle_block<S> {
    typedef cuda__ism_middle_block<S> block;
    using block::call;
    using block::found;
    using block::g;
    using block::given;
    using block::lane;
    using block::m;
    using block::n;
    using block::reals;
    using block::result;
    using block::room;
    using block::t;
    using block::tried;
    using block::turn;
    using block::warp;
    /* FP32 has digits to spare: its K is added up at once, and what that loses is never found out.
     */
    static constexpr bool narrow = sizeof(S) < sizeof(double);

    /* |X K|, by a warp. */
    __device__ __forceinline__ void measure_change() const
    {
        const S *x = given(room.x);
        const double *line = reals(room.thin) + tried * room.wide, *k = reals(room.k);
        double change = 0;
        cuda__ism_key best = {0, 0};
        for (int j = lane; j < n; j += CUDA__WARP) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < m; l++)
                product = fma(line[l], k[l * room.k_line + j], product);
            best.see((unsigned long long)__double_as_longlong(fabs(product)) + 1, j);
        }
        best = cuda__ism_warp_best(best);
        for (int i = lane; i < n; i += CUDA__WARP) {
            double product = 0;
#pragma unroll 8
            for (int l = 0; l < m; l++)
                product =
                    fma((double)x[i * room.x_line + l], k[l * room.k_line + best.at], product);
            change += fabs(product);
        }
        change = cuda__warp_sum(change);
        if (lane == 0)
            result().change = change;
    }

    /* The norm of the column of X that is the lane's: lane, or lane less 8 or 16 and so on. Lanes
     * share the rows of one that is theirs. */
    __device__ __forceinline__ double norm_of_column() const
    {
        const int width = m > 16 ? 32 : m > 8 ? 16 : 8, parts = CUDA__WARP / width;
        const S *x = given(room.x) + lane % width;
        double sum = 0;
#pragma unroll 4
        for (int i = lane / width; i < room.order; i += parts)
            sum += fabs((double)x[i * room.x_line]);
        for (int reach = CUDA__WARP / 2; reach >= width; reach /= 2)
            sum += __shfl_xor_sync(CUDA__ALL, sum, reach);
        return sum;
    }

    /* The largest row of |Y| times the norms of X's columns, of the rows that are a warp's: number
     * `share` of `shares`. */
    __device__ __forceinline__ void measure_reach(int share, int shares) const
    {
        const S *y = given(room.y);
        const double norm = norm_of_column();
        if (share == 0 && lane < m)
            reals(room.thin)[(tried + 1) * room.wide + lane] = norm;
        double most = 0;
        for (int first = CUDA__WARP * share; first < n; first += CUDA__WARP * shares) {
            const int i = first + lane < n ? first + lane : n - 1;
            double row = 0;
#pragma unroll 4
            for (int c = 0; c < m; c++)
                row =
                    fma(__shfl_sync(CUDA__ALL, norm, c), fabs((double)y[i * room.y_line + c]), row);
            most = cuda__max_or_nan(most, row);
        }
        most = cuda__ism_warp_largest(most);
        if (lane == 0)
            atomicMax(&result().reach, (unsigned long long)__double_as_longlong(most));
    }

    /* What the terms of a column of X K come to at most. */
    __device__ __forceinline__ double terms_of(const cuda__ism_middle_result &of) const
    {
        double norm = 0;
        for (int w = 0; w < room.warps; w++)
            norm = cuda__max_or_nan(norm, of.size_b[w]);
        return __longlong_as_double((long long)of.reach) * norm;
    }

    /* By how many eps X K is off. All threads call, once what it takes was written and a barrier
     * passed; K is as it was left. */
    __device__ __forceinline__ void find_lost() const
    {
        const cuda__ism_middle_place &place = found()->places[turn];
        cuda__ism_middle_result &of = result();
        const double terms = terms_of(of);
        double lost = cuda__ism_lost<S, double>(n, block::slab, terms);
        if (cuda__ism_cancels(n, lost, of.change)) {
            const int j = (int)threadIdx.x;
            double loss = 0;
            if (j < n)
                loss = cuda__ism_middle_loss(n, m, j, (const S *)place.b, (const S *)place.x,
                                             (const S *)place.y, reals(room.k) + j, room.k_line);
            loss = cuda__ism_warp_largest(loss);
            __syncthreads();
            if (threadIdx.x == 0)
                of.reach = 0;
            __syncthreads();
            if (lane == 0)
                atomicMax(&of.reach, (unsigned long long)__double_as_longlong(loss));
            __syncthreads();
            loss = __longlong_as_double((long long)of.reach);
            lost = cuda__ism_lost_by<S, double>(n, loss, terms);
        }
        if (threadIdx.x == 0)
            of.lost = lost;
    }
};

#endif
