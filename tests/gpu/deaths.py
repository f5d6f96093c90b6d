#!/usr/bin/env python3
"""Real device faults under load: no wrong and no failed answer.

    deaths.py BUILD [--faults 50] [--clients 8] [--log FILE]

Starts the daemon with the CUDA engine of the test build, whose kernel writes to a bad address when
a matrix begins with a certain number. Clients send single matrices, 8x8 and 32x32, one after the
other, and compare every answer bit by bit with the one they had at the start, which was checked by
its residual. Meanwhile poisoned requests come, one at a time: each kills the engine, then the spare
one twice, and is answered 500. Nobody else may notice more than a pause. Prints one line, with the
longest pause; ends with 1 when anything was wrong. Needs Python alone.
"""

import argparse
import array
import http.client
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

POISON = 1234567.0
PATH = "/v2/models/lu/infer"
START_S, ANSWER_S, MOST_S = 30, 60, 400


def matrix(n, seed):
    """n x n, well conditioned, row-major."""
    numbers = random.Random(seed)
    return array.array("d", (numbers.uniform(-0.5, 0.5) + (2 if j == (i + 1) % n else 0)
                             for i in range(n) for j in range(n)))


def ask(connection, a):
    """The status and the raw tensors of the answer: INVERSE, INFO, RCOND."""
    connection.request("POST", PATH, a.tobytes(), {"Inference-Header-Content-Length": "0"})
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, body[int(answer.headers.get("Inference-Header-Content-Length", 0)):]


def is_inverse(a, raw, n):
    x = array.array("d", raw[:8 * n * n])
    return all(abs(sum(x[i * n + k] * a[k * n + j] for k in range(n)) - (i == j)) < 1e-10
               for i in range(n) for j in range(n))


class Load:
    """Clients that know what they must be answered."""

    def __init__(self, port, count):
        self.port, self.stopping, self.lock = port, threading.Event(), threading.Lock()
        self.right = self.wrong = self.failed = 0
        self.pause, self.first_trouble = 0.0, ""
        self.expected = []
        connection = self.connect()
        for seed in range(48):
            n = 8 if seed % 4 else 32
            a = matrix(n, seed)
            status, raw = ask(connection, a)
            if status != 200 or not is_inverse(a, raw, n):
                sys.exit(f"deaths: the first answer of order {n} is wrong, status {status}")
            self.expected.append((a, raw))
        connection.close()
        self.threads = [threading.Thread(target=self.run, args=(k,)) for k in range(count)]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)

    def note(self, status, same, took):
        with self.lock:
            self.right += status == 200 and same
            self.wrong += status == 200 and not same
            self.failed += status != 200
            self.pause = max(self.pause, took)
            if status != 200 or not same:
                self.first_trouble = self.first_trouble or f"status {status}"

    def run(self, seed):
        connection, choose = self.connect(), random.Random(seed)
        while not self.stopping.is_set():
            a, raw = choose.choice(self.expected)
            start = time.monotonic()
            try:
                status, got = ask(connection, a)
            except (OSError, http.client.HTTPException) as error:
                status, got = type(error).__name__, b""
                connection.close()
            self.note(status, got == raw, time.monotonic() - start)
        connection.close()


def start_daemon(build, folder):
    engine = build / "faults" / "invertd-cuda"
    port_file = folder / "port"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [build / "invertd", "--listen", "127.0.0.1:0", "--port-file", port_file, "--engine",
             "cuda:0", "--engine-cuda-path", engine, "--fault-cuda", f"poison:{POISON:.0f}"],
            stderr=log, stdin=subprocess.DEVNULL)
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
        if not port_file.exists() or not port_file.read_text().strip():
            continue
        port = int(port_file.read_text())
        if get(port, "/readyz")[0] == 200:
            return process, port
    process.kill()
    sys.exit("deaths: the daemon did not become ready:\n" + (folder / "log").read_text()[-2000:])


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def faults_so_far(port):
    lines = re.findall(r'^invertd_engine_restarts_total\{[^}]*device_fault[^}]*\} (\d+)',
                       get(port, "/metrics")[1], re.M)
    return sum(map(int, lines))


def poison(load, faults, problems):
    """Poisoned requests until so many device faults were seen."""
    a = matrix(8, 1)
    a[0] = POISON
    connection = load.connect()
    end = time.monotonic() + MOST_S
    while faults_so_far(load.port) < faults:
        status, _ = ask(connection, a)
        if status != 500:
            problems.append(f"a poisoned matrix was answered {status}")
        if problems or time.monotonic() > end:
            break
    connection.close()
    seen = faults_so_far(load.port)
    if seen < faults and not problems:
        problems.append(f"only {seen} faults in {MOST_S} s")
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--log", type=pathlib.Path, help="where to keep the daemon's log")
    options = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory(prefix="invertd-deaths-") as folder:
        process, port = start_daemon(options.build.resolve(), pathlib.Path(folder))
        try:
            load = Load(port, options.clients)
            for thread in load.threads:
                thread.start()
            time.sleep(0.5)
            seen = poison(load, options.faults, problems)
            time.sleep(0.5)
            load.stopping.set()
            for thread in load.threads:
                thread.join()
            process.terminate()
            if process.wait(40) != 0:
                problems.append(f"the daemon ended with {process.returncode}")
        finally:
            process.kill()
            process.wait()
            if options.log:
                shutil.copy(pathlib.Path(folder) / "log", options.log)
    if load.wrong or load.failed:
        problems.append(f"{load.wrong} wrong, {load.failed} failed: {load.first_trouble}")
    print(f"{seen} device faults under load: {load.right} right answers, {load.wrong} wrong,"
          f" {load.failed} failed; longest pause {load.pause:.2f} s")
    for problem in problems:
        print(f"deaths: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
