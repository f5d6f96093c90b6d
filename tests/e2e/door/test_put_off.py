"""Clients that are put off keep no newcomer out, and leave nothing behind, with TLS and without."""

import contextlib
import json
import os
import select
import shutil
import time

import pytest

from harness import pki, wire
from harness.codec import JSON
from harness.daemon import Daemon, wait_until
from harness.settings import fewer, scaled_timeout

POST = wire.request("POST", "/v1/invert", b'{"matrix": [[4, 7], [2, 6]]}', {"Content-Type": JSON})
METHODS = wire.request("GET", "/v1/methods")
STATUS = wire.request("GET", "/v1/status")
LIVE = wire.request("GET", "/livez")

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    ca = pki.authority(folder)
    return ca, pki.issue(folder, ca, "server")


class Busy:
    """A daemon whose one place is taken, and what connects to it."""

    def __init__(self, daemon, tls):
        self.daemon, self.tls = daemon, tls

    def connect(self, source=None):
        if self.tls is None:
            return self.daemon.connect(source=source)
        return pki.Connection(self.daemon.address, self.tls, source=source)

    def ask(self, data, source):
        with self.connect(source) as connection:
            return connection.exchange(data)

    def under_way(self):
        return json.loads(self.ask(STATUS, None).text)["queue"]["under_way"]


@contextlib.contextmanager
def busy(pair, secure, *more):
    tls = pki.context(pair[0]) if secure else None
    options = ["--tls-cert", pair[1][0], "--tls-key", pair[1][1]] if secure else []
    fault = f"slow:{int(scaled_timeout(20e6))}"
    with Daemon("--queue-max", "1", "--batch-deadline", "600s", "--drain-timeout", "1s", *options,
                *more, fault=fault, ready=False) as daemon:
        service = Busy(daemon, tls)
        wait_until(lambda: service.ask(LIVE, None).status == 200, 60, "it answers")
        with service.connect("127.3.3.3") as holder:
            holder.send(POST)
            wait_until(lambda: service.under_way() == 1, 10, "taken")
            yield service
        daemon.process.kill()  # a long request is under way: no clean end is looked for
        daemon.process.wait()


def put_off(service, count, source):
    """Connections whose refusals are put off."""
    connections = [service.connect(source) for _ in range(count)]
    for connection in connections:
        connection.send(POST)
    for connection in connections:
        assert connection.read().status == 503
        connection.send(POST)
    return connections


def readable(connections):
    return select.select([one.socket for one in connections], [], [], 0)[0]


@pytest.mark.timeout(90)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_newcomers_come_in(pair, secure):
    """They hold all connections there may be. Others come in all the same, and as many of those
    who are put off hear of it early."""
    with busy(pair, secure, "--connections-max", "16") as service:
        hasty = put_off(service, 15, "127.1.1.1")
        newcomers = [service.connect(f"127.2.0.{k + 1}") for k in range(3)]
        for newcomer in newcomers:
            assert newcomer.exchange(METHODS).status == 200
            refused = newcomer.exchange(POST)
            assert refused.status == 503 and "--connections-max" not in refused.text
        wait_until(lambda: readable(hasty), 0.6, "one hears early")
        assert len(readable(hasty)) < 12, "and not all"
        for connection in hasty:
            assert connection.read().status == 503
        for connection in hasty + newcomers:
            connection.close()
        wait_until(lambda: service.ask(METHODS, "127.1.1.1").status == 200, 3, "as before")


@pytest.mark.timeout(120)
def test_many_are_put_off_with_tls(pair):
    """The library holds them. Others are answered meanwhile; nothing is left."""
    count = fewer(300)
    with busy(pair, True) as service:
        folder = f"/proc/{service.daemon.process.pid}/fd"
        before, grown = len(os.listdir(folder)), []
        for _ in range(2):
            hasty = put_off(service, count, "127.1.1.1")
            start = time.monotonic()
            assert service.ask(METHODS, "127.2.0.1").status == 200
            assert service.ask(POST, "127.2.0.1").status == 503
            assert time.monotonic() - start < scaled_timeout(0.8)
            for connection in hasty[::2]:
                assert connection.read().status == 503
            for connection in hasty:  # every other one leaves while it is put off
                connection.close()
            wait_until(lambda: len(os.listdir(folder)) <= before, 5, "all are closed")
            grown.append(service.daemon.resident_bytes())
        assert grown[1] < grown[0] + (8 << 20), grown
