"""Requests whose end could be seen in two ways: refused on every route and verb, with one status
line, and nothing that they hide is served."""

import json
import socket

import pytest

import framings
from harness import wire
from harness.daemon import Daemon
from harness.settings import scaled_timeout

ROUTES = framings.routes()


def everything(daemon, data):
    """Sends, and gives all that comes back until the connection ends."""
    with socket.create_connection(daemon.address) as connection:
        connection.settimeout(scaled_timeout(20))
        heard = b""
        try:
            connection.sendall(data)
            while piece := connection.recv(1 << 16):
                heard += piece
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


@pytest.mark.parametrize("framing", framings.ALL, ids=lambda framing: framing.name)
def test_refused_everywhere(logged, framing):
    daemon, _ = logged
    for route in ROUTES:
        for verb in framings.VERBS:
            heard = everything(daemon, framings.fill(framing, verb, route, 1))
            answers = framings.answers(heard) or [(0, {})]
            assert len(answers) == 1, (verb, route, heard)
            assert answers[0][0] in framing.statuses, (verb, route, heard)


def test_the_log_has_nothing_hidden(logged):
    """It would: a request of the same form, sent as it should be, is there."""
    daemon, path = logged
    everything(daemon, framings.hidden(2).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert wire.talk(daemon.address, framings.hidden(3)).status == 200
    daemon.stop()
    hidden = [name for name in ids(path) if name is not None and name.startswith("hidden")]
    assert sorted(hidden) == ["hidden-000002", "hidden-000003"]
