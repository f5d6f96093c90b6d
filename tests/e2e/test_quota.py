"""Quotas and counts of clients that have a name: each quota is hit where it says, others are not
harmed, and what is used is shown."""

import contextlib
import math
import re
import shutil
import signal
import time

import numpy as np
import pytest

from harness import matrices, metrics, pki, tokens, wire
from harness.codec import invert_bytes, load, npy
from harness.daemon import Daemon, wait_until

NPY = "application/x-npy"
SMALL = npy(np.eye(3))


def bearer(name):
    return tokens.bearer(f"token-of-{name}")


def write(path, **quotas):
    """The token file: a line a client, and one that sees the metrics."""
    lines = [tokens.line(name, "infer", f"token-of-{name}", quota)
             for name, quota in quotas.items()]
    lines.append(tokens.line("operator", "metrics", "token-of-operator"))
    tokens.write(path, "".join(lines), 0o600)


@contextlib.contextmanager
def serving(tmp_path, *options, **quotas):
    path = tmp_path / "tokens"
    write(path, **quotas)
    with Daemon("--token-file", path, *options) as daemon:
        yield daemon


def reload(daemon, tmp_path, **quotas):
    before = daemon.stderr().count("tokens reloaded")
    write(tmp_path / "tokens", **quotas)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: daemon.stderr().count("tokens reloaded") > before, 10, "a reload")


def request(name, body=SMALL):
    return invert_bytes(body, NPY, headers=bearer(name))


def invert(daemon, name, body=SMALL):
    return daemon.talk(request(name, body))


def page(daemon):
    answer = daemon.get("/metrics", bearer("operator"))
    assert answer.status == 200
    return metrics.Page(answer.text)


def assert_refused(answer, words, status=429):
    assert answer.status == status, answer
    assert answer.header("Content-Type") == "application/problem+json"
    problem = answer.json()
    assert problem["type"].endswith("client-quota" if status == 429 else "too-large")
    assert words in problem["detail"]
    if status == 429:
        assert int(answer.header("Retry-After")) >= 1


@contextlib.contextmanager
def under_way(daemon, name, body=SMALL):
    """A request whose last byte has not come; yields what sends it and takes the answer."""
    data = request(name, body)
    with daemon.connect() as connection:
        connection.send(data[:-1])
        yield lambda: connection.exchange(data[-1:])


def count_under_way(daemon, name):
    return page(daemon).total("invertd_client_quota_used", client=name, quota="requests")


def test_requests(tmp_path):
    with serving(tmp_path, "--loops", "2", lab="requests=2", other="") as daemon:
        with under_way(daemon, "lab") as first, under_way(daemon, "lab") as second:
            wait_until(lambda: count_under_way(daemon, "lab") == 2, 10, "two under way")
            assert_refused(invert(daemon, "lab"), "requests=2, and 2 are under way")
            for _ in range(5):
                assert invert(daemon, "other").status == 200
            assert first().status == 200
            wait_until(lambda: count_under_way(daemon, "lab") == 1, 10, "one under way")
            assert invert(daemon, "lab").status == 200
            assert second().status == 200


def test_a_refusal_comes_before_the_body(tmp_path):
    """The head suffices, and an invalid one does not go before the quota."""
    with serving(tmp_path, lab="requests=1") as daemon, under_way(daemon, "lab"):
        wait_until(lambda: count_under_way(daemon, "lab") == 1, 10, "one under way")
        for headers in {"Expect": "100-continue", "Content-Length": 10 << 20}, {}:
            data = wire.request("POST", "/v1/invert", None, {**headers, **bearer("lab")})
            assert_refused(daemon.talk(data), "requests=1")


