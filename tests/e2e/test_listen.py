"""Several listeners, both address families, the port file, few file descriptors."""

import os
import signal
import socket

import numpy as np
import pytest

from harness import wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once, wait_until
from harness.settings import scaled_timeout

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})


def ports_of(daemon):
    """The ports that were taken, by the addresses as given."""
    lines = [line for line in daemon.log_lines() if line["message"] == "listening"]
    return [(line["address"], line["port"]) for line in lines]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def test_every_listener_serves(tmp_path):
    path = tmp_path / "socket"
    with Daemon("--listen", f"127.0.0.2:0,unix:{path}", "--listen", "127.0.0.1:0") as daemon:
        ports = ports_of(daemon)
        assert [address for address, _ in ports] == [
            "127.0.0.1:0", "127.0.0.2:0", f"unix:{path}", "127.0.0.1:0"]
        assert daemon.address[1] == ports[0][1]  # the port file names the first
        assert len({port for _, port in ports}) == 4
        answers = {daemon.talk(REQUEST).body}
        for address in ("127.0.0.2", ports[1][1]), ("127.0.0.1", ports[3][1]), str(path):
            answer = wire.talk(address, REQUEST)
            assert answer.status == 200, answer
            answers.add(answer.body)
        assert len(answers) == 1
    assert not path.exists()


def test_variable_and_file_name_several(tmp_path):
    config = tmp_path / "invertd.conf"
    config.write_text("listen = 127.0.0.1:8000\nlisten = [::1]:8001, unix:/run/x\n")
    result = run_once("--print-config", "--config", config)
    assert "\nlisten = 127.0.0.1:8000,[::1]:8001,unix:/run/x\n" in result.stdout
    result = run_once("--print-config", env={"INVERTD_LISTEN": "127.0.0.1:1,127.0.0.1:2"})
    assert "\nlisten = 127.0.0.1:1,127.0.0.1:2\n" in result.stdout
    result = run_once("--listen", ",".join(["127.0.0.1:0"] * 17))
    assert result.returncode == 2 and "up to 16 of them" in result.stderr, result


@needs_ipv6
def test_both_families_on_one_port():
    with Daemon("--open", listen="[::]:0", ready=False) as daemon:
        port = daemon.address[1]
        for host in "127.0.0.1", "::1":
            assert wire.talk((host, port), wire.request("GET", "/livez")).status == 200


@needs_ipv6
def test_an_ipv6_address_is_no_ipv4_one():
    with Daemon(listen="[::1]:0", ready=False) as daemon:
        port = daemon.address[1]
        assert wire.talk(("::1", port), wire.request("GET", "/livez")).status == 200
        with pytest.raises(OSError):
            wire.talk(("127.0.0.1", port), wire.request("GET", "/livez"))


def test_the_same_address_twice_is_an_error():
    with Daemon() as daemon:
        result = run_once("--listen", "127.0.0.1:0", "--listen", daemon.url)
        assert result.returncode == 1 and "in use" in result.stderr


def test_an_address_that_is_none_is_named():
    result = run_once("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:x")
    assert result.returncode == 2
    assert '--listen "127.0.0.1:x" is not allowed' in result.stderr


def test_port_file_is_no_link(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "port"
    victim.write_text("precious")
    os.symlink(victim, link)
    result = run_once("--listen", "127.0.0.1:0", "--port-file", link)
    assert result.returncode == 2
    assert "--port-file" in result.stderr and "symbolic link" in result.stderr
    assert victim.read_text() == "precious"


# ---- Few file descriptors ----


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def is_answered(connection):
    connection.socket.settimeout(scaled_timeout(30))
    return connection.exchange(REQUEST).status == 200


def test_few_descriptors_are_enough():
    """And connections-max says how many clients there can be."""
    with Daemon("--engine", "host", files=64) as daemon:
        line = [line for line in daemon.log_lines() if "connections-max is lowered" in
                line["message"]][0]
        assert line["level"] == "warning" and line["limit"] == 64
        most = line["connections_max"]
        assert most >= 10
        for _ in range(3):
            held = [daemon.connect() for _ in range(most)]
            assert all(is_answered(connection) for connection in held)
            with daemon.connect() as one_more:
                assert one_more.exchange(REQUEST).status == 503
            for connection in held:
                connection.close()
            wait_until(lambda: daemon.talk(REQUEST).status == 200, 10, "room")


def test_an_engine_is_replaced_whatever_clients_hold():
    with Daemon("--engine", "host", "--header-timeout", "60s", files=64) as daemon:
        served = daemon.connect()
        assert is_answered(served)
        held = [socket.create_connection(daemon.address) for _ in range(200)]
        wait_until(lambda: descriptors(daemon) > 28, 10, "clients to fill the place")
        for _ in range(3):
            engines = daemon.engines()
            os.kill(engines[0], signal.SIGKILL)
            wait_until(lambda: daemon.engines() not in ([], engines), 10, "another engine")
            assert is_answered(served)
            assert descriptors(daemon) < 64
        for connection in held:
            connection.close()
        wait_until(lambda: daemon.talk(REQUEST).status == 200, 20, "room")
        served.close()
