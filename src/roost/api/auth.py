"""Authentication: a signed cookie for browsers, a token in the lock file for the command line.

A one-time code signs a browser in as the local user, the user of the command line.
"""

from __future__ import annotations

import base64
import getpass
import hmac
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from roost.core.accounts.tokens import digest
from roost.core.accounts.users import SESSION_LIFE
from roost.core.values import checks
from roost.errors import Invalid, Unavailable
from roost.hosts.threads import ThreadHost

COOKIE = "roost_user"
"""Name of the cookie for pages. In browsers a suffix derived from the secret is added (see `cookie_name`)."""
COOKIE_LIFE = 400 * 24 * 3600
COOKIE_RENEWAL = 24 * 3600
CODE_LIFE = 600
"""Seconds for which a sign-in code is valid."""
SECRET_FILE = "secret"
_CODE = "sign-in code"


def _now() -> float:
    return datetime.now(UTC).timestamp()


@dataclass(frozen=True, slots=True)
class SignedCookie:
    """Content of a cookie: its user, and of an account the state in which the session began."""

    user_id: str
    issued: float
    epoch: int | None = None
    """None for visitors, and for the local user without an account."""
    session_id: str = ""
    until: float | None = None
    """Time at which the session ends even if it is used."""

    def has_ended(self, now: float) -> bool:
        # A cookie from the future is valid: it was signed here, and the clock was set back since.
        life = COOKIE_LIFE if self.epoch is None else SESSION_LIFE
        return now - self.issued >= life or (self.until is not None and now >= self.until)


@dataclass(frozen=True, slots=True)
class SignInCode:
    """Code of the command line: its digest, and the time at which it expires."""

    digest: str
    until: float


class Identity:
    """Signs and verifies cookies and one-time codes, and holds the local token.

    `now` is replaced by the clock of the store when a server starts: all nodes of a cluster use the same time.
    """

    def __init__(self, secret: bytes, local_user: str, *, now: Callable[[], float] = _now) -> None:
        self._secret = secret
        self._key = hmac.digest(secret, b"roost cookie v1", "sha256")
        mark = hmac.digest(secret, b"roost cookie name v1", "sha256").hex()[:8]
        # Browsers send a cookie to every port of a host. Without the suffix, two Roosts on one machine would
        # overwrite each other's cookie, and users would lose their sign-in.
        self.cookie_name = f"{COOKIE}_{mark}"
        self.local_user = checks.name(local_user, "the local user")
        self.nonce = secrets.token_urlsafe(16)
        self.token = local_token(secret, self.nonce)
        self.now: Callable[[], float] = now
        self._host = ThreadHost()

    # --- cookies ---------------------------------------------------------------------------------

    def new_user(self) -> str:
        return self._host.new_id("user")

    def is_visitor(self, user_id: str) -> bool:
        """Return whether this is a user that was made for a visitor."""
        return user_id.startswith("user_")

    def cookie(self, user_id: str) -> str:
        """Return a cookie of a visitor, or of the local user without an account."""
        return self._signed(SignedCookie(user_id, self.now()))

    def session_cookie(self, user_id: str, epoch: int, *, life: float | None = None) -> str:
        """Return a cookie of a new session of an account; `life`: seconds after which it ends."""
        now = self.now()
        until = None if life is None else now + life
        return self._signed(SignedCookie(user_id, now, epoch, secrets.token_urlsafe(16), until))

    def renewed(self, cookie: SignedCookie) -> str:
        """Return the cookie of the same session, issued now."""
        return self._signed(replace(cookie, issued=self.now()))

    def read_cookie(self, value: str | None) -> SignedCookie | None:
        """Return the content of a cookie, or None if it was not signed here or has ended."""
        payload, _, signature = (value or "").partition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._signature(payload).encode()):
            return None
        found = SignedCookie(*json.loads(_decode(payload)))
        return None if found.has_ended(self.now()) else found

    def user_of_cookie(self, value: str | None) -> str | None:
        """Return the user of a cookie, or None if it was not signed here or has ended."""
        found = self.read_cookie(value)
        return found.user_id if found else None

    def wants_renewal(self, cookie: SignedCookie) -> bool:
        return self.now() - cookie.issued > COOKIE_RENEWAL

    def _signed(self, cookie: SignedCookie) -> str:
        content = [cookie.user_id, int(cookie.issued), cookie.epoch, cookie.session_id, cookie.until]
        payload = _encode(json.dumps(content if cookie.epoch is not None else content[:2]).encode())
        return f"{payload}.{self._signature(payload)}"

    def _signature(self, payload: str) -> str:
        return _encode(hmac.digest(self._key, payload.encode(errors="replace"), "sha256"))

    def derived(self, purpose: str, text: str) -> str:
        """Return a value that only this server can compute from a text, different for each purpose."""
        key = hmac.digest(self._secret, f"roost {purpose} v1".encode(), "sha256")
        return _encode(hmac.digest(key, text.encode(errors="replace"), "sha256"))

    # --- the command line ------------------------------------------------------------------------

    def is_local_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def invite(self) -> str:
        """Return a code that signs one browser in as the local user, once, within ten minutes, on every node."""
        content = f"{int(self.now()) + CODE_LIFE}.{secrets.token_urlsafe(18)}"
        return f"{content}.{self.derived(_CODE, content)}"

    def read_code(self, code: str) -> SignInCode | None:
        """Return a code that was made with this secret and has not expired; it may have been used."""
        content, _, signature = code.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self.derived(_CODE, content).encode()):
            return None
        until = float(content.partition(".")[0])
        return SignInCode(digest(content), until) if self.now() < until else None


def identity(data: Path, secret: str | None = None, user: str | None = None) -> Identity:
    """Return the identity of this installation, by the given secret or the one in the data folder."""
    return Identity(secret.encode() if secret else kept_secret(data), local_user(user))


def local_token(secret: bytes, nonce: str) -> str:
    """Return the token of a running process: deriving it from the announced nonce takes the secret."""
    return _encode(hmac.digest(secret, b"roost local token v1 " + nonce.encode(errors="replace"), "sha256"))


def local_user(named: str | None = None) -> str:
    """Return the user of the command line: the configured name, or the name of the account."""
    if named:
        return named
    try:
        return checks.name(getpass.getuser(), "the account's name")
    except (OSError, KeyError, ImportError, Invalid):
        return "local"


def kept_secret(data: Path) -> bytes:
    """Return the secret of the data folder; create it if missing. Of two concurrent creators the first wins."""
    path = data / SECRET_FILE
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes().strip()
    except OSError as error:
        raise Unavailable(
            f"cannot read or create the secret {str(path)!r} ({error.strerror}): make its folder writable"
        ) from error
    if len(secret) < 16:
        raise Unavailable(
            f"the secret {str(path)!r} is too short: remove the file, and the next start creates a new one"
        )
    return secret


def _make_secret(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(file, secrets.token_urlsafe(48).encode())
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)


@lru_cache(maxsize=1)
def of_this_process() -> Identity:
    """Return the identity by the settings, where no other was given."""
    from roost.settings import load
    from roost.wiring import data_folder

    settings = load()
    secret = settings.secret.get_secret_value() if settings.secret else None
    return identity(data_folder(settings.data), secret, settings.user)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
