"""What hostile or careless clients send, one row each: bytes, statuses allowed, words expected.

`words` is a regular expression, any case, that the error's text must match: it must tell a user
what to change. `closes`: the connection must end after the answer, with nothing more served.
Rows without `words` are answered by the HTTP library, whose text is not judged. Status 0 stands
for a connection that is closed without an answer, as befits what is not HTTP at all.
"""

import dataclasses

INFER = "/v2/models/lu/infer"
INVERT = "/v1/invert"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    data: bytes
    statuses: tuple
    words: str = None
    closes: bool = False


def row(name, data, statuses, words=None, closes=False):
    statuses = (statuses,) if isinstance(statuses, int) else statuses
    return Row(name, data, statuses, words, closes)
