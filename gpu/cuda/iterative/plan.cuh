/* gpu/cuda/iterative/plan.cuh: what a scheme of `iterative` costs and brings, and which one is the
 * best to go on with. Device code, a thread by itself. */
#ifndef GPU_CUDA_ITERATIVE_PLAN_CUH
#define GPU_CUDA_ITERATIVE_PLAN_CUH

#include "gpu/cuda/iterative/call.h"
#include "gpu/common/iteration.h"

struct cuda__iter_facts {
    int products, order;
    double growth;
};

static __device__ __forceinline__ cuda__iter_facts cuda__iter_facts_of(int scheme)
{
#define FACTS(name, products, order, growth) {products, order, growth},
    const cuda__iter_facts facts[] = {{0, 0, 0}, ITERATION_SCHEMES(FACTS)};
#undef FACTS
    return facts[scheme];
}

/* The fewest products that bring a residual to the goal, both by their logarithms, in Depth steps
 * at most; *first: the scheme to begin with. */
template <int Depth> static __device__ int cuda__iter_plan(double residual, double goal, int *first)
{
    int fewest = INT32_MAX;
    for (int s = METHOD_ITERATIVE_NEWTON_SCHULZ; s < METHOD_ITERATIVE_SCHEMES; s++) {
        if (s == METHOD_ITERATIVE_ORDER7_HORNER)
            continue;
        cuda__iter_facts facts = cuda__iter_facts_of(s);
        if (facts.products >= fewest)
            continue;
        double left = residual * facts.order;
        int products = facts.products, next;
        if (left > goal && Depth == 1)
            products += ITERATION_GUESSED;
        if constexpr (Depth > 1)
            products += left > goal ? cuda__iter_plan<Depth - 1>(left, goal, &next) : 0;
        if (products < fewest) {
            fewest = products;
            *first = s;
        }
    }
    return fewest;
}

/* x^power. Cheaper than pow(), and as good to a few roundings. */
static __device__ __forceinline__ double cuda__iter_power(double x, int power)
{
    double product = 1;
    for (; power > 0; power /= 2, x *= x)
        product *= power % 2 ? x : 1;
    return product;
}

/* What |R|_F / sqrt(n) is at least after a step of a scheme, `least` being that before: where R is
 * normal, the squares of the eigenvalues of R^p have at least the mean of those of R to the power
 * of p. What Horner's scheme leaves is R^7 (3 I + R)^2 / 16; R's eigenvalues are not negative. */
static __device__ __forceinline__ double cuda__iter_min_after(double least, int scheme)
{
    const double horner = scheme == METHOD_ITERATIVE_ORDER7_HORNER ? 9.0 / 16 : 1;
    return cuda__iter_power(least, cuda__iter_facts_of(scheme).order) * horner;
}

#endif
