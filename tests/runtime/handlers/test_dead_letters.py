"""A14: every kind of dead letter in one place, with why, when and how often tried; and how each is retried."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Crash, Simulation, script
from tests.runtime.conftest import QUICK, World, becomes, until

FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0}


class Mood:
    """Switch for what the agents need, and what they have done so far."""

    def __init__(self) -> None:
        self.broken = True
        self.done: list[str] = []
        self.attempts: list[int] = []

    async def worker(self, turn: Turn) -> AsyncIterator[str]:
        self.attempts.append(turn.attempt)
        if self.broken:
            raise ValueError("a secret of the brain")
        self.done.append(turn.text)
        yield f"done: {turn.text}"


async def letters(service: AsyncAgentService, count: int = 1, **chosen: Any) -> list[roost.DeadLetter]:
    """Return this number of dead letters as soon as they exist."""
    return await becomes(lambda: service.dead_letters.list("ann", **chosen), lambda found: len(found) >= count)


async def over(service: AsyncAgentService, task_id: str) -> roost.Task:
    return await service.tasks.wait("ann", task_id, timeout=20)


# --- of each kind ------------------------------------------------------------------------------------------


def test_a_dead_task_is_retried_and_done(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> tuple[roost.DeadLetter, list[roost.Task], int]:
        await service.agents.create("ann", "d", profile="worker", **FAST)
        task_id = await service.tasks.send("ann", "d", "hello")
        failed = await over(service, task_id)
        [letter] = await letters(service)
        mood.broken = False
        await service.dead_letters.retry("ann", letter.letter_id)
        return letter, [failed, await over(service, task_id)], len(await service.dead_letters.list("ann"))

    letter, [failed, done], left = world({"worker": mood.worker}, story)
    assert (letter.user_id, letter.agent_id, letter.kind, letter.fault) == ("ann", "d", "task", "internal")
    assert letter.attempts == 3
    assert letter.reason == failed.error
    assert "secret" not in repr(letter)
    assert failed.ended is not None
    assert abs((letter.created - failed.ended).total_seconds()) < 1e-3
    assert (letter.envelope["body"], letter.envelope["sender"]) == ("hello", "user:ann")
    assert (done.status, done.result, done.attempts, done.error) == ("done", "done: hello", 1, None)
    assert mood.attempts == [1, 2, 3, 1]
    assert left == 0


def test_dead_mail_and_events_are_retried_and_handled(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> tuple[list[roost.DeadLetter], list[Any], int]:
        await service.agents.create("ann", "d", profile="worker", subscriptions=["news"], max_attempts=2, **FAST)
        mail_id = await service.mail.send("ann", "agent:d", "greeting", "how are you?")
        await service.events.publish("ann", "news", 1)
        found = await letters(service, 2)
        before = await service.mail.get("ann", mail_id)
        mood.broken = False
        count = await service.dead_letters.retry_all("ann")
        await until(lambda: len(mood.done) == 2)
        after = await becomes(lambda: service.mail.get("ann", mail_id), lambda mail: mail.processed)
        return found, [before.processed, after.processed], count

    found, processed, count = world({"worker": mood.worker}, story)
    assert sorted((letter.kind, letter.fault, letter.attempts) for letter in found) == [
        ("event", "internal", 2),
        ("mail", "internal", 2),
    ]
    assert processed[0] is None
    assert processed[1] is not None
    assert sorted(mood.done) == ["how are you?", "news"]
    assert count == 2


def test_an_expired_task_has_as_much_time_again_when_it_is_retried(world: World) -> None:
    mood = Mood()
    mood.broken = False

    async def story(service: AsyncAgentService) -> tuple[roost.DeadLetter, list[str]]:
        await service.agents.create("ann", "d", profile="worker", start=False, **FAST)
        task_id = await service.tasks.send("ann", "d", "hello", expires_in=2.0)
        statuses = [str((await over(service, task_id)).status)]
        await service.agents.start("ann", "d")
        [letter] = await letters(service)
        await service.dead_letters.retry("ann", letter.letter_id)
        return letter, [*statuses, str((await over(service, task_id)).status)]

    letter, statuses = world({"worker": mood.worker}, story)
    assert (letter.kind, letter.fault, letter.attempts) == ("task", "expired", 0)
    assert "expired" in letter.reason
    assert statuses == ["expired", "done"]


def test_expired_mail_is_handled_when_it_is_retried(world: World) -> None:
    mood = Mood()
    mood.broken = False

    async def story(service: AsyncAgentService) -> roost.DeadLetter:
        await service.agents.create("ann", "d", profile="worker", start=False, **FAST)
        await service.mail.send("ann", "agent:d", "greeting", "hello", expires_in=2.0)
        [letter] = await letters(service)
        await service.agents.start("ann", "d")
        assert "hello" not in mood.done
        await service.dead_letters.retry("ann", letter.letter_id)
        await until(lambda: "hello" in mood.done)
        return letter

    letter = world({"worker": mood.worker}, story)
    assert (letter.kind, letter.fault, letter.attempts) == ("mail", "expired", 0)


def test_a_letter_cut_off_by_the_hop_limit_can_be_retried(world: World) -> None:
    talkative = [True]
    heard: list[str] = []

    async def answers(turn: Turn) -> AsyncIterator[str]:
        if talkative:
            await turn.send("agent:e" if turn.agent_id == "d" else "agent:d", "and you?")
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> tuple[roost.DeadLetter, int]:
        for agent in ("d", "e"):
            await service.agents.create("ann", agent, profile="answers", **FAST)
        await service.tasks.send("ann", "d", "go")
        [letter] = await letters(service)
        before = len(heard)
        talkative.clear()
        await service.dead_letters.retry("ann", letter.letter_id)
        await until(lambda: len(heard) > before)
        return letter, before

    letter, before = world({"answers": answers}, story, replace(QUICK, hops=6))
    assert (letter.kind, letter.fault, letter.attempts) == ("task", "hops", 1)
    assert heard == ["go"] + ["and you?"] * 6
    assert before == 6


def test_a_message_to_a_deleted_agent_is_a_letter_of_its_sender_and_can_be_sent_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.runtime.outgoing.outbox.POST_AFTER", 60.0)
    heard: list[str] = []
    services: list[AsyncAgentService] = []

    async def sends(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:e", "hello")
        await turn.mail("agent:e", "greeting", "how are you?")
        await services[0].agents.delete("ann", "e")
        yield "sent"

    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.append(f"{turn.kind} {turn.text} from {turn.sender}")
        yield ""

    async def story(service: AsyncAgentService) -> tuple[roost.Task, list[roost.DeadLetter], int]:
        services.append(service)
        await service.agents.create("ann", "d", profile="sends")
        await service.agents.create("ann", "e", profile="hears")
        task = await over(service, await service.tasks.send("ann", "d", "go"))
        found = await letters(service, 2, kind="outgoing")
        with pytest.raises(roost.NotFound, match="no agent 'e'"):
            await service.dead_letters.retry("ann", found[0].letter_id)
        assert await service.dead_letters.list("ann") == found
        await service.agents.create("ann", "e", profile="hears")
        count = await service.dead_letters.retry_all("ann", agent="d")
        await until(lambda: len(heard) == 2)
        return task, found, count

    task, found, count = world({"sends": sends, "hears": hears}, story)
    assert task.status == "done"
    assert [(letter.agent_id, letter.fault) for letter in found] == [("d", "undeliverable")] * 2
    assert sorted(heard) == ["mail how are you? from agent:ann/d", "task hello from agent:ann/d"]
    assert count == 2


def test_a_message_of_a_talk_to_a_deleted_agent_is_a_letter_of_its_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: list[AsyncAgentService] = []

    async def sends(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:e", "hello")
        await services[0].agents.delete("ann", "e")
        yield "sent"

    async def story(service: AsyncAgentService) -> list[roost.DeadLetter]:
        services.append(service)
        await service.agents.create("ann", "e", profile="sends")
        talk = await service.create_talk_session("ann", profile="sends")
        await service.add_message("ann", talk, "go")
        return await letters(service)

    [letter] = world({"sends": sends}, story)
    assert (letter.kind, letter.fault, letter.agent_id) == ("outgoing", "undeliverable", None)


def test_an_event_without_subscribers_is_handled_when_retried_after_a_subscription(world: World) -> None:
    mood = Mood()
    mood.broken = False

    async def story(service: AsyncAgentService) -> list[roost.Event]:
        await service.events.publish("ann", "lonely")
        [letter] = await letters(service)
        with pytest.raises(roost.Conflict, match="no agent subscribes to the event 'lonely'"):
            await service.dead_letters.retry("ann", letter.letter_id)
        assert await service.dead_letters.list("ann") == [letter]
        await service.agents.create("ann", "d", profile="worker", subscriptions=["lonely"])
        await service.dead_letters.retry("ann", letter.letter_id)
        await until(lambda: bool(mood.done))
        assert await service.dead_letters.list("ann") == []
        return await service.events.history("ann")

    assert [(event.name, event.takers) for event in world({"worker": mood.worker}, story)] == [("lonely", 1)]


@pytest.mark.order
def test_an_event_that_found_an_inbox_full_is_handled_when_there_is_room(world: World) -> None:
    mood = Mood()
    mood.broken = False

    async def story(service: AsyncAgentService) -> roost.DeadLetter:
        await service.agents.create(
            "ann", "d", profile="worker", subscriptions=["*"], inbox_limit=1, start=False, **FAST
        )
        await service.events.publish("ann", "first")
        await service.events.publish("ann", "second")
        [letter] = await letters(service)
        await service.agents.start("ann", "d")
        await until(lambda: mood.done == ["first"])
        await becomes(lambda: service.dead_letters.retry_all("ann"), bool)
        await until(lambda: mood.done == ["first", "second"])
        return letter

    letter = world({"worker": mood.worker}, story)
    assert (letter.agent_id, letter.kind, letter.fault, letter.attempts) == ("d", "event", "full", 0)


# --- after power cuts --------------------------------------------------------------------------------------


def crash(simulation: Simulation, brains: dict[str, roost.Brain], story: Callable[[AsyncAgentService], Any]) -> None:
    service = simulation.start(brains, QUICK)
    with pytest.raises(Crash):
        simulation.run(story(service))


@pytest.mark.parametrize("seed", range(3))
def test_what_the_program_died_of_each_time_is_given_up_and_can_be_retried(tmp_path: Path, seed: int) -> None:
    begun: list[int] = []
    died: list[bool] = []
    deadly = [True]

    async def kills(turn: Turn) -> AsyncIterator[str]:
        begun.append(turn.attempt)
        if deadly:
            await asyncio.sleep(3_600)
        yield "survived"

    async def first(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="kills")
        await service.tasks.send("ann", "d", "go")
        await again(service)

    async def again(service: AsyncAgentService) -> None:
        await until(lambda: len(begun) > len(died))
        died.append(True)
        raise Crash

    async def last(service: AsyncAgentService) -> tuple[roost.DeadLetter, list[roost.Event], roost.Task]:
        [letter] = await letters(service)
        told = await service.events.history("ann")
        deadly.clear()
        await service.dead_letters.retry("ann", letter.letter_id)
        return letter, told, await over(service, letter.envelope["envelope_id"])

    simulation = Simulation(tmp_path, seed)
    for story in (first, again, again, again, again):
        crash(simulation, {"kills": kills}, story)
    letter, told, task = simulation.run(last(simulation.start({"kills": kills}, QUICK)))
    assert (letter.kind, letter.fault, letter.attempts) == ("task", "lost_worker", 3)
    assert [event.name for event in told] == ["agent.failed"]
    assert (task.status, task.result, task.attempts) == ("done", "survived", 1)
    assert begun == [1, 1, 1, 2, 3, 1], "as itself, as a suspect, three times in quarantine, and when it was retried"
    simulation.crash()


@pytest.mark.parametrize("seed", range(3))
def test_a_turn_that_waits_for_an_answer_is_not_suspected_after_a_crash(tmp_path: Path, seed: int) -> None:
    begun, died = list[int](), list[bool]()

    async def kills(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.5)  # the others have asked by then
        begun.append(turn.attempt)
        await asyncio.sleep(60)
        yield ""

    async def asks(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:oracle", turn.text, deadline=3600)

    async def first(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "oracle", profile="oracle")
        await service.agents.pause("ann", "oracle")
        await service.agents.create("ann", "asker", profile="asks", max_concurrent_tasks=3)
        await service.agents.create("ann", "poison", profile="kills")
        for number in range(3):
            await service.tasks.send("ann", "asker", f"{number}")
        await service.tasks.send("ann", "poison", "go")
        await again(service)

    async def again(service: AsyncAgentService) -> None:
        await until(lambda: len(begun) > len(died))
        died.append(True)
        raise Crash

    async def last(service: AsyncAgentService) -> tuple[list[roost.DeadLetter], list[roost.Task]]:
        found = await letters(service)
        await service.agents.resume("ann", "oracle")
        asked = await service.tasks.list("ann", agent="asker")
        return found, [await over(service, task.task_id) for task in asked]

    brains: dict[str, roost.Brain] = {"kills": kills, "asks": asks, "oracle": script("42")}
    simulation = Simulation(tmp_path, seed)
    for story in (first, again, again, again, again):
        crash(simulation, brains, story)
    found, tasks = simulation.run(last(simulation.start(brains, QUICK)))
    assert [(letter.agent_id, letter.attempts) for letter in found] == [("poison", 3)]
    assert [(task.status, task.result, task.attempts) for task in tasks] == [("done", "42", 1)] * 3
    assert begun == [1, 1, 1, 2, 3]
    simulation.crash()


# --- retrying ----------------------------------------------------------------------------------------------


def test_a_step_that_was_done_is_not_done_again_when_its_letter_is_retried(world: World) -> None:
    mood, computed = Mood(), list[int]()

    async def compute() -> int:
        computed.append(1)
        return 42

    async def steps(turn: Turn) -> AsyncIterator[str]:
        answer = await turn.step("compute", compute)
        if mood.broken:
            raise ValueError
        yield str(answer)

    async def story(service: AsyncAgentService) -> roost.Task:
        await service.agents.create("ann", "d", profile="steps", retry_delay=0.01, idle_timeout=0.0)
        await over(service, await service.tasks.send("ann", "d", "go"))
        [letter] = await letters(service)
        await service.agents.stop("ann", "d")  # its next activation has never seen it
        mood.broken = False
        await service.dead_letters.retry("ann", letter.letter_id)
        await service.agents.start("ann", "d")
        return await over(service, letter.envelope["envelope_id"])

    assert world({"steps": steps}, story).result == "42"
    assert computed == [1]


def test_a_step_that_was_done_is_not_done_again_after_a_stop(world: World) -> None:
    computed: list[int] = []

    async def compute() -> int:
        computed.append(1)
        return 42

    async def steps(turn: Turn) -> AsyncIterator[str]:
        answer = await turn.step("compute", compute)
        if not released:
            reached.append(True)
            await asyncio.sleep(3_600)
        yield str(answer)

    reached: list[bool] = []
    released: list[bool] = []

    async def story(service: AsyncAgentService) -> roost.Task:
        await service.agents.create("ann", "d", profile="steps")
        task_id = await service.tasks.send("ann", "d", "go")
        await until(lambda: bool(reached))
        await service.agents.stop("ann", "d")
        released.append(True)
        await service.agents.start("ann", "d")
        return await over(service, task_id)

    assert world({"steps": steps}, story).result == "42"
    assert computed == [1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.order
def test_what_is_retried_before_its_agent_knows_that_it_is_dead_is_done_soon(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> roost.Task:
        hall = service.roost.dispatcher
        settled = hall.settler._settled

        def slowly(*everything: Any) -> None:
            """It is in the store, and the agent's thread gets to hear of it in a second."""
            awake = hall.awake("ann/d")
            assert awake is not None
            awake.loop.freeze(1.0)  # type: ignore[attr-defined]
            settled(*everything)

        monkeypatch.setattr(hall.settler, "_settled", slowly)
        await service.agents.create("ann", "d", profile="worker", max_attempts=1)
        task_id = await service.tasks.send("ann", "d", "hello")
        assert (await over(service, task_id)).status == "failed"
        mood.broken = False
        assert await service.dead_letters.retry_all("ann") == 1
        return await service.tasks.wait("ann", task_id, timeout=4)

    simulation = Simulation(tmp_path, seed)
    assert simulation.run(story(simulation.start({"worker": mood.worker}, QUICK))).status == "done"
    simulation.crash()


