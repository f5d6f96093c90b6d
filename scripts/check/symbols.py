#!/usr/bin/env python3
"""What an object exports bears its room's name.

`queue_submit` is public in queue/; `queue__pop` (two underscores) is shared within queue/ alone:
scripts/check/layers.py holds who uses it. In base/ and server/ the file's own name stands for the
room: `arena_alloc`, `supervisor_stop`.

    scripts/check/symbols.py BUILD
"""

import subprocess
import sys
from pathlib import Path

# Room, with the rooms below it that have no row -> prefixes next to those of the file's name.
EXTRA = {
    "base": ["failure_", "error_"],
    "gpu": ["method_", "engine_"],
    "gpu/process": ["process_"],
    "gpu/host": ["host_"],
    "gpu/cuda": ["cuda_"],
    "handlers": ["handlers_", "exchange_"],
    "proto": ["proto_"],
    "queue": ["queue_"],
    "server": ["server_"],
    "server/http": ["http_"],
    "server/engines": ["engine_"],
}

ENDINGS = ("c", "cc", "cu")


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


def objects_of(root, room):
    """Those of a room and of the rooms below it that have no row of their own."""
    for path in sorted((root / room).glob("**/*.o")):
        source = path.relative_to(root).with_suffix("")
        nearest = next(str(above) for above in source.parents if str(above) in EXTRA)
        if nearest == room and any(source.with_suffix("." + end).exists() for end in ENDINGS):
            yield path


def main():
    root = Path(sys.argv[1]) / "obj"
    problems = []
    for room, prefixes in EXTRA.items():
        objects = list(objects_of(root, room))
        for path, kind, name in symbols(objects) if objects else []:
            if kind in "uUwvV" or not is_ours(name) or name == "main":
                continue
            # A file split in two shares names with two underscores, under its first part's name.
            files = tuple(source.stem + "__" for source in Path(room).glob("**/*.c"))
            if not name.startswith(tuple(prefixes) + (path.stem + "_",) + files):
                problems.append(f"{path.relative_to(root)}: exports {name}; allowed:"
                                f" {', '.join(prefixes)}, {path.stem}_")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
