/* tests/support/gallery.h: entries of matrices that have a name and have broken inverters before.
 *
 * Entry (i, j) of the matrix of order n, from 0. Threads: any.
 */
#ifndef TESTS_SUPPORT_GALLERY_H
#define TESTS_SUPPORT_GALLERY_H

#include <stdint.h>

/* 1 / (i + j + 1): condition e^(3.5 n). */
double gallery_hilbert(int64_t i, int64_t j, int64_t n);
/* Upper triangular, no diagonal entry shows its condition: 1e6 at n = 30, 4e18 at n = 90. */
double gallery_kahan(int64_t i, int64_t j, int64_t n);
double gallery_kahan_transposed(int64_t i, int64_t j, int64_t n);
/* Gaussian kernels of n points in a row, 1.5 and 2.4 distances wide: conditions of 7e4 and 2e12. */
double gallery_rbf_narrow(int64_t i, int64_t j, int64_t n);
double gallery_rbf_wide(int64_t i, int64_t j, int64_t n);

/* Partial pivoting lets elements grow, by 2^(n-1) at most, though the condition is small. */

/* Its last column doubles at every step: Wilkinson's. */
double gallery_growing(int64_t i, int64_t j, int64_t n);
/* The same with -0.9 below the diagonal: inexact, so that what has grown is lost. */
double gallery_growing_inexact(int64_t i, int64_t j, int64_t n);
/* Wright's: multiple shooting for a boundary value problem of two equations. */
double gallery_wright(int64_t i, int64_t j, int64_t n);
/* Foster's: quadrature for a Volterra equation. */
double gallery_foster(int64_t i, int64_t j, int64_t n);

#endif
