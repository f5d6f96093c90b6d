/* gpu/cuda/lu_small/factor_rows.cuh: LU of A as written, with LAPACK's choice of pivots, whole rows
 * a lane.
 *
 * A step picks the largest magnitude of its column among the rows not yet chosen, exactly, and the
 * one that row interchanges would have put highest among equals. Rows are never moved: a lane keeps
 * each row's place, as interchanges would have it, and the row chosen in step k is stored as row k.
 *
 * A panel of `Block` columns is factorised first, its steps sending only the chosen row's part in
 * the panel from lane to lane. The rows it chose are then final but for what lies right of the
 * panel: they go to their places in shared memory, where the lanes solve for those entries, a
 * column each. Every other row reads them there and is brought up to date. Each entry sees the
 * operations of plain elimination in their order.
 *
 * The columns of a step are known to the compiler, which costs code: a copy of the step each.
 */
#ifndef GPU_CUDA_LU_SMALL_FACTOR_ROWS_CUH
#define GPU_CUDA_LU_SMALL_FACTOR_ROWS_CUH

#include <type_traits>

#include "gpu/cuda/lu_small/rounds.cuh"

/* How a warp's matrices lie in shared memory: rows begin at 16 bytes, padded so that lanes read
 * theirs freely. */
template <typename T, int N, int Rows> struct cuda__factor_layout {
    typedef cuda__rows<T, N, Rows> shape;
    static constexpr int width = shape::width;
    static constexpr int min_line = shape::line_pieces * width;

    static constexpr int trips(int line, int stride)
    {
        int address[CUDA__WARP] = {};
        for (int lane = 0; lane < CUDA__WARP; lane++) {
            int matrix = lane / shape::lanes < shape::held ? lane / shape::lanes : shape::held - 1;
            int member = lane - matrix * shape::lanes;
            member = member < shape::lanes ? member : shape::lanes - 1;
            address[lane] = (int)sizeof(T) * (matrix * stride + member * line);
        }
        return cuda__trips(address, 16);
    }

    static constexpr int best_line()
    {
        int best = min_line;
        for (int line = min_line; line <= min_line + 2 * width; line += width)
            best = trips(line, 0) < trips(best, 0) ? line : best;
        return best;
    }

    static constexpr int line = best_line();

    static constexpr int best_stride()
    {
        int best = N * line;
        for (int stride = N * line; stride < N * line + 128 / (int)sizeof(T); stride += width)
            best = trips(line, stride) < trips(line, best) ? stride : best;
        return best;
    }

    static constexpr int stride = best_stride();

    /* As the matrices are copied: in their places, or as one run, each to be spread to its place.
     */
    static constexpr bool packed = N % width != 0;
    static constexpr int grain = packed ? (N % 2 == 0 ? 2 : 1) : width; /* read at once */
    static constexpr int io_line = packed ? N : line;
    static constexpr int io_stride = packed ? N * N : stride;
    typedef cuda__run<T, N, shape::held> run;
    typedef cuda__stage<T, N, shape::held, line, stride> padded;
    typedef typename std::conditional<packed, run, padded>::type stage;
    static constexpr int places = packed && run::places > shape::held *stride
                                      ? (run::places + 3) / 4 * 4
                                      : shape::held *stride;
};

template <typename T, int N, int Rows, int Block> struct cuda__factor_notes {
    static constexpr int width = cuda__real<T>::width;
    static constexpr int panel = Block < N ? Block : N;
    /* The chosen row in the panel, of two steps. */
    alignas(16) T line[2][(panel + width - 1) / width * width];
    int pivots[N]; /* LAPACK's, but from 0 */
};

template <typename T, int N, int Rows, int Block> struct cuda__factor_shared {
    typedef cuda__factor_layout<T, N, Rows> layout;
    typedef typename layout::shape shape;
    typedef cuda__factor_notes<T, N, Rows, Block> notes;
    static constexpr int pieces = (int)sizeof(notes) / 16;
    struct alignas(16) padded {
        notes of;
        unsigned char padding[16 * (1 + pieces % 2)];
    };
    alignas(16) T stage[layout::places];
    padded matrix[shape::held];
};

