"""Engines that die, hang, run out of memory or are poisoned; clients must not notice."""

import os
import signal
import struct
import threading
import time

import numpy as np
import pytest

from harness import codec, matrices
from harness.codec import Client, infer_bytes, v2_binary, v2_json
from harness.daemon import Daemon, alive, wait_until
from harness.load import Load, reference
from harness.settings import FAULT_KILLS, fewer, scaled_timeout

POISON = 12345.0


def pool(daemon):
    """A few requests of several orders, with the bodies they get alone."""
    cases = []
    for n, batch in ((2, 1), (8, 1), (8, 20), (32, 1), (32, 8), (60, 2)):
        a = matrices.random(n, seed=n + batch, batch=batch)
        cases.append(reference(daemon, f"{n} x {batch}", infer_bytes("lu", v2_binary, {"A": a})))
    text = infer_bytes("auto", v2_json, {"A": matrices.random(6, "f4")[None]})
    return cases + [reference(daemon, "json", text)]


def restarts(daemon):
    return daemon.metrics().total("invertd_engine_restarts_total")


class Probe:
    """Asks for /metrics every 50 ms on one connection and keeps the slowest answer's seconds."""

    def __init__(self, daemon):
        self.daemon, self.slowest, self.failure = daemon, 0.0, None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def _run(self):
        try:
            while not self.stop.wait(0.05):
                start = time.monotonic()
                self.daemon.metrics()
                self.slowest = max(self.slowest, time.monotonic() - start)
        except Exception as error:  # reported by __exit__, on the test's thread
            self.failure = error

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        assert self.failure is None, self.failure


@pytest.mark.timeout(60 + 5 * FAULT_KILLS)
def test_killed_engines_are_invisible():
    """SIGKILL of an engine under load, again and again: no failed and no wrong answer."""
    kills = fewer(FAULT_KILLS)
    with Daemon() as daemon:
        cases = pool(daemon)
        before = restarts(daemon)
        with Probe(daemon), Load(daemon, cases, clients=16, seconds=1e6) as load:
            slowest, killed, own = 0, [], 0
            for _ in range(kills):
                time.sleep(0.1)
                # The oldest is the device's own engine or a spare one, which comes again only
                # when it is needed.
                engines = wait_until(daemon.engines, 10, "an engine to kill")
                is_own = engines[0] == daemon.own_engine()
                start = time.monotonic()
                os.kill(engines[0], signal.SIGKILL)
                killed.append(engines[0])
                own += is_own
                if is_own:
                    daemon.new_engine(engines)
                    slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.3)
            report = load.finish()
        report.assert_perfect()
        assert report.of(200) == report.answered
        assert restarts(daemon) - before >= own > kills / 3
        assert slowest <= scaled_timeout(2), f"an engine took {slowest:.2f} s to come back"
        assert daemon.metrics().total("invertd_batch_retries_total") > 0
        assert not any(map(alive, killed))


@pytest.mark.timeout(90)
def test_idle_engine_killed():
    """Without work nothing is lost either, and the service is ready again."""
    with Daemon() as daemon:
        a = matrices.random(8)[None]
        for _ in range(3):
            engines = daemon.engines()
            os.kill(engines[0], signal.SIGKILL)
            assert Client(daemon).outputs("lu", {"A": a})["INFO"][0] == 0
            daemon.new_engine(engines)
        daemon.wait_ready()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("busy", [True, False], ids=["under load", "idle"])
def test_stopped_engine_is_replaced(busy):
    """SIGSTOP: noticed by the missing heartbeat, killed, replaced; /metrics answers throughout."""
    with Daemon() as daemon:
        cases = pool(daemon)
        engines = daemon.engines()
        with Probe(daemon) as probe, Load(
            daemon, cases if busy else cases[:1], clients=8, seconds=1e6
        ) as load:
            if not busy:
                load.finish()
            start = time.monotonic()
            os.kill(engines[0], signal.SIGSTOP)
            wait_until(lambda: not alive(engines[0]), 5, "the stopped engine's end")
            gone = time.monotonic() - start
            daemon.new_engine(engines)
            back = time.monotonic() - start
            if busy:
                time.sleep(0.3)
                load.finish().assert_perfect()
        assert 0.5 <= gone <= scaled_timeout(2) + 1.5, f"gone after {gone:.2f} s"
        assert back <= scaled_timeout(2) + 3, f"back after {back:.2f} s"
        assert probe.slowest <= scaled_timeout(0.5), f"/metrics took {probe.slowest:.2f} s"
        assert restarts(daemon) >= 1


