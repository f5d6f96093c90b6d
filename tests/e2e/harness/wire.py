"""HTTP by hand: requests as bytes, sockets, and answers read to their last byte.

Tests of framing need every byte under control, and tests of load need requests that cost
nothing to send, so neither goes through an HTTP library.
"""

import gzip
import json
import select
import socket
import time
import zlib

from .settings import scaled_timeout


class Gone(Exception):
    """The connection ended before a whole answer came; `partial` says whether it had begun."""

    def __init__(self, partial):
        super().__init__("connection ended " + ("inside" if partial else "before") + " an answer")
        self.partial = partial


class Answer:
    """One HTTP answer. Header names are compared without regard to case."""

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def header(self, name, default=None):
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return default

    def headers(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    @property
    def content(self):
        """The body with its Content-Encoding undone."""
        coding = self.header("Content-Encoding", "identity")
        if coding == "gzip":
            return gzip.decompress(self.body)
        if coding == "deflate":
            return zlib.decompress(self.body)
        assert coding == "identity", coding
        return self.body

    def json(self):
        return json.loads(self.content)

    @property
    def text(self):
        return self.content.decode("utf-8", "replace")

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:400]!r}>"


def request(method, path, body=None, headers=None, host="localhost", version="HTTP/1.1"):
    """A request as bytes; Content-Length is added when there is a body and no word of its own."""
    headers = dict(headers or {})
    lines = [f"{method} {path} {version}"]
    names = {name.lower() for name in headers}
    if host is not None and "host" not in names:
        lines.append(f"Host: {host}")
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def parse_head(head):
    """Status and header fields of an answer's head (without its empty line)."""
    lines = head.decode("latin-1").split("\r\n")
    version, status = lines[0].split(" ", 2)[:2]
    assert version in ("HTTP/1.1", "HTTP/1.0"), lines[0]
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        assert colon and name and name == name.strip(), f"bad header line {line!r}"
        fields.append((name, value.strip()))
    return int(status), fields


def free_port():
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Connection:
    """A client's connection to (host, port), from a host, or to a unix socket's path."""

    def __init__(self, address, timeout=None, source=None):
        timeout = scaled_timeout(30) if timeout is None else timeout
        if isinstance(address, tuple):
            self.socket = socket.create_connection(
                address, timeout=timeout, source_address=source and (source, 0))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(str(address))
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self, partial):
        try:
            data = self.socket.recv(1 << 18)
        except (ConnectionResetError, BrokenPipeError):
            raise Gone(partial) from None
        if not data:
            raise Gone(partial)
        self.buffer += data

    def read_interim(self):
        """The head of a 1xx answer, or None when what comes is a final one."""
        while b"\r\n\r\n" not in self.buffer:
            self._more(bool(self.buffer))
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        status, _ = parse_head(head)
        if status >= 200:
            return None
        self.buffer = rest
        return status

    def read(self, head_only=False):
        """The next final answer, whole. Raises Gone when the connection ends first."""
        while self.read_interim() is not None:
            pass
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        status, fields = parse_head(head)
        answer = Answer(status, fields, b"")
        if head_only or status in (204, 304):
            return answer
        if "chunked" in (answer.header("Transfer-Encoding") or ""):
            answer.body = self._read_chunks()
            return answer
        length = answer.header("Content-Length")
        if length is None:
            answer.body = self._read_to_end()
            return answer
        parts, have = [self.buffer], len(self.buffer)
        self.buffer = b""
        while have < int(length):
            self._more(True)
            parts.append(self.buffer)
            have += len(self.buffer)
            self.buffer = b""
        whole = b"".join(parts)
        answer.body, self.buffer = whole[: int(length)], whole[int(length) :]
        return answer

    def _read_chunks(self):
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                self._more(True)
            size_text, _, self.buffer = self.buffer.partition(b"\r\n")
            size = int(size_text.split(b";")[0], 16)
            while len(self.buffer) < size + 2:
                self._more(True)
            body += self.buffer[:size]
            self.buffer = self.buffer[size + 2 :]
            if size == 0:
                return body

    def _read_to_end(self):
        try:
            while True:
                self._more(True)
        except Gone:
            body, self.buffer = self.buffer, b""
            return body

    def exchange(self, data):
        self.send(data)
        return self.read()

    def ended(self, within):
        """Whether the peer closes within that many seconds; what it still sends is kept."""
        end = time.monotonic() + within
        while True:
            left = max(0.0, end - time.monotonic())
            if not select.select([self.socket], [], [], left)[0]:
                return False
            try:
                data = self.socket.recv(1 << 16)
            except (ConnectionResetError, BrokenPipeError):
                return True
            if not data:
                return True
            self.buffer += data

    def drain_to_end(self, within):
        """Everything the peer sends until it closes, or None when it does not close in time."""
        return self.buffer if self.ended(within) else None


def talk(address, data, timeout=None):
    """One request on a connection of its own."""
    with Connection(address, timeout) as connection:
        return connection.exchange(data)
