"""A server of jobs in memory, for what the daemon does not do on command: connections that break in
the middle, refusals of every status, no ranges, early answers, jobs that are forgotten.

It speaks the part of the contract that the command `invert` uses, over real sockets.
"""

import hashlib
import http.server
import io
import itertools
import json
import socket
import threading
import time
import urllib.parse

import numpy as np

FINISHED = ("successful", "failed")


class Faults:
    """What goes wrong, and how often; each is used up. Set from a test's thread."""

    def __init__(self):
        self.refusals = []           # (method and start of the path, status, fields), in turn
        self.cut_uploads = 0         # connections dropped in the middle of an upload
        self.cut_after_uploads = 0   # jobs accepted, but the 202 is not sent
        self.cut_downloads = 0       # results dropped half-way
        self.cut_waits = 0           # long polls dropped


class Store:
    """What survives a restart, unless it is thrown away."""

    def __init__(self):
        self.jobs, self.keys = {}, {}


class JobServer:
    """direct_max: larger bodies are refused without respond-async. seconds: how long a job takes.
    ranges: whether Range is honoured. jobs: False answers everything at once. polls: False answers
    every long poll early."""

    def __init__(self, direct_max=1 << 40, seconds=0.0, ranges=True, jobs=True,
                 polls=True):
        self.direct_max, self.seconds = direct_max, seconds
        self.ranges, self.jobs, self.polls = ranges, jobs, polls
        self.faults, self.store, self.log = Faults(), Store(), []
        self.lock, self.server, self.thread = threading.Lock(), None, None
        self.open = set()
        self.numbers = itertools.count()
        self.port = 0

    # ---- Life ----

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        outer = self

        class Bound(Handler):
            owner = outer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Bound)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        return self

    def kill(self):
        """Drops every connection, as the death of a process does."""
        if self.server is None:
            return
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for connection in self.open:
                with_reset(connection)
        self.thread.join()
        self.server = None

    def restart(self, after=0.0, keep=True):
        self.kill()
        if not keep:
            self.store = Store()
        time.sleep(after)
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def requests(self, start):
        """Those of the log whose method and path begin so."""
        return [entry for entry in self.log if entry["line"].startswith(start)]

    # ---- Jobs ----

    def accept(self, key, body):
        """(job, whether it is new)"""
        with self.lock:
            known = self.store.keys.get(key)
            if known is not None:
                return self.store.jobs[known], False
            name = f"{next(self.numbers):032x}"
            job = {"id": name, "body": body, "began": time.monotonic(), "gone": False}
            self.store.jobs[name] = job
            self.store.keys[key] = name
            return job, True

    def document(self, job):
        passed = time.monotonic() - job["began"]
        status = "running" if passed < self.seconds else "successful"
        if status == "successful" and not isinstance(inverse_of(job["body"]), bytes):
            status = "failed"
        if passed < self.seconds / 3:
            status = "accepted"
        return {"id": job["id"], "status": status, "method": "lu", "n": 2, "batch": 1,
                "precision": "fp64", "created": "2026-11-28T12:00:00Z",
                "progress": min(100, 100 * passed / self.seconds) if self.seconds else 100,
                "position": 1 if status == "accepted" else None, "attempt": 1, "message": None}