template <typename T, int N, int Rows, int Block> struct cuda__factor_rows {
    typedef T number;
    typedef cuda__factor_shared<T, N, Rows, Block> shared;
    typedef typename shared::layout layout;
    typedef typename shared::notes notes;
    typedef typename layout::shape shape;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width;
    static constexpr int dead = (int)0x80000000;
    static constexpr int beyond = dead | 64;
    static_assert(Block >= N || Block % width == 0, "panels begin at 16 bytes");

    shape lane;
    notes *note;  /* of the lane's matrix */
    T *stage;     /* where it is worked on: rows at their places */
    T *io;        /* where it is copied to, and its factors from */
    T a[Rows][N]; /* the lane's rows */
    /* Of a row not chosen yet its place, after the interchanges so far; then its step, the sign bit
     * set; `beyond` past N. */
    int place[Rows];
    bool chosen[Rows]; /* just now; at most one, but of equals */
    int info;

    /* Lane m holds rows m, m + lanes, m + 2 lanes, ... */
    __device__ __forceinline__ int row(int s) const
    {
        return s * shape::lanes + lane.member;
    }

    __device__ __forceinline__ bool inside(int s) const
    {
        return lane.has(row(s));
    }

    /* The first entries of a row that begins at 16 bytes; `count` is known to the compiler. */
    static __device__ __forceinline__ void take(T *to, const T *row, int count)
    {
#pragma unroll
        for (int j = 0; j < N; j += width) {
            if (j >= count)
                break;
            vector piece = *(const vector *)(row + j);
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (j + v < count)
                    to[j + v] = ((const T *)&piece)[v];
            }
        }
    }

    __device__ __forceinline__ void read()
    {
        bool finite = true;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            place[s] = inside(s) ? row(s) : beyond;
            const T *from = inside(s) ? io + row(s) * layout::io_line : io;
#pragma unroll
            for (int j = 0; j < N; j += layout::grain)
                cuda__take<layout::grain>(&a[s][j], from + j);
#pragma unroll
            for (int j = 0; j < N; j++)
                finite = finite && fabs(a[s][j]) <= real::largest;
        }
        info = lane.votes(!finite) ? -1 : 0;
    }

    /* Chooses the rows whose leading bits are the largest in column k: one, as a rule. */
    __device__ __forceinline__ void choose(int k)
    {
        int key[Rows], largest = dead;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            key[s] = (int)(real::lead(a[s][k]) & 0x7fffffff) | (place[s] & dead);
            largest = key[s] > largest ? key[s] : largest;
        }
        largest = lane.most_of(largest);
#pragma unroll
        for (int s = 0; s < Rows; s++)
            chosen[s] = !lane.spare() && key[s] == largest;
    }

    /* Of several rows with the same leading bits the others decide, then the place. */
    __device__ __forceinline__ void choose_equal(int k)
    {
        uint32_t low = 0;
        int highest = 0;
        if (sizeof(T) == 8) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                low = chosen[s] && real::rest(a[s][k]) > low ? real::rest(a[s][k]) : low;
            low = lane.max(low);
        }
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            chosen[s] = chosen[s] && real::rest(a[s][k]) == low;
            highest = chosen[s] && N - place[s] > highest ? N - place[s] : highest;
        }
        highest = lane.max(highest);
