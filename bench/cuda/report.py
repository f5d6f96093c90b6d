#!/usr/bin/env python3
"""Writes the record of cuda_small's figures: a page to read and two pictures.

    report.py FOLDER|FOLDER/DATE-NAME-small.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-small.md, DATE-NAME-rate.svg (rates against the order, both axes logarithmic) and
DATE-NAME-speedup.svg (times cuBLAS) beside the file, or beside the newest one in the folder.
DATE-NAME-arena.csv is told of if it is there.
"""

import argparse
import csv
import html
import math
import pathlib
import subprocess
import sys

SHOWN = (1, 2, 3, 4, 8, 12, 16, 17, 24, 32)
# Shares of the copy to reach.
WANTED = {2: 80, 4: 85, 8: 90, 12: 80, 16: 80, 17: 70, 24: 70, 32: 70}
NAMES = {"inverse": "Inverse", "factor": "LU"}
COLOURS = {"FP32": "#1f6feb", "FP64": "#bf3989"}

METHOD = """\
Counted: 1,000,000 random matrices on the device, one launch, median of three rounds; HTTP and
transfers are not in it. Share of the copy: the time of a copy on the device of all bytes the kernel
must read and write (matrix, result, INFO, and RCOND or pivots), over the kernel's time. All rows of
an order come from one run. cuBLAS is `matinvBatched` for the inverse and `getrfBatched` for LU; the
column after it is `getrfBatched` followed by `getriBatched`.

`getrfBatched` works in place. It gets a buffer of fresh data in every call, among buffers that
exceed the second-level cache.
"""


class Plot:
    """An SVG with logarithmic axes, or a linear one upwards."""

    width, height, left, right, top, bottom = 800, 470, 70, 150, 70, 46

    def __init__(self, title, about, xs, ys, log_y):
        self.xs, self.ys, self.log_y, self.next_label = xs, ys, log_y, {}
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                    f'height="{self.height}">',
                    f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>']
        self.text(12, 22, title, size=15, anchor="start")
        self.text(12, 40, about, anchor="start")

    def text(self, x, y, what, size=11, anchor="middle", colour="#222"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-family="sans-serif" '
                        f'font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
                        f'{html.escape(what)}</text>')

    def x(self, value):
        low, high = map(math.log, self.xs)
        span = self.width - self.left - self.right
        return self.left + (math.log(value) - low) / (high - low) * span

    def y(self, value):
        scale = math.log if self.log_y else float
        low, high = map(scale, self.ys)
        span = self.height - self.top - self.bottom
        return self.height - self.bottom - (scale(value) - low) / (high - low) * span

    def line(self, points, colour, dash="", thick=1.0):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                        f'stroke-width="{thick}" stroke-dasharray="{dash}"/>')

    def grid(self, xticks, yticks, xlabel, ylabel):
        right, floor = self.width - self.right, self.height - self.bottom
        for value in xticks:
            self.line([(self.x(value), self.top), (self.x(value), floor)], "#e4e7eb")
            self.text(self.x(value), floor + 16, str(value))
        for value in yticks:
            self.line([(self.left, self.y(value)), (right, self.y(value))], "#e4e7eb")
            self.text(self.left - 6, self.y(value) + 4, f"{value:,g}", anchor="end")
        self.text((self.left + right) / 2, self.height - 10, xlabel)
        self.text(12, self.top - 6, ylabel, anchor="start")

    def series(self, points, label, colour, dash=""):
        points = [(x, y) for x, y in points if y > 0]
        self.line([(self.x(x), self.y(y)) for x, y in points], colour, dash, 2.0)
        y = self.y(points[-1][1]) + 4
        while any(abs(y - other) < 12 for other in self.next_label):
            y += 12
        self.next_label[y] = label
        self.text(self.width - self.right + 8, y, label, anchor="start", colour=colour)

    def write(self, path):
        path.write_text("\n".join(self.out) + "\n</svg>\n", encoding="utf-8")


def of(rows, kernel, precision, column):
    return [(row["n"], row[column]) for row in rows
            if row["kernel"] == kernel and row["precision"] == precision]


def write_rates(path, rows, about):
    plot = Plot("Inverses a second on the device", about, (1, 32), (1, 3e5), True)
    plot.grid((1, 2, 4, 8, 16, 32), (1, 10, 100, 1000, 10000, 100000), "order n", "million/s")
    for precision, colour in COLOURS.items():
        copy = [(n, rate / share * 100)
                for (n, rate), (_, share) in zip(of(rows, "inverse", precision, "million_per_s"),
                                                 of(rows, "inverse", precision,
                                                    "percent_of_copy"))]
        plot.series(copy, f"copy {precision}", colour, "2 4")
        plot.series(of(rows, "inverse", precision, "million_per_s"), f"invertd {precision}", colour)
        plot.series(of(rows, "inverse", precision, "cublas_million_per_s"),
                    f"cuBLAS matinv {precision}", colour, "8 4")
        plot.series(of(rows, "inverse", precision, "getrf_getri_million_per_s"),
                    f"getrf+getri {precision}", colour, "8 2 2 2")
    plot.write(path)


