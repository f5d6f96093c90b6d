"""The PROXY protocol, spoken by hand; door/test_proxies.py has a real HAProxy."""

import contextlib
import ipaddress
import json
import struct

import numpy as np
import pytest

from harness import wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once, wait_until

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
LIVE = wire.request("GET", "/livez")
LIMITS = ("--client-requests-max", "1", "--batch-wait-us", "1000000")  # one request a client


def header(client, command=0x21, extra=b""):
    """A header that names the client."""
    source = ipaddress.ip_address(client)
    family, target = (0x11, "127.0.0.1") if source.version == 4 else (0x21, "::1")
    rest = source.packed + ipaddress.ip_address(target).packed + struct.pack(">HH", 4660, 8000)
    rest += extra
    return (b"\r\n\r\n\0\r\nQUIT\n" + bytes([command, family]) + struct.pack(">H", len(rest))
            + rest)


def status(daemon, data):
    """The status of the first answer; 0 when the connection just ends."""
    with contextlib.suppress(wire.Gone, ConnectionError):
        return wire.talk(daemon.address, data).status
    return 0


@pytest.fixture(scope="module")
def proxied():
    with Daemon("--proxy-protocol", "127.0.0.1,10.0.0.0/8", "--header-timeout", "1s",
                "--listen", "127.0.0.2:0", ready=False) as daemon:
        wait_until(lambda: status(daemon, header("192.0.2.1") + wire.request("GET", "/readyz"))
                   == 200, 60, "ready")
        yield daemon


def test_a_header_and_a_request(proxied):
    for client in "192.0.2.1", "2001:db8::1":
        assert status(proxied, header(client) + REQUEST) == 200
        assert status(proxied, header(client, extra=b"\x03\0\x04abcd" * 100) + REQUEST) == 200
    assert status(proxied, header("192.0.2.1", command=0x20) + LIVE) == 200
    with wire.Connection(proxied.address) as connection:
        for byte in header("192.0.2.1"):
            connection.send(bytes([byte]))
        for _ in range(3):
            assert connection.exchange(REQUEST).status == 200


def test_without_a_header_it_is_closed(proxied):
    assert status(proxied, LIVE) == 0
    assert status(proxied, b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n" + LIVE) == 0
    assert status(proxied, header("192.0.2.1", command=0x22) + LIVE) == 0
    with wire.Connection(proxied.address) as connection:
        connection.send(header("192.0.2.1")[:20])
        assert connection.ended(5)  # the header's time is over
    assert status(proxied, header("192.0.2.1") + LIVE) == 200


def test_a_missing_header_is_logged_once_in_a_while():
    with Daemon("--proxy-protocol", "127.0.0.1", "--loops", "1", ready=False) as daemon:
        wait_until(lambda: status(daemon, header("192.0.2.1") + LIVE) == 200, 60, "an answer")
        wire.Connection(daemon.address).close()     # as proxies look whether a server is there
        for _ in range(3):
            assert status(daemon, LIVE) == 0
        [line] = [line for line in daemon.log_lines() if "PROXY header" in line.get("why", "")]
        assert line["level"] == "warning" and line["address"] == "127.0.0.1"


def test_from_others_it_is_refused():
    with Daemon("--proxy-protocol", "10.0.0.0/8", "--client-requests-max", "1") as daemon:
        for begin in header("192.0.2.1"), b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n":
            assert status(daemon, begin + LIVE) in (0, 400, 505)
            page = daemon.metrics()
            assert page.total("invertd_requests_total", route="/livez") == 0
        assert status(daemon, LIVE) == 200


def test_the_client_it_names_is_counted():
    """Each may have one request waiting, whatever the proxy's own address."""
    with Daemon("--proxy-protocol", "127.0.0.1", *LIMITS, ready=False) as daemon:
        wait_until(lambda: status(daemon, header("::1") + wire.request("GET", "/readyz")) == 200,
                   60, "ready")

        def statuses(*clients):
            held = [wire.Connection(daemon.address) for _ in clients]
            for connection, client in zip(held, clients):
                connection.send(header(client) + REQUEST)
            answers = sorted(connection.read().status for connection in held)
            for connection in held:
                connection.close()
            return answers

        assert statuses("192.0.2.1", "192.0.2.2", "192.0.2.3") == [200, 200, 200]
        assert statuses("192.0.2.1", "192.0.2.1", "192.0.2.2") == [200, 200, 429]
        assert statuses("192.0.2.1", "::ffff:192.0.2.1") == [200, 429]
        assert statuses("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1") == [200, 200, 429]


def test_the_client_it_names_is_logged(tmp_path):
    path = tmp_path / "access"
    with Daemon("--proxy-protocol", "127.0.0.1", "--access-log", path, ready=False) as daemon:
        for client in "192.0.2.1", "2001:db8::1":
            assert status(daemon, header(client) + LIVE) == 200
        assert status(daemon, header("192.0.2.9", command=0x20) + LIVE) == 200

        def clients():
            return [json.loads(line)["client"] for line in path.read_text().splitlines()]

        wait_until(lambda: len(clients()) == 3, 10, "three lines")
        assert sorted(clients()) == ["127.0.0.1", "192.0.2.1", "2001:db8::1"]


def test_an_address_that_is_none_is_named():
    result = run_once("--listen", "127.0.0.1:0", "--proxy-protocol", "127.0.0.1,10.0.0.0/33")
    assert result.returncode == 2
    assert '--proxy-protocol "10.0.0.0/33" is not allowed' in result.stderr
