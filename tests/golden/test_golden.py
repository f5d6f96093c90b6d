"""The answers to the short corpus have the recorded hashes; where none fit, company changes no bit.

Recorded hashes hold for one version of OpenBLAS. On a machine with another one the comparison is
skipped, after a test that needs no record: each matrix alone has the bits that it has in a stack.
"""

import hashlib
import pathlib

import numpy as np
import pytest

import golden

corpus, _, _, settings, _ = golden.use_build(None)
RECORD = "tests/golden/golden.py --build DIR --engine {} --cpu {} --write FILE"
# Of all requests of the column 9-16 in every third row. Another hash: other inputs are sent.
INPUTS = "91b9056ad424ec08"


def inputs_hash(rows, column):
    digest = hashlib.blake2b(digest_size=8)
    for row in rows:
        for n, request in row.requests(column):
            digest.update(f"{row.key} {n} {sorted(request.parameters.items())}".encode())
            for name, array in request.inputs.items():
                digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
                digest.update(golden.canonical(array))
    return digest.hexdigest()


def chosen(engine):
    """Fewer for sanitizer builds, which are slow."""
    return golden.cells_of(engine, short=True)[:: 1 if settings.FACTOR == 1 else 12]


def check(engine, cpu, options=()):
    cells = chosen(engine)
    with golden.serving(engine, cpu, options) as daemon:
        model = golden.model_of(daemon, engine)
        hashes = golden.run(daemon, cells)
        path = golden.file_of(engine, model.device)
        recorded, wanted = golden.read_file(path) if path.exists() else (None, {})
        if recorded == model:
            assert golden.differences(wanted, hashes) == []
            return
        assert golden.differences(hashes, golden.run(daemon, cells[::4], alone=True)) == []
    pytest.skip(f"{path.name} is of {recorded}, not {model}; {RECORD.format(engine, cpu)} records")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("cpu", golden.CPUS)
def test_host(cpu):
    if not golden.runs_here(cpu):
        pytest.skip(f"this CPU does not run {cpu}'s kernels")
    check("host", cpu)


@pytest.mark.timeout(120)
def test_simt():
    if not golden.runs_here(golden.CPU_NEXT_TO_CUDA):
        pytest.skip(f"this CPU does not run {golden.CPU_NEXT_TO_CUDA}'s kernels")
    if not settings.SIMT_ENGINE.exists():
        pytest.skip("this build has no CUDA engine for the CPU")
    check("simt", golden.CPU_NEXT_TO_CUDA)


@pytest.mark.timeout(120)
def test_company():
    """Stacks or single matrices, four connections or one, many threads or one: the same bits."""
    cells = chosen("host")[::3]
    with golden.serving("host", options=["--threads", "3", "--batch-wait-us", "2000"]) as daemon:
        together = golden.run(daemon, cells)
    with golden.serving("host", options=["--threads", "1"]) as daemon:
        alone = golden.run(daemon, cells, alone=True, connections=1)
    assert golden.differences(together, alone) == []


def test_inputs():
    rows = [row for row in corpus.rows() if "9-16" in row.columns]
    assert inputs_hash(rows[::3], "9-16") == INPUTS


def test_a_bit_counts(tmp_path):
    """A file reads back, and one other bit is named."""
    model = golden.Model("host", "Haswell", "Haswell", "libopenblas.so")
    row = corpus.rows()[0]
    answers = {"INVERSE": np.ones((2, 3, 3)), "METHOD": np.array(["lu", "lu"], dtype=object)}
    hashes = []
    for other in (1, np.nextafter(1, 2)):
        answers["INVERSE"][1, 2, 2] = other
        digest = hashlib.blake2b(digest_size=golden.HASH_BYTES)
        golden.add_answer(digest, 3, answers)
        hashes.append({(row.key, "1-8"): digest.hexdigest()})
    path = pathlib.Path(tmp_path) / "hashes.txt"
    golden.write_file(path, model, hashes[0])
    assert golden.read_file(path) == (model, hashes[0])
    assert golden.differences(hashes[0], hashes[0]) == []
    (difference,) = golden.differences(hashes[0], hashes[1])
    assert difference.startswith(f"{row.key}, n = 1-8")
