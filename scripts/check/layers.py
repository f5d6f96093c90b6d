#!/usr/bin/env python3
"""Includes go one way between rooms, form no circle, between files or between rooms, names with
two underscores stay in the room that they name, and each outside library has one door.

A room is a folder. The tables below are the rules; docs/design.md says them in words.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What anyone may include: the contract with the engines and the descriptors of the methods.
CONTRACT = {"gpu/engine.h", "gpu/method.h"}

ENGINE = {"base", "gpu", "gpu/methods", "gpu/common", "gpu/process"}
HOST_LINALG = ENGINE | {"gpu/host/base", "gpu/host/linalg"}
CUDA_LU = ENGINE | {"gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/lu_small", "gpu/cuda/lu",
                    "gpu/cuda/tuning/h200"}

# Room -> rooms it may include besides its own and the contract. base includes base alone.
ALLOWED = {
    "base": set(),
    "gpu": {"base", "gpu/methods"},
    "gpu/methods": {"base"},
    "gpu/common": {"base"},
    "gpu/process": {"base", "gpu", "gpu/methods"},
    "gpu/host/base": ENGINE,
    "gpu/host/linalg": ENGINE | {"gpu/host/base"},
    "gpu/host/simd": HOST_LINALG,
    "gpu/host/lu": HOST_LINALG | {"gpu/host/simd"},
    "gpu/host/ism": HOST_LINALG | {"gpu/host/simd"},
    "gpu/host/tridiagonal": HOST_LINALG,
    "gpu/host/iterative": HOST_LINALG,
    "gpu/host/auto": HOST_LINALG | {"gpu/host/simd", "gpu/host/tridiagonal"},
    "gpu/host/engine": HOST_LINALG,
    "gpu/cuda/base": ENGINE,
    "gpu/cuda/tuning/h200": ENGINE,
    "gpu/cuda/gemm": ENGINE | {"gpu/cuda/base", "gpu/cuda/tuning/h200"},
    "gpu/cuda/lu_small": ENGINE | {"gpu/cuda/base", "gpu/cuda/tuning/h200"},
    "gpu/cuda/tridiagonal": ENGINE | {"gpu/cuda/base", "gpu/cuda/tuning/h200"},
    "gpu/cuda/structured": ENGINE | {"gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/tuning/h200"},
    "gpu/cuda/lu": CUDA_LU,
    "gpu/cuda/ism": CUDA_LU,
    "gpu/cuda/iterative": CUDA_LU | {"gpu/cuda/structured"},
    "gpu/cuda/auto": CUDA_LU | {"gpu/cuda/structured", "gpu/cuda/tridiagonal"},
    "gpu/cuda/engine": ENGINE | {"gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/tuning/h200"},
    "proto": {"base", "gpu/methods"},
    "queue": {"base", "gpu/methods"},
    "handlers/inference": {"base", "gpu/methods", "proto", "queue"},
    "handlers": {"base", "gpu/methods", "proto", "queue", "handlers/inference"},
    "server/http": {"base", "handlers"},
    "server/engines": {"base", "gpu/methods", "queue"},
    "server": {"base", "gpu/methods", "proto", "queue", "handlers", "server/http",
               "server/engines"},
    "demo": set(),
    "bench/gpu": {"base", "gpu/cuda/*", "gpu/cuda/tuning/h200"},
    "bench/host": {"base", "gpu/host/*", "gpu/methods"},
    "bench/http": {"base", "gpu/methods"},
}

# The same for a room that a new method brings with it.
OF_METHODS = {
    "gpu/host": HOST_LINALG | {"gpu/host/simd"},
    "gpu/cuda": CUDA_LU | {"gpu/cuda/structured"},
}

# Rooms whose sources may include anything of ours: they try the parts one by one.
FREE = ("tests",)

# A name PREFIX__rest is private to the room; of nested prefixes the longest counts.
PRIVATE = {
    "host__": "gpu/host",
    "host__check_": "gpu/host/ism",
    "host__ism_": "gpu/host/ism",
    "host__iter_": "gpu/host/iterative",
    "host__job_": "gpu/host/engine",
    "host__qr_": "gpu/host/linalg",
    "host__tri_": "gpu/host/tridiagonal",
    "cuda__": "gpu/cuda",
    "cuda__auto_": "gpu/cuda/auto",
    "cuda__ism_": "gpu/cuda/ism",
    "cuda__iter_": "gpu/cuda/iterative",
    "cuda__per_thread_": "gpu/cuda/lu_small",
    "cuda__lu_": "gpu/cuda/lu",
    "cuda__chol_": "gpu/cuda/structured",
    "cuda__identify_": "gpu/cuda/structured",
    "cuda__split_": "gpu/cuda/gemm",
    "cuda__tri_": "gpu/cuda/tridiagonal",
    "handlers__": "handlers",
    "http__": "server/http",
    "option__": "base",
    "process__": "gpu/process",
    "proto__": "proto",
    "queue__": "queue",
}

# Outside header -> files that may include it. A library may have more than one header.
DOORS = {
    r"microhttpd\.h": [r"server/http/[a-z_]+\.[ch]", r"bench/http/floor\.c"],
    r"uv\.h": [r"server/([a-z]+/)?[a-z_]+\.[ch]", r"bench/http/floor\.c"],
    r"jansson\.h": [r"proto/[a-z0-9_]+\.c", r"demo/[a-z]+\.c"],
    r"zlib\.h": [r"proto/[a-z0-9_]+\.c"],
    r"(lapacke|cblas|openblas.*|f77blas)\.h": [r"gpu/host/[a-z]+/[a-z_]+\.[ch]",
                                               r"bench/host/[a-z_]+\.c"],
    r"(cuda|cublas|cusolver)[a-zA-Z0-9_]*\.h": [r"gpu/cuda/[a-z_]+/[a-z0-9_]+\.(c|h|cu|cuh)",
                                               r"bench/gpu/[a-z0-9_]+\.(c|h|cu|cuh)"],
    r"charconv": [r"base/number\.cc"],
}
# Inside the daemon one file is the door: at most this many files may match each of the above.
ONE_DOOR = {r"jansson\.h": "proto/", r"zlib\.h": "proto/",
            r"(lapacke|cblas|openblas.*|f77blas)\.h": "gpu/host/"}

GENERATED = {"method_list.inc", "method_algorithms.inc", "cuda_method_list.inc", "version.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
PRIVATE_NAME = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)*?__[a-z0-9_]+")


def sources():
    listing = subprocess.run(["scripts/check/sources", "c", "h", "cc", "inc", "cu", "cuh"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    return listing.stdout.split()


def code_of(path):
    """A file's text, comments left aside."""
    return re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)


