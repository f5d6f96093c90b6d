#!/usr/bin/env python3
"""Finds the fastest shapes of the kernels for small matrices on this machine's GPU.

    tune.py [--n 2,17-24] [--kernel inverse|factor] [--precision FP32|FP64] [--jobs J]
            [--build FOLDER] [--only list|build|run|table] [--base TABLE] [--table FILE]

Four steps, all of them unless --only names one: list (what will be tried, and what it takes), build
(nvcc, a file of a few shapes each), run (FOLDER/tune.csv), table (a file of the form of
gpu/cuda/tuning_h200.cuh). Sizes that were not tried keep their shapes of the base table. Use the
table with `make cuda TUNING=FILE`, and let `make test-gpu TUNING=FILE` check it.
"""

import argparse
import csv
import datetime
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TYPES = {"FP32": "float", "FP64": "double"}
WORDS = {"FP32": 1, "FP64": 2}  # registers a number
WARP, REGISTERS, WARPS_MOST = 32, 65536, 64
SHAPES_A_FILE = 2
SECONDS_A_SHAPE = {8: 1.5, 16: 2.5, 24: 4.0, 32: 6.0}  # of one core, to this order
GPU_SECONDS_A_SHAPE = 0.06

HEAD = """/* {path}: the shape of the fused kernels for each size (tuning.cuh).
 *
 * Measured by bench/cuda/tune.py on {device}, {date}: of the shapes tried the
 * fastest. Any row gives right answers on any device; another one may be faster there. A different
 * row may give other bits.
 */

/* clang-format off */
"""
TAIL = "/* clang-format on */\n"


def rows_worth_trying(n, precision):
    """Rows a lane: few idle lanes, and few enough numbers for the registers."""
    found = []
    for rows in range(1, n + 1):
        lanes = math.ceil(n / rows)
        if lanes > WARP or math.ceil(n / lanes) != rows:
            continue
        registers = rows * n * WORDS[precision]
        busy = WARP // lanes * n / (rows * WARP)  # of the lanes' rows
        if registers <= 150 and (busy >= 0.75 or rows <= 4):
            found.append((busy * min(rows, 4), rows))
    return [rows for _, rows in sorted(found, reverse=True)[:4]]


