"""The numerical contract, over HTTP: accuracy, truth, same bits, any input ends."""

import json

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import JSON, NPY, NPZ, v2_json
from harness.methods import inverters, iterates

INVERTERS = inverters()
GIVES_UP = set(filter(iterates, INVERTERS))  # INFO n + 2, where it is hardly invertible
ORDERS = [0, 1, 2, 3, 5, 10, 31, 32, 33, 50, 63, 64, 65, 100, 127, 128, 129]
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
METHODS = pytest.mark.parametrize("method", INVERTERS)


# ---- Accuracy and truth ----


@METHODS
@DTYPES
@pytest.mark.parametrize("n", ORDERS)
def test_dge_types(client, method, dtype, n):
    types = matrices.dge_types(n, dtype)
    a = np.stack(list(types.values()))
    outputs = client.outputs(method, {"A": a})
    for i, name in enumerate(types):
        matrices.check_contract(
            a[i],
            outputs["INVERSE"][i],
            int(outputs["INFO"][i]),
            outputs["RCOND"][i],
            name,
            method in GIVES_UP,
        )
        if "zero" in name and n > 0:
            assert 1 <= outputs["INFO"][i] <= n, name


@METHODS
@pytest.mark.parametrize("n", [500])
def test_larger_orders(client, method, n):
    a = np.stack([matrices.random(n), matrices.conditioned(n, 1e10, 1.0, "f8", 1)])
    outputs = client.outputs(method, {"A": a})
    matrices.check_answers(a, outputs)
    assert outputs["INFO"].tolist() == [0, 0]


def test_order_1000(client):
    a = matrices.random(1000)
    outputs = client.outputs("lu", {"A": a[None]})
    matrices.check_answers(a[None], outputs)
    assert outputs["INFO"][0] == 0


@METHODS
@DTYPES
@pytest.mark.parametrize("name", sorted(matrices.GALLERY))
def test_gallery(client, method, dtype, name):
    with np.errstate(over="ignore", under="ignore"):
        a = matrices.GALLERY[name]().astype(dtype)
    outputs = client.outputs(method, {"A": a[None]})
    matrices.check_answers(a[None], outputs, gives_up=method in GIVES_UP)


@METHODS
@DTYPES
@pytest.mark.parametrize("name", sorted(matrices.GROWING))
def test_element_growth(client, method, dtype, name):
    a = matrices.GROWING[name]().astype(dtype)
    outputs = client.outputs(method, {"A": a[None]})
    matrices.check_answers(a[None], outputs)
    assert outputs["INFO"][0] == 0


@pytest.mark.parametrize("method", sorted(set(INVERTERS) - GIVES_UP))
@DTYPES
@pytest.mark.parametrize("n, last", [(12, 9), (16, 12), (16, 14), (24, 14), (31, 18), (32, 26)])
def test_growth_that_ends_under_many_signs(client, method, dtype, n, last):
    """Errors of some of them cancel in any one sum of columns."""
    signs = np.random.default_rng(n).choice([-1, 1], (300, 1, n)).astype(dtype)
    a = matrices.growth_that_ends(n, last, dtype, 1) * signs
    outputs = client.outputs(method, {"A": a})
    matrices.check_answers(a, outputs)


@METHODS
@pytest.mark.parametrize("dtype, great, small", [("f4", 1e38, 1e-38), ("f8", 1e308, 1e-308)])
def test_both_ends_of_the_range(client, method, dtype, great, small):
    """Nothing in it is zero, so it gets an inverse; a good one, for scaling is taken away."""
    a = np.array([[great, 0], [0, small]], dtype)
    outputs = client.outputs(method, {"A": a[None]})
    matrices.check_answers(a[None], outputs, gives_up=method in GIVES_UP)
    assert outputs["INFO"][0] == 0 and outputs["RCOND"][0] < np.finfo(dtype).eps
    assert np.allclose(outputs["INVERSE"][0], np.diag([1 / great, 1 / small]), atol=0, rtol=1e-3)


