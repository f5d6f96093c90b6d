/* gpu/cuda/iterative/view.cuh: what a thread of a pass of `iterative` has of its matrix.
 *
 * A pass over a matrix takes CUDA__ITER_ROWS rows and CUDA__ITER_COLUMNS columns a block, a row a
 * warp; blockIdx.y numbers the matrices of the run, blockIdx.z the columns. A lane reads all of its
 * numbers before it writes one, so that they are on their way together.
 */
#ifndef GPU_CUDA_ITERATIVE_VIEW_CUH
#define GPU_CUDA_ITERATIVE_VIEW_CUH

#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/iterative/decide.cuh"
#include "gpu/cuda/base/stage.cuh"

#define CUDA__ITER_ROWS 8
#define CUDA__ITER_COLUMNS 256
#define CUDA__ITER_THREADS (CUDA__ITER_ROWS * CUDA__WARP)

/* Says the CPU what is next, and how much is done; a thread a matrix. */
static __device__ __forceinline__ void cuda__iter_tell(const cuda__iter_call &call, int64_t index,
                                                       const cuda__iter_state &state)
{
    call.notes->next[index] = (uint8_t)(state.action | state.more << CUDA__ITER_NOTE_BITS);
    call.notes->shares[index] = (uint16_t)state.share;
    if (state.action != CUDA__ITER_REST)
        call.notes->asked = 1;
}

/* Matrix blockIdx.y of a run, the warp's row, and the block's columns. */
template <typename T> struct cuda__iter_view {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;
    static constexpr int pieces = CUDA__ITER_COLUMNS / CUDA__WARP / width; /* vectors of a lane */

    const cuda__iter_call &call;
    int64_t index; /* in the chunk */
    int64_t i;     /* the row */
    int lane;

    __device__ cuda__iter_view(const cuda__iter_call &of, const cuda__iter_run &run)
        : call(of), index(run.first + blockIdx.y),
          i((int64_t)blockIdx.x * CUDA__ITER_ROWS + threadIdx.x / CUDA__WARP),
          lane((int)(threadIdx.x % CUDA__WARP))
    {
    }

    __device__ __forceinline__ cuda__iter_state &state() const
    {
        return call.space.states[index];
    }
    /* The start or step that was its turn is made. */
    __device__ __forceinline__ void say_made() const
    {
        if (i == 0 && lane == 0 && blockIdx.z == 0)
            state().made = 1;
    }
    __device__ __forceinline__ const double *factors() const
    {
        return call.space.factors + 2 * index;
    }
    __device__ __forceinline__ T *matrix(int kind) const
    {
        return (T *)call.space.matrices + (kind * call.space.count + index) * call.n * call.ld;
    }
    /* Row i. */
    __device__ __forceinline__ T *row(int kind) const
    {
        return matrix(kind) + i * call.ld;
    }
    /* The place of a number of the batch's matrix: its item, and its number there. */
    __device__ __forceinline__ const cuda_tensors *item(int64_t *within) const
    {
        int64_t of = call.first + index;
        const cuda_tensors *item =
            call.tensors + cuda__item_of(call.tensors, call.item_count, call.matrices, of);
        *within = of - item->first;
        return item;
    }
    /* Row i of an input. */
    __device__ __forceinline__ const T *input_row(int which) const
    {
        int64_t within;
        const cuda_tensors *at = item(&within);
        return (const T *)at->inputs[which] + (within * call.n + i) * call.n;
    }
    /* How many of `most` numbers that lie `apart` from each other, the lane's first being number
     * `first` of a row, are below `end`. Loops end there: small matrices cost few instructions. */
    static __device__ __forceinline__ int within(int first, int apart, int end, int most)
    {
        int count = (end - first + apart - 1) / apart;
        return count < most ? count : most;
    }
    /* Does to(j, from(j)) for the lane's columns j. */
    template <typename From, typename To>
    __device__ __forceinline__ void each(const From &from, const To &to) const
    {
        constexpr int most = CUDA__ITER_COLUMNS / CUDA__WARP;
        T x[most];
        int first = (int)blockIdx.z * CUDA__ITER_COLUMNS + lane;
        int here = within(first, CUDA__WARP, (int)call.n, most);
#pragma unroll
        for (int u = 0; u < most; u++) {
            if (u >= here)
                break;
            x[u] = from(first + u * CUDA__WARP);
        }
#pragma unroll
        for (int u = 0; u < most; u++) {
            if (u >= here)
                break;
            to(first + u * CUDA__WARP, x[u]);
        }
    }
    /* Where the lane's vector number u of a row in the workspace begins. */
    __device__ __forceinline__ int piece(int u) const
    {
        return (int)blockIdx.z * CUDA__ITER_COLUMNS + (u * CUDA__WARP + lane) * width;
    }
    /* How many of them there are; a row's last one may be cut short. */
    __device__ __forceinline__ int pieces_here() const
    {
        return within(piece(0), CUDA__WARP * width, (int)call.n, pieces);
    }
    __device__ __forceinline__ bool is_whole(int u) const
    {
        return piece(u) + width <= (int)call.n;
    }
    __device__ __forceinline__ void read(vector *x, const T *from, int here) const
    {
#pragma unroll
        for (int u = 0; u < pieces; u++) {
            if (u >= here)
                break;
            if (is_whole(u)) {
                x[u] = *(const vector *)(from + piece(u));
                continue;
            }
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&x[u])[v] = piece(u) + v < (int)call.n ? from[piece(u) + v] : T(0);
        }
    }
    __device__ __forceinline__ void write(T *to, const vector *x, int here) const
    {
#pragma unroll
        for (int u = 0; u < pieces; u++) {
            if (u >= here)
                break;
            if (is_whole(u)) {
                *(vector *)(to + piece(u)) = x[u];
                continue;
            }
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (piece(u) + v < (int)call.n)
                    to[piece(u) + v] = ((const T *)&x[u])[v];
            }
        }
    }
    /* to = from, a row. */
    __device__ __forceinline__ void copy_row(T *to, const T *from) const
    {
        each([&](int64_t j) { return from[j]; }, [&](int64_t j, T x) { to[j] = x; });
    }
    /* The exponents by which a matrix's rows and columns were equilibrated. */
    __device__ __forceinline__ const int32_t *row_exponents() const
    {
        return call.space.exponents + 2 * index * call.n;
    }
    __device__ __forceinline__ const int32_t *column_exponents() const
    {
        return row_exponents() + call.n;
    }
    /* C_i but for a common factor, as gpu/common/iteration.h has it; 1 where R is what counts. */
    __device__ __forceinline__ double weight(int line) const
    {
        if (!state().uneven)
            return 1;
        const int below_top = max(column_exponents()[line] - state().top, ITERATION_WEIGHT_MIN);
        return __hiloint2double((1023 + below_top) << 20, 0);
    }
    /* to = 2^(sign (own + others)) from, a row. */
    __device__ __forceinline__ void scale_row(T *to, const T *from, int own, const int32_t *others,
                                              int sign) const
    {
        each([&](int64_t j) { return (T)ldexp(from[j], sign * (own + others[j])); },
             [&](int64_t j, T x) { to[j] = x; });
    }
    __device__ __forceinline__ cuda__iter_mind<T> mind() const
    {
        return mind_of(state());
    }
    /* With the state somewhere else. */
    __device__ __forceinline__ cuda__iter_mind<T> mind_of(cuda__iter_state &held) const
    {
        T *history = (T *)call.space.history + 2 * index * call.wishes.max_iterations;
        return {call, held, history, call.space.factors + 2 * index};
    }
};

#endif
