"""Arguments of a call as a table, in which every character is visible."""

from __future__ import annotations

from html import escape

from roost.core.journal.approvals import LONG, Approval, folded

BEGINNING = 80
"""Characters shown of a collapsed argument."""


def argument_table(approval: Approval, most: int | None = None) -> str:
    """Return the arguments as HTML: long ones are collapsed, and expand in the browser, up to `most` characters."""
    if not approval.arguments:
        return ""
    values = approval.values(indent=2).items()
    rows = "".join(
        f'<tr><th scope="row">{escape(name[1:-1])}</th><td>{_value(text, most)}</td></tr>' for name, text in values
    )
    return f'<div class="tool-arguments" tabindex="0" role="group" aria-label="Arguments"><table>{rows}</table></div>'


def _value(text: str, most: int | None) -> str:
    if len(text) <= LONG:
        return escape(text)
    beginning = " ".join(text[:BEGINNING].split())
    summary = f"{beginning}… ({len(text):,} characters, click to show all)"
    whole = text if most is None else folded(text, most)
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(whole)}</pre></details>"
