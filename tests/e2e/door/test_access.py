"""Tokens and roles: who may use which route, and the token file read anew."""

import contextlib
import hashlib
import os
import re
import signal
import threading
import time

import numpy as np
import pytest
import yaml

from harness import metrics, pki, wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once, wait_until
from harness.settings import scaled_timeout
from harness.tokens import bearer, line, with_token, write

ROLES = ["infer", "jobs", "metrics", "admin"]
TOKENS = {role: f"token-of-{role}" for role in ROLES}
OPEN, ANY, INFER, METRICS = set(), set(ROLES), {"infer", "admin"}, {"metrics", "admin"}
JOBS, JOB = {"jobs", "admin"}, "/v1/jobs/" + 32 * "0"
MODEL, VERSION = "/v2/models/lu", "/v2/models/lu/versions/1"
# Verb, path: the roles that it takes.
ROUTES = {
    ("POST", "/v1/invert"): INFER,
    ("GET", "/v1/jobs"): JOBS,
    ("GET", JOB): JOBS,
    ("DELETE", JOB): JOBS,
    ("GET", f"{JOB}/result"): JOBS,
    ("GET", f"{JOB}/events"): JOBS,
    ("POST", f"{MODEL}/infer"): INFER,
    ("POST", f"{VERSION}/infer"): INFER,
    ("POST", "/v2/repository/index"): INFER,
    ("GET", "/v2"): INFER,
    ("GET", "/v2/models/stats"): INFER,
    ("GET", MODEL): INFER,
    ("GET", f"{MODEL}/ready"): INFER,
    ("GET", f"{MODEL}/config"): INFER,
    ("GET", f"{MODEL}/stats"): INFER,
    ("GET", VERSION): INFER,
    ("GET", f"{VERSION}/ready"): INFER,
    ("GET", f"{VERSION}/config"): INFER,
    ("GET", f"{VERSION}/stats"): INFER,
    ("GET", "/metrics"): METRICS,
    ("GET", "/"): METRICS,
    ("GET", "/v1/status"): METRICS,
    ("GET", "/v1/events"): METRICS,
    ("GET", "/v1/methods"): ANY,
    ("GET", "/openapi.yaml"): ANY,
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/v2/health/live"): OPEN,
    ("GET", "/v2/health/ready"): OPEN,
}
BINARY = {"A": np.eye(3)[None]}
REQUEST = infer_bytes("lu", v2_binary, BINARY)


ALL = "".join(line(f"the-{role}", role, TOKENS[role]) for role in ROLES)


def ask(daemon, verb, path, token, **fields):
    body = b"" if verb == "POST" else None
    headers = {**bearer(token), **{k.replace("_", "-"): v for k, v in fields.items()}}
    with daemon.connect() as connection:
        connection.send(wire.request(verb, path, body, headers))
        has_no_end = path == "/v1/events" and token in (TOKENS["metrics"], TOKENS["admin"])
        return connection.read(head_only=verb == "HEAD" or has_no_end)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def guarded(folder):
    write(folder / "tokens", ALL)
    with Daemon("--token-file", folder / "tokens", "--access-log", folder / "log",
                "--cors-origins", "https://app.example") as daemon:
        yield daemon


def messages(daemon, start):
    return [entry for entry in daemon.log_lines() if entry.get("message", "").startswith(start)]


def hang_up(daemon, start="tokens reloaded"):
    before = len(messages(daemon, start))
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(messages(daemon, start)) > before, 10, start)
    return messages(daemon, start)[-1]


# ---- Who may use what ----


def test_every_route_of_the_description_is_here(guarded):
    described = yaml.safe_load(ask(guarded, "GET", "/openapi.yaml", TOKENS["jobs"]).text)["paths"]
    known = {path.replace(JOB, "/v1/jobs/{id}").replace("/lu", "/{model}").replace(
        "/versions/1", "/versions/{version}") for _, path in ROUTES}
    assert set(described) <= known


