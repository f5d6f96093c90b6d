"""TLS: what is served, who may connect, certificates read anew, and what a slow client costs."""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

import numpy as np
import pytest

from harness import matrices, pki, wire
from harness.codec import infer_bytes, v2_binary, v2_outputs
from harness.daemon import Daemon, run_once, wait_until
from harness.settings import scaled_timeout

REQUEST = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
READY = wire.request("GET", "/readyz")
LIVE = wire.request("GET", "/livez")

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Folder, CA, the daemon's certificate and key."""
    folder = tmp_path_factory.mktemp("pki")
    ca = pki.authority(folder)
    return folder, ca, pki.issue(folder, ca, "server")


def options(server, *more):
    return ["--tls-cert", server[0], "--tls-key", server[1], *more]


@contextlib.contextmanager
def serving(server, tls, *more, **other):
    """A daemon that is ready over TLS."""
    with Daemon(*options(server, *more), ready=False, **other) as daemon:
        wait_until(lambda: pki.talk(daemon.address, tls, READY).status == 200, 60, "ready")
        yield daemon


@pytest.fixture(scope="module")
def secure(pair):
    with serving(pair[2], pki.context(pair[1]), "--body-timeout", "1s",
                 "--header-timeout", "2s") as daemon:
        yield daemon, pki.context(pair[1])


def processor_seconds(daemon):
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- What is served ----


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(secure, pair, version):
    daemon, _ = secure
    tls = pki.context(pair[1], least=version, most=version)
    with pki.Connection(daemon.address, tls) as connection:
        assert connection.socket.selected_alpn_protocol() == "http/1.1"
        for _ in range(3):
            assert connection.exchange(REQUEST).status == 200


def test_an_older_version_is_refused(secure, pair):
    daemon, _ = secure
    done = subprocess.run(["openssl", "s_client", "-connect", daemon.url, "-tls1_1", "-cipher",
                           "DEFAULT@SECLEVEL=0"], capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=scaled_timeout(20))
    assert b"BEGIN CERTIFICATE" not in done.stdout
    assert pki.talk(daemon.address, secure[1], LIVE).status == 200


@pytest.mark.parametrize("n, batch", [(8, 1), (64, 40), (700, 2)])
def test_long_bodies_both_ways(secure, n, batch):
    daemon, tls = secure
    a = matrices.random(n, batch=batch)
    with pki.Connection(daemon.address, tls) as connection:
        for _ in range(2):
            answer = connection.exchange(infer_bytes("lu", v2_binary, {"A": a}))
            matrices.check_answers(a, v2_outputs(answer))


def test_pipelined_requests(secure):
    daemon, tls = secure
    with pki.Connection(daemon.address, tls) as connection:
        connection.send(REQUEST * 20 + LIVE)
        assert [connection.read().status for _ in range(21)] == [200] * 21


def test_connections_at_once(secure):
    daemon, tls = secure
    held = [pki.Connection(daemon.address, tls) for _ in range(60)]
    for connection in held:
        connection.send(REQUEST)
    assert {connection.read().status for connection in held} == {200}
    for connection in held:
        connection.close()
    wait_until(lambda: open_connections(daemon, tls) == 1, 10, "they are all closed")


@pytest.mark.parametrize("cut", [0, 25, 60])
def test_a_bad_length_gets_one_answer(secure, cut):
    """It would get two of the library, in whatever pieces it arrives."""
    daemon, tls = secure
    data = wire.request("POST", "/v1/invert", b"hello", {"Content-Length": "+5"})
    with pki.Connection(daemon.address, tls) as connection:
        connection.send(data[:cut])
        time.sleep(0.01)
        connection.send(data[cut:])
        heard = connection.drain_to_end(scaled_timeout(10))
    assert heard.startswith(b"HTTP/1.1 400 ") and heard.count(b"HTTP/1.") == 1, heard


