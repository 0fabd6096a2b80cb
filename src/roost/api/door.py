"""The door: every request and every WebSocket passes here first, whoever answers it inside.

Turns away what comes by another name (DNS rebinding), from another site (CSRF, WebSocket hijacking) or is
too large; says who is asking; gives visitors their cookie; and sets the headers that keep browsers careful.
"""

from __future__ import annotations

from collections.abc import Collection
from time import monotonic
from urllib.parse import parse_qs, unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.api.auth import COOKIE, COOKIE_LIFE, Identity
from roost.api.entrance import spent_link
from roost.api.faults import Refused, reply_to
from roost.api.rates import Rates
from roost.core.limits import Limits
from roost.protocol.faults import USER_HEADER

LARGEST_ESCAPE = 6
"""A character of a message may take so many times its bytes in JSON."""
SLACK = 64 * 1024
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
USER = "roost.user"
LOCAL = "roost.local"

POLICY = "; ".join(
    (
        "default-src 'self'",
        # Streamlit's page has an inline script, and ours puts in its own through `st.html`.
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        # No image of another host is ever fetched, whatever an agent writes.
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
CLOSED = ("/_stcore/metrics", "/_stcore/agent")
"""Paths of Streamlit that are for operators and for programs, and would answer anybody."""


def most_bytes(limits: Limits) -> int:
    """The largest body that can be a message."""
    return limits.message_bytes * LARGEST_ESCAPE + SLACK


class Door:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, *, identity: Identity, limits: Limits, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._identity = identity
        self._hosts = LOOPBACK | {host.lower().strip("[]") for host in hosts}
        self._most = most_bytes(limits)
        self._rates = Rates(monotonic, limits.requests_per_second, limits.request_burst)
        self._addresses = Rates(monotonic, limits.address_requests_per_second, limits.address_request_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        send = self._careful(headers, send) if scope["type"] == "http" else send
        try:
            cookie = self._let_in(scope, headers)
        except Refused as error:
            return await _turn_away(error, scope, receive, send)
        if scope["type"] == "http" and scope["path"] == "/enter" and scope["method"] == "GET":
            return await self._enter(scope)(scope, receive, send)
        if _is_page_request(scope, headers):
            send = self._with_cookie(scope, cookie, send)
        return await self._app(scope, self._bounded(receive), send)

    # --- who comes in ----------------------------------------------------------------------------

    def _let_in(self, scope: Scope, headers: Headers) -> str | None:
        """Find out who it is, or raise; the browser's cookie, if it has one."""
        host = headers.get("host", "")
        if _name(host) not in self._hosts:
            raise Refused(421, "wrong_host", "this server is not known by that name: add it to `hosts` in the settings")
        if int_or_zero(headers.get("content-length")) > self._most:
            raise _too_large(self._most)
        if _is_closed(scope["path"]):
            raise Refused(404, "not_found", "there is nothing here")
        origin = headers.get("origin")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme:
            if scheme.lower() != "bearer" or not self._identity.is_local_token(token.strip()):
                raise Refused(401, "unauthenticated", "the token is not valid: it changes at each start of the server")
            # Whoever holds the token owns the store, and may speak for any of its users.
            scope[USER], scope[LOCAL] = unquote(headers.get(USER_HEADER, "")) or self._identity.local_user, True
            return None
        cookie = self._cookie(headers)
        scope[USER] = self._identity.user_of_cookie(cookie)
        self._bound((scope.get("client") or ("",))[0], scope[USER])
        if scope["type"] == "websocket" and origin is not None and not _same(origin, host):
            raise _foreign()
        if scope["type"] == "http" and scope["method"] not in SAFE and not self._is_own(scope, origin, host):
            raise _foreign()
        if scope["type"] == "websocket":
            _present(scope, cookie)
        return cookie

    def _bound(self, address: str, user: str | None) -> None:
        # Of each address too: anybody can be a new user with each request.
        if not (self._addresses.admits(address) and self._rates.admits(user or f"address {address}")):
            raise Refused(429, "limit_reached", "too many requests: wait a moment and try again")

    def _cookie(self, headers: Headers) -> str | None:
        """Our cookie; of several by that name, which another path or host may have set, the first that is good."""
        start = f"{self._identity.cookie_name}="
        found = [part.removeprefix(start) for part in _cookies(headers) if part.startswith(start)]
        good = [value for value in found if self._identity.user_of_cookie(value) is not None]
        return next(iter(good or found), None)

    def _is_own(self, scope: Scope, origin: str | None, host: str) -> bool:
        # Browsers tell the origin of whatever changes something. Whoever tells none needs a token anyway.
        return _same(origin, host) if origin is not None else scope[USER] is None

    def _enter(self, scope: Scope) -> Response:
        """A link of the command line: sign the browser in, once."""
        code = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("code", [""])[0]
        if not self._identity.redeem(code):
            if scope[USER] == self._identity.local_user:
                return RedirectResponse("/", 303)
            return spent_link()
        response = RedirectResponse("/", 303)
        response.headers["set-cookie"] = self._set_cookie(self._identity.local_user)
        return response

    # --- what goes out ---------------------------------------------------------------------------

    def _with_cookie(self, scope: Scope, cookie: str | None, send: Send) -> Send:
        """Give a visitor a user, and renew the cookie of one who has been here before."""
        user = scope[USER]
        if user is not None and not self._identity.wants_renewal(cookie):
            return send
        given = self._set_cookie(user or self._identity.new_user())

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

    def _careful(self, request: Headers, send: Send) -> Send:
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
                headers["content-security-policy"] = policy
                # Streamlit answers some of its paths for pages of every origin; ours are for our own.
                for name in ("access-control-allow-origin", "access-control-allow-credentials"):
                    if name in headers:
                        del headers[name]
            await send(message)

        return sending

    def _bounded(self, receive: Receive) -> Receive:
        """A body sent in pieces is counted as it comes."""
        got = 0

        async def receiving() -> Message:
            nonlocal got
            message = await receive()
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                if got > self._most:
                    raise _too_large(self._most)
            return message

        return receiving


async def _turn_away(error: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        return await reply_to(error)(scope, receive, send)
    await receive()
    return await send({"type": "websocket.close", "code": 1008})


def _is_page_request(scope: Scope, headers: Headers) -> bool:
    """Whether a browser opens a page; also when the page itself comes from its cache."""
    return scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def _is_closed(path: str) -> bool:
    return any(path == closed or path.startswith(f"{closed}/") for closed in CLOSED)


def _foreign() -> Refused:
    return Refused(403, "forbidden", "this was asked by a page of another site")


def _too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"the body is too large: {most:,} bytes are allowed")


def _name(host: str) -> str | None:
    """The name in a Host header, without the port."""
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
    """Show pages our cookie by its plain name, and no other cookie of that name."""
    others = [part for part in _cookies(Headers(scope=scope)) if not part.startswith(f"{COOKIE}=")]
    shown = "; ".join([*others, f"{COOKIE}={cookie}"] if cookie else others)
    kept = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
    scope["headers"] = [*kept, (b"cookie", shown.encode("latin-1"))]


def int_or_zero(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0
