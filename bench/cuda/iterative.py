#!/usr/bin/env python3
"""Writes the record of cuda_iterative's figures: a page to read.

    iterative.py FOLDER|FOLDER/DATE-NAME-iterative.csv [--device TEXT] [--commit TEXT]

writes DATE-NAME-iterative.md beside the file, or beside the newest one in the folder. Where this
Python has torch and torch has a GPU, torch.linalg.inv_ex is measured too, of the orders that cold
and warm starts have; that is in the page alone.
"""

import torch_inverse
from page import Page, read, table

METHOD = """\
Counted: the time for matrices that lie on the device, their inverses written out; HTTP and
transfers are not in it. Times of `iterative` are medians by the host's clock over all its visits
to the device; the others are the device's. Products are those of two n x n matrices.
"""

PASSES = """\
The paper's Table 1. `identify` finds both norms, the Frobenius norm, strict dominance, which parts
are zero, and symmetry in one read. Of a copy: the time of a device-to-device copy that moves as
many bytes, by the pass's.
"""

LAUNCHES = """\
`identify` launches two kernels. An empty kernel takes {one:.2f} us, two, one behind the other,
{two:.2f} us.
"""

PRODUCTS = """\
C = A B in FP32 by cuBLAS's SGEMM and by parts in TF32 and BF16. Errors are of an entry, in eps
|A| |B| of that entry, beside the product in FP64: the worst one, and the root of the mean square.
In an update the last of the three sizes is the inner one.
"""

PAPER = """\
The paper's Table 2. `gauss_jordan_plain` is its elimination: the identity beside A, no pivoting,
row after row. The iteration begins with the diagonal where A is dominant, else with the transpose.
"""

STARTS = """\
V0 is the inverse with a random error of that 1-norm of I - V0 A; condition near 1e3. "Measured":
RESIDUAL is wanted too, which takes a product more. The residual is always that of a measured call.
"""


class Figures:
    """Rows of the file: values by part, precision, n, what, quantity."""

    def __init__(self, rows):
        self.values = {}
        for row in rows:
            key = (row["part"], row["precision"], int(row["n"]), row["what"])
            self.values.setdefault(key, {})[row["quantity"]] = float(row["value"])

    def add_torch(self):
        """A rival of the cold and warm starts, behind the others of its order."""
        orders = dict.fromkeys((precision, n, 1) for (precision, n, _), _ in self.of("starts"))
        taken, values = torch_inverse.seconds(orders), {}
        for key, found in reversed(self.values.items()):
            case = (*key[1:3], 1)
            if key[0] == "starts" and case in taken:
                values[(*key[:3], "torch.linalg.inv_ex")] = {"ms": 1e3 * taken.pop(case)}
            values[key] = found
        self.values = dict(reversed(values.items()))

    def of(self, part):
        """The keys and values of a part, in the file's order."""
        return [(key[1:], found) for key, found in self.values.items() if key[0] == part]


def passes(figures, part):
    """Of one matrix, or of batches, which have a row for their counts."""
    found = {}
    for (precision, n, what), values in figures.of(part):
        found.setdefault((precision, n), {})[what] = next(iter(values.values()))
    rows, batches_here = [], part != "passes"
    for (precision, n), of in found.items():
        cells = [precision, f"{n:,}"] + ([f"{of['count']:,.0f}"] if batches_here else [])
        size = n * n * (4 if precision == "FP32" else 8) * of.get("count", 1)
        for what, times in (("identify", 1), ("transpose", 2)):
            cells += [f"{of[what]:,.1f}", f"{times * size / of[what] / 1e3:,.0f}",
                      f"{100 * of['copy_as_' + what] / of[what]:.0f}%"]
        rows.append(cells)
    header = ["precision", "n"] + (["matrices"] if batches_here else [])
    for what in ("identify", "transpose"):
        header += [f"{what}, us", "GB/s", "of a copy"]
    return header, rows


def products(figures):
    rows = []
    for (_, _, what), of in figures.of("products"):
        kind, size = what.rsplit(" ", 1)
        rows.append([kind, size.replace("x", " x "), f"{of['sgemm_us']:,.0f}",
                     f"{of['split_us']:,.0f}", f"{of['sgemm_us'] / of['split_us']:.2f}"]
                    + [f"{of[name]:.3g}" for name in ("sgemm_worst", "split_worst",
                                                      "sgemm_mean", "split_mean")])
    return ["operands", "shape", "SGEMM, us", "by parts, us", "times", "SGEMM, worst",
            "by parts, worst", "SGEMM, mean", "by parts, mean"], rows


def line(values):
    """Time, steps, products, residual and INFO of one call; a rival has but the first."""
    cells = [f"{values['ms']:,.3f}"]
    if "steps" not in values:
        return cells + [""] * 4
    return cells + [f"{values['steps']:.0f}", f"{values['products']:.0f}",
                    f"{values['residual']:.1e}", f"{values['info']:.0f}"]


LINE = ["ms", "steps", "products", "residual", "INFO"]


def against(figures, part, rival):
    """A part's calls, with their speed in times that of the rival in the same rows."""
    rows, base = [], {}
    for (precision, n, what), values in figures.of(part):
        group = (precision, n, what.split()[-1]) if part == "paper" else (precision, n)
        if what.startswith(rival):
            base[group] = values["ms"]
        rows.append([precision, f"{n:,}", what, *line(values), f"{base[group] / values['ms']:.2f}"])
    return ["precision", "n", "what", *LINE, f"times {rival}"], rows


def plain(figures, part):
    rows = [[precision, f"{n:,}", what, *line(values)]
            for (precision, n, what), values in figures.of(part)]
    return ["precision", "n", "what", *LINE], rows


def batches(figures):
    rows = []
    for (precision, n, what), values in figures.of("batch"):
        start, count = what.split(" of ")
        rows.append([precision, f"{n:,}", f"{int(count):,}", start, *line(values),
                     f"{1e3 * int(count) / values['ms']:,.0f}"])
    return ["precision", "n", "matrices", "start", *LINE, "matrices/s"], rows


def section(title, told, header_and_rows):
    header, rows = header_and_rows
    text = [f"## {title}", ""] + ([told] if told else [])
    return text + [table(header, rows) if rows else "Not measured.", ""]


def main():
    page = Page(__doc__, "iterative", "part,precision,n,what")
    figures = Figures(read(page.source))
    figures.add_torch()
    lines = [f"# iterative on one {page.device}, {page.date}", "", page.origin(), "", METHOD]
    launches = {what.split()[0]: of["us"] for (_, _, what), of in figures.of("launches")}
    told = PASSES + ("\n" + LAUNCHES.format(**launches) if launches else "")
    lines += section("Norms and transpose", told, passes(figures, "passes"))
    lines += section("Norms and transposes of batches", "One call for all matrices.\n",
                     passes(figures, "passes of batches"))
    lines += section("FP32 products", PRODUCTS, products(figures))
    lines += section("Iterative against Gauss-Jordan", PAPER,
                     against(figures, "paper", "gauss_jordan_plain"))
    lines += section("Schemes", "Each from the transpose, condition near 1e3.\n",
                     plain(figures, "schemes"))
    lines += section("Cold and warm starts", STARTS, against(figures, "starts", "cusolver"))
    lines += section("Batches", "Steps and products are those of the batch's middle matrix.\n",
                     batches(figures))
    page.write(lines)


if __name__ == "__main__":
    main()
