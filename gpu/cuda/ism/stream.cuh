/* gpu/cuda/ism/stream.cuh: the update of known inverses that no block of threads can hold, on the
 * tensor cores, in FP64 whatever the precision of what is given: A0^-1 is read twice, thrice
 * from m = 47 on, the inverse written once, and nothing else of that size. With B = A0^-1 and T the
 * probe vectors of the check, for all matrices of a chunk,
 *
 *      meet         K = Y^T B, and T B; a block 32 columns, a warp some of the rows;
 *      capacitance  R = (I + K X)^-1; |X K| as middle.cuh has it; how much the terms of X K may
 *                   be; a block a matrix for each;
 *      lines        -R K; a block 64 columns;
 *      update       G = B X and Z = B + G (-R K), by strips of rows, which a block holds in its
 *                   registers, a warp some of the columns; Z goes out, and T Z and the sums of
 *                   magnitudes of its columns are left, of each block's rows;
 *      loss         those sums added up, and what the check is blind to, where terms of K cancel;
 *                   a block 64 columns;
 *      conclude     the check; a block a matrix.
 *
 * A block of `update` has a part of the rows; of few matrices, a strip, so that the device has
 * something to do. Every sum is taken in an order that n and m alone decide: of the strips of a
 * part, and then of the parts. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_STREAM_CUH
#define GPU_CUDA_ISM_STREAM_CUH

#include "gpu/cuda/ism/capacitance.cuh"

#define CUDA__ISM_STREAM_GROUP 16 /* columns of G that are added up together */
#define CUDA__ISM_LOSS_THREADS (CUDA__ISM_STREAM_SLAB * (1 + CUDA__ISM_CHECK_PROBES))
/* Beyond this order an update is large: a strip's warps have 64 columns each, not 32, and the block
 * that has a matrix's check has more threads. */
#define CUDA__ISM_STREAM_LARGE (CUDA__ISM_STREAM_ORDER / 2)

/* ---- Update ---- */

/* A block, which goes over strips of 16 Down rows; a warp has 8 Tiles columns. What 16 bytes of a
 * row have goes to one tile in FP64, in FP32 to two: see place_of. Few: X has 8 columns at most,
 * and what a warp needs of X and R K stays in its registers. */
