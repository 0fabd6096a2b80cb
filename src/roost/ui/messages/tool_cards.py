"""Tool calls of an answer as cards: name, duration, arguments as a table, result or error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from roost.core.journal.approvals import folded
from roost.core.talks.side_channels import ToolNote, calls, results
from roost.ui.rendering.escaping import escape

SHOWN = 1_000
"""Characters shown of an argument or a result."""
RESULT = "Tool result"
"""Title of a result without its call: that is in the answer before."""
_STATES = {None: "running", True: "done", False: "failed"}


def tool_cards(lines: str, later: str = "") -> Iterator[str]:
    """Yield a card for each call in a note. Results that the note does not have may be in `later` ones."""
    found = calls(lines)
    rest = {}
    if later and any(call.result is None for call in found):
        rest = {call.call_id: call for call in calls(lines + later)}
    for call in found:
        yield _card(call if call.result is not None else rest.get(call.call_id, call))


def result_cards(text: str) -> Iterator[str]:
    """Yield a card for each result that a client has sent for a call of its own tools; none for any other text."""
    for call_id, result in results(text).items():
        yield _card(ToolNote(call_id, RESULT, None, result, ok=True))


def _card(call: ToolNote) -> str:
    state = _STATES[None if call.result is None else call.ok]
    took = "" if call.seconds is None else f'<span class="tool-time">{duration(call.seconds)}</span>'
    mark = f'<span class="tool-{state}">{state}</span>'
    head = f'<div class="tool-head"><strong>{escape(call.tool)}</strong><span>{took}{mark}</span></div>'
    return f'<div class="tool">{head}{_arguments(call.arguments)}{_result(call)}</div>'


def duration(seconds: float) -> str:
    """Return a duration as people read it: 0.4 s, 12 s, 2 min 5 s, 3 h 20 min."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


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
