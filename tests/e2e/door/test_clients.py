"""Client programs as they are, over TLS, with a token and without: curl, requests, tritonclient
and perf_analyzer. Each trusts the CA that signed the daemon's certificate, and none other. Where
tokens are asked for, each sends its own, and is refused without."""

import asyncio
import dataclasses
import io
import ssl
import subprocess

import numpy as np
import pytest
import requests
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from harness import matrices, perf_analyzer, pki, wire
from harness.codec import NPY
from harness.daemon import Daemon, wait_until
from harness.settings import scaled_timeout
from harness.tokens import bearer, line, write

A = matrices.random(16, seed=5, batch=8)
INVERSE = np.linalg.inv(A)


@dataclasses.dataclass
class Way:
    """How the daemon is reached."""

    daemon: Daemon
    token: str  # None: none is asked for
    authority: str  # the CA's file
    stranger: str  # another CA's

    @property
    def port(self):
        return self.daemon.address[1]

    @property
    def url(self):
        return f"https://localhost:{self.port}"


    @property
    def fields(self):
        return bearer(self.token)


@pytest.fixture(scope="module", params=[None, "a-token"], ids=["open", "token"])
def way(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("pki")
    ca, stranger = pki.authority(folder), pki.authority(folder, "stranger")
    cert, key = pki.issue(folder, ca, "server")
    tls, ready = pki.context(ca), wire.request("GET", "/readyz")
    options = ["--tls-cert", cert, "--tls-key", key]
    if request.param is not None:
        write(folder / "tokens", line("alice", "infer", request.param))
        options += ["--token-file", folder / "tokens"]
    with Daemon(*options, ready=False) as daemon:
        wait_until(lambda: pki.talk(daemon.address, tls, ready).status == 200, 60, "ready")
        yield Way(daemon, request.param, str(ca[0]), str(stranger[0]))


WITH_TOKEN = pytest.mark.parametrize("way", ["a-token"], indirect=True, scope="module",
                                     ids=["token"])


def curl(way, *options, path="/v1/invert", authority=None, token=True):
    fields = way.fields if token else {}
    headers = [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
    command = ["curl", "--silent", "--show-error", "--cacert", authority or way.authority,
               *headers, *map(str, options), way.url + path]
    return subprocess.run(command, capture_output=True, timeout=scaled_timeout(20))


def test_curl(way, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, A)
    done = curl(way, "--fail", "--data-binary", f"@{path}", "-H", f"Content-Type: {NPY}")
    assert done.returncode == 0, done.stderr
    assert np.allclose(np.load(io.BytesIO(done.stdout)), INVERSE)
    # Two requests on one connection.
    twice = curl(way, "--fail", "-d", '{"matrix":[[4]]}', "-w", "%{num_connects}",
                 way.url + "/v1/invert")
    assert twice.returncode == 0 and twice.stdout.count(b'"inverse":[[0.25]]') == 2, twice
    assert twice.stdout.endswith(b"0"), twice


def test_curl_trusts_no_other(way):
    done = curl(way, path="/livez", authority=way.stranger)
    assert done.returncode == 60 and not done.stdout, done  # CURLE_PEER_FAILED_VERIFICATION


@WITH_TOKEN
def test_curl_without_its_token(way):
    done = curl(way, "-d", '{"matrix":[[4]]}', "-w", "%{http_code}", token=False)
    assert done.returncode == 0 and done.stdout.endswith(b"401"), done


def test_requests(way):
    with requests.Session() as session:
        session.headers.update(way.fields)
        session.verify = way.authority
        session.trust_env = False  # a bundle named in the environment would win
        for _ in range(3):
            answer = session.post(way.url + "/v1/invert", json={"matrices": A.tolist()},
                                  timeout=scaled_timeout(20))
            assert answer.status_code == 200, answer.text
            assert np.allclose(answer.json()["inverse"], INVERSE)
        answer = session.get(way.url + "/v1/nowhere", timeout=scaled_timeout(20))
        assert answer.status_code == 404
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(way.url + "/livez", verify=way.stranger, timeout=scaled_timeout(20))


@WITH_TOKEN
def test_requests_without_its_token(way):
    with requests.Session() as session:
        session.verify = way.authority
        session.trust_env = False
        for headers in {}, {"Authorization": "Bearer another"}:
            answer = session.post(way.url + "/v1/invert", json={"matrix": [[4]]}, headers=headers,
                                  timeout=scaled_timeout(20))
            assert answer.status_code == 401, answer.text
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def tensors():
    tensor = triton.InferInput("A", list(A.shape), "FP64")
    tensor.set_data_from_numpy(A, binary_data=True)
    return [tensor]


def context(authority):
    return ssl.create_default_context(cafile=authority)


def triton_client(way, authority):
    return triton.InferenceServerClient(f"localhost:{way.port}", ssl=True, concurrency=4,
                                        ssl_context_factory=lambda: context(authority))


def test_tritonclient(way):
    client = triton_client(way, way.authority)
    assert client.is_server_ready() and client.is_model_ready("lu", headers=way.fields)
    assert client.get_model_metadata("lu", headers=way.fields)["name"] == "lu"
    for coding in None, "gzip":
        # The client writes into the fields that it is given: each call gets its own.
        result = client.infer("lu", tensors(), headers=way.fields,
                              request_compression_algorithm=coding)
        assert np.allclose(result.as_numpy("INVERSE"), INVERSE)
    waiting = [client.async_infer("lu", tensors(), headers=way.fields) for _ in range(8)]
    assert all(np.allclose(one.get_result().as_numpy("INVERSE"), INVERSE) for one in waiting)
    with pytest.raises(InferenceServerException) as error:
        client.infer("nothing", tensors(), headers=way.fields)
    assert error.value.status() == "404"
    client.close()


@WITH_TOKEN
def test_tritonclient_without_its_token(way):
    client = triton_client(way, way.authority)
    assert client.is_server_live() and not client.is_model_ready("lu")
    with pytest.raises(InferenceServerException) as error:
        client.infer("lu", tensors())
    assert error.value.status() == "401"
    client.close()


def test_tritonclient_trusts_no_other(way):
    client = triton_client(way, way.stranger)
    with pytest.raises(ssl.SSLCertVerificationError):
        client.is_server_live()
    client.close()


def test_tritonclient_with_asyncio(way):
    async def run():
        async with triton_aio.InferenceServerClient(
                f"localhost:{way.port}", ssl=True, ssl_context=context(way.authority)) as client:
            assert await client.is_server_ready()
            asked = [client.infer("lu", tensors(), headers=way.fields) for _ in range(8)]
            for result in await asyncio.gather(*asked):
                assert np.allclose(result.as_numpy("INVERSE"), INVERSE)

    asyncio.run(run())


@pytest.mark.skipif(perf_analyzer.PROGRAM is None, reason=str(perf_analyzer.REASON))
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", [["-b", "8", "--shape", "A:8,8"], ["--shape", "A:1,8,8"]],
                         ids=["batch", "whole"])
def test_perf_analyzer(way, shape):
    headers = [word for name, value in way.fields.items() for word in ("-H", f"{name}:{value}")]
    perf_analyzer.measure(way.url, *shape, "--ssl-https-ca-certificates-file", way.authority,
                          *headers)
