/* gpu/cuda/lu/lanes.cuh: a block's rows of a panel, for an inverse, by one warp, where a cluster of
 * blocks has the matrix (group.cuh).
 *
 * The steps are those of panel.cuh, each row's operations in the same order, so the panel has
 * the same bits. A lane has the rows lane and lane + 32, in registers. The warp proposes its best
 * row; other warps of the block send it to all blocks; the warp picks among the blocks' proposals
 * and eliminates. Reciprocals are had while the warp finds its largest number.
 *
 * Cost of a step by the clock of an H200, 2026-11-22, FP64, two rows of 16 numbers a lane: to
 * propose 380 cycles, to sync with the other warps 34, until all messages are there 470, to choose
 * 194, to eliminate 446. Device code.
 */
#ifndef GPU_CUDA_LU_LANES_CUH
#define GPU_CUDA_LU_LANES_CUH

#include "gpu/cuda/lu/cluster.cuh"

template <typename T, int Block, int Rows> struct cuda__lu_lanes {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_message<T, Block> message;
    static constexpr int width = real::width;

    alignas(16) T a[Rows][Block];
    int place[Rows]; /* as in panel.cuh */
    cuda__lu_steps<T> steps;
    int first_row, lane;
    /* The lane's best row, and what is of it. */
    int best, best_lead, best_place;
    uint32_t best_rest;
    T best_inverse;

    /* The number of the lane's row r among the block's. */
    __device__ __forceinline__ int row(int r) const
    {
        return r * CUDA__WARP + lane;
    }

    /* ---- Panels ---- */

    /* line(row): where the row's part in the panel is; of those up to `rows`. */
    template <typename Line> __device__ __forceinline__ void read(int rows, Line line)
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
#pragma unroll
            for (int j = 0; j < Block; j += width)
                *(vector *)&a[r][j] =
                    row(r) < rows ? *(const vector *)(line(row(r)) + j) : vector{};
        }
    }

    template <typename Line> __device__ __forceinline__ void write(int rows, Line line) const
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
#pragma unroll
            for (int j = 0; j < Block; j += width) {
                if (row(r) < rows)
                    *(vector *)(line(row(r)) + j) = *(const vector *)&a[r][j];
            }
        }
    }

    /* The step of the lane's row r in the panel that begins with step `first`; others: large. */
    __device__ __forceinline__ unsigned panel_step(int r, int first) const
    {
        return (unsigned)place[r] - (unsigned)(CUDA__LU_CHOSEN | first);
    }

    /* After `count` steps every column goes back to its place, and chosen rows get their ones. */
    __device__ __forceinline__ void complete(int first, int count)
    {
#pragma unroll 1
        for (int k = count; k < Block; k++) {
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                T front = a[r][0];
#pragma unroll
                for (int j = 1; j < Block; j++)
                    a[r][j - 1] = a[r][j];
                a[r][Block - 1] = front;
            }
        }
#pragma unroll
        for (int e = 0; e < Rows * Block; e++) {
            if (panel_step(e / Block, first) == (unsigned)(e % Block))
                a[e / Block][e % Block] += 1;
        }
    }

    /* ---- Steps ---- */

    __device__ __forceinline__ int lead(int r) const
    {
        return place[r] >= 0 ? (int)(real::lead(a[r][0]) & 0x7fffffffu) : -1;
    }

    /* The largest lead of the warp; -1: it has no row left. */
    __device__ __forceinline__ int seek()
    {
        T number = a[0][0];
        best = 0;
        best_lead = lead(0);
        best_place = place[0];
        best_rest = real::rest(number);
#pragma unroll
        for (int r = 1; r < Rows; r++) {
            int other = lead(r);
            uint32_t rest = real::rest(a[r][0]);
            bool first = rest > best_rest || (rest == best_rest && place[r] < best_place);
            bool better = other > best_lead || (other == best_lead && first);
            best = better ? r : best;
            best_lead = better ? other : best_lead;
            best_place = better ? place[r] : best_place;
            best_rest = better ? rest : best_rest;
            number = better ? a[r][0] : number;
        }
        int most = __reduce_max_sync(CUDA__ALL, best_lead);
        best_inverse = -real::reciprocal(number);
        return most;
    }

    /* The warp's best row; most: what seek() returned. */
    __device__ __forceinline__ void propose(message &to, int most)
    {
        cuda__keep(best_inverse); /* here, and not once it is known whose is wanted */
        if (most < 0) {
            to.lead = -1;
            return;
        }
        if (lane != cuda__lu_first_largest(most, best_lead, best_rest, best_place))
            return;
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            int which = best;
            cuda__keep(which); /* or a[which] would be taken, and a would be in memory */
            if (which != r)
                continue;
#pragma unroll
            for (int j = 0; j < Block; j += width)
                *(vector *)&to.row[j] = *(const vector *)&a[r][j];
        }
        to.inverse = best_inverse;
        to.lead = best_lead;
        to.place = best_place;
        to.rest = best_rest;
    }

    /* The best proposal of so many blocks. */
    __device__ __forceinline__ int choose(const message *from, int blocks) const
    {
        int at = lane < blocks ? lane : 0, mine = lane < blocks ? from[at].lead : -1;
        int most = __reduce_max_sync(CUDA__ALL, mine);
        return cuda__lu_first_largest(most, mine, from[at].rest, from[at].place);
    }

    /* Is the lane's row r the chosen one? Then it is written down. */
    __device__ __forceinline__ bool note(int r, const message &by, int step)
    {
        int was = by.place;
        bool chosen = place[r] == was && place[r] >= 0;
        if (chosen) {
            steps.pivot[step] = by.row[0];
            steps.order[step] = first_row + row(r);
            steps.place[step] = was;
        }
        place[r] = chosen ? CUDA__LU_CHOSEN | step : place[r] == step ? was : place[r];
        return chosen;
    }

    /* Column j moves down by one, and loses what is the chosen row's. */
    __device__ __forceinline__ void subtract(const T (&m)[Rows], T number, int j)
    {
#pragma unroll
        for (int r = 0; r < Rows; r++)
            a[r][j - 1] = fma(m[r], number, a[r][j]);
    }

    /* Returns seek() of the next step, which overlaps the rest of this one. */
    __device__ __forceinline__ int eliminate(const message &by, int step)
    {
        int most = -1;
        T m[Rows];
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            T product = a[r][0] * by.inverse;
            m[r] = note(r, by, step) ? T(0) : product;
        }
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece = *(const vector *)&by.row[j];
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (j + v > 0)
                    subtract(m, ((const T *)&piece)[v], j + v);
                if (j + v == 1)
                    most = seek();
            }
        }
#pragma unroll
        for (int r = 0; r < Rows; r++)
            a[r][Block - 1] = m[r];
        return most;
    }
};

#endif
