"""Security middleware: every request and every WebSocket passes it first.

It rejects unknown host names (DNS rebinding), other origins (CSRF, WebSocket hijacking) and large bodies,
authenticates the user, issues cookies to visitors, and sets security headers.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.api.auth import COOKIE, COOKIE_LIFE, Identity
from roost.api.error_responses import LOCAL, HttpError, reply_to, unauthenticated
from roost.api.limits.body_memory import SHARES, BodyAllocation, BodyMemory
from roost.api.limits.rate_limits import RateLimit
from roost.api.notices import expired_link
from roost.api.tokens import TokenVerifier
from roost.core.limits.limits import Limits
from roost.errors import RoostError
from roost.protocol.errors import USER_HEADER

log = logging.getLogger("roost.api.security")

REFUSALS = frozenset({401, 403, 413, 421, 429, 503})
"""Statuses that are logged for operators; others are mistakes of clients."""
LARGEST_ESCAPE = 6
"""Largest factor by which JSON escapes lengthen a character."""
SLACK = 64 * 1024
CHARGED = 256 * 1024
"""Bytes of a body that count as one more request in rate limits."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
USER = "roost.user"
SCOPES = "roost.scopes"
"""Key in the scope of a request: the scopes of its API token."""
SECRET = "roost.secret"

