"""The server's address. Standard library only: it is asked for before anything heavy is loaded."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from pathlib import Path

from specctl.errors import MissingError


def bind(host: str, port: int) -> socket.socket:
    """A socket on the address, not listening yet. `port` 0 lets the system choose.

    Raises MissingError (exit 3) where the address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as exc:
        raise MissingError(
            f"the host {host!r} cannot be resolved: {exc}", help="--host 127.0.0.1 always works"
        ) from None
    sock = socket.socket(family, kind, protocol)
    try:
        # A server that was killed leaves connections behind that would block its own port for a minute.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as exc:
        sock.close()
        raise no_address(host, port, exc) from None
    return sock


def no_address(host: str, port: int, exc: OSError) -> MissingError:
    """What to say when the system refuses the address with `exc`."""
    if exc.errno == errno.EADDRINUSE:
        return MissingError(
            f"port {port} on {host} is in use by another process",
            help="choose another with --port (0: any free one), or end that process",
        )
    return MissingError(f"cannot use the address {host}:{port}: {exc.strerror}", help="see --host and --port")


def url_of(sock: socket.socket, tls: bool = False) -> str:
    """`http://host:port` (`https` with TLS) of a bound socket."""
    host, port = sock.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


@dataclass(frozen=True)
class TlsFiles:
    """Certificate (chain) and private key, PEM. Raises MissingError where the two cannot be used together."""

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        import ssl

        try:
            # A key with a passphrase would ask the terminal of a server for it; "" makes that an error instead.
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key, lambda: "")
        except (OSError, ssl.SSLError) as exc:
            files = f"{self.certificate} and {self.key}"
            raise MissingError(f"{files} are no certificate and key that fit: {exc}") from None
