#!/usr/bin/env python3
"""A CUDA kernel that may begin before the one ahead of it has ended waits for that first.

cuda__follow (gpu/cuda/base/launch.cuh) starts such kernels, and so do the functions of a room that
hand it a kernel of their caller. Each must have the wait as its first statement: a test on the CPU
sees that a thread waits, but not when. EARLY has those that do something before it, and why they
may.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What may stand ahead of the wait: shared memory, and leave for the next kernel to begin.
AHEAD = re.compile(r"(?:(?:extern )?__shared__[^;]*;|cuda__release_next\(\);|\s)*")
WAIT = re.compile(r"\b(?:cuda__follow_previous|cuda__wait_for_previous)\(\);")
KERNEL = re.compile(r"\b\w+_kernel\b")
DEFINED = re.compile(r"__global__[^;{]*?\b(\w+_kernel)\s*\([^{;]*\)\s*\{", re.S)
# A function that takes a kernel: `start(void (*kernel)(Parameters...), ...)`.
LAUNCHER = re.compile(r"\b(\w+)\((?:[^(){};]*,\s*)?void \(\*(\w+)\)\(")
FROM_ARGUMENTS = "computes from its arguments alone"
EARLY = {
    "cuda__iter_decide_kernel": "copies the state, which the pass before it does not write",
    "cuda__identify_pairs_kernel": FROM_ARGUMENTS,
    "cuda__identify_strips_kernel": "reads A, which no kernel before it writes",
    "cuda__transpose_kernel": FROM_ARGUMENTS,
    "cuda__tri_end_kernel": FROM_ARGUMENTS,
    "cuda__tri_join_kernel": FROM_ARGUMENTS,
    "cuda__tri_write_kernel": FROM_ARGUMENTS,
    "cuda__tri_line_kernel": "loads the diagonals, which no kernel before it writes",
    "cuda__tri_fill_kernel": "waits for the lines of its own matrix, each with a flag",
    "cuda__tri_strip_kernel": "waits for the lines of its own matrix, each with a flag",
}


def enclosed(text, at, pair):
    """What stands between the bracket before `at` and the one that closes it."""
    depth, end = 1, at
    while depth > 0:
        depth += {pair[0]: 1, pair[1]: -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def calls(text, names):
    """The arguments of each call of one of the functions."""
    for match in re.finditer(rf"\b(?:{'|'.join(sorted(names))})\(", text):
        yield enclosed(text, match.end(), "()")


def launchers(text):
    """{function that takes a kernel: its body}."""
    bodies = {}
    for match in LAUNCHER.finditer(text):
        # What follows the parameters is the body; a declaration has none.
        opened = text.index("(", match.start())
        end = opened + len(enclosed(text, opened + 1, "()")) + 2
        body = re.match(r"\s*(?:const\s*)?\{", text[end:])
        if body:
            bodies[match[1]] = enclosed(text, end + body.end(), "{}")
    return bodies


def overlaps(arguments):
    """Does the launch ask for an overlap? cuda__start asks for none."""
    return not re.search(r",\s*false\s*,", arguments)


def following(text):
    """The names of the functions that start a kernel which may overlap."""
    names, bodies = {"cuda__follow", "cuda__follow_in_clusters"}, launchers(text)
    while True:
        more = {name for name, body in bodies.items()
                if any(overlaps(arguments) for arguments in calls(body, names))} - names
        if not more:
            return names
        names |= more


def main():
    wrong, rooms, started, bodies, early = [], {}, {}, {}, set()
    for path in sorted((ROOT / "gpu/cuda").rglob("*.cu*")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        rooms[path.parent] = rooms.get(path.parent, "") + text
        if "ProgrammaticStreamSerialization" in text and path.name != "launch.cuh":
            wrong.append(f"{path.name}: cuda__follow alone lets kernels overlap")
    for room, text in rooms.items():
        for match in DEFINED.finditer(text):
            bodies[match[1]] = enclosed(text, match.end(), "{}")
        for arguments in calls(text, following(text)):
            if overlaps(arguments):
                started.update((name, room) for name in KERNEL.findall(arguments))
    for name, room in sorted(started.items()):
        body = bodies.get(name, "")
        if not WAIT.search(body):
            wrong.append(f"{room.relative_to(ROOT)}: {name} does not wait")
        elif not WAIT.match(body, AHEAD.match(body).end()):
            early.add(name)
    wrong += [f"{name} does not begin by waiting" for name in sorted(early - set(EARLY))]
    wrong += [f"{name} begins by waiting: it needs no row" for name in sorted(set(EARLY) - early)]
    if len(started) < 60:
        wrong.append(f"only {len(started)} kernels were found: has what starts them another name?")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
