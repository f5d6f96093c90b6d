#!/usr/bin/env python3
"""Files to 600 lines, functions to 70, lines to 100 columns, a header comment first."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES, FUNCTION_LINES, COLUMNS = 600, 70, 100


def listed(*endings):
    listing = subprocess.run(["scripts/check/sources", *endings], cwd=ROOT, check=True,
                             capture_output=True, text=True)
    return listing.stdout.split()


def function_lengths(lines):
    """[(line number, length)] of functions as clang-format lays them out: braces alone in a line,
    in column one, or where the members of a struct begin."""
    starts = {}
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() == "{":
            starts[indent] = number
        elif line.strip() == "}" and indent in starts:
            start = starts.pop(indent)
            yield start, number - start + 1


def main():
    problems = []
    for path in listed("c", "h", "cc", "inc", "cu", "cuh", "py"):
        lines = (ROOT / path).read_text().splitlines()
        if len(lines) > FILE_LINES:
            problems.append(f"{path}: {len(lines)} lines, at most {FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                problems.append(f"{path}:{number}: {len(line)} columns, at most {COLUMNS}")
        if not path.endswith(".py"):
            if not lines or not lines[0].startswith("/* "):
                problems.append(f"{path}: does not begin with what it is")
            for number, length in function_lengths(lines):
                if length > FUNCTION_LINES:
                    problems.append(f"{path}:{number}: function of {length} lines,"
                                    f" at most {FUNCTION_LINES}")
    for path in listed("sh", "lua", "yaml"):
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if len(line) > COLUMNS and not re.search(r"https?://", line):
                problems.append(f"{path}:{number}: {len(line)} columns, at most {COLUMNS}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
