"""The CUDA engine itself behind the front, its kernels run on the CPU by the SIMT stand-in."""

import re

import numpy as np

from harness import codec, matrices
from harness.codec import NPY, NPZ, Client
from harness.daemon import Daemon, simt
from harness.metrics import watch_batch
from harness.settings import ROOT


def dense(client, n):
    a = matrices.random(n, seed=n)
    answer = client.invert(codec.npy(a), NPY, "?method=lu")
    assert answer.status == 200, answer
    assert matrices.ratio(a, codec.load(answer.body)) <= matrices.BOUND
    return answer.header("Invertd-Kernel")


def band(client, n):
    parts = {"dl": np.full(n - 1, -1.0), "d": np.full(n, 2.0), "du": np.full(n - 1, -1.0)}
    answer = client.invert(codec.npz(**parts), NPZ, "?method=tridiagonal", Accept=NPY)
    assert answer.status == 200, answer
    a = np.diag(parts["d"]) + np.diag(parts["dl"], -1) + np.diag(parts["du"], 1)
    assert matrices.ratio(a, codec.load(answer.body)) <= matrices.BOUND
    return answer.header("Invertd-Kernel")


def other(client, method, n):
    a = matrices.random(n, seed=n)
    answer = client.invert(codec.npy(a), NPY, f"?method={method}")
    assert answer.status == 200, answer
    assert matrices.ratio(a, codec.load(answer.body)) <= matrices.BOUND
    return answer.header("Invertd-Kernel")


def test_residual_is_left_out():
    """A batch measures its last V only where it must; all else keeps its bits."""
    plain = ["INVERSE", "INFO", "RCOND", "METHOD", "ITERATIONS"]
    a = np.stack([matrices.random(12, seed=seed) for seed in range(3)])
    with simt() as daemon:
        client = Client(daemon)
        alone = client.outputs("iterative", {"A": a}, plain)
        measured = client.outputs("iterative", {"A": a}, [*plain, "RESIDUAL"])
    for name in plain:
        assert np.array_equal(alone[name], measured[name]), name
    for i in range(3):
        size = matrices.norm1(a[i]) * matrices.norm1(alone["INVERSE"][i])
        assert 0 < measured["RESIDUAL"][i] <= matrices.BOUND * 12 * np.finfo("f8").eps * size


def test_progress_is_reported():
    """From visit to visit, as the device says; of a matrix that takes many of them."""
    a = matrices.random(64, seed=2)
    a[1] = a[0]
    options = {"scheme": "newton_schulz", "initial": "transpose", "max_iterations": 1000}
    with simt() as daemon:
        client = Client(daemon)
        answer, seen = watch_batch(
            daemon,
            "iterative",
            lambda: client.outputs("iterative", {"A": a[None]}, parameters=options),
        )
    assert answer["INFO"].tolist() == [64 + 2]
    ratios = [ratio for _, ratio in seen]
    assert ratios == sorted(ratios) and ratios[-1] < 1, ratios
    assert len({ratio for ratio in ratios if ratio > 0}) >= 3, ratios


def test_who_computes():
    """Every method that a CUDA engine takes, of an order of each of its rows."""
    kernels = ("cuda lu fused", "cuda lu blocked", "cuda tridiagonal", "cuda iterative",
               "cuda gauss-jordan fused", "cuda auto")
    with simt() as daemon:
        client = Client(daemon)
        reported = (dense(client, 8), dense(client, 40), band(client, 60),
                other(client, "iterative", 20), other(client, "gauss_jordan", 9),
                other(client, "auto", 9))
        for kernel, wanted in zip(reported, kernels, strict=True):
            assert kernel.startswith(wanted), (reported, kernels)


SORTED_MIN = int(re.search(r"CUDA_AUTO_SORTED_N_MIN (\d+)",
                           (ROOT / "gpu/cuda/tuning/h200/auto.h").read_text())[1])


