"""Many clients at once: batches form, and the company changes no one's bits."""

import gzip
import json

import numpy as np
import pytest

from harness import codec, matrices, wire
from harness.codec import JSON, NPY, infer_bytes, invert_bytes, v2_binary, v2_json
from harness.daemon import Daemon
from harness.load import Load, reference
from harness.methods import default_outputs, dense_methods
from harness.settings import FACTOR, LOAD_SECONDS

COMMON, SPREAD = (4, 8, 16, 32), (1, 2, 3, 5, 12, 24, 31, 33, 48, 64, 80, 100)
METHODS = dense_methods()


def requests():
    """(name, request bytes): mixed orders, precisions, methods and formats. Some repeat a key."""
    for n in COMMON:
        for seed in range(6):
            dtype = ("f8", "f4")[seed % 2]
            a = matrices.random(n, dtype, seed=seed, batch=1 + seed // 4)
            yield f"binary {n} {seed}", infer_bytes("lu", v2_binary, {"A": a})
    for i, n in enumerate(SPREAD):
        a = matrices.random(n, ("f4", "f8")[i % 2], seed=50 + i)
        method = METHODS[i % len(METHODS)]
        yield f"json v2 {n}", infer_bytes(method, v2_json, {"A": a[None]})
        yield f"npy {n}", invert_bytes(
            codec.npy(a),
            NPY,
            f"?method={method}&outputs={default_outputs(method)[0].lower()}",
        )
        yield f"npy F {n}", invert_bytes(codec.npy(np.asfortranarray(a)), NPY)
    for n in (3, 8, 20):
        a = matrices.random(n, seed=70)
        text = json.dumps({"matrix": a.tolist(), "method": "lu"}).encode()
        yield f"json v1 {n}", invert_bytes(text, JSON)
        yield f"gzip {n}", invert_bytes(
            gzip.compress(codec.npy(a)), NPY, "?method=lu", {"Content-Encoding": "gzip"}
        )
        yield f"npz {n}", invert_bytes(codec.npz(a=a), codec.NPZ, "?method=lu", {"Accept": NPY})
        yield f"raw {n}", wire.request("POST", "/v2/models/lu/infer", a.tobytes(), {codec.J: "0"})
    singular = np.stack([matrices.random(8), np.ones((8, 8)), np.full((8, 8), np.nan)])
    yield "singular", infer_bytes("lu", v2_binary, {"A": singular})
    yield "auto mix", infer_bytes(
        "auto",
        v2_binary,
        {
            "A": np.stack(
                [np.eye(16), matrices.spd(16), np.triu(matrices.random(16)), matrices.random(16)]
            )
        },
    )


@pytest.fixture(scope="module")
def cases(daemon):
    """Every request with the body it gets alone, which is checked against the contract first."""
    a = matrices.random(32, seed=0)
    outputs = codec.v2_outputs(daemon.talk(infer_bytes("lu", v2_binary, {"A": a[None]})))
    matrices.check_answers(a[None], outputs)
    return [reference(daemon, name, request) for name, request in requests()]


def histogram(page, name):
    return page.above(name, 1), page.total(name + "_count")


@pytest.mark.timeout(60 + LOAD_SECONDS)
def test_mixed_load(daemon, cases):
    before = daemon.metrics()
    with Load(daemon, cases, clients=64, seconds=LOAD_SECONDS) as load:
        report = load.finish(wait=True)
    report.assert_perfect()
    assert report.of(200) == report.answered > 50 * LOAD_SECONDS / FACTOR
    after = daemon.metrics()
    for name in ("invertd_batch_size", "invertd_batch_requests"):
        grown = histogram(after, name)[0] - histogram(before, name)[0]
        assert grown > 0, f"{name}: no batch above 1"
    assert after.total("invertd_queue_depth") == 0


def test_requests_share_batches(daemon):
    """All of one key: while one batch runs, the next gathers. Of an order that keeps the engine
    busier than the clients, who must not be what is waited for."""
    a = [infer_bytes("lu", v2_binary, {"A": matrices.random(80, seed=s)[None]}) for s in range(8)]
    pool = [reference(daemon, str(i), request) for i, request in enumerate(a)]
    before = daemon.metrics()
    with Load(daemon, pool, clients=64, seconds=2) as load:
        report = load.finish(wait=True)
    report.assert_perfect()
    after = daemon.metrics()

    def grown(name):
        return after.total(name, method="lu") - before.total(name, method="lu")

    mean = grown("invertd_batch_requests_sum") / grown("invertd_batch_requests_count")
    assert mean > 1.5, f"{mean:.2f} requests a batch with 64 clients"


@pytest.mark.parametrize(
    "options",
    [
        ["--batch-wait-us", "2000"],
        ["--batch-matrices-max", "3"],
        ["--batch-bytes-max", "4KiB"],
        ["--in-flight", "1", "--loops", "1", "--threads", "1"],
        ["--loops", "3", "--threads", "4", "--pool-threads", "1"],
    ],
    ids=lambda options: " ".join(options),
)
def test_options_change_no_bits(cases, options):
    """The answers are those of the shared daemon, whatever this one is reported."""
    with Daemon(*options) as other:
        with Load(other, cases, clients=32, seconds=1.5) as load:
            load.finish(wait=True).assert_perfect()


def test_batch_wait_gathers():
    a = infer_bytes("lu", v2_binary, {"A": matrices.random(4)[None]})
    with Daemon("--batch-wait-us", "50000") as daemon:
        pool = [reference(daemon, "a", a)]
        with Load(daemon, pool, clients=16, seconds=1) as load:
            load.finish(wait=True).assert_perfect()
        page = daemon.metrics()
        mean = page.total("invertd_batch_requests_sum", method="lu") / page.total(
            "invertd_batch_requests_count", method="lu"
        )
        assert mean > 3
