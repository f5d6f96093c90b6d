"""The page that asks a browser for a token."""

import base64
import hashlib
import re

import pytest

from harness import wire
from harness.browser import Browser, Rebinding
from harness.daemon import Daemon
from harness.tokens import bearer, line, write

INFER, METRICS = "token-of-infer", "token-of-metrics"


@pytest.fixture
def guarded(tmp_path):
    write(tmp_path / "tokens", line("a", "infer", INFER) + line("b", "metrics", METRICS))
    with Daemon("--token-file", tmp_path / "tokens", "--allowed-hosts", "evil.example") as daemon:
        yield daemon


def test_a_browser_is_asked_for_a_token(guarded):
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = guarded.get("/", browser)
    assert answer.status == 401 and answer.header("WWW-Authenticate") == "Bearer"
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    page = answer.text
    scripts = re.findall("<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = dict(part.strip().split(" ", 1)
                  for part in answer.header("Content-Security-Policy").split(";"))
    assert policy["script-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["form-action"] == "'none'"
    assert not re.search(r"(src|href)\s*=|https?:|\son\w+=", page)  # all is its own
    assert not re.search("localStorage|sessionStorage|cookie", page)
    assert guarded.get("/", {**browser, **bearer("wrong")}).body == answer.body
    with guarded.connect() as connection:
        connection.send(wire.request("HEAD", "/", None, browser))
        head = connection.read(head_only=True)
        assert (head.status, head.header("Content-Length")) == (401, str(len(answer.body)))

    served = guarded.get("/", {**browser, **bearer(METRICS)})
    assert served.status == 200 and "<h2>Methods</h2>" in served.text


def links(answer):
    assert answer.status == 200
    return set(re.findall('href="([^"]*)"', answer.text))


def test_no_link_leads_to_a_refusal(guarded, tmp_path):
    """Each link works with the roles of who sees the page; metrics alone does not open /v2."""
    write(tmp_path / "two", line("a", "infer,metrics", INFER))
    seen = links(guarded.get("/", bearer(METRICS)))
    assert {"/v1/methods", "/openapi.yaml", "/metrics"} <= seen
    assert {guarded.get(path, bearer(METRICS)).status for path in seen} == {200}
    with Daemon("--token-file", tmp_path / "two") as other:
        more = links(other.get("/", bearer(INFER)))
        assert {"/v2", "/v2/models/stats", "/v2/models/lu"} <= more and seen < more
        assert {other.get(path, bearer(INFER)).status for path in more} == {200}
    with Daemon("--metrics-listen", f"127.0.0.1:{wire.free_port()}") as apart:
        assert links(apart.get("/")) == more - {"/metrics"}


# In a window of the page's own, of the same origin: what a user does, and what is shown.
USER = """
const done = {}, shown = window.open("/");
const until = async (what) => {
    for (let i = 0; i < 400; i++) {
        try { const value = what(); if (value) return value; } catch (error) {}
        await new Promise((good) => setTimeout(good, 50));
    }
    throw new Error("not seen: " + what);
};
const find = (query) => shown.document.querySelector(query);
const enter = (token) => { find("#token").value = token; find("form").requestSubmit(); };
(async () => {
    await until(() => find("#token"));
    enter("wrong");
    done.wrong = await until(() => find("#message").textContent);
    enter("<infer>");
    done.role = await until(() => find("#message").textContent.includes("role metrics"));
    enter("<metrics>");
    await until(() => find("#shown table"));
    done.hidden = find("form").hidden;
    done.left = find("#token").value + find("#message").textContent;
    done.status = find("#shown").textContent;
    done.links = shown.document.querySelectorAll("#shown a").length;
    find('#shown button[value="/v1/methods"]').click();
    done.link = await until(() => find("#shown pre").textContent.includes('"methods"'));
    done.kept = shown.localStorage.length + shown.sessionStorage.length
                + shown.document.cookie.length + shown.location.search.length;
    done.script = shown.document.querySelectorAll("#shown script").length;
    shown.location.reload();
    done.again = await until(() => find("#shown") && !find("#shown *") && !find("form").hidden);
})().catch((error) => { done.failed = String(error); }).then(() =>
    fetch("/report", {method: "POST", body: JSON.stringify(done)}));
"""


def test_the_page_in_a_browser(guarded, tmp_path):
    script = USER.replace("<infer>", INFER).replace("<metrics>", METRICS)
    with Rebinding(guarded, f"<!doctype html><body><script>{script}</script>") as site:
        flags = f"--proxy-server=127.0.0.1:{site.address[1]}", "--disable-popup-blocking"
        with Browser(tmp_path, site.origin + "/page", *flags) as browser:
            done = site.report()
            console = browser.console()
    assert "failed" not in done, (done, console)
    assert "does not know this token" in done["wrong"] and done["role"], done
    assert done["hidden"] and done["left"] == "" and "Methods" in done["status"], done
    assert done["links"] == 0, "a link can be opened in a tab that has no token"
    assert done["link"] and done["kept"] == 0 and done["script"] == 0 and done["again"], done
    assert not [line for line in console if "Content Security Policy" in line]
