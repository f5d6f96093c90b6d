"""The command `invert` and jobs, against a server that fails at will: what is sent again, what is
resumed, what is reported, and that -o holds an old answer or a whole new one."""

import json
import os
import pty
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

from harness import matrices, wire
from harness.daemon import clean_environment, wait_until
from harness.job_server import JobServer
from harness.settings import BUILD, scaled_timeout

INVERT = str(BUILD / "invert")
OLD = b"what was there"
N = 60          # 28,928 bytes as .npy


def start(server, *arguments, **other):
    environment = clean_environment({"INVERTD_SERVER": server if isinstance(server, str)
                                     else server.url})
    return subprocess.Popen([INVERT, *map(str, arguments)], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=other.pop("stderr", subprocess.PIPE), **other)


def end(process, code):
    stdout, stderr = process.communicate(timeout=scaled_timeout(30))
    assert process.returncode == code, (process.returncode, stdout[:300], stderr)
    return stdout.decode("latin-1"), (stderr or b"").decode()


def invert(server, *arguments, code=0):
    return end(start(server, *arguments), code)


class Files:
    """A matrix, and where its inverse goes."""

    def __init__(self, folder):
        self.a, self.folder = matrices.random(N, seed=7), folder
        self.path, self.out = folder / "a.npy", folder / "b.npy"
        np.save(self.path, self.a)
        self.out.write_bytes(OLD)

    def as_job(self, *more):
        return [self.path, "-o", self.out, "-d", "0", *more]

    def check_new(self):
        assert np.allclose(np.load(self.out) @ self.a, np.eye(N), atol=1e-8)
        self.check_folder()

    def check_old(self):
        assert self.out.read_bytes() == OLD
        self.check_folder()

    def check_folder(self):
        assert sorted(os.listdir(self.folder)) == ["a.npy", "b.npy"]


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def lines_of(server):
    """What was asked for, without ids and queries."""
    known = {"POST /v1/invert": "upload", "GET /v1/jobs": "ask", "DELETE /v1/jobs": "forget"}
    return ["result" if "/result" in entry["line"] else
            next(name for begin, name in known.items() if entry["line"].startswith(begin))
            for entry in server.log]


# ---- Directly, or as a job ----


def test_a_large_file_is_a_job(files):
    with JobServer(seconds=0.2) as server:
        assert invert(server, *files.as_job()) == ("", "")
        assert lines_of(server) == ["upload", "ask", "result", "forget"]
        headers = server.log[0]["headers"]
        assert headers["Prefer"] == "respond-async" and len(headers["Idempotency-Key"]) == 32
        assert "wait=20" in server.log[1]["line"]
        assert server.log[2]["headers"]["Accept"] == "application/x-npy"
    files.check_new()


@pytest.mark.parametrize("options, asynchronous", [
    (["-d", "28928"], False), (["-d", "28927"], True), ([], False)])
def test_the_threshold(files, options, asynchronous):
    with JobServer() as server:
        invert(server, files.path, "-o", files.out, *options)
        assert ("Prefer" in server.log[0]["headers"]) == asynchronous
    files.check_new()


def test_what_is_too_large_for_a_direct_request_becomes_a_job(files):
    with JobServer(direct_max=1000) as server:
        line = json.loads(invert(server, files.path, "-o", files.out, "--json")[0])
        assert lines_of(server) == ["upload", "upload", "ask", "result", "forget"]
        assert line["exit"] == 0 and line["id"] == f"{0:032x}" and line["method"] == "lu", line
        assert line["sent_bytes"] == line["received_bytes"] == 28928
    files.check_new()


@pytest.mark.parametrize("server, refusals", [
    (JobServer(jobs=False), []),
    (JobServer(), [("POST", 403, {})]),
    (JobServer(), [("POST", 503, {"Retry_After": "9", "name": "no-jobs"})])])
def test_a_server_without_jobs_answers_at_once(files, server, refusals):
    with server:
        server.faults.refusals = list(refusals)
        invert(server, *files.as_job())
        assert server.requests("GET") == []
    files.check_new()


def test_too_large_both_ways(files):
    with JobServer(direct_max=1000, jobs=False) as server:
        assert "--request-max" in invert(server, files.path, "-o", files.out, code=3)[1]
    files.check_old()


@pytest.mark.parametrize("name", ["csv", "mtx"])
def test_a_text_as_a_job(tmp_path, name):
    path, out = tmp_path / "a.csv", tmp_path / f"b.{name}"
    path.write_text("4,7\n2,6\n")
    with JobServer() as server:
        invert(server, path, "-o", out, "-d", "0")
    numbers = [float(word) for word in out.read_text().replace(",", " ").split()[-4:]]
    wanted = [0.6, -0.7, -0.2, 0.4] if name == "csv" else [0.6, -0.2, -0.7, 0.4]
    assert np.allclose(numbers, wanted)


# ---- What breaks off ----


