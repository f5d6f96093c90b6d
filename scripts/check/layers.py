#!/usr/bin/env python3
"""Includes go one way between rooms, form no circle, between files or between rooms, names with
two underscores stay in the room that they name, and each outside library has one door.

A room is a folder. The tables below are the rules, and no more than the sources use: `make docs`
writes them into docs/design.md.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What anyone may include: the contract with the engines and the descriptors of the methods.
CONTRACT = {"gpu/engine.h", "gpu/method.h"}

# Room -> rooms it may include besides its own and the contract; an entry that no file uses is a
# fault.
ALLOWED = {
    "base": set(),
    "gpu": {"base"},
    "gpu/methods": set(),
    "gpu/common": set(),
    "gpu/process": {"base"},
    "gpu/host/base": {"base", "gpu/process"},
    "gpu/host/linalg": {"base", "gpu/common", "gpu/host/base"},
    "gpu/host/simd": {"gpu/common", "gpu/host/base", "gpu/host/linalg"},
    "gpu/host/lu": {"base", "gpu/methods", "gpu/host/base", "gpu/host/linalg", "gpu/host/simd"},
    "gpu/host/ism": {"base", "gpu/methods", "gpu/common", "gpu/host/base", "gpu/host/linalg",
                     "gpu/host/simd"},
    "gpu/host/tridiagonal": {"base", "gpu/methods", "gpu/host/base", "gpu/host/linalg"},
    "gpu/host/iterative": {"base", "gpu/methods", "gpu/common", "gpu/host/base",
                           "gpu/host/linalg"},
    "gpu/host/auto": {"base", "gpu/methods", "gpu/host/base", "gpu/host/linalg", "gpu/host/simd",
                      "gpu/host/tridiagonal"},
    "gpu/host/engine": {"base", "gpu/process", "gpu/host/base", "gpu/host/linalg"},
    "gpu/cuda/base": {"base", "gpu/common"},
    "gpu/cuda/tuning/h200": {"base"},
    "gpu/cuda/gemm": {"base", "gpu/cuda/base", "gpu/cuda/tuning/h200"},
    "gpu/cuda/lu_small": {"gpu/cuda/base"},
    "gpu/cuda/tridiagonal": {"gpu/methods", "gpu/cuda/base", "gpu/cuda/tuning/h200"},
    "gpu/cuda/structured": {"base", "gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/tuning/h200"},
    "gpu/cuda/lu": {"gpu/methods", "gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/lu_small",
                    "gpu/cuda/tuning/h200"},
    "gpu/cuda/ism": {"base", "gpu/methods", "gpu/common", "gpu/cuda/base", "gpu/cuda/gemm",
                     "gpu/cuda/lu"},
    "gpu/cuda/iterative": {"gpu/methods", "gpu/common", "gpu/process", "gpu/cuda/base",
                           "gpu/cuda/gemm", "gpu/cuda/structured", "gpu/cuda/lu",
                           "gpu/cuda/tuning/h200"},
    "gpu/cuda/auto": {"base", "gpu/methods", "gpu/process", "gpu/cuda/base",
                      "gpu/cuda/structured", "gpu/cuda/tridiagonal", "gpu/cuda/lu",
                      "gpu/cuda/tuning/h200"},
    "gpu/cuda/engine": {"base", "gpu/process", "gpu/cuda/base", "gpu/cuda/gemm",
                        "gpu/cuda/tuning/h200"},
    "callback": {"base"},
    "proto": {"base"},
    "queue": {"base"},
    "queue/jobs": {"base", "queue"},
    "handlers/inference": {"base", "proto", "queue"},
    "handlers/jobs": {"base", "proto", "queue/jobs"},
    "handlers": {"base", "callback", "proto", "queue", "queue/jobs", "handlers/inference",
                 "handlers/jobs"},
    "server/http": {"base", "callback", "handlers"},
    "server/callbacks": {"base", "callback", "queue/jobs", "handlers", "server/engines",
                         "server/http"},
    "server/engines": {"base", "callback", "queue"},
    "server": {"base", "callback", "queue", "queue/jobs", "handlers", "server/callbacks",
               "server/http", "server/engines"},
    "client": {"base"},
    "demo": set(),
    "bench/gpu": {"base", "gpu/cuda/*"},
    "bench/host": {"base", "gpu/host/*", "gpu/methods", "queue/jobs"},
    "bench/http": {"base"},
}

# The same for a room that a new method brings with it.
ENGINE = {"base", "gpu/methods", "gpu/common", "gpu/process"}
OF_METHODS = {
    "gpu/host": ENGINE | {"gpu/host/base", "gpu/host/linalg", "gpu/host/simd"},
    "gpu/cuda": ENGINE | {"gpu/cuda/base", "gpu/cuda/gemm", "gpu/cuda/lu_small", "gpu/cuda/lu",
                          "gpu/cuda/structured", "gpu/cuda/tuning/h200"},
}

# Rooms whose sources may include anything of ours: they try the parts one by one.
FREE = ("tests/",)

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
    r"seccomp\.h": [r"base/confine\.c"],
    r"microhttpd\.h": [r"server/http/[a-z_]+\.[ch]", r"bench/http/floor\.c"],
    r"gnutls/[a-z0-9]+\.h": [r"server/http/tls\.c", r"base/digest\.c"],
    r"uv\.h": [r"server/([a-z]+/)?[a-z_]+\.[ch]", r"bench/http/floor\.c"],
    r"jansson\.h": [r"proto/[a-z0-9_]+\.c", r"demo/[a-z]+\.c", r"client/(outcome|document)\.c"],
    r"curl/curl\.h": [r"client/wire\.c", r"callback/post\.c"],
    r"sqlite3\.h": [r"queue/jobs/sqlite\.c"],
    r"libdeflate\.h": [r"proto/flate_whole\.c"],
    r"zlib\.h": [r"proto/[a-z0-9_]+\.c"],
    r"(lapacke|cblas|openblas.*|f77blas)\.h": [r"gpu/host/[a-z]+/[a-z_]+\.[ch]",
                                               r"bench/host/[a-z_]+\.c"],
    r"(cuda|cublas|cusolver|cusparse)[a-zA-Z0-9_]*\.h": [
        r"gpu/cuda/[a-z_]+/[a-z0-9_]+\.(c|h|cu|cuh)", r"bench/gpu/[a-z0-9_]+\.(c|h|cu|cuh)"],
    r"charconv": [r"base/number\.cc"],
    r"cmocka\.h": [],
    r"sanitizer/asan_interface\.h": [r"base/arena\.c"],
    r"sanitizer/tsan_interface\.h": [r"gpu/host/engine/job\.c"],
}
# Those of the languages and of the system, which have none.
SYSTEM = {name + ".h" for name in """
    assert ctype errno float inttypes limits malloc math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib string strings time
    arpa/inet dirent dlfcn elf fcntl fnmatch getopt linux/futex netdb netinet/in netinet/tcp
    poll pthread sched semaphore sys/epoll sys/eventfd sys/file sys/ioctl sys/mman sys/prctl
    sys/ptrace sys/random sys/resource sys/socket sys/statfs
    sys/stat sys/syscall sys/time sys/timerfd sys/types sys/uio sys/un sys/wait ucontext unistd
    emmintrin immintrin
