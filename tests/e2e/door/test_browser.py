"""What pages can do in a real browser: those of other sites neither read nor post, whichever way
they try, nor under a name that was pointed at the daemon; those of listed sites do both; and the
daemon's own page keeps its own Content-Security-Policy, and cannot be framed.

Judged by what the pages report, by the daemon's access log and by what it has inverted.
"""

import collections
import json
import re

import pytest

from harness.browser import Browser, Rebinding, Site
from harness.daemon import Daemon, wait_until

# Each try gives "read: ..." when the page got at an answer's content.
TRIES = r"""
const at = "<daemon>", body = '{"matrix":[[4,7],[2,6]]}', done = {};
const wait = (what) => new Promise((good, bad) => {
    what(good, bad); setTimeout(() => bad("no event"), 5000); });
const ask = async (path, options) => {
    const answer = await fetch(at + path, options);
    if (answer.type === "opaque") return "opaque";
    return "read: " + answer.status + " " + (await answer.text()).slice(0, 60);
};
const post = (path, type, options) => ask(path, {
    method: "POST", headers: {"Content-Type": type}, body, ...options});
const include = (tag, name, path, rest) => wait((good, bad) => {
    const element = document.createElement(tag);
    element.onload = () => good("included");
    element.onerror = () => bad("not included");
    Object.assign(element, rest, {[name]: at + path});
    document.body.append(element);
});
const submit = (type) => wait((good) => {
    const frame = document.createElement("iframe"), form = document.createElement("form");
    frame.name = "frame" + Math.random();
    document.body.append(frame, form);
    Object.assign(form, {method: "POST", action: at + "/v1/invert", enctype: type,
                         target: frame.name});
    form.innerHTML = "<input name='{\"matrix\":[[4,7],[2,6]],\"a\":\"' value='\"}'>";
    frame.onload = () => { try { good("read: " + frame.contentDocument.body.textContent); }
                           catch (error) { good("loaded"); } };
    form.submit();
});
const tries = {
    "get": () => ask("/metrics"),
    "get of an error": () => ask("/nowhere"),
    "get without cors": () => ask("/metrics", {mode: "no-cors"}),
    "get with a field": () => ask("/v1/methods", {headers: {"X-Request-Id": "page"}}),
    "head": () => ask("/v1/methods", {method: "HEAD"}),
    "post of text": () => post("/v1/invert", "text/plain"),
    "post of a form's type": () => post("/v1/invert", "application/x-www-form-urlencoded"),
    "post without cors": () => post("/v1/invert", "text/plain", {mode: "no-cors"}),
    "post that survives the page": () => post("/v1/invert", "text/plain",
                                              {mode: "no-cors", keepalive: true}),
    "post with a preflight": () => post("/v1/invert", "application/json"),
    "post of v2": () => ask("/v2/models/lu/infer", {
        method: "POST", headers: {"Inference-Header-Content-Length": "0"},
        body: new Float64Array([2])}),
    "delete": () => ask("/v1/methods", {method: "DELETE"}),
    "xhr": () => wait((good, bad) => {
        const request = new XMLHttpRequest();
        request.onload = () => good("read: " + request.responseText.slice(0, 60));
        request.onerror = () => bad("error");
        request.open("POST", at + "/v1/invert");
        request.withCredentials = true;
        request.send(body);
    }),
    "beacon": async () => navigator.sendBeacon(at + "/v1/invert", body) ? "sent" : "not sent",
    "form": () => submit("application/x-www-form-urlencoded"),
    "form of text": () => submit("text/plain"),
    "form of parts": () => submit("multipart/form-data"),
    "events": () => wait((good, bad) => {
        const source = new EventSource(at + "/v1/events");
        source.onmessage = (event) => good("read: " + event.data);
        source.onopen = () => good("read: open");
        source.onerror = () => { source.close(); bad("error"); };
    }),
    "web socket": () => wait((good, bad) => {
        const socket = new WebSocket(at.replace("http", "ws") + "/v1/events");
        socket.onopen = () => good("read: open");
        socket.onerror = () => bad("error");
    }),
    "image": () => include("img", "src", "/metrics"),
    "script": () => include("script", "src", "/v1/methods"),
    "module": () => include("script", "src", "/v1/methods", {type: "module"}),
    "style": () => include("link", "href", "/metrics", {rel: "stylesheet"}),
    "frame": () => wait((good) => {
        const frame = document.createElement("iframe");
        frame.onload = () => { try { good("read: " + frame.contentDocument.body.textContent); }
                               catch (error) { good("loaded"); } };
        frame.src = at + "/";
        document.body.append(frame);
    }),
};
(async () => {
    for (const [name, go] of Object.entries(tries))
        done[name] = await go().catch((error) => "failed: " + error);
    await fetch("/report", {method: "POST", body: JSON.stringify(done)});
})();
"""
# What a page of a listed site does.
LISTED = r"""
(async () => {
    const done = {}, at = "<daemon>";
    const got = await fetch(at + "/v1/methods");
    done.get = (await got.json()).methods.map((method) => method.name);
    const type = {"Content-Type": "application/json"}, body = '{"matrix":[[4,7],[2,6]]}';
    const answer = await fetch(at + "/v1/invert", {method: "POST", headers: type, body});
    done.post = await answer.json();
    done.field = answer.headers.get("Invertd-Method");
    const raw = await fetch(at + "/v2/models/lu/infer", {
        method: "POST", headers: {"Inference-Header-Content-Length": "0"},
        body: new Float64Array([2])});
    const data = await raw.arrayBuffer();
    const skipped = Number(raw.headers.get("Inference-Header-Content-Length"));
    done.raw = new Float64Array(data.slice(skipped, skipped + 8))[0];
    done.error = (await fetch(at + "/nowhere")).status;
    return done;
})().catch((error) => ({failed: String(error)})).then((done) =>
    fetch("/report", {method: "POST", body: JSON.stringify(done)}));
"""