@pytest.mark.order
def test_an_older_one_that_is_retried_waits_for_the_one_under_way_in_its_lane(world: World) -> None:
    handled: list[tuple[str, int]] = []
    gate: list[str] = []

    async def handles(turn: Turn) -> AsyncIterator[str]:
        handled.append((turn.data, turn.attempt))
        if turn.data == "old" and not gate:
            raise ValueError
        if turn.data == "new":
            await until(lambda: "open" in gate)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="handles", subscriptions=["news"], max_attempts=1)
        await service.events.publish("ann", "news", "old")
        [letter] = await letters(service)
        gate.append("new ones")
        await service.events.publish("ann", "news", "new")
        await until(lambda: ("new", 1) in handled)
        await service.events.publish("ann", "news", "newest")
        await service.dead_letters.retry("ann", letter.letter_id)
        gate.append("open")
        await until(lambda: len(handled) == 4)
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: not agent.queue_depth)

    world({"handles": handles}, story)
    assert handled == [("old", 1), ("new", 1), ("old", 1), ("newest", 1)]


def test_all_of_one_agent_are_retried_and_the_others_stay(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> tuple[int, list[str | None], list[str]]:
        for agent in ("d", "e"):
            await service.agents.create("ann", agent, profile="worker", max_attempts=1, max_concurrent_tasks=1)
        ids = [await service.tasks.send("ann", agent, f"{agent} {n}") for n in range(3) for agent in ("d", "e")]
        await letters(service, 6)
        mood.broken = False
        count = await service.dead_letters.retry_all("ann", agent="d")
        tasks = [await over(service, task_id) for task_id in ids]
        left = await service.dead_letters.list("ann")
        return count, [letter.agent_id for letter in left], [task.prompt for task in tasks if task.status == "done"]

    count, left, done = world({"worker": mood.worker}, story)
    assert (count, left, done) == (3, ["e", "e", "e"], ["d 0", "d 1", "d 2"])
    assert mood.done == ["d 0", "d 1", "d 2"]


@pytest.mark.order
def test_retrying_all_ends_although_each_of_them_fails_again(world: World) -> None:
    mood = Mood()

    async def worker(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.001)  # what fails again is a letter of a later moment
        async for text in mood.worker(turn):
            yield text

    async def story(service: AsyncAgentService) -> tuple[int, list[roost.DeadLetter], list[roost.DeadLetter]]:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1, **FAST)
        for number in range(3):
            await service.tasks.send("ann", "d", str(number))
        before = await letters(service, 3)
        await asyncio.sleep(0.001)  # a letter is named by its moment, and simulated ones can be the same
        count = await service.dead_letters.retry_all("ann")
        await until(lambda: len(mood.attempts) == 6)
        return count, before, await letters(service, 3)

    count, before, after = world({"worker": worker}, story)
    assert count == 3
    assert len(after) == 3
    assert not {one.letter_id for one in before} & {one.letter_id for one in after}


