"""Tool calls as cards: all that tools and models wrote is text."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from roost.ui.live.tool_cards import SHOWN, tool_cards

VALUES = st.recursive(st.none() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3))


def note(*lines: object) -> str:
    return "\n".join(json.dumps(line) for line in lines)


def test_a_call_has_its_name_its_arguments_and_its_result() -> None:
    [card] = tool_cards(
        note({"call": "1", "tool": "pay", "args": {"to": "ann", "sum": 5}}, {"result": "1", "text": "paid"})
    )
    assert "<strong>pay</strong>" in card
    assert "<tr><th>to</th><td>ann</td></tr><tr><th>sum</th><td>5</td></tr>" in card
    assert 'aria-label="Result">paid</pre>' in card
    assert "tool-done" in card


def test_a_call_that_runs_or_failed_says_so() -> None:
    running, failed = tool_cards(
        note({"call": "1", "tool": "a"}, {"call": "2", "tool": "b"}, {"result": "2", "text": "no", "ok": False})
    )
    assert "tool-running" in running
    assert "<pre" not in running
    assert 'tool-failed">failed' in failed
    assert 'aria-label="Error">no</pre>' in failed


def test_a_long_result_is_cut() -> None:
    [card] = tool_cards(note({"call": "1", "tool": "a"}, {"result": "1", "text": "x" * 50_000}))
    assert len(card) < SHOWN + 500


@given(st.text(max_size=20), st.dictionaries(st.text(max_size=10), VALUES, max_size=3), st.text(max_size=40))
def test_whatever_is_written_is_text(name: str, arguments: dict[str, object], result: str) -> None:
    [card] = tool_cards(note({"call": "1", "tool": name, "args": arguments}, {"result": "1", "text": result}))
    tags = {tag.lower() for tag in re.findall(r"<\s*/?\s*([a-zA-Z!]+)", card)}
    assert tags <= {"div", "strong", "span", "table", "tbody", "tr", "th", "td", "pre", "bdi"}
