"""A8: events reach their subscribers, wake agents that wait for them, and are kept; a failed agent is an event."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.conftest import Open
from tests.runtime.conftest import QUICK, World, becomes, until

pytestmark = pytest.mark.order

FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0}
Heard = list[tuple[str | None, str, Any]]


def listener(heard: Heard) -> roost.Brain:
    """Notes who heard what."""

    async def listens(turn: Turn) -> AsyncIterator[str]:
        heard.append((turn.agent_id, turn.text, turn.data))
        yield f"{turn.kind} from {turn.sender}"

    return listens


async def quiet(service: AsyncAgentService, *agents: str) -> None:
    """Wait until there is nothing to do for these agents."""
    for agent in agents:
        await becomes(
            lambda agent=agent: service.agents.get("ann", agent),  # type: ignore[misc]
            lambda found: not found.queue_depth and not found.current_tasks,
        )


def test_agents_hear_what_they_subscribed_to_by_name_wildcard_and_fields(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> None:
        for agent, wanted in {
            "exact": "disk.full",
            "wild": "disk.*",
            "all": "*",
            "other": "net.*",
            "picky": {"event": "disk.*", "fields": {"host": "a"}},
        }.items():
            await service.agents.create("ann", agent, profile="listens", subscriptions=[wanted])
        await service.events.publish("ann", "disk.full", {"host": "a"})
        await service.events.publish("ann", "disk.slow", {"host": "b"})
        await quiet(service, "exact", "wild", "all", "picky", "other")

    world({"listens": listener(heard)}, story)
    full, slow = ("disk.full", {"host": "a"}), ("disk.slow", {"host": "b"})
    assert sorted(heard, key=str) == sorted(
        [("exact", *full), ("wild", *full), ("all", *full), ("picky", *full), ("wild", *slow), ("all", *slow)], key=str
    )


def test_events_reach_only_agents_of_their_owner(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> list[roost.Event]:
        await service.agents.create("bob", "d", profile="listens", subscriptions=["*"], shared=True)
        await service.agents.create("ann", "e", profile="listens", subscriptions=["*"])
        await service.events.publish("ann", "news")
        await quiet(service, "e")
        return await service.events.history("bob")

    assert world({"listens": listener(heard)}, story) == []
    assert heard == [("e", "news", None)]


def test_an_event_wakes_only_agents_that_wait_for_it_and_is_their_wake_reason(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> list[roost.Agent]:
        both = roost.any_of(roost.event("data_ready"), roost.event("shutdown"))
        await service.agents.create("ann", "both", profile="listens")
        await service.agents.create("ann", "one", profile="listens")
        await service.agents.sleep("ann", "both", wake_on=both)
        await service.agents.sleep("ann", "one", wake_on=roost.event("data_ready"))
        await service.events.publish("ann", "shutdown", {"in": 5})
        await until(lambda: bool(heard))
        await quiet(service, "both", "one")
        return [await service.agents.get("ann", agent) for agent in ("both", "one")]

    woken, asleep = world({"listens": listener(heard)}, story)
    assert (woken.state, woken.wake_reason) == ("idle", "event shutdown")
    assert (asleep.state, asleep.wake_reason, asleep.wake_events) == ("sleeping", None, ("data_ready",))
    assert heard == [("both", "shutdown", {"in": 5})]


def test_an_agent_that_waits_for_two_events_sleeps_until_the_second(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> tuple[str, str | None]:
        await service.agents.create("ann", "d", profile="listens")
        await service.agents.sleep("ann", "d", wake_on=roost.all_of(roost.event("a"), roost.event("b.*")))
        await service.events.publish("ann", "a")
        between = (await service.agents.get("ann", "d")).state
        await service.events.publish("ann", "b.c")
        await until(lambda: len(heard) == 2)
        return between, (await service.agents.get("ann", "d")).wake_reason

    assert world({"listens": listener(heard)}, story) == ("sleeping", "event a and event b.c (b.*)")
    assert [name for _, name, _ in heard] == ["a", "b.c"]


def test_a_subscriber_sleeps_on_unless_the_event_is_urgent(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> tuple[str, int, str | None]:
        await service.agents.create("ann", "d", profile="listens", subscriptions=["news"])
        await service.agents.sleep("ann", "d", wake_on=roost.event("something_else"))
        await service.events.publish("ann", "news", 1, priority="high")
        between = await service.agents.get("ann", "d")
        await service.events.publish("ann", "news", 2, priority="urgent")
        await until(lambda: len(heard) == 2)
        return between.state, between.queue_depth, (await service.agents.get("ann", "d")).wake_reason

    assert world({"listens": listener(heard)}, story) == ("sleeping", 1, "event news")
    assert sorted(data for _, _, data in heard) == [1, 2]


def test_events_wait_for_an_agent_that_is_stopped_and_for_the_next_start(world: World) -> None:
    heard: Heard = []

    async def before(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="listens", subscriptions=["news"], start=False)
        for number in range(3):
            await service.events.publish("ann", "news", number)

    async def after(service: AsyncAgentService) -> None:
        await service.agents.start("ann", "d")
        await quiet(service, "d")

    world({"listens": listener(heard)}, before)
    assert heard == []
    world({"listens": listener(heard)}, after)
    assert [data for _, _, data in heard] == [0, 1, 2]


def test_an_agent_publishes_once_although_its_turn_is_repeated(world: World) -> None:
    heard: Heard = []

    async def speaks(turn: Turn) -> AsyncIterator[str]:
        await turn.publish("news", {"attempt": turn.attempt})
        if turn.attempt == 1:
            raise ValueError
        yield "said"

    async def story(service: AsyncAgentService) -> list[roost.Event]:
        await service.agents.create("ann", "d", profile="speaks", **FAST)
        await service.agents.create("ann", "e", profile="listens", subscriptions=["news"])
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"), timeout=20)
        await quiet(service, "e")
        return await service.events.history("ann")

    [event] = world({"speaks": speaks, "listens": listener(heard)}, story)
    assert (event.name, event.publisher, event.takers) == ("news", "agent:ann/d", 1)
    assert heard == [("e", "news", {"attempt": 2})]


def test_an_agent_that_answers_its_own_events_endlessly_is_cut_off(world: World) -> None:
    echoes: list[int] = []

    async def echoes_itself(turn: Turn) -> AsyncIterator[str]:
        echoes.append(turn.data)
        await turn.publish("echo", turn.data + 1)
        yield ""

    async def story(service: AsyncAgentService) -> list[roost.DeadLetter]:
        await service.agents.create("ann", "d", profile="echoes", subscriptions=["echo"], **FAST)
        await service.events.publish("ann", "echo", 0)
        await until(lambda: len(echoes) > 6)
        await quiet(service, "d")
        return await service.dead_letters.list("ann")

    [letter] = world({"echoes": echoes_itself}, story, replace(QUICK, hops=6))
    assert echoes == [0, 1, 2, 3, 4, 5, 6]
    assert (letter.agent_id, letter.kind, letter.fault) == ("d", "event", "hops")


def test_an_event_without_subscribers_is_a_dead_letter_unless_it_is_optional(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[roost.DeadLetter], list[roost.Event]]:
        await service.events.publish("ann", "lonely", {"n": 1})
        await service.events.publish("ann", "whatever", optional=True)
        return await service.dead_letters.list("ann"), await service.events.history("ann")

    [letter], history = world({}, story)
    assert (letter.kind, letter.fault, letter.attempts, letter.agent_id) == ("event", "untaken", 0, None)
    assert "no agent subscribes to this event" in letter.reason
    assert (letter.envelope["name"], letter.envelope["data"]) == ("lonely", {"n": 1})
    assert [(event.name, event.takers) for event in history] == [("whatever", 0), ("lonely", 0)]


# --- a failed agent ----------------------------------------------------------------------------------------


async def fails(turn: Turn) -> AsyncIterator[str]:
    yield "begun"
    raise ValueError("a secret of the brain")


def test_a_failed_agent_is_announced_by_an_event(world: World) -> None:
    heard: Heard = []

    async def story(service: AsyncAgentService) -> tuple[str, list[roost.Event]]:
        await service.agents.create("ann", "d", profile="fails", **FAST)
        await service.agents.create("ann", "watcher", profile="listens", subscriptions=["agent.failed"])
        await service.agents.create("bob", "other", profile="listens", subscriptions=["*"])
        task_id = await service.tasks.send("ann", "d", "go")
        await service.tasks.wait("ann", task_id, timeout=20)
        history = await service.events.history("ann")
        await until(lambda: bool(heard))
        return task_id, history

    task_id, [event] = world({"fails": fails, "listens": listener(heard)}, story)
    assert (event.name, event.publisher, event.takers) == ("agent.failed", "agent:ann/d", 1)
    assert event.data.keys() == {"agent", "reason", "fault", "envelope_id", "kind"}
    assert (event.data["agent"], event.data["envelope_id"], event.data["kind"]) == ("d", task_id, "task")
    assert "internal error" in event.data["reason"]
    assert "secret" not in event.data["reason"]
    assert heard == [("watcher", "agent.failed", event.data)]


def test_an_agent_failed_event_without_subscribers_is_no_dead_letter(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[roost.DeadLetter]:
        await service.agents.create("ann", "d", profile="fails", **FAST)
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"), timeout=20)
        return await service.dead_letters.list("ann")

    assert [letter.kind for letter in world({"fails": fails}, story)] == ["task"]


def test_what_expired_or_was_cancelled_is_no_failure_of_the_agent(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[roost.Event]]:
        await service.agents.create("ann", "d", profile="fails", start=False, **FAST)
        late = await service.tasks.send("ann", "d", "late", expires_in=0.01)
        cancelled = await service.tasks.send("ann", "d", "cancelled")
        await service.tasks.cancel("ann", cancelled)
        await service.tasks.wait("ann", late, timeout=0.05)
        await service.agents.start("ann", "d")
        over = [await service.tasks.wait("ann", task, timeout=20) for task in (late, cancelled)]
        return [task.status for task in over], await service.events.history("ann")

    assert world({"fails": fails}, story) == (["expired", "cancelled"], [])


def test_watchers_that_fail_at_the_news_of_failure_do_not_make_news(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[roost.DeadLetter], list[roost.Event]]:
        for agent in ("d", "e", "f"):
            await service.agents.create(
                "ann", agent, profile="fails", subscriptions=["agent.*"], max_attempts=2, **FAST
            )
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"), timeout=20)
        await quiet(service, "d", "e", "f")
        return await service.dead_letters.list("ann"), await service.events.history("ann")

    letters, history = world({"fails": fails}, story)
    assert sorted((letter.agent_id or "", letter.kind) for letter in letters) == [
        ("d", "task"),
        ("e", "event"),
        ("f", "event"),
    ]
    assert [event.takers for event in history] == [2]


def test_a_watcher_that_passes_work_back_to_a_failing_agent_is_cut_off(world: World) -> None:
    async def hands_on(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:d", "do it again")
        yield ""

    async def story(service: AsyncAgentService) -> tuple[list[roost.DeadLetter], int]:
        await service.agents.create("ann", "d", profile="fails", max_attempts=1, **FAST)
        await service.agents.create("ann", "w", profile="hands_on", subscriptions=["agent.failed"], **FAST)
        await service.tasks.send("ann", "d", "go")
        letters = await becomes(lambda: service.dead_letters.list("ann", agent="w"), bool)
        await quiet(service, "d", "w")
        return letters, len(await service.dead_letters.list("ann", agent="d"))

    letters, failures = world({"fails": fails, "hands_on": hands_on}, story, replace(QUICK, hops=8))
    assert [(letter.kind, letter.fault) for letter in letters] == [("event", "hops")]
    assert failures == 5


# --- history -----------------------------------------------------------------------------------------------


def test_history_is_found_by_pattern_and_time_in_pages_newest_first(world: World) -> None:
    async def story(service: AsyncAgentService) -> dict[str, list[Any]]:
        for number in range(30):
            name = ("disk.full", "disk.slow.a", "net.down", "disks")[number % 4]
            await service.events.publish("ann", name, number, optional=True)
        history = service.events.history
        everything = await history("ann", limit=1_000)
        pages, before = [], None
        while page := await history("ann", name="disk.*", limit=4, before=before):
            pages.append([event.data for event in page])
            before = page[-1].event_id
        middle, far = everything[10], datetime(9000, 1, 1, tzinfo=UTC)
        return {
            "all": [event.data for event in everything],
            "pages": pages,
            "name": [event.data for event in await history("ann", name="net.down", limit=2)],
            "since": [event.data for event in await history("ann", since=middle.created, until=far)],
            "until": [e.data for e in await history("ann", until=everything[-1].created.timestamp())],
        }

    found = world({}, story)
    assert found["all"] == list(range(29, -1, -1))
    chosen = [number for number in range(29, -1, -1) if number % 4 < 2]
    assert [data for page in found["pages"] for data in page] == chosen
    assert [len(page) for page in found["pages"]] == [4, 4, 4, 4]
    assert found["name"] == [26, 22]
    assert found["since"][:11] == list(range(29, 18, -1))
    assert found["until"] == []


def test_a_pattern_is_matched_exactly_although_the_store_only_guesses(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[str]]:
        for name in ("a.x.c", "a.x.y.c", "A.x.c", "a.xx.c"):
            for _ in range(3):
                await service.events.publish("ann", name, optional=True)
        found = [await service.events.history("ann", name="a.*.c", limit=limit) for limit in (2, 5, 100)]
        return [[event.name for event in page] for page in found]

    assert world({}, story) == [["a.xx.c"] * 2, ["a.xx.c"] * 3 + ["a.x.c"] * 2, ["a.xx.c"] * 3 + ["a.x.c"] * 3]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("a.*", {}, "must not contain '\\*'"),
        ("", {}, "must not be empty"),
        ("a..b", {}, "empty segments"),
        ("a", {"priority": "soon"}, "low, normal, high, urgent"),
        ("a", {"data": object()}, "a JSON value"),
        ("a", {"data": "x" * 1024 * 1024}, "too long"),
    ],
)
def test_a_bad_event_is_refused_and_nothing_is_kept(
    service: Open, name: str, options: dict[str, Any], said: str
) -> None:
    opened = service()
    with pytest.raises(roost.Invalid, match=said):
        opened.events.publish("ann", name, **options)
    assert opened.events.history("ann") == []


def test_plain_methods_do_the_same(service: Open) -> None:
    opened = service()
    event_id = opened.events.publish("ann", "news", [1, 2], priority="high")
    [event] = opened.events.history("ann", name="n*")
    assert (event.event_id, event.data, event.priority, event.publisher) == (event_id, [1, 2], "high", "user:ann")
    assert event.created.tzinfo is not None
    [letter] = opened.dead_letters.list("ann", kind="event")
    assert opened.dead_letters.get("ann", letter.letter_id) == letter
    with pytest.raises(roost.Conflict):
        opened.dead_letters.retry("ann", letter.letter_id)
    assert opened.dead_letters.retry_all("ann") == 0
    assert opened.dead_letters.drop_all("ann") == 1
    with pytest.raises(roost.NotFound):
        opened.dead_letters.drop("ann", letter.letter_id)
