"""A1–A4: agents do their tasks, one at a time in each lane, and can be stopped, paused and deleted."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.agents.agent import State
from roost.runtime.dispatch.claims import Claims
from tests.runtime.conftest import QUICK, World, becomes

FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0}


async def teller(turn: Turn) -> AsyncIterator[str]:
    turn.state["told"] = turn.state.get("told", 0) + 1
    yield f"{turn.kind} {turn.text} from {turn.sender}, {turn.state['told']}"


async def until(service: AsyncAgentService, told: Callable[[roost.Agent], bool], agent_id: str = "d") -> roost.Agent:
    return await becomes(lambda: service.agents.get("ann", agent_id), told)


async def done(service: AsyncAgentService, prompt: str, **options: object) -> roost.Task:
    task_id = await service.tasks.send("ann", "d", prompt, **options)  # type: ignore[arg-type]
    return await service.tasks.wait("ann", task_id, timeout=20)


def test_a_task_is_done_and_its_result_can_be_awaited(world: World) -> None:
    async def story(service: AsyncAgentService) -> roost.Task:
        await service.agents.create("ann", "d", profile="teller")
        return await done(service, "hello")

    task = world({"teller": teller}, story)
    assert (task.status, task.result, task.attempts) == ("done", "task hello from user:ann, 1", 1)
    assert task.started is not None
    assert task.ended is not None
    assert task.created <= task.started <= task.ended


def test_the_state_is_the_agents_and_survives_a_restart(world: World) -> None:
    async def first(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller")
        for number in range(3):
            await done(service, str(number))

    async def second(service: AsyncAgentService) -> roost.Task:
        return await done(service, "again")

    world({"teller": teller}, first)
    assert (world({"teller": teller}, second).result or "").endswith(", 4")


@pytest.mark.parametrize("kept", [object(), float("nan"), "x" * 2_000_000], ids=["object", "nan", "long"])
def test_a_state_that_cannot_be_stored_fails_the_task_and_changes_nothing(world: World, kept: object) -> None:
    async def keeps(turn: Turn) -> AsyncIterator[str]:
        turn.state["kept"] = kept if turn.text == "bad" else turn.text
        yield "kept"

    async def story(service: AsyncAgentService) -> tuple[str, str, Any]:
        await service.agents.create("ann", "d", profile="keeps", max_attempts=1)
        await done(service, "good")
        task = await done(service, "bad")
        [letter] = await service.dead_letters.list("ann")
        return task.status, letter.fault, (await service.agents.inspect("ann", "d")).turn_state

    assert world({"keeps": keeps}, story) == ("failed", "state", {"kept": "good"})


def test_every_change_of_state_is_recorded_with_its_cause_and_its_author(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str | None, str, str, str]]:
        await service.agents.create("ann", "d", profile="teller")
        await done(service, "hello")
        await until(service, lambda agent: agent.state == "idle")
        await service.agents.stop("ann", "d")
        await service.agents.start("ann", "d")
        changes = await becomes(lambda: service.agents.history("ann", "d"), lambda found: len(found) > 4)
        return [(c.before, c.after, c.cause, c.by) for c in reversed(changes)]

    assert world({"teller": teller}, story) == [
        (None, "idle", "created", "user:ann"),
        ("idle", "active", "task from user:ann", "roost"),
        ("active", "idle", "nothing left to do", "roost"),
        ("idle", "stopped", "stopped", "user:ann"),
        ("stopped", "idle", "started", "user:ann"),
    ]


@pytest.mark.order
def test_what_is_sent_to_a_stopped_agent_waits_until_it_is_started(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, str | None]:
        await service.agents.create("ann", "d", profile="teller", start=False)
        task_id = await service.tasks.send("ann", "d", "hello")
        before = await service.tasks.wait("ann", task_id, timeout=0.2)
        await service.agents.start("ann", "d")
        after = await service.tasks.wait("ann", task_id, timeout=20)
        return before.status, after.result

    assert world({"teller": teller}, story) == ("queued", "task hello from user:ann, 1")


@pytest.mark.order
def test_a_paused_agent_begins_nothing_new_until_it_is_resumed(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, str, str | None]:
        await service.agents.create("ann", "d", profile="teller")
        await done(service, "before")
        paused = await service.agents.pause("ann", "d")
        task_id = await service.tasks.send("ann", "d", "hello")
        meanwhile = await service.tasks.wait("ann", task_id, timeout=0.2)
        await service.agents.resume("ann", "d")
        after = await service.tasks.wait("ann", task_id, timeout=20)
        return paused.paused, meanwhile.status, after.result

    assert world({"teller": teller}, story) == (True, "queued", "task hello from user:ann, 2")


@pytest.mark.order
def test_stopping_ends_what_runs_and_it_is_done_after_the_start(world: World) -> None:
    tries: list[int] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        tries.append(turn.attempt)
        if len(tries) == 1:
            await asyncio.sleep(60)
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[str, str, roost.Task]:
        await service.agents.create("ann", "d", profile="slow")
        task_id = await service.tasks.send("ann", "d", "hello")
        active = await until(service, lambda agent: bool(tries) and agent.state == "active")
        stopped = await service.agents.stop("ann", "d")
        await service.agents.start("ann", "d")
        return active.state, stopped.state, await service.tasks.wait("ann", task_id, timeout=20)

    active, stopped, task = world({"slow": slow}, story)
    assert (active, stopped) == ("active", "stopped")
    assert (task.status, task.result) == ("done", "done")
    assert len(tries) == 2


@pytest.mark.order
def test_what_was_never_begun_is_not_counted_as_tried(world: World) -> None:
    """However often the agent is paused, put to sleep or stopped before its turn comes."""
    tries: list[tuple[str, int]] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        tries.append((turn.text, turn.attempt))
        await asyncio.sleep(0.01)
        yield "done"

    async def story(service: AsyncAgentService) -> list[tuple[str, int]]:
        await service.agents.create("ann", "d", profile="slow", max_attempts=2, **FAST)
        await done(service, "awake")
        tasks = [await service.tasks.send("ann", "d", f"{number:02}") for number in range(20)]
        for _ in range(4):
            await service.agents.pause("ann", "d")
            await service.agents.resume("ann", "d")
            await service.agents.sleep("ann", "d", 0.01)
            await service.agents.wake("ann", "d")
        return [((t := await service.tasks.wait("ann", task, timeout=20)).status, t.attempts) for task in tasks]

    assert world({"slow": slow}, story) == [("done", 1)] * 20
    assert sorted(tries) == [*((f"{number:02}", 1) for number in range(20)), ("awake", 1)]


def test_a_task_fails_after_its_last_attempt_without_internal_details(world: World) -> None:
    tries: list[int] = []

    async def fails(turn: Turn) -> AsyncIterator[str]:
        tries.append(turn.attempt)
        yield "begun"
        raise ValueError("secret detail")

    async def story(service: AsyncAgentService) -> tuple[roost.Task, roost.Agent]:
        await service.agents.create("ann", "d", profile="fails", **FAST)
        return await done(service, "hello"), await service.agents.get("ann", "d")

    task, agent = world({"fails": fails}, story)
    assert tries == [1, 2, 3]
    assert (task.status, task.attempts) == ("failed", 3)
    assert "internal error" in (task.error or "")
    assert "secret" not in (task.error or "")
    assert agent.error_count == 3


def test_a_failure_that_passes_is_forgotten(world: World) -> None:
    async def fails_once(turn: Turn) -> AsyncIterator[str]:
        if turn.attempt == 1:
            raise ValueError
        yield f"attempt {turn.attempt}"

    async def story(service: AsyncAgentService) -> tuple[roost.Task, roost.Agent]:
        await service.agents.create("ann", "d", profile="fails_once", **FAST)
        return await done(service, "hello"), await service.agents.get("ann", "d")

    task, agent = world({"fails_once": fails_once}, story)
    assert (task.status, task.result, task.attempts) == ("done", "attempt 2", 2)
    assert agent.error_count == 0


@pytest.mark.order
def test_a_task_can_be_cancelled_before_and_while_it_runs(world: World) -> None:
    async def endless(turn: Turn) -> AsyncIterator[str]:
        yield "begun"
        await asyncio.sleep(3_600)

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="endless", max_concurrent_tasks=1)
        running = await service.tasks.send("ann", "d", "one")
        waiting = await service.tasks.send("ann", "d", "two")
        await until(service, lambda agent: agent.current_tasks == (running,))
        statuses = [(await service.tasks.cancel("ann", task)).status for task in (waiting, running)]
        idle = await until(service, lambda agent: agent.state == "idle" and not agent.queue_depth)
        again = await service.tasks.cancel("ann", running)
        return [*statuses, idle.state, again.status]

    assert world({"endless": endless}, story) == ["cancelled", "cancelled", "idle", "cancelled"]


@pytest.mark.order
def test_tasks_run_up_to_the_concurrency_limit_urgent_ones_first(world: World) -> None:
    order: list[str] = []
    most = 0
    running = 0

    async def counts(turn: Turn) -> AsyncIterator[str]:
        nonlocal most, running
        running += 1
        most = max(most, running)
        order.append(turn.text)
        await asyncio.sleep(0.01)
        running -= 1
        yield "done"

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="counts", max_concurrent_tasks=2, start=False)
        ids = [
            await service.tasks.send("ann", "d", f"{priority} {number}", priority=priority)
            for number in range(2)
            for priority in ("low", "normal", "high", "urgent")
        ]
        await service.agents.start("ann", "d")
        for task_id in ids:
            assert (await service.tasks.wait("ann", task_id, timeout=20)).status == "done"

    world({"counts": counts}, story)
    assert most == 2
    assert [text.split()[0] for text in order] == ["urgent"] * 2 + ["high"] * 2 + ["normal"] * 2 + ["low"] * 2


@pytest.mark.order
def test_what_one_agent_sends_to_another_is_handled_in_the_order_of_sending(world: World) -> None:
    heard: list[str] = []

    async def sends(turn: Turn) -> AsyncIterator[str]:
        for number in range(20):
            await turn.send("agent:e", str(number), priority="urgent" if number % 3 else "low")
        yield "sent"

    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="sends")
        await service.agents.create("ann", "e", profile="hears")
        await done(service, "go")
        await until(service, lambda agent: len(heard) == 20 and not agent.queue_depth, "e")

    world({"sends": sends, "hears": hears}, story)
    assert heard == [str(number) for number in range(20)]


@pytest.mark.order
def test_a_burst_to_an_idle_agent_is_claimed_in_few_looks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the ends of what it has done are being written, a look finds all of it once more."""
    heard: list[str] = []
    looks: list[Any] = []
    taken = Claims._taken

    def counted(self: Claims, found: Any) -> None:
        looks.append(found)
        taken(self, found)

    monkeypatch.setattr(Claims, "_taken", counted)

    async def sends(turn: Turn) -> AsyncIterator[str]:
        for number in range(400):
            await turn.send("agent:e", str(number))
        yield "sent"

    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="sends", max_concurrent_tasks=1)
        await service.agents.create("ann", "e", profile="hears")
        for _ in range(5):
            await service.tasks.send("ann", "d", "go")
        await until(service, lambda agent: len(heard) == 2_000 and not agent.queue_depth, "e")

    world({"sends": sends, "hears": hears}, story)
    assert heard == [str(number) for _ in range(5) for number in range(400)]
    assert len(looks) < 20


