"""The command `invert`: files in each format, exit codes, what a failure leaves, TLS and tokens."""

import contextlib
import http.server
import io
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from harness import matrices, pki, tokens, wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, clean_environment, wait_until
from harness.settings import BUILD, FACTOR, ROOT, scaled_timeout

INVERT = str(BUILD / "invert")
JSON_BODY = b'{"matrix": [[4, 7], [2, 6]]}'
INVERSE = [[0.6, -0.7], [-0.2, 0.4]]
SINGULAR = b'{"matrix": [[1, 1], [1, 1]]}'
OLD = b"what was there"


def start(*arguments, server=None, **other):
    environment = clean_environment({"INVERTD_SERVER": server} if server else None)
    return subprocess.Popen([INVERT, *map(str, arguments)], env=environment,
                            stdin=other.pop("stdin", subprocess.DEVNULL),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **other)


def invert(daemon, *arguments, body=None, code=0, server=None):
    """Runs it to its end; body: on stdin. Returns what it printed, and its words on stderr."""
    server = server or f"http://{daemon.url}"
    process = start(*arguments, server=server, stdin=subprocess.PIPE)
    stdout, stderr = process.communicate(body or b"", timeout=scaled_timeout(50))
    assert process.returncode == code, (process.returncode, stdout[:200], stderr)
    assert (stderr == b"") == (code == 0), stderr
    return stdout, stderr.decode()


@pytest.fixture
def body(tmp_path):
    """A file that is inverted, and one that shall stay as it is unless there is an answer."""
    path, old = tmp_path / "a.json", tmp_path / "b.json"
    path.write_bytes(JSON_BODY)
    old.write_bytes(OLD)
    return path, old


def fails(daemon, body, code, words, *arguments, server=None):
    """Refused, and the old file with nothing new in its folder."""
    path, old = body
    before = sorted(os.listdir(old.parent))
    stdout, stderr = invert(daemon, path, "-o", old, *arguments, code=code, server=server)
    assert words in stderr and stderr.count("\n") == 1, stderr
    assert stderr.startswith("invert: ") and stderr.endswith(".\n"), stderr
    assert old.read_bytes() == OLD and sorted(os.listdir(old.parent)) == before
    return stdout


# ---- Formats ----


@pytest.mark.parametrize("to", ["npy", "npz", "json"])
@pytest.mark.parametrize("given", ["npy", "npz", "json"])
def test_each_format(daemon, tmp_path, given, to):
    a, path, out = matrices.random(5, seed=3), tmp_path / f"a.{given}", tmp_path / f"b.{to}"
    if given == "json":
        path.write_text(json.dumps({"matrix": a.tolist()}))
    elif given == "npy":
        np.save(path, a)
    else:
        np.savez(path, a=a)
    assert invert(daemon, path, "-o", out, "--method", "lu") == (b"", "")
    x = json.loads(out.read_text()) if to == "json" else np.load(out)
    x = x if to == "npy" else x["inverse"]
    assert np.allclose(np.asarray(x) @ a, np.eye(5), atol=1e-10)


def test_a_name_that_says_nothing_leaves_it_to_the_first_bytes(daemon, tmp_path):
    path, out = tmp_path / "matrix", tmp_path / "inverse"
    with path.open("wb") as file:
        np.save(file, np.diag([2.0, 4.0]))
    invert(daemon, path, "-o", out)
    assert np.array_equal(np.load(out), np.diag([0.5, 0.25]))


def test_a_name_that_is_wrong_is_refused(daemon, tmp_path, body):
    path = tmp_path / "a.npy"
    path.write_bytes(JSON_BODY)
    fails(daemon, (path, body[1]), 3, "Content-Type is application/x-npy")


