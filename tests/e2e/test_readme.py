"""The examples of README.md and of the pages in docs/ work.

Each fenced block runs as it is. Those of the first pages talk to the shared daemon, whose address
replaces localhost:8000; blocks that build or install something are left out. Those of the pages
about listening and access start daemons of their own.
"""

import json
import math
import os
import re
import subprocess
import sys

import numpy
import pytest

from harness import wire
from harness.settings import BUILD, DAEMON, ROOT, scaled_timeout

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
ADDRESS = "localhost:8000"
COMMAND = "build/invert "
RESIDUALS = "docs/residuals.md"
# A curl that fails, or gets an error status, leaves a file.
CURL = 'curl() { command curl --fail-with-body "$@" || { echo "$*" >>failed; return 22; }; }\n'


def blocks(page, language):
    """The fenced blocks of a page in that language; of those in sh the ones that send requests."""
    text = (ROOT / page).read_text()
    found = [block for kind, block in BLOCK.findall(text) if kind == language]
    return [block for block in found
            if language != "sh" or ADDRESS in block and "sudo" not in block
            or "build/invertd" in block and "curl" in block or COMMAND in block]


def run(daemon, folder, *command):
    """Runs a command that must succeed without a word on stderr; returns what it printed."""
    host, port = daemon.address
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INVERTD_")}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    environment["INVERTD_SERVER"] = f"http://{host}:{port}"
    command = [part.replace(ADDRESS, f"{host}:{port}").replace(COMMAND, f"{BUILD}/invert ")
               for part in command]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=scaled_timeout(40), stdin=subprocess.DEVNULL, check=False)
    failed = folder / "failed"
    assert done.returncode == 0 and not failed.exists(), (
        f"{done.stdout}\n{done.stderr}\n{failed.read_text() if failed.exists() else ''}")
    assert done.stderr == ""
    return done.stdout


def run_shell(daemon, folder, script):
    return run(daemon, folder, "bash", "-euo", "pipefail", "-c", CURL + script)


def run_python(daemon, folder, page):
    """The pieces of one page are one program: each continues the pieces before it."""
    script = "".join(blocks(page, "python"))
    assert script
    return run(daemon, folder, sys.executable, "-B", "-c", script).splitlines()


def answers(text):
    """The JSON objects that follow one another in a text."""
    decoder, found = json.JSONDecoder(), []
    while text := text.lstrip():
        answer, end = decoder.raw_decode(text)
        found.append(answer)
        text = text[end:]
    return found


def test_the_first_page_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_shell_examples(page, daemon, tmp_path):
    scripts = blocks(page, "sh")
    assert scripts
    for script in scripts:
        printed = run_shell(daemon, tmp_path, script)
        first, _ = json.JSONDecoder().raw_decode(printed)
        assert numpy.allclose(first["inverse"], [[0.6, -0.7], [-0.2, 0.4]])


def test_examples_of_jobs(daemon, tmp_path):
    """They share a folder, as a reader's shell would."""
    printed = [run_shell(daemon, tmp_path, script) for script in blocks("docs/jobs.md", "sh")]
    first, listed = answers(printed[0])
    assert first["status"] == "successful" and first["id"] in {j["id"] for j in listed["jobs"]}
    assert numpy.load(tmp_path / "inverse.npy").shape == (200, 200)
    assert (tmp_path / "part.npy").stat().st_size == 1024
    assert json.loads((tmp_path / "inverse.json").read_text())["info"] == 0
    assert 'data: {"status":"successful"}' in printed[1]
    once, again = answers(printed[2])
    assert once["id"] == again["id"]


def test_examples_of_the_command(daemon, tmp_path):
    """They share a folder, as a reader's shell would."""
    page = "docs/invert.md"
    printed = [run_shell(daemon, tmp_path, script) for script in blocks(page, "sh")]
    inverse, failure = [json.loads(block) for block in blocks(page, "json")]
    assert json.loads(printed[0]) == inverse
    assert printed[1].splitlines() == ["inverse (5, 3, 3)", "info (5,)", "rcond (5,)"]
    assert printed[2].splitlines() == blocks(page, "text")[0].splitlines()
    line, code = printed[3].splitlines()
    line = json.loads(line)
    assert line.keys() == failure.keys() and code == "exit code 2"
    for name in "exit", "status", "method", "info", "sent_bytes", "tries":
        assert line[name] == failure[name]
    assert line["error"].startswith(failure["error"].removesuffix("..."))


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_examples(page, daemon, tmp_path):
    printed = run_python(daemon, tmp_path, page)
    assert float(printed[0].split()[0]) < 1e-9    # the residual of the first example


@pytest.mark.parametrize("page, count", [("docs/listening.md", 4), ("docs/access.md", 1)])
def test_examples_that_start_a_daemon(page, count, tmp_path):
    """They share a folder, as a reader's shell would, but no port: the daemons before may drain."""
    scripts = [script for script in blocks(page, "sh") if "build/invertd" in script]
    assert len(scripts) == count
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INVERTD_")}
    for script in scripts:
        port = str(wire.free_port())
        script = script.replace("8000", port).replace("build/invertd", str(DAEMON))
        assert script.endswith("kill $!\n")
        # A curl that gets an error status ends the script.
        script = f"curl() {{ command curl -sS --fail-with-body \"$@\"; }}\n{script}wait $!\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, stdin=subprocess.DEVNULL,
            env={**environment, "INVERTD_LISTEN": f"127.0.0.1:{port}"}, capture_output=True,
            text=True, timeout=scaled_timeout(40), check=False)
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        assert '"methods"' in done.stdout or '"inverse"' in done.stdout, done.stdout


def test_the_chain_of_updates_stays_accurate(daemon, tmp_path):
    assert float(run_python(daemon, tmp_path, "docs/guide.md")[-1]) < 1e-6


def test_residuals_come_as_their_page_says(daemon, tmp_path):
    [script], [expected] = blocks(RESIDUALS, "sh"), blocks(RESIDUALS, "json")
    found, expected = answers(run_shell(daemon, tmp_path, script)), answers(expected)
    assert len(found) == len(expected) == 3
    for answer, said in zip(found, expected):
        assert answer.keys() == said.keys()
        assert (answer["info"], answer["method"]) == (said["info"], said["method"])
        assert numpy.allclose(answer["inverse"], said["inverse"], atol=0)
        assert math.isclose(answer["rcond"], said["rcond"])
        for side in "residual_left", "residual_right":      # their rounding depends on the CPU
            assert abs(answer[side] - said[side]) <= 0.5


def test_residuals_are_of_the_sizes_their_page_shows(daemon, tmp_path):
    """Rounding depends on the CPU, so a hundred times as much or as little is as good."""
    [expected] = blocks(RESIDUALS, "text")
    found, expected = run_python(daemon, tmp_path, RESIDUALS), expected.splitlines()
    assert len(found) == len(expected) == 7
    for line, said in zip(found, expected):
        assert line[:9] == said[:9]
        sizes, said = ([math.log10(float(x)) for x in text[9:].split()] for text in (line, said))
        assert len(sizes) == len(said) and numpy.allclose(sizes, said, rtol=0, atol=2), line
