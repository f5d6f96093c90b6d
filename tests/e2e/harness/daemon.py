"""Starts and stops the daemon under test, and looks at it from outside.

A Daemon owns its process and a scratch folder. `stop` asserts a clean end: exit code 0, no
engine left behind, no sanitizer report on stderr.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from . import metrics, wire
from .settings import CUDA_DOUBLE, DAEMON, FAULT_ENGINE, SIMT_ENGINE, scaled_timeout

REPORTS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "runtime error:", "Assertion")


def clean_environment(extra=None):
    """The environment without the suite's own INVERTD_*: the daemon refuses unknown ones."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INVERTD_")}
    environment.update(extra or {})
    return environment


def run_once(*options, env=None, timeout=20):
    """The daemon as a command that is expected to end by itself."""
    return subprocess.run(
        [str(DAEMON), *map(str, options)],
        env=clean_environment(env),
        capture_output=True,
        text=True,
        timeout=scaled_timeout(timeout),
        stdin=subprocess.DEVNULL,
    )


def cuda_double(faults=""):
    """Options that put the stand-in in the CUDA engine's place."""
    return ["--engine-cuda-path", str(CUDA_DOUBLE)] + (["--fault-cuda", faults] if faults else [])


def children_of(pid, name):
    """Pids of a process's children with that name, oldest first."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = (entry / "stat").read_text()
            command, rest = re.match(r"\d+ \((.*)\) (.*)", text, re.S).groups()
            fields = rest.split()
            if int(fields[1]) == pid and command == name and fields[0] != "Z":
                found.append((int(fields[19]), int(entry.name)))
    return [pid for _, pid in sorted(found)]


def alive(pid):
    """Whether the process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, within, what, every=0.02):
    """Polls until condition() is true, and returns what it gave; fails after `within` seconds."""
    end = time.monotonic() + scaled_timeout(within)
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {scaled_timeout(within)} s: {what}"
        time.sleep(every)


