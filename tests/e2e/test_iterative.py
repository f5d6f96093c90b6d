"""iterative: starts, schemes, warm starts and the ways to end, by every door."""

import json

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import JSON, NPY, NPZ, v2_json
from harness.methods import inverters

SCHEMES = ["auto", "newton_schulz", "chebyshev", "order5", "order7", "order7_horner", "order19"]
ALL = ["INVERSE", "INFO", "RCOND", "METHOD", "ITERATIONS", "RESIDUAL", "RESIDUAL_HISTORY"]
QUERY = "?method=iterative"


@pytest.fixture(autouse=True)
def offered(needs):
    needs("iterative")


def dominant(n, batch, dtype="f8", seed=0):
    generator = np.random.default_rng([seed, n])
    return (generator.uniform(-1, 1, (batch, n, n)) + n * np.eye(n)).astype(dtype)


def residual(a, x):
    return np.abs(np.eye(len(a)) - x.astype("f8") @ a.astype("f8")).sum(axis=0).max()


def near(a, distance, seed=3):
    """An approximate inverse V with |I - V A| = distance, in the Frobenius norm."""
    e = np.random.default_rng(seed).standard_normal(a.shape)
    return (np.eye(len(a)) - e * distance / np.linalg.norm(e)) @ np.linalg.inv(a)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_scheme(client, scheme, dtype):
    for n in (1, 2, 5, 33, 70):
        a = dominant(n, 3, dtype)
        a[1] = matrices.random(n, dtype, seed=4)
        outputs = client.outputs("iterative", {"A": a}, ALL, {"scheme": scheme})
        matrices.check_answers(a, outputs)
        assert outputs["RESIDUAL"].dtype == a.dtype and outputs["ITERATIONS"].dtype == np.int32
        assert outputs["RESIDUAL_HISTORY"].shape == (3, 100)
        for i in range(3):
            steps = outputs["ITERATIONS"][i]
            history = outputs["RESIDUAL_HISTORY"][i]
            assert outputs["INFO"][i] == 0
            assert np.isfinite(history[: steps + 1]).all() and np.isnan(history[steps + 1 :]).all()
            size = matrices.norm1(a[i]) * matrices.norm1(outputs["INVERSE"][i])
            slack = n * size * float(np.finfo(dtype).eps)
            assert abs(outputs["RESIDUAL"][i] - residual(a[i], outputs["INVERSE"][i])) <= slack


def test_the_start_is_reported(client):
    a = dominant(20, 1)
    for initial in ("low_precision", "diagonal", "transpose", "scaled_identity"):
        outputs = client.outputs("iterative", {"A": a}, ALL, {"initial": initial})
        assert outputs["METHOD"].tolist() == [initial + "_start"], initial
    outputs = client.outputs("iterative", {"A": a.astype("f4")}, ALL, {"initial": "low_precision"})
    assert outputs["METHOD"].tolist() == ["diagonal_start"]
    answer = client.invert(codec.npy(a[0]), NPY, QUERY)
    assert answer.header("Invertd-Method") == "low_precision_start"


def test_warm_starts_save_steps(client):
    a = matrices.random(60, seed=8)
    steps = []
    for distance in (0.5, 0.1, 0.01, 1e-6):
        inputs = {"A": a[None], "V0": near(a, distance)[None]}
        outputs = client.outputs("iterative", inputs, ALL, {"scheme": "newton_schulz"})
        matrices.check_answers(a[None], outputs)
        assert outputs["METHOD"].tolist() == ["warm_start"] and outputs["INFO"][0] == 0
        # The Frobenius norm, from which the 1-norm differs by sqrt(n) at most.
        assert distance / 8 <= outputs["RESIDUAL_HISTORY"][0, 0] <= distance * 8
        steps.append(int(outputs["ITERATIONS"][0]))
    cold = client.outputs("iterative", {"A": a[None]}, ALL, {"scheme": "newton_schulz"})
    assert steps == sorted(steps, reverse=True) and steps[-1] < steps[0]
    assert cold["METHOD"][0] == "low_precision_start"


