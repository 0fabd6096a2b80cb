"""A11: a turn that is repeated sends each message once, whatever else it tried to send."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

import roost
from roost import AsyncAgentService, Brain, Turn
from roost.runtime.outgoing.outbox import POST_AFTER, Outbox
from roost.runtime.turns.acting import ActingTurn
from roost.testing import Simulation
from tests.runtime.conftest import World, becomes, ended, said, until


async def posted(turn: Turn) -> None:
    """Wait until everything that the turn has sent is posted, although the turn still runs."""
    execution = cast(ActingTurn, turn._runtime)
    await until(lambda: execution.actions._outbox.is_empty)


def test_what_could_not_be_sent_takes_no_place_on_record(world: World) -> None:
    """A send that fails is one that was asked for: what comes after it is found again all the same."""
    told: list[str] = []

    async def sender(turn: Turn) -> AsyncIterator[str]:
        for to in ("user:bob", "user:ann", "agent:nobody"):
            try:
                await turn.mail(to, f"to {to}", "…")
            except roost.NotFound:
                told.append(to)
        await posted(turn)
        await turn.mail("user:ann", "last", "…")
        if turn.attempt == 1:
            raise roost.BrainFailed("not yet", kind="tool")
        yield "sent"

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="sender", retry_delay=0.01)
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert over.status == "done", over.error
        return sorted(mail.subject for mail in await service.mail.inbox("ann"))

    assert world({"sender": sender}, story) == ["last", "to user:ann"]
    assert told == ["user:bob", "agent:nobody"] * 2


def test_what_is_sent_side_by_side_is_found_again_each_by_itself(world: World) -> None:
    """To find an agent takes longer than to find its owner: what was asked for first is sent last."""
    ids: list[list[str]] = []

    async def sender(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "mail":
            return
        ids.append(await asyncio.gather(*(turn.mail(to, to, "…") for to in ("agent:far", "user:ann"))))
        await posted(turn)
        if turn.attempt == 1:
            raise roost.BrainFailed("not yet", kind="tool")
        yield "sent"

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create_many("ann", ["d", "far"], profile="sender", retry_delay=0.01)
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        for to, mail_id in zip(("agent:far", "user:ann"), ids[0], strict=True):
            assert [mail.mail_id for mail in await service.mail.inbox("ann", to)] == [mail_id]

    world({"sender": sender}, story)
    assert ids[0] == ids[1]


def failing_once(sends: Callable[[Turn], Awaitable[None]]) -> Brain:
    """Return a brain that sends, waits until that has left, and fails at its first try."""

    async def brain(turn: Turn) -> AsyncIterator[str]:
        if turn.kind != "task":
            return
        await sends(turn)
        await posted(turn)
        if turn.attempt == 1:
            raise roost.BrainFailed("not yet", kind="tool")
        yield "sent"

    return brain


async def sent_by(service: AsyncAgentService) -> None:
    await service.agents.create("ann", "d", profile="sender", retry_delay=0.01)
    over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
    assert (over.status, over.attempts) == ("done", 2), over.error


@pytest.mark.parametrize(
    ("to", "subject", "body", "priority"),
    [
        ("agent:far", "news", "…", "normal"),
        ("user:ann", "more news", "…", "normal"),
        ("user:ann", "news", "something else", "normal"),
        ("user:ann", "news", "…", "high"),
    ],
)
def test_a_retried_turn_that_sends_something_else_sends_it(
    simulated: World, to: str, subject: str, body: str, priority: str
) -> None:
    async def sends(turn: Turn) -> None:
        if turn.attempt == 1:
            await turn.mail("user:ann", "news", "…")
        else:
            await turn.mail(to, subject, body, priority=priority)

    async def story(service: AsyncAgentService) -> list[tuple[str, str, str, str]]:
        await service.agents.create("ann", "far", profile="quiet", wake_on_priority="urgent")
        await sent_by(service)
        inboxes = [*await service.mail.inbox("ann"), *await service.mail.inbox("ann", "agent:far")]
        return [(mail.recipient.replace("ann/", ""), mail.subject, mail.body, str(mail.priority)) for mail in inboxes]

    found = simulated({"sender": failing_once(sends), "quiet": quiet}, story)
    assert sorted(found) == sorted([("user:ann", "news", "…", "normal"), (to, subject, body, priority)])


async def quiet(turn: Turn) -> AsyncIterator[str]:
    yield ""


def test_of_equal_sends_as_many_leave_as_the_try_with_the_most_has_made(simulated: World) -> None:
    async def sends(turn: Turn) -> None:
        for _ in range(1 + turn.attempt):
            await turn.mail("user:ann", "news", "…")

    async def story(service: AsyncAgentService) -> int:
        await sent_by(service)
        return len(await service.mail.inbox("ann"))

    assert simulated({"sender": failing_once(sends)}, story) == 3


def test_what_is_sent_while_earlier_sends_are_posted_leaves_before_the_turn_ends(
    simulated: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, commits = Outbox._has_posted, asyncio.Event()

    async def slowly(self: Outbox, *post: Any) -> bool:
        await commits.wait()
        return await write(self, *post)

    async def sender(turn: Turn) -> AsyncIterator[str]:
        if turn.kind != "task":
            return
        await turn.mail("user:ann", "first", "…")
        await asyncio.sleep(2 * POST_AFTER)
        await turn.mail("user:ann", "second", "…")
        await asyncio.sleep(2 * POST_AFTER)
        commits.set()
        await asyncio.Event().wait()
        yield ""

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="sender")
        await service.tasks.send("ann", "d", "go")
        await becomes(lambda: service.mail.unread_count("ann"), lambda count: count == 2)
        return [mail.subject for mail in await service.mail.inbox("ann")]

    monkeypatch.setattr(Outbox, "_has_posted", slowly)
    assert sorted(simulated({"sender": sender}, story)) == ["first", "second"]


def test_every_kind_of_send_is_found_again_by_its_content_in_any_order(world: World) -> None:
    """The first try sends in one order and the second in the other, with one send more."""
    heard: list[str] = []
    given: list[dict[str, object]] = []

    async def ear(turn: Turn) -> AsyncIterator[str]:
        heard.append(f"{turn.kind} {turn.text} {turn.data or ''}".strip())
        yield ""

    async def sends(turn: Turn) -> None:
        data = {"n": 1, "of": "three"}
        acts: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("mail", lambda: turn.mail("user:ann", "news", "…")),
            ("send", lambda: turn.send("agent:ear", "hello")),
            ("broadcast", lambda: turn.broadcast("all", ids="ear")),
            ("publish", lambda: turn.publish("ready", data)),
            ("call", lambda: turn.call_meeting("lunch", optional=["user:ann"])),
        ]
        if turn.attempt == 2:
            data = {"of": "three", "n": 1}
            acts = [("new", lambda: turn.send("agent:ear", "news")), *reversed(acts)]
        given.append({name: await act() for name, act in acts})
        data["n"] = 99

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "ear", profile="ear", subscriptions=["ready"])
        await sent_by(service)
        await until(lambda: len(heard) >= 4)
        assert [mail.subject for mail in await service.mail.inbox("ann")] == ["news"]
        assert [one.topic for one in await service.meetings.list("ann")] == ["lunch"]

    world({"sender": failing_once(sends), "ear": ear}, story)
    assert sorted(heard) == ["event ready {'n': 1, 'of': 'three'}", "task all", "task hello", "task news"]
    assert {**given[0], "new": None} == given[1]


def test_a_send_whose_text_has_a_secret_is_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated turn is given the result of its step without the secret, and sends that: it is the same send."""
    monkeypatch.setenv("PLANTED_API_KEY", "planted-4711-0815-value")

    async def sends(turn: Turn) -> None:
        found = await turn.step("look", lambda: "the key is planted-4711-0815-value")
        await turn.mail("user:ann", "news", found)

    async def story(service: AsyncAgentService) -> int:
        await sent_by(service)
        return len(await service.mail.inbox("ann"))

    assert world({"sender": failing_once(sends)}, story) == 1


