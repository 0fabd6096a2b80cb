"""Cookies of sessions: their names and attributes, which depend on whether the browser uses TLS."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from roost.api.auth import COOKIE_LIFE, Identity
from roost.core.accounts.users import SESSION_LIFE

LOCKED = "__Host-"
"""Prefix of cookies that browsers accept over TLS only, and from no other host."""


class SessionCookies:
    """Reads and writes the cookies of browsers."""

    def __init__(self, identity: Identity, url: str | None = None) -> None:
        self._identity = identity
        parts = urlsplit(url or "")
        self._secure_host = parts.netloc if parts.scheme == "https" else None
        """Host that browsers reach over TLS, also if the proxy does not say so."""

    def is_secure(self, scope: Scope) -> bool:
        """Return whether a browser sent a request over TLS."""
        if scope.get("scheme") in ("https", "wss"):
            return True
        return self._secure_host is not None and Headers(scope=scope).get("host", "").lower() == self._secure_host

    def find(self, scope: Scope) -> str | None:
        """Return the cookie of a request. Another path or host may have set the same name: the first valid one counts.

        Over TLS a session counts only under the locked name, so that no other host of the domain can plant one.
        """
        given = cookies_in(Headers(scope=scope))
        plain = _named(given, self._identity.cookie_name)
        if not self.is_secure(scope):
            return self._first_valid(plain)
        locked = _named(given, LOCKED + self._identity.cookie_name)
        return self._first_valid(locked) or next(filter(self._is_without_account, plain), None)

    def header(self, scope: Scope, value: str) -> str:
        """Return the header that gives a browser a cookie."""
        cookie = self._identity.read_cookie(value)
        life = COOKIE_LIFE if cookie is None or cookie.epoch is None else SESSION_LIFE
        return self._header(scope, value, int(life))

    def removal(self, scope: Scope) -> str:
        return self._header(scope, "", 0)

    def _header(self, scope: Scope, value: str, life: int) -> str:
        name, more = self._identity.cookie_name, ""
        if self.is_secure(scope):
            name, more = LOCKED + name, "; Secure"
        return f"{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{more}"

    def _first_valid(self, found: list[str]) -> str | None:
        good = (value for value in found if self._identity.read_cookie(value) is not None)
        return next(good, None) or next(iter(found), None)

    def _is_without_account(self, value: str) -> bool:
        cookie = self._identity.read_cookie(value)
        return cookie is not None and cookie.epoch is None


def cookies_in(headers: Headers) -> list[str]:
    return [part.strip() for part in ";".join(headers.getlist("cookie")).split(";") if part.strip()]


def _named(given: list[str], name: str) -> list[str]:
    start = f"{name}="
    return [part.removeprefix(start) for part in given if part.startswith(start)]
