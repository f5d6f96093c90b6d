#!/usr/bin/env python3
"""Writes the record of cuda_middle's figures: a page to read.

    middle.py FOLDER|FOLDER/DATE-NAME-middle.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-middle.md beside the file, or beside the newest one in the folder. Where this
Python has torch and torch has a GPU, torch.linalg.inv_ex is measured too, on as many matrices.
"""

import torch_inverse
from page import Page, read, table

# GFLOP/s to reach, FP64; FP32: as many times cuBLAS as these are.
WANTED = {64: 12000, 128: 15000, 256: 15000, 512: 18000, 1024: 20000}
NAMES = {"inverse": "Inverse, 2 n^3 operations", "factor": "LU, 2/3 n^3 operations"}

METHOD = """\
Counted: random matrices on the device, as many as fill 2 GiB (up to n = 1024), and one; median of
three rounds; HTTP and transfers are not in it. cuBLAS is `getrfBatched`, for the inverse followed
by `getriBatched`; cuSOLVER, for one matrix, `getrf`, for the inverse followed by `getrs` with the
identity. Where they work in place the copy before is not counted.
"""


def torch_rates(rows):
    """GFLOP/s of torch.linalg.inv_ex by (precision, n, matrices)."""
    cases = [(row["precision"], row["n"], row["matrices"]) for row in rows
             if row["kernel"] == "inverse"]
    return {(precision, n, count): 2 * n**3 * count / taken * 1e-9
            for (precision, n, count), taken in torch_inverse.seconds(cases).items()}


def cell(rate):
    return f"{rate:,.0f}" if rate > 0 else "-"


def part(rows, kernel, precision, one, torch):
    header = ["n", "matrices", "us", "GFLOP/s", "cuBLAS", "cuSOLVER", "torch", "to reach"]
    lines = []
    for row in rows:
        if (row["kernel"], row["precision"], row["matrices"] == 1) != (kernel, precision, one):
            continue
        wanted = WANTED.get(row["n"], 0) if (kernel, precision, one) == ("inverse", "FP64", False) \
            else 0
        lines.append([str(row["n"]), f"{row['matrices']:,}", f"{row['us']:,.1f}",
                      cell(row["gflops"]), cell(row["cublas_gflops"]),
                      cell(row["cusolver_gflops"]),
                      cell(torch.get((precision, row["n"], row["matrices"]), 0)
                           if kernel == "inverse" else 0), cell(wanted)])
    return table(header, lines) if lines else "Not measured."


def main():
    page = Page(__doc__, "middle", "kernel,precision,n,matrices,us")
    rows = read(page.source, texts=("kernel", "precision"), whole=("n", "matrices"))
    torch = torch_rates(rows)
    lines = [f"# Kernels for orders above 32, {page.device}, {page.date}", "", page.facts(), "",
             METHOD]
    for kernel, name in NAMES.items():
        for precision in ("FP64", "FP32"):
            for one in (False, True):
                how = "one matrix" if one else "batches"
                lines += [f"## {name}, {precision}, {how}", "",
                          part(rows, kernel, precision, one, torch), ""]
    page.write(lines)


if __name__ == "__main__":
    main()
