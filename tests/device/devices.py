#!/usr/bin/env python3
"""Two GPUs of one machine behind one daemon: both work, and one may die.

    devices.py BUILD [--kills 6] [--log FILE]

Starts the daemon with `--engine cuda:0,1` and two spare engines a device. The engines are those of
the test build, whose batches take 5 ms at least, so that one device cannot do all the work. Clients
send batches of 64 matrices of order 32 and compare every answer bit by bit with the first one,
which was checked by its residual: the two devices are of one model, so the bits must not tell which
one answered. Each device has to answer. Then an engine is killed, the first device's and the
second's in turn, while the clients go on: no answer may be wrong or fail, and both devices must
work again. Ends with 1 when anything was wrong, with 77 when there are fewer than two devices.
Needs Python alone.
"""

import argparse
import array
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from deaths import get, is_inverse, matrix, total

N, COUNT, CLIENTS, DEVICES, SPARES = 32, 64, 16, 2, 2
SLOW_US = 5000
START_S, ANSWER_S, UP_S = 30, 60, 20


class Daemon:
    def __init__(self, build):
        self.folder = tempfile.TemporaryDirectory(prefix="invertd-devices-")
        self.path = pathlib.Path(self.folder.name)
        with (self.path / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [build / "invertd", "--listen", "127.0.0.1:0", "--port-file", self.path / "port",
                 "--engine", "cuda:0,1", "--engine-cuda-path", build / "faults" / "invertd-cuda",
                 "--fault-cuda", f"slow:{SLOW_US}", "--cuda-spares", str(SPARES)],
                stderr=log, stdin=subprocess.DEVNULL)
        self.port = 0
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            time.sleep(0.05)
            port = self.path / "port"
            self.port = int(port.read_text() or 0) if port.exists() else 0
            if self.port and get(self.port, "/readyz")[0] == 200 and self.up() == DEVICES \
                    and self.spares() == DEVICES * SPARES:
                return
        self.end()
        sys.exit("devices: the daemon did not become ready")

    def up(self):
        return total(self.port, r'invertd_device_up\{device="cuda:\d+"\}')

    def batches(self, device):
        return total(self.port, rf'invertd_device_batches_total\{{device="cuda:{device}"\}}')

    def engine(self, device):
        """The process that has the device's role: the last one that the log says so of."""
        roles_taken = ("engine started", "a spare engine takes over")
        found = 0
        for line in (self.path / "log").read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # it is being written
            said = json.loads(line)
            if said["message"] in roles_taken and said.get("device") == f"cuda:{device}":
                found = said["pid"]
        return found

    def spares(self):
        return total(self.port, r'invertd_device_spares\{device="cuda:\d+"\}')

    def end(self, keep=None):
        self.process.terminate()
        try:
            status = self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if keep:
            shutil.copy(self.path / "log", keep)
        self.folder.cleanup()
        return status


def batch():
    one = matrix(N, 7)
    body = one * COUNT
    head = (f'{{"inputs":[{{"name":"A","shape":[{COUNT},{N},{N}],"datatype":"FP64","parameters":'
            f'{{"binary_data_size":{8 * len(body)}}}}}],"parameters":'
            f'{{"binary_data_output":true}},"outputs":[{{"name":"INVERSE"}}]}}').encode()
    return one, head, head + body.tobytes()


class Load:
    """Clients that send one batch after the other."""

    def __init__(self, port):
        self.port, self.stopping, self.lock = port, threading.Event(), threading.Lock()
        self.right, self.trouble = 0, []
        one, head, self.body = batch()
        self.headers = {"Inference-Header-Content-Length": str(len(head)),
                        "Content-Type": "application/octet-stream"}
        status, self.expected = self.send(self.connect())
        first = array.array("d", self.expected[:8 * N * N])
        if status != 200 or not is_inverse(one, first.tobytes(), N):
            sys.exit(f"devices: the first answer is wrong, status {status}")
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)

    def send(self, connection):
        connection.request("POST", "/v2/models/lu/infer", self.body, self.headers)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, body[int(answer.headers.get("Inference-Header-Content-Length", 0)):]

    def run(self):
        connection = self.connect()
        while not self.stopping.is_set():
            try:
                status, got = self.send(connection)
            except (OSError, http.client.HTTPException) as error:
                status, got = type(error).__name__, b""
                connection.close()
            with self.lock:
                if status == 200 and got == self.expected:
                    self.right += 1
                else:
                    self.trouble.append(f"status {status}" if status != 200 else "other bits")
        connection.close()

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def work(daemon, what, problems):
    """Whether both devices answer, now."""
    before = [daemon.batches(device) for device in range(DEVICES)]
    time.sleep(1)
    done = [daemon.batches(device) - was for device, was in enumerate(before)]
    print(f"{what}: batches of a second by device {done}")
    if 0 in done:
        problems.append(f"{what}: a device had no work, {done}")


def kill(daemon, device, problems):
    """One engine dies, and all that there were are up again."""
    victim = daemon.engine(device)
    os.kill(victim, signal.SIGKILL)
    end = time.monotonic() + UP_S
    while time.monotonic() < end:
        time.sleep(0.05)
        if (daemon.engine(device) != victim and daemon.up() == DEVICES
                and daemon.spares() == DEVICES * SPARES):
            break
    else:
        problems.append(f"cuda:{device} did not come back in {UP_S} s")
    work(daemon, f"cuda:{device} killed and back", problems)


def try_all(build, options, problems):
    daemon = Daemon(build)
    try:
        load = Load(daemon.port)
        work(daemon, "both up", problems)
        for k in range(options.kills):
            kill(daemon, k % DEVICES, problems)
        load.end()
        print(f"{load.right} right answers, {len(load.trouble)} others")
        if load.trouble:
            problems.append(f"{len(load.trouble)} answers: {load.trouble[0]}")
    finally:
        status = daemon.end(options.log)
    if status != 0:
        problems.append(f"the daemon ended with {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--log", type=pathlib.Path, help="where to keep the daemon's log")
    options = parser.parse_args()
    build = options.build.resolve()
    listed = subprocess.run([build / "invertd-cuda", "--list", "--log-format", "text"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    if len(re.findall(r"cuda:\d+", listed.stdout)) < 2:
        print("devices: fewer than two GPUs here")
        return 77
    problems = []
    try_all(build, options, problems)
    for problem in problems:
        print(f"devices: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
