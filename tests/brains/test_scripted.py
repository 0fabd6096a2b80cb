from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import roost
from roost.brains.scripted import scripted

Ask = Callable[[roost.AgentService, str, str], roost.Message]

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(TEXTS)
@example(" ")
@example("  two  spaces  ")
@example("\r\n\t\u2028\ufeff")
@example("👩‍👩‍👧‍👦 e\u0301 \U0010ffff")
@example("\N{REPLACEMENT CHARACTER}")
def test_echo_gives_back_every_text_to_the_byte(shared_service: roost.AgentService, ask: Ask, said: str) -> None:
    talk = shared_service.create_talk_session("ann", profile="echo")
    assert ask(shared_service, talk, said).content.encode() == said.encode()


@given(TEXTS)
def test_the_pieces_of_an_echo_make_up_its_text(shared_service: roost.AgentService, said: str) -> None:
    talk = shared_service.create_talk_session("ann", profile="echo")
    shared_service.add_message("ann", talk, said)
    pieces = [change for change in shared_service.stream_messages("ann", talk) if change.message.sender == "agent"]
    assert "".join(change.text for change in pieces) == said
    assert not any(change.reset for change in pieces)


def test_echo_gives_back_a_million_characters(shared_service: roost.AgentService, ask: Ask) -> None:
    said = "né " * 333_333 + "é"
    talk = shared_service.create_talk_session("ann", profile="echo")
    assert ask(shared_service, talk, said).content == said


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 6))
def test_scripted_replies_come_in_order_and_start_again(
    tmp_path_factory: pytest.TempPathFactory, ask: Ask, replies: list[str], turns: int
) -> None:
    file = tmp_path_factory.mktemp("scripted") / "roost.db"
    with roost.open(f"sqlite:///{file}", brains={"scripted": scripted(replies)}) as service:
        talk = service.create_talk_session("ann", profile="scripted")
        given_answers = [ask(service, talk, "next").content for _ in range(turns)]
    assert given_answers == [replies[n % len(replies)] for n in range(turns)]


def test_a_script_continues_after_a_restart(file: Path, ask: Ask) -> None:
    brains: dict[str, roost.Brain] = {"scripted": scripted(["one", "two"])}
    with roost.open(f"sqlite:///{file}", brains=brains) as service:
        talk = service.create_talk_session("ann", profile="scripted")
        assert ask(service, talk, "next").content == "one"
    with roost.open(f"sqlite:///{file}", brains=brains) as service:
        assert ask(service, talk, "next").content == "two"


@pytest.mark.parametrize("replies", [[], "one"])
def test_a_script_needs_a_list_of_replies(replies: list[str]) -> None:
    with pytest.raises(roost.Invalid, match="at least one reply"):
        scripted(replies)


def test_a_brain_that_returns_instead_of_yielding_is_refused_at_once(tmp_path: Path) -> None:
    async def returns(turn: roost.Turn) -> str:
        return "hello"

    with pytest.raises(roost.Invalid, match="yield"):
        roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"returns": returns})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
