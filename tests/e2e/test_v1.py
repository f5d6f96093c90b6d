"""/v1/invert for curl, NumPy and people: NPY, NPZ, JSON, problem documents, headers."""

import gzip
import json
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest
import yaml

from harness import codec, matrices, wire
from harness.codec import JSON, NPY, NPZ
from harness.methods import inverters

PROBLEM = "application/problem+json"
CURL_DEFAULT = "application/x-www-form-urlencoded"
DTYPES = pytest.mark.parametrize("dtype", ["<f4", "<f8"])


def assert_problem(answer, status, words=""):
    assert answer.status == status, answer
    assert answer.header("Content-Type") == PROBLEM, answer
    document = answer.json()
    assert {"type", "title", "status", "detail", "instance"} <= set(document), document
    assert document["status"] == status
    assert re.search(words, document["detail"], re.I), document
    return document


def inverse_of(answer):
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == NPY
    return codec.load(answer.body)


def check_headers(answer, method="lu", bad=0):
    assert answer.header("Invertd-Method") == method
    assert int(answer.header("Invertd-Info")) == bad
    float(answer.header("Invertd-Rcond"))
    assert answer.header("Invertd-Kernel")
    timing = answer.header("Server-Timing")
    assert re.fullmatch(r"queue;dur=[\d.e+-]+, ?compute;dur=[\d.e+-]+", timing), timing


# ---- NPY ----


@DTYPES
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 3)], ids=["2d", "3d", "5d"])
def test_npy_round_trip(client, dtype, order, lead):
    count = int(np.prod(lead, dtype=int))
    a = matrices.random(9, dtype, seed=11, batch=count).reshape(*lead, 9, 9)
    answer = client.invert(codec.npy(np.array(a, order=order)), NPY, "?method=lu")
    x = inverse_of(answer)
    assert x.shape == a.shape and x.dtype == a.dtype and x.flags.c_contiguous
    for one, its in zip(a.reshape(-1, 9, 9), x.reshape(-1, 9, 9)):
        assert matrices.ratio(one, its) <= matrices.BOUND
    check_headers(answer)


@DTYPES
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 3, 3), (2, 0, 0), (3, 0, 4, 4), (1, 1), (1, 1, 1, 1)]
)
def test_npy_small_and_empty_shapes(client, dtype, order, shape):
    x = inverse_of(client.invert(codec.npy(np.full(shape, 4, dtype, order=order)), NPY))
    assert x.shape == shape and x.dtype == dtype
    assert (x == 0.25).all()


def test_npy_versions_2_and_3(client):
    a = np.diag([2.0, 4.0])
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
    header += b" " * (-(12 + len(header) + 1) % 64) + b"\n"
    for version in (2, 3):
        body = b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(4, "little") + header
        x = inverse_of(client.invert(body + a.tobytes(), NPY))
        assert x.tolist() == [[0.5, 0], [0, 0.25]]


# ---- NPZ ----


@DTYPES
@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
@pytest.mark.parametrize("name", ["a", "A"])
def test_npz_round_trip(client, dtype, compressed, name):
    a = matrices.random(6, dtype, seed=12, batch=2)
    body = codec.npz(compressed, **{name: a})
    answer = client.invert(body, NPZ, "?outputs=inverse,info,rcond")
    assert answer.status == 200 and answer.header("Content-Type") == NPZ, answer
    arrays = codec.load(answer.body)
    assert sorted(arrays.files) == ["info", "inverse", "rcond"]
    named = {key.upper(): arrays[key] for key in arrays.files}
    matrices.check_answers(a, named)


def test_npz_default_answer_and_npy_on_request(client):
    a = matrices.random(5, seed=13)
    default = client.invert(codec.npz(a=a), NPZ)
    assert default.header("Content-Type") == NPZ
    arrays = codec.load(default.body)
    assert {"inverse", "info", "rcond"} <= set(arrays.files)
    assert arrays["inverse"].shape == (5, 5) and arrays["info"].shape == ()
    plain = inverse_of(client.invert(codec.npz(a=a), NPZ, Accept=NPY))
    assert plain.tobytes() == arrays["inverse"].tobytes()


