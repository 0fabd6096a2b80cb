"""Verification of credentials: cookies, API tokens, access tokens of the provider, users of a trusted proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.api.auth import Identity, SignInCode
from roost.api.credentials import Credential, CredentialKind, Grant
from roost.api.sign_in.mode import SignInMode
from roost.core.accounts.tokens import ALL, PREFIX
from roost.errors import Forbidden, Invalid
from roost.service import AsyncAgentService

if TYPE_CHECKING:
    from roost.api.sign_in.oidc import OidcProvider

PROXY_ISSUER = "proxy"
"""Issuer of identities that a trusted proxy vouches for."""
LONGEST_TOKEN = 200


class VisitorAuthentication:
    """Accepts every cookie that was signed here: nobody has to sign in."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._used: set[str] = set()
        """Digests of the codes that were used."""

    async def verify(self, credential: Credential) -> Grant | None:
        """Return what a credential allows; None if it is not valid, or not any more."""
        user = self._identity.user_of_cookie(credential.value) if credential.kind is CredentialKind.COOKIE else None
        return Grant(user) if user is not None else None

    async def requires_sign_in(self) -> bool:
        return False

    async def local_cookie(self) -> str:
        """Return a cookie of the local user, for a link of the command line."""
        return self._identity.cookie(self._identity.local_user)

    async def redeem(self, code: str) -> bool:
        """Return whether a code of the command line is valid, and invalidate it."""
        found = self._identity.read_code(code)
        return found is not None and await self._use(found)

    async def _use(self, code: SignInCode) -> bool:
        is_new = code.digest not in self._used
        self._used.add(code.digest)
        return is_new


class Authentication(VisitorAuthentication):
    """Tells whose a credential is, and whether it is still valid."""

    def __init__(
        self, service: AsyncAgentService, identity: Identity, mode: SignInMode, oidc: OidcProvider | None = None
    ) -> None:
        super().__init__(identity)
        self._service = service
        self._mode = mode
        self._oidc = oidc

    async def requires_sign_in(self) -> bool:
        return await self._mode.look()

    async def local_cookie(self) -> str:
        state = await self._service.users.session(self._identity.local_user)
        if state is None:
            return await super().local_cookie()
        return self._identity.session_cookie(self._identity.local_user, state.epoch)

    async def _use(self, code: SignInCode) -> bool:
        return await self._service.users.use_code(code.digest, code.until)

    async def verify(self, credential: Credential) -> Grant | None:
        match credential.kind:
            case CredentialKind.COOKIE:
                return await self._session(credential.value)
            case CredentialKind.TOKEN:
                return await self._token(credential.value)
            case CredentialKind.ACCESS_TOKEN:
                return await self._access_token(credential.value)
            case CredentialKind.PROXY:
                return await self._user_of_proxy(credential.value)

    async def _session(self, value: str) -> Grant | None:
        """Accept every signed cookie while nobody has to sign in; then those of accounts, and of the local user."""
        cookie = self._identity.read_cookie(value)
        if cookie is None:
            return None
        if not await self._mode.look():
            return Grant(cookie.user_id)
        state = await self._service.users.session(cookie.user_id, cookie.session_id)
        is_local = cookie.user_id == self._identity.local_user
        epoch = state.epoch if state is not None else None
        if cookie.epoch != epoch or (state is None and not is_local):
            return None
        return Grant(cookie.user_id)

    async def _token(self, secret: str) -> Grant | None:
        if not secret.startswith(PREFIX) or len(secret) > LONGEST_TOKEN:
            return None
        found = await self._service.tokens.authenticate(secret)
        if found is None or await self._is_former_visitor(found.user_id):
            return None
        return Grant(found.user_id, found.scopes)

    async def _is_former_visitor(self, user: str) -> bool:
        """Return whether this is a visitor, and visitors have to sign in now."""
        if not self._identity.is_visitor(user) or not await self._mode.look():
            return False
        return await self._service.users.session(user) is None

    async def _access_token(self, token: str) -> Grant | None:
        """Accept users who have signed in at a page before: an access token need not say who may sign in."""
        subject = await self._oidc.subject_of(token) if self._oidc else None
        if self._oidc is None or subject is None:
            return None
        account = await self._service.users.identified(self._oidc.issuer, subject)
        return Grant(account.user_id, (ALL,)) if account is not None else None

    async def _user_of_proxy(self, name: str) -> Grant | None:
        """Accept the user of this name at the proxy; the first request creates the account."""
        users = self._service.users
        try:
            account = await users.identified(PROXY_ISSUER, name) or await users.identify(PROXY_ISSUER, name, name, "")
        except (Forbidden, Invalid):
            return None
        return Grant(account.user_id)
