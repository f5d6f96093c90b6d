"""Quotas and counts of clients that have a name: each quota is hit where it says, others are not
harmed, and what is used is shown."""

import shutil

import numpy as np
import pytest

from harness import metrics, pki, wire
from harness.codec import invert_bytes, npy
from harness.daemon import Daemon, wait_until

NPY = "application/x-npy"
SMALL = npy(np.eye(3))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_names_by_certificates_are_counted(tmp_path):
    """Without tokens there are no quotas; a name may hold what a page has to escape."""
    ca = pki.authority(tmp_path)
    server = pki.issue(tmp_path, ca, "server")
    clients = {"alice": pki.issue(tmp_path, ca, "alice", usage="clientAuth"),
               "R&D lab": pki.issue(tmp_path, ca, "lab", subject="/CN=R&D lab",
                                      usage="clientAuth")}
    options = ["--tls-cert", server[0], "--tls-key", server[1], "--tls-client-ca", ca[0]]
    with Daemon(*options, ready=False) as daemon:
        def talk(name, data):
            return pki.talk(daemon.address, pki.context(ca, clients[name]), data)

        ready = wire.request("GET", "/readyz")
        wait_until(lambda: talk("alice", ready).status == 200, 60, "ready")
        for name, count in ("alice", 2), ("R&D lab", 3):
            for _ in range(count):
                assert talk(name, invert_bytes(SMALL, NPY)).status == 200
        seen = metrics.Page(talk("alice", wire.request("GET", "/metrics")).text)
        assert seen.total("invertd_client_inversions_total", client="alice") == 2
        assert seen.total("invertd_client_inversions_total", client="R&D lab") == 3
        assert "<tr><td>R&amp;D lab<td>" in talk("alice", wire.request("GET", "/")).text
