#!/usr/bin/env python3
"""Finds the fastest shapes of the kernels for small matrices on this machine's GPU.

    tune.py [--n 2,17-24] [--kernel inverse|factor] [--precision FP32|FP64] [--jobs J]
            [--minutes M] [--build FOLDER] [--only list|build|run|table] [--base TABLE]
            [--table FILE]

Four steps, all of them unless --only names one: list (what will be tried, and what it takes), build
(nvcc, a file of a few shapes each), run (FOLDER/tune.csv), table (a file of the form of
gpu/cuda/tuning/h200/lu_small.cuh). --minutes leaves out the less promising shapes of each size
until the rest takes no longer, about. The base table's shapes are always tried; sizes that are not
keep theirs. build and run need not be on one machine: --arch sm_90 builds for an H200 anywhere. Use
the table with `make cuda TUNING=FILE`, and let `make test-gpu TUNING=FILE` check it.
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
WARP, REGISTERS, REGISTERS_MAX = 32, 65536, 255  # of a multiprocessor, of a lane
# Registers of a lane that hold its rows, at most; and choices of rows that are tried.
ROWS_LIMITS = {"inverse": (200, 5), "factor": (150, 4)}
SHAPES_A_FILE = 2
PER_THREAD_N_MAX = 5  # a whole matrix a lane
SECONDS_A_FILE = 1.5  # of one core, the headers
SECONDS_A_SHAPE = {5: 0.5, 8: 1.5, 16: 2.5, 24: 3.5, 32: 5.0}  # of one core, to this order
GPU_SECONDS_A_SHAPE, GPU_SECONDS_A_SIZE = 0.02, 0.5

HEAD = """/* {path}: the shape of the fused kernels for each size (lu_small/shapes.cuh).
 *
 * Measured by bench/gpu/tune.py on {device}, {date}: of the shapes tried the
 * fastest. Any row gives right answers on any device; another one may be faster there. A different
 * row may give other bits.
 */

