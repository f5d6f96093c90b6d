"""A cheap load generator: one process, one asyncio loop, prebuilt requests, bytes compared.

Each client keeps one request under way. A request is a Case: its bytes, and the body that the
same request got when it was alone. A Report says what came back. In the `stopping` mode, for
tests of drain, a client stops at the first refusal or lost connection, and the times of sending
are kept, so that the test can judge which requests had been admitted.
"""

import asyncio
import contextlib
import dataclasses
import multiprocessing
import random
import socket
import time

from .wire import parse_head


@dataclasses.dataclass
class Case:
    name: str
    request: bytes
    body: bytes  # expected, exactly; None: not compared
    status: int = 200


@dataclasses.dataclass
class Report:
    counts: dict  # (case name, status) or (case name, "lost" | "partial" | "refused") -> times
    wrong: list  # (case name, what was wrong), the first few
    wrong_count: int
    answered: int
    slowest: float  # seconds
    events: list  # stopping mode: (sent, ended, outcome, headers)

    def of(self, outcome):
        return sum(n for (_, what), n in self.counts.items() if what == outcome)

    def assert_perfect(self):
        """Every request got one answer, the right one."""
        assert self.wrong_count == 0, self.wrong
        bad = {key: n for key, n in self.counts.items() if isinstance(key[1], str)}
        assert not bad, bad
        assert self.answered > 0


class _Client(asyncio.Protocol):
    def __init__(self, run):
        self.run, self.case, self.transport = run, None, None
        self.buffer, self.need, self.status, self.fields = b"", None, 0, []

    def connection_made(self, transport):
        self.transport = transport
        raw = transport.get_extra_info("socket")
        if raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.run.clients.add(self)
        self.next()

    def next(self):
        if self.run.over:
            self.case = None
            self.transport.close()
            return
        self.case = self.run.pick()
        self.sent = time.monotonic()
        self.transport.write(self.case.request)

    def data_received(self, data):
        self.buffer = self.buffer + data if self.buffer else data
        if self.need is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self.status, self.fields = parse_head(self.buffer[:end])
            length = next(v for k, v in self.fields if k.lower() == "content-length")
            self.need = end + 4 + int(length)
            self.start = end + 4
        if len(self.buffer) < self.need:
            return
        if self.case is None or len(self.buffer) > self.need:
            self.run.note_wrong(self.case, "bytes that no request asked for")
        body = self.buffer[self.start : self.need]
        case, self.case = self.case, None
        self.run.answered_one(self, case, body)
        self.buffer, self.need = b"", None
        if self.transport.is_closing():
            return
        if ("connection", "close") in ((k.lower(), v.lower()) for k, v in self.fields):
            self.transport.close()
            self.run.come_again()
        else:
            self.next()

    def connection_lost(self, error):
        self.run.clients.discard(self)
        if self.case is not None:
            outcome = "partial" if self.buffer else "lost"
            self.run.count(self.case, outcome)
            self.run.event(self.sent, outcome, [])
            self.case = None
        self.run.ended_one()


class _Run:
    def __init__(self, plan):
        self.__dict__.update(plan)
        self.random = random.Random(self.seed)
        self.over = False
        self.clients = set()
        self.live = 0
        self.report = Report({}, [], 0, 0, 0.0, [])

    def pick(self):
        return self.random.choice(self.cases)

    def count(self, case, outcome):
        key = (case.name, outcome)
        self.report.counts[key] = self.report.counts.get(key, 0) + 1

    def event(self, sent, outcome, fields):
        if self.stopping:
            self.report.events.append((sent, time.monotonic(), outcome, fields))

    def note_wrong(self, case, what):
        self.report.wrong_count += 1
        if len(self.report.wrong) < 10:
            self.report.wrong.append((case.name if case else "none", what))

    def answered_one(self, client, case, body):
        self.report.answered += 1
        self.report.slowest = max(self.report.slowest, time.monotonic() - client.sent)
        self.count(case, client.status)
        self.event(client.sent, client.status, client.fields)
        if client.status == case.status:
            if case.body is not None and body != case.body:
                self.note_wrong(case, f"another body: {body[:300]!r} for {case.body[:300]!r}")
        elif client.status not in self.allowed:
            self.note_wrong(case, f"{client.status}: {body[:300]!r}")
        if self.stopping and client.status != case.status:
            client.transport.close()

    def ended_one(self):
        self.live -= 1
        if self.live == 0:
            self.done.set()

    def come_again(self):
        if not self.over:
            self.live += 1
            self.connecting = asyncio.ensure_future(self.connect())

    async def connect(self):
        loop = asyncio.get_running_loop()
        try:
            if isinstance(self.address, tuple):
                await loop.create_connection(lambda: _Client(self), *self.address)
            else:
                await loop.create_unix_connection(lambda: _Client(self), str(self.address))
        except OSError:
            self.report.counts[("connect", "refused")] = (
                self.report.counts.get(("connect", "refused"), 0) + 1
            )
            self.ended_one()

    async def main(self, pipe):
        self.done = asyncio.Event()
        self.live = self.count_of_clients
        for _ in range(self.count_of_clients):
            await self.connect()
        pipe.send("started")
        end = time.monotonic() + self.seconds
        while not self.done.is_set() and time.monotonic() < end and not pipe.poll():
            await asyncio.sleep(0.02)
        self.over = True
        try:
            await asyncio.wait_for(self.done.wait(), self.grace)
        except asyncio.TimeoutError:
            waiting = [c.case for c in self.clients if c.case]
            for case in waiting:
                self.note_wrong(case, f"no answer within {self.grace} s")
        return self.report


def _process(plan, pipe):
    run = _Run(plan)
    pipe.send(asyncio.run(run.main(pipe)))


class Load:
    """Runs in a process of its own between `with` and `finish`."""

    def __init__(
        self,
        daemon,
        cases,
        clients=64,
        seconds=60.0,
        allowed=(),
        stopping=False,
        grace=30.0,
        seed=1,
    ):
        self.plan = {
            "address": daemon.address,
            "cases": cases,
            "count_of_clients": clients,
            "seconds": seconds,
            "allowed": tuple(allowed),
            "stopping": stopping,
            "grace": grace,
            "seed": seed,
        }

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_process, args=(self.plan, theirs), daemon=True)
        self.process.start()
        theirs.close()
        assert self.pipe.recv() == "started"
        return self

    def finish(self, wait=False):
        """Ends the load (wait: lets its seconds pass first) and gives the report."""
        if not wait:
            with contextlib.suppress(BrokenPipeError):  # it has ended by itself
                self.pipe.send("stop")
        report = self.pipe.recv()
        self.process.join(10)
        return report

    def __exit__(self, *_):
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def reference(daemon, name, request, status=200):
    """A Case whose expected body is what the request gets alone, twice the same."""
    with daemon.connect() as connection:
        first = connection.exchange(request)
        second = connection.exchange(request)
    assert first.status == second.status == status, (name, first)
    assert first.body == second.body, f"{name}: two answers to one request differ"
    return Case(name, request, first.body, status)
