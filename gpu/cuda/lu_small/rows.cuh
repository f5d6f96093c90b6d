/* gpu/cuda/lu_small/rows.cuh: how a warp holds several small matrices in registers, whole rows a
 * lane.
 *
 * `Rows` rows a lane decide how many matrices a warp holds, and these share out all its lanes: one
 * has more than it needs where that costs no matrix, for sums over 8 or 16 lanes are cheaper than
 * over 7 or 15. Lanes that are left over repeat what the last lane of the last matrix reads. Rows
 * past N are never chosen as pivots. Lines through shared memory are broadcasts: a lane with many
 * rows makes good use of one.
 */
#ifndef GPU_CUDA_LU_SMALL_ROWS_CUH
#define GPU_CUDA_LU_SMALL_ROWS_CUH

#include "gpu/cuda/base/stage.cuh"

/* Trips of a warp's access to shared memory, for layouts: lane k touches `bytes` bytes at
 * address[k]. */
static constexpr int cuda__trips(const int (&address)[CUDA__WARP], int bytes)
{
    int phase = bytes * CUDA__WARP > 128 ? 128 / bytes : CUDA__WARP, trips = 0;
    for (int first = 0; first < CUDA__WARP; first += phase) {
        int load[CUDA__WARP] = {}, worst = 0;
        for (int i = first; i < first + phase; i++) {
            bool repeated = false;
            for (int k = first; k < i; k++)
                repeated = repeated || address[k] == address[i];
            int bank = address[i] / bytes % phase;
            load[bank] += repeated ? 0 : 1;
            worst = load[bank] > worst ? load[bank] : worst;
        }
        trips += worst;
    }
    return trips;
}

/* `Count` numbers at once, from an address that is a multiple of their size. */
template <int Count, typename T>
static __device__ __forceinline__ void cuda__take(T *to, const T *from)
{
    if constexpr (Count == 1) {
        *to = *from;
    } else {
        struct alignas(Count * sizeof(T)) {
            T numbers[Count];
        } piece = *(const decltype(piece) *)from;
#pragma unroll
        for (int v = 0; v < Count; v++)
            to[v] = piece.numbers[v];
    }
}

template <typename T, int N, int RowsALane> struct cuda__rows {
    static constexpr int n = N;
    static constexpr int rows = RowsALane;
    static constexpr int held = CUDA__WARP / ((N + RowsALane - 1) / RowsALane);
    static constexpr int lanes = CUDA__WARP / held;
    static constexpr int width = cuda__real<T>::width;
    static_assert(held > 0, "a matrix fits a warp");

    static constexpr int reductions_max = 3;

    static constexpr int line_pieces = (N + width - 1) / width; /* 16 bytes each, of a row */

    /* The lane's part. */
    int matrix; /* in the warp */
    int member; /* among the lanes of the matrix */
    int base;   /* the matrix's first lane */

    static __device__ __forceinline__ cuda__rows make(int lane)
    {
        cuda__rows self;
        self.matrix = lane / lanes < held ? lane / lanes : held - 1;
        self.base = self.matrix * lanes;
        self.member = lane - self.base < lanes ? lane - self.base : lanes - 1;
        return self;
    }

    /* Does the lane only repeat another? It then writes nothing. */
    __device__ __forceinline__ bool spare() const
    {
        return CUDA__WARP % lanes != 0 && (int)threadIdx.x % CUDA__WARP != base + member;
    }

    /* Is it the one of its matrix's that writes what they all know? */
    __device__ __forceinline__ bool speaks() const
    {
        return member == 0;
    }

    /* Is row s of the lane one of the matrix? Of a lane that repeats another none is. */
    static constexpr bool full = CUDA__WARP % lanes == 0 && lanes * rows == N;
    __device__ __forceinline__ bool has(int row) const
    {
        return full || (row < N && !spare());
    }

    /* Where the lane begins when the matrix's lanes share out 0 .. end - 1. */
    __device__ __forceinline__ int share(int end) const
    {
        return spare() ? end : member;
    }

    template <typename U> __device__ __forceinline__ U from_neighbour(U value, int distance) const
    {
        if ((lanes & (lanes - 1)) == 0)
            return __shfl_xor_sync(CUDA__ALL, value, distance);
        int other = member + distance;
        return __shfl_sync(CUDA__ALL, value, base + (other < lanes ? other : other - lanes));
    }

    /* The distance of a round after `reach` lanes are known: no further than needed. */
    static constexpr __host__ __device__ int round(int reach)
    {
        return (lanes & (lanes - 1)) == 0 ? reach : 2 * reach > lanes ? lanes - reach : reach;
    }

    /* The largest over the matrix's lanes, of whole numbers: by the warp's own reductions, one a
     * matrix, where they are few. */
    __device__ __forceinline__ int most_of(int value) const
    {
        if (held > reductions_max)
            return max(value);
        int mine = value;
#pragma unroll
        for (int m = 0; m < held; m++) {
            int theirs = __reduce_max_sync(CUDA__ALL, matrix == m ? value : INT32_MIN);
            mine = matrix == m ? theirs : mine;
        }
        return mine;
    }

    /* The largest over the matrix's lanes. */
    template <typename U> __device__ __forceinline__ U max(U value) const
    {
#pragma unroll
        for (int reach = 1; reach < lanes; reach += round(reach)) {
            U other = from_neighbour(value, round(reach));
            value = value > other ? value : other;
        }
        return value;
    }

    /* The matrix's lanes for which `yes` holds, as bits from 0 up. */
    __device__ __forceinline__ unsigned votes(bool yes) const
    {
        unsigned all = __ballot_sync(CUDA__ALL, yes);
        return lanes == CUDA__WARP ? all : (all >> base) & ((1u << (lanes & 31)) - 1);
    }
};

#endif
