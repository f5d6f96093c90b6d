"""Malformed framings: requests in which a lenient reader finds a second, hidden one.

A row is a whole request in bytes, with words in < > that `fill` replaces:

<verb> <route>   what is asked for
<id>             the request's X-Request-Id
<hidden>         a whole request, whose X-Request-Id begins with "hidden"
<n> <x>          its length in bytes, decimal and hexadecimal

Where a length is in doubt, <hidden> comes twice: it lies inside the body for a reader who takes the
length, and behind the body too; so either reading serves one of the two.
"""

import dataclasses
import pathlib
import re

from harness import wire
from harness.settings import ROOT

VERBS = ["GET", "HEAD", "POST", "OPTIONS", "DELETE"]


@dataclasses.dataclass(frozen=True)
class Framing:
    name: str
    data: bytes
    statuses: tuple = (400,)  # of the daemon alone; 0: it may just close
    well_formed: bool = False  # the daemon alone refuses it all the same; a proxy may not


def routes():
    """A path for each row of the table of routes."""
    text = pathlib.Path(ROOT / "handlers" / "routes.c").read_text()
    table = text.partition("routes[] = {")[2].partition("};")[0]
    defined = dict(re.findall(r'#define (\w+) ("/[^\n]*")', text))
    rows = re.findall(r'^    \{((?:\w+ )?"[^"]*"|\w+),', table, re.M)
    paths = []
    for row in rows:
        for name, value in defined.items():
            row = re.sub(rf"\b{name}\b", value, row)
        path = "".join(re.findall(r'"([^"]*)"', row)).replace("{model}", "lu")
        paths.append(re.sub(r"\{\w+\}", "1", path))
    assert "/" in paths and len(paths) == table.count("\n    {") >= 22, paths
    return paths + ["/nowhere"]


def hidden(number):
    """A request that would be served; all have the same length."""
    return (f"GET /openapi.yaml?hidden={number:06d} HTTP/1.1\r\nHost: localhost\r\n"
            f"X-Request-Id: hidden-{number:06d}\r\n\r\n").encode()


def fill(framing, verb, route, number):
    """The bytes to send; `number` is in the ids of the request and of what it hides."""
    secret = hidden(number)
    words = {b"<verb>": verb.encode(), b"<route>": route.encode(),
             b"<id>": b"outer-%06d" % number, b"<n>": b"%d" % len(secret),
             b"<x>": b"%x" % len(secret), b"<hidden>": secret}
    return re.sub(rb"<(?:verb|route|id|n|x|hidden)>", lambda found: words[found[0]], framing.data)


def answers(heard):
    """(status, {name: value}) of each answer in these bytes, but for interim ones. One to HEAD has
    no body."""
    found = []
    while heard:
        head, _, heard = heard.partition(b"\r\n\r\n")
        status, fields = wire.parse_head(head)
        if status < 200:
            continue
        names = {name.lower(): value for name, value in fields}
        found.append((status, names))
        if not heard.startswith(b"HTTP/1."):
            heard = heard[int(names.get("content-length", len(heard))):]
    return found


LINE = b"<verb> <route> HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
ID = b"X-Request-Id: <id>\r\n"
START = LINE + HOST + ID
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: <n>\r\n"


def coding(name, fields, statuses=(400,), **kinds):
    """A transfer coding in doubt: an empty body in chunks, then the hidden request."""
    return Framing(f"coding: {name}", START + fields + b"\r\n0\r\n\r\n<hidden>", statuses, **kinds)


def coding_value(name, value, **kinds):
    return coding(name, b"Transfer-Encoding: " + value + b"\r\n", **kinds)


def chunks(name, body, statuses=(411,), **kinds):
    """Chunks in doubt. The daemon alone takes none."""
    return Framing(f"chunks: {name}", START + CHUNKED + b"\r\n" + body, statuses, **kinds)


