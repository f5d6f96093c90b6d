"""Matrices to try, and the contract they are tried against.

eps is twice the unit roundoff. The accuracy contract is |I - X A| / (n |A| |X| eps) <= 15 in the
1-norm for every answer with INFO 0.
"""

import functools

import numpy as np

EPS = {np.dtype("f4"): 2.0**-23, np.dtype("f8"): 2.0**-52}
BOUND = 15.0
EXTENDED_MAX = 66  # orders above it are judged in double: that adds at most 1 to the ratio


def norm1(matrix):
    return float(np.abs(matrix.astype(np.longdouble)).sum(axis=0).max()) if matrix.size else 0.0


def ratio(a, x):
    """The contract's ratio for one matrix and its computed inverse."""
    n = a.shape[-1]
    if n == 0:
        return 0.0
    wide = np.longdouble if a.dtype.itemsize == 8 and n <= EXTENDED_MAX else np.float64
    # Powers of two keep the products in range and change no bit of the ratio.
    scale = 2.0 ** -np.floor(np.log2(norm1(a)))
    left = x.astype(wide) / wide(scale)
    right = a.astype(wide) * wide(scale)
    residual = np.abs(np.eye(n, dtype=wide) - left @ right).sum(axis=0).max()
    size = np.abs(right).sum(axis=0).max() * np.abs(left).sum(axis=0).max()
    return float(residual / (n * size * EPS[a.dtype]))


def hardly_invertible(a):
    """Is the condition within n^2 of what the precision can tell from singular?"""
    values = np.linalg.svd(a.astype("f8"), compute_uv=False)
    return values[-1] <= values[0] * len(a) ** 2 * EPS[a.dtype]


def check_contract(a, x, info, rcond, what="", gives_up=False):
    """One matrix's answer: precision, INFO, RCOND and accuracy belong together. With gives_up,
    INFO n + 2 is an answer too where a is hardly invertible, whatever RCOND. INFO 0 may come with
    an RCOND below eps, where that is so for a's scaling alone."""
    n, eps = a.shape[-1], EPS[a.dtype]
    assert x.dtype == a.dtype and x.shape == a.shape, what
    if not np.isfinite(a).all():
        assert info == -1 and np.isnan(x).all() and np.isnan(rcond), (what, info, rcond)
        return
    if n == 0:
        assert info == 0 and rcond == 1, (what, info, rcond)
        return
    if 1 <= info <= n:
        assert np.isnan(x).all() and rcond == 0, (what, info, rcond)
        return
    if np.isfinite(x).all():
        expected = float((np.longdouble(1) / norm1(a)) / norm1(x))
        assert abs(rcond - expected) <= 8 * n * eps * expected + 1e-300, (what, rcond, expected)
    else:
        assert info == n + 1 and rcond == 0, (what, info, rcond)
    if gives_up and info == n + 2:
        assert hardly_invertible(a), (what, info, rcond)
        return
    assert info == 0 or (info == n + 1 and rcond < eps), (what, info, rcond)
    if info == 0:
        got = ratio(a, x)
        assert got <= BOUND, f"{what}: ratio {got:.3g} at n = {n}"


def check_answers(a, outputs, name="INVERSE", gives_up=False):
    """check_contract over a batch of v2 outputs."""
    assert outputs["INFO"].dtype == np.int32
    for i, matrix in enumerate(a):
        check_contract(
            matrix,
            outputs[name][i],
            int(outputs["INFO"][i]),
            outputs["RCOND"][i],
            f"matrix {i}",
            gives_up,
        )


def random(n, dtype="f8", seed=0, batch=None):
    """Well conditioned: uniform in [-1, 1) with a diagonal that dominates a little."""
    generator = np.random.default_rng([seed, n])
    shape = (n, n) if batch is None else (batch, n, n)
    return (generator.uniform(-1, 1, shape) + np.sqrt(n) * np.eye(n)).astype(dtype)


def conditioned(n, condition, scale, dtype, seed):
    """Singular values from scale down to scale / condition, geometric."""
    generator = np.random.default_rng([seed, n, 7])
    left = np.linalg.qr(generator.standard_normal((n, n)))[0]
    right = np.linalg.qr(generator.standard_normal((n, n)))[0]
    values = condition ** (-np.arange(n) / max(1, n - 1))
    return (((left * values) @ right) * scale).astype(dtype)


