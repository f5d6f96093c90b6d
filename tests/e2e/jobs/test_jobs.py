"""Jobs over HTTP: each is answered as a direct request is, later."""

import concurrent.futures
import contextlib
import gzip
import json
import os
import signal
import time

import numpy as np
import pytest

from harness import codec, later, matrices, tokens, wire
from harness.codec import JSON, NPY, NPZ
from harness.daemon import Daemon, wait_until
from harness.methods import inverters
from harness.settings import scaled_timeout

SMALL = json.dumps({"matrix": [[4, 7], [2, 6]], "method": "lu"}).encode()
TIMED = {"Server-Timing", "X-Request-Id", "Date", "ETag", "Accept-Ranges"}


def same(direct, late):
    """But for times, and for what a result has besides."""
    assert late.status == direct.status, (direct, late)
    left_out = TIMED if direct.status == 200 else TIMED | {"Content-Length"}  # "instance" differs
    fields = {name: value for name, value in direct.fields if name not in left_out}
    for name, value in fields.items():
        assert late.header(name) == value, (name, direct, late)
    if direct.status == 200:
        assert late.body == direct.body
    else:
        mine, its = late.json(), direct.json()
        assert {**mine, "instance": 0} == {**its, "instance": 0}


def bodies(a):
    return {
        NPY: codec.npy(a),
        NPZ: codec.npz(a=a),
        JSON: json.dumps({"matrices" if a.ndim == 3 else "matrix": a.tolist()}).encode(),
    }


@pytest.mark.parametrize("method", inverters())
@pytest.mark.parametrize("type", [NPY, NPZ, JSON])
def test_as_a_direct_request(daemon, method, type):
    a = matrices.random(7, "f8", seed=3, batch=4) + 8 * np.eye(7)
    body, query = bodies(a)[type], f"?method={method}"
    job = later.accepted(daemon, body, {"Content-Type": type}, query)
    assert job["method"] == method and (job["n"], job["batch"]) == (7, 4)
    assert later.ended(daemon, job["id"])["status"] == "successful"
    for accept in (None, NPY, NPZ, JSON):
        headers = {"Accept": accept} if accept else {}
        direct = daemon.post("/v1/invert" + query, body, {"Content-Type": type, **headers})
        same(direct, later.result(daemon, job["id"], headers))


def test_large_as_a_direct_request(daemon):
    a = matrices.random(150, "f8", seed=5, batch=2)
    job = later.accepted(daemon, codec.npy(a), {"Content-Type": NPY}, "?outputs=inverse,rcond,info")
    later.ended(daemon, job["id"])
    for accept in (NPY, NPZ, JSON):
        direct = daemon.post("/v1/invert?outputs=inverse,rcond,info", codec.npy(a),
                             {"Content-Type": NPY, "Accept": accept})
        same(direct, later.result(daemon, job["id"], {"Accept": accept}))


def test_several_inputs(daemon):
    n = 40
    arrays = {"dl": np.ones(n - 1), "d": 4 * np.ones(n), "du": np.ones(n - 1)}
    body, query = codec.npz(**arrays), "?method=tridiagonal&outputs=inverse,info,method"
    job = later.accepted(daemon, body, {"Content-Type": NPZ}, query)
    later.ended(daemon, job["id"])
    same(daemon.post("/v1/invert" + query, body, {"Content-Type": NPZ}),
         later.result(daemon, job["id"]))


def test_compressed_body(daemon):
    job = later.accepted(daemon, gzip.compress(SMALL),
                         {"Content-Type": JSON, "Content-Encoding": "gzip"})
    later.ended(daemon, job["id"])
    assert later.result(daemon, job["id"]).json()["info"] == 0


@pytest.mark.parametrize("query", ["", "?on_singular=nan"])
def test_singular(daemon, query):
    body = codec.npy(np.array([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]))
    job = later.accepted(daemon, body, {"Content-Type": NPY}, query)
    document = later.ended(daemon, job["id"])
    assert document["status"] == ("failed" if not query else "successful")
    assert bool(document["message"]) == (not query)
    same(daemon.post("/v1/invert" + query, body, {"Content-Type": NPY}),
         later.result(daemon, job["id"]))


def test_nothing_to_compute(daemon):
    """Is answered at once: there is no job to be made of it."""
    answer = later.post(daemon, codec.npy(np.zeros((0, 3, 3))), {"Content-Type": NPY})
    assert answer.status == 200 and codec.load(answer.body).shape == (0, 3, 3)


