"""Rows of the hostile table: bodies of /v1, as JSON, NPY and NPZ."""

import io
import json
import zipfile

import numpy as np

from harness import codec
from harness.codec import JSON, NPY, NPZ
from harness.wire import request
from hostile_row import INVERT, row

# ---- v1: JSON ----


def v1(name, document, statuses=400, words="", query=""):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return row(
        "v1: " + name,
        request("POST", INVERT + query, body, {"Content-Type": JSON}),
        statuses,
        words,
    )


V1_JSON = [
    v1("empty", b"", 400, "json|empty|body"),
    v1("nothing inside", {}, 400, "matrix|matrices|input"),
    v1("matrix a number", {"matrix": 5}, 400, "matrix|list|array|rows"),
    v1("matrix a row", {"matrix": [1, 2]}, 400, "matrix|square|row|dimension"),
    v1("ragged", {"matrix": [[1, 2], [3]]}, 400, "matrix.1. has 1 entry"),
    v1("two orders", {"matrices": [[[1]], [[1, 2], [3, 4]]]}, 400, "must have one shape"),
    v1(
        "two orders of vectors",
        {"method": "tridiagonal", "d": [[1, 2], [3]], "dl": [[1], []], "du": [[1], []]},
        400,
        "must have one shape",
    ),
    v1("ragged depth", {"matrix": [[1, 2], 3]}, 400, "row|nest|list|array|depth|same"),
    v1("not square", {"matrix": [[1, 2, 3], [4, 5, 6]]}, 400, "square|equal"),
    v1("words", {"matrix": [["1", "2"], ["3", "4"]]}, 400, "number"),
    v1("null", {"matrix": [[1, None], [3, 4]]}, 400, "null|number"),
    v1("overflow", b'{"matrix": [[1e999]]}', 400, "overflow|large|range|FP64"),
    v1("both", {"matrix": [[1]], "matrices": [[[1]]]}, 400, "matri|once|twice|both"),
    v1("unknown key", {"matrix": [[1]], "colour": 1}, 400, "colour|unknown|member|key"),
    v1("unknown method", {"matrix": [[1]], "method": "magic"}, 400, "method|lu"),
    v1("unknown precision", {"matrix": [[1]], "precision": "fp16"}, 400, "precision|fp32"),
    v1("options no object", {"matrix": [[1]], "options": 5}, 400, "options"),
    v1("unknown option", {"matrix": [[1]], "options": {"colour": 1}}, 400, "colour|option"),
    v1("unknown output", {"matrix": [[1]], "outputs": ["soup"]}, 400, "output|inverse"),
    v1("outputs no list", {"matrix": [[1]], "outputs": 5}, 400, "output"),
    v1(
        "matrices of two orders",
        {"matrices": [[[1]], [[1, 2], [3, 4]]]},
        400,
        "same|order|shape|row|length",
    ),
    v1("deep", b'{"matrix": ' + b"[" * 60_000, 400, "deep|nest|json|dimension"),
    v1(
        "deep and closed",
        b'{"matrix": ' + b"[" * 40 + b"1" + b"]" * 40 + b"}",
        400,
        "deep|nest|dimension|rank",
    ),
]

# ---- NPY ----


def npy_bytes(header, data=b"", version=(1, 0), length=None, magic=b"\x93NUMPY"):
    text = header.encode() if isinstance(header, str) else header
    size = (len(text) if length is None else length).to_bytes(2 if version[0] == 1 else 4, "little")
    return magic + bytes(version) + size + text + data