@pytest.mark.parametrize("fault, asked", [
    ("cut_uploads", ["upload", "upload", "ask", "result", "forget"]),
    ("cut_after_uploads", ["upload", "upload", "ask", "result", "forget"]),
    ("cut_waits", ["upload", "ask", "ask", "result", "forget"]),
    ("cut_downloads", ["upload", "ask", "result", "result", "forget"])])
def test_a_connection_that_breaks(files, fault, asked):
    """One job, whatever is sent again."""
    with JobServer() as server:
        setattr(server.faults, fault, 1)
        invert(server, *files.as_job())
        assert lines_of(server) == asked and len(server.store.jobs) == 1
        keys = {entry["headers"]["Idempotency-Key"] for entry in server.requests("POST")}
        assert len(keys) == 1
        if fault == "cut_downloads":
            again = server.log[3]["headers"]
            assert again["Range"] == "bytes=14464-" and again["If-Range"].startswith('"')
    files.check_new()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("to", ["file", "pipe"])
def test_downloads_that_break_off_again_and_again(files, ranges, to):
    """Without ranges the whole comes again, and a pipe gets what it has not got."""
    with JobServer(ranges=ranges) as server:
        server.faults.cut_downloads = 3
        out = files.out if to == "file" else "-"
        stdout, _ = invert(server, files.path, "-o", out, "-d", "0")
        assert len([line for line in lines_of(server) if line == "result"]) == 4
    if to == "pipe":
        files.out.write_bytes(stdout.encode("latin-1"))
    files.check_new()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("phase", ["upload", "wait", "download"])
def test_the_server_dies_and_comes_again(files, phase, keep):
    """With what it knew, or without: then the upload is sent again under its key."""
    with JobServer(seconds=0.6 if phase == "wait" else 0) as server:
        if phase == "upload":
            server.faults.cut_uploads = 1
        if phase == "download":
            server.faults.cut_downloads = 2
        process = start(server, *files.as_job())
        wanted = {"upload": "POST", "wait": "GET", "download": "GET"}[phase]
        wait_until(lambda: [entry for entry in server.requests(wanted)
                            if phase != "download" or "/result" in entry["line"]], 10, phase)
        time.sleep(0.05)
        server.restart(after=0.5, keep=keep)
        end(process, 0)
        keys = {entry["headers"]["Idempotency-Key"] for entry in server.requests("POST")}
        uploads = 1 if keep and phase != "upload" else 2
        assert len(keys) == 1 and len(server.requests("POST")) >= uploads
        assert len(server.store.jobs) == 1
    files.check_new()


@pytest.mark.parametrize("status", [429, 503, 507])
@pytest.mark.parametrize("what", ["POST", "GET"])
def test_no_room(files, what, status):
    with JobServer() as server:
        server.faults.refusals = [(what, status, {"Retry_After": "1"})]
        began = time.monotonic()
        invert(server, *files.as_job())
        assert time.monotonic() - began >= 1
    files.check_new()
    files.out.write_bytes(OLD)
    with JobServer() as server:
        server.faults.refusals = [(what, status, {"Retry_After": "60"})]
        _, stderr = invert(server, *files.as_job("-r", "5"), code=6)
        assert f"refused with {status}" in stderr
    files.check_old()


# ---- Ends ----


def test_a_time_limit(files):
    with JobServer(seconds=60) as server:
        began = time.monotonic()
        stdout, stderr = invert(server, *files.as_job("--timeout", "1.2", "--json"), code=8)
        assert time.monotonic() - began < scaled_timeout(5)
        line = json.loads(stdout)
        assert line["exit"] == 8 and line["id"] in stderr and "--timeout" in line["error"], line
        assert server.requests("DELETE") == []
    files.check_old()


@pytest.mark.parametrize("limit, code", [("--retry-max", 4), ("--timeout", 8)])
def test_a_server_that_stays_away(files, limit, code):
    with JobServer(seconds=60) as server:
        process = start(server, *files.as_job(limit, "1"))
        wait_until(lambda: server.requests("GET"), 10, "the job")
        server.kill()
        _, stderr = end(process, code)
        assert f"{0:032x}" in stderr
    files.check_old()


def test_a_server_that_was_never_there(files):
    server = f"http://127.0.0.1:{wire.free_port()}"
    began = time.monotonic()
    assert server in invert(server, *files.as_job(), code=4)[1]
    assert time.monotonic() - began < scaled_timeout(5)
    files.check_old()


def test_a_singular_matrix(files):
    np.save(files.path, np.ones((3, 3)))
    with JobServer() as server:
        assert "singular" in invert(server, *files.as_job(), code=2)[1]
        assert lines_of(server)[-1] == "forget"
    files.check_old()


def test_a_job_that_another_cancels(files):
    with JobServer(seconds=60) as server:
        process = start(server, *files.as_job())
        wait_until(lambda: server.requests("GET"), 10, "the job")
        invert(server, "cancel", f"{0:032x}")
        assert "cancelled" in end(process, 9)[1]
        assert len(server.requests("POST")) == 2    # the second finds out that it is not lost
    files.check_old()


