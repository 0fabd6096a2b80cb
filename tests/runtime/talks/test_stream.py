"""A stream can be left after any piece and continued: nothing is missing, nothing comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost.core.talks.messages import Change, Cursor, Message, Page, Sender, Status, TalkLog, at
from roost.runtime.talks.stream import KEPT, TalkStream
from tests.brains_for_tests import until
from tests.conftest import Open, everything, settled

TALK = TalkLog("talk_abcd")


async def slow(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(15):
        yield f"w{number} "
        await asyncio.sleep(0.002)


def message(seq: int, content: str, status: Status = Status.COMPLETE) -> Message:
    return Message(seq, Sender.AGENT, content, status, at(0))


def page(revision: int, *messages: Message, seq: int = 0, offset: int = 0) -> Page:
    return Page(messages, Cursor(revision, seq, offset).encode(TALK), running=False)


def test_a_reader_that_leaves_after_each_piece_reads_everything_once(service: Open) -> None:
    own = service({"slow": slow})
    talk = own.create_talk_session("ann", profile="slow", busy="queue")
    for text in ("one", "two", "three"):
        own.add_message("ann", talk, text)
    texts: dict[int, str] = {}
    cursor: str | None = None
    while (change := next(iter(own.stream_messages("ann", talk, after=cursor)), None)) is not None:
        assert not change.reset
        texts[change.message.seq] = texts.get(change.message.seq, "") + change.text
        cursor = change.cursor
    assert texts == {m.seq: m.content for m in everything(own, "ann", talk)}


@pytest.mark.parametrize("restarted", [False, True])
def test_from_every_cursor_of_a_finished_talk_exactly_the_rest_follows(service: Open, restarted: bool) -> None:
    own = service({"slow": slow})
    talk = own.create_talk_session("ann", profile="slow")
    for text in ("one", "two", "three"):
        own.add_message("ann", talk, text)
    changes = list(own.stream_messages("ann", talk))
    if restarted:
        own.close()
        own = service({"slow": slow})
    expected = {m.seq: m.content for m in settled(own, "ann", talk)}
    for number, left in enumerate(changes, start=1):
        texts: dict[int, str] = {}
        for change in [*changes[:number], *own.stream_messages("ann", talk, after=left.cursor)]:
            before = "" if change.reset else texts.get(change.message.seq, "")
            texts[change.message.seq] = before + change.text
        assert texts == expected


async def silent(turn: roost.Turn) -> AsyncIterator[str]:
    """Ends without a word when it is stopped."""
    await asyncio.Event().wait()
    yield ""


def test_pages_follow_each_change_also_the_end_of_a_run_that_said_nothing(service: Open) -> None:
    own = service({"silent": silent})

    async def main() -> None:
        talk = own.create_talk_session("ann", profile="silent")
        pages = own.roost.talks.follow_pages("ann", talk)
        assert (await anext(pages)).messages == ()
        await own.asynchronous.add_message("ann", talk, "hello")
        asked = await anext(pages)
        assert ([m.content for m in asked.messages], asked.running) == (["hello"], True)
        await own.asynchronous.stop("ann", talk)
        stopped = await anext(pages)
        assert (stopped.messages, stopped.running) == ((), False)
        await own.asynchronous.delete("ann", talk)
        with pytest.raises(roost.NotFound):
            await anext(pages)

    asyncio.run(main())


def test_pages_continue_after_a_cursor_without_gap_or_repetition(service: Open) -> None:
    own = service({"slow": slow})

    async def main() -> None:
        talk = own.create_talk_session("ann", profile="slow")
        await own.asynchronous.add_message("ann", talk, "hello")
        cursor: str | None = None
        seen: list[Message] = []
        while not seen or seen[-1].status is not Status.COMPLETE or seen[-1].sender == Sender.USER:
            page = await anext(own.roost.talks.follow_pages("ann", talk, after=cursor))
            assert all(message not in seen for message in page.messages)
            seen += page.messages
            cursor = page.cursor
        assert seen[-1].content == "".join(f"w{number} " for number in range(15))
        assert [message.content for message in seen if message.sender == Sender.USER] == ["hello"]

    asyncio.run(main())


def test_a_reader_in_batches_that_is_cancelled_while_it_waits_misses_nothing(service: Open) -> None:
    gates = [asyncio.Event() for _ in range(3)]

    async def gated(turn: roost.Turn) -> AsyncIterator[str]:
        for number in range(3):
            await until(gates[number].is_set)
            yield f"w{number} "

    own = service({"gated": gated})

    async def main() -> None:
        talk = own.create_talk_session("ann", profile="gated")
        follower = own.roost.talks.follower("ann", talk, follow=True)
        changes: list[Change] = []
        await own.asynchronous.add_message("ann", talk, "hello")
        while not changes or changes[-1].message.status is not Status.COMPLETE or changes[-1].message.seq == 1:
            reading = asyncio.create_task(follower.read())
            await asyncio.wait([reading], timeout=0.01)
            if not reading.done():
                reading.cancel()
                await asyncio.wait([reading])
                next((gate for gate in gates if not gate.is_set()), gates[0]).set()
            if not reading.cancelled():
                changes += await reading
        follower.close()
        assert [change.text for change in changes if change.message.seq == 1] == ["hello"]
        assert "".join(change.text for change in changes if change.message.seq == 2) == "w0 w1 w2 "
        assert not any(change.reset for change in changes)

    asyncio.run(main())


def test_a_message_that_is_as_it_was_comes_only_once() -> None:
    pieces = TalkStream(TALK, None)
    assert len(list(pieces.of(page(1, message(1, "a"))))) == 1
    assert list(pieces.of(page(2, message(1, "a")))) == []


def test_a_text_that_shrank_after_a_crash_starts_anew() -> None:
    after = Cursor(5, 3, 10).encode(TALK)
    [change] = TalkStream(TALK, after).of(page(6, message(3, "short", Status.INTERRUPTED)))
    assert (change.text, change.reset) == ("short", True)


def test_a_text_continues_at_the_cursor() -> None:
    after = Cursor(5, 3, 4).encode(TALK)
    [change] = TalkStream(TALK, after).of(page(6, message(3, "abcdefg", Status.STREAMING), seq=3, offset=7))
    assert (change.text, change.reset, change.cursor) == ("efg", False, Cursor(6, 3, 7).encode(TALK))


def test_a_withdrawn_message_is_emptied() -> None:
    pieces = TalkStream(TALK, None)
    list(pieces.of(page(1, message(1, "abc", Status.STREAMING), seq=1, offset=3)))
    [change] = pieces.of(page(2, message(1, "", Status.WITHDRAWN)))
    assert (change.text, change.reset) == ("", True)


def test_what_is_remembered_is_bounded() -> None:
    pieces = TalkStream(TALK, None)
    for seq in range(1, 10 * KEPT):
        list(pieces.of(page(seq, message(seq, "x"))))
    assert len(pieces._seen) <= 2 * KEPT
