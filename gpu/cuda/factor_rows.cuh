/* gpu/cuda/factor_rows.cuh: LU of A as written, with LAPACK's choice of pivots, whole rows a lane.
 *
 * A step picks the largest magnitude of its column among the rows not yet chosen, exactly, and the
 * one that row interchanges would have put highest among equals. Rows are never moved: a lane keeps
 * each row's place, as interchanges would have it, and the row chosen in step k is stored as row k.
 * The columns of a step are known to the compiler, which halves the work and costs code: a copy of
 * the step each.
 */
#ifndef GPU_CUDA_FACTOR_ROWS_CUH
#define GPU_CUDA_FACTOR_ROWS_CUH

#include "gpu/cuda/rows.cuh"

/* How a warp's matrices lie in shared memory, padded so that lanes read their rows freely. */
template <typename T, int N, int Rows> struct cuda__factor_layout {
    typedef cuda__rows<T, N, Rows> shape;
    static constexpr int width = shape::width;
    static constexpr bool wide = N % width == 0; /* a row in pieces of 16 bytes */
    static constexpr int grain = wide ? width : 1;

    static constexpr int trips(int line, int stride)
    {
        int address[CUDA__WARP] = {};
        for (int lane = 0; lane < CUDA__WARP; lane++) {
            int matrix = lane / shape::lanes < shape::held ? lane / shape::lanes : shape::held - 1;
            int member = lane - matrix * shape::lanes;
            member = member < shape::lanes ? member : shape::lanes - 1;
            address[lane] = (int)sizeof(T) * (matrix * stride + member * line);
        }
        return cuda__trips(address, (int)sizeof(T) * grain);
    }

    static constexpr int best_line()
    {
        int best = N;
        for (int line = N; line <= N + 2 * grain; line += grain)
            best = trips(line, 0) < trips(best, 0) ? line : best;
        return best;
    }

    static constexpr int line = best_line();

    static constexpr int best_stride()
    {
        int best = N * line;
        for (int stride = N * line; stride < N * line + 128 / (int)sizeof(T); stride += grain)
            best = trips(line, stride) < trips(line, best) ? stride : best;
        return best;
    }

    static constexpr int stride = best_stride();
    typedef cuda__stage<T, N, shape::held, line, stride> stage;
};

template <typename T, int N, int Rows> struct cuda__factor_notes {
    typedef cuda__rows<T, N, Rows> shape;
    alignas(16) T line[2][shape::line_pieces * shape::width]; /* the chosen row, of two steps */
    int pivots[N];                                            /* LAPACK's, but from 0 */
};

template <typename T, int N, int Rows> struct cuda__factor_shared {
    typedef cuda__factor_layout<T, N, Rows> layout;
    typedef typename layout::shape shape;
    static constexpr int pieces = (int)sizeof(cuda__factor_notes<T, N, Rows>) / 16;
    struct alignas(16) padded {
        cuda__factor_notes<T, N, Rows> notes;
        unsigned char padding[16 * (1 + pieces % 2)];
    };
    alignas(16) T stage[(shape::held * layout::stride + 3) / 4 * 4];
    padded matrix[shape::held];
};

