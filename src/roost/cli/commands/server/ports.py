"""Listening on a port, and naming the process that uses it."""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from roost.errors import Forbidden, Unavailable
from roost.settings import Settings

LOOPBACK = "127.0.0.1"
ANY = {"0.0.0.0": LOOPBACK, "::": "::1", "[::]": "::1"}
"""Hosts that stand for all addresses of this machine, and the address to reach each."""


def require_loopback(settings: Settings) -> None:
    if not settings.is_loopback:
        raise Forbidden(f"cannot listen on {settings.host!r}: this command serves this machine only. Use `roost up`")


def require_encryption(settings: Settings) -> None:
    """Raise Forbidden if other machines would send passwords and cookies in plain text."""
    if not (settings.is_loopback or settings.behind_proxy or settings.tls_cert):
        raise Forbidden(
            f"cannot listen on {settings.host!r} without TLS: others could read passwords on the way. Use --tls-cert"
            f" and --tls-key, or --behind-proxy if a proxy adds TLS, or host {LOOPBACK}"
        )


def require_sign_in(settings: Settings, *, has_accounts: bool) -> None:
    """Raise Forbidden if other machines could reach this server, and nobody could sign in."""
    if settings.is_exposed and not (has_accounts or settings.oidc or settings.proxy_user_header):
        where = "serve a proxy" if settings.behind_proxy else f"listen on {settings.host!r}"
        raise Forbidden(
            f"cannot {where} while nobody can sign in: add an account with `roost users add NAME --admin`, or configure"
            f" [oidc] or proxy_user_header in roost.toml. {_only_for_this_machine(settings)}"
        )


def _only_for_this_machine(settings: Settings) -> str:
    kept = [] if settings.is_loopback else [f"use host {LOOPBACK}"]
    return "Only for this machine, " + " and ".join(kept + ["leave out --behind-proxy"] * settings.behind_proxy)


def page_url(settings: Settings, port: int) -> str:
    """Return the URL of the pages for people: the configured one, or that on this machine."""
    if settings.url:
        return settings.url
    host = settings.host if settings.host not in (*ANY, LOOPBACK) else "localhost"
    return f"{_scheme(settings)}://{f'[{host}]' if ':' in host else host}:{port}"


def local_url(settings: Settings, port: int) -> str:
    """Return the URL for programs on this machine."""
    host = ANY.get(settings.host, settings.host)
    return f"{_scheme(settings)}://{f'[{host}]' if ':' in host else host}:{port}"


def _scheme(settings: Settings) -> str:
    return "https" if settings.tls_cert else "http"


def bind(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets. Raise Unavailable with a suggestion if the port cannot be used.

    Both loopback addresses are bound: a browser may use either for `localhost`, and another program must not answer
    there.
    """
    first = _listen(host.strip("[]"), port)
    taken = [first]
    if host in ("127.0.0.1", "localhost"):
        try:
            taken.append(_listen("::1", first.getsockname()[1]))
        except Unavailable as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE:
                first.close()
                raise
    return taken


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        # With the protocol number asyncio recognizes TCP and sets TCP_NODELAY; else small answers wait 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise Unavailable(_why(error, address, port)) from error
    # Allow a restart without waiting a minute for the port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise Unavailable(_why(error, address, port)) from error
    listener.setblocking(False)
    return listener


def check_port_free(host: str, port: int) -> None:
    """Raise Unavailable if the port is taken."""
    for listener in bind(host, port):
        listener.close()


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is in use by {port_holder(host, port)}: stop it, or use another port with --port {port + 1}"
        )
    if error.errno == errno.EACCES:
        return f"port {port} is not allowed for this account: use a port above 1023 with --port"
    return f"cannot listen on {host!r}, port {port}: {error.strerror or error}"


def port_holder(host: str, port: int) -> str:
    """Return a description of the process that listens on a port, as far as known."""
    if _is_roost(host, port):
        return f"another Roost (http://localhost:{port})"
    pid = _process_on(port)
    if pid is None:
        return "another program"
    name = ""
    with suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    return f"process {pid} ({name})" if name else f"process {pid}"


def _is_roost(host: str, port: int) -> bool:
    connection = HTTPConnection(host.strip("[]"), port, timeout=1)
    try:
        connection.request("GET", "/healthz", headers={"Host": f"localhost:{port}"})
        answer = json.loads(connection.getresponse().read(1000))
        return isinstance(answer, dict) and answer.get("name") == "roost"
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()


def _process_on(port: int) -> int | None:
    """Return the id of the process that listens on a port (Linux only, own processes)."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(table, port)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                for file in (process / "fd").iterdir():
                    if os.readlink(file) in sockets:
                        return int(process.name)
    return None


def _listening(table: str, port: int) -> list[str]:
    try:
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port]
