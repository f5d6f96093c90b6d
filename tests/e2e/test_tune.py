"""The tuner of the CUDA kernels, short of a GPU: what it tries, and the table it writes."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "gpu/cuda/tuning/h200/lu_small.cuh"
ROW = re.compile(r"^CUDA__(INVERSE|FACTOR)(?:_PER_THREAD)?\((float|double), (\d+), (.*)\)$", re.M)
PER_THREAD_N_MAX, PER_THREAD_NUMBERS = 5, 3  # rows of a matrix per thread
HEAD = ("# NVIDIA Test 1000\nkernel,precision,n,shape,million_per_s,percent_of_copy,registers,"
        "local_bytes,warps_a_multiprocessor,shared_bytes\n")


def tune(*arguments):
    return subprocess.run([sys.executable, "bench/gpu/tune.py", *arguments], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout


def rows_of(text):
    return {(kernel, name, int(n)): shape for kernel, name, n, shape in ROW.findall(text)}


@pytest.mark.parametrize("kernel, count", [("INVERSE", 5), ("FACTOR", 4)])
def test_the_committed_table_is_whole(kernel, count):
    rows = rows_of(TABLE.read_text())
    for name in ("float", "double"):
        for n in range(1, 33):
            numbers = rows[kernel, name, n].split(", ")
            if n <= PER_THREAD_N_MAX and len(numbers) == PER_THREAD_NUMBERS:
                assert all(int(number) > 0 for number in numbers)
                continue
            assert len(numbers) == count
            width = 4 if name == "float" else 2
            lanes, block = -(-n // int(numbers[0])), int(numbers[1])
            assert lanes <= 32
            assert block >= n or block % width == 0
            if kernel == "INVERSE" and numbers[2] == "true":
                assert n % block == 0


def test_it_predicts_its_duration():
    said = tune("--only", "list", "--n", "8,16-17", "--kernel", "factor", "--jobs", "2")
    assert re.match(r"\d+ shapes: about \d+\.\d minutes with 2 jobs$", said)


def test_the_table_has_the_fastest_shapes(tmp_path):
    (tmp_path / "tune.csv").write_text(
        HEAD + 'inverse,FP64,8,"4, 2, true, 1, 16",100.0,50,1,0,1,1\n'
        'inverse,FP64,8,"4, 4, true, 4, 4",101.0,51,1,0,1,1\n'
        'inverse,FP64,8,"8, 4, true, 4, 4",99.0,49,1,0,1,1\n')
    path = tmp_path / "tuning_test.cuh"
    tune("--only", "table", "--build", str(tmp_path), "--table", str(path))
    written, base = path.read_text(), rows_of(TABLE.read_text())
    assert "Test 1000" in written
    assert rows_of(written) == base | {("INVERSE", "double", 8): "4, 4, true, 4, 4"}
