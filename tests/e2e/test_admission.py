"""Memory is admitted by what has arrived: a declaration takes nothing, a crawl does not last."""

import select
import threading
import time

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.codec import JSON, NPY, infer_bytes, v2_binary
from harness.daemon import Daemon, wait_until
from harness.settings import scaled_timeout

MIB = 1 << 20
INVERT = "/v1/invert"
GOOD = infer_bytes("lu", v2_binary, {"A": matrices.random(8, seed=1)[None]})


def head(length, **fields):
    return wire.request("POST", INVERT, None, {"Content-Length": length, **fields})


def npy(n, batch, seed=1):
    return codec.npy(matrices.random(n, seed=seed, batch=batch))


def latencies(daemon, count):
    """Seconds of that many small requests, one after the other on one connection."""
    seconds = []
    with daemon.connect() as connection:
        for _ in range(count):
            start = time.monotonic()
            connection.send(GOOD)
            answer = connection.read()
            assert answer.status == 200, answer
            seconds.append(time.monotonic() - start)
    return sorted(seconds)


def p99(seconds):
    return seconds[len(seconds) * 99 // 100]


DECLARED = {
    "json": (215 * MIB, {"Content-Type": JSON}),
    "gzip": (64 * MIB, {"Content-Type": JSON, "Content-Encoding": "gzip"}),
    "npy": (256 * MIB, {"Content-Type": NPY}),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("count, sent", [(1, 0), (1, 1), (1000, 0), (1000, 1)])
def test_a_declaration_reserves_nothing(kind, count, sent):
    """Heads that announce much, sent and held: others are all served, and hardly later."""
    length, fields = DECLARED[kind]
    with Daemon() as daemon:
        before = p99(latencies(daemon, 500))
        liars = [daemon.connect() for _ in range(count)]
        for liar in liars:
            liar.send(head(length, **fields) + b"{" * sent)
        wait_until(lambda: daemon.metrics().total("invertd_connections") >= count, 10, "them all")
        most = max(2 * before, scaled_timeout(0.005))
        after = []  # other work on the machine can only make it longer
        while len(after) < 5 and (not after or min(after) > most):
            after.append(p99(latencies(daemon, 500)))
        large = daemon.post(INVERT, npy(1024, 8), {"Content-Type": NPY})  # 64 MiB, as much out
        assert large.status == 200, large
        used = daemon.metrics().total("invertd_arena_bytes", state="used")
        assert used <= 4096 + count * sent * 70000, used
        for liar in liars:
            liar.close()
        assert min(after) <= most, (before, after)
        daemon.wait_idle_arena(5)


def test_a_crawling_body_is_ended_by_the_least_rate():
    """A byte a second is ended after ten seconds; a steady body above the rate is not."""
    with Daemon("--body-rate-min", "1000") as daemon:
        body = npy(60, 1)
        with daemon.connect() as slow, daemon.connect() as steady:
            start = time.monotonic()
            slow.send(head(100000, **{"Content-Type": JSON}))
            steady.send(head(len(body), **{"Content-Type": NPY}))
            sent = 0
            while not select.select([slow.socket], [], [], 0)[0] and sent < 20 * 1200:
                steady.send(body[sent : sent + 1200])
                slow.send(b" ")
                sent += 1200
                time.sleep(1)
            took = time.monotonic() - start
            assert 9 <= took <= 11 + scaled_timeout(1), took
            assert slow.read().status == 408
            steady.send(body[sent:])
            assert steady.read().status == 200


@pytest.mark.timeout(120)
def test_bodies_that_do_not_fit_together_wait_for_each_other():
    """Twenty bodies of which three fit: all are answered, none is refused."""
    with Daemon("--arena-size", "64MiB") as daemon:
        body = npy(512, 4)  # 8 MiB, as much out
        connections = [daemon.connect() for _ in range(20)]
        for connection in connections:
            connection.send(head(len(body), **{"Content-Type": NPY}))
        step = 256 << 10
        for at in range(0, len(body), step):  # all arrive together, a step each in turn
            for connection in connections:
                connection.socket.settimeout(scaled_timeout(30))
                send_what_goes(connection, body, at, step)
        answers = [None] * len(connections)
        threads = [
            threading.Thread(target=finish, args=(connection, body, answers, i))
            for i, connection in enumerate(connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [getattr(answer, "status", answer) for answer in answers] == [200] * len(answers)
        page = daemon.metrics()
        assert page.total("invertd_rejected_total") == 0
        daemon.wait_idle_arena(5)


def send_what_goes(connection, body, at, step):
    """Sends up to where the body should be by now, as far as the socket takes it."""
    sent = getattr(connection, "sent", 0)
    connection.socket.setblocking(False)
    try:
        while sent < at + step and sent < len(body):
            sent += connection.socket.send(body[sent : at + step])
    except BlockingIOError:
        pass
    connection.socket.setblocking(True)
    connection.sent = sent


def finish(connection, body, answers, index):
    """Sends the rest, and reads the answer as it comes: who does not read holds memory."""
    try:
        connection.socket.settimeout(60)
        connection.socket.sendall(body[connection.sent :])
        answers[index] = connection.read()
        connection.close()
    except Exception as error:  # a result like any other: judged by the caller
        answers[index] = error
