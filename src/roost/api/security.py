"""Security middleware: every request and every WebSocket passes it first.

It rejects unknown host names (DNS rebinding), other origins (CSRF, WebSocket hijacking) and large bodies,
authenticates the user, leads visitors to the sign-in page or issues cookies to them, and sets security headers.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.api.auth import COOKIE, Identity
from roost.api.credentials import Credential, CredentialKind, CredentialVerifier
from roost.api.error_responses import LOCAL, HttpError, reply_to, unauthenticated
from roost.api.limits.rate_limits import Nodes
from roost.api.limits.requests import RequestLimits
from roost.api.notices import expired_link
from roost.api.security_headers import careful
from roost.api.sign_in.authentication import VisitorAuthentication
from roost.api.sign_in.cookies import SessionCookies, cookies_in
from roost.api.sign_in.hosts import KnownHosts, is_same_origin
from roost.api.sign_in.paths import FORMS, OPEN, sign_in_path
from roost.api.sign_in.proxies import ProxyUsers, TrustedProxies
from roost.core.accounts.tokens import PREFIX
from roost.core.webhooks.hook import PATH
from roost.errors import RoostError
from roost.protocol.errors import USER_HEADER
from roost.settings import Settings

log = logging.getLogger("roost.api.security")

REFUSALS = frozenset({401, 403, 413, 421, 429, 503})
"""Statuses that are logged for operators; others are mistakes of clients."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
USER = "roost.user"
SCOPES = "roost.scopes"
"""Key in the scope of a request: the scopes of its API token."""
CREDENTIAL = "roost.credential"
"""Key in the scope of a request: the credential by which its user was authenticated."""
PEER = "roost.peer"
"""Key in the scope of a request: the address of the connection, which may be that of a proxy."""

