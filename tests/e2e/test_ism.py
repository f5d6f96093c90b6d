"""ism: A0 + X Y^T in every way to give it, by every door, and what contradicts itself."""

import io
import json

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import JSON, NPY, NPZ, v2_binary, v2_json

VARIANTS = {name: name for name in ("single", "block", "reduced_memory")} | {"auto": "block"}
ALL = ["INVERSE", "INFO", "RCOND", "METHOD", "DET_RATIO"]
QUERY = "?method=ism"


@pytest.fixture(autouse=True)
def offered(needs):
    needs("ism")


def problem(n, m, batch=2, kind="default", dtype="f8", seed=0):
    """Inputs by name, A0 and A in full."""
    random = np.random.default_rng([seed, n, m])
    x = random.uniform(-1, 1, (batch, n, m)).astype(dtype)
    y = (random.uniform(-1, 1, (batch, n, m)) / n).astype(dtype)
    inputs = {"X": x, "Y": y}
    a0 = np.broadcast_to(np.eye(n), (batch, n, n)).astype(dtype)
    if kind == "scale":
        inputs["A0"] = random.uniform(1, 2, (batch, 1)).astype(dtype)
        a0 = a0 * inputs["A0"][:, :, None]
    elif kind == "diagonal":
        inputs["A0"] = random.uniform(1, 2, (batch, n)).astype(dtype)
        a0 = a0 * inputs["A0"][:, :, None]
    elif kind in ("inverse", "both"):
        a0 = (2 * a0 + random.uniform(-1, 1, (batch, n, n)) / n).astype(dtype)
        inputs["A0_INVERSE"] = np.linalg.inv(a0.astype("f8")).astype(dtype)
        if kind == "both":
            inputs["A0"] = a0
    a = (a0.astype("f8") + x.astype("f8") @ np.swapaxes(y, 1, 2).astype("f8")).astype(dtype)
    if kind == "alone":
        inputs = {"A": a}
    return inputs, a0, a


KINDS = ["default", "scale", "diagonal", "inverse", "both", "alone"]


def check(outputs, a0, a, kind):
    for i, matrix in enumerate(a):
        assert outputs["INFO"][i] == 0
        assert matrices.ratio(matrix, outputs["INVERSE"][i]) <= matrices.BOUND
        if kind == "inverse":
            assert np.isnan(outputs["RCOND"][i])
        else:
            rcond = 1 / matrices.norm1(matrix) / matrices.norm1(outputs["INVERSE"][i])
            assert 0.999 * rcond <= outputs["RCOND"][i] <= 1.5 * rcond
        base = np.diag(np.diag(matrix)) if kind == "alone" else a0[i]
        ratio = np.linalg.det(matrix.astype("f8")) / np.linalg.det(base.astype("f8"))
        assert outputs["DET_RATIO"][i] == pytest.approx(ratio, rel=1e5 * matrices.EPS[a.dtype])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_kind(client, kind, dtype):
    for n, m in [(1, 1), (5, 0), (5, 2), (20, 1), (20, 8), (6, 9), (70, 5), (90, 40)]:
        inputs, a0, a = problem(n, m, kind=kind, dtype=dtype)
        for variant, algorithm in VARIANTS.items():
            outputs = client.outputs("ism", inputs, ALL, {"variant": variant})
            check(outputs, a0, a, kind)
            if (4 * m <= n or (m <= n and variant != "auto")) and kind != "alone":
                assert set(outputs["METHOD"]) == {algorithm}


