"""/v1/status and /v1/events: the figures, who sees them, listeners that come, stay and leave."""

import json
import os
import signal
import socket
import time

import numpy as np
import pytest

from harness import codec, later, wire
from harness.daemon import Daemon, wait_until
from harness.settings import scaled_timeout
from harness.tokens import bearer, line, write


def status(daemon, history=0, headers=None):
    answer = daemon.get(f"/v1/status?history={history}", headers)
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/json"
    assert answer.header("Cache-Control") == "no-store"
    return answer.json()


class Listener:
    """Reads events from a socket of its own."""

    def __init__(self, daemon, version="1.1", receive_bytes=0, fields=""):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(scaled_timeout(10))
        self.socket.connect(daemon.address)
        self.socket.sendall(f"GET /v1/events HTTP/{version}\r\nHost: localhost\r\n"
                            f"{fields}\r\n".encode())
        self.heard = b""

    def hear(self, word, times=1):
        """Until the word came so often, or the end; what came so far."""
        while self.heard.count(word) < times:
            piece = self.socket.recv(65536)
            if not piece:
                break
            self.heard += piece
        return self.heard

    def events(self, count):
        """The documents of so many events."""
        body = self.hear(b"\ndata: ", count + 1).partition(b"\r\n\r\n")[2]
        lines = [text for text in body.split(b"\n") if text.startswith(b"data: ")]
        return [json.loads(text.removeprefix(b"data: ")) for text in lines[:count]]

    def close(self):
        self.socket.close()


def open_streams(daemon):
    return daemon.metrics().total("invertd_streams")


def test_the_figures(daemon):
    time.sleep(1.5)  # until the figures have what other tests did
    before = status(daemon)
    matrices = np.stack([np.eye(4) * 2.0, np.diag([1, 1, 1, 1e-5]), np.zeros((4, 4))])
    query = "method=lu&on_singular=nan&outputs=inverse,info,rcond,residual_left"
    answer = daemon.post(f"/v1/invert?{query}", codec.npy(matrices),
                         {"Content-Type": "application/x-npy", "Accept": "application/x-npz"})
    assert answer.status == 200, answer

    def counted():
        now = status(daemon, 300)
        good = ("accuracy", "info", "good", "total")
        return now if _at(now, good) != _at(before, good) else None

    after = wait_until(counted, 5, "the inversions in the figures")

    def more(*path):
        return _at(after, path) - _at(before, path)

    assert more("accuracy", "info", "good", "total") == 2
    assert more("accuracy", "info", "singular", "total") == 1
    decades = {row["from"]: number for number, row in enumerate(after["accuracy"]["rcond"])}
    assert more("accuracy", "rcond", decades[0.1], "total") == 1  # RCOND 1
    assert more("accuracy", "rcond", decades[1e-5], "total") == 1
    assert more("accuracy", "rcond", decades[0], "total") == 1  # singular: 0
    assert after["accuracy"]["scaled_residual"]["largest"] < 10
    assert after["rates"]["inversions"]["minute"] > 0 and after["rates"]["bytes_in"]["minute"] > 0
    assert 0 < after["latency"]["p50_s"] <= after["latency"]["p99_s"] < 60
    assert after["batches"]["sizes"] and after["ready"] and after["version"]
    host = {row["device"]: row for row in after["devices"]}["host"]
    assert host["up"] and host["model"] and 0 < host["busy"]["minute"] <= 1
    arena = after["arena"]
    assert arena["used"] + arena["free"] == arena["bytes"]
    assert after["jobs"]["kept"] is True
    history = after["history"]
    assert sum(history["inversions"]) > 0 and 0 < len(history["p99_s"]) <= 300
    assert "history" not in before


def test_jobs_by_status(tmp_path):
    """A stopped engine's job runs, and what it has left ends; without jobs all are 0."""
    with Daemon("--engine-heartbeat", "60s", "--batch-deadline", "60s") as daemon:
        good = later.accepted(daemon, b'{"matrix": [[4, 7], [2, 6]]}')["id"]
        bad = later.accepted(daemon, b'{"matrix": [[1, 1], [1, 1]]}')["id"]
        for job in (good, bad):
            later.ended(daemon, job)
        os.kill(daemon.own_engine(), signal.SIGSTOP)
        later.accepted(daemon, b'{"matrix": [[4, 7], [2, 6]]}')
        wanted = {"kept": True, "accepted": 0, "running": 1, "successful": 1, "failed": 1}
        wait_until(lambda: status(daemon)["jobs"] == wanted, 5, "the jobs to be counted")
        os.kill(daemon.own_engine(), signal.SIGCONT)
    with Daemon("--data-dir", "none") as daemon:
        assert status(daemon)["jobs"] == {"kept": False, "accepted": 0, "running": 0,
                                          "successful": 0, "failed": 0}