template <typename T, int N, int Rows> struct cuda__factor_rows {
    typedef cuda__factor_layout<T, N, Rows> layout;
    typedef typename layout::shape shape;
    typedef cuda__factor_shared<T, N, Rows> shared;
    typedef cuda__factor_notes<T, N, Rows> notes;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width;

    shape lane;
    notes *note;       /* of the lane's matrix */
    T a[Rows][N];      /* the lane's rows */
    int place[Rows];   /* of the row, after the interchanges so far; N for rows past the matrix */
    bool chosen[Rows]; /* just now; at most one */
    int info;

    /* Lane m holds rows m, m + lanes, m + 2 lanes, ... */
    __device__ __forceinline__ int row(int s) const
    {
        return s * shape::lanes + lane.member;
    }

    __device__ __forceinline__ bool inside(int s) const
    {
        return shape::lanes * Rows == N || row(s) < N;
    }

    __device__ __forceinline__ void read(const T *stage)
    {
        constexpr int step = layout::wide ? width : 1;
        const T *from = stage + lane.matrix * layout::stride + lane.member * layout::line;
        bool finite = true;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            place[s] = inside(s) ? row(s) : N;
#pragma unroll
            for (int j = 0; j < N; j += step) {
                T piece[step];
                const T *at = inside(s) ? from + s * shape::lanes * layout::line + j : from;
                if (layout::wide)
                    *(vector *)piece = *(const vector *)at;
                else
                    piece[0] = *at;
#pragma unroll
                for (int v = 0; v < step; v++)
                    a[s][j + v] = piece[v];
            }
#pragma unroll
            for (int j = 0; j < N; j++)
                finite = finite && fabs(a[s][j]) <= real::largest;
        }
        info = lane.votes(!finite) ? -1 : 0;
    }

    /* Chooses the row for column k, whose place is k or more. */
    __device__ __forceinline__ void choose(int k)
    {
        uint32_t key[Rows], largest = 0;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            bool live = place[s] >= k && place[s] < N;
            key[s] = live ? real::lead(a[s][k]) | 0x80000000u : 0;
            largest = key[s] > largest ? key[s] : largest;
        }
        largest = lane.most(largest);
        int equals = 0;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            chosen[s] = key[s] == largest;
            equals += chosen[s];
        }
        unsigned votes = lane.votes(equals > 0);
        bool decided = equals <= 1 && (votes & (votes - 1)) == 0;
        if (!__all_sync(CUDA__ALL, decided))
            choose_equal(k);
    }

    /* Some matrix has several rows with the same leading bits: the others decide, then the place.
     */
    __device__ __forceinline__ void choose_equal(int k)
    {
        uint32_t low = 0;
        int highest = 0;
        if (sizeof(T) == 8) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                low = chosen[s] && real::rest(a[s][k]) > low ? real::rest(a[s][k]) : low;
            low = lane.most(low);
        }
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            chosen[s] = chosen[s] && real::rest(a[s][k]) == low;
            highest = chosen[s] && N - place[s] > highest ? N - place[s] : highest;
        }
        highest = lane.most(highest);
#pragma unroll
        for (int s = 0; s < Rows; s++)
            chosen[s] = chosen[s] && N - place[s] == highest;
    }

    /* Tells the lanes the chosen row from column k on, and its place. */
    __device__ __forceinline__ void publish(T *line, int k)
    {
        unsigned to = (unsigned)__cvta_generic_to_shared(line);
        int mine = -1;
#pragma unroll
        for (int j = k / width * width; j < N; j += width) {
#pragma unroll
            for (int s = 0; s < Rows; s++) {
                T piece[width];
#pragma unroll
                for (int v = 0; v < width; v++)
                    piece[v] = a[s][j + v < N ? j + v : N - 1];
                cuda__store_if(chosen[s], to + j * (int)sizeof(T), piece);
            }
        }
#pragma unroll
        for (int s = 0; s < Rows; s++)
            mine = chosen[s] ? place[s] : mine;
        if (mine >= 0)
            note->pivots[k] = mine;
    }

    __device__ __forceinline__ void eliminate(const T *line, int k)
    {
        T chosen_row[shape::line_pieces * width];
#pragma unroll
        for (int j = k / width * width; j < N; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = 0; v < width; v++)
                chosen_row[j + v] = ((const T *)&piece)[v];
        }
        int old_place = note->pivots[k];
        T pivot = chosen_row[k], inverse = real::reciprocal(pivot);
        info = pivot == 0 && info == 0 ? k + 1 : info;
        /* A column of zeros has nothing to eliminate, as LAPACK leaves it. */
        inverse = pivot == 0 ? T(0) : inverse;
        bool usual = fabs(pivot) >= real::least_safe && fabs(pivot) <= real::most_safe;
        bool divide = !__all_sync(CUDA__ALL, usual || pivot == 0);
        T multiplier[Rows];
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            place[s] = chosen[s] ? k : place[s] == k ? old_place : place[s];
            bool live = place[s] > k;
            multiplier[s] = a[s][k] * inverse;
            if (divide && !usual && pivot != 0)
                multiplier[s] = a[s][k] / pivot;
            a[s][k] = live ? multiplier[s] : a[s][k];
            multiplier[s] = live ? -multiplier[s] : T(0);
        }
