"""The Open Inference Protocol, as its own words on the wire."""

import gzip
import json
import re
import time

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.codec import J, v2_binary, v2_json
from harness.daemon import Daemon, wait_until
from harness.methods import default_outputs, dense_methods, inverters, listed_methods
from harness.settings import scaled_timeout

LU = "/v2/models/lu"
STAT_KEYS = {
    "success",
    "fail",
    "queue",
    "compute_input",
    "compute_infer",
    "compute_output",
    "cache_hit",
    "cache_miss",
}


def get_json(daemon, path):
    answer = daemon.get(path)
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/json", answer
    return answer.json()


def assert_error(answer, status, words=""):
    assert answer.status == status, answer
    assert answer.header("Content-Type") == "application/json", answer
    document = answer.json()
    assert set(document) == {"error"} and isinstance(document["error"], str), document
    assert re.search(words, document["error"], re.I), document


# ---- Documents ----


def test_server_metadata(daemon):
    document = get_json(daemon, "/v2")
    assert document["name"] == "invertd"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", document["version"])
    known = {
        "binary_tensor_data",
        "parameters",
        "statistics",
        "model_configuration",
        "model_repository",
        "system_shared_memory",
        "cuda_shared_memory",
        "schedule_policy",
    }
    offered = set(document["extensions"])
    assert offered <= known
    assert {
        "binary_tensor_data",
        "parameters",
        "statistics",
        "model_configuration",
        "model_repository",
    } <= offered


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        ("/livez", {"live": True}),
        ("/readyz", {"ready": True}),
    ],
)
def test_health(daemon, path, body):
    assert get_json(daemon, path) == body


def test_index_lists_every_method(daemon, methods):
    assert methods == set(listed_methods())
    answer = daemon.post("/v2/repository/index", b"{}", {"Content-Type": "application/json"})
    assert answer.status == 200
    for entry in answer.json():
        assert entry["state"] == "READY" and entry["version"] == "1", entry
        assert daemon.get(f"/v2/models/{entry['name']}/ready").status == 200


@pytest.mark.parametrize("path", [LU, LU + "/versions/1"])
def test_model_metadata(daemon, path):
    assert get_json(daemon, path) == {
        "name": "lu",
        "versions": ["1"],
        "platform": "invertd",
        "inputs": [{"name": "A", "datatype": "FP64", "shape": [-1, -1, -1]}],
        "outputs": [
            {"name": "INVERSE", "datatype": "FP64", "shape": [-1, -1, -1]},
            {"name": "INFO", "datatype": "INT32", "shape": [-1]},
            {"name": "RCOND", "datatype": "FP64", "shape": [-1]},
            {"name": "RESIDUAL_LEFT", "datatype": "FP64", "shape": [-1]},
            {"name": "RESIDUAL_RIGHT", "datatype": "FP64", "shape": [-1]},
        ],
    }


def test_metadata_of_other_methods(daemon, methods):
    auto = get_json(daemon, "/v2/models/auto")
    assert {"name": "METHOD", "datatype": "BYTES", "shape": [-1]} in auto["outputs"]
    factor = {t["name"]: t for t in get_json(daemon, "/v2/models/lu_factor")["outputs"]}
    assert factor["PIVOTS"]["datatype"] == "INT32" and factor["PIVOTS"]["shape"] == [-1, -1]
    for name in methods:
        document = get_json(daemon, f"/v2/models/{name}")
        assert document["name"] == name and document["inputs"] and document["outputs"]


@pytest.mark.parametrize("path", [LU + "/config", LU + "/versions/1/config"])
def test_model_config(daemon, path):
    config = get_json(daemon, path)
    assert config["name"] == "lu"
    assert config["max_batch_size"] == 2**31 - 1
    assert "dynamic_batching" in config
    assert config["model_transaction_policy"]["decoupled"] is False
    assert config["response_cache"]["enable"] is False
    assert config["input"][0]["name"] == "A"
    assert config["input"][0]["data_type"] == "TYPE_FP64"
    assert [int(d) for d in config["input"][0]["dims"]] == [-1, -1]
    assert {t["name"]: t["data_type"] for t in config["output"]} == {
        "INVERSE": "TYPE_FP64",
        "INFO": "TYPE_INT32",
        "RCOND": "TYPE_FP64",
        "RESIDUAL_LEFT": "TYPE_FP64",
        "RESIDUAL_RIGHT": "TYPE_FP64",
    }