def warps_worth_trying(rows, n, precision):
    """(warps a block, blocks a multiprocessor): what the registers hold, and a step more."""
    registers = rows * n * WORDS[precision] * 1.15 + 36
    warps = int(REGISTERS / WARP / registers) // 4 * 4
    if n <= 4:
        return [(4, 8), (4, 12)]
    found = [w for w in (warps, warps + 4) if 8 <= w <= 28] or [8 if warps < 8 else 28]
    return [(4, w // 4) if n <= 8 else (1, w) for w in found]


def shapes_of(kernel, precision, n):
    width = 4 // WORDS[precision]
    blocks = [b for b in (2, 4, 8) if n > 4 and b % width == 0 and b < n]
    blocks = (blocks + [n] if n <= 8 else blocks)[-2:]
    found = []
    for rows in rows_worth_trying(n, precision):
        for block in blocks + ([n] if kernel == "factor" and 8 < n <= 16 else []):
            if kernel == "factor" and block < n and rows * block * WORDS[precision] > 24:
                continue
            for warps, count in warps_worth_trying(rows, n, precision):
                rolled = ("true" if n % block == 0 and block < n else "false",)
                found.append((rows, block, *(rolled if kernel == "inverse" else ()), warps, count))
    return [", ".join(map(str, shape)) for shape in found]


def orders(text):
    """"4,17-19" is 4, 17, 18, 19."""
    parts = [part.partition("-") for part in text.split(",")]
    return [n for low, _, high in parts for n in range(int(low), int(high or low) + 1)]


def wanted(arguments):
    base = table_of(arguments.base)
    return [(kernel, precision, n, shape)
            for n in reversed(orders(arguments.n))  # the slowest to compile first
            for precision in TYPES if arguments.precision in (None, precision)
            for kernel in ("inverse", "factor") if arguments.kernel in (None, kernel)
            for shape in dict.fromkeys([base[kernel, precision, n]] +
                                       shapes_of(kernel, precision, n))]


def line(kernel, precision, n, shape):
    return f"CUDA__{kernel.upper()}({TYPES[precision]}, {n}, {shape})\n"


def announce(shapes, arguments):
    seconds = sum(next(s for most, s in SECONDS_A_SHAPE.items() if n <= most)
                  for _, _, n, _ in shapes)
    print(f"{len(shapes)} shapes: about {seconds / arguments.jobs / 60:.0f} minutes to compile with"
          f" {arguments.jobs} jobs, {len(shapes) * GPU_SECONDS_A_SHAPE:.0f} s on the GPU",
          flush=True)


def build(shapes, arguments):
    os.makedirs(arguments.build, exist_ok=True)
    sources = ["bench/cuda/tune.cu"]
    for first in range(0, len(shapes), SHAPES_A_FILE):
        path = f"{arguments.build}/shapes_{first // SHAPES_A_FILE:03d}.cu"
        with open(path, "w", encoding="utf-8") as file:
            file.write('#include "bench/cuda/tune.cuh"\n')
            file.writelines(line(*shape) for shape in shapes[first:first + SHAPES_A_FILE])
        sources.append(path)
    objects = [f"{arguments.build}/{os.path.basename(s)[:-3]}.o" for s in sources]
    nvcc = [arguments.nvcc, "-std=c++17", "-O3", "-arch=native" if not arguments.arch else
            f"-arch={arguments.arch}", "-I."]

    def compile_one(source, target):
        return subprocess.run(nvcc + ["-c", "-o", target, source], check=False).returncode

    with ThreadPoolExecutor(arguments.jobs) as pool:
        if any(pool.map(compile_one, sources, objects)):
            sys.exit("tune.py: a shape does not compile")
    subprocess.run(nvcc + ["-o", f"{arguments.build}/cuda_tune"] + objects, check=True)


def run(arguments):
    subprocess.run([f"{arguments.build}/cuda_tune", f"{arguments.build}/tune.csv"], check=True)


def measured(path):
    """The device's name, and the fastest shape of each kernel, precision and order."""
    best = {}
    with open(path, encoding="utf-8") as file:
        device = file.readline()[1:].strip()
        for row in csv.DictReader(file):
            key = (row["kernel"], row["precision"], int(row["n"]))
            rate = float(row["million_per_s"])
            if key not in best or rate > best[key][0]:
                best[key] = (rate, row["shape"])
    return device, {key: shape for key, (_, shape) in best.items()}


def table_of(path):
    """The shapes of a table."""
    precisions = {name: precision for precision, name in TYPES.items()}
    pattern = re.compile(r"^CUDA__(INVERSE|FACTOR)\((\w+), (\d+), (.*)\)$", re.M)
    with open(path, encoding="utf-8") as file:
        return {(kernel.lower(), precisions[name], int(n)): shape
                for kernel, name, n, shape in pattern.findall(file.read())}


def write_table(arguments):
    device, best = measured(f"{arguments.build}/tune.csv")
    short = re.sub(r"[^a-z0-9]+", "_", device.removeprefix("NVIDIA ").lower())
    path = arguments.table or f"gpu/cuda/tuning_{short}.cuh"
    shapes = table_of(arguments.base) | best
    parts = ["".join(line(kernel, precision, n, shapes[kernel, precision, n])
                     for n in range(1, 33))
             for kernel in ("inverse", "factor") for precision in TYPES]
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD.format(path=path, device=f"one {device}",
                               date=datetime.date.today()) + "\n".join(parts) + TAIL)
    print(f"written: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", default="1-32")
    parser.add_argument("--kernel", choices=("inverse", "factor"))
    parser.add_argument("--precision", choices=tuple(TYPES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", default="build/tune")
    parser.add_argument("--only", choices=("list", "build", "run", "table"))
    parser.add_argument("--base", default="gpu/cuda/tuning_h200.cuh")
    parser.add_argument("--table")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", help="for the build; default: this machine's")
    arguments = parser.parse_args()
    shapes = wanted(arguments)
    if arguments.only in (None, "list", "build"):
        announce(shapes, arguments)
    try:
        if arguments.only in (None, "build"):
            build(shapes, arguments)
        if arguments.only in (None, "run"):
            run(arguments)
        if arguments.only in (None, "table"):
            write_table(arguments)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"tune.py: {error}")


if __name__ == "__main__":
    main()