def write_speedups(path, rows, about):
    most = max(row["times_cublas"] for row in rows if row["kernel"] == "inverse" and row["n"] > 1)
    plot = Plot("Batched inverse: times cuBLAS matinvBatched", about, (2, 32),
                (0, 5 * math.ceil(most / 5)), False)
    plot.grid((2, 4, 8, 12, 16, 24, 32), range(0, int(most) + 6, 5), "order n", "times cuBLAS")
    for precision, colour in COLOURS.items():
        points = of(rows, "inverse", precision, "times_cublas")
        plot.series([point for point in points if point[0] > 1], precision, colour)
    plot.write(path)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def kernel_table(rows, kernel):
    header = ["n"]
    for precision in COLOURS:
        header += [f"{precision}, million/s", "of the copy", "times cuBLAS"]
        header += ["times getrf + getri"] if kernel == "inverse" else []
    header += ["to reach", "reached"]
    lines = []
    for n in SHOWN:
        cells, reached = [str(n)], []
        for precision in COLOURS:
            row = next((r for r in rows if (r["kernel"], r["precision"], r["n"]) ==
                        (kernel, precision, n)), None)
            if row is None:
                break
            cells += [f"{row['million_per_s']:,.1f}", f"{row['percent_of_copy']:.1f}%",
                      f"{row['times_cublas']:.1f}"]
            if kernel == "inverse":
                cells.append(f"{row['million_per_s'] / row['getrf_getri_million_per_s']:.1f}")
            if row["percent_of_copy"] >= WANTED.get(n, 101):
                reached.append(precision)
        else:
            wanted = f"{WANTED[n]}%" if n in WANTED else "-"
            lines.append(cells + [wanted, ", ".join(reached) or ("no" if n in WANTED else "-")])
    return table(header, lines)


def arena_part(rows):
    lines = [[row["n"], row["how"], f"{float(row['million_per_s']):.2f}",
              row["gb_per_s_each_way"], f"{float(row['percent_of_copies']):.0f}%"]
             for row in rows if float(row["million_per_s"]) > 0]
    copies = next(row["gb_per_s_each_way"] for row in rows if float(row["million_per_s"]) == 0)
    return "\n".join([
        "## From pinned host memory and back", "",
        "FP64 matrices in 2 GB of pinned memory (n = 8: 0.5 GB), an item each, the inverses to",
        "other pinned memory; four streams. Copies of the same memory, in and out at the same",
        f"time, move {copies} GB/s each way.", "",
        table(["n", "how", "million/s", "GB/s each way", "of the copies"], lines), ""])


def numbers(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for key in row:
            if key not in ("kernel", "precision", "how"):
                row[key] = int(row[key]) if key == "n" else float(row[key])
    return rows


def newest(folder):
    """Of cuda_small's tables of rates."""
    found = [path for path in folder.glob("*-small.csv")
             if path.read_text(encoding="utf-8").startswith("kernel,precision,n,")]
    if not found:
        sys.exit(f"report.py: {folder}: no table of cuda_small's")
    return max(found, key=lambda path: path.stat().st_mtime)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("small", type=pathlib.Path)
    parser.add_argument("--device", default="")
    parser.add_argument("--commit", default="")
    arguments = parser.parse_args()
    small = newest(arguments.small) if arguments.small.is_dir() else arguments.small
    stem = small.name.removesuffix("-small.csv")
    date, device = stem[:10], arguments.device or stem[11:].upper()
    commit = arguments.commit or subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
        check=False).stdout.strip() or "unknown"
    rows = numbers(small)
    about = f"{device}, {date}, commit {commit}, 1,000,000 matrices"
    write_rates(small.with_name(f"{stem}-rate.svg"), rows, about)
    write_speedups(small.with_name(f"{stem}-speedup.svg"), rows, about)
    parts = [f"# Kernels for small matrices, {device}, {date}", "",
             "\n".join(["|  |  |", "| --- | --- |", f"| date | {date} |", f"| device | {device} |",
                        f"| commit | {commit} |", "| command | `make bench-gpu` |",
                        f"| figures | [{small.name}]({small.name}), every order from 1 to 32 |"]),
             "", METHOD, f"![inverses a second against the order]({stem}-rate.svg)", ""]
    for kernel, name in NAMES.items():
        parts += [f"## {name}", "", kernel_table(rows, kernel), ""]
    arena = small.with_name(f"{stem}-arena.csv")
    if arena.exists():
        with open(arena, encoding="utf-8") as file:
            parts.append(arena_part(list(csv.DictReader(file))))
    small.with_suffix(".md").write_text("\n".join(parts), encoding="utf-8")
    print(f"written: {small.with_suffix('.md')} and two pictures")


if __name__ == "__main__":
    main()