def test_rate(tmp_path):
    """30 at once, on connections of their own: 10, and what the time that it takes adds."""
    with serving(tmp_path, "--loops", "2", lab="rate=10", other="") as daemon:
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(daemon.connect()) for _ in range(30)]
            began = time.monotonic()
            for connection in connections:
                connection.send(request("lab"))
            answers = [connection.read() for connection in connections]
            took = time.monotonic() - began
        refused = [answer for answer in answers if answer.status != 200]
        passed = len(answers) - len(refused)
        assert 10 <= passed <= 10 + took * 10
        for answer in refused:
            assert_refused(answer, "rate=10 requests a second")
            assert answer.header("Retry-After") == "1"
        for _ in range(30):
            assert invert(daemon, "other").status == 200
        time.sleep(1.05)  # what Retry-After said
        for _ in range(10):
            assert invert(daemon, "lab").status == 200
        seen = page(daemon)
        assert seen.total("invertd_client_requests_total", client="lab", code="4xx") == len(refused)
        assert seen.total("invertd_client_requests_total", client="lab", code="2xx") == passed + 10


def test_bytes(tmp_path):
    whole, half = npy(np.eye(400)), npy(np.eye(190))
    with serving(tmp_path, lab="bytes=1MiB", other="") as daemon:
        assert_refused(invert(daemon, "lab", whole), "bytes=1048576", 413)
        with under_way(daemon, "lab", half) as first:
            wait_until(lambda: page(daemon).total("invertd_client_quota_used", client="lab",
                                                  quota="bytes") > 500e3, 10, "bytes in use")
            assert_refused(invert(daemon, "lab", half), "bytes=1048576, of which")
            for body in half, whole:
                assert invert(daemon, "other", body).status == 200
            assert invert(daemon, "lab").status == 200  # what is small fits
            assert first().status == 200
        wait_until(lambda: page(daemon).total("invertd_client_quota_used", client="lab",
                                              quota="bytes") == 0, 10, "the bytes back")
        assert np.allclose(load(invert(daemon, "lab", half).body), np.eye(190))


def test_bytes_that_the_head_does_not_show(tmp_path):
    """A short text that asks for a large answer: refused once that is known."""
    with serving(tmp_path, lab="bytes=1MiB", other="") as daemon:
        d = ",".join(["4"] * 1000)
        body = f'{{"method":"tridiagonal","d":[{d}],"dl":[{d[2:]}],"du":[{d[2:]}]}}'.encode()
        data = {name: wire.request("POST", "/v1/invert", body,
                                   {"Content-Type": "application/json", **bearer(name)})
                for name in ("lab", "other")}
        assert_refused(daemon.talk(data["lab"]), "bytes=1048576", 413)
        assert daemon.talk(data["other"]).status == 200
        assert invert(daemon, "lab").status == 200


def test_device(tmp_path):
    """A device's time is paid after it was used, and then waited for. The quota follows from what
    this machine takes for a matrix: two of them use that of four seconds."""
    body = npy(matrices.random(600))

    def used_s(daemon, name):
        return page(daemon).total("invertd_client_device_seconds_total", client=name)

    with serving(tmp_path, lab="", other="device=100s") as daemon:
        for _ in range(2):
            before_s = used_s(daemon, "other")
            assert invert(daemon, "other", body).status == 200
        limit_s = round((used_s(daemon, "other") - before_s) / 2, 6)
        reload(daemon, tmp_path, lab=f"device={limit_s * 1e6:.0f}us", other="device=100s")
        with under_way(daemon, "lab", body) as first, under_way(daemon, "lab", body) as second:
            wait_until(lambda: count_under_way(daemon, "lab") == 2, 10, "two under way")
            assert first().status == second().status == 200
        took_s = used_s(daemon, "lab")
        asked_at = time.monotonic()
        answer = invert(daemon, "lab", body)
        refused_at = time.monotonic()
        assert_refused(answer, "a second, and it has used")
        wait_s = int(answer.header("Retry-After"))
        assert wait_s <= math.ceil(took_s / limit_s - 1)
        used = page(daemon).total("invertd_client_quota_used", client="lab", quota="device")
        assert used > limit_s * (1 - (time.monotonic() - asked_at)) - 0.001
        if wait_s > 1:  # a small one as well
            assert_refused(invert(daemon, "lab"), "a second, and it has used")
        assert invert(daemon, "other", body).status == 200
        time.sleep(max(0, refused_at + wait_s - time.monotonic()) + 0.05)
        assert invert(daemon, "lab").status == 200


