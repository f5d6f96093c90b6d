"""HAProxy and nginx in front of a daemon, with the files of deploy/ as their configuration.

Both listen on a free port of loopback. Each keeps a log of the X-Request-Ids that it has seen.
"""

import contextlib
import shutil
import signal
import subprocess

import pytest

from . import wire
from .daemon import wait_until
from .settings import ROOT, scaled_timeout

# nginx's main file, around deploy/nginx.conf. It runs as the user of the test.
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error;
events {{ worker_connections 1000; }}
http {{
    log_format ids "$http_x_request_id";
    access_log {folder}/ids ids;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/invertd.conf;
}}
"""
HAPROXY_LOG = """
    http-request capture req.hdr(X-Request-Id) len 64
    log stdout format raw local0
    log-format %[capture.req.hdr(0)]"""


def _configuration(name, changes):
    """A file of deploy/ with some of its words changed, each of which stands there once."""
    text = (ROOT / "deploy" / name).read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, f"deploy/{name} should hold {old!r} once"
        text = text.replace(old, new)
    return text


class Proxy:
    """A process between `with` and its end; `address` is where clients connect."""

    def __init__(self, daemon, folder, changes=()):
        """changes: of the configuration, beyond the addresses: {words: other words}."""
        self.folder = folder
        self.address = "127.0.0.1", wire.free_port()
        self.ids_file = folder / "ids"
        self.command = self.prepare(daemon.url, f"127.0.0.1:{self.address[1]}", dict(changes))

    def __enter__(self):
        if shutil.which(self.command[0]) is None:
            pytest.fail(f"{self.command[0]} is missing: apt-get install {self.package}, or "
                        "scripts/deps test", pytrace=False)
        with self.ids_file.open("wb") as log, (self.folder / "said").open("wb") as said:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=said)
        try:
            wait_until(self._answers, 30, "an answer through the proxy")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Lets it finish what it does, its log too."""
        self.process.send_signal(self.last_signal)
        try:
            self.process.wait(scaled_timeout(5))
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()

    def _answers(self):
        assert self.process.poll() is None, (self.folder / "said").read_text()
        with contextlib.suppress(OSError, wire.Gone):
            return wire.talk(self.address, wire.request("GET", "/livez")).status == 200
        return False

    def ids(self):
        """What X-Request-Ids it has seen so far; all of them once it has ended."""
        return self.ids_file.read_text("utf-8", "replace").splitlines()


class HAProxy(Proxy):
    package, last_signal = "haproxy", signal.SIGUSR1

    def prepare(self, backend, front, changes):
        changes |= {"bind :8080": f"bind {front}{HAPROXY_LOG}", "10.0.0.11:8000": backend,
                    " check ": " check inter 200ms "}
        path = self.folder / "haproxy.cfg"
        path.write_text(_configuration("haproxy.cfg", changes))
        return ["haproxy", "-db", "-f", str(path)]


class SharingHAProxy(HAProxy):
    """Without PROXY headers, requests of all clients share its connections."""

    def prepare(self, backend, front, changes):
        changes |= {"balance leastconn": "http-reuse always",
                    "send-proxy-v2 check-send-proxy": ""}
        return super().prepare(backend, front, changes)


class Nginx(Proxy):
    package, last_signal = "nginx", signal.SIGQUIT

    def prepare(self, backend, front, changes):
        changes |= {"listen 8080": f"listen {front}", "10.0.0.11:8000": backend}
        (self.folder / "invertd.conf").write_text(_configuration("nginx.conf", changes))
        path = self.folder / "nginx.conf"
        path.write_text(NGINX.format(folder=self.folder))
        return ["nginx", "-p", str(self.folder), "-c", str(path)]
