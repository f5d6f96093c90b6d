"""Unmodified tritonclient, synchronous and asyncio, with and without compression."""

import asyncio

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from harness import matrices

CODINGS = pytest.mark.parametrize("coding", [None, "gzip", "deflate"])
BINARY = pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
A = matrices.random(24, seed=2, batch=4)


def tensors(a, binary, names=("INVERSE", "INFO", "RCOND")):
    datatype = {"f4": "FP32", "f8": "FP64"}[a.dtype.str[1:]]
    tensor = triton.InferInput("A", list(a.shape), datatype)
    tensor.set_data_from_numpy(a, binary_data=binary)
    wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in names]
    return [tensor], wanted


def check(result, a):
    names = ("INVERSE", "INFO", "RCOND")
    matrices.check_answers(a, {name: result.as_numpy(name) for name in names})
    expected = np.linalg.inv(a.astype("f8"))
    tolerance = 1e-12 if a.dtype.itemsize == 8 else 1e-4
    assert np.allclose(result.as_numpy("INVERSE"), expected, atol=tolerance)


@pytest.fixture
def sync(daemon):
    client = triton.InferenceServerClient(daemon.url, concurrency=2)
    yield client
    client.close()


def test_documents(sync):
    assert sync.is_server_live() and sync.is_server_ready()
    assert sync.is_model_ready("lu") and sync.is_model_ready("lu", "1")
    assert not sync.is_model_ready("nothing")
    assert sync.get_server_metadata()["name"] == "invertd"
    assert sync.get_model_metadata("lu", "1")["inputs"][0]["name"] == "A"
    assert sync.get_model_config("lu")["max_batch_size"] > 0
    assert "lu" in {entry["name"] for entry in sync.get_model_repository_index()}
    assert sync.get_inference_statistics("lu")["model_stats"][0]["name"] == "lu"
    assert len(sync.get_inference_statistics()["model_stats"]) >= 4


@CODINGS
@BINARY
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_infer(sync, coding, binary, dtype):
    a = A.astype(dtype)
    inputs, outputs = tensors(a, binary)
    result = sync.infer(
        "lu",
        inputs,
        outputs=outputs,
        request_id="t1",
        request_compression_algorithm=coding,
        response_compression_algorithm=coding,
    )
    check(result, a)
    assert result.get_response()["id"] == "t1"


def test_infer_with_defaults_alone(sync):
    inputs, _ = tensors(A, True)
    check(sync.infer("lu", inputs), A)


def test_method_output(sync):
    for binary in (False, True):
        inputs, outputs = tensors(np.eye(3)[None], binary, ["METHOD"])
        result = sync.infer("auto", inputs, outputs=outputs, parameters={"spd": False})
        assert [
            str(w, "ascii") if isinstance(w, bytes) else w for w in result.as_numpy("METHOD")
        ] == ["diagonal"]


def test_async_infer(sync):
    inputs, outputs = tensors(A, True)
    waiting = [sync.async_infer("lu", inputs, outputs=outputs) for _ in range(8)]
    for request in waiting:
        check(request.get_result(), A)


def test_priority_and_timeout(sync):
    inputs, outputs = tensors(A, True)
    check(sync.infer("lu", inputs, outputs=outputs, priority=1, timeout=10_000_000), A)


def test_errors_reach_the_client(sync):
    inputs, outputs = tensors(A, True)
    with pytest.raises(InferenceServerException) as error:
        sync.infer("nothing", inputs, outputs=outputs)
    assert error.value.status() == "404"
    with pytest.raises(InferenceServerException) as error:
        sync.infer("lu", inputs, outputs=[triton.InferRequestedOutput("NOTHING")])
    assert error.value.status() == "400"
    with pytest.raises(InferenceServerException):
        sync.infer("lu", tensors(A[:, :3], True)[0])


@CODINGS
@BINARY
def test_aio_infer(daemon, coding, binary):
    async def run():
        async with triton_aio.InferenceServerClient(daemon.url) as client:
            assert await client.is_server_ready()
            assert (await client.get_model_metadata("auto"))["name"] == "auto"
            inputs, outputs = tensors(A, binary)
            one = client.infer(
                "lu",
                inputs,
                outputs=outputs,
                request_compression_algorithm=coding,
                response_compression_algorithm=coding,
            )
            for result in await asyncio.gather(one, client.infer("lu", inputs, outputs=outputs)):
                check(result, A)

    asyncio.run(run())