@pytest.mark.parametrize("to", ["csv", "mtx", "npy"])
@pytest.mark.parametrize("given", ["csv", "mtx"])
def test_text_formats(daemon, tmp_path, given, to):
    """Every number reads back to the same bits."""
    a, path, out = matrices.random(6, seed=8), tmp_path / f"a.{given}", tmp_path / f"b.{to}"
    npy, wanted = tmp_path / "a.npy", tmp_path / "wanted.npy"
    np.save(npy, a)
    invert(daemon, npy, "-o", wanted, "-m", "lu")
    rows = [",".join(map(repr, row)) for row in a.tolist()]
    if given == "mtx":
        rows = ["%%MatrixMarket matrix array real general", "6 6", *map(repr, a.T.ravel().tolist())]
    path.write_text("\n".join(rows))
    invert(daemon, path, "-o", out, "-m", "lu")
    if to == "npy":
        x = np.load(out)
    elif to == "csv":
        x = np.loadtxt(out, delimiter=",")
    else:
        x = np.loadtxt(out, skiprows=2).reshape(6, 6).T
    assert np.array_equal(x, np.load(wanted))


def test_a_text_on_stdin_is_answered_as_one(daemon):
    stdout, _ = invert(daemon, "-", "--from", "csv", "-o", "-", body=b"4 7\n2 6\n")
    assert np.allclose(np.loadtxt(stdout.decode().splitlines(), delimiter=","), INVERSE)
    stdout, _ = invert(daemon, "-", "-o", "-", "--to", "mtx", body=JSON_BODY)
    assert stdout.startswith(b"%%MatrixMarket matrix array real general\n2 2\n0.6")


def test_single_precision_as_text(daemon, tmp_path):
    """The shortest digits that are this float32, of which a float64 would need more."""
    np.save(tmp_path / "a.npy", np.diag(np.array([10, 3], np.float32)))
    stdout, _ = invert(daemon, tmp_path / "a.npy", "-o", "-", "--to", "csv")
    assert stdout == b"0.1,0\n0,0.33333334\n"


def test_texts_that_are_not_usable(daemon, tmp_path, body):
    path, old = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("1,2\n3,x\n")
    _, stderr = invert(daemon, path, "-o", body[1], code=1)
    assert f'{path}, line 2, column 3: "x" is no number' in stderr
    path.write_text("1,2\n")
    assert "must be equal" in invert(daemon, path, "-o", body[1], code=3)[1]
    np.save(tmp_path / "stack.npy", np.stack([np.eye(2)] * 3))
    assert "dimensions" in invert(daemon, tmp_path / "stack.npy", "-o", old, code=1)[1]
    assert not old.exists() and body[1].read_bytes() == OLD


def test_stdin_and_stdout(daemon, tmp_path):
    """From a pipe, and from a file that was read in part."""
    stdout, _ = invert(daemon, "-", "-o", "-", body=JSON_BODY)
    assert np.allclose(json.loads(stdout)["inverse"], INVERSE)
    file = tmp_path / "several"
    file.write_bytes(b"other" + JSON_BODY)
    with file.open("rb") as stdin:
        os.lseek(stdin.fileno(), 5, os.SEEK_SET)
        process = start("-", "-o", "-", server=f"http://{daemon.url}", stdin=stdin)
        stdout, _ = process.communicate(timeout=scaled_timeout(20))
    assert process.returncode == 0
    assert np.allclose(json.loads(stdout)["inverse"], INVERSE)


