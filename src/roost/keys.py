"""Keys and other secrets in a separate file, readable only by its owner.

They are added to the environment of this process; variables that are already set stay.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from roost.errors import Invalid, Unavailable

FILE = "secrets.toml"
VARIABLE = "ROOST_SECRETS"
_NAME = re.compile(r"[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)")


def read(folders: Iterable[Path], environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Read the file named by ROOST_SECRETS, or the first `secrets.toml` in the folders; return its path."""
    file = place(folders, environ)
    if file is None:
        return None
    for name, value in values_in(file).items():
        environ.setdefault(name, value)
    return file


def place(folders: Iterable[Path], environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file to read: the one named by ROOST_SECRETS, or the first that exists."""
    named = environ.get(VARIABLE)
    return Path(named) if named else next((f / FILE for f in folders if (f / FILE).is_file()), None)


def values_in(file: Path) -> dict[str, str]:
    """Return the secrets of a file. Raise Invalid if others may read it, or if it is not valid."""
    import tomllib  # only if there is such a file

    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise Invalid(f"other users may read the secrets in {str(file)!r}: run chmod 600 {file}")
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Invalid(f"cannot read the secrets in {str(file)!r}: {error.strerror}") from None
    except ValueError as error:  # TOML or UTF-8; the content is secret and not repeated
        place = re.search(r"line \d+", str(error))
        raise Invalid(f"{file}, {place[0] if place else 'somewhere'}: this is not valid TOML") from None
    for name, value in found.items():
        if not _NAME.fullmatch(name):
            raise Invalid(f"{file}: {name!r:.40} cannot hold a secret: names end in _KEY, _TOKEN, _SECRET or _PASSWORD")
        if not isinstance(value, str) or not value:
            raise Invalid(f"{file}: {name} must be text in quotes")
    return found


def write(file: Path, name: str, value: str) -> None:
    """Add a secret of printable ASCII to the file, or replace it there; other lines stay as they are.

    Raise Invalid if the file is not valid, Unavailable if it cannot be written; the file is then unchanged.
    """
    expected = (values_in(file) if file.exists() else {}) | {name: value}
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        replace_file(file, _changed(text, name, value, expected))
    except OSError as error:
        raise Unavailable(f"cannot write the secrets to {str(file)!r}: {error.strerror}") from None


def _changed(text: str, name: str, value: str, expected: Mapping[str, str]) -> str:
    import tomllib

    line = _line(name, value)
    others = re.sub(rf"^[ \t]*\"?{name}\"?[ \t]*=.*\n?", "", text, flags=re.MULTILINE)
    changed = f"{others}{'' if others.endswith(chr(10)) or not others else chr(10)}{line}"
    try:
        if tomllib.loads(changed) == expected:
            return changed
    except ValueError:  # such as a text of several lines
        pass
    return "".join(_line(name, value) for name, value in expected.items())


def _line(name: str, value: str) -> str:
    """Return a line of TOML."""
    escaped = "".join(f"\\U{ord(c):08x}" if c in '"\\\x7f' or not c.isprintable() else c for c in value)
    return f'{name} = "{escaped}"\n'


def replace_file(file: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read the new one."""
    file = file.resolve()  # a link stays a link
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(draft, file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
