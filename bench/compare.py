#!/usr/bin/env python3
"""Compares the GPU bench's times of two builds on one card.

    bench/compare.py BEFORE AFTER [--limit PERCENT] [--all]

BEFORE and AFTER: folders of CSV files, or files, as `gpu --time --results` writes them; or as the
programs before it did, to d074104 (DATE-DEVICE-PART.csv). Of several runs (A1,A2,A3), separated by
commas, the shortest time of a figure counts. Prints the figures that are more
than PERCENT (5) worse, or all of them, how many were compared, and the mean of the ratios of each
subject. Ends with 1 where one is worse, and with 2 where nothing can be compared.
"""

import argparse
import csv
import math
import pathlib
import sys

ARENA_BYTES = 2 << 30
TIMES = {"us": 1, "ms": 1000}


def shape(row, *keys):
    return " ".join(f"{key}={row[key]}" for key in keys)


def new_rows(rows):
    for row in rows:
        if row["unit"] in TIMES:
            yield (row["subject"], row["shape"], row["precision"], row["what"],
                   float(row["value"]) * TIMES[row["unit"]])


def old_small(rows):
    for row in rows:
        yield ("lu_small", f"n={row['n']} matrices=1000000", row["precision"], row["kernel"],
               1e6 / float(row["million_per_s"]))


def old_middle(rows):
    for row in rows:
        yield "lu", shape(row, "n", "matrices"), row["precision"], row["kernel"], float(row["us"])


def old_tridiagonal(rows):
    for row in rows:
        for name in ("two_sweep", "sherman_morrison", "pivoted"):
            yield ("tridiagonal", shape(row, "n", "matrices"), row["precision"], name,
                   float(row[f"{name}_us"]))


def old_iterative(rows):
    """One file held passes, products and the method."""
    counts = {}
    for row in rows:
        part, what, value = row["part"], row["what"], float(row["value"])
        n, kind = row["n"], row["precision"]
        if what == "count":
            counts[kind, n] = int(value)
        matrices = counts.get((kind, n), 1) if part == "passes of batches" else 1
        single = f"n={n} matrices={matrices}"
        if part.startswith("passes") and what in ("identify", "transpose"):
            yield "passes", single, kind, what, value
        elif part == "launches":
            yield "passes", "n=512", kind, what, value
        elif part == "products" and row["quantity"] == "split_us":
            name, sizes = what.rsplit(" ", 1)
            inner = sizes.split("x")[2]
            yield "products", f"n={n} inner={inner}", kind, f"split {name}", value
        elif row["quantity"] == "ms" and not what.startswith(("cu", "gauss")):
            if part == "batch":
                what, count = what.split(" of ")
                single = f"n={n} matrices={count}"
            prefix = {"schemes": "scheme ", "paper": "paper ", "batch": "batch "}.get(part, "")
            yield "iterative", single, kind, prefix + what, 1000 * value


def old_ism(rows):
    for row in rows:
        size = shape(row, "n", "m", "matrices")
        if row["copy_us"]:
            yield "updates", size, row["precision"], "update", float(row["ism_us"])
        else:
            yield ("ism", f"{size} {shape(row, 'a0', 'block')}", row["precision"], row["variant"],
                   float(row["ism_us"]))


def old_steps(rows):
    for row in rows:
        yield ("ism", f"{shape(row, 'n', 'm')} matrices=1 {shape(row, 'a0', 'block')}",
               row["precision"], f"step {row['step']}", float(row["us"]))


def old_auto(rows):
    for row in rows:
        if row["what"] != "lu":
            yield ("auto", shape(row, "n", "matrices"), row["precision"], row["what"],
                   float(row["us"]))


def old_cholesky(rows):
    for row in rows:
        for name in ("auto", "inversion"):
            if float(row[f"{name}_us"]) > 0:
                yield ("structured", shape(row, "n", "matrices"), row["precision"], name,
                       float(row[f"{name}_us"]))


def old_arena(rows):
    for row in rows:
        if float(row["million_per_s"]) > 0:
            count = ARENA_BYTES // max(8 * int(row["n"]) ** 2, 2048)
            what = row["how"].replace(",", "").removesuffix(" order")
            what = what if "in" not in what.split() else f"{what} order"
            yield ("arena", f"n={row['n']} matrices={count}", "FP64", what,
                   count / float(row["million_per_s"]))


# What a file's first line begins with, and who reads it.
FORMS = {
    "subject,shape,precision,what,": new_rows,
    "kernel,precision,n,million_per_s,": old_small,
    "kernel,precision,n,matrices,us,": old_middle,
    "precision,n,matrices,bytes,fill_us,": old_tridiagonal,
    "part,precision,n,what,quantity,value": old_iterative,
    "precision,n,m,matrices,a0,variant,ism_us,": old_ism,
    "precision,n,m,a0,block,step,us": old_steps,
    "precision,n,matrices,what,us": old_auto,
    "precision,n,matrices,auto_us,": old_cholesky,
    "n,how,million_per_s,": old_arena,
}


def shortest(names):
    """The figures of the runs in a list."""
    figures = {}
    for name in names.split(","):
        for key, value in read(pathlib.Path(name)).items():
            figures[key] = min(value, figures.get(key, value))
    return figures


def read(path):
    """{(subject, shape, precision, what): us} of all files."""
    figures = {}
    for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        with file.open(newline="", encoding="utf-8") as stream:
            head = stream.readline()
            form = next((f for start, f in FORMS.items() if head.startswith(start)), None)
            stream.seek(0)
            if form:
                figures.update({row[:4]: row[4] for row in form(csv.DictReader(stream))})
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--limit", type=float, default=5)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    before, after = shortest(options.before), shortest(options.after)
    both = [key for key in before if before[key] > 0 and after.get(key, 0) > 0]
    worse, ratios = 0, {}
    for key in both:
        ratio = after[key] / before[key]
        bad = ratio > 1 + options.limit / 100
        worse += bad
        ratios.setdefault(key[0], []).append(ratio)
        if bad or options.all:
            print(f"{'WORSE' if bad else '     '} {100 * (ratio - 1):+6.1f}%"
                  f"  {before[key]:12.2f} -> {after[key]:12.2f} us  {' | '.join(key)}")
    for subject, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{subject:12s} {len(values):4d} figures, {100 * (mean - 1):+.1f}% in the mean")
    for name, found, other in (("before", before, after), ("after", after, before)):
        alone = [key for key in found if key not in other]
        print(f"only {name}: {len(alone)}" + (f", such as {' | '.join(alone[0])}" if alone else ""))
    print(f"{len(both)} compared, {worse} more than {options.limit:g}% worse")
    sys.exit(2 if not both else 1 if worse else 0)


if __name__ == "__main__":
    main()
