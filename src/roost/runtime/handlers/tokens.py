"""API tokens: programs act with them for the user who created them."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from roost.core.accounts.tokens import ALL, LONGEST_LIFE, ApiToken, CreatedToken, checked_scopes, digest, new_secret
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.errors import Invalid
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.accounts.actions import new_action
from roost.stores.sql import tokens

MOST_TOKENS = 100
"""Tokens of one user."""


class Tokens:
    """Tokens of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    async def create(
        self, user_id: str, name: str, *, scopes: Sequence[str] = (ALL,), expires_in: float | None = None
    ) -> CreatedToken:
        """Create a token for a program, with the secret that it sends; the secret cannot be read again.

        `scopes`: `*` for everything, `*:read`, or nouns such as `talks`, `agents:read`. `expires_in`: seconds.
        """
        checks.name(user_id, "the user id")
        named = checks.name(checks.name(name, "the name of the token").strip(), "the name of the token")
        allowed = checked_scopes(scopes)
        life = None if expires_in is None else checks.seconds(expires_in, "`expires_in`")
        if life is not None and not 0 < life <= LONGEST_LIFE:
            raise Invalid("`expires_in` must be more than 0 seconds and at most ten years; leave it out for no expiry")
        secret, token_id = new_secret(), self._context.host.new_id("token")
        by = new_action(self._context.host, user_id, "tokens.create")
        made = await self._context.store.write(
            tokens.create,
            token_id,
            user_id,
            named,
            digest(secret),
            " ".join(allowed),
            life,
            MOST_TOKENS,
            by,
            key=f"tokens {user_id}",
        )
        return CreatedToken(made, secret)

    async def list(self, user_id: str, *, limit: int = PAGE, after: str = "") -> builtins.list[ApiToken]:
        """Return the tokens of a user, oldest first, without their secrets; expired ones too."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(tokens.listed, user_id, limit, checks.place(after, "`after`"))

    async def revoke(self, user_id: str, token_id: str) -> None:
        """Revoke a token: requests with it are refused, and connections with it are closed within a second."""
        checks.name(user_id, "the user id")
        by = new_action(self._context.host, user_id, "tokens.revoke")
        await self._context.store.write(tokens.revoke, user_id, checks.name(token_id, "the token id"), by)

    async def authenticate(self, secret: str) -> ApiToken | None:
        """Return the token of a secret; None if there is none, or if it has expired. For servers."""
        found = await self._context.store.read(tokens.find, digest(secret))
        if found is None or found.expires is None:
            return found
        return found if found.expires.timestamp() > self._context.host.clock.now() else None
