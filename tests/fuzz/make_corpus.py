#!/usr/bin/env python3
"""Writes the seeds of the codecs' fuzz targets to tests/fuzz/corpus/<target>/.

Standard library only. The seeds are committed; run this again after a change of the inputs' form,
which the head of each tests/fuzz/fuzz_<target>.c says.
"""

import gzip
import io
import json
import os
import struct
import zipfile
import zlib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
LU, AUTO, CHAIN, UPDATE = range(4)
TEXT_ONLY = 0xFFFF


def write(target, name, data):
    folder = os.path.join(HERE, target)
    os.makedirs(folder, exist_ok=True)
    assert len(data) <= 4096, name
    with open(os.path.join(folder, name), "wb") as seed:
        seed.write(data)


def numbers(count, code="d"):
    return struct.pack("<%d%s" % (count, code), *range(1, count + 1))


def npy(shape, descr="<f8", fortran=False, version=1):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %r, }" % (descr, fortran, tuple(shape))
    prefix = 10 if version == 1 else 12
    head += " " * (-(prefix + len(head) + 1) % 64) + "\n"
    count = 1
    for length in shape:
        count *= length
    size = struct.pack("<H" if version == 1 else "<I", len(head))
    data = numbers(count, "f" if descr == "<f4" else "d")
    return b"\x93NUMPY" + bytes([version, 0]) + size + head.encode() + data


def npz(arrays, method=zipfile.ZIP_STORED, force_zip64=False, seekable=True):
    class Pipe(io.BytesIO):
        def seekable(self):
            return seekable

        def seek(self, *where):
            if not seekable:
                raise io.UnsupportedOperation
            return super().seek(*where)

    out = Pipe()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            info = zipfile.ZipInfo(name + ".npy")
            info.compress_type = method
            with archive.open(info, "w", force_zip64=force_zip64) as member:
                member.write(data)
    return out.getvalue()


def tensor(name, shape, data=None, datatype="FP64"):
    described = {"name": name, "shape": shape, "datatype": datatype}
    if data is None:
        count = 1
        for length in shape:
            count *= length
        described["parameters"] = {"binary_data_size": count * (8 if datatype == "FP64" else 4)}
    else:
        described["data"] = data
    return described


def v2(method, request, binary=b"", with_length=None):
    text = json.dumps(request).encode() if isinstance(request, dict) else request
    with_length = bool(binary) if with_length is None else with_length
    length = len(text) if with_length else TEXT_ONLY
    return bytes([method]) + struct.pack("<H", length) + text + binary


def write_v2():
    a = tensor("A", [1, 2, 2], [1, 2, 3, 4])
    write("v2", "flat", v2(LU, {"inputs": [a]}))
    write("v2", "nested", v2(AUTO, {"id": "7", "inputs": [tensor("A", [1, 2, 2], [[[1, -0.5],
          [3e-9, 4]]])], "outputs": [{"name": "METHOD"}, {"name": "INVERSE",
          "parameters": {"binary_data": True}}]}))
    write("v2", "binary", v2(LU, {"inputs": [tensor("A", [2, 2, 2])], "parameters":
          {"binary_data_output": True, "sequence_id": 3, "priority": 1}}, numbers(8)))
    write("v2", "binary_f32", v2(AUTO | 0x30, {"inputs": [tensor("A", [1, 2, 2], None, "FP32")]},
          numbers(4, "f")))
    write("v2", "chain", v2(CHAIN, {"inputs": [tensor("D", [1, 3]), tensor("DL", [1, 2], [5, 6]),
          tensor("DU", [1, 2])]}, numbers(5)))
    write("v2", "update", v2(UPDATE, {"parameters": {"refine": False, "block_size": 4, "tolerance":
          1e-9, "variant": "single"}, "inputs": [tensor("X", [1, 2, 1], [1, 2]),
          tensor("Y", [1, 2, 1], [3, 4])]}))
    write("v2", "empty", v2(LU, {"inputs": [tensor("A", [2, 0, 0], [[], []])]}))
    write("v2", "raw", bytes([LU, 0, 0]) + numbers(9))
    write("v2", "overflow", v2(LU, {"inputs": [tensor("A", [1, 3037000500, 3037000500], [1])]}))
    write("v2", "escapes", v2(LU, rb'{"inputs":[{"n\u0061me":"A","d\u0061ta":[1]}]}'))


def write_npy():
    for name, data in {
        "square": npy([2, 2]),
        "f4": npy([3, 2, 2], "<f4"),
        "fortran": npy([2, 3, 3], fortran=True),
        "version2": npy([1, 1], version=2),
        "version3": npy([1, 1], version=3),
        "empty": npy([2, 0, 0]),
        "python2": npy([2, 2]).replace(b"(2, 2)", b"(2L,2)"),
        "vector": npy([4]),
        "integers": npy([2, 2], "<i8"),
        "structured": npy([2, 2]).replace(b"'<f8'", b"[('', )"),
        "large": npy([2, 2]).replace(b"(2, 2), } ", b"(65536,65536)}"),
    }.items():
        write("npy", name, bytes([LU]) + data)
    write("npy", "unaligned", bytes([AUTO | 0x30]) + npy([2, 2, 2]))


