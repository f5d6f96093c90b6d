"""Rows of the hostile table: inferences of the v2 protocol, JSON and binary."""

import json

from harness.codec import J, JSON
from harness.wire import request
from hostile_row import INFER, row

GOOD_BODY = json.dumps(
    {"inputs": [{"name": "A", "shape": [1, 1, 1], "datatype": "FP64", "data": [2]}]}
).encode()

# ---- v2 ----


def v2(name, document, statuses=400, words="", headers=None, path=INFER):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = {"Content-Type": JSON, **(headers or {})}
    return row("v2: " + name, request("POST", path, body, fields), statuses, words)


def tensor(**changes):
    whole = {"name": "A", "shape": [1, 1, 1], "datatype": "FP64", "data": [2], **changes}
    return {key: value for key, value in whole.items() if value is not None}


def a(**changes):
    return {"inputs": [tensor(**changes)]}


def shape(name, dims, statuses=400, words="shape|dimension|size|large|data|length|order|integer"):
    text = "[" + ",".join(str(d) for d in dims) + "]"
    body = json.dumps(a(shape="@")).replace('"@"', text).encode()
    return v2("shape " + name, body, statuses, words)


V2_JSON = [
    v2("empty body", b"", 400, "json|empty|body"),
    v2("not JSON", b"matrix", 400, "json"),
    v2("cut", GOOD_BODY[:-3], 400, "json|end|unexpected"),
    v2("garbage behind", GOOD_BODY + b"x", 400, "json|behind|after|end"),
    v2("a list", b"[]", 400, "object|json|inputs"),
    v2("a number", b"5", 400, "object|json|inputs"),
    v2("a bare word", b"nulll", 400, "json"),
    v2("no inputs", {}, 400, "inputs"),
    v2("inputs no list", {"inputs": {}}, 400, "inputs"),
    v2("empty inputs", {"inputs": []}, 400, "input|\\bA\\b"),
    v2("input no object", {"inputs": [5]}, 400, "input"),
    v2("unknown input", a(name="B"), 400, "\\bA\\b|B"),
    v2(
        "input twice", {"inputs": [tensor(), tensor()]}, 400, "twice|more than once|again|duplicate"
    ),
    v2("input without a name", a(name=None), 400, "name"),
    v2("input without a shape", a(shape=None), 400, "shape"),
    v2("input without a datatype", a(datatype=None), 400, "datatype"),
    v2("input without data", a(data=None), 400, "data"),
    v2("unknown datatype", a(datatype="FP16"), 400, "FP64"),
    v2("integer datatype", a(datatype="INT32"), 400, "FP64"),
    v2("datatype no string", a(datatype=64), 400, "datatype|FP64"),
    v2("data of words", a(data=["2"]), 400, "number|data|json"),
    v2("data of null", a(data=[None]), 400, "null|number"),
    v2("data of true", a(data=[True]), 400, "number|data|json|true"),
    v2("data an object", a(data={}), 400, "data|list|array"),
    v2("data a number", a(data=2), 400, "data|list|array"),
    v2(
        "NaN",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[NaN]}]}',
        400,
        "number|json|nan",
    ),
    v2(
        "Infinity",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[-Infinity]}]}',
        400,
        "number|json|infinity",
    ),
    v2(
        "overflow",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[1e400]}]}',
        400,
        "FP64|overflow|large|range",
    ),
    v2(
        "overflow of FP32",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP32","data":[1e39]}]}',
        400,
        "FP32|overflow|large|range",
    ),
    v2(
        "hexadecimal",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[0x2]}]}',
        400,
        "number|json|data",
    ),
    v2(
        "leading zero",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[02]}]}',
        400,
        "number|json|data",
    ),
    v2(
        "trailing comma",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[2,]}]}',
        400,
        "number|json|data|comma|element",
    ),
    v2(
        "number without end",
        b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[1e',
        400,
        "number|json|end|data",
    ),
    v2("too few numbers", a(shape=[1, 2, 2], data=[1, 2, 3]), 400, "4|shape"),
    v2("too many numbers", a(shape=[1, 2, 2], data=[1, 2, 3, 4, 5]), 400, "4|shape"),
    v2(
        "nested against the shape",
        a(shape=[1, 2, 2], data=[[[1, 2, 3], [4]]]),
        400,
        "data.0,1. has 1 entry, the rows before it have 3",
    ),
    v2("nested too deep", a(shape=[1, 2, 2], data=[[[[1, 2], [3, 4]]]]), 400, "nest|shape|deep"),
    v2("half nested", a(shape=[1, 2, 2], data=[[1, 2, 3, 4]]), 400, "nest|shape|ragged"),
    v2("deep brackets", b'{"inputs":' + b"[" * 100_000, 400, "deep|nest|json"),
    v2("deep objects", b'{"a":' * 50_000, 400, "deep|nest|json"),
    v2("invalid UTF-8", b'{"id":"\xff\xfe","inputs":[]}', 400, "utf|json|input"),
    v2("same key twice", b'{"inputs":[],"inputs":[]}', 400, "twice|duplicate|json|input|once"),
    v2("long id", {**a(), "id": "x" * 5000}, 400, "id"),
    v2("id no string", {**a(), "id": 5}, 400, "id"),
    v2("unknown output", {**a(), "outputs": [{"name": "B"}]}, 400, "output|INVERSE"),
    v2(
        "output in lower case",
        {**a(), "outputs": [{"name": "inverse"}]},
        400,
        "no output 'inverse'; it has INVERSE",
    ),
    v2(
        "output twice",
        {**a(), "outputs": [{"name": "INFO"}, {"name": "INFO"}]},
        400,
        "twice|more than once|again|duplicate",
    ),
    v2("outputs no list", {**a(), "outputs": "INVERSE"}, 400, "outputs"),
    v2("output without a name", {**a(), "outputs": [{}]}, 400, "name"),
    v2("unknown option", {**a(), "parameters": {"colour": "red"}}, 400, "colour|option|parameter"),
    v2(
        "bad option value",
        {**a(), "parameters": {"spd": "perhaps"}},
        400,
        "spd",
        path="/v2/models/auto/infer",
    ),
    v2("parameters no object", {**a(), "parameters": [1]}, 400, "parameters"),
    v2("timeout no number", {**a(), "parameters": {"timeout": "soon"}}, 400, "timeout"),
    v2("negative timeout", {**a(), "parameters": {"timeout": -1}}, 400, "timeout"),
    v2("priority out of range", {**a(), "parameters": {"priority": -3}}, 400, "priority"),
    v2(
        "skeleton over its limit",
        {**a(), "x": "y" * 2_000_000},
        (400, 413),
        "large|limit|json|long",
    ),
    shape("negative", [1, -1, -1]),
    shape("negative batch", [-1, 2, 2]),
    v2("not square", a(shape=[1, 1, 2], data=[1, 2]), 400, "square|equal"),
    shape("rank one", [4], words="shape|dimension|rank"),
    shape("empty", [], words="shape|dimension|rank"),
    shape("rank 40", [1] * 40, words="shape|dimension|rank"),
    shape("fraction", ["1.5", 1, 1]),
    shape("words", ['"1"', 1, 1]),
    shape("46341", [1, 46341, 46341], (400, 413)),
    shape("65536", [1, 65536, 65536], (400, 413)),
    shape("65536 cubed", [65536, 65536, 65536], (400, 413)),
    shape("2^32", [1, 2**32, 2**32], (400, 413)),
    shape("3037000500", [1, 3037000500, 3037000500], (400, 413)),
    shape("3037000500 matrices", [3037000500, 3037000500, 3037000500], (400, 413)),
    shape("1e19", [1, "1e19", "1e19"]),
    shape("10000000000000000000", [1, 10**19, 10**19]),
    shape("2^63 - 1", [2**63 - 1, 1, 1], (400, 413)),
    shape("wraps to one", [2**32, 2**16, 2**16], (400, 413)),
    shape("zero hides an overflow", [0, 2**40, 2**40], (400, 413)),
    shape("batch of empties", [2**62, 0, 0], (400, 413)),
]


