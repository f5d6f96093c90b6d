"""Callbacks of jobs, with receivers that are real servers."""

import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import threading
import time

import pytest

from harness import later, pki, tokens
from harness.daemon import Daemon, alive, children_of, run_once, wait_until
from harness.settings import ROOT, SANITIZER

SMALL = json.dumps({"matrix": [[4, 7], [2, 6]]}).encode()
SECRET = "a secret of many bytes"


class Receiver:
    """Answers each POST with the next of the statuses, the last one again and again."""

    def __init__(self, *statuses, port=0, tls=None, location=None, pause=0):
        self.requests, self.statuses, self.pause = [], list(statuses or [204]), pause
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), body, time.time()))
                time.sleep(outer.pause)
                statuses = outer.statuses
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                with contextlib.suppress(OSError):
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*map(str, tls))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if tls else "http"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def url(self, host="127.0.0.1", path="/done"):
        return f"{self.scheme}://{host}:{self.port}{path}"


def allow(*entries):
    return ["--allow-callbacks", ",".join(entries), "--callback-retry", "50ms"]


def post(daemon, url, headers=None):
    return later.accepted(daemon, SMALL, headers, f"?callback={url}")


def callback_of(daemon, job, headers=None):
    return later.look(daemon, job["id"], headers=headers)["callback"]


def settled(daemon, job, status, headers=None, within=20):
    return wait_until(lambda: (c := callback_of(daemon, job, headers))["status"] == status and c,
                      within, f"a callback that is {status}")


def test_delivered_and_signed(tmp_path):
    secret, file = tmp_path / "secret", tmp_path / "tokens"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    tokens.write(file, tokens.line("a", "infer,jobs", "t", f"callback-secret-file={secret}") +
                 tokens.line("plain", "infer,jobs", "p"))
    with Receiver() as receiver:
        with Daemon("--token-file", file, *allow(f"127.0.0.1:{receiver.port}")) as own:
            job = post(own, receiver.url(path="/x?y=1"), tokens.bearer("t"))
            assert job["callback"] == {"status": "waiting", "attempts": 0, "next": None,
                                       "problem": None}
            done = settled(own, job, "delivered", tokens.bearer("t"))
            assert done["attempts"] == 1 and done["problem"] is None
            (path, headers, body, when), = receiver.requests
            assert path == "/x?y=1" and headers["Content-Type"] == "application/json"
            document = json.loads(body)
            assert document["id"] == job["id"] == headers["Invertd-Job"]
            assert document["status"] == "successful" and headers["Invertd-Attempt"] == "1"
            stamp = headers["Invertd-Timestamp"]
            assert abs(when - int(stamp)) < 60
            wanted = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256)
            assert headers["Invertd-Signature"] == "sha256=" + wanted.hexdigest()

            settled(own, post(own, receiver.url(), tokens.bearer("p")), "delivered",
                    tokens.bearer("p"))
            assert "Invertd-Signature" not in receiver.requests[1][1]

            secret.write_text("another secret of many bytes")
            own.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "tokens reloaded" in own.stderr(), 10, "the reload")
            settled(own, post(own, receiver.url(), tokens.bearer("t")), "delivered",
                    tokens.bearer("t"))
            _, headers, body, _ = receiver.requests[2]
            wanted = hmac.new(b"another secret of many bytes",
                              headers["Invertd-Timestamp"].encode() + b"." + body, hashlib.sha256)
            assert headers["Invertd-Signature"] == "sha256=" + wanted.hexdigest()


@pytest.mark.parametrize("content, mode, why", [
    (None, 0, "No such file"), (SECRET, 0o644, "chmod 0600"), ("short", 0o600, "16 to 1024 bytes")])
def test_bad_secrets(tmp_path, content, mode, why):
    secret, file = tmp_path / "secret", tmp_path / "tokens"
    if content:
        secret.write_text(content)
        secret.chmod(mode)
    tokens.write(file, tokens.line("a", "infer", "t", f"callback-secret-file={secret}"))
    answer = run_once("--token-file", file)
    assert answer.returncode == 2 and why in answer.stderr and SECRET not in answer.stderr, answer
    assert f"{file}:1: callback-secret-file" in answer.stderr


def test_tried_again_until_it_is_taken():
    with Receiver(503, 500, 404, 200) as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}")) as own:
            job = post(own, receiver.url())
            assert settled(own, job, "delivered")["attempts"] == 4
            attempts = [headers["Invertd-Attempt"] for _, headers, _, _ in receiver.requests]
            assert attempts == ["1", "2", "3", "4"]
            page = own.metrics()
            assert page.total("invertd_callbacks_total", outcome="retried") == 3
            assert page.total("invertd_callbacks_total", outcome="delivered") == 1