def test_orders_in_the_history(client):
    """From 1 - 0.5 for 1, the residuals are the schemes' own recurrences."""
    orders = {"newton_schulz": 2, "chebyshev": 3, "order5": 5, "order7": 7, "order19": 19}
    inputs = {"A": np.ones((1, 1, 1)), "V0": np.full((1, 1, 1), 0.5)}
    for scheme, order in orders.items():
        outputs = client.outputs("iterative", inputs, ALL, {"scheme": scheme, "tolerance": 0.05})
        history = outputs["RESIDUAL_HISTORY"][0]
        assert history[0] == 0.5 and abs(history[1] - 0.5**order) < 1e-14, scheme
    horner = client.outputs("iterative", inputs, ALL, {"scheme": "order7_horner"})
    assert abs(horner["RESIDUAL_HISTORY"][0, 1] - 0.5**7 * 3.5**2 / 16) < 1e-13


@pytest.mark.parametrize("n", [1, 2, 33])
def test_every_door_gives_the_same_bits(client, n):
    a = matrices.random(n, seed=5, batch=3)
    v0 = np.stack([near(m, 0.2) for m in a])
    options = {"scheme": "order7", "max_iterations": 20, "tolerance": 1e-9}
    words = "".join(f"&{name}={value}" for name, value in options.items())
    wanted = client.outputs("iterative", {"A": a, "V0": v0}, ALL, options)
    assert wanted["INFO"].tolist() == [0, 0, 0] and wanted["RESIDUAL_HISTORY"].shape == (3, 20)
    text = client.outputs("iterative", {"A": a, "V0": v0}, ALL, options, form=v2_json)
    for name in ALL:
        assert text[name].tolist() == wanted[name].tolist() or name == "RESIDUAL_HISTORY", name
    assert text["INVERSE"].tobytes() == wanted["INVERSE"].tobytes()
    names = ",".join(ALL).lower()
    answer = client.invert(codec.npz(a=a, v0=v0), NPZ, f"{QUERY}{words}&outputs={names}")
    assert answer.status == 200, answer.body
    arrays = codec.load(answer.body)
    for name in ("INVERSE", "RESIDUAL", "ITERATIONS", "RESIDUAL_HISTORY"):
        assert arrays[name.lower()].tobytes() == wanted[name].tobytes(), name
    document = {"a": a.tolist(), "v0": v0.tolist(), "method": "iterative", "options": options}
    document["outputs"] = ["inverse", "iterations", "residual", "residual_history"]
    answer = client.invert(json.dumps(document).encode(), JSON)
    assert answer.status == 200, answer.body
    answer = answer.json()
    assert np.array(answer["inverse"]).tobytes() == wanted["INVERSE"].tobytes()
    assert answer["iterations"] == wanted["ITERATIONS"].tolist()
    assert answer["residual"] == wanted["RESIDUAL"].tolist()
    steps = answer["iterations"][0]
    assert answer["residual_history"][0][steps + 1 :] == [None] * (19 - steps)


def test_npy_takes_the_matrix_alone(client):
    a = matrices.random(9, seed=6)
    answer = client.invert(codec.npy(a), NPY, QUERY + "&scheme=order19&initial=transpose")
    assert answer.status == 200 and answer.header("Invertd-Method") == "transpose_start"
    assert matrices.ratio(a, codec.load(answer.body)) <= matrices.BOUND


def test_not_converged(client):
    a = np.stack([np.full((4, 4), 3.0), matrices.random(4)])
    outputs = client.outputs("iterative", {"A": a}, ALL)
    assert outputs["INFO"].tolist() == [6, 0]
    best = outputs["INVERSE"][0]
    assert np.isfinite(best).all() and outputs["RESIDUAL"][0] >= 0.99
    assert abs(outputs["RESIDUAL"][0] - residual(a[0], best)) < 1e-12
    refused = client.invert(codec.npy(a), NPY, QUERY)
    assert refused.status == 422, refused
    problem = refused.json()
    assert problem["matrices"] == [{"index": 0, "info": 6}]
    assert problem["title"].endswith("or none was found")
    assert "did not converge" in problem["detail"] and "best iterate" in problem["detail"]
    given = client.invert(codec.npy(a), NPY, QUERY + "&on_singular=nan")
    assert given.status == 200 and given.header("Invertd-Info") == "1"
    assert codec.load(given.body).tobytes() == outputs["INVERSE"].tobytes()


def refusal(client, a, query):
    refused = client.invert(codec.npy(a), NPY, QUERY + query)
    assert refused.status == 422, refused
    return refused.json()["detail"]