def length(name, fields, statuses=(400,)):
    return Framing(f"length: {name}", START + fields + b"\r\n<hidden><hidden>", statuses)


def length_value(name, value, statuses=(400,)):
    return length(name, b"Content-Length: " + value + b"\r\n", statuses)


def field(name, fields, statuses=(400,)):
    """A head in doubt: the hidden request begins where a lenient reader ends the head."""
    return Framing(f"field: {name}", START + fields + b"\r\n<hidden>", statuses)


def line(name, first, statuses=(400,), **kinds):
    return Framing(f"line: {name}", first + HOST + ID + b"\r\n<hidden>", statuses, **kinds)


CODINGS = [
    coding_value("chunked", b"chunked", statuses=(411,), well_formed=True),
    coding_value("capitals", b"CHUNKED", statuses=(400, 411), well_formed=True),
    coding_value("a tab before", b"\tchunked", statuses=(400, 411), well_formed=True),
    coding_value("blanks behind", b"chunked  ", statuses=(400, 411), well_formed=True),
    coding_value("gzip, chunked", b"gzip, chunked", well_formed=True),
    coding_value("chunked, gzip", b"chunked, gzip"),
    coding_value("chunked, identity", b"chunked, identity"),
    coding_value("identity, chunked", b"identity, chunked"),
    coding_value("identity", b"identity"),
    coding_value("chunked, chunked", b"chunked, chunked"),
    coding_value("chunked,chunked", b"chunked,chunked"),
    coding_value("unknown", b"xchunked"),
    coding_value("unknown behind", b"chunkedx"),
    coding_value("an empty element first", b", chunked"),
    coding_value("an empty element last", b"chunked,"),
    coding_value("quoted", b'"chunked"'),
    coding_value("a parameter", b"chunked;q=1"),
    coding_value("a vertical tab before", b"\x0bchunked"),
    coding_value("a vertical tab behind", b"chunked\x0b"),
    coding_value("a form feed before", b"\x0cchunked"),
    coding_value("a NUL behind", b"chunked\0"),
    coding_value("a letter above ASCII", b"chun\xe2\x84\xaaed"),
    coding_value("empty", b""),
    coding_value("folded by a space", b"\r\n chunked"),
    coding_value("folded by a tab", b"\r\n\tchunked"),
    coding_value("folded behind", b"chunked\r\n , identity"),
    coding("a space before the colon", b"Transfer-Encoding : chunked\r\n"),
    coding("a tab before the colon", b"Transfer-Encoding\t: chunked\r\n"),
    coding("a vertical tab before the colon", b"Transfer-Encoding\x0b: chunked\r\n"),
    coding("a space before the name", b" Transfer-Encoding: chunked\r\n"),
    coding("a space in the name", b"Transfer Encoding: chunked\r\n"),
    coding("a NUL in the name", b"Transfer-Encoding\0: chunked\r\n"),
    coding("twice", CHUNKED + CHUNKED),
    coding("twice, chunked and identity", CHUNKED + b"Transfer-Encoding: identity\r\n"),
    coding("twice, identity and chunked", b"Transfer-Encoding: identity\r\n" + CHUNKED),
    coding("behind a bare CR", b"X: y\rTransfer-Encoding: chunked\r\n"),
    coding("behind a bare LF", b"X: y\nTransfer-Encoding: chunked\r\n", (400, 411)),
    coding("its line ends with LF", b"Transfer-Encoding: chunked\n", (400, 411)),
    coding("and a length", CHUNKED + b"Content-Length: 5\r\n"),
    coding("a length and it", b"Content-Length: 5\r\n" + CHUNKED),
    coding("and a length of zero", CHUNKED + b"Content-Length: 0\r\n"),
    Framing("coding: in HTTP/1.0", b"<verb> <route> HTTP/1.0\r\n" + HOST + ID + CHUNKED +
            b"\r\n0\r\n\r\n<hidden>"),
]

