"""Rows of the hostile table: framing, request smuggling, compression."""

import gzip
import json
import zlib

import numpy as np

from harness import codec
from harness.codec import JSON, NPY
from harness.wire import request
from hostile_row import INFER, INVERT, row


def head(*lines):
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


# ---- Framing and smuggling ----

HIDDEN = head("GET /v1/methods HTTP/1.1", "Host: a")
GOOD_BODY = json.dumps(
    {"inputs": [{"name": "A", "shape": [1, 1, 1], "datatype": "FP64", "data": [2]}]}
).encode()


def smuggle(name, *lines, body=HIDDEN, statuses=(400,)):
    return row("smuggling: " + name, head(*lines) + body, statuses, closes=True)


def post_line(path=INFER):
    return f"POST {path} HTTP/1.1"


CHUNKED_EMPTY = b"0\r\n\r\n" + HIDDEN

SMUGGLING = [
    smuggle(
        "lengths that differ",
        post_line(),
        "Host: a",
        "Content-Length: 0",
        f"Content-Length: {len(HIDDEN)}",
    ),
    smuggle(
        "lengths that differ, other order",
        post_line(),
        "Host: a",
        f"Content-Length: {len(HIDDEN)}",
        "Content-Length: 0",
    ),
    smuggle(
        "the same length twice", post_line(), "Host: a", "Content-Length: 0", "Content-Length: 0"
    ),
    smuggle(
        "length and chunked",
        post_line(),
        "Host: a",
        f"Content-Length: {len(CHUNKED_EMPTY)}",
        "Transfer-Encoding: chunked",
        body=CHUNKED_EMPTY,
    ),
    smuggle(
        "chunked and length",
        post_line(),
        "Host: a",
        "Transfer-Encoding: chunked",
        "Content-Length: 5",
        body=CHUNKED_EMPTY,
    ),
    smuggle("space before the colon", post_line(), "Host: a", "Content-Length : 0"),
    smuggle(
        "space before the colon of a coding",
        post_line(),
        "Host: a",
        "Transfer-Encoding : chunked",
        body=CHUNKED_EMPTY,
    ),
    smuggle("tab before the colon", post_line(), "Host: a", "Content-Length\t: 0"),
    smuggle("folded line", "GET /v2 HTTP/1.1", "Host: a", "X: a", " b: c"),
    smuggle("folded length", post_line(), "Host: a", "Content-Length:", f" {len(HIDDEN)}"),
    smuggle(
        "folded coding",
        post_line(),
        "Host: a",
        "Transfer-Encoding:",
        " chunked",
        body=CHUNKED_EMPTY,
    ),
    smuggle("unknown transfer coding", post_line(), "Host: a", "Transfer-Encoding: xchunked"),
    smuggle(
        "gzip, chunked",
        post_line(),
        "Host: a",
        "Transfer-Encoding: gzip, chunked",
        body=CHUNKED_EMPTY,
    ),
    smuggle(
        "chunked, identity",
        post_line(),
        "Host: a",
        "Transfer-Encoding: chunked, identity",
        body=CHUNKED_EMPTY,
    ),
    smuggle(
        "chunked twice",
        post_line(),
        "Host: a",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked",
        body=CHUNKED_EMPTY,
    ),
    smuggle("identity", post_line(), "Host: a", "Transfer-Encoding: identity"),
    smuggle("two hosts", "GET /v2 HTTP/1.1", "Host: a", "Host: b"),
    smuggle("the same host twice", "GET /v2 HTTP/1.1", "Host: a", "Host: a"),
    smuggle("no host", "GET /v2 HTTP/1.1", "X: a"),
    smuggle("length with a sign", post_line(), "Host: a", "Content-Length: +0"),
    smuggle("negative length", post_line(), "Host: a", "Content-Length: -1"),
    smuggle("hexadecimal length", post_line(), "Host: a", "Content-Length: 0x10"),
    smuggle("two lengths in one field", post_line(), "Host: a", "Content-Length: 0, 0"),
    smuggle("length with a space inside", post_line(), "Host: a", "Content-Length: 1 0"),
    smuggle("empty length", post_line(), "Host: a", "Content-Length:"),
    smuggle(
        "length past 64 bits",
        post_line(),
        "Host: a",
        "Content-Length: 18446744073709551616",
        statuses=(400, 413),
    ),
    smuggle("NUL in a value", "GET /v2 HTTP/1.1", "Host: a", "X: a\0b"),
    smuggle("NUL in a length", post_line(), "Host: a", "Content-Length: 0\x009"),
    smuggle("NUL in a name", "GET /v2 HTTP/1.1", "Host: a", "X\0Y: a"),
    smuggle("line without a colon", "GET /v2 HTTP/1.1", "Host: a", "nothing here"),
    smuggle("field without a name", "GET /v2 HTTP/1.1", "Host: a", ": value"),
    smuggle("space in a name", "GET /v2 HTTP/1.1", "Host: a", "Content Length: 5"),
]

