"""Secrets in texts: known by their value, or by how they look."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
_KEY = re.compile(
    r"\b(?:sk|rk|pk)[-_][A-Za-z0-9_\-]{16,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_\-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9\-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_\-]{30,}|\bya29\.[A-Za-z0-9_\-]{20,}"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^\"\\-]|\\[nrt]|-(?!----END))*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys of well-known providers, tokens of theirs, and private keys."""
_BEARER = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/]+=*")
_URL_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://[^\s:/@]*):[^\s/]+@")
_CODE = re.compile(r"(?i)([?&](?:code|token|key|secret|password)=)[^\s&#\"'\\]+")
_SHORTEST = 6
HIDDEN = "•••"


class Redactor:
    """Replaces secrets in texts. Of variables, those are secret whose names say so."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        named = (variables or {}).items()
        self._values = {value for name, value in named if _SECRET_VARIABLE.search(name.upper())}
        self._pattern = self._compiled()

    def hide(self, value: str) -> None:
        self._values.add(value)
        self._pattern = self._compiled()

    def clean(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        text = _KEY.sub(HIDDEN, text)
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
        text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
        return _CODE.sub(rf"\1{HIDDEN}", text)

    def _compiled(self) -> re.Pattern[str] | None:
        # Short values would blacken half the log and protect nothing.
        long = sorted((v for v in self._values if len(v) >= _SHORTEST), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, long))) if long else None
