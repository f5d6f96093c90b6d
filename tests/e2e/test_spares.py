"""Spare CUDA engines, which are kept up: they take over at once, and run suspects at once.

The CUDA engine is the stand-in of test_engines.py, slow to start: a test that waits for a new one
is late by START_S.
"""

import os
import shutil
import signal
import time

import pytest

from harness import matrices
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, alive, wait_until
from harness.load import Load, reference
from harness.settings import CUDA_DOUBLE, SIMT_FAULT_ENGINE, scaled_timeout

pytestmark = [pytest.mark.faults, pytest.mark.timeout(90)]

POISON = 12345.0
CUDA = "invertd-cuda"
START_S = 1.6
SLOW_START = f"start:{START_S * 1000:g}"
AT_ONCE_S = 1  # well below START_S


def pool(daemon):
    shapes = ((2, 1), (8, 9), (8, 1), (32, 2))
    return [
        reference(daemon, f"{n} x {b}",
                  infer_bytes("lu", v2_binary, {"A": matrices.random(n, seed=n, batch=b)}))
        for n, b in shapes
    ]


def poisoned(n=8):
    a = matrices.random(n)
    a[0, 0] = POISON
    return infer_bytes("lu", v2_binary, {"A": a[None]})


def total(daemon, name, **labels):
    return daemon.metrics().total(f"invertd_{name}", **labels)


def restarts(daemon, **labels):
    return total(daemon, "engine_restarts_total", **labels)


def takeovers(daemon):
    return total(daemon, "engine_takeovers_total", device="cuda:0")


def wait_spares(daemon, count):
    """Until so many are up, and no other process of CUDA's is left but the device's own."""

    def complete():
        spares = total(daemon, "device_spares", device="cuda:0")
        return spares == count and len(daemon.engines(CUDA)) == 1 + count

    wait_until(complete, 3 + (count + 1) * START_S, f"{count} spare engines", every=0.05)


def sitter(daemon, device):
    """The process that was last said to be the device's."""
    words = ("engine started", "a spare engine takes over")
    lines = daemon.log_lines()
    return [x["pid"] for x in lines if x.get("device") == device and x["message"] in words][-1]


def judge(report, slowest=AT_ONCE_S):
    report.assert_perfect()
    assert report.of(200) == report.answered
    assert report.slowest < scaled_timeout(slowest), f"somebody waited {report.slowest:.2f} s"


def test_a_spare_engine_takes_over():
    """Deaths of the device's own engine are not worth a cold start, one after the other."""
    with Daemon("--cuda-spares", "2", cuda=SLOW_START) as daemon:
        wait_spares(daemon, 2)
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            for count in (1, 2):
                time.sleep(0.2)
                os.kill(sitter(daemon, "cuda:0"), signal.SIGKILL)
                wait_until(lambda c=count: takeovers(daemon) == c, AT_ONCE_S, "a takeover")
                wait_until(lambda: total(daemon, "device_up", device="cuda:0") == 1, 1, "up")
            time.sleep(0.3)
            report = load.finish()
        judge(report)
        assert restarts(daemon, device="cuda:0", reason="died") == 2
        assert restarts(daemon) == 2
        assert total(daemon, "device_batches_total", device="host") == 0
        wait_spares(daemon, 2)


def test_a_silent_engine_is_not_waited_for():
    """Its own end may be slow: who takes over does so when it is given up."""
    with Daemon("--cuda-spares", "2", "--engine-heartbeat", "500ms", cuda=SLOW_START) as daemon:
        wait_spares(daemon, 2)
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            os.kill(sitter(daemon, "cuda:0"), signal.SIGSTOP)
            wait_until(lambda: takeovers(daemon) == 1, 2, "a takeover")
            time.sleep(0.2)
            report = load.finish()
        judge(report, 0.5 + AT_ONCE_S)
        assert restarts(daemon, device="cuda:0", reason="heartbeat") == 1


