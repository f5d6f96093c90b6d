/* gpu/cuda/lu_small/inverse_rows.cuh: the inverse by block Gauss-Jordan elimination with partial
 * pivoting, whole rows a lane.
 *
 * A panel of `Block` columns is eliminated in place. Each step picks the largest entry of a column
 * among the rows not yet chosen, sends that row's part in the panel through shared memory to the
 * matrix's lanes, and eliminates. Rows are never moved: row r, chosen in step k, ends as row k of
 * the inverse, and its entry j belongs in the column numbered as the row chosen in step j. Rows are
 * not scaled by their pivots until the end.
 *
 * The other columns follow when the panel is done, by the two factors of the panel's steps. M (n x
 * Block): how much of the row that a step chose it adds to each row; zero for that row itself. Y
 * (Block x n): the chosen rows, each as it is in its own step. With R, what the chosen rows were
 * before the panel, and L, their rows of M:
 *
 *   Y_k = R_k + sum over q < k of L_kq Y_q
 *   C_i = C_i + sum over q of M_iq Y_q
 *
 * These are the operations of elimination one step at a time, on each entry in the same order, so
 * the panels' width changes no number. In units of n |A| |X| eps it leaves less than 0.3 of I - X A
 * and, as LAPACK's getri does, less than 1 of I - A X, but for one matrix of random singular
 * vectors in a thousand. The product (M L^-1) R in place of M Y spoils I - A X by up to the
 * condition number: M is large behind a small pivot, and L^-1 R, which is small there, is then a
 * difference of terms that are not. On both residuals of Gauss-Jordan elimination: N. J. Higham,
 * "Accuracy and Stability of Numerical Algorithms" (2002), section 14.4.
 *
 * The matrix's lanes share out the columns of Y, which takes the place of R in shared memory; where
 * a panel has two columns, each lane computes what it needs. M takes the panel's place. The panel's
 * own columns begin as those of the identity.
 *
 * Where A = A^T, to the bit, the answer is the mean of X and X^T: I - X^T A is (I - A X)^T, so its
 * residual is the mean of both of X, and it is checked at every order. A matrix that is not
 * symmetric costs a look at one column and one row.
 *
 * Where the matrix is one panel all its steps run the same code, in place: the step's column is
 * always the first register, and the row moves down by one as it is updated, so that in the end
 * every column is back in its place. Panels run the same code where `Rolled` (they must then divide
 * N).
 */
#ifndef GPU_CUDA_LU_SMALL_INVERSE_ROWS_CUH
#define GPU_CUDA_LU_SMALL_INVERSE_ROWS_CUH

#include "gpu/cuda/lu_small/inverse_layout.cuh"
#include "gpu/cuda/lu_small/lu_small.h"
#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/lu_small/rounds.cuh"
#include "gpu/cuda/base/check.cuh"

/* ---- Zero pivots ---- */

/* Whether a zero pivot of inverse_rows.cuh is in doubt. A pivot is chosen there by leading bits,
 * of which numbers at the lower end of the range have none: they count as zeros. Device code;
 * all lanes of the warp call, where one of its matrices met a zero pivot.
 */

/* May a product of numbers of the lane's matrix, a, that the column of the zero met in step `step`
 * was made of have come near the lower end of the range? A step before it multiplies by a quotient
 * of two of them. Sums that cancel are allowed for. A call by itself, lest it costs the kernel
 * registers, which are short. */
template <typename T, typename Shape>
static __device__ __noinline__ bool cuda__hides_numbers(Shape lane, const T *a, int step)
{
    typedef cuda__real<T> real;
    constexpr int min_place = sizeof(T) == sizeof(float) ? -90 : -900;
    constexpr int bias = sizeof(T) == sizeof(float) ? 127 : 1023;
    constexpr int rest = sizeof(T) == sizeof(float) ? 23 : 20; /* bits behind the exponent */
    constexpr int numbers = Shape::n * Shape::n;
    T least = real::largest, largest = 0;
    for (int e = lane.share(numbers); e < numbers; e += Shape::lanes) {
        T size = fabs(a[e]);
        least = size > 0 && size < least ? size : least;
        largest = size > largest ? size : largest;
    }
    least = -lane.max(-least);
    largest = lane.max(largest);
    const int low = (int)(real::lead(least) >> rest) - bias;
    const int high = (int)(real::lead(largest) >> rest) - bias;
    return low + (step - 1) * (low - high) < min_place;
}

