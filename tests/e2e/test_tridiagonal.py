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


def test_the_algorithm_is_reported(client):
    names = ["INVERSE", "METHOD"]
    for variant, dominant, algorithm in [
        ("auto", True, "two_sweep"),
        ("auto", False, "pivoted"),
        ("sherman_morrison", True, "sherman_morrison"),
        ("sherman_morrison", False, "pivoted"),
        ("two_sweep", False, "pivoted"),
        ("pivoted", True, "pivoted"),
    ]:
        inputs = bands(20, 2, dominant=dominant)
        outputs = client.outputs("tridiagonal", inputs, names, {"variant": variant})
        assert list(outputs["METHOD"]) == [algorithm, algorithm]


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


def test_bits_do_not_depend_on_the_batch(client):
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
    assert "ask for a part of the inverse (rows, columns)" in answer.text


def test_singular(client):
    inputs = {"DL": np.ones((2, 1)), "D": np.ones((2, 2)), "DU": np.ones((2, 1))}
    inputs["D"][1] = 2
    outputs = client.outputs("tridiagonal", inputs)
    assert outputs["INFO"].tolist() == [2, 0]
    assert np.isnan(outputs["INVERSE"][0]).all() and outputs["RCOND"][0] == 0


# ---- Blocks and generators ----

BLOCK = {"rows": "3:9", "columns": "0:30"}


def test_blocks_by_every_door(client):
    inputs = bands(30, 2, seed=7)
    whole = client.outputs("tridiagonal", inputs)["INVERSE"]
    wanted = np.ascontiguousarray(whole[:, 3:9, :])
    block = client.outputs("tridiagonal", inputs, parameters=BLOCK)
    assert block["INVERSE"].tobytes() == wanted.tobytes() and block["INVERSE"].shape == (2, 6, 30)
    text = client.outputs("tridiagonal", inputs, parameters=BLOCK, form=v2_json)["INVERSE"]
    assert text.tobytes() == wanted.tobytes()
    lower = {name.lower(): array for name, array in inputs.items()}
    query = "?method=tridiagonal&outputs=inverse,info&rows=3:9&columns=0:30"
    answer = client.invert(codec.npz(**lower), NPZ, query)
    assert answer.status == 200, answer.body
    assert codec.load(answer.body)["inverse"].tobytes() == wanted.tobytes()
    answer = client.invert(codec.npz(**lower), NPZ, query, Accept=codec.NPY)
    assert answer.status == 200, answer.body
    assert codec.load(answer.body).tobytes() == wanted.tobytes()
    document = {name: array.tolist() for name, array in lower.items()}
    body = json.dumps({**document, "method": "tridiagonal", "options": BLOCK}).encode()
    answer = client.invert(body, JSON)
    assert answer.status == 200, answer.body
    assert np.array(json.loads(answer.body)["inverse"]).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_blocks_are_parts_of_the_whole(client, variant, dtype):
    inputs = bands(150, 3, dtype, seed=8)
    for name in inputs:  # one that is not dominant among them
        inputs[name][1] = bands(150, 1, dtype, seed=9, dominant=False)[name][0]
    whole = client.outputs("tridiagonal", inputs, parameters={"variant": variant})
    for rows, columns in [((0, 1), (0, 1)), ((149, 150), (0, 150)), ((140, 150), (3, 4)),
                          ((0, 150), (0, 150)), ((10, 140), (127, 129))]:
        options = {"variant": variant, "rows": "%d:%d" % rows, "columns": "%d:%d" % columns}
        block = client.outputs("tridiagonal", inputs, parameters=options)
        part = whole["INVERSE"][:, rows[0] : rows[1], columns[0] : columns[1]]
        assert block["INVERSE"].tobytes() == np.ascontiguousarray(part).tobytes()
        assert block["RCOND"].tobytes() == whole["RCOND"].tobytes()


