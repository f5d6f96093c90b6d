"""What the daemon under test says of its methods (GET /v1/methods), for tests that try all of a
kind: a new method is tried as soon as it is there."""

import functools

from harness.daemon import Daemon

DENSE = ["batch", "n", "n"]


@functools.cache
def listed_methods():
    """The methods by their names. A daemon lives for this question only."""
    with Daemon() as daemon:
        return {method["name"]: method for method in daemon.get("/v1/methods").json()["methods"]}


def takes_dense(method):
    """Is a dense A the one input that it needs?"""
    needed = [tensor for tensor in method["inputs"] if not tensor["optional"]]
    return [(tensor["name"], tensor["shape"]) for tensor in needed] == [("A", DENSE)]


def dense_methods():
    return [name for name, method in listed_methods().items() if takes_dense(method)]


def inverters():
    """Those of a dense A whose first output is its inverse."""
    first = {name: listed_methods()[name]["outputs"][0] for name in dense_methods()}
    return [name for name, t in first.items() if (t["name"], t["shape"]) == ("INVERSE", DENSE)]


def default_outputs(name):
    """What a method answers by default."""
    return [tensor["name"] for tensor in listed_methods()[name]["outputs"] if tensor["default"]]


def iterates(name):
    """May it not converge: INFO n + 2?"""
    return any(tensor["name"] == "ITERATIONS" for tensor in listed_methods()[name]["outputs"])
