"""The command `invert` and jobs, against a server that fails at will: what is sent again, what is
resumed, what is reported, and that -o holds an old answer or a whole new one.

What the daemon itself can be brought to do is in jobs/test_command.py.
"""

import time

import pytest

from harness.command import OLD, Files, end, invert, start
from harness.daemon import wait_until
from harness.job_server import JobServer
from harness.settings import scaled_timeout


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


def test_a_server_that_knows_no_jobs_answers_at_once(files):
    with JobServer(jobs=False) as server:
        invert(server, *files.as_job())
        assert server.requests("GET") == []
        files.check_new()
        assert "no jobs" in invert(server, "--async", files.path, code=3)[1]


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


@pytest.mark.parametrize("phase", ["upload", "wait", "download"])
def test_the_server_dies_and_comes_again_without_its_jobs(files, phase):
    """The upload is sent again under its key."""
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
        server.restart(after=0.5, keep=False)
        end(process, 0)
        keys = {entry["headers"]["Idempotency-Key"] for entry in server.requests("POST")}
        assert len(keys) == 1 and len(server.requests("POST")) >= 2
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


# ---- What is odd ----


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
