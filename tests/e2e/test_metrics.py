"""/metrics: the names and labels of the contract, and that they count what happened."""

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.daemon import Daemon
from harness.metrics import watch_batch

NAMES = {
    "invertd_requests_total": "counter",
    "invertd_request_duration_seconds": "histogram",
    "invertd_inversions_total": "counter",
    "invertd_queue_depth": "gauge",
    "invertd_queue_duration_seconds": "histogram",
    "invertd_batch_size": "histogram",
    "invertd_batch_duration_seconds": "histogram",
    "invertd_batch_running_seconds": "gauge",
    "invertd_batch_progress_ratio": "gauge",
    "invertd_batches_total": "counter",
    "invertd_bytes_total": "counter",
    "invertd_arena_bytes": "gauge",
    "invertd_device_up": "gauge",
    "invertd_device_info": "gauge",
    "invertd_device_batches_total": "counter",
    "invertd_device_matrices_total": "counter",
    "invertd_engine_restarts_total": "counter",
    "invertd_rejected_total": "counter",
    "invertd_build_info": "gauge",
    "nv_inference_request_success": "counter",
    "nv_inference_request_failure": "counter",
    "nv_inference_count": "counter",
    "nv_inference_exec_count": "counter",
    "nv_inference_queue_duration_us": "counter",
    "nv_inference_compute_infer_duration_us": "counter",
}


def test_names_and_types(daemon):
    answer = daemon.get("/metrics")
    assert answer.header("Content-Type").startswith("text/plain")
    page = daemon.metrics()
    for name, kind in NAMES.items():
        assert page.types.get(name) == kind, name
        assert page.help.get(name), name
    for name, _ in page.series:
        assert name.startswith(("invertd_", "nv_", "process_")), name


def test_histograms_are_cumulative(daemon, client):
    client.outputs("lu", {"A": np.eye(3)[None]})
    page = daemon.metrics()
    for name, kind in page.types.items():
        if kind != "histogram":
            continue
        rows = {}
        for labels, value in page.select(name + "_bucket").items():
            labels = dict(labels)
            rows.setdefault(frozenset((k, v) for k, v in labels.items() if k != "le"), []).append(
                (float(labels["le"]), value)
            )
        for labels, buckets in rows.items():
            counts = [value for _, value in sorted(buckets)]
            assert counts == sorted(counts), (name, labels)
            assert sorted(buckets)[-1] == (np.inf, page.series[(name + "_count", labels)])
            assert (name + "_sum", labels) in page.series


@pytest.fixture
def grown(daemon):
    """grown(action) -> a function of (name, **labels): by how much the metric grew."""

    def measure(action):
        before = daemon.metrics()
        action()
        after = daemon.metrics()
        return lambda name, **labels: after.total(name, **labels) - before.total(name, **labels)

    return measure


def test_inversions_by_info(client, grown):
    a = matrices.random(4, "f4", batch=6)
    a[0], a[1, 0, 0] = 0, np.nan
    a[2] = np.eye(4)
    a[2, :2, :2] = [[1, 1], [1, 1 + 2**-23]]
    by = grown(lambda: client.outputs("lu", {"A": a}))
    name, labels = "invertd_inversions_total", {"method": "lu", "precision": "fp32"}
    assert by(name, **labels) == 6
    assert by(name, info="good", **labels) == 3
    assert by(name, info="singular", **labels) == 1
    assert by(name, info="nonfinite", **labels) == 1
    assert by(name, info="ill_conditioned", **labels) == 1
    assert by("nv_inference_count", model="lu", version="1") == 6
    assert by("nv_inference_request_success", model="lu", version="1") == 1
    assert by("invertd_batch_size_sum", method="lu") >= 6


def test_requests_by_route_and_code(daemon, client, grown):
    def action():
        client.outputs("lu", {"A": np.eye(2)[None]})
        client.infer("lu", {"A": np.zeros((1, 2, 3))})
        daemon.get("/nowhere")

    by = grown(action)
    name = "invertd_requests_total"
    assert by(name, code="400") == 1 and by(name, code="404") == 1
    assert by("nv_inference_request_failure", model="lu") == 1


def test_bytes_and_durations(daemon, client, grown):
    body = codec.npy(matrices.random(64))
    page = len(daemon.get("/metrics").body)  # the measuring's own first answer counts too
    by = grown(lambda: client.invert(body, codec.NPY))
    assert len(body) <= by("invertd_bytes_total", direction="in") <= len(body) + 4096
    assert len(body) <= by("invertd_bytes_total", direction="out") <= len(body) + page + 4096
    assert by("invertd_request_duration_seconds_count") >= 1
    assert by("invertd_queue_duration_seconds_count", method="auto") == 1


def test_progress_of_a_long_batch():
    """It rises from nothing towards 1 while the batch runs; none is shown before or after."""
    a = matrices.random(700, seed=9)
    options = {"scheme": "newton_schulz", "initial": "transpose"}
    with Daemon("--engine", "host") as daemon:
        client = codec.Client(daemon)
        answer, seen = watch_batch(
            daemon,
            "iterative",
            lambda: client.outputs("iterative", {"A": a[None]}, parameters=options),
        )
        assert daemon.metrics().total("invertd_batch_progress_ratio") == 0
    assert answer["INFO"].tolist() == [0]
    seconds, ratios = zip(*seen)
    assert list(seconds) == sorted(set(seconds)) and list(ratios) == sorted(ratios)
    assert 0 <= ratios[0] < 0.5 and 0.5 < ratios[-1] <= 1
    assert len({ratio for ratio in ratios if 0 < ratio < 1}) >= 5, ratios


def test_arena_is_given_back(daemon):
    assert daemon.metrics().total("invertd_arena_bytes") >= 16 << 20
    daemon.wait_idle_arena(5)


def test_ready_and_the_reasons_of_refusals(daemon):
    page = daemon.metrics()
    assert page.total("invertd_ready") == 1
    reasons = {dict(labels)["reason"] for labels in page.select("invertd_rejected_total")}
    assert {"service-full", "client-quota", "too-large", "deadline-passed"} <= reasons
    assert not reasons & {"none", "not-invertible", "cancelled"}


def test_singular_matrices_are_no_refusals(client, grown):
    by = grown(lambda: client.invert(codec.npy(np.zeros((2, 2))), codec.NPY))
    assert by("invertd_rejected_total") == 0
    by = grown(lambda: client.invert(b"1 2", "text/csv"))
    assert by("invertd_rejected_total") == 1
    assert by("invertd_rejected_total", reason="unsupported-media-type") == 1


def test_scrape_over_one_connection(daemon):
    with daemon.connect() as connection:
        for _ in range(3):
            assert connection.exchange(wire.request("GET", "/metrics")).status == 200
