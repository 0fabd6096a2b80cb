"""Redaction of secrets: known by value, or recognised by their form."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from roost.core.values import checks

_SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
"""Names of variables whose values are secret."""
_SUSPECT_VARIABLE = re.compile(
    r"(?:^|_)(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|CREDENTIALS?|AUTH|BEARER|COOKIE|DSN)S?(?:_|\d|$)"
)
"""Names of variables whose values are secret unless `is_plain`."""
_HARMLESS_VARIABLE = re.compile(
    r"(?:^|_)(PROJECT|LOCATION|REGION|ZONE|MODEL|NAME|HOST|PORT|VERSION|MODE|LEVEL|LANG|LOCALE|EMAIL|PATH|DIR|VERTEXAI)$"
)
"""Names of variables in a file of secrets whose values are not secret."""
_KEY = re.compile(
    r"\b(?:sk|rk|pk)[-_][A-Za-z0-9_\-]{16,}|\broost_[A-Za-z0-9_\-]{40,}"
    r"|\bwhsec_[A-Za-z0-9+/]{16,}=*|\bhook_[A-Za-z0-9_\-]{40,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_\-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9\-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_\-]{30,}|\bya29\.[A-Za-z0-9_\-]{20,}"
    r"|(?<![\w\-])eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^\"\\-]|\\[nrt]|-(?!----END))*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys and tokens of well-known providers, and private keys."""
_BEARER = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/]+=*")
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*):[^\s/]+@")
_CODE = re.compile(r"(?i)([?&](?:code|token|key|secret|password)=)[^\s&#\"'\\]+")
_SHORTEST = 6
_GIVEN_AWAY = 3
"""Prefix length that is not held back: so few characters reveal nothing, and many words end with them."""
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
"""A string in JSON."""
_DATA = re.compile(r"[A-Za-z0-9+/_\-]{200,}={0,2}")
"""Encoded data such as an image or a signature, longer than any key: a match inside it is a coincidence."""
HIDDEN = "•••"


_PLAIN = re.compile(r"[A-Za-z]{1,15}|[\d.,:;+\-\s]*|[~.]{0,2}/.*|https?://[^\s@?]*", re.DOTALL)
"""A word, a number, a time, a path or a URL: values that are not secret."""


