"""Users of a trusted proxy, which names them in a header."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address, ip_network

from starlette.datastructures import Headers

from roost.api.error_responses import HttpError
from roost.core.values import checks
from roost.errors import Invalid

log = logging.getLogger("roost.api.proxies")


class TrustedProxies:
    """Addresses and networks of the proxies of the settings."""

    def __init__(self, trusted: Collection[str]) -> None:
        self._networks = [ip_network(one, strict=False) for one in trusted]

    def has(self, address: str) -> bool:
        with suppress(ValueError):
            found = ip_address(address)
            found = getattr(found, "ipv4_mapped", None) or found
            return any(found in network for network in self._networks)
        return False


class ProxyUsers:
    """Reads the header in which a trusted proxy names the user."""

    def __init__(self, header: str, proxies: TrustedProxies) -> None:
        self._header = header
        self._proxies = proxies

    def find(self, peer: str, headers: Headers) -> str | None:
        """Return the name of the user. `peer`: the address of the connection, not one that was forwarded."""
        names = headers.getlist(self._header)
        if not names:
            return None
        if not self._proxies.has(peer):
            log.warning("header %s ignored: it is not from a trusted proxy", self._header, extra={"address": peer})
            return None
        if len(names) > 1:
            raise HttpError(400, "invalid", "the proxy has sent several users: it must remove this header of clients")
        try:
            return checks.name(names[0].strip(), "the user of the proxy")
        except Invalid as error:
            raise HttpError(400, "invalid", str(error)) from None