@pytest.mark.parametrize("suffix", ["", "/versions/1"])
def test_model_ready(daemon, suffix):
    assert daemon.get(f"{LU}{suffix}/ready").status == 200


def stats_of(daemon, path, name):
    stats = get_json(daemon, path)["model_stats"]
    return next(entry for entry in stats if entry["name"] == name)


def test_statistics_grow(daemon, client):
    before = stats_of(daemon, LU + "/stats", "lu")
    a = matrices.random(4, batch=3)
    for _ in range(5):
        client.outputs("lu", {"A": a})
    assert_error(client.infer("lu", {"A": a[:, :2]}), 400)
    after = stats_of(daemon, LU + "/stats", "lu")
    assert after["version"] == "1"
    # As Triton counts: the elements of a request's batch, not the request.
    assert after["inference_count"] - before["inference_count"] == 15
    assert 1 <= after["execution_count"] - before["execution_count"] <= 5
    assert after["last_inference"] >= before["last_inference"]
    assert after["last_inference"] > 1_600_000_000_000, "milliseconds since the epoch"
    assert set(after["inference_stats"]) == STAT_KEYS
    for key in STAT_KEYS:
        assert set(after["inference_stats"][key]) == {"count", "ns"}
    was, now = before["inference_stats"], after["inference_stats"]
    for key in ("success", "queue", "compute_infer"):
        assert now[key]["count"] - was[key]["count"] == 5, key
        assert now[key]["ns"] >= was[key]["ns"]
    assert now["success"]["ns"] > was["success"]["ns"]
    assert now["cache_hit"] == now["cache_miss"] == {"count": 0, "ns": 0}
    sizes = [entry["batch_size"] for entry in after["batch_stats"]]
    assert len(sizes) == len(set(sizes))
    for entry in after["batch_stats"]:
        for key in ("compute_input", "compute_infer", "compute_output"):
            assert set(entry[key]) == {"count", "ns"}


@pytest.mark.parametrize("path", ["/v2/models/stats", LU + "/versions/1/stats"])
def test_statistics_paths(daemon, path):
    assert stats_of(daemon, path, "lu")["version"] == "1"


# ---- Inference ----

FORMS = pytest.mark.parametrize("form", [v2_json, v2_binary], ids=["json", "binary"])
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])


@FORMS
@DTYPES
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_inverse_agrees_with_numpy(client, form, dtype, n):
    a = matrices.random(n, dtype, seed=1, batch=3)
    outputs = client.outputs("lu", {"A": a}, form=form)
    assert list(outputs) == ["INVERSE", "INFO", "RCOND"]
    matrices.check_answers(a, outputs)
    expected = np.linalg.inv(a.astype("f8"))
    size = np.abs(expected).max() * np.linalg.cond(a.astype("f8"), 1).max()
    assert np.abs(outputs["INVERSE"] - expected).max() <= n * size * matrices.EPS[a.dtype]


def test_json_answer_in_full(client):
    a = np.array([[[2.0, 0.0], [0.0, 4.0]]])
    answer = client.infer("lu", {"A": a}, form=v2_json, id='request 7 \u00e9"')
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/json"
    assert answer.header(J) is None
    assert answer.json() == {
        "model_name": "lu",
        "model_version": "1",
        "id": 'request 7 \u00e9"',
        "outputs": [
            {"name": "INVERSE", "shape": [1, 2, 2], "datatype": "FP64", "data": [0.5, 0, 0, 0.25]},
            {"name": "INFO", "shape": [1], "datatype": "INT32", "data": [0]},
            {"name": "RCOND", "shape": [1], "datatype": "FP64", "data": [0.5]},
        ],
    }


def test_no_id_when_none_was_sent(client):
    assert "id" not in client.infer("lu", {"A": np.eye(2)[None]}, form=v2_json).json()


def test_nested_data_and_missing_content_type(daemon):
    tensor = {"name": "A", "shape": [1, 2, 2], "datatype": "FP64", "data": [[[4, 7], [2, 6]]]}
    answer = daemon.post(LU + "/infer", json.dumps({"inputs": [tensor]}).encode())
    inverse = codec.v2_outputs(answer)["INVERSE"][0]
    assert np.allclose(inverse, [[0.6, -0.7], [-0.2, 0.4]], rtol=1e-14)


