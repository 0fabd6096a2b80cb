"""File of the profiles that were added while Roost ran: `profiles.toml` in the data folder.

Its tables are written as in `roost.toml`, whose profiles take precedence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from roost.core.values import checks
from roost.errors import Invalid, Unavailable
from roost.keys import replace_file
from roost.ports import Profile

FILE = "profiles.toml"
_KEYS = ("description", "model", "base_url")
_HEAD = "# Profiles that were added on the page. Profiles of the same name in roost.toml take precedence.\n"


def read(file: Path) -> list[Profile]:
    """Return the profiles of the file; none if there is no file."""
    if not file.is_file():
        return []
    import tomllib  # only if there is such a file

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("profiles", {})
        return [_profile(name, table) for name, table in tables.items()]
    except OSError as error:
        raise Invalid(f"cannot read the profiles in {str(file)!r}: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError, KeyError, Invalid):
        raise Invalid(f"{file}: this is not a list of profiles: correct or remove the file") from None


def _profile(name: str, table: dict[str, object]) -> Profile:
    about, model, url = (checks.text(table[key], key, most=2_000) for key in _KEYS)
    return Profile(checks.name(name, "the name"), "llm", about, model, base_url=url)


def write(file: Path, profiles: Sequence[Profile]) -> None:
    """Replace the file. Raise Unavailable if that is not possible."""
    text = _HEAD + "".join(map(_table, profiles))
    try:
        replace_file(file, text)
    except OSError as error:
        raise Unavailable(f"cannot write the profiles to {str(file)!r}: {error.strerror}") from None


def _table(profile: Profile) -> str:
    """Return a table; all texts are printable, so that JSON's quotes are also TOML's."""
    values = zip(_KEYS, (profile.description, profile.model, profile.base_url), strict=True)
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values]
    return f'\n[profiles.{json.dumps(profile.name, ensure_ascii=False)}]\nbrain = "llm"\n{"".join(lines)}'
