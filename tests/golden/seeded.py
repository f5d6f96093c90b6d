"""Numbers and matrices that have the same bits on every machine.

A number is the hash of a seed and a counter. Only conversions of integers, powers of two, and
single additions, products and quotients follow, each of which IEEE 754 rounds correctly. So no
result depends on NumPy's version, on a BLAS or on the CPU: sums of many numbers are made of
integers, and no function of libm is called.

A family is a function of (draw, n): a stack of matrices [k, n, n].
"""

import functools
import hashlib

import numpy as np

STEP, MIX1, MIX2 = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9,
                                           0x94D049BB133111EB))


class Draw:
    """A stream of numbers that a text seeds, in one precision."""

    def __init__(self, seed, dtype):
        self.state = np.frombuffer(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "<u8")[0]
        self.dtype = np.dtype(dtype)
        self.wide = self.dtype.itemsize == 8
        self.max_exponent = 1023 if self.wide else 127

    def words(self, shape):
        """64 bits each (splitmix64)."""
        count = int(np.prod(shape))
        with np.errstate(over="ignore"):
            z = self.state + STEP * np.arange(1, count + 1, dtype=np.uint64)
            self.state = self.state + STEP * np.uint64(count + 1)
            z = (z ^ (z >> np.uint64(30))) * MIX1
            z = (z ^ (z >> np.uint64(27))) * MIX2
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def uniform(self, *shape):
        """In [-1, 1)."""
        drop, places = (11, 52) if self.wide else (40, 23)
        k = (self.words(shape) >> np.uint64(drop)).astype(self.dtype)
        return k * self.dtype.type(2.0**-places) - self.dtype.type(1)

    def integers(self, low, high, *shape):
        """From low to high, both included, as int64."""
        return (self.words(shape) % np.uint64(high - low + 1)).astype(np.int64) + low

    def signs(self, *shape):
        return (2 * self.integers(0, 1, *shape) - 1).astype(self.dtype)

    def order(self, n):
        """A permutation."""
        return np.argsort(self.words((n,)), kind="stable")

    def powers(self, exponents):
        """2 to the power of integers, exact as far as the precision reaches."""
        return np.ldexp(np.ones(np.shape(exponents), self.dtype), np.asarray(exponents, np.int32))

    def number(self, value):
        return self.dtype.type(value)


def ramp(n, low, high):
    """n integers from low to high."""
    return low + (high - low) * np.arange(n, dtype=np.int64) // max(1, n - 1)


def add_diagonal(a, value):
    """The same with value added on the diagonals."""
    a = a.copy()
    index = np.arange(a.shape[-1])
    a[..., index, index] += a.dtype.type(value)
    return a


def inverse(a):
    """Of diagonally dominant matrices [k, n, n], by Gauss-Jordan elimination without pivoting."""
    a = a.copy()
    one = a.dtype.type(1)
    for k in range(a.shape[-1]):
        pivot = one / a[:, k, k]
        column = a[:, :, k].copy()
        column[:, k] = 0
        a[:, :, k] = 0
        a[:, k, k] = one
        a[:, k] = a[:, k] * pivot[:, None]
        a = a - column[:, :, None] * a[:, k, None, :]
    return a


def spd(draw, n):
    """Symmetric positive definite: small integers, squared. A BLAS may add them in any order: all
    sums are whole numbers below 2^24, and so exact."""
    b = draw.integers(-4, 4, n, n).astype(np.float64)
    return (b @ b.T + (n + 1) * np.eye(n)).astype(draw.dtype)


@functools.lru_cache(maxsize=16)
def known(n, count, dtype):
    """Dominant matrices and their inverses, [count, n, n] each; not to be written to."""
    a = add_diagonal(Draw(f"known {n}", dtype).uniform(count, n, n), n)
    return a, inverse(a)


# ---- Families of dense matrices ----


def ordinary(draw, n):
    """Dense and invertible as a rule; the last ones are badly scaled, and full of equal numbers."""
    a = draw.uniform(5, n, n)
    a[1] = add_diagonal(a[1], n)
    a[2] = add_diagonal(a[2], n)[draw.order(n)]
    a[3] = a[3] * draw.powers(draw.integers(-20, 20, n))[:, None]
    a[4] = draw.integers(-3, 3, n, n).astype(draw.dtype)
    return a


