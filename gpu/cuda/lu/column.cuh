/* gpu/cuda/lu/column.cuh: a panel of columns is eliminated by one warp, for an inverse, while the
 * other warps of the block do something else (strip.cuh).
 *
 * A lane has the rows lane, lane + 32, ... of the panel in registers. Step k takes the largest
 * magnitude of the panel's column k among the rows not chosen yet: numbers are distinguished by
 * their leading 13 bits of fraction in FP64 and 16 in FP32 (15 beyond 256 rows), and of equal ones
 * the first row is taken. So one reduction over keys that end in the row's number finds it.
 * Reciprocals are had meanwhile, because that takes as long. The lane of the chosen row puts it
 * into shared memory for all; other rows are eliminated, and the step's column becomes the
 * multipliers. Chosen rows are not divided by their pivots.
 *
 * The step's column is always a row's first register, and the others move down by one as they are
 * updated, so that all steps run the same code; after `block` of them every column is back.
 *
 * Cost: a step is a chain of a reduction, or a reciprocal, and a row through shared memory; besides
 * it go block multiplications and additions a row. Some 500 cycles on an H200, 2026-11-21, for n =
 * 128 in FP64, where a lane has four rows.
 */
#ifndef GPU_CUDA_LU_COLUMN_CUH
#define GPU_CUDA_LU_COLUMN_CUH

#include "gpu/cuda/lu/panel.cuh"

/* A row of a panel is four pieces of 16 bytes, in shared memory in an order that keeps both lanes
 * with eight rows and lanes with two rows apart: piece t of row g is at: */
static __device__ __forceinline__ int cuda__lu_turned(int row, int piece)
{
    return piece ^ (row >> 1 & 3);
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

    /* Calls f(numbers, place in memory) for each piece of the lane's rows. */
    template <typename F> __device__ __forceinline__ void each(T *m, F f)
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
            int row = r * CUDA__WARP + lane;
#pragma unroll
            for (int p = 0; p < 4; p++) {
                if (r + 1 < rows || Order % CUDA__WARP == 0 || row < Order)
                    f(&a[r][p * width], m + row * block + cuda__lu_turned(lane, p) * width);
            }
        }
    }

    __device__ __forceinline__ void read(T *m)
    {
#pragma unroll
        for (int e = 0; e < rows * block; e++)
            a[e / block][e % block] = 0;
        each(m, [](T *x, const T *from) {
            vector piece = *(const vector *)from;
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] = ((const T *)&piece)[v];
        });
    }

    __device__ __forceinline__ void write(T *m)
    {
        each(m, [](const T *x, T *to) {
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&piece)[v] = x[v];
            *(vector *)to = piece;
        });
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

    /* The chosen row and what belongs to it, for all lanes. */
    __device__ __forceinline__ void show(int chosen, const T (&inverse)[rows], int turn) const
    {
        cuda__address line = cuda__address_of(notes.line[turn]);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            alignas(16) T last[width] = {inverse[r]};
            int group = chosen / CUDA__WARP;
            cuda__keep(group); /* or a[group] would be taken, and a would be in memory */
            if (rows > 2 && group != r)
                continue;
#pragma unroll
            for (int j = 0; j < block; j += width)
                cuda__store_if(self, line + j * (int)sizeof(T), &a[r][j]);
            cuda__store_if(self, line + block * (int)sizeof(T), last);
        }
        __syncwarp();
    }

    /* The row is eliminated from the others. Before the columns behind the next step's that one's
     * search begins: the two go on side by side. Returns what it found. */
    __device__ __forceinline__ unsigned eliminate(int chosen, T (&inverse)[rows], int turn,
                                                  bool more)
    {
        const T *line = notes.line[turn];
        T m[rows], by = line[block];
        unsigned best = 0;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            m[r] = self ? T(0) : a[r][0] * by;
            live &= self ? ~(1u << r) : ~0u;
        }
#pragma unroll
        for (int j = 0; j < block; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = j == 0; v < width; v++) {
#pragma unroll
                for (int r = 0; r < rows; r++)
                    a[r][j + v - 1] = fma(m[r], ((const T *)&piece)[v], a[r][j + v]);
                if (more && j + v == 1)
                    best = seek(inverse);
            }
        }
#pragma unroll
        for (int r = 0; r < rows; r++)
            a[r][block - 1] = m[r];
        return best;
    }

    /* What lane k keeps of the panel's step k until all of them are done. */
    __device__ __forceinline__ void keep(int k, int chosen, int turn)
    {
        bool own = lane == k;
        kept_row = own ? chosen : kept_row;
        kept_pivot = own ? notes.line[turn][0] : kept_pivot;
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

    /* After `count` steps every column goes back to its place. */
    __device__ __forceinline__ void turn_back(int count)
    {
#pragma unroll 1
        for (int k = count; k < block; k++) {
#pragma unroll
            for (int r = 0; r < rows; r++) {
                T first = a[r][0];
#pragma unroll
                for (int j = 1; j < block; j++)
                    a[r][j - 1] = a[r][j];
                a[r][block - 1] = first;
            }
        }
    }

    /* The panel at column `first`, or what there is of it, is replaced by M. */
    __device__ __forceinline__ void run(T *m, cuda__lu_marks<Order> *marks, int first)
    {
        int count = n - first < block ? n - first : block;
        read(m);
        T inverse[rows];
        int chosen = found(seek(inverse), inverse), last = count - 1;
#pragma unroll 1
        for (int k = 0; k < last; k++) {
            show(chosen, inverse, k & 1);
            unsigned best = eliminate(chosen, inverse, k & 1, true);
            keep(k, chosen, k & 1);
            chosen = found(best, inverse);
        }
        show(chosen, inverse, last & 1);
        eliminate(chosen, inverse, last & 1, false);
        keep(last, chosen, last & 1);
        note(marks, first, count);
        turn_back(count);
        write(m);
    }
};

#endif