def test_a_pipe_is_copied_to_tmpdir(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    _, stderr = invert(daemon, "-", "-o", "-", body=JSON_BODY, code=1)
    assert "temporary copy of -: No such file" in stderr
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    invert(daemon, "-", "-o", "-", body=JSON_BODY)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_printed_on_stdout_when_it_fails(daemon):
    stdout, stderr = invert(daemon, "-", "-o", "-", body=SINGULAR, code=2)
    assert stdout == b"" and "singular" in stderr


def test_options_reach_the_method(daemon, tmp_path):
    out = tmp_path / "b.npz"
    invert(daemon, "-", "-o", out, "--method", "tridiagonal", "--option", "rows=0:2", "--option",
           "outputs=inverse,info", body=b'{"dl": [-1, -1], "d": [2, 2, 2], "du": [-1, -1]}')
    answer = np.load(out)
    assert sorted(answer) == ["info", "inverse"] and answer["inverse"].shape == (2, 3)


def test_a_large_matrix(daemon, tmp_path):
    """64 MiB, through a process that may have half of that in memory."""
    n = 2896 if FACTOR == 1 else 512
    a = matrices.random(n, seed=5)
    path, out = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(path, a)
    limit = "ulimit -d 32768; " if FACTOR == 1 else ""      # KiB
    stdout = subprocess.run(
        ["sh", "-c", f'{limit}exec "$0" "$@"', INVERT, path, "-o", out, "--json", "-m", "lu"],
        env=clean_environment({"INVERTD_SERVER": f"http://{daemon.url}"}), capture_output=True,
        check=True, timeout=scaled_timeout(50)).stdout
    line = json.loads(stdout)
    size = path.stat().st_size
    assert (line["exit"], line["sent_bytes"], line["received_bytes"]) == (0, size, size), line
    x = np.load(out)
    assert np.abs(x @ a[:, :8] - np.eye(n)[:, :8]).max() < 1e-6


# ---- Where the answer goes ----


def test_the_old_file_is_replaced_at_the_end(daemon, body):
    """With its mode, and where a symbolic link leads; next to it nothing is left."""
    path, old = body
    old.chmod(0o640)
    link = old.parent / "link.json"
    link.symlink_to(old.name)
    invert(daemon, path, "-o", link)
    assert link.is_symlink() and np.allclose(json.loads(old.read_text())["inverse"], INVERSE)
    assert old.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(old.parent)) == ["a.json", "b.json", "link.json"]


def test_a_file_onto_itself(daemon, body):
    path, _ = body
    invert(daemon, path, "-o", path)
    assert np.allclose(json.loads(path.read_text())["inverse"], INVERSE)