template <typename S, int Down, int Tiles, bool Few> struct cuda__ism_striper {
    static constexpr int rows = 16 * Down, group = CUDA__ISM_STREAM_GROUP;
    static constexpr int pitch = group + 8; /* numbers from row to row, without conflicts */
    static constexpr int probes = CUDA__ISM_CHECK_PROBES, fours = Tiles / 4;
    static constexpr int width = cuda__real<S>::width, vectors = 2 * Tiles / width;
    typedef typename cuda__real<S>::vector vector;

    cuda__ism_stream<S> at;
    double *parts, *whole; /* of G: a warp's, rows x pitch; all of it, rows x line */
    int warps, warp, lane, g, t, column, line;
    const S *b, *x;
    S *to;
    bool bad, even; /* even: 16 bytes can be moved */
    double z[Down][Tiles][4], sums[1 + probes][fours];
    double right_x[Few ? Tiles : 1][2], right_k[Few ? Tiles : 1][2];

    /* The column that is number `local` of a tile. */
    __device__ __forceinline__ int place_of(int tile, int local) const
    {
        const int share = width / 2; /* tiles that share 16 bytes */
        return column + tile / share * share * 8 + local / 2 * width + tile % share * 2 + local % 2;
    }

    __device__ __forceinline__ void get(int i, int j, S (&numbers)[width]) const
    {
        const S *from = b + (int64_t)i * at.n + j;
        const bool inside = i < at.n && j < at.n;
#pragma unroll
        for (int e = 0; e < width; e++)
            numbers[e] = 0;
        if (inside && even)
            cuda__ism_fetch(from, numbers);
        else if (inside)
            for (int e = 0; e < width; e++)
                numbers[e] = j + e < at.n ? from[e] : S(0);
    }

    __device__ __forceinline__ void write(int i, int j, const S (&numbers)[width]) const
    {
        S *place = to + (int64_t)i * at.n + j;
        if (i >= at.n || j >= at.n || !to)
            return;
        if (even) {
            *(vector *)place = *(const vector *)numbers;
            return;
        }
        for (int e = 0; e < width && j + e < at.n; e++)
            place[e] = numbers[e];
    }

    __device__ __forceinline__ void load(int first, S (&raw)[2 * Down][vectors][width]) const
    {
#pragma unroll
        for (int e = 0; e < 2 * Down * vectors; e++)
            get(first + e / vectors * 8 + g, column + e % vectors * 4 * width + width * t,
                raw[e / vectors][e % vectors]);
    }

    __device__ __forceinline__ void take(const S (&raw)[2 * Down][vectors][width])
    {
#pragma unroll
        for (int e = 0; e < 2 * Down * vectors * width; e++) {
            const int down = e / (vectors * width), over = e % (vectors * width);
            z[down / 2][over / 2][down % 2 * 2 + over % 2] =
                (double)raw[down][over / width][over % width];
        }
    }

    __device__ __forceinline__ void store(int first) const
    {
        const S nan = cuda__real<S>::nan();
#pragma unroll
        for (int e = 0; e < 2 * Down * vectors; e++) {
            const int down = e / vectors, over = e % vectors * width;
            alignas(16) S numbers[width];
#pragma unroll
            for (int q = 0; q < width; q++) {
                const double value = z[down / 2][(over + q) / 2][down % 2 * 2 + q % 2];
                numbers[q] = bad ? nan : (S)value;
            }
            write(first + down * 8 + g, column + over * 4 + width * t, numbers);
        }
    }

    /* What a product with a tile takes of X from column c on, and of -R K from line c on. */
    __device__ __forceinline__ void take_x(int c, int tile, double (&right)[2]) const
    {
        const int i = place_of(tile, 2 * t);
        const bool inside = c + g < at.m;
        right[0] = inside && i < at.n ? (double)x[i * at.m + c + g] : 0;
        right[1] = inside && i + 1 < at.n ? (double)x[(i + 1) * at.m + c + g] : 0;
    }

    __device__ __forceinline__ void take_k(int c, int tile, double (&right)[2]) const
    {
        const double *from =
            at.lines(CUDA__ISM_STREAM_RK) + (int64_t)(c + 2 * t) * at.ld + place_of(tile, g);
        right[0] = from[0];
        right[1] = from[at.ld];
    }

    /* The warp's part of 8 columns of G. */
    __device__ __forceinline__ void meet(int c)
    {
        double g_sums[Down][4] = {}, right[2];
#pragma unroll
        for (int j = 0; j < Tiles; j++) {
            if (!Few)
                take_x(c, j, right);
#pragma unroll
            for (int d = 0; d < Down; d++) {
                const double *of = z[d][j], left[4] = {of[0], of[2], of[1], of[3]};
                cuda__multiply_add(g_sums[d], left, Few ? right_x[Few ? j : 0] : right);
            }
        }
        double *part = parts + warp * rows * pitch + c % group + 2 * t;
#pragma unroll
        for (int e = 0; e < 2 * Down; e++)
            *(double2 *)(part + (e / 2 * 16 + e % 2 * 8 + g) * pitch) =
                make_double2(g_sums[e / 2][e % 2 * 2], g_sums[e / 2][e % 2 * 2 + 1]);
    }

    /* G of the strip. */
    __device__ __forceinline__ void multiply()
    {
        for (int first = 0; first < at.m; first += group) {
            for (int c = first; c < at.m && c < first + group; c += 8)
                meet(c);
            __syncthreads();
            for (int e = (int)threadIdx.x; e < rows * group; e += warps * CUDA__WARP) {
                const double *part = parts + e / group * pitch + e % group;
                double sum = 0;
                if (first + e % group >= at.wide())
                    continue;
#pragma unroll 4
                for (int w = 0; w < warps; w++)
                    sum += part[w * rows * pitch];
                whole[e / group * line + first + e % group] = sum;
            }
            __syncthreads();
        }
    }

    /* Z = B + G (-R K) */
    __device__ __forceinline__ void update()
    {
        for (int c = 0; c < at.m; c += 8) {
            double left[Down][4], right[2];
#pragma unroll
            for (int d = 0; d < Down; d++) {
                const double *of = whole + (d * 16 + g) * line + c + 2 * t;
                const double2 upper = *(const double2 *)of;
                const double2 lower = *(const double2 *)(of + 8 * line);
                left[d][0] = upper.x;
                left[d][1] = lower.x;
                left[d][2] = upper.y;
                left[d][3] = lower.y;
            }
#pragma unroll
            for (int j = 0; j < Tiles; j++) {
                if (!Few)
                    take_k(c, j, right);
#pragma unroll
                for (int d = 0; d < Down; d++)
                    cuda__multiply_add(z[d][j], left[d], Few ? right_k[Few ? j : 0] : right);
            }
        }
    }

    /* Adds up f(number, row) of the strip's rows for one column of 32, and of each 32 more. */
    template <typename F> __device__ __forceinline__ void add(double (&to_sums)[fours], F f) const
    {
#pragma unroll
        for (int h = 0; h < fours; h++) {
            double values[8] = {};
#pragma unroll
            for (int e = 0; e < Down * 16; e++)
                values[e / 4 % 4 * 2 + e % 2] +=
                    f(z[e / 16][h * 4 + e / 4 % 4][e % 4], e / 16 * 2 + e / 2 % 2);
            cuda__ism_halve<4, CUDA__WARP / 2>(values, lane);
            to_sums[h] += values[0];
        }
    }

    /* The strip from row `first` on, whose B is in z. */
    __device__ __forceinline__ void strip(int first)
    {
        multiply();
        update();
        store(first);
        add(sums[0], [](double value, int) { return fabs(value); });
#pragma unroll
        for (int l = 0; l < probes; l++) {
            const S *weights = at.weights(l) + first + g;
            double own[2 * Down];
#pragma unroll
            for (int d = 0; d < 2 * Down; d++)
                own[d] = first + d * 8 + g < at.n ? (double)weights[d * 8] : 0;
            add(sums[1 + l], [&](double value, int d) { return own[d] * value; });
        }
    }

    /* A block: so many rows, as there are. */
    __device__ __forceinline__ void run(int block, int rows_max)
    {
        const int begin = block * rows_max, end = begin + rows_max < at.n ? begin + rows_max : at.n;
        S raw[2 * Down][vectors][width];
#pragma unroll
        for (int j = 0; j < Tiles && Few; j++) {
            take_x(0, j, right_x[Few ? j : 0]);
            take_k(0, j, right_k[Few ? j : 0]);
        }
        for (int first = begin; first < end; first += rows) {
            load(first, raw);
            take(raw);
            strip(first);
        }
        const int q = (lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1);
        double *kept = at.lines(CUDA__ISM_STREAM_PARTS) + (int64_t)block * (1 + probes) * at.ld;
#pragma unroll
        for (int e = 0; e < (1 + probes) * fours; e++) {
            const int j = place_of(e % fours * 4 + q / 2, t * 2 + q % 2);
            if (j < at.ld)
                kept[(int64_t)(e / fours) * at.ld + j] = sums[e / fours][e % fours];
        }
    }
};

