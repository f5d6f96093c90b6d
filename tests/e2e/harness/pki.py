"""Certificates for tests, made by openssl, and connections over TLS."""

import os
import ssl
import subprocess

from . import wire


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def authority(folder, name="authority"):
    """A CA of its own: paths of certificate and key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "30", "-subj", f"/CN={name}", "-keyout", key, "-out", cert)
    return cert, key


def issue(folder, ca, name, subject=None, usage="serverAuth", days=30):
    """A certificate of that CA, for localhost: paths of certificate and key."""
    cert, key, request = folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}.csr"
    extensions = folder / f"{name}.ext"
    extensions.write_text(
        f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
    _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-subj", subject or f"/CN={name}", "-keyout", key, "-out", request)
    _openssl("x509", "-req", "-in", request, "-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial",
             "-days", days, "-extfile", extensions, "-out", cert)
    os.chmod(key, 0o600)
    return cert, key


def context(ca, client=None, least=ssl.TLSVersion.TLSv1_2, most=ssl.TLSVersion.TLSv1_3):
    """What a client trusts and shows."""
    made = ssl.create_default_context(cafile=str(ca[0]))
    made.minimum_version, made.maximum_version = least, most
    made.set_alpn_protocols(["h2", "http/1.1"])
    if client:
        made.load_cert_chain(*map(str, client))
    return made


class Connection(wire.Connection):
    """As wire.Connection, over TLS."""

    def __init__(self, address, tls, timeout=None, source=None):
        super().__init__(address, timeout, source)
        try:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        except BaseException:
            self.close()
            raise


def talk(address, tls, data):
    """One request on a connection of its own."""
    with Connection(address, tls) as connection:
        return connection.exchange(data)