#pragma unroll
        for (int s = 0; s < Rows; s++)
            chosen[s] = chosen[s] && N - place[s] == highest;
    }

    /* Says the lanes the chosen row's part in the panel from column k on, and its place. */
    template <int First, int Last> __device__ __forceinline__ void publish(T *line, int k)
    {
        cuda__address to = cuda__address_of(line);
        int mine = -1;
#pragma unroll
        for (int j = First + (k - First) / width * width; j < Last; j += width) {
#pragma unroll
            for (int s = 0; s < Rows; s++) {
                T piece[width];
#pragma unroll
                for (int v = 0; v < width; v++)
                    piece[v] = a[s][j + v < Last ? j + v : Last - 1];
                cuda__store_if(chosen[s], to + (j - First) * (int)sizeof(T), piece);
            }
        }
#pragma unroll
        for (int s = 0; s < Rows; s++)
            mine = chosen[s] ? place[s] : mine;
        if (mine >= 0)
            note->pivots[k] = mine;
    }

    /* The same when equals have been distinguished. Returns the chosen row's place. A matrix has a
     * chosen row at least, so that more of them than matrices are equals somewhere. */
    template <int First, int Last> __device__ __forceinline__ int agree(T *line, int k)
    {
        int mine = 0;
#pragma unroll
        for (int s = 0; s < Rows; s++)
            mine += chosen[s];
        bool several = __popc(__ballot_sync(CUDA__ALL, mine > 0)) > shape::held;
        if (Rows > 1)
            several = __any_sync(CUDA__ALL, several || mine > 1);
        if (several)
            choose_equal(k);
        publish<First, Last>(line, k);
        __syncwarp();
        return note->pivots[k];
    }

    /* Step k in the panel of columns First to Last - 1. */
    template <int First, int Last>
    __device__ __forceinline__ void eliminate(const T *line, int k, int old_place)
    {
        T pivot_row[N], multiplier[Rows];
#pragma unroll
        for (int j = First + (k - First) / width * width; j < Last; j += width) {
            vector piece = *(const vector *)(line + j - First);
#pragma unroll
            for (int v = 0; v < width && j + v < Last; v++)
                pivot_row[j + v] = ((const T *)&piece)[v];
        }
        T pivot = pivot_row[k], inverse = real::reciprocal(pivot);
        info = pivot == 0 && info == 0 ? k + 1 : info;
        /* A column of zeros has nothing to eliminate, as LAPACK leaves it. */
        inverse = pivot == 0 ? T(0) : inverse;
        bool usual = fabs(pivot) >= real::min_safe && fabs(pivot) <= real::max_safe;
#pragma unroll
        for (int s = 0; s < Rows; s++)
            multiplier[s] = a[s][k] * inverse;
        if (!__all_sync(CUDA__ALL, usual || pivot == 0))
            divide(multiplier, pivot, k);
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            place[s] = chosen[s] ? dead | k : place[s] == k ? old_place : place[s];
            bool live = place[s] >= 0;
            a[s][k] = live ? multiplier[s] : a[s][k];
            multiplier[s] = live ? -multiplier[s] : T(0);
        }
#pragma unroll
        for (int j = k + 1; j < Last; j++) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                a[s][j] = fma(multiplier[s], pivot_row[j], a[s][j]);
            /* The next row is sought while the rest of the step goes on. */
            if (j == k + 1)
                choose(k + 1);
        }
    }

    /* The multipliers where a pivot's reciprocal is not a normal number: both are scaled first. Of
     * other pivots they come out with the bits they had. */
    __device__ __forceinline__ void divide(T (&multiplier)[Rows], T pivot, int k) const
    {
        T scale = 1;
        scale = fabs(pivot) < real::min_safe ? real::raise : scale;
        scale = fabs(pivot) > real::max_safe ? real::lower : scale;
        T inverse = pivot == 0 ? T(0) : real::reciprocal(pivot * scale);
#pragma unroll
        for (int s = 0; s < Rows; s++)
            multiplier[s] = a[s][k] * scale * inverse;
    }

    /* The rows that the panel chose go to their places. */
    template <int First, int Last> __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            unsigned step = (unsigned)place[s] - (unsigned)(dead | First);
            if (step >= (unsigned)(Last - First))
                continue;
            T *to = stage + (First + (int)step) * layout::line;
