"""The command `invert` and jobs, with the daemon itself: what becomes a job, how it ends, and that
-o holds an old answer or a whole new one whatever dies in between.

What a daemon does not do on command is in test_invert_jobs.py.
"""

import json
import os
import signal
import time

import numpy as np
import pytest

from harness import later, matrices, tokens, wire
from harness.command import N, OLD, Files, Terminal, end, invert, start
from harness.daemon import Daemon, wait_until
from harness.settings import scaled_timeout

SIZE = 28928    # of a matrix of order N as .npy
SLOW = ("--batch-matrices-max", "1", "--in-flight", "1", "--threads", "1", "--batch-deadline",
        "60s")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return Files(folder)


class Logged:
    """A daemon that takes no large bodies directly, and what it was asked since the test began."""

    def __init__(self, daemon, log):
        self.daemon, self.log, self.url, self.skipped = daemon, log, daemon.url, 0

    def entries(self):
        entries = map(json.loads, self.log.read_text().splitlines())
        return [(entry["route"].replace("/v1/", ""), entry["status"]) for entry in entries
                if "/v1/" in entry["route"]]

    def forget(self):
        self.skipped = len(self.entries())

    def asked(self, answers):
        """Route and status of each, once there are so many."""
        return wait_until(lambda: len(found := self.entries()[self.skipped:]) >= answers and found,
                          10, f"{answers} answers in the log")


