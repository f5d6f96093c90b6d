"""docs/openapi.yaml and the daemon say the same: schemathesis makes requests from the one and holds
the other's answers against it.

Statuses, types and bodies of answers must be as documented, no answer may be a server's error, and
what breaks the schema must be refused. The other way round is left out: a request may keep to the
schema and still be wrong, for it does not know shapes, nor which options belong to which method.
"""

import os
import re
import subprocess

import pytest

from harness.settings import ROOT, SANITIZER

PROGRAM = ROOT / ".venv" / "contract" / "bin" / "st"


@pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="schemathesis is not installed")
@pytest.mark.skipif(bool(SANITIZER), reason="takes a sanitizer's build minutes, and finds the same")
@pytest.mark.timeout(120)
def test_answers_are_as_documented(daemon, tmp_path):
    command = [PROGRAM, "run", f"http://{daemon.url}/openapi.yaml", "--url", f"http://{daemon.url}"]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", "60", "--seed", "1"]
    command += ["--exclude-checks", "positive_data_acceptance", "--no-color"]
    command += ["--exclude-path", "/v1/events"]  # it does not end
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    assert passed and passed[1] == passed[2] and int(passed[1]) > 500, run.stdout
