"""A5, A7: each tick of a schedule comes once, whatever the clock, the machine and the agent do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.envelopes.tasks import TaskStatus
from roost.core.schedules.cron import Cron
from roost.testing import Simulation
from tests.runtime.agents.test_agents import teller
from tests.runtime.conftest import QUICK, World, becomes

HOUR = 3_600.0


class Diary:
    """A brain that notes when it was given what."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.entries: list[tuple[float, str]] = []
        self.takes = 0.0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.entries.append((self.clock(), turn.text))
        await asyncio.sleep(self.takes)
        yield "noted"


class Play:
    """A simulated machine with one agent that keeps a diary."""

    def __init__(self, folder: Path) -> None:
        self.simulation = Simulation(folder, seed=5)
        self.diary = Diary()
        self.diary.clock = self.simulation.clock.now
        self.service = self.start()

    def start(self) -> AsyncAgentService:
        self.service = self.simulation.start({"diary": self.diary}, QUICK)
        return self.service

    def run(self, story: Callable[[], Any]) -> Any:
        return self.simulation.run(story())

    def after(self, seconds: float) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)

        self.simulation.run(wait())

    def power_cut(self, seconds: float) -> None:
        self.simulation.crash()
        self.simulation.clock.elapsed += seconds
        self.start()

    def schedule(self, **how: Any) -> roost.Schedule:
        async def make() -> roost.Schedule:
            if not await self.service.agents.list("ann"):
                await self.service.agents.create("ann", "d", profile="diary", max_concurrent_tasks=10)
            return await self.service.schedules.create("ann", "d", "round", **how)

        made: roost.Schedule = self.simulation.run(make())
        return made

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.diary.entries]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


def test_a_schedule_posts_a_task_at_each_tick(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str | None], bool]:
        await service.agents.create("ann", "d", profile="teller")
        schedule = await service.schedules.create("ann", "d", "hello", every=1.0, name="greeting")
        found: list[roost.Task] = []
        while len([task for task in found if task.is_over]) < 2:
            await asyncio.sleep(0.05)
            found = await service.tasks.list("ann", agent="d")
        await service.schedules.delete("ann", schedule.schedule_id)
        results = [task.result for task in reversed(found)][:2]
        return results, all(task.schedule_id == schedule.schedule_id for task in found)

    results, of_it = world({"teller": teller}, story)
    assert of_it
    assert [str(result).split(",")[1] for result in results] == [" 1", " 2"]


def test_every_comes_at_the_same_distance_without_drift(play: Play) -> None:
    start = play.simulation.clock.now()
    play.schedule(every=60)
    play.after(10 * 60 + 1)
    assert [round(time - start) for time in play.times] == [60 * n for n in range(1, 11)]


def test_cron_comes_by_the_wall_clock_of_its_zone(play: Play) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    schedule = play.schedule(cron="0 9 * * *", zone="Europe/Berlin")
    assert schedule.next is not None
    for day in range(3):
        play.simulation.clock.shift += schedule.next.timestamp() + day * 24 * HOUR - play.simulation.clock.now() - 5
        play.after(10)
    shown = [datetime.fromtimestamp(time, berlin) for time in play.times]
    assert [(time.hour, time.minute, time.second) for time in shown] == [(9, 0, 0)] * 3
    assert len({time.date() for time in shown}) == 3


def test_once_comes_once_and_at_a_time_that_has_passed_at_once(play: Play) -> None:
    now = play.simulation.clock.now()
    play.schedule(at=datetime.fromtimestamp(now + 100, UTC))
    play.schedule(at=datetime.fromtimestamp(now - 5, UTC), name="passed")
    play.after(500)
    assert [round(time - now) for time in play.times] == [0, 100]


@pytest.mark.parametrize(
    ("every", "down", "expected"),
    [(HOUR, 10.5 * HOUR, {"skip": 0, "once": 1, "all": 5}), (5, 52, {"skip": 1, "once": 1, "all": 10})],
)
def test_ticks_while_the_machine_was_down_are_made_up_for_as_was_asked(
    tmp_path: Path, every: float, down: float, expected: dict[str, int]
) -> None:
    made_up = {}
    for missed in ("skip", "once", "all"):
        folder = tmp_path / missed
        folder.mkdir()
        play = Play(folder)
        play.schedule(every=every, missed=missed, overlap="queue_all", catch_up=5.4 * HOUR)
        play.after(every + 1)
        play.power_cut(down)
        play.after(1)
        made_up[missed] = len(play.times) - 1
    assert made_up == expected