@pytest.mark.parametrize("spares, slowest", [(3, AT_ONCE_S), (2, START_S + AT_ONCE_S)])
def test_poison_is_found_at_once(spares, slowest):
    """One spare engine takes over, one dies of the poison, and one answers those who did nothing
    wrong. With two they may have to wait for another, not for two."""
    faults = f"poison:{POISON:g},exit:10,slow:2000,{SLOW_START}"
    with Daemon("--in-flight", "1", "--cuda-spares", spares, cuda=faults) as daemon:
        wait_spares(daemon, spares)
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            time.sleep(0.2)
            start = time.monotonic()
            assert daemon.talk(poisoned()).status == 500
            took = time.monotonic() - start
            time.sleep(0.3)
            report = load.finish()
        judge(report, slowest)
        assert took < scaled_timeout(slowest), f"the verdict took {took:.2f} s"
        assert restarts(daemon, device="cuda:0", reason="device_fault") == 1
        assert restarts(daemon, reason="device_fault") == 3
        assert total(daemon, "device_batches_total", device="host") == 0
        wait_spares(daemon, spares)


def test_an_engine_that_is_reaped_late():
    """As one on a device is. A successor does not wait for that; batches that ran with the poison
    do, for their memory may still be written to, and no one else."""
    end_s = 1.4
    faults = f"poison:{POISON:g},exit:10,slow:2000,end:{end_s * 1000:g},{SLOW_START}"
    with Daemon("--in-flight", "1", "--cuda-spares", "3", cuda=faults) as daemon:
        wait_spares(daemon, 3)
        if "the end will not be slow" in daemon.stderr():
            pytest.skip("no process may trace another one here")
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            time.sleep(0.2)
            with daemon.connect() as connection:
                connection.send(poisoned())
                wait_until(lambda: takeovers(daemon) == 1, AT_ONCE_S, "a takeover")
                before = total(daemon, "device_batches_total", device="cuda:0")
                wait_until(lambda: total(daemon, "device_batches_total", device="cuda:0")
                           > before + 10, AT_ONCE_S, "its work")
                assert "engine ended" not in daemon.stderr()
                assert connection.read().status == 500
            report = load.finish()
        judge(report, end_s + AT_ONCE_S)
        assert restarts(daemon, reason="device_fault") == 3


@pytest.mark.skipif(not os.access(SIMT_FAULT_ENGINE, os.X_OK), reason="not in sanitizer builds")
@pytest.mark.timeout(150)
def test_a_device_fault():
    """The CUDA engine itself, with its kernels on the CPU, loses its context to a bad address. In
    batches of its own, so that no one else is suspect; its client leaves."""
    fault = ("--engine-cuda-path", SIMT_FAULT_ENGINE, "--fault-cuda", f"poison:{POISON:g}")
    options = ("--engine", "cuda:0", "--cuda-spares", "1", "--in-flight", "1", *fault)
    with Daemon(*options, ready=False) as daemon:
        daemon.wait_ready(60)
        wait_until(lambda: total(daemon, "device_spares", device="cuda:0") == 1, 60, "a spare one")
        lines = [line for line in daemon.log_lines() if line["message"] == "engine started"]
        start_s = min(x["start_ms"] for x in lines if x["device"].startswith("cuda")) / 1000
        with Load(daemon, pool(daemon), clients=4, seconds=1e6) as load:
            time.sleep(0.2)
            with daemon.connect() as connection:
                connection.send(poisoned(5))
                wait_until(lambda: takeovers(daemon) == 1, 5, "a takeover")
                time.sleep(0.3)
            report = load.finish()
        judge(report, start_s / 2)
        wait_until(lambda: restarts(daemon, device="cuda:0", reason="device_fault") == 1, 1, "one")


@pytest.mark.parametrize("how, reason", [(signal.SIGKILL, "died"), (signal.SIGSTOP, "heartbeat")])
def test_death_of_a_spare_engine(how, reason):
    """It is watched and replaced, and no one notices."""
    with Daemon("--cuda-spares", "2", "--engine-heartbeat", "500ms", cuda="start:300") as daemon:
        wait_spares(daemon, 2)
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            spare = sitter(daemon, "cuda:0-spare-2")
            os.kill(spare, how)
            wait_until(lambda: not alive(spare), 3, "its end")
            wait_spares(daemon, 2)
            report = load.finish()
        judge(report)
        assert restarts(daemon, device="cuda:0-spare-2", reason=reason) == 1
        assert restarts(daemon) == 1
        assert takeovers(daemon) == 0


