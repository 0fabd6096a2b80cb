"""Page `/account`: the password, API tokens and sessions of the signed-in user."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roost.api.account_pages.context import AccountPages, see_other
from roost.api.account_pages.forms import (
    as_sentence,
    choice,
    form,
    hidden,
    known_name,
    password_field,
    read_form,
    text_field,
)
from roost.api.account_pages.sign_in import NO_MATCH
from roost.api.credentials import Credential, CredentialKind
from roost.api.notices import page
from roost.api.routes.dependencies import address_of, user_of
from roost.api.security import CREDENTIAL
from roost.api.sign_in.guesses import TooManyGuesses
from roost.api.sign_in.paths import ACCOUNT, SIGN_IN, SIGN_OUT
from roost.core.accounts.passwords import SHORTEST
from roost.core.accounts.tokens import ALL, ApiToken, CreatedToken
from roost.core.accounts.users import Account, Role
from roost.errors import Forbidden, Invalid, LimitReached, NotFound, RoostError, Unavailable

PASSWORD, TOKENS, REVOKE, EVERYWHERE = (f"{ACCOUNT}/{one}" for one in ("password", "tokens", "revoke", "sign-out"))
ACCESS = {ALL: "Everything", f"{ALL}:read": "Read only"}
DAY = 86_400
EXPIRY = {str(30 * DAY): "In 30 days", str(90 * DAY): "In 90 days", str(365 * DAY): "In a year", "": "Never"}
DONE = {
    "password": "The password was changed. All other browsers are signed out.",
    "revoked": "The token was revoked.",
}


class AccountPage:
    """Changes that users make to their own account."""

    def __init__(self, pages: AccountPages) -> None:
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            Route(ACCOUNT, self.show, methods=["GET"], include_in_schema=False),
            Route(PASSWORD, self.change_password, methods=["POST"], include_in_schema=False),
            Route(TOKENS, self.create_token, methods=["POST"], include_in_schema=False),
            Route(REVOKE, self.revoke_token, methods=["POST"], include_in_schema=False),
            Route(EVERYWHERE, self.sign_out_everywhere, methods=["POST"], include_in_schema=False),
        ]

    async def show(self, request: Request) -> Response:
        return await self._shown(request, note=DONE.get(request.query_params.get("done", ""), ""))

    async def change_password(self, request: Request) -> Response:
        user, given, guesser = user_of(request), await read_form(request), self._pages.guesser(request)
        if given.get("password", "") != given.get("again", ""):
            return await self._shown(request, 422, password_error=NO_MATCH)
        try:
            await self._pages.guesses.take(user, guesser)
        except TooManyGuesses as error:
            return await self._shown(request, 429, current_error=str(error))
        try:
            changed = await self._pages.service.users.change_password(
                user, given.get("current", ""), given.get("password", ""), address_of(request)
            )
        except Forbidden as error:
            return await self._shown(request, 403, current_error=as_sentence(error))
        except (Invalid, Unavailable) as error:
            await self._pages.guesses.succeeded(user, guesser)  # the current password was not refused
            return await self._shown(request, 422, password_error=as_sentence(error))
        await self._pages.guesses.succeeded(user, guesser)
        return self._pages.with_session(request, changed, see_other(f"{ACCOUNT}?done=password"))

    async def create_token(self, request: Request) -> Response:
        user, given = user_of(request), await read_form(request)
        scopes = [given.get("access", "")]
        try:
            expires = float(given["expires"]) if given.get("expires") else None
            made = await self._pages.service.tokens.create(
                user, given.get("name", ""), scopes=scopes, expires_in=expires
            )
        except (Invalid, LimitReached, ValueError) as error:
            said = as_sentence(error) if isinstance(error, RoostError) else "Choose when the token expires."
            return await self._shown(request, 422, token_error=said)
        return await self._shown(request, made=made)

    async def revoke_token(self, request: Request) -> Response:
        user, given = user_of(request), await read_form(request)
        try:
            await self._pages.service.tokens.revoke(user, given.get("token", ""))
        except (NotFound, Invalid) as error:
            return await self._shown(request, 404, note=as_sentence(error))
        return see_other(f"{ACCOUNT}?done=revoked")

    async def sign_out_everywhere(self, request: Request) -> Response:
        user = user_of(request)
        if await self._account(user) is not None:
            await self._pages.service.users.sign_out(user)
            await self._pages.service.users.record(user, "sign_out", user, address_of(request), "everywhere")
        return self._pages.without_session(request, see_other(SIGN_IN))

    # --- the page -----------------------------------------------------------------------------------

    async def _account(self, user: str) -> Account | None:
        """Return the account; None for the local user without one, and for visitors."""
        try:
            return await self._pages.service.users.get(user, user)
        except NotFound:
            return None

    async def _shown(
        self,
        request: Request,
        status: int = 200,
        *,
        note: str = "",
        current_error: str | None = None,
        password_error: str | None = None,
        token_error: str | None = None,
        made: CreatedToken | None = None,
    ) -> Response:
        user = user_of(request)
        account = await self._account(user)
        tokens = await self._pages.service.tokens.list(user)
        role = " (admin)" if account is not None and account.role is Role.ADMIN else ""
        parts = [f'<p>Signed in as <b>{escape(user)}</b>{role}. <a href="/">Back to Roost</a></p>']
        if note:
            parts.append(f'<p class="note" role="status">{escape(note)}</p>')
        if account is not None and account.has_password:
            parts.append(_password_part(user, current_error, password_error))
        parts.append(_token_part(tokens, token_error, made))
        if account is not None:
            parts.append(_session_part(is_by_proxy=_is_by_proxy(request)))
        return page("Your account", "".join(parts), status)


def _password_part(user: str, current_error: str | None, password_error: str | None) -> str:
    fields = (
        known_name(user)
        + password_field("current", "Current password", complete="current-password", error=current_error)
        + password_field("password", "New password", complete="new-password", error=password_error, least=SHORTEST)
        + password_field("again", "Repeat the new password", complete="new-password", least=SHORTEST)
    )
    return "<h2>Password</h2>" + form(PASSWORD, fields, "Change password")


def _token_part(tokens: Iterable[ApiToken], error: str | None, made: CreatedToken | None) -> str:
    about = '<p class="small">Programs use these to act for you. <a href="/docs/guides/api-tokens">How</a></p>'
    secret = ""
    if made is not None:
        secret = (
            f'<div class="note" role="status">The new token <b>{escape(made.token.name)}</b>. Copy it now, since it is'
            f" not shown again.<br><code>{escape(made.secret)}</code></div>"
        )
    fields = (
        text_field("name", "Name", complete="off", error=error)
        + choice("access", "Access", ACCESS)
        + choice("expires", "Expires", EXPIRY)
    )
    create = form(TOKENS, fields, "Create token", second=True)
    return "<h2>API tokens</h2>" + about + secret + "".join(map(_token_row, tokens)) + create


def _token_row(token: ApiToken) -> str:
    ends = "never expires" if token.expires is None else f"expires on {token.expires:%Y-%m-%d}"
    shown = ", ".join(ACCESS.get(scope, scope) for scope in token.scopes)
    revoke = form(REVOKE, hidden("token", token.token_id), "Revoke", second=True)
    about = f'<b>{escape(token.name)}</b><br><span class="small">{escape(shown)}, {ends}</span>'
    return f'<div class="row"><span>{about}</span>{revoke}</div>'


def _session_part(*, is_by_proxy: bool) -> str:
    if is_by_proxy:
        return '<h2>Sessions</h2><p class="small">Your proxy has signed you in: sign out there.</p>'
    return (
        "<h2>Sessions</h2>"
        + form(SIGN_OUT, "", "Sign out", second=True)
        + form(EVERYWHERE, "", "Sign out everywhere", second=True)
    )


def _is_by_proxy(request: Request) -> bool:
    """Return whether a proxy names the user in each request, so that there is no session to end."""
    credential: Credential | None = request.scope.get(CREDENTIAL)
    return credential is not None and credential.kind is CredentialKind.PROXY
