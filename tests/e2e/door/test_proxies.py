"""Behind a real HAProxy and a real nginx, with the configuration of deploy/: nothing is smuggled
past them to the daemon, clients that share their connections get their own answers, and the client
that a PROXY header names is the one that is counted.

Which requests there were is judged by the ids in the access logs of both sides. A proxy may take a
framing that the daemon would refuse; then both have to see the same requests.
"""

import asyncio
import collections
import contextlib
import json

import numpy as np
import pytest

import framings
from harness import wire
from harness.codec import infer_bytes, v2_binary
from harness.daemon import Daemon, wait_until
from harness.proxies import HAProxy, Nginx, SharingHAProxy
from harness.settings import ALL_FRAMINGS

ROUTES = framings.routes() if ALL_FRAMINGS else ["/livez", "/v1/invert", "/v2/models/lu/infer"]
VERBS = framings.VERBS if ALL_FRAMINGS else ["GET", "POST"]
REQUEST = infer_bytes("lu", v2_binary, {"A": np.diag([2.0, 4.0])[None]})
ATTACKERS, NEIGHBOURS = 48, 8
SILENCE = 0.5  # seconds after which nothing more is expected


async def attack(address, data):
    """All that comes back until the connection ends or nothing more comes."""
    reader, writer = await asyncio.open_connection(*address)
    heard = b""
    with contextlib.suppress(ConnectionError, asyncio.TimeoutError):
        writer.write(data)
        await writer.drain()
        while piece := await asyncio.wait_for(reader.read(1 << 16), SILENCE):
            heard += piece
    writer.close()
    return heard


async def attack_all(address, waiting, heard):
    while waiting:
        number, data = waiting.pop()
        heard[number] = await attack(address, data)


async def neighbour(address, name, expected, done):
    """A client that sends good requests one after another, and gets its own answers."""
    count, writer = 0, None
    while not done.is_set():
        if count % 20 == 0:
            if writer is not None:
                writer.close()
            reader, writer = await asyncio.open_connection(*address)
        own = f"X-Request-Id: neighbour-{name}-{count}\r\n".encode()
        writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\n" + own + b"\r\n", 1))
        head = await reader.readuntil(b"\r\n\r\n")
        status, fields = wire.parse_head(head[:-4])
        names = {key.lower(): value for key, value in fields}
        body = await reader.readexactly(int(names["content-length"]))
        assert status == 200 and body == expected, (status, fields, body)
        assert names["x-request-id"] == f"neighbour-{name}-{count}", fields
        count += 1
    writer.close()
    return count


async def besiege(address, attacks):
    """Attackers and their neighbours at once: {number: what was heard}, good requests."""
    expected = wire.talk(address, REQUEST).body
    heard, waiting, done = {}, list(attacks.items()), asyncio.Event()
    neighbours = [asyncio.create_task(neighbour(address, i, expected, done))
                  for i in range(NEIGHBOURS)]
    await asyncio.gather(*(attack_all(address, waiting, heard) for _ in range(ATTACKERS)))
    done.set()
    return heard, sum(await asyncio.gather(*neighbours))


def hidden_ids(ids):
    return collections.Counter(name for name in ids if name and name.startswith("hidden"))


def check_answers(number, heard, seen):
    """One answer to a request, to a hidden one only if the proxy saw it, and none after a close."""
    if not heard.startswith(b"HTTP/1."):
        return  # no answer, or nginx's to HTTP/0.9, which has no head
    answers = framings.answers(heard)
    ids = collections.Counter(fields.get("x-request-id") for _, fields in answers)
    assert ids[f"outer-{number:06d}"] <= 1, heard
    assert ids[f"hidden-{number:06d}"] <= seen[f"hidden-{number:06d}"], heard
    assert all(fields.get("connection") != "close" for _, fields in answers[:-1]), heard


@pytest.mark.timeout(900 if ALL_FRAMINGS else 60)
@pytest.mark.parametrize("kind, changes", [
    (SharingHAProxy, {}),
    (Nginx, {}),
    (Nginx, {'Connection "";': 'Connection "";\n        proxy_request_buffering off;'}),
], ids=["haproxy", "nginx", "nginx without buffers"])
def test_nothing_is_smuggled(kind, changes, tmp_path):
    cases = [(framing, verb, route) for framing in framings.ALL for route in ROUTES
             for verb in VERBS]
    attacks = {i: framings.fill(*case, i) for i, case in enumerate(cases)}
    log = tmp_path / "access"
    with Daemon("--access-log", log, "--client-requests-max", "0") as daemon:
        with kind(daemon, tmp_path, changes) as proxy:
            heard, good = asyncio.run(besiege(proxy.address, attacks))
        daemon.stop()
    served = [json.loads(line)["id"] for line in log.read_text().splitlines()]
    seen, reached = hidden_ids(proxy.ids()), hidden_ids(served)
    smuggled = [cases[int(name[-6:])] for name in reached - seen]
    assert not smuggled, "the proxy saw no such request, and the daemon served it"
    for i in range(len(cases)):
        check_answers(i, heard[i], seen)
    outer = sum(name is not None and name.startswith("outer") for name in served)
    print(f"{len(cases)} requests: {outer} reached the daemon; the proxy saw {seen.total()} hidden "
          f"ones, and the daemon {reached.total()}; {good} good requests next to them")
    assert outer > len(cases) / 50, "the proxy let too few through for a test"
    assert good > 100


def test_a_pipelined_request_is_seen_by_both(tmp_path):
    """What the test above looks for is found where it is: here it is no secret."""
    log = tmp_path / "access"
    both = framings.fill(framings.Framing("plain", framings.START + b"\r\n<hidden>"), "GET",
                         "/livez", 7)
    with Daemon("--access-log", log) as daemon:
        with Nginx(daemon, tmp_path) as proxy:
            with wire.Connection(proxy.address) as connection:
                connection.send(both)
                assert [connection.read().status for _ in range(2)] == [200, 200]
        daemon.stop()
    served = [json.loads(line)["id"] for line in log.read_text().splitlines()]
    assert hidden_ids(served) == hidden_ids(proxy.ids()) == {"hidden-000007": 1}


def test_haproxy_names_the_client(tmp_path):
    """Two clients of one proxy have a request each; two requests of one are too many."""
    log = tmp_path / "access"
    limits = ["--client-requests-max", "1", "--batch-wait-us", "1000000"]
    with Daemon("--proxy-protocol", "127.0.0.1", "--access-log", log, *limits,
                ready=False) as daemon, HAProxy(daemon, tmp_path) as proxy:

        def statuses(*sources):
            connections = [wire.Connection(proxy.address, source=source) for source in sources]
            for connection in connections:
                connection.send(REQUEST)
            answers = sorted(connection.read().status for connection in connections)
            for connection in connections:
                connection.close()
            return answers

        def ready():
            return wire.talk(proxy.address, wire.request("GET", "/readyz")).status == 200

        wait_until(ready, 60, "ready")
        assert statuses("127.0.0.5", "127.0.0.6") == [200, 200]
        assert statuses("127.0.0.5", "127.0.0.5") == [200, 429]
        daemon.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    clients = [line["client"] for line in lines if line["method"] == "lu"]
    assert sorted(clients) == ["127.0.0.5", "127.0.0.5", "127.0.0.6"], lines
