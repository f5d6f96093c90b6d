"""Mutated requests over real sockets: the daemon and its engine live, every answer is HTTP with a
status that the daemon knows, and good requests among them are answered right, bit for bit.

INVERTD_MUTATIONS says how many, INVERTD_MUTATIONS_SEED which ones; `make mutations` sends a
million. A failure names the bytes that were sent.
"""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import socket
import time

import pytest

import framings
import mutations
from harness import metrics, tokens, wire
from harness.daemon import Daemon, wait_until
from harness.methods import listed_methods
from harness.settings import fewer, scaled_timeout

COUNT = int(os.environ.get("INVERTD_MUTATIONS", fewer(20_000)))
SEED = os.environ.get("INVERTD_MUTATIONS_SEED", "1")
WORKERS = 2
PROBE_EVERY = 20
OPEN = 200
# 500 is for what kills engines, 501 never; 429 and 503 are for more than these few clients.
STATUSES = {200, 204, 400, 401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 421, 422, 431,
            504, 505}


@contextlib.contextmanager
def naming(data):
    """What fails in it says what had been sent."""
    try:
        yield
    except (AssertionError, ValueError, OSError, wire.Gone) as error:
        raise AssertionError(f"{error!r}; sent: {data!r}") from error


class Sender:
    """One client, with a connection that it keeps as long as the daemon does."""

    def __init__(self, address, made, probes, seed):
        self.address, self.probes = address, probes
        self.mutator = mutations.Mutator(made, seed)
        self.random = self.mutator.random
        self.connection = None
        self.open = []  # connections whose requests may be none, and what was sent there
        self.statuses = collections.Counter()

    def connect(self):
        if self.connection is None:
            self.connection = wire.Connection(self.address, scaled_timeout(20))
        return self.connection

    def read(self, verb):
        answer = self.connection.read(head_only=verb == "HEAD")
        if answer.header("Connection") == "close":
            assert self.connection.drain_to_end(scaled_timeout(10)) == b"", "bytes behind a close"
            self.connection.close()
            self.connection = None
        return answer

    def judge(self, status):
        self.statuses[status] += 1
        assert status in STATUSES, status

    def probe(self, behind=None):
        """A good request, alone or right behind another one that gets one answer."""
        data, verb, body = self.random.choice(self.probes)
        self.connect().send((behind[0] if behind else b"") + data)
        if behind:
            self.judge(self.read(behind[1]).status)
            if self.connection is None:
                return
        answer = self.read(verb)
        assert answer.status == 200 and answer.body == body, answer
        assert self.connection is None or self.connection.buffer == b""

    def send_kept(self, data, verb):
        if self.random.randrange(8) == 0:
            return self.probe((data, verb))
        self.connect().send(data)
        return self.judge(self.read(verb).status)

    def send_lost(self, data):
        """In one piece or a few, on a connection whose sending side is closed then."""
        connection = wire.Connection(self.address, scaled_timeout(20))
        self.open.append((connection, data))
        cuts = sorted(self.random.randrange(len(data) + 1)
                      for _ in range(self.random.choice((0, 0, 1, 2))))
        with contextlib.suppress(OSError):  # it may have been refused by now
            for start, end in zip([0, *cuts], [*cuts, len(data)]):
                connection.send(data[start:end])
            connection.socket.shutdown(socket.SHUT_WR)
        if len(self.open) == OPEN:
            self.hear_lost()

    def hear_lost(self):
        """The daemon ends each of those connections; it may take a tenth of a second for that."""
        for connection, data in self.open:
            with naming(data), connection:
                heard = connection.drain_to_end(scaled_timeout(10))
                assert heard is not None, "the end of the client was not noticed"
                for status, _ in framings.answers(heard):
                    self.judge(status)
        self.open = []

    def run(self, count):
        for i in range(count):
            if i % PROBE_EVERY == 0:
                self.probe()
            if self.random.randrange(10) < 7:
                data, verb = self.mutator.kept()
                with naming(data):
                    self.send_kept(data, verb)
            else:
                self.send_lost(self.mutator.lost())
        self.hear_lost()
        self.probe()
        return self.statuses


def work(address, made, probes, seed, count):
    return Sender(address, made, probes, seed).run(count)


def shows_time(request):
    return request.target == "/" or request.target.endswith(("/stats", "/metrics", "/v1/status"))


def good_ones(daemon, made):
    """(bytes, verb, body) of those that are answered 200, the same before and after the others."""
    with daemon.connect() as connection:

        def ask(request):
            connection.send(request.whole())
            return connection.read(head_only=request.verb == "HEAD")

        first = [ask(request) for request in made]
        second = [ask(request) for request in made]
    refused = [request for request, answer in zip(made, first)
               if request.body and answer.status != 200]
    assert len(refused) <= 3, refused  # types of arrays that need not be taken
    return [(request.whole(), request.verb, one.body)
            for request, one, other in zip(made, first, second)
            if one.status == 200 and one.body == other.body and not shows_time(request)]


def idle(page):
    """Whether nothing of a request is left in the arena; probes of the service have little."""
    return page.total("invertd_arena_bytes", state="used") <= 4096


@pytest.mark.timeout(60 + COUNT / 100)
@pytest.mark.parametrize("token", [None, "token-7"], ids=["open", "token"])
def test_mutated_requests(token, tmp_path):
    """Half of them to a daemon that asks for tokens, all with one that may be hit, too."""
    made = mutations.requests(listed_methods(), tokens.bearer(token).items())
    options = []
    if token is not None:
        tokens.write(tmp_path / "tokens", tokens.line("alice", "admin", token))
        options = ["--token-file", tmp_path / "tokens"]
    with Daemon(*options) as daemon:

        def page():
            return metrics.Page(daemon.get("/metrics", tokens.bearer(token)).text)

        probes = good_ones(daemon, made)
        assert len(probes) > 200
        pids = daemon.process.pid, daemon.engines()
        began = time.monotonic()
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
            each = -(-COUNT // 2 // WORKERS)
            running = [pool.submit(work, daemon.address, made, probes, f"{SEED}/{i}", each)
                       for i in range(WORKERS)]
            statuses = sum((one.result() for one in running), collections.Counter())
        print(f"{each * WORKERS} mutated requests in {time.monotonic() - began:.0f} s, seed {SEED}:"
              f" {dict(sorted(statuses.items()))}")
        assert daemon.process.poll() is None
        assert (daemon.process.pid, daemon.engines()) == pids
        assert page().total("invertd_engine_restarts_total") == 0
        wait_until(lambda: idle(page()), 10, "the arena given back")
    assert statuses[200] > COUNT / 200 and statuses[400] > COUNT / 20, statuses
    assert (statuses[401] > 0) == (token is not None), statuses
