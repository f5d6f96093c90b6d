"""Bombs, slow and departed clients, overload: bounded memory, orderly answers, others unharmed."""

import gzip
import io
import threading
import time
import zipfile
import zlib

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.codec import J, JSON, NPY, NPZ, infer_bytes, v2_binary
from harness.daemon import Daemon, wait_until
from harness.load import Load, reference
from harness.settings import FACTOR, SANITIZER, scaled_timeout

GIB = 1 << 30
ARENA = 64 << 20
SLACK = 256 << 20
GOOD = infer_bytes("lu", v2_binary, {"A": np.diag([2.0, 4.0])[None]})


def gzip_bomb(prefix=b"", fill=b"\0", total=GIB):
    """gzip of prefix and a GiB of one byte, about 1 MiB, made of one repeated deflate block."""
    step = 1 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(prefix) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(fill * step) + packer.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    count, crc, chunk = total // step, zlib.crc32(prefix), fill * step
    for _ in range(count):
        crc = zlib.crc32(chunk, crc)
    size = (len(prefix) + total) & 0xFFFFFFFF
    head = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
    return (
        head + start + block * count + end + crc.to_bytes(4, "little") + size.to_bytes(4, "little")
    )


def coded(path, body, type, **headers):
    fields = {"Content-Type": type, "Content-Encoding": "gzip", **headers}
    return wire.request("POST", path, body, fields)


