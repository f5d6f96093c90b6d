"""The CUDA engine itself behind the front, its kernels run on the CPU by the SIMT stand-in."""

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    "options, kernels",
    [
        ((), ("cuda lu fused", "host ", "host ")),
        (("--cuda-experimental",), ("cuda lu fused", "cuda lu blocked", "cuda tridiagonal")),
    ],
    ids=["proven", "experimental"],
)
def test_who_computes(options, kernels):
    with simt(*options) as daemon:
        client = Client(daemon)
        told = (dense(client, 8), dense(client, 40), band(client, 60))
        for kernel, wanted in zip(told, kernels):
            assert kernel.startswith(wanted), (told, kernels)
