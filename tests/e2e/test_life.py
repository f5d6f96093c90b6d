"""Starting, stopping, listening, logging."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.codec import JSON, infer_bytes, v2_binary
from harness.daemon import Daemon, clean_environment, run_once, wait_until
from harness.settings import DAEMON, ENGINE, SANITIZER, scaled_timeout

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})


# ---- Starting ----


def test_missing_engine_is_an_error():
    result = run_once("--listen", "127.0.0.1:0", "--engine-path", "/nonexistent/invertd-host")
    assert result.returncode == 1
    assert "/nonexistent/invertd-host" in result.stderr


def test_engine_that_is_no_engine_is_an_error():
    result = run_once("--listen", "127.0.0.1:0", "--engine-path", "/etc/passwd")
    assert result.returncode == 1 and "/etc/passwd" in result.stderr


def test_taken_port_is_an_error(daemon):
    result = run_once("--listen", daemon.url)
    assert result.returncode == 1
    assert daemon.url in result.stderr or str(daemon.address[1]) in result.stderr
    assert "use" in result.stderr


def test_two_daemons_side_by_side(daemon):
    with Daemon() as other:
        assert other.address != daemon.address
        assert other.talk(REQUEST).body == daemon.talk(REQUEST).body


def test_closed_standard_descriptors(tmp_path):
    """As some supervisors start a service; none of its sockets takes their place."""
    port_file = tmp_path / "port"
    command = [str(DAEMON), "--listen", "127.0.0.1:0", "--port-file", str(port_file)]
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], env=clean_environment()
    )
    try:
        wait_until(lambda: port_file.exists() and port_file.read_text(), 60, "a port")
        for fd in range(3):
            assert os.readlink(f"/proc/{process.pid}/fd/{fd}") == "/dev/null"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=scaled_timeout(60)) == 0
    finally:
        process.kill()
        process.wait()


def test_ready_only_once_an_engine_works():
    with Daemon(ready=False) as daemon:
        assert daemon.get("/v2/health/live").status == 200
        assert daemon.get("/v2/health/ready").status in (200, 503)
        daemon.wait_ready()


def test_requests_before_the_engine_is_up_are_answered():
    with Daemon(ready=False) as daemon:
        answer = daemon.talk(REQUEST)
        assert answer.status in (200, 503), answer
        if answer.status == 503:
            assert int(answer.header("Retry-After")) >= 1


def test_forced_cpu_is_reported():
    """--cpu picks the kernel family, which decides the answers' bits."""
    with Daemon("--cpu", "Nehalem") as daemon:
        assert daemon.metrics().total("invertd_build_info", cpu="Nehalem") == 1
        a = matrices.random(100, batch=2)
        outputs = codec.v2_outputs(daemon.talk(infer_bytes("lu", v2_binary, {"A": a})))
        matrices.check_answers(a, outputs)


def test_unknown_cpu_is_refused():
    """Nothing but the kernels asked for gives the bits asked for. Names that exist are listed."""
    result = run_once("--listen", "127.0.0.1:0", "--cpu", "Foo")
    assert result.returncode == 2
    assert '--cpu "Foo"' in result.stderr and "Haswell|SkylakeX" in result.stderr
    assert "serving" not in result.stderr


def test_probes_are_not_counted():
    with Daemon() as daemon:
        time.sleep(2.5)  # at least one probe
        page = daemon.metrics()
        assert page.total("nv_inference_exec_count") == 0
        assert page.total("invertd_batches_total") == 0
        assert page.total("invertd_batch_size_count") == 0


def test_help_and_version():
    result = run_once("--help")
    assert result.returncode == 0
    for option in ("--listen", "--arena-size", "--drain-timeout", "--queue-max", "--config"):
        assert option in result.stdout
    version = run_once("--version")
    assert version.returncode == 0 and version.stdout.startswith("invertd ")


