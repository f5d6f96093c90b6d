#!/usr/bin/env python3
"""Real device faults under load: no wrong and no failed answer.

    deaths.py BUILD [--faults 50] [--clients 8] [--spares 3] [--calm] [--log FILE]

Starts the daemon with the CUDA engine of the test build, whose kernel writes to a bad address when
a matrix begins with a certain number. Clients send single matrices, 8x8 and 32x32, one after the
other, and compare every answer bit by bit with the one they had at the start, which was checked by
its residual. Meanwhile poisoned requests come, one at a time: each kills the engine, then two spare
ones, and is answered 500. With --calm the next one comes when all spare engines are up again, and
all others must be answered within 2 s; else it comes at once. No one else may notice more than a
pause. Prints what was answered, and for each poisoned request, from then to the next: the longest
time in which no one was answered; the longest that one request took, which is one that shared a
batch with it; its own. Ends with 1 when anything was wrong. Needs Python alone.
"""

import argparse
import array
import contextlib
import http.client
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

POISON = 1234567.0
PATH = "/v2/models/lu/infer"
START_S, ANSWER_S, MAX_S = 30, 60, 400
CALM_S = 2  # in which a fault is to be repaired


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
        self.times = []  # of each right answer: when it was asked for, and when it came
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
        self.threads = [threading.Thread(target=self.run, args=(k,), daemon=True)
                        for k in range(count)]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)

    def note(self, status, same, start, end):
        with self.lock:
            if status == 200 and same:
                self.times.append((start, end))
            self.right += status == 200 and same
            self.wrong += status == 200 and not same
            self.failed += status != 200
            self.pause = max(self.pause, end - start)
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
            self.note(status, got == raw, start, time.monotonic())
        connection.close()


def start_daemon(build, folder, *options):
    """The daemon, its log in the folder, and its port, once it is ready."""
    port_file = folder / "port"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [build / "invertd", "--listen", "127.0.0.1:0", "--port-file", port_file, *options],
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
    sys.exit("the daemon did not become ready:\n" + (folder / "log").read_text()[-2000:])


@contextlib.contextmanager
def served(build, problems, *options, log=None):
    """The port of a daemon, which is to end with 0. log: where to keep its log."""
    with tempfile.TemporaryDirectory(prefix="invertd-device-") as folder:
        folder = pathlib.Path(folder)
        process, port = start_daemon(build, folder, *options)
        try:
            yield port
            process.terminate()
            if process.wait(40) != 0:
                problems.append(f"the daemon ended with {process.returncode}")
        finally:
            process.kill()
            process.wait()
            if log:
                shutil.copy(folder / "log", log)


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


def total(port, pattern):
    """Of the series whose name and labels match."""
    lines = re.findall(rf"^{pattern} (\d+)", get(port, "/metrics")[1], re.M)
    return sum(map(int, lines))


def faults_so_far(port):
    return total(port, r"invertd_engine_restarts_total\{[^}]*device_fault[^}]*\}")


def wait_calm(port, spares, problems):
    end = time.monotonic() + START_S
    while total(port, r"invertd_device_spares\{[^}]*\}") < spares:
        if time.monotonic() > end:
            problems.append(f"not {spares} spare engines after {START_S} s")
            return
        time.sleep(0.05)
    time.sleep(0.3)


def poison(load, options, problems):
    """Poisoned requests until so many device faults were seen; when each was sent and answered."""
    a = matrix(8, 1)
    a[0] = POISON
    connection, sent = load.connect(), []
    end = time.monotonic() + MAX_S
    while faults_so_far(load.port) < options.faults:
        if options.calm:
            wait_calm(load.port, options.spares, problems)
        start = time.monotonic()
        try:
            status, _ = ask(connection, a)
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        sent.append((start, time.monotonic()))
        if status != 500:
            problems.append(f"a poisoned matrix was answered {status}")
        if problems or time.monotonic() > end:
            break
    connection.close()
    seen = faults_so_far(load.port)
    if seen < options.faults and not problems:
        problems.append(f"only {seen} faults in {MAX_S} s")
    return seen, sent


def run(load, options, problems):
    """Faults under load; as poison."""
    for thread in load.threads:
        thread.start()
    try:
        time.sleep(0.5)
        return poison(load, options, problems)
    finally:
        time.sleep(0.5)
        load.stopping.set()
        for thread in load.threads:
            thread.join(ANSWER_S)
        if any(thread.is_alive() for thread in load.threads):
            problems.append("a client was not answered to the end")


def show(what, waits):
    waits = sorted(1000 * wait for wait in waits)
    if waits:
        print(f"  {what}: median {statistics.median(waits):.0f} ms, longest {waits[-1]:.0f} ms")


def show_recovery(load, sent):
    silences, waits = [], []
    starts = [start for start, _ in sent]
    for start, until in zip(starts, starts[1:] + [float("inf")], strict=True):
        ends = sorted(end for _, end in load.times if start <= end < until)
        silences.append(max((b - a for a, b in zip([start] + ends, ends, strict=False)), default=0))
        waits.append(max((end - asked for asked, end in load.times if start <= end < until),
                         default=0))
    print(f"after a poisoned request ({len(sent)} of them):")
    show("no one answered", silences)
    show("slowest of the others", waits)
    show("its own answer", [end - start for start, end in sent])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--spares", type=int, default=3)
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--log", type=pathlib.Path, help="where to keep the daemon's log")
    options = parser.parse_args()
    problems = []
    build = options.build.resolve()
    with served(build, problems, "--engine", "cuda:0", "--engine-cuda-path",
                build / "faults" / "invertd-cuda", "--fault-cuda", f"poison:{POISON:.0f}",
                "--cuda-spares", str(options.spares), log=options.log) as port:
        load = Load(port, options.clients)
        seen, sent = run(load, options, problems)
    if load.wrong or load.failed:
        problems.append(f"{load.wrong} wrong, {load.failed} failed: {load.first_trouble}")
    if options.calm and load.pause > CALM_S:
        problems.append(f"an answer took {load.pause:.2f} s, more than {CALM_S} s")
    print(f"{seen} device faults under load, {options.spares} spare engines: {load.right} right"
          f" answers, {load.wrong} wrong, {load.failed} failed; longest pause {load.pause:.2f} s")
    show_recovery(load, sent)
    for problem in problems:
        print(f"deaths: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