def test_npz_answer_for_npy_when_asked(client):
    answer = client.invert(codec.npy(np.eye(3)), NPY, Accept=NPZ)
    assert answer.status in (200, 406), answer
    if answer.status == 200:
        assert codec.load(answer.body)["inverse"].tolist() == np.eye(3).tolist()


def test_npz_of_lu_factor(client):
    a = matrices.random(7, seed=14, batch=3)
    answer = client.invert(codec.npz(a=a), NPZ, "?method=lu_factor")
    arrays = codec.load(answer.body)
    assert {"lu", "pivots", "info"} <= set(arrays.files)
    assert arrays["pivots"].dtype == np.int32 and arrays["pivots"].shape == (3, 7)


# ---- JSON ----


def post_json(client, document, query="", **headers):
    return client.invert(json.dumps(document).encode(), JSON, query, **headers)


def test_json_one_matrix(client):
    answer = post_json(client, {"matrix": [[4, 7], [2, 6]]})
    assert answer.status == 200 and answer.header("Content-Type") == JSON, answer
    document = answer.json()
    assert set(document) == {"inverse", "info", "rcond", "method"}
    assert np.allclose(document["inverse"], [[0.6, -0.7], [-0.2, 0.4]], rtol=1e-14)
    assert document["info"] == 0 and document["method"] == "lu"
    assert 0.05 < document["rcond"] < 0.08
    check_headers(answer)


def test_json_stack_gives_lists(client):
    document = post_json(client, {"matrices": [[[2]], [[4]]], "method": "lu"}).json()
    assert document["inverse"] == [[[0.5]], [[0.25]]]
    assert document["info"] == [0, 0] and document["rcond"] == [1, 1]
    one = post_json(client, {"matrices": [[[2]]]}).json()
    assert one["inverse"] == [[[0.5]]] and one["info"] == [0]


def test_json_precision(client):
    a = [[3, 1], [1, 7]]
    double = post_json(client, {"matrix": a, "method": "lu"}).json()["inverse"]
    single = post_json(client, {"matrix": a, "method": "lu", "precision": "fp32"}).json()["inverse"]
    assert single != double and np.allclose(single, double, rtol=1e-6)


def test_json_numbers_are_exact(client):
    """Text is rounded once, to the precision asked for; answers are the shortest text."""
    for text, precision, expected in [
        ("1.00000017881393432617187499", "fp32", "1.0000001"),  # by way of FP64: 1.0000002
        ("1.000000178813934326171875", "fp32", "1.0000002"),
        ("0.1", "fp32", "0.1"),
        ("0.1", "fp64", "0.1"),
        ("9007199254740993.0000001", "fp64", "9007199254740994"),
        ("5e-324", "fp64", "5e-324"),
        ("1e-400", "fp64", "0"),
        ("-0.0", "fp64", "-0.0"),
    ]:
        body = '{"a":[[%s]],"method":"lu_factor","outputs":["lu"],"precision":"%s"}'
        answer = client.invert((body % (text, precision)).encode(), JSON, "?on_singular=nan")
        assert answer.status == 200, answer
        got = re.search(rb'"lu":\[\[(.*?)\]\]', answer.body.replace(b" ", b"")).group(1).decode()
        assert got in (expected, expected + ".0") or repr(float(got)) == expected, (text, got)


def test_json_input_by_name_and_outputs(client):
    document = post_json(
        client, {"a": [[2, 0], [0, 4]], "method": "lu_factor", "outputs": ["lu", "pivots"]}
    ).json()
    assert document["lu"] == [[2, 0], [0, 4]] and document["pivots"] == [1, 2]
    assert "info" not in document
    query = client.invert(b'{"a": [[2, 0], [0, 4]]}', JSON, "?method=lu&outputs=rcond").json()
    assert query["rcond"] == 0.5 and "inverse" not in query


