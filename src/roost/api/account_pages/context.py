"""Context that the pages of accounts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from roost.api.auth import Identity
from roost.api.credentials import CredentialVerifier
from roost.api.routes.dependencies import address_of
from roost.api.security import PEER
from roost.api.sign_in.cookies import SessionCookies
from roost.api.sign_in.guesses import GuessLimit
from roost.api.sign_in.mode import SignInMode
from roost.api.sign_in.proxies import TrustedProxies
from roost.core.accounts.users import Account
from roost.service import AsyncAgentService

if TYPE_CHECKING:
    from roost.api.sign_in.oidc import OidcProvider


@dataclass(frozen=True)
class AccountPages:
    """Parts of the pages."""

    service: AsyncAgentService
    identity: Identity
    cookies: SessionCookies
    mode: SignInMode
    verifier: CredentialVerifier
    guesses: GuessLimit
    proxies: TrustedProxies
    oidc: OidcProvider | None = None

    def guesser(self, request: Request) -> str:
        """Return the address whose guesses are counted; empty if a proxy does not tell it."""
        address = address_of(request)
        return "" if address == request.scope.get(PEER) and self.proxies.has(address) else address

    async def signed_in(
        self, request: Request, account: Account, way: str, path: str, *, life: float | None = None
    ) -> Response:
        """Begin a new session of an account, and go to a page."""
        await self.service.users.record(account.user_id, "sign_in", account.user_id, address_of(request), way)
        return self.with_session(request, account, see_other(path), life=life)

    def with_session(
        self, request: Request, account: Account, response: Response, *, life: float | None = None
    ) -> Response:
        value = self.identity.session_cookie(account.user_id, account.session_epoch, life=life)
        response.headers["set-cookie"] = self.cookies.header(request.scope, value)
        return response

    def without_session(self, request: Request, response: Response) -> Response:
        """Remove the cookie, and what the pages keep in the browser: the next user must not see it."""
        response.headers["clear-site-data"] = '"storage"'
        response.headers["set-cookie"] = self.cookies.removal(request.scope)
        return response


def see_other(path: str) -> Response:
    return RedirectResponse(path, 303, {"Cache-Control": "no-store"})