def test_a_turn_that_fails_has_sent_nothing(world: World) -> None:
    heard: list[str] = []

    async def sends(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:e", f"attempt {turn.attempt}")
        if turn.attempt < 3:
            raise ValueError
        yield "sent"

    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="sends", **FAST)
        await service.agents.create("ann", "e", profile="hears")
        await done(service, "go")
        await until(service, lambda agent: bool(heard) and not agent.queue_depth, "e")

    world({"sends": sends, "hears": hears}, story)
    assert heard == ["attempt 3"]


@pytest.mark.order
def test_agents_that_answer_each_other_endlessly_are_cut_off(world: World) -> None:
    heard: list[tuple[str | None, str]] = []

    async def answers(turn: Turn) -> AsyncIterator[str]:
        heard.append((turn.agent_id, turn.text))
        other = "e" if turn.agent_id == "d" else "d"
        await turn.send(f"agent:{other}", f"{turn.text}+")
        yield "sent"

    async def story(service: AsyncAgentService) -> list[roost.DeadLetter]:
        for agent_id in ("d", "e"):
            await service.agents.create("ann", agent_id, profile="answers", max_attempts=1, **FAST)
        await service.tasks.send("ann", "d", "go")
        await until(service, lambda agent: agent.error_count > 0)
        return await service.dead_letters.list("ann")

    [letter] = world({"answers": answers}, story, replace(QUICK, hops=8))
    assert heard == [("d" if number % 2 == 0 else "e", "go" + "+" * number) for number in range(9)]
    assert (letter.agent_id, letter.fault) == ("d", "hops")
    assert "kept answering each other and were cut off" in letter.reason


