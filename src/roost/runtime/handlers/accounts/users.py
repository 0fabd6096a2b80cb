"""Accounts: admins add and remove users; servers verify passwords and sessions."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from roost.core.accounts import passwords
from roost.core.accounts.deletions import Deletion
from roost.core.accounts.guesses import Guesser
from roost.core.accounts.pseudonyms import new_pseudonym
from roost.core.accounts.tokens import digest
from roost.core.accounts.users import (
    INVITATION_LIFE,
    RESET_LIFE,
    SESSION_LIFE,
    Account,
    AuditEntry,
    ExportPart,
    Invitation,
    Role,
    SessionState,
    account_name,
    new_code,
    typed_name,
)
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import checks
from roost.core.values.traits import idempotent
from roost.errors import Forbidden, Invalid
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.accounts.actions import new_action
from roost.runtime.handlers.accounts.deletion import Deletions
from roost.runtime.handlers.accounts.password_threads import PasswordThreads
from roost.runtime.handlers.accounts.suspension import Suspensions
from roost.stores.sql.accounts import accounts, audit, codes, deletion, exports, guesses, sessions
from roost.stores.sql.accounts.audit import Action

log = logging.getLogger("roost.accounts")

T = TypeVar("T")

_KEY = "accounts"
"""Key of all writes: they change what others have read before."""
_LONGEST_CODE = 200
_CODES_KEPT = 86_400.0
"""Seconds for which a used code is remembered after its end: the clock may be set back meanwhile."""
_LONGEST_ISSUER = 1_000
_LONGEST_CURSOR = 8_000


class Users:
    """Accounts of the service. Its coroutines await only pending results, so that plain threads can drive them.

    Methods that take a user first are for admins and for the owner of the store; over the network others are refused.
    The rest is for servers.
    """

    def __init__(self, context: RuntimeContext, deletions: Deletions, suspensions: Suspensions) -> None:
        self._context = context
        self._deletions = deletions
        self._suspensions = suspensions
        self._threads = PasswordThreads(context.host)
        self.reserved: set[str] = set()
        """Names that no identity provider can get by suggesting them, such as that of the local user."""

    # --- admins -------------------------------------------------------------------------------------

    async def add(self, user_id: str, name: str, *, role: str = "user") -> Invitation:
        """Create an account, and return a code with which its user sets a password; it is valid for seven days."""
        chosen = checks.choice(role, "the role", Role)
        code, by = new_code(), self._by(user_id, "users.add")
        expires = by.now + INVITATION_LIFE
        account = await self._write(accounts.add, account_name(name), chosen, digest(code), expires, by)
        return Invitation(account, code, at(expires))

    async def list(self, user_id: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Account]:
        """Return the accounts by name."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(accounts.listed, limit, checks.place(after, "`after`"))

    async def get(self, user_id: str, name: str) -> Account:
        """Return an account."""
        checks.name(user_id, "the user id")
        return await self._context.store.read(accounts.get, _name(name))

    @idempotent
    async def disable(self, user_id: str, name: str) -> Account:
        """Disable an account: its user is signed out everywhere, and API tokens of the user are refused.

        Agents, talks, schedules, webhooks and hooks of the user are stopped until the account is enabled.
        """
        account = await self._write(accounts.disable, _name(name), self._by(user_id, "users.disable"))
        await self._suspensions.stop(account.user_id)
        return account

    @idempotent
    async def enable(self, user_id: str, name: str) -> Account:
        """Enable a disabled account: its password and its API tokens are valid again, and its agents continue."""
        return await self._write(accounts.enable, _name(name), self._by(user_id, "users.enable"))

    async def reset(self, user_id: str, name: str) -> Invitation:
        """Remove the password, end all sessions, and return a code for a new password; it is valid for a day."""
        code, by = new_code(), self._by(user_id, "users.reset")
        expires = by.now + RESET_LIFE
        account = await self._write(accounts.reset, _name(name), digest(code), expires, by)
        return Invitation(account, code, at(expires))

    async def set_role(self, user_id: str, name: str, role: str) -> Account:
        """Make an account an `admin`, or a plain `user` again."""
        chosen = checks.choice(role, "the role", Role)
        return await self._write(accounts.set_role, _name(name), chosen, self._by(user_id, "users.set_role"))

    async def delete(self, user_id: str, name: str, timeout: float | None = None) -> Deletion:  # noqa: ASYNC109
        """Delete a user with everything that is theirs: talks, agents, mail, files, tokens and the account.

        Awake agents and running talks are stopped first. What others have got from the user stays, under a pseudonym.
        A deletion that a crash interrupts is continued at the next start. The name need not have an account. After
        `timeout` seconds, return how far it is: it continues, and a further call waits for it again.
        """
        seconds = None if timeout is None else checks.seconds(timeout, "the timeout")
        by = self._by(user_id, "users.delete")
        order = await self._write(deletion.begin, _name(name), new_pseudonym(), by)
        return await (self._deletions.run(order) if seconds is None else self._deletions.wait(order, seconds))

    async def export(self, user_id: str, name: str, *, after: str = "") -> ExportPart:
        """Return a part of everything that is stored of a user, without secrets. Joined, the parts are JSON.

        `after` of a part is that of the next part, and None in the last one. The name need not have an account.
        """
        checks.name(user_id, "the user id")
        cursor = checks.text(after, "`after`", most=_LONGEST_CURSOR) if after else ""
        now = at(self._context.host.clock.now()).isoformat()
        part = await self._context.store.read(exports.part, _name(name), cursor, now)
        if not after:
            await self._context.store.write(audit.add, self._by(user_id, "users.export"), name)
        return part

    async def audit(self, user_id: str, *, limit: int = PAGE, before: str = "") -> builtins.list[AuditEntry]:
        """Return the audit list, newest first: sign-ins, actions of admins, and tokens created and revoked."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(audit.listed, limit, checks.place(before, "`before`"))

    # --- servers ------------------------------------------------------------------------------------

    async def authenticate(self, name: str, password: str, address: str) -> Account | None:
        """Return the account of a name and its password; None if they do not match, or if it is disabled.

        It takes as long for a name that has no account.
        """
        found = await self._context.store.read(accounts.credentials, typed_name(name))
        account, stored = found or (None, None)
        is_right = await self._is_right(password, stored)
        if account is None or not is_right:
            log.info("password refused", extra={"address": address, "has_account": account is not None})
            return None
        return account

    async def count_guess(self, guesser: Guesser) -> float:
        """Count a try to sign in as failed, until it has succeeded; on whichever node the tries arrive.

        If it comes too early, return the seconds to wait, and count nothing; otherwise return 0.
        """
        now = self._context.host.clock.now()
        wait = await self._context.store.read(guesses.waiting, guesser, now)
        return wait or await self._context.store.write(guesses.take, guesser, now)

    async def take_back_guess(self, guesser: Guesser, *, succeeded: bool) -> None:
        """Take back the count of a try that has succeeded, or was not verified."""
        take_back = guesses.succeeded if succeeded else guesses.take_back
        await self._context.store.write(take_back, guesser, self._context.host.clock.now())

    async def redeem(self, code: str, password: str, address: str) -> Account:
        """Set the password of an invited user. Raise NotFound if the code is not valid; each is valid once."""
        mark, now = digest(checks.text(code, "the code", most=_LONGEST_CODE)), self._context.host.clock.now()
        invited = await self._context.store.read(accounts.invited, mark, now)
        hashed = await self._hashed(password, invited.user_id)
        by = self._by(invited.user_id, "users.redeem", address)
        return await self._write(accounts.redeem, mark, hashed, by)

    async def invited(self, code: str) -> Account:
        """Return the account that an invitation is for; it can still be redeemed. Raise NotFound if it is not valid."""
        mark = digest(checks.text(code, "the code", most=_LONGEST_CODE))
        return await self._context.store.read(accounts.invited, mark, self._context.host.clock.now())

    async def session(self, name: str, session_id: str = "") -> SessionState | None:
        """Return the state of the sessions of a user; None if the account is disabled or does not exist.

        With a `session_id` also None if that session was ended.
        """
        return await self._context.store.read(accounts.session, name, digest(session_id) if session_id else "")

    async def end_session(self, name: str, session_id: str, address: str) -> None:
        """End one session of a user; the others stay."""
        by = self._by(name, "sign_out", address)
        await self._context.store.write(sessions.end, digest(session_id), by.now + SESSION_LIFE, by)

    async def use_code(self, mark: str, until: float) -> bool:
        """Mark a signed code as used, by its digest; return True once per code, whichever node is asked.

        `until`: when the code has expired in any case.
        """
        now = self._context.host.clock.now()
        return await self._context.store.write(codes.use, mark, until + _CODES_KEPT, now)

    async def exist(self) -> bool:
        """Return whether there is any account."""
        return await self._context.store.read(accounts.exist)

    async def identify(self, issuer: str, subject: str, suggested_name: str, address: str) -> Account:
        """Return the account of an identity of a provider; create it at the first sign-in.

        A suggested name that is taken or reserved gets a number. Raise Forbidden if the account is disabled.
        """
        known = checks.text(issuer, "the issuer", most=_LONGEST_ISSUER)
        who = checks.text(subject, "the subject", most=_LONGEST_ISSUER)
        by = self._by(_KEY, "users.identify", address)
        return await self._write(accounts.identify, known, who, suggested_name, frozenset(self.reserved), by)

    async def identified(self, issuer: str, subject: str) -> Account | None:
        """Return the account of an identity at a provider; None if there is none, or it is disabled."""
        return await self._context.store.read(accounts.identified, issuer, subject)

    async def change_password(self, name: str, old: str, new: str, address: str) -> Account:
        """Change the password of a user; all sessions end. Raise Forbidden if the old one is wrong."""
        account = await self.authenticate(name, old, address)
        if account is None:
            raise Forbidden("the current password is wrong")
        hashed = await self._hashed(new, account.user_id)
        by = self._by(account.user_id, "users.change_password", address)
        return await self._write(accounts.change_password, account.user_id, account.session_epoch, hashed, by)

    async def sign_out(self, name: str) -> None:
        """End all sessions of a user."""
        await self._write(accounts.sign_out, _name(name))

    async def record(self, actor: str, action: str, target: str, address: str, detail: str) -> None:
        """Add an entry to the audit list, such as a sign-in. Texts are cut to 500 characters; pass no secrets.

        People type passwords into the field of the name: pass as `actor` only names that have an account.
        """
        clean = self._context.redactor.clean
        entry = new_action(self._context.host, clean(actor), clean(action), clean(address))
        await self._context.store.write(audit.add, entry, clean(target), clean(detail))

    def _by(self, actor: str, action: str, address: str | None = None) -> Action:
        return new_action(self._context.host, checks.name(actor, "the user id"), action, address)

    async def _is_right(self, password: str, stored: str | None) -> bool:
        try:
            given = passwords.normal(password)
        except Invalid:
            return False
        return await self._threads.run(partial(passwords.matches, given, stored))

    async def _hashed(self, password: str, name: str) -> str:
        checked = passwords.checked_password(password, name)
        return await self._threads.run(partial(passwords.hashed, checked))

    async def _write(self, op: Callable[..., T], *args: Any) -> T:
        return await self._context.store.write(op, *args, key=_KEY)


def _name(value: object) -> str:
    return checks.name(value, "the name of the account")