@pytest.mark.parametrize("body, headers, query, status", [
    (b"{", {"Content-Type": JSON}, "", 400),
    (SMALL, {"Content-Type": JSON}, "?nosuch=1", 400),
    (SMALL, {"Content-Type": "text/plain"}, "", 415),
    (SMALL, {"Content-Type": JSON, "Accept": "text/html"}, "", 406),
    (codec.npy(np.ones((2, 3))), {"Content-Type": NPY}, "", 400),
    (codec.npy(np.ones((2, 2), "c8")), {"Content-Type": NPY}, "", 400),
    (SMALL, {"Content-Type": JSON, "Idempotency-Key": "x" * 256}, "", 400),
])
def test_refused_before_it_is_taken(daemon, body, headers, query, status):
    before = daemon.get("/v1/jobs?limit=1").json()
    late = later.post(daemon, body, headers, query)
    assert late.status == status, late
    if "Idempotency-Key" not in headers:
        same(daemon.post("/v1/invert" + query, body, headers), late)
    assert daemon.get("/v1/jobs?limit=1").json() == before


# ---- Waiting ----


def test_post_that_waits(daemon):
    answer = later.post(daemon, SMALL, {"Content-Type": JSON}, prefer="respond-async, wait=20")
    assert answer.status == 200 and answer.json()["info"] == 0
    job = answer.header("Location").rpartition("/")[2]
    assert later.look(daemon, job)["status"] == "successful"


def test_events(daemon):
    job = later.accepted(daemon, SMALL)["id"]
    answer = daemon.get(f"/v1/jobs/{job}/events")  # closed after the end
    assert answer.status == 200 and answer.header("Content-Type") == "text/event-stream"
    heard = later.events(answer.text)
    assert heard[-1][1:] == ("status", {"status": "successful"})
    assert {"progress": 100, "position": None} in [data for _, name, data in heard
                                                   if name == "progress"]
    again = daemon.get(f"/v1/jobs/{job}/events", {"Last-Event-ID": heard[-1][0]})
    assert later.events(again.text) == []


# ---- Results ----


@pytest.mark.parametrize("n", [20, 200])
def test_ranges(daemon, n):
    job = later.accepted(daemon, codec.npy(matrices.random(n, "f8", seed=1)), {"Content-Type": NPY})
    later.ended(daemon, job["id"])
    whole = later.result(daemon, job["id"])
    etag, size = whole.header("ETag"), len(whole.body)
    assert whole.header("Accept-Ranges") == "bytes" and int(whole.header("Content-Length")) == size
    for first, last in ((0, 9), (100, 200), (size - 5, size - 1), (127, size - 1)):
        part = later.result(daemon, job["id"], {"Range": f"bytes={first}-{last}", "If-Range": etag})
        assert part.status == 206 and part.body == whole.body[first:last + 1]
        assert part.header("Content-Range") == f"bytes {first}-{last}/{size}"
        assert part.header("ETag") == etag
    assert later.result(daemon, job["id"], {"Range": f"bytes={size}-"}).status == 416
    other = later.result(daemon, job["id"], {"Range": "bytes=0-1", "If-Range": '"x"'})
    assert other.status == 200 and other.body == whole.body
    with daemon.connect() as connection:
        connection.send(wire.request("HEAD", f"/v1/jobs/{job['id']}/result"))
        head = connection.read(head_only=True)
    assert head.status == 200 and int(head.header("Content-Length")) == size


def test_not_ready_and_unknown(daemon):
    assert daemon.get("/v1/jobs/" + 32 * "0").status == 404
    unknown = daemon.get("/v1/jobs/nosuch/result")
    assert unknown.status == 404 and "not-found" in unknown.json()["type"]


def test_delete(daemon):
    job = later.accepted(daemon, SMALL)["id"]
    later.ended(daemon, job)
    assert later.delete(daemon, job).status == 204
    for answer in (later.delete(daemon, job), later.result(daemon, job),
                   daemon.get(f"/v1/jobs/{job}"), daemon.get(f"/v1/jobs/{job}/events")):
        assert answer.status == 404, answer


def test_list(daemon):
    made = [later.accepted(daemon, SMALL)["id"] for _ in range(5)]
    for job in made:
        later.ended(daemon, job)
    seen, cursor = [], ""
    while len(seen) < 5:
        page = daemon.get(f"/v1/jobs?limit=2&status=successful{cursor}").json()
        assert len(page["jobs"]) == 2
        seen += [job["id"] for job in page["jobs"]]
        cursor = f"&cursor={page['next']}"
    assert set(made) <= set(seen[:6]) and len(set(seen)) == len(seen)
    assert daemon.get("/v1/jobs?since=2100-01-01T00:00:00Z").json() == {"jobs": [], "next": None}