def test_what_is_no_file_is_written_to(daemon, body, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start(body[0], "-o", fifo, server=f"http://{daemon.url}")
    assert np.allclose(json.loads(fifo.read_text())["inverse"], INVERSE)
    assert process.wait(scaled_timeout(20)) == 0 and fifo.is_fifo()
    process.communicate()


@contextlib.contextmanager
def silent_server():
    """Takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(body, number):
    path, old = body
    with silent_server() as server:
        process = start(path, "-o", old, server=server)
        wait_until(lambda: len(os.listdir(old.parent)) == 3, 10, "the new file")
        time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=scaled_timeout(10))
    assert process.returncode == -number
    assert old.read_bytes() == OLD and sorted(os.listdir(old.parent)) == ["a.json", "b.json"]


# ---- Exit codes ----


def test_usage_and_local_files(daemon, body, tmp_path):
    path, old = body
    for arguments, words in (
            ([path], "-o is missing"),
            ([tmp_path / "none.npy", "-o", old], "No such file"),
            ([tmp_path, "-o", old], "Is a directory"),
            ([path, "-o", tmp_path / "none" / "b.json"], "cannot write"),
            ([path, "-o", tmp_path], "Is a directory"),
            ([path, "-o", "/dev/full"], "No space left"),
            ([path, "-o", old, "--token-file", tmp_path / "none"], "token-file"),
            ([path, "-o", old, "-s", "localhost:8000"], "https://HOST:PORT")):
        assert words in invert(daemon, *arguments, code=1)[1]
    assert old.read_bytes() == OLD


def test_a_singular_matrix(daemon, body):
    body[0].write_bytes(SINGULAR)
    line = json.loads(fails(daemon, body, 2, "exact zero pivot", "--json", "-m", "lu"))
    assert (line["exit"], line["status"], line["method"], line["info"]) == (2, 422, "lu", 1)
    assert "exact zero pivot" in line["error"]


def test_a_matrix_that_is_singular_to_working_precision_is_a_warning(daemon, body):
    path, old = body
    path.write_text(json.dumps({"matrix": [[1.0, 1.0], [1.0, 1.0 + 2.0 ** -52]]}))
    process = start(path, "-o", old, server=f"http://{daemon.url}")
    _, stderr = process.communicate(timeout=scaled_timeout(20))
    assert process.returncode == 0 and b"INFO is not 0 for 1 of" in stderr
    assert invert(daemon, path, "-o", old, "-q") == (b"", "")


def test_an_invalid_request(daemon, body):
    fails(daemon, body, 3, "no method 'foo'", "-m", "foo")
    body[0].write_bytes(b"")
    fails(daemon, body, 3, "body is empty")


def test_an_unreachable_server(daemon, body):
    server = f"http://127.0.0.1:{wire.free_port()}"
    line = json.loads(fails(daemon, body, 4, server, "--json", server=server))
    assert (line["exit"], line["status"], line["method"]) == (4, 0, None)


def test_a_unix_socket(body, tmp_path):
    with Daemon(listen=f"unix:{tmp_path}/socket") as daemon:
        invert(daemon, body[0], "-o", body[1], server=f"unix:{tmp_path}/socket")
    assert np.allclose(json.loads(body[1].read_text())["inverse"], INVERSE)


def test_tokens(body, tmp_path):
    tokens.write(tmp_path / "tokens", tokens.line("a", "infer", "secret")
                 + tokens.line("b", "metrics", "other"))
    held = tmp_path / "token"

    def hold(text, mode=0o600):
        held.write_text(text)
        held.chmod(mode)

    with Daemon("--token-file", tmp_path / "tokens") as daemon:
        hold("wrong\n")
        fails(daemon, body, 5, "token")
        fails(daemon, body, 5, "token", "--token-file", held)
        hold("other\n")
        fails(daemon, body, 5, "infer", "--token-file", held)
        hold("secret\n", 0o644)
        fails(daemon, body, 1, "others can read", "--token-file", held)
        hold("two words\n")
        fails(daemon, body, 1, "no token", "--token-file", held)
        hold("secret\nits line in the file\n")
        invert(daemon, body[0], "-o", body[1], "--token-file", held)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls(body, tmp_path):
    folder = tmp_path / "pki"
    folder.mkdir()
    ca, stranger = pki.authority(folder), pki.authority(folder, "stranger")
    cert, key = pki.issue(folder, ca, "server")
    ready = wire.request("GET", "/readyz")
    with Daemon("--tls-cert", cert, "--tls-key", key, ready=False) as daemon:
        tls = pki.context(ca)
        wait_until(lambda: pki.talk(daemon.address, tls, ready).status == 200, 60, "ready")
        server = f"https://localhost:{daemon.address[1]}"
        fails(daemon, body, 4, "certificate", server=server)
        fails(daemon, body, 4, "certificate", "--cacert", stranger[0], server=server)
        fails(daemon, body, 1, "CA cert", "--cacert", folder / "none", server=server)
        fails(daemon, body, 3, "This port speaks TLS", server=f"http://{daemon.url}")
        invert(daemon, body[0], "-o", body[1], "--cacert", ca[0], server=server)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_client_certificate(body, tmp_path):
    folder = tmp_path / "pki"
    folder.mkdir()
    ca = pki.authority(folder)
    cert, key = pki.issue(folder, ca, "server")
    own = pki.issue(folder, ca, "alice", usage="clientAuth")
    with Daemon("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ca[0],
                ready=False) as daemon:
        server = f"https://localhost:{daemon.address[1]}"
        trust = ["--cacert", ca[0], "--cert", own[0], "--key", own[1]]
        wait_until(lambda: start(body[0], "-o", body[1], *trust, server=server).wait() == 0, 60,
                   "an answer")
        assert np.allclose(json.loads(body[1].read_text())["inverse"], INVERSE)
        body[1].write_bytes(OLD)
        fails(daemon, body, 4, server, *trust[:2], server=server)
        own[1].chmod(0o644)
        fails(daemon, body, 1, "others can read", *trust, server=server)


def test_a_time_limit(daemon, body):
    with silent_server() as server:
        began = time.monotonic()
        fails(daemon, body, 8, "timed out", "--timeout", "700ms", server=server)
        assert 0.7 <= time.monotonic() - began < scaled_timeout(5)


# ---- No room, and other answers ----


@pytest.mark.faults
@pytest.mark.timeout(60)
def test_it_comes_again_when_there_is_no_room(body):
    """One request is computed for seconds and is all that the service takes."""
    request = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
    with Daemon("--queue-max", "1", "--batch-deadline", "60s",
                fault=f"slow:{int(scaled_timeout(1e6))}") as daemon:
        with daemon.connect() as busy:
            busy.send(request)
            time.sleep(0.2)
            line = json.loads(fails(daemon, body, 6, "", "--json", "--retry-max", "0"))
            assert (line["status"], line["tries"]) == (503, 1)
            stdout, _ = invert(daemon, body[0], "-o", body[1], "--json")
            line = json.loads(stdout)
            assert (line["exit"], line["status"]) == (0, 200) and line["tries"] > 1, line
            assert busy.read().status == 200


def test_it_comes_again_when_over_its_quota(body, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    tokens.write(tmp_path / "tokens", tokens.line("a", "infer", "secret", "rate=1"))
    with Daemon("--token-file", tmp_path / "tokens") as daemon:
        lines = [json.loads(invert(daemon, body[0], "-o", body[1], "--json", "--token-file",
                                   token)[0]) for _ in range(3)]
        assert lines[0]["tries"] == 1 and max(line["tries"] for line in lines) > 1, lines


@contextlib.contextmanager
def answering(status, fields=(), body=b"", length=None):
    """A server that gives every request this answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            for name, value in fields:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("status, code, words", [
    (500, 7, "the server answered 500"), (502, 7, "the server answered 502"),
    (504, 8, "the server answered 504"), (302, 7, "the server answered 302"),
    (418, 3, "the server answered 418")])
def test_answers_of_a_proxy(daemon, body, status, code, words):
    with answering(status, [("Location", "http://localhost:1/")], b"<html>") as server:
        fails(daemon, body, code, words, server=server)


def test_an_answer_that_breaks_off(daemon, body):
    with answering(200, [], b"{", length=100) as server:
        fails(daemon, body, 4, server, server=server)


def test_a_wait_beyond_the_limit_is_not_begun(daemon, body):
    with answering(503, [("Retry-After", "3600")]) as server:
        began = time.monotonic()
        fails(daemon, body, 6, "the server answered 503", server=server)
        assert time.monotonic() - began < scaled_timeout(5)


def test_a_detail_cannot_drive_a_terminal(daemon, body):
    detail = json.dumps({"detail": "\x1b[2J\x9bbad"}).encode()
    with answering(400, [], detail) as server:
        fails(daemon, body, 3, "?[2J??bad", server=server)


# ---- For people ----


def on_a_terminal(*arguments):
    """What it writes to stderr where that is a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen([INVERT, *map(str, arguments)], env=clean_environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    written = io.BytesIO()
    with contextlib.suppress(OSError):      # its end was closed
        while piece := os.read(ours, 4096):
            written.write(piece)
    os.close(ours)
    assert process.wait(scaled_timeout(20)) == 0
    return written.getvalue()


@pytest.mark.faults
def test_progress_on_a_terminal(body):
    """Of what lasts over half a second; it is erased at the end, and -q shows none."""
    with Daemon("--batch-deadline", "60s", fault="slow:900000") as daemon:
        given = [*body[:1], "-o", body[1], "-s", f"http://{daemon.url}"]
        shown = on_a_terminal(*given)
        assert b"\rcomputing  " in shown and shown.endswith(b"\r\x1b[K"), shown
        assert on_a_terminal(*given, "-q") == b""


def test_a_short_transfer_shows_nothing(daemon, body):
    assert on_a_terminal(body[0], "-o", "/dev/null", "-s", f"http://{daemon.url}") == b""


def test_version(daemon):
    version, _ = invert(daemon, "--version")
    assert version.decode().startswith(f"invert {(ROOT / 'VERSION').read_text().strip()}")


def test_the_daemon_ignores_the_variable_of_the_client():
    with Daemon(env={"INVERTD_SERVER": "http://localhost:1"}):
        pass
