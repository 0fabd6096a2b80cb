"""Session service of the ADK for one turn: the history, and the events that the turn adds."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai import types
from pydantic_core import from_json, to_json

from roost.brains.adk.attachments import AttachmentParts
from roost.brains.adk.history import AdkHistory, events_of, past, start_of
from roost.brains.adk.output import EventOutput
from roost.brains.adk.summary import Summary, summary_of
from roost.core.brain_data.brain_context import ContextEntry, Scope
from roost.core.talks.messages import Message
from roost.errors import Invalid
from roost.ports import Turn

log = logging.getLogger("roost.adk")

_PREFIXES = {Scope.APP: State.APP_PREFIX, Scope.USER: State.USER_PREFIX}


class Sessions(BaseSessionService):
    """Session service for one turn. It has one session: the talk or lane of the turn.

    What is appended is kept in RAM, and written together with the end of the turn (see `Turn.brain_context`). So the
    ADK has what people see: the same messages and answers, each once, whatever happens in between.
    """

    def __init__(self, turn: Turn, recent: int, author: str, output: EventOutput) -> None:
        self._turn = turn
        self._output = output
        self._recent = recent
        self._author = author
        self._seqs: list[int] = []
        self.files = AttachmentParts(turn)
        self.session_id = turn.brain_context.name
        self.session: Session | None = None
        self.summary: Summary | None = None
        """Summary of the messages before the newest ones."""

    async def open(self, app_name: str, agent: object = None) -> Sequence[Message]:
        """Read the history, with a summary of older parts; return the messages of the turn that are new to the ADK."""
        turn = self._turn
        entries, values = await turn.brain_context.read(app_name, self._recent)
        entries = [entry for entry in entries if _is_readable(entry)]
        before = AdkHistory([])
        if turn.kind != "meeting":  # the prompt of a meeting contains its history
            new = turn.messages if turn.kind == "talk" else ()
            before = past(turn.history, new, entries, self._recent, self._author)
            if turn.kind == "talk":
                self.summary = await summary_of(turn, agent, start_of(turn.history, self._recent))
            if self.summary is not None:
                before.events.insert(0, _summary_event(self.summary))
        state = dict(_state(values))
        updated = before.events[-1].timestamp if before.events else 0.0
        self.session = Session(
            id=self.session_id, app_name=app_name, user_id=turn.user_id, state=state, last_update_time=updated
        )
        self.session.events = await self.files.resolve_events(before.events)
        return [message for message in turn.messages if message.seq not in before.taken]

    def assign(self, messages: Sequence[Message]) -> None:
        """Assign these messages to the next event of the user."""
        if self._turn.kind == "talk":
            self._seqs += [message.seq for message in messages]

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial or session is not self.session:
            return event
        event = await super().append_event(session, self._output.as_heard(event))
        session.last_update_time = event.timestamp
        taken = []
        if event.author == "user":
            taken, self._seqs = self._seqs, []
        brain_context = self._turn.brain_context
        if self._turn.kind != "meeting":
            noted = self.files.restored(event).model_dump_json(exclude_none=True, exclude_defaults=True, by_alias=True)
            brain_context.add(noted, taken, _said(event))
        for name, value in event.actions.state_delta.items():
            brain_context.set(*_scoped(name), to_json(value, fallback=str).decode())
        return event

    async def finish(self) -> None:
        """Keep streamed text that no final event followed."""
        for event in self._output.unfinished():
            if self.session is not None:
                await self.append_event(self.session, event)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        return self.session if session_id == self.session_id else None

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        raise Invalid("a session of the ADK belongs to a talk or to an agent's lane, and is created with it")

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        found = self.session.model_copy(update={"events": []}) if self.session else None
        return ListSessionsResponse(sessions=[found] if found else [])

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        raise Invalid("a session of the ADK is deleted with its talk or agent: delete that")

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        state = self.session.state if self.session else {}
        return {k.removeprefix(State.USER_PREFIX): v for k, v in state.items() if k.startswith(State.USER_PREFIX)}


def _is_readable(entry: ContextEntry) -> bool:
    """Return whether the ADK can parse an entry; without it, the text of its turn is still in the talk."""
    try:
        events_of(entry.content)
    except ValueError as error:
        log.warning("skipping an unreadable context entry of run %s: %s", entry.run_id, error)
        return False
    return True


def _state(values: Mapping[Scope, Mapping[str, str]]) -> Iterator[tuple[str, Any]]:
    for scope, named in values.items():
        for name, value in named.items():
            try:
                yield f"{_PREFIXES.get(scope, '')}{name}", from_json(value)
            except ValueError as error:
                log.warning("skipping the unreadable value %r of the state: %s", name, error)


def _summary_event(summary: Summary) -> Event:
    return Event(invocation_id="summary", author="user", timestamp=0.0, content=content_of([summary.shown()]))


def content_of(texts: Iterable[str]) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text) for text in texts])


def _said(event: Event) -> set[str]:
    parts = event.content.parts or [] if event.content else []
    return {part.text for part in parts if part.text}


def _scoped(name: str) -> tuple[Scope, str]:
    for scope, prefix in _PREFIXES.items():
        if name.startswith(prefix):
            return scope, name.removeprefix(prefix)
    return Scope.OWN, name
