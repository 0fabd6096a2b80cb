"""Hosts and origins of this server: others are rejected (DNS rebinding, CSRF, WebSocket hijacking)."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from roost.settings import Settings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHosts:
    """Host names by which browsers and programs may reach this server."""

    def __init__(self, settings: Settings) -> None:
        self._names = LOOPBACK | {host.lower().strip("[]") for host in settings.public_hosts}
        self._has_addresses = not settings.is_loopback

    def has(self, host: str) -> bool:
        """Return whether the Host header of a request names this server."""
        name = _name(host)
        # An address cannot be that of another site, as a name could (DNS rebinding).
        return name in self._names or (self._has_addresses and name is not None and _is_address(name))


def is_same_origin(origin: str, host: str, *, is_secure: bool) -> bool:
    """Return whether a page of this server asks; over TLS not one that was loaded without it."""
    scheme, _, rest = origin.partition("://")
    return scheme in (("https",) if is_secure else ("http", "https")) and bool(host) and rest.lower() == host.lower()


def _name(host: str) -> str | None:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        return not ip_address(name).is_unspecified
    except ValueError:
        return False
