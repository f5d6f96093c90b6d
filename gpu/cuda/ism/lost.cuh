/* gpu/cuda/ism/lost.cuh: what an update of a known inverse may lose unseen. Its check, that of T
 * (A0^-1 - Z M), takes the update's own K = Y^T A0^-1, so that it is blind to K's rounding errors:
 * with them X K is off, and so Z M by Z times that. And it takes (T Z) X, whose rounding errors may
 * be those of the update's A0^-1 X, where Z is near A0^-1.
 *
 * Both are bounded, by their terms. Where that is too much of K, as where A0 is ill-conditioned and
 * terms cancel, K is computed once more, compensated, and compared. If that is too much
 * still, the last algorithm is taken.
 *
 * Beyond n = 8 the check has two probe vectors, and the errors of the update may lie where these do
 * not look. Where that may be too much, as where A0 is nearly singular and A is not, all of A0^-1 -
 * Z M is found out for small matrices, and the last algorithm is taken for others. What it is
 * judged by was found by a search; of several columns it is no bound. Device code; any thread.
 */
#ifndef GPU_CUDA_ISM_LOST_CUH
#define GPU_CUDA_ISM_LOST_CUH

#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/base/real.cuh"
#include "gpu/cuda/base/compensated.cuh"

/* Of the 15 n eps |Z| |M| that are promised, for K, for (T Z) X, and likewise for what the lines do
 * not see; where a check sees all of the residual it allows more, and these less. HIDDEN: of all of
 * it, where that was found out. */
#define CUDA__ISM_LOST_RATIO 7.0
#define CUDA__ISM_LOST_WHOLE_RATIO 4.0
#define CUDA__ISM_BLIND_RATIO 3.0
#define CUDA__ISM_BLIND_WHOLE_RATIO 2.0
#define CUDA__ISM_HIDDEN_RATIO 4.0
#define CUDA__ISM_HIDDEN_ORDER 32

/* By how many eps of the precision T the columns of X K may be off, K being summed in the precision
 * Sum: n terms, `rows` at a time, and then those sums. So a term takes part in `rows` roundings of
 * half an eps, and in one for each sum behind the first (Higham, Accuracy and Stability, 4.2).
 * terms: what the terms' magnitudes of a column come to at most, |A0^-1| times the largest row of
 * |Y| times the norms of X's columns. */
template <typename T, typename Sum>
static __device__ __forceinline__ double cuda__ism_lost(int64_t n, int64_t rows, double terms)
{
    const double finer = (double)cuda__real<Sum>::eps / (double)cuda__real<T>::eps;
    return 0.5 * (double)(rows + (n + rows - 1) / rows - 1) * finer * terms;
}

/* Is that too much, change being |M - I|? Updates by random numbers of either sign come to terms of
 * 2 sqrt(n m) |M| or so, which is not. */
static __device__ __forceinline__ bool cuda__ism_cancels(int64_t n, double lost, double change)
{
    const bool whole = n <= CUDA__ISM_PROBES;
    const double ratio = whole ? CUDA__ISM_LOST_WHOLE_RATIO : CUDA__ISM_LOST_RATIO;
    return !(lost <= ratio * (double)n * (1 + change));
}

/* What X K's column j is off by for the errors of K, whose column is k, numbers k_step apart. b, x,
 * y: of the matrix, as they are given. */
template <typename Sum, typename S>
static __device__ __forceinline__ double cuda__ism_loss_of(int n, int m, int j, const S *b,
                                                           const S *x, const S *y, const Sum *k,
                                                           int64_t k_step)
{
    double loss = 0;
    for (int c = 0; c < m; c++) {
        cuda__compensated<Sum> sum = {0, 0};
        double size = 0;
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            size += fabs((double)x[i * m + c]);
            sum.add_product((Sum)y[i * m + c], (Sum)b[(int64_t)i * n + j]);
        }
        loss += size * fabs((double)(k[c * k_step] - sum.value()) - (double)sum.rest());
    }
    return loss;
}

/* As cuda__ism_lost, where the columns' largest sum of that is known; with what double-double
 * may have lost in its turn. */
template <typename T, typename Sum>
static __device__ __forceinline__ double cuda__ism_lost_by(int64_t n, double loss, double terms)
{
    const double eps = (double)cuda__real<T>::eps, finer = (double)cuda__real<Sum>::eps;
    const double rounding = (double)n * finer / 2;
    return (loss + rounding * rounding * terms) / eps;
}

/* Is what (T Z) X may have lost, summed by `roundings` in the precision Sum, too much? met: the
 * columns' largest sum of |X| |K|, with the norm of a column of X in the place of its entries. Of
 * random signs it is some sqrt(m) |X K|. */
template <typename T, typename Sum>
static __device__ __forceinline__ bool cuda__ism_blinds(int64_t n, int64_t roundings, double met,
                                                        double change)
{
    const bool whole = n <= CUDA__ISM_PROBES;
    const double finer = (double)cuda__real<Sum>::eps / (double)cuda__real<T>::eps;
    const double ratio = whole ? CUDA__ISM_BLIND_WHOLE_RATIO : CUDA__ISM_BLIND_RATIO;
    return !(0.5 * (double)roundings * finer * met <= ratio * (double)n * (1 + change));
}

/* Sums of n numbers of A0^-1 X and of I + K X, and A0^-1 - G R K where it cancels, have errors that
 * come to a few columns times K in A0^-1 - Z M. Where few probe vectors check it, these may be at
 * right angles to them, and be seen by none. May they be too much? share: how many times |Z| the
 * numbers are that Z is made of: |A0^-1|, or |G| |R| |K|. Each sum is taken to be off by n
 * roundings; of large orders by sqrt(n HIDDEN_ORDER), for roundings are of either sign. Updates by
 * random numbers come to sqrt(m) or so times 1 + change. */
template <typename T, typename Sum>
static __device__ __forceinline__ bool cuda__ism_hides(int64_t n, double met, double share,
                                                       double change)
{
    const double finer = (double)cuda__real<Sum>::eps / (double)cuda__real<T>::eps;
    const double over = n > CUDA__ISM_HIDDEN_ORDER ? (double)n / CUDA__ISM_HIDDEN_ORDER : 1;
    return n > CUDA__ISM_PROBES &&
           !(0.5 * finer * met * share <= CUDA__ISM_BLIND_RATIO * sqrt(over) * (1 + change));
}

/* Is the whole of A0^-1 - Z M, which was found out for that, too much? size: |Z| (1 + change). */
template <typename T>
static __device__ __forceinline__ bool cuda__ism_was_hidden(int64_t n, double error, double size)
{
    const double eps = (double)cuda__real<T>::eps;
    return !(error <= CUDA__ISM_HIDDEN_RATIO * (double)n * eps * size);
}

/* One or the other, for who finds out nothing more. */
template <typename T, typename Sum>
static __device__ __forceinline__ bool cuda__ism_misses(int64_t n, int64_t roundings, double met,
                                                        double share, double change)
{
    return cuda__ism_blinds<T, Sum>(n, roundings, met, change) ||
           cuda__ism_hides<T, Sum>(n, met, share, change);
}

#endif