template <typename S, int Down, int Tiles, bool Few>
static __global__ void __launch_bounds__(512, 1)
    cuda__ism_stream_kernel(const cuda__ism_call call, int rows)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typedef cuda__ism_striper<S, Down, Tiles, Few> striper;
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int warps = (int)blockDim.x / CUDA__WARP;
    double *parts = (double *)cuda__memory;
    const S *b = at.input(METHOD_ISM_A0_INVERSE, at.n);
    S *to = cuda__ism_output<S>(call, at.slot, METHOD_ISM_INVERSE, (int64_t)at.n * at.n);
    striper one = {at,
                   parts,
                   parts + warps * striper::rows * striper::pitch,
                   warps,
                   warp,
                   lane,
                   lane / 4,
                   lane % 4,
                   warp * Tiles * 8,
                   at.wide() + 4,
                   b,
                   at.input(METHOD_ISM_X, at.m),
                   to,
                   at.answer()->bad != 0,
                   at.is_even(b) && at.is_even(to),
                   {},
                   {},
                   {},
                   {}};
    one.run((int)blockIdx.x, rows);
}

/* ---- Conclude ---- */

/* What the terms of a column of X K come to at most; norm: |B|. */
template <typename S>
static __device__ __forceinline__ double cuda__ism_terms_of(const cuda__ism_stream<S> &at,
                                                            double norm)
{
    return at.answer()->reach * norm;
}

