"""Tools: which there are, which a turn may call, and each call from its arguments to its result."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roost.core import checks, patterns
from roost.core.approvals import Question
from roost.core.steps import Recorded, StepKind, StepOutcome, canonical, cut
from roost.errors import BrainFailed, Invalid, RoostError, ToolFailed, Unavailable
from roost.ports import Clock, Profile, Tool, ToolServer, Turn
from roost.ports.tools import STEP_KEY, as_text
from roost.runtime.doing import GivenUp, do_within
from roost.runtime.thinking import is_cancelled

if TYPE_CHECKING:
    from roost.runtime.asking import Asking
    from roost.runtime.journal import Journal
    from roost.runtime.shop import Shop
    from roost.runtime.thinking import Thinking

log = logging.getLogger("roost.tools")


AGAIN = 30.0
"""Seconds after which a server that could not be reached is asked again."""
OWN = frozenset(
    {"mail", "meeting", "send", "ask", "publish", "sleep", "wake", "schedule", "remember", "recall", "forget"}
)
"""How the names of Roost's own tools begin."""
LOOKS = frozenset({"mail.check", "meeting.view", "recall"})
"""Those of them that change nothing."""


class Toolbox:
    """All tools of a Roost, by name. Roost's own are made when an agent first wants any."""

    def __init__(
        self, given: Iterable[Tool] = (), own: Callable[[], Iterable[Tool]] = tuple, servers: Iterable[ToolServer] = (),
        clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self._given: dict[str, Tool] = {}
        self._clock = clock
        self._servers = {server.name: server for server in servers}
        self._served: dict[str, Sequence[Tool]] = {}
        self._lost: dict[str, float] = {}
        """When servers that could not be reached are asked again."""
        self._make_own = own
        for tool in given:
            if not isinstance(tool, Tool):
                raise Invalid(f"{tool!r:.80} is no tool: put @roost.tool above the function")
            if tool.name.partition(".")[0] in OWN:
                raise Invalid(f"the name {tool.name!r} is taken by Roost's own tools: give it another name")
            if tool.name in self._given:
                raise Invalid(f"there are two tools called {tool.name!r}: give one of them another name")
            tool.parameters  # noqa: B018 — what is wrong with it is told now
            self._given[tool.name] = tool

    @cached_property
    def _own(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._make_own()}

    def allowed(self, profile: Profile, is_agent: bool) -> tuple[Tool, ...]:
        """Those its profile names; if it names none, all there are. Roost's own are for agents."""
        every = {**self._given, **(self._own if is_agent else {})}
        if profile.tools is None:
            return tuple(every.values())
        for served in self._served.values():
            every |= {tool.name: tool for tool in served}
        return tuple(
            one for one in every.values() if any(patterns.matches(pattern, one.name) for pattern in profile.tools)
        )

    async def prepare(self, profile: Profile) -> None:
        """Connect the servers whose tools the profile names; one that cannot be reached is done without for a while."""
        for name, server in self._servers.items():
            if name in self._served or not any(_begins(pattern, name) for pattern in profile.tools or ()):
                continue
            now = 0.0 if self._clock is None else self._clock.monotonic()
            if now < self._lost.get(name, 0.0):
                continue
            try:
                self._served[name] = await server.tools()
            except Unavailable as error:
                self._lost[name] = now + AGAIN
                log.warning("%s: its tools are not there", error, extra={"server": name})

    @property
    def has_servers(self) -> bool:
        return bool(self._servers)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


def _begins(pattern: str, name: str) -> bool:
    """Whether tools of the server may be among those that the pattern stands for."""
    return patterns.matches(pattern.partition(".")[0], name)


class Calls:
    """The calls of tools in one turn; used on its loop."""

    def __init__(self, shop: Shop, thinking: Thinking, journal: Journal, asking: Asking) -> None:
        self._thinking = thinking
        self._journal = journal
        self.tools: Sequence[Tool] = shop.tools.allowed(thinking.turn.profile, thinking.turn.agent_id is not None)
        self._asking = asking
        self._named = {name: tool for tool in self.tools for name in (tool.wire_name, tool.name)}

    @property
    def _turn(self) -> Turn:
        return self._thinking.turn

    async def call(self, name: str | Tool, arguments: Mapping[str, Any]) -> str:
        tool = name if isinstance(name, Tool) else self._named.get(name)
        if tool is None:
            raise no_tool(name, self.tools)
        asked = self._journal.clean_json(as_asked(tool.name, arguments))
        checked = tool.arguments(arguments)
        key = self._journal.key(StepKind.TOOL, tool.name, asked)
        if tool.with_turn(self._turn, checked):
            return await self._with_the_turn(tool, checked, asked, key)
        return await self._recorded(tool, checked, asked, key)

    async def _with_the_turn(self, tool: Tool, checked: dict[str, Any], asked: str, key: str) -> str:
        """All it does is a part of the turn: it settles with it, and is done again when that is repeated."""
        try:
            text = await self._act(tool, checked, self._journal.step_key(key))
        except ToolFailed as error:
            await self._journal.note(tool.name, asked, str(error), StepOutcome.FAILED)
            raise
        await self._journal.note(tool.name, asked, text, StepOutcome.DONE)
        return text

    async def _recorded(self, tool: Tool, checked: dict[str, Any], asked: str, key: str) -> str:
        journal = self._journal
        there = journal.found(key)
        if there is not None and there.done:
            return _known(there)
        if there is not None:
            number = there.number
            known = await self._left_open(tool, there, checked, key, asked)
        elif tool.approval:
            number, known = await self._ask_first(tool, key, asked)
        else:
            begun = journal.begin(StepKind.TOOL, tool.name, key, asked, wait=not tool.repeatable)
            number, known = await begun, None
        return await self._do(tool, checked, number, key) if known is None else known

    async def _ask_first(self, tool: Tool, key: str, asked: str) -> tuple[int, str | None]:
        journal, number = self._journal, self._journal.next_number()
        question = self._asking.question(Question.CALL, tool.name, json.loads(asked), number)
        letter = await self._asking.letter(question)
        await journal.begin(
            StepKind.TOOL, tool.name, key, asked, number=number, outcome=StepOutcome.ASKED, asked=letter
        )  # fmt: skip
        return number, await self._asking.decided(question, is_new=True)

    async def _left_open(
        self, tool: Tool, there: Recorded, checked: dict[str, Any], key: str, asked: str
    ) -> str | None:  # fmt: skip
        """What came of a call that an earlier try has left open; None: it is to be done."""
        journal, number = self._journal, there.number
        if there.outcome == StepOutcome.ASKED and (question := await self._asking.known(number)) is not None:
            return await self._asking.decided(question, is_new=False)
        found, is_known = await self._look(tool, checked, key)
        if not is_known:
            question = self._asking.question(Question.UNKNOWN, tool.name, json.loads(asked), number)
            await journal.take_up(number, StepOutcome.ASKED, await self._asking.letter(question))
            return await self._asking.decided(question, is_new=True)
        await journal.take_up(number)
        if found is not None:
            await journal.end(number, StepOutcome.DONE, json.dumps(journal.clean(found)))
        return found

    async def _look(self, tool: Tool, checked: dict[str, Any], key: str) -> tuple[str | None, bool]:
        """What came of a call whose outcome is not on record, None if it was not done; and whether that is known."""
        if tool.check is None:
            return None, tool.repeatable
        takes = list(inspect.signature(tool.check).parameters)[1:]
        given = {name: value for name, value in checked.items() if name in takes}
        try:
            found = await self._do_within(tool, tool.check, (self._journal.step_key(key),), given)
        except Exception as error:
            log.warning("it could not be found out whether a tool has acted", exc_info=error, extra={"tool": tool.name})
            return None, False
        return None if found is None else cut(as_text(found, tool.name), tool.output), True

    async def _do(self, tool: Tool, checked: dict[str, Any], number: int, key: str) -> str:
        journal = self._journal
        try:
            text = await self._act(tool, checked, journal.step_key(key))
        except ToolFailed as error:
            await journal.end(number, StepOutcome.FAILED, json.dumps(journal.clean(str(error))))
            raise
        except asyncio.CancelledError:
            journal.cut_off(number, "it was stopped before it had ended: whether it has done anything is not known")
            raise
        await journal.end(number, StepOutcome.DONE, json.dumps(journal.clean(text)))
        return text

    async def _do_within(
        self, tool: Tool, act: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> Any:  # fmt: skip
        with self._thinking.acting():
            return await do_within(self._thinking, f"tool {tool.name}", tool.limit, act, args, options)

    async def _act(self, tool: Tool, checked: dict[str, Any], key: str) -> str:
        """Its result as text, within its limits; whatever goes wrong is a ToolFailed."""
        token = STEP_KEY.set(key)
        try:
            result = await self._do_within(tool, tool.function, (), tool.bound(checked, self._turn))
            return cut(checks.clean(as_text(result, tool.name)), tool.output)
        except asyncio.CancelledError as error:
            if not is_cancelled():
                raise ToolFailed(f"{tool.name} has failed: it was cancelled from within") from error
            if tool.is_blocking:
                self._thinking.leave_behind(f"tool {tool.name}")
            raise
        except (ToolFailed, GeneratorExit):
            raise
        except RoostError as error:
            raise ToolFailed(f"{tool.name}: {error}") from error
        except GivenUp as error:
            runs = "it may still be running, and " if error.runs or tool.is_blocking else ""
            raise ToolFailed(
                f"{tool.name} did not end within {tool.limit:g} seconds and was given up: {runs}whether it has done"
                " anything is not known"
            ) from error
        except BaseException as error:  # SystemExit too: what a tool raises ends the call, and nothing else
            log.warning(
                "a tool has failed", exc_info=error, extra={"tool": tool.name, "run": self._turn.run_id}
            )  # fmt: skip
            raise ToolFailed(checks.clean(f"{tool.name} has failed: {type(error).__name__}: {error}")) from error
        finally:
            STEP_KEY.reset(token)


def no_tool(name: object, tools: Sequence[Tool]) -> ToolFailed:
    known = ", ".join(one.name for one in tools) or "none"
    return ToolFailed(f"there is no tool {name!r:.80} here: those there are: {known}")


def as_asked(name: str, arguments: object) -> str:
    """The arguments of a call, as they go on record. ToolFailed: they are none."""
    if not isinstance(arguments, Mapping):
        raise ToolFailed(f"the arguments of {name} must be an object, not {type(arguments).__name__}")
    try:
        return canonical(dict(arguments), f"the arguments of {name}")
    except BrainFailed as error:
        raise ToolFailed(str(error)) from error


def _known(there: Recorded) -> str:
    """What is on record of a call."""
    said = str(json.loads(there.result or '""'))
    if there.outcome == StepOutcome.FAILED:
        raise ToolFailed(said)
    return said
