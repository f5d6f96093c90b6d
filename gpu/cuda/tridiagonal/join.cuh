/* gpu/cuda/tridiagonal/join.cuh: the merging levels above chunks of rows (merge.cuh), by as many
 * blocks of threads as there are chunks, without a word between them.
 *
 * A level needs of the blocks it merges only the corners, their first and last rows. So each block
 * of threads merges the corners of all chunks, a corner a thread, and its own chunk's rows next to
 * them, a row a thread. That does the corners' work once a chunk; it is small.
 *
 * Cost: two barriers and some 200 instructions a warp and level. Device code; all threads of the
 * block, together.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_JOIN_CUH
#define GPU_CUDA_TRIDIAGONAL_JOIN_CUH

#include "gpu/cuda/tridiagonal/merge.cuh"

/* Chunks that have two corners a thread of a block. */
static inline __host__ __device__ bool cuda__tri_joins(int variant, int64_t chunks, int threads)
{
    return variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON && chunks <= threads / 2;
}

template <int Threads> struct cuda__tri_joiner {
    static constexpr int warps = Threads / CUDA__WARP;

    cuda__tri_band<Threads> *splits; /* before chunk c: at c, `middle` the sign */
    typename cuda__tri_chunk_merger<Threads>::shared *memory;
    cuda__tri_part part;
    int64_t n, number, chunk;
    bool keeps; /* the levels */

    struct factors {
        double x, y;
    };

    /* The merger of a corner, by corners. */
    struct place {
        int top, split, bottom;
        bool merges, upper;
    };

    __device__ __forceinline__ int corners() const
    {
        return 2 * (int)number;
    }

    __device__ __forceinline__ place merger_of(int corner, int half) const
    {
        int top = corner & ~(2 * half - 1), split = top + half;
        int end = top + 2 * half < corners() ? top + 2 * half : corners();
        return {top, split, end - 1, split < corners(), corner < split};
    }

    __device__ __forceinline__ int64_t row_of(int corner) const
    {
        int64_t begin = (int64_t)(corner / 2) * Threads;
        int64_t end = begin + Threads < n ? begin + Threads : n;
        return corner % 2 == 0 ? begin : end - 1;
    }

    __device__ __forceinline__ cuda__tri_border fetch(int64_t i) const
    {
        return {part.array(CUDA__TRI_FIRST_ROW)[i], part.array(CUDA__TRI_LAST_ROW)[i],
                part.array(CUDA__TRI_FIRST_COLUMN)[i], part.array(CUDA__TRI_LAST_COLUMN)[i],
                part.array(CUDA__TRI_CHUNK_MERGED)[i]};
    }

    __device__ __forceinline__ void fetch_splits() const
    {
        int c = threadIdx.x;
        if (c < 1 || c >= number)
            return;
        int64_t h = (int64_t)c * Threads - 1;
        double sign = cuda__tri_split(part.middle()[h], part.middle()[h + 1], part.sub()[h + 1],
                                      part.sup()[h]);
        splits->middle[c] = sign;
        splits->sub[c] = sign * part.sub()[h + 1];
        splits->sup[c] = part.sup()[h];
    }

    /* What a merger takes from a row. */
    __device__ __forceinline__ factors find_factors(const place &at,
                                                    const cuda__tri_border &of) const
    {
        int c = at.split / 2;
        double sign = splits->middle[c], below = splits->sub[c], right = splits->sup[c];
        double divisor =
            1 + below * memory->merged[at.split - 1] + sign * right * memory->merged[at.split];
        return {(at.upper ? of.last_column : sign * of.first_column) / divisor,
                at.upper ? below * of.last_row : right * of.first_row};
    }

    __device__ __forceinline__ void subtract(const place &at, const factors &f,
                                             cuda__tri_border *of) const
    {
        bool upper = at.upper;
        of->merged -= f.x * f.y;
        of->first_row = (upper ? of->first_row : 0) - memory->column[at.top] * f.y;
        of->last_row = (upper ? 0 : of->last_row) - memory->column[at.bottom] * f.y;
        of->first_column = (upper ? of->first_column : 0) - memory->row[at.top] * f.x;
        of->last_column = (upper ? 0 : of->last_column) - memory->row[at.bottom] * f.x;
    }

    /* The largest column and row of each merger of chunks, as bits. */
    __device__ __forceinline__ unsigned long long *largest_column() const
    {
        return (unsigned long long *)part.array(CUDA__TRI_LARGEST);
    }
    __device__ __forceinline__ unsigned long long *largest_row() const
    {
        return largest_column() + part.pitch / 2;
    }

    /* Levels above chunks. */
    __device__ __forceinline__ int levels() const
    {
        int levels = 0;
        while (INT64_C(1) << levels < number)
            levels++;
        return levels;
    }

    /* Before a kernel that runs. */
    __device__ __forceinline__ void prepare() const
    {
        if ((int)threadIdx.x < levels())
            largest_column()[threadIdx.x * number + chunk] =
                largest_row()[threadIdx.x * number + chunk] = 0;
    }

    /* Shares a row's factors of a level within the block. */
    __device__ __forceinline__ void enlarge(int level, const factors &f) const
    {
        struct {
            unsigned long long column, row;
        } size = {(unsigned long long)__double_as_longlong(fabs(f.x)),
                  (unsigned long long)__double_as_longlong(fabs(f.y))};
        for (int step = CUDA__WARP / 2; step > 0; step /= 2) {
            auto other = cuda__block<Threads>::shuffle(size, threadIdx.x % CUDA__WARP ^ step);
            size.column = other.column > size.column ? other.column : size.column;
            size.row = other.row > size.row ? other.row : size.row;
        }
        if (threadIdx.x % CUDA__WARP != 0)
            return;
        atomicMax((unsigned long long *)&memory->largest[0][level], size.column);
        atomicMax((unsigned long long *)&memory->largest[1][level], size.row);
    }

    /* All levels. Returns by how much the diagonal of this thread's row differs from the two
     * sweeps'. */
    __device__ __forceinline__ double run() const
    {
        static_assert(Threads / 2 <= 1 << warps, "there is room for the largest of each level");
        const int t = threadIdx.x, within = __ffs(Threads) - 1;
        const int64_t i = chunk * Threads + t;
        const bool in = i < n;
        cuda__tri_border mine = {0, 0, 0, 0, 0}, corner = {0, 0, 0, 0, 0};
        if (in)
            mine = fetch(i);
        if (t < corners())
            corner = fetch(row_of(t));
        fetch_splits();
        if (t < warps)
            memory->largest[0][t] = memory->largest[1][t] = 0;
        int level = 0;
        for (int half = 2; half < corners(); half *= 2, level++) {
            place at = merger_of(t, half), here = merger_of(2 * (int)chunk, half);
            factors f = {0, 0}, g = {0, 0};
            memory->merged[t] = corner.merged;
            __syncthreads();
            if (at.merges)
                f = find_factors(at, corner);
            if (here.merges && in)
                g = find_factors(here, mine);
            memory->column[t] = f.x;
            memory->row[t] = f.y;
            if (keeps && in) {
                part.column(within + level)[i] = g.x;
                part.row(within + level)[i] = g.y;
            }
            enlarge(level, g);
            __syncthreads();
            if (at.merges)
                subtract(at, f, &corner);
            if (here.merges && in)
                subtract(here, g, &mine);
        }
        __syncthreads();
        if (t < level) {
            int64_t slot = t * number + (chunk >> (t + 1));
            atomicMax(&largest_column()[slot],
                      (unsigned long long)__double_as_longlong(memory->largest[0][t]));
            atomicMax(&largest_row()[slot],
                      (unsigned long long)__double_as_longlong(memory->largest[1][t]));
        }
        if (!in)
            return 0;
        part.merged()[i] = mine.merged;
        return fabs(mine.merged - part.diagonal()[i]);
    }

    /* After all chunks: the largest product of a column and a row that this thread knows of. */
    __device__ __forceinline__ double growth() const
    {
        const volatile unsigned long long *columns = largest_column(), *rows = largest_row();
        double largest = 0;
        for (int64_t i = threadIdx.x; i < levels() * number; i += Threads) {
            double product = __longlong_as_double((long long)columns[i]) *
                             __longlong_as_double((long long)rows[i]);
            largest = product <= largest || isnan(largest) ? largest : product;
        }
        return largest;
    }
};

#endif