FRAMING = [
    row("framing: no request line", b"hello\r\n\r\n", (0, 400), None, True),
    row("framing: unknown protocol", head("GET /v2 HTCPCP/1.0", "Host: a"), (400, 505), None, True),
    row("framing: HTTP/3.0", head("GET /v2 HTTP/3.0", "Host: a"), (400, 505), None, True),
    row(
        "framing: TLS hello",
        bytes.fromhex("16030100a5010000a10303") + bytes(32) + b"\r\n\r\n",
        (0, 400),
        None,
        True,
    ),
    row(
        "framing: header fields of 200 KiB",
        head("GET /v2 HTTP/1.1", "Host: a", *(f"X-{i}: {'a' * 1000}" for i in range(200))),
        (413, 431),
        None,
        True,
    ),
    row(
        "framing: one field of 200 KiB",
        head("GET /v2 HTTP/1.1", "Host: a", "X: " + "a" * 200_000),
        (413, 431),
        None,
        True,
    ),
    row(
        "framing: URI of 200 KiB",
        head("GET /" + "a" * 200_000 + " HTTP/1.1", "Host: a"),
        (414, 431),
        None,
        True,
    ),
    row("framing: path escapes upwards", request("GET", "/../../etc/passwd"), (400, 404), ""),
    row("framing: path with a NUL", request("GET", "/v2/models/lu%00x"), (400, 404), ""),
    row("framing: path of broken escapes", request("GET", "/v2/models/%zz%4"), (400, 404), ""),
    row("framing: path of raw bytes", b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", (400, 404), ""),
    row("framing: verb unknown", request("BREW", INFER, b""), (400, 405, 501), ""),
    row("framing: POST without a length", head(post_line(), "Host: a"), 411, "length", False),
    row("framing: v1 POST without a length", head(post_line(INVERT), "Host: a"), 411, "length"),
    row(
        "framing: length over the limit",
        head(post_line(), "Host: a", "Content-Length: 99999999999"),
        413,
        "limit|large|most|max",
        True,
    ),
    row(
        "framing: v1 length over the limit",
        head(post_line(INVERT), "Host: a", "Content-Length: 99999999999"),
        413,
        "limit|large|most|max",
        True,
    ),
    row(
        "framing: GET with a body of a terabyte",
        head("GET /v2/health/live HTTP/1.1", "Host: a", f"Content-Length: {10**12}"),
        413,
        "body|most",
        True,
    ),
    row(
        "framing: GET with a body of 18 digits",
        head("GET /livez HTTP/1.1", "Host: a", f"Content-Length: {10**18 - 1}"),
        413,
        "body|most",
        True,
    ),
    row(
        "framing: length of 19 digits",
        head(post_line(), "Host: a", f"Content-Length: {10**18}"),
        400,
        "decimal number.*digits",
        True,
    ),
    row(
        "framing: transfer coding unknown",
        head(post_line(), "Host: a", "Transfer-Encoding: xchunked"),
        400,
        "with a content-length",
        True,
    ),
    row(
        "framing: expectation unknown",
        head(post_line(), "Host: a", "Content-Length: 5", "Expect: a-cake"),
        417,
        "100-continue",
        True,
    ),
    row(
        "framing: broken chunk size",
        head(post_line(), "Host: a", "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
        (400, 411),
        None,
        True,
    ),
    row(
        "framing: endless chunk size",
        head(post_line(), "Host: a", "Transfer-Encoding: chunked") + b"f" * 400 + b"\r\n",
        (400, 411, 413),
        None,
        True,
    ),
]

# ---- Compression ----


def coded(name, coding, body, statuses, words, path=INFER, headers=None):
    fields = {"Content-Encoding": coding, **(headers or {})}
    return row("coding: " + name, request("POST", path, body, fields), statuses, words)


ZIPPED = gzip.compress(GOOD_BODY)
CODING = [
    coded("brotli", "br", b"abc", 415, "gzip|deflate"),
    coded("gzip twice", "gzip, gzip", gzip.compress(ZIPPED), 415, "gzip|once|deflate"),
    coded("not gzip at all", "gzip", GOOD_BODY, 400, "gzip|compress|inflat|content-encoding"),
    coded("cut short", "gzip", ZIPPED[:-12], 400, "gzip|cut|end|truncat|incomplete"),
    coded(
        "wrong checksum",
        "gzip",
        ZIPPED[:-8] + bytes(4) + ZIPPED[-4:],
        400,
        "gzip|checksum|corrupt|damaged",
    ),
    coded(
        "wrong length",
        "gzip",
        ZIPPED[:-4] + b"\1\2\3\4",
        400,
        "gzip|length|checksum|corrupt|damaged",
    ),
    coded("garbage behind", "gzip", ZIPPED + b"garbage", 400, "behind|after|followed"),
    coded("second member cut", "gzip", ZIPPED + ZIPPED[:-5], 400, "cut"),
    coded("second member too long", "gzip", ZIPPED + ZIPPED, 400, "json"),
    coded("empty", "gzip", b"", 400, "gzip|empty|end|cut"),
    coded(
        "deflate without zlib's frame",
        "deflate",
        zlib.compress(GOOD_BODY)[2:-4],
        400,
        "deflate|zlib|coding",
    ),
    coded("unknown to v1", "zstd", b"abc", 415, "gzip|deflate", INVERT, {"Content-Type": JSON}),
    coded(
        "broken in v1",
        "gzip",
        ZIPPED[:20],
        400,
        "gzip|cut|end|truncat|incomplete",
        INVERT,
        {"Content-Type": JSON},
    ),
    coded(
        "surplus behind an NPY",
        "gzip",
        gzip.compress(codec.npy(np.eye(2)) + bytes(100_000)),
        400,
        "bytes|more|length|shape|surplus|behind|after",
        INVERT,
        {"Content-Type": NPY},
    ),
    coded(
        "text that is not JSON",
        "gzip",
        gzip.compress(b"\0" * 100_000),
        400,
        "json|\\{|first",
        INVERT,
        {"Content-Type": JSON},
    ),
]

ROWS = SMUGGLING + FRAMING + CODING