@pytest.mark.parametrize("verb, path", ROUTES)
def test_roles(guarded, verb, path):
    needed = ROUTES[verb, path]
    for token in None, "wrong", TOKENS["admin"] + "x", TOKENS["infer"][:-1]:
        answer = ask(guarded, verb, path, token)
        if needed is OPEN:
            assert answer.status == 200, answer
            continue
        assert answer.status == 401, (token, answer)
        assert answer.headers("WWW-Authenticate") == ["Bearer"]
        assert answer.body == ask(guarded, verb, path, None).body  # no hint
    for role in ROLES:
        answer = ask(guarded, verb, path, TOKENS[role])
        if needed is OPEN or role in needed:
            assert answer.status not in (401, 403), (role, answer)
        else:
            assert answer.status == 403, (role, answer)
            assert next(role for role in ROLES if role in needed) in answer.text
            assert answer.header("WWW-Authenticate") is None


@pytest.mark.parametrize("verb, path", ROUTES)
def test_other_verbs_need_the_token_too(guarded, verb, path):
    needed = ROUTES[verb, path]
    for other in "HEAD", "OPTIONS", "DELETE", "PATCH":
        status = ask(guarded, other, path, None).status
        assert status == 401 if needed is not OPEN else status in (200, 204, 405), other
        known = (404,) if path.startswith(JOB) else ()
        assert ask(guarded, other, path, TOKENS["admin"]).status in (200, 204, 405, *known)


def test_the_right_role_is_served(guarded):
    assert guarded.talk(with_token(REQUEST, TOKENS["infer"])).status == 200
    matrix = b'{"matrix":[[4,7],[2,6]]}'
    answer = guarded.talk(wire.request("POST", "/v1/invert", matrix, bearer(TOKENS["admin"])))
    assert answer.json()["inverse"][0] == pytest.approx([0.6, -0.7])
    assert "invertd_requests_total" in ask(guarded, "GET", "/metrics", TOKENS["metrics"]).text


def test_paths_that_do_not_exist(guarded):
    for path in "/nowhere", "/v2/", "/v2/models/lu/", "/v1/job", "*":
        for verb in "GET", "POST", "OPTIONS":
            assert ask(guarded, verb, path, None).status == 401, (verb, path)
            assert ask(guarded, verb, path, "wrong").status == 401, (verb, path)
    for role in ROLES:
        assert ask(guarded, "GET", "/nowhere", TOKENS[role]).status == 404
        assert ask(guarded, "OPTIONS", "*", TOKENS[role]).status == 204
    assert ask(guarded, "GET", "/v2/models/nothing", TOKENS["infer"]).status == 404


@pytest.mark.parametrize("value, status", [
    ("Bearer {}", 200), ("bearer {}", 200), ("BEARER   {}  ", 200), ("Bearer", 401),
    ("Bearer ", 401), ("{}", 401), ("Basic {}", 401), ("Bearer {} x", 401), ("Bearer {}x", 401),
    ("Bearer\t{}", 401), ("Bearer " + "x" * 9000, 401)])
def test_the_field(guarded, value, status):
    given = value.format(TOKENS["infer"])
    assert guarded.get("/v2", {"Authorization": given}).status == status
    assert guarded.get("/v2", {"authorization": given}).status == status


def test_two_tokens_are_none(guarded):
    head = with_token(with_token(wire.request("GET", "/v2"), TOKENS["infer"]), TOKENS["infer"])
    assert guarded.talk(head).status == 401


def test_errors_are_in_the_format_of_the_path(guarded):
    answer = ask(guarded, "GET", "/v1/methods", None)
    assert answer.header("Content-Type") == "application/problem+json"
    assert answer.json()["type"] == "urn:invertd:problem:unauthorized"
    assert list(ask(guarded, "GET", "/v2", None).json()) == ["error"]
    assert ask(guarded, "GET", "/metrics", TOKENS["infer"]).json()["status"] == 403


