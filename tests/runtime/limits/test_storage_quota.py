"""A user's storage is limited; other users are not affected, and deleted data is free again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import roost
from roost import AsyncAgentService
from roost.runtime.limits import storage_quota as quota
from tests.runtime.conftest import World

LIMITS = roost.Limits(drain=0.3, stop_patience=0.15, stored_mib_per_user=1.0)
LONG = "x" * 50_000
MIB = 2**20


@pytest.fixture(autouse=True)
def _sum_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "RECOUNT_INTERVAL", 0.0)


async def filled(store: Callable[[int], Awaitable[object]], size: int = len(LONG)) -> int:
    """Store until it is refused; return how many characters were taken."""
    for number in range(1_000):
        try:
            await store(number)
        except roost.LimitReached as refusal:
            assert "1.0 are allowed (stored_mib_per_user)" in str(refusal)  # noqa: PT017
            return number * size
    pytest.fail("nothing was refused")


def ways(service: AsyncAgentService, talk: str) -> dict[str, Callable[[int], Awaitable[object]]]:
    return {
        "messages": lambda n: service.add_message("ann", talk, LONG, busy="queue"),
        "mail": lambda n: service.mail.send("ann", "user:ann", "subject", LONG),
        "mail to an agent": lambda n: service.mail.send("ann", "agent:d", "subject", LONG),
        "tasks": lambda n: service.tasks.send("ann", "d", LONG),
        "schedules": lambda n: service.schedules.create("ann", "d", LONG, every=86_400),
        "events": lambda n: service.events.publish("ann", "ready", {"data": LONG}, optional=True),
        "memories": lambda n: service.agents.remember("ann", "d", LONG[:8_000] + str(n)),
    }


@pytest.mark.parametrize("way", ["messages", "mail", "mail to an agent", "tasks", "schedules", "events", "memories"])
def test_whatever_is_stored_counts_and_is_refused_beyond_the_quota(world: World, way: str) -> None:
    async def scenario(service: AsyncAgentService) -> int:
        await service.agents.create("ann", "d", start=False, inbox_limit=1_000)
        talk = await service.create_talk_session("ann", profile="echo", agent=None)
        return await filled(ways(service, talk)[way], 8_000 if way == "memories" else len(LONG))

    taken = world({}, scenario, LIMITS)
    assert MIB / 4 < taken <= MIB * 17 / 16  # an answer by echo counts as well


def test_what_is_deleted_is_free_again_and_others_are_not_bothered(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talks = [await service.create_talk_session("ann", profile="silent") for _ in range(2)]
        await filled(lambda _: service.add_message("ann", talks[0], LONG, busy="queue"))
        with pytest.raises(roost.LimitReached):
            await service.add_message("ann", talks[1], LONG)
        other = await service.create_talk_session("bob", profile="silent")
        await service.add_message("bob", other, LONG)
        await service.delete("ann", talks[0])
        await service.add_message("ann", talks[1], LONG)

    world({"silent": silent}, scenario, LIMITS)


async def silent(turn: roost.Turn) -> AsyncIterator[str]:
    if not turn.text:
        yield "nothing"


def test_a_store_that_is_full_already_is_noticed_after_a_restart(world: World) -> None:
    async def first(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="silent")
        await filled(lambda _: service.add_message("ann", talk, LONG, busy="queue"))
        return talk

    async def second(service: AsyncAgentService, talk: str) -> int:
        return await filled(lambda _: service.add_message("ann", talk, LONG, busy="queue"))

    talk = world({"silent": silent}, first, LIMITS)
    assert world({"silent": silent}, lambda service: second(service, talk), LIMITS) <= MIB / 16 + len(LONG)


def test_without_a_quota_nothing_is_summed_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = roost.Limits(drain=0.3, stop_patience=0.15, stored_mib_per_user=0)

    async def scenario(service: AsyncAgentService) -> int:
        talk = await service.create_talk_session("ann", profile="silent")
        for _ in range(30):
            await service.add_message("ann", talk, LONG, busy="queue")
        return len(service.roost.context.quota._accounts)

    assert world({"silent": silent}, scenario, limits) == 0
