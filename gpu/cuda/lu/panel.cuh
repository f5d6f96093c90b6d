/* gpu/cuda/lu/panel.cuh: a panel of columns is eliminated by a block, a row a thread, in registers.
 *
 * Step k looks for the largest magnitude of the panel's column k among the rows not chosen yet: the
 * first of equals in the order that row interchanges would have given the rows, as LAPACK chooses.
 * Rows are never moved; a thread keeps its row's place. Each warp proposes its best row and puts
 * that row's part in the panel into shared memory; behind one barrier all threads pick among the
 * proposals and eliminate. Proposals are double-buffered, so that one barrier a step is enough.
 *
 * Gauss-Jordan (an inverse): all other rows are eliminated, and the step's column becomes the
 * multipliers, which later steps transform like any other column. So a chosen row holds its row of
 * L^-1 in its step. Chosen rows are not divided by their pivots. LU: rows not chosen yet are
 * eliminated, and the step's column becomes L.
 *
 * The step's column is always the thread's first register, and the others move down by one as they
 * are updated, so that all steps run the same code; after `Block` of them every column is back.
 *
 * Cost: a step is a chain of some 350 cycles (counted): two reductions in a warp, a reciprocal, a
 * barrier and a row through shared memory; and Block - 1 multiplications and additions a thread.
 */
#ifndef GPU_CUDA_LU_PANEL_CUH
#define GPU_CUDA_LU_PANEL_CUH

#include "gpu/cuda/base/stage.cuh"

#define CUDA__LU_CHOSEN ((int)0x80000000) /* and the step: instead of the place of a row */
#define CUDA__LU_NO_ROW (-1)              /* instead of the place of a row that is none */
/* A zero pivot is believed where no pivot before it exceeds |A| by this factor, as the host does.
 */
#define CUDA__LU_GROWN 8
#define CUDA__LU_SHARED_MAX (227 * 1024) /* of a block, from compute capability 9.0 on */

/* The proposals of the warps, or of as many others, double-buffered. */
template <typename T, int Block, int Count> struct cuda__lu_proposals {
    static constexpr int count = Count;
    alignas(16) T row[2][Count][Block];   /* from the step's column on */
    T inverse[2][Count], scale[2][Count]; /* of the pivot times the scale; Gauss-Jordan's negated */
    int lead[2][Count], place[2][Count];  /* lead: -1 when there is no row left */
    uint32_t rest[2][Count];
};

/* What is known of the steps so far. Any memory. */
template <typename T> struct cuda__lu_steps {
    T *pivot;
    int *order; /* the row chosen in each step */
    int *place; /* the place that row had: LAPACK's pivot, from 0 */
};

/* The lane of the largest key; of equal ones that with the least place. `most`: the largest lead.
 */
static __device__ __forceinline__ int cuda__lu_first_largest(int most, int lead, uint32_t rest,
                                                             int place)
{
    unsigned at = __ballot_sync(CUDA__ALL, lead == most);
    if (at & (at - 1)) {
        uint32_t low = __reduce_max_sync(CUDA__ALL, lead == most ? rest : 0u);
        bool equal = lead == most && rest == low;
        int least = __reduce_min_sync(CUDA__ALL, equal ? place : INT32_MAX);
        at = __ballot_sync(CUDA__ALL, equal && place == least);
    }
    return __ffs((int)at) - 1;
}

