"""Arrays of numbers that have twice the digits of a double, for what is taken as the truth.

A number is the sum high + low of two doubles, low at most half a last digit of high: 106 bits. A
long double does not do for A0 + X Y^T with numbers of A0 from 1e-15 to 1: where terms of 1e15
cancel, four of its digits are left. Operations are those of Dekker and Knuth. Divisors must not be
0, and no product may leave the range of doubles. Shapes are broadcast as numpy does.
"""

import numpy as np

SPLIT = 2.0**27 + 1  # into two halves, whose products are exact


def halves(x):
    scaled = SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


class Wide:
    def __init__(self, high, low=0.0):
        """|low| is far below |high|, which may also be numbers of any other kind."""
        high = np.asarray(high, float)
        self.high = high + low
        self.low = low - (self.high - high)

    def __getitem__(self, where):
        return self.of(lambda part: part[where])

    def __neg__(self):
        return Wide(-self.high, -self.low)

    def __add__(self, other):
        total = self.high + other.high
        share = total - self.high
        lost = (self.high - (total - share)) + (other.high - share)
        return Wide(total, lost + (self.low + other.low))

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        product = self.high * other.high
        (a, b), (c, d) = halves(self.high), halves(other.high)
        lost = ((a * c - product) + a * d + b * c) + b * d
        return Wide(product, lost + (self.high * other.low + self.low * other.high))

    def __truediv__(self, other):
        quotient, rest = Wide(0), self
        for _ in range(3):
            digits = Wide(rest.high / other.high)
            quotient, rest = quotient + digits, rest - digits * other
        return quotient

    def of(self, change):
        """What change, which moves or picks numbers, makes of it."""
        made = Wide(0)
        made.high, made.low = change(self.high), change(self.low)
        return made

    def put(self, where, other):
        self.high[where], self.low[where] = other.high, other.low

    def sum(self):
        """Along the first axis."""
        terms = self
        while len(terms.high) > 1:
            half = len(terms.high) // 2
            odd = terms[2 * half:]
            terms = terms[:half] + terms[half:2 * half]
            terms = terms.of(np.array)
            if len(odd.high):
                terms.put(0, (terms[0] + odd[0]))
        return terms[0]


def solve(rows):
    """Of rows [B, m, m + k], C next to R: C^-1 R [B, m, k], by elimination with pivoting. Changes
    rows."""
    m, matrices = rows.high.shape[1], np.arange(len(rows.high))
    for s in range(m):
        best = s + np.abs(rows.high[:, s:, s]).argmax(axis=1)
        pivot = rows[matrices, best]
        rows.put((matrices, best), rows[:, s].of(np.array))
        pivot = pivot / pivot[:, s, None]
        rows = rows - rows[:, :, s, None] * pivot[:, None]
        rows.put((slice(None), s), pivot)
    return rows[:, :, m:]


def inverse(a):
    """a [B, n, n], well scaled."""
    def with_identity(part):
        return np.concatenate([part, np.zeros(part.shape)], axis=2)

    count, n, _ = a.high.shape
    rows = a.of(with_identity)
    rows.put((..., slice(n, None)), Wide(np.broadcast_to(np.eye(n), (count, n, n))))
    return solve(rows)


def inverse_of_sum(a0, x, y):
    """(A0 + X Y^T)^-1 [B, n, n] of the diagonals a0 [B, n] and x, y [B, n, m], by Woodbury: A0^-1 -
    P Y^T A0^-1, P = A0^-1 X C^-1, C = I + Y^T A0^-1 X. C's own inverse would lose digits where its
    numbers are far larger than those of P."""
    (count, n, m), a0, x, y = x.shape, Wide(a0), Wide(x), Wide(y)
    w = x / a0[:, :, None]  # P^T: C^T P^T = (A0^-1 X)^T
    terms = w[:, :, :, None] * y[:, :, None, :]
    c_t = terms.of(lambda part: np.moveaxis(part, 1, 0)).sum() + Wide(np.eye(m))
    rows = Wide(np.zeros((count, m, m + n)))
    rows.put((..., slice(None, m)), c_t)
    rows.put((..., slice(m, None)), w.of(lambda part: np.swapaxes(part, 1, 2)))
    p_t = solve(rows)
    exact = Wide(np.broadcast_to(np.eye(n), (count, n, n)))
    for c in range(m):
        exact = exact - p_t[:, c, :, None] * y[:, None, :, c]
    return exact / a0[:, None, :]