#pragma unroll
        for (int j = k + 1; j < N; j++) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                a[s][j] = fma(multiplier[s], chosen_row[j], a[s][j]);
            /* The next row is sought while the rest of the step goes on. */
            if (j == k + 1)
                choose(k + 1);
        }
    }

    __device__ __forceinline__ void factor()
    {
        choose(0);
#pragma unroll
        for (int k = 0; k < N; k++) {
            T *line = note->line[k & 1];
            publish(line, k);
            __syncwarp();
            eliminate(line, k);
        }
    }

    /* Puts LU into shared memory in its final order. */
    __device__ __forceinline__ void write(T *stages)
    {
        constexpr int step = layout::wide ? width : 1;
        T *stage = stages + lane.matrix * layout::stride;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            T *to = stage + place[s] * layout::line;
#pragma unroll
            for (int j = 0; j < N; j += step) {
                T piece[step];
#pragma unroll
                for (int v = 0; v < step; v++)
                    piece[v] = info < 0 ? real::nan() : a[s][j + v];
                if (!inside(s))
                    continue;
                if (layout::wide)
                    *(vector *)(to + j) = *(const vector *)piece;
                else
                    to[j] = piece[0];
            }
        }
        __syncwarp();
    }
};

template <typename T, int N, int Rows>
static __device__ __forceinline__ void
cuda__store_pivots(const cuda__factor_shared<T, N, Rows> &memory, const cuda__place<T> &place,
                   int info, int lane)
{
    typedef cuda__rows<T, N, Rows> shape;
    int from = lane < shape::held ? lane * shape::lanes : 0;
    info = __shfl_sync(CUDA__ALL, info, from);
    bool mine = lane < shape::held && place.valid;
    if (mine && place.info)
        place.info[place.within] = info;
    int *pivots = mine && place.extra ? (int *)place.extra + place.within * N : nullptr;
#pragma unroll
    for (int start = 0; start < shape::held * N; start += CUDA__WARP) {
        int e = start + lane, k = e / N < shape::held ? e / N : shape::held - 1;
        int *to = cuda__shuffle_pointer(pivots, k);
        int of = __shfl_sync(CUDA__ALL, info, k);
        if (to && e < shape::held * N)
            to[e - k * N] = of < 0 ? 0 : memory.matrix[k].notes.pivots[e - k * N] + 1;
    }
}

template <typename T, int N, int Rows, int Warps, int Blocks>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Blocks)
    cuda__factor_rows_kernel(const cuda_batch batch)
{
    typedef cuda__factor_rows<T, N, Rows> work;
    typedef typename work::shape shape;
    typedef typename work::layout::stage stage;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int warp = Warps == 1 ? 0 : threadIdx.x / CUDA__WARP, lane = threadIdx.x % CUDA__WARP;
    typename work::shared &memory = ((typename work::shared *)cuda__memory)[warp];
    constexpr int held = Warps * shape::held;
    for (int64_t first = (int64_t)blockIdx.x * held; first < batch.matrices;
         first += (int64_t)gridDim.x * held) {
        int64_t mine = first + warp * shape::held + (lane < shape::held ? lane : shape::held - 1);
        cuda__load<T, N, shape::held, stage>(memory.stage, batch, mine, lane);
        work matrices;
        matrices.lane = shape::make(lane);
        matrices.note = &memory.matrix[matrices.lane.matrix].notes;
        cuda__copy_wait();
        matrices.read(memory.stage);
        matrices.factor();
        matrices.write(memory.stage);
        cuda__place<T> place = cuda__find<T, N>(batch, mine);
        cuda__store<T, N, shape::held, stage>(memory.stage, place, lane);
        cuda__store_pivots<T, N, Rows>(memory, place, matrices.info, lane);
        __syncwarp();
    }
}

#endif