@pytest.mark.parametrize(
    "singular, query, said, remedy",
    [
        (True, "", "no start led to an inverse", "method=lu says"),
        (True, "&initial=transpose", "no start led to an inverse", "initial=auto"),
        (True, "&tolerance=0.1&outputs=residual", "no start led to an inverse", "leave tolerance"),
        (False, "&tolerance=1e-20", "above tolerance=1e-20", "outputs=residual"),
        (False, "&tolerance=1e-20&outputs=residual", "RESIDUAL stood still at", "Raise tolerance"),
        (
            False,
            "&max_iterations=2&initial=transpose",
            "all 2 steps that max_iterations",
            "aise max_iterations",
        ),
    ],
)
def test_what_is_said_of_it(client, singular, query, said, remedy):
    """What became of the iteration, and the remedy that fits, of those that there are."""
    a = np.full((9, 9), 3.0) if singular else matrices.random(9, seed=8)
    detail = refusal(client, a, query)
    assert said in detail and remedy in detail, detail
    for other in ("aise max_iterations", "Raise tolerance", "initial=auto"):
        assert other == remedy or other not in detail, detail


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_scaled_rows(client, dtype):
    """Rows from 1 down to 10^-12: each entry of the inverse is right, and RESIDUAL small."""
    n = 20
    s = dominant(n, 3, seed=4)
    rows = 2.0 ** -np.arange(0, 40, 2)
    outputs = client.outputs("iterative", {"A": (s * rows[:, None]).astype(dtype)}, ALL)
    eps = float(np.finfo(dtype).eps)
    assert outputs["INFO"].tolist() == [0, 0, 0] and (outputs["RESIDUAL"] < 1000 * eps).all()
    for i in range(3):
        inverse = np.linalg.inv(s[i].astype(dtype).astype("f8"))
        found = outputs["INVERSE"][i].astype("f8") * rows
        assert np.abs(found - inverse).max() <= 1000 * eps * np.abs(inverse).max()


def test_scaling_is_not_singularity(client):
    a = np.stack([np.diag([1e-200, 1, 1e200]), [[2, 1e-9, 5e8], [1e-9, 3e-18, 1], [5e8, 1, 2e18]]])
    outputs = client.outputs("iterative", {"A": a}, ALL)
    assert outputs["INFO"].tolist() == [0, 0] and (outputs["RCOND"] < 1e-17).all()
    wanted = np.stack([np.diag([1e200, 1, 1e-200]), [[5, -1.5e9, -0.5e-9], [-1.5e9, 3.75e18, -1.5],
                                                     [-0.5e-9, -1.5, 5e-18]]])
    wanted[1] /= 8.25
    assert np.allclose(outputs["INVERSE"], wanted, rtol=1e-13, atol=0)
    # The answer is good: no refusal, and the header counts none.
    answer = client.invert(codec.npy(a), NPY, QUERY)
    assert answer.status == 200 and answer.header("Invertd-Info") == "0"


def test_overflow_in_part(client):
    """The inverse is beyond the range, whatever the iteration does: INFO n+1, as of the others."""
    a = np.stack([np.diag([1e-310, 1]), [[1e-310, 1e-310], [1, 2]]])
    for method in inverters():
        outputs = client.outputs(method, {"A": a}, ["INVERSE", "INFO", "RCOND"])
        assert outputs["INFO"].tolist() == [3, 3], method
        assert (outputs["RCOND"] == 0).all(), method
        assert not np.isfinite(outputs["INVERSE"]).all(axis=(1, 2)).any(), method
    assert client.invert(codec.npy(a), NPY, QUERY).status == 200


def test_unknown_output(client):
    """No output is optional to ask for, whatever an engine may spare."""
    refused = client.invert(codec.npy(matrices.random(4)), NPY, QUERY + "&outputs=foo")
    assert refused.status == 400, refused
    assert refused.json()["detail"].endswith("iterations, residual, residual_history")


