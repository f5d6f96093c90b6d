#!/usr/bin/env python3
"""Files to 600 lines (CUDA C++ to 900), functions to 70, lines to 100 columns, a header comment
first; folders to 48 files. Scripts without an ending are found by their first line."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES, CUDA_LINES, FUNCTION_LINES, COLUMNS = 600, 900, 70, 100
FOLDER_FILES = 48
C_ENDINGS = (".c", ".h", ".cc", ".hh", ".inc", ".cu", ".cuh")
# Folders that hold more, for they are lists: the records of measurements, and what fuzzing began
# with.
FOLDERS = {"bench/results": 60, "tests/fuzz/corpus": 1000}


def listed(*endings):
    listing = subprocess.run(["scripts/check/sources", *endings], cwd=ROOT, check=True,
                             capture_output=True, text=True)
    return listing.stdout.split()


def tracked():
    """The project's files, tracked or not yet."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def scripts():
    """Those without an ending, found by their first line, and what else has none."""
    for name in tracked():
        path = ROOT / name
        if path.suffix in ("", ".sh"):
            with path.open("rb") as file:
                first = file.readline()
            if path.name in ("Makefile", "Containerfile") or first.startswith(b"#!"):
                yield name


# An address, or a row of a table of Markdown, cannot be broken.
WIDE = re.compile(r"https?://|^\| .* \|$")
# What holds braces and line ends that are not the program's.
QUOTED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                    r"'(?:\\.|[^'\\\n])+'", re.S)
# Behind what a function's body opens, a lambda's too; a loop's is part of one.
BODY = re.compile(r"(?:\)|\bconst|\bmutable|\bnoexcept)\s*(?:->\s*[\w:<> ]+)?\s*$")


def function_lengths(text):
    """[(line number, length)] of the bodies of functions and lambdas."""
    text = QUOTED.sub(lambda found: "\n" * found[0].count("\n"), text)
    opened, number, at = [], 1, 0
    for match in re.finditer(r"[{}\n]", text):
        if match[0] == "\n":
            number += 1
        elif match[0] == "{":
            opened.append((number, bool(BODY.search(text[at:match.start()]))))
        elif opened:
            start, is_body = opened.pop()
            if is_body:
                yield start, number - start + 1
        if match[0] != "\n":
            at = match.end()


def python_lengths(text):
    """The same of Python's functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def crowded_folders():
    """[problem] of folders that hold more files than a reader takes in."""
    paths = [Path(name) for name in tracked()]
    counts = Counter(str(path.parent) for path in paths)
    for folder, count in sorted(counts.items()):
        most = next((m for f, m in FOLDERS.items() if folder.startswith(f)), FOLDER_FILES)
        if count > most:
            yield f"{folder}: {count} files, at most {most}"


def too_long(path):
    """[problem] of a file's length, its lines and its functions."""
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    most = CUDA_LINES if path.endswith((".cu", ".cuh")) else FILE_LINES
    if len(lines) > most and not path.endswith(".yaml"):
        yield f"{path}: {len(lines)} lines, at most {most}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not WIDE.search(line):
            yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"
    lengths = []
    if path.endswith(C_ENDINGS):
        lengths = function_lengths(text)
    elif path.endswith(".py") or lines and re.match("#!.*python", lines[0]):
        lengths = python_lengths(text)
    for number, length in lengths:
        if length > FUNCTION_LINES:
            yield f"{path}:{number}: function of {length} lines, at most {FUNCTION_LINES}"


def main():
    others = list(scripts())
    problems = list(crowded_folders())
    if len(others) < 20:
        problems.append(f"only {len(others)} scripts were found")
    for path in listed("c", "h", "cc", "hh", "inc", "cu", "cuh", "py", "lua", "yaml") + others:
        problems += too_long(path)
        if path.endswith(C_ENDINGS) and not (ROOT / path).read_text().startswith("/* "):
            problems.append(f"{path}: does not begin with what it is")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
