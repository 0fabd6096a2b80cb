"""Keys and other secrets from a separate file, readable only by its owner.

They are added to the environment of this process; variables that are already set stay.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from roost.errors import Invalid

FILE = "secrets.toml"
VARIABLE = "ROOST_SECRETS"
_NAME = re.compile(r"[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD)")


def read(folders: Iterable[Path], environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Read the file named by ROOST_SECRETS, or the first `secrets.toml` in the folders; return its path."""
    named = environ.get(VARIABLE)
    file = Path(named) if named else next((f / FILE for f in folders if (f / FILE).is_file()), None)
    if file is None:
        return None
    for name, value in _values(file).items():
        environ.setdefault(name, value)
    return file


def _values(file: Path) -> dict[str, str]:
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
