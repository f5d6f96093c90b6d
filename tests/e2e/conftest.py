"""Fixtures of the end-to-end tests, and time limits that know of sanitizers.

`daemon` is one shared service for tests that leave it as they found it. Tests that kill, starve
or configure one start their own with `Daemon(...)` as a context.
"""

import os

import pytest

from harness.codec import Client
from harness.daemon import Daemon
from harness.settings import CUDA_DOUBLE, DAEMON, ENGINE, FAULT_ENGINE, scaled_timeout


def pytest_configure(config):
    config.addinivalue_line("markers", "faults: needs the fault build of the engine")


def pytest_collection_modifyitems(config, items):
    default = float(config.getini("timeout") or 60)
    for item in items:
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0]) if mark else default
        item.add_marker(pytest.mark.timeout(scaled_timeout(seconds)), append=False)


def pytest_runtest_setup(item):
    for program in (DAEMON, ENGINE):
        if not os.access(program, os.X_OK):
            pytest.fail(f"{program} is not built; run make", pytrace=False)
    for program in (FAULT_ENGINE, CUDA_DOUBLE):
        if item.get_closest_marker("faults") and not os.access(program, os.X_OK):
            pytest.fail(f"{program} is not built; run make faults", pytrace=False)


@pytest.fixture(scope="session")
def daemon():
    """Shared by the whole session: with its defaults, on a port of its own."""
    with Daemon("--allowed-hosts", "a") as shared:  # the Host of hostile_frames.py
        yield shared


@pytest.fixture(scope="session")
def client(daemon):
    return Client(daemon)


@pytest.fixture(scope="session")
def methods(client):
    """Names of the methods this build offers."""
    answer = client.daemon.post("/v2/repository/index")
    assert answer.status == 200, answer
    return {entry["name"] for entry in answer.json()}


@pytest.fixture
def needs(methods):
    """needs("tridiagonal") skips a test of a method that this build does not offer."""

    def check(name):
        if name not in methods:
            pytest.skip(f"this build has no method {name}")

    return check