def dge_types(n, dtype):
    """The eleven DGE types of LAPACK's dlatb4, as {name: matrix}."""
    eps = np.finfo(dtype).eps / 2
    small = 0.25 * float(np.finfo(dtype).tiny) / eps
    middle, large = 2.0, 1 / small
    base = conditioned(n, middle, 1.0, dtype, 4)
    types = {
        "diagonal": np.diag(np.diag(conditioned(n, middle, 1.0, dtype, 1)) + 2).astype(dtype),
        "upper": np.triu(base) + 2 * np.eye(n, dtype=dtype),
        "lower": np.tril(base) + 2 * np.eye(n, dtype=dtype),
        "random": base,
        "first column zero": base.copy(),
        "last column zero": base.copy(),
        "last half zero": base.copy(),
        "ill conditioned": conditioned(n, np.sqrt(0.1 / eps), 1.0, dtype, 8),
        "barely conditioned": conditioned(n, 0.1 / eps, 1.0, dtype, 9),
        "near underflow": conditioned(n, middle, small, dtype, 10),
        "near overflow": conditioned(n, middle, large / 4, dtype, 11),
    }
    types["first column zero"][:, :1] = 0
    types["last column zero"][:, n - 1 :] = 0
    types["last half zero"][:, n // 2 :] = 0
    return {name: np.ascontiguousarray(m.astype(dtype)) for name, m in types.items()}


def hilbert(n):
    i = np.arange(n)
    return 1.0 / (i[:, None] + i[None, :] + 1)


def kahan(n, theta=1.2):
    s, c = np.sin(theta), np.cos(theta)
    return np.diag(s ** np.arange(n)) @ (np.eye(n) - c * np.triu(np.ones((n, n)), 1))


def frank(n):
    i, j = np.indices((n, n))
    return np.where(j >= i - 1, n - np.maximum(i, j), 0).astype(float)


def vandermonde(n):
    return np.vander(np.linspace(-1, 1, n), increasing=True)


def gfpp(n, c=1.0):
    """Growth (1+c)^(n-1) in Gaussian elimination with partial pivoting."""
    a = np.eye(n) - c * np.tril(np.ones((n, n)), -1)
    a[:, -1] = 1
    return a


def wright(n, h=0.3):
    """Multiple shooting for a two-point problem: growth exponential in n, well conditioned."""
    step = np.exp(-h / 6) * np.array([[np.cosh(h), np.sinh(h)], [np.sinh(h), np.cosh(h)]])
    a = np.eye(n) + np.kron(np.eye(n // 2, k=-1), -step)
    a[:2, -2:] = np.eye(2)
    return a


def foster(n, h=0.6):
    """Quadrature for a Volterra equation: growth exponential in n, well conditioned."""
    a = np.eye(n) - h * np.tril(np.ones((n, n)))
    a += np.diag(np.full(n, h / 2))
    a[:, 0] += h / 2
    a[0, 0] = 1
    a[:, -1] -= 1
    return a


def permutation(n, seed=3):
    return np.eye(n)[np.random.default_rng(seed).permutation(n)]


def toeplitz(n):
    """(2, -1) on the diagonals; toeplitz_inverse is exact."""
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


def toeplitz_inverse(n):
    i = np.arange(1, n + 1)
    low, high = np.minimum.outer(i, i), np.maximum.outer(i, i)
    return low * (n + 1 - high) / (n + 1)


def pascal(n):
    """Integer, determinant 1, integer inverse."""
    a = np.ones((n, n))
    for i in range(1, n):
        a[i, 1:] = np.cumsum(a[i - 1])[1:]
    return a


def spd(n, dtype="f8", seed=5):
    b = random(n, "f8", seed)
    return (b @ b.T + n * np.eye(n)).astype(dtype)


GALLERY = {
    "hilbert 5": functools.partial(hilbert, 5),
    "hilbert 12": functools.partial(hilbert, 12),
    "kahan 30": functools.partial(kahan, 30),
    "frank 12": functools.partial(frank, 12),
    "vandermonde 10": functools.partial(vandermonde, 10),
    "gfpp 20": functools.partial(gfpp, 20),
    "gfpp 50": functools.partial(gfpp, 50),
    "identity 33": functools.partial(np.eye, 33),
    "permutation 64": functools.partial(permutation, 64),
    "toeplitz 100": functools.partial(toeplitz, 100),
    "pascal 8": functools.partial(pascal, 8),
    "spd 40": functools.partial(spd, 40),
    "repeated rows": lambda: np.ones((6, 6)),
    "zero": lambda: np.zeros((5, 5)),
    "one by one": lambda: np.array([[3.0]]),
    "tiny one by one": lambda: np.array([[1e-310]]),
    "denormals": lambda: np.eye(4) * 1e-310,
    "large scale": lambda: random(10) * 1e150,
    "small scale": lambda: random(10) * 1e-150,
    "nan": lambda: np.where(np.eye(4) > 0, np.nan, 1.0),
    "infinity": lambda: np.where(np.eye(4) > 0, np.inf, 1.0),
}


def symmetric_kinds(n, dtype):
    """Matrices that equal their transposes, of the kinds that `auto` knows and of others."""
    a = random(n, seed=n + 11)
    a = (a + a.T) / 2
    saddle = a.copy()
    saddle[(n + 1) // 2 :, (n + 1) // 2 :] = 0
    arrow = np.diag(2 + np.diag(a))
    arrow[-1:] = a[-1:]
    arrow[:, -1:] = a[:, -1:]
    kinds = {
        "general": a,
        "definite": a + n * np.eye(n),
        "saddle": saddle,
        "tridiagonal": np.triu(np.tril(a, 1), -1) + np.diag(np.where(np.arange(n) % 2, 3, -3)),
        "arrow": arrow,
        "diagonal": np.diag(np.diag(a)),
        "reversal": np.eye(n)[::-1],
        "hilbert": hilbert(n),
        "ones": np.ones((n, n)),
    }
    return {name: matrix.astype(dtype) for name, matrix in kinds.items()}


def is_symmetric(a):
    """To the bit; a NaN is like any other."""
    image = np.ascontiguousarray(a.T)
    return bool(np.all((np.isnan(a) & np.isnan(image)) | (a.view(f"u{a.itemsize}")
                                                          == image.view(f"u{a.itemsize}"))))


def growth_that_ends(n, last, dtype, seed):
    """L U with multipliers up to 1 and pivots near 1; the last column of U grows up to row `last`
    and is small again behind it, so that neither the pivots nor A show it."""
    generator = np.random.default_rng([seed, n, last])
    lower, column = np.eye(n), np.zeros(n)
    column[0] = 0.9
    for i in range(1, n):
        if i <= last:
            lower[i, :i] = -generator.uniform(0.9, 1, i)
            column[i] = 0.7 - lower[i, :i] @ column[:i]
            continue
        row = generator.uniform(-0.2, 0.2, i)
        row[:last] = generator.uniform(0.85, 1, last)
        row[last] = -(row[:last] @ column[:last]) / column[last]
        row[: last + 1] /= max(1, abs(row[last]) * 1.01)
        lower[i, :i], column[i] = row, 0.5
    upper = np.triu(generator.uniform(-0.3, 0.3, (n, n)), 1)
    upper[np.arange(n), np.arange(n)] = generator.uniform(1, 1.3, n)
    upper[:, -1] = column
    upper[-1, -1] = 1.1
    return (lower @ upper).astype(dtype)


# Well conditioned, and ruined by partial pivoting: INFO must be 0.
GROWING = {f"gfpp 0.9 {n}": functools.partial(gfpp, n, 0.9) for n in (20, 32, 33, 34, 64, 100)}
# Errors of exactly these matrices cancel in sums of rows and columns.
GROWING |= {
    f"gfpp {n} times {c}": lambda n=n, c=c: gfpp(n) * c
    for n, c in ((12, 1.5951642990112305), (16, 1.9221832752227783), (24, 1.0899590817718934))
}
GROWING |= {f"gfpp {n}": functools.partial(gfpp, n) for n in (64, 100)}
GROWING |= {f"wright {n}": functools.partial(wright, n) for n in (100, 200)}
GROWING |= {f"foster {n}": functools.partial(foster, n) for n in (33, 100)}
