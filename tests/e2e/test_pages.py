"""The pages of the GPU bench's figures, and the comparison of two builds' figures."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "subject,shape,precision,what,value,unit,peer,peer_value,device,date,commit\n"
END = ",one X,2026-01-02,0a1b2c3\n"
HOST = "date,commit,device,what,n,precision,threads,quantity,unit,value\n"

# Subject: rows, and a line of the page.
PAGES = {
    "lu_small": ("n=2 matrices=1000000,FP64,inverse,500,us,copy,450\n"
                 "n=2 matrices=1000000,FP64,inverse,500,us,cublas matinv,5000",
                 "| 2 | 1000000 | 500 | 450 (0.90) | 5,000 (10.00) |"),
    "lu": ("n=64 matrices=1,FP64,factor,20.25,us,,", "| 64 | 1 | 20.2 |"),
    "ism": ("n=8192 m=64 matrices=1 a0=diagonal block=0,FP64,auto,320,us,fill,128",
            "| 8192 | 64 | 1 | diagonal | 0 | 320 | 128 (0.40) |"),
}
# The forms of the programs before this one: the file's first line, a row, and the same figure.
OLD = {
    "small": ("kernel,precision,n,million_per_s,percent_of_copy", "inverse,FP64,2,2000,90",
              "lu_small,n=2 matrices=1000000,FP64,inverse,500,us"),
    "middle": ("kernel,precision,n,matrices,us,gflops", "factor,FP64,64,1,20,8.7",
               "lu,n=64 matrices=1,FP64,factor,20,us"),
    "tridiagonal": ("precision,n,matrices,bytes,fill_us,two_sweep_us,sherman_morrison_us,"
                    "pivoted_us", "FP64,128,10,1,1,100,200,400",
                    "tridiagonal,n=128 matrices=10,FP64,two_sweep,100,us"),
    "iterative": ("part,precision,n,what,quantity,value", "starts,FP64,512,warm 0.1,ms,4",
                  "iterative,n=512 matrices=1,FP64,warm 0.1,4,ms"),
    "ism": ("precision,n,m,matrices,a0,variant,ism_us,copy_us,block",
            "FP64,32,1,1000,inverse,auto,50,40,0",
            "updates,n=32 m=1 matrices=1000,FP64,update,50,us"),
    "auto": ("precision,n,matrices,what,us", "FP64,8,1,dense,30",
             "auto,n=8 matrices=1,FP64,dense,30,us"),
    "arena": ("n,how,million_per_s,gb_per_s_each_way", '8,"1,024 a launch, random order",1048576,9',
              "arena,n=8 matrices=1048576,FP64,1024 a launch random,1,us"),
}


def run(script, *arguments):
    return subprocess.run([sys.executable, "-B", f"bench/{script}.py", *arguments], cwd=ROOT,
                          capture_output=True, text=True, check=False)


def write(path, rows, subject=None):
    lines = [f"{subject},{row}" if subject else row for row in rows.split("\n")]
    path.write_text(HEAD + "".join(line + END for line in lines))


@pytest.mark.parametrize("subject", PAGES)
def test_a_page_for_each_subject(subject, tmp_path):
    rows, line = PAGES[subject]
    write(tmp_path / f"{subject}.csv", rows, subject)
    (tmp_path / "host-small.csv").write_text(HOST)
    done = run("gpu/report", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{subject}.md").read_text().splitlines()
    assert page[0].startswith("# ") and page[0].endswith("one X, 2026-01-02")
    assert any("0a1b2c3" in text for text in page)
    assert line in page
    assert not (tmp_path / "host-small.md").exists()
    assert (tmp_path / "lu_small-speedup.svg").exists() == (subject == "lu_small")


def test_a_folder_without_figures(tmp_path):
    (tmp_path / "host-small.csv").write_text(HOST)
    done = run("gpu/report", tmp_path)
    assert done.returncode != 0 and "no figures" in done.stderr


@pytest.mark.parametrize("part", OLD)
def test_builds_are_compared_across_the_forms(part, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    head, row, now = OLD[part]
    (before / f"2026-01-02-x-{part}.csv").write_text(f"{head}\n{row}\n")
    write(after / "new.csv", f"{now},,")
    done = run("compare", before, after)
    assert done.returncode == 0 and "1 compared, 0 more than 5% worse" in done.stdout
    *key, value, unit = now.split(",")
    write(after / "new.csv", ",".join([*key, str(float(value) * 1.06), unit]) + ",,")
    done = run("compare", before, after)
    assert done.returncode == 1 and "WORSE   +6.0%" in done.stdout