def test_what_is_shown(tmp_path):
    with serving(tmp_path, lab="requests=7 rate=100 bytes=2MiB device=1500ms", other="") as daemon:
        for _ in range(3):
            assert invert(daemon, "lab", npy(np.stack([np.eye(4)] * 5))).status == 200
        assert invert(daemon, "other").status == 200
        assert daemon.post("/v1/invert", b"{", bearer("lab")).status == 400
        assert daemon.post("/v1/invert", SMALL, bearer("no one")).status == 401
        seen = page(daemon)
        limits = {"requests": 7, "rate": 100, "bytes": 2 << 20, "device": 1.5}
        for quota, limit in limits.items():
            assert seen.total("invertd_client_quota", client="lab", quota=quota) == limit
            assert seen.total("invertd_client_quota", client="other", quota=quota) == 0
        assert seen.total("invertd_client_inversions_total", client="lab") == 15
        assert seen.total("invertd_client_inversions_total", client="other") == 1
        assert seen.total("invertd_client_requests_total", client="lab", code="4xx") == 1
        assert seen.total("invertd_client_bytes_total", client="other",
                          direction="in") == len(SMALL)
        names = {dict(labels)["client"]
                 for labels in seen.select("invertd_client_requests_total")}
        assert names == {"lab", "other", "operator"}
        status = daemon.get("/", bearer("operator")).text
        row = re.search(r"row\">lab<td>0 of 7<td>(\d+) of 100<td>0 of 2<td>(\S+) of 1\.5", status)
        assert row and int(row[1]) <= 4


def test_a_reload_changes_quotas_and_keeps_counts(tmp_path):
    with serving(tmp_path, lab="requests=1 rate=5") as daemon:
        with under_way(daemon, "lab") as first:
            wait_until(lambda: count_under_way(daemon, "lab") == 1, 10, "one under way")
            assert_refused(invert(daemon, "lab"), "requests=1")
            reload(daemon, tmp_path, lab="requests=2")
            with under_way(daemon, "lab") as second:
                wait_until(lambda: count_under_way(daemon, "lab") == 2, 10, "two under way")
                assert_refused(invert(daemon, "lab"), "requests=2, and 2 are under way")
                reload(daemon, tmp_path, lab="requests=1", newcomer="")
                assert_refused(invert(daemon, "lab"), "requests=1, and 2 are under way")
                assert invert(daemon, "newcomer").status == 200
                assert second().status == 200
            assert first().status == 200  # who is in stays
        seen = page(daemon)
        assert seen.total("invertd_client_requests_total", client="lab", code="2xx") == 2
        assert seen.total("invertd_client_requests_total", client="lab", code="4xx") == 3
        assert seen.total("invertd_client_quota", client="lab", quota="rate") == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_names_by_certificates_are_counted(tmp_path):
    """Without tokens there are no quotas; a name may hold what a page has to escape."""
    ca = pki.authority(tmp_path)
    server = pki.issue(tmp_path, ca, "server")
    clients = {"alice": pki.issue(tmp_path, ca, "alice", usage="clientAuth"),
               "R&D lab": pki.issue(tmp_path, ca, "lab", subject="/CN=R&D lab",
                                      usage="clientAuth")}
    options = ["--tls-cert", server[0], "--tls-key", server[1], "--tls-client-ca", ca[0]]
    with Daemon(*options, ready=False) as daemon:
        def talk(name, data):
            return pki.talk(daemon.address, pki.context(ca, clients[name]), data)

        ready = wire.request("GET", "/readyz")
        wait_until(lambda: talk("alice", ready).status == 200, 60, "ready")
        for name, count in ("alice", 2), ("R&D lab", 3):
            for _ in range(count):
                assert talk(name, invert_bytes(SMALL, NPY)).status == 200
        seen = metrics.Page(talk("alice", wire.request("GET", "/metrics")).text)
        assert seen.total("invertd_client_inversions_total", client="alice") == 2
        assert seen.total("invertd_client_inversions_total", client="R&D lab") == 3
        assert ">R&amp;D lab<td>" in talk("alice", wire.request("GET", "/")).text
