"""Jobs at their edges: cancelled while they run, quotas that are used up, preferences of any form,
a disk that is full, a folder that is copied."""

import contextlib
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import numpy as np
import pytest

from harness import codec, later, matrices, tokens, wire
from harness.codec import JSON, NPY
from harness.daemon import Daemon, wait_until
from harness.settings import ROOT, scaled_timeout

SMALL = b'{"matrix": [[4, 7], [2, 6]], "method": "lu"}'
SLOW = ("--batch-matrices-max", "1", "--in-flight", "1", "--threads", "1", "--batch-deadline",
        "60s")


def stack(batch, n=60):
    """More than 64 KiB, from two matrices on."""
    return codec.npy(matrices.random(n, "f8", seed=batch, batch=batch) + n * np.eye(n))


def slow(*options, **other):
    """0.2 s for each matrix, one after the other."""
    return Daemon(*SLOW, *options, fault="slow:200000", **other)


def running(daemon, batch=200, **other):
    job = later.accepted(daemon, stack(batch), {"Content-Type": NPY, **other})["id"]
    wait_until(lambda: later.look(daemon, job, "", other)["status"] == "running", 10, "a run")
    return job


# ---- Cancelled while it runs ----


@pytest.mark.faults
def test_a_running_job_is_cancelled_at_its_next_step(tmp_path):
    with slow("--data-dir", tmp_path / "data") as daemon:
        job = running(daemon)
        with daemon.connect() as waiting, daemon.connect() as watching:
            waiting.send(wire.request("GET", f"/v1/jobs/{job}?wait=30"))
            watching.send(wire.request("GET", f"/v1/jobs/{job}/events"))
            wait_until(lambda: later.look(daemon, job)["progress"] > 0, 10, "progress")
            start = time.monotonic()
            assert later.delete(daemon, job).status == 204
            assert waiting.read().status == 404
            heard = later.events(watching.read().text)
            assert heard[-1][1:] == ("status", {"status": "dismissed"})
        for answer in (daemon.get(f"/v1/jobs/{job}"), later.result(daemon, job),
                       later.delete(daemon, job)):
            assert answer.status == 404, answer
        assert daemon.get("/v1/jobs").json()["jobs"] == []
        # Its files and its memory go, and the next one is computed: 200 matrices took 40 s.
        wait_until(lambda: not [path for path in (tmp_path / "data" / "spool").rglob("*")
                                if path.is_file()], 5, "no file")
        daemon.wait_idle_arena(5)
        next_job = later.accepted(daemon, SMALL)["id"]
        assert later.ended(daemon, next_job)["status"] == "successful"
        assert time.monotonic() - start < scaled_timeout(10)


# ---- Where it stands ----


@pytest.mark.faults
def test_position():
    """In the job's own document; null in that of the 202 and in lists."""
    with slow() as daemon:
        first = running(daemon)
        others = [later.accepted(daemon, stack(100), {"Content-Type": NPY}) for _ in range(3)]
        assert [job["position"] for job in others] == [None] * 3

        def positions():
            seen = [later.look(daemon, job["id"]) for job in others]
            return [job["position"] for job in seen if job["status"] == "accepted"]

        wait_until(lambda: positions() == list(range(len(positions()))) and positions(), 10,
                   "places in a row")
        assert {job["position"] for job in daemon.get("/v1/jobs").json()["jobs"]} == {None}
        for job in (first, *(job["id"] for job in others)):
            later.delete(daemon, job)


# ---- What a client prefers ----