/* INFO of the lane's matrix, unverified where it reports a zero pivot that may be none. */
template <typename T, typename Shape>
static __device__ __forceinline__ int cuda__unverified_zero(const Shape &lane,
                                                            const cuda__place<T> &place, int info)
{
    const bool met_zero = info > 0 && info <= Shape::n;
    if (!__any_sync(CUDA__ALL, met_zero))
        return info;
    const bool hides = cuda__hides_numbers(lane, cuda__shuffle_pointer(place.a, lane.matrix), info);
    return info + (met_zero && hides ? CUDA_INFO_UNVERIFIED : 0);
}

/* ---- Symmetric matrices ---- */

/* Of matrices in shared memory, rows `line` apart; all lanes of the warp call. Calls by themselves,
 * as above: most matrices are not symmetric. */

/* Is the lane's matrix symmetric to the bit, if `perhaps`? */
template <typename T, typename Shape>
static __device__ __noinline__ bool cuda__is_symmetric(Shape lane, const T *a, int line,
                                                       bool perhaps)
{
    bool differs = false;
    for (int e = lane.share(Shape::n * Shape::n); e < Shape::n * Shape::n; e += Shape::lanes)
        differs = differs ||
                  !(a[e / Shape::n * line + e % Shape::n] == a[e % Shape::n * line + e / Shape::n]);
    return lane.votes(differs) == 0 && perhaps;
}

/* X = (X + X^T) / 2 where `wanted`; returns the 1-norm of X then, `norm` of others. */
template <typename T, typename Shape>
static __device__ __noinline__ T cuda__make_symmetric(Shape lane, T *x, int line, bool wanted,
                                                      T norm)
{
    for (int e = lane.share(Shape::n * Shape::n); e < Shape::n * Shape::n; e += Shape::lanes) {
        const int i = e / Shape::n, j = e % Shape::n;
        if (j < i && wanted)
            x[i * line + j] = x[j * line + i] = cuda__mean(x[i * line + j], x[j * line + i]);
    }
    __syncwarp();
    T largest = 0;
    for (int j = lane.share(Shape::n); j < Shape::n; j += Shape::lanes) {
        T sum = 0;
        for (int i = 0; i < Shape::n; i++)
            sum += fabs(x[i * line + j]);
        largest = sum > largest ? sum : largest;
    }
    largest = lane.max(largest);
    return wanted ? largest : norm;
}

/* What the lanes of one matrix share. Padded so that the matrices of neighbouring lanes
 * are in different banks. */
template <typename T, int N, int Block> struct cuda__inverse_notes {
    static constexpr int width = cuda__real<T>::width;
    static constexpr int panel = Block < N ? Block : N;
    /* The chosen row in the panel, of two steps. */
    alignas(16) T line[2][(panel + width - 1) / width * width];
    T pivot[N]; /* of each step */
    /* A times the factor times the vector of signs: entry by entry, then by each row's step. Below
     * CUDA_CHECKED_N_MIN of symmetric matrices alone, and entry by entry. */
    alignas(16) T product[(N + width - 1) / width * width];
    T norm, factor; /* of A times the factor, a power of two */
    int info;       /* -1, 0, or 1: A is symmetric to the bit, and its inverse shall be */
    int order[N];   /* of each step, its row */
};

template <typename T, int N, int Rows, int Block> struct cuda__inverse_shared {
    typedef cuda__inverse_layout<T, N, Rows, Block> layout;
    typedef typename layout::shape shape;
    typedef cuda__inverse_notes<T, N, Block> notes;
    static constexpr int pieces = (int)sizeof(notes) / 16;
    struct alignas(16) padded {
        notes of;
        unsigned char padding[16 * (1 + pieces % 2)];
    };
    alignas(16) T stage[layout::places];
    padded matrix[shape::held];
};

