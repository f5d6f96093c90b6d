"""What is left to a process that someone has broken into: no new privileges, few calls."""

import os
import pathlib

import numpy as np
import pytest

from harness.codec import v2_json
from harness.daemon import Daemon, alive, children_of, wait_until
from harness.settings import CUDA_DOUBLE, SANITIZER

# A sanitizer looks into its own process with ptrace: its builds confine nothing.
pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="builds for sanitizers are not confined")


def tasks(pid):
    """(NoNewPrivs, Seccomp) of each of the process's threads."""
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        lines = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines()
                     if ":\t" in line)
        found.add((lines["NoNewPrivs"].strip(), lines["Seccomp"].strip()))
    return found


def test_front_and_engines_are_confined():
    with Daemon("--loops", "2", cuda="") as own:
        page = own.metrics()
        for process in ("front", "host", "cuda:0"):
            assert page.total("invertd_seccomp", process=process) == 1
        engines = own.engines() + own.engines(CUDA_DOUBLE.name) + own.engines("invertd-cuda")
        assert len(engines) >= 2
        for pid in [own.process.pid, *engines]:
            wait_until(lambda: tasks(pid) == {("1", "2")}, 10, "a confined process")


def test_no_seccomp():
    with Daemon("--no-seccomp") as own:
        assert own.metrics().total("invertd_seccomp") == 0
        for pid in [own.process.pid, *own.engines()]:
            assert {seccomp for _, seccomp in tasks(pid)} == {"0"}


def test_engines_come_from_the_spawner_and_are_the_daemons_children():
    with Daemon() as own:
        spawner, = children_of(own.process.pid, "invertd-spawn")
        for _ in range(3):
            old = own.engines()
            os.kill(old[0], 9)
            own.new_engine(old)
        assert own.post("/v2/models/lu/infer", v2_json({"A": np.eye(2)[None]})[1]).status == 200
        assert tasks(spawner) == {("0", "0")}
        engines = own.engines()
        own.process.kill()
        own.process.wait()
        wait_until(lambda: not any(map(alive, [spawner, *engines])), 5, "all to end with it")


def test_without_the_spawner_it_serves_on():
    """Only a dead engine cannot be replaced then, and the log says what to do."""
    with Daemon() as own:
        spawner, = children_of(own.process.pid, "invertd-spawn")
        os.kill(spawner, 9)
        assert own.post("/v2/models/lu/infer", v2_json({"A": np.eye(2)[None]})[1]).status == 200
        os.kill(own.engines()[0], 9)
        wait_until(lambda: "restart invertd" in own.stderr(), 10, "a line in the log")