PROGRAMS = ("/api/", "/v1/", "/mcp", "/rpc")
"""Starts of the paths of programs."""
PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that need no user."""
CLOSED = ("/_stcore/metrics", "/_stcore/agent")
"""Paths of Streamlit for operators and programs, which it would serve to anyone."""


class SecurityMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        identity: Identity,
        settings: Settings,
        authentication: VisitorAuthentication | None = None,
        verifier: CredentialVerifier | None = None,
        nodes: Nodes = lambda: 1,
    ) -> None:
        self._app = app
        self._identity = identity
        self._authentication = authentication or VisitorAuthentication(identity)
        self._verifier = verifier or CredentialVerifier(self._authentication.verify)
        self._cookies = SessionCookies(identity, settings.url)
        header = settings.proxy_user_header
        self._proxy_users = ProxyUsers(header, TrustedProxies(settings.trusted_proxies)) if header else None
        self._hosts = KnownHosts(settings)
        self._limits = RequestLimits(settings.limits, nodes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if scope["type"] == "http":
            host = headers.get("host", "")
            send = careful(_noting(scope, send), scope["path"], host if self._hosts.has(host) else None)
        try:
            await self._let_in(scope, headers)
            if (elsewhere := await self._elsewhere(scope, headers)) is not None:
                return await elsewhere(scope, receive, send)
        except (HttpError, RoostError) as error:
            return await _turn_away(error, scope, receive, send)
        is_page = _is_page_request(scope, headers) and scope["path"] not in PROBES
        if is_page and SCOPES not in scope:  # a cookie may do more than a token
            send = await self._with_cookie(scope, send)
        body = self._limits.body(_address(scope), scope[USER])
        receive = self._limits.bounded(scope["path"], receive, body)
        try:
            if (credential := scope.get(CREDENTIAL)) is not None:
                return await self._verifier.watched(credential, self._app, scope, receive, send)
            return await self._app(scope, receive, send)
        finally:
            body.end()
            if not scope.get(LOCAL):
                self._limits.charge(_address(scope), scope[USER], body.size)

    async def _elsewhere(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a link of the command line, and to visitors who have to sign in; raise 401 to others."""
        if scope["type"] == "http" and scope["path"] == "/enter" and scope["method"] == "GET":
            return await self._enter(scope)
        if scope[USER] is not None or _is_open(scope) or not await self._authentication.requires_sign_in():
            return None
        if not _is_page_request(scope, headers) or scope["path"].startswith(PROGRAMS):
            raise unauthenticated()
        query = scope.get("query_string", b"").decode("latin-1")
        return RedirectResponse(sign_in_path(scope["path"], query), 303, {"Cache-Control": "no-store"})

    # --- authentication ----------------------------------------------------------------------------

    async def _let_in(self, scope: Scope, headers: Headers) -> None:
        """Authenticate a request, or raise HttpError."""
        host = headers.get("host", "")
        if not self._hosts.has(host):
            raise HttpError(421, "wrong_host", "unknown host name: add it to `hosts` in the settings")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise HttpError(400, "invalid", "send a Content-Length or a Transfer-Encoding", {"Connection": "close"})
        self._limits.check_length(scope["path"], headers.get("content-length"))
        if _is_closed(scope["path"]):
            raise HttpError(404, "not_found", "no such page")
        # A hook verifies the token in its URL itself, before it reads the body. Probes work without the store.
        if _is_hook(scope) or scope["path"] in PROBES:
            scope[USER] = None
            return self._limits.count(_address(scope), None)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme:
            if scope["type"] == "websocket":
                _present(scope, None)  # a page does not verify our cookie again: a token must not bring one along
            return await self._accept_token(scope, headers, scheme, token.strip())
        await self._accept_browser(scope, headers)
        is_unsafe = scope["type"] == "http" and scope["method"] not in SAFE
        if is_unsafe and not self._is_own(scope, headers.get("origin"), host):
            raise _foreign()
        if scope["type"] == "websocket" and not self._is_own_socket(scope, headers.get("origin"), host):
            raise _foreign()
        if is_unsafe and scope[USER] is None and not _is_open(scope):
            raise unauthenticated()  # before a byte of the body is read
        if scope["type"] == "websocket":
            _present(scope, self._identity.cookie(scope[USER]) if scope[USER] is not None else None)
        return None

    async def _accept_browser(self, scope: Scope, headers: Headers) -> None:
        """Authenticate a request by its cookie, or by the header of a trusted proxy."""
        cookie = self._cookies.find(scope)
        signed_for = self._identity.user_of_cookie(cookie)
        scope[USER] = signed_for  # for the log, if there were too many requests
        self._limits.count(_address(scope), signed_for)
        scope[USER] = None
        name = self._proxy_users.find(scope.get(PEER, ""), headers) if self._proxy_users else None
        if name is not None:
            credential = Credential(CredentialKind.PROXY, name)
        elif cookie is not None and signed_for is not None:
            credential = Credential(CredentialKind.COOKIE, cookie)
        else:
            return
        if (grant := await self._verifier.verified(credential)) is not None:
            scope[USER], scope[CREDENTIAL] = grant.user_id, credential

    async def _accept_token(self, scope: Scope, headers: Headers, scheme: str, secret: str) -> None:
        """Authenticate a request by its token: that of this server, an API token, or one of the identity provider."""
        if scheme.lower() == "bearer" and self._identity.is_local_token(secret):
            # The holder of the token owns the store, and may act for any of its users.
            scope[USER], scope[LOCAL] = unquote(headers.get(USER_HEADER, "")) or self._identity.local_user, True
            return
        address = _address(scope)
        self._limits.count_address(address)  # also before a wrong token is looked up
        credential = Credential(CredentialKind.TOKEN, secret)
        if not secret.startswith(PREFIX):
            credential = Credential(CredentialKind.ACCESS_TOKEN, secret)
        is_bearer = scheme.lower() == "bearer" and bool(secret)
        grant = await self._verifier.verified(credential) if is_bearer else None
        if grant is None:
            raise unauthenticated(_INVALID_TOKEN if is_bearer else _NO_BEARER)
        if unquote(headers.get(USER_HEADER, "")) not in ("", grant.user_id):
            raise HttpError(403, "forbidden", "this token is for another user: use the one who created it")
        self._limits.count_user(address, grant.user_id)
        scope[USER], scope[SCOPES], scope[CREDENTIAL] = grant.user_id, grant.scopes, credential

    def _is_own(self, scope: Scope, origin: str | None, host: str) -> bool:
        # Browsers send the origin with each unsafe request. Clients that send none need a token anyway.
        if origin is None:
            return scope[USER] is None and scope["path"] not in FORMS
        return is_same_origin(origin, host, is_secure=self._cookies.is_secure(scope))

    def _is_own_socket(self, scope: Scope, origin: str | None, host: str) -> bool:
        return origin is None or is_same_origin(origin, host, is_secure=self._cookies.is_secure(scope))

    async def _enter(self, scope: Scope) -> Response:
        """Redeem a sign-in link and redirect to the page."""
        code = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("code", [""])[0]
        if not await self._authentication.redeem(code):
            _note("sign-in link rejected: used or expired", scope)
            if scope[USER] == self._identity.local_user:
                return RedirectResponse("/", 303)
            return expired_link()
        _note("signed in with a link", scope, signed_in=self._identity.local_user)
        response = RedirectResponse("/", 303)
        response.headers["set-cookie"] = self._cookies.header(scope, await self._authentication.local_cookie())
        return response

    # --- responses ---------------------------------------------------------------------------

    async def _with_cookie(self, scope: Scope, send: Send) -> Send:
        """Create a user for a new visitor, and renew the cookie of a known one."""
        given = self._renewed(scope) if scope[USER] is not None else await self._new_visitor(scope)
        if given is None:
            return send
        header = self._cookies.header(scope, given)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                headers = MutableHeaders(scope=message)
                if "set-cookie" not in headers:  # a form has signed somebody in or out
                    headers.append("set-cookie", header)
                headers["cache-control"] = "no-store"
            await send(message)

        return sending

    async def _new_visitor(self, scope: Scope) -> str | None:
        if await self._authentication.requires_sign_in():
            return None
        user = self._identity.new_user()
        _note("new visitor", scope, signed_in=user)
        return self._identity.cookie(user)

    def _renewed(self, scope: Scope) -> str | None:
        """Return a newer cookie of the same session, if the one of the request is old."""
        credential: Credential | None = scope.get(CREDENTIAL)
        if credential is None or credential.kind is not CredentialKind.COOKIE:
            return None
        cookie = self._identity.read_cookie(credential.value)
        if cookie is None or not self._identity.wants_renewal(cookie):
            return None
        return self._identity.renewed(cookie)