def test_json_options(client):
    spd = matrices.spd(5)
    spd[0, 4] = np.nextafter(spd[0, 4], 9)  # so that the option makes a difference
    assert post_json(client, {"matrix": spd.tolist(), "method": "auto"}).json()["method"] == "lu"
    spd = spd.tolist()
    document = post_json(client, {"matrix": spd, "method": "auto", "options": {"spd": True}}).json()
    assert document["method"] == "cholesky"
    assert (
        client.invert(json.dumps({"matrix": spd}).encode(), JSON, "?method=auto&spd=true").json()[
            "method"
        ]
        == "cholesky"
    )


def test_json_empty(client):
    document = post_json(client, {"matrix": []}).json()
    assert document["inverse"] == [] and document["info"] == 0 and document["rcond"] == 1
    assert post_json(client, {"matrices": []}).json()["inverse"] == []


def test_methods_by_query_and_body(client):
    a = matrices.random(8, seed=15)
    for method in inverters():
        by_query = post_json(client, {"matrix": a.tolist()}, f"?method={method}").json()
        by_body = post_json(client, {"matrix": a.tolist(), "method": method}).json()
        assert by_query == by_body
        assert matrices.ratio(a, np.array(by_body["inverse"])) <= matrices.BOUND


def test_method_header_says_mixed(client):
    a = np.stack([np.eye(9), matrices.random(9)])
    answer = client.invert(codec.npy(a), NPY)
    check_headers(answer, "mixed")
    assert float(answer.header("Invertd-Rcond")) < 1


# ---- Which format ----


@pytest.mark.parametrize("type", [None, CURL_DEFAULT])
def test_format_is_detected_from_first_bytes(client, type):
    a = np.diag([2.0, 4.0])
    assert (inverse_of(client.invert(codec.npy(a), type)) == np.diag([0.5, 0.25])).all()
    assert codec.load(client.invert(codec.npz(a=a), type).body)["inverse"][0, 0] == 0.5
    assert client.invert(b' {"matrix": [[2]]}', type).json()["inverse"] == [[0.5]]


@pytest.mark.parametrize("pack, coding", [(bytes, "identity"), (gzip.compress, "gzip")])
def test_content_type_of_another_format(client, pack, coding):
    a = np.eye(2)
    bodies = {NPY: codec.npy(a), NPZ: codec.npz(a=a), JSON: b'{"matrix": [[2]]}'}
    for type, body in bodies.items():
        for other in bodies.keys() - {type}:
            answer = client.invert(pack(body), other, Content_Encoding=coding)
            assert_problem(answer, 400, f"Content-Type is {other}; send it as {type}")


@pytest.mark.parametrize("type", [None, JSON])
@pytest.mark.parametrize("pack, coding", [(bytes, "identity"), (gzip.compress, "gzip")])
def test_byte_order_mark(client, type, pack, coding):
    body = pack(b"\xef\xbb\xbf" + b'{"matrix": [[2]]}')
    answer = client.invert(body, type, Content_Encoding=coding)
    assert answer.status == 200 and answer.json()["inverse"] == [[0.5]], answer


@pytest.mark.parametrize("type", [None, JSON, NPY])
def test_gzip_without_its_header(client, type):
    answer = client.invert(gzip.compress(b'{"matrix": [[2]]}'), type)
    assert_problem(answer, 400, "Content-Encoding: gzip")


def test_content_type_with_parameters(client):
    assert client.invert(b'{"matrix": [[2]]}', "application/json; charset=utf-8").status == 200
    assert client.invert(codec.npy(np.eye(2)), "Application/X-NPY").status == 200


