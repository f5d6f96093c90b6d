"""Reads the Prometheus text format strictly enough to notice a malformed page."""

import re
from concurrent.futures import ThreadPoolExecutor, wait

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


class Page:
    """A /metrics page: `series` maps (name, frozenset of labels) to a number."""

    def __init__(self, text):
        assert text.endswith("\n")
        self.series, self.types, self.help = {}, {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, f"two TYPE lines for {name}"
                self.types[name] = kind
            elif line.startswith("# HELP "):
                _, _, name, words = line.split(" ", 3)
                self.help[name] = words
            elif line:
                self._sample(line)

    def _sample(self, line):
        match = SAMPLE.match(line)
        assert match, f"malformed sample {line!r}"
        name, labels_text, value = match.groups()
        labels = LABEL.findall(labels_text or "")
        assert "".join(f'{k}="{v}",' for k, v in labels).rstrip(",") == (labels_text or "").rstrip(
            ","
        ), line
        key = (name, frozenset(labels))
        assert key not in self.series, f"two samples of {line!r}"
        self.series[key] = float(value)

    def select(self, name, **labels):
        wanted = set(labels.items())
        return {key[1]: v for key, v in self.series.items() if key[0] == name and wanted <= key[1]}

    def total(self, name, **labels):
        """The sum of all series of that name that carry these labels; 0 when there are none."""
        return sum(self.select(name, **labels).values())

    def above(self, name, bound, **labels):
        """How many observations of a histogram lie above one of its bounds."""
        return self.total(name + "_count", **labels) - self.total(
            name + "_bucket", le=self._bound_text(name, bound), **labels
        )

    def _bound_text(self, name, bound):
        for (series, labels), _ in self.series.items():
            if series == name + "_bucket":
                text = dict(labels)["le"]
                if text != "+Inf" and float(text) == bound:
                    return text
        raise AssertionError(f"{name} has no bucket of {bound}")


def watch_batch(daemon, method, work, every=0.02):
    """Calls work() next to, and reads meanwhile how long the method's oldest batch has run and how
    far it is. What work() returns, and a list of pairs, those alone at which one ran. None runs
    when this returns."""
    seen = []

    def look():
        page = daemon.metrics()
        return (
            page.total("invertd_batch_running_seconds", method=method),
            page.total("invertd_batch_progress_ratio", method=method),
        )

    with ThreadPoolExecutor(1) as adjacent:
        answer = adjacent.submit(work)
        while not wait([answer], timeout=every).done:
            seen.append(look())
    assert look() == (0, 0)
    return answer.result(), [pair for pair in seen if pair[0] > 0]
