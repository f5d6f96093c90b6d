"""Options: flags, environment, file; what is refused, and with which words."""

import os

import pytest

from harness.daemon import Daemon, run_once
from harness.settings import SANITIZER

BASE = ("--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--colour", "red"], ["colour"]),
        (["stray"], ["stray"]),
        (["--loops"], ["loops"]),
        (["--loops", "many"], ["loops", "many"]),
        (["--loops", "-1"], ["loops", "-1"]),
        (["--loops", "100000"], ["loops", "100000"]),
        (["--threads", "1.5"], ["threads", "1.5"]),
        (["--loops", "1", "--loops", "2"], ["loops"]),
        (["--arena-size", "10"], ["arena-size", "10"]),
        (["--arena-size", "4XB"], ["arena-size", "4XB"]),
        (["--request-max", "99999999999999999999"], ["request-max"]),
        (["--header-timeout", "soon"], ["header-timeout", "soon"]),
        (["--drain-timeout", "-5s"], ["drain-timeout", "-5s"]),
        (["--in-flight", "0"], ["in-flight", "0"]),
        (["--in-flight", "99"], ["in-flight", "99"]),
        (["--compress-level", "12"], ["compress-level", "12"]),
        (["--log-format", "xml"], ["log-format", "xml", "json"]),
        (["--log-level", "loud"], ["log-level", "loud", "debug"]),
        (["--engine", "abacus"], ["engine", "abacus", "host"]),
        (["--config", "/nonexistent/file"], ["/nonexistent/file"]),
        (["--queue-max", ""], ["queue-max"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options(options, words):
    result = run_once(*BASE, *options)
    assert result.returncode == 2, result
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1", "127.0.0.1:99999", "unix:"])
def test_bad_listen(listen):
    result = run_once("--listen", listen)
    assert result.returncode == 2, result
    assert listen in result.stderr and "listen" in result.stderr


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("INVERTD_LOOPS", "many", ["INVERTD_LOOPS", "many"]),
        ("INVERTD_NO_SUCH_OPTION", "1", ["INVERTD_NO_SUCH_OPTION"]),
    ],
)
def test_bad_environment(variable, value, words):
    result = run_once(*BASE, env={variable: value})
    assert result.returncode == 2, result
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("no-such-key = 1\n", ["no-such-key"]),
        ("loops = many\n", ["loops", "many"]),
        ("loops\n", ["loops"]),
        ("loops = 1\nloops = 2\n", ["loops"]),
    ],
)
def test_bad_file(tmp_path, text, words):
    file = tmp_path / "invertd.conf"
    file.write_text(text)
    result = run_once(*BASE, "--config", file)
    assert result.returncode == 2, result
    for word in words + [str(file)]:
        assert word in result.stderr, result.stderr


def settings(text):
    return dict(
        [part.strip() for part in line.split("=", 1)]
        for line in text.splitlines()
        if "=" in line and not line.lstrip().startswith("#")
    )


def test_print_config_round_trip(tmp_path):
    options = [
        "--loops",
        "3",
        "--arena-size",
        "256MiB",
        "--header-timeout",
        "1500ms",
        "--log-format",
        "text",
        "--queue-max",
        "77",
    ]
    first = run_once("--print-config", *options)
    assert first.returncode == 0, first.stderr
    file = tmp_path / "invertd.conf"
    file.write_text(first.stdout)
    second = run_once("--print-config", "--config", file)
    assert second.returncode == 0, second.stderr
    got, want = settings(second.stdout), settings(first.stdout)
    got.pop("config", None), want.pop("config", None)
    assert got == want
    assert want["loops"] == "3" and want["queue-max"] == "77"


def test_precedence(tmp_path):
    """A flag wins over the environment, the environment over the file, the file over defaults."""
    file = tmp_path / "invertd.conf"
    file.write_text("# comment\nloops = 2\nqueue-max = 22\nthreads = 2\n")
    result = run_once(
        "--print-config",
        "--config",
        file,
        "--loops",
        "4",
        env={"INVERTD_LOOPS": "3", "INVERTD_QUEUE_MAX": "33"},
    )
    assert result.returncode == 0, result.stderr
    values = settings(result.stdout)
    assert (values["loops"], values["queue-max"], values["threads"]) == ("4", "33", "2")


def test_config_file_by_environment(tmp_path):
    file = tmp_path / "invertd.conf"
    file.write_text("connections-max = 99\n")
    result = run_once("--print-config", env={"INVERTD_CONFIG": str(file)})
    assert settings(result.stdout)["connections-max"] == "99"


def test_environment_configures_a_running_daemon():
    with Daemon(env={"INVERTD_REQUEST_MAX": "4KiB", "INVERTD_LOG_FORMAT": "text"}) as daemon:
        assert daemon.post("/v1/invert", b"{" + b" " * 5000).status == 413


@pytest.mark.skipif(SANITIZER != "", reason="a sanitizer's notes on such an arena take memory")
def test_an_arena_that_is_too_large_is_said():
    """It is handed out by the system when it is used: it would be missed under load."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    for arena, warned in ((memory * 3 // 4, True), (64 << 20, False)):
        with Daemon("--arena-size", f"{arena}B") as daemon:
            assert daemon.get("/readyz").status == 200
            assert ("larger than half of the memory" in daemon.stderr()) == warned, daemon.stderr()
