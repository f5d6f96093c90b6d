/* tests/support/gallery.c: see gallery.h. */
#include "tests/support/gallery.h"

#include <math.h>

double gallery_hilbert(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return 1 / (double)(i + j + 1);
}

double gallery_kahan(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    double scale = pow(sin(1.2), (double)i);
    return i == j ? scale : i < j ? -cos(1.2) * scale : 0;
}

double gallery_kahan_transposed(int64_t i, int64_t j, int64_t n)
{
    return gallery_kahan(j, i, n);
}

static double gaussian(int64_t i, int64_t j, double width)
{
    const double distance = (double)(i - j) / width;
    return exp(-distance * distance / 2);
}

double gallery_rbf_narrow(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return gaussian(i, j, 1.5);
}

double gallery_rbf_wide(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return gaussian(i, j, 2.4);
}

double gallery_growing(int64_t i, int64_t j, int64_t n)
{
    return i == j || j == n - 1 ? 1 : i > j ? -1 : 0;
}

double gallery_growing_inexact(int64_t i, int64_t j, int64_t n)
{
    return i == j || j == n - 1 ? 1 : i > j ? -0.9 : 0;
}

double gallery_wright(int64_t i, int64_t j, int64_t n)
{
    const double h = 0.3, factor = exp(-h / 6);
    if (i == j || (i < 2 && j == n - 2 + i))
        return 1;
    if (i / 2 != j / 2 + 1)
        return 0;
    return -factor * (i % 2 == j % 2 ? cosh(h) : sinh(h));
}

double gallery_foster(int64_t i, int64_t j, int64_t n)
{
    const double h = 0.6;
    double value = i == j ? 1 : 0;
    if (i > 0 && j <= i)
        value -= j == 0 || j == i ? h / 2 : h;
    return j == n - 1 ? value - 1 : value;
}
