"""Secrets in texts: known by their value, or by how they look."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from roost.core import checks

_SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
_KEY = re.compile(
    r"\b(?:sk|rk|pk)[-_][A-Za-z0-9_\-]{16,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_\-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9\-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_\-]{30,}|\bya29\.[A-Za-z0-9_\-]{20,}"
    r"|(?<![\w\-])eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^\"\\-]|\\[nrt]|-(?!----END))*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys of well-known providers, tokens of theirs, and private keys."""
_MARKS = (
    "sk-", "sk_", "rk-", "rk_", "pk-", "pk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox",
    "AKIA", "AIza", "ya29.", "eyJ", "-----BEGIN",
)  # fmt: skip
"""Without one of these there is none of them: to look for these first is twenty times as fast."""
_BEARER = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/]+=*")
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*):[^\s/]+@")
_CODE = re.compile(r"(?i)([?&](?:code|token|key|secret|password)=)[^\s&#\"'\\]+")
_SHORTEST = 6
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
"""A string in JSON."""
_DATA = re.compile(r"[A-Za-z0-9+/_\-]{200,}={0,2}")
"""A picture, a signature or the like, longer than keys are: what looks like one in it is there by chance."""
HIDDEN = "•••"


_PLAIN = re.compile(r"[A-Za-z]{1,15}|[\d.,:;+\-\s]*|[~.]{0,2}/.*|https?://[^\s@?]*", re.DOTALL)
"""A word, a number or a time, a path, an address: what is given to a program and is no secret."""


def is_plain(value: str) -> bool:
    """Whether a value of which nothing else is known is plainly no secret."""
    return len(value) < _SHORTEST or _PLAIN.fullmatch(value) is not None


class Redactor:
    """Replaces secrets in texts. Of variables, those are secret whose names say so; `hidden` are further secrets."""

    def __init__(self, variables: Mapping[str, str] | None = None, hidden: Iterable[str] = ()) -> None:
        named = (variables or {}).items()
        self._values = {value for name, value in named if _SECRET_VARIABLE.search(name.upper())} | set(hidden)
        self._pattern = self._compiled()

    def hide(self, value: str) -> None:
        self._values.add(value)
        self._pattern = self._compiled()

    def clean(self, text: str) -> str:
        text = self._without_known(text)
        if any(mark in text for mark in _MARKS):
            text = _KEY.sub(HIDDEN, text)
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
        text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
        return _CODE.sub(rf"\1{HIDDEN}", text)

    def clean_json(self, text: str, kept: Collection[str] = ()) -> str:
        """The same for a text of JSON, which stays one: in each of its strings, as it reads without its escapes.

        Those that are `kept` stay as they are.
        """
        return _STRING.sub(partial(self._clean_string, kept), text)

    def _clean_string(self, kept: Collection[str], found: re.Match[str]) -> str:
        written = found[0]
        if len(written) < _SHORTEST:
            return written
        text = json.loads(written) if "\\" in written else written[1:-1]
        if text in kept:
            return written
        cleaned = self._without_known(text) if _DATA.fullmatch(text) else self.clean(text)
        if cleaned == text:
            return written
        return checks.whole(json.dumps(cleaned, ensure_ascii=False))  # as others write it: by that it is found again

    def _without_known(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def _compiled(self) -> re.Pattern[str] | None:
        # Short values would blacken half the log and protect nothing.
        long = sorted((v for v in self._values if len(v) >= _SHORTEST), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, long))) if long else None
