"""Who may come in: protected mode, the Host and Origin of requests, escapes in paths."""

import numpy as np
import pytest

from harness import wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, run_once

HEALTH = ["/livez", "/readyz", "/v2/health/live", "/v2/health/ready"]


@pytest.fixture(scope="module")
def daemon():
    with Daemon("--allowed-hosts", "gate.example,other.example",
                "--cors-origins", "https://app.example") as one:
        yield one


def ask(daemon, path, *fields, host="localhost", verb="GET", body=b""):
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *fields]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return daemon.talk(head.encode() + body)


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:8000", 200),
    ("gate.example", 200), ("OTHER.example:80", 200), ("evil.example", 421),
    ("gate.example.evil.example", 421), ("10.0.0.1", 421), ("", 421)])
def test_hosts_on_loopback(daemon, host, status):
    for path in "/", "/v1/methods", "/metrics", "/v2":
        assert ask(daemon, path, host=host).status == status, path
    answer = ask(daemon, "/nowhere", host=host)
    assert answer.status == (404 if status == 200 else 421), answer
    for path in HEALTH:
        assert ask(daemon, path, host=host).status == 200, path


def test_errors_are_in_the_format_of_the_path(daemon):
    answer = ask(daemon, "/v1/methods", host="evil.example")
    assert answer.json()["type"] == "urn:invertd:problem:misdirected-request"
    assert "--allowed-hosts" in answer.json()["detail"]
    assert "evil" not in answer.text
    assert list(ask(daemon, "/v2", host="evil.example").json()) == ["error"]


def test_old_clients_name_no_host(daemon):
    assert daemon.talk(b"GET /v2 HTTP/1.0\r\n\r\n").status == 200


def test_absolute_target_counts_instead_of_the_host(daemon):
    assert ask(daemon, "http://evil.example/v2").status == 421
    assert ask(daemon, "http://localhost/v2", host="evil.example").status == 200


def test_a_unix_socket_serves_any_host(tmp_path):
    path = tmp_path / "socket"
    with Daemon(listen=f"unix:{path}"):
        answer = wire.talk(str(path), b"GET /v2 HTTP/1.1\r\nHost: any.example\r\n\r\n")
        assert answer.status == 200, answer


@pytest.mark.parametrize("fields, status", [
    ([], 200),
    (["Origin: http://localhost"], 200),
    (["Origin: https://localhost"], 200),
    (["Origin: http://localhost:9"], 403),
    (["Origin: http://evil.example"], 403),
    (["Origin: null"], 403),
    (["Sec-Fetch-Site: same-origin"], 200),
    (["Sec-Fetch-Site: none"], 200),
    (["Sec-Fetch-Site: cross-site"], 403),
    (["Sec-Fetch-Site: same-site"], 403),
])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data"])
def test_pages_of_other_sites_cannot_post(daemon, fields, status, kind):
    body = b'{"matrix":[[4,7],[2,6]]}'
    answer = ask(daemon, "/v1/invert", f"Content-Type: {kind}", *fields, verb="POST", body=body)
    if status == 200 and kind != "application/json":
        status = 415
    assert answer.status == status, answer


def test_pages_of_other_sites_cannot_read(daemon):
    assert ask(daemon, "/metrics", "Origin: http://evil.example").status == 403
    assert ask(daemon, "/metrics", "Sec-Fetch-Site: cross-site").status == 200
    preflight = ask(daemon, "/v1/invert", "Origin: http://evil.example",
                    "Access-Control-Request-Method: POST", verb="OPTIONS")
    assert preflight.status == 403
    assert preflight.header("Access-Control-Allow-Origin") is None


def test_pages_of_listed_sites_read_and_post(daemon):
    origin = "Origin: https://app.example"
    for path, status in ("/v1/methods", 200), ("/v2", 200), ("/nowhere", 404):
        answer = ask(daemon, path, origin, "Sec-Fetch-Site: cross-site")
        assert answer.status == status
        assert answer.header("Access-Control-Allow-Origin") == "https://app.example"
        assert "Origin" in answer.headers("Vary")
    answer = ask(daemon, "/v1/invert", origin, "Content-Type: application/json", verb="POST",
                 body=b'{"matrix":[[4,7],[2,6]]}')
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Origin") == "https://app.example"
    assert answer.header("Access-Control-Expose-Headers") == "*"


