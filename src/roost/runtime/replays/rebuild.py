"""Turns rebuilt for a replay from the record of a run.

Missing records raise a Conflict that names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.lanes import meeting_of
from roost.core.envelopes.late_answers import from_body
from roost.core.journal.run_history import Run
from roost.core.talks.messages import Message, Status, at
from roost.errors import Conflict, Invalid
from roost.ports import Meeting, Profile, Turn
from roost.runtime.context import RuntimeContext
from roost.runtime.turns.history import TAIL, TalkHistory
from roost.runtime.turns.meeting import in_meeting
from roost.runtime.turns.shared_state import ReplayedState
from roost.stores.sql.journal import run_inputs
from roost.stores.sql.meetings import registry
from roost.stores.sql.run_history import StoredRun
from roost.stores.sql.talks import messages as messages_sql

Steered = dict[int, tuple[Message, ...]]
"""Further messages of a talk, by the number of the read at which the turn got them."""
_KEPT = {Kind.TASK: "keep_tasks_days", Kind.MAIL: "keep_mail_days", Kind.EVENT: "keep_events_days"}
"""Setting of how long each kind of input is kept."""


class TurnBuilder:
    """Builder of the turn of one run; `given` is its recorded input.

    Only a `live` replay uses tokens, so only its profile keeps the limit for a day.
    """

    def __init__(
        self, context: RuntimeContext, user_id: str, logged: StoredRun, given: Mapping[str, Any], live: bool
    ) -> None:
        self._context = context
        self._user_id = user_id
        self._logged = logged
        self._run: Run = logged.run
        self._given = given
        self._live = live

    async def build(self) -> tuple[Turn, Steered]:
        given = self._given
        if not given or given.get("state_is_missing"):
            raise self._missing("its input", "is not recorded")
        if given.get("journaled") and not self._logged.recorded:
            raise self._missing("its journal", "is not kept any more (keep_journals_days)")
        profile, state = self._profile(), json.loads(given.get("state") or "{}")
        if self._run.talk_session_id is not None:
            if "taken_over" in given:
                state = ReplayedState(given.get("state"), given["taken_over"])
            return await self._of_talk(self._run.talk_session_id, profile, state)
        if self._run.kind == Kind.MEETING:
            return await self._of_meeting(profile, state), {}
        return await self._of_agent(profile, state), {}

    async def _of_agent(self, profile: Profile, state: dict[str, Any]) -> Turn:
        run, given = self._run, self._given
        found = given.get("message") or await self._source()
        answer = from_body(found["text"]) if run.kind == Kind.ANSWER else None
        text = found["text"] if answer is None else answer.text
        message = Message(1, found["sender"], text, Status.COMPLETE, at(given.get("created", 0.0)))
        turn = Turn(
            run.kind,
            text,
            (message,),
            (),
            profile,
            self._user_id,
            "",
            run.run_id,
            state,
            None,
            agent_id=run.agent_id,
            senders=(found["sender"],),
            subject=found.get("subject", ""),
            data=found.get("data"),
            attempt=given.get("attempt", 1),
        )
        if answer is not None:
            turn.answer = answer
        return turn

    async def _of_meeting(self, profile: Profile, state: dict[str, Any]) -> Turn:
        run, given, name = self._run, self._given, meeting_of(self._given.get("lane", ""))
        if "meeting" not in given:
            raise self._missing("its view of the meeting", "is not recorded")
        seated = await self._context.store.read(registry.load_log, f"agent:{self._user_id}/{run.agent_id}", name)
        meeting = None if seated is None else Meeting(seated, is_asked=False).at_position(given["meeting"])
        if meeting is None:
            raise self._missing(f"the log of the meeting {name!r:.80}", "is not kept any more (keep_meeting_logs_days)")
        return in_meeting(
            meeting, profile, self._user_id, run.run_id, state, None, str(run.agent_id), given.get("attempt", 1)
        )

    async def _source(self) -> dict[str, Any]:
        run = self._run
        source = await self._context.store.read(run_inputs.source, run, self._logged.envelope_id)
        if source is None:
            kept = _KEPT.get(Kind(run.kind), "")
            raise self._missing(f"the {run.kind} {run.envelope_id!r:.80}", f"is not kept any more ({kept})")
        return dict(json.loads(source))

    async def _of_talk(self, talk_id: str, profile: Profile, state: dict[str, Any]) -> tuple[Turn, Steered]:
        run, given = self._run, self._given
        steered = dict(given.get("steered", []))
        later = {seq for seqs in steered.values() for seq in seqs}
        new = [seq for seq in given.get("messages", []) if seq not in later]
        last = max([given.get("history", 0), *new, *later])
        known = {m.seq: m for m in await self._messages(talk_id, last, min([last, *new, *later]))}
        if lost := [seq for seq in (*new, *later) if seq not in known]:
            raise self._missing(f"message {lost[0]} of its talk", "is not kept any more")
        messages = [known[seq] for seq in new]
        shown = [m for m in known.values() if m.status is not Status.WITHDRAWN]
        tail = [m for m in shown if m.seq <= given.get("history", 0) and m.seq not in new]
        first = min(known, default=1)
        history = tail if first == 1 else TalkHistory(self._context, self._user_id, talk_id, first, tail)
        text = "\n".join(m.content for m in messages)
        turn = Turn(
            "talk",
            text,
            tuple(messages),
            history,
            profile,
            self._user_id,
            talk_id,
            run.run_id,
            state,
            None,
            agent_id=given.get("agent"),
            senders=(f"user:{self._user_id}",),
        )
        return turn, {read_number: tuple(known[seq] for seq in seqs) for read_number, seqs in steered.items()}

    async def _messages(self, talk_id: str, last: int, needed: int) -> list[Message]:
        """Return the messages up to `last`, at least from `needed` on."""
        found: list[Message] = []
        first = last + 1
        while first > 1 and (first > needed or not found):
            page = await self._context.store.read(messages_sql.before, self._user_id, talk_id, first, TAIL)
            if not page:
                break
            found, first = [*page, *found], page[0].seq
        return found

    def _profile(self) -> Profile:
        name = self._given["profile"]
        try:
            profile = self._context.brains.profile(name)
        except Invalid as error:
            raise Conflict(f"the profile {name!r} does not exist any more: {error}") from error
        profile = profile.with_options(self._given.get("options", {}))
        return profile if self._live else replace(profile, tokens_per_day=None)

    def _missing(self, what: str, why: str) -> Conflict:
        return Conflict(f"the run {self._run.run_id!r} cannot be replayed: {what} {why}")