def test_letters_of_a_deleted_agent_are_gone(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1)
        await service.tasks.send("ann", "d", "hello")
        [letter] = await letters(service)
        await service.agents.delete("ann", "d")
        with pytest.raises(roost.NotFound, match="no dead letter"):
            await service.dead_letters.retry("ann", letter.letter_id)
        assert await service.dead_letters.list("ann") == []

    world({"worker": mood.worker}, story)


# --- looking and dropping ----------------------------------------------------------------------------------


def test_letters_of_every_kind_are_in_one_place_newest_first_and_in_pages(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1, **FAST)
        for number in range(3):
            await over(service, await service.tasks.send("ann", "d", str(number)))
            await service.events.publish("ann", f"lonely{number}")
        found = await service.dead_letters.list("ann")
        of_tasks, of_events = ([one for one in found if one.kind == kind] for kind in ("task", "event"))
        assert len(of_tasks) == len(of_events) == 3
        assert [letter.created for letter in found] == sorted((letter.created for letter in found), reverse=True)
        pages = [await service.dead_letters.list("ann", limit=4)]
        pages.append(await service.dead_letters.list("ann", limit=4, before=pages[0][-1].letter_id))
        assert pages[0] + pages[1] == found
        assert await service.dead_letters.list("ann", agent="d") == of_tasks
        assert await service.dead_letters.list("ann", agent="agent:d", kind="task") == of_tasks
        assert await service.dead_letters.list("ann", kind="event") == of_events
        assert await service.dead_letters.list("ann", agent="agent:bob/d") == []

    world({"worker": mood.worker}, story)