def npy_prefix(shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


@pytest.fixture(scope="module")
def bombs():
    """{name: request}: a GiB behind a MiB, under every type."""
    zeros = gzip_bomb()
    infer, invert = "/v2/models/lu/infer", "/v1/invert"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("a.npy", "w", force_zip64=True) as member:
            member.write(npy_prefix((8192, 8192)))
            for _ in range(512):
                member.write(bytes(1 << 20))
    return {
        "v2 json": coded(infer, zeros, JSON),
        "v2 binary": coded(infer, zeros, "application/octet-stream", **{J: "100"}),
        "raw": coded(infer, zeros, "application/octet-stream", **{J: "0"}),
        "npy": coded(invert, zeros, NPY),
        "npz": coded(invert, zeros, NPZ),
        "v1 json": coded(invert, zeros, JSON),
        "sniffed": wire.request("POST", invert, zeros, {"Content-Encoding": "gzip"}),
        "npy surplus": coded(invert, gzip_bomb(npy_prefix((2, 2)) + bytes(32)), NPY),
        "npy 1 GiB": coded(invert, gzip_bomb(npy_prefix((11585, 11585))), NPY),
        "v1 spaces": coded(invert, gzip_bomb(b"{", b" "), JSON),
        "v1 brackets": coded(invert, gzip_bomb(b'{"matrix":', b"["), JSON),
        "v2 digits": coded(
            infer,
            gzip_bomb(b'{"inputs":[{"name":"A","shape":[1,1,1],"datatype":"FP64","data":[1', b"0"),
            JSON,
        ),
        "npz deflated": wire.request("POST", invert, stream.getvalue(), {"Content-Type": NPZ}),
    }


class MemoryWatch:
    """Samples the memory of front and engines until it is stopped."""

    def __init__(self, daemon):
        self.daemon, self.most, self.stop = daemon, 0, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def _run(self):
        while not self.stop.wait(0.05):
            self.most = max(self.most, self.daemon.resident_bytes())

    def __exit__(self, kind, *_):
        self.stop.set()
        self.thread.join()
        if kind is None and not SANITIZER:
            bound = 1.1 * (ARENA + SLACK)
            assert self.most <= bound, f"{self.most >> 20} MiB of {int(bound) >> 20}"


def at_once(count, action):
    """Runs action(i) in that many threads; gives the results in order."""
    results = [None] * count

    def run(i):
        try:
            results[i] = action(i)
        except Exception as error:  # a result like any other: judged by the caller
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def small():
    return Daemon("--arena-size", str(ARENA), "--request-max", str(ARENA // 4))


@pytest.mark.timeout(120)
def test_bombs(bombs):
    with small() as daemon, MemoryWatch(daemon):
        for name, request in bombs.items():
            start = time.monotonic()
            answer = daemon.talk(request)
            assert answer.status in (400, 413, 415), (name, answer)
            assert time.monotonic() - start < scaled_timeout(5), name
            assert daemon.talk(GOOD).status == 200
        each = list(bombs.values())
        answers = at_once(20, lambda i: daemon.talk(each[i % len(each)]))
        for answer in answers:
            assert isinstance(answer, wire.Answer), answer
            assert answer.status in (400, 413, 415, 429, 503), answer
        assert daemon.talk(GOOD).status == 200
        daemon.wait_idle_arena(5)


@pytest.mark.timeout(120)
def test_brackets_at_the_size_cap():
    """[[],[],...] as long as a request may be: a tree of it would take gigabytes."""
    with small() as daemon, MemoryWatch(daemon):
        most = ARENA // 4 - 100
        for start, piece, end in [
            (b'{"matrices":[', b"[],", b"[]]}"),
            (b'{"matrix":[', b"[],", b"[]]}"),
            (b'{"x":[', b"{},", b"{}]}"),
            (b'{"x":[', b'"",', b'""]}'),
            (b'{"x":', b"[", b""),
        ]:
            body = start + piece * ((most - 20) // len(piece)) + end
            answer = daemon.post("/v1/invert", body, {"Content-Type": JSON})
            assert answer.status in (200, 400, 413, 422), answer
            v2 = body.replace(b'"matrices"', b'"inputs"')
            answer = daemon.post("/v2/models/lu/infer", v2, {"Content-Type": JSON})
            assert answer.status in (400, 413), answer
        assert daemon.talk(GOOD).status == 200


def test_npy_that_declares_32_gib():
    with small() as daemon, MemoryWatch(daemon):
        body = npy_prefix((65536, 65536))[:80]
        answers = at_once(20, lambda i: daemon.post("/v1/invert", body, {"Content-Type": NPY}))
        assert all(a.status in (400, 413) for a in answers), answers


@pytest.mark.timeout(120)
def test_memory_stays_in_its_budget():
    """Large good requests, many at once: they wait for memory, or are refused; the budget holds."""
    with small() as daemon, MemoryWatch(daemon):
        body = codec.npy(matrices.random(64, batch=200))  # 6.5 MB in, as much out
        answers = at_once(40, lambda i: daemon.post("/v1/invert", body, {"Content-Type": NPY}))
        statuses = [getattr(a, "status", repr(a)) for a in answers]
        assert set(statuses) == {200}, statuses
        text = b'{"matrices":' + str(matrices.random(32, batch=300).tolist()).encode() + b"}"
        answers = at_once(20, lambda i: daemon.post("/v1/invert", text, {"Content-Type": JSON}))
        statuses = {getattr(a, "status", repr(a)) for a in answers}
        assert statuses <= {200, 503} and 200 in statuses, statuses
        daemon.wait_idle_arena(5)


# ---- Slow clients ----


def slow_connections(daemon, count, request):
    """Opens connections and sends each a byte of the request a second, until all are ended."""
    connections = [daemon.connect() for _ in range(count)]
    start, sent, ended = time.monotonic(), 0, {}
    while len(ended) < count and time.monotonic() - start < scaled_timeout(20):
        for i, connection in enumerate(connections):
            if i in ended:
                continue
            try:
                connection.send(request[sent : sent + 1])
            except OSError:
                ended[i] = time.monotonic() - start
                continue
            if connection.ended(0):
                ended[i] = time.monotonic() - start
        sent += 1
        yield None
        time.sleep(max(0.0, start + sent - time.monotonic()))
    for connection in connections:
        connection.close()
    yield [ended.get(i) for i in range(count)]


@pytest.mark.timeout(90)
@pytest.mark.parametrize("part", ["header", "body"])
def test_slow_senders_are_closed_by_absolute_deadlines(part):
    """A byte a second is never idle, and is closed all the same; others are served meanwhile."""
    options = ("--header-timeout", "3s", "--body-timeout", "3s", "--connections-max", "400")
    with Daemon(*options) as daemon:
        if part == "header":
            request = wire.request("POST", "/v1/invert", b"{}", {"X": "a" * 100})
        else:
            request = wire.request(
                "POST", "/v1/invert", None, {"Content-Length": 100, "Content-Type": JSON}
            )
        count, slowest, ended = 200, 0.0, None
        if part == "body":
            rest = b'{"matrix": [[1.0000000000000000000000000000000000000000000000000'
            ended_by = _slow_bodies(daemon, count, request, rest)
        else:
            ended_by = slow_connections(daemon, count, request)
        for ended in ended_by:
            start = time.monotonic()
            assert daemon.talk(GOOD).status == 200
            slowest = max(slowest, time.monotonic() - start)
        assert all(at is not None for at in ended), "some slow connections live on"
        assert max(ended) <= scaled_timeout(3) + 6, max(ended)
        assert min(ended) >= 2, min(ended)
        assert slowest < scaled_timeout(0.5), slowest
        daemon.wait_idle_arena(5)


def _slow_bodies(daemon, count, head, body):
    """As slow_connections, with the header sent at once."""

    class Quick:
        def connect(self):
            connection = daemon.connect()
            connection.send(head)
            return connection

    return slow_connections(Quick(), count, body)


def test_slow_body_gets_408():
    with Daemon("--body-timeout", "1s") as daemon, daemon.connect() as connection:
        connection.send(wire.request("POST", "/v1/invert", None, {"Content-Length": 50}) + b"{")
        answer = connection.read()
        assert answer.status == 408, answer
        assert connection.ended(scaled_timeout(8))


@pytest.mark.timeout(90)
def test_readers_that_do_not_read():
    """Clients that ask for long answers and never read them are closed; the arena is given back."""
    with Daemon("--send-timeout", "500ms") as daemon:
        request = infer_bytes("lu", v2_binary, {"A": matrices.random(64, batch=200)})
        connections = [daemon.connect() for _ in range(10)]
        for connection in connections:
            connection.socket.setsockopt(1, 8, 4096)  # SO_RCVBUF: little is taken off the wire
            connection.send(request)
        time.sleep(0.5)
        assert daemon.talk(GOOD).status == 200
        daemon.wait_idle_arena(15)  # half a second, and one a MiB of 6.6
        assert daemon.talk(GOOD).status == 200
        for connection in connections:
            connection.close()


def test_unwanted_bodies_that_do_not_come():
    """A body that no one wants gets a short time, whatever length the client announces."""
    with Daemon("--body-timeout", "500ms") as daemon, daemon.connect() as connection:
        connection.send(wire.request("GET", "/livez", None, {"Content-Length": 1 << 20}) + b"a")
        start = time.monotonic()
        assert connection.read().status == 408
        assert time.monotonic() - start < scaled_timeout(1.2)


def test_half_closed_sockets(daemon):
    """A client that closes its sending side inside a request has left: nothing leaks."""
    connections = []
    for i in range(60):
        connection = daemon.connect()
        connection.send(GOOD[: len(GOOD) * (i % 3) // 3])
        connection.socket.shutdown(1)
        connections.append(connection)
    for connection in connections:
        assert connection.ended(scaled_timeout(15))
        connection.close()
    assert daemon.talk(GOOD).status == 200


def half_closing(daemon, request):
    """Sends a request, closes the sending side, and gives all that comes back."""
    with daemon.connect() as connection:
        connection.send(request)
        connection.socket.shutdown(1)
        parts = iter(lambda: connection.socket.recv(1 << 18), b"")
        return b"".join(parts)


def test_half_closed_clients_are_answered(daemon):
    """After a whole request, whatever its length, alone and in a crowd; with one status line."""
    large = infer_bytes("lu", v2_binary, {"A": matrices.random(500, seed=3)[None]})
    page = wire.request("GET", "/metrics")
    wrong = wire.request("POST", "/v1/invert", b"{}", {"Content-Type": JSON})
    for request, count, status in ((GOOD, 100, 200), (large, 5, 200), (page, 20, 200),
                                   (wrong, 20, 400)):
        answers = [half_closing(daemon, request) for _ in range(count)]
        answers += at_once(count, lambda i: half_closing(daemon, request))
        for answer in answers:
            assert answer.startswith(b"HTTP/1.1 %d " % status), answer
            assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.faults
def test_half_closed_clients_wait_and_departed_ones_do_not():
    """Work of a second and more: who is there is answered; who has gone is noticed, and costs
    nothing more."""
    with Daemon("--batch-deadline", "60s", fault=f"slow:{int(2.5e6)}") as daemon:
        answer = half_closing(daemon, GOOD)
        assert b"HTTP/1.1 200 " in answer, answer
        with daemon.connect() as connection:
            connection.send(GOOD)
            time.sleep(0.2)

        def noticed():
            return daemon.metrics().total("invertd_cancelled_total", reason="client_left") == 1

        wait_until(noticed, 2.2, "the client's leaving")


# ---- Overload ----


def refusals_in_order(report):
    for (_, outcome), count in report.counts.items():
        assert outcome in (200, 429, 503), (outcome, count)


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_overload_is_orderly():
    """Ten times what fits: every request exactly one answer, refusals with Retry-After."""
    with Daemon(
        "--queue-max", "6", "--in-flight", "1", "--batch-matrices-max", "2", fault="slow:20000"
    ) as daemon:
        case = reference(daemon, "a", GOOD)
        with Load(daemon, [case], clients=60, seconds=3, allowed=[503]) as load:
            time.sleep(1)
            latencies = []
            for k in range(30):
                start = time.monotonic()
                with daemon.connect(source=f"127.1.0.{k + 1}") as newcomer:
                    answer = newcomer.exchange(GOOD)
                if answer.status == 503:
                    latencies.append(time.monotonic() - start)
                    assert 1 <= int(answer.header("Retry-After")) <= 3600
                    assert "error" in answer.json()
            problem = codec.Client(daemon).invert(b'{"matrix": [[2]]}', JSON)
            assert problem.status in (200, 503)
            if problem.status == 503:
                assert problem.header("Content-Type") == "application/problem+json"
                assert int(problem.header("Retry-After")) >= 1
            assert daemon.get("/v2/health/ready").status == 200, "overload alone is not unready"
            report = load.finish(wait=True)
        assert report.wrong_count == 0, report.wrong
        refusals_in_order(report)
        assert report.of(503) > 0 and report.of(200) > 20 / FACTOR
        assert latencies and sorted(latencies)[len(latencies) // 2] < scaled_timeout(0.1), latencies
        wait_until(lambda: daemon.talk(GOOD).status == 200, 10, "service as before")
        page = daemon.metrics()
        assert page.total("invertd_rejected_total", reason="service-full") >= report.of(503)


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_who_comes_back_early_is_put_off():
    """The second refusal of a client comes when the second is over that the first asked for, or up
    to another second later."""
    with Daemon(
        "--queue-max", "1", "--batch-deadline", "60s", fault=f"slow:{int(scaled_timeout(13e6))}"
    ) as daemon:

        def refused(connection):
            start = time.monotonic()
            connection.send(GOOD)
            answer = connection.read()
            assert answer.status == 503 and int(answer.header("Retry-After")) >= 1, answer
            return time.monotonic() - start

        with daemon.connect() as busy:
            busy.send(GOOD)
            time.sleep(0.2)
            with daemon.connect() as hasty, daemon.connect() as other:
                assert refused(hasty) < scaled_timeout(0.5)
                assert refused(other) < scaled_timeout(0.5), "another connection: at once"
                assert 0.4 < refused(hasty) < scaled_timeout(2.5)
                assert hasty.ended(scaled_timeout(2))
                time.sleep(1.1)
                assert refused(other) < scaled_timeout(0.5), "who waits: at once"
            with daemon.connect() as again:
                assert 0.4 < refused(again) < scaled_timeout(2.5), "on a new connection too"
            with daemon.connect() as again:
                assert 0.4 < refused(again) < scaled_timeout(2.5), "and again"
            time.sleep(1.1)
            with daemon.connect() as again:
                assert refused(again) < scaled_timeout(0.5), "who has waited: at once"
                again.send(GOOD)
                time.sleep(0.1)  # put off when the daemon is reported to end


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_client_quota():
    with Daemon("--client-requests-max", "2", fault="slow:300000") as daemon:
        answers = at_once(8, lambda i: daemon.talk(GOOD))
        statuses = sorted(answer.status for answer in answers)
        assert set(statuses) == {200, 429} and statuses.count(200) >= 2, statuses
        for answer in answers:
            if answer.status == 429:
                assert int(answer.header("Retry-After")) >= 1 and "error" in answer.json()
        assert daemon.talk(GOOD).status == 200


def test_gzip_of_useful_matrices_is_no_bomb():
    """Identity and tridiagonal matrices compress beyond any fixed ratio, and are fine."""
    with Daemon() as daemon:
        n = 1500
        body = gzip.compress(codec.npy(np.eye(n)), 9)
        assert len(body) * 500 < n * n * 8
        answer = daemon.post(
            "/v1/invert",
            body,
            {"Content-Type": NPY, "Content-Encoding": "gzip", "Accept-Encoding": "gzip"},
        )
        assert answer.status == 200
        assert (codec.load(answer.content) == np.eye(n)).all()


def _endless():
    """Requests that keep a worker for minutes each: by large steps, and by many small ones."""
    singular = matrices.random(1200, seed=7)
    singular[1] = singular[0]
    x, y = np.random.default_rng(8).random((2, 1, 60, 20000)) / 1e4
    return [
        ("iterative", {"A": singular[None]}, {"scheme": "newton_schulz", "max_iterations": 1000}),
        ("ism", {"X": x, "Y": y}, {"variant": "single"}),
    ]


@pytest.mark.parametrize("how", ["timeout", "left"])
def test_abandoned_work_makes_room(how):
    """As many as there are workers for long work; then somebody else's, who needs one of them."""
    with Daemon("--threads", "2", "--engine", "host") as daemon:
        connections = [daemon.connect() for _ in _endless()]
        for connection, (model, inputs, parameters) in zip(connections, _endless()):
            if how == "timeout":
                parameters = {**parameters, "timeout": int(scaled_timeout(1) * 1e6)}
            connection.send(infer_bytes(model, v2_binary, inputs, parameters=parameters))
        if how == "timeout":
            assert [connection.read().status for connection in connections] == [504, 504]
        else:
            wait_until(
                lambda: daemon.metrics().total("invertd_batches_total") == 2, 10, "both under way"
            )
        for connection in connections:
            connection.close()
        start, a = time.monotonic(), matrices.random(600)
        answer = codec.Client(daemon).invert(codec.npy(a), NPY, "?method=lu")
        assert answer.status == 200, answer
        assert time.monotonic() - start <= scaled_timeout(5)
        assert np.abs(codec.load(answer.body) @ a - np.eye(600)).max() < 1e-6
        wait_until(
            lambda: daemon.metrics().total("invertd_device_batches_stopped_total") == 2,
            5,
            "both counted as stopped",
        )
        daemon.wait_idle_arena(5)
        assert daemon.metrics().total("invertd_engine_restarts_total") == 0