template <typename T, int N, int Rows, int Block> struct cuda__inverse_rows {
    typedef T number;
    typedef cuda__inverse_shared<T, N, Rows, Block> shared;
    typedef typename shared::layout layout;
    typedef typename shared::notes notes;
    typedef typename layout::shape shape;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width;
    static constexpr int old_line = layout::old_line;
    static constexpr int dead = (int)0x80000000;
    static constexpr int beyond = dead | 64; /* the tag of rows past the matrix */
    static constexpr int numbers = 31;       /* bits of a tag that hold a number */
    static constexpr bool checked = N >= CUDA_CHECKED_N_MIN;
    static_assert(Block >= N || Block % width == 0, "panels begin at 16 bytes");
    /* Sums of columns: of a lane at first, and in the end, when the lanes share them. */
    static constexpr bool halved = (shape::lanes & (shape::lanes - 1)) == 0;
    static constexpr int sums_left = (N + shape::lanes - 1) / shape::lanes;
    static constexpr int sums_kept = halved ? sums_left * shape::lanes : N;

    shape lane;
    notes *note;  /* of the lane's matrix */
    T *stage;     /* its part of shared memory while it is worked on */
    T *io;        /* where it is copied to, and its inverse from */
    T b[Rows][N]; /* the lane's rows */
    /* Of a row not chosen yet its number, then when it was, the sign bit set; `beyond` past N. */
    int tag[Rows];
    bool chosen[Rows]; /* just now; at most one. An index would tempt the compiler to use it */
    /* The answer's. */
    int info;
    T rcond;

    __device__ __forceinline__ int row(int s) const
    {
        return s * shape::lanes + lane.member;
    }

    __device__ __forceinline__ bool inside(int s) const
    {
        return lane.has(row(s));
    }

    __device__ __forceinline__ void read()
    {
        if constexpr (layout::whole) {
#pragma unroll
            for (int e = 0; e < N * N; e += width) {
                vector piece = *(const vector *)(io + e);
#pragma unroll
                for (int v = 0; v < width; v++)
                    b[(e + v) / N][(e + v) % N] = ((const T *)&piece)[v];
            }
        } else {
#pragma unroll
            for (int s = 0; s < Rows; s++) {
                const T *from = inside(s) ? io + row(s) * layout::line : io;
#pragma unroll
                for (int j = 0; j < N; j += layout::grain)
                    cuda__take<layout::grain>(&b[s][j], from + j);
#pragma unroll
                for (int j = 0; j < N; j++)
                    b[s][j] = inside(s) ? b[s][j] : T(0);
            }
        }
    }

    /* A's first column and its first row exclude most matrices. */
    __device__ __forceinline__ bool is_symmetric() const
    {
        bool differs = false;
#pragma unroll
        for (int s = 0; s < Rows; s++)
            differs = differs || (inside(s) && !(b[s][0] == io[row(s)]));
        const bool perhaps = lane.votes(differs) == 0;
        if (!__any_sync(CUDA__ALL, perhaps))
            return false;
        return cuda__is_symmetric(lane, io, layout::line, perhaps);
    }

    /* The largest sum of magnitudes of a column, times `by`; whether all sums are finite. */
    template <bool Scaled> __device__ __forceinline__ T column_norm(T by, bool &finite)
    {
        T sums[sums_kept], largest = 0;
        finite = true;
#pragma unroll
        for (int j = 0; j < sums_kept; j++) {
            sums[j] = 0;
#pragma unroll
            for (int s = 0; s < Rows && j < N; s++)
                sums[j] += fabs(Scaled ? b[s][j < N ? j : 0] * by : b[s][j < N ? j : 0]);
        }
        if (halved)
            halve_sums<shape::lanes / 2, sums_kept / 2>(sums);
        else
            share_sums(sums);
#pragma unroll
        for (int j = 0; j < sums_left; j++) {
            finite = finite && sums[j] <= real::largest;
            largest = sums[j] > largest ? sums[j] : largest;
        }
        finite = lane.votes(!finite) == 0;
        return lane.max(largest);
    }

    /* Each lane of two gives the other half of its sums, and so on: a share of the sums is left. */
    template <int Reach, int Half> __device__ __forceinline__ void halve_sums(T (&sums)[sums_kept])
    {
        if constexpr (Reach > 0) {
            bool upper = (lane.member & Reach) != 0;
#pragma unroll
            for (int j = 0; j < Half; j++) {
                T given = upper ? sums[j] : sums[j + Half];
                T kept = upper ? sums[j + Half] : sums[j];
                sums[j] = kept + __shfl_xor_sync(CUDA__ALL, given, Reach);
            }
            halve_sums<Reach / 2, Half / 2>(sums);
        }
    }

    /* The same through shared memory, for any number of lanes. */
    __device__ __forceinline__ void share_sums(T (&sums)[sums_kept])
    {
        constexpr int line = layout::sum_line;
        __syncwarp();
#pragma unroll
        for (int j = 0; j < N; j += width) {
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&piece)[v] = j + v < N ? sums[j + v < N ? j + v : 0] : T(0);
            if (!lane.spare())
                *(vector *)(stage + lane.member * line + j) = piece;
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < sums_left; j++) {
            int column = j * shape::lanes + lane.member;
            column = N % shape::lanes == 0 || column < N ? column : 0;
            sums[j] = 0;
#pragma unroll
            for (int q = 0; q < shape::lanes; q++)
                sums[j] += stage[q * line + column];
        }
        __syncwarp();
    }

    __device__ __forceinline__ void start()
    {
        const bool symmetric = is_symmetric(); /* before sums take the place of A */
        bool finite;
        T norm = column_norm<false>(1, finite), factor = 1;
        int known = 0;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            tag[s] = inside(s) ? row(s) : beyond;
            chosen[s] = false;
        }
        bool usual = finite && norm < real::huge && (norm >= real::tiny || norm == 0);
        if (!__all_sync(CUDA__ALL, usual))
            start_unusual(norm, factor, known);
        if (lane.speaks()) {
            note->norm = norm;
            note->factor = factor;
            note->info = known < 0 ? known : symmetric;
        }
        if (checked || __any_sync(CUDA__ALL, symmetric))
            multiply_signs();
    }

    __device__ __forceinline__ void multiply_signs()
    {
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            T sums[2] = {0, 0};
#pragma unroll
            for (int j = 0; j < N; j++)
                sums[j % 2] += cuda__negative(j) ? -b[s][j] : b[s][j];
            if (inside(s))
                note->product[row(s)] = sums[0] + sums[1];
        }
    }

    /* Something is not finite, or some norm is far from 1. */
    __device__ __forceinline__ void start_unusual(T &norm, T &factor, int &known)
    {
        bool finite;
        T lowered = column_norm<true>(real::lower, finite);
        known = finite ? 0 : -1;
        if (lowered >= real::huge * real::lower)
            factor = real::lower;
        else if (norm < real::tiny && norm > 0)
            factor = real::raise;
        norm = factor == real::lower ? lowered : norm * factor;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                b[s][j] *= factor;
        }
    }

    /* Chooses the row for the column in register First: the largest magnitude, but for the last
     * bits of its leading word, which distinguish the rows. */
    template <int First> __device__ __forceinline__ void choose()
    {
        int key[Rows], largest = dead;
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            key[s] = (real::lead(b[s][First]) & (0x7fffffff - numbers)) | tag[s];
            largest = key[s] > largest ? key[s] : largest;
        }
        largest = lane.most_of(largest);
