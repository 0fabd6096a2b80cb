"""Tool calls as cards: all that tools and models wrote is text."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.talks.side_channels import answered, called
from roost.ui.messages.tool_cards import SHOWN, result_cards, tool_cards

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


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (12.2, "12 s"),
        (59.7, "1 min"),
        (125, "2 min 5 s"),
        (12_000, "3 h 20 min"),
    ],
)
def test_a_card_has_its_duration(seconds: float, shown: str) -> None:
    [card] = tool_cards(called("1", "pay", {}) + answered("1", "paid", seconds=seconds))
    assert f'<span class="tool-time">{shown}</span>' in card


@pytest.mark.parametrize("seconds", ['"<b>"', "-1", "1e999", "NaN", "null", "[1]"])
def test_a_strange_duration_is_not_shown(seconds: str) -> None:
    [card] = tool_cards(f'{{"call": "1", "tool": "a"}}\n{{"result": "1", "text": "b", "seconds": {seconds}}}\n')
    assert "tool-time" not in card


def test_a_result_after_some_text_belongs_to_its_card() -> None:
    call = called("1", "price", {"sku": "tea"})
    [card] = tool_cards(call, answered("2", "of another") + answered("1", "4.25"))
    assert "4.25" in card
    [running] = tool_cards(call, answered("2", "of another"))
    assert "running" in running


def test_results_that_a_client_has_sent_are_cards_and_other_texts_are_not() -> None:
    first, second = result_cards(answered("1", "paid <b>5</b>") + answered("2", "no", ok=False))
    assert "<strong>Tool result</strong>" in first
    assert 'aria-label="Result">paid &lt;b&gt;5&lt;/b&gt;</pre>' in first
    assert ">no</pre>" in second
    for text in (
        "",
        "hello",
        '{"result": "1"}',
        answered("1", "x") + "and more",
        '{"text": "x", "result": "1", "a": 1}',
    ):
        assert list(result_cards(text)) == []