def page(script, daemon):
    script = script.replace("<daemon>", daemon)
    return f"<!doctype html><title>page</title><body><script>{script}</script>"


def inversions(daemon):
    return daemon.metrics().total("invertd_inversions_total")


def asked(log):
    """{(route, status): how often} of an access log."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return collections.Counter((line["route"], line["status"]) for line in lines)


@pytest.fixture
def logged(tmp_path):
    path = tmp_path / "access"
    with Daemon("--access-log", path) as daemon:
        yield daemon, path


def check_strangers_report(done):
    assert len(done) == len(re.findall(r'^    "', TRIES, re.M)) >= 24, done
    got = {name: what for name, what in done.items() if what.startswith("read")}
    assert not got, got
    for name in ("get", "post of text", "post with a preflight", "post of v2", "xhr", "events",
                 "web socket", "image", "script", "module"):
        assert done[name].startswith("failed"), (name, done[name])


def test_pages_of_other_sites(logged, tmp_path):
    daemon, log = logged
    before = inversions(daemon)
    with Site() as site:
        site.set_page(page(TRIES, f"http://{daemon.url}"))
        with Browser(tmp_path, site.origin + "/page") as browser:
            check_strangers_report(site.report())
            wait_until(lambda: any("frame-ancestors" in line for line in browser.console()), 10,
                       "a word on the frame")
    assert inversions(daemon) == before
    daemon.stop()
    seen = asked(log)
    # What is not refused is what any page may include, unread, and the requests of this test.
    assert {route for route, status in seen if status != 403} <= {
        "/metrics", "/v1/methods", "/", "/v2/health/ready"}, seen
    assert seen["other", 403] >= 19, seen


def test_a_name_that_is_pointed_at_the_daemon(logged, tmp_path):
    """The page and the daemon are of one origin then, and only Host says that it is not meant."""
    daemon, log = logged
    before = inversions(daemon)
    with Rebinding(daemon) as site:
        site.set_page(page(TRIES, site.origin))
        proxy = f"--proxy-server=127.0.0.1:{site.address[1]}"
        with Browser(tmp_path, site.origin + "/page", proxy):
            done = site.report()
    # It reads the refusals, as they are of its own origin, and nothing else.
    assert done["get"].startswith("read: 421"), done
    assert done["post with a preflight"].startswith("read: 421"), done
    read = [what for what in done.values() if what.startswith("read: ")]
    assert all(what.startswith("read: 421") or "misdirected" in what for what in read), read
    assert inversions(daemon) == before
    daemon.stop()
    statuses = {status for (route, status), _ in asked(log).items()
                if route not in ("/v2/health/ready", "/metrics")}
    assert statuses == {421}, asked(log)


def test_pages_of_listed_sites(tmp_path):
    with Site() as site, Daemon("--cors-origins", site.origin) as daemon:
        site.set_page(page(LISTED, f"http://{daemon.url}"))
        with Browser(tmp_path, site.origin + "/page"):
            done = site.report()
    assert "lu" in done["get"] and done["raw"] == 0.5 and done["error"] == 404, done
    assert done["post"]["info"] == 0 and done["field"] == done["post"]["method"], done
    assert done["post"]["inverse"][0][0] == pytest.approx(0.6), done


def test_the_own_page(daemon, tmp_path):
    """It is shown, and nothing on it is against its own policy."""
    with Browser(tmp_path, f"http://{daemon.url}/", "--dump-dom") as browser:
        browser.process.wait(30)
    shown = browser.said.read_text("utf-8", "replace")
    assert "<title>invertd</title>" in shown, shown
    assert not [line for line in browser.console() if "Content Security Policy" in line]


def test_a_breach_of_a_policy_is_noticed(tmp_path):
    """The test above would see it."""
    policy = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""
    with Site(f"{policy}<script>1</script>") as site:
        with Browser(tmp_path, site.origin + "/page", "--dump-dom") as browser:
            browser.process.wait(30)
    assert [line for line in browser.console() if "Content Security Policy" in line]
