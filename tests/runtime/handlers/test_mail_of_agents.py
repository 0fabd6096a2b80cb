"""A9: agents receive, answer and send mail; urgent mail wakes them, other mail waits for their next check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Mail, Turn
from tests.runtime.conftest import QUICK, World, becomes, until
from tests.runtime.handlers.mailing import BRAINS, FAST, D, all_settled, processed, rows

pytestmark = pytest.mark.order


def test_a_person_writes_to_an_agent_and_gets_its_reply(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Mail, list[Mail]]:
        await service.agents.create("ann", "d", profile="answers")
        mail_id = await service.mail.send("ann", "agent:d", "hello", "how are you?", priority="high")
        await processed(service, mail_id)
        return await service.mail.get("ann", mail_id), await service.mail.inbox("ann")

    sent, (reply,) = world(BRAINS, story)
    assert sent.status == "replied"
    assert sent.read_at is not None
    assert sent.processed is not None
    assert sent.created <= sent.read_at <= sent.processed
    assert (reply.sender, reply.recipient, reply.subject, reply.priority) == (D, "user:ann", "Re: hello", "high")
    assert reply.body == "mail 'hello' 'how are you?' from user:ann"
    assert (reply.thread_id, reply.reply_to, reply.status) == (sent.mail_id, sent.mail_id, "unread")


def test_mail_is_read_while_the_agent_works_on_it_and_processed_when_it_has_done_so(world: World) -> None:
    begun: list[bool] = []
    gate: list[bool] = []

    async def ponders(turn: Turn) -> AsyncIterator[str]:
        begun.append(True)
        await until(lambda: gate)
        yield "an answer"

    async def story(service: AsyncAgentService) -> tuple[Mail, int, Mail]:
        await service.agents.create("ann", "d", profile="ponders")
        mail_id = await service.mail.send("ann", "agent:d", "hello", "words")
        await until(lambda: begun)
        at_work, unread = await service.mail.get("ann", mail_id), await service.mail.unread_count("ann", "agent:d")
        gate.append(True)
        return at_work, unread, await processed(service, mail_id)

    at_work, unread, done = world({"ponders": ponders}, story)
    assert (at_work.status, at_work.processed, unread) == ("read", None, 0)
    assert at_work.read_at is not None
    assert (done.status, done.read_at) == ("replied", at_work.read_at)


def test_an_agent_answers_each_mail_of_a_thread(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="answers")
        thread_id = await service.mail.send("ann", "agent:d", "hello", "one")
        for number in range(3):
            (newest,) = await becomes(lambda: service.mail.inbox("ann", status="unread"))
            if number < 2:
                await service.mail.reply("ann", newest.mail_id, "more")
        await all_settled(service)
        return [f"{m.sender} {m.status}" for m in await service.mail.thread("ann", thread_id)]

    assert world(BRAINS, story) == ["user:ann replied", f"{D} replied"] * 2 + ["user:ann replied", f"{D} unread"]


def test_an_agent_that_says_nothing_sends_no_reply_and_has_dealt_with_it(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Mail, list[Mail]]:
        await service.agents.create("ann", "d", profile="silent")
        mail = await processed(service, await service.mail.send("ann", "agent:d", "hello", "words"))
        return mail, await service.mail.inbox("ann")

    mail, mine = world(BRAINS, story)
    assert (mail.status, mine) == ("read", [])


def test_a_reply_with_what_no_store_can_keep_is_sent_without_it(world: World) -> None:
    async def mangles(turn: Turn) -> AsyncIterator[str]:
        yield "a\0b"
        yield "\ud800c"

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="mangles")
        await service.mail.send("ann", "agent:d", "hello", "words")
        return [mail.body for mail in await becomes(lambda: service.mail.inbox("ann"))]

    assert world({"mangles": mangles}, story) == ["a\ufffdb\ufffdc"]


def test_an_agent_mails_its_owner_and_other_agents_in_the_middle_of_a_task(world: World) -> None:
    async def reports(turn: Turn) -> AsyncIterator[str]:
        mail_id = await turn.mail("user:ann", "report", "all well", priority="high")
        await turn.mail("agent:e", "copy", mail_id)
        yield "sent"

    async def story(service: AsyncAgentService) -> tuple[list[Mail], list[Mail]]:
        await service.agents.create("ann", "d", profile="reports")
        await service.agents.create("ann", "e", profile="silent")
        task = await service.tasks.send("ann", "d", "report")
        await service.tasks.wait("ann", task, timeout=20)
        return await service.mail.inbox("ann"), await service.mail.inbox("ann", "agent:e")

    (mine,), (its,) = world({**BRAINS, "reports": reports}, story)
    assert (mine.sender, mine.subject, mine.body, mine.priority) == (D, "report", "all well", "high")
    assert (its.sender, its.recipient, its.body) == (D, "agent:ann/e", mine.mail_id)


def test_a_shared_agent_of_another_owner_can_be_written_to_and_replies(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Mail, Mail, list[str]]:
        await service.agents.create("bob", "s", profile="answers", shared=True)
        mail_id = await service.mail.send("ann", "agent:bob/s", "hello", "words")
        (reply,) = await becomes(lambda: service.mail.inbox("ann"))
        further = await service.mail.reply("ann", reply.mail_id, "thanks")
        await processed(service, further)
        seen = [m.mail_id for m in await service.mail.thread("bob", mail_id)]
        assert seen == [m.mail_id for m in await service.mail.thread("ann", mail_id)]
        return await service.mail.get("ann", mail_id), reply, seen

    sent, reply, seen = world(BRAINS, story)
    assert (sent.status, reply.sender, reply.recipient) == ("replied", "agent:bob/s", "user:ann")
    assert len(seen) == 4


def test_a_recipient_may_answer_mail_of_a_private_agent(world: World) -> None:
    async def story(service: AsyncAgentService) -> Mail:
        await service.agents.create("ann", "d", profile="silent")
        await service.agents.create("bob", "s", profile="silent", shared=True, start=False)
        mail_id = await service.mail.send("ann", "agent:bob/s", "hello", "words", sender="agent:d")
        answer = await service.mail.reply("bob", mail_id, "well")
        with pytest.raises(roost.NotFound):
            await service.mail.send("bob", "agent:ann/d", "another", "words")
        return await processed(service, answer)

    assert world(BRAINS, story).recipient == D


def test_agents_that_answer_everything_do_not_thank_each_other_endlessly(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str, str]]:
        for agent_id in ("d", "e"):
            await service.agents.create("ann", agent_id, profile="answers", **FAST)
        mail_id = await service.mail.send("ann", "agent:e", "hello", "words", sender="agent:d")
        (_, reply) = await becomes(lambda: service.mail.thread("ann", mail_id), lambda found: len(found) == 2)
        await processed(service, reply.mail_id)
        await all_settled(service)
        assert await rows(service, "SELECT * FROM dead_letters") == []
        return [(m.sender, m.status) for m in await service.mail.thread("ann", mail_id)]

    assert world(BRAINS, story) == [(D, "replied"), ("agent:ann/e", "read")]


def test_agents_that_mail_each_other_endlessly_are_cut_off(world: World) -> None:
    async def writes(turn: Turn) -> AsyncIterator[str]:
        await turn.mail(turn.sender, "and you?", "words")
        yield ""

    async def story(service: AsyncAgentService) -> list[Any]:
        for agent_id in ("d", "e"):
            await service.agents.create("ann", agent_id, profile="writes", **FAST)
        await service.mail.send("ann", "agent:e", "hello", "words", sender="agent:d")
        return await becomes(lambda: rows(service, "SELECT kind, fault, reason FROM dead_letters"))

    ((kind, fault, reason),) = world({"writes": writes}, story, replace(QUICK, hops=6))
    assert (kind, fault) == ("mail", "hops")
    assert reason.startswith("Agents kept answering each other and were cut off")


def test_an_agent_that_hears_of_urgent_mail_to_people_and_writes_some_is_cut_off(world: World) -> None:
    async def alarms(turn: Turn) -> AsyncIterator[str]:
        await turn.mail("user:ann", "urgent", "words", priority="urgent")
        yield ""

    async def story(service: AsyncAgentService) -> int:
        await service.agents.create("ann", "d", profile="alarms", subscriptions=["urgent_mail"], **FAST)
        await service.mail.send("ann", "user:ann", "first", "words", priority="urgent")
        await becomes(lambda: rows(service, "SELECT * FROM dead_letters"))
        return await service.mail.unread_count("ann")

    assert world({"alarms": alarms}, story, replace(QUICK, hops=6)) == 7


def test_a_reply_to_one_that_is_gone_is_no_failure(world: World) -> None:
    async def story(service: AsyncAgentService) -> Mail:
        await service.agents.create("ann", "d", profile="silent")
        await service.agents.create("ann", "e", profile="answers", start=False)
        mail_id = await service.mail.send("ann", "agent:e", "hello", "words", sender="agent:d")
        await service.agents.delete("ann", "d")
        await service.agents.start("ann", "e")
        mail = await processed(service, mail_id)
        assert await rows(service, "SELECT * FROM dead_letters") == []
        return mail

    assert world(BRAINS, story).status == "read"


def test_a_turn_that_fails_has_read_its_mail_and_sent_no_reply(world: World) -> None:
    async def fails(turn: Turn) -> AsyncIterator[str]:
        yield "begun"
        raise ValueError

    async def story(service: AsyncAgentService) -> tuple[Mail, list[Mail], list[Any]]:
        await service.agents.create("ann", "d", profile="fails", max_attempts=2, **FAST)
        mail_id = await service.mail.send("ann", "agent:d", "hello", "words")
        dead = await becomes(lambda: rows(service, "SELECT kind, attempts FROM dead_letters"))
        return await service.mail.get("ann", mail_id), await service.mail.inbox("ann"), dead

    mail, mine, dead = world({"fails": fails}, story)
    assert (mail.status, mail.processed, mine, dead) == ("read", None, [], [("mail", 2)])
    assert mail.read_at is not None


def test_mail_of_low_priority_waits_until_the_agent_looks_at_its_mail(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[float, list[Any]]:
        await service.agents.create("ann", "d", profile="silent", check_mail_interval=0.2)
        assert await rows(service, "SELECT * FROM timers") == []
        mail_id = await service.mail.send("ann", "agent:d", "hello", "words", priority="low")
        assert len(await rows(service, "SELECT due FROM timers WHERE key = 'mail'")) == 1
        mail = await processed(service, mail_id)
        assert mail.read_at is not None
        return (mail.read_at - mail.created).total_seconds(), await rows(service, "SELECT * FROM timers")

    waited, timers = world(BRAINS, story)
    assert waited >= 0.2
    assert timers == []


@pytest.mark.parametrize("state", ["busy", "idle"])
@pytest.mark.parametrize("change", [{"check_mail_interval": 0.2}, {"wake_on_priority": "low"}])
def test_mail_that_waits_is_looked_at_when_its_agent_is_configured_to_look_sooner(
    world: World, state: str, change: dict[str, Any]
) -> None:
    async def story(service: AsyncAgentService) -> Mail:
        await service.agents.create("ann", "d", profile="waits", check_mail_interval=3600, max_concurrent_tasks=2)
        if state == "busy":
            await service.tasks.send("ann", "d", "wait")
            await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "active")
        mail_id = await service.mail.send("ann", "agent:d", "hello", "words", priority="low")
        await service.agents.configure("ann", "d", **change)
        return await processed(service, mail_id)

    async def waits(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "wait":
            await asyncio.sleep(3600)
        yield ""

    mail = world({"waits": waits}, story)
    assert mail.read_at is not None
    assert (mail.read_at - mail.created).total_seconds() < 60, "it waited for an hour to pass"


def test_an_urgent_mail_takes_the_older_ones_of_its_thread_along_in_order(world: World) -> None:
    heard: list[str] = []

    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> Mail:
        await service.agents.create("bob", "s", profile="hears", shared=True, check_mail_interval=3_600)
        first = await service.mail.send("ann", "agent:bob/s", "hello", "one", priority="low")
        other = await service.mail.send("ann", "agent:bob/s", "other", "other", priority="low")
        await service.mail.reply("ann", first, "two")
        third = await service.mail.reply("ann", first, "three", priority="high")
        await processed(service, third)
        return await service.mail.get("ann", other)

    waiting = world({"hears": hears}, story)
    assert heard == ["one", "two", "three"]
    assert (waiting.status, waiting.processed) == ("unread", None)


def test_urgent_mail_is_also_an_event_for_subscribers(world: World) -> None:
    facts: list[Any] = []

    async def listens(turn: Turn) -> AsyncIterator[str]:
        facts.append((turn.kind, turn.text, turn.data))
        yield ""

    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="silent")
        await service.agents.create("ann", "e", profile="listens", subscriptions=["urgent_mail"])
        await service.agents.create("bob", "e", profile="listens", subscriptions=["urgent_mail"])
        await service.mail.send("ann", "agent:d", "calm", "words", priority="high")
        mail_id = await service.mail.send("ann", "agent:d", "fire", "words", priority="urgent")
        await becomes(lambda: service.agents.get("ann", "e"), lambda agent: facts and not agent.queue_depth)
        assert await rows(service, "SELECT * FROM dead_letters") == []
        return mail_id

    mail_id = world({**BRAINS, "listens": listens}, story)
    data = {"mail_id": mail_id, "to": D, "from": "user:ann", "subject": "fire"}
    assert facts == [("event", "urgent_mail", data)]


def test_mail_that_expires_before_it_is_dealt_with_is_a_dead_letter(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Any], Mail, list[Mail]]:
        await service.agents.create("ann", "d", profile="answers", start=False)
        mail_id = await service.mail.send("ann", "agent:d", "hello", "words", expires_in=0.05)
        dead = await becomes(lambda: rows(service, "SELECT kind, reason FROM dead_letters"))
        return dead, await service.mail.get("ann", mail_id), await service.mail.inbox("ann")

    ((kind, reason),), mail, mine = world(BRAINS, story)
    assert (kind, reason) == ("mail", "it was not begun before it expired")
    assert (mail.status, mail.processed, mine) == ("unread", None, [])
