"""Requests whose end could be seen in two ways: refused on every route and verb, with one status
line, and nothing that they hide is served."""

import json
import socket
import time

import pytest

import framings
from harness import wire
from harness.daemon import Daemon
from harness.settings import scaled_timeout

ROUTES = framings.routes()


def everything(daemon, *pieces):
    """Sends each piece by itself, and gives all that comes back until the connection ends."""
    with socket.create_connection(daemon.address) as connection:
        connection.settimeout(scaled_timeout(20))
        heard = b""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i, piece in enumerate(pieces):
                time.sleep(0.002 if i else 0)  # so that the daemon reads what has come
                connection.sendall(piece)
            while piece := connection.recv(1 << 16):
                heard += piece
                if b"text/event-stream" in heard:
                    break  # a stream of events has no end
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent
        return heard


def ids(log):
    """The X-Request-Ids of an access log."""
    return [json.loads(line)["id"] for line in log.read_text().splitlines()]


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A daemon, and the file of its access log."""
    path = tmp_path_factory.mktemp("framing") / "access"
    with Daemon("--access-log", path) as daemon:
        yield daemon, path


def test_there_are_many():
    names = [framing.name for framing in framings.ALL]
    assert len(names) == len(set(names))
    assert sum(not framing.well_formed for framing in framings.ALL) >= 160


def check(framing, heard, *case):
    answers = framings.answers(heard) or [(0, {})]
    assert len(answers) == 1, (*case, heard)
    assert answers[0][0] in framing.statuses, (*case, heard)


ROWS = pytest.mark.parametrize("framing", framings.ALL, ids=lambda framing: framing.name)


@ROWS
def test_refused_everywhere(logged, framing):
    daemon, _ = logged
    for route in ROUTES:
        for verb in framings.VERBS:
            heard = everything(daemon, framings.fill(framing, verb, route, 1))
            check(framing, heard, verb, route)


@ROWS
def test_refused_in_pieces(logged, framing):
    """Whatever has arrived when the daemon looks at it: one answer."""
    daemon, _ = logged
    data = framings.fill(framing, "POST", "/v1/invert", 1)
    marks = [data.find(mark) for mark in (b"\r\n", b"Host", b"X-Request-Id", b"<hidden>")]
    for cut in sorted({*marks, *range(7, min(len(data), 240), 29)} - {-1}):
        check(framing, everything(daemon, data[:cut], data[cut:]), cut)


def test_the_log_has_nothing_hidden(logged):
    """It would: a request of the same form, sent as it should be, is there."""
    daemon, path = logged
    everything(daemon, framings.hidden(2).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert wire.talk(daemon.address, framings.hidden(3)).status == 200
    daemon.stop()
    hidden = [name for name in ids(path) if name is not None and name.startswith("hidden")]
    assert sorted(hidden) == ["hidden-000002", "hidden-000003"]