template <typename T, int Block, bool Factor> struct cuda__lu_panel {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width;
    static_assert(Block % width == 0, "rows are read 16 bytes at a time");

    T a[Block]; /* the thread's row */
    int row;    /* its number */
    int place;  /* its place, CUDA__LU_CHOSEN | its step, or CUDA__LU_NO_ROW */
    cuda__lu_steps<T> steps;

    /* line: where the row's part in the panel is, at 16 bytes. */
    __device__ __forceinline__ void read(const T *line)
    {
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = 0; v < width; v++)
                a[j + v] = ((const T *)&piece)[v];
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int j = 0; j < Block; j++)
            a[j] = 0;
    }

    __device__ __forceinline__ void write(T *line, T sign) const
    {
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&piece)[v] = sign * a[j + v];
            *(vector *)(line + j) = piece;
        }
    }

    __device__ __forceinline__ int lead() const
    {
        return place >= 0 ? (int)(real::lead(a[0]) & 0x7fffffffu) : -1;
    }

    __device__ __forceinline__ int seek() const
    {
        return __reduce_max_sync(CUDA__ALL, lead());
    }

    /* Step k of the panel, before the barrier. most: what seek() returned. */
    template <typename Proposals>
    __device__ __forceinline__ void propose(Proposals &of, int k, int most, int warp, int lane)
    {
        if (lane == cuda__lu_first_largest(most, lead(), real::rest(a[0]), place))
            offer(of, k, warp);
    }

    /* The thread's row is its warp's proposal. */
    template <typename Proposals>
    __device__ __forceinline__ void offer(Proposals &of, int k, int warp)
    {
        int turn = k & 1;
        T scale = 1, inverse;
        if (Factor) {
            /* A reciprocal that is not a normal number is avoided; a column of zeros has nothing to
             * eliminate, as LAPACK leaves it. */
            scale = fabs(a[0]) < real::min_safe ? real::raise : scale;
            scale = fabs(a[0]) > real::max_safe ? real::lower : scale;
        }
        inverse = Factor && a[0] == 0 ? T(0) : real::reciprocal(a[0] * scale);
        inverse = Factor ? inverse : -inverse; /* a step sooner than its product */
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++) /* L is left alone by later steps */
                ((T *)&piece)[v] = Factor && j + v >= Block - k ? T(0) : a[j + v];
            *(vector *)&of.row[turn][warp][j] = piece;
        }
        of.inverse[turn][warp] = inverse;
        of.scale[turn][warp] = scale;
        of.lead[turn][warp] = lead();
        of.rest[turn][warp] = real::rest(a[0]);
        of.place[turn][warp] = place;
    }

    /* Behind the barrier: whose proposal is taken, of the first `count`, at most a warp's lanes. */
    template <typename Proposals>
    static __device__ __forceinline__ int choose(const Proposals &of, int k, int count, int lane)
    {
        int turn = k & 1, from = lane < count ? lane : 0;
        int mine = lane < count ? of.lead[turn][from] : -1;
        int most = __reduce_max_sync(CUDA__ALL, mine);
        return cuda__lu_first_largest(most, mine, of.rest[turn][from], of.place[turn][from]);
    }

    /* Returns seek() of the next step. */
    template <typename Proposals>
    __device__ __forceinline__ int eliminate(const Proposals &of, int k, int step, int winner)
    {
        int turn = k & 1, was = of.place[turn][winner];
        const T *line = of.row[turn][winner];
        bool chosen = place == was && place >= 0, live = place >= 0 && !chosen;
        T pivot = line[0], m = a[0], last = m;
        if (Factor) {
            m = m * of.scale[turn][winner] * of.inverse[turn][winner];
            last = live ? m : last;
            m = live ? -m : T(0);
        } else {
            m *= of.inverse[turn][winner];
            last = m = chosen ? T(0) : m;
        }
        if (chosen) {
            steps.pivot[step] = pivot;
            steps.order[step] = row;
            steps.place[step] = was;
        }
        place = chosen ? CUDA__LU_CHOSEN | step : place == step ? was : place;
        int most = -1;
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (j + v > 0)
                    a[j + v - 1] = fma(m, ((const T *)&piece)[v], a[j + v]);
                /* The next row is sought while the rest of the step goes on. */
                if (j + v == 1)
                    most = seek();
            }
        }
        a[Block - 1] = last;
        return most;
    }

    /* After `count` steps every column goes back to its place. */
    __device__ __forceinline__ void turn_back(int count)
    {
#pragma unroll 1
        for (int k = count; k < Block; k++) {
            T first = a[0];
#pragma unroll
            for (int j = 1; j < Block; j++)
                a[j - 1] = a[j];
            a[Block - 1] = first;
        }
    }

    /* Steps `first` to `first + count - 1`, count <= Block. By the whole block. In the end the
     * steps' notes are written, but another barrier must come before others read them. After step
     * k, see(k, the chosen row before it, from the step's column on); a[Block - 1] is the step's
     * multiplier. Columns are left where the steps left them. */
    template <typename Proposals, typename See>
    __device__ __forceinline__ void run(Proposals &of, int first, int count, int warp, int lane,
                                        See see)
    {
        static_assert(Proposals::count <= CUDA__WARP, "one lane looks at each proposal");
        int most = seek();
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            propose(of, k, most, warp, lane);
            __syncthreads();
            int winner = choose(of, k, Proposals::count, lane);
            most = eliminate(of, k, first + k, winner);
            see(k, of.row[k & 1][winner]);
        }
    }

    /* The same, and every column goes back to its place. */
    template <typename Proposals>
    __device__ __forceinline__ void run(Proposals &of, int first, int count, int warp, int lane)
    {
        run(of, first, count, warp, lane, [](int, const T *) {});
        turn_back(count);
    }

    /* The row's step in the panel that begins with step `first`; other rows: large. */
    __device__ __forceinline__ unsigned panel_step(int first) const
    {
        return (unsigned)place - (unsigned)(CUDA__LU_CHOSEN | first);
    }
};

#endif
