"""Pseudonyms: they replace a deleted user in what other users keep."""

from __future__ import annotations

import json
import re
import secrets
from functools import cached_property

PREFIX = "deleted-"


def new_pseudonym() -> str:
    return PREFIX + secrets.token_hex(6)


class Renaming:
    """Replacement of a user id by a pseudonym, wherever a text has it as part of an address.

    Those are `user:ann`, and `ann/d` for an agent of ann, also inside JSON. A bare `ann` in a text stays: it is a word.
    """

    def __init__(self, user_id: str, pseudonym: str) -> None:
        self.user_id = user_id
        self._pseudonym = pseudonym
        self._forms = {user_id, json.dumps(user_id)[1:-1], json.dumps(json.dumps(user_id)[1:-1])[1:-1]}

    @property
    def parts(self) -> list[str]:
        """Return texts of which one is in every text that mentions the user."""
        return [part for form in sorted(self._forms) for part in (f"user:{form}", f"{form}/")]

    def renamed(self, text: str) -> str:
        return self._pattern.sub(self._pseudonym, text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = "|".join(re.escape(form) for form in sorted(self._forms, key=len, reverse=True))
        person = rf"(?<=\buser:)(?:{names})(?![\w@+\-]|[./]\w)"
        owner = rf"(?<![\w@+\-./])(?:{names})(?=/[\w.\-]+(?![\w./\-]))"
        return re.compile(f"{person}|{owner}")
