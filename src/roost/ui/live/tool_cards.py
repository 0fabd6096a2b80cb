"""Tool calls of an answer as cards: name, arguments as a table, result or error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from roost.core.journal.approvals import folded
from roost.core.talks.side_channels import ToolNote, calls
from roost.ui.rendering.escaping import escape

SHOWN = 1_000
"""Characters shown of an argument or a result."""
_STATES = {None: "running", True: "done", False: "failed"}


def tool_cards(lines: str) -> Iterator[str]:
    """Yield a card for each call in a note."""
    return map(_card, calls(lines))


def _card(call: ToolNote) -> str:
    state = _STATES[None if call.result is None else call.ok]
    head = f'<div class="tool-head"><strong>{escape(call.tool)}</strong><span class="tool-{state}">{state}</span></div>'
    return f'<div class="tool">{head}{_arguments(call.arguments)}{_result(call)}</div>'


def _arguments(arguments: object) -> str:
    if not arguments:
        return ""
    if not isinstance(arguments, Mapping):
        return _text(json.dumps(arguments, ensure_ascii=False), "Arguments")
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{_value(value)}</td></tr>" for name, value in arguments.items()
    )
    return f'<div class="tool-arguments" tabindex="0" role="group" aria-label="Arguments"><table>{rows}</table></div>'


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape(folded(text, SHOWN))


def _result(call: ToolNote) -> str:
    return "" if call.result is None else _text(call.result, "Result" if call.ok else "Error")


def _text(text: str, label: str) -> str:
    return f'<pre tabindex="0" aria-label="{label}">{escape(folded(text, SHOWN))}</pre>'