def structured(draw, n):
    """What `auto` distinguishes: positive definite, the same but for rounding, indefinite, two
    triangles, a diagonal, three diagonals."""
    a = draw.uniform(7, n, n)
    a[0] = spd(draw, n)
    a[1] = spd(draw, n) * draw.number(0.75)
    a[1, 0, n - 1] = np.nextafter(a[1, 0, n - 1], draw.number(2e4))
    a[2] = np.tril(a[2]) + np.tril(a[2], -1).T
    a[3:5] = add_diagonal(a[3:5] * draw.number(0.5), 2)
    a[3], a[4] = np.tril(a[3]), np.triu(a[4])
    a[5] = np.diag(np.diag(a[5]))
    a[6] = np.triu(np.tril(add_diagonal(a[6], 1.5), 1), -1)
    return a


def singular(draw, n):
    """Singular, exactly or to working precision; the last two merely have a pivot of zero."""
    a = draw.uniform(8, n, n)
    a[0] = 0
    a[1, n - 1] = a[1, 0]
    a[2] = draw.integers(1, 3, n, 1) * draw.integers(1, 3, 1, n)
    a[3, n // 2] = 0
    a[4, :, n // 3] = 0
    a[5] = np.triu(a[5])
    a[5, n // 2, n // 2] = 0
    a[6] = np.eye(n)[draw.order(n)]
    a[7] = np.ones((n, n)) - np.eye(n)
    return a


def extreme(draw, n):
    """NaN, infinity, scales 1e+-150 (FP32: 1e+-15), denormals, Hilbert's matrix, growing elements,
    numbers near the largest."""
    a = draw.uniform(8, n, n)
    a[0, n - 1, n // 2] = np.nan
    a[1, n // 2, 0] = np.inf
    far = 498 if draw.wide else 49
    a[2] = a[2] * draw.powers(ramp(n, -far, far))[:, None]
    a[3] = a[3] * draw.powers(ramp(n, far, -far))[None, :]
    a[4] = a[4] * draw.powers([-draw.max_exponent])[0] * draw.number(0.25)
    index = np.arange(n)
    a[5] = draw.number(1) / (index[:, None] + index[None, :] + 1).astype(draw.dtype)
    a[6] = np.eye(n) - np.tril(np.ones((n, n)), -1) * draw.number(0.9375)
    a[6, :, n - 1] = 1
    a[7] = a[7] * draw.powers([draw.max_exponent - 4])[0]
    return a


# ---- Families of three diagonals: a function of (draw, n): DL, D, DU ----


def _bands(draw, n, count):
    return draw.uniform(count, n - 1), draw.uniform(count, n), draw.uniform(count, n - 1)


def dominant_bands(draw, n):
    """Dominant by rows, by columns, weakly (second differences), and the harmless (1, 2, 1)."""
    dl, d, du = _bands(draw, n, 5)
    d = d + draw.signs(5, n) * draw.number(3)
    dl[3], d[3], du[3] = -1, 2, -1
    dl[4], d[4], du[4] = 1, 2, 1
    du[1] = du[1] * draw.number(0.125)
    if n > 2:
        du[2, n // 2 - 1] = 0
        dl[2, n // 2 - 1] = 0
    return dl, d, du


def general_bands(draw, n):
    """Without a dominant diagonal; one has zeros on it, one falls apart into blocks."""
    dl, d, du = _bands(draw, n, 4)
    d[1, ::2] = 0
    dl[2, 1::3] = 0
    du[2, 1::3] = 0
    du[3, ::4] = 0
    return dl, d, du


def hostile_bands(draw, n):
    """NaN, infinity, zero, a row of zeros, huge, denormal, and graded ones."""
    dl, d, du = _bands(draw, n, 7)
    d[0, n // 2] = np.nan
    d[1, n - 1] = np.inf
    dl[2], d[2], du[2] = 0, 0, 0
    d[3, n // 2] = 0
    dl[3, n // 2 - 1 : n // 2] = 0
    du[3, n // 2 : n // 2 + 1] = 0
    for k, exponent in ((4, draw.max_exponent - 2), (5, -draw.max_exponent - 2)):
        scale = draw.powers([exponent])[0]
        dl[k], d[k], du[k] = dl[k] * scale, d[k] * scale, du[k] * scale
    far = 498 if draw.wide else 49
    d[6] = d[6] * draw.powers(ramp(n, -far, far))
    return dl, d, du
