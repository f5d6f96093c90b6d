#!/usr/bin/env python3
"""A CUDA kernel that may begin before the one ahead of it has ended waits for that first.

Kernels that cuda__ism_follow (gpu/cuda/ism/device.cuh) starts, and our own products, are launched
so. Each must have the wait as its first statement: a test on the CPU sees that a thread waits, but
not when.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STARTS = re.compile(
    r"\b(?:start|start_grid|start_once|start_alone|start_both|start_norm|over|over_both"
    r"|cuda__ism_follow)\s*\(")
KERNEL = re.compile(r"cuda__\w+_kernel\b")
DEFINED = re.compile(r"__global__[^;{]*?\b(cuda__\w+_kernel)\s*\([^{;]*\)\s*\{\s*(\w+)", re.S)
WAITS = ("cuda__follow_previous", "cuda__wait_for_previous")


def arguments(text, at):
    """What stands between the parenthesis before `at` and the one that closes it."""
    depth = 1
    end = at
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end]


def main():
    first = {}
    started = {"cuda__own_product_kernel"}
    for path in sorted((ROOT / "gpu/cuda").glob("*/*.cu*")):
        text = path.read_text()
        first.update({name: (path.name, word) for name, word in DEFINED.findall(text)})
        if path.parent.name == "ism":
            for match in STARTS.finditer(text):
                started.update(KERNEL.findall(arguments(text, match.end())))
    wrong = [name for name in sorted(started) if first.get(name, ("", ""))[1] not in WAITS]
    for name in wrong:
        print(f"{first.get(name, ('?', ''))[0]}: {name} does not begin by waiting")
    if len(started) < 30:
        print(f"only {len(started)} kernels were found: has what starts them another name?")
        return 1
    return 1 if wrong else 0


sys.exit(main())