def test_binary_answer_in_full(client):
    answer = client.infer("lu", {"A": np.diag([2.0, 4.0])[None]}, id="b")
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/octet-stream"
    length = int(answer.header(J))
    head, raw = json.loads(answer.body[:length]), answer.body[length:]
    assert (head["model_name"], head["model_version"], head["id"]) == ("lu", "1", "b")
    assert [t["parameters"]["binary_data_size"] for t in head["outputs"]] == [32, 4, 8]
    assert all("data" not in t for t in head["outputs"])
    assert np.frombuffer(raw[:32]).tolist() == [0.5, 0, 0, 0.25]
    assert raw[32:] == bytes(4) + np.array([0.5]).tobytes()


def test_binary_only_for_the_outputs_that_ask(client):
    headers, body = v2_json({"A": np.eye(2)[None]})
    document = json.loads(body)
    document["outputs"] = [
        {"name": "RCOND"},
        {"name": "INVERSE", "parameters": {"binary_data": True}},
    ]
    answer = client.daemon.post(LU + "/infer", json.dumps(document).encode(), headers)
    length = int(answer.header(J))
    rcond, inverse = json.loads(answer.body[:length])["outputs"]
    assert rcond == {"name": "RCOND", "shape": [1], "datatype": "FP64", "data": [1]}
    assert inverse["parameters"] == {"binary_data_size": 32} and "data" not in inverse
    assert np.frombuffer(answer.body[length:]).tolist() == [1, 0, 0, 1]


def test_binary_data_false_wins_over_the_request(client):
    headers, body = v2_json({"A": np.eye(2)[None]}, parameters={"binary_data_output": True})
    document = json.loads(body)
    document["outputs"] = [{"name": "INFO", "parameters": {"binary_data": False}}]
    answer = client.daemon.post(LU + "/infer", json.dumps(document).encode(), headers)
    assert codec.v2_outputs(answer)["INFO"].tolist() == [0]
    assert b'"data":[0]' in answer.body.replace(b" ", b"")


@FORMS
def test_outputs_as_asked(client, form):
    a = matrices.random(3, batch=2)
    assert list(client.outputs("lu", {"A": a}, ["RCOND"], form=form)) == ["RCOND"]
    assert list(client.outputs("lu", {"A": a}, ["INFO", "INVERSE"], form=form)) == [
        "INFO",
        "INVERSE",
    ]
    assert list(client.outputs("lu", {"A": a}, [], form=form)) == ["INVERSE", "INFO", "RCOND"]


@FORMS
def test_default_outputs_of_each_method(client, form):
    a = matrices.random(3, batch=2)
    for method in dense_methods():
        assert list(client.outputs(method, {"A": a}, form=form)) == default_outputs(method), method


@FORMS
def test_method_output_is_bytes(client, form):
    n = 40
    a = np.stack(
        [
            np.diag(np.arange(1.0, n + 1)),
            np.triu(matrices.random(n)),
            np.tril(matrices.random(n)),
            matrices.spd(n),
            matrices.random(n),
            np.full((n, n), np.nan),
        ]
    )
    if form is v2_json:
        a = a[:5]
    outputs = client.outputs("auto", {"A": a}, form=form)
    matrices.check_answers(a, outputs)
    expected = ["diagonal", "triangular", "triangular", "cholesky", "lu", "none"]
    assert outputs["METHOD"].tolist() == expected[: len(a)]


@FORMS
@DTYPES
@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0, 0)])
@pytest.mark.parametrize("method", inverters())
def test_empty_shapes(client, method, shape, form, dtype):
    outputs = client.outputs(method, {"A": np.zeros(shape, dtype)}, form=form)
    assert outputs["INVERSE"].shape == shape and outputs["INVERSE"].dtype == dtype
    assert outputs["INFO"].tolist() == [0] * shape[0]
    assert outputs["RCOND"].tolist() == [1] * shape[0]


@FORMS
@DTYPES
def test_outputs_of_order_zero(client, form, dtype):
    x = np.zeros((2, 0, 3), dtype)
    outputs = client.outputs("ism", {"X": x, "Y": x}, ["R", "U", "DET_RATIO"], form=form)
    assert outputs["R"].tolist() == [np.eye(3).tolist()] * 2 and outputs["U"].shape == (2, 0, 3)
    assert outputs["DET_RATIO"].tolist() == [1, 1]
    names = ["ITERATIONS", "RESIDUAL", "RESIDUAL_HISTORY"]
    options = {"max_iterations": 4}
    a = np.zeros((2, 0, 0), dtype)
    outputs = client.outputs("iterative", {"A": a}, names, options, form=form)
    assert outputs["ITERATIONS"].tolist() == outputs["RESIDUAL"].tolist() == [0, 0]
    history = outputs["RESIDUAL_HISTORY"].astype(float)
    assert (history[:, 0] == 0).all() and np.isnan(history[:, 1:]).all()