def test_others_get_a_problem_document(guarded):
    for path, accept in ("/", "*/*"), ("/", "application/json"), ("/v1/methods", "text/html"):
        answer = guarded.get(path, {"Accept": accept})
        assert answer.status == 401 and answer.json()["status"] == 401
    assert guarded.get("/nowhere", {"Accept": "text/html"}).json()["status"] == 401
    answer = guarded.get("/", {"Accept": "text/html", **bearer(TOKENS["infer"])})
    assert answer.status == 403 and "metrics" in answer.json()["detail"]


def test_refusals_are_counted(guarded):
    def count(reason):
        page = metrics.Page(ask(guarded, "GET", "/metrics", TOKENS["metrics"]).text)
        return page.total("invertd_rejected_total", reason=reason)

    before = count("unauthorized"), count("forbidden")
    for token in None, "wrong", TOKENS["jobs"]:
        ask(guarded, "GET", "/v2", token)
    assert (count("unauthorized"), count("forbidden")) == (before[0] + 2, before[1] + 1)


def test_who_it_was_is_logged_and_no_token(guarded, folder):
    guarded.talk(with_token(REQUEST, TOKENS["infer"]))
    ask(guarded, "GET", "/v2", "guessed")
    wait_until(lambda: '"client":"the-infer"' in (folder / "log").read_text(), 10, "the name")
    wait_until(lambda: '"client":"127.0.0.1"' in (folder / "log").read_text(), 10, "an address")
    for text in (folder / "log").read_text(), guarded.stderr():
        assert "token-of" not in text and "guessed" not in text and "sha256" not in text


# ---- What comes before, and needs none ----


def test_pages_of_other_sites(guarded):
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = guarded.talk(wire.request("OPTIONS", "/v1/invert", None, preflight))
    assert answer.status == 204 and "Authorization" in answer.header("Access-Control-Allow-Headers")
    answer = guarded.get("/v2", {"Origin": "https://app.example"})
    assert answer.status == 401
    assert answer.header("Access-Control-Allow-Origin") == "https://app.example"
    preflight["Origin"] = "https://evil.example"
    assert guarded.talk(wire.request("OPTIONS", "/v1/invert", None, preflight)).status == 403
    assert guarded.talk(wire.request("GET", "/v2", host="evil.example")).status == 421