def test_a_step_is_done_once_although_its_turn_is_repeated(world: World) -> None:
    computed: list[int] = []

    async def look_up(number: int) -> int:
        computed.append(number)
        return number * 2

    def look_up_blocking(number: int) -> int:
        computed.append(number)
        return number * 3

    async def steps(turn: Turn) -> AsyncIterator[str]:
        one = await turn.step("double", look_up, 21)
        two = await turn.step("triple", look_up_blocking, 14)
        if turn.attempt == 1:
            raise ValueError
        yield f"{one} {two}"

    async def story(service: AsyncAgentService) -> roost.Task:
        await service.agents.create("ann", "d", profile="steps", **FAST)
        return await done(service, "go")

    assert world({"steps": steps}, story).result == "42 42"
    assert computed == [21, 14]


def test_a_step_whose_result_cannot_be_kept_is_not_done_again(world: World) -> None:
    charged: list[str] = []

    def charge() -> object:
        charged.append("once")
        return object()

    async def pays(turn: Turn) -> AsyncIterator[str]:
        await turn.step("charge", charge)
        yield "paid"

    async def story(service: AsyncAgentService) -> tuple[str, str, int]:
        await service.agents.create("ann", "d", profile="pays", **FAST)
        task = await done(service, "go")
        [letter] = await service.dead_letters.list("ann")
        return task.status, letter.fault, letter.attempts

    assert world({"pays": pays}, story) == ("failed", "unknown_step", 1)
    assert charged == ["once"]


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 5, "x" * 300])
def test_a_step_needs_a_name_that_can_be_kept(world: World, name: Any) -> None:
    refused: list[str] = []

    async def pays(turn: Turn) -> AsyncIterator[str]:
        try:
            await turn.step(name, refused.append, "done all the same")
        except roost.Invalid as error:
            refused.append(str(error))
        yield "paid"

    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="pays", **FAST)
        return (await done(service, "go")).status

    assert world({"pays": pays}, story) == "done"
    [sentence] = refused
    assert sentence.startswith("the name of a step must")