# ---- Keys ----


def test_key(daemon):
    key = {"Idempotency-Key": f"a {time.time()}", "Content-Type": JSON}
    job = later.accepted(daemon, SMALL, key)["id"]
    again = later.post(daemon, SMALL, key)
    assert again.status == 200 and again.json()["id"] == job
    other = later.post(daemon, SMALL.replace(b"4", b"5"), key)
    assert other.status == 422 and "idempotency-key-reused" in other.json()["type"]
    later.ended(daemon, job)
    assert later.delete(daemon, job).status == 204
    assert later.post(daemon, SMALL, key).json()["id"] == job


@pytest.mark.parametrize("n", [2, 120])
def test_key_at_the_same_time(daemon, n):
    key = {"Idempotency-Key": f"b {time.time()}", "Content-Type": NPY}
    body = codec.npy(matrices.random(n, "f8", seed=n))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: later.post(daemon, body, key), range(8)))
    assert sorted(a.status for a in answers) == [200] * 7 + [202]
    assert len({a.json()["id"] for a in answers}) == 1


# ---- Who may, and how much ----


@pytest.fixture
def guarded(tmp_path):
    path = tmp_path / "tokens"
    tokens.write(path, tokens.line("a", "infer,jobs", "a") + tokens.line("b", "infer,jobs", "b")
                 + tokens.line("plain", "infer", "plain") + tokens.line("root", "admin", "root")
                 + tokens.line("few", "infer,jobs", "few", "jobs=1")
                 + tokens.line("small", "infer,jobs", "small", "spool=1MiB"))
    with Daemon("--token-file", str(path), ready=False) as daemon:
        wait_until(lambda: daemon.get("/v2/health/ready").status == 200, 60, "ready")
        yield daemon


def test_roles_and_owners(guarded):
    a, b, root = (tokens.bearer(name) for name in ("a", "b", "root"))
    refused = later.post(guarded, SMALL, tokens.bearer("plain"))
    assert refused.status == 403 and refused.header("Preference-Applied") is None
    assert guarded.get("/v1/jobs", tokens.bearer("plain")).status == 403
    job = later.accepted(guarded, SMALL, a)["id"]
    for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/result", f"/v1/jobs/{job}/events"):
        foreign, unknown = guarded.get(path, b), guarded.get(path.replace(job, 32 * "0"), b)
        assert foreign.status == unknown.status == 404
        assert foreign.json()["detail"] == unknown.json()["detail"]
    assert later.delete(guarded, job, b).status == 404
    assert guarded.get("/v1/jobs", b).json()["jobs"] == []
    for who in (a, root):
        assert [j["id"] for j in guarded.get("/v1/jobs", who).json()["jobs"]] == [job]
    # One key, two clients: two jobs.
    key = {"Idempotency-Key": "k"}
    assert (later.accepted(guarded, SMALL, {**a, **key})["id"]
            != later.accepted(guarded, SMALL, {**b, **key})["id"])
    assert later.delete(guarded, job, root).status == 204


def test_quotas(guarded):
    large = codec.npy(matrices.random(400, "f8", seed=1))
    answer = later.post(guarded, large, {**tokens.bearer("small"), "Content-Type": NPY})
    assert answer.status == 413 and "spool=" in answer.json()["detail"], answer
    later.accepted(guarded, large, {**tokens.bearer("a"), "Content-Type": NPY})


# ---- Large bodies ----


def test_body_that_never_enters_the_arena():
    """Above --request-max an .npy goes to the spool as it comes; the front's memory stays small."""
    with Daemon("--request-max", "1MiB", "--job-request-max", "64MiB", "--arena-size",
                "16MiB") as daemon:
        a = matrices.random(64, "f8", seed=2, batch=1500) + 64 * np.eye(64)  # 47 MiB
        body, key = codec.npy(a), {"Content-Type": NPY, "Idempotency-Key": "k"}
        before = daemon.resident_bytes()
        assert daemon.post("/v1/invert", body, {"Content-Type": NPY}).status == 413
        job = later.accepted(daemon, body, key)["id"]
        assert later.ended(daemon, job, 60)["status"] == "successful"
        again = later.post(daemon, body, key)
        assert again.status == 200 and again.json()["id"] == job
        whole = later.result(daemon, job)
        x = codec.load(whole.body)
        assert x.shape == a.shape
        for i in (0, 700, 1499):
            assert matrices.ratio(a[i], x[i]) <= matrices.BOUND
        assert daemon.resident_bytes() < before + (32 << 20)
        size = len(whole.body)
        part = later.result(daemon, job, {"Range": f"bytes={size - 1000000}-"})
        assert part.status == 206 and part.body == whole.body[-1000000:]


