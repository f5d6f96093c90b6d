"""Requests in every wire form, built here by hand, and answers read back into arrays."""

import io
import json

import numpy as np

from . import wire

TYPES = {"FP32": np.dtype("<f4"), "FP64": np.dtype("<f8"), "INT32": np.dtype("<i4")}
J = "Inference-Header-Content-Length"
NPY, NPZ, JSON = "application/x-npy", "application/x-npz", "application/json"


def datatype(array):
    return {"f4": "FP32", "f8": "FP64", "i4": "INT32"}[array.dtype.str[1:]]


def _v2_document(inputs, outputs, parameters, id):
    document = {"inputs": inputs}
    if id is not None:
        document["id"] = id
    if parameters:
        document["parameters"] = parameters
    if outputs is not None:
        document["outputs"] = outputs
    return document


def plain(array):
    """Python numbers whose JSON text reads back to the same bits (a float is exact as a double)."""
    return array.ravel().astype(float).tolist()


def v2_json(inputs, outputs=None, parameters=None, id=None):
    """(headers, body) of an all-JSON inference."""
    tensors = [
        {"name": name, "shape": list(a.shape), "datatype": datatype(a), "data": plain(a)}
        for name, a in inputs.items()
    ]
    wanted = None if outputs is None else [{"name": name} for name in outputs]
    document = _v2_document(tensors, wanted, parameters, id)
    return {"Content-Type": JSON}, json.dumps(document).encode()


def v2_binary(inputs, outputs=None, parameters=None, id=None):
    """(headers, body) of an inference with binary tensors both ways."""
    tensors, raw = [], b""
    for name, array in inputs.items():
        data = np.ascontiguousarray(array).tobytes()
        tensors.append(
            {
                "name": name,
                "shape": list(array.shape),
                "datatype": datatype(array),
                "parameters": {"binary_data_size": len(data)},
            }
        )
        raw += data
    parameters = {**(parameters or {}), "binary_data_output": True}
    wanted = None if outputs is None else [{"name": name} for name in outputs]
    head = json.dumps(_v2_document(tensors, wanted, parameters, id)).encode()
    return {"Content-Type": "application/octet-stream", J: str(len(head))}, head + raw


def v2_outputs(answer):
    """A 200 of the v2 protocol as {name: array}; BYTES become arrays of str."""
    assert answer.status == 200, answer
    body = answer.content
    length = answer.header(J)
    head, raw = (body, b"") if length is None else (body[: int(length)], body[int(length) :])
    document = json.loads(head)
    outputs = {}
    for tensor in document["outputs"]:
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            outputs[tensor["name"]] = _from_json(tensor)
        else:
            outputs[tensor["name"]] = _from_raw(tensor, raw[:size])
            raw = raw[size:]
    assert raw == b"", "bytes left behind the last tensor"
    return outputs


def _from_json(tensor):
    shape, data = tensor["shape"], tensor["data"]
    assert not any(isinstance(x, list) for x in data), "data must be flat"
    if tensor["datatype"] == "BYTES":
        return np.array(data, dtype=object).reshape(shape)
    numbers = [float("nan") if x is None else x for x in data]
    return np.array(numbers, dtype=TYPES[tensor["datatype"]]).reshape(shape)


def _from_raw(tensor, raw):
    if tensor["datatype"] != "BYTES":
        return np.frombuffer(raw, TYPES[tensor["datatype"]]).reshape(tensor["shape"])
    words = []
    while raw:
        size = int.from_bytes(raw[:4], "little")
        words.append(raw[4 : 4 + size].decode())
        raw = raw[4 + size :]
    return np.array(words, dtype=object).reshape(tensor["shape"])


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(compressed=False, **arrays):
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def load(data):
    """What numpy reads from an .npy or .npz answer."""
    return np.load(io.BytesIO(data), allow_pickle=False)


class Client:
    """Short words for common exchanges with one daemon."""

    def __init__(self, daemon):
        self.daemon = daemon

    def infer(
        self, model, inputs, outputs=None, parameters=None, id=None, form=v2_binary, **headers
    ):
        own, body = form(inputs, outputs, parameters, id)
        return self.daemon.post(f"/v2/models/{model}/infer", body, {**own, **headers})

    def outputs(self, model, inputs, outputs=None, parameters=None, form=v2_binary):
        return v2_outputs(self.infer(model, inputs, outputs, parameters, form=form))

    def invert(self, body, type=None, query="", **headers):
        named = {"Content-Type": type} if type else {}
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.daemon.post("/v1/invert" + query, body, {**named, **headers})


def infer_bytes(model, form, inputs, outputs=None, parameters=None):
    """A whole v2 request, ready to send again and again."""
    headers, body = form(inputs, outputs, parameters)
    return wire.request("POST", f"/v2/models/{model}/infer", body, headers)


def invert_bytes(body, type, query="", headers=None):
    """A whole v1 request, ready to send again and again."""
    return wire.request(
        "POST", "/v1/invert" + query, body, {"Content-Type": type, **(headers or {})}
    )