def with_reset(connection):
    """Closes a socket that another thread may be reading from."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def inverse_of(body):
    """The inverse as .npy, or the problem of a singular matrix."""
    a = np.load(io.BytesIO(body)) if body[:1] == b"\x93" else np.array(json.loads(body)["matrix"])
    try:
        x = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return {"status": 422, "detail": "Matrix 0: singular."}
    out = io.BytesIO()
    np.save(out, x)
    return out.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner = None

    def setup(self):
        super().setup()
        with self.owner.lock:
            self.owner.open.add(self.connection)

    def finish(self):
        with self.owner.lock:
            self.owner.open.discard(self.connection)
        try:
            super().finish()
        except OSError:
            pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def log_message(self, *_):
        pass

    # ---- Answers ----

    def answer(self, status, body=b"", type_name="application/json", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", type_name)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def problem(self, status, detail, name="problem", **fields):
        text = json.dumps({"type": f"https://h/errors#{name}", "status": status, "detail": detail})
        self.answer(status, text.encode(), "application/problem+json", **fields)

    def drop(self):
        self.close_connection = True
        with_reset(self.connection)

    def begin(self):
        """Notes the request; true: it was refused as a fault."""
        line = f"{self.command} {self.path}"
        self.owner.log.append({"line": line, "headers": dict(self.headers.items()),
                               "time": time.monotonic()})
        with self.owner.lock:
            refusals = self.owner.faults.refusals
            found = next((r for r in refusals if line.startswith(r[0])), None)
            if found is not None:
                refusals.remove(found)
        if found is None:
            return False
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.problem(found[1], f"refused with {found[1]}", **found[2])
        return True

    def used(self, name):
        """Whether the fault happens now."""
        with self.owner.lock:
            left = getattr(self.owner.faults, name)
            setattr(self.owner.faults, name, max(0, left - 1))
        return left > 0

    # ---- Requests ----

    def do_POST(self):
        if self.begin():
            return
        length = int(self.headers["Content-Length"])
        if self.used("cut_uploads"):
            self.rfile.read(length // 2)
            self.drop()
            return
        body = self.rfile.read(length)
        asynchronous = "respond-async" in self.headers.get("Prefer", "") and self.owner.jobs
        if not asynchronous and length > self.owner.direct_max:
            self.problem(413, "The body is larger than --request-max.")
        elif asynchronous:
            self.accept_job(body)
        else:
            self.result(inverse_of(body), "direct")

    def accept_job(self, body):
        found = self.owner.accept(self.headers["Idempotency-Key"], body)
        if self.used("cut_after_uploads"):
            self.drop()
        else:
            document = json.dumps(self.owner.document(found[0])).encode()
            self.answer(202 if found[1] else 200, document, Preference_Applied="respond-async",
                        Location=f"/v1/jobs/{found[0]['id']}")

    def job(self):
        """The job of the path, or None after a 404."""
        name = urllib.parse.urlsplit(self.path).path.split("/")[3]
        job = self.owner.store.jobs.get(name)
        if job is None or job["gone"]:
            self.problem(404, "There is no such job.")
            return None
        return job

    def do_GET(self):
        if self.begin():
            return
        parts = urllib.parse.urlsplit(self.path)
        job = self.job()
        if job is None:
            return
        if parts.path.endswith("/result"):
            self.job_result(job)
            return
        end = time.monotonic() + float(urllib.parse.parse_qs(parts.query).get("wait", ["0"])[0])
        if time.monotonic() < end and self.used("cut_waits"):
            self.drop()
            return
        while (self.owner.polls and time.monotonic() < end and not job["gone"] and self.owner.server
               and self.owner.document(job)["status"] not in FINISHED):
            time.sleep(0.01)
        if job["gone"]:
            self.problem(404, "There is no such job.")
        else:
            self.answer(200, json.dumps(self.owner.document(job), indent=1).encode())

    def job_result(self, job):
        if self.owner.document(job)["status"] not in FINISHED:
            self.problem(404, "The job has not ended.", "result-not-ready")
        else:
            self.result(inverse_of(job["body"]), job["id"])

    def result(self, body, name):
        fields = {"Invertd_Method": "lu", "Invertd_Info": "0"}
        if not isinstance(body, bytes):
            self.problem(body["status"], body["detail"], Invertd_Info="1")
            return
        status, tag, start = 200, f'"{name}-{hashlib.sha256(body).hexdigest()[:8]}"', 0
        if (self.owner.ranges and self.headers.get("Range")
                and self.headers.get("If-Range") == tag):
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            status = 206
            fields["Content_Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        if not self.used("cut_downloads"):
            self.answer(status, body[start:], "application/x-npy", ETag=tag, **fields)
            return
        self.send_response(status)
        for field, value in {**fields, "ETag": tag}.items():
            self.send_header(field.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:start + (len(body) - start) // 2])
        self.wfile.flush()
        self.drop()

    def do_DELETE(self):
        if self.begin():
            return
        job = self.job()
        if job is not None:
            job["gone"] = True
            self.answer(204)
