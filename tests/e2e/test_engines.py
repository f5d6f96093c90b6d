"""Several engines: who answers what, who stands in for whom, what --engine asks for.

The CUDA engine is played by a stand-in with the host engine's code (tests/doubles), so that its
answers have the same bits as the host's; invertd_device_batches_total says who gave them.
"""

import os
import shutil
import signal
import time

import numpy as np
import pytest

from harness import matrices
from harness.codec import Client, infer_bytes, v2_binary
from harness.daemon import Daemon, alive, cuda_double, run_once, wait_until
from harness.load import Load, reference
from harness.settings import CUDA_DOUBLE, FAULT_KILLS, fewer, scaled_timeout

pytestmark = pytest.mark.faults

POISON = 12345.0
CUDA = "invertd-cuda"


def ask(method, n, batch=1):
    return infer_bytes(method, v2_binary, {"A": matrices.random(n, seed=n, batch=batch)})


def pool(daemon):
    """What CUDA takes, in several orders and batches."""
    shapes = ((2, 1), (8, 9), (8, 1), (32, 2))
    return [reference(daemon, f"{n} x {b}", ask("lu", n, b)) for n, b in shapes]


def batches(daemon, device):
    return daemon.metrics().total("invertd_device_batches_total", device=device)


def up(daemon):
    """Devices that are up, and those that are known and are not."""
    series = daemon.metrics().select("invertd_device_up")
    named = {dict(labels)["device"]: value for labels, value in series.items()}
    return {d for d, v in named.items() if v == 1}, {d for d, v in named.items() if v == 0}


def restarts(daemon, **labels):
    return daemon.metrics().total("invertd_engine_restarts_total", **labels)


def spare_restarts(daemon, **labels):
    spares = ("cuda:0-spare", "cuda:0-spare-2", "cuda:0-spare-3")
    return sum(restarts(daemon, device=spare, **labels) for spare in spares)


def poisoned(n=8):
    a = matrices.random(n)
    a[0, 0] = POISON
    return infer_bytes("lu", v2_binary, {"A": a[None]})


def logged(daemon, device):
    """The lines of the log that tell of a device."""
    lines = daemon.log_lines()
    return [line for line in lines if line.get("device") == device]


# ---- Who answers what ----


@pytest.mark.parametrize(
    "method, n, device",
    [
        ("lu", 1, "cuda:0"),
        ("lu", 32, "cuda:0"),
        ("lu_factor", 8, "cuda:0"),
        ("lu", 33, "host"),
        ("auto", 8, "host"),
        ("gauss_jordan", 8, "host"),
    ],
)
def test_routes(method, n, device):
    with Daemon(cuda="") as daemon:
        assert daemon.talk(ask(method, n)).status == 200
        page = daemon.metrics()
        assert page.total("invertd_device_batches_total", device=device) == 1
        assert page.total("invertd_device_batches_total") == 1
        assert page.total("invertd_device_matrices_total", device=device) == 1
        assert page.total("invertd_device_info", device="cuda:0", model="double") == 1


def test_every_device_is_used():
    with Daemon(cuda="devices:3") as daemon:
        assert up(daemon) == ({"host", "cuda:0", "cuda:1", "cuda:2"}, set())
        wait_until(lambda: len(daemon.engines(CUDA)) == 12, 5, "three spare engines for each")
        with Load(daemon, pool(daemon), clients=48, seconds=1e6) as load:
            for device in ("cuda:0", "cuda:1", "cuda:2"):
                wait_until(lambda d=device: batches(daemon, d) > 10, 10, f"batches on {device}")
            load.finish().assert_perfect()
        assert batches(daemon, "host") == 0


def test_listed_devices_alone_are_used():
    with Daemon("--engine", "cuda:1", cuda="devices:3") as daemon:
        assert up(daemon) == ({"host", "cuda:1"}, set())
        assert daemon.talk(ask("lu", 8)).status == 200
        assert batches(daemon, "cuda:1") == 1
        wait_until(lambda: len(daemon.engines(CUDA)) == 4, 5, "its spare engines")


def test_host_alone_when_asked():
    with Daemon("--engine", "host", cuda="") as daemon:
        assert daemon.talk(ask("lu", 8)).status == 200
        assert up(daemon) == ({"host"}, set())
        assert daemon.engines(CUDA) == []


def test_shared_the_host_helps():
    with Daemon("--engine", "cuda+host", "--in-flight", "1", cuda="slow:2000") as daemon:
        with Load(daemon, pool(daemon), clients=32, seconds=1e6) as load:
            wait_until(lambda: batches(daemon, "host") > 10, 10, "batches on the host")
            wait_until(lambda: batches(daemon, "cuda:0") > 10, 10, "batches on CUDA")
            load.finish().assert_perfect()


# ---- Ends of engines ----


