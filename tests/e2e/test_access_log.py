"""The access log, and X-Request-Id."""

import json
import os
import re
import signal
import struct
import time

import numpy as np
import pytest

from harness import matrices, wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once, wait_until

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
LIVE = wire.request("GET", "/livez")
FIELDS = ["time", "id", "client", "route", "status", "method", "n", "batch", "bytes_in",
          "bytes_out", "queue_us", "compute_us", "total_us"]


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def with_id(path, request_id):
    """The line of that request, once it is there."""
    def find():
        return [entry for entry in entries(path) if entry["id"] == request_id]

    found = wait_until(find, 10, f"a line of {request_id}")
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "access"
    with Daemon("--access-log", path, "--loops", "2", "--body-timeout", "1s") as daemon:
        yield daemon, path


# ---- Ids ----


@pytest.mark.parametrize("given", ["a", "x" * 128, '"quoted\\', "0af7651916cd43dd8448eb211c80319c"])
def test_an_id_is_echoed(logged, given):
    daemon, path = logged
    answer = daemon.talk(wire.request("GET", "/v2", headers={"X-Request-Id": given}))
    assert answer.header("X-Request-Id") == given
    assert with_id(path, given)["route"] == "/v2"


@pytest.mark.parametrize("given", [None, "", "x" * 129, "two words", "caf\xe9", "a\tb"])
def test_another_id_is_made(logged, given):
    daemon, path = logged
    headers = {} if given is None else {"X-Request-Id": given}
    answer = daemon.talk(wire.request("GET", "/v2", headers=headers))
    made = answer.header("X-Request-Id")
    assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{16}", made)
    assert with_id(path, made)["status"] == 200


def test_every_answer_has_one(logged):
    daemon, path = logged
    requests = [
        REQUEST,
        LIVE,
        wire.request("GET", "/nowhere"),
        wire.request("PUT", "/v2"),
        wire.request("OPTIONS", "/v2"),
        wire.request("POST", "/v1/invert", b"nonsense"),
        wire.request("POST", "/v1/invert", headers={"Content-Length": str(1 << 40)}),
        wire.request("GET", "/v2", headers={"Content-Length": "5", "Transfer-Encoding": "chunked"}),
    ]
    ids = set()
    for request in requests:
        answer = daemon.talk(request)
        ids.add(answer.header("X-Request-Id"))
        assert with_id(path, answer.header("X-Request-Id"))["status"] == answer.status
    assert len(ids) == len(requests) and None not in ids
    with daemon.connect() as connection:  # answered past the library
        connection.send(REQUEST[:-5])
        answer = connection.read()
        assert answer.status == 408
        assert with_id(path, answer.header("X-Request-Id"))["status"] == 408


# ---- Lines ----


def test_a_line_for_an_inversion(logged):
    daemon, path = logged
    a = matrices.random(40, batch=7)
    answer = daemon.talk(infer_bytes("lu", v2_binary, {"A": a}))
    assert answer.status == 200
    entry = with_id(path, answer.header("X-Request-Id"))
    assert list(entry) == FIELDS
    assert (entry["route"], entry["method"], entry["n"], entry["batch"]) == (
        "/v2/models/{model}/infer", "lu", 40, 7)
    assert entry["client"] == "127.0.0.1"
    assert entry["bytes_out"] == len(answer.body)
    assert entry["bytes_in"] > 40 * 40 * 7 * 8
    assert 0 < entry["compute_us"] <= entry["total_us"]
    assert entry["queue_us"] <= entry["total_us"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])


def test_a_line_for_another_page(logged):
    daemon, path = logged
    answer = daemon.talk(LIVE)
    entry = with_id(path, answer.header("X-Request-Id"))
    assert entry["method"] is None and entry["n"] is None and entry["compute_us"] == 0


def test_a_line_for_what_the_library_refuses(logged):
    daemon, path = logged
    before = len(entries(path))
    daemon.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n")
    wait_until(lambda: [e for e in entries(path)[before:] if e["status"] == 400], 10, "a line")


def test_a_line_for_who_leaves(tmp_path):
    path = tmp_path / "access"
    with Daemon("--access-log", path, "--batch-wait-us", "1000000") as daemon:
        with daemon.connect() as connection:
            connection.send(REQUEST.replace(b"\r\n", b"\r\nX-Request-Id: leaver\r\n", 1))
            time.sleep(0.2)
            connection.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))  # a reset: SO_LINGER
        assert with_id(path, "leaver")["status"] is None


def test_every_request_has_one_line(tmp_path):
    """Through a rotation, and to the last one before the end."""
    path, moved = tmp_path / "access", tmp_path / "access.1"
    with Daemon("--access-log", path, "--loops", "2") as daemon:
        ids = set()
        for i in range(300):
            if i == 100:
                wait_until(lambda: entries(path), 10, "the first lines")
                os.rename(path, moved)
            if i == 150:
                daemon.process.send_signal(signal.SIGHUP)
            with daemon.connect() as connection:
                for _ in range(3):
                    ids.add(connection.exchange(LIVE).header("X-Request-Id"))
        assert len(ids) == 900
        daemon.stop()
        lines = entries(path) + entries(moved)
        assert len([entry for entry in lines if entry["id"] in ids]) == 900
        assert entries(path) and entries(moved)


def test_stderr(tmp_path):
    with Daemon("--access-log", "-") as daemon:
        answer = daemon.talk(LIVE)
        wait_until(lambda: answer.header("X-Request-Id") in daemon.stderr(), 10, "a line on stderr")


def test_a_file_that_cannot_be_written():
    result = run_once("--listen", "127.0.0.1:0", "--access-log", "/nonexistent/log")
    assert result.returncode == 2
    assert '--access-log "/nonexistent/log" is not allowed' in result.stderr