def test_too_few_steps(client):
    a = matrices.random(30, seed=7)[None]
    options = {"initial": "transpose", "scheme": "newton_schulz", "max_iterations": 3}
    outputs = client.outputs("iterative", {"A": a}, ALL, options)
    assert outputs["INFO"].tolist() == [32] and outputs["ITERATIONS"].tolist() == [3]
    assert outputs["RESIDUAL_HISTORY"].shape == (1, 3)
    assert np.isfinite(outputs["RESIDUAL_HISTORY"]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_v0_that_leads_nowhere(client, scheme):
    """The next start has steps of its own."""
    a = np.stack([[[4.0, 1], [2, 3]]] * 2)
    v0 = np.array([[[0.3, -0.1], [0, 0]], [[0.3, -0.1], [0.6, -0.2]]])
    options = {"scheme": scheme, "max_iterations": 30}
    outputs = client.outputs("iterative", {"A": a, "V0": v0}, ALL, options)
    assert outputs["INFO"].tolist() == [0, 0] and outputs["METHOD"][0] != "warm_start"
    assert (outputs["ITERATIONS"] <= 30).all()
    matrices.check_answers(a, outputs)


def test_the_transpose_follows_the_identity(client):
    a = np.roll(matrices.random(30, seed=7), 1, axis=0)[None]
    outputs = client.outputs("iterative", {"A": a}, ALL, {"initial": "scaled_identity"})
    assert outputs["INFO"].tolist() == [0] and outputs["METHOD"].tolist() == ["transpose_start"]
    matrices.check_answers(a, outputs)


def test_tolerance(client):
    a = matrices.random(30, seed=9)[None]
    for tolerance in (0.1, 1e-4, 1e-8):
        options = {"tolerance": tolerance, "initial": "transpose", "scheme": "newton_schulz"}
        outputs = client.outputs("iterative", {"A": a}, ALL, options)
        steps = int(outputs["ITERATIONS"][0])
        assert outputs["INFO"][0] == 0 and outputs["RESIDUAL"][0] <= tolerance
        assert outputs["RESIDUAL_HISTORY"][0, steps - 1] > tolerance


@pytest.mark.parametrize("value", ["1e-999", '"1e-999"'])
def test_a_tolerance_that_is_too_small_for_a_double(client, value):
    """It is no 0, which asks for the residual of lu."""
    query = "&tolerance=" + value.strip('"')
    assert client.invert(b'{"matrix": [[4, 7], [2, 6]]}', JSON, QUERY + query).status == 422
    body = '{"matrix": [[4, 7], [2, 6]], "method": "iterative", "options": {"tolerance": %s}}'
    assert client.invert((body % value).encode(), JSON).status == 422
    assert client.invert((body % "0").encode(), JSON).status == 200


def test_not_finite(client):
    a = matrices.random(5, seed=10, batch=3)
    v0 = np.stack([np.eye(5)] * 3)
    a[0, 1, 1], v0[1, 4, 4] = np.nan, np.inf
    outputs = client.outputs("iterative", {"A": a, "V0": v0}, ALL)
    assert outputs["INFO"].tolist() == [-1, -1, 0]
    assert np.isnan(outputs["INVERSE"][:2]).all() and np.isnan(outputs["RESIDUAL"][:2]).all()
    assert np.isnan(outputs["RESIDUAL_HISTORY"][:2]).all()
    assert outputs["METHOD"].tolist()[:2] == ["none", "none"]


@pytest.mark.parametrize(
    "options, word",
    [
        ({"max_iterations": 0}, "1"),
        ({"max_iterations": 1001}, "1000"),
        ({"tolerance": -1.0}, "0.5"),
        ({"tolerance": 1.0}, "0.5"),
        ({"scheme": "order8"}, "order7"),
        ({"initial": "zero"}, "transpose"),
    ],
)
def test_bad_options(client, options, word):
    answer = client.infer("iterative", {"A": np.eye(2)[None]}, parameters=options)
    assert answer.status == 400 and word in answer.json()["error"]


def test_shapes_must_agree(client):
    a = np.stack([np.eye(3)] * 2)
    for v0 in (np.zeros((2, 4, 4)), np.zeros((1, 3, 3)), np.zeros((2, 3, 2))):
        assert client.infer("iterative", {"A": a, "V0": v0}).status == 400


def test_bits_do_not_depend_on_the_batch(client):
    a = matrices.random(24, seed=11, batch=60)
    a[::7] = np.ones((24, 24))
    together = client.outputs("iterative", {"A": a}, ALL)
    for i in (0, 1, 7, 33, 59):
        alone = client.outputs("iterative", {"A": a[i : i + 1]}, ALL)
        for name in ("INVERSE", "INFO", "RESIDUAL", "ITERATIONS", "RESIDUAL_HISTORY"):
            assert alone[name].tobytes() == together[name][i : i + 1].tobytes(), (i, name)
