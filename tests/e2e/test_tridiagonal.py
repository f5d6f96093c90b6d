"""tridiagonal: three diagonals in, a dense inverse or its diagonal out, by every door."""

import json

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import JSON, NPZ, v2_binary, v2_json

VARIANTS = ["auto", "sherman_morrison", "two_sweep", "pivoted"]


@pytest.fixture(autouse=True)
def offered(needs):
    needs("tridiagonal")


def bands(n, batch, dtype="f8", seed=0, dominant=True):
    generator = np.random.default_rng([seed, n])
    dl, du = generator.uniform(-1, 1, (2, batch, max(n - 1, 0)))
    d = generator.uniform(2.1, 3, (batch, n)) if dominant else generator.uniform(-1, 1, (batch, n))
    return {"DL": dl.astype(dtype), "D": d.astype(dtype), "DU": du.astype(dtype)}


def dense(inputs):
    def one(dl, d, du):
        return np.diag(d) + np.diag(du, 1) + np.diag(dl, -1) if len(d) > 1 else np.diag(d)

    return np.stack([one(*rows) for rows in zip(inputs["DL"], inputs["D"], inputs["DU"])])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("dominant", [True, False])
def test_both_sides(client, variant, dtype, dominant):
    for n in (1, 2, 3, 7, 8, 9, 64, 100):
        inputs = bands(n, 5, dtype, dominant=dominant)
        outputs = client.outputs("tridiagonal", inputs, parameters={"variant": variant})
        a, x = dense(inputs), outputs["INVERSE"]
        matrices.check_answers(a, outputs)
        norms = [np.abs(m.astype("f8")).sum(axis=1).max(axis=-1) for m in (a, x)]
        for i in range(5):
            if outputs["INFO"][i] == 0:
                right = np.eye(n) - a[i].astype("f8") @ x[i].astype("f8")
                scale = n * norms[0][i] * norms[1][i] * float(np.finfo(dtype).eps)
                assert np.abs(right).sum(axis=0).max() <= 15 * scale


def test_the_road_is_told(client):
    names = ["INVERSE", "METHOD"]
    for variant, dominant, road in [
        ("auto", True, "two_sweep"),
        ("auto", False, "pivoted"),
        ("sherman_morrison", True, "sherman_morrison"),
        ("sherman_morrison", False, "pivoted"),
        ("two_sweep", False, "pivoted"),
        ("pivoted", True, "pivoted"),
    ]:
        inputs = bands(20, 2, dominant=dominant)
        outputs = client.outputs("tridiagonal", inputs, names, {"variant": variant})
        assert list(outputs["METHOD"]) == [road, road]


@pytest.mark.parametrize("n", [1, 2, 33])
def test_every_door_gives_the_same_bits(client, n):
    inputs = bands(n, 3, seed=4)
    x = client.outputs("tridiagonal", inputs)["INVERSE"]
    text = client.outputs("tridiagonal", inputs, form=v2_json)["INVERSE"]
    assert text.tobytes() == x.tobytes()
    lower = {name.lower(): array for name, array in inputs.items()}
    answer = client.invert(codec.npz(**lower), NPZ, "?method=tridiagonal&outputs=inverse,diagonal")
    assert answer.status == 200, answer.body
    arrays = codec.load(answer.body)
    assert arrays["inverse"].tobytes() == x.tobytes()
    assert (arrays["diagonal"] == np.einsum("bii->bi", x)).all()
    document = {name: array[0].tolist() for name, array in lower.items()}
    answer = client.invert(json.dumps({**document, "method": "tridiagonal"}).encode(), JSON)
    assert answer.status == 200, answer.body
    assert np.array(json.loads(answer.body)["inverse"]).tobytes() == x[0].tobytes()


def test_bits_do_not_depend_on_company(client):
    inputs = bands(40, 200, seed=5)
    for name in inputs:
        inputs[name][::3] = bands(40, 67, seed=6, dominant=False)[name]
    x = client.outputs("tridiagonal", inputs)["INVERSE"]
    for i in (0, 1, 99, 199):
        alone = client.outputs("tridiagonal", {k: v[i : i + 1] for k, v in inputs.items()})
        assert alone["INVERSE"].tobytes() == x[i : i + 1].tobytes()
    inputs["D"][7] = np.nan
    hurt = client.outputs("tridiagonal", inputs)
    others = np.arange(200) != 7
    assert hurt["INFO"][7] == -1 and (hurt["INFO"][others] == 0).all()
    assert hurt["INVERSE"][others].tobytes() == x[others].tobytes()


def test_diagonal_of_a_million(client):
    n = 1_000_000
    off = np.full((1, n - 1), -1.0)
    inputs = {"DL": off, "D": np.full((1, n), 2.5), "DU": off}
    outputs = client.outputs("tridiagonal", inputs, ["DIAGONAL", "INFO", "RCOND"])
    assert outputs["INFO"][0] == 0
    assert abs(outputs["DIAGONAL"][0, n // 2] - 1 / 1.5) < 1e-15  # 1 / sqrt(2.5^2 - 4)
    assert abs(outputs["DIAGONAL"][0, 0] - 0.5) < 1e-15
    assert abs(outputs["RCOND"][0] * 4.5 * 2 - 1) < 1e-12


def test_an_inverse_too_large_is_refused(client):
    n = 200_000
    inputs = {"DL": np.ones((1, n - 1)), "D": np.ones((1, n)), "DU": np.ones((1, n - 1))}
    answer = client.infer("tridiagonal", inputs, form=v2_binary)
    assert answer.status == 413, answer.status


def test_singular(client):
    inputs = {"DL": np.ones((2, 1)), "D": np.ones((2, 2)), "DU": np.ones((2, 1))}
    inputs["D"][1] = 2
    outputs = client.outputs("tridiagonal", inputs)
    assert outputs["INFO"].tolist() == [2, 0]
    assert np.isnan(outputs["INVERSE"][0]).all() and outputs["RCOND"][0] == 0