def kinds(n, dtype):
    """Matrices of every kind that `auto` says apart, singular and broken ones too."""
    a = matrices.random(n, dtype, seed=n, batch=14) + 2 * np.eye(n, dtype=dtype)
    a[1] = np.diag(np.diag(a[1]))
    a[2], a[3] = np.tril(a[2]), np.triu(a[3])
    a[2:4] += 2 * n * np.eye(n, dtype=dtype)
    a[4] = np.triu(np.tril(a[4], 1), -1) + 2 * np.eye(n, dtype=dtype)
    a[5] = np.tril(a[8])
    a[5, n // 2, n // 2] = 0
    a[6] = np.diag(np.where(np.arange(n) == n - 1, 0, 1.5))
    a[7] = np.diag(np.where(np.arange(n) == 0, np.inf, 1))
    a[8] = matrices.spd(n, dtype)
    a[9, :1, 1:2] = a[9, 1:2, :1] = 0  # dense, but not at a glance
    a[10, -1, 0] = np.nan
    a[11] = 1  # of rank 1
    symmetric = matrices.symmetric_kinds(n, dtype)
    a[12], a[13] = symmetric["saddle"], symmetric["tridiagonal"]
    return a.astype(dtype)


WANTED = ["INVERSE", "INFO", "RCOND", "METHOD"]


def compare(ours, theirs, a):
    """Against the host's answers: the same algorithms; below SORTED_MIN all lu."""
    n, dtype = a.shape[-1], a.dtype
    got, wanted = (client.outputs("auto", {"A": a}, WANTED) for client in (ours, theirs))
    is_lu = [n < SORTED_MIN and algorithm != "none" for algorithm in wanted["METHOD"]]
    assert list(got["METHOD"]) == ["lu" if lu else algorithm
                                   for lu, algorithm in zip(is_lu, wanted["METHOD"], strict=True)]
    for k in range(len(a)):
        what = (n, dtype, k)
        info, theirs_info = int(got["INFO"][k]), int(wanted["INFO"][k])
        assert info == theirs_info or (is_lu[k] and info > 0 and theirs_info > 0), what
        broken = info < 0 or 0 < info <= n
        assert np.isnan(got["INVERSE"][k]).all() == broken, what
        if not broken:
            matrices.check_contract(a[k], got["INVERSE"][k], info, got["RCOND"][k], what)
            assert np.allclose(got["RCOND"][k], wanted["RCOND"][k], rtol=1e-3), what
        if matrices.is_symmetric(a[k]):
            assert matrices.is_symmetric(got["INVERSE"][k]), what
    return got


def compare_alone(client, a, together):
    """The same bits as in the batch."""
    alone = [client.outputs("auto", {"A": a[k : k + 1]}, WANTED) for k in range(len(a))]
    for name in WANTED:
        for k in range(len(a)):
            same = np.asarray(alone[k][name][0]).tobytes()
            assert same == np.asarray(together[name][k]).tobytes(), (a.shape[-1], k, name)


def try_spd(client):
    """Of a small order what has to be averaged is Cholesky's, and nothing else."""
    a = matrices.spd(40)
    rounded = a.copy()
    rounded[0, 39] = np.nextafter(a[0, 39], 9)
    for a, query, algorithm in [(a, "", "lu"), (a, "&spd=true", "lu"),
                                (rounded, "&spd=false", "lu"),
                                (rounded, "&spd=true", "cholesky")]:
        answer = client.invert(codec.npy(a), NPY, "?method=auto" + query)
        assert answer.status == 200, answer
        assert answer.header("Invertd-Kernel").startswith("cuda auto"), query
        assert answer.header("Invertd-Method") == algorithm, query
        assert matrices.ratio(a, codec.load(answer.body)) <= matrices.BOUND


def test_auto_as_the_host():
    """Mixed batches; each matrix by itself has the bits that it has among the others."""
    with simt() as daemon, Daemon("--engine", "host") as host:
        ours, theirs = Client(daemon), Client(host)
        for n, dtype in [(1, "f8"), (2, "f4"), (31, "f8"), (32, "f4"), (33, "f8"), (65, "f4")]:
            a = kinds(n, dtype)
            compare_alone(ours, a, compare(ours, theirs, a))
        # Fewer: the stand-in takes its time, and an engine has a deadline.
        for n, dtype, first, last in [(150, "f8", 3, 6), (SORTED_MIN, "f8", 1, 8),
                                      (300, "f4", 2, 6)]:
            a = kinds(n, dtype)[first:last]
            compare_alone(ours, a[:2], compare(ours, theirs, a))
        try_spd(ours)