@pytest.fixture(scope="module")
def one_daemon(tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "access"
    with Daemon("--request-max", "16KiB", "--job-request-max", "1MiB", "--access-log",
                log) as daemon:
        yield Logged(daemon, log)


@pytest.fixture
def server(one_daemon):
    one_daemon.forget()
    return one_daemon


@pytest.fixture(scope="module")
def one_slow():
    """0.3 s for each matrix, one after the other."""
    with Daemon(*SLOW, fault="slow:300000") as daemon:
        yield daemon


@pytest.fixture
def slow(one_slow):
    """Without jobs, afterwards too."""
    yield one_slow
    for job in one_slow.get("/v1/jobs").json()["jobs"]:
        later.delete(one_slow, job["id"])
    wait_until(lambda: one_slow.metrics().total("invertd_arena_bytes", state="used") <= 4096, 10,
               "the jobs' memory to be free")


@pytest.fixture
def long(tmp_path):
    """Its job takes 24 s in the slow daemon."""
    folder = tmp_path / "long"
    folder.mkdir()
    return Files(folder, matrices.random(20, "f8", seed=2, batch=80) + 20 * np.eye(20))


def jobs_of(daemon):
    return daemon.get("/v1/jobs").json()["jobs"]


def wait_for_a_job(daemon, status):
    return wait_until(lambda: [job["id"] for job in jobs_of(daemon) if job["status"] == status],
                      10, f"a job that is {status}")[0]


# ---- Directly, or as a job ----


def test_a_large_file_is_a_job(server, files):
    assert invert(server, *files.as_job()) == ("", "")
    assert server.asked(4) == [("invert", 202), ("jobs/{id}", 200), ("jobs/{id}/result", 200),
                               ("jobs/{id}", 204)]
    files.check_new()


@pytest.mark.parametrize("options, asynchronous", [
    (["-d", SIZE], False), (["-d", SIZE - 1], True), ([], False)])
def test_the_threshold(files, daemon, options, asynchronous):
    before = daemon.metrics().total("invertd_job_duration_seconds_count")
    invert(daemon, files.path, "-o", files.out, *options)
    after = daemon.metrics().total("invertd_job_duration_seconds_count")
    assert after - before == asynchronous
    files.check_new()


def test_what_is_too_large_for_a_direct_request_becomes_a_job(server, files):
    line = json.loads(invert(server, files.path, "-o", files.out, "--json")[0])
    assert server.asked(5) == [("invert", 413), ("invert", 202), ("jobs/{id}", 200),
                               ("jobs/{id}/result", 200), ("jobs/{id}", 204)]
    assert line["exit"] == 0 and len(line["id"]) == 32 and line["method"] == "lu", line
    assert line["sent_bytes"] == line["received_bytes"] == SIZE
    files.check_new()


def test_too_large_both_ways(server, files):
    np.save(files.path, np.zeros((400, 400)))
    assert "--job-request-max" in invert(server, *files.as_job(), code=3)[1]
    files.check_old()


def test_a_daemon_without_jobs_answers_at_once(files):
    with Daemon("--data-dir", "none") as daemon:
        invert(daemon, *files.as_job())
        files.check_new()
        assert "no jobs" in invert(daemon, "--async", files.path, code=3)[1]


def test_a_token_without_jobs_is_answered_at_once(files, tmp_path):
    tokens.write(tmp_path / "tokens", tokens.line("plain", "infer", "plain"))
    (tmp_path / "token").write_text("plain\n")
    (tmp_path / "token").chmod(0o600)
    with Daemon("--token-file", tmp_path / "tokens") as daemon:
        invert(daemon, *files.as_job("-t", tmp_path / "token"))
    files.check_new()


@pytest.mark.parametrize("given", ["csv", "mtx"])
@pytest.mark.parametrize("to", ["csv", "mtx", "npy", "npz", "json"])
def test_each_format_as_a_job(server, tmp_path, given, to):
    path, out = tmp_path / f"a.{given}", tmp_path / f"b.{to}"
    head = {"csv": "", "mtx": "%%MatrixMarket matrix array real general\n2 2\n"}[given]
    path.write_text(head + {"csv": "4,7\n2,6\n", "mtx": "4\n2\n7\n6\n"}[given])
    invert(server, path, "-o", out, "-d", "0")
    if to in ("npy", "npz"):
        x = np.load(out) if to == "npy" else np.load(out)["inverse"]
    elif to == "json":
        x = json.loads(out.read_text())["inverse"]
    else:
        numbers = [float(word) for word in out.read_text().replace(",", " ").split()[-4:]]
        x = np.array(numbers).reshape(2, 2, order="F" if to == "mtx" else "C")
    assert np.allclose(x, [[0.6, -0.7], [-0.2, 0.4]])


def test_several_inputs_as_a_job(server, tmp_path):
    path, out, n = tmp_path / "a.npz", tmp_path / "b.npz", 30
    np.savez(path, dl=np.ones(n - 1), d=4 * np.ones(n), du=np.ones(n - 1))
    invert(server, path, "-o", out, "-d", "0", "-m", "tridiagonal", "-p",
           "outputs=inverse,info,method")
    a = 4 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    answer = np.load(out)
    assert np.allclose(answer["inverse"] @ a, np.eye(n)) and answer["info"] == 0


# ---- Death ----


@pytest.mark.parametrize("moment", ["upload", "run", "download"])
def test_the_daemon_is_killed(tmp_path, moment):
    """A stack of 31 MiB; the bar is on a terminal, and the inverse is written."""
    folder = tmp_path / "files"
    folder.mkdir()
    n = 200
    files = Files(folder, matrices.random(n, "f8", seed=5, batch=100) + n * np.eye(n))
    options = ("--data-dir", tmp_path / "data", "--arena-size", "32MiB")
    with Daemon(*options) as daemon, Terminal() as terminal:
        process = terminal.start(daemon, *files.as_job())

        def is_there():
            if moment == "upload":
                return list((tmp_path / "data").rglob("*.body.part"))
            if moment == "run":
                return [job for job in jobs_of(daemon) if job["status"] == "running"]
            return [path for path in folder.iterdir()
                    if path.name not in ("a.npy", "b.npy") and path.stat().st_size > 0]

        wait_until(is_there, 20, f"the {moment}", every=0.001)
        daemon.process.kill()
        daemon.process.wait()
        assert files.out.read_bytes() == OLD and process.poll() is None
        time.sleep(0.6)
        with Daemon(*options, listen=daemon.url):
            end(process, 0, within=40)
    files.check_new()
    assert b"load [" in terminal.shown and b"again in" in terminal.shown, terminal.shown
    assert terminal.shown.endswith(b"\r\x1b[K"), terminal.shown


@pytest.mark.faults
def test_the_daemon_comes_again_without_its_jobs(tmp_path, long):
    """Then the upload is sent again."""
    with Daemon(*SLOW, fault="slow:300000") as daemon:
        process = start(daemon, *long.as_job())
        wait_for_a_job(daemon, "running")
        daemon.process.kill()
        daemon.process.wait()
        with Daemon("--data-dir", tmp_path / "other", listen=daemon.url):
            end(process, 0)
    long.check_new()


@pytest.mark.faults
def test_waiting_survives_a_restart(tmp_path, long):
    data = ("--data-dir", tmp_path / "data")
    with Daemon(*data, *SLOW, fault="slow:300000") as daemon:
        name = invert(daemon, "--async", long.path)[0].strip()
        process = start(daemon, "wait", name)
        wait_for_a_job(daemon, "running")
        daemon.stop()
        with Daemon(*data, listen=daemon.url) as again:
            end(process, 0)
            invert(again, "fetch", name, "-o", long.out)
    long.check_new()


@pytest.mark.faults
@pytest.mark.parametrize("limit, code", [("--retry-max", 4), ("--timeout", 8)])
def test_a_daemon_that_stays_away(long, limit, code):
    with Daemon(*SLOW, fault="slow:300000") as daemon:
        process = start(daemon, *long.as_job(limit, "1"))
        name = wait_for_a_job(daemon, "running")
        daemon.process.kill()
        daemon.process.wait()
        assert name in end(process, code)[1]
    long.check_old()


def test_a_daemon_that_was_never_there(files):
    server = f"http://127.0.0.1:{wire.free_port()}"
    began = time.monotonic()
    assert server in invert(server, *files.as_job(), code=4)[1]
    assert time.monotonic() - began < scaled_timeout(5)
    files.check_old()


# ---- Ends ----


@pytest.mark.faults
def test_a_time_limit(slow, long):
    began = time.monotonic()
    stdout, stderr = invert(slow, *long.as_job("--timeout", "1.2", "--json"), code=8)
    assert time.monotonic() - began < scaled_timeout(5)
    line = json.loads(stdout)
    assert line["exit"] == 8 and line["id"] in stderr and "--timeout" in line["error"], line
    assert later.look(slow, line["id"])["status"] == "running"
    long.check_old()


def test_a_singular_matrix(server, files):
    np.save(files.path, np.ones((3, 3)))
    assert "singular" in invert(server, *files.as_job(), code=2)[1]
    assert server.asked(4)[2:] == [("jobs/{id}/result", 422), ("jobs/{id}", 204)]
    files.check_old()


def test_a_matrix_that_the_daemon_refuses(server, files):
    np.save(files.path, np.ones((3, 4)))
    assert "must be equal" in invert(server, *files.as_job(), code=3)[1]
    assert server.asked(1) == [("invert", 400)]
    files.check_old()


def test_a_disk_without_room(tmp_path):
    files = Files(tmp_path, matrices.random(300, "f8", seed=1))
    with Daemon("--spool-max", "1MiB") as daemon:
        assert "--spool-max" in invert(daemon, *files.as_job("-r", "1"), code=6)[1]
    files.check_old()


@pytest.mark.faults
def test_a_job_that_another_cancels(slow, long):
    process = start(slow, *long.as_job())
    invert(slow, "cancel", wait_for_a_job(slow, "running"))
    assert "cancelled" in end(process, 9)[1]
    assert jobs_of(slow) == []
    long.check_old()


def test_a_key_of_another_request(server, files):
    key = f"k{time.time()}"
    first = invert(server, "--async", files.path, "-i", key)[0]
    assert invert(server, "--async", files.path, "-i", key)[0] == first
    np.save(files.path, np.eye(3))
    assert "another request" in invert(server, "--async", files.path, "-i", key, code=3)[1]


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_job(slow, long, number):
    process = start(slow, *long.as_job())
    name = wait_for_a_job(slow, "running")
    time.sleep(0.1)  # it reads the answer meanwhile
    process.send_signal(number)
    assert f"the job {name} goes on" in end(process, -number)[1]
    assert json.loads(invert(slow, "status", name, "--json")[0])["status"] == "running"
    long.check_old()


# ---- The commands ----


def test_a_job_by_hand(server, files):
    name = invert(server, "--async", files.path)[0].strip()
    assert invert(server, "wait", name) == ("", "")
    status = invert(server, "status", name)[0].splitlines()
    assert status[0].startswith("ID") and status[1].split()[:3] == [name, "successful", "100%"]
    invert(server, "fetch", name, "-o", files.out)
    files.check_new()
    invert(server, "fetch", name, "-o", files.folder / "b.csv")
    assert np.allclose(np.loadtxt(files.folder / "b.csv", delimiter=","), np.load(files.out))
    assert invert(server, "cancel", name) == ("", "")
    for command in (["status"], ["wait"], ["cancel"], ["fetch", "-o", files.out]):
        stdout, stderr = invert(server, *command[:1], name, *command[1:], "--json", code=10)
        assert "no such job" in stderr and json.loads(stdout)["id"] == name


@pytest.mark.faults
def test_a_job_that_has_not_ended(slow, long):
    name = invert(slow, "--async", long.path)[0].strip()
    assert "invert wait" in invert(slow, "fetch", name, "-o", long.out, code=11)[1]
    long.check_old()
    assert json.loads(invert(slow, "status", name, "--json")[0])["id"] == name


def test_several_jobs(server, files):
    """The exit code is the first that is not 0; every job is asked for."""
    good = invert(server, "--async", files.path)[0].strip()
    np.save(files.path, np.ones((2, 2)))
    bad = invert(server, "--async", files.path)[0].strip()
    stdout, stderr = invert(server, "wait", "gone", bad, good, "--json", code=10)
    assert [json.loads(line)["exit"] for line in stdout.splitlines()] == [10, 2, 0]
    assert stderr.startswith("invert: gone: ") and f"{bad}: Matrix 0" in stderr


def test_a_result_that_has_expired(files):
    with Daemon("--result-ttl", "1s") as daemon:
        name = invert(daemon, "--async", files.path)[0].strip()
        invert(daemon, "wait", name)
        wait_until(lambda: later.result(daemon, name).status == 410, 20, "the result's end")
        assert "over" in invert(daemon, "fetch", name, "-o", files.out, code=10)[1]
    files.check_old()


def test_a_list(server, files):
    names = [invert(server, "--async", files.path)[0].strip() for _ in range(4)][::-1]
    invert(server, "wait", *names)
    listed = invert(server, "list", "-n", "3")[0].splitlines()
    assert [line.split()[0] for line in listed] == ["ID", *names[:3]]
    documents = invert(server, "list", "--json", "--status", "successful", "-n", "4")[0]
    assert [json.loads(line)["id"] for line in documents.splitlines()] == names
    assert invert(server, "list", "--json", "--since", "2100-01-01T00:00:00Z") == ("", "")
    assert "RFC 3339" in invert(server, "list", "--since", "a b", code=3)[1]


# ---- For people ----


@pytest.mark.faults
def test_progress_of_a_job(slow, tmp_path):
    """How far it is, and nothing else once it runs; erased at the end."""
    files = Files(tmp_path, matrices.random(20, "f8", seed=2, batch=10) + 20 * np.eye(20))
    with Terminal() as terminal:
        process = terminal.start(slow, *files.as_job())
        end(process, 0)
    assert b"running [#" in terminal.shown, terminal.shown
    assert b"waiting" not in terminal.shown.partition(b"running")[2], terminal.shown
    assert terminal.shown.endswith(b"\r\x1b[K")
    files.check_new()


@pytest.mark.faults
def test_a_job_that_waits_says_where(slow, long):
    for i in range(10):
        invert(slow, "--async", long.path, "-i", f"{os.getpid()}.{i}")
    with Terminal() as terminal:
        process = terminal.start(slow, *long.as_job())
        wait_until(lambda: b"waiting, position " in terminal.shown, 10, "its position")
        ahead = [job for job in jobs_of(slow) if job["status"] == "accepted"][1:]
        process.send_signal(signal.SIGTERM)
        end(process, -signal.SIGTERM)
    assert f"waiting, position {len(ahead)}  ".encode() in terminal.shown, terminal.shown