def test_what_is_no_request_needs_no_token(guarded):
    rows = [(b"GET /v2 HTTP/1.1\r\n\r\n", 400),
            (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
            (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 80 + b"\r\n", 431),
            (b"GET /v2 HTTP/2.5\r\nHost: localhost\r\n\r\n", 505),
            (b"GET /%6civez HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
            (b"POST /v1/invert HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
             411)]
    for data, status in rows:
        assert guarded.talk(data).status == status, data


# ---- Refusals and bodies ----


def refused(token):
    return 403 if token == TOKENS["metrics"] else 401


@pytest.mark.parametrize("token", [None, "wrong", TOKENS["metrics"]])
def test_a_client_that_waits_sends_no_body(guarded, token):
    fields = {**bearer(token), "Expect": "100-continue", "Content-Length": "200000000"}
    with guarded.connect() as connection:
        connection.send(wire.request("POST", "/v1/invert", b"", fields))
        assert connection.read().status == refused(token)
        assert connection.ended(scaled_timeout(10)) and connection.buffer == b""


@pytest.mark.parametrize("token", [None, "wrong", TOKENS["metrics"]])
def test_a_body_is_not_taken_for_a_request(guarded, token):
    hidden = with_token(wire.request("GET", "/v2"), TOKENS["infer"])
    with guarded.connect() as connection:
        for _ in range(3):
            connection.send(wire.request("POST", "/v1/invert", hidden * 20, bearer(token)))
            assert connection.read().status == refused(token)
        answer = connection.exchange(with_token(REQUEST, TOKENS["infer"]))
        assert answer.status == 200 and connection.buffer == b""


def test_a_long_body_is_neither_kept_nor_waited_for(guarded):
    before = guarded.resident_bytes()
    held = []
    for _ in range(20):
        connection = guarded.connect()
        head = wire.request("POST", "/v1/invert", None, {"Content-Length": "200000000"})
        connection.send(head)
        held.append(connection)
    for connection in held:
        assert connection.read().status == 401  # while all of the body is missing
        connection.close()
    assert guarded.resident_bytes() < before + (32 << 20)


def test_a_body_too_long_for_its_path(guarded):
    fields = {**bearer(TOKENS["infer"]), "Content-Length": "200000000"}
    assert guarded.talk(wire.request("GET", "/v2", b"", fields)).status == 413
    fields = {"Content-Length": "200000000"}
    assert guarded.talk(wire.request("GET", "/v2", b"", fields)).status == 401


# ---- The file read anew ----


def test_clients_come_and_go_under_load(tmp_path):
    """No request of the client that stays is lost or refused."""
    path, over, seen = tmp_path / "tokens", threading.Event(), []
    steady = with_token(REQUEST, "steady")
    write(path, line("steady", "infer", "steady"))

    def load(daemon):
        with daemon.connect() as connection:
            while not over.is_set():
                seen.append(connection.exchange(steady).status)

    with Daemon("--token-file", path, "--token-check", "1h", "--loops", "2") as daemon:
        threads = [threading.Thread(target=load, args=[daemon]) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for i in range(20):
                guest = line("guest", "infer", f"guest-{i}") if i % 2 else ""
                write(path, guest + line("steady", "infer", "steady") + f"# {i}\n")
                assert hang_up(daemon)["clients"] == 1 + i % 2
                status = daemon.talk(with_token(REQUEST, f"guest-{i}")).status
                assert status == (200 if i % 2 else 401)
                assert daemon.talk(with_token(REQUEST, f"guest-{i - 1}")).status == 401
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert len(seen) > 20 and set(seen) == {200}


def test_a_request_keeps_its_client(tmp_path):
    path = tmp_path / "tokens"
    write(path, line("steady", "admin", "steady") + line("guest", "infer", "guest"))
    head, _, body = with_token(REQUEST, "guest").partition(b"\r\n\r\n")
    with Daemon("--token-file", path, "--access-log", "-", "--token-check", "1h") as daemon:
        with daemon.connect() as connection:
            connection.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
            assert connection.read_interim() == 100
            write(path, line("steady", "admin", "steady"))
            hang_up(daemon)
            connection.send(body)
            assert connection.read().status == 200
            wait_until(lambda: '"client":"guest"' in daemon.stderr(), 10, "its name in the log")
            assert connection.exchange(with_token(REQUEST, "guest")).status == 401
            assert connection.exchange(with_token(REQUEST, "steady")).status == 200


def test_the_file_is_looked_at(tmp_path):
    """No signal; a symbolic link that is turned round, as Kubernetes does, and a file changed."""
    link, old, new = tmp_path / "tokens", tmp_path / "old", tmp_path / "new"
    old.write_text(line("a", "admin", "one"))
    new.write_text(line("a", "admin", "two"))
    os.chmod(old, 0o644)
    os.chmod(new, 0o644)
    link.symlink_to(old)
    with Daemon("--token-file", link, "--token-check", "100ms") as daemon:
        assert ask(daemon, "GET", "/v2", "one").status == 200
        (tmp_path / "turned").symlink_to(new)
        os.replace(tmp_path / "turned", link)
        wait_until(lambda: ask(daemon, "GET", "/v2", "two").status == 200, 10, "the new file")
        assert ask(daemon, "GET", "/v2", "one").status == 401
        with new.open("a", encoding="ascii") as file:
            file.write(line("b", "infer", "three"))
        wait_until(lambda: ask(daemon, "GET", "/v2", "three").status == 200, 10, "the line")

        new.write_text("nonsense\n")
        bad = wait_until(lambda: messages(daemon, "tokens not reloaded"), 10, "the log")
        assert f"{link}:1: a line is NAME ROLE" in bad[0]["why"]
        time.sleep(0.5)
        assert len(messages(daemon, "tokens not reloaded")) == 1  # once a change
        link.unlink()
        wait_until(lambda: len(messages(daemon, "tokens not reloaded")) == 2, 10, "the log")
        assert ask(daemon, "GET", "/v2", "three").status == 200
        write(link, line("c", "infer", "four"))
        wait_until(lambda: ask(daemon, "GET", "/v2", "four").status == 200, 10, "the new file")
        assert ask(daemon, "GET", "/v2", "three").status == 401


def test_the_default_interval():
    assert "\ntoken-check = 10s\n" in run_once("--print-config").stdout


def test_a_bad_file_keeps_the_old(tmp_path):
    path = tmp_path / "tokens"
    write(path, line("a", "admin", "one"))
    with Daemon("--token-file", path, "--token-check", "1h") as daemon:
        for text, mode, why in [
                ("", 0o644, "holds no client"),
                (line("a", "root", "two"), 0o644, "the roles are"),
                (line("a", "admin", "two"), 0o646, "others can write the file"),
                (line("a", "admin", "two") * 2, 0o644, "line 1 has the same name")]:
            write(path, text, mode)
            assert why in hang_up(daemon, "tokens not reloaded")["why"]
            assert ask(daemon, "GET", "/v2", "one").status == 200
            assert ask(daemon, "GET", "/v2", "two").status == 401


# ---- At the start ----


@pytest.mark.parametrize("text, mode, why", [
    ("", 0o644, "holds no client"),
    ("a infer\n", 0o644, ":1: a line is NAME ROLE[,ROLE...] sha256:HEX [quota=value ...]"),
    ("# x\n\n" + line("a", "chief", "x"), 0o644, ":3: the roles are infer, jobs, metrics or admin"),
    (line("a!", "infer", "x"), 0o644, ":1: the name takes 1 to 64 letters"),
    (line("a", "infer", "x")[:-9], 0o644, ":1: the third part is sha256: and 64 hexadecimal"),
    (line("a", "infer", "x", "requests=none"), 0o644, "requests= takes a whole number from 1"),
    (line("a", "infer", "x", "bytes=3QB"), 0o644, "bytes= takes a size"),
    (line("a", "infer", "x") + line("b", "infer", "x"), 0o644, ":2: line 1 has the same token"),
    (line("a", "infer", "x"), 0o646, "others can write the file (chmod 0644)"),
])
def test_bad_files_are_refused(tmp_path, text, mode, why):
    path, link = tmp_path / "tokens", tmp_path / "link"
    write(path, text, mode)
    link.symlink_to(path)
    for given in path, link:
        result = run_once("--listen", "127.0.0.1:0", "--token-file", given)
        assert result.returncode == 2 and str(given) in result.stderr
        assert why in result.stderr


def test_other_files_are_refused(tmp_path):
    for given in tmp_path, tmp_path / "none":
        result = run_once("--listen", "127.0.0.1:0", "--token-file", given)
        assert result.returncode == 2 and f'--token-file "{given}"' in result.stderr


def test_protected_mode(tmp_path):
    path = tmp_path / "tokens"
    write(path, ALL)
    result = run_once("--listen", "0.0.0.0:0")
    assert result.returncode == 2
    assert "invertd --listen 0.0.0.0:0 --token-file FILE" in result.stderr
    assert "--new-token" in result.stderr and "--open" in result.stderr
    warning = "tokens cross the network in plain text"
    for more, warned in ([], 1), (["--open"], 0):
        with Daemon("--token-file", path, *more, listen="0.0.0.0:0") as daemon:
            assert len(messages(daemon, warning)) == warned
            assert ask(daemon, "GET", "/v2", None).status == 401
            assert ask(daemon, "GET", "/v2", TOKENS["infer"]).status == 200
    with Daemon("--token-file", path) as daemon:
        assert not messages(daemon, warning)


def test_new_token(tmp_path):
    path, tokens = tmp_path / "tokens", {}
    for arguments in ["a"], ["b.c-d_e@f", "metrics,jobs"], ["c", "admin"]:
        result = run_once("--new-token", *arguments)
        assert result.returncode == 0 and result.stderr == ""
        token, entry = result.stdout.splitlines()
        assert re.fullmatch("[0-9a-f]{64}", token)
        name, roles, digest = entry.split(" ")
        assert [name, roles] == [*arguments, "infer"][:2]
        assert digest == "sha256:" + hashlib.sha256(token.encode()).hexdigest()
        tokens[name] = token
        with path.open("a", encoding="ascii") as file:
            file.write(entry + "\n")
    assert len(set(tokens.values())) == 3
    os.chmod(path, 0o644)
    with Daemon("--token-file", path) as daemon:
        assert [ask(daemon, "GET", "/v2", token).status for token in tokens.values()] == [
            200, 403, 200]
        assert [ask(daemon, "GET", "/metrics", token).status for token in tokens.values()] == [
            403, 200, 200]
    for arguments in [], ["-a"], ["a b"], ["a", "chief"], ["a", "infer", "b"], ["--help"]:
        result = run_once("--new-token", *arguments)
        assert result.returncode == 2 and result.stdout == "", arguments
        assert "--new-token" in result.stderr


# ---- Other doors ----


def test_the_metrics_listener_and_a_unix_socket(tmp_path):
    path, unix = tmp_path / "tokens", tmp_path / "socket"
    write(path, ALL)
    with Daemon("--token-file", path, "--metrics-listen", f"127.0.0.1:{wire.free_port()}",
                "--listen", f"unix:{unix}") as daemon:
        for token, status in (None, 401), ("infer", 403), ("metrics", 200), ("admin", 200):
            data = wire.request("GET", "/metrics", None, bearer(token and TOKENS[token]))
            assert wire.talk(daemon.metrics_address, data).status == status
        assert wire.talk(daemon.metrics_address, wire.request("GET", "/readyz")).status == 200
        data = wire.request("GET", "/v2", None, bearer(TOKENS["infer"]))
        assert wire.talk(daemon.metrics_address, data).status == 404
        assert wire.talk(str(unix), data).status == 200
        assert wire.talk(str(unix), wire.request("GET", "/v2")).status == 401


@pytest.mark.skipif(not os.path.exists("/usr/bin/openssl"), reason="openssl is not installed")
def test_with_certificates(tmp_path):
    ca = pki.authority(tmp_path)
    server = pki.issue(tmp_path, ca, "server")
    alice = pki.issue(tmp_path, ca, "alice", usage="clientAuth")
    path = tmp_path / "tokens"
    write(path, ALL)
    nameless, named = pki.context(ca), pki.context(ca, alice)
    ready, tls = wire.request("GET", "/readyz"), ["--tls-cert", server[0], "--tls-key", server[1]]

    def statuses(daemon, context):
        return [pki.talk(daemon.address, context,
                         wire.request("GET", target, None, bearer(token and TOKENS[token]))).status
                for target, token in [("/v2", None), ("/v2", "infer"), ("/metrics", "infer"),
                                      ("/metrics", "metrics"), ("/nowhere", None)]]

    @contextlib.contextmanager
    def serving(context, *more):
        with Daemon(*tls, *more, "--access-log", "-", ready=False) as daemon:
            wait_until(lambda: pki.talk(daemon.address, context, ready).status == 200, 60, "ready")
            yield daemon

    with serving(nameless, "--token-file", path) as daemon:
        assert statuses(daemon, nameless) == [401, 200, 403, 200, 401]
    with serving(named, "--tls-client-ca", ca[0]) as daemon:
        assert statuses(daemon, named) == [200, 200, 200, 200, 404]
        wait_until(lambda: '"client":"alice"' in daemon.stderr(), 10, "its name in the log")
    with serving(named, "--tls-client-ca", ca[0], "--token-file", path) as daemon:
        assert statuses(daemon, named) == [401, 200, 403, 200, 401]
        wait_until(lambda: '"client":"the-infer"' in daemon.stderr(), 10, "the token's name")
        with pytest.raises((OSError, wire.Gone)):
            statuses(daemon, nameless)
