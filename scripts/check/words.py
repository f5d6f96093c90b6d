#!/usr/bin/env python3
"""Words that must not stand in the sources: work left undone, code switched off, unsafe calls, and
words of our own where the field has a term."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Pattern -> why not. Looked for in C, C++, shell, Python, Markdown and YAML.
EVERYWHERE = {
    r"\b(TODO|FIXME|XXX|HACK)\b": "finish it, or write the reason where the limit is reported",
    r"(?i)\b(blazing|lightning[- ]fast|cutting[- ]edge|world[- ]class|seamless(ly)?)\b":
        "plain words only",
}
# What was called otherwise once -> the term of LAPACK's, CUDA's and HTTP's people. In names, where
# an underscore parts words, too.
TERMS = {
    "roads?": "algorithm",
    "told|tells|telling": "reported, returns, says",
    "doubtful": "unverified",
    "mend|mends|mended|mending": "recover, refine",
    "trials?": "residual check, probe vectors",
    "journeys?|triers?|putters?": "launch sequence, verifier, launcher",
    "shelf|shelves|cellars?": "shared-memory panels, spilled panels",
    "deeds?": "step, task descriptor",
    "lone": "thread-per-matrix",
    "levelled|levelling": "equilibrated",
    "in twice the precision|by turns|leaves? no mark|comes? home":
        "double-double; double-buffered; bitwise independent of; completion",
    "seats?|dismissed": "engine role, retired",
    "whoever|nobody|beside": "the client, no ..., next to",
    "third algorithm|split products?": "split-precision GEMM",
}
EVERYWHERE.update({rf"(?i)(?<![a-z])({old})(?![a-z])": new for old, new in TERMS.items()})
# In C and C++, tests left aside: those are run by sanitizers on sizes they choose themselves.
IN_C = {
    r"^\s*#\s*if\s+0\b": "code switched off",
    r"\b(strcpy|strcat|sprintf|vsprintf|alloca|strtok)\s*\(": "an unsafe call",
    r"\batoi\s*\(": "strtol, with its checks",
    r"#\s*define\s+NDEBUG": "asserts stay on",
}
TEXT = {".c", ".h", ".cc", ".inc", ".cu", ".cuh", ".py", ".md", ".yaml", ".lua", ".sh", ""}
C_ENDINGS = {".c", ".h", ".cc", ".inc", ".cu", ".cuh"}
# This list, and records of measurements in the words of their day.
LEFT_ASIDE = ("scripts/check/words.py", "bench/results/")


def main():
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    problems = []
    for path in listing.stdout.splitlines():
        file = ROOT / path
        if file.suffix not in TEXT or path.startswith(LEFT_ASIDE) or not file.is_file():
            continue
        try:
            lines = file.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        rules = dict(EVERYWHERE)
        if file.suffix in C_ENDINGS and not path.startswith("tests/"):
            rules.update(IN_C)
        for number, line in enumerate(lines, 1):
            for pattern, why in rules.items():
                if re.search(pattern, line):
                    problems.append(f"{path}:{number}: {line.strip()[:60]}: {why}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
