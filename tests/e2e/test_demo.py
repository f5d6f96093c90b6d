"""`make demo`: what README.md promises first. The program checks every answer by itself."""

import os
import subprocess

from harness import settings


def test_every_method_keeps_its_promise(methods):
    done = subprocess.run([settings.BUILD / "invertd-demo", settings.BUILD / "invertd"],
                          capture_output=True, text=True, timeout=120, check=False,
                          env={k: v for k, v in os.environ.items()
                               if not k.startswith("INVERTD_")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "The daemon stopped cleanly." in done.stdout
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" ms")}
    assert set(methods) == shown


# ---- What is compiled for it ----

NOTICE = "compiling the CUDA engine: "


def would_run(target, folder, *variables):
    """What make would do in an empty build folder, with an nvcc that only says its release."""
    nvcc = folder / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.1'\n")
    nvcc.chmod(0o755)
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "NVCC")}
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    done = subprocess.run(["make", "-n", target, f"BUILD={folder}/build", *variables],
                          cwd=settings.ROOT, env=environment, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_build_mentions_the_cuda_engine_once(tmp_path):
    reported = would_run("all", tmp_path)
    assert reported.count(NOTICE) == 1
    assert reported.index(NOTICE) < reported.index("/obj/gpu/cuda/base/anchor.o;")
    assert NOTICE not in would_run("all", tmp_path, "NVCC=")


def test_no_cuda_engine_is_compiled_without_a_gpu(tmp_path):
    has_gpu = subprocess.run([settings.ROOT / "scripts" / "gpu-here"], capture_output=True,
                             check=False).returncode == 0
    for target in ("demo", "run", "test", "check"):
        reported = would_run(target, tmp_path)
        assert (NOTICE in reported) == has_gpu
        assert ("no GPU here" in reported) != has_gpu
        assert NOTICE in would_run(target, tmp_path, f"NVCC={tmp_path}/nvcc")
    assert NOTICE in would_run("tests-built", tmp_path)
