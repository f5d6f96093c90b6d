"""The live page in a real browser: its figures move, axe finds nothing against it, and it needs
nothing from elsewhere."""

import asyncio
import base64
import hashlib
import json
import re
import shutil
import urllib.request

import pytest

from harness import codec
from harness.browser import Browser
from harness.daemon import Daemon, wait_until
from harness.settings import ROOT, scaled_timeout

AXE = """axe.run().then((found) => JSON.stringify(found.violations.map((violation) =>
    [violation.id, violation.nodes.map((node) => node.html)])))"""


def axe_source():
    """axe-core as a package of PyPI carries it; None: it is not installed."""
    files = list((ROOT / ".venv" / "axe").rglob("axe.min.js"))
    return files[0].read_text("utf-8") if files else None


class Tab:
    """A tab by Chromium's own protocol, which no policy of the page keeps out."""

    def __init__(self, socket):
        self.socket, self.sent, self.heard = socket, 0, []

    async def command(self, method, **parameters):
        self.sent += 1
        await self.socket.send_json({"id": self.sent, "method": method, "params": parameters})
        while True:
            said = json.loads((await self.socket.receive(scaled_timeout(20))).data)
            if said.get("id") == self.sent:
                return said["result"]
            self.heard.append(said)

    async def value(self, expression):
        result = await self.command("Runtime.evaluate", expression=expression, awaitPromise=True,
                                    returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression):
        for _ in range(int(scaled_timeout(15) * 10)):
            value = await self.value(expression)
            if value:
                return value
            await asyncio.sleep(0.1)
        raise AssertionError(f"not seen: {expression}")

    def complaints(self):
        return [said for said in self.heard if said["method"] == "Runtime.exceptionThrown"
                or (said["method"] == "Log.entryAdded"
                    and "favicon" not in json.dumps(said))]


def debugging_address(browser):
    """Where the browser listens, as it says itself."""
    found = wait_until(lambda: re.search(r"DevTools listening on ws://([\d.:]+)/",
                                         browser.said.read_text("utf-8", "replace")),
                       30, "the browser's address")
    with urllib.request.urlopen(f"http://{found[1]}/json") as answer:
        tabs = json.load(answer)
    return [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"][0]


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
                    "complaints": tab.complaints(),
                })
    return seen


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_in_a_browser(tmp_path):
    axe = axe_source()
    if axe is None:
        pytest.skip("axe-core is not installed: tests/requirements-axe.txt")
    with Daemon() as daemon:
        for _ in range(3):
            assert daemon.post("/v1/invert", codec.npy(codec.np.eye(3)),
                               {"Content-Type": "application/x-npy"}).status == 200
        with Browser(tmp_path, "about:blank", "--remote-debugging-port=0") as browser:
            address = debugging_address(browser)
            for seen in asyncio.run(visit(address, f"http://{daemon.url}/", axe)):
                assert seen["violations"] == [], seen
                assert seen["width"] <= seen["within"], seen
                assert seen["good"] > 0 and "up" in seen["devices"], seen
                assert seen["complaints"] == [], seen


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
