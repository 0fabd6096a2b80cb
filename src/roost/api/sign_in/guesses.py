"""Guessing of passwords, slowed per account and per address, on all nodes together."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from math import ceil

from roost.api.auth import Identity
from roost.core.accounts.guesses import Guesser
from roost.errors import Unavailable
from roost.service import AsyncAgentService

LONGEST_NAME = 100
"""Characters of a name that count; no account has a longer one."""


class TooManyGuesses(Exception):
    """Refusal of a try, with the whole seconds to wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, ceil(seconds))
        super().__init__(f"Too many attempts. Wait {_shown(self.seconds)}, then try again.")


class GuessLimit:
    """Counts failed tries in the store, by digests: people type passwords into the field of the name.

    A try counts as failed until it has succeeded, so that tries at the same time are counted too. An address from which
    an account was used before has a count of its own for it: others cannot delay its user there.
    """

    def __init__(self, service: AsyncAgentService, identity: Identity) -> None:
        self._users = service.users
        self._identity = identity

    async def take(self, name: str, address: str) -> None:
        """Count a try. Raise TooManyGuesses, and count nothing, if it comes too early.

        An empty name or address is not known, and not counted.
        """
        if (wait := await self._users.count_guess(self._guesser(name, address))) > 0:
            raise TooManyGuesses(wait)

    async def take_back(self, name: str, address: str) -> None:
        """Take back the count of a try that was not verified."""
        await self._take_back(name, address, succeeded=False)

    async def succeeded(self, name: str, address: str) -> None:
        """Take back the count of a try. Earlier failures stay: a thief with an account of their own gains nothing."""
        await self._take_back(name, address, succeeded=True)

    async def _take_back(self, name: str, address: str, *, succeeded: bool) -> None:
        with suppress(Unavailable):  # the try stays counted
            await self._users.take_back_guess(self._guesser(name, address), succeeded=succeeded)

    def _guesser(self, name: str, address: str) -> Guesser:
        place, name = network(address), name[:LONGEST_NAME]
        return Guesser(
            self._digest("account", name) if name else "",
            self._digest("address", place) if place else "",
            self._digest("pair", f"{place} {name}") if name else "",
        )

    def _digest(self, kind: str, text: str) -> str:
        return self._identity.derived(f"guesses of {kind}", text)


def network(address: str) -> str:
    """Return what one client can choose from: an IPv4 address, or a /64 network of IPv6."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _shown(seconds: int) -> str:
    if seconds < 120:
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    return f"{ceil(seconds / 60)} minutes"
