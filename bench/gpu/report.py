#!/usr/bin/env python3
"""Writes the records of the GPU bench: a page to read for each subject's file of figures.

    bench/gpu/report.py FOLDER|FOLDER/SUBJECT.csv...

writes SUBJECT.md next to each SUBJECT.csv that `gpu --time --results` (or --ablate, --ways) has
written; of lu_small a picture too. Where this Python has torch and torch has a GPU,
torch.linalg.inv_ex is measured next to `lu`, on as many matrices.
"""

import csv
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from plot import Plot  # noqa: E402

COLUMNS = ["subject", "shape", "precision", "what", "value", "unit", "peer", "peer_value", "device",
           "date", "commit"]
ROUNDS = 3
ONE_TABLE_MIN = 9  # kinds of figures from which on they share a table

TITLES = {
    "lu_small": "lu and lu_factor to n = 32", "lu": "lu and lu_factor above n = 32",
    "arena": "lu to n = 32 from pinned host memory and back", "tridiagonal": "tridiagonal",
    "passes": "Norms, kinds and transposes", "products": "FP32 products by parts",
    "iterative": "iterative", "updates": "ism: updates of known inverses",
    "ism": "ism: one large matrix", "auto": "auto next to lu",
    "structured": "auto on symmetric positive definite matrices",
}

METHOD = """\
For data that lie on the device, unless the title says otherwise; HTTP and transfers are not in it.
A figure is the median of three rounds after one that is not counted; for `auto`, `structured` and
`iterative` by the host's clock over all visits. In brackets: how many times ours a peer takes; of a
copy or a fill that is the share of its rate. The sources in `bench/gpu` say what a peer is.
"""


def table(header, rows):
    """A Markdown table of cells that are texts, aligned to the right."""
    lines = ["| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value):
    if value == 0 or not 1e-3 <= abs(value) < 1e9:
        return f"{value:.1e}" if value else "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


class Figures:
    """Of one file: {(what, precision, shape): (value, unit, {peer: value})}, in its order."""

    def __init__(self, path):
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            self.known = reader.fieldnames == COLUMNS
            rows = list(reader) if self.known else []
        self.rows = {}
        for row in rows:
            key = (row["what"], row["precision"], row["shape"])
            _, _, peers = self.rows.setdefault(key, (float(row["value"]), row["unit"], {}))
            if row["peer"]:
                peers[row["peer"]] = float(row["peer_value"])
        self.about = rows[0] if rows else None

    def add_torch(self):
        """A peer of the inverses."""
        try:
            import torch
        except ImportError:
            return
        if not torch.cuda.is_available():
            return
        for (what, precision, shape), (_, _, peers) in self.rows.items():
            if what == "inverse":
                size = dict(word.split("=") for word in shape.split())
                peers["torch.linalg.inv_ex"] = torch_us(torch, precision, int(size["n"]),
                                                        int(size["matrices"]))


def torch_us(torch, precision, n, count):
    """Of one call for random matrices, the median."""
    kind = torch.float64 if precision == "FP64" else torch.float32
    a = torch.rand(count, n, n, dtype=kind, device="cuda") * 2 - 1
    times = []
    for _ in range(1 + ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.linalg.inv_ex(a)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return sorted(times[1:])[ROUNDS // 2]


def part(rows, with_what):
    """A table of {(what, precision, shape): ...}: a row each, a column for each peer."""
    sizes = list(dict.fromkeys(word.split("=")[0] for _, _, shape in rows
                               for word in shape.split()))
    names = list(dict.fromkeys(name for _, _, peers in rows.values() for name in peers))
    units = {unit for _, unit, _ in rows.values()}
    unit_here = units.pop() if len(units) == 1 else None
    header = (["what"] if with_what else []) + sizes + [unit_here or "figure"] + names
    cells = []
    for (what, _, shape), (value, unit, peers) in rows.items():
        size = dict(word.split("=") for word in shape.split())
        cells.append(([what] if with_what else []) + [size.get(key, "") for key in sizes]
                     + [number(value) + ("" if unit_here else f" {unit}")]
                     + [f"{number(peers[name])} ({peers[name] / value:.2f})"
                        if peers.get(name) and value else "" for name in names])
    return table(header, cells)


def speedup_picture(path, figures):
    """Times cuBLAS against the order."""
    about = "{device}, {date}, commit {commit}, 1,000,000 matrices".format(**figures.about)
    series = {}
    for (what, precision, shape), (value, _, peers) in figures.rows.items():
        n = int(dict(word.split("=") for word in shape.split())["n"])
        if what == "inverse" and n > 1 and peers.get("cublas matinv"):
            series.setdefault(precision, []).append((n, peers["cublas matinv"] / value))
    if not series:
        return
    largest = max(times for points in series.values() for _, times in points)
    plot = Plot("Batched inverse: times cuBLAS matinvBatched", about, (2, 32),
                (0, 5 * math.ceil(largest / 5)), False)
    plot.grid((2, 4, 8, 12, 16, 24, 32), range(0, int(largest) + 6, 5), "order n", "times cuBLAS")
    for precision, points in series.items():
        plot.series(points, precision, {"FP32": "#1f6feb", "FP64": "#bf3989"}[precision])
    plot.write(path)


def page(path, figures):
    about, name = figures.about, path.stem
    subject, _, kind = name.partition("-")
    title = TITLES.get(subject, subject) + (f", {kind}" if kind else "")
    facts = [[key, about[key]] for key in ("date", "device", "commit")]
    facts += [["command", "`make bench-gpu`"], ["figures", f"[{path.name}]({path.name})"]]
    lines = [f"# {title}, one {about['device']}, {about['date']}", "", "|  |  |", "| --- | --- |"]
    lines += [f"| {key} | {value} |" for key, value in facts] + ["", METHOD]
    whats = list(dict.fromkeys(what for what, _, _ in figures.rows))
    together = len(whats) >= ONE_TABLE_MIN
    for what in [None] if together else whats:
        for precision in dict.fromkeys(precision for _, precision, _ in figures.rows):
            rows = {key: figure for key, figure in figures.rows.items()
                    if key[1] == precision and what in (None, key[0])}
            if rows:
                lines += ["## " + ", ".join(filter(None, (what, precision))), "",
                          part(rows, together), ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    paths = [path for name in map(pathlib.Path, sys.argv[1:])
             for path in (sorted(name.glob("*.csv")) if name.is_dir() else [name])]
    written = 0
    for path in paths:
        figures = Figures(path)
        if not figures.about:
            continue
        if path.stem == "lu":
            figures.add_torch()
        if path.stem == "lu_small":
            speedup_picture(path.with_name("lu_small-speedup.svg"), figures)
        path.with_suffix(".md").write_text(page(path, figures), encoding="utf-8")
        print(f"written: {path.with_suffix('.md')}")
        written += 1
    if not written:
        sys.exit(f"{sys.argv[1]}: no figures of bench/gpu")


if __name__ == "__main__":
    main()