@pytest.mark.parametrize("limit", [8, 20, 60])
def test_too_few_descriptors_are_an_error(limit):
    shell = f'ulimit -n {limit}; exec "$0" --listen 127.0.0.1:0 --loops 1'
    result = subprocess.run(
        ["sh", "-c", shell, str(DAEMON)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=scaled_timeout(10),
    )
    assert result.returncode == 1, result
    assert f"open files is {limit}; at least" in result.stderr, result.stderr


# ---- Listening ----


def test_unix_socket(tmp_path):
    path = tmp_path / "socket"
    with Daemon(listen=f"unix:{path}") as daemon:
        assert codec.v2_outputs(daemon.talk(REQUEST))["INFO"].tolist() == [0]
        assert daemon.get("/").status == 200
    with Daemon(listen=f"unix:{path}") as again:
        assert again.talk(REQUEST).status == 200


def test_options_of_the_server_itself(daemon):
    answer = daemon.talk(wire.request("OPTIONS", "*"))
    assert answer.status == 204 and answer.header("Allow") == "GET, HEAD, POST, OPTIONS"


def test_metrics_listener():
    port = wire.free_port()
    with Daemon("--metrics-listen", f"127.0.0.1:{port}", ready=False) as daemon:
        side = ("127.0.0.1", port)

        def ready():
            return wire.talk(side, wire.request("GET", "/readyz")).status == 200

        wait_until(ready, 10, "ready")
        assert daemon.talk(REQUEST).status == 200
        assert "invertd_requests_total" in wire.talk(side, wire.request("GET", "/metrics")).text
        assert wire.talk(side, wire.request("GET", "/livez")).status == 200
        for path in ("/metrics", "/readyz", "/livez"):
            answer = daemon.get(path)
            assert answer.status == 404
            assert answer.json()["detail"].endswith("served on the address of --metrics-listen.")
        assert "openapi" in daemon.get("/nowhere").json()["detail"]
        assert wire.talk(side, REQUEST).status == 404


def test_loopback_is_the_default():
    lines = run_once("--print-config").stdout.splitlines()
    assert any(line.replace(" ", "") == "listen=127.0.0.1:8000" for line in lines), lines


def test_keep_alive_and_idle_timeout():
    with Daemon("--idle-timeout", "1s") as daemon, daemon.connect() as connection:
        for _ in range(3):
            assert connection.exchange(REQUEST).status == 200
        start = time.monotonic()
        assert connection.ended(scaled_timeout(5))
        assert time.monotonic() - start >= 0.5


def test_connections_max():
    with Daemon("--connections-max", "16") as daemon:
        held = [daemon.connect() for _ in range(40)]
        time.sleep(0.2)
        answers = [connection.exchange(REQUEST) for connection in held]
        assert [answer.status for answer in answers].count(200) == 16
        for connection, answer in zip(held, answers):
            if answer.status != 200:
                assert "later" in answer.text, answer
                assert answer.status == 503 and int(answer.header("Retry-After")) >= 1
                assert connection.ended(scaled_timeout(2))
        for connection in held:
            connection.close()
        wait_until(lambda: daemon.is_ready(), 5, "room again")


# ---- Stopping ----


def test_a_clean_stop_reads_as_one():
    """An engine that is reported to go leaves no signal in the log; one that is killed does."""
    with Daemon() as daemon:
        engines = daemon.engines()
        os.kill(engines[0], signal.SIGKILL)
        daemon.new_engine(engines)
        lines = [json.loads(line) for line in daemon.stop().splitlines()]
    (ended,) = [line for line in lines if line["message"] == "engine ended"]
    assert ended["signal"] == signal.SIGKILL and ended["reason"] == "died"
    (stopped,) = [line for line in lines if line["message"] == "engine stopped"]
    assert stopped["reason"] == "stopped" and stopped["level"] == "info"
    assert "signal" not in stopped and "exit" not in stopped


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_clean_end(number):
    with Daemon() as daemon:
        assert daemon.talk(REQUEST).status == 200
        idle = daemon.connect()
        start = time.monotonic()
        daemon.stop(number)
        assert time.monotonic() - start < scaled_timeout(5), "an idle connection held it up"
        idle.close()


def test_a_terminal_signals_the_front_alone(tmp_path):
    """Ctrl-C is sent to all of the foreground: to engines that are starting it is nothing."""
    program = tmp_path / "engine"
    program.write_text(f'#!/bin/sh\nsleep 1\nexec {ENGINE} "$@"\n')
    program.chmod(0o755)
    options = ("--engine", "host", "--engine-path", program)
    with Daemon(*options, ready=False, leader=True) as daemon:
        wait_until(lambda: daemon.engines("engine"), 5, "an engine on the way")
        os.killpg(daemon.process.pid, signal.SIGINT)
        lines = [json.loads(line) for line in daemon.ended().splitlines()]
    assert {line["level"] for line in lines} == {"info"}, lines
    assert lines[-1]["message"] == "stopped"


def test_second_signal_exits_at_once():
    with Daemon("--drain-delay", "20s") as daemon:
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: daemon.get("/readyz").status == 503, 5, "unready")
        start = time.monotonic()
        daemon.stop(code=1)
        assert time.monotonic() - start < scaled_timeout(2)