#pragma unroll
        for (int s = 0; s < Rows; s++)
            chosen[s] = !lane.spare() && key[s] == largest;
    }

    /* Says the lanes the chosen row's part in the panel. Turn by turn of the rows, for the
     * compiler makes branches of like predicates in a row. */
    template <int First, int Width> __device__ __forceinline__ void publish(T *line) const
    {
        cuda__address to = cuda__address_of(line);
#pragma unroll
        for (int j = 0; j < Width; j += width) {
#pragma unroll
            for (int s = 0; s < Rows; s++) {
                T piece[width];
#pragma unroll
                for (int v = 0; v < width; v++)
                    piece[v] = b[s][First + (j + v < Width ? j + v : Width - 1)];
                cuda__store_if(chosen[s], to + j * (int)sizeof(T), piece);
            }
        }
    }

    /* Step k: `line` is the chosen row's part in the panel, from the step's column, in register
     * First, on. Whole: the multipliers take the place of a column of the identity, which takes
     * part in the steps behind, and all columns move down by one. Else they stay where they are, as
     * M. */
    template <int First, int Width, bool Whole>
    __device__ __forceinline__ void eliminate(const T *line, int k)
    {
        constexpr int down = Whole ? 1 : 0, Second = First + (Width > 1 ? 1 : 0);
        T row[(Width + width - 1) / width * width], multiplier[Rows];
#pragma unroll
        for (int j = 0; j < Width; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = 0; v < width; v++)
                row[j + v] = ((const T *)&piece)[v];
        }
        T inverse = real::reciprocal(row[0]);
        if (lane.speaks())
            note->pivot[k] = row[0];
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            multiplier[s] = chosen[s] ? T(0) : -b[s][First] * inverse;
            tag[s] = chosen[s] ? k | dead : tag[s];
            if (Width > 1)
                b[s][Second - down] = fma(multiplier[s], row[Width > 1 ? 1 : 0], b[s][Second]);
        }
        /* The next row is sought while the rest of the step goes on. */
        if (Width > 1)
            choose<Second - down>();
