"""The seeded corpus: rows of requests, in columns by the matrix order.

A row is a method, its options, the outputs asked for, a family of matrices and a precision. A
column is a range of orders. All answers of a row in a column make one hash. A row's numbers follow
from its own name, so new rows leave the others as they are.
"""

import dataclasses
import typing

import numpy as np

import seeded

# Orders beyond 257 are for kernels that begin there: blocks of 128 on the host, Cholesky and
# triangles on a GPU. The last column is for GPUs alone.
COLUMNS = {"1-8": range(1, 9), "9-16": range(9, 17), "17-24": range(17, 25),
           "25-32": range(25, 33), "33-40": range(33, 41), "64": [64], "100": [100], "257": [257],
           "330,1030": [330, 1030], "2100": [2100]}
NAMES = list(COLUMNS)
SMALL = NAMES[:5]
TO_100, TO_257 = NAMES[:7], NAMES[:8]
ON_CPU = NAMES[:9]
TYPES = {"f32": "<f4", "f64": "<f8"}


@dataclasses.dataclass
class Request:
    inputs: dict
    parameters: dict
    outputs: list | None  # None: those answered by default


@dataclasses.dataclass
class Row:
    method: str
    family: str
    parameters: dict
    outputs: list | None
    columns: list
    make: typing.Callable  # (draw, n) -> [{input: stack}]
    tag: str = ""  # what else distinguishes it
    precision: str = ""

    @property
    def key(self):
        options = [f"{name}={value}" for name, value in self.parameters.items()]
        words = [self.method, self.precision, self.family, *filter(None, [self.tag]), *options]
        return " ".join(words)

    def requests(self, column):
        for n in COLUMNS[column]:
            draw = seeded.Draw(f"{self.key} {n}", TYPES[self.precision])
            for inputs in self.make(draw, n):
                yield n, Request(inputs, self.parameters, self.outputs)


def fewer(n, stack):
    """Large matrices are few."""
    if n <= 257:
        return stack
    return stack[::4][:2] if n > 1000 else stack[::2]


# ---- lu, lu_factor, gauss_jordan, auto ----

DENSE = [("lu", {}), ("lu_factor", {}), ("gauss_jordan", {}), ("auto", {}), ("auto", {"spd": True})]
FAMILIES = {"ordinary": seeded.ordinary, "structured": seeded.structured,
            "singular": seeded.singular, "extreme": seeded.extreme}
STACK_ORDERS = (3, 8, 13, 16, 21, 24, 27, 32, 35, 64)
STACK = 300


def dense(family):
    def make(draw, n):
        stack = FAMILIES[family](draw, n)
        return [{"A": fewer(n, stack)}]

    return make


