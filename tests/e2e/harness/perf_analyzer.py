"""NVIDIA's perf_analyzer, unmodified: where it is, and a run of it.

PyPI's own perf-analyzer needs glibc 2.38. Its last form for older systems lies in the wheel of
tritonclient 2.51 (tests/requirements-perf.txt), which needs libcudart 12 next to it and Debian's
libb64-0d. INVERTD_PERF_ANALYZER names the program; else .venv/perf/bin and PATH are looked at.
"""

import os
import pathlib
import re
import shutil
import subprocess

from .settings import BUSY, ROOT, SANITIZER, scaled_timeout


def find():
    """The program and its environment, or the reason why there is none."""
    named = os.environ.get("INVERTD_PERF_ANALYZER")
    ours = ROOT / ".venv" / "perf" / "bin" / "perf_analyzer"
    program = named or (str(ours) if ours.exists() else shutil.which("perf_analyzer"))
    if not program:
        return None, None, "perf_analyzer is not installed (tests/requirements-perf.txt)"
    folder = pathlib.Path(program).absolute().parent.parent
    libraries = set(filter(None, [os.environ.get("LD_LIBRARY_PATH")]))
    if (folder / "pyvenv.cfg").exists():
        libraries |= {str(path.parent) for path in folder.glob("lib/**/libcudart.so.12")}
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    try:
        version = subprocess.run(
            [program, "--version"], env=environment, capture_output=True, text=True, timeout=30
        )
    except OSError as error:
        return None, None, f"perf_analyzer does not start: {error}"
    if "error while loading" in version.stderr or "not found (required" in version.stderr:
        return None, None, f"perf_analyzer does not start: {version.stderr.strip()}"
    return program, environment, None


PROGRAM, ENVIRONMENT, REASON = find()


def make_roomy(folder):
    """perf_analyzer writes JSON answers of FP64 into blocks made for FP32 (see its function
    ConvertJSONOutputToBinary), and crashes whatever the server: it is given larger blocks."""
    library = folder / "roomy.so"
    source = pathlib.Path(__file__).parent / "roomy.c"
    flags = ["-O2", "-fno-builtin", "-shared", "-fPIC", "-o"]
    subprocess.run(["cc", *flags, str(library), str(source)], check=True, timeout=60)
    return str(library)


def measure(url, *options, preload=None):
    """A short run against model lu without a word of complaint, and with the server's own
    figures."""
    command = [PROGRAM, "-m", "lu", "-u", url, "-i", "http", "-p", "700", "-s", "1000", "-r", "10",
               "--concurrency-range", "4", *map(str, options)]
    environment = dict(ENVIRONMENT, LD_PRELOAD=preload) if preload else ENVIRONMENT
    run = subprocess.run(command, env=environment, capture_output=True, text=True,
                         timeout=scaled_timeout(90))
    text = run.stdout + run.stderr
    assert run.returncode == 0, text
    words = r"warning|error|fail(ed|ure)|unable|missing|not.*statistic"
    assert not re.search(words, text, re.I), text
    throughput = re.search(r"Throughput: ([\d.]+) infer/sec", text)
    assert throughput and float(throughput.group(1)) > (0 if SANITIZER or BUSY > 1.5 else 10), text
    assert re.search(r"Inference count: [1-9]", text), "no server side statistics: " + text
