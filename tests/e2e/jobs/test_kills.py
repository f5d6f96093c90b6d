"""The front is killed under load, again and again: what was answered 202 is computed, once.

Clients post jobs with keys, and repeat a post until it is answered. The ledger has what they were
answered. INVERTD_KILLS sets how often the front is killed.
"""

import contextlib
import os
import random
import sqlite3
import threading
import time

import numpy as np
import pytest

from harness import codec, later, wire
from harness.codec import NPY
from harness.daemon import Daemon, wait_until
from harness.settings import scaled_timeout

KILLS = int(os.environ.get("INVERTD_KILLS", "50"))
CLIENTS = 8
SMALL, LARGE = 3, 100  # the latter's body and result are files
POSTS_MAX = 40  # of a client in a life, so that a life's work is done soon
GONE = (OSError, wire.Gone, AssertionError)  # a head that was cut short is an AssertionError


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.jobs = {}  # key: (id, matrix)
        self.finished = {}  # id: when, as it was first seen
        self.wrong = []

    def add(self, key, job, matrix):
        with self.lock:
            if self.jobs.setdefault(key, (job, matrix))[0] != job:
                self.wrong.append(f"{key} is {self.jobs[key][0]} and {job}")

    def see(self, document):
        with self.lock:
            first = self.finished.setdefault(document["id"], document["finished"])
            if first != document["finished"]:
                self.wrong.append(f"{document['id']} ended at {first} and {document['finished']}")


class Client(threading.Thread):
    """Posts a job, and looks at an earlier one; begins again where it was cut off."""

    def __init__(self, number, ledger):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.number, self.ledger, self.posted, self.left = number, ledger, 0, 0
        self.service, self.done = None, False

    def run(self):
        while not self.done:
            service = self.service
            if service is None or self.left == 0:
                time.sleep(0.005)
                continue
            with contextlib.suppress(*GONE):
                self.post(service)
                self.look(service)

    def post(self, service):
        key = f"{self.number}.{self.posted}"
        numbers = np.random.default_rng(self.number * 100000 + self.posted)
        n = LARGE if self.posted % 8 == 7 else SMALL
        matrix = numbers.random((n, n)) + n * np.eye(n)
        answer = later.post(service, codec.npy(matrix),
                            {"Content-Type": NPY, "Idempotency-Key": key}, "?method=lu")
        if answer.status not in (200, 202):
            return  # it is starting, or has no engine yet
        self.ledger.add(key, answer.json()["id"], matrix)
        self.posted += 1
        self.left -= 1

    def look(self, service):
        with self.ledger.lock:
            job = self.random.choice(list(self.ledger.jobs.values()))[0]
        answer = service.get(f"/v1/jobs/{job}")
        assert answer.status in (200, 503), answer
        if answer.status == 200 and later.is_over(answer.json()):
            self.ledger.see(answer.json())


def check_store(path):
    with contextlib.closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def all_over(daemon):
    return all(not daemon.get(f"/v1/jobs?limit=1&status={status}").json()["jobs"]
               for status in ("accepted", "running"))


@pytest.mark.timeout(120 + 3 * KILLS)
def test_kills(tmp_path):
    data, ledger, dice = tmp_path / "data", Ledger(), random.Random(1)
    clients = [Client(number, ledger) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    options = ("--data-dir", str(data), "--arena-size", "32MiB", "--result-ttl", "1h")
    lives = 0
    for _ in range(KILLS):
        with Daemon(*options, ready=False) as daemon:
            before = len(ledger.jobs)
            for client in clients:
                client.left, client.service = POSTS_MAX, daemon
            wait_until(lambda: len(ledger.jobs) > before, 30, "a job", every=0.005)
            time.sleep(dice.random() * 0.3)
            for client in clients:
                client.service = None
            daemon.process.kill()
            daemon.process.wait()
            lives += 1
    for client in clients:
        client.done = True
    for client in clients:
        client.join(scaled_timeout(30))
    assert ledger.wrong == []
    with Daemon(*options) as daemon:
        wait_until(lambda: all_over(daemon), 60, "the end of all jobs")
        for key, (job, matrix) in ledger.jobs.items():
            document = later.look(daemon, job)
            assert document["status"] == "successful", document
            ledger.see(document)
            if len(matrix) == SMALL or key.endswith("7"):
                x = codec.load(later.result(daemon, job).body)
                assert np.allclose(x @ matrix, np.eye(len(matrix)), atol=1e-9), key
        assert ledger.wrong == []
        daemon.stop()
        check_store(data / "jobs.db")
    print(f"{lives} kills, {len(ledger.jobs)} jobs")