@pytest.mark.parametrize("lines, status", [
    (["respond-async"], 202),
    (["handling=lenient", "respond-async"], 202),
    (["wait=0", "respond-async"], 202),
    (["respond-async", "wait=20"], 200),
    (["wait=20", "return=minimal, RESPOND-ASYNC"], 200),
    (["respond-async; foo=\"a, b\"", "depth-noroot, x=\"\\\"\""], 202),
    (["handling=strict", "wait=3", "nonsense"], 200),
])
def test_preferences_on_several_lines(daemon, lines, status):
    request = wire.request("POST", "/v1/invert", SMALL, {"Content-Type": JSON})
    fields = "".join(f"Prefer: {line}\r\n" for line in lines).encode()
    answer = daemon.talk(request.replace(b"\r\n\r\n", b"\r\n" + fields + b"\r\n", 1))
    assert answer.status == status, answer
    is_job = any("respond-async" in line.lower() for line in lines)
    assert (answer.header("Preference-Applied") == "respond-async") == is_job, answer
    assert (answer.header("Location") is not None) == is_job, answer


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 3, 3)])
@pytest.mark.parametrize("prefer", ["respond-async", "respond-async, wait=5"])
def test_nothing_to_compute_is_answered_at_once(daemon, shape, prefer):
    def newest():
        return [job["id"] for job in daemon.get("/v1/jobs?limit=1").json()["jobs"]]

    before = newest()
    answer = later.post(daemon, codec.npy(np.zeros(shape)), {"Content-Type": NPY}, prefer=prefer)
    assert answer.status == 200 and codec.load(answer.body).shape == shape
    assert answer.header("Preference-Applied") is None
    assert newest() == before


# ---- Quotas of a token ----


@pytest.mark.faults
def test_quotas_of_jobs_and_of_spool(tmp_path):
    """What is over is 429; another client is not concerned; what ends or goes makes room."""
    tokens.write(tmp_path / "tokens", tokens.line("few", "infer,jobs", "few", "jobs=2")
                 + tokens.line("small", "infer,jobs", "small", "spool=300KiB")
                 + tokens.line("other", "infer,jobs", "other"))
    few, small, other = (tokens.bearer(name) for name in ("few", "small", "other"))
    with slow("--token-file", tmp_path / "tokens") as daemon:
        jobs = [running(daemon, batch, **few) for batch in (100, 101)]
        over = later.post(daemon, SMALL, few)
        assert over.status == 429 and int(over.header("Retry-After")) >= 1
        assert "jobs=2" in over.json()["detail"], over
        assert daemon.post("/v1/invert", SMALL, few).status == 200
        assert later.delete(daemon, jobs[1], few).status == 204
        later.accepted(daemon, SMALL, few)
        # 79,328 bytes in and as many out: two of them are more than 300 KiB, and one of 141 alone;
        # short ones take nothing of it.
        later.accepted(daemon, codec.npy(np.eye(99)), {**small, "Content-Type": NPY})
        over = later.post(daemon, codec.npy(np.eye(99)), {**small, "Content-Type": NPY})
        assert over.status == 429 and "spool=307200" in over.json()["detail"], over
        over = later.post(daemon, codec.npy(np.eye(141)), {**small, "Content-Type": NPY})
        assert over.status == 413 and "spool=307200" in over.json()["detail"], over
        for _ in range(3):
            later.accepted(daemon, SMALL, small)
        later.accepted(daemon, codec.npy(np.eye(99)), {**other, "Content-Type": NPY})
        later.delete(daemon, jobs[0], few)


# ---- A disk that is full ----


class SmallDisk:
    """A daemon whose data folder is a file system of its own, which no one else sees."""

    def __init__(self, folder, size):
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.daemon = slow("--data-dir", self.data)
        self.daemon.command = [
            "unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
            'mount -t tmpfs -o mode=700,size="$1" none "$0" && shift && exec "$@"', str(self.data),
            size, *self.daemon.command]

    def filler(self):
        return pathlib.Path(f"/proc/{self.daemon.process.pid}/root{self.data}/filler")

    def fill(self):
        with self.filler().open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass


def may_mount(folder):
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "mount", "-t",
                           "tmpfs", "none", str(folder)], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.faults
