"""What the pages that tell of the CUDA benches' figures share: arguments, tables, where they lie.

A bench writes FOLDER/DATE-NAME-PART.csv; its page lies beside it as DATE-NAME-PART.md.
"""

import argparse
import csv
import pathlib
import subprocess
import sys


def table(header, rows):
    """A Markdown table of cells that are texts, aligned to the right."""
    lines = ["| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def commit_here():
    try:
        return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                              text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def read(path, texts=None, whole=()):
    """The rows of a file: numbers but in the columns `texts` (None: all are left as they are),
    integers in the columns `whole`."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows if texts is not None else []:
        for key in row:
            if key not in texts:
                row[key] = int(row[key]) if key in whole else float(row[key])
    return rows


class Page:
    """Which figures a page tells of, as the command line has it.

    source: the file of figures; date, device, commit: texts; stem: DATE-NAME.
    """

    def __init__(self, about, part, columns):
        """`about`: the program's own text; `columns`: the first ones of the bench's files, by which
        they are told from others that end in `part`."""
        parser = argparse.ArgumentParser(description=about,
                                         formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("source", type=pathlib.Path)
        parser.add_argument("--device")
        parser.add_argument("--commit")
        options = parser.parse_args()
        self.source = options.source
        if self.source.is_dir():
            found = [path for path in self.source.glob(f"*-{part}.csv")
                     if path.read_text(encoding="utf-8").startswith(columns + ",")]
            if not found:
                sys.exit(f"{self.source}: no figures of cuda_{part}")
            self.source = max(found, key=lambda path: path.stat().st_mtime)
        self.stem = self.source.name.removesuffix(f"-{part}.csv")
        self.date = self.stem[:10]
        self.device = options.device or self.stem[11:].upper()
        self.commit = options.commit or commit_here()

    def facts(self, more=""):
        """What stands at the head of a page."""
        name = self.source.name
        rows = [("date", self.date), ("device", self.device), ("commit", self.commit),
                ("command", "`make bench-gpu`"), ("figures", f"[{name}]({name}){more}")]
        return "\n".join(["|  |  |", "| --- | --- |"] + [f"| {a} | {b} |" for a, b in rows])

    def origin(self):
        """The same in one sentence."""
        return (f"Commit {self.commit}. `make bench-gpu`; figures: "
                f"[{self.source.name}]({self.source.name}).")

    def beside(self, ending):
        """A file of the same run: `page.beside("arena.csv")`."""
        return self.source.with_name(f"{self.stem}-{ending}")

    def write(self, lines, more=""):
        target = self.source.with_suffix(".md")
        target.write_text("\n".join(lines), encoding="utf-8")
        print(f"written: {target}{more}")