def test_accept(client):
    body = codec.npy(np.eye(2))
    for accept in ("*/*", "application/*", NPY, "text/html, application/x-npy;q=0.5"):
        assert client.invert(body, NPY, Accept=accept).status == 200, accept
    assert_problem(client.invert(body, NPY, Accept="text/html"), 406, "npy")
    text = client.invert(body, NPY, Accept=JSON)
    assert text.header("Content-Type") == JSON and text.json()["inverse"] == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "coding, pack", [("gzip", gzip.compress), ("deflate", zlib.compress), ("x-gzip", gzip.compress)]
)
def test_compressed_bodies(client, coding, pack):
    a = matrices.random(20, seed=16)
    plain = inverse_of(client.invert(codec.npy(a), NPY))
    for body, type in [(codec.npy(a), NPY), (codec.npz(a=a), NPZ)]:
        answer = client.invert(pack(body), type, Content_Encoding=coding, Accept=NPY)
        assert inverse_of(answer).tobytes() == plain.tobytes()
    document = json.dumps({"matrix": a.tolist()}).encode()
    answer = client.invert(pack(document), JSON, Content_Encoding=coding)
    assert np.array(answer.json()["inverse"]).tobytes() == plain.tobytes()


@pytest.mark.parametrize(
    "accept, coding",
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip;q=0.2, deflate;q=0.8", "deflate"),
        ("gzip;q=0, deflate", "deflate"),
        ("gzip;q=0", None),
        ("identity", None),
        ("br", None),
        (None, None),
    ],
)
def test_compressed_answers(client, accept, coding):
    a = np.zeros((64, 64)) + np.eye(64)
    headers = {"Accept_Encoding": accept} if accept else {}
    answer = client.invert(codec.npy(a), NPY, **headers)
    assert answer.header("Content-Encoding") == coding, answer.fields
    assert codec.load(answer.content).tobytes() == a.tobytes()
    if coding:
        assert len(answer.body) < a.nbytes / 4
    assert answer.header("Vary") == "Accept-Encoding"


def test_what_does_not_shrink_is_sent_as_it_is(client):
    a = np.random.default_rng(3).standard_normal((64, 64))
    answer = client.invert(codec.npy(a), NPY, Accept_Encoding="gzip")
    assert answer.header("Content-Encoding") is None
    assert answer.header("Vary") == "Accept-Encoding"
    text = client.invert(b'{"matrix": %s}' % str(a.tolist()).encode(), JSON, Accept_Encoding="gzip")
    assert text.header("Content-Encoding") == "gzip"


def test_small_answers_are_not_compressed(client):
    answer = client.invert(b'{"matrix": [[2]]}', JSON, Accept_Encoding="gzip")
    assert answer.header("Content-Encoding") is None
    assert answer.header("Vary") == "Accept-Encoding"


# ---- Matrices without an inverse ----


def test_singular_is_a_422_that_names_the_matrices(client):
    a = matrices.random(3, seed=17, batch=5)
    a[1], a[4, 2, 2] = 0, np.nan
    answer = client.invert(codec.npy(a), NPY)
    document = assert_problem(answer, 422)
    text = json.dumps(document)
    assert re.search(r"\b1\b", text) and re.search(r"\b4\b", text) and "-1" in text
    assert document["type"].rstrip("/").endswith("not-invertible")
    assert int(answer.header("Invertd-Info")) == 2


def test_on_singular_nan(client):
    a = matrices.random(3, seed=17, batch=5)
    a[1], a[4, 2, 2] = 0, np.nan
    answer = client.invert(codec.npy(a), NPY, "?on_singular=nan&method=lu")
    x = inverse_of(answer)
    assert np.isnan(x[[1, 4]]).all()
    for i in (0, 2, 3):
        assert matrices.ratio(a[i], x[i]) <= matrices.BOUND
    assert int(answer.header("Invertd-Info")) == 2
    document = post_json(client, {"matrix": [[0]], "on_singular": "nan"}).json()
    assert document["inverse"] == [[None]] and document["info"] == 1


def test_ill_conditioned_is_answered(client):
    answer = client.invert(codec.npy(np.array([[1.0, 2], [1, 2 + 2e-16]]) * 3), NPY)
    assert answer.status in (200, 422)
    a = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    answer = client.invert(codec.npy(a), NPY)
    assert answer.status == 200, answer
    check_headers(answer, bad=1)
    assert 0 < float(answer.header("Invertd-Rcond")) < 2.0**-52


