#!/usr/bin/env python3
"""Words that must not stand in the sources: work left undone, code switched off, unsafe calls."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Pattern -> why not. Looked for in C, C++, shell, Python, Markdown and YAML.
EVERYWHERE = {
    r"\b(TODO|FIXME|XXX|HACK)\b": "finish it, or write the reason where the limit is told",
    r"(?i)\b(blazing|lightning[- ]fast|cutting[- ]edge|world[- ]class|seamless(ly)?)\b":
        "plain words only",
}
# In C and C++, tests left aside: those are run by sanitizers on sizes they choose themselves.
IN_C = {
    r"^\s*#\s*if\s+0\b": "code switched off",
    r"\b(strcpy|strcat|sprintf|vsprintf|alloca|strtok)\s*\(": "an unsafe call",
    r"\batoi\s*\(": "strtol, with its checks",
    r"#\s*define\s+NDEBUG": "asserts stay on",
}
TEXT = {".c", ".h", ".cc", ".inc", ".cu", ".cuh", ".py", ".md", ".yaml", ".lua", ".sh", ""}
C_ENDINGS = {".c", ".h", ".cc", ".inc", ".cu", ".cuh"}
SELF = "scripts/check/words.py"


def main():
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             cwd=ROOT, check=True, capture_output=True, text=True)
    problems = []
    for path in listing.stdout.splitlines():
        file = ROOT / path
        if file.suffix not in TEXT or path == SELF or not file.is_file():
            continue
        try:
            lines = file.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        rules = dict(EVERYWHERE)
        if file.suffix in C_ENDINGS and not path.startswith("tests/"):
            rules.update(IN_C)
        for number, line in enumerate(lines, 1):
            for pattern, why in rules.items():
                if re.search(pattern, line):
                    problems.append(f"{path}:{number}: {line.strip()[:60]}: {why}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
