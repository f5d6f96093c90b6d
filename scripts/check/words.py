#!/usr/bin/env python3
"""Words that must not stand in the sources: work left undone, code switched off, unsafe calls, and
words of our own where the field has a term."""

import bisect
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Pattern -> why not. Looked for wherever people read, over the ends of lines too.
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
    "twice the precision|by turns|leaves? no mark|comes? home":
        "double-double; double-buffered; bitwise independent of; completion",
    "seats?": "engine role",
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
C_ENDINGS = {".c", ".h", ".cc", ".hh", ".inc", ".cu", ".cuh"}
TEXT = C_ENDINGS | {".py", ".md", ".yaml", ".lua", ".sh", ".service", ".conf", ".ini", ".txt",
                    ".svg", ".supp", ""}
# What a line begins and ends with that is not its text: the marks of comments and of strings.
MARKS = re.compile(r'^\s*(?:/?\*+(?!/)|#+|//+|f?")?\s*|\s*(?:"?\s*\\?|\*/)$')
# This list, and records of measurements in the words of their day.
LEFT_ASIDE = ("scripts/check/words.py", "bench/results/")


def found_words(lines):
    """[(line number, why not)], of a text whose comments and strings go over lines."""
    starts, text = [], ""
    for line in lines:
        starts.append(len(text))
        text += MARKS.sub("", line) + " "
    for pattern, why in EVERYWHERE.items():
        for match in re.finditer(pattern, text):
            yield bisect.bisect_right(starts, match.start()), why


def found_code(lines):
    for pattern, why in IN_C.items():
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line):
                yield number, why


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
        found = list(found_words(lines))
        if file.suffix in C_ENDINGS and not path.startswith("tests/"):
            found += found_code(lines)
        problems += [f"{path}:{number}: {lines[number - 1].strip()[:60]}: {why}"
                     for number, why in sorted(found)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