def stack_of(draw, n):
    """So many matrices that groups, and threads with a matrix each, are filled."""
    if n not in STACK_ORDERS:
        return []
    a = draw.uniform(STACK if n <= 32 else STACK // 6, n, n)
    a[::7] = a[::7] * 0
    a[3::7, n - 1] = a[3::7, 0]
    return [{"A": a}]


def dense_rows():
    for method, options in DENSE:
        for family in FAMILIES:
            columns = NAMES if family in ("ordinary", "structured") else TO_257
            yield Row(method, family, options, None, columns, dense(family))
        if not options:
            yield Row(method, "stack", {}, None, NAMES[:6], stack_of)


# ---- iterative ----

SCHEMES = ("auto", "newton_schulz", "chebyshev", "order5", "order7", "order7_horner", "order19")
STARTS = ("low_precision", "diagonal", "transpose", "scaled_identity")
STEPS = ["INVERSE", "INFO", "RCOND", "METHOD", "ITERATIONS"]
MEASURED = [*STEPS, "RESIDUAL", "RESIDUAL_HISTORY"]


def good(draw, n):
    """Those that an iteration inverts: dense, dominant, a triangle, positive definite."""
    a = draw.uniform(4, n, n)
    a[0] = add_some(a[0], n)
    a[1] = seeded.add_diagonal(a[1], n)
    a[2] = np.tril(seeded.add_diagonal(a[2], 4))
    a[3] = seeded.spd(draw, n)
    return a


def add_some(a, n):
    """Moderately conditioned: n + 2 in the diagonal's every other place."""
    a = a.copy()
    index = np.arange(0, n, 2)
    a[index, index] += a.dtype.type(n + 2)
    return a


def bad(draw, n):
    """Of the hostile families, every other one."""
    return np.concatenate([seeded.singular(draw, n)[::2], seeded.extreme(draw, n)[1::2]])


def alone(family):
    return lambda draw, n: [{"A": family(draw, n)[: 2 if n > 100 else 8]}]


def warm(error):
    """V0: the inverse, its entries off by a factor of up to 1 + error."""
    def make(draw, n):
        a, b = seeded.known(n, 3, draw.dtype)
        v0 = b * (draw.uniform(3, n, n) * draw.number(error) + draw.number(1))
        v0[2] = 0
        return [{"A": a, "V0": v0}]

    return make


def iterative_rows():
    def row(family, parameters, outputs, columns, make, tag=""):
        return Row("iterative", family, parameters, outputs, columns, make, tag)

    for scheme in SCHEMES:
        yield row("good", {"scheme": scheme}, MEASURED, TO_257, alone(good), "measured")
    for start in STARTS:
        yield row("good", {"initial": start}, STEPS, TO_257, alone(good))
    yield row("good", {}, None, [*TO_257, "2100"], alone(good))
    yield row("good", {"tolerance": 1e-3}, MEASURED, TO_257, alone(good))
    yield row("good", {"tolerance": 1e-6}, STEPS, TO_100, alone(good))
    yield row("good", {"tolerance": 2e-14}, STEPS, TO_100, alone(good))
    yield row("good", {"max_iterations": 3}, MEASURED, TO_100, alone(good))
    yield row("warm", {}, STEPS, TO_257, warm(0.001))
    yield row("cold", {"scheme": "chebyshev"}, MEASURED, TO_100, warm(2))
    yield row("stack", {}, STEPS, SMALL, stack_of)
    for parameters in ({}, {"scheme": "newton_schulz", "initial": "transpose"},
                       {"scheme": "order7_horner"}, {"tolerance": 1e-6}):
        yield row("bad", parameters, MEASURED, TO_100, alone(bad))


# ---- ism ----

CHANGE = ["INVERSE", "INFO", "RCOND", "METHOD", "DET_RATIO"]
FACTORS = [*CHANGE, "U", "R", "V"]
VARIANTS = ("auto", "single", "block", "reduced_memory")
KINDS = ("A0=none", "A0=scalar", "A0=diagonal", "A0_INVERSE", "A0+A0_INVERSE")


def ranks(n):
    """Thin, a quarter, and either half or all of the columns."""
    return sorted({1 + n % 4, max(1, n // 4), n if n % 2 else n // 2 + 1})


def base_of(draw, kind, n, count):
    """The inputs that name A0."""
    if kind == "A0=none":
        return {}
    if kind == "A0=scalar":
        return {"A0": draw.uniform(count, 1) + draw.signs(count, 1) * draw.number(2)}
    if kind == "A0=diagonal":
        return {"A0": draw.uniform(count, n) + draw.signs(count, n) * draw.number(2)}
    if kind == "A0_INVERSE":
        return {"A0_INVERSE": seeded.add_diagonal(draw.uniform(count, n, n), n)}
    a, b = (stack.copy() for stack in seeded.known(n, count, draw.dtype))
    b[count - 1] = b[count - 1] * draw.number(1.0625)  # has drifted
    return {"A0": a, "A0_INVERSE": b}


def changed(kind, ranks_of, count=3):
    """A0 + X Y^T for each rank; of the largest order one, for a request has 256 MiB at most."""
    def make(draw, n):
        requests, k = [], 1 if n > 2000 else count
        for m in ranks_of(n):
            x, y = draw.uniform(k, n, m), draw.uniform(k, n, m)
            requests.append({"X": x, "Y": y, **base_of(draw, kind, n, k)})
        return requests

    return make


def hostile_change(kind):
    """NaN and infinity, a singular change, columns far apart, cancelling terms, zeros, denormals,
    overflow, and an A0 of zeros."""
    def make(draw, n):
        m = min(n, 1 + n % 5)
        x, y = draw.uniform(9, n, m), draw.uniform(9, n, m)
        base = base_of(draw, kind, n, 9)
        x[0, 0, 0], y[1, n - 1, m - 1] = np.nan, np.inf
        x[2], y[2] = 0, 0
        x[2, 0, 0], y[2, 0, 0] = 1, -1
        for entry in base.values():
            entry[2] = 1 if entry.ndim < 3 else np.eye(n)
            entry[8] = 0
        far = draw.powers([700 if draw.wide else 70])[0]
        x[3], y[3] = x[3] * far, y[3] / far
        x[4, :, m - 1], y[4, :, m - 1] = x[4, :, 0] * 4096, -y[4, :, 0]
        x[4, :, 0] = x[4, :, 0] * 4096
        x[5] = 0
        x[6] = x[6] * draw.powers([-draw.max_exponent])[0] * draw.number(0.5)
        x[7] = x[7] * draw.powers([draw.max_exponent - 1])[0]
        y[7] = y[7] * 1024
        return [{"X": x, "Y": y, **base}]

    return make


def wholes(draw, n):
    return [{"A": seeded.ordinary(draw, n)[:3]}, {"A": seeded.structured(draw, n)[:4]}]


def ism_rows():
    def row(family, parameters, outputs, columns, make, tag=""):
        return Row("ism", family, parameters, outputs, columns, make, tag)

    for kind in KINDS:
        for variant in VARIANTS:
            large = ["2100"] if variant == "auto" and kind != "A0+A0_INVERSE" else []
            yield row(kind, {"variant": variant}, CHANGE, TO_257 + large, changed(kind, ranks))
        yield row(kind, {}, CHANGE, TO_100, hostile_change(kind), "hostile")
    for variant in VARIANTS:
        yield row("A", {"variant": variant}, CHANGE, TO_100, wholes)
        yield row("A0=diagonal", {"variant": variant}, FACTORS, TO_100,
                  changed("A0=diagonal", ranks), "factors")
    for kind in KINDS[2:]:
        for variant, size in (("block", 5), ("reduced_memory", 3)):
            yield row(kind, {"variant": variant, "block_size": size}, CHANGE, TO_100,
                      changed(kind, ranks))
    yield row("A0_INVERSE", {"block_size": 4}, FACTORS, TO_100, changed("A0_INVERSE", ranks),
              "factors")
    yield row("A", {}, FACTORS, TO_100, lambda draw, n: [{"A": bad(draw, n)}], "hostile")
    yield row("A0_INVERSE", {}, ["DET_RATIO"], TO_100, changed("A0_INVERSE", ranks), "ratio")
    yield row("A0=diagonal", {}, None, NAMES,
              changed("A0=diagonal", lambda n: [n // 8 + 1], 2), "eighth")
    yield row("A0_INVERSE", {}, None, TO_257,
              changed("A0_INVERSE", lambda n: [min(n, 8), min(n, 16)]), "few")
    yield row("A0=scalar", {}, CHANGE, TO_100,
              changed("A0=scalar", lambda n: [0, n + 3]), "none-and-many")
    yield row("A0_INVERSE", {}, CHANGE, SMALL[:4],
              changed("A0_INVERSE", lambda n: [2] if n in STACK_ORDERS else [], STACK), "stack")
    yield row("A0=diagonal", {}, CHANGE, SMALL[:4],
              changed("A0=diagonal", lambda n: [3] if n in STACK_ORDERS else [], STACK), "stack")


# ---- tridiagonal ----

SWEEPS = ("auto", "sherman_morrison", "two_sweep", "pivoted")
BANDS = {"dominant": seeded.dominant_bands, "general": seeded.general_bands,
         "hostile": seeded.hostile_bands}
WHOLE = ["INVERSE", "DIAGONAL", "INFO", "RCOND", "METHOD"]
GENERATORS = ["DIAGONAL", "INFO", "RCOND", "METHOD", "GENERATORS", "EXPONENTS"]


def named(bands, most=8):
    return {name: stack[:most] for name, stack in zip(("DL", "D", "DU"), bands, strict=True)}


def banded(family, times=1):
    return lambda draw, n: [named(BANDS[family](draw, times * n), 2 if n > 257 else 8)]


def band_stack(draw, n):
    return [named((draw.uniform(STACK, n - 1), draw.uniform(STACK, n) + draw.number(1.5),
                   draw.uniform(STACK, n - 1)))] if n in STACK_ORDERS else []


class BlockRow(Row):
    """Asks for a block of each inverse, which depends on n."""

    def requests(self, column):
        for n, request in super().requests(column):
            first, last = n // 3, n // 3 + (n + 1) // 2
            parameters = {"rows": f"{first}:{last}", "columns": f"0:{n - first}"}
            yield n, dataclasses.replace(request, parameters={**request.parameters, **parameters})


def tridiagonal_rows():
    for family in BANDS:
        for variant in SWEEPS:
            yield Row("tridiagonal", family, {"variant": variant}, WHOLE, NAMES, banded(family))
        yield Row("tridiagonal", family, {}, GENERATORS, NAMES, banded(family), "generators")
        yield Row("tridiagonal", family, {}, ["DIAGONAL"], NAMES, banded(family, 17), "order=17n")
        yield BlockRow("tridiagonal", family, {}, None, NAMES, banded(family), "block")
    yield Row("tridiagonal", "stack", {}, WHOLE, NAMES[:6], band_stack)


def rows():
    """All of them, in both precisions."""
    made = []
    for group in (dense_rows, iterative_rows, ism_rows, tridiagonal_rows):
        for row in group():
            made += [dataclasses.replace(row, precision=name) for name in TYPES]
    keys = [row.key for row in made]
    assert len(set(keys)) == len(keys), "two rows of one name"
    return made


def short(all_rows):
    """{key: columns} of the short corpus: one of its small columns a row, in rotation; and for
    every fourth row one of orders 64 and 100."""
    chosen = {}
    for index, row in enumerate(all_rows):
        small = [name for name in SMALL if name in row.columns]
        middle = [name for name in ("64", "100") if name in row.columns]
        turn = index // len(TYPES) * 3 + index % len(TYPES)
        chosen[row.key] = {small[turn % len(small)]}
        if middle and index % 4 == 1:
            chosen[row.key].add(middle[index // 4 % len(middle)])
    return chosen