def allows(rooms, target):
    return target in rooms or str(Path(target).parent) + "/*" in rooms


def check_direction(path, name, problems):
    room, target = str(Path(path).parent), str(Path(name).parent)
    allowed = ALLOWED.get(room, OF_METHODS.get(str(Path(room).parent)))
    if path.startswith(FREE) or name in CONTRACT and room != "base":
        return
    if not (ROOT / name).exists():
        problems.append(f"{path}: no such header {name}")
    elif room == target:
        return
    elif allowed is None:
        problems.append(f"{path}: room {room} is not in the table of layers")
    elif not allows(allowed, target):
        problems.append(f"{path}: {room} must not include {name}")
    elif Path(name).stem == "private":
        problems.append(f"{path}: {name} is private to its room")


def check_private_names(path, code, problems):
    """Names with two underscores are used in the room that their prefix names alone."""
    if path.startswith(FREE + ("bench",)):
        return
    for name in sorted(set(PRIVATE_NAME.findall(code))):
        prefixes = [prefix for prefix in PRIVATE if name.startswith(prefix)]
        room = PRIVATE[max(prefixes, key=len)] if prefixes else None
        if room is None:
            problems.append(f"{path}: {name}: its prefix is not in the table of private names")
        elif not path.startswith(room + "/"):
            problems.append(f"{path}: uses {name}, private to {room}/")


def check_doors(path, name, problems):
    for library, doors in DOORS.items():
        if re.fullmatch(library, name) and not path.startswith(FREE):
            if not any(re.fullmatch(door, path) for door in doors):
                problems.append(f"{path}: {name} has its door elsewhere: {', '.join(doors)}")


def find_cycle(graph):
    """One cycle of a graph {node: {nodes}} as a list, or None."""
    done, trail = set(), []

    def visit(node):
        if node in trail:
            return trail[trail.index(node):] + [node]
        if node in done:
            return None
        trail.append(node)
        for other in sorted(graph.get(node, ())):
            found = visit(other)
            if found:
                return found
        trail.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        found = visit(node)
        if found:
            return found
    return None


def rooms_of(graph):
    """The graph of the rooms; the contract and the tests are no part of it."""
    rooms = {}
    for path, names in graph.items():
        for name in names:
            room, target = str(Path(path).parent), str(Path(name).parent)
            if room != target and name not in CONTRACT and not path.startswith(FREE):
                rooms.setdefault(room, set()).add(target)
    return rooms


def main():
    problems, graph, users = [], {}, {}
    for path in sources():
        code = code_of(path)
        check_private_names(path, code, problems)
        for mark, name in INCLUDE.findall(code):
            check_doors(path, name, problems)
            users.setdefault(name, set()).add(path)
            if mark == '"' and name not in GENERATED:
                if "/" not in name and not path.startswith(FREE):
                    problems.append(f'{path}: write "{name}" with its room')
                    continue
                check_direction(path, name, problems)
                graph.setdefault(path, set()).add(name)
    for kind, edges in (("files", graph), ("rooms", rooms_of(graph))):
        cycle = find_cycle(edges)
        if cycle:
            problems.append(f"includes form a circle of {kind}: " + " -> ".join(cycle))
    for library, folder in ONE_DOOR.items():
        inside = {path for name, paths in users.items() if re.fullmatch(library, name)
                  for path in paths if path.startswith(folder)}
        if len(inside) > 1:
            problems.append(f"{library} has more than one door: {', '.join(sorted(inside))}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
