"""Pages `/sign-in`, `/sign-out` and `/invite`."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roost.api.account_pages.context import AccountPages, see_other
from roost.api.account_pages.forms import as_sentence, form, hidden, known_name, password_field, read_form, text_field
from roost.api.credentials import Credential, CredentialKind
from roost.api.notices import page
from roost.api.routes.dependencies import address_of
from roost.api.security import CREDENTIAL, USER
from roost.api.sign_in.guesses import TooManyGuesses
from roost.api.sign_in.paths import HOME, INVITE, OIDC_START, SIGN_IN, SIGN_OUT, local_path
from roost.core.accounts.passwords import SHORTEST
from roost.core.accounts.users import Account, typed_name
from roost.errors import Invalid, NotFound, Unavailable

WRONG = "Wrong name or password."
NO_MATCH = "The two passwords are not the same."
_HELP = """<p class="small">No account? Ask an admin for an invitation. On the machine of the server,
<code>roost link</code> prints a sign-in link.</p>"""
_GONE = f"""<p>An invitation sets a password once, and expires. This one was used, was replaced, or is too old.</p>
<p>Ask an admin for a new one, or <a href="{SIGN_IN}">sign in</a>.</p>"""


class SignInPages:
    """Signing in by a password, signing out, and setting the password of an invited user."""

    def __init__(self, pages: AccountPages) -> None:
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            Route(SIGN_IN, self.show, methods=["GET"], include_in_schema=False),
            Route(SIGN_IN, self.sign_in, methods=["POST"], include_in_schema=False),
            Route(SIGN_OUT, self.confirm, methods=["GET"], include_in_schema=False),
            Route(SIGN_OUT, self.sign_out, methods=["POST"], include_in_schema=False),
            Route(INVITE, self.show_invitation, methods=["GET"], include_in_schema=False),
            Route(INVITE, self.accept, methods=["POST"], include_in_schema=False),
        ]

    # --- signing in ---------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        path = local_path(request.query_params.get("next"))
        if request.scope.get(USER) is not None or not await self._pages.mode.look():
            return see_other(path)
        return self._form(path)

    async def sign_in(self, request: Request) -> Response:
        given = await read_form(request)
        name, path = given.get("name", ""), local_path(given.get("next"))
        guesses, guesser = self._pages.guesses, self._pages.guesser(request)
        try:
            await guesses.take(typed_name(name), guesser)
            account = await self._verified(name, given.get("password", ""), address_of(request), guesser)
        except TooManyGuesses as error:
            return self._form(path, name, str(error), 429, {"Retry-After": str(error.seconds)})
        except Unavailable as error:
            return self._form(path, name, as_sentence(error), 503, {"Retry-After": "2"})
        if account is None:
            return self._form(path, name, WRONG, 401)
        await guesses.succeeded(typed_name(name), guesser)
        return await self._pages.signed_in(request, account, "password", path)

    async def _verified(self, name: str, password: str, address: str, guesser: str) -> Account | None:
        try:
            return await self._pages.service.users.authenticate(name, password, address)
        except Unavailable:
            await self._pages.guesses.take_back(typed_name(name), guesser)
            raise

    def _form(
        self,
        path: str,
        name: str = "",
        error: str | None = None,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        fields = (
            hidden("next", path)
            + text_field("name", "Name", complete="username", value=name[:200], focus=not name)
            + password_field("password", "Password", complete="current-password", error=error, focus=bool(name))
        )
        shown = form(SIGN_IN, fields, "Sign in")
        if self._pages.oidc is not None:
            label = escape(self._pages.oidc.settings.shown)
            start = f"{OIDC_START}?next={quote(path, safe='')}"
            is_open = " open" if name or error else ""
            shown = (
                f'<a class="button" href="{start}">Sign in with {label}</a>'
                f"<details{is_open}><summary>Sign in with a password</summary>{shown}</details>"
            )
        return page("Sign in to Roost", shown + _HELP, status, headers)

    # --- signing out --------------------------------------------------------------------------------

    async def confirm(self, request: Request) -> Response:
        if request.scope.get(USER) is None:
            return see_other(SIGN_IN)
        return page("Sign out of Roost?", form(SIGN_OUT, "", "Sign out") + '<p><a href="/">Back to Roost</a></p>')

    async def sign_out(self, request: Request) -> Response:
        """End the session of this browser: a copy of its cookie is worth nothing afterwards."""
        credential: Credential | None = request.scope.get(CREDENTIAL)
        if credential is not None and credential.kind is CredentialKind.COOKIE:
            await self._end(credential, address_of(request))
        return self._pages.without_session(request, see_other(SIGN_IN))

    async def _end(self, credential: Credential, address: str) -> None:
        cookie, users = self._pages.identity.read_cookie(credential.value), self._pages.service.users
        if cookie is not None and cookie.session_id:
            await users.end_session(cookie.user_id, cookie.session_id, address)
            self._pages.verifier.forget(credential)

    # --- invitations --------------------------------------------------------------------------------

    async def show_invitation(self, request: Request) -> Response:
        """Show the form; the code is used up when the password is set."""
        code = request.query_params.get("code", "")
        try:
            account = await self._pages.service.users.invited(code)
        except (NotFound, Invalid):
            return page("This invitation is not valid", _GONE, 404)
        return self._invitation(account, code)

    async def accept(self, request: Request) -> Response:
        given, guesser = await read_form(request), self._pages.guesser(request)
        code, password = given.get("code", ""), given.get("password", "")
        users, guesses = self._pages.service.users, self._pages.guesses
        try:
            await guesses.take("", guesser)
            account = await users.invited(code)
            await guesses.succeeded("", guesser)
            if password != given.get("again", ""):
                return self._invitation(account, code, NO_MATCH, 422)
            try:
                account = await users.redeem(code, password, address_of(request))
            except (Invalid, Unavailable) as error:
                return self._invitation(account, code, as_sentence(error), 422)
        except TooManyGuesses as error:
            return page("Too many attempts", f"<p>{error}</p>", 429, {"Retry-After": str(error.seconds)})
        except (NotFound, Invalid):
            return page("This invitation is not valid", _GONE, 404)
        return await self._pages.signed_in(request, account, "invitation", HOME)

    def _invitation(self, account: Account, code: str, error: str | None = None, status: int = 200) -> Response:
        fields = (
            hidden("code", code)
            + known_name(account.user_id)
            + password_field(
                "password", "New password", complete="new-password", error=error, focus=True, least=SHORTEST
            )
            + password_field("again", "Repeat the password", complete="new-password", least=SHORTEST)
        )
        name = escape(account.user_id)
        about = f"<p>Choose a password for the account <b>{name}</b>, with {SHORTEST} characters or more.</p>"
        return page("Welcome to Roost", about + form(INVITE, fields, "Set password and sign in"), status)