@METHODS
def test_known_inverses(client, method):
    n = 20
    cases = {
        "identity": (np.eye(n), np.eye(n)),
        "permutation": (matrices.permutation(n), matrices.permutation(n).T),
        "toeplitz": (matrices.toeplitz(n), matrices.toeplitz_inverse(n)),
    }
    for name, (a, expected) in cases.items():
        outputs = client.outputs(method, {"A": a[None]})
        tolerance = 0 if name != "toeplitz" else 1e-12
        assert np.abs(outputs["INVERSE"][0] - expected).max() <= tolerance, name
    pascal = client.outputs(method, {"A": matrices.pascal(5)[None]})["INVERSE"][0]
    assert np.allclose(pascal @ matrices.pascal(5), np.eye(5), atol=1e-10)
    assert np.abs(pascal - np.round(pascal)).max() < 1e-9


@DTYPES
@pytest.mark.parametrize("n", [*ORDERS[1:], 257])
def test_symmetric_to_the_bit(client, dtype, n):
    """From `auto`, whatever it takes; others stand between them."""
    kinds = matrices.symmetric_kinds(n, dtype)
    others = matrices.random(n, dtype, seed=n, batch=len(kinds))
    a = np.stack([matrix for pair in zip(kinds.values(), others, strict=True) for matrix in pair])
    outputs = client.outputs("auto", {"A": a})
    matrices.check_answers(a, outputs)
    for i, name in enumerate(kinds):
        assert matrices.is_symmetric(outputs["INVERSE"][2 * i]), name
    assert n == 1 or not any(matrices.is_symmetric(x) for x in outputs["INVERSE"][1::2])


@METHODS
@DTYPES
def test_info_and_rcond(client, method, dtype):
    """Rows: what the matrix is, and the INFO it must get."""
    n, eps = 4, np.finfo(dtype).eps
    almost = np.eye(n)
    almost[3, 3] = eps / 4
    hopeless = {n + 2} if method in GIVES_UP else set()
    rows = [
        (np.eye(n), {0}),
        (np.zeros((n, n)), {1, 2, 3, 4}),
        (np.diag([1.0, 2, 0, 3]), {1, 2, 3, 4}),
        (np.full((n, n), 3.0), {1, 2, 3, 4, n + 1} | hopeless),
        (almost, {0}),
        (np.diag([1, 1, 1, 4 * eps]), {0}),
        (np.diag([1, 1, 1, np.nan]), {-1}),
        (np.where(np.eye(n) > 0, -np.inf, 1), {-1}),
        (np.diag([1, 1, 1, float(np.finfo(dtype).tiny) / 16]), {n + 1} | hopeless),
    ]
    a = np.stack([matrix for matrix, _ in rows]).astype(dtype)
    outputs = client.outputs(method, {"A": a})
    matrices.check_answers(a, outputs, gives_up=method in GIVES_UP)
    for i, (_, allowed) in enumerate(rows):
        assert outputs["INFO"][i] in allowed, (i, outputs["INFO"][i])


SCALED = {  # what numpy or a hand makes of it
    "diagonal": (np.diag([1e-200, 1, 1e200]), np.diag([1e200, 1, 1e-200])),
    "lower": (np.array([[1e-300, 0], [1e-16, 1e300]]), np.array([[1e300, 0], [-1e-16, 1e-300]])),
    "wide": (np.array([[1e-20, 0], [1e305, 1e20]]), np.array([[1e20, 0], [-1e305, 1e-20]])),
    "rows": (
        np.array([[1e-200, 1e-200], [1e200, -1e200]]),
        np.array([[5e199, 5e-201], [5e199, -5e-201]]),
    ),
    "single": (
        np.array([[1e-9, 0], [1e37, 1e9]], "f4"),
        np.array([[1e9, 0], [-1e37, 1e-9]], "f4"),
    ),
    "D S D": (
        np.array([[2, 1e-9, 5e8], [1e-9, 3e-18, 1], [5e8, 1, 2e18]]),
        np.array([[5, -1.5e9, -5e-10], [-1.5e9, 3.75e18, -1.5], [-5e-10, -1.5, 5e-18]]) / 8.25,
    ),
}


