"""A11: if it is not known whether a `turn.step` was done, a function or a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Crash, Simulation
from tests.runtime.conftest import QUICK, becomes, until


class Bills:
    """Pays in two steps; the program is killed in the middle of the second."""

    def __init__(self, check: Callable[[str], Any] | None = None) -> None:
        self.paid: list[str] = []
        self._check = check

    async def pay(self, what: str) -> dict[str, str]:
        self.paid.append(what)
        if self.paid == ["rent", "power"]:
            await asyncio.sleep(3_600)
        return {"paid": what}

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        for what in ("rent", "power"):
            found = await turn.step(what, self.pay, what, check=self._check)
            yield f"{found['paid']} " if found else "nothing "

    def crashed(self, folder: Path, *, talk: bool = False) -> tuple[Simulation, AsyncAgentService, str]:
        """The program as it is started again, and the task or the talk."""

        async def first(service: AsyncAgentService) -> None:
            if talk:
                await service.add_message("ann", await service.create_talk_session("ann"), "go")
            else:
                await service.agents.create("ann", "d", max_attempts=2, retry_delay=0.01)
                await service.tasks.send("ann", "d", "go")
            await until(lambda: len(self.paid) == 2)
            raise Crash

        simulation = Simulation(folder, seed=7)
        with pytest.raises(Crash):
            simulation.run(first(simulation.start({"bills": self}, QUICK)))
        service = simulation.start({"bills": self}, QUICK)
        if talk:
            return simulation, service, simulation.run(service.list_sessions("ann"))[0].talk_session_id
        return simulation, service, simulation.run(service.tasks.list("ann"))[0].task_id


async def asked(service: AsyncAgentService) -> roost.Approval:
    [one] = await becomes(lambda: service.approvals.list("ann"), bool)
    assert (one.kind, one.tool) == ("step", "power")
    return one


def test_a_person_says_that_a_step_of_an_agent_was_done_and_with_what_result(tmp_path: Path) -> None:
    bills = Bills()
    simulation, service, task = bills.crashed(tmp_path)

    async def story() -> roost.Task:
        one = await asked(service)
        for wrong in ("by hand", "", "NaN", "{"):
            with pytest.raises(roost.Invalid, match="the result of a step must be JSON"):
                await service.approvals.answer("ann", one.approval_id, wrong)
        await service.approvals.answer("ann", one.approval_id, '{"paid": "by hand"}')
        done = await service.tasks.wait("ann", task)
        [mail] = await service.mail.inbox("ann")
        assert mail.subject == "Was power done?"
        assert f"roost approvals answer {one.approval_id} JSON" in mail.body
        assert await service.dead_letters.list("ann") == []
        return done

    done = simulation.run(story())
    assert (done.status, done.result, bills.paid) == ("done", "rent by hand ", ["rent", "power"])


def test_a_result_may_be_null_also_in_a_talk(tmp_path: Path) -> None:
    bills = Bills()
    simulation, service, talk = bills.crashed(tmp_path, talk=True)

    async def story() -> str:
        await service.approvals.answer("ann", (await asked(service)).approval_id, "null")
        pages = await becomes(lambda: service.get_messages("ann", talk), lambda page: not page.running)
        return pages.messages[-1].content

    assert (simulation.run(story()), bills.paid) == ("rent nothing ", ["rent", "power"])


def test_a_person_has_it_done_again(tmp_path: Path) -> None:
    bills = Bills()
    simulation, service, task = bills.crashed(tmp_path)

    async def story() -> str | None:
        await service.approvals.approve("ann", (await asked(service)).approval_id)
        return (await service.tasks.wait("ann", task)).result

    assert (simulation.run(story()), bills.paid) == ("rent power ", ["rent", "power", "power"])


def test_a_person_gives_up_and_may_change_their_mind(tmp_path: Path) -> None:
    bills = Bills()
    simulation, service, task = bills.crashed(tmp_path)

    async def story() -> tuple[str, str, str | None]:
        await service.approvals.decline("ann", (await asked(service)).approval_id, reason="who knows")
        failed = await service.tasks.wait("ann", task)
        [letter] = await service.dead_letters.list("ann")
        assert bills.paid == ["rent", "power"], "it is not tried again"
        await service.dead_letters.retry("ann", letter.letter_id)
        return failed.status, letter.fault, (await service.tasks.wait("ann", task)).result

    assert simulation.run(story()) == ("failed", "unknown_step", "rent power ")
    assert bills.paid == ["rent", "power", "power"]


@pytest.mark.parametrize(("found", "result", "times"), [({"paid": "seen"}, "rent seen ", 2), (None, "rent power ", 3)])
def test_a_check_function_finds_a_step_by_its_key(tmp_path: Path, found: Any, result: str, times: int) -> None:
    keys: list[str] = []

    def check(key: str) -> Any:
        keys.append(key)
        return found

    bills = Bills(check)
    simulation, service, task = bills.crashed(tmp_path)
    done = simulation.run(service.tasks.wait("ann", task))
    assert (done.result, len(bills.paid)) == (result, times)
    assert [key[:4] for key in keys] == ["key_"]
    assert simulation.run(service.approvals.list("ann", all=True)) == []


def test_a_person_is_asked_if_that_cannot_be_found_out(tmp_path: Path) -> None:
    def check(key: str) -> Any:
        raise OSError("nobody there")

    bills = Bills(check)
    simulation, service, task = bills.crashed(tmp_path)

    async def story() -> str | None:
        await service.approvals.approve("ann", (await asked(service)).approval_id)
        return (await service.tasks.wait("ann", task)).result

    assert simulation.run(story()) == "rent power "


def test_a_person_is_asked_of_a_tool_that_cannot_find_it_out_and_of_one_that_says_nothing(tmp_path: Path) -> None:
    def check(key: str) -> Any:
        raise OSError("nobody there")

    acted: list[str] = []

    async def act(name: str) -> str:
        acted.append(name)
        if 1 < len(acted) <= 3:
            await asyncio.sleep(3_600)
        return "done"

    @roost.tool
    async def first() -> str:
        return await act("first")

    @roost.tool(check=check)
    async def checked() -> str:
        return await act("checked")

    @roost.tool
    async def plain() -> str:
        return await act("plain")

    async def thrice(turn: Turn) -> AsyncIterator[str]:
        yield f"{await turn.call_tool('first', {})}, "
        yield ", ".join(await asyncio.gather(turn.call_tool("checked", {}), turn.call_tool("plain", {})))

    async def begin(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d")
        await service.tasks.send("ann", "d", "go")
        await until(lambda: len(acted) == 3)
        raise Crash

    async def go_on(service: AsyncAgentService) -> str | None:
        two = await becomes(lambda: service.approvals.list("ann"), lambda found: len(found) == 2)
        assert {(one.tool, one.kind) for one in two} == {("checked", "unknown"), ("plain", "unknown")}
        assert len(acted) == 3, "nothing is done again before a person has said so"
        for one in two:
            if one.tool == "plain":
                await service.approvals.answer("ann", one.approval_id, "by hand")
            else:
                await service.approvals.approve("ann", one.approval_id)
        [task] = await service.tasks.list("ann")
        return (await service.tasks.wait("ann", task.task_id)).result

    simulation, tools = Simulation(tmp_path, seed=7), [first, checked, plain]
    with pytest.raises(Crash):
        simulation.run(begin(simulation.start({"thrice": thrice}, QUICK, tools)))
    assert simulation.run(go_on(simulation.start({"thrice": thrice}, QUICK, tools))) == "done, done, by hand"
    assert sorted(acted) == ["checked", "checked", "first", "plain"], "of the first it is on record what came of it"
    simulation.crash()