@pytest.mark.timeout(60 + 5 * FAULT_KILLS)
def test_killed_cuda_engines_are_invisible():
    """No failed and no wrong answer, and the host never stands in: a matrix keeps its bits."""
    with Daemon(cuda="devices:2") as daemon:
        with Load(daemon, pool(daemon), clients=24, seconds=1e6) as load:
            kills, slowest, killed = fewer(FAULT_KILLS), 0, []
            for _ in range(kills):
                time.sleep(0.1)
                engines = wait_until(lambda: daemon.engines(CUDA), 10, "an engine to kill")
                start = time.monotonic()
                os.kill(engines[0], signal.SIGKILL)
                killed.append(engines[0])
                both = {"cuda:0", "cuda:1"}
                wait_until(lambda: not alive(engines[0]), 5, "its end")
                wait_until(lambda: both <= up(daemon)[0], 10, "both devices")
                slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.3)
            report = load.finish()
        report.assert_perfect()
        assert report.of(200) == report.answered
        assert slowest <= scaled_timeout(2), f"an engine took {slowest:.2f} s to come back"
        assert restarts(daemon, reason="died") >= kills
        assert restarts(daemon, device="host") == 0
        assert batches(daemon, "host") == 0


@pytest.mark.parametrize("code, reason", [("", "died"), (",exit:10", "device_fault")])
def test_poison_is_found_in_its_place(code, reason):
    """The spare engine is CUDA's too, and the host's engine never sees the poison."""
    with Daemon(cuda=f"poison:{POISON:g}{code}") as daemon:
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            for _ in range(fewer(3)):
                time.sleep(0.2)
                answer = daemon.talk(poisoned())
                assert answer.status == 500, answer
            report = load.finish()
        report.assert_perfect()
        assert report.of(200) == report.answered
        assert restarts(daemon, device="cuda:0", reason=reason) >= 1
        assert spare_restarts(daemon, reason=reason) >= 2
        assert restarts(daemon, device="host") == 0
        assert batches(daemon, "host") == 0


def test_one_spare_engine_goes_on_while_the_other_is_replaced():
    """Engines need a second to come up, and those of one device come up one after the other. Who
    shares a batch with the poison waits for the device's own and the two spare ones at most: not
    for one of them to be replaced."""
    options = ("--in-flight", "1", "--cuda-spares", "0")
    with Daemon(*options, cuda=f"poison:{POISON:g},start:1000,slow:2000") as daemon:
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            time.sleep(0.2)
            start = time.monotonic()
            answer = daemon.talk(poisoned())
            poison_s = time.monotonic() - start
            time.sleep(0.5)
            report = load.finish()
        assert answer.status == 500, answer
        report.assert_perfect()
        assert spare_restarts(daemon, reason="died") == 2
        assert poison_s < scaled_timeout(3.7), f"the verdict took {poison_s:.2f} s"
        assert report.slowest < scaled_timeout(3.7), f"somebody waited {report.slowest:.2f} s"


def test_silent_cuda_engine_is_replaced():
    with Daemon("--engine-heartbeat", "500ms", cuda="") as daemon:
        engines = daemon.engines(CUDA)
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            os.kill(engines[0], signal.SIGSTOP)
            daemon.new_engine(engines, name=CUDA, device="cuda:0")
            time.sleep(0.2)
            load.finish().assert_perfect()
        assert restarts(daemon, device="cuda:0", reason="heartbeat") == 1


def test_restart_counters_exist_before_the_first():
    """A rate sees the first crash only as the growth of a count that was there before."""
    names = {"died", "heartbeat", "deadline", "start", "wrong_answer"}
    device_names = names | {"device_fault", "device_out"}
    expected = {(device, name) for device in ("host", "host-spare") for name in names}
    with Daemon("--engine", "host") as daemon:
        series = daemon.metrics().select("invertd_engine_restarts_total")
        assert {(dict(k)["device"], dict(k)["reason"]) for k in series} == expected
    for device in ("cuda:0", "cuda:0-spare", "cuda:0-spare-2", "cuda:0-spare-3"):
        expected |= {(device, name) for name in device_names}
    with Daemon(cuda="") as daemon:
        series = daemon.metrics().select("invertd_engine_restarts_total")
        assert {(dict(k)["device"], dict(k)["reason"]) for k in series} == expected
        assert set(series.values()) == {0}
        engines = daemon.engines()
        os.kill(engines[0], signal.SIGKILL)
        daemon.new_engine(engines)
        page = daemon.metrics()
        assert page.total("invertd_engine_restarts_total") == 1
        assert page.total("invertd_engine_restarts_total", device="host", reason="died") == 1


def test_every_device_is_probed():
    """No one asks for anything, and the probe's matrix, which begins with 4, ends cuda:2 alone."""
    with Daemon(cuda="devices:3,only:2,poison:4") as daemon:
        wait_until(lambda: restarts(daemon, device="cuda:2", reason="died") >= 2, 10, "its ends")
        assert daemon.is_ready()
        assert {"host", "cuda:0", "cuda:1"} <= up(daemon)[0]
        page = daemon.metrics()
        name = "invertd_engine_restarts_total"
        assert page.total(name) == page.total(name, device="cuda:2")
        with Load(daemon, pool(daemon), clients=8, seconds=1) as load:
            load.finish(wait=True).assert_perfect()


