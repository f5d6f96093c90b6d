"""Chromium without a window, and a site whose pages report back what they could do.

The browser reaches loopback alone: any other name is unknown to it, but for those that its proxy
serves (`Rebinding`).
"""

import asyncio
import http.client
import http.server
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import urllib.request

import pytest

from .daemon import wait_until
from .settings import scaled_timeout

# Its own sandbox is off, as containers and root cannot have it, and it loads what tests wrote.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--enable-logging=stderr",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class _Handler(http.server.BaseHTTPRequestHandler):
    """Gives the site's one page, and takes its report."""

    def log_message(self, *_):
        pass

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        if self.path.endswith("/page"):
            self.answer(200, [("Content-Type", "text/html; charset=utf-8")], self.server.page)
        else:
            self.elsewhere()

    def do_POST(self):
        if self.path.endswith("/report"):
            self.server.reports.put(json.loads(self.body()))
            self.answer(204, [], b"")
        else:
            self.elsewhere()

    def elsewhere(self):
        self.answer(404, [], b"")

    def do_OPTIONS(self):
        self.elsewhere()

    do_HEAD = do_DELETE = do_OPTIONS


class Site:
    """Serves a page on a free port of loopback, between `with` and its end."""

    handler = _Handler

    def __init__(self, page=""):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.server.daemon_threads = True
        self.server.reports = queue.Queue()
        self.address = self.server.server_address
        self.origin = f"http://127.0.0.1:{self.address[1]}"
        self.set_page(page)

    def set_page(self, page):
        self.server.page = page.encode()

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def report(self):
        """What the page reports, once it does."""
        return self.server.reports.get(timeout=scaled_timeout(30))


class _Rebound(_Handler):
    """As a proxy: the page and its report are the site's, all else goes to the daemon as it is."""

    def elsewhere(self):
        there = http.client.HTTPConnection(*self.server.daemon, timeout=scaled_timeout(10))
        path = re.sub(r"^http://[^/]*", "", self.path)
        there.request(self.command, path, self.body() or None, dict(self.headers.items()))
        answer = there.getresponse()
        body = answer.read()
        skipped = ("content-length", "connection", "date")
        self.answer(answer.status, [(name, value) for name, value in answer.getheaders()
                                    if name.lower() not in skipped], body)
        there.close()


class Rebinding(Site):
    """A browser that has this as its proxy sees what DNS rebinding shows: one name and port, which
    is the attacker's for /page and /report, and the daemon's for the rest."""

    handler = _Rebound

    def __init__(self, daemon, page=""):
        super().__init__(page)
        self.server.daemon = daemon.address
        self.origin = f"http://evil.example:{daemon.address[1]}"


class Browser:
    """Shows one address, between `with` and its end; `console` has what its pages logged."""

    def __init__(self, folder, url, *flags):
        self.program = shutil.which("chromium")
        self.said = folder / "browser"
        self.command = [self.program, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, url]

    def __enter__(self):
        if self.program is None:
            pytest.fail("chromium is missing: apt-get install chromium, or scripts/deps test",
                        pytrace=False)
        with self.said.open("wb") as said:
            # A group of its own, because it has children.
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=said,
                                            stderr=said, start_new_session=True)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(scaled_timeout(5))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def console(self):
        """A line for each message of a page's console so far."""
        text = self.said.read_text("utf-8", "replace")
        return re.findall(r":CONSOLE[:(]\d+\)?\] (.*)", text)


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