def test_what_is_dropped_is_gone_and_its_task_stays_failed(world: World) -> None:
    mood = Mood()

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1)
        task_id = await service.tasks.send("ann", "d", "hello")
        [letter] = await letters(service)
        for number in range(3):
            await service.events.publish("ann", f"lonely{number}")
        await service.dead_letters.drop("ann", letter.letter_id)
        for attempt in (service.dead_letters.get, service.dead_letters.retry, service.dead_letters.drop):
            with pytest.raises(roost.NotFound, match="no dead letter"):
                await attempt("ann", letter.letter_id)
        assert (await service.tasks.get("ann", task_id)).status == "failed"
        assert await service.dead_letters.drop_all("ann", agent="d") == 0
        assert await service.dead_letters.drop_all("ann") == 3
        assert await service.dead_letters.list("ann") == []

    world({"worker": mood.worker}, story)


def test_one_persons_letters_do_not_exist_for_another(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.events.publish("ann", "lonely")
        [letter] = await letters(service)
        never = letter.letter_id[:-1] + "z"
        for attempt in (service.dead_letters.get, service.dead_letters.retry, service.dead_letters.drop):
            with pytest.raises(roost.NotFound) as hers:
                await attempt("bob", letter.letter_id)
            with pytest.raises(roost.NotFound) as nobodys:
                await attempt("bob", never)
            assert str(hers.value).replace(letter.letter_id, never) == str(nobodys.value)
        assert await service.dead_letters.list("bob") == []
        assert await service.dead_letters.retry_all("bob") == await service.dead_letters.drop_all("bob") == 0
        assert await service.dead_letters.list("ann") == [letter]

    world({}, story)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"kind": "parcel"}, "outgoing"), ({"agent": "user:bob"}, "is a user"), ({"limit": 0}, "the limit")],
)
def test_what_cannot_be_looked_for_is_refused(world: World, options: dict[str, Any], said: str) -> None:
    async def story(service: AsyncAgentService) -> None:
        with pytest.raises(roost.Invalid, match=said):
            await service.dead_letters.list("ann", **options)

    world({}, story)


