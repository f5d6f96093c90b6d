#!/usr/bin/env python3
"""What an object exports bears its folder's name.

`queue_submit` is public in queue/; `queue__pop` (two underscores) is shared within queue/ alone.
In base/ and server/ the file's own name stands for the folder: `arena_alloc`, `supervisor_stop`.

    scripts/check/symbols.py BUILD
"""

import re
import subprocess
import sys
from pathlib import Path

# Folder -> prefixes beside the folder's name. Empty: only those of the file's name.
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


def main():
    root = Path(sys.argv[1]) / "obj"
    problems = []
    for folder, prefixes in EXTRA.items():
        # A file split in two shares names with two underscores, under its first part's name.
        files = tuple(header.stem + "__" for header in Path(folder).glob("*.c"))
        objects = [path for path in sorted((root / folder).glob("*.o"))
                   if any(Path(f"{folder}/{path.stem}.{end}").exists() for end in ENDINGS)]
        for path, kind, name in symbols(objects) if objects else []:
            source = f"{folder}/{path.stem}.c"
            allowed = tuple(prefixes) + (path.stem + "_",) + files
            private = re.match(r"([a-z0-9]+)__", name)
            if kind == "U" and private and Path(private[1]).is_dir() \
                    and private[1] != Path(folder).name:
                problems.append(f"{source}: uses {name}, private to {private[1]}/")
            if kind in "uUwvV" or not is_ours(name) or name == "main":
                continue
            if not name.startswith(allowed):
                problems.append(f"{source}: exports {name}; allowed:"
                                f" {', '.join(prefixes)}, {path.stem}_")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