# ---- Refusals ----


@pytest.mark.parametrize(
    "array, words",
    [
        (np.eye(2, dtype=int), r"<f8"),
        (np.eye(2, dtype="f2"), r"<f[48]"),
        (np.eye(2, dtype=">f8"), r"<f8"),
        (np.eye(2, dtype=complex), r"complex|<f8"),
        (np.eye(2, dtype=bool), r"<f8"),
    ],
)
def test_other_dtypes_are_refused_with_advice(client, array, words):
    assert_problem(client.invert(codec.npy(array), NPY), 400, words)


@pytest.mark.parametrize(
    "query, status, words",
    [
        ("?method=nothing", 400, "method|lu"),
        ("?colour=red", 400, "colour"),
        ("?on_singular=maybe", 400, "on_singular"),
        ("?outputs=inverse,nothing", 400, "output|nothing"),
        ("?spd=perhaps&method=auto", 400, "spd"),
        ("?method=lu&method=auto", 400, "method"),
    ],
)
def test_bad_options(client, query, status, words):
    assert_problem(client.invert(b'{"matrix": [[2]]}', JSON, query), status, words)


def test_query_and_body_naming_the_same_option(client):
    answer = post_json(client, {"matrix": [[2]], "method": "lu"}, "?method=lu")
    assert_problem(answer, 400, "method")


def test_other_types_are_415(client):
    assert_problem(client.invert(b"1,2\n3,4\n", "text/csv"), 415, "json|npy")
    assert_problem(client.invert(b"1 2 3", None), 415)


def test_what_curl_makes_of_a_file_is_explained(client):
    """-F sends a form around it, -d ends it at its first NUL."""
    assert_problem(client.invert(b"--b", "multipart/form-data; boundary=b"), 415, "--data-binary")
    begin = codec.npy(np.eye(2)).partition(b"\0")[0]
    assert_problem(client.invert(begin, CURL_DEFAULT), 400, "--data-binary")


def test_wrong_path_and_verb(daemon):
    assert_problem(daemon.post("/v1/nothing", b"{}"), 404)
    answer = daemon.get("/v1/invert")
    assert_problem(answer, 405)
    assert "POST" in answer.header("Allow")


# ---- Documents ----


def test_methods_document(daemon, methods):
    answer = daemon.get("/v1/methods")
    assert answer.status == 200 and answer.header("Content-Type") == JSON
    text = answer.text
    for name in methods:
        assert f'"{name}"' in text
    for word in ("INVERSE", "PIVOTS", "spd"):
        assert word in text or word.lower() in text


DENSE, BANDS = [[4.0, 7.0], [2.0, 6.0]], {"dl": [-1, -1], "d": [3, 3, 3], "du": [-1, -1]}
THIN = {"x": [[1.0], [2.0]], "y": [[1.0], [1.0]]}
ALGORITHMS = [
    ("auto", {"matrix": DENSE}, "", "lu"),
    ("auto", {"matrix": [[2, 0], [0, 4]]}, "", "diagonal"),
    ("auto", {"matrix": [[2, 1], [0, 4]]}, "", "triangular"),
    ("auto", {"matrix": (4 * np.eye(9) - np.eye(9, k=1) - np.eye(9, k=-1)).tolist()}, "",
     "tridiagonal"),
    ("auto", {"matrix": (40 * np.eye(40) + np.ones((40, 40))).tolist()}, "", "cholesky"),
    ("tridiagonal", BANDS, "", "two_sweep"),
    ("tridiagonal", BANDS, "variant=sherman_morrison", "sherman_morrison"),
    ("tridiagonal", BANDS, "variant=pivoted", "pivoted"),
    ("ism", THIN, "variant=single", "single"),
    ("ism", THIN, "variant=block", "block"),
    ("ism", THIN, "variant=reduced_memory", "reduced_memory"),
    ("ism", {"x": np.eye(2).repeat(2, 1).tolist(), "y": np.eye(2).repeat(2, 1).tolist()}, "", "lu"),
    ("iterative", {"a": DENSE, "v0": [[0.6, -0.7], [-0.2, 0.4]]}, "", "warm_start"),
    ("iterative", {"a": DENSE}, "initial=low_precision", "low_precision_start"),
    ("iterative", {"a": [[4, 1], [1, 5]]}, "initial=diagonal", "diagonal_start"),
    ("iterative", {"a": DENSE}, "initial=transpose", "transpose_start"),
    ("iterative", {"a": [[4, 1], [1, 5]]}, "initial=scaled_identity", "scaled_identity_start"),
]