def test_raw_request(daemon):
    a = matrices.random(5)
    answer = daemon.post(LU + "/infer", a.tobytes(), {J: "0"})
    outputs = codec.v2_outputs(answer)
    assert answer.header(J) is not None
    assert outputs["INVERSE"].shape == (1, 5, 5)
    matrices.check_answers(a[None], outputs)
    again = daemon.post(LU + "/versions/1/infer", a.tobytes(), {J: "0"})
    assert codec.v2_outputs(again)["INVERSE"].tobytes() == outputs["INVERSE"].tobytes()


def test_info_reports_singular_and_bad_matrices(client):
    a = matrices.random(3, batch=4)
    a[1] = [[1, 2, 3], [2, 4, 6], [1, 1, 1]]
    a[2, 0, 0] = np.inf
    outputs = client.outputs("lu", {"A": a})
    matrices.check_answers(a, outputs)
    assert outputs["INFO"][0] == outputs["INFO"][3] == 0
    assert outputs["INFO"][1] in (2, 3, 4) and outputs["INFO"][2] == -1


def test_nan_in_json_answers_is_null(client):
    answer = client.infer("lu", {"A": np.zeros((1, 2, 2))}, form=v2_json)
    inverse, info, rcond = answer.json()["outputs"]
    assert inverse["data"] == [None] * 4 and info["data"] == [1] and rcond["data"] == [0]


def test_protocol_parameters_are_ignored(client):
    parameters = {
        "sequence_id": 5,
        "sequence_start": True,
        "triton_enable_empty_final_response": False,
        "priority": 1,
        "timeout": 5_000_000,
    }
    assert client.outputs("lu", {"A": np.eye(2)[None]}, parameters=parameters)["INFO"] == [0]


def test_options_of_a_method(client):
    a = matrices.spd(6)[None]
    a[0, 0, 5] = np.nextafter(a[0, 0, 5], 9)
    outputs = client.outputs("auto", {"A": a}, parameters={"spd": True})
    assert outputs["METHOD"].tolist() == ["cholesky"]
    assert client.outputs("auto", {"A": a})["METHOD"].tolist() == ["lu"]


# ---- Refusals (the hostile table has the malformed bodies) ----

GOOD = v2_json({"A": np.eye(2)[None]})[1]


@pytest.mark.parametrize(
    "method, path, status, words",
    [
        ("POST", "/v2/models/none/infer", 404, "none|model"),
        ("POST", "/v2/models/lu/versions/2/infer", 404, "version"),
        ("GET", "/v2/models/lu/versions/2", 404, "version"),
        ("GET", "/v2/models/lu/versions/2/ready", 404, "version"),
        ("GET", "/v2/models/nothing", 404, ""),
        ("GET", "/v2/models/nothing/config", 404, ""),
        ("GET", "/v2/models/nothing/stats", 404, ""),
        ("GET", "/v2/nowhere", 404, ""),
        ("POST", "/v2/models/LU/infer", 404, ""),
    ],
)
def test_not_found(daemon, method, path, status, words):
    assert_error(
        daemon.talk(wire.request(method, path, GOOD if method == "POST" else None)), status, words
    )


@pytest.mark.parametrize(
    "method, path, allow",
    [
        ("GET", LU + "/infer", {"POST"}),
        ("PUT", LU + "/infer", {"POST"}),
        ("DELETE", LU, {"GET", "HEAD"}),
        ("POST", "/v2/health/live", {"GET", "HEAD"}),
        ("GET", "/v2/repository/index", {"POST"}),
    ],
)
def test_method_not_allowed(daemon, method, path, allow):
    body = b"" if method in ("POST", "PUT") else None
    answer = daemon.talk(wire.request(method, path, body))
    assert_error(answer, 405)
    offered = {word.strip() for word in answer.header("Allow").split(",")}
    assert offered - {"OPTIONS", "HEAD"} == allow - {"HEAD"}