def test_sends_recorded_by_their_numbers_are_not_sent_again(tmp_path: Path) -> None:
    """Older stores have them so, without a content."""
    simulation, ids = Simulation(tmp_path, 1), list[str]()

    async def sender(turn: Turn) -> AsyncIterator[str]:
        if turn.attempt == 1:
            with closing(sqlite3.connect(simulation.path)) as file, file:
                file.execute(
                    "INSERT INTO steps (envelope_id, step, kind, name, result, done, created)"
                    " SELECT envelope_id, 1, 'sent', '', '{\"1\": \"mail_old\"}', 1, 1.0 FROM inbox"
                )
            raise roost.BrainFailed("not yet", kind="tool")
        ids.append(await turn.mail("user:ann", "news", "…"))
        await turn.mail("user:ann", "more", "…")
        yield "sent"

    async def story(service: AsyncAgentService) -> list[str]:
        await sent_by(service)
        return [mail.subject for mail in await service.mail.inbox("ann")]

    assert simulation.play(story, {"sender": sender}) == ["more"]
    assert ids == ["mail_old"]


def test_what_a_failed_turn_had_sent_stays_sent(simulated: World) -> None:
    async def sender(turn: Turn) -> AsyncIterator[str]:
        await turn.mail("user:ann", "left", "…")
        await posted(turn)
        await turn.mail("user:ann", "too late", "…")
        yield "…"
        raise roost.BrainFailed("never", kind="tool")

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="sender", max_attempts=1)
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert over.status == "failed"
        return [mail.subject for mail in await service.mail.inbox("ann")]

    assert simulated({"sender": sender}, story) == ["left"]


