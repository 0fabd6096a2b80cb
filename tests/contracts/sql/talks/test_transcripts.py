"""Transcripts on every store: read in parts, added as new talks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import Note
from roost.core.talks.talk import BusyPolicy
from roost.core.talks.transcripts import Transcript
from roost.errors import LimitReached, NotFound
from roost.stores.sql.talks import answers, messages, runs, talks, transcripts
from tests.contracts.conftest import Driven

LATER = datetime(2030, 1, 2, 3, 4, 5, 678_901, UTC)
SAID = (
    Message(1, Sender.USER, "hi 🐦", Status.COMPLETE, LATER),
    Message(2, Sender.AGENT, "hello", Status.FAILED, LATER, "why", notes=(Note("thinking", "hm"),)),
)
TRANSCRIPT = Transcript("Birds", "echo", None, BusyPolicy.QUEUE, {}, LATER, SAID)


def add(store: Driven, talk_id: str = "talk_1", transcript: Transcript = TRANSCRIPT, most: int = 10) -> None:
    store.write(transcripts.add, "ann", talk_id, "echo", "", '{"temperature": 0.5}', transcript, most)


def test_a_transcript_becomes_a_talk_that_continues(store: Driven) -> None:
    add(store)
    talk, found, is_last = store.read(transcripts.read_part, "ann", "talk_1", 0)
    assert (tuple(found), is_last) == (SAID, True)
    assert (talk.title, talk.busy, talk.created, talk.messages) == ("Birds", BusyPolicy.QUEUE, LATER, 2)
    assert (dict(talk.options), talk.running, talk.updated != LATER) == ({"temperature": 0.5}, False, True)
    posted = store.write(messages.post, "ann", "talk_1", "more", None, None, "", "env_1", 0.0, 9)
    assert (posted.message.seq, posted.revision) == (3, 3)
    assert store.write(runs.claim, "talk_1").envelopes[0].seq == 3
    loaded = store.read(talks.load, "ann", "talk_1", 10)
    assert [message for message, _ in loaded.messages][:2] == list(SAID)


def test_a_transcript_without_messages_is_an_empty_talk(store: Driven) -> None:
    add(store, transcript=replace(TRANSCRIPT, messages=()))
    talk, found, is_last = store.read(transcripts.read_part, "ann", "talk_1", 0)
    assert (talk.messages, found, is_last) == (0, [], True)


def test_another_users_talk_is_not_read_and_the_number_of_talks_is_limited(store: Driven) -> None:
    add(store, most=1)
    with pytest.raises(NotFound):
        store.read(transcripts.read_part, "bob", "talk_1", 0)
    with pytest.raises(LimitReached):
        add(store, "talk_2", most=1)
    with pytest.raises(NotFound):
        store.read(transcripts.read_part, "ann", "talk_2", 0)


def test_parts_are_bounded_and_nothing_is_lost_between_them(store: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "CHARS", 10)
    texts = ["aaaa", "bbbb", "c" * 50, "dd", "ee", "f" * 9, "gg"]
    said = tuple(Message(seq, Sender.USER, text, Status.COMPLETE, LATER) for seq, text in enumerate(texts, start=1))
    add(store, transcript=replace(TRANSCRIPT, messages=said))
    parts, after, is_last = [], 0, False
    while not is_last:
        _, found, is_last = store.read(transcripts.read_part, "ann", "talk_1", after)
        parts.append([m.seq for m in found])
        after = found[-1].seq
    assert parts == [[1, 2], [3], [4, 5], [6], [7]]


def test_withdrawn_messages_are_left_out_and_open_ones_are_as_they_were_saved(
    store: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "CHARS", 1)
    store.write(talks.create, "talk_1", "ann", "echo", "rollback", "", "{}", 10)
    for number in range(2):
        store.write(messages.post, "ann", "talk_1", "go", None, None, "", f"env_{number}", 0.0, 9)
        epoch = store.read(talks.load, "ann", "talk_1", 9).epoch
        store.write(answers.open_answer, "talk_1", f"run_{number}", epoch, "first ")
        store.write(answers.checkpoint, "talk_1", f"run_{number}", epoch, 1, "second")
    _, found, is_last = store.read(transcripts.read_part, "ann", "talk_1", 1)
    assert ([m.seq for m in found], is_last) == ([3], False)  # 2 is withdrawn
    _, found, is_last = store.read(transcripts.read_part, "ann", "talk_1", 3)
    assert [(m.content, m.status) for m in found] == [("first second", Status.STREAMING)]
    assert is_last