@pytest.mark.parametrize(
    ("overlap", "expected"), [("skip", [1, 4, 7]), ("queue_one", [1, 3, 6]), ("queue_all", [1, 3, 6])]
)
def test_a_tick_while_the_one_before_is_not_done(play: Play, overlap: str, expected: list[int]) -> None:
    play.diary.takes = 2.5 * 60
    start = play.simulation.clock.now()
    play.schedule(every=60, overlap=overlap)

    async def with_room() -> None:
        await play.service.agents.configure("ann", "d", max_concurrent_tasks=10)

    play.run(with_room)
    play.after(7 * 60 + 10)
    assert [int((time - start) // 60) for time in play.times] == expected


def test_ticks_that_queue_are_done_in_order_beside_other_work(play: Play) -> None:
    """With lanes to spare: those of one schedule one after the other, those of two side by side."""
    play.diary.takes = 90.0
    start = play.simulation.clock.now()
    play.schedule(every=60, overlap="queue_all", name="one")
    play.schedule(every=60, overlap="queue_all", name="two")

    async def with_room() -> None:
        await play.service.agents.configure("ann", "d", max_concurrent_tasks=10)

    play.run(with_room)
    play.after(4 * 60 + 10)
    assert [round(time - start) for time in play.times] == [60, 60, 150, 150, 240, 240]


@pytest.mark.parametrize(
    ("overlap", "alone", "behind_another"),
    [
        ("skip", (1, 0), (0, 1)),
        ("queue_one", (1, 1), (0, 1)),
        ("queue_all", (1, 7), (0, 8)),
        ("replace", (1, 0), (0, 1)),
    ],
)
def test_what_is_handed_over_and_not_begun_waits(
    play: Play, overlap: str, alone: tuple[int, int], behind_another: tuple[int, int]
) -> None:
    play.diary.takes = HOUR

    async def found(agent: str, *before: str) -> tuple[int, int]:
        await play.service.agents.create("ann", agent, profile="diary", max_concurrent_tasks=1)
        for prompt in before:
            await play.service.tasks.send("ann", agent, prompt)
        await play.service.schedules.create("ann", agent, "round", every=1, overlap=overlap)
        for _ in range(8):
            await asyncio.sleep(1.01)
            await play.service.agents.resume("ann", agent)  # it is looked at, and handed all there is
        of_schedule = [task for task in await play.service.tasks.list("ann", agent=agent) if task.schedule_id]
        statuses = [task.status for task in of_schedule]
        return statuses.count(TaskStatus.RUNNING), statuses.count(TaskStatus.QUEUED)

    assert play.run(lambda: found("d")) == alone
    assert play.run(lambda: found("e", "a long task")) == behind_another


def test_a_tick_can_take_the_place_of_the_one_before(play: Play) -> None:
    play.diary.takes = 2.5 * 60
    play.schedule(every=60, overlap="replace")
    play.after(4 * 60 + 10)

    async def look() -> list[str]:
        return [task.status for task in reversed(await play.service.tasks.list("ann"))]

    assert play.run(look) == ["cancelled", "cancelled", "cancelled", "running"]


def test_a_tick_that_finds_the_inbox_full_is_a_dead_letter_and_can_be_retried(world: World) -> None:
    async def tells(turn: Turn) -> AsyncIterator[str]:
        yield f"told {turn.text}"

    async def story(service: AsyncAgentService) -> list[Any]:
        await service.agents.create("ann", "d", profile="tells", inbox_limit=1, start=False)
        past = datetime(2020, 1, 1, tzinfo=UTC)
        for number in range(2):
            await service.schedules.create("ann", "d", "tick", name=str(number), at=past, overlap="queue_all")
        [letter] = await becomes(lambda: service.dead_letters.list("ann"), bool)
        refused = [task for task in await service.tasks.list("ann") if task.status == "failed"]
        depth = (await service.agents.get("ann", "d")).queue_depth
        await service.agents.start("ann", "d")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.queue_depth == 0)
        await service.dead_letters.retry("ann", letter.letter_id)
        done = await service.tasks.wait("ann", refused[0].task_id, timeout=20)
        return [letter.kind, letter.fault, depth, len(refused), refused[0].error == letter.reason, done.result]

    assert world({"tells": tells}, story) == ["task", "full", 1, 1, True, "told tick"]


def test_a_paused_schedule_does_not_tick_and_makes_up_for_nothing(play: Play) -> None:
    schedule = play.schedule(every=60, missed="all")

    async def pause() -> roost.Schedule:
        return await play.service.schedules.pause("ann", schedule.schedule_id)

    async def resume() -> roost.Schedule:
        return await play.service.schedules.resume("ann", schedule.schedule_id)

    play.after(61)
    assert play.run(pause).next is None
    play.after(600)
    assert len(play.times) == 1
    assert play.run(resume).next is not None
    play.after(60)
    assert len(play.times) == 2


def test_a_schedule_changed_while_it_runs_counts_from_then(play: Play) -> None:
    schedule = play.schedule(every=60)
    play.after(61)

    async def change() -> None:
        await play.service.schedules.change("ann", schedule.schedule_id, every=600, prompt="another round")

    play.run(change)
    play.after(599)
    assert [text for _, text in play.diary.entries] == ["round"]
    play.after(2)
    assert [text for _, text in play.diary.entries] == ["round", "another round"]


def test_a_schedule_changed_to_a_time_that_has_passed_comes_at_once(play: Play) -> None:
    now = play.simulation.clock.now()
    schedule = play.schedule(every=600)

    async def change() -> None:
        past = datetime.fromtimestamp(now - HOUR, UTC)
        await play.service.schedules.change("ann", schedule.schedule_id, at=past)

    play.run(change)
    play.after(1_000)
    assert [round(time - now) for time in play.times] == [0]


def test_a_cron_expression_that_is_changed_keeps_its_zone_and_the_other_way_round(play: Play) -> None:
    schedule = play.schedule(cron="0 9 * * *", zone="Asia/Tokyo")

    async def change(**what: Any) -> tuple[str, str]:
        rule = (await play.service.schedules.change("ann", schedule.schedule_id, **what)).rule
        assert isinstance(rule, Cron)
        return rule.expression, rule.zone

    async def story() -> None:
        assert await change(cron="0 10 * * *") == ("0 10 * * *", "Asia/Tokyo")
        assert await change(zone="Europe/Berlin") == ("0 10 * * *", "Europe/Berlin")
        assert await change(cron="5 10 * * *", zone="UTC") == ("5 10 * * *", "UTC")
        for wrong in ({"zone": "Mars/Olympus"}, {"every": 60, "zone": "UTC"}):
            with pytest.raises(roost.Invalid, match="time zone"):
                await change(**wrong)
        await play.service.schedules.change("ann", schedule.schedule_id, every=60)
        with pytest.raises(roost.Invalid, match="give cron too"):
            await change(zone="UTC")

    play.run(story)


def test_a_clock_that_is_set_forth_and_back_repeats_no_tick(play: Play) -> None:
    play.schedule(every=600, missed="all", overlap="queue_all", catch_up=24 * HOUR)
    play.after(1_201)
    assert len(play.times) == 2
    play.simulation.clock.shift = HOUR
    play.after(10)
    assert len(play.times) == 8
    play.simulation.clock.shift = 0.0
    play.after(HOUR - 20)
    assert len(play.times) == 8
    play.after(620)
    assert len(play.times) == 9


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_loses_no_tick_and_repeats_none(tmp_path: Path, side: str) -> None:
    for commit in range(1, 25):
        folder = tmp_path / str(commit)
        folder.mkdir()
        play = Play(folder)
        play.schedule(every=60, missed="all", overlap="queue_all")
        database = play.simulation.database
        assert database is not None
        setattr(database, f"crash_{side}", database.commits + commit)
        try:
            play.after(200)
            play.simulation.crash()
        except KeyboardInterrupt:  # the power was cut
            pass
        play.start()
        play.after(max(0.0, 200 - play.simulation.clock.elapsed) + 20)

        async def look(play: Play = play) -> list[tuple[str, str | None]]:
            return [(task.status, task.result) for task in await play.service.tasks.list("ann")]

        assert play.run(look) == [("done", "noted")] * 3, f"crashed {side} commit {commit}"
        play.simulation.crash()


def test_what_is_wrong_with_a_schedule_is_said_and_nothing_is_made(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller")
        create = service.schedules.create
        for wrong, told in (
            ({"cron": "every day"}, "cron"),
            ({"cron": "* * * * *", "zone": "Mars/Olympus"}, "Mars/Olympus"),
            ({"every": 0}, "every"),
            ({}, "one of"),
            ({"every": 5, "overlap": "never"}, "overlap"),
            ({"at": datetime(2030, 1, 1)}, "time zone"),
        ):
            with pytest.raises(roost.Invalid, match=told):
                await create("ann", "d", "x", **wrong)
        with pytest.raises(roost.NotFound):
            await create("bob", "d", "x", every=5)
        await create("ann", "d", "x", every=timedelta(days=1), name="daily")
        with pytest.raises(roost.Conflict, match="'daily' already"):
            await create("ann", "d", "x", every=5, name="daily")
        assert len(await service.schedules.list("ann")) == 1
        assert await service.schedules.list("bob") == []

    world({"teller": teller}, story)


def test_the_next_times_are_shown(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[datetime]:
        await service.agents.create("ann", "d", profile="teller")
        made = await service.schedules.create("ann", "d", "x", cron="*/15 * * * *")
        times = await service.schedules.next_times("ann", made.schedule_id, 3)
        assert made.next == times[0]
        return times

    times = world({"teller": teller}, story)
    assert [later - earlier for earlier, later in pairwise(times)] == [timedelta(minutes=15)] * 2
