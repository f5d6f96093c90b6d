"""Every row of the hostile table, and garbage made at random: refused with words, no one harmed."""

import io
import random
import re

import numpy as np
import pytest

import hostile_table
from harness import codec, wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon
from harness.settings import fewer, scaled_timeout

GOOD = infer_bytes("lu", v2_binary, {"A": np.diag([2.0, 4.0])[None]})


def assert_serves(daemon):
    outputs = codec.v2_outputs(daemon.talk(GOOD))
    assert outputs["INVERSE"].ravel().tolist() == [0.5, 0, 0, 0.25]


def error_text(answer):
    """The words of an error, which has the form of its front door."""
    document = answer.json()
    if answer.header("Content-Type") == "application/problem+json":
        assert document["status"] == answer.status, document
        return document["title"] + ". " + document["detail"]
    assert set(document) == {"error"}, document
    return document["error"]


def read_or_closed(connection):
    """The answer; one of status 0 stands for a connection that is closed without any."""
    try:
        return connection.read()
    except wire.Gone as gone:
        assert not gone.partial
        return wire.Answer(0, [], b"")


def reveals_internals(text):
    return re.search(r"0x[0-9a-f]{6,}|/home/|/build|\.c:\d|assert|jansson|libmicro", text)


@pytest.mark.parametrize("row", hostile_table.ROWS, ids=lambda row: row.name)
def test_row(daemon, row):
    with daemon.connect(scaled_timeout(10)) as connection:
        try:
            connection.send(row.data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent: the answer is there to read
        answer = read_or_closed(connection)
        assert answer.status in row.statuses, answer
        if row.words is not None:
            text = error_text(answer)
            assert re.search(row.words, text, re.I), f"{text!r} does not help"
            assert not reveals_internals(text), text
        if row.closes:
            rest = connection.drain_to_end(scaled_timeout(8))
            assert rest is not None, "the connection stays open"
            assert b"HTTP/1." not in rest, f"something hidden was served: {rest[:200]!r}"
    assert_serves(daemon)


def test_table_is_large_enough():
    assert len(hostile_table.ROWS) >= 100


def test_nothing_is_left_of_refused_requests(daemon):
    daemon.wait_idle_arena(5)


def test_oversized_shapes_take_no_memory(daemon):
    before = daemon.resident_bytes()
    for row in hostile_table.ROWS:
        if "shape" in row.name or "GiB" in row.name or "overflow" in row.name:
            daemon.talk(row.data)
    assert daemon.resident_bytes() - before < 16 << 20


SEEDS = [
    GOOD,
    *(row.data for row in hostile_table.ROWS if row.name.startswith(("v2", "npy", "npz", "v1"))),
]


def mutate(data, generator):
    """A few random edits: bytes changed, cut, repeated, spliced from another request."""
    data = bytearray(data)
    for _ in range(generator.randint(1, 6)):
        at = generator.randrange(len(data) + 1)
        kind = generator.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = generator.randrange(256)
        elif kind == 1:
            del data[at : at + generator.randint(1, 40)]
        elif kind == 2:
            data[at:at] = bytes(generator.randrange(256) for _ in range(generator.randint(1, 8)))
        elif kind == 3:
            other = generator.choice(SEEDS)
            start = generator.randrange(len(other))
            data[at:at] = other[start : start + generator.randint(1, 200)]
        else:
            data[at:at] = generator.choice(
                [b"\r\n", b"\r\n\r\n", b"-1", b"1e999", b"[", b"}", b"\0"]
            )
    return bytes(data)


@pytest.mark.timeout(120)
def test_mutated_requests(daemon):
    """Garbage of every kind, half of it with the sending side closed: no death, no stall."""
    generator = random.Random(20)
    pid = daemon.process.pid
    for i in range(fewer(1500)):
        with daemon.connect(scaled_timeout(5)) as connection:
            request = mutate(generator.choice(SEEDS), generator)
            try:
                connection.send(request)
                if i % 2:
                    connection.socket.shutdown(1)
                    left = connection.drain_to_end(scaled_timeout(3)) is not None
                    assert left, f"not noticed that the client left: {request!r}"
            except (BrokenPipeError, ConnectionResetError):
                pass
        if i % 100 == 0:
            assert_serves(daemon)
    assert daemon.process.poll() is None and daemon.process.pid == pid
    assert_serves(daemon)
    assert daemon.metrics().total("invertd_engine_restarts_total") == 0


def test_refusal_before_the_body_with_expect(daemon):
    """With Expect: 100-continue the refusal comes before the body is sent."""
    for headers, status in [
        ({"Content-Length": 10**11}, 413),
        ({"Content-Length": 100, "Content-Encoding": "br"}, 415),
    ]:
        with daemon.connect() as connection:
            fields = {**headers, "Expect": "100-continue"}
            connection.send(wire.request("POST", "/v1/invert", None, fields))
            assert connection.read_interim() is None
            assert connection.read().status == status


def test_refused_body_is_discarded_so_that_the_answer_is_seen(daemon):
    """A client that sends all of a long body before it reads still gets the refusal."""
    body = bytes(8 << 20)
    with daemon.connect() as connection:
        connection.send(wire.request("POST", "/v2/models/nothing/infer", body))
        assert connection.read().status == 404
    assert_serves(daemon)


def test_request_max():
    with Daemon("--request-max", "64KiB") as daemon:
        fits = codec.npy(np.eye(80))
        assert daemon.post("/v1/invert", fits).status == 200
        answer = daemon.post("/v1/invert", codec.npy(np.eye(100)))
        assert answer.status == 413
        assert re.search("64|65536|request-max|limit", error_text(answer))
        # The limit holds for what a body inflates to, whichever way it is compressed.
        packed = io.BytesIO()
        np.savez_compressed(packed, a=np.zeros((100, 100)))
        answer = daemon.post("/v1/invert", packed.getvalue())
        assert answer.status == 413
        assert "limit of 65536" in error_text(answer)
        assert_serves(daemon)


@pytest.mark.parametrize(
    "method, inputs, outputs, parameters",
    [
        ("iterative", {"A": (65536, 0, 0)}, ["RESIDUAL_HISTORY"], {"max_iterations": 1000}),
        ("ism", {"X": (1, 0, 8000), "Y": (1, 0, 8000)}, ["R"], {}),
        ("ism", {"X": (65536, 8192, 0), "Y": (65536, 8192, 0)}, ["INFO"], {}),
        ("ism", {"X": (65536, 30, 0), "Y": (65536, 30, 0)}, ["INVERSE"], {}),
    ],
    ids=["a history a matrix", "m by m", "work for nothing", "an answer for nothing"],
)
def test_nothing_is_not_answered_with_much(client, method, inputs, outputs, parameters):
    empty = {name: np.zeros(shape) for name, shape in inputs.items()}
    answer = client.infer(method, empty, outputs, parameters)
    assert answer.status == 413 and "at most 65536" in error_text(answer), answer


def test_an_identity_for_nothing(client):
    outputs = client.outputs("ism", {"X": np.zeros((1, 300, 0)), "Y": np.zeros((1, 300, 0))})
    assert (outputs["INVERSE"][0] == np.eye(300)).all()