def write_npz():
    square = npy([2, 2])
    chain = {"dl": npy([2]), "d": npy([3]), "du": npy([2])}
    deflated = zipfile.ZIP_DEFLATED
    write("npz", "stored", bytes([LU]) + npz({"a": square}))
    write("npz", "deflated", bytes([LU]) + npz({"arr_0": square}, deflated))
    write("npz", "zip64", bytes([AUTO]) + npz({"A": square}, force_zip64=True))
    write("npz", "descriptor", bytes([LU]) + npz({"a": square}, deflated, seekable=False))
    write("npz", "chain", bytes([CHAIN]) + npz(chain, deflated))
    write("npz", "update", bytes([UPDATE]) + npz({"x": npy([2, 1], "<f4"), "y": npy([2, 1], "<f4"),
          "a0": npy([2], "<f4")}))
    write("npz", "fortran", bytes([LU]) + npz({"a": npy([2, 2, 2], fortran=True)}, deflated))
    write("npz", "empty", bytes([LU]) + npz({}))
    write("npz", "other_name", bytes([LU]) + npz({"b": square}))


def write_json():
    no_method = 8
    for name, text in {
        "matrix": '{"matrix":[[4,7],[2,6]]}',
        "matrices": '{"matrices":[[[4,7],[2,6]],[[1,0],[0,1]]],"method":"lu"}',
        "options": '{"matrix":[[1.5e-3,-0],[0.25,1E+2]],"precision":"fp32","outputs":["inverse",'
        '"info"],"options":{"spd":true},"on_singular":"nan","timeout":5}',
        "ragged": '{"matrix":[[4,7],[2]]}',
        "empty": '{"matrices":[[],[]]}',
        "null": '{"matrix":[[null]]}',
        "deep": '{"a":' + "[" * 20 + "1" + "]" * 20 + "}",
        "escapes": '{"m\\u0061trix":[[1]],"x":"\\ud83d\\ude00\\""}',
    }.items():
        write("json", name, bytes([no_method]) + text.encode())
    write("json", "chain", bytes([CHAIN]) + b'{"dl":[1,2],"d":[3,4,5],"du":[6,7],'
          b'"outputs":"diagonal,method"}')
    write("json", "update", bytes([UPDATE]) + b'{"x":[[1],[2]],"y":[[3],[4]],"a0":[5,6],'
          b'"options":{"block_size":7,"variant":"block","tolerance":0.25,"refine":false}}')


def write_inflate():
    formats = {"v2": 0, "raw": 1, "npy": 2, "npz": 3, "json": 4, "unknown": 5}

    def head(form, is_gzip, json_bytes=None, packed=False):
        first = int(is_gzip) | formats[form] << 1 | (0x80 if packed else 0)
        first |= 0x40 if json_bytes is not None else 0
        return bytes([first]) + struct.pack("<H", json_bytes or 0)

    text = json.dumps({"inputs": [tensor("A", [1, 2, 2])]}).encode()
    matrix = b'{"matrix":[[4,7],[2,6]]}'
    bodies = {"v2": (text + numbers(4), len(text)), "npy": (npy([2, 2]), None),
              "npz": (npz({"a": npy([2, 2])}), None), "json": (matrix, None),
              "raw": (numbers(4), 0), "unknown": (matrix, None)}
    for form, (body, length) in bodies.items():
        write("inflate", form + "_gzip", head(form, True, length) + gzip.compress(body, mtime=0))
        write("inflate", form + "_zlib", head(form, False, length) + zlib.compress(body))
        write("inflate", form + "_plain", head(form, True, length, True) + body)
    write("inflate", "bomb_json", head("json", True) + gzip.compress(b"{" + bytes(2 << 20),
          mtime=0))
    write("inflate", "bomb_npy", head("npy", False) + zlib.compress(npy([1, 1]) + bytes(1 << 20)))
    write("inflate", "two_members", head("json", True) + gzip.compress(matrix, mtime=0) * 2)


def write_options():
    write("options", "request", bytes([LU]) + b"outputs=inverse, info\non_singular=nan\n"
          b"priority=1\ntimeout=1000\npriority=2")
    write("options", "update", bytes([UPDATE]) + b"refine=yes\nblock_size=64\ntolerance=1e-9\n"
          b"variant=block\nvariant=none")
    write("options", "ranges", bytes([CHAIN]) + b"rows=0:2\ncolumns=1:3\nsteps=7\nrows=5:4\n")
    write("options", "bad", bytes([AUTO]) + b"spd=maybe\ntimeout=-1\noutputs=speed\nx=1\n=\n")
    write("options", "codings", bytes([LU]) + b"gzip\ngzip;q\ndeflate, gzip ; \n*\nidentity\n")


if __name__ == "__main__":
    write_v2()
    write_npy()
    write_npz()
    write_json()
    write_inflate()
    write_options()
