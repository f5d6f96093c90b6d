#!/usr/bin/env python3
"""Writes the record of cuda_ism's figures: a page to read.

    ism.py FOLDER|FOLDER/DATE-NAME-ism.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-ism.md beside the file, or beside the newest one in the folder; with the shares of
the steps where DATE-NAME-ism-steps.csv lies there too.
"""

from page import Page, read, table

METHOD = """\
Counted: the time for all matrices on the device; median of three rounds; HTTP and transfers are not
in it. Operations: 2 n^2 m + 4 n m^2 for a diagonal A0, 6 n^2 m + 4 n m^2 for a given inverse. The
product is cuBLAS's DGEMM or SGEMM of order n, at whose rate the same operations would take the time
that the percentage tells of. A copy moves the bytes that an update must read and write, a fill
writes n^2 numbers. lu is our own, of the formed A. "Formed, lu" is with the time of the copy: who
forms A from A0, X and Y moves as many bytes. cuSOLVER is getrf and getrs on the identity.
"""

STEPS = """\
How the time of BISM is shared by its steps, the ISM paper's Figure 5: `bring` copies the inputs to
the workspace, `begin` makes X^T A0^-T and Y^T A0^-1, `meet` is what earlier columns change in them,
`invert` R, `couple` R times the columns, `assemble` A0^-1 less the product, `try` the trial and the
answer's way out. Block 0: `auto` chooses it.
"""


def number(row, key):
    return float(row[key]) if row[key] else 0.0


def beside(row, *keys):
    """A peer's microseconds, of one or more steps, and how many times ours they are."""
    time = sum(number(row, key) for key in keys)
    return f"{time:,.1f} ({time / number(row, 'ism_us'):.2f} times)" if time > 0 else "-"


def batches(rows):
    cells = []
    for row in rows:
        if row["copy_us"]:
            ours, copy = number(row, "ism_us"), number(row, "copy_us")
            cells.append([row["precision"], row["n"], row["m"], f"{int(row['matrices']):,}",
                          f"{ours:,.1f}", f"{copy:,.1f} ({100 * copy / ours:.0f}%)",
                          beside(row, "lu_us"), beside(row, "copy_us", "lu_us")])
    return table(["precision", "n", "m", "matrices", "ism us", "copy us", "lu us",
                  "formed, lu us"], cells)


def operations(row):
    n, m = int(row["n"]), int(row["m"])
    return n * n * m * (6 if row["a0"] == "inverse" else 2) + 4 * n * m * m


def large(rows):
    cells = []
    for row in rows:
        if not row["fill_us"]:
            continue
        n, ours, fill = int(row["n"]), number(row, "ism_us"), number(row, "fill_us")
        product = number(row, "product_us") * operations(row) / (2 * n ** 3)
        cells.append([row["precision"], row["n"], row["m"], row["a0"], row["variant"], row["block"],
                      f"{ours:,.1f}", f"{100 * product / ours:.0f}%", f"{100 * fill / ours:.0f}%",
                      beside(row, "lu_us"), beside(row, "cusolver_us")])
    return table(["precision", "n", "m", "A0", "variant", "block", "ism us", "of the product",
                  "of a fill", "lu us", "cuSOLVER us"], cells)


def steps(path):
    shapes = {}
    for row in read(path):
        key = (row["precision"], row["n"], row["m"], row["a0"], row["block"])
        shapes.setdefault(key, {})[row["step"]] = float(row["us"])
    names = list(next(iter(shapes.values())))
    cells = []
    for key, found in shapes.items():
        whole = sum(found.values())
        shares = [f"{100 * found[name] / whole:.0f}%" for name in names]
        cells.append([*key, f"{whole:,.1f}"] + shares)
    return table(["precision", "n", "m", "A0", "block", "us"] + names, cells)


def main():
    page = Page(__doc__, "ism", "precision,n,m")
    rows = read(page.source)
    shares = page.beside("ism-steps.csv")
    lines = [f"# ism on one {page.device}, {page.date}", "", page.facts(), "", METHOD,
             "## Batched updates of a known inverse", "", batches(rows), "",
             "## One large matrix", "", large(rows), ""]
    if shares.exists():
        lines += ["## Steps", "", STEPS, steps(shares), ""]
    page.write(lines)


if __name__ == "__main__":
    main()