def test_factors(client):
    inputs, a0, a = problem(12, 5, kind="diagonal")
    names = ["INVERSE", "U", "R", "V"]
    outputs = client.outputs("ism", inputs, names, {"variant": "block", "block_size": 2})
    assert outputs["U"].shape == outputs["V"].shape == (2, 12, 5)
    for i in range(2):
        inner = outputs["U"][i] @ outputs["R"][i] @ outputs["V"][i].T
        b = np.linalg.inv(a0[i])
        assert np.allclose(outputs["INVERSE"][i], b - b @ inner @ b, rtol=0, atol=1e-12)
        blocks = np.kron(np.eye(3), np.ones((2, 2)))[:5, :5]
        assert not outputs["R"][i][blocks == 0].any()
    outputs = client.outputs("ism", inputs, names, {"variant": "reduced_memory"})
    assert np.isnan(outputs["U"]).all() and np.isfinite(outputs["INVERSE"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_by_every_door(client, kind):
    inputs, a0, a = problem(9, 3, kind=kind)
    wanted = client.outputs("ism", inputs, ALL)
    check(wanted, a0, a, kind)
    path = "/v2/models/ism/infer"
    for form in (v2_json, v2_binary):
        headers, body = form(inputs, ALL)
        outputs = codec.v2_outputs(client.daemon.post(path, body, headers))
        for name in ("INVERSE", "DET_RATIO"):
            assert outputs[name].tobytes() == wanted[name].tobytes()
    lower = {name.lower(): array for name, array in inputs.items()}
    query = QUERY + "&outputs=inverse,info,rcond,method,det_ratio"
    answer = client.daemon.post("/v1/invert" + query, codec.npz(**lower), {"Content-Type": NPZ})
    assert answer.status == 200, answer
    arrays = codec.load(answer.content)
    assert arrays["inverse"].tobytes() == wanted["INVERSE"].tobytes()
    text = json.dumps({name: array.tolist() for name, array in lower.items()})
    answer = client.daemon.post("/v1/invert" + query, text.encode(), {"Content-Type": JSON})
    assert answer.status == 200, answer
    assert np.array_equal(np.array(answer.json()["inverse"]), wanted["INVERSE"])
    assert answer.json()["method"] == wanted["METHOD"].tolist()


def test_one_matrix_and_a_bare_array(client):
    body = json.dumps({"method": "ism", "x": [[1], [0]], "y": [[3], [0]], "a0": [2]})
    answer = client.daemon.post("/v1/invert", body.encode(), {"Content-Type": JSON})
    assert answer.status == 200, answer
    assert np.allclose(answer.json()["inverse"], [[0.2, 0], [0, 0.5]], rtol=1e-15, atol=0)
    _, _, a = problem(5, 2)
    answer = client.daemon.post("/v1/invert" + QUERY, codec.npy(a), {"Content-Type": NPY})
    assert answer.status == 200, answer
    assert matrices.ratio(a[0], codec.load(answer.content)[0]) <= matrices.BOUND


def test_an_order_of_zero(client):
    inputs = {"X": np.zeros((3, 0, 2)), "Y": np.zeros((3, 0, 2))}
    outputs = client.outputs("ism", inputs, ALL)
    assert outputs["INVERSE"].shape == (3, 0, 0) and (outputs["INFO"] == 0).all()
    assert (outputs["RCOND"] == 1).all() and (outputs["DET_RATIO"] == 1).all()


def test_batch_invariance(client):
    """Updates of one key, by scale, by diagonal and without A0, do not meet in a batch; and alone
    or in company, in any place, the bits are the same."""
    for kind in ("default", "scale", "diagonal", "inverse", "both"):
        inputs, _, _ = problem(16, 2, batch=40, kind=kind)
        together = client.outputs("ism", inputs)["INVERSE"]
        for i in (0, 7, 39):
            alone = client.outputs("ism", {name: t[i : i + 1] for name, t in inputs.items()})
            assert alone["INVERSE"][0].tobytes() == together[i].tobytes()


def test_a_refused_inverse(client):
    """Zero is no one's inverse: no number next to a refused answer invites to go on."""
    for n in (2, 9, 40):
        x = np.ones((2, n, 1))
        known = np.stack([np.zeros((n, n)), np.eye(n)])
        outputs = client.outputs("ism", {"A0_INVERSE": known, "X": x, "Y": x}, ALL)
        assert outputs["INFO"].tolist() == [n + 1, 0]
        assert np.isnan(outputs["INVERSE"][0]).all() and np.isnan(outputs["DET_RATIO"][0])
        assert outputs["DET_RATIO"][1] == pytest.approx(n + 1)


def test_one_bad_matrix(client):
    inputs, a0, a = problem(10, 2, batch=5, kind="diagonal")
    inputs["X"][1, 3, 0] = np.nan
    inputs["A0"][2] = 1
    inputs["X"][2] = 0
    inputs["Y"][2] = 0
    inputs["X"][2, 0, 0], inputs["Y"][2, 0, 0] = 1, -1
    outputs = client.outputs("ism", inputs, ALL)
    assert outputs["INFO"].tolist()[:2] == [0, -1] and 1 <= outputs["INFO"][2] <= 10
    assert np.isnan(outputs["INVERSE"][1:3]).all() and outputs["DET_RATIO"][2] == 0
    rest = [0, 3, 4]
    check({name: outputs[name][rest] for name in ALL}, a0[rest], a[rest], "diagonal")


def test_a_chain_is_checked_by_a0(client):
    """The inverse drifts; A0 next to it shows and recovers that."""
    inputs, a0, a = problem(30, 1, kind="both")
    inputs["A0_INVERSE"] = inputs["A0_INVERSE"] + 1e-9
    outputs = client.outputs("ism", inputs, ALL)
    assert set(outputs["METHOD"]) == {"lu"}
    assert all(matrices.ratio(m, x) <= matrices.BOUND for m, x in zip(a, outputs["INVERSE"]))


def test_a_hopeless_inverse_alone_is_answered_200(client):
    """INFO n+1 says of it, whatever on_singular says."""
    arrays = {"x": np.ones((3, 1)), "y": np.ones((3, 1)), "a0_inverse": np.zeros((3, 3))}
    for extra in ["", "&on_singular=error", "&on_singular=nan"]:
        query = QUERY + extra + "&outputs=inverse,info,det_ratio"
        body = codec.npz(**arrays)
        answer = client.daemon.post("/v1/invert" + query, body, {"Content-Type": NPZ})
        assert answer.status == 200, answer
        outputs = np.load(io.BytesIO(answer.body))
        assert outputs["info"] == 4
        assert np.isnan(outputs["inverse"]).all() and np.isnan(outputs["det_ratio"])


@pytest.mark.parametrize("dtype, scales, bound",
                         [("f8", [1e-10, 1e-13, 1e-15, 1e-17, 1e-240], 1e-13),
                          ("f4", [1e-3, 1e-5, 1e-7, 1e-8, 1e-19], 1e-5)])
def test_a_tiny_a0_keeps_its_digits(client, dtype, scales, bound):
    """A0 = s I and X = Y = 1: A, once it is formed, has lost s."""
    for n in (2, 3, 20, 60):
        scale = np.array(scales, dtype)[:, None]
        ones = np.ones((len(scales), n, 1), dtype)
        outputs = client.outputs("ism", {"A0": scale, "X": ones, "Y": ones}, ALL)
        assert (outputs["INFO"] == 0).all() and set(outputs["METHOD"]) == {"block"}
        for s, inverse in zip(scale[:, 0].astype("f8"), outputs["INVERSE"].astype("f8")):
            exact = (np.eye(n) - 1 / (s + n)) / s
            assert np.abs(inverse - exact).max() <= bound * np.abs(exact).max()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_measured(client, kind):
    """By each of the ways that small and large matrices go; alone, and next to INVERSE."""
    for n, m in [(5, 0), (5, 2), (20, 3), (40, 41), (90, 40)]:
        inputs, a0, a = problem(n, m, kind=kind)
        names = ["INVERSE", "RESIDUAL", "RCOND_CAPACITANCE"]
        outputs = client.outputs("ism", inputs, names)
        for i in range(2):
            base = np.diag(np.diag(a[i])) if kind == "alone" else a0[i]
            x, y = (a[i] - base, np.eye(n)) if kind == "alone" else (inputs["X"][i], inputs["Y"][i])
            rcond = outputs["RCOND_CAPACITANCE"][i]
            if x.shape[1] > n:
                assert np.isnan(rcond)
            elif x.shape[1] > 0:
                core = np.eye(x.shape[1]) + y.T @ np.linalg.inv(base) @ x
                assert rcond == pytest.approx(1 / np.linalg.cond(core, 1), rel=1e-6)
            else:
                assert rcond == 1
            residual = outputs["RESIDUAL"][i]
            exact = matrices.norm1(np.eye(n) - outputs["INVERSE"][i] @ a[i])
            assert np.isnan(residual) if kind == "inverse" else abs(residual - exact) <= 1e-13 * n
        alone = client.outputs("ism", inputs, ["RESIDUAL"])
        assert list(alone) == ["RESIDUAL"]
        assert alone["RESIDUAL"].tobytes() == outputs["RESIDUAL"].tobytes()


def test_an_ill_conditioned_update_is_seen(client):
    inputs, _, _ = problem(12, 3, kind="inverse")
    for name in ("X", "Y"):
        inputs[name][:, :, 1] = 1e5 * inputs[name][:, :, 0]
    outputs = client.outputs("ism", inputs, ["INFO", "RCOND_CAPACITANCE"])
    assert (outputs["INFO"] == 0).all() and (outputs["RCOND_CAPACITANCE"] < 1e-8).all()


@pytest.mark.parametrize("n", [6, 20, 100])
def test_an_update_of_rank_zero_refreshes(client, n):
    """By every door that has a way to write an array without columns."""
    inputs, a0, _ = problem(n, 0, batch=1, kind="both")
    fresh = client.outputs("lu", {"A": a0})["INVERSE"]
    inputs["A0_INVERSE"] = fresh
    outputs = client.outputs("ism", inputs, ALL)
    assert np.allclose(outputs["INVERSE"], fresh, rtol=1e-13, atol=0)
    inputs["A0_INVERSE"] = fresh + 1e-10
    outputs = client.outputs("ism", inputs, ALL + ["RESIDUAL"])
    assert outputs["METHOD"].tolist() == ["lu"] and outputs["DET_RATIO"] == 1
    assert matrices.ratio(a0[0], outputs["INVERSE"][0]) <= 1 and outputs["RESIDUAL"] < 1e-12
    lower = {name.lower(): array[0] for name, array in inputs.items()}
    answer = client.daemon.post("/v1/invert" + QUERY, codec.npz(**lower), {"Content-Type": NPZ})
    assert answer.status == 200, answer
    assert codec.load(answer.content)["inverse"].tobytes() == outputs["INVERSE"].tobytes()
    text = json.dumps({name: array.tolist() for name, array in lower.items()})
    answer = client.daemon.post("/v1/invert" + QUERY, text.encode(), {"Content-Type": JSON})
    assert answer.status == 200, answer
    assert np.array_equal(answer.json()["inverse"], outputs["INVERSE"][0])


X = np.ones((1, 4, 2))
REFUSED = [
    (
        {"A": np.eye(4)[None], "X": X},
        "A stands alone: leave it out and send Y too, or leave out X. ism takes A; or X, Y",
    ),
    (
        {"A": np.eye(4)[None], "A0": np.ones((1, 4))},
        "A stands alone: leave it out and send X, Y too, or leave out A0. ism takes A",
    ),
    ({"X": X}, "input Y is missing next to X; ism takes"),
    ({"X": X, "Y": X, "A": np.eye(4)[None]}, "A stands alone: leave it out, or leave out X, Y."),
    ({"A0": np.ones((1, 4))}, "inputs X, Y are missing next to A0; ism"),
    ({"A0_INVERSE": np.eye(4)[None]}, "inputs X, Y are missing next to A0_INVERSE"),
    ({"X": X, "Y": X, "A0": np.ones((1, 3))}, "it must be [1,1] or [1,4], for n = 4"),
    ({"X": X, "Y": X, "A0": np.eye(4)[None]}, "it must be [1,1] or [1,4], for n = 4"),
    (
        {"X": X, "Y": X, "A0": np.eye(4)[None]},
        "A0_INVERSE: send A0_INVERSE too, or form A0 + X Y^T and take lu",
    ),
    (
        {"X": X, "Y": X, "A0_INVERSE": np.eye(4)[None], "A0": np.ones((1, 4))},
        "it must be [1,4,4], for n = 4",
    ),
    ({"X": X, "Y": np.ones((1, 4, 3))}, "Y has shape [1,4,3]"),
    ({"X": X, "Y": X, "A0": np.ones((2, 4))}, "none is broadcast"),
    (
        {"X": X, "Y": X, "A0_INVERSE": np.eye(3)[None]},
        "X has shape [1,4,2]: with n = 3 (from A0_INVERSE) it must be [...,3,m]",
    ),
    (
        {"X": X.swapaxes(1, 2), "Y": X.swapaxes(1, 2), "A0_INVERSE": np.eye(4)[None]},
        "X has shape [1,2,4]: with n = 4 (from A0_INVERSE) it must be [...,4,m]",
    ),
    (
        {"X": X[..., 0], "Y": X[..., 0], "A0_INVERSE": np.eye(4)[None]},
        "write [1,1,4] for one matrix, or [1,4,1] for a batch with a column each",
    ),
]


@pytest.mark.parametrize("inputs, words", REFUSED)
def test_contradictions(client, inputs, words):
    headers, body = v2_json(inputs)
    answer = client.daemon.post("/v2/models/ism/infer", body, headers)
    assert answer.status == 400 and words in answer.json()["error"], answer
    lower = {name.lower(): array for name, array in inputs.items()}
    answer = client.daemon.post("/v1/invert" + QUERY, codec.npz(**lower), {"Content-Type": NPZ})
    assert answer.status == 400, answer


def test_options(client):
    inputs, _, _ = problem(6, 2)
    for options, words in [
        ({"variant": "woodbury"}, "auto|single|block|reduced_memory"),
        ({"block_size": -1}, "a whole number from 0"),
        ({"block_size": "x"}, "a whole number"),
    ]:
        headers, body = v2_json(inputs, parameters=options)
        answer = client.daemon.post("/v2/models/ism/infer", body, headers)
        assert answer.status == 400 and words in answer.json()["error"], answer


def test_the_metadata_have_every_input_once(client):
    metadata = client.daemon.get("/v2/models/ism").json()
    shapes = {tensor["name"]: tensor["shape"] for tensor in metadata["inputs"]}
    assert len(shapes) == len(metadata["inputs"]) == 5
    assert shapes["A0"] == [-1, -1] and shapes["X"] == [-1, -1, -1]
    listed = client.daemon.get("/v1/methods").json()["methods"]
    ism = next(method for method in listed if method["name"] == "ism")
    assert [t["shape"] for t in ism["inputs"] if t["name"] == "A0"] == [
        ["batch", 1],
        ["batch", "n"],
        ["batch", "n", "n"],
    ]
