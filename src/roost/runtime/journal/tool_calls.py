"""Tool calls of a turn, from the arguments to the result."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roost.core.failures.tracebacks import describe
from roost.core.journal.approvals import ApprovalRequest, Question
from roost.core.journal.steps import Recorded, StepKind, StepOutcome, canonical, cut
from roost.core.talks.side_channels import Channel, answered, called
from roost.core.values import checks
from roost.errors import BrainFailed, RoostError, ToolFailed
from roost.ports import Tool, Turn
from roost.ports.tools import STEP_KEY, as_text
from roost.runtime.execution.cancellation import is_cancelled
from roost.runtime.execution.function_calls import GivenUp, call_within

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.journal.approval_wait import ApprovalWait
    from roost.runtime.journal.journal import Journal

log = logging.getLogger("roost.tools")


class ToolCalls:
    """Tool calls of one turn. Used on its loop."""

    def __init__(
        self, context: RuntimeContext, execution: TurnExecution, journal: Journal, approvals: ApprovalWait
    ) -> None:
        self._execution = execution
        self._journal = journal
        self._toolbox = context.tools
        self.tools: Sequence[Tool] = context.tools.allowed(execution.turn.profile, execution.turn.agent_id is not None)
        self._approvals = approvals
        self._clock = context.host.clock
        self._spent: dict[str, float] = {}
        """Durations of calls by their keys."""
        self.seconds: dict[str, float] = {}
        """Durations of calls by the ids that the brain gave them."""
        self._noted = 0
        """Number of calls whose notes are written here, since the brain gave them no id."""
        self._named = {name: tool for tool in self.tools for name in (tool.wire_name, tool.name)}

    @property
    def _turn(self) -> Turn:
        return self._execution.turn

    async def call(self, name: str | Tool, arguments: Mapping[str, Any], call_id: str = "") -> str:
        tool = name if isinstance(name, Tool) else self._named.get(name)
        if tool is None:
            raise self._toolbox.missing(str(name)) or no_tool(name, self.tools)
        asked = self._journal.clean_json(arguments_json(tool.name, arguments))
        checked = tool.arguments(arguments)
        key = self._journal.key(StepKind.TOOL, tool.name, asked)
        self._journal.log_action(StepKind.TOOL, tool.name, asked)
        if call_id:
            return await self._call(tool, checked, asked, key, call_id)
        return await self._call_with_notes(tool, checked, asked, key)

    async def _call_with_notes(self, tool: Tool, checked: dict[str, Any], asked: str, key: str) -> str:
        """Call a tool and note the call and its result in the output, for a brain that does not do it itself."""
        self._noted += 1
        call_id = f"call {self._noted}"
        self._note(called(call_id, tool.name, json.loads(asked)))
        try:
            text = await self._call(tool, checked, asked, key, call_id)
        except ToolFailed as error:
            self._note(answered(call_id, str(error), ok=False, seconds=self.seconds.get(call_id)))
            raise
        self._note(answered(call_id, text, seconds=self.seconds.get(call_id)))
        return text

    def _note(self, line: str) -> None:
        self._execution.note(line, Channel.TOOLS)

    async def _call(self, tool: Tool, checked: dict[str, Any], asked: str, key: str, call_id: str) -> str:
        try:
            if tool.with_turn(self._turn, checked):
                return await self._call_with_turn(tool, checked, asked, key)
            return await self._recorded(tool, checked, asked, key)
        finally:
            spent = self._spent.pop(self._journal.step_key(key), None)
            if spent is not None:
                self.seconds[call_id] = spent

    async def _call_with_turn(self, tool: Tool, checked: dict[str, Any], asked: str, key: str) -> str:
        """Call a tool whose effects are part of the turn: they settle with it and are repeated with it."""
        try:
            text = await self._act(tool, checked, self._journal.step_key(key))
        except ToolFailed as error:
            await self._journal.note(tool.name, asked, str(error), StepOutcome.FAILED)
            raise
        await self._journal.note(tool.name, asked, text, StepOutcome.DONE)
        return text

    async def _recorded(self, tool: Tool, checked: dict[str, Any], asked: str, key: str) -> str:
        journal = self._journal
        recorded = journal.found(key)
        if recorded is not None and recorded.done:
            if recorded.seconds is not None:
                self._spent[journal.step_key(key)] = recorded.seconds
            return _recorded_result(recorded)
        if recorded is not None:
            number = recorded.number
            known = await self._resume_open(tool, recorded, checked, key, asked)
        elif tool.approval:
            number, known = await self._ask_first(tool, key, asked)
        else:
            begun = journal.begin(StepKind.TOOL, tool.name, key, asked, wait=not tool.repeatable)
            number, known = await begun, None
        return await self._do(tool, checked, number, key) if known is None else known

    async def _ask_first(self, tool: Tool, key: str, asked: str) -> tuple[int, str | None]:
        journal, number = self._journal, self._journal.next_number()
        question = self._approvals.question(Question.CALL, tool.name, json.loads(asked), number)
        if (allowed := await self._approvals.allowed(question)) is not None:
            request = ApprovalRequest(allowed, None)
            return await journal.begin(StepKind.TOOL, tool.name, key, asked, number=number, asked=request), None
        request = await self._approvals.request_for(question)
        await journal.begin(
            StepKind.TOOL,
            tool.name,
            key,
            asked,
            number=number,
            outcome=StepOutcome.ASKED,
            asked=request,
            facts=self._approvals.facts(question),
        )
        return number, await self._approvals.wait_for_decision(question)

    async def _resume_open(
        self, tool: Tool, recorded: Recorded, checked: dict[str, Any], key: str, asked: str
    ) -> str | None:
        """Return the result of a call that an earlier attempt left open; None: the call is to be executed."""
        journal, number = self._journal, recorded.number
        if (
            recorded.outcome == StepOutcome.ASKED
            and (question := await self._approvals.asked_about(number)) is not None
        ):
            return await self._approvals.wait_for_decision(question)
        found, is_known = await self._check(tool, checked, key)
        if not is_known:
            question = self._approvals.question(Question.UNKNOWN, tool.name, json.loads(asked), number)
            request = await self._approvals.request_for(question)
            await journal.resume(number, StepOutcome.ASKED, request, self._approvals.facts(question))
            return await self._approvals.wait_for_decision(question)
        await journal.resume(number)
        if found is not None:
            await journal.end(number, StepOutcome.DONE, json.dumps(journal.clean(found)))
        return found

    async def _check(self, tool: Tool, checked: dict[str, Any], key: str) -> tuple[str | None, bool]:
        """Return the result of an open call, or None if it was not executed; and whether that is known."""
        if tool.check is None:
            return None, tool.repeatable
        takes = list(inspect.signature(tool.check).parameters)[1:]
        arguments = {name: value for name, value in checked.items() if name in takes}
        try:
            found = await self._do_within(tool, tool.check, (self._journal.step_key(key),), arguments)
        except Exception as error:
            log.warning("check of a tool call failed; its result is unknown", exc_info=error, extra={"tool": tool.name})
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
            journal.cut_off(number, "stopped before it had ended: its effects are unknown")
            raise
        await journal.end(number, StepOutcome.DONE, json.dumps(journal.clean(text)))
        return text

    async def _do_within(
        self, tool: Tool, act: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> Any:
        with self._execution.acting():
            return await call_within(self._execution, f"tool {tool.name}", tool.limit, act, args, options)

    async def _act(self, tool: Tool, checked: dict[str, Any], key: str) -> str:
        """Return the result as text, within the limits of the tool. Every error is raised as ToolFailed."""
        token, began = STEP_KEY.set(key), self._clock.monotonic()
        try:
            result = await self._do_within(tool, tool.function, (), tool.bound(checked, self._turn))
            return cut(checks.clean(as_text(result, tool.name)), tool.output)
        except asyncio.CancelledError as error:
            if not is_cancelled():
                raise ToolFailed(f"{tool.name} has failed: it cancelled itself") from error
            raise
        except (ToolFailed, GeneratorExit):
            raise
        except RoostError as error:
            raise ToolFailed(f"{tool.name}: {error}") from error
        except GivenUp as error:
            runs = "it may still be running, and " if error.runs or tool.is_blocking else ""
            raise ToolFailed(
                f"{tool.name} did not end within {tool.limit:g} seconds and was abandoned: {runs}its effects"
                " are unknown"
            ) from error
        except BaseException as error:  # an error of a tool, even SystemExit, ends the call and nothing else
            about = {"tool": tool.name, "run": self._turn.run_id, "error": describe(error).summary}
            log.warning("tool failed", exc_info=error, extra=about)
            raise ToolFailed(checks.clean(f"{tool.name} has failed: {type(error).__name__}: {error}")) from error
        finally:
            self._spent[key] = self._clock.monotonic() - began
            STEP_KEY.reset(token)


def no_tool(name: object, tools: Sequence[Tool]) -> ToolFailed:
    known = ", ".join(tool.name for tool in tools) or "none"
    return ToolFailed(f"there is no tool {name!r:.80}: the available tools are {known}")


def arguments_json(name: str, arguments: object) -> str:
    """Return the arguments of a call as canonical JSON. Raises ToolFailed if they are not an object."""
    if not isinstance(arguments, Mapping):
        raise ToolFailed(f"the arguments of {name} must be an object, not {type(arguments).__name__}")
    try:
        return canonical(dict(arguments), f"the arguments of {name}")
    except BrainFailed as error:
        raise ToolFailed(str(error)) from error


def _recorded_result(recorded: Recorded) -> str:
    """Return the recorded result of a call, or raise its recorded error."""
    reason = str(json.loads(recorded.result or '""'))
    if recorded.outcome == StepOutcome.FAILED:
        raise ToolFailed(reason)
    return reason