@pytest.mark.parametrize("method, body, options, algorithm", ALGORITHMS,
                         ids=[f"{row[0]}-{row[3]}" for row in ALGORITHMS])
def test_what_method_says_is_documented(daemon, method, body, options, algorithm):
    """METHOD, Invertd-Method and "method" say the same word, and the documents know it."""
    answer = daemon.post(f"/v1/invert?method={method}&{options}", json.dumps(body).encode(),
                         {"Content-Type": JSON})
    assert answer.status == 200, answer
    assert answer.header("Invertd-Method") == algorithm == answer.json()["method"]
    described = next(m for m in daemon.get("/v1/methods").json()["methods"] if m["name"] == method)
    words = next(o["help"] for o in described["outputs"] if o["name"] == "METHOD")
    assert re.search(rf"\b{algorithm}\b", words), words


def test_openapi(daemon):
    answer = daemon.get("/openapi.yaml")
    assert answer.status == 200 and "yaml" in answer.header("Content-Type")
    document = yaml.safe_load(answer.text)
    assert document["openapi"].startswith("3.")
    plain = [path for path, item in document["paths"].items() if "get" in item and "{" not in path]
    assert len(plain) > 5
    for path in plain:
        with daemon.connect() as connection:  # HEAD, for the answer to GET may have no end
            connection.send(wire.request("HEAD", path))
            assert connection.read(head_only=True).status < 400, path
    for path in ("/v1/invert", "/v1/methods", "/metrics", "/v2/models/"):
        assert path in answer.text


def test_status_page(daemon):
    answer = daemon.get("/", {"Accept": "text/html"})
    assert answer.status == 200 and answer.header("Content-Type").startswith("text/html")
    assert "invertd" in answer.text and "<html" in answer.text.lower()


def test_a_key_alone_makes_no_job(client):
    answer = client.invert(codec.npy(np.eye(2)), NPY, Prefer="wait=5", Idempotency_Key="k")
    assert answer.status == 200 and answer.header("Location") is None


def test_trace_context_is_accepted(client):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert client.invert(codec.npy(np.eye(2)), NPY, traceparent=trace).status == 200


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_as_documented(daemon, tmp_path):
    a = matrices.random(300, seed=18)
    np.save(tmp_path / "a.npy", a)
    base = ["curl", "-sS", "--fail-with-body", "--max-time", "30"]
    url = f"http://{daemon.url}/v1/invert"
    for extra in (["-H", f"Content-Type: {NPY}"], [], ["--compressed"]):
        subprocess.run(
            [
                *base,
                "--data-binary",
                f"@{tmp_path / 'a.npy'}",
                *extra,
                url,
                "-o",
                tmp_path / "x.npy",
            ],
            check=True,
        )
        assert matrices.ratio(a, np.load(tmp_path / "x.npy")) <= matrices.BOUND
    out = subprocess.run(
        [*base, "-d", '{"matrix":[[4,7],[2,6]]}', url], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(out)["info"] == 0


def test_large_body_with_expect_continue(daemon):
    body = codec.npy(matrices.random(200, seed=19))
    with daemon.connect() as connection:
        connection.send(
            wire.request(
                "POST", "/v1/invert", None, {"Content-Length": len(body), "Expect": "100-continue"}
            )
        )
        assert connection.read_interim() == 100
        connection.send(body)
        assert inverse_of(connection.read()).shape == (200, 200)