""".split()} | set("""
    algorithm atomic cassert cctype cfloat chrono cmath cstdint cstdio cstdlib cstring ctime numeric
    random string system_error thread type_traits utility vector
""".split())
# The includes that name a macro, and why a name alone would not do: the table of shapes is the
# builder's choice; a header is read once for each precision.
BY_MACRO = {
    ("gpu/cuda/lu_small/shapes.cuh", "CUDA__TUNING"),
    ("gpu/host/base/both_precisions.h", "REAL_HEADER"),
}
# Inside the daemon one file is the door: at most this many files may match each of the above.
ONE_DOOR = {r"jansson\.h": "proto/", r"zlib\.h": "proto/",
            r"(lapacke|cblas|openblas.*|f77blas)\.h": "gpu/host/"}

GENERATED = {"method_list.inc", "method_algorithms.inc", "cuda_method_list.inc", "version.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
INCLUDE_OTHER = re.compile(r'^\s*#\s*(?:include(?:_next)?|import)\b(?!\s*[<"])\s*(.*)$', re.M)
PRIVATE_NAME = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)*?__[a-z0-9_]+")


def sources():
    listing = subprocess.run(["scripts/check/sources", "c", "h", "cc", "hh", "inc", "cu",
                              "cuh"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    return listing.stdout.split()


def code_of(path):
    """A file's text, comments left aside."""
    return re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)