@pytest.mark.parametrize("rows, complaint", [
    ("0:0", "first:last"),
    ("5:4", "first:last"),
    ("-1:4", "first:last"),
    ("4", "first:last"),
    ("", "first:last"),
    ("a:b", "first:last"),
    ("0:99999999999999999999", "first:last"),
    ("0:10", "reaches beyond the order, 9"),
    ("9:10", "reaches beyond the order, 9"),
])
def test_bad_ranges(client, rows, complaint):
    inputs = bands(9, 1)
    lower = {name.lower(): array[0] for name, array in inputs.items()}
    document = {name: array.tolist() for name, array in lower.items()}
    body = json.dumps({**document, "method": "tridiagonal", "options": {"rows": rows}}).encode()
    for answer in (
        client.infer("tridiagonal", inputs, parameters={"rows": rows}),
        client.infer("tridiagonal", inputs, parameters={"rows": rows}, form=v2_json),
        client.invert(codec.npz(**lower), NPZ, f"?method=tridiagonal&rows={rows}"),
        client.invert(body, JSON),
    ):
        assert answer.status == 400, answer.body
        assert complaint in answer.body.decode() and "rows" in answer.body.decode()


def test_a_range_is_no_number(client):
    answer = client.infer("tridiagonal", bands(9, 1), parameters={"rows": 4})
    assert answer.status == 400 and b"first:last" in answer.body, answer.body


def test_a_block_of_a_large_order(client):
    """Of an inverse that would take 2 TB."""
    n = 500_000
    off = np.full((1, n - 1), -1.0)
    inputs = {"DL": off, "D": np.full((1, n), 2.5), "DU": off}
    options = {"rows": "249990:250010", "columns": "249995:250000"}
    outputs = client.outputs("tridiagonal", inputs, ["INVERSE", "INFO"], options)
    i, j = np.arange(249990, 250010)[:, None], np.arange(249995, 250000)[None, :]
    assert np.allclose(outputs["INVERSE"][0], 0.5 ** abs(i - j) / 1.5, rtol=1e-14)


def test_a_block_too_large_is_refused(client):
    inputs = {"DL": np.ones((1, 199_999)), "D": np.ones((1, 200_000)), "DU": np.ones((1, 199_999))}
    answer = client.infer("tridiagonal", inputs, parameters={"rows": "0:100000"})
    assert answer.status == 413, answer.status


@pytest.mark.parametrize("dominant", [True, False])
def test_generators(client, dominant):
    n = 60
    inputs = bands(n, 2, seed=3, dominant=dominant)
    names = ["INVERSE", "GENERATORS", "EXPONENTS"]
    outputs = client.outputs("tridiagonal", inputs, names)
    g, e = outputs["GENERATORS"], outputs["EXPONENTS"].astype("i8")
    assert g.shape == e.shape == (2, 4, n) and outputs["EXPONENTS"].dtype == np.dtype("i4")

    def products(row, column):
        powers = 64 * (e[:, row, :, None] + e[:, column, None, :])
        return np.ldexp(g[:, row, :, None] * g[:, column, None, :], np.maximum(powers, -4000))

    x = np.triu(products(0, 1)) + np.tril(products(2, 3), -1)
    assert np.allclose(x, outputs["INVERSE"], rtol=1e-13, atol=0)


def test_auto_takes_dense_ones_here(client):
    inputs = bands(50, 3, seed=2)
    inputs["D"][1] = 0.1  # not dominant, and no less a tridiagonal matrix
    a = dense(inputs)
    outputs = client.outputs("auto", {"A": a}, ["INVERSE", "INFO", "RCOND", "METHOD"])
    assert list(outputs["METHOD"]) == ["tridiagonal"] * 3
    matrices.check_answers(a, outputs)
    x = client.outputs("tridiagonal", inputs)["INVERSE"]
    assert outputs["INVERSE"].tobytes() == x.tobytes()


def test_the_document_describes_ranges(client):
    methods = {m["name"]: m for m in client.daemon.get("/v1/methods").json()["methods"]}
    method = methods["tridiagonal"]
    options = {option["name"]: option for option in method["options"]}
    assert options["rows"]["kind"] == "range" and options["rows"]["default"] == "0:n"
    shapes = {output["name"]: output["shape"] for output in method["outputs"]}
    assert shapes["INVERSE"] == ["batch", "rows", "columns"]
    assert shapes["GENERATORS"] == ["batch", 4, "n"]
    metadata = client.daemon.get("/v2/models/tridiagonal").json()
    shapes = {output["name"]: output["shape"] for output in metadata["outputs"]}
    assert shapes["INVERSE"] == [-1, -1, -1] and shapes["EXPONENTS"] == [-1, 4, -1]
