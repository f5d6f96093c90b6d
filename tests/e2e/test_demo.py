"""`make demo`: what README.md promises first. The program checks every answer by itself."""

import os
import subprocess

from harness import settings


def test_every_method_keeps_its_promise(methods):
    done = subprocess.run([settings.BUILD / "invertd-demo", settings.BUILD / "invertd"],
                          capture_output=True, text=True, timeout=120, check=False,
                          env={k: v for k, v in os.environ.items()
                               if not k.startswith("INVERTD_")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "The daemon stopped cleanly." in done.stdout
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" ms")}
    assert set(methods) == shown