/* clang-format off */
"""
TAIL = "/* clang-format on */\n"


def rows_worth_trying(kernel, n, precision):
    """Rows a lane: few idle lanes, and few enough numbers for the registers; the best first."""
    found = []
    registers_max, tried = ROWS_LIMITS[kernel]
    for rows in range(1, n + 1):
        held = WARP // math.ceil(n / rows)  # matrices a warp
        if held == 0 or math.ceil(n / (WARP // held)) != rows:
            continue
        registers = rows * n * WORDS[precision]
        busy = held * n / (rows * WARP)  # of the lanes' rows
        if registers <= registers_max and (busy >= 0.7 or rows <= 4):
            found.append((busy * min(rows, 4), rows))
    return [rows for _, rows in sorted(found, reverse=True)[:tried]]


def registers_of(kernel, rows, block, n, precision):
    """Of a lane, about, without spills: its rows, of a panel the multipliers, and the rest."""
    numbers = rows * n * WORDS[precision]
    if kernel == "factor":
        return numbers * 1.15 + 36
    panel = rows * block * WORDS[precision] if block < n else 0
    return numbers + panel + (55 if precision == "FP64" else 48 if panel else 36)


def warps_worth_trying(registers, n):
    """(warps a block, blocks a multiprocessor): what the registers hold, and a step more."""
    warps = int(REGISTERS / WARP / registers) // 4 * 4
    if n <= 4:
        return [(4, 8), (4, 12)]
    found = [w for w in (warps, warps + 4) if 8 <= w <= 28] or [8 if warps < 8 else 28]
    return [(1, w) for w in found]


def per_thread_shapes(precision, n):
    """A matrix a lane: as many numbers as the registers of full, half and third occupancy hold."""
    numbers = n * n * WORDS[precision]
    return [f"per thread {each}, 4, {blocks}"
            for each in (1, 2, 4) if each == 1 or each * numbers <= 40
            for blocks in (16, 12, 8, 6, 4)
            if each * numbers + 24 <= REGISTERS / (blocks * 128)][-6:]


def shapes_of(kernel, precision, n):
    """In the order of promise, about: every choice of rows before the next of blocks and warps."""
    width = 4 // WORDS[precision]
    blocks = [b for b in (2, 4, 8) if n > 4 and b % width == 0 and b < n]
    if kernel == "inverse":
        blocks = [n] + blocks[::-1]
    else:
        blocks = (blocks + [n] if n <= 8 else blocks)[:-3:-1] + ([n] if 8 < n <= 16 else [])
    found = per_thread_shapes(precision, n) if n <= PER_THREAD_N_MAX else []
    choices = rows_worth_trying(kernel, n, precision) if n > 2 else []
    for place in (0, 1):
        for block in blocks:
            for rows in choices:
                if kernel == "factor" and block < n and rows * block * WORDS[precision] > 24:
                    continue
                registers = registers_of(kernel, rows, block, n, precision)
                if kernel == "inverse" and registers > REGISTERS_MAX:
                    continue
                warps = warps_worth_trying(registers, n)
                rolled = ("true" if n % block == 0 and block < n else "false",)
                found += [", ".join(map(str, (rows, block, *(rolled if kernel == "inverse" else ()),
                                              *warp))) for warp in warps[place:place + 1]]
    return found


def orders(text):
    """"4,17-19" is 4, 17, 18, 19."""
    parts = [part.partition("-") for part in text.split(",")]
    return [n for low, _, high in parts for n in range(int(low), int(high or low) + 1)]


def wanted(arguments):
    """(kernel, precision, n, shape), as many of each size as the time allows."""
    base = table_of(arguments.base)
    sizes = [(kernel, precision, n)
             for n in reversed(orders(arguments.n))  # the slowest to compile first
             for precision in TYPES if arguments.precision in (None, precision)
             for kernel in ("inverse", "factor") if arguments.kernel in (None, kernel)]
    shapes = {size: list(dict.fromkeys([base[size]] + shapes_of(*size))) for size in sizes}
    count_max = max(map(len, shapes.values()))
    while True:
        found = [(*size, shape) for size in sizes for shape in shapes[size][:count_max]]
        in_time = not arguments.minutes or seconds(found, arguments) <= arguments.minutes * 60
        if count_max == 1 or in_time:
            return found
        count_max -= 1


def seconds(shapes, arguments):
    """What all of it takes."""
    work = sum(next(s for count_max, s in SECONDS_A_SHAPE.items() if n <= count_max) +
               SECONDS_A_FILE / SHAPES_A_FILE for _, _, n, _ in shapes)
    sizes = len({(precision, n) for _, precision, n, _ in shapes})
    return (work / arguments.jobs + len(shapes) * GPU_SECONDS_A_SHAPE +
            sizes * GPU_SECONDS_A_SIZE)


def line(kernel, precision, n, shape):
    form = "_PER_THREAD" if shape.startswith("per thread ") else ""
    numbers = shape.removeprefix("per thread ")
    return f"CUDA__{kernel.upper()}{form}({TYPES[precision]}, {n}, {numbers})\n"


def announce(shapes, arguments):
    print(f"{len(shapes)} shapes: about {seconds(shapes, arguments) / 60:.1f} minutes with"
          f" {arguments.jobs} jobs", flush=True)


def build(shapes, arguments):
    os.makedirs(arguments.build, exist_ok=True)
    sources = ["bench/gpu/tune.cu", "bench/gpu/fill.cu"]
    for first in range(0, len(shapes), SHAPES_A_FILE):
        path = f"{arguments.build}/shapes_{first // SHAPES_A_FILE:03d}.cu"
        with open(path, "w", encoding="utf-8") as file:
            file.write('#include "bench/gpu/tune.cuh"\n')
            file.writelines(line(*shape) for shape in shapes[first:first + SHAPES_A_FILE])
        sources.append(path)
    objects = [f"{arguments.build}/{os.path.basename(s)[:-3]}.o" for s in sources]
    nvcc = [arguments.nvcc, "-std=c++17", "-O3", "--extended-lambda",
            f"-arch={arguments.arch or 'native'}", "-I."]

    def compile_one(source, target):
        return subprocess.run(nvcc + ["-c", "-o", target, source], check=False).returncode == 0

    with ThreadPoolExecutor(arguments.jobs) as pool:
        good = list(pool.map(compile_one, sources, objects))
    if not all(good):
        print(f"tune.py: left out: {good.count(False)} files that do not compile", file=sys.stderr)
    objects = [o for o, compiles in zip(objects, good) if compiles]
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
    pattern = re.compile(r"^CUDA__(INVERSE|FACTOR)(_PER_THREAD)?\((\w+), (\d+), (.*)\)$", re.M)
    with open(path, encoding="utf-8") as file:
        return {(kernel.lower(), precisions[name], int(n)): ("per thread " if each else "") + shape
                for kernel, each, name, n, shape in pattern.findall(file.read())}


def write_table(arguments):
    device, best = measured(f"{arguments.build}/tune.csv")
    short = re.sub(r"[^a-z0-9]+", "_", device.removeprefix("NVIDIA ").lower())
    path = arguments.table or f"gpu/cuda/tuning/{short}/lu_small.cuh"
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
    parser.add_argument("--minutes", type=float, help="for all of it, about; default: no limit")
    parser.add_argument("--build", default="build/tune")
    parser.add_argument("--only", choices=("list", "build", "run", "table"))
    parser.add_argument("--base", default="gpu/cuda/tuning/h200/lu_small.cuh")
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