def test_large_body_is_refused_by_its_head():
    with Daemon("--request-max", "64KiB", "--job-request-max", "8MiB") as daemon:
        headers = {"Content-Type": NPY, "Prefer": "respond-async"}
        good = codec.npy(np.zeros((600, 600)))
        for bad, status in ((codec.npy(np.zeros((600, 500))), 400),
                            (codec.npy(np.zeros((600, 300), "c16")), 400),
                            (b"x" * 100000, 400)):
            with daemon.connect() as connection:  # the rest never comes
                connection.send(wire.request("POST", "/v1/invert", None,
                                             {**headers, "Content-Length": str(len(good))})
                                + bad[:100000])
                assert connection.read().status == status
        too_long = wire.request("POST", "/v1/invert", None,
                                {**headers, "Content-Length": str(9 << 20),
                                 "Expect": "100-continue"})
        with daemon.connect() as connection:
            connection.send(too_long)
            answer = connection.read()
        assert answer.status == 413 and "--job-request-max" in answer.json()["detail"]
        assert daemon.get("/v1/jobs").json()["jobs"] == []


@pytest.mark.parametrize("n", [60, 90, 91])
def test_body_that_is_long_for_a_request_and_short_for_a_job(n):
    """It comes as those that go to the spool, and lies in the store up to 64 KiB."""
    with Daemon("--request-max", "16KiB") as daemon:
        a = matrices.random(n, "f8", seed=n)
        key = {"Idempotency-Key": "k", "Content-Type": NPY}
        job = later.accepted(daemon, codec.npy(a), key)["id"]
        later.ended(daemon, job)
        assert matrices.ratio(a, codec.load(later.result(daemon, job).body)) <= matrices.BOUND
        assert later.post(daemon, codec.npy(a), key).json()["id"] == job


def test_fortran_order_from_the_spool():
    with Daemon("--request-max", "64KiB") as daemon:
        a = np.asfortranarray(matrices.random(150, "f8", seed=4))
        job = later.accepted(daemon, codec.npy(a), {"Content-Type": NPY})["id"]
        later.ended(daemon, job)
        x = codec.load(later.result(daemon, job).body)
        assert matrices.ratio(np.ascontiguousarray(a), x) <= matrices.BOUND


def test_left_uploads_leave_nothing(tmp_path):
    with Daemon("--request-max", "64KiB", "--data-dir", str(tmp_path / "data")) as daemon:
        body = codec.npy(np.zeros((500, 500)))
        for _ in range(3):
            with daemon.connect() as connection:
                connection.send(wire.request("POST", "/v1/invert", None,
                                             {"Content-Type": NPY, "Prefer": "respond-async",
                                              "Content-Length": str(len(body))}) + body[:900000])
                wait_until(lambda: list((tmp_path / "data").rglob("*.part")), 10, "a file")
            wait_until(lambda: not list((tmp_path / "data").rglob("*.part")), 10, "no file")


# ---- Life ----


def test_expiry():
    with Daemon("--result-ttl", "1s") as daemon:
        job = later.accepted(daemon, SMALL)["id"]
        later.ended(daemon, job)
        gone = wait_until(lambda: (a := later.result(daemon, job)).status != 200 and a, 20,
                          "the result's end")
        assert gone.status == 410 and "result-expired" in gone.json()["type"], gone


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_jobs_outlive_the_daemon(how, tmp_path):
    data = ("--data-dir", str(tmp_path / "data"))
    a = matrices.random(300, "f8", seed=9, batch=6)
    with Daemon(*data) as daemon:
        key = {"Idempotency-Key": "k", "Content-Type": NPY}
        jobs = [later.accepted(daemon, codec.npy(a), key)["id"]]
        jobs += [later.accepted(daemon, SMALL)["id"] for _ in range(3)]
        if how == "TERM":
            daemon.stop()
        else:
            daemon.process.kill()
            daemon.process.wait()
    with Daemon(*data) as daemon:
        for job in jobs:
            assert later.ended(daemon, job)["status"] == "successful"
            assert later.result(daemon, job).status == 200
        assert later.post(daemon, codec.npy(a), key).json()["id"] == jobs[0]