def passwords_in(url: str) -> tuple[str, ...]:
    """Return the password of a URL, both as written and percent-decoded."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return ()
    return (password, unquote(password)) if password else ()


def is_plain(value: str) -> bool:
    """Return whether a value is clearly not a secret."""
    return len(value) < _SHORTEST or _PLAIN.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class _Known:
    """Compiled patterns for secrets known by value."""

    pattern: re.Pattern[str]
    starts: re.Pattern[str]
    """Matches the first character of any of them."""
    by_start: Mapping[str, tuple[str, ...]]
    longest: int

    @classmethod
    def of(cls, values: Iterable[str]) -> _Known | None:
        # Redacting short values would hide ordinary words and protect nothing.
        long = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)
        if not long:
            return None
        by_start: dict[str, tuple[str, ...]] = {}
        for value in long:
            by_start[value[0]] = (*by_start.get(value[0], ()), value)
        starts = re.compile(f"[{''.join(map(re.escape, by_start))}]")
        return cls(re.compile("|".join(map(re.escape, long))), starts, by_start, len(long[0]))

    def unfinished(self, text: str, start: int) -> int:
        """Return where a secret may start that continues after the text; otherwise the length of the text."""
        for found in self.starts.finditer(text, max(start, len(text) - self.longest + 1)):
            tail = text[found.start() :]
            if any(value.startswith(tail) for value in self.by_start[tail[0]]):
                return found.start()
        return len(text)


class Redactor:
    """Redactor of secrets in texts. One per process or Roost; each secret is added when it is loaded.

    Secrets are known by value, or recognised by their form. Safe for threads.
    """

    def __init__(self, variables: Mapping[str, str] | None = None, hidden: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self.known: _Known | None = None
        """None while no secret is known by value."""
        self.learn(variables or {})
        self.hide(*hidden)

    def learn(self, variables: Mapping[str, str], *, is_private: bool = False) -> None:
        """Add the values of variables whose names mark them as secret.

        With `is_private` (a file of secrets, the environment of one server) all others too, unless `is_plain`.
        """
        self.hide(*(value for name, value in variables.items() if _is_secret(name.upper(), value, is_private)))

    def hide(self, *values: str) -> None:
        values_now = self._values.union(values)
        if values_now != self._values:
            self._values, self.known = values_now, _Known.of(values_now)

    def clean_known(self, text: str) -> str:
        """Replace only the secrets known by value."""
        return text if self.known is None else self.known.pattern.sub(HIDDEN, text)

    def clean_value(self, value: Any) -> Any:
        """Replace secrets in each text of a JSON value."""
        if self.known is None:
            return value
        if isinstance(value, str):
            return self.clean_known(value)
        if isinstance(value, Mapping):
            return {self.clean_value(name): self.clean_value(item) for name, item in value.items()}
        return [self.clean_value(item) for item in value] if isinstance(value, list | tuple) else value

    def clean(self, text: str) -> str:
        text = self.clean_known(text)
        # Each pattern runs only if a fixed part of it is found, which is rare and quick to check.
        if _may_have_key(text):
            text = _KEY.sub(HIDDEN, text)
        if "bearer" in text.lower():
            text = _BEARER.sub(rf"\1{HIDDEN}", text)
        if "://" in text:
            text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
        return _CODE.sub(rf"\1{HIDDEN}", text) if "=" in text else text

    def clean_json(self, text: str, kept: Collection[str] = ()) -> str:
        """Replace secrets in each string of a JSON text, compared without escapes; the result is valid JSON.

        In strings that are in `kept`, only secrets known by value are replaced.
        """
        # Without escapes, a secret in one of its strings is also found in the whole text, which is quick to check.
        if "\\" not in text and self.clean(text) == text:
            return text
        return _STRING.sub(partial(self._clean_string, kept), text)

    def clean_known_json(self, text: str) -> str:
        """Replace in a JSON text the secrets known by value."""
        return text if self.known is None else json.dumps(self.clean_value(json.loads(text)), ensure_ascii=False)

    def _clean_string(self, kept: Collection[str], found: re.Match[str]) -> str:
        written = found[0]
        if len(written) < _SHORTEST:
            return written
        text = json.loads(written) if "\\" in written else written[1:-1]
        is_exempt = text in kept or _DATA.fullmatch(text) is not None
        cleaned = self.clean_known(text) if is_exempt else self.clean(text)
        if cleaned == text:
            return written
        return checks.whole(json.dumps(cleaned, ensure_ascii=False))  # encoded as elsewhere: equal texts stay equal


class RedactedStream:
    """Redactor of a stream: replaces secrets known by value, even if they are split between chunks.

    Only a possible start of a secret is held back until the next chunk, so the result does not depend on how the text
    was cut.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._shown = ""
        """End of the text that was passed on; it may be the start of a secret."""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Add a chunk and return the text that can be passed on."""
        known = self._redactor.known
        if known is None:
            return self.end() + piece
        text, at = self._shown + self._held + piece, len(self._shown)
        passed, start = [], 0
        while (found := known.pattern.search(text, start)) is not None:
            passed += [text[at : found.start()], HIDDEN]
            at = start = found.end()
        cut = known.unfinished(text, start)
        until = max(cut, at)
        passed.append(text[at:until])
        self._shown, self._held = text[cut:until], text[until:]
        return "".join(passed)

    def flush(self) -> str:
        """Return the text held back if it is short: the next chunk may take a while, and readers wait."""
        if len(self._shown) + len(self._held) > _GIVEN_AWAY:
            return ""
        held, self._held = self._held, ""
        self._shown += held
        return held

    def end(self) -> str:
        """Return the text held back, since this text ends here."""
        held, length = self._held, len(self._shown) + len(self._held)
        self._shown = self._held = ""
        return HIDDEN if held and length >= _SHORTEST else held


def _may_have_key(text: str) -> bool:
    if "-" in text and ("k-" in text or "xox" in text or "glpat-" in text or "-----BEGIN" in text):
        return True
    if "_" in text and ("k_" in text or "gh" in text or "roost_" in text or "whsec_" in text):
        return True
    return "eyJ" in text or "AKIA" in text or "AIza" in text or "ya29." in text


def _is_secret(name: str, value: str, is_private: bool) -> bool:
    if _SECRET_VARIABLE.search(name):
        return True
    if is_plain(value):
        return False
    return _SUSPECT_VARIABLE.search(name) is not None or (is_private and not _HARMLESS_VARIABLE.search(name))
