"""Requests whose end could be seen in two ways: refused on every route and verb, with one status
line, and nothing behind them is served."""

import socket

import pytest

ROUTES = [
    "/", "/livez", "/readyz", "/metrics", "/openapi.yaml", "/nowhere", "/v1/methods", "/v1/invert",
    "/v2", "/v2/health/live", "/v2/models/lu", "/v2/models/lu/infer", "/v2/models/lu/config",
    "/v2/repository/index",
]
VERBS = ["GET", "HEAD", "POST", "OPTIONS", "DELETE"]
HIDDEN = b"GET /v2/models/lu/stats HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
# Fields, body, the status.
FRAMINGS = {
    "chunks": (CHUNKED, b"5\r\nhello\r\n0\r\n\r\n", 411),
    "no chunks": (CHUNKED, b"0\r\n\r\n", 411),
    "chunks ended by LF": (CHUNKED, b"5\nhello\n0\n\n", 411),
    "a chunk with an extension": (CHUNKED, b"5;" + b"a" * 2000 + b"\r\nhello\r\n0\r\n\r\n", 411),
    "a trailer that frames": (CHUNKED, b"0\r\nContent-Length: 9\r\n\r\n", 411),
    "a size that is none": (CHUNKED, b"zz\r\n", 411),
    "length and chunks": (b"Content-Length: 5\r\n" + CHUNKED, b"0\r\n\r\n", 400),
    "chunks and length": (CHUNKED + b"Content-Length: 5\r\n", b"0\r\n\r\n", 400),
    "an unknown coding": (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n", 400),
    "two codings": (b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n", 400),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello", 400),
    "the same length twice": (b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello", 400),
    "a list of lengths": (b"Content-Length: 5, 5\r\n", b"hello", 400),
    "a length with a sign": (b"Content-Length: +5\r\n", b"hello", 400),
    "a negative length": (b"Content-Length: -5\r\n", b"hello", 400),
    "a hexadecimal length": (b"Content-Length: 0x5\r\n", b"hello", 400),
    "a length of 19 digits": (b"Content-Length: 1000000000000000000\r\n", b"hello", 400),
    "no length": (b"Content-Length:\r\n", b"hello", 400),
    "a blank before the colon": (b"Content-Length : 5\r\n", b"hello", 400),
    "a folded length": (b"Content-Length:\r\n 5\r\n", b"hello", 400),
}


def everything(daemon, data):
    """Sends, and gives all that comes back until the connection ends."""
    with socket.create_connection(daemon.address) as connection:
        connection.settimeout(20)
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_refused_everywhere(daemon, framing):
    fields, body, status = FRAMINGS[framing]
    for route in ROUTES:
        for verb in VERBS:
            head = f"{verb} {route} HTTP/1.1\r\nHost: localhost\r\n".encode() + fields + b"\r\n"
            heard = everything(daemon, head + body + HIDDEN)
            assert heard.startswith(b"HTTP/1.1 %d " % status), (verb, route, heard)
            assert heard.count(b"HTTP/1.") == 1, (verb, route, heard)
            assert b"model_stats" not in heard, (verb, route, heard)
