"""The CUDA engine itself behind the front, its kernels run on the CPU by the SIMT stand-in."""

import numpy as np

from harness import codec, matrices
from harness.codec import NPY, NPZ, Client
from harness.daemon import Daemon
from harness.settings import SIMT_ENGINE


def simt(*options):
    return Daemon("--engine", "cuda:0", "--engine-cuda-path", SIMT_ENGINE, *options)


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


def test_who_computes():
    """Every method that a CUDA engine takes, of an order of each of its rows."""
    kernels = ("cuda lu fused", "cuda lu blocked", "cuda tridiagonal", "cuda iterative",
               "cuda gauss-jordan fused", "host ")
    with simt("--cuda-experimental") as daemon:
        client = Client(daemon)
        told = (dense(client, 8), dense(client, 40), band(client, 60),
                other(client, "iterative", 20), other(client, "gauss_jordan", 9),
                other(client, "auto", 9))
        for kernel, wanted in zip(told, kernels, strict=True):
            assert kernel.startswith(wanted), (told, kernels)


def test_what_no_gpu_has_proven_is_the_hosts():
    with simt() as daemon:
        client = Client(daemon)
        assert dense(client, 40).startswith("cuda lu blocked")
        assert band(client, 60).startswith("host ")