def test_spare_engines_that_do_not_start(tmp_path):
    """Their program is gone: they are tried ever more seldom, and the device serves on."""
    program = tmp_path / "engine"
    shutil.copy(CUDA_DOUBLE, program)
    options = ("--engine-cuda-path", program, "--engine-backoff-max", "1s", "--cuda-spares", "2")
    with Daemon(*options) as daemon:
        wait_spares(daemon, 2)
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            program.rename(tmp_path / "away")
            for device in ("cuda:0-spare", "cuda:0-spare-2"):
                os.kill(sitter(daemon, device), signal.SIGKILL)
            time.sleep(2)
            tries = daemon.stderr().count("engine not started")
            assert tries <= 20, tries
            wait_until(lambda: daemon.stderr().count("engine not started") >= 4, 20, "more tries")
            assert total(daemon, "device_up", device="cuda:0") == 1
            assert total(daemon, "device_spares", device="cuda:0") == 0
            (tmp_path / "away").rename(program)
            wait_spares(daemon, 2)
            report = load.finish()
        judge(report)


def test_no_spare_engines():
    """Without them a death costs a start, and suspects wait for engines of their own."""
    faults = f"poison:{POISON:g},start:300"
    with Daemon("--cuda-spares", "0", cuda=faults) as daemon:
        assert len(daemon.engines(CUDA)) == 1
        with Load(daemon, pool(daemon), clients=8, seconds=1e6) as load:
            os.kill(sitter(daemon, "cuda:0"), signal.SIGKILL)
            time.sleep(0.5)
            assert daemon.talk(poisoned()).status == 500
            time.sleep(0.3)
            report = load.finish()
        judge(report, 3)
        assert report.slowest > 0.25
        assert takeovers(daemon) <= 1  # by an engine that was started for suspects
        wait_until(lambda: len(daemon.engines(CUDA)) == 1, 8, "the spare engines' end")


def test_device_out_of_order_has_no_spare_engines():
    """They end with the device's own engine, whatever they were used for a moment ago: wrong
    answers may be what is the matter with the device."""
    faults = f"poison:{POISON:g},exit:11,slow:2000"
    with Daemon("--engine-backoff-max", "60s", cuda=faults) as daemon:
        wait_spares(daemon, 3)
        with Load(daemon, pool(daemon), clients=16, seconds=1e6) as load:
            time.sleep(0.2)
            os.kill(sitter(daemon, "cuda:0"), signal.SIGKILL)  # with work under way: suspects
            wait_until(lambda: takeovers(daemon) == 1, AT_ONCE_S, "a takeover")
            assert daemon.talk(poisoned()).status == 200  # by the host
            wait_until(lambda: daemon.engines(CUDA) == [], AT_ONCE_S, "the end of all its engines")
            report = load.finish()
        judge(report)
        wait_until(lambda: total(daemon, "device_spares", device="cuda:0") == 0, 0.1, "none left")
        assert restarts(daemon, device="cuda:0", reason="device_out") == 1
        assert restarts(daemon) == restarts(daemon, device="cuda:0") == 2


def test_suspects_of_a_device_that_goes_out(tmp_path):
    """The engine of cuda:1 is lost, its successor says that the device is out of order, and the old
    one is not reaped yet: no engine is started on a device that no one asked for. The host's spare
    one has the suspects."""
    program, out = tmp_path / "engine", tmp_path / "out"
    shutil.copy(CUDA_DOUBLE, program)
    out.write_text("#!/bin/sh\nexit 11\n")
    out.chmod(0o755)
    faults = f"devices:2,poison:{POISON:g},exit:10,end:700"
    options = ("--engine", "cuda:1", "--cuda-spares", "0", "--engine-backoff-max", "60s",
               "--engine-cuda-path", program, "--fault-cuda", faults)
    with Daemon(*options) as daemon:
        out.rename(program)
        assert daemon.talk(poisoned()).status == 200
        lines = daemon.log_lines()
        assert {x["device"] for x in lines if "device" in x} == {"host", "host-spare", "cuda:1"}
        assert restarts(daemon, device="cuda:1", reason="device_fault") == 1
        assert restarts(daemon) == 2


def test_ready_and_stopped_before_they_are_up():
    """The service waits for them neither to be ready nor to end."""
    with Daemon(cuda="start:700") as daemon:
        assert total(daemon, "device_spares", device="cuda:0") == 0
        assert daemon.is_ready()
        wait_until(lambda: len(daemon.engines(CUDA)) == 2, 1, "a spare engine on the way")
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(0.6)
