"""B3: the tools of every agent: mail, sleep, the clock, events, memory, other agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, ToolFailed, Turn
from tests.runtime.conftest import World, becomes, ended

NAMES = [
    "mail.send",
    "mail.check",
    "mail.read",
    "mail.reply",
    "mail.archive",
    "meeting.call",
    "meeting.join",
    "meeting.say",
    "meeting.view",
    "meeting.leave",
    "meeting.decline",
    "meeting.grant",
    "meeting.end",
    "meeting.cancel",
    "meeting.list",
    "send",
    "ask",
    "publish",
    "sleep",
    "wake",
    "schedule",
    "remember",
    "recall",
    "forget",
]


async def hands(turn: Turn) -> AsyncIterator[str]:
    """Calls the tools that a task names, one after the other, and says what came of each."""
    if turn.kind == "meeting":
        return
    if turn.kind != "task" or not turn.text.startswith("["):
        yield f"heard {turn.text}"
        return
    results = []
    for name, arguments in json.loads(turn.text):
        try:
            results.append(await turn.call_tool(name, arguments))
        except ToolFailed as error:
            results.append(f"failed: {error}")
    yield json.dumps(results)


async def names(turn: Turn) -> AsyncIterator[str]:
    yield " ".join(tool.name for tool in turn.tools)
    for tool in turn.tools:
        assert tool.description
        assert tool.parameters["type"] == "object"
        assert "turn" not in tool.parameters["properties"]


BRAINS: dict[str, roost.Brain] = {"hands": hands, "names": names}


async def did(service: AsyncAgentService, *calls: tuple[str, dict[str, Any]], agent: str = "d") -> list[str]:
    task = await service.tasks.send("ann", agent, json.dumps(calls))
    over = await service.tasks.wait("ann", task)
    assert over.status == "done", over.error
    return [str(one) for one in json.loads(over.result or "[]")]


async def team(service: AsyncAgentService) -> None:
    for name in ("d", "e"):
        await service.agents.create("ann", name, profile="hands", subscriptions=["told.*"])


def test_agents_have_all_of_them_and_talks_with_profiles_none(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="names")
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "which?"))
        talk = await service.create_talk_session("ann", profile="names")
        await service.add_message("ann", talk, "which?")
        return [over.result or "", "".join(m.content for m in (await ended(service, talk))[1:])]

    assert world(BRAINS, story) == [" ".join(NAMES), ""]


def test_mail_is_sent_checked_read_answered_and_archived(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        await service.mail.send("ann", "user:ann", "secret", "of ann's own")
        [private] = await service.mail.inbox("ann")
        await service.agents.pause("ann", "e")
        sent = await did(service, ("mail.send", {"to": "agent:e", "subject": "hi", "body": "how?", "priority": "high"}))
        assert sent == ["sent to agent:e"]
        await service.agents.pause("ann", "d")
        await service.mail.send("ann", "agent:d", "to d", "the body", priority="low")
        await service.agents.resume("ann", "d")
        [listed] = await did(service, ("mail.check", {}))
        [shown] = json.loads(listed)
        assert (shown["from"], shown["subject"], shown["status"]) == ("user:ann", "to d", "unread")
        name = {"mail_id": shown["mail_id"]}
        read, replied, archived, left, stolen = await did(
            service,
            ("mail.read", name),
            ("mail.reply", {**name, "body": "fine"}),
            ("mail.archive", name),
            ("mail.check", {"unread_only": False}),
            ("mail.read", {"mail_id": private.mail_id}),
        )
        assert json.loads(read)["body"] == "the body"
        assert (replied, archived, json.loads(left)) == ("sent to user:ann", "archived", [])
        assert stolen.startswith("failed: mail.read: there is no mail"), "it is the owner's"
        assert [(m.sender, m.subject, m.body) for m in await service.mail.inbox("ann", status="unread")][-1] == (
            "agent:ann/d",
            "Re: to d",
            "fine",
        )

    world(BRAINS, story)


def test_the_mail_at_hand_is_listed_first_until_it_is_dealt_with(world: World) -> None:
    listed: list[list[str]] = []

    async def looks(turn: Turn) -> AsyncIterator[str]:
        for _ in range(2):
            found = json.loads(await turn.call_tool("mail.check", {}))
            listed.append([f"{one['subject']} {one['status']}" for one in found])
            if found[0]["subject"] == "first":
                await turn.call_tool("mail.reply", {"mail_id": found[0]["mail_id"], "body": "thanks"})
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="looks", start=False, max_concurrent_tasks=1)
        for subject in ("first", "second"):
            await service.mail.send("ann", "agent:d", subject, "words")
        await service.agents.start("ann", "d")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: len(listed) == 4)

    world({"looks": looks}, story)
    assert listed == [["first read", "second unread"], ["second unread"], ["second read"], ["second read"]]


def test_tools_send_ask_wake_and_publish(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        await service.agents.sleep("ann", "e", 3600)
        results = await did(
            service,
            ("wake", {"agent": "agent:e"}),
            ("ask", {"to": "agent:e", "text": "what?"}),
            ("send", {"to": "agent:e", "text": "this"}),
            ("publish", {"name": "told.all", "data": {"n": 1}}),
            ("wake", {"agent": "agent:bob/x"}),
            ("ask", {"to": "agent:nobody", "text": "?"}),
        )
        assert results[:4] == ["agent:e is awake", "heard what?", "sent to agent:e", "published"]
        assert "there is no agent 'agent:bob/x' that you may wake" in results[4]
        assert results[5].startswith("failed: ask: ")
        [event] = await service.events.history("ann", name="told.*")
        assert event.data == {"n": 1}

    world(BRAINS, story)


def test_an_agent_calls_a_meeting_speaks_and_leaves(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        await service.agents.pause("ann", "e")
        [called] = await did(service, ("meeting.call", {"topic": "nests", "optional": ["user:ann", "agent:e"]}))
        meeting = called.removeprefix("called: ")
        name = {"meeting_id": meeting}
        said, view, wrong = await did(
            service,
            ("meeting.say", {**name, "text": "welcome"}),
            ("meeting.view", name),
            ("meeting.say", {"meeting_id": "meeting_none", "text": "?"}),
        )
        assert said == "said"
        assert json.loads(view)["topic"] == "nests"
        assert json.loads(view)["words"] == ["agent:ann/d: welcome"]
        assert wrong.startswith("failed: meeting.say: ")
        assert [one.text for one in (await service.meetings.view("ann", meeting, seen_by="agent:d")).words] == [
            "welcome"
        ]
        await service.meetings.join("ann", meeting)
        assert await did(service, ("meeting.leave", name)) == ["you have left"]
        [back] = await did(service, ("meeting.join", name))
        assert back == "you are there; present: agent:ann/d, user:ann"
        assert (await service.meetings.view("ann", meeting, seen_by="agent:d")).status == "in"
        [nowhere] = await did(service, ("meeting.end", {}))
        assert nowhere == "failed: meeting.end: this turn is not in a meeting: the tool works only there"

    world(BRAINS, story)


async def modest(turn: Turn) -> AsyncIterator[str]:
    """As a model does it: speaks, and calls the tools that go with what it is asked for."""
    meeting = turn.meeting
    if meeting.why == "invited" and "noise" in meeting.prompt:
        await turn.call_tool("meeting.decline", {"reason": "too loud"})
    elif meeting.why == "opening":
        yield "Who wants to speak?"
    elif meeting.why == "hands":
        yield "Go on. "
        await turn.call_tool("meeting.grant", {"who": meeting.view.floor.hands[0]})
    elif meeting.new:
        yield "Thank you."
        await turn.call_tool("meeting.end", {"minutes": f"{turn.sender} was heard"})
        yield "Is anybody there?"


def test_in_a_meeting_it_declines_gives_the_floor_and_ends_it(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "m", profile="modest", invitations="ask")
        loud = await service.meetings.call("ann", "noise", required=["agent:m"])
        failed = await becomes(lambda: service.meetings.view("ann", loud), lambda view: view.phase == "failed")
        assert failed.reason == "agent:ann/m has declined: too loud"
        panel = await service.meetings.call("ann", "panel", optional=["user:ann"], floor="moderator", by="agent:m")
        await service.meetings.join("ann", panel)
        await service.meetings.raise_hand("ann", panel)
        await becomes(lambda: service.meetings.view("ann", panel), lambda view: "user:ann" in view.speakers)
        await service.meetings.say("ann", panel, "I do.")
        over = await becomes(lambda: service.meetings.view("ann", panel), lambda view: view.phase == "ended")
        assert [word.text for word in over.words] == ["Who wants to speak?", "Go on.", "I do.", "Thank you."]
        assert over.minutes == "user:ann was heard"
        for run in await service.runs.list("ann", agent="m"):
            assert (await service.runs.replay("ann", run.run_id)).diff == ""

    simulated({"modest": modest}, story)


async def parting(turn: Turn) -> AsyncIterator[str]:
    """Speaks, calls `meeting.say`, speaks on, and leaves; the first try fails when part of it has been heard."""
    meeting = turn.meeting
    if meeting.why == "invited":
        return
    name = {"meeting_id": meeting.meeting_id}
    yield "First. "
    await turn.call_tool("meeting.say", {**name, "text": "Second.", "to": ["user:ann"]})
    yield "Third."
    if turn.attempt == 1:
        await asyncio.sleep(1.0)
        raise ValueError
    await turn.call_tool("meeting.leave", {**name, "reason": "enough"})
    try:
        await turn.call_tool("meeting.say", {**name, "text": "Fourth."})
    except ToolFailed as error:
        yield f"({error})"


def test_what_tools_do_in_the_meeting_of_the_turn_keeps_its_order_with_what_is_said(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "p", profile="parting", retry_delay=0.05)
        meeting = await service.meetings.call("ann", "goodbyes", required=["agent:p"])
        await becomes(lambda: service.meetings.view("ann", meeting), lambda view: view.phase == "running")
        await service.meetings.say("ann", meeting, "Hello.")
        left = await becomes(
            lambda: service.meetings.view("ann", meeting), lambda view: "agent:ann/p" not in view.present
        )
        words = [(word.text, word.to) for word in left.words]
        assert words == [("Hello.", ()), ("First.", ()), ("Second.", ("user:ann",)), ("Third.", ())]
        runs = await becomes(lambda: service.runs.list("ann", agent="p"), lambda runs: runs[0].outcome == "done")
        replayed = await service.runs.replay("ann", runs[0].run_id)
        assert (replayed.diff, replayed.is_identical) == ("", True)
        assert replayed.text.endswith("agent:ann/p is not in the meeting: accept the invitation, or join)")

    simulated({"parting": parting}, story)


def test_an_agent_sleeps_schedules_and_remembers(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        remembered, found, forgotten, nothing = await did(
            service,
            ("remember", {"text": "ann likes birds", "key": "likes"}),
            ("recall", {"query": "birds"}),
            ("forget", {"key": "likes"}),
            ("forget", {"key": "likes"}),
        )
        assert (remembered, forgotten) == ("remembered under likes", "forgotten")
        assert json.loads(found) == [{"key": "likes", "text": "ann likes birds"}]
        assert nothing == "there is nothing under 'likes'"
        again = ("schedule", {"prompt": "look", "every": 3600.0, "name": "looks"})
        scheduled, there, wrong, asleep = await did(
            service,
            again,
            again,
            ("schedule", {"prompt": "look"}),
            ("sleep", {"seconds": 600, "events": ["told.*"], "mail": "high"}),
        )
        assert scheduled.startswith("scheduled; next at ")
        assert there == "there is a schedule 'looks' already"
        assert wrong.startswith("failed: schedule: ")
        assert asleep == "you will sleep when this turn is over"
        assert [one.name for one in await service.schedules.list("ann")] == ["looks"]
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "sleeping")
        await service.events.publish("ann", "told.now")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state != "sleeping")

    world(BRAINS, story)


def test_a_repeated_turn_sends_what_its_tools_sent_once(world: World) -> None:
    async def tries(turn: Turn) -> AsyncIterator[str]:
        await turn.call_tool("mail.send", {"to": "user:ann", "subject": "once", "body": "x"})
        await turn.call_tool("remember", {"text": "a fact"})
        if turn.attempt < 3:
            await asyncio.sleep(0.1 * (turn.attempt - 1))  # the second time the mail leaves before it fails
            raise ValueError
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[list[str], list[str]]:
        await service.agents.create("ann", "d", profile="tries", retry_delay=0.05)
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        mails = await service.mail.inbox("ann")
        return [m.subject for m in mails], [m.text for m in await service.agents.memories("ann", "d")]

    assert world({"tries": tries}, story) == (["once"], ["a fact"])


def test_the_names_of_own_tools_are_taken() -> None:
    async def sleep() -> str:
        return ""

    with pytest.raises(roost.Invalid, match="reserved for built-in tools"):
        roost.open("sqlite:////nowhere/at/all.db", tools=[roost.tool(sleep)])


async def grateful(turn: Turn) -> AsyncIterator[str]:
    """Answers each mail with a tool, and each meeting with another meeting."""
    other = {"d": "agent:e", "e": "agent:d"}[str(turn.agent_id)]
    try:
        if turn.kind == "mail":
            for one in json.loads(await turn.call_tool("mail.check", {})):
                await turn.call_tool("mail.reply", {"mail_id": one["mail_id"], "body": "thank you"})
        else:
            await turn.call_tool("meeting.call", {"topic": "more", "required": [other], "floor": "mention"})
    except ToolFailed as error:
        await turn.mail("user:ann", "the end", str(error))
    yield ""


async def grateful_pair(service: AsyncAgentService) -> None:
    for name in ("d", "e"):
        await service.agents.create("ann", name, profile="grateful", wake_on_priority="low", invitations="ask")


def test_two_agents_that_thank_each_other_by_tools_are_cut_off(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await grateful_pair(service)
        await service.mail.send("ann", "agent:d", "thanks", "a lot", sender="agent:e")
        [told] = await becomes(lambda: service.mail.inbox("ann"), lambda found: len(found) == 1)
        assert "longer than the limit of 4 hops" in told.body

    world({"grateful": grateful}, story, limits=roost.Limits(hops=4))


def test_meetings_that_lead_to_meetings_are_cut_off(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await grateful_pair(service)
        await service.tasks.send("ann", "d", "begin")
        told = await becomes(lambda: service.mail.inbox("ann"), lambda found: len(found) >= 1)
        assert "longer than the limit of 4 hops" in told[0].body

    world({"grateful": grateful}, story, limits=roost.Limits(hops=4))


def test_an_agent_deals_only_with_mail_that_it_got(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        await service.agents.pause("ann", "e")
        mail = await service.mail.send("ann", "agent:e", "hi", "how?", sender="agent:d")
        name = {"mail_id": mail}
        results = await did(service, ("mail.reply", {**name, "body": "in e's name"}), ("mail.archive", name))
        assert all("in your mailbox" in one for one in results), results
        assert [m.status for m in await service.mail.inbox("ann", "agent:e")] == ["unread"]
        assert await service.mail.inbox("ann", "agent:d") == []

    world(BRAINS, story)


def test_a_live_replay_sends_nothing(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await team(service)
        task = await service.tasks.send("ann", "d", json.dumps([("meeting.call", {"topic": "nests"}), ("recall", {})]))
        await service.tasks.wait("ann", task)
        [run] = [one for one in await service.runs.list("ann", agent="d") if one.kind == "task"]
        replay = await service.runs.replay("ann", run.run_id, until=0, live=True)
        assert "a replay has none" in replay.text
        assert replay.sent == ("tool meeting.call",)
        assert len(await service.meetings.list("ann")) == 1

    world(BRAINS, story)