def test_receiver_that_was_down():
    with Receiver() as reserved:
        port = reserved.port
    with Daemon(*allow(f"127.0.0.1:{port}")) as own:
        job = post(own, f"http://127.0.0.1:{port}/")
        wait_until(lambda: callback_of(own, job)["attempts"] >= 2, 10, "two attempts")
        failed = callback_of(own, job)
        assert failed["status"] == "waiting" and failed["problem"]
        with Receiver(port=port) as receiver:
            settled(own, job, "delivered")
            assert len(receiver.requests) == 1


def test_redirects_are_not_followed():
    with Receiver() as target, Receiver(307, location=target.url()) as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}", f"127.0.0.1:{target.port}")) as own:
            job = post(own, receiver.url())
            wait_until(lambda: callback_of(own, job)["attempts"] >= 2, 10, "two attempts")
            assert callback_of(own, job)["problem"] == "the answer was 307"
            assert not target.requests


def test_gone_ends_it():
    with Receiver(410) as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}")) as own:
            job = post(own, receiver.url())
            assert settled(own, job, "unwanted")["attempts"] == 1
            time.sleep(0.3)
            assert len(receiver.requests) == 1
            assert own.metrics().total("invertd_callbacks_total", outcome="unwanted") == 1


def test_failed_for_good():
    """Its result's time bounds it too; the document, the metric and the log say so."""
    with Receiver(503) as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}"), "--result-ttl", "3s") as own:
            job = post(own, receiver.url())
            failed = settled(own, job, "failed")
            assert failed["problem"] == "the answer was 503" and failed["attempts"] >= 2
            assert own.metrics().total("invertd_callbacks_total", outcome="failed") == 1
            assert "a callback failed, and is not tried again" in own.stderr()


def test_name_that_leads_to_a_private_address():
    """As rebinding does: the name is listed, the address that it has is not."""
    with Receiver() as receiver:
        with Daemon(*allow(f"localhost:{receiver.port}")) as own:
            job = post(own, receiver.url("localhost"))
            wait_until(lambda: callback_of(own, job)["attempts"] >= 2, 10, "two attempts")
            assert "is not public, and not listed" in callback_of(own, job)["problem"]
            assert not receiver.requests
        both = allow(f"localhost:{receiver.port}", f"127.0.0.0/8:{receiver.port}")
        with Daemon(*both) as own:
            settled(own, post(own, receiver.url("localhost")), "delivered")


def test_proxy_variables_are_not_used():
    with Receiver() as receiver, Receiver() as proxy:
        variables = {"http_proxy": proxy.url(), "ALL_PROXY": proxy.url()}
        with Daemon(*allow(f"127.0.0.1:{receiver.port}"), env=variables) as own:
            settled(own, post(own, receiver.url()), "delivered")
        assert not proxy.requests


def test_tls(tmp_path):
    ca = pki.authority(tmp_path)
    certificate = pki.issue(tmp_path, ca, "receiver")
    with Receiver(tls=certificate) as receiver:
        listed = allow(f"127.0.0.1:{receiver.port}")
        with Daemon(*listed, "--callback-ca", ca[0]) as own:
            settled(own, post(own, receiver.url()), "delivered")
        with Daemon(*listed) as own:
            job = post(own, receiver.url())
            wait_until(lambda: callback_of(own, job)["problem"], 10, "a problem")
            assert "certificate" in callback_of(own, job)["problem"]
        assert len(receiver.requests) == 1


def test_kills_lose_none(tmp_path):
    """The daemon dies after the jobs' end and before their delivery."""
    data = tmp_path / "data"
    with Receiver() as reserved:
        port = reserved.port
    options = [*allow(f"127.0.0.1:{port}"), "--data-dir", data]
    with Daemon(*options) as own:
        jobs = [post(own, f"http://127.0.0.1:{port}/{i}") for i in range(10)]
        for job in jobs:
            later.ended(own, job["id"])
        own.process.kill()
        own.process.wait()
    with Receiver(port=port) as receiver, Daemon(*options) as own:
        for job in jobs:
            settled(own, job, "delivered")
        delivered = {headers["Invertd-Job"] for _, headers, _, _ in receiver.requests}
        assert delivered == {job["id"] for job in jobs}


def test_slow_receiver_holds_up_no_other():
    with Receiver(pause=8) as slow, Receiver() as quick:
        with Daemon(*allow(f"127.0.0.1:{slow.port}", f"127.0.0.1:{quick.port}")) as own:
            for _ in range(20):
                post(own, slow.url())
            start = time.monotonic()
            for job in [post(own, quick.url()) for _ in range(5)]:
                settled(own, job, "delivered")
            assert time.monotonic() - start < 7
            assert len(slow.requests) == 2  # so many at a time
            own.process.kill()
            own.process.wait()


