"""Token files for tests, and requests with a token."""

import hashlib
import os


def line(name, roles, token, quotas=""):
    """A client of a token file."""
    return f"{name} {roles} sha256:{hashlib.sha256(token.encode()).hexdigest()} {quotas}\n"


def write(path, text, mode=0o644):
    """As orchestrators do: another file in the place of this one."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.chmod(fresh, mode)
    os.replace(fresh, path)


def bearer(token):
    """The header fields of a token; None: none."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def with_token(data, token):
    """A request that is ready, with the field."""
    return data.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)