END = b"0\r\n\r\n<hidden>"
CHUNKS = [
    chunks("well-formed", b"5\r\nhello\r\n" + END, well_formed=True),
    chunks("LF alone", b"5\nhello\n0\n\n<hidden>"),
    chunks("LF behind the size", b"5\nhello\r\n" + END),
    chunks("LF behind the data", b"5\r\nhello\n" + END),
    chunks("CR alone", b"5\rhello\r0\r\r<hidden>"),
    chunks("CR LF doubled", b"5\r\r\nhello\r\n" + END),
    chunks("no end of the data", b"5\r\nhello" + END),
    chunks("data behind the data", b"5\r\nhello, you\r\n" + END),
    chunks("0x before the size", b"0x5\r\nhello\r\n" + END),
    chunks("+ before the size", b"+5\r\nhello\r\n" + END),
    chunks("a negative size", b"-1\r\nhello\r\n" + END),
    chunks("a space before the size", b" 5\r\nhello\r\n" + END),
    chunks("a space behind the size", b"5 \r\nhello\r\n" + END),
    chunks("a NUL behind the size", b"5\0\r\nhello\r\n" + END),
    chunks("no size", b"\r\nhello\r\n" + END),
    chunks("a size that is none", b"zz\r\nhello\r\n" + END),
    chunks("a letter behind the size", b"5g\r\nhello\r\n" + END),
    chunks("an underscore in the size", b"0_5\r\nhello\r\n" + END),
    chunks("a size of 65 bits", b"10000000000000005\r\nhello\r\n" + END),
    chunks("a size of 400 digits", b"0" * 399 + b"5\r\nhello\r\n" + END),
    chunks("a size of 33 bits", b"100000005\r\nhello\r\n" + END),
    chunks("a long extension", b"5;" + b"a" * 2000 + b"\r\nhello\r\n" + END, well_formed=True),
    chunks("an extension with LF", b"5;a\nhello\r\n0\r\n\r\n<hidden>"),
    chunks("an extension with CR", b"5;\r<x>\r\nhello\r\n" + END),
    chunks("an extension with NUL", b"5;\0\r\nhello\r\n" + END),
    chunks("the last chunk lacks its line", b"5\r\nhello\r\n0\r\n<hidden>"),
    chunks("the last chunk ends with LF", b"0\n\n<hidden>"),
    chunks("the last chunk ends with CR", b"0\r\r<hidden>"),
    chunks("a trailer that gives a length", b"0\r\nContent-Length: <n>\r\n\r\n<hidden>",
           well_formed=True),
    chunks("a trailer that gives a coding", b"0\r\n" + CHUNKED + b"\r\n" + END, well_formed=True),
    chunks("a trailer that is folded", b"0\r\na: b\r\n c\r\n\r\n<hidden>"),
    chunks("a trailer without a colon", b"0\r\nnothing\r\n\r\n<hidden>"),
    chunks("a trailer with a space before its colon", b"0\r\na : b\r\n\r\n<hidden>"),
    chunks("a trailer with a NUL", b"0\r\na: b\0\r\n\r\n<hidden>"),
    chunks("a trailer that ends with LF", b"0\r\na: b\n\n<hidden>"),
]