class Daemon:
    def __init__(self, *options, fault=None, cuda=None, env=None, listen="127.0.0.1:0", ready=True,
                 leader=False, files=None):
        """fault: of the host engine, which is alone then unless something else is asked for. cuda:
        a stand-in is the CUDA engine, with these faults. leader: of a process group of its own.
        files: the limit on open files."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="invertd-e2e-"))
        self.port_file = self.folder / "port"
        self.stderr_file = self.folder / "stderr"
        self.process, self.address, self.metrics_address = None, None, None
        self.wants_ready = ready
        self.listen = listen
        self.leader = leader
        self.command = [str(DAEMON), "--listen", listen]
        if not listen.startswith("unix:"):
            self.command += ["--port-file", str(self.port_file)]
        if "--data-dir" not in options:
            self.command += ["--data-dir", str(self.folder / "data")]
        if fault:
            self.command += ["--engine-path", str(FAULT_ENGINE), "--fault", fault]
        if fault and cuda is None and "--engine" not in options:
            self.command += ["--engine", "host"]
        if cuda is not None:
            self.command += cuda_double(cuda)
        self.command += [str(option) for option in options]
        if files is not None:
            self.command = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"'] + self.command
        if "--metrics-listen" in self.command:
            host, port = self.command[self.command.index("--metrics-listen") + 1].split(":")
            self.metrics_address = (host, int(port))
        self.environment = clean_environment(env)
        if fault or cuda:
            self._let_faults_kill()

    def _let_faults_kill(self):
        """A sanitizer shall not report the engine that a fault kills with SIGSEGV on purpose."""
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
            options = [self.environment[name]] if self.environment.get(name) else []
            self.environment[name] = ":".join(options + ["handle_segv=0"])

    # ---- Life ----

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if self.process is None:
            return
        if kind is None and self.process.poll() is None:
            self.stop()
        self.destroy()

    def start(self):
        with self.stderr_file.open("wb") as stderr:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=self.leader,
            )
        try:
            if self.listen.startswith("unix:"):
                self.address = self.listen.removeprefix("unix:")
            else:
                port = wait_until(self._port, 20, "a port in the port file")
                self.address = (self.listen.rpartition(":")[0], port)
            if self.wants_ready:
                self.wait_ready()
        except BaseException:
            self.destroy()
            raise
        return self

    def _port(self):
        assert self.process.poll() is None, f"ended at the start: {self.stderr()}"
        if not self.port_file.exists():
            return 0
        return int(self.port_file.read_text().strip() or 0)

    def wait_ready(self, within=60):
        wait_until(self.is_ready, within, "ready")

    def is_ready(self):
        assert self.process.poll() is None, f"ended: {self.stderr()}"
        try:
            return self.get("/v2/health/ready").status == 200
        except (OSError, wire.Gone):
            return False

    def stop(self, signal_number=signal.SIGTERM, code=0, within=35):
        """Asks the daemon to end, and checks how it does."""
        engines = self.engines() + self.engines("invertd-cuda")
        self.process.send_signal(signal_number)
        return self.ended(code, within, engines)

    def ended(self, code=0, within=35, engines=()):
        try:
            actual = self.process.wait(scaled_timeout(within))
        except subprocess.TimeoutExpired:
            limit = scaled_timeout(within)
            raise AssertionError(f"still runs after {limit} s: {self.stderr()}") from None
        stderr = self.stderr()
        assert actual == code, f"exit code {actual}, not {code}: {stderr}"
        for word in REPORTS:
            assert word not in stderr, stderr
        wait_until(lambda: not any(map(alive, engines)), 3, "all engines to be gone")
        return stderr

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stderr(self):
        return self.stderr_file.read_text("utf-8", "replace")

    def log_lines(self):
        """What it has logged so far, but for a line that is not whole yet."""
        whole = self.stderr().splitlines(keepends=True)
        return [json.loads(line) for line in whole if line[0] == "{" and line[-1] == "\n"]

    # ---- Talking to it ----

    @property
    def url(self):
        return f"{self.address[0]}:{self.address[1]}"

    def connect(self, timeout=None, source=None):
        return wire.Connection(self.address, timeout, source)

    def talk(self, data, timeout=None):
        return wire.talk(self.address, data, timeout)

    def get(self, path, headers=None):
        return self.talk(wire.request("GET", path, None, headers))

    def post(self, path, body=b"", headers=None):
        return self.talk(wire.request("POST", path, body, headers))

    def metrics(self):
        address = self.metrics_address or self.address
        answer = wire.talk(address, wire.request("GET", "/metrics"))
        assert answer.status == 200, answer
        return metrics.Page(answer.text)

    # ---- Looking at it ----

    def engines(self, name="invertd-host"):
        return children_of(self.process.pid, name)

    def own_engine(self, device="host"):
        """Pid of the device's own engine, the last that took the role; spare ones are others."""
        started = [line for line in self.log_lines() if line.get("device") == device
                   and line["message"] in ("engine started", "a spare engine takes over")]
        return started[-1]["pid"] if started else None

    def new_engine(self, old, within=30, name="invertd-host", device="host"):
        """Waits for an engine that is not among `old`, and for its device to be up."""

        def replaced():
            up = self.metrics().total("invertd_device_up", device=device)
            return set(self.engines(name)) - set(old) and up == 1

        wait_until(replaced, within, "a new engine")

    def resident_bytes(self):
        """Proportional memory of front and engines: pages they share count once."""
        total = 0
        for pid in [self.process.pid, *self.engines()]:
            with contextlib.suppress(OSError):
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.M).group(1)) * 1024
        return total

    def wait_idle_arena(self, within):
        """Waits until requests hold nothing of the arena; the service's own probes have little."""

        def idle():
            return self.metrics().total("invertd_arena_bytes", state="used") <= 4096

        wait_until(idle, within, "the arena given back")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def simt(*options):
    """A daemon whose one engine is the CUDA engine, its kernels run on the CPU by the stand-in.

    Batches take seconds there, and more where other tests run next to them."""
    return Daemon("--engine", "cuda:0", "--engine-cuda-path", SIMT_ENGINE, "--cuda-spares", "0",
                  "--batch-deadline", "60s", *options)