def test_timeout_parameter_expires(daemon, client):
    """A millisecond is over long before a matrix of that order is inverted."""
    answer = client.infer("lu", {"A": matrices.random(1500)[None]}, parameters={"timeout": 1000})
    assert_error(answer, 504)


def test_timeout_counts_from_the_whole_body(daemon):
    """How long the body takes to arrive is the network's affair."""
    timeout_us = int(scaled_timeout(400_000))
    headers, body = v2_json({"A": np.eye(2)[None]}, parameters={"timeout": timeout_us})
    with daemon.connect() as connection:
        connection.send(wire.request("POST", LU + "/infer", body, headers)[:-10])
        time.sleep(scaled_timeout(0.5))
        connection.send(body[-10:])
        assert connection.read().status == 200


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_failures_are_logged_with_their_trace():
    parameters = {"timeout": 1000}
    headers, body = v2_binary({"A": matrices.random(1500)[None]}, None, parameters)
    with Daemon() as own:
        answer = own.post(LU + "/infer", body, {**headers, "traceparent": TRACE})
        assert_error(answer, 504)
        assert answer.header("traceparent") is None
        assert_error(own.post(LU + "/infer", b"{", {"traceparent": TRACE}), 400)
        own.post(LU + "/infer", body, {**headers, "traceparent": TRACE.upper()})
        wait_until(lambda: own.stderr().count("deadline-passed") == 2, 5, "two lines")
        lines = [line for line in own.stderr().splitlines() if "deadline-passed" in line]
        first, second = map(json.loads, lines)
        assert first["traceparent"] == TRACE and first["status"] == 504
        assert first["route"] == "/v2/models/{model}/infer"
        assert "traceparent" not in second and "malformed" not in own.stderr()


def test_answers_vary_by_accept_encoding(client):
    for form in (v2_json, v2_binary):
        answer = client.infer("lu", {"A": np.eye(2)[None]}, form=form)
        assert answer.header("Vary") == "Accept-Encoding"


def test_pipelined_requests_are_answered_in_order(daemon):
    requests = [
        wire.request("POST", LU + "/infer", v2_json({"A": np.eye(2)[None]}, id=str(i))[1])
        for i in range(6)
    ]
    requests.insert(3, wire.request("GET", "/v2/health/live"))
    with daemon.connect() as connection:
        connection.send(b"".join(requests))
        ids = [connection.read().json().get("id") for _ in requests]
    assert ids == ["0", "1", "2", None, "3", "4", "5"]


def test_head_has_no_body(daemon):
    with daemon.connect() as connection:
        connection.send(wire.request("HEAD", "/v2/health/live"))
        answer = connection.read(head_only=True)
        assert answer.status in (200, 405)
        connection.send(wire.request("GET", "/v2/health/live"))
        assert connection.read().json() == {"live": True}


def test_http_1_0_closes(daemon):
    request = wire.request("GET", "/v2/health/live", version="HTTP/1.0")
    with daemon.connect() as connection:
        assert connection.exchange(request).json() == {"live": True}
        assert connection.ended(5)


def test_byte_order_mark(daemon):
    text = b"\xef\xbb\xbf" + v2_json({"A": np.eye(2)[None]})[1]
    assert daemon.post(LU + "/infer", text).status == 200
    headers, body = v2_binary({"A": np.eye(2)[None]})
    length = str(int(headers[J]) + 3)
    assert daemon.post(LU + "/infer", b"\xef\xbb\xbf" + body, {**headers, J: length}).status == 200


def test_multipart_is_a_415(daemon):
    part = b'--b\r\nContent-Disposition: form-data; name="A"\r\n\r\n{}\r\n--b--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert_error(daemon.post(LU + "/infer", part, headers), 415, "send the JSON itself")


def test_gzip_without_its_header(daemon):
    body = gzip.compress(v2_json({"A": np.eye(2)[None]})[1])
    assert_error(daemon.post(LU + "/infer", body), 400, "Content-Encoding: gzip")


def test_more_leading_dimensions_than_one(daemon):
    answer = daemon.post(LU + "/infer", v2_json({"A": 2 * np.ones((2, 3, 1, 1))})[1]).json()
    shapes = {output["name"]: output["shape"] for output in answer["outputs"]}
    assert shapes == {"INVERSE": [2, 3, 1, 1], "INFO": [2, 3], "RCOND": [2, 3]}