#pragma unroll
        for (int j = 2; j < Width; j++) {
#pragma unroll
            for (int s = 0; s < Rows; s++)
                b[s][First + j - down] = fma(multiplier[s], row[j], b[s][First + j]);
        }
#pragma unroll
        for (int s = 0; s < Rows; s++)
            b[s][Whole ? First + Width - 1 : First] =
                Whole && tag[s] == (k | dead) ? T(1) : multiplier[s];
    }

    /* Of a row of the panel that began with step `first`, its step in the panel; others: large. */
    __device__ __forceinline__ unsigned panel_step(int s, int first) const
    {
        return (unsigned)tag[s] - (unsigned)(dead | first);
    }

    /* Puts the panel's rows where all lanes can read them: R, and in the panel's columns L. */
    template <int Width> __device__ __forceinline__ void spread(int first) const
    {
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            if (panel_step(s, first) >= (unsigned)Width)
                continue;
            T *to = stage + panel_step(s, first) * old_line;
#pragma unroll
            for (int j = 0; j < N; j += width) {
                vector piece;
#pragma unroll
                for (int v = 0; v < width; v++)
                    ((T *)&piece)[v] = b[s][j + v < N ? j + v : N - 1];
                *(vector *)(to + j) = piece;
            }
        }
    }

    /* Y takes the place of R. The matrix's lanes share out the columns, 16 bytes of a row each. */
    template <int First, int Width> __device__ __forceinline__ void solve() const
    {
        constexpr int pieces = shape::line_pieces;
#pragma unroll 1
        for (int p = lane.share(pieces); p < pieces; p += shape::lanes) {
            const T *lower = stage + First;
            T *to = stage + p * width, y[Width][width];
            if (p * width >= First && p * width < First + Width)
                continue;
#pragma unroll
            for (int k = 0; k < Width; k++) {
                vector piece = *(const vector *)(to + k * old_line);
#pragma unroll
                for (int v = 0; v < width; v++)
                    y[k][v] = ((const T *)&piece)[v];
                solve_step<Width>(k, lower + k * old_line, y);
            }
#pragma unroll
            for (int k = 1; k < Width; k++)
                *(vector *)(to + k * old_line) = vector_of(y[k]);
        }
    }

    /* Row k of y, less what L, of that row in l, takes from it. */
    template <int Width>
    static __device__ __forceinline__ void solve_step(int k, const T *l, T (&y)[Width][width])
    {
#pragma unroll
        for (int q = 0; q < k; q += width) {
            vector by = *(const vector *)(l + q);
#pragma unroll
            for (int e = 0; e < width * width; e++) {
                if (q + e / width < k)
                    y[k][e % width] = fma(((const T *)&by)[e / width], y[q + e / width][e % width],
                                          y[k][e % width]);
            }
        }
    }

    static __device__ __forceinline__ vector vector_of(const T (&x)[width])
    {
        vector piece;
#pragma unroll
        for (int v = 0; v < width; v++)
            ((T *)&piece)[v] = x[v];
        return piece;
    }

    /* Are columns of Y worth two turns through shared memory? */
    template <int Width> static constexpr bool shares_y = Width > 2;

    /* Column j of Y and the width - 1 next to it; l: of a panel of two columns L's only number. */
    template <int Width>
    __device__ __forceinline__ void take_y(int j, T l, T (&y)[Width][width]) const
    {
#pragma unroll
        for (int q = 0; q < Width; q++)
            cuda__take<width>(y[q], stage + q * old_line + j);
#pragma unroll
        for (int v = 0; v < width && Width == 2; v++)
            y[Width - 1][v] = fma(l, y[0][v], y[Width - 1][v]);
    }

    /* The panel's own columns, which begin as those of the identity: there Y is L^-1. */
    template <int First, int Width>
    __device__ __forceinline__ void renew(int first, const T (&m)[Rows][Width],
                                          T (&own)[Rows][Width]) const
    {
        T l[Width][Width] = {};
#pragma unroll
        for (int k = 1; k < Width; k++) {
#pragma unroll
            for (int q = 0; q < k; q += width) {
                vector piece = *(const vector *)(stage + k * old_line + First + q);
#pragma unroll
                for (int v = 0; v < width && q + v < k; v++)
                    l[k][q + v] = ((const T *)&piece)[v];
            }
        }
#pragma unroll
        for (int j = 0; j < Width; j++) {
            T y[Width];
#pragma unroll
            for (int s = 0; s < Rows; s++)
                own[s][j] = panel_step(s, first) == (unsigned)j ? T(1) : m[s][j];
#pragma unroll
            for (int k = j + 1; k < Width; k++) {
                y[k] = l[k][j];
#pragma unroll
                for (int q = j + 1; q < k; q++)
                    y[k] = fma(l[k][q], y[q], y[k]);
#pragma unroll
                for (int s = 0; s < Rows; s++)
                    own[s][j] = fma(m[s][k], y[k], own[s][j]);
            }
        }
    }

    /* Every column takes the panel's steps. Shifted: all columns move down by the panel's width,
     * and the panel to the end. */
    template <int First, int Width, bool Shifted> __device__ __forceinline__ void update(int first)
    {
        constexpr int down = Shifted ? Width : 0;
        T m[Rows][Width], own[Rows][Width], l = Width == 2 ? stage[old_line + First] : T(0);
#pragma unroll
        for (int s = 0; s < Rows; s++) {
#pragma unroll
            for (int q = 0; q < Width; q++)
                m[s][q] = b[s][First + q];
        }
#pragma unroll
        for (int j = 0; j < N; j += width) {
            T y[Width][width];
            if (j >= First && j < First + Width)
                continue;
            take_y<Width>(j, l, y);
#pragma unroll
            for (int s = 0; s < Rows; s++) {
#pragma unroll
                for (int v = 0; v < width && j + v < N; v++) {
                    T sum = b[s][j + v];
#pragma unroll
                    for (int q = 0; q < Width; q++)
                        sum = fma(m[s][q], y[q][v], sum);
                    b[s][j + v - down >= 0 ? j + v - down : 0] = sum;
                }
            }
        }
        renew<First, Width>(first, m, own);
#pragma unroll
        for (int s = 0; s < Rows; s++) {
#pragma unroll
            for (int q = 0; q < Width; q++)
                b[s][(Shifted ? N - Width : First) + q] = own[s][q];
        }
    }

    /* The steps from number Step of a panel on. */
    template <int First, int Width, int Step> __device__ __forceinline__ void take_steps(int first)
    {
        T *line = note->line[Step & 1];
        publish<First + Step, Width - Step>(line);
        __syncwarp();
        eliminate<First + Step, Width - Step, false>(line, first + Step);
        if constexpr (Step + 1 < Width)
            take_steps<First, Width, Step + 1>(first);
    }

    /* The panel in registers First and on, of the steps from `first` on. */
    template <int First, int Width, bool Shifted>
    __device__ __forceinline__ void eliminate_panel(int first)
    {
        choose<First>();
        if constexpr (Width < N) {
            take_steps<First, Width, 0>(first);
            spread<Width>(first);
            __syncwarp();
            if constexpr (shares_y<Width>) {
                solve<First, Width>();
                __syncwarp();
            }
            update<First, Width, Shifted>(first);
        } else {
#pragma unroll 1
            for (int k = 0; k < Width; k++) {
                T *line = note->line[k & 1];
                publish<First, Width>(line);
                __syncwarp();
                eliminate<First, Width, true>(line, k);
            }
        }
    }

    template <int First> __device__ __forceinline__ void invert_unrolled()
    {
        constexpr int Width = Block < N - First ? Block : N - First;
        eliminate_panel<First, Width, false>(First);
        if constexpr (First + Width < N)
            invert_unrolled<First + Width>();
    }

    template <bool Rolled> __device__ __forceinline__ void invert()
    {
        static_assert(!Rolled || N % Block == 0, "panels divide the matrix");
        if constexpr (Rolled) {
#pragma unroll 1
            for (int first = 0; first < N; first += Block)
                eliminate_panel<0, Block, true>(first);
        } else {
            invert_unrolled<0>();
        }
    }

    /* INFO, but for a singular inverse: the first step whose pivot is zero. */
    __device__ __forceinline__ int first_zero() const
    {
        int last = 0; /* N + 1 less the step's number from 1 */
#pragma unroll
        for (int k = 0; k < N; k += shape::lanes) {
            int step = k + lane.member;
            bool zero =
                (N % shape::lanes == 0 || step < N) && note->pivot[step < N ? step : 0] == 0;
            last = zero && N - step > last ? N - step : last;
        }
        last = lane.most_of(last);
        return note->info < 0 ? -1 : last ? N - last + 1 : 0;
    }

    /* Puts the inverse into shared memory in its final order; finds RCOND and INFO. */
    __device__ __forceinline__ void write()
    {
        T scale[Rows], sums[Rows], factor = note->factor;
        int step[Rows];
        bool finite;
        __syncwarp();
        info = first_zero();
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            step[s] = inside(s) ? tag[s] & ~dead : 0;
            scale[s] = real::reciprocal(note->pivot[step[s]]);
            sums[s] = checked && inside(s) ? note->product[checked ? row(s) : 0] : T(0);
            if (inside(s))
                note->order[step[s]] = row(s);
        }
        if (__any_sync(CUDA__ALL, factor != 1))
            scale_dd(scale, factor);
