"""The live page in a real browser: its figures move, axe finds nothing against it, and it needs
nothing from elsewhere."""

import asyncio
import base64
import hashlib
import json
import re
import shutil

import numpy as np
import pytest

from harness import codec, later
from harness.browser import Browser, Tab, debugging_address
from harness.daemon import Daemon
from harness.settings import ROOT

AXE = """axe.run().then((found) => JSON.stringify(found.violations.map((violation) =>
    [violation.id, violation.nodes.map((node) => node.html)])))"""


def axe_source():
    """axe-core as a package of PyPI carries it; None: it is not installed."""
    files = list((ROOT / ".venv" / "axe").rglob("axe.min.js"))
    return files[0].read_text("utf-8") if files else None


async def visit(address, url, axe):
    """What was seen, for each width and colour scheme."""
    aiohttp = pytest.importorskip("aiohttp")
    seen = []
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(address, max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Log", "Runtime", "Page"):
                await tab.command(f"{domain}.enable")
            for width, scheme in ((1280, "light"), (360, "dark")):
                await tab.command("Emulation.setDeviceMetricsOverride", width=width, height=900,
                                  deviceScaleFactor=1, mobile=False)
                await tab.command("Emulation.setEmulatedMedia", features=[
                    {"name": "prefers-color-scheme", "value": scheme}])
                await tab.command("Page.navigate", url=url)
                await tab.until("document.getElementById('state')?.textContent.startsWith('Live')")
                await tab.until("document.querySelector('polyline')?.points.length > 1")
                await tab.value(axe)
                seen.append({
                    "violations": json.loads(await tab.value(AXE)),
                    "width": await tab.value("document.documentElement.scrollWidth"),
                    "within": width,
                    "good": await tab.until("+document.querySelector("
                                            "'[data-at=\"rates.inversions.minute\"]').textContent"),
                    "devices": await tab.value("document.querySelector('#devices').innerText"),
                    "jobs": await tab.until("document.querySelector('#jobs tbody')?.innerText"),
                    "left": await tab.until("/some .* left/.test(document.querySelector('#jobs')"
                                            ".innerText)"),
                    "bars": await tab.value("document.querySelectorAll('#jobs progress').length"),
                    "complaints": tab.complaints(),
                })
    return seen


@pytest.mark.faults
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_in_a_browser(tmp_path):
    """With jobs: one that has ended, one that failed, and one that runs for some 40 s."""
    axe = axe_source()
    if axe is None:
        pytest.skip("axe-core is not installed: tests/requirements-axe.txt")
    npy = {"Content-Type": codec.NPY}
    with Daemon("--batch-matrices-max", "1", "--in-flight", "1", "--threads", "1",
                "--batch-deadline", "60s", fault="slow:200000") as daemon:
        for _ in range(3):
            assert daemon.post("/v1/invert", codec.npy(np.eye(3)), npy).status == 200
        for a in (2 * np.eye(3), np.ones((3, 3))):
            later.ended(daemon, later.accepted(daemon, codec.npy(a), npy)["id"])
        running = later.accepted(daemon, codec.npy(np.stack(200 * [np.eye(40)])), npy)["id"]
        with Browser(tmp_path, "about:blank", "--remote-debugging-port=0") as browser:
            address = debugging_address(browser)
            for seen in asyncio.run(visit(address, f"http://{daemon.url}/", axe)):
                assert seen["violations"] == [], seen
                assert seen["width"] <= seen["within"], seen
                assert seen["good"] > 0 and "up" in seen["devices"], seen
                assert seen["bars"] == 1 and "200 of order 40" in seen["jobs"], seen
                assert "successful" in seen["jobs"] and "failed" in seen["jobs"], seen
                assert seen["complaints"] == [], seen
        later.delete(daemon, running)


def test_without_scripts(daemon):
    """The figures are there, and style and script run by their digests alone."""
    answer = daemon.get("/")
    policy = dict(part.strip().split(" ", 1)
                  for part in answer.header("Content-Security-Policy").split(";"))
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.S)
        assert len(texts) == 1
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    page = re.sub("<(script|style)>.*?</\\1>", "", answer.text, flags=re.S)
    assert re.search(r'data-at="arena.bytes" data-as="bytes">[\d.]+ [KMG]iB<', page)
    assert re.search(r'<th scope="row">host<td>up<td>\w+', page)
    assert not re.search(r"\sstyle=|\son\w+=|https?:", page)