def row_entry(rooms, target):
    """The entry of a row that lets `target` in, or None."""
    folder = str(Path(target).parent) + "/*"
    return target if target in rooms else folder if folder in rooms else None


def check_direction(path, name, used, problems):
    """Notes the entry of the table in `used`."""
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
    elif row_entry(allowed, target) is None:
        problems.append(f"{path}: {room} must not include {name}")
    elif Path(name).stem == "private" or Path(name).stem.endswith("_private"):
        problems.append(f"{path}: {name} is private to its room")
    else:
        used.add((room, row_entry(allowed, target)))


def check_private_names(path, code, problems):
    """Names with two underscores are used in the room that their prefix names alone."""
    if path.startswith(FREE + ("bench/",)):
        return
    for name in sorted(set(PRIVATE_NAME.findall(code))):
        prefixes = [prefix for prefix in PRIVATE if name.startswith(prefix)]
        room = PRIVATE[max(prefixes, key=len)] if prefixes else None
        if room is None:
            problems.append(f"{path}: {name}: its prefix is not in the table of private names")
        elif not path.startswith(room + "/"):
            problems.append(f"{path}: uses {name}, private to {room}/")


def check_macros(path, code, problems):
    for name in INCLUDE_OTHER.findall(code):
        if (path, name.strip()) not in BY_MACRO:
            problems.append(f"{path}: includes by a macro or another directive: {name.strip()}")


def check_doors(path, mark, name, problems):
    libraries = [library for library in DOORS if re.fullmatch(library, name)]
    for library in libraries:
        doors = DOORS[library]
        if not path.startswith(FREE) and not any(re.fullmatch(door, path) for door in doors):
            problems.append(f"{path}: {name} has its door elsewhere: {', '.join(doors)}")
    if mark == "<" and (ROOT / name).exists():
        problems.append(f'{path}: write "{name}", a file of ours, with quotation marks')
    elif mark == "<" and not libraries and name not in SYSTEM:
        problems.append(f"{path}: {name} is of no library in the table of doors")


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


def check_one_door(users, problems):
    for library, folder in ONE_DOOR.items():
        inside = {path for name, paths in users.items() if re.fullmatch(library, name)
                  for path in paths if path.startswith(folder)}
        if len(inside) > 1:
            problems.append(f"{library} has more than one door: {', '.join(sorted(inside))}")


def main():
    problems, graph, users, used = [], {}, {}, set()
    for path in sources():
        code = code_of(path)
        check_private_names(path, code, problems)
        check_macros(path, code, problems)
        for mark, name in INCLUDE.findall(code):
            check_doors(path, mark, name, problems)
            users.setdefault(name, set()).add(path)
            if mark == '"' and name not in GENERATED:
                if "/" not in name and not path.startswith(FREE):
                    problems.append(f'{path}: write "{name}" with its room')
                    continue
                check_direction(path, name, used, problems)
                graph.setdefault(path, set()).add(name)
    for kind, edges in (("files", graph), ("rooms", rooms_of(graph))):
        cycle = find_cycle(edges)
        if cycle:
            problems.append(f"includes form a circle of {kind}: " + " -> ".join(cycle))
    check_one_door(users, problems)
    unused = {(room, entry) for room in ALLOWED for entry in ALLOWED[room]} - used
    problems += [f"{room} includes nothing of {entry}: take it from the table"
                 for room, entry in sorted(unused)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
