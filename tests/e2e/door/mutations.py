"""Valid requests of every route, method and format, and what becomes of them by small edits.

A seeded generator makes the edits. In most of them the framing stays whole: the body changes, or a
number in it, before it is compressed or after. Such a request gets one answer, and its connection
is used again. In the others the head changes, a length, or anything; then the request may be none,
or several, and the connection ends with it.
"""

import dataclasses
import gzip
import json
import random
import re
import zlib

import numpy as np

import framings
from harness import codec

INFER = "/v2/models/{}/infer"
NUMBERS = [b"0", b"-1", b"1", b"3", b"255", b"46341", b"65536", b"2147483648", b"4294967296",
           b"3037000500", b"9223372036854775807", b"18446744073709551615", b"1e19", b"1e308",
           b"1e309", b"5e-324", b"-0", b"0.5", b"null", b"true", b'"7"', b"[]", b"{}", b"NaN"]
TOKENS = [b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"-1", b"1e999",
          b"[", b"]", b"{", b"}", b'"', b"\\", b"\\u0000", b"%00", b"%2f", b"..", b"\xff\xfe",
          b"\xc3\x28", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"chunked",
          b"Host: a\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.0", b"HTTP/1.1", b"\x93NUMPY",
          b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x1f\x8b\x08"]


@dataclasses.dataclass(frozen=True)
class Request:
    verb: str
    target: str
    fields: tuple = ()  # (name, value)
    body: bytes = b""
    coding: str = ""

    def parts(self, body=None, coded=None):
        """Head and body in bytes. body: another one, not compressed; coded: it is compressed."""
        if coded is None:
            body = self.body if body is None else body
            coded = {"gzip": gzip.compress, "deflate": zlib.compress}.get(self.coding, bytes)(body)
        lines = [f"{self.verb} {self.target} HTTP/1.1", "Host: localhost",
                 *(f"{name}: {value}" for name, value in self.fields)]
        if self.coding:
            lines.append(f"Content-Encoding: {self.coding}")
        if self.verb == "POST":
            lines.append(f"Content-Length: {len(coded)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n", coded

    def whole(self):
        return b"".join(self.parts())


# ---- Valid requests ----


def arrays(method, dtype, generator, names=None):
    """Inputs that a method inverts: those it needs, or these."""
    if names is None:
        names = {tensor["name"] for tensor in method["inputs"] if not tensor["optional"]}
        names = names or {"X", "Y"}
    sizes = {"batch": 2, "n": 4, "n-1": 3, "m": 2, "k": 2}
    made = {}
    for tensor in method["inputs"]:
        name = tensor["name"]
        if name not in names or name in made:
            continue
        shape = [sizes.get(size, size) for size in tensor["shape"]]
        a = generator.uniform(-1, 1, shape)
        if len(shape) == 3 and shape[1] == shape[2]:
            a += 4 * np.eye(4)
        elif name == "D":
            a += 4
        made[name] = a.astype(dtype)
    return made


def option_sets(method):
    """None, and a value for each option."""
    yield {}
    for option in method.get("options", []):
        if option["kind"] == "choice":
            yield {option["name"]: option["choices"][-1]}
        elif option["kind"] == "range":
            yield {option["name"]: "1:3"}
        elif option["kind"] == "bool":
            yield {option["name"]: True}
        elif option["kind"] == "integer":
            yield {option["name"]: 2}
        else:
            yield {option["name"]: 0.25}


def of_v2(method, generator):
    """In JSON, in binary tensors, compressed or not; all outputs, or the default ones."""
    every = [tensor["name"] for tensor in method["outputs"]]
    target = INFER.format(method["name"])
    for dtype in "<f8", "<f4":
        inputs = arrays(method, dtype, generator)
        for form in codec.v2_json, codec.v2_binary:
            for options in option_sets(method):
                fields, body = form(inputs, every if options else None, options, "7")
                yield Request("POST", target, tuple(fields.items()), body)
            for coding in "gzip", "deflate":
                yield Request("POST", target, (*fields.items(), ("Accept-Encoding", coding)), body,
                              coding)


def of_v1(method, generator):
    """In JSON and in an .npz, with what both can say in the query or the body."""
    name = method["name"]
    outputs = ",".join(tensor["name"].lower() for tensor in method["outputs"])
    inputs = arrays(method, "<f8", generator)
    lower = {key.lower(): value for key, value in inputs.items()}
    for options in option_sets(method):
        text = json.dumps({key: value.tolist() for key, value in lower.items()} |
                          {"method": name, "options": options}).encode()
        yield Request("POST", "/v1/invert", (("Content-Type", codec.JSON),), text)
        query = "&".join([f"method={name}", f"outputs={outputs}", "on_singular=nan",
                          *(f"{key}={str(value).lower()}" for key, value in options.items())])
        for compressed in False, True:
            yield Request("POST", f"/v1/invert?{query}", (("Content-Type", codec.NPZ),),
                          codec.npz(compressed, **lower))


def of_one_array(generator):
    """.npy files of several types and orders, raw tensors, JSON of one matrix."""
    a = generator.uniform(-1, 1, (3, 4, 4)) + 4 * np.eye(4)
    npy = (("Content-Type", codec.NPY),)
    for array in (a, a[0], a.astype("<f4"), np.asfortranarray(a), a.astype(">f8"),
                  np.round(a).astype("<i4"), np.zeros((0, 4, 4)), a.astype("<c16")):
        yield Request("POST", "/v1/invert", npy, codec.npy(array))
    for coding in "gzip", "deflate":
        yield Request("POST", "/v1/invert?method=lu", npy, codec.npy(a), coding)
        yield Request("POST", INFER.format("lu"), ((codec.J, "0"),), a[0].tobytes(), coding)
    yield Request("POST", "/v1/invert", (), codec.npy(a))
    yield Request("POST", "/v1/invert", (("Accept", codec.NPZ), ("X-Request-Id", "mutation")),
                  codec.npy(a))
    raw = (("Content-Type", "application/octet-stream"), (codec.J, "0"))
    yield Request("POST", INFER.format("lu"), raw, a[0].tobytes())
    for text in ({"matrix": [[4, 7], [2, 6]]}, {"matrices": [[[2]], [[4]]], "precision": "fp32"}):
        yield Request("POST", "/v1/invert", (("Content-Type", codec.JSON),),
                      json.dumps(text).encode())


def of_routes():
    """A request for each route and verb."""
    origin = (("Origin", "http://localhost"), ("Sec-Fetch-Site", "same-origin"))
    for path in framings.routes():
        if path != "/v1/events":  # whose answer has no end, or that of the connection
            yield Request("GET", path, (("Accept-Encoding", "gzip;q=0.5, deflate, *;q=0"),))
            yield Request("HEAD", path)
        yield Request("OPTIONS", path, (*origin, ("Access-Control-Request-Method", "POST")))
    yield Request("POST", "/v2/repository/index", (), b'{"ready":true}')
    yield Request("POST", "/v2/repository/index")


def requests(methods, fields=()):
    """All of them. methods: as `GET /v1/methods` lists them. fields: that each has, too."""
    generator = np.random.default_rng(1)
    made = [*of_one_array(generator), *of_routes()]
    for method in methods.values():
        made += [*of_v2(method, generator), *of_v1(method, generator)]
    return [dataclasses.replace(one, fields=(*one.fields, *fields)) for one in made]


# ---- Edits ----


class Mutator:
    def __init__(self, requests, seed):
        self.requests = requests
        self.with_body = [request for request in requests if request.body]
        self.random = random.Random(seed)

    def edit(self, data):
        """A few edits of bytes: changed, flipped, cut, repeated, moved, or from another request."""
        data = bytearray(data)
        draw = self.random
        for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
            at, kind = draw.randrange(len(data) + 1), draw.randrange(8)
            if kind == 0 and at < len(data):
                data[at] = draw.randrange(256)
            elif kind == 1 and at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            elif kind == 2:
                del data[at:at + draw.randint(1, 40)]
            elif kind == 3:
                data[at:at] = draw.choice(TOKENS)
            elif kind == 4:
                piece = data[at:at + draw.randint(1, 100)]
                data[at:at] = piece * draw.choice((1, 1, 2, 20))
            elif kind == 5:
                to = draw.randrange(len(data) + 1)
                piece = data[at:at + draw.randint(1, 60)]
                data[to:to] = piece
            elif kind == 6:
                other = draw.choice(self.requests).body or b"0" * 40
                start = draw.randrange(len(other))
                data[at:at] = other[start:start + draw.randint(1, 200)]
            else:
                data[at:at + draw.randint(1, 8)] = draw.randbytes(draw.randint(1, 8))
        return bytes(data)

    def numbers(self, data):
        """A few numbers of a text, or little-endian words, changed to ones at limits."""
        found = list(re.finditer(rb"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?", data[:4096]))
        for match in self.random.sample(found, min(len(found), self.random.randint(1, 3))):
            # Those further ahead move; a number that is hit elsewhere is as good.
            data = data[:match.start()] + self.random.choice(NUMBERS) + data[match.end():]
        return data

    def kept(self):
        """(bytes, verb) of a request whose framing is whole: it gets one answer."""
        request = self.random.choice(self.with_body)
        kind = self.random.randrange(10)
        if kind < 4:
            head, body = request.parts(self.edit(request.body))
        elif kind < 7:
            head, body = request.parts(self.numbers(request.body))
        elif kind < 8:
            head, body = request.parts(coded=self.edit(request.parts()[1]))
        else:
            values = [(name, self.numbers(value.encode()).decode()) for name, value
                      in request.fields]
            target = request.target
            if "?" in target and kind == 9:
                path, query = target.split("?")
                query = self.edit(query.encode())
                target = f"{path}?{re.sub(rb'[^!-$&-~]', b'+', query).decode()}"
            head, body = dataclasses.replace(request, target=target, fields=values).parts()
        return head + body, request.verb

    def lost(self):
        """Bytes that may be no request, or several."""
        request = self.random.choice(self.requests)
        head, body = request.parts()
        kind = self.random.randrange(10)
        if kind < 5:
            return self.edit(head) + body
        if kind < 7:
            near = b"%d" % max(0, len(body) + self.random.randint(-9, 9))
            other = self.random.choice((near, self.random.choice(NUMBERS)))
            return re.sub(rb"(Content-Length: )\d+", lambda found: found[1] + other, head) + body
        if kind < 8:
            return (head + body)[:self.random.randrange(1, len(head + body))]
        if kind < 9:
            return self.edit(head + body)
        other = self.random.choice(self.requests).whole()
        return (head + body)[:self.random.randrange(1, len(head + body))] + other
