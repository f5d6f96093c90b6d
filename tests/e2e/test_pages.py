"""The pages that tell of the CUDA benches' figures, from tables as the benches write them."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST = "date,commit,device,what,n,precision,threads,quantity,unit,value\n"

# Script: what its files end in, a table, and a line of the page.
PAGES = {
    "report": ("small", "kernel,precision,n,million_per_s,percent_of_copy,copy_gb_per_s,"
               "cublas_million_per_s,times_cublas,getrf_getri_million_per_s\n"
               "inverse,FP32,2,1000,90,1800,100,10,50\ninverse,FP64,2,500,81,1800,50,10,20\n"
               "factor,FP32,2,1200,80,1800,100,12,0\nfactor,FP64,2,600,79,1800,50,12,0\n",
               "| 2 | 1,000.0 | 90.0% | 10.0 | 20.0 | 500.0 | 81.0% | 10.0 | 25.0 | 80% | FP32, "
               "FP64 |"),
    "middle": ("middle", "kernel,precision,n,matrices,us,gflops,cublas_gflops,cusolver_gflops\n"
               "inverse,FP64,64,4096,180.5,11900,1500,0\nfactor,FP64,64,1,20,8.7,0,7\n",
               "| 64 | 4,096 | 180.5 | 11,900 | 1,500 | - | - | 12,000 |"),
    "tridiagonal": ("tridiagonal", "precision,n,matrices,bytes,fill_us,two_sweep_us,"
                    "sherman_morrison_us,pivoted_us,gtsv2_us,gtsv2_nopivot_us,paper_us\n"
                    "FP64,128,1000,131072000,50,100,200,400,9000,-1,-1\n",
                    "| 128 | 1,000 | 50.0 | 2,621 | 100.0 (50%) | 200.0 (25%) | 400.0 (12%) | "
                    "9,000 | - | - |"),
    "iterative": ("iterative", "part,precision,n,what,quantity,value\n"
                  "starts,FP64,512,cusolver,ms,2\nstarts,FP64,512,cold,ms,4\n"
                  "starts,FP64,512,cold,steps,12\nstarts,FP64,512,cold,products,30\n"
                  "starts,FP64,512,cold,residual,1e-12\nstarts,FP64,512,cold,info,0\n",
                  "| FP64 | 512 | cold | 4.000 | 12 | 30 | 1.0e-12 | 0 | 0.50 |"),
    "ism": ("ism", "precision,n,m,matrices,a0,variant,ism_us,copy_us,lu_us,cusolver_us,fill_us,"
            "product_us,block\nFP64,32,1,1000,inverse,auto,50,40,200,,,,0\n",
            "| FP64 | 32 | 1 | 1,000 | 50.0 | 40.0 (80%) | 200.0 (4.00 times) | "
            "240.0 (4.80 times) |"),
}


def write_page(script, *arguments):
    return subprocess.run([sys.executable, "-B", f"bench/cuda/{script}.py", *arguments], cwd=ROOT,
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", PAGES)
def test_the_newest_table_of_the_bench_is_shown(script, tmp_path):
    part, table, line = PAGES[script]
    (tmp_path / f"2026-01-02-one-{part}.csv").write_text(table)
    (tmp_path / f"2026-01-03-host-{part}.csv").write_text(HOST)
    done = write_page(script, tmp_path, "--device", "one X", "--commit", "0a1b2c3")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"2026-01-02-one-{part}.md").read_text().splitlines()
    assert page[0].startswith("# ") and page[0].endswith("one X, 2026-01-02")
    assert any("0a1b2c3" in text for text in page)
    assert line in page


@pytest.mark.parametrize("script", PAGES)
def test_a_folder_without_figures(script, tmp_path):
    (tmp_path / f"2026-01-03-host-{PAGES[script][0]}.csv").write_text(HOST)
    done = write_page(script, tmp_path)
    assert done.returncode != 0 and "no figures" in done.stderr