def test_drain_delay_keeps_serving():
    with Daemon("--drain-delay", "1s") as daemon:
        start = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: daemon.get("/v2/health/ready").status == 503, 1, "unready")
        assert daemon.get("/v2/health/live").status == 200
        assert daemon.talk(REQUEST).status == 200
        daemon.ended()
        assert 0.9 <= time.monotonic() - start <= scaled_timeout(6)


@pytest.mark.faults
def test_new_work_while_draining_gets_503():
    with Daemon("--batch-deadline", "30s", fault="slow:1000000") as daemon:
        waiting = daemon.connect()
        waiting.send(REQUEST)
        other = daemon.connect()
        assert other.exchange(wire.request("GET", "/livez")).status == 200
        time.sleep(0.2)
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        answer = other.exchange(REQUEST)
        assert answer.status == 503, answer
        assert int(answer.header("Retry-After")) >= 1
        assert answer.header("Connection").lower() == "close"
        assert waiting.read().status == 200
        daemon.ended()


@pytest.mark.faults
def test_drain_timeout_exits_with_1():
    hanging = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None] * 77})
    with Daemon("--drain-timeout", "500ms", "--batch-deadline", "60s", fault="hang:77") as daemon:
        waiting = daemon.connect()
        waiting.send(hanging)
        time.sleep(0.3)
        start = time.monotonic()
        daemon.stop(code=1)
        assert time.monotonic() - start < scaled_timeout(4)
        waiting.close()


def test_slow_clients_do_not_hold_up_the_end():
    """Nothing is owed to who sends no whole request, or does not read: they are cut off."""
    with Daemon("--drain-timeout", "1s") as daemon:
        parts = [
            b"",
            b"GET /li",
            wire.request("GET", "/livez", None, {"Content-Length": 10}) + b"a",
            wire.request("POST", "/v1/nothing", None, {"Content-Length": 10}) + b"a",
            wire.request("POST", "/v1/invert", None, {"Content-Length": 10}) + b"{",
            infer_bytes("lu", v2_binary, {"A": matrices.random(64, batch=300)}),
        ]
        connections = [daemon.connect() for _ in parts]
        for connection, part in zip(connections, parts):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.send(part)
        wait_until(lambda: len(connections[-1].socket.recv(1)) == 1, 5, "an answer's first byte")
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(3)
        for connection in connections:
            connection.close()


@pytest.mark.faults
@pytest.mark.parametrize("leaves", [True, False])
def test_abandoned_work_does_not_hold_up_the_end(leaves):
    """A batch hangs that no one waits for: its client left, or was answered 504."""
    hanging = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None] * 77})
    wait = "60s" if leaves else "300ms"
    with Daemon(
        "--request-timeout", wait, "--batch-deadline", "60s", "--loops", "3", fault="hang:77"
    ) as daemon:
        connections = [daemon.connect() for _ in range(12)]
        for connection in connections:
            connection.send(hanging)
        for connection in connections:
            if leaves:
                connection.close()
            else:
                assert connection.read().status == 504
        wait_until(
            lambda: daemon.metrics().total("invertd_cancelled_total") == 12, 3, "12 dropped"
        )
        reason = {"reason": "client_left" if leaves else "timeout"}
        assert daemon.metrics().total("invertd_cancelled_total", **reason) == 12
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(4)
        for connection in connections:
            connection.close()


def test_successor_keeps_its_files(tmp_path):
    """A daemon that ends slowly leaves alone the socket and the port file of the next one."""
    path, port = tmp_path / "socket", tmp_path / "port"
    options = {"listen": f"unix:{path}"}
    with Daemon("--port-file", port, **options) as old:
        with old.connect() as slow:
            slow.send(infer_bytes("lu", v2_binary, {"A": matrices.random(64, batch=300)}))
            assert slow.socket.recv(1)  # and no more: it lasts 2 s until it is cut off
            old.process.send_signal(signal.SIGTERM)
            wait_until(lambda: '"closing"' in old.stderr(), 5, "no longer listening")
            with Daemon("--port-file", port, **options) as new:
                assert old.process.poll() is None, "the old one was to end later"
                old.ended()
                assert port.exists() and path.exists()
                assert new.talk(REQUEST).status == 200
        assert not port.exists() and not path.exists()


# ---- Time ----


