"""Where the build under test lies, and how far to stretch times for it.

INVERTD_BUILD           the build folder (default: build)
INVERTD_SANITIZER       address or thread: times stretch and counts shrink by FACTOR
INVERTD_BUSY            how many others share a processor; limits stretch (default: by the load)
INVERTD_LOAD_SECONDS    how long the mixed load runs (default 10)
INVERTD_FRAMINGS        all: malformed framings on every route behind the proxies too
INVERTD_FAULT_KILLS     how often engines are killed (default 20; drains are a fifth of it)
"""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = (ROOT / os.environ.get("INVERTD_BUILD", "build")).resolve()
DAEMON = BUILD / "invertd"
ENGINE = BUILD / "invertd-host"
FAULT_ENGINE = BUILD / "faults" / "invertd-host"
CUDA_DOUBLE = BUILD / "faults" / "cuda-double"
SIMT_ENGINE = BUILD / "simt" / "invertd-cuda"
SIMT_FAULT_ENGINE = BUILD / "simt" / "faults" / "invertd-cuda"

SANITIZER = os.environ.get("INVERTD_SANITIZER", "")
FACTOR = {"": 1, "address": 5, "thread": 8}[SANITIZER]

# On a machine that others use too, everything takes longer: by the load at the start, 4 at most.
BUSY = float(os.environ.get("INVERTD_BUSY", "0")) or min(
    4.0, max(1.0, 1 + os.getloadavg()[0] / (os.cpu_count() or 1)))

LOAD_SECONDS = float(os.environ.get("INVERTD_LOAD_SECONDS", "10"))
ALL_FRAMINGS = os.environ.get("INVERTD_FRAMINGS", "") == "all"
FAULT_KILLS = int(os.environ.get("INVERTD_FAULT_KILLS", "20"))


def scaled_timeout(seconds):
    """A limit of time, widened for sanitizer builds and on busy machines."""
    return seconds * FACTOR * BUSY


def fewer(count):
    """A count of repetitions, smaller for sanitizer builds, at least one."""
    return max(1, int(count) // FACTOR)