def test_keys_are_the_senders_own_and_their_tasks_are_listed(world: World) -> None:
    """Of an agent that is shared: what one has sent under a key is nothing to another."""

    async def story(service: AsyncAgentService) -> tuple[bool, bool]:
        await service.agents.create("ann", "d", profile="teller", shared=True)
        hers = await service.tasks.send("ann", "d", "report", key="daily")
        his = await service.tasks.send("bob", "agent:ann/d", "another report", key="daily")
        again = await service.tasks.send("bob", "agent:ann/d", "another report", key="daily")
        listed = [[task.task_id for task in await service.tasks.list(user)] for user in ("ann", "bob")]
        return again == his, listed == [[his, hers], [his]]

    assert world({"teller": teller}, story) == (True, True)


def test_a_full_inbox_refuses_the_sender(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller", inbox_limit=3, start=False)
        for number in range(3):
            await service.tasks.send("ann", "d", str(number))
        with pytest.raises(roost.LimitReached, match="inbox of the agent 'd' is full"):
            await service.tasks.send("ann", "d", "too much")
        assert (await service.agents.get("ann", "d")).queue_depth == 3

    world({"teller": teller}, story)


def test_a_deleted_agent_takes_everything_with_it(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller")
        task = await done(service, "hello")
        await service.agents.delete("ann", "d")
        for attempt in (
            service.agents.get("ann", "d"),
            service.tasks.get("ann", task.task_id),
            service.tasks.send("ann", "d", "hello?"),
        ):
            with pytest.raises(roost.NotFound):
                await attempt
        await service.agents.create("ann", "d", profile="teller")
        assert (await done(service, "hello")).result == "task hello from user:ann, 1"

    world({"teller": teller}, story)


@pytest.mark.order
def test_an_agent_stopped_while_it_releases_its_loop_abandons_no_loop(
    simulated: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else has it by then."""

    async def slow(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(5.0 if turn.text == "long" else 0.0)
        yield f"try {turn.attempt}"

    async def story(service: AsyncAgentService) -> str | None:
        hall = service.roost.dispatcher
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="slow", idle_timeout=60)
        await done(service, "short")
        stopped, forget = hall.awake("ann/d"), hall.placement.forget
        assert stopped is not None

        def rests_first(*args: Any) -> None:
            hall.release(stopped)
            forget(*args)

        with monkeypatch.context() as patched:
            patched.setattr(hall.placement, "forget", rests_first)
            await service.agents.stop("ann", "d")
        task = await service.tasks.send("ann", "e", "long")
        result = (await service.tasks.wait("ann", task, timeout=20)).result
        other = hall.awake("ann/e")
        assert other is not None
        assert other.loop is stopped.loop
        return result

    assert simulated({"slow": slow}, story, QUICK) == "try 1"


def test_agents_and_tasks_are_listed_by_what_is_shown_of_them(world: World) -> None:
    async def works(turn: Turn) -> AsyncIterator[str]:
        if turn.agent_id == "asks":
            await turn.ask("agent:busy", "well?", deadline=60)
        await asyncio.Event().wait()
        yield "never"

    async def story(service: AsyncAgentService) -> None:
        for name in ("asks", "away", "busy", "idle", "rests"):
            await service.agents.create("ann", name, profile="works")
        await service.agents.sleep("ann", "rests")
        await service.agents.stop("ann", "away")
        await service.tasks.send("ann", "busy", "go")
        await until(service, lambda agent: agent.state == "active", "busy")
        await service.tasks.send("ann", "asks", "go")
        await until(service, lambda agent: agent.state == "waiting", "asks")
        listed = {state: [one.agent_id for one in await service.agents.list("ann", state=state)] for state in State}
        assert listed == {
            "idle": ["idle"],
            "active": ["busy"],
            "sleeping": ["rests"],
            "waiting": ["asks"],
            "stopped": ["away"],
        }
        assert [one.agent_id for one in await service.agents.list("ann", limit=2, after="asks")] == ["away", "busy"]
        await service.tasks.send("ann", "busy", "later")
        await service.tasks.cancel("ann", await service.tasks.send("ann", "busy", "never"))
        prompts = {
            status: [one.prompt for one in await service.tasks.list("ann", agent="busy", status=status)]
            for status in ("queued", "running", "cancelled", "done")
        }
        assert prompts == {"queued": ["later"], "running": ["go"], "cancelled": ["never"], "done": []}
        assert [one.prompt for one in await service.tasks.list("ann", status="running", limit=1)] == ["go"]

    world({"works": works}, story, replace(QUICK, drain=0.05))


@pytest.mark.order
def test_a_blocking_brain_and_one_that_swallows_cancellation_can_be_stopped(world: World) -> None:
    release: list[bool] = []

    def blocks(turn: Turn) -> Iterator[str]:
        yield "begun"
        yield "ended"

    async def swallows(turn: Turn) -> AsyncIterator[str]:
        yield "begun"
        while not release:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    async def story(service: AsyncAgentService) -> list[str | None]:
        await service.agents.create("ann", "d", profile="swallows", max_concurrent_tasks=1)
        task_id = await service.tasks.send("ann", "d", "hello")
        await until(service, lambda agent: agent.current_tasks == (task_id,))
        await service.tasks.cancel("ann", task_id)
        await service.agents.configure("ann", "d", profile="blocks")
        after = await done(service, "next")
        release.append(True)
        return [after.status, after.result]

    assert world({"swallows": swallows, "blocks": blocks}, story) == ["done", "begunended"]


@pytest.mark.parametrize("ids", ["def", b"d", {"d": 1}, None, 5, ["d", "e/f"]])
def test_ids_that_are_no_list_of_ids_make_nothing(world: World, ids: Any) -> None:
    async def scenario(service: AsyncAgentService) -> list[roost.Agent]:
        with pytest.raises(roost.Invalid):
            await service.agents.create_many("ann", ids)
        return await service.agents.list("ann")

    assert world({}, scenario) == []


def test_ids_that_can_be_read_once_only_make_all_of_them(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[str]:
        await service.agents.create_many("ann", (f"d{n}" for n in range(3)))  # type: ignore[arg-type]
        return [agent.agent_id for agent in await service.agents.list("ann")]

    assert world({}, scenario) == ["d0", "d1", "d2"]


@pytest.mark.parametrize("place", ["\ud800", "a\0b", "x" * 1_000, 5, 2**70, ["d"]])
def test_a_place_in_a_list_that_no_store_knows_is_refused(world: World, place: Any) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d")
        for ask in (
            service.agents.list("ann", after=place),
            service.agents.find("ann", "d", after=place),
            service.agents.history("ann", "d", before=place),
            service.tasks.list("ann", before=place),
            service.schedules.list("ann", after=place),
            service.mail.inbox("ann", before=place),
            service.events.history("ann", before=place),
            service.dead_letters.list("ann", before=place),
            service.monitor.states("ann", after=place),
        ):
            with pytest.raises(roost.Invalid):
                await ask

    world({}, scenario)


@pytest.mark.parametrize("seconds", [1e12, 2**63, 1e300, 10**400])
def test_what_would_last_beyond_all_years_is_refused_and_lists_stay_readable(world: World, seconds: float) -> None:
    async def scenario(service: AsyncAgentService) -> tuple[int, int]:
        await service.agents.create("ann", "d", profile="teller")
        for ask in (
            service.tasks.send("ann", "d", "x", expires_in=seconds),
            service.mail.send("ann", "user:ann", "s", "b", expires_in=seconds),
            service.agents.sleep("ann", "d", seconds),
        ):
            with pytest.raises(roost.Invalid, match="100 years"):
                await ask
        return len(await service.tasks.list("ann")), len(await service.mail.inbox("ann"))

    assert world({"teller": teller}, scenario) == (0, 0)


@pytest.mark.order
def test_settings_that_are_changed_at_the_same_time_are_all_kept(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> roost.AgentConfig:
        await service.agents.create("ann", "d", profile="teller")
        await done(service, "be awake")
        await asyncio.gather(
            service.agents.configure("ann", "d", max_attempts=7),
            service.agents.configure("ann", "d", description="busy"),
            service.agents.configure("ann", "d", max_concurrent_tasks=4),
        )
        return (await service.agents.get("ann", "d")).config

    config = world({"teller": teller}, scenario)
    assert (config.max_attempts, config.description, config.max_concurrent_tasks) == (7, "busy", 4)


def test_settings_that_are_refused_change_nothing(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> roost.AgentConfig:
        await service.agents.create("ann", "d")
        with pytest.raises(roost.Invalid):
            await service.agents.configure("ann", "d", description="new", max_attempts=0)
        with pytest.raises(roost.NotFound):
            await service.agents.configure("bob", "d", description="his")
        return (await service.agents.get("ann", "d")).config

    assert world({}, scenario) == roost.AgentConfig()


def test_a_turn_that_is_over_is_gone_at_once_and_not_when_the_collector_comes(world: World) -> None:
    over: list[weakref.ref[Any]] = []

    class Mark: ...

    async def brain(turn: Turn) -> AsyncIterator[str]:
        turn.data = Mark()
        over.append(weakref.ref(turn.data))
        yield turn.text

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="brain")
        talk = await service.create_talk_session("ann", profile="brain")
        gc.collect()
        gc.disable()
        try:
            await done(service, "one")
            await done(service, "two")
            await service.add_message("ann", talk, "three")
            await becomes(lambda: service.get_messages("ann", talk), lambda page: not page.running)
            assert len(over) == 3
            await becomes(lambda: _alive(over), lambda count: count == 0)
        finally:
            gc.enable()

    world({"brain": brain}, story)


async def _alive(marks: list[weakref.ref[Any]]) -> int:
    return sum(mark() is not None for mark in marks)