@pytest.mark.parametrize("method", ["lu", "auto", "gauss_jordan"])
@pytest.mark.parametrize("name", sorted(SCALED))
def test_scaling_is_not_singularity(client, method, name):
    a, expected = SCALED[name]
    outputs = client.outputs(method, {"A": a[None]})
    assert outputs["INFO"][0] == 0 and outputs["RCOND"][0] < np.finfo(a.dtype).eps
    tolerance = 1e-10 if a.dtype == np.dtype("f8") else 1e-5
    assert np.allclose(outputs["INVERSE"][0], expected, rtol=tolerance, atol=0)
    # The same in a larger matrix; and INFO and RCOND alone are what they are with INVERSE.
    n = len(a)
    large = np.eye(40, dtype=a.dtype)
    large[7 : 7 + n, 7 : 7 + n] = a
    found = client.outputs(method, {"A": large[None]})
    assert found["INFO"][0] == 0
    assert np.allclose(found["INVERSE"][0, 7 : 7 + n, 7 : 7 + n], expected, rtol=tolerance, atol=0)
    alone = client.outputs(method, {"A": large[None]}, outputs=["INFO", "RCOND"])
    assert alone["INFO"][0] == 0 and alone["RCOND"][0] == found["RCOND"][0]


@pytest.mark.parametrize("method", ["lu", "auto", "gauss_jordan"])
@pytest.mark.parametrize("dtype, noise", [("f4", 1e-4), ("f8", 1e-8)])
def test_normal_equations(client, method, dtype, noise):
    """X^T X of a constant and a small regressor."""
    x = np.stack([np.ones(100), noise * np.random.default_rng(3).standard_normal(100)], axis=1)
    a = (x.T @ x).astype(dtype)
    outputs = client.outputs(method, {"A": a[None]})
    scale = np.sqrt(np.diag(a.astype("f8")))
    expected = np.linalg.inv(a / np.outer(scale, scale))
    found = outputs["INVERSE"][0] * np.outer(scale, scale)
    assert outputs["INFO"][0] == 0
    assert np.abs(found - expected).max() <= 100 * np.finfo(dtype).eps * np.abs(expected).max()


@METHODS
def test_singular_at_any_scale(client, method):
    """Equal rows but for powers of two."""
    a = matrices.random(6)
    a[4] = a[1]
    a *= 2.0 ** np.array([0, 300, -200, 5, -300, 100])[:, None]
    a *= 2.0 ** np.array([-90, 80, 10, 0, -50, 200])
    info = client.outputs(method, {"A": a[None]})["INFO"][0]
    assert info != 0 and (info <= 7 or method in GIVES_UP)


def test_rank_deficient_is_never_good(client):
    """getrf's own info is 0 on such matrices; RCOND says the truth."""
    generator = np.random.default_rng(9)
    for n in (8, 40, 120):
        a = generator.standard_normal((n, n - 1)) @ generator.standard_normal((n - 1, n))
        outputs = client.outputs("lu", {"A": a[None]})
        assert outputs["INFO"][0] != 0 and outputs["RCOND"][0] < 2.0**-50


# ---- lu_factor ----


def permuted(a, pivots):
    rows = np.array(a)
    for i, p in enumerate(pivots):
        rows[[i, p - 1]] = rows[[p - 1, i]]
    return rows