def test_cancelled_jobs_call_no_one_back():
    with Receiver(503) as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}")) as own:
            job = post(own, receiver.url())
            wait_until(lambda: len(receiver.requests) >= 2, 10, "two attempts")
            assert later.delete(own, job["id"]).status == 204
            time.sleep(0.5)
            attempts = len(receiver.requests)
            time.sleep(2)
            assert len(receiver.requests) == attempts


def test_sending_process_is_confined_and_replaced():
    with Receiver() as receiver:
        with Daemon(*allow(f"127.0.0.1:{receiver.port}")) as own:
            settled(own, post(own, receiver.url()), "delivered")
            sender, = children_of(own.process.pid, "invertd-post")
            if not SANITIZER:
                status = pathlib.Path(f"/proc/{sender}/status").read_text()
                assert re.search(r"^Seccomp:\t2$", status, re.M), status
                assert re.search(r"^NoNewPrivs:\t1$", status, re.M), status
            os.kill(sender, signal.SIGKILL)
            settled(own, post(own, receiver.url()), "delivered")
            another, = children_of(own.process.pid, "invertd-post")
            assert another != sender
            own.stop()
            wait_until(lambda: not alive(another), 5, "its end with the daemon")


def test_without_callbacks_nothing_is_asked():
    with Daemon(*allow("hooks.example.com")) as daemon:
        job = later.accepted(daemon, SMALL)["id"]
        later.ended(daemon, job)
        time.sleep(1)
        before = daemon.metrics().total("invertd_store_transactions_total")
        time.sleep(2)
        more = daemon.metrics().total("invertd_store_transactions_total") - before
        assert more <= 60, more  # leases and counts


def test_no_process_without_hosts(daemon):
    assert not children_of(daemon.process.pid, "invertd-post")


def test_refused_before_there_is_a_job(daemon):
    answer = later.post(daemon, SMALL, query="?callback=http://a/")
    assert answer.status == 403 and "--allow-callbacks" in answer.json()["detail"], answer
    with Daemon(*allow("a:8080", "127.0.0.1")) as own:
        for url, status, word, prefer in [
            ("http://a:8080/", 400, "respond-async", None),
            ("http://a/", 403, "--allow-callbacks", "respond-async"),
            ("http://b:8080/", 403, "--allow-callbacks", "respond-async"),
            ("http://169.254.169.254/", 403, "--allow-callbacks", "respond-async"),
            ("http://[::ffff:127.0.0.1]/", 403, "--allow-callbacks", "respond-async"),
            ("ftp://a:8080/", 400, "scheme", "respond-async"),
            ("http://u:p@a:8080/", 400, "user", "respond-async"),
            ("http://a:8080/%23x", 400, "fragment", "respond-async"),
            ("http://2130706433/", 400, "host", "respond-async"),
            ("http://a:8080/" + "x" * 1100, 400, "1024", "respond-async"),
            ("http://a:8080/&callback=http://a:8080/", 400, "two callbacks", "respond-async"),
        ]:
            answer = later.post(own, SMALL, query=f"?callback={url}", prefer=prefer)
            assert answer.status == status and word in answer.json()["detail"], (url, answer)
        assert own.get("/v1/jobs").json()["jobs"] == []


@pytest.mark.parametrize("entry", ["*.a", "a:0", "http://a", "10.0.0.0/33"])
def test_bad_hosts(entry):
    answer = run_once("--allow-callbacks", entry)
    assert answer.returncode == 2 and "--allow-callbacks" in answer.stderr, answer


def test_receiver_of_the_page(tmp_path):
    """The receiver that docs/jobs.md has: it takes what is signed, and each job once."""
    page = (ROOT / "docs" / "jobs.md").read_text()
    program, = re.findall(r"```python\n(.*?)```", page, re.S)
    with Receiver() as reserved:
        port = reserved.port
    (tmp_path / "receiver.py").write_text(program.replace("9000", str(port)))
    secret, file = tmp_path / "secret", tmp_path / "tokens"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    tokens.write(file, tokens.line("a", "infer,jobs", "t", f"callback-secret-file={secret}"))
    receiver = subprocess.Popen([sys.executable, "receiver.py"], cwd=tmp_path,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        with Daemon("--token-file", file, *allow(f"127.0.0.1:{port}")) as own:
            job = post(own, f"http://127.0.0.1:{port}/", tokens.bearer("t"))
            settled(own, job, "delivered", tokens.bearer("t"))
            assert receiver.stdout.readline().split() == [job["id"], "successful"]
            secret.write_text("a secret of someone else")
            own.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "tokens reloaded" in own.stderr(), 10, "the reload")
            job = post(own, f"http://127.0.0.1:{port}/", tokens.bearer("t"))
            refused = wait_until(lambda: callback_of(own, job, tokens.bearer("t"))["problem"], 10,
                                 "a refusal")
            assert refused == "the answer was 403"
    finally:
        receiver.kill()
        receiver.wait()
