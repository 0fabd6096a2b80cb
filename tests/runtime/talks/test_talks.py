"""Turns of a talk, on real threads and in the simulation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from roost import AsyncAgentService, Busy, Limits, Message, NotFound, Turn
from tests.runtime.conftest import QUICK, World, ended, said, short, slow, until

pytestmark = pytest.mark.order


async def parrot(turn: Turn) -> AsyncIterator[str]:
    for word in turn.text.split():
        yield word + " "


def test_a_message_is_answered(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="parrot")
        await service.add_message("ann", talk, "hello there")
        return short(await ended(service, talk))

    assert world({"parrot": parrot}, scenario) == [
        ("user", "hello there", "complete"),
        ("agent", "hello there ", "complete"),
    ]


def test_a_new_message_interrupts_and_keeps_what_was_said(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="slow")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        await service.add_message("ann", talk, "second")
        return short(await ended(service, talk))

    assert world({"slow": slow}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("user", "second", "complete"),
        ("agent", "answer to second", "complete"),
    ]


def test_a_message_that_interrupts_before_the_first_word_is_answered_together_with_the_first(world: World) -> None:
    async def mute(turn: Turn) -> AsyncIterator[str]:
        if len(turn.messages) == 1 and turn.text == "first":
            await asyncio.sleep(30)
        yield f"answer to {[m.content for m in turn.messages]}"

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="mute")
        await service.add_message("ann", talk, "first")
        await service.add_message("ann", talk, "second")
        return short(await ended(service, talk))

    assert world({"mute": mute}, scenario) == [
        ("user", "first", "complete"),
        ("user", "second", "complete"),
        ("agent", "answer to ['first', 'second']", "complete"),
    ]


def test_rollback_withdraws_what_was_said_and_keeps_its_number(world: World) -> None:
    seen: list[str] = []

    async def watching(turn: Turn) -> AsyncIterator[str]:
        seen.extend(m.content for m in turn.history)
        async for chunk in slow(turn):
            yield chunk

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="watching", busy="rollback")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        await service.add_message("ann", talk, "second")
        return short(await ended(service, talk))

    assert world({"watching": watching}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "", "withdrawn"),
        ("user", "second", "complete"),
        ("agent", "answer to second", "complete"),
    ]
    assert "part1" not in seen


def test_queue_lets_the_run_end_first(world: World) -> None:
    sent: list[str] = []

    async def counting(turn: Turn) -> AsyncIterator[str]:
        yield "a"
        await until(lambda: "third" in sent)
        yield f"b{len(turn.messages)}"

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="counting", busy="queue")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "a")
        for text in ("second", "third"):
            await service.add_message("ann", talk, text)
            sent.append(text)
        return short(await ended(service, talk))

    assert world({"counting": counting}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "ab1", "complete"),
        ("user", "second", "complete"),
        ("user", "third", "complete"),
        ("agent", "ab2", "complete"),
    ]


def test_reject_refuses_while_an_answer_is_being_written(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="slow", busy="reject")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        with pytest.raises(Busy, match="still answering"):
            await service.add_message("ann", talk, "second")
        await service.stop("ann", talk, wait=5)
        return short(await ended(service, talk))

    assert world({"slow": slow}, scenario) == [("user", "first", "complete"), ("agent", "part1", "interrupted")]


def test_steer_hands_the_message_to_the_running_brain(world: World) -> None:
    async def steerable(turn: Turn) -> AsyncIterator[str]:
        yield "one"
        taken = turn.steered()
        for _ in range(500):  # each time round stands for a model call
            if taken:
                break
            await asyncio.sleep(0.01)
            taken = turn.steered()
        yield f"now about {taken[0].content}"

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="steerable", busy="steer")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "one")
        await service.add_message("ann", talk, "dogs")
        return short(await ended(service, talk))

    assert world({"steerable": steerable}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "one", "complete"),
        ("user", "dogs", "complete"),
        ("agent", "now about dogs", "complete"),
    ]


def test_a_steering_message_that_the_brain_does_not_take_is_answered_by_the_next_run(world: World) -> None:
    sent: list[str] = []

    async def deaf(turn: Turn) -> AsyncIterator[str]:
        yield "one"
        await until(lambda: sent)
        yield f" {turn.text}"

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="deaf", busy="steer")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "one")
        await service.add_message("ann", talk, "second")
        sent.append("second")
        return short(await ended(service, talk))

    assert world({"deaf": deaf}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "one first", "complete"),
        ("user", "second", "complete"),
        ("agent", "one second", "complete"),
    ]


def test_collect_waits_for_quiet_and_answers_all_at_once(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="parrot", busy="collect")
        await asyncio.gather(*(service.add_message("ann", talk, word) for word in ("a", "b", "c")))
        return short(await ended(service, talk))

    limits = replace(QUICK, collect_quiet=1.5)  # longer than the three commits take on a busy machine
    assert world({"parrot": parrot}, scenario, limits)[3:] == [("agent", "a b c ", "complete")]


def test_stop_drops_the_run_and_what_waits(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="slow", busy="queue")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        await service.add_message("ann", talk, "second")
        receipt = await service.stop("ann", talk, wait=5)
        assert receipt.acknowledged is not None
        assert receipt.quiesced is not None
        assert receipt.requested <= receipt.acknowledged <= receipt.quiesced
        assert not (await service.get_messages("ann", talk)).running
        await service.add_message("ann", talk, "third")
        return short(await ended(service, talk))

    assert world({"slow": slow}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("user", "second", "complete"),
        ("user", "third", "complete"),
        ("agent", "answer to third", "complete"),
    ]


def test_a_brain_that_swallows_cancellation_is_abandoned_and_fenced(world: World) -> None:
    async def stubborn(turn: Turn) -> AsyncIterator[str]:
        if turn.text != "first":
            yield "fine"
            return
        yield "part1"
        for _ in range(100):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                yield "part2"

    async def scenario(service: AsyncAgentService) -> tuple[tuple[str, ...], list[tuple[str, str, str]]]:
        talk = await service.create_talk_session("ann", profile="stubborn")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        receipt = await service.stop("ann", talk, wait=5)
        await service.add_message("ann", talk, "second")
        return receipt.abandoned, short(await ended(service, talk))

    abandoned, messages = world({"stubborn": stubborn}, scenario)
    assert messages == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("user", "second", "complete"),
        ("agent", "fine", "complete"),
    ]
    assert abandoned in ((), ("brain stubborn",))


def test_a_failure_keeps_the_partial_answer_and_the_next_message_works(world: World) -> None:
    async def failing(turn: Turn) -> AsyncIterator[str]:
        yield "so far"
        if turn.text == "first":
            await asyncio.sleep(0.01)
            raise RuntimeError("secret internals")

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="failing")
        await service.add_message("ann", talk, "first")
        failed = (await ended(service, talk))[-1]
        assert failed.error is not None
        assert "secret" not in failed.error
        assert "try again" in failed.error
        await service.add_message("ann", talk, "second")
        return short(await ended(service, talk))

    assert world({"failing": failing}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "so far", "failed"),
        ("user", "second", "complete"),
        ("agent", "so far", "complete"),
    ]


def test_a_blocking_brain_runs_and_sees_the_history(world: World) -> None:
    def blocking(turn: Turn) -> Iterator[str]:
        yield f"{len(turn.history)} before, "
        yield turn.text

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="blocking")
        for word in ("x", "y"):
            await service.add_message("ann", talk, word)
            await ended(service, talk)
        return short(await ended(service, talk))

    answers = [content for sender, content, _ in world({"blocking": blocking}, scenario) if sender == "agent"]
    assert answers == ["0 before, x", "2 before, y"]


def test_state_is_kept_with_the_talk_over_a_restart(world: World) -> None:
    async def counter(turn: Turn) -> AsyncIterator[str]:
        turn.state["seen"] = turn.state.get("seen", 0) + 1
        yield str(turn.state["seen"])

    async def begin(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="counter")
        await service.add_message("ann", talk, "x")
        await ended(service, talk)
        return talk

    async def go_on(service: AsyncAgentService) -> str:
        await service.add_message("ann", talk, "y")
        return (await ended(service, talk))[-1].content

    talk = world({"counter": counter}, begin)
    assert world({"counter": counter}, go_on) == "2"


def test_an_answer_interrupted_by_closing_is_kept_and_resumed_at_the_next_start(world: World) -> None:
    async def begin(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="slow")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        return talk

    async def quick(turn: Turn) -> AsyncIterator[str]:
        yield "whole"

    async def go_on(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        return short(await ended(service, talk))

    talk = world({"slow": slow}, begin)
    assert world({"slow": quick}, go_on) == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("agent", "whole", "complete"),
    ]


def test_a_deleted_talk_is_gone_for_readers_and_writers(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="slow")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        await service.delete("ann", talk)
        with pytest.raises(NotFound):
            await service.get_messages("ann", talk)
        with pytest.raises(NotFound):
            await service.add_message("ann", talk, "second")
        assert await service.list_sessions("ann") == []

    world({"slow": slow}, scenario)


def test_a_crashed_worker_is_replaced_and_its_talk_is_answered(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="once")
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        for worker in list(service.roost.placement.workers):
            worker.loop.call(_die)
        return short(await ended(service, talk))

    tries: list[int] = []

    async def once(turn: Turn) -> AsyncIterator[str]:
        tries.append(1)
        yield "part1"
        await asyncio.sleep(30 if len(tries) == 1 else 0)
        yield "part2"

    assert world({"once": once}, scenario) == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("agent", "part1part2", "complete"),
    ]


def test_a_turn_that_loses_its_worker_three_times_is_reported_failed(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> tuple[int, str | None]:
        talk = await service.create_talk_session("ann", profile="deadly")
        await service.add_message("ann", talk, "first")
        last = (await ended(service, talk))[-1]
        assert last.status == "failed"
        return len(tries), last.error

    tries: list[int] = []
    services: list[AsyncAgentService] = []

    async def deadly(turn: Turn) -> AsyncIterator[str]:
        tries.append(1)
        yield "x"
        for worker in services[0].roost.placement.workers:
            worker.loop.call(_die)
        await asyncio.sleep(30)

    async def with_service(service: AsyncAgentService) -> tuple[int, str | None]:
        services.append(service)
        return await scenario(service)

    count, error = world({"deadly": deadly}, with_service, Limits(drain=0.3, stop_patience=0.15, crashes=50))
    assert count == QUICK.attempts
    assert error is not None
    assert "several times" in error


def _die() -> None:
    raise SystemExit("the worker dies")


@pytest.mark.parametrize("kept", [object(), float("nan"), "x" * 2_000_000], ids=["object", "nan", "long"])
def test_a_state_that_cannot_be_kept_fails_its_turn_and_not_the_talk(world: World, kept: object) -> None:
    async def keeps(turn: Turn) -> AsyncIterator[str]:
        turn.state["kept"] = kept if turn.text == "bad" else turn.text
        yield f"had {len(turn.state)}"

    async def scenario(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        talk = await service.create_talk_session("ann", profile="keeps")
        messages: list[Message] = []
        for text in ("bad", "good"):
            await service.add_message("ann", talk, text)
            messages = await ended(service, talk)
        assert "cannot be stored" in str(messages[1].error)
        return short(messages)[2:]

    assert world({"keeps": keeps}, scenario) == [("user", "good", "complete"), ("agent", "had 1", "complete")]


def test_an_answer_that_never_ends_is_cut_off_and_kept_as_far_as_it_may_go(simulated: World) -> None:
    async def endless(turn: Turn) -> AsyncIterator[str]:
        while turn.text != "short":
            yield "and so on, " * 10
            await asyncio.sleep(0.01)
        yield "short"

    async def scenario(service: AsyncAgentService) -> tuple[list[Message], str]:
        talk = await service.create_talk_session("ann", profile="endless")
        await service.add_message("ann", talk, "talk")
        answers = [(await ended(service, talk))[-1]]
        await service.add_message("ann", talk, "short")
        answers.append((await ended(service, talk))[-1])
        await service.agents.create("ann", "d", profile="endless", max_attempts=1)
        task = await service.tasks.send("ann", "d", "talk")
        return answers, (await service.tasks.wait("ann", task, timeout=60)).status

    (long, brief), task = simulated({"endless": endless}, scenario, replace(QUICK, answer_chars=1_000))
    assert (long.status, long.content) == ("failed", ("and so on, " * 90))
    assert "ask for something shorter" in (long.error or "")
    assert (brief.status, brief.content, task) == ("complete", "short", "failed")
