"""SIGHUP: what is read anew, all of it or nothing."""

import os
import signal
import time

import numpy as np
import pytest

from harness import wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once, wait_until
from harness.settings import scaled_timeout

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
LONG = infer_bytes("lu", v2_binary, {"A": np.eye(30)[None]})


def lines(daemon, message):
    return [line for line in daemon.log_lines() if line["message"].startswith(message)]


def hang_up(daemon):
    """Sends SIGHUP and waits until the options have been looked at: the last line about them."""
    def seen():
        return [line for line in daemon.log_lines()
                if line["message"].startswith(("options reloaded", "options not reloaded"))]

    before = len(seen())
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(seen()) > before, 10, "the options to be read")
    return seen()[-1]


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "invertd.conf"
    path.write_text("idle-timeout = 60s\n")
    return path


def test_limits_change(config):
    with Daemon("--config", config, "--loops", "2") as daemon:
        old = daemon.connect()
        assert old.exchange(REQUEST).status == 200
        assert old.exchange(LONG).status == 200
        config.write_text("idle-timeout = 300ms\nrequest-max = 1KiB\nlog-level = debug\n")
        assert hang_up(daemon)["changed"] == 3
        changes = {line["option"]: (line["before"], line["after"])
                   for line in lines(daemon, "option changed")}
        assert changes == {"idle-timeout": ("1m", "300ms"), "request-max": ("256MiB", "1KiB"),
                           "log-level": ("info", "debug")}
        for _ in range(4):  # whichever loop has it
            with daemon.connect() as connection:
                assert connection.exchange(REQUEST).status == 200
                start = time.monotonic()
                assert connection.ended(scaled_timeout(5))
                assert time.monotonic() - start < scaled_timeout(3)
        assert daemon.talk(LONG).status == 413
        assert old.exchange(LONG).status == 413
        assert lines(daemon, "request")  # a line of level debug
        old.close()

        assert hang_up(daemon)["changed"] == 0
        config.write_text("")
        assert hang_up(daemon)["changed"] == 3
        assert daemon.talk(LONG).status == 200


def test_quotas_change(config):
    """One client, two requests that wait."""
    with Daemon("--config", config, "--batch-wait-us", "500000") as daemon:
        def statuses():
            held = [daemon.connect() for _ in range(2)]
            for connection in held:
                connection.send(REQUEST)
            answers = sorted(connection.read().status for connection in held)
            for connection in held:
                connection.close()
            return answers

        for text, expected in (("", 200), ("client-requests-max = 1\n", 429),
                               ("queue-max = 1\n", 503), ("queue-max = 2\n", 200)):
            config.write_text(text)
            hang_up(daemon)
            assert statuses() == [200, expected]


def test_all_or_nothing(config):
    with Daemon("--config", config) as daemon:
        for text in "request-max = 1KiB\nidle-timeout = never\n", "request-max = 1KiB\nnonsense\n":
            config.write_text(text)
            line = hang_up(daemon)
            assert line["message"].startswith("options not reloaded")
            assert str(config) in line["why"] or "idle-timeout" in line["why"]
            assert daemon.talk(LONG).status == 200
        config.write_text("request-max = 1KiB\n")
        os.chmod(config, 0o646)
        assert "others can write" in hang_up(daemon)["why"]
        os.remove(config)
        assert "cannot be read" in hang_up(daemon)["why"]
        assert daemon.talk(LONG).status == 200


def test_what_cannot_change_is_reported(config):
    with Daemon("--config", config) as daemon:
        config.write_text("connections-max = 5\nidle-timeout = 61s\nlisten = 127.0.0.1:1\n")
        assert hang_up(daemon)["changed"] == 1
        waiting = {line["option"] for line in lines(daemon, "option waits for a restart")}
        assert waiting == {"connections-max"}  # the command line's --listen counts
        assert daemon.talk(REQUEST).status == 200


def test_requests_pass_through_reloads(config):
    with Daemon("--config", config) as daemon, daemon.connect() as connection:
        for i in range(20):
            config.write_text(f"request-timeout = {30 + i}s\n")
            daemon.process.send_signal(signal.SIGHUP)
            for _ in range(20):
                assert connection.exchange(REQUEST).status == 200
        wait_until(lambda: lines(daemon, "options reloaded"), 10, "a reload")
        assert wire.talk(daemon.address, REQUEST).status == 200


def test_a_file_that_others_can_write_is_refused(config):
    os.chmod(config, 0o646)
    result = run_once("--listen", "127.0.0.1:0", "--config", config)
    assert result.returncode == 2
    assert "--config" in result.stderr and "others can write the file" in result.stderr
