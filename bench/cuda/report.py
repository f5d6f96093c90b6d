#!/usr/bin/env python3
"""Writes the record of cuda_small's figures: a page to read and two pictures.

    report.py FOLDER|FOLDER/DATE-NAME-small.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-small.md, DATE-NAME-rate.svg (rates against the order, both axes logarithmic) and
DATE-NAME-speedup.svg (times cuBLAS) beside the file, or beside the newest one in the folder.
DATE-NAME-arena.csv is told of if it is there.
"""

import math

from page import Page, read, table
from plot import Plot

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


def main():
    page = Page(__doc__, "small", "kernel,precision,n")
    rows = read(page.source, texts=("kernel", "precision"), whole=("n",))
    about = f"{page.device}, {page.date}, commit {page.commit}, 1,000,000 matrices"
    write_rates(page.beside("rate.svg"), rows, about)
    write_speedups(page.beside("speedup.svg"), rows, about)
    lines = [f"# Kernels for small matrices, {page.device}, {page.date}", "",
             page.facts(", every order from 1 to 32"), "", METHOD,
             f"![inverses a second against the order]({page.stem}-rate.svg)", ""]
    for kernel, name in NAMES.items():
        lines += [f"## {name}", "", kernel_table(rows, kernel), ""]
    arena = page.beside("arena.csv")
    if arena.exists():
        lines.append(arena_part(read(arena)))
    page.write(lines, " and two pictures")


if __name__ == "__main__":
    main()