/* By how many eps X K may be off. */
template <typename S>
static __device__ __forceinline__ double cuda__ism_stream_lost(const cuda__ism_stream<S> &at,
                                                               double norm)
{
    const int rows = sizeof(S) == sizeof(double) ? CUDA__ISM_MEET_ROWS : at.n;
    return cuda__ism_lost<S, double>(at.n, rows, cuda__ism_terms_of(at, norm));
}

/* Line l of the sums of column j that blocks of `rows` rows have left, added up in the place of
 * the first block's: of a part, and of the parts. */
template <typename S>
static __device__ __forceinline__ void cuda__ism_stream_gather(const cuda__ism_stream<S> &at, int l,
                                                               int j, int rows)
{
    double *left = at.lines(CUDA__ISM_STREAM_PARTS) + (int64_t)l * at.ld + j;
    const int64_t step = (int64_t)(1 + CUDA__ISM_CHECK_PROBES) * at.ld;
    const int blocks = (at.n + rows - 1) / rows, share = (int)at.call.plan.stream_rows / rows;
    double sum = 0, part = 0;
    int of_part = 0;
#pragma unroll 16
    for (int block = 0; block < blocks; block++) {
        part += left[block * step];
        of_part++;
        if (of_part == share || block + 1 == blocks) {
            sum += part;
            part = 0;
            of_part = 0;
        }
    }
    left[0] = sum;
}

/* The sums of each column, of which blocks of `rows` rows have left theirs, a thread a line and
 * column; and where K may have lost too much, by what X K is off, the answer's loss. */
template <typename S>
static __global__ void __launch_bounds__(CUDA__ISM_LOSS_THREADS)
    cuda__ism_loss_kernel(const cuda__ism_call call, int rows)
{
    cuda__follow_previous();
    __shared__ double scratch[CUDA__ISM_LOSS_THREADS / CUDA__WARP];
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const int l = (int)threadIdx.x / CUDA__ISM_STREAM_SLAB;
    const int j = (int)(blockIdx.x * CUDA__ISM_STREAM_SLAB + threadIdx.x % CUDA__ISM_STREAM_SLAB);
    const double *k = at.lines(CUDA__ISM_STREAM_K) + j;
    const S *b = at.input(METHOD_ISM_A0_INVERSE, at.n), *x = at.input(METHOD_ISM_X, at.m);
    const S *y = at.input(METHOD_ISM_Y, at.m);
    const double *sizes = at.lines(CUDA__ISM_STREAM_SIZES);
    double loss = 0, norm = 0;
    if (j < at.n)
        cuda__ism_stream_gather(at, l, j, rows);
    for (int i = (int)threadIdx.x; i < at.n; i += CUDA__ISM_LOSS_THREADS)
        norm = cuda__max_or_nan(norm, sizes[i]);
    norm = cuda__block_max<CUDA__ISM_LOSS_THREADS / CUDA__WARP>(norm, scratch);
    if (l > 0 || !cuda__ism_cancels(at.n, cuda__ism_stream_lost(at, norm), at.answer()->change))
        return;
    if (j < at.n)
        loss = cuda__ism_loss_of<double>(at.n, at.m, j, b, x, y, k, at.ld);
    loss = cuda__ism_warp_largest(loss);
    if (threadIdx.x % CUDA__WARP == 0)
        atomicMax(&at.answer()->loss, (unsigned long long)__double_as_longlong(loss));
}

/* thin = (T Z) X: a thread has a column of some rows, which it adds up `deep` at a time; pieces is
 * used up. Returns how many roundings a term takes part in. All threads of a block call, and a
 * barrier has passed. */
