"""The harness notices what it is there to notice: otherwise the other tests prove nothing."""

import dataclasses

import numpy as np
import pytest

from harness import matrices, metrics
from harness.codec import infer_bytes, v2_binary
from harness.load import Load, reference
from test_fault import judge_drain

REQUEST = infer_bytes("lu", v2_binary, {"A": matrices.random(4)[None]})


def test_load_notices_one_wrong_bit(daemon):
    good = reference(daemon, "good", REQUEST)
    body = bytearray(good.body)
    body[-20] ^= 1
    cases = [good, dataclasses.replace(good, name="bad", body=bytes(body))]
    with Load(daemon, cases, clients=2, seconds=0.3) as load:
        report = load.finish(wait=True)
    assert report.counts[("good", 200)] > 0
    assert report.wrong_count == report.counts[("bad", 200)] > 0
    with pytest.raises(AssertionError):
        report.assert_perfect()


def test_load_notices_another_status(daemon):
    refused = REQUEST.replace(b"/lu/", b"/xx/")
    case = dataclasses.replace(reference(daemon, "a", refused, 404), status=200)
    with Load(daemon, [case], clients=1, seconds=0.2) as load:
        report = load.finish(wait=True)
    assert report.wrong_count == report.answered > 0


@pytest.mark.parametrize(
    "a, change",
    [
        (matrices.random(6), lambda x: x * (1 + 1e-11)),
        (matrices.random(6), lambda x: x + np.eye(6) * 1e-10),
        (matrices.random(6, "f4"), lambda x: x * np.float32(1.001)),
    ],
)
def test_contract_notices_small_errors(a, change):
    x = np.linalg.inv(a)
    rcond = 1 / matrices.norm1(a) / matrices.norm1(x)
    matrices.check_contract(a, x, 0, rcond)
    wrong = change(x).astype(a.dtype)
    with pytest.raises(AssertionError):
        matrices.check_contract(a, wrong, 0, 1 / matrices.norm1(a) / matrices.norm1(wrong))
    with pytest.raises(AssertionError):
        matrices.check_contract(a, x, 0, rcond * 2)
    with pytest.raises(AssertionError):
        matrices.check_contract(a, x, 7, rcond)


@pytest.mark.parametrize(
    "event",
    [(9.0, 9.5, "lost", []), (9.0, 9.5, 503, []), (9.9, 9.95, "lost", []), (11, 11, "partial", [])],
)
def test_drain_notices_lost_requests(event):
    close = [("Connection", "close"), ("Retry-After", "1")]
    judge_drain([(9.0, 10.5, 200, []), (9.9, 10, 503, close), (10.5, 10.6, "lost", [])], 10.0)
    with pytest.raises(AssertionError):
        judge_drain([event], 10.0)


@pytest.mark.parametrize(
    "text", ["a b c\n", 'a{b="c} 1\n', "a 1\na 1\n", "a 1", "# TYPE a gauge\n# TYPE a gauge\n"]
)
def test_metrics_notice_malformed_pages(text):
    with pytest.raises((AssertionError, ValueError)):
        metrics.Page(text)