def test_a_request_without_an_answer_is_asked_again_on_retry(world: World) -> None:
    silent = [True]

    async def at_times(turn: Turn) -> AsyncIterator[str]:
        if silent:
            await asyncio.sleep(30)
        yield "the answer"

    async def asks(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:e", "well?", deadline=0.1 if silent else 20.0)

    async def story(service: AsyncAgentService) -> tuple[str | None, str | None]:
        await service.agents.create("ann", "d", profile="asks")
        await service.agents.create("ann", "e", profile="at_times", max_concurrent_tasks=2)
        task = await service.tasks.send("ann", "d", "go")
        first = (await service.tasks.wait("ann", task, timeout=20)).error
        silent.clear()
        (letter,) = await service.dead_letters.list("ann")
        await service.dead_letters.retry("ann", letter.letter_id)
        return first, (await service.tasks.wait("ann", task, timeout=20)).result

    first, second = world({"asks": asks, "at_times": at_times}, story)
    assert "agent:e has not answered in time" in str(first)
    assert second == "the answer"


def test_a_dead_letter_names_the_run_of_its_last_attempt(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=2, **FAST)
        for _ in range(2):
            await service.tasks.send("ann", "d", "work")
        for letter in await letters(service, 2):
            assert letter.run_id is not None
            run = (await service.runs.get("ann", letter.run_id)).run
            assert (run.envelope_id, run.attempts, run.outcome) == (letter.envelope["envelope_id"], 2, "failed")
            assert (await service.dead_letters.get("ann", letter.letter_id)).run_id == run.run_id
        await service.events.publish("ann", "nobody.hears")
        [event] = await letters(service, kind="event")
        assert event.run_id is None

    world({"worker": Mood().worker}, story)
