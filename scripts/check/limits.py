#!/usr/bin/env python3
"""Files to 600 lines (CUDA C++ to 900), functions to 70, lines to 100 columns, a header comment
first; folders to 48 files."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES, CUDA_LINES, FUNCTION_LINES, COLUMNS = 600, 900, 70, 100
FOLDER_FILES = 48
# Folders that hold more, for they are lists: the records of measurements, and what fuzzing began
# with.
FOLDERS = {"bench/results": 60, "tests/fuzz/corpus": 1000}


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


def crowded_folders():
    """[problem] of folders that hold more files than a reader takes in."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [Path(name) for name in listing.stdout.splitlines() if (ROOT / name).is_file()]
    counts = Counter(str(path.parent) for path in paths)
    for folder, count in sorted(counts.items()):
        most = next((m for f, m in FOLDERS.items() if folder.startswith(f)), FOLDER_FILES)
        if count > most:
            yield f"{folder}: {count} files, at most {most}"


def main():
    problems = list(crowded_folders())
    for path in listed("c", "h", "cc", "inc", "cu", "cuh", "py"):
        lines = (ROOT / path).read_text().splitlines()
        most = CUDA_LINES if path.endswith((".cu", ".cuh")) else FILE_LINES
        if len(lines) > most:
            problems.append(f"{path}: {len(lines)} lines, at most {most}")
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
