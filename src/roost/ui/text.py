"""Text for pages: titles escaped for Streamlit, errors as sentences, JSON that somebody typed."""

from __future__ import annotations

import json
import re
from typing import Any

from roost.errors import Invalid, public

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SHORTCODE = re.compile(r":(?=[\w+-])")
_ARROW = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")
_JOINER = "\u2060"


def plain(text: str) -> str:
    """Escape a title or name for Streamlit's Markdown, so that it reads as typed.

    An invisible joiner breaks patterns that Streamlit replaces after unescaping: `:material/home:`, `:smile:`, ` -> `.
    """
    text = _SHORTCODE.sub(":" + _JOINER, " ".join(text.split()))
    text = _ARROW.sub(lambda found: found[0][0] + _JOINER + found[0][1:], text)
    return _PUNCTUATION.sub(r"\\\1", text)


def sentence(problem: object) -> str:
    """Return an error or notice as a sentence: with a capital letter and a full stop."""
    text = " ".join((public(problem) if isinstance(problem, Exception) else str(problem)).split())
    if text.partition(" ")[0].strip(",:;.!?").isalpha():  # not a file name, for example
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def as_sentence(problem: object) -> str:
    """Return an error or notice as a sentence, escaped for Streamlit's Markdown."""
    return plain(sentence(problem))


def parsed_json(text: str, problem: str) -> Any:
    """Return the value of a JSON text; raise `Invalid` with this problem and the reason if it cannot be read."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Invalid(f"{problem}: {error}") from None
    except RecursionError:
        raise Invalid(f"{problem}: it is nested too deeply") from None


def file_size(size: int) -> str:
    """Return a number of bytes for people, such as `340 bytes` or `1.2 MB`."""
    if size < 1_000:
        return f"{size} byte{'s' if size != 1 else ''}"
    return f"{size / 1_000:.0f} KB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"