def binary(name, document, raw, statuses=400, words="", length=None):
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = {J: str(len(text) if length is None else length)}
    return row("binary: " + name, request("POST", INFER, text + raw, fields), statuses, words)


def sized(size, **changes):
    return a(data=None, parameters={"binary_data_size": size}, **changes)


HEADER = "inference-header|length|header|json|body"
V2_BINARY = [
    binary("too few bytes", sized(8), bytes(7), 400, "bytes|size|body|length"),
    binary("too many bytes", sized(8), bytes(9), 400, "bytes|size|body|length|behind"),
    binary("size against the shape", sized(16), bytes(16), 400, "8|shape|binary_data_size"),
    binary("negative size", sized(-8), bytes(8), 400, "binary_data_size|size"),
    binary("size no number", sized("8"), bytes(8), 400, "binary_data_size|size"),
    binary("huge size", sized(2**62), bytes(8), 400, "binary_data_size|size|bytes|shape"),
    binary("size and data", a(parameters={"binary_data_size": 8}), bytes(8), 400, "data"),
    binary("header past the body", sized(8), bytes(8), 400, HEADER, 10**6),
    binary("header of 2^64", sized(8), bytes(8), 400, HEADER, 2**64),
    binary("negative header", sized(8), bytes(8), 400, HEADER, -1),
    binary("header no number", sized(8), bytes(8), 400, HEADER, "ten"),
    binary("header with a tail", sized(8), bytes(8), 400, HEADER, "10x"),
    binary("header cuts the JSON", sized(8), bytes(8), 400, HEADER + "|end", 5),
    binary("raw that is no square", b"", bytes(24), 400, "square|bytes|8", 0),
    binary("raw of odd bytes", b"", bytes(13), 400, "square|bytes|8", 0),
    binary("all zeros", bytes(64), bytes(8), 400, "json"),
]

ROWS = V2_JSON + V2_BINARY