@DTYPES
@pytest.mark.parametrize("n", [1, 2, 3, 10, 32, 33, 100])
def test_lu_factor_reconstructs(client, dtype, n):
    a = matrices.random(n, dtype, seed=21, batch=3)
    a[1] = np.flipud(a[1])
    outputs = client.outputs("lu_factor", {"A": a})
    for i in range(3):
        pivots, factors = outputs["PIVOTS"][i], outputs["LU"][i].astype("f8")
        assert (pivots >= np.arange(1, n + 1)).all() and (pivots <= n).all()
        lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
        assert np.abs(np.tril(factors, -1)).max(initial=0) <= 1, "partial pivoting"
        residual = np.abs(permuted(a[i].astype("f8"), pivots) - lower @ upper).sum(axis=0).max()
        assert residual <= 15 * n * matrices.EPS[a.dtype] * matrices.norm1(a[i])
        assert outputs["INFO"][i] == 0


def test_lu_factor_of_singular_matrices_is_lapacks(client):
    a = np.array(
        [[[0.0, 1], [0, 2]], [[1.0, 2], [2, 4]], [[0.0, 0], [0, 0]], [[np.nan, 1], [1, 1]]]
    )
    outputs = client.outputs("lu_factor", {"A": a})
    assert outputs["INFO"].tolist() == [1, 2, 1, -1]
    assert outputs["LU"][1].tolist() == [[2, 4], [0.5, 0]]
    assert outputs["PIVOTS"][1].tolist() == [2, 2]
    assert np.isnan(outputs["LU"][3]).all() and outputs["PIVOTS"][3].tolist() == [0, 0]


@pytest.mark.parametrize(
    "a",
    [
        np.array([[1, 0, 0], [0, 1e-310, 1e-310], [0, 3e-310, 2e-310]]),
        1e-309 * np.random.default_rng(4).standard_normal((20, 20)),
    ],
    ids=["three", "twenty"],
)
def test_lu_factor_of_subnormal_pivots(client, a):
    outputs = client.outputs("lu_factor", {"A": a[None]})
    factors = outputs["LU"][0]
    assert outputs["INFO"][0] == 0 and np.isfinite(factors).all()
    lower, upper = np.tril(factors, -1) + np.eye(len(a)), np.triu(factors)
    assert np.abs(lower).max() <= 1
    difference = permuted(a, outputs["PIVOTS"][0]) - lower @ upper
    assert np.abs(difference).max() <= 15 * len(a) * 2.0**-1074


# ---- Same bits ----


@METHODS
@DTYPES
@pytest.mark.parametrize("n", [2, 9, 33])
def test_powers_of_two_scale_exactly(client, method, dtype, n):
    a = matrices.random(n, dtype, seed=31)
    powers = [-20, -3, 1, 7, 30]
    batch = np.stack([a] + [a * np.array(2.0**p, dtype) for p in powers])
    outputs = client.outputs(method, {"A": batch})
    for i, p in enumerate(powers, 1):
        scaled_back = outputs["INVERSE"][i] * np.array(2.0**p, dtype)
        assert scaled_back.tobytes() == outputs["INVERSE"][0].tobytes(), p
        assert outputs["RCOND"][i] == outputs["RCOND"][0]


@METHODS
def test_permutations_permute_the_inverse(client, method):
    n = 24
    a = matrices.random(n, seed=32)
    p, q = matrices.permutation(n, 1), matrices.permutation(n, 2)
    outputs = client.outputs(method, {"A": np.stack([a, p @ a @ q])})
    back = q @ outputs["INVERSE"][1] @ p
    matrices.check_answers(np.stack([a, p @ a @ q]), outputs)
    assert matrices.ratio(a, back) <= matrices.BOUND


