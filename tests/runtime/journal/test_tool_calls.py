"""B3: tools are called with arguments of their types, within their limits, once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from pydantic import Field

import roost
from roost import AsyncAgentService, Message, Tool, ToolFailed, Turn
from roost.ports import Profile
from roost.runtime.toolbox import Toolbox
from tests.runtime.conftest import World, ended, until

FAST: dict[str, Any] = {"retry_delay": 0.05, "idle_timeout": 0.5}


@roost.tool
async def price(sku: str, count: Annotated[int, Field(ge=1)] = 1) -> float:
    """Price of this quantity."""
    return 2.5 * count if sku == "egg" else 99.0


@roost.tool(name="shop.stock", output=10)
def stock(sku: str) -> list[str]:
    """Return the stock."""
    return [sku] * 3


def caller(name: str, arguments: Any) -> roost.Brain:
    async def calls(turn: Turn) -> AsyncIterator[str]:
        try:
            yield await turn.call_tool(name, arguments)
        except ToolFailed as error:
            yield f"failed: {error}"

    return calls


async def one_turn(service: AsyncAgentService) -> str:
    talk = await service.create_talk_session("ann", profile="calls")
    await service.add_message("ann", talk, "go")
    return (await ended(service, talk))[-1].content


def test_a_schema_is_made_from_the_types_and_the_docstring() -> None:
    assert (price.name, price.description) == ("price", "Price of this quantity.")
    assert price.parameters == {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "default": 1, "minimum": 1}},
        "required": ["sku"],
        "additionalProperties": False,
    }
    assert stock.wire_name == "shop__stock"


def test_a_tool_is_still_a_function() -> None:
    assert stock("egg") == ["egg"] * 3


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("price", {"sku": "egg", "count": 2}, "5.0"),
        ("shop.stock", {"sku": "e"}, '["e", "e",\n[… cut here: 15 characters in all, of which 10 are given]'),
        ("shop__stock", {"sku": ""}, '["", "", "\n[… cut here: 12 characters in all, of which 10 are given]'),
        ("prize", {}, "failed: there is no tool 'prize': the available tools are price, shop.stock"),
        ("price", {"count": "many"}, "failed: the arguments of price are wrong: sku: Field required; count: Input"),
        ("price", {"sku": "egg", "colour": "red"}, "failed: the arguments of price are wrong: colour: Extra inputs"),
        ("price", {"sku": "egg", "count": 0}, "failed: the arguments of price are wrong: count: Input should be"),
        ("price", ["egg"], "failed: the arguments of price must be an object, not list"),
    ],
)
def test_a_call_gives_a_text_or_says_what_is_wrong(tmp_path: Any, name: str, arguments: Any, answer: str) -> None:
    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"calls": caller(name, arguments)}, tools=[price, stock]) as s:
        talk = s.create_talk_session("ann", profile="calls")
        s.add_message("ann", talk, "go")
        for _ in s.stream_messages("ann", talk):
            pass
        assert s.get_messages("ann", talk).messages[-1].content.startswith(answer)


def test_a_tool_that_fails_or_takes_too_long_is_an_error_for_the_model(world: World) -> None:
    @roost.tool
    async def breaks(what: str) -> str:
        raise ValueError(f"no {what}")

    @roost.tool(limit=0.05)
    async def dawdles() -> str:
        await asyncio.sleep(30)
        return "late"

    async def calls(turn: Turn) -> AsyncIterator[str]:
        for name, arguments in (("breaks", {"what": "way"}), ("dawdles", {})):
            try:
                await turn.call_tool(name, arguments)
            except ToolFailed as error:
                yield f"{error}. "

    assert world({"calls": calls}, one_turn, tools=[breaks, dawdles]) == (
        "breaks has failed: ValueError: no way. dawdles did not end within 0.05 seconds and was abandoned: its effects"
        " are unknown. "
    )


def test_calls_may_run_side_by_side_and_each_has_a_key_of_its_own(world: World) -> None:
    keys: list[str] = []

    @roost.tool
    async def note(turn: Turn, word: str) -> str:
        await asyncio.sleep(0.01)
        keys.append(turn.step_key)
        return word.upper()

    async def calls(turn: Turn) -> AsyncIterator[str]:
        yield " ".join(await asyncio.gather(*(turn.call_tool("note", {"word": w}) for w in ("a", "b", "a"))))

    assert world({"calls": calls}, one_turn, tools=[note]) == "A B A"
    assert len(set(keys)) == 3
    assert all(key.startswith("key_") for key in keys)


def test_what_is_stopped_in_the_middle_of_a_tool_is_cancelled_and_stated(world: World) -> None:
    begun: list[str] = []
    cancelled: list[str] = []

    @roost.tool
    async def waits() -> str:
        begun.append("waits")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append("waits")
            raise
        return ""

    async def calls(turn: Turn) -> AsyncIterator[str]:
        yield "well "
        await turn.call_tool("waits", {})

    async def story(service: AsyncAgentService) -> list[Message]:
        talk = await service.create_talk_session("ann", profile="calls")
        await service.add_message("ann", talk, "go")
        await until(lambda: begun)
        receipt = await service.stop("ann", talk, wait=5)
        assert receipt.quiesced
        return await ended(service, talk)

    assert [str(m.status) for m in world({"calls": calls}, story, tools=[waits])] == ["complete", "interrupted"]
    assert cancelled == ["waits"]


def test_a_blocking_tool_that_cannot_be_stopped_is_abandoned_and_named(tmp_path: Any) -> None:
    begun, go = threading.Event(), threading.Event()

    @roost.tool
    def blocks() -> str:
        begun.set()
        go.wait(10)
        return "too late"

    async def calls(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("blocks", {})

    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"calls": calls}, tools=[blocks]) as service:
        talk = service.create_talk_session("ann", profile="calls")
        service.add_message("ann", talk, "go")
        assert begun.wait(10)
        receipt = service.stop("ann", talk, wait=10)
        assert receipt.abandoned == ("tool blocks",)
        go.set()
        asked, stopped = service.get_messages("ann", talk).messages
        assert (asked.content, stopped.content, stopped.status) == ("go", "", "interrupted")


def stubborn(heard: list[str], limit: float) -> roost.Tool:
    """A tool that ignores cancellation and never ends by itself."""

    @roost.tool(limit=limit)
    async def digs() -> str:
        heard.append("begun")
        while "enough" not in heard:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                heard.append("cancelled")
        heard.append("ended")
        return "too late"

    return digs


def test_a_tool_that_ignores_its_limit_is_abandoned_and_the_turn_continues(world: World) -> None:
    heard: list[str] = []

    async def calls(turn: Turn) -> AsyncIterator[str]:
        try:
            await turn.call_tool("digs", {})
        except ToolFailed as error:
            yield str(error)

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d", profile="calls", idle_timeout=0.01)
        done = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert "cancelled" in heard
        assert "ended" not in heard
        [run] = await service.runs.list("ann")
        assert [(one.name, one.outcome) for one in (await service.runs.get("ann", run.run_id)).steps] == [
            ("digs", "failed")
        ]
        heard.append("enough")
        await until(lambda: "ended" in heard)
        return done.result

    assert world({"calls": calls}, story, tools=[stubborn(heard, 0.05)]) == (
        "digs did not end within 0.05 seconds and was abandoned: it may still be running, and its effects are unknown"
    )


def test_a_tool_that_ignores_a_stop_is_named_and_the_talk_continues(world: World) -> None:
    heard: list[str] = []

    async def calls(turn: Turn) -> AsyncIterator[str]:
        yield "well"
        if turn.text == "go":
            await turn.call_tool("digs", {})

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="calls")
        await service.add_message("ann", talk, "go")
        await until(lambda: "begun" in heard)
        receipt = await service.stop("ann", talk, wait=5)
        assert receipt.quiesced
        assert receipt.abandoned == ("tool digs",)
        await service.add_message("ann", talk, "on")
        assert (await ended(service, talk))[-1].content == "well"
        heard.append("enough")

    world({"calls": calls}, story, tools=[stubborn(heard, 60)])


def test_a_tool_that_heeds_neither_its_limit_nor_a_stop_is_named_once(simulated: World) -> None:
    heard: list[str] = []

    async def calls(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("digs", {})

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="calls")
        await service.add_message("ann", talk, "go")
        await until(lambda: "cancelled" in heard)
        assert (await service.stop("ann", talk, wait=5)).abandoned == ("tool digs",)
        heard.append("enough")

    simulated({"calls": calls}, story, tools=[stubborn(heard, 0.05)])


def test_a_profile_allows_what_it_names() -> None:
    box = Toolbox([price, stock])
    names = {
        allowed: [one.name for one in box.allowed(Profile("p", "b", tools=allowed), False)]
        for allowed in (None, (), ("price",), ("shop.*",), ("*",), ("pri*",), ("mail.*",))
    }
    assert names == {
        None: ["price", "shop.stock"],
        (): [],
        ("price",): ["price"],
        ("shop.*",): ["shop.stock"],
        ("*",): ["price", "shop.stock"],
        ("pri*",): ["price"],
        ("mail.*",): [],
    }


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda: roost.tool(lambda x: x), "the tool name '<lambda>' is invalid"),
        (lambda: roost.tool(name="a b")(price.function), "the tool name 'a b' is invalid"),
        (lambda: roost.tool(limit=0)(price.function), "the limit of the tool 'price' must be a number above 0"),
        (lambda: roost.tool(3), "a tool must be a function, not int"),  # type: ignore[call-overload]
        (lambda: Toolbox([price, price]), "there are two tools called 'price'"),
        (lambda: Toolbox([print]), "is not a tool: put @roost.tool above the function"),  # type: ignore[list-item]
        (lambda: Toolbox([roost.tool(_untyped)]), "the argument 'x' of the tool '_untyped' has no type"),
        (lambda: Toolbox([roost.tool(_unbounded)]), "each argument must have a name"),
        (lambda: Toolbox([roost.tool(_foreign)]), "have no schema"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_reason(made: Any, problem: str) -> None:
    with pytest.raises(roost.Invalid, match=problem.replace("(", r"\(")):
        made()


def _untyped(x) -> str:  # type: ignore[no-untyped-def]
    return str(x)


def _unbounded(*words: str) -> str:
    return " ".join(words)


def _foreign(x: threading.Event) -> str:
    return str(x)


def test_a_turn_made_by_hand_has_no_tools() -> None:
    turn = Turn("talk", "hi", (), (), Profile("p", "b"), "ann", "talk_1", "run_1")
    assert turn.tools == ()
    assert isinstance(price, Tool)
    with pytest.raises(roost.Invalid, match="not created by Roost"):
        asyncio.run(turn.call_tool("price", {}))


class OddError(BaseException):
    """Error that few expect."""


def test_whatever_a_tool_raises_ends_the_call_and_nothing_else(world: World) -> None:
    @roost.tool
    async def leaves() -> str:
        raise SystemExit(3)

    @roost.tool
    def oddly() -> str:
        raise OddError

    @roost.tool
    async def cancelled() -> str:
        raise asyncio.CancelledError

    async def calls(turn: Turn) -> AsyncIterator[str]:
        for name in ("leaves", "oddly", "cancelled"):
            try:
                await turn.call_tool(name, {})
            except ToolFailed as error:
                yield f"{error}. "

    assert world({"calls": calls}, one_turn, tools=[leaves, oddly, cancelled]) == (
        "leaves has failed: SystemExit: 3. oddly: it raised OddError. cancelled has failed: it cancelled itself. "
    )


def test_halves_of_surrogate_pairs_hold_nothing_up_and_are_replayed(world: World) -> None:
    @roost.tool
    async def same(what: Any) -> Any:
        return what

    async def calls(turn: Turn) -> AsyncIterator[str]:
        async with turn.model_call("m", {"q": "\ud800"}) as call:
            if call.recorded is None:
                call.response = {"a": "\udfff"}
        yield await turn.call_tool("same", {"what": {"\ud800": "a\0"}})
        wrong: list[tuple[str, Any]] = [("nothing", {}), ("same", [])]
        for name, arguments in wrong:
            try:
                await turn.call_tool(name, arguments)
            except ToolFailed as error:
                yield f" {error}"

    async def story(service: AsyncAgentService) -> None:
        text = await one_turn(service)
        assert text.startswith('{"\ufffd": "a\\u0000"} there is no tool')
        [run] = await service.runs.list("ann")
        str((await service.runs.get("ann", run.run_id)).steps[1].result).encode()  # fit to be sent
        replay = await service.runs.replay("ann", run.run_id)
        assert (replay.diff, replay.text) == ("", text)

    world({"calls": calls}, story, tools=[same])