def test_preflight(daemon):
    asks = "Access-Control-Request-Method: POST"
    answer = ask(daemon, "/v1/invert", "Origin: https://app.example", asks, verb="OPTIONS")
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == "https://app.example"
    assert "POST" in answer.header("Access-Control-Allow-Methods")
    assert "Authorization" in answer.header("Access-Control-Allow-Headers")
    plain = ask(daemon, "/v1/invert", verb="OPTIONS")
    assert plain.header("Allow") == "POST, OPTIONS"
    assert plain.header("Access-Control-Allow-Origin") is None
    assert "Origin" in plain.headers("Vary")


@pytest.mark.parametrize("option, value", [
    ("--cors-origins", "https://app.example/"), ("--allowed-hosts", "app.example:8000")])
def test_what_would_never_match_is_refused(option, value):
    result = run_once(option, value)
    assert result.returncode == 2 and f'{option} "{value}"' in result.stderr, result


@pytest.mark.parametrize("path, fields", [
    ("/", []), ("/metrics", []), ("/livez", []), ("/v1/methods", []), ("/v2", []), ("/nowhere", []),
    ("/v2/models/none", []), ("/v1/methods", ["Origin: null"]), ("*", [])])
def test_browsers_do_not_guess_types(daemon, path, fields):
    answer = ask(daemon, path, *fields, verb="OPTIONS" if path == "*" else "GET")
    assert answer.headers("X-Content-Type-Options") == ["nosniff"]


def test_inverses_are_not_guessed_either(daemon):
    answer = daemon.talk(infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]}))
    assert answer.status == 200
    assert answer.headers("X-Content-Type-Options") == ["nosniff"]


def test_the_page_cannot_be_framed_and_runs_its_own_script_alone(daemon):
    answer = ask(daemon, "/")
    policy = answer.header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe-" not in policy and "script-src 'sha256-" in policy
    assert answer.text.count("<script") == 1


@pytest.mark.parametrize("path, status", [
    ("/v1%2fmethods", 404), ("/v1%2Fmethods", 404), ("/v1/%6dethods", 404), ("/%6Detrics", 404),
    ("/v1/method%73", 404), ("/v2/models/%6cu", 404), ("/%76%32", 404), ("/v1/%2e%2e/v2", 404),
    ("/v2?a=%6d%2f", 200), ("/v1/methods?x=%2F", 200)])
def test_paths_are_matched_as_sent(daemon, path, status):
    assert ask(daemon, path).status == status


def test_refused_before_the_body(daemon):
    """A body that never comes holds nothing: the answer is there without it."""
    request = infer_bytes("lu", v2_binary, {"A": np.eye(3)[None]})
    assert b"\r\nHost: " in request
    head = request[:request.index(b"\r\n\r\n")].replace(b"\r\nHost: ", b"\r\nX-Host: ")
    answer = daemon.talk(head + b"\r\nHost: evil.example\r\nExpect: 100-continue\r\n\r\n")
    assert answer.status == 421, answer


@pytest.mark.parametrize("options", [
    ["--listen", "0.0.0.0:0"], ["--listen", "[::]:0"], ["--listen", "127.0.0.1:0,0.0.0.0:0"],
    ["--listen", "127.0.0.1:0", "--metrics-listen", "0.0.0.0:0"]])
def test_protected_mode(options):
    result = run_once(*options)
    assert result.returncode == 2, result
    assert "--open" in result.stderr and options[-2] in result.stderr, result.stderr


def test_open_serves_any_host():
    with Daemon("--open", listen="0.0.0.0:0", ready=False) as daemon:
        address = ("127.0.0.1", daemon.address[1])
        request = b"GET /v2 HTTP/1.1\r\nHost: any.example\r\n\r\n"
        assert wire.talk(address, request).status == 200