def open_connections(daemon, tls):
    text = pki.talk(daemon.address, tls, wire.request("GET", "/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith("invertd_connections ")]
    return int(float(lines[0].split()[1]))


def plainly(daemon, *pieces):
    """All that plain bytes on a TLS port are answered."""
    with wire.Connection(daemon.address) as connection:
        for piece in pieces:
            connection.send(piece)
            time.sleep(0.02)
        return connection.drain_to_end(scaled_timeout(10))


@pytest.mark.parametrize("cut", [0, 2])
@pytest.mark.parametrize("data", [LIVE, REQUEST, wire.request("HEAD", "/", version="HTTP/1.0")],
                         ids=["get", "post", "head"])
def test_plain_http_gets_the_right_address(secure, data, cut):
    daemon, tls = secure
    heard = plainly(daemon, data[:cut], data[cut:])
    assert heard.startswith(b"HTTP/1.1 400 ") and heard.count(b"HTTP/1.") == 1, heard
    assert b"Connection: close\r\n" in heard
    assert heard.endswith(b"This port speaks TLS. Use https://localhost in place of http://.\n")
    assert pki.talk(daemon.address, tls, LIVE).status == 200


@pytest.mark.parametrize("host", ["a b", "<b>", "x" * 300, ""])
def test_plain_http_of_an_odd_host(secure, host):
    heard = plainly(secure[0], wire.request("GET", "/", host=host))
    assert heard.endswith(b"Use https:// in place of http://.\n"), heard


@pytest.mark.parametrize("data", [b"hello there, who speaks?\r\n\r\n", bytes(100),
                                  b"\x16\x03\x01\0\x05 HTTP/1.1", b"\r\nx HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_not_answered(secure, data):
    heard = plainly(secure[0], data)
    assert heard is not None and b"HTTP" not in heard, heard
    assert pki.talk(secure[0].address, secure[1], LIVE).status == 200


def test_plain_http_among_handshakes(secure):
    """The library does not say whose handshake has failed; no other client is disturbed."""
    daemon, tls = secure
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        plain = [threads.submit(plainly, daemon, LIVE) for _ in range(40)]
        good = [threads.submit(pki.talk, daemon.address, tls, REQUEST) for _ in range(80)]
        assert all(one.result().startswith(b"HTTP/1.1 400 ") for one in plain)
        assert {one.result().status for one in good} == {200}


def test_a_unix_socket_is_plain(pair, tmp_path):
    tls = pki.context(pair[1])
    with serving(pair[2], tls, "--listen", f"unix:{tmp_path / 'socket'}") as daemon:
        assert wire.talk(str(tmp_path / "socket"), REQUEST).status == 200
        assert pki.talk(daemon.address, tls, REQUEST).status == 200


def test_the_metrics_listener_has_tls_too(pair):
    tls = pki.context(pair[1])
    port = wire.free_port()
    with Daemon(*options(pair[2], "--metrics-listen", f"127.0.0.1:{port}"), ready=False):
        wait_until(lambda: pki.talk(("127.0.0.1", port), tls, READY).status == 200, 60, "ready")


def test_bodies_that_wait_for_memory(pair):
    """The library is stopped in the middle of a record, and goes on with it."""
    tls = pki.context(pair[1])
    a = matrices.random(600)
    request = infer_bytes("lu", v2_binary, {"A": a[None]})
    with serving(pair[2], tls, "--arena-size", "16MiB") as daemon:
        with concurrent.futures.ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda _: pki.talk(daemon.address, tls, request), range(24)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        matrices.check_answers(a[None], v2_outputs(answers[0]))


# ---- Slow and odd clients ----


def test_a_slow_body_is_answered(secure):
    """The answer goes past the library, and through TLS all the same."""
    daemon, tls = secure
    with pki.Connection(daemon.address, tls) as connection:
        connection.send(REQUEST[:-5])
        assert connection.read().status == 408
        assert connection.ended(scaled_timeout(5))


def test_a_refused_body_is_answered(secure):
    daemon, tls = secure
    head = wire.request("POST", "/v2/models/lu/infer", headers={"Content-Length": str(1 << 40)})
    with pki.Connection(daemon.address, tls) as connection:
        connection.send(head + b"x" * 100000)
        assert connection.read().status == 413


def test_a_handshake_that_waits_costs_nothing(secure, pair):
    """Clients that say a part of their first message, or all of it and no more, or nothing."""
    daemon, tls = secure
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    half = tls.wrap_bio(inside, outside, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    hello = outside.read()
    held = [socket.create_connection(daemon.address) for _ in range(9)]
    for connection in held[:3]:
        connection.sendall(hello)
    for connection in held[3:6]:
        connection.sendall(hello[:40])
    time.sleep(0.2)
    before = processor_seconds(daemon)
    start = time.monotonic()
    time.sleep(1)
    spent = processor_seconds(daemon) - before
    assert spent < 0.3 * (time.monotonic() - start), spent
    assert pki.talk(daemon.address, tls, LIVE).status == 200
    for connection in held:  # the header's time is theirs too
        connection.settimeout(scaled_timeout(10))
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(65536):
                pass
        connection.close()
    wait_until(lambda: open_connections(daemon, tls) == 1, 10, "they are all closed")


def test_a_handshake_byte_by_byte(secure):
    daemon, tls = secure
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = tls.wrap_bio(inside, outside, server_hostname="localhost")
    with socket.create_connection(daemon.address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(scaled_timeout(10))
        done = False
        while not done:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
                done = True
            for byte in outside.read():
                connection.sendall(bytes([byte]))
            if not done:
                inside.write(connection.recv(65536))
        side.write(LIVE)
        connection.sendall(outside.read())
        answer = b""
        while b"live" not in answer:
            inside.write(connection.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                while True:
                    answer += side.read(65536)
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_after_a_proxy_header(pair):
    tls = pki.context(pair[1])
    header = (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + socket.inet_aton("192.0.2.1")
              + socket.inet_aton("127.0.0.1") + b"\x12\x34\x1f\x40")
    with Daemon(*options(pair[2], "--proxy-protocol", "127.0.0.1"), ready=False) as daemon:
        with socket.create_connection(daemon.address) as raw:
            raw.sendall(header)
            with tls.wrap_socket(raw, server_hostname="localhost") as connection:
                connection.sendall(LIVE)
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_drain_over_tls(pair):
    tls = pki.context(pair[1])
    with serving(pair[2], tls) as daemon:
        idle = pki.Connection(daemon.address, tls)
        half = socket.create_connection(daemon.address)
        half.sendall(b"\x16\x03\x01")
        assert idle.exchange(REQUEST).status == 200
        daemon.stop()
        idle.close()
        half.close()


# ---- Clients' certificates ----


def test_clients_need_a_certificate(pair):
    folder, ca, server = pair
    stranger = pki.authority(folder, "stranger")
    good = pki.issue(folder, ca, "alice", usage="clientAuth")
    bad = [
        None,
        pki.issue(folder, stranger, "mallory", usage="clientAuth"),
        pki.issue(folder, ca, "not-a-client", usage="serverAuth"),
        pki.issue(folder, ca, "nameless", subject="/O=nameless", usage="clientAuth"),
    ]
    for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
        def tls(client):
            return pki.context(ca, client, least=version, most=version)

        with serving(server, tls(good), "--tls-client-ca", ca[0], "--access-log", "-") as daemon:
            for client in bad:
                with pytest.raises((ssl.SSLError, OSError, wire.Gone)):
                    pki.talk(daemon.address, tls(client), LIVE)
            with pki.Connection(daemon.address, tls(good)) as connection:
                assert connection.exchange(REQUEST).status == 200
            wait_until(lambda: '"client":"alice"' in daemon.stderr(), 10, "its name in the log")


def alert_to(address, context):
    """What the daemon says when it refuses a handshake. TLS 1.3 lets the client end it first."""
    with socket.create_connection(address, scaled_timeout(10)) as plain:
        with pytest.raises(ssl.SSLError) as refused:
            with context.wrap_socket(plain, server_hostname="localhost") as secured:
                secured.recv(1)
    return refused.value.reason


@pytest.mark.parametrize("version, without", [
    (ssl.TLSVersion.TLSv1_2, "SSLV3_ALERT_HANDSHAKE_FAILURE"),
    (ssl.TLSVersion.TLSv1_3, "TLSV13_ALERT_CERTIFICATE_REQUIRED")])
def test_alerts_name_what_is_wrong_with_a_certificate(pair, version, without):
    folder, ca, server = pair
    stranger = pki.authority(folder, "another stranger")
    good = pki.issue(folder, ca, "bob", usage="clientAuth")
    rows = [
        (None, without),
        (pki.issue(folder, stranger, "eve", usage="clientAuth"), "TLSV1_ALERT_UNKNOWN_CA"),
        (pki.issue(folder, ca, "no-client", usage="serverAuth"), "SSLV3_ALERT_BAD_CERTIFICATE"),
    ]

    def tls(client):
        return pki.context(ca, client, least=version, most=version)

    with serving(server, tls(good), "--tls-client-ca", ca[0]) as daemon:
        for client, alert in rows:
            assert alert_to(daemon.address, tls(client)) == alert


# ---- Files ----


def test_certificates_are_read_anew(tmp_path):
    ca = pki.authority(tmp_path)
    server, tls = pki.issue(tmp_path, ca, "server"), pki.context(ca)

    def shown(daemon):
        with pki.Connection(daemon.address, tls) as connection:
            assert connection.exchange(REQUEST).status == 200
            return connection.socket.getpeercert()["serialNumber"]

    def hang_up(daemon, message):
        before = len([m for m in daemon.log_lines() if m["message"].startswith(message)])
        daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len([m for m in daemon.log_lines()
                                if m["message"].startswith(message)]) > before, 10, message)

    with serving(server, tls) as daemon, pki.Connection(daemon.address, tls) as old:
        first = shown(daemon)
        assert old.exchange(REQUEST).status == 200
        pki.issue(tmp_path, ca, "server")
        assert shown(daemon) == first
        hang_up(daemon, "certificates reloaded")
        second = shown(daemon)
        assert second != first
        assert old.exchange(REQUEST).status == 200

        server[0].write_text("nonsense")
        hang_up(daemon, "certificates not reloaded")
        assert "--tls-cert" in daemon.stderr()
        assert shown(daemon) == second
        pki.issue(tmp_path, ca, "server")
        os.chmod(server[1], 0o644)
        hang_up(daemon, "certificates not reloaded")
        assert shown(daemon) == second
        os.chmod(server[1], 0o600)
        for _ in range(3):
            hang_up(daemon, "certificates reloaded")
        assert shown(daemon) not in (first, second)
        assert old.exchange(REQUEST).status == 200


def test_bad_files_are_refused(pair, tmp_path):
    folder, ca, server = pair
    other = pki.issue(folder, ca, "other")
    open_key, nothing = tmp_path / "open.key", tmp_path / "nothing.pem"
    open_key.write_text(server[1].read_text())
    os.chmod(open_key, 0o604)
    nothing.write_text("nothing")
    os.chmod(nothing, 0o600)
    rows = [
        (["--tls-cert", server[0]], "--tls-cert is given without --tls-key"),
        (["--tls-key", server[1]], "--tls-key is given without --tls-cert"),
        (["--tls-client-ca", ca[0]], "--tls-client-ca is given without --tls-cert"),
        (options((tmp_path / "none", server[1])), "No such file"),
        (options((nothing, server[1])), "holds no chain of 1 to 16 PEM certificates"),
        (options((server[0], nothing)), "holds no PEM private key"),
        (options((server[0], open_key)), "others can read or write the file"),
        (options((server[0], other[1])), "is not the key of the first certificate"),
        (options(server, "--tls-client-ca", nothing), "holds no PEM certificate"),
        (options((tmp_path, server[1])), "is no plain file"),
    ]
    for arguments, text in rows:
        result = run_once("--listen", "127.0.0.1:0", *arguments)
        assert result.returncode == 2, (arguments, result.stderr)
        assert text in result.stderr and "--tls-" in result.stderr
        assert "PRIVATE" not in result.stderr
