#!/usr/bin/env python3
"""Includes go one way, form no cycle, and each outside library has one door.

The tables below are the rules; docs/design.md tells them in words.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What anyone may include: the contract with the engines and the descriptors of the methods.
CONTRACT = {"gpu/engine.h", "gpu/method.h"}

# Folder -> folders it may include besides its own and the contract. base includes base alone.
ALLOWED = {
    "base": set(),
    "gpu": {"base", "gpu/methods"},
    "gpu/methods": {"base"},
    "gpu/process": {"base", "gpu", "gpu/methods"},
    "gpu/host": {"base", "gpu", "gpu/methods", "gpu/process"},
    "gpu/cuda": {"base", "gpu", "gpu/methods", "gpu/process"},
    "proto": {"base", "gpu/methods"},
    "queue": {"base", "gpu/methods"},
    "handlers": {"base", "gpu/methods", "proto", "queue"},
    "server": {"base", "gpu/methods", "proto", "queue", "handlers"},
    "demo": set(),
    "bench": {"base", "gpu/methods", "queue"},
    "bench/cuda": {"base", "gpu/cuda"},
    "bench/host": {"base", "gpu/host", "gpu/methods"},
}

# Folders whose sources may include anything of ours: they try the parts one by one.
FREE = ("tests",)

# Outside header -> files that may include it. A library may have more than one header.
DOORS = {
    r"microhttpd\.h": [r"server/http[a-z_]*\.[ch]", r"bench/http_floor\.c"],
    r"uv\.h": [r"server/[a-z_]+\.[ch]", r"bench/http_floor\.c"],
    r"jansson\.h": [r"proto/[a-z0-9_]+\.c", r"demo/[a-z]+\.c"],
    r"zlib\.h": [r"proto/[a-z0-9_]+\.c"],
    r"(lapacke|cblas|openblas.*|f77blas)\.h": [r"(gpu|bench)/host/[a-z_]+\.c"],
    r"(cuda|cublas|cusolver)[a-zA-Z0-9_]*\.h": [r"(gpu|bench)/cuda/[a-z0-9_]+\.(c|h|cu|cuh)"],
    r"charconv": [r"base/number\.cc"],
}
# Inside the daemon one file is the door: at most this many files may match each of the above.
ONE_DOOR = {r"jansson\.h": "proto/", r"zlib\.h": "proto/",
            r"(lapacke|cblas|openblas.*|f77blas)\.h": "gpu/host/"}

GENERATED = {"method_includes.inc", "method_list.inc", "version.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources():
    listing = subprocess.run(["scripts/check/sources", "c", "h", "cc", "inc", "cu", "cuh"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    return listing.stdout.split()


def includes_of(path):
    """[(quoted, name)] of a file, comments left aside."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    return [(mark == '"', name) for mark, name in INCLUDE.findall(text)]


def check_direction(path, name, problems):
    folder = str(Path(path).parent)
    target = str(Path(name).parent)
    if path.startswith(FREE) or name in CONTRACT and folder != "base":
        return
    if folder == target:
        if Path(path).stem != Path(name).stem and not (ROOT / name).exists():
            problems.append(f"{path}: no such header {name}")
        return
    if folder not in ALLOWED:
        problems.append(f"{path}: folder {folder} is not in the table of layers")
    elif target not in ALLOWED[folder] and not name.startswith("build/"):
        problems.append(f"{path}: {folder} must not include {name}")
    elif "private" in name:
        problems.append(f"{path}: {name} is private to its folder")


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


def main():
    problems, graph, users = [], {}, {}
    for path in sources():
        for quoted, name in includes_of(path):
            check_doors(path, name, problems)
            users.setdefault(name, set()).add(path)
            if quoted and name not in GENERATED:
                if "/" not in name and not path.startswith(FREE):
                    problems.append(f'{path}: write "{name}" with its folder')
                    continue
                check_direction(path, name, problems)
                graph.setdefault(path, set()).add(name)
    cycle = find_cycle(graph)
    if cycle:
        problems.append("includes form a cycle: " + " -> ".join(cycle))
    for library, folder in ONE_DOOR.items():
        inside = {path for name, paths in users.items() if re.fullmatch(library, name)
                  for path in paths if path.startswith(folder)}
        if len(inside) > 1:
            problems.append(f"{library} has more than one door: {', '.join(sorted(inside))}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