template <typename S, int Threads>
static __device__ __forceinline__ int
cuda__ism_stream_thin(const cuda__ism_stream<S> &at,
                      const double (&tz)[CUDA__ISM_CHECK_PROBES][CUDA__ISM_STREAM_ORDER],
                      double (&pieces)[CUDA__ISM_CHECK_PROBES][Threads],
                      double (&thin)[CUDA__ISM_CHECK_PROBES][CUDA__ISM_STREAM_MAX])
{
    constexpr int probes = CUDA__ISM_CHECK_PROBES, parts_max = 16, deep = 8;
    const S *x = at.input(METHOD_ISM_X, at.m);
    const int shares = Threads / at.m, parts = shares < parts_max ? shares : parts_max;
    const int column = (int)threadIdx.x % at.m, part = (int)threadIdx.x / at.m;
    double sums[probes] = {};
    for (int first = part; part < parts && first < at.n; first += parts * deep) {
        double piece[probes] = {};
#pragma unroll
        for (int r = 0; r < deep; r++) {
            const int i = first + r * parts;
            const double number = i < at.n ? (double)x[i * at.m + column] : 0;
#pragma unroll
            for (int l = 0; l < probes; l++)
                piece[l] = fma(i < at.n ? tz[l][i] : 0, number, piece[l]);
        }
#pragma unroll
        for (int l = 0; l < probes; l++)
            sums[l] += piece[l];
    }
#pragma unroll
    for (int l = 0; l < probes; l++)
        pieces[l][threadIdx.x] = sums[l];
    __syncthreads();
    for (int e = (int)threadIdx.x; e < probes * at.m; e += Threads) {
        double sum = 0;
        for (int p = 0; p < parts; p++)
            sum += pieces[e % probes][p * at.m + e / probes];
        thin[e % probes][e / probes] = sum;
    }
    __syncthreads();
    return deep + (at.n + parts * deep - 1) / (parts * deep) + parts;
}

/* The check. A block a slot. */
template <typename S, int Threads>
static __global__ void __launch_bounds__(Threads)
    cuda__ism_conclude_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    constexpr int probes = CUDA__ISM_CHECK_PROBES, warps = Threads / CUDA__WARP;
    __shared__ double tz[probes][CUDA__ISM_STREAM_ORDER], thin[probes][CUDA__ISM_STREAM_MAX];
    __shared__ double pieces[probes][Threads];
    __shared__ double scratch[warps];
    const cuda__ism_stream<S> at = cuda__ism_stream<S>::of(call);
    const double *left = at.lines(CUDA__ISM_STREAM_PARTS), *k = at.lines(CUDA__ISM_STREAM_K);
    const double *sizes = at.lines(CUDA__ISM_STREAM_SIZES);
    const double *norms = at.lines(CUDA__ISM_STREAM_NORMS);
    double size_z = 0, size_b = 0, met = 0, worst = 0;
    for (int j = (int)threadIdx.x; j < at.n; j += Threads) {
        size_z = cuda__max_or_nan(size_z, left[j]);
        size_b = cuda__max_or_nan(size_b, sizes[j]);
#pragma unroll
        for (int l = 0; l < probes; l++)
            tz[l][j] = left[(int64_t)(1 + l) * at.ld + j];
    }
    __syncthreads();
    const int roundings = cuda__ism_stream_thin<S, Threads>(at, tz, pieces, thin);
    for (int j = (int)threadIdx.x; j < at.n; j += Threads) {
        double size = 0, of_line[probes];
#pragma unroll
        for (int l = 0; l < probes; l++)
            of_line[l] = tz[l][j];
#pragma unroll 4
        for (int c = 0; c < at.m; c++) {
            const double number = k[(int64_t)c * at.ld + j];
            size = fma(norms[c], fabs(number), size);
#pragma unroll
            for (int l = 0; l < probes; l++)
                of_line[l] = fma(thin[l][c], number, of_line[l]);
        }
        met = cuda__max_or_nan(met, size);
#pragma unroll
        for (int l = 0; l < probes; l++)
            worst = cuda__max_or_nan(worst, fabs(k[(int64_t)(at.m + l) * at.ld + j] - of_line[l]));
    }
    const cuda__ism_answer *answer = at.answer();
    cuda__ism_check check = {};
    check.error = cuda__block_max<warps>(worst, scratch);
    check.norm_x = cuda__block_max<warps>(size_z, scratch);
    check.norm_a = cuda__block_max<warps>(size_b, scratch);
    met = cuda__block_max<warps>(met, scratch);
    if (threadIdx.x > 0)
        return;
    int64_t within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, at.slot, &within);
    check.error = answer->broken ? (double)cuda__real<double>::nan() : check.error;
    check.change = answer->change;
    check.blind = cuda__ism_misses<S, double>(at.n, roundings, met, check.norm_a / check.norm_x,
                                              check.change);
    check.lost = cuda__ism_stream_lost(at, check.norm_a);
    if (cuda__ism_cancels(at.n, check.lost, check.change))
        check.lost =
            cuda__ism_lost_by<S, double>(at.n, __longlong_as_double((long long)answer->loss),
                                         cuda__ism_terms_of(at, check.norm_a));
    check.det_ratio = cuda__ism_value(answer->det, answer->det_exponent);
    check.bad = answer->bad != 0;
    cuda__ism_judge<S>(call, item, within, check, METHOD_ALGORITHM_BLOCK);
}

