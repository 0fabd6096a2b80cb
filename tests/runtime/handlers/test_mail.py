"""A9: mail of people: read, answered, archived, counted, and private to its owner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Mail, MailPage, Turn
from tests.runtime.conftest import World, becomes
from tests.runtime.handlers.mailing import BRAINS, D, rows


def test_mail_is_unread_until_it_is_read_and_counted_so(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[int], Mail, Mail]:
        await service.agents.create("ann", "d", profile="silent")
        mail_id = await service.mail.send("ann", "user:ann", "news", "words", sender="agent:d")
        counts = [await service.mail.unread_count("ann")]
        (found,) = await service.mail.inbox("ann")
        read = await service.mail.read("ann", mail_id)
        counts.append(await service.mail.unread_count("ann"))
        return counts, found, read

    counts, found, read = world(BRAINS, story)
    assert counts == [1, 0]
    assert (found.status, found.sender, found.recipient, found.read_at) == ("unread", D, "user:ann", None)
    assert (found.subject, found.body, found.thread_id) == ("news", "words", found.mail_id)
    assert read.read_at is not None
    assert read == replace(found, status=read.status, read_at=read.read_at)
    assert read.status == "read"
    assert read.processed is None


def test_a_reply_is_in_the_same_thread_at_both_ends_and_the_original_is_replied(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Mail], list[Mail], list[Mail], list[int]]:
        await service.agents.create("ann", "d", profile="silent", start=False)
        first = await service.mail.send("ann", "user:ann", "news", "words", sender="agent:d", priority="high")
        second = await service.mail.reply("ann", first, "thanks")
        third = await service.mail.reply("ann", second, "welcome", subject="Bye", priority="low")
        thread = await service.mail.thread("ann", first)
        counts = [await service.mail.unread_count("ann"), await service.mail.unread_count("ann", "agent:d")]
        assert [mail.mail_id for mail in thread] == [first, second, third]
        return thread, await service.mail.inbox("ann"), await service.mail.inbox("ann", "agent:d"), counts

    thread, mine, its, counts = world(BRAINS, story)
    assert [(m.sender, m.recipient, m.subject, m.priority, m.status) for m in thread] == [
        (D, "user:ann", "news", "high", "replied"),
        ("user:ann", D, "Re: news", "high", "replied"),
        (D, "user:ann", "Bye", "low", "unread"),
    ]
    assert {m.thread_id for m in thread} == {thread[0].mail_id}
    assert [m.reply_to for m in thread] == [None, thread[0].mail_id, thread[1].mail_id]
    assert thread[0].read_at is not None
    assert (mine, its, counts) == ([thread[0], thread[2]], [thread[1]], [1, 0])


def test_the_sender_who_replies_to_their_own_mail_writes_to_the_same_recipient(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        await service.agents.create("bob", "s", profile="silent", shared=True, start=False)
        first = await service.mail.send("ann", "agent:bob/s", "question", "when?")
        await service.mail.reply("ann", first, "and where?")
        return [(m.sender, m.recipient, m.status) for m in await service.mail.thread("bob", first)]

    assert world(BRAINS, story) == [("user:ann", "agent:bob/s", "unread")] * 2


def test_the_owner_of_both_ends_says_which_one_writes(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str, str, str | None]]:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="silent", start=False)
        first = await service.mail.send("ann", "agent:d", "plants", "wet?")
        more = await service.mail.reply("ann", first, "and the herbs?", sender="user:ann")
        await service.mail.reply("ann", first, "wet", sender="agent:d")
        await service.mail.forward("ann", first, "agent:e", sender="user:ann")
        with pytest.raises(roost.Invalid, match="neither the sender nor the recipient"):
            await service.mail.reply("ann", first, "me too", sender="agent:e")
        with pytest.raises(roost.NotFound):
            await service.mail.forward("ann", first, "agent:e", sender="user:bob")
        assert [mail.mail_id for mail in await service.mail.sent("ann")][1:] == [more, first]
        found = await service.mail.thread("ann", first) + await service.mail.inbox("ann", "agent:e")
        return [(mail.sender, mail.recipient, mail.status) for mail in found]

    assert world(BRAINS, story) == [
        ("user:ann", D, "replied"),
        ("user:ann", D, "unread"),
        (D, "user:ann", "unread"),
        ("user:ann", "agent:ann/e", "unread"),
    ]


def test_a_forwarded_mail_begins_a_thread_and_shows_note_origin_and_text(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Mail, list[Mail], list[Mail]]:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="silent", start=False)
        first = await service.mail.send("ann", "agent:d", "news", "words\nand more", priority="high")
        second = await service.mail.forward("ann", first, "agent:e", "Please check.", key="once")
        assert await service.mail.forward("ann", first, "agent:e", "Please check.", key="once") == second
        await service.mail.forward("ann", second, "user:ann", priority="low")
        for bad in ({"to": "agent:nobody"}, {"to": "agent:e", "note": 5}, {"to": "agent:e", "priority": "soon"}):
            with pytest.raises((roost.NotFound, roost.Invalid)):
                await service.mail.forward("ann", first, **bad)
        with pytest.raises(roost.NotFound):
            await service.mail.forward("bob", first, "user:bob")
        original = await service.mail.get("ann", first)
        return original, await service.mail.inbox("ann", "agent:e"), await service.mail.inbox("ann")

    original, (forwarded,), (again,) = world(BRAINS, story)
    assert (forwarded.sender, forwarded.subject, forwarded.priority) == (D, "Fwd: news", "high")
    assert (forwarded.thread_id, forwarded.reply_to) == (forwarded.mail_id, None)
    assert forwarded.body.startswith("Please check.\n\n")
    assert forwarded.body.endswith("\n\nwords\nand more")
    for line in (
        "From: user:ann",
        f"To: {D}",
        "Subject: news",
        f"Date: {original.created.isoformat(timespec='seconds')}",
    ):
        assert line in forwarded.body.splitlines()
    assert original.status == "unread", "to forward it is not to read it"
    assert (again.sender, again.subject, again.priority) == ("agent:ann/e", "Fwd: news", "low")
    assert again.body.count("Forwarded mail") == 2


def test_the_subject_says_re_once_and_stays_short(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        mail_id = await service.mail.send("ann", "user:ann", "x" * 200, "words")
        for _ in range(3):
            mail_id = await service.mail.reply("ann", mail_id, "more")
        return [mail.subject for mail in await service.mail.inbox("ann")]

    assert world(BRAINS, story) == ["x" * 200, *["Re: " + "x" * 196] * 3]


def test_archived_mail_is_hidden_and_not_counted_and_still_in_its_thread(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        one, two = [await service.mail.send("ann", "user:ann", subject, "words") for subject in ("one", "two")]
        assert (await service.mail.archive("ann", one)).status == "archived"
        assert [mail.mail_id for mail in await service.mail.inbox("ann")] == [two]
        assert [mail.mail_id for mail in await service.mail.inbox("ann", include_archived=True)] == [one, two]
        assert [mail.mail_id for mail in await service.mail.inbox("ann", status="archived")] == [one]
        assert await service.mail.unread_count("ann") == 1
        assert [mail.mail_id for mail in await service.mail.thread("ann", one)] == [one]

    world(BRAINS, story)


def test_urgent_mail_comes_first_page_by_page(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str]]:
        for number in range(2):
            for priority in ("low", "normal", "high", "urgent"):
                await service.mail.send("ann", "user:ann", f"{priority} {number}", "words", priority=priority)
        paged: list[Mail] = []
        while page := await service.mail.inbox("ann", limit=3, before=paged[-1].mail_id if paged else None):
            paged += page
        return [m.subject for m in await service.mail.inbox("ann")], [m.subject for m in paged]

    whole, paged = world(BRAINS, story)
    assert whole == [f"{priority} {n}" for priority in ("urgent", "high", "normal", "low") for n in range(2)]
    assert paged == whole


def test_unknown_recipients_are_an_error_and_nothing_is_stored(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="silent")
        await service.agents.create("bob", "private", profile="silent")
        words = set()
        for to in ("agent:nobody", "agent:bob/nobody", "agent:bob/private", "agent:zoe/private"):
            with pytest.raises(roost.NotFound) as refusal:
                await service.mail.send("ann", to, "news", "words", priority="urgent")
            words.add(str(refusal.value).replace("private", "nobody"))
        assert len(words) == 1
        for to in ("user:bob", "user:nobody"):
            with pytest.raises(roost.NotFound, match=f"there is no '{to}' you may write to"):
                await service.mail.send("ann", to, "news", "words")
        for to in ("d", "", "agent:", "agent:d e", "schedule:d"):
            with pytest.raises(roost.Invalid):
                await service.mail.send("ann", to, "news", "words")
        for table in ("mail", "inbox", "events", "dead_letters"):
            assert await rows(service, f"SELECT * FROM {table}") == []

    world(BRAINS, story)


def test_a_bad_request_says_what_is_wrong_and_changes_nothing(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        to, mail = "user:ann", service.mail
        there = await mail.send("ann", to, "news", "words")
        for attempt, match in (
            (mail.send("ann", to, "", "words"), "the subject must not be empty"),
            (mail.send("ann", to, "two\nlines", "words"), "the subject must be printable"),
            (mail.send("ann", to, "news", ""), "the body must not be empty"),
            (mail.send("ann", to, "news", "words", priority="huge"), "the priority 'huge' is not known"),
            (mail.send("ann", to, "news", "words", expires_in=-1), "expires_in must be"),
            (mail.send("ann", to, "news", "words", expires_in=0), "expires_in must be greater than 0 seconds"),
            (mail.send("ann", to, "news", "words", key=""), "the key must not be empty"),
            (mail.reply("ann", there, ""), "the body must not be empty"),
            (mail.inbox("ann", status="lost"), "the status 'lost' is not known"),
            (mail.inbox("ann", limit=0), "the limit must be"),
            (mail.inbox("ann", "d"), "the address 'd' is not valid"),
        ):
            with pytest.raises(roost.Invalid, match=match):
                await attempt
        assert [one.status for one in await mail.inbox("ann")] == ["unread"]

    world(BRAINS, story)


def test_someone_elses_mail_and_mailbox_are_as_if_they_had_never_existed(world: World) -> None:
    async def refusals(*attempts: Awaitable[object]) -> list[str]:
        words = []
        for attempt in attempts:
            with pytest.raises(roost.NotFound) as refusal:
                await attempt
            words.append(str(refusal.value))
        return words

    async def story(service: AsyncAgentService) -> None:
        mail = service.mail
        await service.agents.create("ann", "d", profile="silent", start=False, shared=True)
        there = await mail.send("ann", "agent:d", "news", "words")
        asked = [
            await refusals(
                mail.get("bob", one),
                mail.read("bob", one),
                mail.reply("bob", one, "hm"),
                mail.archive("bob", one),
                mail.delete("bob", one),
                mail.thread("bob", one),
                mail.inbox("bob", before=one),
            )
            for one in (there, "mail_of_nobody")
        ]
        assert [words.replace(there, "mail_of_nobody") for words in asked[0]] == asked[1]
        boxes = [
            await refusals(
                mail.inbox("bob", box),
                mail.unread_count("bob", box),
                mail.send("bob", "user:bob", "news", "words", sender=box),
            )
            for box in ("agent:ann/d", "agent:ann/x", "user:ann", "user:nobody")
        ]
        for words, box in zip(boxes, ("agent:ann/d", "agent:ann/x", "user:ann", "user:nobody"), strict=True):
            assert words == [f"there is no mailbox {box!r}: it was deleted, or it never existed"] * 3
        assert (await mail.get("ann", there)).status == "unread"
        assert len(await mail.thread("ann", there)) == 1

    world(BRAINS, story)


def test_the_same_key_is_the_same_mail(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="silent", start=False)
        for to in ("user:ann", "agent:d"):
            first = await service.mail.send("ann", to, "news", "words", key=f"to {to}")
            assert await service.mail.send("ann", to, "news", "words", key=f"to {to}") == first
            with pytest.raises(roost.Conflict, match="another mail"):
                await service.mail.send("ann", to, "news", "other words", key=f"to {to}")
            answer = await service.mail.reply("ann", first, "thanks", key=f"re {to}")
            assert await service.mail.reply("ann", first, "thanks", key=f"re {to}") == answer
            assert [m.mail_id for m in await service.mail.thread("ann", first)] == [first, answer]
        assert (await service.agents.get("ann", "d")).queue_depth == 1

    world(BRAINS, story)


def test_expired_mail_to_a_person_is_hidden_and_not_counted(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        gone = await service.mail.send("ann", "user:ann", "hello", "words", expires_in=0.05)
        there = await service.mail.send("ann", "user:ann", "hello", "words", expires_in=3_600)
        [left] = await becomes(lambda: service.mail.inbox("ann"), lambda found: len(found) == 1)
        assert left.mail_id == there
        assert await service.mail.unread_count("ann") == 1
        assert (await service.mail.get("ann", gone)).expires is not None

    world(BRAINS, story)


def test_plain_threads_have_the_same_methods(tmp_path: Path) -> None:
    with roost.open(f"sqlite:///{tmp_path}/plain.db", brains=BRAINS) as service:
        mail_id = service.mail.send("ann", "user:ann", "news", "words")
        answer = service.mail.reply("ann", mail_id, "thanks")
        assert [mail.mail_id for mail in service.mail.inbox("ann")] == [mail_id, answer]
        assert service.mail.unread_count("ann") == 1
        assert service.mail.read("ann", answer).status == "read"
        assert service.mail.archive("ann", answer).status == "archived"
        assert service.mail.get("ann", mail_id).status == "replied"
        assert len(service.mail.thread("ann", mail_id)) == 2


async def writes(turn: Turn) -> AsyncIterator[str]:
    for number in range(5):
        await turn.mail("user:ann", f"{turn.text} {number}", "words")
    yield ""


def test_mail_is_followed_in_order_each_once_and_continued_after_a_cursor(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Mail], list[Mail]]:
        for agent in "abcd":
            await service.agents.create("ann", agent, profile="writes")
        stream = service.mail.follow("ann", after="0")
        await asyncio.gather(*(service.tasks.send("ann", agent, f"from {agent}") for agent in "abcd"))
        first = [await anext(stream) for _ in range(7)]
        await service.mail.send("ann", "user:ann", "from ann", "words")
        rest = service.mail.follow("ann", after=first[-1].cursor)
        return first, [await anext(rest) for _ in range(14)]

    first, rest = world({"writes": writes}, story)
    assert [mail.cursor for mail in first + rest] == [str(number) for number in range(1, 22)]
    subjects = [mail.subject for mail in first + rest]
    assert sorted(subjects) == sorted(["from ann", *(f"from {agent} {n}" for agent in "abcd" for n in range(5))])
    for agent in "abcd":
        assert [s[-1] for s in subjects if s.startswith(f"from {agent} ")] == list("01234")


def test_without_a_cursor_mail_is_followed_from_now_on_and_a_wait_ends_in_time(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str], Mail]:
        await service.mail.send("ann", "user:ann", "before", "words")
        newest = await service.mail.arrivals("ann")
        none = await service.mail.wait("ann", newest.cursor, 0.2)
        following = asyncio.ensure_future(anext(service.mail.follow("ann", after=none.cursor)))
        await service.mail.send("bob", "user:bob", "to another", "words")
        await service.mail.send("ann", "user:ann", "now", "words")
        return [m.subject for m in newest.mail], [m.subject for m in none.mail], await following

    newest, none, found = world(BRAINS, story)
    assert (newest, none, found.subject) == (["before"], [], "now")


async def blocks(turn: Turn) -> AsyncIterator[str]:
    await turn.mail("user:ann", "early", "words")
    await asyncio.sleep(0.1)  # posted
    threading.Event().wait(1.5)
    yield ""


def test_mail_of_a_turn_that_blocks_its_loop_is_followed_at_once(tmp_path: Path) -> None:
    with roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"blocks": blocks}) as service:
        service.agents.create("ann", "d", profile="blocks")
        stream = service.mail.follow("ann")
        task = service.tasks.send("ann", "d", "go")
        assert next(stream).subject == "early"
        assert service.tasks.get("ann", task).status == "running"


def test_mail_that_arrives_while_it_is_read_is_read_once(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[str]]:
        async def follow() -> list[str]:
            stream = service.mail.follow("ann", after="0")
            return [(await anext(stream)).subject for _ in range(60)]

        followers = [asyncio.ensure_future(follow()) for _ in range(3)]
        await asyncio.gather(*(service.mail.send("ann", "user:ann", f"{number}", "words") for number in range(60)))
        return list(await asyncio.gather(*followers))

    first, *others = world(BRAINS, story)
    assert sorted(first, key=int) == [str(number) for number in range(60)]
    assert others == [first, first]


def test_the_end_of_roost_ends_waits_and_followers_without_an_error(tmp_path: Path) -> None:
    async def story() -> tuple[MailPage, list[Mail]]:
        async with await roost.aopen(f"sqlite:///{tmp_path}/roost.db", brains=BRAINS) as service:
            waiting = asyncio.ensure_future(service.mail.wait("ann", "0"))
            following = asyncio.ensure_future(_all(service.mail.follow("ann", after="0")))
            await becomes(lambda: _expecting(service), lambda count: count == 2)
        return await waiting, await following

    async def _all(stream: AsyncIterator[Mail]) -> list[Mail]:
        return [mail async for mail in stream]

    async def _expecting(service: AsyncAgentService) -> int:
        return len(service.roost.context.facts._expecting_mail)

    page, followed = asyncio.run(story())
    assert (page, followed) == (MailPage((), "0"), [])


def test_expired_mail_is_passed_and_a_sender_sees_no_cursor(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[MailPage, Mail]:
        await service.mail.send("ann", "user:ann", "gone", "words", expires_in=0.01)
        mail_id = await service.mail.send("ann", "user:ann", "news", "words")
        await service.mail.send("ann", "user:ann", "gone too", "words", expires_in=0.01)
        page = await becomes(lambda: service.mail.arrivals("ann", after="0"), lambda page: len(page.mail) == 1)
        return page, await service.mail.get("ann", mail_id)

    page, seen = world(BRAINS, story)
    assert ([mail.cursor for mail in page.mail], page.cursor, page.more) == (["2"], "3", False)
    assert seen.cursor == ""


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5.1", "9" * 19, "2", 3, "\u0661"])
def test_a_cursor_that_is_not_one_of_the_mailbox_is_refused(tmp_path: Path, cursor: Any) -> None:
    with roost.open(f"sqlite:///{tmp_path}/roost.db", brains=BRAINS) as service:
        service.mail.send("ann", "user:ann", "news", "words")
        for call in (
            lambda: service.mail.arrivals("ann", after=cursor),
            lambda: service.mail.wait("ann", cursor, 0),
            lambda: next(service.mail.follow("ann", after=cursor)),
        ):
            with pytest.raises((roost.Invalid, roost.StaleCursor), match="cursor"):
                call()


OLD = {"mail_id": "mail_019bd8a3f0000000000000001", "subject": "news", "body": "words", "created": datetime.now(UTC)}


def test_imported_mail_is_in_the_mailbox_once_and_nothing_is_sent(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[bool], list[Mail], list[Any], list[str]]:
        await service.agents.create("ann", "d", profile="silent")
        start = (await service.monitor.facts("ann", limit=1)).cursor
        given: dict[str, Any] = {"sender": "agent:d", "priority": "urgent", "status": "unread", **OLD}
        added = [await service.mail.import_mail("ann", **given) for _ in range(2)]
        added.append(await service.mail.import_mail("bob", **given))  # somebody else who has the same file
        added.append(await service.mail.import_mail("bob", **given))
        mails = [*await service.mail.inbox("ann"), *await service.mail.inbox("bob")]
        facts = (await service.monitor.wait("ann", start, 0)).facts
        return added, mails, [*facts, *(await service.mail.arrivals("ann", after="0")).mail], await _seen(service)

    async def _seen(service: AsyncAgentService) -> list[str]:
        return [one.task_id for one in await service.tasks.list("ann")]

    added, (mine, theirs), sent, work = world(BRAINS, story)
    assert added == [True, False, True, False]
    assert (mine.mail_id, mine.sender, mine.priority, mine.status) == (OLD["mail_id"], D, "urgent", "unread")
    assert (theirs.mail_id != mine.mail_id, theirs.sender) == (True, "agent:bob/d")
    assert (sent, work) == ([], [])


def test_nobody_can_import_mail_into_the_thread_or_under_the_name_of_another_user(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str, str]]:
        await service.agents.create("bob", "s", profile="silent", shared=True, start=False)
        thread = await service.mail.send("ann", "agent:bob/s", "question", "when?")
        forged: dict[str, Any] = {**OLD, "thread_id": thread, "reply_to": thread}
        for sender in ("user:bob", "agent:bob/s", "imported:user:bob"):
            forged["mail_id"] = forged["mail_id"][:-1] + str(len(sender) % 10)
            assert await service.mail.import_mail("ann", sender=sender, **forged)
        (only,) = await service.mail.thread("bob", thread)
        assert only.mail_id == thread
        (found, *_) = await service.mail.inbox("ann")
        for look in (service.mail.get, service.mail.read):
            with pytest.raises(roost.NotFound):
                await look("bob", found.mail_id)
        with pytest.raises(roost.Invalid, match="imported:"):
            await service.mail.reply("ann", found.mail_id, "it goes nowhere")
        return sorted((one.sender, one.recipient) for one in await service.mail.inbox("ann"))

    assert world(BRAINS, story) == [
        ("imported:agent:bob/s", "user:ann"),
        ("imported:user:bob", "user:ann"),
        ("imported:user:bob", "user:ann"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"mail_id": "mail_1"},
        {"mail_id": 3},
        {"thread_id": "x" * 30},
        {"sender": "bob"},
        {"sender": "imported:"},
        {"sender": "imported:imported:user:bob"},
        {"subject": ""},
        {"body": "\0"},
        {"created": "2030-01-01"},
        {"created": datetime(2030, 1, 1)},
        {"expires": datetime(1900, 1, 1, tzinfo=UTC)},
        {"status": "lost"},
        {"priority": "low?"},
        {"reply_to": ""},
    ],
)
def test_mail_that_is_not_valid_is_not_imported(world: World, wrong: dict[str, Any]) -> None:
    async def story(service: AsyncAgentService) -> list[Mail]:
        given: dict[str, Any] = {"sender": "user:bob", **OLD, **wrong}
        with pytest.raises(roost.Invalid):
            await service.mail.import_mail("ann", **given)
        return await service.mail.inbox("ann", include_archived=True)

    assert world(BRAINS, story) == []
