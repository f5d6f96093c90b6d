#!/usr/bin/env python3
"""Writes the record of cuda_tridiagonal's figures: a page to read.

    tridiagonal.py FOLDER|FOLDER/DATE-NAME-tridiagonal.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-tridiagonal.md beside the file, or beside the newest one in the folder.
"""

from page import Page, read, table

METHOD = """\
Counted: the time for all matrices of a batch that lies on the device, the inverse written out;
median of three rounds; HTTP and transfers are not in it. Percentages are the time of a kernel that
only writes as many bytes, over ours. cuSPARSE is `gtsv2`, with pivoting and without, on the
identity; of a batch a few matrices are solved one after the other, and their time is scaled. The
paper's recursion is as Demere, Hormenou and Yoon print it: level by level, one thread an entry.
"""

OURS = ["two_sweep", "sherman_morrison", "pivoted"]


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


def main():
    page = Page(__doc__, "tridiagonal", "precision,n,matrices")
    rows = read(page.source)
    page.write([
        f"# Tridiagonal matrices on one {page.device}, {page.date}", "", page.origin(), "", METHOD,
        "## FP64", "", part(rows, "FP64"), "", "## FP32", "", part(rows, "FP32"), ""])


if __name__ == "__main__":
    main()
