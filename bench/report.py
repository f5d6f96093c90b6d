"""Writes a benchmark's results: a table to read, a CSV to compare, a picture to see. And what the
scripts of bench/host and bench/http share."""

import csv
import datetime
import html
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# What the service is to reach on a two-core machine that also runs wrk; see README.md.
RATE_SHARE, TAIL_RATIO, BIG_SHARE, IDLE_US = 0.75, 2.0, 0.75, 150.0
# And with 16 cores: requests/s, p99 in us, 32x32 inversions/s in 1 MiB bodies (a GPU's; the host
# engine computes fewer), p50 in us.
MANY_CORES = 16
MANY_RATE, MANY_TAIL_US, MANY_BIG, MANY_IDLE_US = 300e3, 2000.0, 915e3, 60.0
TLS_SHARE = 0.6  # of plain HTTP's rate, on any machine

ABOUT = ("date", "commit", "device", "system", "command", "daemon", "load", "busy before")

BIG = "32x32, 128 a request (1 MiB)"
SMALL = "8x8, one a request"
OVER_TLS = "invertd over TLS"


def add_limits(parser, seconds, rounds):
    """--seconds and --rounds of a measurement, which BENCH_SECONDS and BENCH_ROUNDS can shorten."""
    parser.add_argument("--seconds", type=float,
                        default=min(seconds, float(os.environ.get("BENCH_SECONDS", seconds))))
    parser.add_argument("--rounds", type=int,
                        default=min(rounds, int(os.environ.get("BENCH_ROUNDS", rounds))))


