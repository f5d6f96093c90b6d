#!/usr/bin/env python3
"""What an object exports bears its room's name.

`queue_submit` is public in queue/; `queue__pop` (two underscores) is shared within queue/ alone:
scripts/check/layers.py holds who uses it. In base/ and server/ the file's own name stands for the
room: `arena_alloc`, `supervisor_stop`. Every source must have an object; those of the CUDA engine
may be the ones made for the CPU.

    scripts/check/symbols.py BUILD
"""

import re
import subprocess
import sys
from pathlib import Path

# Room, with the rooms below it that have no row -> prefixes next to those of the file's name.
EXTRA = {
    "base": ["failure_", "error_"],
    "client": [],
    "gpu": ["method_", "engine_"],
    "gpu/process": ["process_"],
    "gpu/host": ["host_"],
    "gpu/cuda": ["cuda_"],
    "handlers": ["handlers_", "exchange_"],
    "proto": ["proto_"],
    "queue": ["queue_"],
    "queue/jobs": ["queue__", "jobs_", "runner_"],
    "server": ["server_", "config_"],
    "server/http": ["http_"],
    "server/engines": ["engine_"],
}

ENDINGS = ("c", "cc", "cu")
# What a source's name bears in the object of one precision, width of vector or range of orders.
VARIANT = re.compile(r"_f(32|64)(_[nv]\d+)?$")


def symbols(paths):
    """[(object, kind, name)] of the objects: upper-case kinds are global."""
    listing = subprocess.run(["nm", "-g", "-A", "--format=posix", *paths], check=True,
                             capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        path, rest = line.split(": ", maxsplit=1)
        name, kind = rest.split()[:2]
        yield Path(path), kind, name


def is_ours(name):
    # C++ and the compiler's own.
    return not name.startswith(("_Z", "__", "DW."))


def room_of(source):
    """The nearest room with a row of its own, or None."""
    return next((str(above) for above in source.parents if str(above) in EXTRA), None)


def source_of(path):
    """The source of an object, both below their roots; or None."""
    name = path.with_suffix("")
    for stem in (name.name, VARIANT.sub("", name.name)):
        for ending in ENDINGS:
            source = name.with_name(f"{stem}.{ending}")
            if source.exists():
                return source
    return None


def objects_below(roots):
    """{object: source} of the rooms' objects."""
    found = {}
    for root in roots:
        for room in EXTRA:
            for path in (root / room).glob("**/*.o"):
                found[path] = source_of(path.relative_to(root))
    return {path: source for path, source in found.items() if source is not None}


def unbuilt(sources):
    """The rooms' sources that are not among these."""
    listing = subprocess.run(["scripts/check/sources", *ENDINGS], check=True, capture_output=True,
                             text=True)
    rooms = [Path(name) for name in listing.stdout.split()]
    return sorted(source for source in rooms if room_of(source) and source not in sources)


def main():
    build = Path(sys.argv[1])
    objects = objects_below([build / "obj", build / "simt/obj"])
    problems = [f"{source}: no object of it in {build}" for source in unbuilt(objects.values())]
    # A file split in two shares names with two underscores, under its first part's name.
    shared = {room: tuple(source.stem + "__" for source in Path(room).glob("**/*.c"))
              for room in EXTRA}
    for path, kind, name in symbols(sorted(objects)) if objects else []:
        if kind in "uUwvV" or not is_ours(name) or name == "main":
            continue
        source = objects[path]
        room = room_of(source)
        prefixes = EXTRA[room] + [source.stem + "_"]
        if not name.startswith(tuple(prefixes) + shared[room]):
            problems.append(f"{path}: exports {name}; allowed: {', '.join(prefixes)}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