@pytest.mark.parametrize("priority", [0, 1, 2, 3, 4, 1000])
def test_every_priority(daemon, priority):
    job = later.accepted(daemon, SMALL, query=f"?priority={priority}")["id"]
    assert later.ended(daemon, job)["status"] == "successful"
    assert later.result(daemon, job).status == 200


def test_higher_priorities_come_first(stalled):
    """What waits behind those that an engine has, by `position`."""
    for _ in range(40):
        later.accepted(stalled, SMALL)
    jobs = [later.accepted(stalled, SMALL, query=f"?priority={p}")["id"] for p in (3, 2, 1)]
    places = [later.look(stalled, job)["position"] for job in jobs]
    assert places[0] > places[1] > places[2], places


@pytest.fixture
def stalled(tmp_path):
    """Its engine is stopped, and replaced after some seconds: until then jobs do not end."""
    with Daemon("--data-dir", str(tmp_path / "data"), "--engine-heartbeat", "6s",
                "--batch-deadline", "6s") as daemon:
        engines = daemon.engines()
        for pid in engines:
            os.kill(pid, signal.SIGSTOP)
        yield daemon
        for pid in engines:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_waiting_ends_in_time(stalled):
    start = time.monotonic()
    late = later.post(stalled, SMALL, prefer="respond-async, wait=1")
    assert late.status == 202 and 1 <= time.monotonic() - start < scaled_timeout(5)
    job = late.json()["id"]
    start = time.monotonic()
    assert not later.is_over(later.look(stalled, job, "?wait=1"))
    assert 1 <= time.monotonic() - start < scaled_timeout(5)
    assert later.ended(stalled, job)["status"] == "successful"  # a new engine has come


def test_events_of_a_job_that_waits(stalled):
    """Its place is looked for once a second, and sent when it has changed."""
    jobs = [later.accepted(stalled, SMALL)["id"] for _ in range(30)]
    with stalled.connect() as connection:
        connection.send(wire.request("GET", f"/v1/jobs/{jobs[-1]}/events"))
        time.sleep(1)
        before = stalled.metrics().total("invertd_store_transactions_total")
        time.sleep(2)
        more = stalled.metrics().total("invertd_store_transactions_total") - before
        assert more <= 100, more  # leases, claims and counts too
        heard = connection.socket.recv(1 << 16)
    assert heard.count(b"event: progress") <= 2 and b'"position":13' in heard, heard


@pytest.mark.parametrize("kind", ["get", "post", "events"])
def test_waiting_ends_with_the_daemon(stalled, kind):
    job = later.accepted(stalled, SMALL)["id"]
    request = {"get": wire.request("GET", f"/v1/jobs/{job}?wait=60"),
               "events": wire.request("GET", f"/v1/jobs/{job}/events"),
               "post": wire.request("POST", "/v1/invert", SMALL,
                                    {"Prefer": "respond-async, wait=60"})}[kind]
    with stalled.connect() as connection:
        connection.send(request)
        time.sleep(0.2)
        for pid in stalled.engines():
            os.kill(pid, signal.SIGSTOP)
        stalled.process.send_signal(signal.SIGTERM)
        answer = connection.read()
        assert answer.status == (202 if kind == "post" else 200)
        for pid in stalled.engines():
            os.kill(pid, signal.SIGCONT)
        stalled.ended()


def test_no_room():
    """What is over --spool-max is refused, and what fits is taken."""
    with Daemon("--spool-max", "4MiB") as daemon:
        large, small = (codec.npy(np.eye(n)) for n in (600, 200))
        answer = later.post(daemon, large, {"Content-Type": NPY})
        assert answer.status == 507 and answer.header("Retry-After"), answer
        assert "--spool-max" in answer.json()["detail"]
        job = later.accepted(daemon, small, {"Content-Type": NPY})["id"]
        assert later.ended(daemon, job)["status"] == "successful"
        assert daemon.post("/v1/invert", large, {"Content-Type": NPY}).status == 200


def test_without_jobs():
    with Daemon("--data-dir", "none") as daemon:
        refused = later.post(daemon, SMALL)
        assert refused.status == 503 and "no-jobs" in refused.json()["type"]
        assert daemon.get("/v1/jobs").status == 503