@METHODS
@DTYPES
@pytest.mark.parametrize("n", [1, 3, 16, 50])
def test_every_format_gives_the_same_bits(client, method, dtype, n):
    a = matrices.random(n, dtype, seed=33, batch=2)
    query = f"?method={method}&outputs=inverse"
    precision = {"f4": "fp32", "f8": "fp64"}[dtype]
    document = {"matrices": a.astype(float).tolist(), "method": method, "precision": precision}
    text = json.dumps(document).encode()
    answers = {
        "v2 binary": client.outputs(method, {"A": a})["INVERSE"],
        "v2 json": client.outputs(method, {"A": a}, form=v2_json)["INVERSE"],
        "npy C": codec.load(client.invert(codec.npy(a), NPY, query).body),
        "npy F": codec.load(client.invert(codec.npy(np.asfortranarray(a)), NPY, query).body),
        "npz": codec.load(client.invert(codec.npz(a=a), NPZ, query).body)["inverse"],
        "npz deflated": codec.load(client.invert(codec.npz(True, a=a), NPZ, query).body)["inverse"],
        "v1 json": np.array(client.invert(text, JSON).json()["inverse"], dtype),
    }
    for name, inverse in answers.items():
        assert inverse.dtype == np.dtype(dtype) and inverse.shape == a.shape, name
        assert inverse.tobytes() == answers["v2 binary"].tobytes(), name


def test_alignment_of_the_body_changes_no_bits(client):
    """Binary tensors at every alignment: the JSON before them grows byte by byte."""
    a = matrices.random(11, seed=34)
    bits = set()
    for pad in range(9):
        answer = client.infer("lu", {"A": a[None]}, id="x" * pad)
        bits.add(codec.v2_outputs(answer)["INVERSE"].tobytes())
    assert len(bits) == 1


@METHODS
@DTYPES
@pytest.mark.parametrize("n", [4, 32, 70])
def test_place_in_the_batch_changes_no_bits(client, method, dtype, n):
    a = matrices.random(n, dtype, seed=35, batch=5)
    alone = [client.outputs(method, {"A": m[None]})["INVERSE"].tobytes() for m in a]
    generator = np.random.default_rng(36)
    for count in (2, 17, 64):
        order = generator.integers(0, 5, count)
        inverses = client.outputs(method, {"A": a[order]})["INVERSE"]
        for place, which in enumerate(order):
            assert inverses[place].tobytes() == alone[which], (count, place)


@METHODS
def test_a_bad_neighbour_harms_no_other(client, method):
    count = 128
    a = matrices.random(8, seed=37, batch=count)
    clean = client.outputs(method, {"A": a})["INVERSE"]
    for slot in range(0, count, 9):
        for bad in (np.zeros((8, 8)), np.full((8, 8), np.nan), np.full((8, 8), 1e308)):
            hurt = a.copy()
            hurt[slot] = bad
            outputs = client.outputs(method, {"A": hurt})
            assert outputs["INFO"][slot] != 0
            others = np.arange(count) != slot
            assert outputs["INVERSE"][others].tobytes() == clean[others].tobytes(), slot


def test_negative_zero_and_denormals_survive_json(client):
    a = np.array([[[1.0, -0.0], [0.0, 1.0]], [[1.0, 5e-324], [0.0, 1.0]]])
    text = client.outputs("lu", {"A": a}, form=v2_json)["INVERSE"]
    assert text.tobytes() == client.outputs("lu", {"A": a})["INVERSE"].tobytes()


def test_large_batch(client):
    """More matrices than a batch holds, so the item runs in slices."""
    a = matrices.random(3, seed=38, batch=70000)
    outputs = client.outputs("lu", {"A": a})
    assert (outputs["INFO"] == 0).all()
    residual = np.abs(outputs["INVERSE"] @ a - np.eye(3)).max(axis=(1, 2))
    assert residual.max() < 1e-11


# ---- Tridiagonal, where offered ----


def test_tridiagonal_against_dense(client, needs):
    needs("tridiagonal")
    for n in (1, 2, 5, 50, 100):
        generator = np.random.default_rng(n)
        dl, du = generator.uniform(-1, 1, (2, 1, max(n - 1, 0)))
        d = generator.uniform(2.1, 3, (1, n))
        a = np.diag(d[0]) + np.diag(du[0], 1) + np.diag(dl[0], -1)
        outputs = client.outputs("tridiagonal", {"DL": dl, "D": d, "DU": du})
        matrices.check_answers(a[None], outputs)