#pragma unroll
        for (int s = 0; s < Rows; s++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                b[s][j] = inside(s) ? b[s][j] * scale[s] : T(0);
        }
        if (checked)
            __syncwarp(); /* the product is read */
#pragma unroll
        for (int s = 0; s < Rows; s++) {
            if (checked && inside(s))
                note->product[checked ? step[s] : 0] = sums[s];
            sums[s] = 0;
        }
        __syncwarp(); /* order and product are written, the old rows are read */
        T error = checked ? check(step) : T(0);
        T norm = column_norm<false>(1, finite);
        if (!halved)
            __syncwarp();
#pragma unroll
        for (int j = 0; j < N; j++) {
            T *to = io + note->order[j];
#pragma unroll
            for (int s = 0; s < Rows; s++) {
                if (inside(s))
                    to[step[s] * layout::line] = b[s][j];
            }
        }
        bool spoilt = false;
        if (__any_sync(CUDA__ALL, note->info > 0)) {
            __syncwarp();
            norm = cuda__make_symmetric(lane, io, layout::line, note->info > 0, norm);
            spoilt = is_spoilt(norm);
        }
        rcond = finite && norm > 0 ? 1 / note->norm / norm * factor : T(0);
        int doubt = 0;
        if (checked)
            doubt = unverified(error, finite ? norm : real::nan());
        else if (info == 0 && !finite) /* the pivot had no reciprocal */
            doubt = CUDA_INFO_UNVERIFIED;
        if (spoilt && info == 0 && rcond >= real::eps)
            doubt = CUDA_INFO_UNVERIFIED;
        info = doubt ? doubt : info == 0 && !(rcond >= real::eps) ? N + 1 : info;
        /* Scaled down, a small pivot may have vanished. */
        if (info > 0 && info <= N && factor == real::lower)
            info += CUDA_INFO_UNVERIFIED;
        __syncwarp();
        if (__any_sync(CUDA__ALL, info != 0 && info <= N))
            refuse();
        rcond = info < 0 ? real::nan() : info > 0 && info <= N ? T(0) : rcond;
    }

    __device__ __forceinline__ void store_numbers(const shared &, const cuda__place<T> &place,
                                                  const cuda_batch &batch, int at) const
    {
        const int reported = cuda__await_scaling(cuda__unverified_zero(lane, place, info), N);
        cuda__store_numbers<T, shape>(place, reported, rcond, at, batch.unverified);
    }

    /* The largest entry, of the lane's, of X times the product less the vector of signs; NaN where
     * there is one. */
    __device__ __forceinline__ T check(const int (&step)[Rows]) const
    {
        T sums[Rows], factor = note->factor, largest = 0;
#pragma unroll
        for (int s = 0; s < Rows; s++)
            sums[s] = cuda__negatives >> step[s] & 1 ? factor : -factor;
#pragma unroll
        for (int j = 0; j < N; j += width) {
            vector piece = *(const vector *)(note->product + j);
#pragma unroll
            for (int v = 0; v < width && j + v < N; v++) {
#pragma unroll
                for (int s = 0; s < Rows; s++)
                    sums[s] = fma(b[s][j + v], ((const T *)&piece)[v], sums[s]);
            }
        }
#pragma unroll
        for (int s = 0; s < Rows; s++)
            largest =
                inside(s) && (fabs(sums[s]) > largest || isnan(sums[s])) ? fabs(sums[s]) : largest;
        return largest;
    }

    /* Of a symmetric A: has one side of X spoilt the mean? The check once more, of what is in
     * shared memory, at every order. */
    __device__ __forceinline__ bool is_spoilt(T norm) const
    {
        const T factor = note->factor, size = note->norm * norm / factor;
        const T allowed = cuda__mean_allowed(N, (T)cuda__root(N), size) * factor * real::eps;
        bool large = false;
#pragma unroll 1
        for (int i = lane.share(N); i < N; i += shape::lanes) {
            T sum = cuda__negatives >> i & 1 ? factor : -factor;
#pragma unroll 1
            for (int j = 0; j < N; j++)
                sum = fma(io[i * layout::line + (checked ? note->order[j] : j)], note->product[j],
                          sum);
            large = large || !(fabs(sum) <= allowed);
        }
        return lane.votes(large) != 0 && note->info > 0;
    }

    /* INFO of an inverse that growth may have spoilt, or 0. With errors of the size e in a row of
     * I - X A, the check's entry is near sqrt(n) e. norm: NaN where sums of X overflow, which need
     * not mean that X does. A zero pivot is believed where no pivot before it is far beyond A. */
    __device__ __forceinline__ int unverified(T error, T norm) const
    {
        constexpr T grown = 8; /* as the host's: below, LAPACK's bound holds */
        constexpr T unit = (T)cuda__root(N) * real::eps;
        bool doubt = !(error <= unit * note->norm * norm);
        if (__any_sync(CUDA__ALL, info != 0)) {
            bool beyond_a = false;
            for (int k = lane.member; k < N; k += shape::lanes)
                beyond_a = beyond_a || fabs(note->pivot[k]) > grown * note->norm;
            doubt = info < 0 ? false : info > 0 ? beyond_a : doubt;
        }
        return lane.votes(doubt) ? CUDA_INFO_UNVERIFIED + (info > 0 ? info : 0) : 0;
    }

    /* The scaling of A is undone in an order that cannot leave the range midway. */
    __device__ __forceinline__ void scale_dd(T (&scale)[Rows], T factor)
    {
#pragma unroll
        for (int s = 0; s < Rows; s++) {
#pragma unroll
            for (int j = 0; j < N; j++)
                b[s][j] *= scale[s];
            scale[s] = factor;
        }
    }

    __device__ __forceinline__ void refuse()
    {
        for (int e = lane.share(N * layout::line); e < N * layout::line; e += shape::lanes) {
            if (info != 0 && info <= N)
                io[e] = real::nan();
        }
        __syncwarp();
    }
};

template <typename T, int N, int Rows, int Block, bool Rolled, int Warps, int Blocks>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, Blocks)
    cuda__inverse_rows_kernel(const cuda_batch batch)
{
    typedef cuda__inverse_rows<T, N, Rows, Block> work;
    cuda__rounds<work, Warps>(batch, [](work &matrices) {
        matrices.start();
        matrices.template invert<Rolled>();
    });
}

#endif
