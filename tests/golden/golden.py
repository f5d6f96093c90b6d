#!/usr/bin/env python3
"""Sends the seeded corpus to a daemon of any build, and writes or compares hashes of its answers.

    golden.py --build DIR [--engine host|cuda|simt] [--cpu FAMILY] [--short]
              [--write FILE | --check FILE]

It speaks HTTP and gives public options alone, so one copy of it judges builds of other commits. A
file of hashes begins with what decides the bits: engine, device, CPU kernel family, libraries.
Ends with 1 where a hash differs, and with 2 where the file was made by another engine. README.md
has more.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
HASH_BYTES = 4
NO_HASH = "-" * (2 * HASH_BYTES)
# No answer is given up for being slow: neither the emulator nor a busy machine changes bits.
PATIENT = ["--batch-deadline", "10m", "--request-timeout", "10m", "--engine-heartbeat", "60s"]
PROGRAMS = {"host": "invertd-host", "cuda": "invertd-cuda", "simt": "invertd-cuda"}
# A CPU kernel family of each width of vectors, and what /proc/cpuinfo must have for it.
CPUS = {"Nehalem": {"sse4_2"}, "Haswell": {"avx2", "fma"},
        "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}}
# What the host engine answers for a CUDA engine shall not depend on the machine.
CPU_NEXT_TO_CUDA = "Haswell"
# The emulator takes its time: a small column of each row, but none of these, which take it longest.
SIMT_SLOW = re.compile("iterative f.. (stack|bad scheme)|(iterative|ism) .*, n = 33-40$")
SIMT_SHORT = 11  # the short form has one hash of so many
LIBRARIES = re.compile(r"/(lib(?:openblas|blas|lapack|cublas)[^/]*\.so[^/]*)$")
Model = collections.namedtuple("Model", "engine device cpu libraries")


def use_build(build):
    """Imports the end-to-end tests' harness, which reads the build folder from the environment."""
    if build is not None:
        os.environ["INVERTD_BUILD"] = str(pathlib.Path(build).resolve())
    for folder in (HERE, HERE.parent / "e2e"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    import corpus
    from harness import codec, daemon, settings, wire

    return corpus, codec, daemon, settings, wire


# ---- The daemon ----


@contextlib.contextmanager
def serving(engine, cpu=None, options=()):
    """A daemon of the build, ready. A busy machine may need more than one start."""
    for again in (True, True, False):
        daemon = new_daemon(engine, cpu, options)
        try:
            daemon.start().wait_ready(300)
            break
        except AssertionError as failure:
            if not again or "too long to come up" not in str(failure):
                raise
    try:
        yield daemon
        daemon.stop()
    finally:
        daemon.destroy()


def new_daemon(engine, cpu, options):
    _, _, daemon, settings, _ = use_build(None)
    words = [*PATIENT, *options]
    if engine == "host":
        words += ["--engine", "host"]
    else:
        words += ["--engine", "cuda:0", "--cuda-spares", "0"]
        cpu = cpu or CPU_NEXT_TO_CUDA
    if engine == "simt":
        words += ["--engine-cuda-path", settings.SIMT_ENGINE]
    if cpu:
        words += ["--cpu", cpu]
    return daemon.Daemon(*words, ready=False)


def model_of(daemon, engine):
    """What decides an answer's bits."""
    page = daemon.metrics()

    def label(metric, name, **labels):
        (found,) = page.select(metric, **labels)
        return dict(found)[name]

    device = "host" if engine == "host" else "cuda:0"
    libraries = set()
    for program in {"invertd-host", PROGRAMS[engine]}:
        for pid in daemon.engines(program):
            for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
                libraries.update(LIBRARIES.findall(line))
    return Model(engine, label("invertd_device_info", "model", device=device),
                 label("invertd_build_info", "cpu"), " ".join(sorted(libraries)))


def runs_here(cpu):
    """Whether this CPU runs the family's kernels."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return CPUS[cpu] <= set(flags)


# ---- Hashes ----


def canonical(array):
    """Its bytes; NaNs have one bit pattern."""
    if array.dtype == object:
        return "\0".join(array.ravel()).encode()
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return np.ascontiguousarray(array).tobytes()


def add_answer(digest, n, outputs):
    for name, array in sorted(outputs.items()):
        kind = "text" if array.dtype == object else array.dtype.str
        digest.update(f"{n} {name} {kind} {array.shape}\n".encode())
        digest.update(canonical(array))


class Runner:
    """Sends requests over a connection for each thread."""

    def __init__(self, daemon, alone):
        self.daemon, self.alone, self.local = daemon, alone, threading.local()
        _, self.codec, _, _, self.wire = use_build(None)

    def send(self, method, request):
        if not hasattr(self.local, "connection"):
            self.local.connection = self.daemon.connect(600)
        answer = self.local.connection.exchange(self.codec.infer_bytes(
            method, self.codec.v2_binary, request.inputs, request.outputs, request.parameters))
        if answer.status != 200:
            raise RuntimeError(f"{method} {request.parameters}: {answer}")
        return self.codec.v2_outputs(answer)

    def ask(self, method, request):
        """The request's answers; with `alone` each matrix's from a request of its own."""
        count = len(next(iter(request.inputs.values())))
        if not self.alone or count < 2:
            return self.send(method, request)
        parts = []
        for k in range(count):
            inputs = {name: stack[k : k + 1] for name, stack in request.inputs.items()}
            one = type(request)(inputs, request.parameters, request.outputs)
            parts.append(self.send(method, one))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def cell(self, row, column):
        digest = hashlib.blake2b(digest_size=HASH_BYTES)
        for n, request in row.requests(column):
            add_answer(digest, n, self.ask(row.method, request))
        return digest.hexdigest()


def run(daemon, cells, alone=False, connections=4, on_cell=None):
    """{(key, column): hash} of cells, which are pairs of a row and a column."""
    runner, hashes = Runner(daemon, alone), {}

    def one(cell):
        begin = time.monotonic()
        hashes[cell[0].key, cell[1]] = runner.cell(*cell)
        if on_cell:
            on_cell(*cell, time.monotonic() - begin)

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        # The longest first, so that none of them is waited for at the end.
        for _ in pool.map(one, sorted(cells, key=cost, reverse=True)):
            pass
    return hashes


def cost(cell):
    row, column = cell
    return use_build(None)[0].NAMES.index(column), row.method == "iterative"


def cells_of(engine, short, pattern=""):
    corpus = use_build(None)[0]
    rows = corpus.rows()
    few = short or engine == "simt"
    chosen = corpus.short(rows) if few else {row.key: set(row.columns) for row in rows}
    cells = [(row, column) for row in rows for column in row.columns
             if column in chosen[row.key] and re.search(pattern, row.key)]
    if engine == "simt":
        cells = [(row, column) for row, column in cells if column in corpus.SMALL
                 and not SIMT_SLOW.match(f"{row.key}, n = {column}")]
        return cells[:: SIMT_SHORT if short else 1]
    return [cell for cell in cells if engine == "cuda" or cell[1] in corpus.ON_CPU]


# ---- Files of hashes ----


def write_file(path, model, hashes):
    corpus = use_build(None)[0]
    lines = ["# Hashes of answers to the seeded corpus; tests/golden/README.md says more."]
    lines += [f"# {name}: {value}" for name, value in model._asdict().items()]
    lines += [f"# date: {datetime.date.today()}", f"# orders: {' '.join(corpus.NAMES)}"]
    for row in corpus.rows():
        found = [hashes.get((row.key, column), NO_HASH) for column in corpus.NAMES]
        if set(found) != {NO_HASH}:
            lines.append(" ".join([*found, row.key]))
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def read_file(path):
    """(model, hashes)"""
    header, hashes, names = {}, {}, []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            header[name] = value
            names = header.get("orders", "").split()
            continue
        *found, key = line.split(" ", len(names))
        hashes |= {(key, column): hash_ for column, hash_ in zip(names, found, strict=True)
                   if hash_ != NO_HASH}
    return Model(*(header[name] for name in Model._fields)), hashes


def differences(wanted, hashes):
    """[sentence] of hashes that are not those of the file."""
    found = []
    for (key, column), hash_ in hashes.items():
        before = wanted.get((key, column), "not in the file")
        if hash_ != before:
            found.append(f"{key}, n = {column}: {hash_}, was {before}")
    return sorted(found)


def file_of(engine, device):
    """Where the hashes of an engine and its device belong."""
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    return HERE / ("simt.txt" if engine == "simt" else f"{engine}-{slug}.txt")


# ---- The command ----


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", required=True, help="folder that holds invertd and its engines")
    parser.add_argument("--engine", choices=[*PROGRAMS, "all"], default="host",
                        help="simt: the CUDA engine, its kernels run on the CPU; all: whatever"
                        " this machine and build have, each compared with its file")
    parser.add_argument("--cpu", help="CPU kernel family, as the daemon's --cpu")
    parser.add_argument("--short", action="store_true", help="a part of the same hashes")
    parser.add_argument("--rows", default="", metavar="PATTERN", help="rows that match alone")
    parser.add_argument("--alone", action="store_true", help="each matrix in a request of its own")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--daemon", default="", metavar="OPTIONS", help="more options of invertd")
    parser.add_argument("--times", action="store_true", help="print what each hash took")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--write", metavar="FILE")
    target.add_argument("--check", metavar="FILE", nargs="?", const="",
                        help="without FILE: the one of this engine and device, in this folder")
    return parser.parse_args()


def compare(engine, path, model, hashes, whole):
    """whole: every hash of the file must be among them."""
    path = pathlib.Path(path or file_of(engine, model.device))
    if not path.exists():
        print(f"golden: {path} is missing; --write makes it")
        return 2
    recorded, wanted = read_file(path)
    if recorded != model:
        print(f"golden: {path} is of another engine: {recorded}, not {model}")
    found = differences(wanted, hashes)
    if whole:
        gone = sorted(wanted.keys() - hashes.keys())
        found += [f"{key}, n = {column}: gone" for key, column in gone]
    print("".join(f"{line}\n" for line in found[:60]), end="")
    equal = len([cell for cell in hashes if wanted.get(cell) == hashes[cell]])
    print(f"golden: {equal} hashes equal, {len(found)} differ: {path.name}")
    if recorded != model:
        return 2
    return 1 if found else 0


def judge(args, engine, cpu):
    """One engine through the corpus; the exit status."""
    def tell(row, column, seconds):
        print(f"{seconds:8.3f} s  {row.key}, n = {column}")

    cells = cells_of(engine, args.short, args.rows)
    begin = time.monotonic()
    with serving(engine, cpu, shlex.split(args.daemon)) as daemon:
        model = model_of(daemon, engine)
        hashes = run(daemon, cells, args.alone, args.connections, tell if args.times else None)
    print(f"golden: {engine}, {model.device}: {len(hashes)} hashes in"
          f" {time.monotonic() - begin:.0f} s", flush=True)
    if args.write:
        write_file(args.write, model, hashes)
    if args.check is None:
        return 0
    return compare(engine, args.check, model, hashes, not args.short and not args.rows)


def judge_all(args, build):
    """Every engine that the build has and that runs here, each next to its file."""
    args.write, args.check = None, ""
    status = 0
    for cpu in filter(runs_here, CPUS):
        status = max(status, judge(args, "host", cpu))
    if (build / "simt" / "invertd-cuda").exists() and runs_here(CPU_NEXT_TO_CUDA):
        status = max(status, judge(args, "simt", None))
    here = subprocess.run([HERE.parents[1] / "scripts" / "gpu-here"], stderr=subprocess.DEVNULL)
    if here.returncode == 0 and (build / "invertd-cuda").exists():
        status = max(status, judge(args, "cuda", None))
    return status


def main():
    args = arguments()
    use_build(args.build)
    if args.engine == "all":
        return judge_all(args, pathlib.Path(args.build))
    return judge(args, args.engine, args.cpu)


if __name__ == "__main__":
    sys.exit(main())