def _noting(scope: Scope, send: Send) -> Send:
    """Log rejected requests with their user and address."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in REFUSALS:
            _note("request rejected", scope, status=message["status"])
        await send(message)

    return sending


def _note(what: str, scope: Scope, **facts: Any) -> None:
    """Log a line about a request, without its query (which may hold a code) and its body."""
    told = {"method": scope.get("method", "WEBSOCKET"), "path": _shown(scope["path"])}
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


def _is_open(scope: Scope) -> bool:
    """Return whether people may use this path before they are signed in."""
    return scope["type"] == "http" and (scope["path"] in OPEN or _is_hook(scope))


def _is_closed(path: str) -> bool:
    return any(path == closed or path.startswith(f"{closed}/") for closed in CLOSED)


def _is_hook(scope: Scope) -> bool:
    """Return whether a program posts to a hook: it has no user who signs in."""
    return scope["type"] == "http" and bool(scope["path"].startswith(PATH))


def _shown(path: str) -> str:
    """Return a path for the log; that of a hook is secret."""
    return f"{PATH}…" if path.startswith(PATH) else path[:200]


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


_INVALID_TOKEN = "the token is not valid: it was revoked, has expired, or is that of an earlier start of the server"
_NO_BEARER = "the header must be `Authorization: Bearer TOKEN`, with an API token"


def _foreign() -> HttpError:
    return HttpError(403, "forbidden", "rejected: the request comes from a page of another site")


def _present(scope: Scope, cookie: str | None) -> None:
    """Pass our cookie to pages under its plain name, and remove other cookies of that name."""
    others = [part for part in cookies_in(Headers(scope=scope)) if not part.startswith(f"{COOKIE}=")]
    shown = "; ".join([*others, f"{COOKIE}={cookie}"] if cookie else others)
    kept = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
    scope["headers"] = [*kept, (b"cookie", shown.encode("latin-1"))]