def npy_head(descr="'<f8'", order="False", dims="(1, 1)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, dims)


def npy(name, body, statuses=400, words="", type=NPY):
    return row(
        "npy: " + name, request("POST", INVERT, body, {"Content-Type": type}), statuses, words
    )


DATA = np.array([2.0]).tobytes()
NPY_ROWS = [
    npy("empty", b"", 400, "npy|empty|body|header"),
    npy("magic alone", b"\x93NUMPY", 400, "npy|header|end|cut|short"),
    npy(
        "wrong magic", npy_bytes(npy_head(), DATA, magic=b"\x93NUMPI"), 400, "npy|magic|first|numpy"
    ),
    npy("version 9", npy_bytes(npy_head(), DATA, (9, 0)), 400, "version"),
    npy(
        "header past the end",
        npy_bytes(npy_head(), DATA, length=60_000),
        400,
        "header|end|cut|short",
    ),
    npy(
        "header of 4 GiB",
        npy_bytes(npy_head(), DATA, (2, 0), 2**32 - 1),
        400,
        "header|end|cut|short|long",
    ),
    npy("empty header", npy_bytes("", DATA), 400, "header|dict|descr"),
    npy("header no dictionary", npy_bytes("[1, 2]\n", DATA), 400, "header|dict|descr"),
    npy("header cut", npy_bytes(npy_head()[:30], DATA), 400, "header|dict|descr|shape|order"),
    npy("no shape", npy_bytes("{'descr': '<f8', 'fortran_order': False, }\n", DATA), 400, "shape"),
    npy("no descr", npy_bytes("{'fortran_order': False, 'shape': (1, 1), }\n", DATA), 400, "descr"),
    npy("no order", npy_bytes("{'descr': '<f8', 'shape': (1, 1), }\n", DATA), 400, "fortran_order"),
    npy("order a number", npy_bytes(npy_head(order="7"), DATA), 400, "fortran_order|header"),
    npy(
        "code in the header",
        npy_bytes(npy_head(dims="__import__('os').getpid()"), DATA),
        400,
        "shape|header",
    ),
    npy("structured dtype", npy_bytes(npy_head("[('a', '<f8')]"), DATA), 400, "<f8"),
    npy("object dtype", npy_bytes(npy_head("'|O'"), DATA), 400, "<f8"),
    npy("long double", npy_bytes(npy_head("'<f16'"), DATA * 2), 400, "<f8"),
    npy("string dtype", npy_bytes(npy_head("'<U8'"), DATA * 4), 400, "<f8"),
    npy("negative shape", npy_bytes(npy_head(dims="(-1, -1)"), DATA), 400, "shape|header|negative"),
    npy("not square", npy_bytes(npy_head(dims="(1, 2)"), DATA * 2), 400, "square|equal"),
    npy("one dimension", npy_bytes(npy_head(dims="(1,)"), DATA), 400, "dimension|square|shape"),
    npy("no dimension", npy_bytes(npy_head(dims="()"), DATA), 400, "dimension|square|shape"),
    npy(
        "forty dimensions",
        npy_bytes(npy_head(dims="(" + "1," * 40 + ")"), DATA),
        400,
        "dimension|shape",
    ),
    npy("shape of words", npy_bytes(npy_head(dims="('1', '1')"), DATA), 400, "shape|header"),
    npy("shape of a fraction", npy_bytes(npy_head(dims="(1.0, 1.0)"), DATA), 400, "shape|header"),
    npy(
        "shape of 1e19",
        npy_bytes(npy_head(dims="(10000000000000000000, 1)"), DATA),
        400,
        "shape|header|large",
    ),
    npy(
        "32 GiB in 80 bytes",
        npy_bytes(npy_head(dims="(65536, 65536)")),
        (400, 413),
        "shape|bytes|large|limit|order|data",
    ),
    npy(
        "overflow",
        npy_bytes(npy_head(dims="(3037000500, 3037000500)")),
        (400, 413),
        "shape|bytes|large|limit|order|data",
    ),
    npy(
        "wraps to one",
        npy_bytes(npy_head(dims="(4294967296, 4294967296)"), DATA),
        (400, 413),
        "shape|bytes|large|limit|order|data",
    ),
    npy(
        "zero hides an overflow",
        npy_bytes(npy_head(dims="(0, 1099511627776, 1099511627776)")),
        (400, 413),
        "shape|bytes|large|limit|order|data",
    ),
    npy("data cut", npy_bytes(npy_head(), DATA[:7]), 400, "bytes|data|short|length|shape"),
    npy(
        "data too long",
        npy_bytes(npy_head(), DATA + b"x"),
        400,
        "bytes|data|long|length|shape|behind",
    ),
    npy("big-endian in words", npy_bytes(npy_head(descr="'>f8'")), 400, "'>f8'"),
    npy("JSON under its type", b'{"matrix": [[1]]}', 400, "npy|magic|first|numpy"),
    npy("NPY under JSON's type", codec.npy(np.eye(2)), 400, "json", JSON),
]

# ---- NPZ ----


def npz_row(name, body, statuses=400, words="", query=""):
    return row(
        "npz: " + name,
        request("POST", INVERT + query, body, {"Content-Type": NPZ}),
        statuses,
        words,
    )


def zipped(members, method=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


ARRAY = codec.npy(np.eye(2))
STORED = zipped([("a.npy", ARRAY)])
DEFLATED = zipped([("a.npy", ARRAY)], zipfile.ZIP_DEFLATED)


def patch(data, at, new):
    return data[:at] + new + data[at + len(new) :]


def central(data):
    """Where the central directory starts."""
    return data.rindex(b"PK\x01\x02")


def end_record(data):
    return data.rindex(b"PK\x05\x06")


HUGE = (2**32 - 2).to_bytes(4, "little")
NPZ_ROWS = [
    npz_row("empty", b"", 400, "zip|npz|empty|body"),
    npz_row("magic alone", b"PK\x03\x04", 400, "zip|npz|directory|end"),
    npz_row("no member", zipped([]), 400, "array|member|\\ba\\b|input|empty"),
    npz_row("unknown member", zipped([("b.npy", ARRAY)]), 400, "\\bb\\b|\\ba\\b|array|input"),
    npz_row("member no NPY", zipped([("a.npy", b"hello")]), 400, "npy|a\\b"),
    npz_row(
        "member without suffix", zipped([("readme.txt", b"hello")]), 400, "npy|array|input|\\ba\\b"
    ),
    npz_row(
        "the same input twice",
        zipped([("a.npy", ARRAY), ("A.npy", ARRAY)]),
        400,
        "twice|more than once|again|duplicate",
    ),
    npz_row("directory cut", STORED[: end_record(STORED)], 400, "zip|directory|end"),
    npz_row(
        "directory past the end",
        patch(STORED, end_record(STORED) + 16, HUGE),
        400,
        "zip|directory|end|offset",
    ),
    npz_row(
        "member past the end",
        patch(STORED, central(STORED) + 42, HUGE),
        400,
        "zip|member|end|offset|header|zip64",
    ),
    npz_row(
        "member size huge",
        patch(patch(STORED, central(STORED) + 20, HUGE), central(STORED) + 24, HUGE),
        (400, 413),
        "zip|size|end|large|limit|member",
    ),
    npz_row(
        "wrong checksum",
        patch(STORED, central(STORED) + 16, b"\1\2\3\4"),
        400,
        "checksum|crc|damaged|corrupt",
    ),
    npz_row(
        "broken deflate",
        patch(DEFLATED, 50, b"\xff" * 12),
        400,
        "deflate|zip|damaged|corrupt|inflat|checksum|member",
    ),
    npz_row(
        "deflated size lies",
        patch(DEFLATED, central(DEFLATED) + 24, (50).to_bytes(4, "little")),
        400,
        "size|zip|deflate|inflat|length|longer|damaged|member|cut short",
    ),
    npz_row(
        "bzip2", zipped([("a.npy", ARRAY)], zipfile.ZIP_BZIP2), 400, "compress|method|stored|deflat"
    ),
    npz_row("encrypted", patch(STORED, central(STORED) + 8, b"\1\0"), 400, "encrypt|password|zip"),
    npz_row(
        "entry count lies",
        patch(STORED, end_record(STORED) + 8, b"\xff\xff\xff\xff"),
        400,
        "zip|directory|end|entr|member",
    ),
    npz_row("member of integers", codec.npz(a=np.eye(2, dtype=int)), 400, "<f8"),
    npz_row("member not square", codec.npz(a=np.ones((2, 3))), 400, "square|equal"),
    npz_row(
        "bomb inside",
        zipped([("a.npy", codec.npy(np.eye(2)) + bytes(50_000_000))], zipfile.ZIP_DEFLATED),
        (400, 413),
        "bytes|large|limit|size|data|behind|shape|length",
    ),
    npz_row("unknown output", codec.npz(a=np.eye(2)), 400, "output|inverse", "?outputs=soup"),
]

ROWS = V1_JSON + NPY_ROWS + NPZ_ROWS
