"""What bash completes after `invert`, and that man page and completions know every option."""

import os
import re
import subprocess

import pytest

from harness.daemon import clean_environment
from harness.settings import BUILD, ROOT, scaled_timeout

FOLDER = ROOT / "client" / "completion"
SCRIPT = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_invert
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(folder, *words):
    environment = clean_environment()
    environment["PATH"] = f"{folder / 'bin'}:{environment['PATH']}"
    done = subprocess.run(["bash", "-euc", SCRIPT, "bash", FOLDER / "invert.bash", *words],
                          cwd=folder, env=environment, capture_output=True, text=True, check=True,
                          timeout=scaled_timeout(10))
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files, and a command that lists two jobs."""
    path = tmp_path_factory.mktemp("completion")
    for name in ("a.npy", "b.csv"):
        (path / name).touch()
    (path / "bin").mkdir()
    command = path / "bin" / "invert"
    command.write_text("#!/bin/sh\n"
                       "[ \"$1 $2\" = 'list --quiet' ] && printf 'a1  running\\nb2 \\n'\n")
    command.chmod(0o755)
    return path


@pytest.mark.parametrize("words, wanted", [
    (["st"], ["status"]),
    (["wait"], ["wait"]),
    ([""], ["a.npy", "b.csv", "bin", "cancel", "fetch", "list", "status", "wait"]),
    (["b"], ["b.csv", "bin"]),
    (["--me"], ["--method"]),
    (["a.npy", "--i"], ["--idempotency-key"]),
    (["a.npy", "-o", "b"], ["b.csv", "bin"]),
    (["a.npy", "--to", "n"], ["npy", "npz"]),
    (["a.npy", "-m", "is"], ["ism"]),
    (["a.npy", "--option", ""], []),
    (["status", ""], ["a1", "b2"]),
    (["wait", "a1", "b"], ["b2"]),
    (["fetch", "a1", "--t"], ["--timeout", "--to", "--token-file"]),
    (["cancel", "--o"], []),
    (["list", "--l"], ["--limit"]),
    (["list", "--status", "r"], ["running"]),
])
def test_bash(folder, words, wanted):
    assert completed(folder, "invert", *words) == wanted


def help_text():
    return subprocess.run([BUILD / "invert", "--help"], env=clean_environment(), check=True,
                          capture_output=True, text=True, timeout=scaled_timeout(10)).stdout


@pytest.mark.parametrize("path", ["client/completion/invert.bash", "client/completion/_invert",
                                  "client/invert.1", "docs/invert.md"])
def test_every_option_and_command_is_there(path):
    text = (ROOT / path).read_text().replace("\\-", "-")
    shown = help_text()
    flags = re.findall(r"^  -., (--[a-z-]+)", shown, re.M)
    commands = re.findall(r"^  invert ([a-z]+)", shown, re.M)
    assert len(flags) >= 22 and commands == ["status", "wait", "fetch", "cancel", "list"]
    for name in flags + commands:
        assert re.search(rf"(?<![a-z-]){re.escape(name)}(?![a-z-])", text), name


@pytest.mark.parametrize("name", ["invert.bash", "_invert"])
def test_every_method_is_there(name):
    words = re.findall(r"\w+", (FOLDER / name).read_text())
    for method in (ROOT / "gpu" / "methods").glob("*.c"):
        assert method.stem in words


def test_help_is_a_table():
    """80 columns; every exit code has its line, in the manual and in the docs too."""
    shown = help_text()
    assert max(map(len, shown.splitlines())) <= 80
    codes = re.findall(r"^ +(\d+)  ", shown.partition("Exit codes:")[2], re.M)
    assert codes == [str(code) for code in range(12)]
    manual = (ROOT / "client" / "invert.1").read_text().partition(".SH EXIT STATUS")[2]
    assert re.findall(r"^\.B (\d+)$", manual, re.M) == codes
    docs = (ROOT / "docs" / "invert.md").read_text()
    assert re.findall(r"^\| (\d+) \|", docs, re.M) == codes


@pytest.mark.skipif(not os.access("/usr/bin/man", os.X_OK), reason="man is not installed")
def test_the_manual_has_no_faults():
    done = subprocess.run(["man", "--warnings", "-l", "-Tutf8", ROOT / "client" / "invert.1"],
                          env=clean_environment({"MANWIDTH": "80"}), capture_output=True,
                          text=True, check=True, timeout=scaled_timeout(20))
    assert done.stderr == "" and "EXIT STATUS" in re.sub(".\b", "", done.stdout)


def test_what_is_installed_and_removed(tmp_path):
    """From the build, below a folder; nothing is left of it afterwards."""
    for arguments in ([BUILD, tmp_path], ["--remove", tmp_path]):
        subprocess.run([ROOT / "scripts" / "install", *arguments], check=True,
                       stdout=subprocess.DEVNULL, timeout=scaled_timeout(20))
        found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
        if arguments[0] == "--remove":
            assert found == set()
        else:
            assert {"bin/invert", "bin/invertd", "share/man/man1/invert.1",
                    "share/bash-completion/completions/invert",
                    "share/zsh/site-functions/_invert"} <= found
    done = subprocess.run([ROOT / "scripts" / "install", tmp_path / "none", tmp_path], check=False,
                          capture_output=True, text=True, timeout=scaled_timeout(20))
    assert done.returncode == 1 and "run make first" in done.stderr