# --- talks and questions -----------------------------------------------------------------------------------


async def slow_sender(turn: Turn) -> AsyncIterator[str]:
    await turn.mail("user:ann", turn.text, "…")
    await turn.send("agent:ear", turn.text)
    await turn.publish("ready", turn.text)
    yield "sent"
    await asyncio.sleep(30 if turn.text == "stopped" else 0.3)  # longer than the sends of an agent's task would wait


def test_what_a_slow_turn_of_a_talk_sends_leaves_when_it_settles_and_only_then(simulated: World) -> None:
    heard: list[str] = []

    async def ear(turn: Turn) -> AsyncIterator[str]:
        heard.append(f"{turn.kind} {turn.data or turn.text}")
        yield ""

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "ear", profile="ear", subscriptions=["ready"])
        talk = await service.create_talk_session("ann", profile="slow_sender")
        await service.add_message("ann", talk, "stopped")
        await said(service, talk, "sent")
        await asyncio.sleep(1)
        await service.stop("ann", talk, wait=5)
        await service.add_message("ann", talk, "whole")
        await ended(service, talk)
        await until(lambda: len(heard) >= 2)
        return [mail.subject for mail in await service.mail.inbox("ann")]

    assert simulated({"slow_sender": slow_sender, "ear": ear}, story) == ["whole"]
    assert sorted(heard) == ["event whole", "task whole"]


def test_what_a_talk_has_sent_ahead_of_a_question_stays_sent_when_it_is_stopped(world: World) -> None:
    async def asker(turn: Turn) -> AsyncIterator[str]:
        await turn.mail("user:ann", "ahead", "…")
        yield "asking"
        await turn.ask("agent:silent", "well?")
        await turn.mail("user:ann", "never", "…")

    async def silent(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        await asyncio.sleep(30)
        yield ""

    asked: list[str] = []

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "silent", profile="silent")
        talk = await service.create_talk_session("ann", profile="asker")
        await service.add_message("ann", talk, "go")
        await until(lambda: asked)
        await service.stop("ann", talk, wait=5)
        return [mail.subject for mail in await service.mail.inbox("ann")]

    assert world({"asker": asker, "silent": silent}, story) == ["ahead"]


def test_a_question_does_not_overtake_what_was_sent_before_it(simulated: World) -> None:
    heard: list[str] = []

    async def sender(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:ear", "first")
        await turn.publish("ready")
        yield await turn.ask("agent:ear", "second")

    async def ear(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield " ".join(heard)

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d", profile="sender")
        await service.agents.create("ann", "ear", profile="ear", subscriptions=["ready"], max_concurrent_tasks=1)
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        return over.result

    assert simulated({"sender": sender, "ear": ear}, story) == "first ready second"
