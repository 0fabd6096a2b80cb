"""Signing in at the identity provider: `/oidc/start` and `/oidc/callback` (authorization code flow with PKCE)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roost.api.account_pages.context import AccountPages, see_other
from roost.api.account_pages.forms import as_sentence
from roost.api.notices import page
from roost.api.routes.dependencies import address_of
from roost.api.sign_in.cookies import cookies_in
from roost.api.sign_in.guesses import TooManyGuesses
from roost.api.sign_in.oidc import OidcProvider, SignedInPerson
from roost.api.sign_in.paths import OIDC_CALLBACK, OIDC_START, SIGN_IN, local_path
from roost.core.accounts.tokens import digest
from roost.core.accounts.users import Account, Role
from roost.errors import Forbidden, RoostError
from roost.oidc_settings import is_in

log = logging.getLogger("roost.api.oidc")

STATE_LIFE = 600
"""Seconds for signing in at the provider."""
SESSION_LIFE = 24 * 3600.0
"""Seconds after which users sign in again at the provider, which may know that somebody has left."""
_STATE = "oidc state"


class OidcPages:
    """Sends browsers to the provider, and signs in people that come back."""

    def __init__(self, pages: AccountPages, provider: OidcProvider, url: str | None) -> None:
        self._pages = pages
        self._provider = provider
        self._url = url

    def routes(self) -> list[Route]:
        return [
            Route(OIDC_START, self.start, methods=["GET"], include_in_schema=False),
            Route(OIDC_CALLBACK, self.finish, methods=["GET"], include_in_schema=False),
        ]

    async def start(self, request: Request) -> Response:
        state = secrets.token_urlsafe(32)
        settings = self._provider.settings
        asked = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": self._redirect(request),
            "scope": " ".join(settings.scopes),
            "state": state,
            "nonce": self._derived("nonce", state),
            "code_challenge": _challenge(self._derived("verifier", state)),
            "code_challenge_method": "S256",
        }
        try:
            url = await self._provider.authorization_url()
        except RoostError as error:
            return _refused(error, 503)
        response = see_other(f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}")
        path = local_path(request.query_params.get("next"))
        response.headers["set-cookie"] = self._cookie(request, self._signed(state, path), STATE_LIFE)
        return response

    async def finish(self, request: Request) -> Response:
        """Accept a browser that comes back with the state that it was sent with."""
        guesser = self._pages.guesser(request)
        try:
            await self._pages.guesses.take("", guesser)  # the provider is asked about each code
            state, path = await self._accepted(request)
            person = await self._person(request, state)
            account = await self._account(person, address_of(request))
        except TooManyGuesses as error:
            return page("Too many attempts", f"<p>{error}</p>", 429, {"Retry-After": str(error.seconds)})
        except RoostError as error:
            log.info("sign-in at the identity provider failed: %s", error, extra={"address": address_of(request)})
            response = _refused(error, 403 if isinstance(error, Forbidden) else 503)
        else:
            await self._pages.guesses.succeeded("", guesser)
            response = await self._pages.signed_in(request, account, self._provider.issuer, path, life=SESSION_LIFE)
        response.headers.append("set-cookie", self._cookie(request, "", 0))
        return response

    async def _person(self, request: Request, state: str) -> SignedInPerson:
        asked = request.query_params
        named = asked.get("iss")
        if (named is not None or await self._provider.requires_issuer()) and named != self._provider.issuer:
            raise Forbidden("the answer is from another identity provider: sign in again")
        if not (code := asked.get("code", "")) or len(code) > 4_000:
            raise Forbidden("the identity provider has not signed you in: try again, or ask an admin")
        verifier, nonce = self._derived("verifier", state), self._derived("nonce", state)
        return await self._provider.sign_in(code, verifier, nonce, self._redirect(request))

    async def _account(self, person: SignedInPerson, address: str) -> Account:
        users, local = self._pages.service.users, self._pages.identity.local_user
        account = await users.identify(self._provider.issuer, person.subject, person.suggested_name, address)
        if person.email is not None and is_in(person.email, self._provider.settings.admins):
            return await users.set_role(local, account.user_id, Role.ADMIN)
        return account

    # --- state --------------------------------------------------------------------------------------

    async def _accepted(self, request: Request) -> tuple[str, str]:
        """Return the state of a browser, once, and the page to go to."""
        given = request.query_params.get("state", "")
        start = f"{self._name}="
        found = [one.removeprefix(start) for one in cookies_in(request.headers) if one.startswith(start)]
        state, issued, path = self._read(found[0]) if len(found) == 1 else ("", 0, "/")
        is_same = state != "" and hmac.compare_digest(given.encode(errors="replace"), state.encode())
        until, users = issued + STATE_LIFE, self._pages.service.users
        if not is_same or self._pages.identity.now() > until or not await users.use_code(digest(state), until):
            raise Forbidden("this sign-in has expired or was begun in another browser: sign in again")
        return state, path

    def _signed(self, state: str, path: str) -> str:
        content = (
            f"{state}.{int(self._pages.identity.now())}.{base64.urlsafe_b64encode(path.encode()).rstrip(b'=').decode()}"
        )
        return f"{content}.{self._pages.identity.derived(_STATE, content)}"

    def _read(self, value: str) -> tuple[str, int, str]:
        content, _, signature = value.rpartition(".")
        expected = self._pages.identity.derived(_STATE, content)
        if not hmac.compare_digest(signature.encode(errors="replace"), expected.encode()):
            return "", 0, "/"
        state, issued, path = content.split(".")
        return state, int(issued), base64.urlsafe_b64decode(path + "=" * (-len(path) % 4)).decode()

    def _derived(self, purpose: str, state: str) -> str:
        return self._pages.identity.derived(f"oidc {purpose}", state)

    @property
    def _name(self) -> str:
        return f"{self._pages.identity.cookie_name}_oidc"

    def _cookie(self, request: Request, value: str, life: int) -> str:
        secure = "; Secure" if self._pages.cookies.is_secure(request.scope) else ""
        return f"{self._name}={value}; Path=/oidc; Max-Age={life}; HttpOnly; SameSite=Lax{secure}"

    def _redirect(self, request: Request) -> str:
        scheme = "https" if self._pages.cookies.is_secure(request.scope) else "http"
        return f"{self._url or f'{scheme}://' + request.headers.get('host', '')}{OIDC_CALLBACK}"


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _refused(error: RoostError, status: int) -> Response:
    return page(
        "You are not signed in", f'<p>{escape(as_sentence(error))}</p><p><a href="{SIGN_IN}">Sign in</a></p>', status
    )
