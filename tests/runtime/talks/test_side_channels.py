"""B4: thoughts and notes of a brain are stored beside its answer, live, in the store and on the wire."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost.api import long_texts
from roost.core.talks import side_channels
from roost.core.talks.side_channels import Channel, Note
from roost.protocol.talks import ChangeEvent
from tests.brains_for_tests import until
from tests.conftest import Open, eventually, everything, settled

PIECES = st.lists(
    st.builds(Note, st.sampled_from([str(c) for c in Channel if c is not Channel.FINAL]), st.text(min_size=1))
)


@given(PIECES, st.integers(0, 40))
def test_notes_are_the_same_however_they_were_cut(pieces: list[Note], at: int) -> None:
    whole = side_channels.joined(pieces)
    assert side_channels.unpack("".join(side_channels.pack([piece]) for piece in pieces)) == whole
    assert side_channels.joined([*side_channels.until(whole, at), *side_channels.after(whole, at)]) == whole


async def pondering(turn: roost.Turn) -> AsyncIterator[roost.Chunk | str]:
    yield roost.Chunk("let me ", "thinking")
    yield roost.Chunk("see", "thinking")
    yield "It is "
    yield roost.Chunk("looking it up", "commentary")
    yield "four."


def test_thoughts_are_kept_beside_the_answer_and_the_brain_sees_them_again(service: Open) -> None:
    roosted = service({"pondering": pondering})
    talk = roosted.create_talk_session("ann")
    roosted.add_message("ann", talk, "2 + 2?")
    answer = settled(roosted, "ann", talk)[-1]
    assert answer.content == "It is four."
    assert answer.notes == (roost.Note("thinking", "let me see"), roost.Note("commentary", "looking it up"))
    roosted.close()
    assert everything(service(), "ann", talk)[-1] == answer


def test_a_stream_has_notes_piece_by_piece_also_on_the_wire(service: Open) -> None:
    gates = [threading.Event() for _ in range(3)]

    async def slow(turn: roost.Turn) -> AsyncIterator[roost.Chunk | str]:
        yield roost.Chunk("hm", "thinking")
        await until(gates[0].is_set)
        yield roost.Chunk("…", "thinking")
        await until(gates[1].is_set)
        yield "yes"
        await until(gates[2].is_set)

    roosted = service({"slow": slow})
    talk = roosted.create_talk_session("ann")
    roosted.add_message("ann", talk, "well?")
    text, noted, steps, before = "", list[Note](), iter(gates), None
    for change in roosted.stream_messages("ann", talk):
        if change.message.sender != "agent":
            continue
        text, noted = text + change.text, [*noted, *change.notes]
        assert (text, side_channels.joined(noted)) == (change.message.content, change.message.notes)
        [(cursor, content)] = long_texts.events(change, None)
        read = ChangeEvent.model_validate_json(f'{content[:-1]},"cursor":"{cursor}"}}').change(before)
        assert read == change
        before = read.message
        if change.text or change.notes:
            next(steps).set()
    assert (text, side_channels.joined(noted)) == ("yes", (Note("thinking", "hm…"),))


def test_an_answer_of_which_only_thoughts_were_seen_is_withdrawn_when_the_next_message_comes(service: Open) -> None:
    seen: list[list[str]] = []

    async def thinker(turn: roost.Turn) -> AsyncIterator[roost.Chunk | str]:
        seen.append([m.content for m in turn.messages])
        yield roost.Chunk("hm", "thinking")
        await until(lambda: len(turn.messages) > 1)
        yield "both answered"

    roosted = service({"thinker": thinker})
    talk = roosted.create_talk_session("ann")
    roosted.add_message("ann", talk, "one")
    eventually(lambda: everything(roosted, "ann", talk)[-1].notes)
    roosted.add_message("ann", talk, "two")
    shown = [(m.content, m.status) for m in settled(roosted, "ann", talk)]
    assert shown == [("one", "complete"), ("", "withdrawn"), ("two", "complete"), ("both answered", "complete")]
    assert seen == [["one"], ["one", "two"]]


def test_an_answer_that_is_stopped_while_it_thinks_stays_with_its_thoughts(service: Open) -> None:
    async def thinker(turn: roost.Turn) -> AsyncIterator[roost.Chunk]:
        yield roost.Chunk("hm", "thinking")
        await until(lambda: False)

    roosted = service({"thinker": thinker})
    talk = roosted.create_talk_session("ann")
    roosted.add_message("ann", talk, "one")
    eventually(lambda: everything(roosted, "ann", talk)[-1].notes)
    roosted.stop("ann", talk, wait=5)
    last = everything(roosted, "ann", talk)[-1]
    assert (last.content, last.status, last.notes) == ("", "interrupted", (Note("thinking", "hm"),))


def test_a_channel_that_does_not_exist_fails_the_run(service: Open) -> None:
    async def odd(turn: roost.Turn) -> AsyncIterator[roost.Chunk]:
        yield roost.Chunk("hm", "musing")

    roosted = service({"odd": odd})
    talk = roosted.create_talk_session("ann")
    roosted.add_message("ann", talk, "one")
    assert settled(roosted, "ann", talk)[-1].status == "failed"


@pytest.mark.parametrize("cut", [0, 5, 30, 1_000])
def test_calls_are_read_from_their_lines_even_if_the_last_was_cut_off(cut: int) -> None:
    arguments: dict[str, Any] = {"sku": "a"}
    lines = (
        side_channels.called("1", "price", arguments)
        + side_channels.answered("1", "4")
        + side_channels.called("2", "price", {})
    )
    found = side_channels.calls(lines[:-cut] if cut else lines)
    whole = [side_channels.ToolNote("1", "price", arguments, "4"), side_channels.ToolNote("2", "price", {})]
    assert found in (whole, whole[:1], [])
    assert (found == whole) == (cut == 0)
