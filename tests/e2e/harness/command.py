"""The command `invert` as a process, and the files that it reads and writes."""

import os
import pty
import subprocess
import threading

import numpy as np

from . import matrices
from .daemon import clean_environment
from .settings import BUILD, scaled_timeout

INVERT = str(BUILD / "invert")
OLD = b"what was there"
N = 60          # 28,928 bytes as .npy


def start(server, *arguments, **other):
    """server: a daemon, or whatever else has a url."""
    url = server if isinstance(server, str) else server.url
    environment = clean_environment({"INVERTD_SERVER": url if "//" in url else f"http://{url}"})
    return subprocess.Popen([INVERT, *map(str, arguments)], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=other.pop("stderr", subprocess.PIPE), **other)


def end(process, code, within=30):
    stdout, stderr = process.communicate(timeout=scaled_timeout(within))
    assert process.returncode == code, (process.returncode, stdout[:300], stderr)
    return stdout.decode("latin-1"), (stderr or b"").decode()


def invert(server, *arguments, code=0):
    return end(start(server, *arguments), code)


class Terminal:
    """What a process shows on a terminal, which is its stderr: `with Terminal() as terminal`."""

    def __init__(self):
        self.shown = b""

    def __enter__(self):
        self.ours, self.its = pty.openpty()
        self.reader = threading.Thread(target=self._read)
        return self

    def start(self, server, *arguments):
        process = start(server, *arguments, stderr=self.its)
        os.close(self.its)
        self.reader.start()
        return process

    def _read(self):
        try:
            while piece := os.read(self.ours, 4096):
                self.shown += piece
        except OSError:         # its end was closed
            pass

    def __exit__(self, *_):
        self.reader.join(scaled_timeout(10))
        os.close(self.ours)


class Files:
    """A matrix, or a stack of them, and where its inverse goes."""

    def __init__(self, folder, a=None):
        self.a = matrices.random(N, seed=7) if a is None else a
        self.folder, self.path, self.out = folder, folder / "a.npy", folder / "b.npy"
        np.save(self.path, self.a)
        self.out.write_bytes(OLD)

    def as_job(self, *more):
        return [self.path, "-o", self.out, "-d", "0", *more]

    def check_new(self):
        product = np.matmul(np.load(self.out), self.a)
        assert np.allclose(product, np.eye(self.a.shape[-1]), atol=1e-8)
        self.check_folder()

    def check_old(self):
        assert self.out.read_bytes() == OLD
        self.check_folder()

    def check_folder(self):
        assert sorted(os.listdir(self.folder)) == ["a.npy", "b.npy"]
