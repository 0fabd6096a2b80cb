"""The one rule: as soon as somebody can sign in, everybody has to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from time import monotonic

from roost.settings import Settings

REMEMBERED = 0.5
"""Seconds after which the store is asked again whether there is an account."""


class SignInMode:
    """State of sign-in: required or not. Once required, it is until the end of the process.

    Without that, deleting the last account would open a server on the network to everyone.
    """

    def __init__(self, settings: Settings, has_accounts: Callable[[], Awaitable[bool]] | None = None) -> None:
        self.is_on = bool(settings.is_exposed or settings.oidc or settings.proxy_user_header)
        """Last known answer, for the pages."""
        self._has_accounts = has_accounts
        self._read = -inf

    async def look(self) -> bool:
        """Return whether visitors have to sign in."""
        if not self.is_on and self._has_accounts is not None and monotonic() - self._read >= REMEMBERED:
            self.is_on = await self._has_accounts()
            self._read = monotonic()
        return self.is_on
