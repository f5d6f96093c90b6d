"""RESIDUAL_LEFT and RESIDUAL_RIGHT: they are those of the X that came, and come without it too."""

import json

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import JSON, Client
from harness.daemon import simt
from harness.methods import listed_methods

SIDES = ["RESIDUAL_LEFT", "RESIDUAL_RIGHT"]
ANSWER = ["INVERSE", "INFO", "RCOND"]
# Sums of n rounded products are off by so much at most.
SLACK = 0.5


def sided():
    """The methods that have them."""
    of = {name: [t["name"] for t in method["outputs"]] for name, method in listed_methods().items()}
    return [name for name, outputs in of.items() if set(SIDES) <= set(outputs)]


def stack(n, dtype):
    """Random, ill-conditioned, with a zero column, with elements that grow."""
    a = np.stack([matrices.random(n, dtype, seed=n)] * 4)
    a[1] = matrices.conditioned(n, 1e5 if dtype == "f4" else 1e12, 1.0, dtype, n)
    a[2, :, -1] = 0
    a[3] = np.tril(-0.9 * np.ones((n, n)), -1) + np.eye(n)
    a[3, :, -1] = 1
    return a


def check(client, method, a):
    outputs = client.outputs(method, {"A": a}, [*ANSWER, *SIDES])
    for i, x in enumerate(outputs["INVERSE"]):
        found = [float(outputs[side][i]) for side in SIDES]
        if outputs["INFO"][i] in range(1, a.shape[-1] + 1):
            assert np.isnan(found).all()
            continue
        # The ratio has no side: it takes whose inverse it is.
        for side, truth in zip(found, (matrices.ratio(a[i], x), matrices.ratio(x, a[i]))):
            assert abs(side - truth) <= SLACK + 0.01 * truth, (method, a.shape, i, found)
    plain = client.outputs(method, {"A": a}, ANSWER)
    for name in ANSWER:
        assert np.array_equal(plain[name], outputs[name], equal_nan=True), name
    for names in (SIDES, SIDES[:1], SIDES[1:]):
        alone = client.outputs(method, {"A": a}, names)
        assert set(alone) == set(names)
        for name in names:
            assert np.array_equal(alone[name], outputs[name], equal_nan=True), name


@pytest.mark.parametrize("method", sided())
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 31, 33, 64, 100, 130])
def test_they_are_true(client, method, dtype, n):
    check(client, method, stack(n, dtype))


def test_json(client):
    of = {"matrices": [[[2, 0], [0, 4]], [[1, 1], [1, 1]]], "outputs": ["residual_left"]}
    answer = client.invert(json.dumps(of).encode(), JSON, "?method=lu&on_singular=nan").json()
    assert answer["residual_left"] == [0.0, None]
    assert "inverse" not in answer


def test_empty(client):
    outputs = client.outputs("lu", {"A": np.zeros((3, 0, 0))}, [*ANSWER, *SIDES])
    assert outputs["RESIDUAL_LEFT"].tolist() == [0, 0, 0]


def test_a_cuda_engine():
    """What is recovered is measured when it is."""
    with simt() as daemon:
        client = Client(daemon)
        for method in sided():
            for n, dtype in ((1, "f8"), (7, "f4"), (20, "f8"), (33, "f4"), (40, "f8")):
                check(client, method, stack(n, dtype))
        kernel = client.invert(codec.npy(stack(20, "f8")[0]), codec.NPY, "?method=lu")
        assert kernel.header("Invertd-Kernel").startswith("cuda")
