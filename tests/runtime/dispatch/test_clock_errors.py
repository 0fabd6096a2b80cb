"""A5, A6, A9: a clock that was wrong for a few seconds silences nothing, once it is right again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.conftest import QUICK

YEARS = 5 * 365.25 * 86_400
MINUTE, DAY = 60.0, 86_400.0

Act = Callable[[AsyncAgentService], Awaitable[Any]]


class World:
    """A simulated machine whose clock is set, with an agent that notes what it is given."""

    def __init__(self, folder: Path) -> None:
        self.simulation = Simulation(folder, seed=3)
        self.heard: list[tuple[float, str]] = []
        self.fails: list[str] = []
        self.start()

    async def notes(self, turn: Turn) -> AsyncIterator[str]:
        if turn.text in self.fails:
            self.fails.remove(turn.text)
            raise RuntimeError("as asked")
        self.heard.append((self.simulation.clock.monotonic(), turn.text))
        yield "noted"

    def start(self) -> None:
        self.service = self.simulation.start({"notes": self.notes}, QUICK)

    def do(self, act: Act, seconds: float = 0.0) -> Any:
        """Do something, and let some time pass."""

        async def story() -> Any:
            result = await act(self.service)
            await asyncio.sleep(seconds)
            return result

        return self.simulation.run(story())

    def after(self, seconds: float) -> None:
        async def nothing(service: AsyncAgentService) -> None:
            return None

        self.do(nothing, seconds)

    def skip(self, seconds: float) -> None:
        """So much time passes at once."""
        self.simulation.clock.advance(seconds)
        self.after(5)

    def wrong(self, act: Act | None = None, by: float = YEARS) -> None:
        """The clock is wrong for four seconds, in which something is done."""
        self.simulation.clock.jump(by)
        self.after(2)
        if act is not None:
            self.do(act)
        self.after(2)
        self.simulation.clock.jump(-by)

    def count(self, text: str) -> int:
        return [said for _, said in self.heard].count(text)


@pytest.fixture
def there(tmp_path: Path) -> World:
    there = World(tmp_path)
    there.do(lambda service: service.agents.create("ann", "d", profile="notes", retry_delay=1.0))
    return there


def test_an_interval_begun_within_the_hour_to_come_counts_from_the_present_too(there: World) -> None:
    there.do(lambda service: service.schedules.create("ann", "d", "tick", every=MINUTE))
    there.simulation.clock.jump(7_000)
    there.after(2 * MINUTE)
    there.heard.clear()
    there.simulation.clock.jump(-9_000)  # half an hour before it was made
    there.after(10 * MINUTE + 5)
    assert 9 <= there.count("tick") <= 11


@pytest.mark.parametrize(
    ("how", "ticks"),
    [({"every": MINUTE}, 20), ({"cron": "* * * * *"}, 20), ({"cron": "*/5 * * * *", "zone": "Asia/Tokyo"}, 4)],
)
@pytest.mark.parametrize("restart", [False, True])
def test_schedules_count_from_the_present_again(
    there: World, how: dict[str, Any], ticks: int, restart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    there.do(lambda service: service.schedules.create("ann", "d", "tick", missed="all", overlap="queue_all", **how))
    there.after(10 * MINUTE)
    before = there.count("tick")
    there.wrong()
    if restart:  # before the clock was looked at again
        there.simulation.crash()
        there.start()
    there.after(MINUTE)
    burst = there.count("tick")
    assert burst <= before + 1_005  # what the policy makes up for, and no more
    there.after(20 * MINUTE)
    assert there.count("tick") - burst == ticks
    assert "clock was wrong" in caplog.text
    [schedule] = there.do(lambda service: service.schedules.list("ann"))
    assert schedule.next.timestamp() - there.simulation.clock.now() <= 5 * MINUTE


def test_what_was_set_up_by_the_wrong_clock_counts_from_the_present(there: World) -> None:
    async def set_up(service: AsyncAgentService) -> None:
        await service.schedules.create("ann", "d", "every", every=MINUTE)
        await service.schedules.create("ann", "d", "cron", cron="* * * * *")

    there.wrong(set_up)
    there.after(10 * MINUTE)
    assert there.count("every") in (9, 10)
    assert there.count("cron") in (9, 10)


def test_a_time_that_has_been_does_not_come_again(there: World) -> None:
    tomorrow = there.simulation.clock.time.timestamp() + DAY

    async def once(service: AsyncAgentService) -> None:
        at = there.simulation.clock.time.fromtimestamp(tomorrow, there.simulation.clock.time.tzinfo)
        await service.schedules.create("ann", "d", "once", at=at)

    there.do(once)
    there.wrong()
    there.after(5)
    there.skip(2 * DAY)
    assert there.count("once") == 1


def test_an_agent_put_to_sleep_by_the_wrong_clock_sleeps_for_as_long_as_it_was_to(there: World) -> None:
    there.wrong(lambda service: service.agents.sleep("ann", "d", 10 * MINUTE, wake_on=roost.event("never")))
    there.do(lambda service: service.tasks.send("ann", "d", "awake"))
    there.after(8 * MINUTE)
    assert there.count("awake") == 0
    there.after(3 * MINUTE)
    assert there.count("awake") == 1


def test_one_that_sleeps_until_a_far_time_sleeps_on(there: World) -> None:
    until = there.simulation.clock.now() + 2 * YEARS
    there.do(lambda service: service.agents.sleep("ann", "d", until=until, wake_on=roost.event("never")))
    there.wrong()
    there.after(MINUTE)
    agent = there.do(lambda service: service.agents.get("ann", "d"))
    assert (agent.state, agent.sleep_until.timestamp()) == ("sleeping", until)


def test_mail_is_looked_at_after_its_interval(there: World) -> None:
    there.do(
        lambda service: service.agents.configure("ann", "d", check_mail_interval=MINUTE, wake_on_priority="urgent")
    )
    there.wrong(lambda service: service.mail.send("ann", "agent:d", "hello", "from the future"))
    there.after(3 * MINUTE)
    assert there.count("from the future") == 1


def test_what_failed_is_tried_again(there: World) -> None:
    """Also if the agent came to rest before its next try."""
    there.fails.append("twice")
    there.do(lambda service: service.agents.configure("ann", "d", retry_delay=5.0, idle_timeout=1.0))
    there.wrong(lambda service: service.tasks.send("ann", "d", "twice"))
    there.simulation.crash()
    there.start()
    there.after(MINUTE)
    assert there.count("twice") == 1


def test_nothing_is_removed_for_its_age_by_a_clock_that_was_wrong_for_a_while(there: World) -> None:
    there.do(lambda service: service.tasks.send("ann", "d", "kept"), MINUTE)
    there.skip(DAY)
    there.simulation.clock.jump(YEARS)
    there.skip(1.2 * 3_600)  # a sweep would have come
    there.simulation.clock.jump(-YEARS)
    there.skip(3 * 3_600)
    assert len(there.do(lambda service: service.tasks.list("ann"))) == 1


def test_a_clock_that_stays_ahead_is_believed(there: World) -> None:
    there.do(lambda service: service.tasks.send("ann", "d", "old"), MINUTE)
    there.simulation.clock.jump(YEARS)
    there.skip(1.2 * 3_600)
    assert len(there.do(lambda service: service.tasks.list("ann"))) == 1
    there.skip(1.2 * 3_600)
    assert there.do(lambda service: service.tasks.list("ann")) == []
