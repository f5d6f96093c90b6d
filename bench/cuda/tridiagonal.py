#!/usr/bin/env python3
"""Writes the record of cuda_tridiagonal's figures: a page to read.

    tridiagonal.py FOLDER|FOLDER/DATE-NAME-tridiagonal.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-tridiagonal.md beside the file, or beside the newest one in the folder.
"""

import argparse
import csv
import pathlib
import subprocess
import sys

METHOD = """\
Counted: the time for all matrices of a batch that lies on the device, the inverse written out;
median of three rounds; HTTP and transfers are not in it. Percentages are the time of a kernel that
only writes as many bytes, over ours. cuSPARSE is `gtsv2`, with pivoting and without, on the
identity; of a batch a few matrices are solved one after the other, and their time is scaled. The
paper's recursion is as Demere, Hormenou and Yoon print it: level by level, one thread an entry.
"""

OURS = ["two_sweep", "sherman_morrison", "pivoted"]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def part(rows, precision):
    header = ["n", "matrices", "fill us", "fill GB/s"] + [f"{name} us" for name in OURS]
    header += ["gtsv2 us", "gtsv2_nopivot us", "the paper's us"]
    lines = []
    for row in rows:
        if row["precision"] != precision:
            continue
        number = {key: float(value) for key, value in row.items() if key != "precision"}
        fill = number["fill_us"]
        cells = [row["n"], f"{int(number['matrices']):,}", f"{fill:,.1f}",
                 f"{number['bytes'] / fill / 1e3:,.0f}"]
        for name in OURS:
            time = number[f"{name}_us"]
            cells.append(f"{time:,.1f} ({100 * fill / time:.0f}%)")
        for name in ("gtsv2_us", "gtsv2_nopivot_us", "paper_us"):
            cells.append(f"{number[name]:,.0f}" if number[name] > 0 else "-")
        lines.append(cells)
    return table(header, lines) if lines else "Not measured."


def commit_here():
    try:
        return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                              text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--device")
    parser.add_argument("--commit")
    arguments = parser.parse_args()
    source = arguments.source
    if source.is_dir():
        found = sorted(source.glob("*-tridiagonal.csv"))
        if not found:
            sys.exit(f"{source}: no figures of cuda_tridiagonal")
        source = found[-1]
    with source.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    date, name = source.stem[:10], source.stem[11:].rsplit("-", 1)[0]
    page = "\n".join([
        f"# Tridiagonal matrices on one {arguments.device or name.upper()}, {date}", "",
        f"Commit {arguments.commit or commit_here()}. `make bench-gpu`; figures: "
        f"[{source.name}]({source.name}).", "", METHOD,
        "## FP64", "", part(rows, "FP64"), "", "## FP32", "", part(rows, "FP32"), ""])
    target = source.with_suffix(".md")
    target.write_text(page, encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