def test_a_key_of_another_request(files):
    with JobServer() as server:
        first = invert(server, "--async", files.path, "-i", "k")[0]
        assert invert(server, "--async", files.path, "-i", "k")[0] == first
        np.save(files.path, np.eye(3))
        assert "another request" in invert(server, "--async", files.path, "-i", "k", code=3)[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_job(files, number):
    with JobServer(seconds=60) as server:
        process = start(server, *files.as_job())
        wait_until(lambda: server.requests("GET"), 10, "the job")
        process.send_signal(number)
        stderr = end(process, -number)[1]
        assert f"the job {0:032x} goes on" in stderr
        invert(server, "status", f"{0:032x}")
    files.check_old()


# ---- The commands ----


def test_a_job_by_hand(files):
    with JobServer(seconds=0.6) as server:
        name = invert(server, "--async", files.path)[0].strip()
        status = invert(server, "status", name)[0].splitlines()
        assert status[0].startswith("ID") and status[1].split()[:2] == [name, "accepted"]
        assert "invert wait" in invert(server, "fetch", name, "-o", files.out, code=11)[1]
        files.check_old()
        assert invert(server, "wait", name) == ("", "")
        document = json.loads(invert(server, "status", name, "--json")[0])
        assert document["status"] == "successful"
        invert(server, "fetch", name, "-o", files.out)
        files.check_new()
        invert(server, "fetch", name, "-o", files.folder / "b.csv")
        assert np.allclose(np.loadtxt(files.folder / "b.csv", delimiter=","), np.load(files.out))
        assert invert(server, "cancel", name) == ("", "")
        for command in (["status"], ["wait"], ["cancel"], ["fetch", "-o", files.out]):
            stdout, stderr = invert(server, *command[:1], name, *command[1:], "--json", code=10)
            assert "no such job" in stderr and json.loads(stdout)["id"] == name


def test_several_jobs(files):
    """The exit code is the first that is not 0; every job is asked for."""
    with JobServer() as server:
        good = invert(server, "--async", files.path)[0].strip()
        np.save(files.path, np.ones((2, 2)))
        bad = invert(server, "--async", files.path)[0].strip()
        stdout, stderr = invert(server, "wait", "gone", bad, good, "--json", code=10)
        assert [json.loads(line)["exit"] for line in stdout.splitlines()] == [10, 2, 0]
        assert stderr.startswith("invert: gone: ") and f"{bad}: Matrix 0" in stderr
        server.store.jobs[good]["expired"] = True
        assert "expired" in invert(server, "fetch", good, "-o", files.out, code=10)[1]
        assert files.out.read_bytes() == OLD


def test_a_list(files):
    with JobServer() as server:
        names = [invert(server, "--async", files.path)[0].strip() for _ in range(4)][::-1]
        listed = invert(server, "list", "-n", "3")[0].splitlines()
        assert [line.split()[0] for line in listed] == ["ID", *names[:3]]
        documents = invert(server, "list", "--json", "--status", "successful")[0].splitlines()
        assert [json.loads(line)["id"] for line in documents] == names
        assert invert(server, "list", "--json", "--status", "failed", "--since", "a b") == ("", "")
        asked = "GET /v1/jobs?limit=100&status=failed&since=a%20b"
        assert server.log[-1]["line"] == asked


def test_waiting_survives_a_restart(files):
    with JobServer(seconds=0.8) as server:
        name = invert(server, "--async", files.path)[0].strip()
        process = start(server, "wait", name)
        wait_until(lambda: server.requests("GET"), 10, "the job")
        server.restart(after=0.3)
        end(process, 0)
        process = start(server, "wait", name)
        wait_until(lambda: len(server.requests("GET")) > 2, 10, "the job")
        end(process, 0)


def test_long_polls_that_are_answered_early(files):
    with JobServer(seconds=0.8, polls=False) as server:
        invert(server, *files.as_job())
        assert 3 <= lines_of(server).count("ask") <= 6
    files.check_new()


def test_a_server_that_makes_no_sense(files):
    with JobServer() as server:
        server.document = lambda job: {"id": "../up", "status": "running"}
        assert "no document" in invert(server, *files.as_job(), code=7)[1]
        assert "no document" in invert(server, "--async", files.path, code=7)[1]
    files.check_old()


def test_asynchronous_where_there_are_no_jobs(files):
    with JobServer(jobs=False) as server:
        assert "no jobs" in invert(server, "--async", files.path, code=3)[1]


# ---- For people ----


def test_progress_of_a_job(files):
    """Its position, then how far it is; erased at the end."""
    ours, its = pty.openpty()
    shown = []

    def read():
        try:
            while piece := os.read(ours, 4096):
                shown.append(piece)
        except OSError:         # its end was closed
            pass

    with JobServer(seconds=4) as server:
        process = start(server, *files.as_job(), stderr=its)
        os.close(its)
        reader = threading.Thread(target=read)
        reader.start()
        end(process, 0)
        reader.join()
    os.close(ours)
    text = b"".join(shown)
    assert b"waiting, position 1" in text and b"running [" in text, text
    assert text.endswith(b"\r\x1b[K")
    files.check_new()