# ---- Devices out of order ----


def test_host_takes_over_from_a_device_out_of_order():
    """No one is blamed, nothing fails, and the device is tried again."""
    with Daemon("--engine-backoff-max", "1500ms", cuda=f"poison:{POISON:g},exit:11") as daemon:
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            time.sleep(0.2)
            assert daemon.talk(poisoned()).status == 200
            assert up(daemon) == ({"host"}, {"cuda:0"})
            assert daemon.is_ready()
            before = batches(daemon, "host")
            assert before > 0
            wait_until(lambda: batches(daemon, "host") > before, 5, "the host at work")
            wait_until(lambda: "cuda:0" in up(daemon)[0], 5, "the device again")
            before = batches(daemon, "cuda:0")
            wait_until(lambda: batches(daemon, "cuda:0") > before, 5, "the device at work again")
            report = load.finish()
        report.assert_perfect()
        assert report.of(200) == report.answered
        assert restarts(daemon, device="cuda:0", reason="device_out") == 1
        assert spare_restarts(daemon) == 0
        assert [line["level"] for line in logged(daemon, "cuda:0")].count("error") == 1
        before = batches(daemon, "host")
        assert daemon.talk(ask("lu", 8)).status == 200
        assert batches(daemon, "host") == before


def test_other_devices_do_the_work_of_one_that_is_out():
    with Daemon("--engine-backoff-max", "100ms", cuda="devices:2,out:0") as daemon:
        assert up(daemon) == ({"host", "cuda:1"}, {"cuda:0"})
        assert daemon.talk(ask("lu", 8)).status == 200
        assert batches(daemon, "cuda:1") == 1
        wait_until(lambda: restarts(daemon, device="cuda:0") >= 3, 5, "further tries")
        assert [line["level"] for line in logged(daemon, "cuda:0")].count("error") == 1


def test_no_device_means_the_host_alone():
    with Daemon(cuda="devices:0") as daemon:
        assert daemon.talk(ask("lu", 8)).status == 200
        assert batches(daemon, "host") == 1
        time.sleep(0.3)
        assert up(daemon) == ({"host"}, set())
        assert restarts(daemon) == 0
        assert len(logged(daemon, "cuda:0")) == 1


@pytest.mark.timeout(60)
def test_engine_that_cannot_be_started_again(tmp_path):
    """Its program is gone: the host takes over, and gives the work back when it is there again."""
    program = tmp_path / "engine"
    shutil.copy(CUDA_DOUBLE, program)
    options = ("--engine-cuda-path", program, "--engine-backoff-max", "500ms")
    with Daemon("--cuda-spares", "0", *options) as daemon:
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            program.rename(tmp_path / "away")
            os.kill(daemon.engines(CUDA)[0], signal.SIGKILL)
            wait_until(lambda: batches(daemon, "host") > 10, 10, "the host at work")
            (tmp_path / "away").rename(program)
            wait_until(lambda: "cuda:0" in up(daemon)[0], 10, "the engine again")
            load.finish().assert_perfect()


# ---- The start ----


@pytest.mark.parametrize(
    "engine, faults, words",
    [
        ("cuda", "devices:0", ["cuda:0", "no such device"]),
        ("cuda:0,1", "devices:1", ["cuda:1", "no such device"]),
        ("cuda+host", "out:0", ["cuda:0", "out of order"]),
        ("cuda:0", "mismatch:1", ["contract", "cuda-double"]),
        ("auto", "mismatch:1", ["contract", "cuda-double"]),
        ("cuda:0", "nonsense:1", ["cuda:0", "again and again"]),
    ],
)
def test_engines_that_must_be_there(engine, faults, words):
    result = run_once("--listen", "127.0.0.1:0", "--engine", engine, *cuda_double(faults))
    assert result.returncode == 1, result
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize("engine", ["auto", "cuda"])
def test_missing_program_is_an_error_when_it_is_named(engine):
    missing = ("--engine", engine, "--engine-cuda-path", "/nonexistent/engine")
    result = run_once("--listen", "127.0.0.1:0", *missing)
    assert result.returncode == 1
    assert "/nonexistent/engine" in result.stderr and "--engine-cuda-path" in result.stderr


def test_engine_that_never_comes_up_is_done_without():
    """By auto: a driver half installed, say."""
    with Daemon(cuda="nonsense:1") as daemon:
        assert daemon.talk(ask("lu", 8)).status == 200
        assert batches(daemon, "host") == 1
        errors = [x for x in logged(daemon, "cuda:0") if x["message"] == "device out of service"]
        assert len(errors) == 1 and errors[0]["level"] == "error"


def test_answers_are_right():
    with Daemon(cuda="devices:2") as daemon:
        client = Client(daemon)
        for n in (1, 2, 31, 32, 33):
            a = matrices.random(n, batch=5)
            matrices.check_answers(a, client.outputs("lu", {"A": a}))
        factors = client.outputs("lu_factor", {"A": np.eye(3)[None] * 2})
        assert factors["PIVOTS"].tolist() == [[1, 2, 3]]