LENGTHS = [
    length_value("a plus sign", b"+<n>"),
    length_value("a minus sign", b"-<n>"),
    length_value("-1", b"-1"),
    length_value("-0", b"-0"),
    length_value("hexadecimal", b"0x<x>"),
    length_value("two numbers", b"<n> <n>"),
    length_value("a list of one number", b"<n>,<n>"),
    length_value("a list with a blank", b"<n>, <n>"),
    length_value("a list of two numbers", b"<n>,0"),
    length_value("an empty element first", b",<n>"),
    length_value("an empty element last", b"<n>,"),
    length_value("a fraction", b"<n>.0"),
    length_value("an exponent", b"1e2"),
    length_value("an underscore", b"1_0"),
    length_value("a parameter", b"<n>;a=b"),
    length_value("quoted", b'"<n>"'),
    length_value("a word", b"five"),
    length_value("empty", b""),
    length_value("past 64 bits", b"%d" % 2**64),
    length_value("past 63 bits", b"%d" % 2**63),
    length_value("of 400 digits", b"9" * 400),
    length_value("a vertical tab behind", b"<n>\x0b"),
    length_value("a NUL behind", b"<n>\0"),
    length_value("a NUL inside", b"<n>\x000"),
    length_value("folded", b"\r\n <n>"),
    length_value("folded between its digits", b"1\r\n 0"),
    length("the same twice", LENGTH + LENGTH),
    length("twice, zero first", b"Content-Length: 0\r\n" + LENGTH),
    length("twice, zero last", LENGTH + b"Content-Length: 0\r\n"),
    length("twice, the second one folded", LENGTH + b"Content-Length:\r\n 0\r\n"),
    length("a space before the colon", b"Content-Length : <n>\r\n"),
    length("a tab before the colon", b"Content-Length\t: <n>\r\n"),
    length("a space before the name", b" Content-Length: <n>\r\n"),
    length("a space in the name", b"Content Length: <n>\r\n"),
    length("a NUL in the name", b"Content-Length\0: <n>\r\n"),
    length("no colon", b"Content-Length <n>\r\n"),
    length("behind a bare CR", b"X: y\rContent-Length: <n>\r\n"),
]

FIELDS = [
    field("a NUL in a value", b"X: a\0b\r\n"),
    field("a NUL in a name", b"X\0Y: a\r\n"),
    field("a bare CR in a value", b"X: a\rb\r\n"),
    field("a bare CR ends the head", b"X: a\r\r<hidden>"),
    field("a control character", b"X: a\x01b\r\n"),
    field("DEL in a value", b"X: a\x7fb\r\n"),
    field("no colon", b"nothing here\r\n"),
    field("no name", b": a\r\n"),
    field("a space in a name", b"X Y: a\r\n"),
    field("a bracket in a name", b"X(Y: a\r\n"),
    field("a letter above ASCII in a name", b"X\xe4: a\r\n"),
    field("a blank line of a space", b"X: a\r\n \r\n"),
    field("folded", b"X: a\r\n b: c\r\n"),
    field("a second host", b"Host: other\r\n"),
    field("the same host again", b"Host: localhost\r\n"),
    field("one of 64 KiB", b"X: " + b"a" * 65536 + b"\r\n", (400, 413, 431)),
    field("a name of 64 KiB", b"X" * 65536 + b": a\r\n", (400, 413, 431)),
    field("200 of them", b"".join(b"X-%d: a\r\n" % i for i in range(200)), (431,)),
    Framing("field: no host", LINE + ID + b"\r\n<hidden>"),
    Framing("field: an empty name of a host", LINE + b"Host : localhost\r\n" + ID +
            b"\r\n<hidden>"),
    Framing("field: a host with a space", LINE + b"Host: local host\r\n" + ID + b"\r\n<hidden>"),
    Framing("field: a host with a path", LINE + b"Host: localhost/a\r\n" + ID + b"\r\n<hidden>"),
    Framing("field: a host with a user", LINE + b"Host: a@localhost\r\n" + ID + b"\r\n<hidden>"),
    Framing("field: a space before the first", LINE + b" " + HOST + ID + b"\r\n<hidden>"),
]

