#!/usr/bin/env python3
"""Links of the documents lead to a file here, and to a heading of it where they name one; every
page under bench/results is in the index there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = Path("bench/results/README.md")
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


def headings(text):
    """What GitHub calls the headings in an address."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M):
        words = re.sub(r"[^\w\- ]", "", title.strip().lower())
        found.add(words.replace(" ", "-"))
    return found


def wrong_links(page):
    for target in LINK.findall(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists():
            yield f"{page}: {target} does not exist"
        elif anchor and anchor not in headings(path.read_text(encoding="utf-8")):
            yield f"{page}: {target} has no such heading"


def main():
    listing = subprocess.run(["scripts/check/sources", "md"], cwd=ROOT, check=True,
                             capture_output=True, text=True)
    pages = [Path(line) for line in listing.stdout.splitlines()]
    problems = [problem for page in pages for problem in wrong_links(page)]
    listed = set(LINK.findall((ROOT / INDEX).read_text(encoding="utf-8")))
    problems += [f"{page}: not in {INDEX}" for page in pages
                 if page.parent == INDEX.parent and page != INDEX and page.name not in listed]
    print("\n".join(problems))
    return 1 if problems or len(pages) < 10 else 0


sys.exit(main())
