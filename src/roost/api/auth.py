"""Authentication: a signed cookie for browsers, a token in the lock file for the command line.

A visitor without a cookie gets a new user. A one-time code signs a browser in as the local user, the user of the
command line.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from roost.core.values import checks
from roost.errors import Invalid, Unavailable
from roost.hosts.threads import ThreadHost

COOKIE = "roost_user"
"""Name of the cookie for pages. In browsers a suffix derived from the secret is added (see `cookie_name`)."""
COOKIE_LIFE = 400 * 24 * 3600
COOKIE_RENEWAL = 24 * 3600
CODE_LIFE = 600
MOST_CODES = 100
SECRET_FILE = "secret"


def _now() -> float:
    return datetime.now(UTC).timestamp()


class Identity:
    """Signs and verifies cookies, issues and redeems one-time codes, and holds the local token."""

    def __init__(self, secret: bytes, local_user: str, *, now: Callable[[], float] = _now) -> None:
        self._key = hmac.digest(secret, b"roost cookie v1", "sha256")
        mark = hmac.digest(secret, b"roost cookie name v1", "sha256").hex()[:8]
        # Browsers send a cookie to every port of a host. Without the suffix, two Roosts on one machine would
        # overwrite each other's cookie, and users would lose their sign-in.
        self.cookie_name = f"{COOKIE}_{mark}"
        self.local_user = checks.name(local_user, "the local user")
        self.nonce = secrets.token_urlsafe(16)
        self.token = local_token(secret, self.nonce)
        self._codes: dict[bytes, float] = {}
        self._now = now
        self._host = ThreadHost()

    # --- cookies ---------------------------------------------------------------------------------

    def new_user(self) -> str:
        return self._host.new_id("user")

    def cookie(self, user_id: str) -> str:
        payload = _encode(json.dumps([user_id, int(self._now())]).encode())
        return f"{payload}.{self._signature(payload)}"

    def user_of_cookie(self, value: str | None) -> str | None:
        """Return the user of a cookie, or None if it was not signed here or has expired."""
        return self._read(value)[0]

    def wants_renewal(self, value: str | None) -> bool:
        return self._now() - self._read(value)[1] > COOKIE_RENEWAL

    def _read(self, value: str | None) -> tuple[str | None, float]:
        payload, _, signature = (value or "").partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(payload).encode()):
            return None, 0
        user_id, issued = json.loads(_decode(payload))
        # A cookie from the future is valid: it was signed here, and the clock was set back since.
        return (user_id if self._now() - issued < COOKIE_LIFE else None), issued

    def _signature(self, payload: str) -> str:
        return _encode(hmac.digest(self._key, payload.encode(errors="replace"), "sha256"))

    # --- the command line ------------------------------------------------------------------------

    def is_local_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def invite(self) -> str:
        """Return a code that signs one browser in as the local user, once, within ten minutes."""
        self._forget_old()
        while len(self._codes) >= MOST_CODES:
            self._codes.pop(next(iter(self._codes)))
        code = secrets.token_urlsafe(24)
        self._codes[_digest(code)] = self._now() + CODE_LIFE
        return code

    def redeem(self, code: str) -> bool:
        """Return whether the code is valid, and invalidate it."""
        self._forget_old()
        given = _digest(code)
        found = [known for known in self._codes if hmac.compare_digest(known, given)]
        return bool(found) and self._codes.pop(found[0], None) is not None

    def _forget_old(self) -> None:
        now = self._now()
        self._codes = {code: until for code, until in self._codes.items() if until > now}


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


def user_of_cookie(value: str | None) -> str | None:
    """Return the user of a cookie, for a page that runs without `roost up` (a plain `streamlit run`)."""
    return of_this_process().user_of_cookie(value)


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode(errors="replace")).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
