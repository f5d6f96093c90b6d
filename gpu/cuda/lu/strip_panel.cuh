/* gpu/cuda/lu/strip_panel.cuh: a panel of columns is eliminated by one warp, for an inverse, while
 * the other warps of the block do something else (strip.cuh).
 *
 * A lane has the rows lane, lane + 32, ... of the panel in registers. Step k takes the largest
 * magnitude of the panel's column k among the rows not chosen yet: numbers are distinguished by
 * their leading 13 bits of fraction in FP64 and 16 in FP32 (15 beyond 256 rows), and of equal ones
 * the first row is taken. So one reduction over keys that end in the row's number finds it.
 * Reciprocals are had meanwhile, because that takes as long. The lane of the chosen row puts it
 * into shared memory for all, and the other rows are eliminated. Chosen rows are not divided by
 * their pivots.
 *
 * Multipliers go to M as they are made (strip.cuh); of the panel only the columns ahead are kept.
 *
 * The step's column is always a row's first register, and the others move down by one as they are
 * updated, so that steps run the same code, until a quarter of the columns, or half, are done with.
 *
 * Cost: a step is a chain of a reduction, or a reciprocal, and a row through shared memory; besides
 * it go block multiplications and additions a row. Some 500 cycles on an H200, 2026-11-21, for n =
 * 128 in FP64, where a lane has four rows, and L was eliminated with M.
 */
#ifndef GPU_CUDA_LU_STRIP_PANEL_CUH
#define GPU_CUDA_LU_STRIP_PANEL_CUH

#include "gpu/cuda/lu/panel.cuh"

/* A row of a panel is four pieces of 16 bytes, in shared memory in an order that keeps both lanes
 * with eight rows and lanes with two rows apart: piece t of row g is at: */
static __device__ __forceinline__ int cuda__lu_turned(int row, int piece)
{
    return piece ^ (row >> 1 & 3);
}

/* Where step k's multiplier is among the `block` numbers of a row of M; and whose the number v of
 * piece p is. In FP64 a piece is what a lane gives to a product on the tensor cores: so the product
 * adds the steps up in their order. */
template <typename T> static __device__ __forceinline__ int cuda__lu_factor_place(int row, int k)
{
    constexpr int width = cuda__real<T>::width;
    return width == 2 ? cuda__lu_turned(row, k % 4) * width + k / 4
                      : cuda__lu_turned(row, k / width) * width + k % width;
}

template <typename T> static __device__ __forceinline__ int cuda__lu_factor_step(int p, int v)
{
    constexpr int width = cuda__real<T>::width;
    return width == 2 ? v * 4 + p : p * width + v;
}

/* -1/x, within an ulp where it and x are normal numbers; NaN for 0. */
static __device__ __forceinline__ double cuda__lu_negated_reciprocal(double x)
{
    double r = cuda__estimate_reciprocal(x), e = fma(-x, r, 1.0);
    return fma(-r, fma(e, e, e), -r);
}

static __device__ __forceinline__ float cuda__lu_negated_reciprocal(float x)
{
    float r = cuda__estimate_reciprocal(x);
    return fmaf(-r, fmaf(-x, r, 1.0f), -r);
}

/* What a panel made of the rows g, g + 8, ...: a byte each, for a lane that has those rows: the
 * row's step in the panel, or 255. */
template <int Order> struct alignas(Order <= 64 ? 8 : 16) cuda__lu_marks {
    static constexpr int bytes = Order <= 64 ? 8 : (Order + 127) / 128 * 16, words = bytes / 4;
    uint32_t word[words];

    __device__ __forceinline__ bool has(int i) const
    {
        return (word[i / 4] & 64u << i % 4 * 8) == 0;
    }

    __device__ __forceinline__ unsigned of(int i) const
    {
        return word[i / 4] >> i % 4 * 8 & 255;
    }
};

/* What is known of the steps so far; shared memory. */
template <typename T, int Order> struct cuda__lu_column_notes {
    static constexpr int block = 4 * cuda__real<T>::width;
    /* The chosen row from the step's column on, double-buffered; and -1 / its pivot. */
    alignas(16) T line[2][block + cuda__real<T>::width];
    /* L, below its diagonal, negated; double-buffered by panels. */
    alignas(16) T lower[2][block * block];
    T pivot[Order];
    int order[Order];                  /* the row chosen in each step */
    int step[Order];                   /* of each row; -1: not chosen yet */
    cuda__lu_marks<Order> marks[2][8]; /* double-buffered by panels */
};