def _at(document, path):
    for name in path:
        document = document[name]
    return document


def test_events_each_second(daemon):
    listener = Listener(daemon, fields="Last-Event-ID: 7\r\n")
    start = time.monotonic()
    documents = listener.events(3)
    took = time.monotonic() - start
    assert 0.9 < took < scaled_timeout(5), took  # the first comes at once
    head = listener.heard.partition(b"\r\n\r\n")[0].lower()
    assert b"content-type: text/event-stream" in head and b"transfer-encoding: chunked" in head
    times = [document["time_ms"] for document in documents]
    assert times == sorted(times) and 900 < times[-1] - times[0] < scaled_timeout(5000), times
    assert documents[0].keys() == status(daemon).keys()
    listener.close()
    wait_until(lambda: open_streams(daemon) == 0, 5, "the listener to be noticed gone")


def test_http_1_0_and_head(daemon):
    listener = Listener(daemon, version="1.0")
    assert listener.events(1)[0]["version"]
    assert b"transfer-encoding" not in listener.heard.lower()
    listener.close()
    with daemon.connect() as connection:
        connection.send(wire.request("HEAD", "/v1/events"))
        assert connection.read(head_only=True).header("Content-Type") == "text/event-stream"


def test_no_more_than_streams_max(tmp_path):
    with Daemon("--streams-max", "2", "--loops", "1") as daemon:
        listeners = [Listener(daemon) for _ in range(2)]
        for listener in listeners:
            listener.events(1)
        refused = daemon.get("/v1/events")
        assert refused.status == 503 and int(refused.header("Retry-After")) >= 1
        assert "--streams-max" in refused.json()["detail"]
        listeners[0].close()
        wait_until(lambda: open_streams(daemon) == 1, 5, "one place to be free")
        again = Listener(daemon)
        assert again.events(1)
        for listener in (again, listeners[1]):
            listener.close()


def test_many_listeners_cost_little_and_drain_ends_them():
    with Daemon("--loops", "2") as daemon:
        listeners = [Listener(daemon) for _ in range(200)]
        for listener in listeners:
            assert listener.events(1)
        before = cpu_seconds(daemon)
        time.sleep(2)
        used = (cpu_seconds(daemon) - before) / 2
        assert used < scaled_timeout(0.3), f"{used} of a processor for 200 listeners"
        assert open_streams(daemon) == 200
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(4)
        for listener in listeners:  # each hears the end of its answer
            assert listener.hear(b"\r\n0\r\n\r\n").endswith(b"\r\n0\r\n\r\n")
            listener.close()


def cpu_seconds(daemon):
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_listener_that_stops_reading():
    """Others hear on, and drain does not wait for it."""
    with Daemon("--loops", "1") as daemon:
        deaf, other = Listener(daemon, receive_bytes=2048), Listener(daemon)
        wait_until(lambda: open_streams(daemon) == 2, 5, "both to listen")
        assert len(other.events(3)) == 3
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(5)
        deaf.close()
        other.close()


@pytest.mark.parametrize("path", ["/v1/status", "/v1/events"])
def test_the_role_it_takes(path, tmp_path):
    write(tmp_path / "tokens", line("a", "infer", "token-a") + line("b", "metrics", "token-b"))
    with Daemon("--token-file", tmp_path / "tokens") as daemon:
        assert daemon.get(path).status == 401
        assert daemon.get(path, bearer("wrong")).status == 401
        assert daemon.get(path, bearer("token-a")).status == 403
        with daemon.connect() as connection:
            connection.send(wire.request("HEAD", path, None, bearer("token-b")))
            assert connection.read(head_only=True).status == 200


def test_bad_history(daemon):
    for value in ("301", "x", "-1", ""):
        answer = daemon.get(f"/v1/status?history={value}")
        assert answer.status == 400 and "from 0 to 300" in answer.json()["detail"]
