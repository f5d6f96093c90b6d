/* bench/gpu/matrices.cu: the matrices that lu and lu_factor are tried with. */
#include "bench/gpu/lu.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace
{

/* A set's matrices go round these kinds, and some more random ones. */
const int64_t ROUND = KIND_COUNT + 8;

template <typename T> struct maker {
    int n;
    int64_t index; /* in the set */
    T *m;          /* random at first */
    std::mt19937_64 &random;

    int below(int bound)
    {
        return (int)(random() % (unsigned)bound);
    }
    double normal()
    {
        return std::normal_distribution<double>()(random);
    }
    void scale(int power)
    {
        for (int e = 0; e < n * n; e++)
            m[e] = (T)std::ldexp((double)m[e], power);
    }
    template <typename F> void entries(F f)
    {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++)
                m[i * n + j] = (T)f(i, j);
        }
    }

    void permutation()
    {
        std::vector<int> columns(n);
        for (int i = 0; i < n; i++)
            columns[i] = i;
        std::shuffle(columns.begin(), columns.end(), random);
        entries([](int, int) { return 0; });
        for (int i = 0; i < n; i++)
            m[i * n + columns[i]] = (T)(1 + below(3));
    }

    void near_rank_one()
    {
        double close = number<T>::close * (index % 50 < 25 ? 1e-2 : 1);
        std::vector<double> u(n), v(n);
        for (int i = 0; i < n; i++) {
            u[i] = normal();
            v[i] = normal();
        }
        entries([&](int i, int j) { return u[i] * v[j] + close * (double)m[i * n + j]; });
    }

    /* Partial pivoting doubles its last column at every step, nearly. */
    double growing(int i, int j, double below) const
    {
        return i == j || j == n - 1 ? 1 : i > j ? -below : 0;
    }

    /* Multiple shooting for a boundary value problem of two equations. */
    double wright(int i, int j) const
    {
        const double h = 0.3, factor = std::exp(-h / 6);
        if (i == j || (i < 2 && j == n - 2 + i))
            return 1;
        if (i / 2 != j / 2 + 1)
            return 0;
        return -factor * (i % 2 == j % 2 ? std::cosh(h) : std::sinh(h));
    }

    /* Quadrature for a Volterra equation. */
    double foster(int i, int j) const
    {
        const double h = 0.6;
        double value = i == j ? 1 : 0;
        if (i > 0 && j <= i)
            value -= j == 0 || j == i ? h / 2 : h;
        return j == n - 1 ? value - 1 : value;
    }

    void equal_rows()
    {
        if (n < 2)
            return;
        int i = below(n - 1);
        std::copy(m + i * n, m + (i + 1) * n, m + (i + 1) * n);
    }

    /* Its reciprocal pivot is near the end of the range, and so are entries of the inverse. */
    void denormal_column()
    {
        scale(number<T>::small);
        int c = below(n);
        for (int i = 0; i < n; i++) {
            double size = 0.5 + 0.5 * below(1024) / 1024;
            m[i * n + c] = (T)std::ldexp(below(2) ? size : -size, number<T>::below_normal);
        }
    }

    void column(int c, bool close)
    {
        for (int i = 0; i < n; i++)
            m[i * n + c] = close ? (T)((double)m[i * n] + number<T>::close * normal()) : T(0);
    }
};

template <typename T> struct row {
    const char *name;
    void (*make)(maker<T> &);
};

template <typename T>
const row<T> rows[KIND_COUNT] = {
    {"random", [](maker<T> &) {}},
    {"close columns", [](maker<T> &k) { k.column(k.n - 1, true); }},
    {"zero column", [](maker<T> &k) { k.column(k.below(k.n), false); }},
    {"NaN", [](maker<T> &k) { k.m[k.below(k.n * k.n)] = (T)NAN; }},
    {"infinity",
     [](maker<T> &k) { k.m[k.below(k.n * k.n)] = (T)(k.below(2) ? INFINITY : -INFINITY); }},
    {"graded",
     [](maker<T> &k) {
         k.entries([&](int i, int j) {
             return std::ldexp((double)k.m[i * k.n + j], (i - k.n / 2) % 20);
         });
     }},
    {"permutation", [](maker<T> &k) { k.permutation(); }},
    {"identity", [](maker<T> &k) { k.entries([](int i, int j) { return i == j; }); }},
    {"tiny", [](maker<T> &k) { k.scale(number<T>::tiny); }},
    /* Of larger orders U would overflow. */
    {"huge", [](maker<T> &k) { k.scale(number<T>::huge - (k.n > CUDA_SMALL_N_MAX ? 6 : 0)); }},
    {"ties", [](maker<T> &k) { k.entries([&](int, int) { return k.below(3) - 1; }); }},
    {"zero", [](maker<T> &k) { k.entries([](int, int) { return 0; }); }},
    {"equal rows", [](maker<T> &k) { k.equal_rows(); }},
    {"denormal", [](maker<T> &k) { k.scale(number<T>::denormal); }},
    {"Hilbert", [](maker<T> &k) { k.entries([](int i, int j) { return 1.0 / (i + j + 1); }); }},
    {"dominant diagonal",
     [](maker<T> &k) {
         k.entries([&](int i, int j) { return k.m[i * k.n + j] + (T)(i == j ? k.n : 0); });
     }},
    {"triangular",
     [](maker<T> &k) {
         k.entries(
             [&](int i, int j) { return i < j ? T(0) : k.m[i * k.n + j] + (T)(i == j ? k.n : 0); });
     }},
    {"largest entry", [](maker<T> &k) { k.m[0] = number<T>::largest; }},
    {"near rank one", [](maker<T> &k) { k.near_rank_one(); }},
    {"denormal column", [](maker<T> &k) { k.denormal_column(); }},
    {"growing", [](maker<T> &k) { k.entries([&](int i, int j) { return k.growing(i, j, 1); }); }},
    {"growing, inexact",
     [](maker<T> &k) { k.entries([&](int i, int j) { return k.growing(i, j, 0.9); }); }},
    {"Wright", [](maker<T> &k) { k.entries([&](int i, int j) { return k.wright(i, j); }); }},
    {"Foster", [](maker<T> &k) { k.entries([&](int i, int j) { return k.foster(i, j); }); }},
};

} // namespace

const char *matrix_kind_name(enum matrix_kind kind)
{
    return rows<double>[kind].name;
}

enum matrix_kind matrix_kind_of(int64_t index)
{
    int64_t kind = index % ROUND;
    return kind < KIND_COUNT ? (enum matrix_kind)kind : KIND_RANDOM;
}

template <typename T> std::vector<T> matrices_of(int n, int64_t count)
{
    std::vector<T> all((size_t)n * n * count);
    std::mt19937_64 random(7 * n + sizeof(T));
    for (int64_t k = 0; k < count; k++) {
        maker<T> of = {n, k, &all[(size_t)k * n * n], random};
        of.entries([&](int, int) { return of.normal(); });
        rows<T>[matrix_kind_of(k)].make(of);
    }
    return all;
}

template std::vector<float> matrices_of(int n, int64_t count);
template std::vector<double> matrices_of(int n, int64_t count);