/* The warp's view of the matrix. Order: rows. */
template <typename T, int Order> struct cuda__lu_column {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width, block = 4 * width;
    static constexpr int rows = (Order + CUDA__WARP - 1) / CUDA__WARP; /* of a lane */
    static constexpr unsigned row_bits = Order <= 256 ? 255 : 511;
    /* Reciprocals are had of all rows while the warp finds the largest, or of the lane's largest.
     */
    static constexpr bool each_inverse = rows <= 4;
    static_assert(Order <= 384, "a key and the marks hold the row's number");

    cuda__lu_column_notes<T, Order> &notes;
    int n, lane;
    unsigned live; /* bit r: the lane's row r may be chosen */
    T a[rows][block];
    int kept_row, last_row, older_row; /* of this panel, the last and the one before it; or -1 */
    T kept_pivot;

    __device__ __forceinline__ cuda__lu_column(cuda__lu_column_notes<T, Order> &steps, int order,
                                               int own)
        : notes(steps), n(order), lane(own), live(0), kept_row(-1), last_row(-1), older_row(-1),
          kept_pivot(0)
    {
#pragma unroll
        for (int r = 0; r < rows; r++)
            live |= (unsigned)(r * CUDA__WARP + lane < n) << r;
    }

    /* Is row r of the lane in memory? */
    __device__ __forceinline__ bool is_stored(int r) const
    {
        return r + 1 < rows || Order % CUDA__WARP == 0 || r * CUDA__WARP + lane < Order;
    }

    __device__ __forceinline__ void read(const T *m)
    {
#pragma unroll
        for (int e = 0; e < rows * 4; e++) {
            const int r = e / 4, p = e % 4;
            const T *from = m + (r * CUDA__WARP + lane) * block + cuda__lu_turned(lane, p) * width;
            vector piece = is_stored(r) ? *(const vector *)from : vector{};
#pragma unroll
            for (int v = 0; v < width; v++)
                a[r][p * width + v] = ((const T *)&piece)[v];
        }
    }

    /* The row of the largest first number, exactly; for numbers so small that their keys are
     * nothing. */
    __device__ __forceinline__ int search() const
    {
        T most = 0;
        int row = INT32_MAX;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool better = (live >> r & 1) && (fabs(a[r][0]) > most || row == INT32_MAX);
            most = better ? fabs(a[r][0]) : most;
            row = better ? r * CUDA__WARP + lane : row;
        }
        unsigned lead = real::lead(most), rest = real::rest(most);
        unsigned high = __reduce_max_sync(CUDA__ALL, lead);
        unsigned low = __reduce_max_sync(CUDA__ALL, lead == high ? rest : 0u);
        return __reduce_min_sync(CUDA__ALL, lead == high && rest == low ? row : INT32_MAX);
    }

    /* What orders the lane's row r: 0 where it cannot be chosen. */
    __device__ __forceinline__ unsigned key(int r) const
    {
        unsigned row = r * CUDA__WARP + lane;
        unsigned key = (real::lead(a[r][0]) << 1 & ~row_bits) | (row_bits - row);
        return live >> r & 1 ? key : 0;
    }

    /* What finds the row to be chosen, and -1 / its first number in the lane that has it. */
    __device__ __forceinline__ unsigned seek(T (&inverse)[rows]) const
    {
        unsigned best = key(0);
        T first = a[0][0];
#pragma unroll
        for (int r = 1; r < rows; r++) {
            unsigned other = key(r);
            if (!each_inverse)
                first = other > best ? a[r][0] : first;
            best = other > best ? other : best;
        }
        best = __reduce_max_sync(CUDA__ALL, best);
#pragma unroll
        for (int r = 0; r < rows; r++)
            inverse[r] = r == 0 || each_inverse
                             ? cuda__lu_negated_reciprocal(each_inverse ? a[r][0] : first)
                             : inverse[0];
        return best;
    }

    /* The row that was found. */
    __device__ __forceinline__ int found(unsigned best, T (&inverse)[rows]) const
    {
#pragma unroll
        for (int r = 0; r < (each_inverse ? rows : 1); r++)
            cuda__keep(inverse[r]); /* here, and not once it is known which one is wanted */
        if (best > row_bits)
            return (int)(row_bits - (best & row_bits));
        int row = search();
#pragma unroll
        for (int r = 0; r < rows; r++)
            inverse[r] = cuda__lu_negated_reciprocal(a[r][0]);
        return row;
    }

    /* The chosen row's first pieces and what belongs to it, for all lanes. */
    template <int Pieces>
    __device__ __forceinline__ void show(int chosen, const T (&inverse)[rows], T *to) const
    {
        cuda__address line = cuda__address_of(to);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            alignas(16) T last[width] = {inverse[r]};
            int group = chosen / CUDA__WARP;
            cuda__keep(group); /* or a[group] would be taken, and a would be in memory */
            if (rows > 2 && group != r)
                continue;
#pragma unroll
            for (int j = 0; j < Pieces * width; j += width)
                cuda__store_if(self, line + j * (int)sizeof(T), &a[r][j]);
            cuda__store_if(self, line + block * (int)sizeof(T), last);
        }
        __syncwarp();
    }

    /* m: by what the chosen row is to be multiplied for each of the lane's; it is chosen now. */
    __device__ __forceinline__ void choose(int chosen, const T *line, T (&m)[rows])
    {
        T by = line[block];
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            m[r] = self ? T(0) : a[r][0] * by;
            live &= self ? ~(1u << r) : ~0u;
        }
    }

    /* The chosen row is eliminated from the others. Before the columns behind the next step's that
     * one's search begins: the two go on side by side. Returns what it found. */
    template <int Pieces>
    __device__ __forceinline__ unsigned eliminate(const T (&m)[rows], T (&inverse)[rows],
                                                  const T *line)
    {
        unsigned best = 0;
#pragma unroll
        for (int j = 0; j < Pieces * width; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = j == 0; v < width; v++) {
#pragma unroll
                for (int r = 0; r < rows; r++)
                    a[r][j + v - 1] = fma(m[r], ((const T *)&piece)[v], a[r][j + v]);
                if (j + v == 1)
                    best = seek(inverse);
            }
        }
        return best;
    }

    /* The multipliers of step k go to M: one by one, because pairs of steps would take a branch,
     * and reciprocals are had next to the rest of the step only where there is none. */
    __device__ __forceinline__ void put(int k, const T (&m)[rows], T *to) const
    {
        to += lane * block + cuda__lu_factor_place<T>(lane, k);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            if (is_stored(r))
                to[r * CUDA__WARP * block] = m[r];
        }
    }

    /* What lane k keeps of the panel's step k until all of them are done. */
    __device__ __forceinline__ void keep(int k, int chosen, const T *line)
    {
        bool own = lane == k;
        kept_row = own ? chosen : kept_row;
        kept_pivot = own ? line[0] : kept_pivot;
    }

    static __device__ __forceinline__ void mark(cuda__lu_marks<Order> *marks, int row, int as)
    {
        unsigned at = (unsigned)row;
        if (row >= 0)
            ((uint8_t *)&marks[at % 8])[at / 8] = (uint8_t)as;
    }

    __device__ __forceinline__ void note(cuda__lu_marks<Order> *marks, int first, int count)
    {
        int step = first + lane;
        mark(marks, older_row, 255);
        older_row = last_row;
        last_row = kept_row;
        kept_row = -1;
        if (lane >= count)
            return;
        notes.pivot[step] = kept_pivot;
        notes.order[step] = last_row;
        notes.step[last_row] = step;
        mark(marks, last_row, lane);
    }

    /* The chosen rows of M are L. */
    __device__ __forceinline__ void put_lower(const T *m, T *to, int count) const
    {
        __syncwarp();
#pragma unroll
        for (int turn = 0; turn < block * 4 / CUDA__WARP; turn++) {
            const int e = turn * CUDA__WARP + lane, q = e / 4,
                      row = __shfl_sync(CUDA__ALL, last_row, q);
            vector piece = {};
            if (q < count)
                piece = *(const vector *)(m + row * block + cuda__lu_turned(row, e % 4) * width);
#pragma unroll
            for (int v = 0; v < width; v++)
                to[q * block + cuda__lu_factor_step<T>(e % 4, v)] = ((const T *)&piece)[v];
        }
    }

    /* The panel's steps from number First on, but for the last: each half or quarter by code of its
     * own, which leaves out the pieces of rows that are done with. More code would not stay in the
     * instruction cache. */
    template <int First>
    __device__ __forceinline__ void take_steps(int last, int &chosen, T (&inverse)[rows], T *m)
    {
        constexpr int pieces = 4 - First / width, next = First + (rows <= 4 ? 1 : 2) * width;
#pragma unroll 1
        for (int k = First; k < (next < last ? next : last); k++) {
            T *line = notes.line[k & 1], by[rows];
            show<pieces>(chosen, inverse, line);
            choose(chosen, line, by);
            unsigned best = eliminate<pieces>(by, inverse, line);
            put(k, by, m);
            keep(k, chosen, line);
            chosen = found(best, inverse);
        }
        if constexpr (next < block)
            take_steps<next>(last, chosen, inverse, m);
    }

    /* Eliminates panel number p, which is at `from`, or what there is of it. m: its M, which may be
     * at the same place. */
    __device__ __forceinline__ void run(int p, const T *from, T *m)
    {
        T inverse[rows], by[rows];
        int first = p * block, count = n - first < block ? n - first : block;
        read(from);
        int chosen = found(seek(inverse), inverse), last = count - 1;
        take_steps<0>(last, chosen, inverse, m);
        show<1>(chosen, inverse, notes.line[last & 1]);
        choose(chosen, notes.line[last & 1], by);
        put(last, by, m);
        keep(last, chosen, notes.line[last & 1]);
        note(notes.marks[p & 1], first, count);
#pragma unroll 1
        for (int k = count; k < block; k++) {
            const T none[rows] = {};
            put(k, none, m);
        }
        put_lower(m, notes.lower[p & 1], count);
    }
};

#endif
