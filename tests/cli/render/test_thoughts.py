"""Thoughts and tool calls before an answer, in a terminal: a line each."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.cli.render.thoughts import DIM, PLAIN, Thoughts
from roost.core.talks.side_channels import Channel, Note, answered, called
from tests.cli.running import roost
from tests.cli.terminals import terminal
from tests.conftest import eventually

BRAIN = """
from roost import Chunk
from roost.core.talks.side_channels import Channel, answered, called
async def ponders(turn):
    yield Chunk("I weigh\\n", channel=Channel.THINKING)
    yield Chunk("it all", channel=Channel.THINKING)
    yield Chunk(called("1", "price", {"sku": "tea"}), Channel.TOOLS)
    yield Chunk(answered("1", "4.25\\nin all"), Channel.TOOLS)
    yield "It costs"
    yield Chunk("more or less", channel=Channel.COMMENTARY)
    yield " four."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "brains.py").write_text(BRAIN)
    (tmp_path / "roost.toml").write_text("[profiles.ponders]\nbrain = 'brains:ponders'\n")
    return tmp_path


def test_in_a_terminal_they_stand_beside_the_answer_and_can_be_left_out(folder: Path) -> None:
    with terminal(folder, "chat") as person:
        eventually(lambda: person.shows("> "))
        person.type("go\n")
        eventually(lambda: person.shows("four.\r\n"))
        assert person.shows('· I weigh it all\r\n· price {"sku": "tea"} → 4.25 in all\r\n')
    with terminal(folder, "chat", "--no-thoughts") as person:
        eventually(lambda: person.shows("> "))
        person.type("go\n")
        eventually(lambda: person.shows("It costs four.\r\n"))
        assert not person.shows("weigh")


def test_through_a_pipe_there_is_the_answer_alone(folder: Path) -> None:
    done = roost(folder, "chat", stdin="go\n")
    assert (done.stdout, done.stderr) == ("It costs four.\n", "")


def shown(monkeypatch: pytest.MonkeyPatch, *pieces: Note, term: str = "xterm") -> list[str]:
    """Return what is written, piece by piece, and at the end."""
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "20")
    written: list[str] = []
    thoughts = Thoughts(written.append)
    for piece in pieces:
        thoughts.grow((piece,))
    thoughts.close()
    return [text.replace(DIM, "").replace(PLAIN, "").replace("\x1b[K", "") for text in written]


def test_a_thought_is_one_line_drawn_over_itself_and_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [Note(Channel.THINKING, "one "), Note(Channel.THINKING, "two\nthree\x1b[2J four and more of it")]
    assert shown(monkeypatch, *said) == ["\r· one", "\r· …r and more of it", "\r· one two three fo…\n"]
    assert shown(monkeypatch, *said, term="dumb") == ["· one two three fo…\n"]


def test_a_call_has_its_line_when_it_has_its_result_and_one_that_was_cut_off_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = called("1", "a", 1), called("2", "b", 2)
    cut_off = [first[:9], first[9:] + second, answered("1", "ok"), answered("2", "no", ok=False)[:5]]
    drawn = shown(monkeypatch, *(Note(Channel.TOOLS, text) for text in cut_off))
    assert drawn == ["\r· a 1 → …", "\r· a 1 → ok\n", "\r· b 2 → …", "\r· b 2 → …", "\r· b 2 → …\n"]


def test_what_is_of_no_interest_afterwards_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Note(Channel.WAITING, "2 before you"), Note(Channel.THINKING, " \n")) == []