def test_a_full_disk(tmp_path):
    """Jobs are refused with 507, direct requests are answered, and what runs ends once there is
    room again."""
    if not may_mount(tmp_path):
        pytest.skip("no file system may be mounted here")
    disk = SmallDisk(tmp_path, "8m")
    with disk.daemon as daemon:
        job = running(daemon, 20)
        disk.fill()
        large = later.post(daemon, stack(30), {"Content-Type": NPY})
        assert large.status == 507 and "no-room" in large.json()["type"], large
        assert int(large.header("Retry-After")) >= 1

        def refused():
            answer = later.post(daemon, SMALL)
            assert answer.status in (202, 507), answer  # the log of the store may have had room
            return answer if answer.status == 507 else None

        small = wait_until(refused, 10, "a job that is refused")
        assert "disk" in small.json()["detail"] and small.header("Retry-After"), small
        assert daemon.post("/v1/invert", SMALL).status == 200
        time.sleep(1)
        assert daemon.post("/v1/invert", SMALL).status == 200
        disk.filler().unlink()
        wait_until(lambda: later.post(daemon, SMALL).status == 202, 15, "jobs to be taken again")
        assert later.ended(daemon, job, 40)["status"] == "successful"
        assert codec.load(later.result(daemon, job).body).shape == (20, 60, 60)


# ---- The folder ----


def inverses(daemon, jobs):
    for job, a in jobs.items():
        assert later.ended(daemon, job, 40)["status"] == "successful"
        x = codec.load(later.result(daemon, job).body)
        assert np.allclose(np.matmul(x, a), np.eye(a.shape[-1]), atol=1e-8)


@pytest.mark.faults
def test_sigterm_puts_a_running_job_back(tmp_path):
    data = ("--data-dir", tmp_path / "data")
    a = matrices.random(60, "f8", seed=1, batch=100) + 60 * np.eye(60)
    with slow(*data) as daemon:
        job = later.accepted(daemon, codec.npy(a), {"Content-Type": NPY})["id"]
        wait_until(lambda: later.look(daemon, job)["progress"] > 0, 10, "progress")
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < scaled_timeout(5)  # it needs 20 s
    with Daemon(*data) as daemon:
        inverses(daemon, {job: a})
        assert later.look(daemon, job)["attempt"] == 2


def commands_of_backup(data, backup):
    """As docs/jobs.md says: a copy of a daemon that runs, and another way for the database."""
    text = (ROOT / "docs" / "jobs.md").read_text().partition("### Backup and restore")[2]
    lines = re.search(r"```\n(.*?)```", text, re.S)[1]
    other = re.search(r'or: ("VACUUM INTO [^"]*")', lines)[1]
    named = [text.replace("DATA", str(data)).replace("BACKUP", str(backup))
             for text in (re.sub(r"\s+#.*", "", lines), f"sqlite3 DATA/jobs.db {other}")]
    return named[0], named[1].replace("jobs.db'", "other.db'")


def check_store(path, rows):
    with contextlib.closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert store.execute("SELECT count(*) FROM jobs").fetchall() == [(rows,)]


@pytest.mark.faults
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
@pytest.mark.parametrize("how", ["running", "stopped"])
def test_backup_and_restore(tmp_path, how):
    """Of a daemon that has jobs that have ended, one that runs and one that waits."""
    data, backup = tmp_path / "data", tmp_path / "backup"
    jobs = {}
    with slow("--data-dir", data) as daemon:
        for batch in (1, 3, 30, 4):
            a = matrices.random(60, "f8", seed=batch, batch=batch) + 60 * np.eye(60)
            job = later.accepted(daemon, codec.npy(a), {"Content-Type": NPY})["id"]
            jobs[job] = a
            if batch < 4:
                later.ended(daemon, job)
        wait_until(lambda: [1 for job in jobs if later.look(daemon, job)["status"] == "running"],
                   10, "a run")
        if how == "running":
            lines, other = commands_of_backup(data, backup)
            subprocess.run(["sh", "-ec", lines + other], check=True)
            check_store(backup / "other.db", len(jobs))
            (backup / "other.db").unlink()
            later.accepted(daemon, SMALL)  # is not in the copy
        daemon.stop()
    if how == "stopped":
        subprocess.run(["cp", "-a", data, backup], check=True)
    check_store(backup / "jobs.db", len(jobs))
    shutil.move(data, tmp_path / "old")
    subprocess.run(["cp", "-a", backup, data], check=True)
    with Daemon("--data-dir", data) as daemon:
        inverses(daemon, jobs)
        assert len(daemon.get("/v1/jobs").json()["jobs"]) == len(jobs)