def said(*command):
    """What a command prints; nothing when it fails to."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip()


def last_line(*command, threads=1):
    """The last line that a program prints, which is JSON. threads: of OpenBLAS."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, command))}: {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def load(path, name):
    """A script of this folder as a module: its functions serve other scripts too."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def about_this_run(command, commit=None, part=f"{os.cpu_count()} cores", **more):
    """Where and when a benchmark is run. commit: what was built, HEAD unless given. part: of the
    machine, what was used."""
    model = next((line.split(":", 1)[1].strip() for line in said("lscpu").splitlines()
                  if line.startswith("Model name")), "unknown")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit or said("git", "rev-parse", "--short", "HEAD") or "unknown",
        "device": f"{model}, {part}",
        "system": said("uname", "-sr").split("-")[0],
        "command": command,
        **more,
        "busy before": f"{os.getloadavg()[0]:.2f} processes (1 min load average)",
    }


def pick(rows, **wanted):
    return next(r for r in rows if all(r.get(k) == v for k, v in wanted.items()))


def verdicts_of_tls(throughput):
    rows = []
    for scenario in (SMALL, BIG):
        share = pick(throughput, scenario=scenario, who=OVER_TLS)["requests_per_s"] / \
            pick(throughput, scenario=scenario, who="invertd")["requests_per_s"]
        rows.append((f"{scenario}, over TLS, share of plain", f"{share:.0%}",
                     f"at least {TLS_SHARE:.0%}", share >= TLS_SHARE))
    return rows


def verdicts_of_many(throughput, latency):
    """The same for a machine of 16 cores or more."""
    small = pick(throughput, scenario=SMALL, who="invertd")
    big = pick(throughput, scenario=BIG, who="invertd")
    idle = pick(latency, who="invertd")["p50_us"]
    return [
        ("8x8 requests/s", number(small["requests_per_s"]), f"at least {MANY_RATE:,.0f}",
         small["requests_per_s"] >= MANY_RATE),
        ("8x8 p99", f"{small['p99_us']:,.0f} us", f"at most {MANY_TAIL_US:,.0f} us",
         small["p99_us"] <= MANY_TAIL_US),
        ("1 MiB bodies of 32x32, inversions/s", number(big["matrices_per_s"]),
         f"at least {MANY_BIG:,.0f}", big["matrices_per_s"] >= MANY_BIG),
        ("one 8x8 on an idle service, p50", f"{idle:.0f} us", f"under {MANY_IDLE_US:.0f} us",
         idle < MANY_IDLE_US),
    ]


def verdicts(about, throughput, latency, engine):
    """[(what, measured, target, reached)] of the figures the service is held to."""
    if about["cores"] >= MANY_CORES:
        return verdicts_of_many(throughput, latency) + verdicts_of_tls(throughput)
    small = pick(throughput, scenario=SMALL, who="invertd")
    echo = pick(throughput, scenario=SMALL, who="echo")
    big = pick(throughput, scenario=BIG, who="invertd")
    idle = pick(latency, who="invertd")["p50_us"]
    share = small["requests_per_s"] / echo["requests_per_s"]
    tail = small["p99_us"] / echo["p99_us"]
    rows = [
        ("8x8 requests/s, share of the echo's", f"{share:.0%}", f"at least {RATE_SHARE:.0%}",
         share >= RATE_SHARE),
        ("8x8 p99, times the echo's", f"{tail:.2f}", f"at most {TAIL_RATIO:g}",
         tail <= TAIL_RATIO),
        ("one 8x8 on an idle service, p50", f"{idle:.0f} us", f"under {IDLE_US:.0f} us",
         idle < IDLE_US),
    ]
    if engine:
        # HTTP and the engine share the cores: what both take alone adds up.
        carried = pick(throughput, scenario=BIG, who="echo")["matrices_per_s"]
        computed = pick(engine, n=32, matrices=128)["threads_all"]
        share = big["matrices_per_s"] * (1 / carried + 1 / computed)
        rows.insert(2, ("1 MiB bodies of 32x32, share of what echo and engine add up to",
                        f"{share:.0%}", f"at least {BIG_SHARE:.0%}", share >= BIG_SHARE))
    return rows + verdicts_of_tls(throughput)


def table(header, rows, align):
    lines = ["| " + " | ".join(header) + " |",
             "| " + " | ".join("---:" if a == "r" else "---" for a in align) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value):
    return "-" if value is None else f"{value:,.0f}"


def markdown(name, about, throughput, latency, engine, picture):
    parts = [f"# invertd over HTTP, {name} engine, {about['date']}", "",
             table(["", ""], [[key, str(about[key])] for key in ABOUT], "ll"),
             "", f"![requests a second next to the echo]({picture})", "", "## Figures to reach", "",
             table(["figure", "measured", "to reach", "reached"],
                   [[w, m, t, "yes" if ok else "no"]
                    for w, m, t, ok in verdicts(about, throughput, latency, engine)], "lrll"),
             "", "## HTTP: method lu, FP64, binary v2 tensors, next to a bare echo", "",
             table(["requests", "server", "requests/s", "inversions/s", "MB/s each way", "p50, us",
                    "p99, us"],
                   [[r["scenario"], r["who"], number(r["requests_per_s"]),
                     number(r["matrices_per_s"] if r["who"] != "echo" else None),
                     number(r["megabytes_per_s"]), number(r["p50_us"]), number(r["p99_us"])]
                    for r in throughput], "llrrrrr"),
             "", "## One 8x8 a time, one connection, nothing else", "",
             table(["server", "p50, us", "p90, us", "p99, us"],
                   [[r["who"], f"{r['p50_us']:.1f}", f"{r['p90_us']:.1f}", f"{r['p99_us']:.1f}"]
                    for r in latency], "lrrr"), ""]
    if engine:
        parts += ["## The host engine without HTTP, inversions/s", "",
                  table(["order", "matrices an item", "one core", f"{about['cores']} cores",
                         "numpy.linalg.inv, one core"],
                        [[f"{r['n']}x{r['n']}", str(r["matrices"]), number(r["threads_one"]),
                          number(r["threads_all"]), number(r["numpy"])] for r in engine],
                        "rrrrr"), ""]
    return "\n".join(parts)


def write_csv(path, about, throughput, latency, engine):
    columns = ["date", "commit", "device", "table", "scenario", "who", "quantity", "unit", "value"]
    units = {"requests_per_s": "1/s", "matrices_per_s": "1/s", "megabytes_per_s": "MB/s",
             "p50_us": "us", "p90_us": "us", "p99_us": "us", "errors": "1",
             "threads_one": "1/s", "threads_all": "1/s", "numpy": "1/s"}
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        for name, rows in (("http", throughput), ("idle", latency), ("engine", engine)):
            for row in rows:
                scenario = row.get("scenario") or \
                    (f"{row['n']}x{row['n']}, {row['matrices']} an item" if "n" in row else "8x8")
                for key, unit in units.items():
                    if row.get(key) is not None:
                        out.writerow([about["date"], about["commit"], about["device"], name,
                                      scenario, row.get("who", "engine"), key, unit,
                                      f"{row[key]:.6g}"])


def svg(about, throughput):
    """Horizontal bars: the daemon's requests a second as a share of the echo's."""
    scenarios = list(dict.fromkeys(r["scenario"] for r in throughput))
    width, left, right, bar, gap, top = 800, 210, 190, 20, 30, 56
    height = top + len(scenarios) * (2 * bar + gap) + 20
    scale = width - left - right
    text = ('<text x="{x}" y="{y}" font-family="sans-serif" font-size="{size}" '
            'text-anchor="{anchor}" fill="#222">{what}</text>')
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           text.format(x=12, y=22, size=15, anchor="start",
                       what="Requests a second, invertd next to a bare echo"),
           text.format(x=12, y=40, size=11, anchor="start",
                       what=html.escape(f"{about['device']}, {about['date']}, "
                                        f"commit {about['commit']}"))]
    y = top
    for scenario in scenarios:
        floor = pick(throughput, scenario=scenario, who="echo")["requests_per_s"]
        out.append(text.format(x=left - 10, y=y + bar + 4, size=12, anchor="end",
                               what=html.escape(scenario)))
        for who, colour in (("invertd", "#1f6feb"), ("echo", "#b8bec6")):
            rate = pick(throughput, scenario=scenario, who=who)["requests_per_s"]
            long = max(1.0, min(1.3, rate / floor) / 1.3 * scale)
            out.append(f'<rect x="{left}" y="{y}" width="{long:.1f}" height="{bar - 2}" '
                       f'fill="{colour}"/>')
            share = f" ({rate / floor:.0%})" if who == "invertd" else ""
            out.append(text.format(x=left + long + 6, y=y + bar - 6, size=11, anchor="start",
                                   what=f"{who}: {rate:,.0f}/s{share}"))
            y += bar
        y += gap
    return "\n".join(out) + "\n</svg>\n"


def write(folder, name, about, throughput, latency, engine):
    """Writes the three files; returns their paths by ending."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {end: folder / f"http-{name}.{end}" for end in ("md", "csv", "svg")}
    paths["md"].write_text(markdown(name, about, throughput, latency, engine, paths["svg"].name))
    write_csv(paths["csv"], about, throughput, latency, engine)
    paths["svg"].write_text(svg(about, throughput))
    return paths
