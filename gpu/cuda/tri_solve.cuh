/* gpu/cuda/tri_solve.cuh: the O(n) numbers of one tridiagonal matrix and its report, by one block
 * of threads: which way is taken, INFO, RCOND, METHOD and the diagonal, road by road as
 * gpu/host/tridiagonal.c has it.
 *
 * Dominant matrices take the two sweeps, and from there the merging where it is asked for; others
 * the minors. A way that divides by zero, overflows, or fails its trial leaves the matrix to the
 * next one.
 *
 * The inputs are read once: they may lie on the other side of a bus.
 */
#ifndef GPU_CUDA_TRI_SOLVE_CUH
#define GPU_CUDA_TRI_SOLVE_CUH

#include "gpu/cuda/tri_generators.cuh"
#include "gpu/cuda/tri_merge.cuh"
#include "gpu/cuda/tri_minors.cuh"
#include "gpu/cuda/tri_sweep.cuh"

#define CUDA__TRI_GROWTH_MAX 4 /* as the host's */
#define CUDA__TRI_ERROR_MAX 4

template <int Threads> struct cuda__tri_memory {
    typename cuda__block<Threads>::shared scans;
    cuda__tri_stage stage;
};

template <typename T, int Threads> struct cuda__tri_solver {
    const cuda__tri_call &call;
    cuda__tri_part part;
    const cuda_tensors *item;
    int64_t within, n;
    cuda__block<Threads> block;
    cuda__tri_stage *stage;
    cuda__number norm; /* |A| */
    bool by_rows, dominant;
    /* The answer: */
    cuda__number norm_x;
    const double *diagonal;
    int64_t info;
    int road, form, levels;

    /* Matrix k of the call, in part `slot` of the workspace. */
    __device__ __forceinline__ cuda__tri_solver(const cuda__tri_call &of, int64_t k, int64_t slot,
                                                cuda__tri_memory<Threads> *memory)
        : call(of), part(cuda__tri_find_part(of, slot)),
          item(cuda__tri_find(of, of.first + k, &within)), n(of.n), block{&memory->scans, 0},
          stage(&memory->stage), norm{0, 0}, by_rows(false), dominant(false), norm_x{0, 0},
          diagonal(nullptr), info(0), road(METHOD_ROAD_NONE), form(CUDA__TRI_NAN), levels(0)
    {
    }

    template <typename V> __device__ __forceinline__ V *output(int index, int64_t length) const
    {
        V *data = (V *)item->outputs[index];
        return data ? data + within * length : nullptr;
    }

    /* The band as doubles, with zeros outside. False: a number is not finite. */
    __device__ __forceinline__ bool load()
    {
        const T *dl = (const T *)item->inputs[CUDA__TRI_DL] + within * (n - 1);
        const T *d = (const T *)item->inputs[CUDA__TRI_D] + within * n;
        const T *du = (const T *)item->inputs[CUDA__TRI_DU] + within * (n - 1);
        double excess = 0;
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            double sub = i > 0 ? (double)dl[i - 1] : 0, middle = (double)d[i];
            double sup = i + 1 < n ? (double)du[i] : 0;
            part.sub()[i] = sub;
            part.middle()[i] = middle;
            part.sup()[i] = sup;
            excess += sub * 0 + middle * 0 + sup * 0;
        }
        return block.all(excess == 0);
    }

    /* |A|: sums that overflow are taken of quarters. Is A dominant? */
    __device__ __forceinline__ void look()
    {
        double largest = 0, quarter = 0;
        bool rows = true, columns = true;
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            double size = fabs(part.middle()[i]), left = fabs(part.sub()[i]),
                   right = fabs(part.sup()[i]);
            double upper = i > 0 ? fabs(part.sup()[i - 1]) : 0;
            double lower = i + 1 < n ? fabs(part.sub()[i + 1]) : 0;
            rows = rows && size >= left + right;
            columns = columns && size >= lower + upper;
            largest = fmax(largest, upper + size + lower);
            quarter = fmax(quarter, upper / 4 + size / 4 + lower / 4);
        }
        largest = block.largest(largest);
        quarter = block.largest(quarter);
        norm = largest <= cuda__real<double>::largest ? cuda__normal(largest, 0)
                                                      : cuda__normal(quarter, 2);
        by_rows = block.all(rows);
        dominant = block.all(columns) || by_rows;
    }

    /* |A| |X|; infinite where that is out of range. */
    __device__ __forceinline__ double condition() const
    {
        cuda__number product = cuda__times(norm, norm_x);
        return cuda__assemble(product.mantissa, product.exponent);
    }

    /* Did the merging's blocks stay as small as X, and does the diagonal that it found agree with
     * the two sweeps'? */
    __device__ __forceinline__ bool merge(double norm_swept)
    {
        double difference = 0;
        cuda__tri_merged merged =
            cuda__tri_merge<Threads>(part, block.memory, n, call.keeps_levels);
        levels = merged.levels;
        for (int64_t i = threadIdx.x; i < n; i += Threads)
            difference = fmax(difference, fabs(part.merged()[i] - part.diagonal()[i]));
        difference = block.largest(difference);
        return levels >= 0 && merged.growth <= CUDA__TRI_GROWTH_MAX * norm_swept &&
               difference <= (double)n * (double)cuda__real<T>::eps * norm_swept;
    }

    /* The ways for dominant matrices. False: neither holds. */
    __device__ __forceinline__ bool run_dominant()
    {
        if (call.variant == CUDA__TRI_PIVOTED || !dominant)
            return false;
        cuda__tri_sums sums = cuda__tri_sweep<Threads>(part, block.memory, n, by_rows);
        if (!sums.good || sums.norm > (double)cuda__real<T>::largest ||
            sums.error > CUDA__TRI_ERROR_MAX * (double)n * (double)cuda__real<T>::eps)
            return false;
        norm_x = cuda__normal(sums.norm, 0);
        road = METHOD_ROAD_SHERMAN_MORRISON;
        form = CUDA__TRI_BY_LEVELS;
        diagonal = part.merged();
        if (call.variant == CUDA__TRI_SHERMAN_MORRISON && merge(sums.norm))
            return true;
        road = METHOD_ROAD_TWO_SWEEP;
        form = CUDA__TRI_BY_LINES;
        diagonal = part.diagonal();
        return true;
    }

    /* Sets info: 0, a zero pivot's step, or n + 1 when the inverse that came out is not good. */
    __device__ __forceinline__ void run_minors()
    {
        cuda__tri_minor_sums sums = cuda__tri_find_minors<Threads>(part, block.memory, stage, n);
        double eps = (double)cuda__real<T>::eps;
        road = METHOD_ROAD_PIVOTED;
        info = sums.info;
        if (info)
            return;
        norm_x = sums.norm;
        diagonal = part.diagonal();
        form = CUDA__TRI_BY_LINES;
        bool good = sums.error <= CUDA__TRI_ERROR_MAX * (double)n * eps * condition();
        if (!good && condition() * eps <= 1) {
            info = n + 1;
            form = CUDA__TRI_NAN;
        }
    }

    /* RCOND, and INFO where it follows from it. */
    __device__ __forceinline__ T rcond()
    {
        if (form == CUDA__TRI_NAN)
            return info < 0 ? cuda__real<T>::nan() : (T)0;
        cuda__number most = cuda__normal((double)cuda__real<T>::largest, 0);
        cuda__number inverse = cuda__over(cuda__over({0.5, 1}, norm), norm_x);
        T found = (T)cuda__assemble(inverse.mantissa, inverse.exponent);
        if (cuda__is_larger(norm_x, most))
            found = 0;
        info = found < cuda__real<T>::eps ? n + 1 : 0;
        return found;
    }

    __device__ __forceinline__ void report()
    {
        T *wanted = output<T>(CUDA__TRI_DIAGONAL, n);
        T number = rcond();
        for (int64_t i = threadIdx.x; wanted && i < n; i += Threads)
            wanted[i] = form == CUDA__TRI_NAN ? cuda__real<T>::nan() : (T)diagonal[i];
        if (threadIdx.x != 0)
            return;
        int64_t entries =
            (call.rows.end - call.rows.first) * (call.columns.end - call.columns.first);
        *part.answer() = {output<T>(CUDA__TRI_INVERSE, entries), form, (int32_t)info, road, levels};
        if (int32_t *to = output<int32_t>(CUDA__TRI_INFO, 1))
            *to = (int32_t)info;
        if (T *to = output<T>(CUDA__TRI_RCOND, 1))
            *to = number;
        if (int32_t *to = output<int32_t>(CUDA__TRI_ROAD, 1))
            *to = road;
    }

    __device__ __forceinline__ void run()
    {
        if (!load()) {
            info = -1;
        } else {
            look();
            if (!run_dominant())
                run_minors();
        }
        report();
        T *mantissas = output<T>(CUDA__TRI_GENERATORS, CUDA__TRI_LINES * n);
        int32_t *exponents = output<int32_t>(CUDA__TRI_EXPONENTS, CUDA__TRI_LINES * n);
        if (mantissas || exponents)
            cuda__tri_write_generators<T, Threads>(part, n, form != CUDA__TRI_NAN, mantissas,
                                                   exponents);
    }
};

#endif
