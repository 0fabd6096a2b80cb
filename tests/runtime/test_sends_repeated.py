"""A11: what a turn has sent before it was repeated is sent once, whatever else it tried to send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.conftest import World


def test_what_could_not_be_sent_takes_no_place_on_record(world: World) -> None:
    """A send that fails is one that was asked for: what comes after it is found again all the same."""
    told: list[str] = []

    async def sender(turn: Turn) -> AsyncIterator[str]:
        for to in ("user:bob", "user:ann", "agent:nobody"):
            try:
                await turn.mail(to, f"to {to}", "…")
            except roost.NotFound:
                told.append(to)
        await asyncio.sleep(0.3)  # long enough for it to leave
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
        await asyncio.sleep(0.3)
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
