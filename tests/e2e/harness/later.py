"""Jobs: requests that are answered later, and what becomes of them."""

import json

from . import wire
from .daemon import wait_until

ASYNC = {"Prefer": "respond-async"}


def post(daemon, body, headers=None, query="", prefer="respond-async", path="/v1/invert"):
    fields = {"Prefer": prefer} if prefer else {}
    return daemon.post(path + query, body, {**fields, **(headers or {})})


def accepted(daemon, body, headers=None, query="", **more):
    """The document of a job that is taken."""
    answer = post(daemon, body, headers, query, **more)
    assert answer.status == 202, answer
    document = answer.json()
    assert answer.header("Location") == document["links"]["self"], answer
    assert answer.header("Preference-Applied") == "respond-async", answer
    return document


def look(daemon, job, query="", headers=None):
    answer = daemon.get(f"/v1/jobs/{job}{query}", headers)
    assert answer.status == 200, answer
    return answer.json()


def is_over(document):
    return document["status"] in ("successful", "failed")


def ended(daemon, job, within=30):
    """The document of a job that has ended."""
    return wait_until(lambda: (d := look(daemon, job, "?wait=5")) and is_over(d) and d, within,
                      f"the end of job {job}")


def result(daemon, job, headers=None):
    return daemon.get(f"/v1/jobs/{job}/result", headers)


def delete(daemon, job, headers=None):
    return daemon.talk(wire.request("DELETE", f"/v1/jobs/{job}", None, headers))


def events(text):
    """Server-sent events as (id, name, data)."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines()
                      if ": " in line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return found
