"""perf_analyzer against model lu, with matrices that it batches and whole ones."""

import pytest

from harness import perf_analyzer

BATCH = ["-b", "8", "--shape", "A:8,8"]
WHOLE = ["--shape", "A:1,8,8"]


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    return perf_analyzer.make_roomy(tmp_path_factory.mktemp("roomy"))


@pytest.mark.skipif(perf_analyzer.PROGRAM is None, reason=str(perf_analyzer.REASON))
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", ["binary", "json"])
@pytest.mark.parametrize("mode", [[], ["-a"]], ids=["sync", "async"])
@pytest.mark.parametrize("shape", [BATCH, WHOLE], ids=["batch", "whole"])
def test_perf_analyzer(daemon, roomy, form, mode, shape):
    forms = ["--input-tensor-format", form, "--output-tensor-format", form]
    perf_analyzer.measure(daemon.url, *shape, *forms, *mode,
                          preload=roomy if form == "json" else None)
