"""Actions of a turn in a replay. Steps are answered from the journal, and nothing is sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roost import errors
from roost.core.agents import wake
from roost.core.agents.audience import Audience
from roost.core.brain_data.memories import Memory
from roost.core.envelopes.sender import SenderContext
from roost.core.journal import contents
from roost.core.journal.steps import (
    OPEN,
    REUSED,
    Attempt,
    Content,
    EarlierRequests,
    Recorded,
    StepKind,
    StepOutcome,
    canonical,
    cut,
)
from roost.core.meetings.log.bodies import Body, kind_of
from roost.core.meetings.log.stamps import milliseconds
from roost.core.meetings.view.shown import MeetingSummary, summary_of
from roost.core.runs import RunOutcome
from roost.core.values import addresses, checks
from roost.errors import BrainFailed, Invalid, RoostError, ToolFailed
from roost.ports import Meeting, ModelCall, Tool
from roost.ports.tools import STEP_KEY, as_text
from roost.runtime.execution.function_calls import call_function, call_within
from roost.runtime.journal.journal import Journal
from roost.runtime.journal.tool_calls import arguments_json, no_tool
from roost.runtime.outgoing.questions import answered
from roost.runtime.toolbox import OWN, READ_ONLY
from roost.stores.sql.run_history import StoredRun

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.replays.replay import Replayer
    from roost.runtime.turns.meeting import MeetingOutput


class ReplayActions:
    """Actions of one replay. Used on its loop."""

    def __init__(
        self, context: RuntimeContext, replayer: Replayer, logged: StoredRun, until: int | None, live: bool
    ) -> None:
        self._context = context
        self._replayer = replayer
        self._until = until
        self._live = live
        self._run_id = logged.run.run_id
        self._steps = _by_key(logged.recorded, self._run_id)
        self._own = {key for key, step in self._steps.items() if step.run_id == self._run_id}
        """Keys of the steps that the run itself executed, and the replay has not requested yet."""
        self._was_cut_off = logged.run.outcome in CUT_OFF
        self._unfinished = {step.key for step in logged.recorded if step.outcome in _UNFINISHED}
        self._asked = EarlierRequests(logged.recorded, self._run_id)
        self._asks: dict[str, int] = {}
        """Number of questions to each agent."""
        given = json.loads(logged.turn_input or "{}")
        self._seen: dict[str, list[Any]] = {name: list(found) for name, found in given.get("seen", {}).items()}
        self._sends: dict[int, Any] = dict(self._seen.get("sends", ()))
        """Recorded results of sends, by number; a list is a refusal."""
        self._count = 0
        self._names: dict[str, int] = {}
        self._now = milliseconds(logged.run.started.timestamp())
        agent = logged.run.agent_id
        place = Attempt(logged.envelope_id, "", logged.run.talk_session_id is not None, 0, self._run_id, "", agent)
        self._keys = Journal(context, replayer, place, ())
        owner = replayer.turn.user_id
        self.sender = SenderContext(owner, f"agent:{owner}/{agent}")
        self.taken: list[str] = []
        """Steps that the brain has requested, in order."""
        self.sent: list[str] = []
        self.recalls = 0
        """Number of recorded model calls that the brain is reading."""

    # --- steps -----------------------------------------------------------------------------------

    async def step(
        self,
        name: str,
        act: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any:
        self._names[name] = count = self._names.get(name, 0) + 1
        name = name if count == 1 else f"{name} ({count})"
        self._keys.log_action(StepKind.STEP, name)
        recorded = await self._next(f"step {name}", f"{StepKind.STEP}:{name}")
        if recorded is not None:
            return _recorded_result(recorded)
        return await call_function(self._replayer, f"step {name}", act, args, options)

    @cached_property
    def tools(self) -> Sequence[Tool]:
        turn = self._replayer.turn
        return self._context.tools.allowed(turn.profile, turn.agent_id is not None)

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], call_id: str) -> str:
        name, found = (tool.name, tool) if isinstance(tool, Tool) else self._named(tool)
        asked = self._keys.clean_json(arguments_json(name, arguments))
        checked = {} if found is None else found.arguments(arguments)
        key = self._keys.key(StepKind.TOOL, name, asked)
        if found is None and key not in self._steps:  # the tool did not exist then either: such a call is not recorded
            raise no_tool(name, self.tools)
        self._keys.log_action(StepKind.TOOL, name, asked)
        if found is not None and found.with_turn(self._replayer.turn, checked):
            self.taken.append(f"tool {name}")
            return await self._act(found, arguments, key)
        recorded = await self._next(f"tool {name}", key)
        if recorded is None:
            return await self._act_now(name, found, arguments, key)
        return str(_recorded_result(recorded))

    def tool_seconds(self, call_id: str) -> float | None:
        return None

    def _named(self, name: str) -> tuple[str, Tool | None]:
        found = next((tool for tool in self.tools if name in (tool.name, tool.wire_name)), None)
        return (name if found is None else found.name), found

    async def _act_now(self, name: str, tool: Tool | None, arguments: Mapping[str, Any], key: str) -> str:
        if tool is None:
            raise ToolFailed(f"there is no tool {name!r:.80} now")
        if tool.name.partition(".")[0] in OWN and tool.name not in READ_ONLY:
            self.sent.append(f"tool {name}")
            raise ToolFailed(f"{name} has effects for others, and a replay has none")
        if tool.approval:
            raise ToolFailed(f"{name} needs an approval, and a replay requests none")
        return await self._act(tool, arguments, f"{key} replayed {self._context.host.new_id('run')}")

    async def _act(self, tool: Tool, arguments: Mapping[str, Any], key: str) -> str:
        token = STEP_KEY.set(self._keys.step_key(key))
        try:
            bound = tool.bound(tool.arguments(arguments), self._replayer.turn)
            result = await call_within(self._replayer, f"tool {tool.name}", tool.limit, tool.function, (), bound)
            return cut(checks.clean(as_text(result, tool.name)), tool.output)
        except ToolFailed:
            raise
        except Exception as error:
            raise ToolFailed(f"{tool.name}: {error}") from error
        finally:
            STEP_KEY.reset(token)

    @asynccontextmanager
    async def model_call(self, name: str, request: Any) -> AsyncIterator[ModelCall]:
        asked = self._keys.clean_json(canonical(request, "what a model is asked"))
        self._keys.log_action(StepKind.MODEL, name, asked)
        recorded = await self._next(f"model {name}", self._keys.key(StepKind.MODEL, name, asked))
        if recorded is None:
            yield ModelCall(recorded=None)
            return
        self.recalls += 1
        try:
            yield ModelCall(recorded=_recorded_result(recorded))
        finally:
            self.recalls -= 1

    async def _next(self, what: str, key: str) -> Recorded | None:
        """Return the record of the next step; None: the step is executed now."""
        if self._until is not None and len(self.taken) >= self._until:
            if not self._live:
                await self._replayer.halt(None, len(self.taken))
            self.taken.append(f"{what} (live)")
            return None
        recorded = self._steps.get(key)
        self._own.discard(key)
        came_no_further = key in self._unfinished or (self._was_cut_off and not self._own)
        if recorded is None and not self._live and came_no_further:
            await self._replayer.halt(None, len(self.taken))
        if recorded is None and not self._live:
            await self._replayer.halt(f"step {len(self.taken) + 1}, {what}, is not recorded with this request")
        self.taken.append(what if recorded is not None else f"{what} (live)")
        return recorded

    # --- what would be sent ----------------------------------------------------------------------

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str:
        content = contents.mail(to, subject, body, options)
        return str(self._send(content, f"mail to {to}: {subject}", "mail_replayed"))

    async def send(self, to: str, text: str, **options: Any) -> None:
        self._send(contents.message(to, text, options), f"message to {to}: {text:.80}")

    async def broadcast(self, text: str, audience: Audience, priority: str) -> int:
        reached = str(self._send(contents.broadcast(audience, text, priority), f"message to many: {text:.80}", 0))
        return int(reached) if reached.isdecimal() else 0  # otherwise the run sent something else here

    async def publish(self, name: str, data: Any, **options: Any) -> str:
        return str(self._send(contents.event(name, data, options), f"event {name}", "event_replayed"))

    def sleep(self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None) -> None:
        if self._replayer.turn.agent_id is None:
            raise Invalid("only an agent can sleep, and this turn does not belong to one")
        wake.wanted(self._now / 1_000, seconds, until, wake_on, wake.mail())
        self._replayer.action_log.add(contents.sleep(seconds, until, wake_on))
        self.sent.append("sleep")

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str:
        checks.seconds(deadline, "the deadline")
        key = addresses.parse(to, self.sender.user_id).key
        self._replayer.action_log.add(["question", key, text])
        self._asks[key] = count = self._asks.get(key, 0) + 1
        for *question, refusal in self._seen.get("asks", ()):
            if question == [key, count]:
                raise _refusal(*refusal)
        recorded = self._asked.take(key, text)
        if recorded is None:
            await self._replayer.halt(f"its question to {to} is not recorded")
        answer = json.loads(recorded.result or "{}")
        if "cancelled" in answer:  # the run ended here
            await self._replayer.halt(None, len(self.taken))
        return answered(to, answer)

    async def call_meeting(self, topic: str, **options: Any) -> str:
        return str(self._send(contents.call(topic, options), f"meeting {topic}", "meeting_replayed"))

    async def meetings(self) -> tuple[MeetingSummary, ...]:
        return tuple(summary_of(summary) for summary in self._recorded_return("meetings", []))

    async def write_entry(self, meeting: Meeting, body: Body) -> None:
        """Apply an entry to the view of this turn; it is not sent."""
        self._send(contents.entry(meeting.meeting_id, body), _described_entry(body))
        meeting.note(body, self._now)

    def _send(self, content: Content, description: str, otherwise: Any = None) -> Any:
        """Return the recorded result of a send, or raise its recorded refusal."""
        self._count += 1
        found = self._sends.get(self._count, otherwise)
        if isinstance(found, list):
            raise _refusal(*found)
        self._replayer.action_log.add(content)
        self.sent.append(description)
        return found

    def add_last_entries(self, output: MeetingOutput) -> None:
        self.sent += map(_described_entry, output.last(self._now))

    async def remember(self, text: str, key: str | None) -> str:
        returned = str(self._recorded_return("remember", key or "memory_replayed"))
        self._replayer.action_log.add(["remember", key, text])
        return returned

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        return tuple(
            Memory(key, text, datetime.fromisoformat(made)) for key, text, made in self._recorded_return("recall", [])
        )

    async def forget(self, key: str) -> bool:
        returned = bool(self._recorded_return("forget", True))
        self._replayer.action_log.add(["forget", key])
        return returned

    def _recorded_return(self, what: str, otherwise: Any) -> Any:
        """Return the next recorded result of an action, or raise its recorded refusal."""
        found = self._seen.get(what)
        returned = found.pop(0) if found else otherwise
        if isinstance(returned, dict):
            raise _refusal(*returned["refused"])
        return returned


CUT_OFF = frozenset({RunOutcome.STOPPED, RunOutcome.LOST, RunOutcome.WAITING})
_ONLY_OF_RUN = frozenset({StepOutcome.STALE, StepOutcome.RETRIED})
"""Outcomes that only the run itself has seen."""
_FAILED = frozenset({StepOutcome.FAILED, StepOutcome.RETRIED})
_UNFINISHED = OPEN | {StepOutcome.INTERRUPTED}
"""Outcomes of steps without a recorded result."""


def _recorded_result(recorded: Recorded) -> Any:
    """Return the recorded result, or raise the recorded error."""
    found = json.loads(recorded.result or "null")
    if recorded.outcome not in _FAILED:
        return found
    if recorded.kind == StepKind.TOOL:
        raise ToolFailed(str(found))
    raise BrainFailed(str(found))


def _refusal(name: str, text: str) -> RoostError:
    kind = getattr(errors, name, RoostError)
    return kind(text) if isinstance(kind, type) and issubclass(kind, RoostError) else RoostError(text)


def _described_entry(body: Body) -> str:
    return f"in the meeting: {kind_of(body)} {getattr(body, 'text', ''):.80}".rstrip()


def _by_key(recorded: Sequence[Recorded], run_id: str) -> dict[str, Recorded]:
    """Return the steps by key: of several attempts, those of this run, or else those that it reused."""
    found: dict[str, Recorded] = {}
    for step in recorded:
        usable = step.outcome in REUSED or (step.outcome in _ONLY_OF_RUN and step.run_id == run_id)
        if step.key and usable and (step.key not in found or found[step.key].run_id != run_id):
            found[step.key] = step
    return found
