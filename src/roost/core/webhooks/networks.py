"""Networks that requests to users' URLs may reach.

A name is checked after it was resolved, and the request goes to the address that was checked.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from roost.core.values import checks
from roost.errors import Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK = ("127.0.0.0/8", "::1/128")
LONGEST_URL = 2_000
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """Rule for requests to URLs of users: public addresses by https, and `networks` also by http."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, networks: Iterable[str]) -> NetworkPolicy:
        return cls(tuple(ipaddress.ip_network(network, strict=False) for network in networks))

    def check_url(self, url: object) -> str:
        """Return a URL, or raise Invalid; a name is not resolved."""
        parts = _parts(url)
        host = _host(parts)
        if parts.scheme == "http" and not self._may_be_plain(host):
            raise Invalid("the URL must begin with https://: http is only for networks in `webhook_networks`")
        address = _literal(host)
        if address is not None and self.problem(parts.scheme, address) is not None:
            raise Invalid(f"the URL must not lead to {str(address)!r}: its network is not in `webhook_networks`")
        return parts.geturl()

    def problem(self, scheme: str, address: Address) -> str | None:
        """Return why a request must not be sent to an address, or None if it may be."""
        forms = list(_forms(address))
        if any(forms[-1] in network for network in self.networks):
            return None
        if not all(_is_public(form) for form in forms):
            return "the host has an address in a network that is not allowed (`webhook_networks`)"
        return None if scheme == "https" else "a host outside of the allowed networks needs https"

    def _may_be_plain(self, host: str) -> bool:
        address = _literal(host)
        if address is not None:
            return self.problem("http", address) is None
        if host == "localhost" or host.endswith(".localhost"):
            return any(network.is_loopback for network in self.networks)
        return any(not network.is_loopback for network in self.networks)


def host_of(url: str) -> tuple[str, str, int]:
    """Return the scheme, the host and the port of a checked URL."""
    parts = urlsplit(url)
    return parts.scheme, _host(parts), parts.port or (443 if parts.scheme == "https" else 80)


def _parts(url: object) -> SplitResult:
    text = checks.text(url, "the URL", most=LONGEST_URL)
    if not text.isascii() or not text.isprintable() or any(sign in text for sign in ' "<>\\^`{|}'):
        raise Invalid("the URL must have only the characters of a URL: encode others as %20 and the like")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise Invalid("the URL is not valid: use one such as https://example.com/hook") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise Invalid("the URL must begin with https:// and a host: use one such as https://example.com/hook")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise Invalid("the URL must not have a name or a password: check the signature of requests instead")
    return parts._replace(fragment="")


def _host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".").lower()


def _literal(host: str) -> Address | None:
    """Return the address that a host is written as. Raise Invalid for other forms of numbers, such as 0x7f.1."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        last = host.rpartition(".")[2]
        if not last or last.isdigit() or last.startswith("0x") or ":" in host:
            raise Invalid(
                f"the host {host!r:.80} is not valid: write an address as four numbers, or use a name"
            ) from None
        return None


def _forms(address: Address) -> Iterator[Address]:
    """Yield an address, and the addresses of IPv4 that are embedded in it; the last one is where packets arrive."""
    yield address
    if not isinstance(address, ipaddress.IPv6Address):
        return
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return True  # the embedded address is checked by itself
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
