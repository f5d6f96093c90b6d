"""The examples of README.md and docs/guide.md work.

Each fenced block runs as it is against the shared daemon, whose address replaces localhost:8000.
Blocks that build, install or start something are left out.
"""

import json
import os
import re
import subprocess
import sys

import numpy
import pytest

from harness.settings import ROOT, scaled_timeout

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.S | re.M)
ADDRESS = "localhost:8000"
# A curl that fails, or gets an error status, leaves a file.
CURL = 'curl() { command curl --fail-with-body "$@" || { echo "$*" >>failed; return 22; }; }\n'


def blocks(page, language):
    """The fenced blocks of a page in that language; of those in sh the ones that send requests."""
    text = (ROOT / page).read_text()
    found = [block for kind, block in BLOCK.findall(text) if kind == language]
    return [block for block in found
            if language == "python" or ADDRESS in block and "sudo" not in block]


def run(daemon, folder, *command):
    """Runs a command that must succeed without a word on stderr; returns what it printed."""
    host, port = daemon.address
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INVERTD_")}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    command = [part.replace(ADDRESS, f"{host}:{port}") for part in command]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=scaled_timeout(40), stdin=subprocess.DEVNULL, check=False)
    failed = folder / "failed"
    assert done.returncode == 0 and not failed.exists(), (
        f"{done.stdout}\n{done.stderr}\n{failed.read_text() if failed.exists() else ''}")
    assert done.stderr == ""
    return done.stdout


def test_the_first_page_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_shell_examples(page, daemon, tmp_path):
    scripts = blocks(page, "sh")
    assert scripts
    for script in scripts:
        printed = run(daemon, tmp_path, "bash", "-euo", "pipefail", "-c", CURL + script)
        first, _ = json.JSONDecoder().raw_decode(printed)
        assert numpy.allclose(first["inverse"], [[0.6, -0.7], [-0.2, 0.4]])


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_examples(page, daemon, tmp_path):
    """The pieces of one page are one program: each continues the pieces before it."""
    script = "".join(blocks(page, "python"))
    assert script
    printed = run(daemon, tmp_path, sys.executable, "-B", "-c", script).splitlines()
    assert float(printed[0].split()[0]) < 1e-9    # the residual of the first example


def test_the_chain_of_updates_stays_accurate(daemon, tmp_path):
    script = "".join(blocks("docs/guide.md", "python"))
    printed = run(daemon, tmp_path, sys.executable, "-B", "-c", script).splitlines()
    assert float(printed[-1]) < 1e-6