@pytest.mark.faults
def test_deadlines_are_kept_to_milliseconds():
    """Also by a service that was idle, whose clock ticks slowly."""
    request = wire.request(
        "POST", "/v1/invert?timeout=5000", b'{"matrix": [[77, 0], [0, 77]]}', {"Content-Type": JSON}
    )
    with Daemon("--batch-deadline", "60s", "--loops", "1", fault="hang:77") as daemon:
        took = []
        for i in range(15):
            time.sleep(0.12 + 0.006 * i)
            start = time.monotonic()
            answer = daemon.talk(request)
            assert answer.status == 504 and b"within 5000 us" in answer.body, answer
            took.append(time.monotonic() - start)
    assert sorted(took)[7] < scaled_timeout(0.035), took


@pytest.mark.skipif(bool(SANITIZER), reason="too slow for microseconds")
def test_batch_wait_is_kept_to_microseconds():
    with Daemon("--batch-wait-us", "100") as daemon, daemon.connect() as connection:
        took = []
        for _ in range(300):
            start = time.monotonic()
            assert connection.exchange(REQUEST).status == 200
            took.append(time.monotonic() - start)
    assert sorted(took)[75] < 0.0009, sorted(took)[::30]


# ---- Logging ----


def test_log_lines_are_json():
    with Daemon("--log-level", "debug") as daemon:
        daemon.talk(REQUEST)
        daemon.get("/%0a%22bad")
        daemon.post("/v1/invert", b'\n"}{', {"Content-Type": "application/json", "X": "\x01"})
        text = daemon.stop()
    lines = text.splitlines()
    assert lines
    for line in lines:
        entry = json.loads(line)
        assert isinstance(entry, dict) and "level" in entry, line


def test_log_text_format():
    with Daemon("--log-format", "text") as daemon:
        text = daemon.stop()
    assert text and not text.lstrip().startswith("{")


def test_log_file_is_reopened_on_hangup(tmp_path):
    log, old = tmp_path / "log", tmp_path / "log.1"
    with Daemon("--log-file", str(log)) as daemon:
        wait_until(lambda: log.exists() and log.stat().st_size > 0, 5, "a first line")
        log.rename(old)
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(log.exists, 5, "a new log file")
        size = old.stat().st_size
        assert daemon.talk(REQUEST).status == 200
        daemon.stop()
        assert log.stat().st_size > 0 and old.stat().st_size == size
        json.loads(log.read_text().splitlines()[-1])


# ---- It lasts ----


def test_no_descriptor_leaks():
    with Daemon() as daemon:
        daemon.talk(REQUEST)
        time.sleep(0.2)
        before = daemon.descriptors()
        threads = os.listdir(f"/proc/{daemon.process.pid}/task")

        def many():
            for _ in range(50):
                daemon.talk(REQUEST)
                daemon.get("/nowhere")

        workers = [threading.Thread(target=many) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        wait_until(lambda: daemon.descriptors() <= before, 5, f"{before} descriptors again")
        assert len(os.listdir(f"/proc/{daemon.process.pid}/task")) == len(threads)


def test_larger_than_a_socket_buffer(daemon):
    a = matrices.random(64, batch=300)
    answer = daemon.talk(infer_bytes("lu", v2_binary, {"A": a}))
    outputs = codec.v2_outputs(answer)
    assert (outputs["INFO"] == 0).all() and outputs["INVERSE"].shape == a.shape


def hear(manager):
    """What the daemon says next, its signs of life left out."""
    while True:
        word = manager.recv(200)
        if word != b"WATCHDOG=1":
            return word


def test_a_service_manager_hears_of_it(tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(scaled_timeout(20))
        environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "200000"}
        with Daemon(env=environment) as own:
            assert hear(manager) == b"READY=1"
            assert manager.recv(100) == b"WATCHDOG=1"
            own.process.send_signal(signal.SIGHUP)
            assert hear(manager).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert hear(manager) == b"READY=1"
            own.process.send_signal(signal.SIGTERM)
            assert hear(manager) == b"STOPPING=1"
            own.ended()


def test_process_metrics():
    with Daemon() as own:
        page = own.metrics()
        fds = page.total("process_open_fds")
        assert abs(fds - own.descriptors()) <= 2
        assert page.total("process_max_fds") > fds
        assert 0 < page.total("process_cpu_seconds_total") < 60
        assert abs(page.total("process_start_time_seconds") - time.time()) < 120
        resident = page.total("process_resident_memory_bytes")
        assert 1e6 < resident < page.total("process_virtual_memory_bytes")