POLICY = "; ".join(
    (
        "default-src 'self'",
        # Streamlit's page has an inline script, and our pages add one through `st.html`.
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        # Images of other hosts are never fetched, even if an agent's answer contains them.
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' {socket}",
        "worker-src 'self' blob:",
        "frame-src 'self' blob: data:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
UPLOADS = "/api/v1/attachments"
"""Path whose bodies are files."""
CLOSED = ("/_stcore/metrics", "/_stcore/agent")
"""Paths of Streamlit for operators and programs, which it would serve to anyone."""


def most_bytes(limits: Limits) -> int:
    """Return the size of the largest body that can hold a valid message."""
    return limits.message_bytes * LARGEST_ESCAPE + SLACK


class SecurityMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        identity: Identity,
        limits: Limits,
        hosts: Collection[str] = (),
        tokens: TokenVerifier | None = None,
    ) -> None:
        self._app = app
        self._identity = identity
        self._tokens = tokens
        self._hosts = LOOPBACK | {host.lower().strip("[]") for host in hosts}
        self._most = most_bytes(limits)
        self._most_of_file = limits.attachment_bytes + SLACK
        self._rates = RateLimit(monotonic, limits.requests_per_second, limits.request_burst)
        self._addresses = RateLimit(monotonic, limits.address_requests_per_second, limits.address_request_burst)
        self._bodies = BodyMemory(max(limits.bodies_mib * 1024 * 1024, max(self._most, self._most_of_file) * SHARES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        send = (
            self._careful(headers, _noting(scope, send), is_api=scope["path"].startswith("/api/"))
            if scope["type"] == "http"
            else send
        )
        try:
            cookie = await self._let_in(scope, headers)
        except (HttpError, RoostError) as error:
            return await _turn_away(error, scope, receive, send)
        if scope["type"] == "http" and scope["path"] == "/enter" and scope["method"] == "GET":
            return await self._enter(scope)(scope, receive, send)
        if _is_page_request(scope, headers) and SCOPES not in scope:  # a cookie may do more than a token
            send = self._with_cookie(scope, cookie, send)
        body = self._bodies.body(_asker(scope))
        receive = self._bounded(scope, receive, body)
        try:
            if (secret := scope.pop(SECRET, None)) is not None and self._tokens is not None:
                return await self._tokens.watched(secret, self._app, scope, receive, send)
            return await self._app(scope, receive, send)
        finally:
            body.end()
            self._charge(scope, body.size)

    # --- authentication ----------------------------------------------------------------------------

    async def _let_in(self, scope: Scope, headers: Headers) -> str | None:
        """Authenticate a request, or raise HttpError; return the browser's cookie, if it has one."""
        host = headers.get("host", "")
        if _name(host) not in self._hosts:
            raise HttpError(421, "wrong_host", "unknown host name: add it to `hosts` in the settings")
        if int_or_zero(headers.get("content-length")) > (most := self._most_bytes(scope)):
            raise _too_large(scope, most)
        if _is_closed(scope["path"]):
            raise HttpError(404, "not_found", "no such page")
        origin = headers.get("origin")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme:
            await self._accept_token(scope, headers, scheme, token.strip())
            return None
        cookie = self._cookie(headers)
        scope[USER] = self._identity.user_of_cookie(cookie)
        self._bound(_address(scope), scope[USER])
        if scope["type"] == "websocket" and origin is not None and not _same(origin, host):
            raise _foreign()
        if scope["type"] == "http" and scope["method"] not in SAFE and not self._is_own(scope, origin, host):
            raise _foreign()
        if scope["type"] == "http" and scope["method"] not in SAFE and scope[USER] is None:
            raise unauthenticated()  # before a byte of the body is read
        if scope["type"] == "websocket":
            _present(scope, cookie)
        return cookie

    async def _accept_token(self, scope: Scope, headers: Headers, scheme: str, secret: str) -> None:
        """Authenticate a request by its token: that of this server, or an API token of a user."""
        if scheme.lower() == "bearer" and self._identity.is_local_token(secret):
            # The holder of the token owns the store, and may act for any of its users.
            scope[USER], scope[LOCAL] = unquote(headers.get(USER_HEADER, "")) or self._identity.local_user, True
            return
        address = _address(scope)
        if not self._addresses.admits(address):  # also before a wrong token is looked up
            raise _too_many()
        token = await self._tokens.verified(secret) if self._tokens and scheme.lower() == "bearer" else None
        if token is None:
            raise HttpError(
                401,
                "unauthenticated",
                "the token is not valid: it was revoked, has expired, or is that of an earlier start of the server",
                {"WWW-Authenticate": "Bearer"},
            )
        if unquote(headers.get(USER_HEADER, "")) not in ("", token.user_id):
            raise HttpError(403, "forbidden", "this token is for another user: use the one who created it")
        if not self._rates.admits(token.user_id):
            raise _too_many()
        scope[USER], scope[SCOPES], scope[SECRET] = token.user_id, token.scopes, secret

    def _bound(self, address: str, user: str | None) -> None:
        # Addresses are limited too: a client can become a new user with each request.
        if not (self._addresses.admits(address) and self._rates.admits(_key(user, address))):
            raise _too_many()

    def _charge(self, scope: Scope, size: int) -> None:
        """Count a large body as several requests, since reading it takes as long."""
        if size >= CHARGED and not scope.get(LOCAL):
            for rates, key in ((self._addresses, _address(scope)), (self._rates, _asker(scope))):
                rates.charge(key, size // CHARGED)

    def _cookie(self, headers: Headers) -> str | None:
        """Return our cookie. Another path or host may have set the same name: the first valid one is used."""
        start = f"{self._identity.cookie_name}="
        found = [part.removeprefix(start) for part in _cookies(headers) if part.startswith(start)]
        good = [value for value in found if self._identity.user_of_cookie(value) is not None]
        return next(iter(good or found), None)

    def _is_own(self, scope: Scope, origin: str | None, host: str) -> bool:
        # Browsers send the origin with each unsafe request. Clients that send none need a token anyway.
        return _same(origin, host) if origin is not None else scope[USER] is None

    def _enter(self, scope: Scope) -> Response:
        """Redeem a sign-in link and redirect to the page."""
        code = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("code", [""])[0]
        if not self._identity.redeem(code):
            _note("sign-in link rejected: used or expired", scope)
            if scope[USER] == self._identity.local_user:
                return RedirectResponse("/", 303)
            return expired_link()
        _note("signed in with a link", scope, signed_in=self._identity.local_user)
        response = RedirectResponse("/", 303)
        response.headers["set-cookie"] = self._set_cookie(self._identity.local_user)
        return response

    # --- responses ---------------------------------------------------------------------------

    def _with_cookie(self, scope: Scope, cookie: str | None, send: Send) -> Send:
        """Create a user for a new visitor, and renew the cookie of a known one."""
        user = scope[USER]
        if user is not None and not self._identity.wants_renewal(cookie):
            return send
        if user is None:
            user = self._identity.new_user()
            _note("new visitor", scope, signed_in=user)
        given = self._set_cookie(user)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                headers = MutableHeaders(scope=message)
                headers.append("set-cookie", given)
                headers["cache-control"] = "no-store"
            await send(message)

        return sending

    def _set_cookie(self, user_id: str) -> str:
        value = self._identity.cookie(user_id)
        return f"{self._identity.cookie_name}={value}; Path=/; Max-Age={COOKIE_LIFE}; HttpOnly; SameSite=Lax"

    def _careful(self, request: Headers, send: Send, *, is_api: bool) -> Send:
        socket = f"ws://{request.get('host', '')} wss://{request.get('host', '')}"
        known = _name(request.get("host", "")) in self._hosts
        policy = POLICY.format(socket=socket if known else "")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers["x-frame-options"] = "DENY"
                headers["referrer-policy"] = "same-origin"
                headers["cross-origin-opener-policy"] = "same-origin"
                headers["cross-origin-resource-policy"] = "same-origin"
                if not is_api or "content-security-policy" not in headers:  # files have a stricter one
                    headers["content-security-policy"] = policy
                # Streamlit allows every origin on some of its paths; we allow only our own.
                for name in ("access-control-allow-origin", "access-control-allow-credentials"):
                    if name in headers:
                        del headers[name]
            await send(message)

        return sending

    def _most_bytes(self, scope: Scope) -> int:
        return self._most_of_file if scope["path"] == UPLOADS else self._most

    def _bounded(self, scope: Scope, receive: Receive, body: BodyAllocation) -> Receive:
        """Limit the size of a body while it is received, and of all bodies together."""
        most = self._most_bytes(scope)

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                fits = body.grow(len(message.get("body", b"")))
                if body.size > most:
                    raise _too_large(scope, most)
                if not fits:
                    raise HttpError(503, "unavailable", "too many large requests at once: try again in a moment")
            return message

        return receiving


def _noting(scope: Scope, send: Send) -> Send:
    """Log rejected requests with their user and address."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in REFUSALS:
            _note("request rejected", scope, status=message["status"])
        await send(message)

    return sending


def _note(what: str, scope: Scope, **facts: Any) -> None:
    """Log a line about a request, without its query (which may hold a code) and its body."""
    told = {"method": scope.get("method", "WEBSOCKET"), "path": scope["path"][:200]}
    log.info(what, extra={**told, "user": scope.get(USER), "address": _address(scope), **facts})


async def _turn_away(error: HttpError | RoostError, scope: Scope, receive: Receive, send: Send) -> None:
    answer = reply_to(error)
    if scope["type"] == "http":
        return await answer(scope, receive, send)
    _note("WebSocket rejected", scope, status=answer.status_code)
    await receive()
    return await send({"type": "websocket.close", "code": 1008})


def _is_page_request(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser loads a page."""
    return scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def _is_closed(path: str) -> bool:
    return any(path == closed or path.startswith(f"{closed}/") for closed in CLOSED)


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _asker(scope: Scope) -> str:
    return _key(scope[USER], _address(scope))


def _key(user: str | None, address: str) -> str:
    return user or f"address {address}"


def _too_many() -> HttpError:
    return HttpError(429, "limit_reached", "too many requests: wait a moment and try again")


def _foreign() -> HttpError:
    return HttpError(403, "forbidden", "rejected: the request comes from a page of another site")


def _too_large(scope: Scope, most: int) -> HttpError:
    if scope["path"] == UPLOADS:
        most_of_file = (most - SLACK) / 1_000_000
        return HttpError(413, "too_large", f"the file is too large: at most {most_of_file:.1f} MB can be sent")
    return HttpError(413, "too_large", f"the body is too large: the limit is {most:,} bytes")


def _name(host: str) -> str | None:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _same(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and bool(host) and rest.lower() == host.lower()


def _cookies(headers: Headers) -> list[str]:
    return [part.strip() for part in ";".join(headers.getlist("cookie")).split(";") if part.strip()]


def _present(scope: Scope, cookie: str | None) -> None:
    """Pass our cookie to pages under its plain name, and remove other cookies of that name."""
    others = [part for part in _cookies(Headers(scope=scope)) if not part.startswith(f"{COOKIE}=")]
    shown = "; ".join([*others, f"{COOKIE}={cookie}"] if cookie else others)
    kept = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
    scope["headers"] = [*kept, (b"cookie", shown.encode("latin-1"))]


def int_or_zero(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0