def judge_drain(events, signalled):
    """Who was admitted was answered; who came later was answered, or refused whole."""
    answered_later = 0
    for sent, ended, outcome, fields in events:
        assert outcome in (200, 503, "lost"), (outcome, sent - signalled)
        if sent < signalled - 0.2:
            assert outcome == 200, f"{outcome}: sent {signalled - sent:.3f} s before the signal"
        elif sent < signalled:
            assert outcome != "lost", f"lost: sent {signalled - sent:.3f} s before the signal"
        if outcome == 503:
            fields = {name.lower(): value for name, value in fields}
            assert fields["connection"].lower() == "close" and int(fields["retry-after"]) >= 1
        answered_later += outcome == 200 and ended > signalled
    return answered_later


@pytest.mark.timeout(40 + 4 * FAULT_KILLS)
def test_drain_under_load():
    """SIGTERM under load: every request that was admitted is answered, and the exit is clean."""
    for _ in range(fewer(max(1, FAULT_KILLS // 4))):
        with Daemon() as daemon:
            cases = pool(daemon)
            with Load(daemon, cases, clients=24, seconds=1e6, allowed=[503], stopping=True) as load:
                time.sleep(0.5)
                signalled = time.monotonic()
                daemon.stop()
                report = load.finish()
            assert report.wrong_count == 0, report.wrong
            judge_drain(report.events, signalled)


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_drain_of_a_full_queue():
    """A slow engine: dozens of admitted requests wait at the signal, and all are answered."""
    with Daemon(
        "--batch-matrices-max", "4", "--in-flight", "1", "--threads", "1", fault="slow:100000"
    ) as daemon:
        case = reference(daemon, "a", infer_bytes("lu", v2_binary, {"A": np.eye(4)[None] * 2}))
        with Load(daemon, [case], clients=48, seconds=1e6, allowed=[503], stopping=True) as load:
            time.sleep(0.6)
            signalled = time.monotonic()
            daemon.stop()
            report = load.finish()
        assert report.wrong_count == 0, report.wrong
        assert judge_drain(report.events, signalled) >= 24


# ---- The fault build of the engine ----


def poisoned(n=8, value=POISON):
    a = matrices.random(n)
    a[0, 0] = value
    return infer_bytes("lu", v2_binary, {"A": a[None]})


@pytest.mark.faults
@pytest.mark.timeout(120)
def test_poison_item_is_found():
    """An item that kills its engine is answered 500; its neighbours are answered right."""
    with Daemon(fault=f"poison:{POISON:g}") as daemon:
        cases = pool(daemon)
        with Load(daemon, cases, clients=24, seconds=1e6) as load:
            for _ in range(fewer(3)):
                time.sleep(0.2)
                answer = daemon.talk(poisoned())
                assert answer.status == 500, answer
                assert "error" in answer.json() and answer.header("Content-Type")
            report = load.finish()
        report.assert_perfect()
        assert report.of(200) == report.answered
        assert restarts(daemon) >= 2
        problem = codec.Client(daemon).invert(codec.npy(np.eye(3) * POISON), codec.NPY)
        assert problem.status == 500
        assert problem.json()["type"].rstrip("/").endswith("engine-killed")
        wait_until(daemon.is_ready, 5, "ready after the poison")


@pytest.mark.faults
@pytest.mark.timeout(120)
def test_poison_in_a_batch_of_one_request():
    """One request of many matrices, one of them poison: 500 for it, and the service goes on."""
    with Daemon(fault=f"poison:{POISON:g}") as daemon:
        a = matrices.random(8, batch=200)
        a[77, 0, 0] = POISON
        assert Client(daemon).infer("lu", {"A": a}).status == 500
        a[77, 0, 0] = 1
        assert Client(daemon).outputs("lu", {"A": a})["INFO"].tolist() == [0] * 200


@pytest.mark.faults
@pytest.mark.timeout(120)
def test_hanging_batch_is_ended_at_its_deadline():
    with Daemon("--batch-deadline", "500ms", fault=f"hang:{POISON:g}") as daemon:
        cases = pool(daemon)
        with Probe(daemon) as probe, Load(daemon, cases, clients=16, seconds=1e6) as load:
            start = time.monotonic()
            answer = daemon.talk(poisoned())
            took = time.monotonic() - start
            report = load.finish()
        assert answer.status == 500, answer
        assert took <= scaled_timeout(10), took
        report.assert_perfect()
        assert restarts(daemon) >= 2
        assert probe.slowest <= scaled_timeout(0.5), f"/metrics took {probe.slowest:.2f} s"


@pytest.mark.faults
def test_out_of_device_memory_halves_batches():
    with Daemon("--batch-wait-us", "20000", fault="oom:4") as daemon:
        a = infer_bytes("lu", v2_binary, {"A": matrices.random(8)[None]})
        cases = [reference(daemon, "a", a)]
        with Load(daemon, cases, clients=32, seconds=2) as load:
            report = load.finish(wait=True)
        report.assert_perfect()
        page = daemon.metrics()
        assert page.total("invertd_batch_retries_total", reason="out_of_memory") > 0
        assert page.total("invertd_engine_restarts_total") == 0


def test_live_throughout_and_ready_again():
    """Live while the only engine is being replaced, and ready again by a probe, without clients."""
    with Daemon("--engine-heartbeat", "1s") as daemon:
        engine = daemon.engines()[0]
        os.kill(engine, signal.SIGSTOP)
        start = time.monotonic()
        while alive(engine):
            assert daemon.get("/livez").status == 200
            assert daemon.get("/readyz").status in (200, 503)
            assert time.monotonic() - start < scaled_timeout(4), "the lost heartbeat is not noticed"
            time.sleep(0.05)
        daemon.wait_ready()
        assert time.monotonic() - start < scaled_timeout(6)


def test_engines_end_with_the_front():
    """kill -9 of the front: its engines see their control socket close, and end by themselves."""
    with Daemon() as daemon:
        engines = daemon.engines()
        assert engines
        daemon.process.kill()
        daemon.process.wait()
        wait_until(lambda: not any(map(alive, engines)), 3, "the engines' end")


def test_engines_see_only_what_they_need():
    """Descriptors and environment of an engine are an allow-list."""
    with Daemon(env={"SECRET_OF_THE_FRONT": "1", "OPENBLAS_NUM_THREADS": "4"}) as daemon:
        with daemon.connect():
            pid = daemon.engines()[0]
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            targets = {
                fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")
            }
        assert b"SECRET_OF_THE_FRONT" not in environment
        assert b"OPENBLAS_NUM_THREADS=1" in environment.split(b"\0")
        sockets = {fd for fd, target in targets.items() if target.startswith("socket:")}
        assert sockets == {"0"}, targets  # the control socket, and no client's


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_departed_clients_cost_nothing():
    """Clients that leave while they wait are dropped before their work starts: at once where the
    system says that they have gone, else once they were probed, a second later."""
    with Daemon(
        "--batch-matrices-max", "1", "--in-flight", "1", "--threads", "1", fault="slow:100000"
    ) as daemon:
        request = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
        time.sleep(0.2)
        connections = [daemon.connect() for _ in range(60)]
        for connection in connections:
            connection.send(request)
        time.sleep(0.2)
        for i, connection in enumerate(connections):
            if i % 2:  # a reset
                connection.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER
            connection.close()
        cancelled = lambda: daemon.metrics().total("invertd_cancelled_total", reason="client_left")
        wait_until(lambda: cancelled() >= 35, 4, "35 cancelled requests")
        done = daemon.metrics().total("invertd_inversions_total", method="lu")
        assert done <= 25, "work of departed clients was done"
        assert daemon.talk(request).status == 200
        daemon.wait_idle_arena(5)


@pytest.mark.faults
def test_request_timeout_is_504():
    """The service's own deadline, while the engine still holds the work."""
    options = ("--request-timeout", "300ms", "--batch-deadline", "1500ms")
    with Daemon(*options, fault=f"hang:{POISON:g}") as daemon:
        start = time.monotonic()
        answer = daemon.talk(poisoned())
        assert answer.status == 504 and "within 300 ms" in answer.json()["error"], answer
        assert 0.25 <= time.monotonic() - start <= scaled_timeout(1)
        problem = Client(daemon).invert(codec.npy(np.eye(3) * POISON), codec.NPY)
        assert problem.status == 504
        assert problem.json()["type"].rstrip("/").endswith("deadline-passed")


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_timeouts_drop_the_work():
    with Daemon(
        "--batch-matrices-max", "1", "--in-flight", "1", "--threads", "1", fault="slow:200000"
    ) as daemon:
        late = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]}, parameters={"timeout": 300000})
        connections = [daemon.connect() for _ in range(12)]
        for connection in connections:
            connection.send(late)
        statuses = [connection.read().status for connection in connections]
        assert set(statuses) <= {200, 504} and statuses.count(504) >= 6, statuses
        assert daemon.metrics().total("invertd_cancelled_total", reason="timeout") >= 6
        assert daemon.metrics().total("invertd_inversions_total", method="lu") <= 8
        for connection in connections:
            connection.close()
