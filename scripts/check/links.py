#!/usr/bin/env python3
"""Links of the documents lead to a file here, and to a heading of it where they name one; every
page under bench/results is in the index there. A source whose first line names a file names its
own path, and a path in a comment exists."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INDEX = Path("bench/results/README.md")
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


def listed(*endings):
    listing = subprocess.run(["scripts/check/sources", *endings], cwd=ROOT, check=True,
                             capture_output=True, text=True)
    return [Path(line) for line in listing.stdout.splitlines()]


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


ENDINGS = ("c", "h", "cc", "hh", "inc", "cu", "cuh")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
HEAD = re.compile(rf"/\* ([\w./-]+\.(?:{'|'.join(ENDINGS)})):")
# A file in a comment, with its room or without.
MENTION = re.compile(rf"(?<![\w./<$%*-])((?:[\w-]+/)*[\w-]+\.(?:{'|'.join(ENDINGS)}|py|md|yaml))\b")
# What builds make, what stands for any name, and what is the system's.
ELSEWHERE = re.compile(r"build/|gen/|(?:.*/)?[A-Z]+\.|zlib\.h$")


def named(source, name, files):
    """Is there such a file, said from a folder above the source, or anywhere by its name alone?"""
    if "/" not in name:
        return any(Path(file).name == name for file in files)
    return any(str(room / name) in files for room in source.parents)


def wrong_names(source, files):
    text = (ROOT / source).read_text(encoding="utf-8")
    head = HEAD.match(text)
    if head and head[1] != str(source):
        yield f"{source}: its first line says {head[1]}"
    for comment in COMMENT.finditer(text):
        for name in MENTION.findall(comment[0]):
            if not ELSEWHERE.match(name) and not named(source, name, files):
                line = text.count("\n", 0, comment.start()) + 1
                yield f"{source}:{line}: there is no {name}"


def main():
    pages = listed("md")
    problems = [problem for page in pages for problem in wrong_links(page)]
    index = set(LINK.findall((ROOT / INDEX).read_text(encoding="utf-8")))
    problems += [f"{page}: not in {INDEX}" for page in pages
                 if page.parent == INDEX.parent and page != INDEX and page.name not in index]
    sources = listed(*ENDINGS)
    files = {str(path) for path in listed(*ENDINGS, "py", "md", "yaml")}
    problems += [problem for source in sources for problem in wrong_names(source, files)]
    print("\n".join(problems))
    return 1 if problems or len(pages) < 10 or len(sources) < 400 else 0


sys.exit(main())