#pragma unroll
            for (int j = 0; j < N; j += width) {
                vector piece;
#pragma unroll
                for (int v = 0; v < width; v++)
                    ((T *)&piece)[v] = j + v < N ? a[s][j + v < N ? j + v : 0] : T(0);
                *(vector *)(to + j) = piece;
            }
        }
        __syncwarp();
    }

    /* What lies right of the panel in its rows becomes U, a column a lane at a time. */
    template <int First, int Last> __device__ __forceinline__ void solve()
    {
        constexpr int Width = Last - First, Rounds = (N - Last + shape::lanes - 1) / shape::lanes;
        T x[Rounds][Width], *at = stage + First * layout::line + Last + lane.member;
        bool ours[Rounds];
#pragma unroll
        for (int r = 0; r < Rounds; r++) {
            ours[r] = !lane.spare() && Last + r * shape::lanes + lane.member < N;
#pragma unroll
            for (int q = 0; q < Width; q++)
                x[r][q] = ours[r] ? at[q * layout::line + r * shape::lanes] : T(0);
        }
#pragma unroll
        for (int q = 1; q < Width; q++) {
            T lower[Width]; /* L's row First + q, in the panel */
            take(lower, stage + (First + q) * layout::line + First, q);
#pragma unroll
            for (int r = 0; r < Rounds; r++) {
#pragma unroll
                for (int k = 0; k < q; k++)
                    x[r][q] = fma(-lower[k], x[r][k], x[r][q]);
                if (ours[r])
                    at[q * layout::line + r * shape::lanes] = x[r][q];
            }
        }
        __syncwarp();
    }

    /* The rows not chosen yet lose L times U of the panel; a row that was chosen holds nothing any
     * more. */
    template <int First, int Last> __device__ __forceinline__ void update()
    {
        constexpr int Width = Last - First;
#pragma unroll
        for (int j = Last; j < N; j += width) {
#pragma unroll
            for (int q = 0; q < Width; q++) {
                vector piece = *(const vector *)(stage + (First + q) * layout::line + j);
#pragma unroll
                for (int s = 0; s < Rows; s++) {
#pragma unroll
                    for (int v = 0; v < width && j + v < N; v++)
                        a[s][j + v] = fma(-a[s][First + q], ((const T *)&piece)[v], a[s][j + v]);
                }
            }
            if (j == Last)
                choose(Last);
        }
    }

    template <int First> __device__ __forceinline__ void factor()
    {
        constexpr int Last = First + Block < N ? First + Block : N;
        if (First == 0)
            choose(0);
#pragma unroll
        for (int k = First; k < Last; k++) {
            T *line = note->line[k & 1];
            int old_place = agree<First, Last>(line, k);
            eliminate<First, Last>(line, k, old_place);
        }
        settle<First, Last>();
        if constexpr (Last < N) {
            solve<First, Last>();
            update<First, Last>();
            factor<Last>();
        }
    }

    /* The factors, from their rows' places to where they are copied from. NaN or infinity in A
     * leaves none. */
    __device__ __forceinline__ void write()
    {
        if (layout::packed) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                take(a[s], stage + (inside(s) ? row(s) : 0) * layout::line, N);
            __syncwarp();
#pragma unroll
            for (int s = 0; s < Rows; s++) {
#pragma unroll
                for (int j = 0; j < N && inside(s); j++)
                    io[row(s) * layout::io_line + j] = a[s][j];
            }
            __syncwarp();
        }
        if (!__any_sync(CUDA__ALL, info < 0))
            return;
        constexpr int end = N * layout::io_line;
        for (int e = lane.share(end); info < 0 && e < end; e += shape::lanes)
            io[e] = real::nan();
        __syncwarp();
    }

    /* INFO and the pivots of the warp's matrices, stored by all lanes in turn; `at`: the lane. */
    __device__ __forceinline__ void store_numbers(const shared &memory, const cuda__place<T> &place,
                                                  const cuda_batch &, int at) const
    {
        int reported = __shfl_sync(CUDA__ALL, info, at < shape::held ? at * shape::lanes : 0);
        bool mine = at < shape::held && place.valid;
        if (mine && place.info)
            place.info[place.within] = reported;
        int *pivots = mine && place.extra ? (int *)place.extra + place.within * N : nullptr;
#pragma unroll
        for (int start = 0; start < shape::held * N; start += CUDA__WARP) {
            int e = start + at, k = e / N < shape::held ? e / N : shape::held - 1;
            int *to = cuda__shuffle_pointer(pivots, k);
            int of = __shfl_sync(CUDA__ALL, reported, k);
            if (to && e < shape::held * N)
                to[e - k * N] = of < 0 ? 0 : memory.matrix[k].of.pivots[e - k * N] + 1;
        }
    }
};

template <typename T, int N, int Rows, int Block, int Warps, int Blocks>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Blocks)
    cuda__factor_rows_kernel(const cuda_batch batch)
{
    typedef cuda__factor_rows<T, N, Rows, Block> work;
    cuda__rounds<work, Warps>(batch, [](work &matrices) {
        __syncwarp();
        matrices.template factor<0>();
    });
}

#endif
