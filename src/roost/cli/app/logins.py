"""API tokens of other servers, kept in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from roost.errors import Forbidden, Unavailable

if TYPE_CHECKING:
    from roost.settings import Settings

FILE = "logins.json"
VARIABLE = "ROOST_TOKEN"


class Logins:
    """Tokens by the URL of their server."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def get(self, server: str) -> str | None:
        return self._read().get(server)

    def servers(self) -> list[str]:
        return sorted(self._read())

    def put(self, server: str, token: str) -> None:
        self._write(self._read() | {server: token})

    def remove(self, server: str) -> bool:
        """Forget the token of a server; return whether there was one."""
        known = self._read()
        found = known.pop(server, None)
        if found is not None:
            self._write(known)
        return found is not None

    def _read(self) -> dict[str, str]:
        try:
            if stat.S_IMODE(self._file.stat().st_mode) & 0o077:
                raise Forbidden(f"other users can read the tokens in {str(self._file)!r}: run chmod 600 on it")
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot read {str(self._file)!r}: remove it, and sign in with `roost login`") from error
        return {str(server): str(token) for server, token in known.items()} if isinstance(known, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        """Replace the file at once, so that a crash leaves either the old or the new one."""
        draft = self._file.with_name(f"{FILE}.{secrets.token_hex(4)}")
        try:
            with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as out:
                json.dump(known, out, indent=2)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(self._file)
        except OSError as error:
            raise Unavailable(
                f"cannot write {str(self._file)!r} ({error.strerror}): make its folder writable"
            ) from error
        finally:
            draft.unlink(missing_ok=True)


def logins(settings: Settings) -> Logins:
    from roost.wiring import data_folder

    return Logins(data_folder(settings.data))


def token_of(settings: Settings) -> str:
    """Return the token for the chosen server: ROOST_TOKEN, or that of `roost login`. Raise Forbidden without one."""
    server = settings.server or ""
    token = os.environ.get(VARIABLE) or logins(settings).get(server)
    if not token:
        raise Forbidden(f"you are not signed in to {server}: run `roost login {server}`, or set {VARIABLE}")
    return token