LINES = [
    line("two spaces behind the verb", b"<verb>  <route> HTTP/1.1\r\n"),
    line("two spaces before the version", b"<verb> <route>  HTTP/1.1\r\n"),
    line("tabs", b"<verb>\t<route>\tHTTP/1.1\r\n", (0, 400)),
    line("a space at the start", b" <verb> <route> HTTP/1.1\r\n", (0, 400)),
    line("a space at the end", b"<verb> <route> HTTP/1.1 \r\n"),
    line("a word behind the version", b"<verb> <route> HTTP/1.1 HTTP/1.1\r\n"),
    line("a vertical tab", b"<verb> <route>\x0bHTTP/1.1\r\n", (0, 400, 505)),
    line("a NUL behind the verb", b"<verb>\0 <route> HTTP/1.1\r\n"),
    line("a NUL in the target", b"<verb> <route>\0 HTTP/1.1\r\n"),
    line("a bracket in the verb", b"<verb>( <route> HTTP/1.1\r\n"),
    line("a space in the target", b"<verb> <route> a HTTP/1.1\r\n"),
    line("a control character in the target", b"<verb> <route>\x01 HTTP/1.1\r\n"),
    line("a byte above ASCII in the target", b"<verb> <route>\xff HTTP/1.1\r\n"),
    line("no slash", b"<verb> nowhere HTTP/1.1\r\n"),
    line("another scheme", b"<verb> ftp://localhost<route> HTTP/1.1\r\n"),
    line("an authority alone", b"<verb> localhost:80 HTTP/1.1\r\n"),
    line("a target of 64 KiB", b"<verb> <route>?" + b"a" * 65536 + b" HTTP/1.1\r\n",
         (400, 414, 431)),
    line("HTTP/0.9", b"<verb> <route>\r\n", (0, 400, 505)),
    line("HTTP/0.9 in words", b"<verb> <route> HTTP/0.9\r\n", (0, 400, 505)),
    line("HTTP/2.0", b"<verb> <route> HTTP/2.0\r\n", (0, 400, 505)),
    line("HTTP/1.1x", b"<verb> <route> HTTP/1.1x\r\n", (0, 400, 505)),
    line("HTTP/01.1", b"<verb> <route> HTTP/01.1\r\n", (0, 400, 505)),
    line("HTTP/1", b"<verb> <route> HTTP/1\r\n", (0, 400, 505)),
    line("http/1.1", b"<verb> <route> http/1.1\r\n", (0, 400, 505)),
    line("no verb", b"<route> HTTP/1.1\r\n", (0, 400, 505)),
    line("ends with CR", b"<verb> <route> HTTP/1.1\r", (0, 400, 505)),
    Framing("line: the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n<hidden>",
            (0, 400, 505)),
]

# The hidden request lies in the body, for a reader that takes the head as written.
COVERED = [
    Framing(f"covered: {name}", first + host + ID + fields + LENGTH +
            b"Connection: close" + options + b"\r\n\r\n<hidden>", tuple(range(200, 600)))
    for name, first, host, fields, options in [
        ("a length that is for one hop", LINE, HOST, b"", b", Content-Length"),
        ("a host that is for one hop", LINE, HOST, b"", b", Host"),
        ("an absolute target of another host", b"<verb> http://evil.example<route> HTTP/1.1\r\n",
         HOST, b"", b""),
        ("HTTP/1.2", b"<verb> <route> HTTP/1.2\r\n", HOST, b"", b""),
        ("HTTP/1.0 kept alive", b"<verb> <route> HTTP/1.0\r\n", HOST, b"Keep-Alive: 5\r\n", b""),
        ("a verb in small letters", b"post <route> HTTP/1.1\r\n", HOST, b"", b""),
        ("a verb of its own", b"BREW <route> HTTP/1.1\r\n", HOST, b"", b""),
        ("an upgrade to h2c", LINE, HOST, b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
         b", Upgrade, HTTP2-Settings"),
        ("an upgrade to WebSocket", LINE, HOST, b"Upgrade: websocket\r\n", b", Upgrade"),
        ("an underscore in the name of a coding", LINE, HOST, b"Transfer_Encoding: chunked\r\n",
         b""),
        ("an expectation", LINE, HOST, b"Expect: 100-continue\r\n", b""),
    ]
]

ALL = CODINGS + CHUNKS + LENGTHS + FIELDS + LINES + COVERED