/* ---- The launches ---- */

template <typename S, int Down, int Tiles, bool Few>
static size_t cuda__ism_strip_bytes(const cuda__ism_call &call, int64_t warps)
{
    typedef cuda__ism_striper<S, Down, Tiles, Few> striper;
    const int64_t wide = (call.m + 7) / 8 * 8;
    return (size_t)(striper::rows * (warps * striper::pitch + wide + 4)) * sizeof(double);
}

/* And what comes of the sums that it leaves. Where a block of the current device has no room for
 * so many rows of a strip, it has half as many. */
template <typename S, int Down, int Tiles, bool Few>
static cudaError_t cuda__ism_start_strips(const cuda__ism_call &call, cudaStream_t stream)
{
    static_assert(16 * Down >= CUDA__ISM_STREAM_STRIP, "the plan counts them");
    const int strip = 16 * Down, part = (int)call.plan.stream_rows;
    const int rows = call.plan.stream_by_strips ? strip : part;
    const dim3 slabs((unsigned)(call.plan.stream_ld / CUDA__ISM_STREAM_SLAB), (unsigned)call.count);
    const int64_t warps = (call.n + 8 * Tiles - 1) / (8 * Tiles);
    const size_t bytes = cuda__ism_strip_bytes<S, Down, Tiles, Few>(call, warps);
    if constexpr (Down > 1) {
        if (bytes > (size_t)cuda__shared_max())
            return cuda__ism_start_strips<S, Down / 2, Tiles, Few>(call, stream);
    }
    cudaError_t error =
        cuda__ism_follow(cuda__ism_stream_kernel<S, Down, Tiles, Few>,
                         dim3((unsigned)((call.n + rows - 1) / rows), (unsigned)call.count),
                         (unsigned)warps * CUDA__WARP, bytes, stream, call, rows);
    if (error == cudaSuccess)
        error = cuda__ism_follow(cuda__ism_loss_kernel<S>, slabs, CUDA__ISM_LOSS_THREADS, 0, stream,
                                 call, rows);
    return error;
}

template <typename S>
static cudaError_t cuda__ism_start_update(const cuda__ism_call &call, cudaStream_t stream)
{
    if (call.n > CUDA__ISM_STREAM_LARGE)
        return cuda__ism_start_strips<S, 1, 8, false>(call, stream);
    if (call.m > 8)
        return cuda__ism_start_strips<S, 2, 4, false>(call, stream);
    return cuda__ism_start_strips<S, 1, 4, true>(call, stream);
}

/* A block a slot, with more threads where they have something to do. */
template <typename S>
static cudaError_t cuda__ism_start_conclude(const cuda__ism_call &call, cudaStream_t stream)
{
    constexpr int few = CUDA__ISM_THREADS, many = CUDA__ISM_ALONE_THREADS;
    const bool large = call.n > CUDA__ISM_STREAM_LARGE;
    return cuda__ism_follow(large ? cuda__ism_conclude_kernel<S, many>
                                  : cuda__ism_conclude_kernel<S, few>,
                            dim3(1, (unsigned)call.count), large ? many : few, 0, stream, call);
}

/* The chunk of call.count slots. */
template <typename S>
static cudaError_t cuda__ism_stream_update(const cuda__ism_call &call, cudaStream_t stream)
{
    const int64_t tiles = (call.m + CUDA__ISM_CHECK_PROBES + 15) / 16;
    cudaError_t error = tiles == 1                 ? cuda__ism_start_meet<S, 1>(call, stream)
                        : tiles == 2 || tiles == 4 ? cuda__ism_start_meet<S, 2>(call, stream)
                                                   : cuda__ism_start_meet<S, 3>(call, stream);
    if (error == cudaSuccess)
        error = call.m <= CUDA__WARP
                    ? cuda__ism_start_capacitance<S, CUDA__WARP>(call, stream)
                    : cuda__ism_start_capacitance<S, CUDA__ISM_STREAM_MAX>(call, stream);
    if (error == cudaSuccess)
        error = cuda__ism_start_update<S>(call, stream);
    if (error == cudaSuccess)
        error = cuda__ism_start_conclude<S>(call, stream);
    return error;
}

#endif
