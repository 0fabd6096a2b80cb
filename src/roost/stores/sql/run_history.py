"""History of runs, with their steps. Every query includes the owner: another user's run is `NotFound`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.lanes import meeting_of_turn
from roost.core.journal.run_history import Run, RunInput, parsed_input
from roost.core.journal.steps import Recorded, Step, StepKind, StepOutcome, idempotency_key
from roost.core.limits.usage import Usage
from roost.core.meetings.log import entries
from roost.core.meetings.log.bodies import Withheld
from roost.core.meetings.view.shown import Refusal, moment, name_of
from roost.core.runs import RunOutcome
from roost.core.talks.messages import at
from roost.core.talks.talk import Receipt
from roost.core.values import checks
from roost.core.values.addresses import of_key
from roost.errors import NotFound
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.agents import agents
from roost.stores.sql.journal import run_inputs, step_links, steps
from roost.stores.sql.tables.runs import ANSWER_CHARS
from roost.stores.sql.talks import talks

_RUN = (
    "r.run_id, r.kind, r.talk_id, r.address, r.envelope_id, r.outcome, r.attempts, r.started, r.ended, r.fault, r.root,"
    " r.input_tokens, r.output_tokens, r.cost, r.model"
)
_STEPS = (
    "(SELECT count(*) FROM steps s WHERE s.kind NOT IN ('sent', 'given', 'memory')"
    " AND s.envelope_id = CASE WHEN r.talk_id <> '' THEN r.root ELSE r.envelope_id END)"
)
_OWNED = (
    "((r.talk_id <> '' AND EXISTS (SELECT 1 FROM talks t WHERE t.talk_id = r.talk_id AND t.user_id = :user))"
    " OR (r.address <> '' AND EXISTS (SELECT 1 FROM agents a WHERE a.address = r.address AND a.user_id = :user)))"
)
_OWNER = (
    "COALESCE((SELECT t.user_id FROM talks t WHERE t.talk_id = runs.talk_id AND runs.talk_id <> ''),"
    " (SELECT a.user_id FROM agents a WHERE a.address = runs.address AND runs.address <> ''), '')"
)
"""User of a run; empty if its talk or agent is gone."""
_WITH_OUTCOME = " AND r.outcome = :outcome"
_NOT_DONE = f"{_WITH_OUTCOME} AND r.outcome <> 'done'"
"""Written out, so that the index of these runs is used."""
_AND_KIND = " AND r.kind || '' = :kind"
"""An expression, so that the index of kinds is not used: runs that are not done are fewer."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with everything that is stored about it."""

    run: Run
    turn_input: str | None
    envelope_id: str
    text: str
    """Its text, as far as it is kept."""
    is_whole: bool
    """True if the text is complete."""
    steps: tuple[Step, ...]
    """Steps as people read them; none for a replay."""
    recorded: tuple[Recorded, ...]
    """The same steps as the journal has them; only for a replay."""
    refused: tuple[Refusal, ...] = ()
    traceback: str | None = None
    inputs: tuple[RunInput, ...] = ()
    first_output: datetime | None = None
    stop: Receipt | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs to list: of a talk, of an agent, or all; with this outcome, and of this kind."""

    talk_id: str | None = None
    agent_id: str | None = None
    outcome: str | None = None
    kind: str | None = None


def listed(tx: Tx, user_id: str, wanted: RunFilter, limit: int, before: str) -> list[Run]:
    """Return runs, newest first, before `before`."""
    talk_id, agent_id, kind = wanted.talk_id, wanted.agent_id, wanted.kind
    ids = {"user": user_id, "talk": talk_id, "before": before, "limit": limit, "address": f"{user_id}/{agent_id}"}
    ids |= {"outcome": wanted.outcome, "kind": kind}
    if talk_id is not None:
        talks.get(tx, user_id, talk_id)
        if kind not in (None, Kind.TALK):
            return []
        kind = None  # all of them are
        places = ["r.talk_id = :talk AND r.talk_id <> ''"]
    elif agent_id is not None:
        agents.get(tx, user_id, agent_id)
        places = ["r.address = :address AND r.address <> ''"]
    else:
        places = ["r.user_id = :user", f"r.user_id IS NULL AND {_OWNED}"]  # older programs recorded no user
    where = ""
    if wanted.outcome is not None:
        where = _WITH_OUTCOME if wanted.outcome == RunOutcome.DONE else _NOT_DONE
    if kind is not None:
        where += " AND r.kind = :kind" if where != _NOT_DONE else _AND_KIND
    rows = [row for place in places for row in _page(tx, place + where, ids)]
    rows = sorted(rows, key=lambda row: str(row[1]), reverse=True)[:limit]
    return [_reduced(_run_of(row[1:])) if _is_others(row[0], user_id) else _run_of(row[1:]) for row in rows]


def _page(tx: Tx, where: str, ids: Mapping[str, Any]) -> list[Row]:
    return tx.read(
        f"SELECT (SELECT agent FROM talks t WHERE t.talk_id = r.talk_id), {_RUN}, {_STEPS} FROM runs r WHERE {where}"
        " AND r.run_id < :before ORDER BY r.run_id DESC LIMIT :limit",
        ids,
    )


def set_users(tx: Tx, limit: int) -> int:
    """Store the owners of runs that older programs recorded without one, newest first; return their number."""
    rows = tx.read(
        f"SELECT run_id FROM runs WHERE user_id IS NULL ORDER BY run_id DESC LIMIT :limit{tx.for_update}",
        {"limit": limit},
    )
    bulk.write(tx, f"UPDATE runs SET user_id = {_OWNER} WHERE run_id IN", [row[0] for row in rows])
    return len(rows)


def entry(tx: Tx, user_id: str, run_id: str, for_replay: bool = False) -> StoredRun:
    """Return a run with its steps, in the form of the journal if it is read for a replay."""
    row = tx.one(
        f"SELECT {_RUN}, {_STEPS}, r.given, r.said, r.traceback, r.first_chunk, r.stop_requested, r.stop_acknowledged,"
        f" r.stop_quiesced, r.abandoned"
        f" FROM runs r WHERE r.run_id = :run AND {_OWNED}",
        {"run": run_id, "user": user_id},
    )
    if row is None:
        raise NotFound(f"there is no run {run_id!r:.80}: it is not over yet, is not kept any more, or never existed")
    run, address = _run_of(row[:16]), row[3]
    given, said, traceback, first_chunk, *stop = row[16:]
    text, is_whole = _text_of(tx, run, said)
    if _is_with_others_agent(tx, run, user_id):
        return StoredRun(_reduced(run), None, run.envelope_id, text, is_whole, (), ())
    return StoredRun(
        run,
        given,
        run.envelope_id,
        text,
        is_whole,
        () if for_replay else _steps(tx, run, run.talk_session_id or address, user_id),
        steps.recorded(tx, [run.envelope_id]) if for_replay else (),
        _refused(tx, run, address),
        traceback,
        run_inputs.inputs(tx, run, run.envelope_id, parsed_input(given)),
        _at(first_chunk),
        _receipt(*stop),
    )


def _receipt(
    requested: float | None, acknowledged: float | None, quiesced: float | None, abandoned: str | None
) -> Receipt | None:
    if requested is None:
        return None
    return Receipt(at(requested), _at(acknowledged), _at(quiesced), tuple(json.loads(abandoned or "[]")))


def _at(time: float | None) -> datetime | None:
    return None if time is None else at(time)


def _refused(tx: Tx, run: Run, address: str) -> tuple[Refusal, ...]:
    """Return the entries of the run that its meeting refused."""
    if run.meeting_id is None:
        return ()
    rows = tx.read(
        "SELECT entry FROM meeting_log WHERE participant = :who AND meeting_id = :meeting AND author = :who"
        " AND entry LIKE :kind ORDER BY number",
        {"who": f"agent:{address}", "meeting": run.meeting_id, "kind": '%"kind":"withheld"%'},
    )
    written = (entries.from_json(row[0]) for row in rows)
    return tuple(
        Refusal(
            name_of(entry.id), entry.author, entry.body.what, entry.body.reason, entry.body.text, moment(entry.at.ms)
        )
        for entry in written
        if isinstance(entry.body, Withheld) and entry.body.run == run.run_id
    )


def _is_with_others_agent(tx: Tx, run: Run, user_id: str) -> bool:
    """Return whether it is a talk with another user's agent, whose state and steps belong to that user."""
    row = tx.one("SELECT agent FROM talks WHERE talk_id = :talk", {"talk": run.talk_session_id or ""})
    return row is not None and _is_others(row[0], user_id)


def _is_others(agent: str | None, user_id: str) -> bool:
    """Return whether this agent of a talk belongs to another user."""
    return bool(agent) and str(agent).rpartition("/")[0] != user_id


def _reduced(run: Run) -> Run:
    """Return the run without what belongs to the owner of the agent."""
    return replace(run, usage=Usage(), steps=0)


def _text_of(tx: Tx, run: Run, stored: str | None) -> tuple[str, bool]:
    """Return a talk's messages, a task's result, or else the beginning of the text; and whether it is complete."""
    if run.talk_session_id is not None:
        rows = tx.read(
            "SELECT content FROM messages WHERE talk_id = :talk AND run_id = :run ORDER BY seq",
            {"talk": run.talk_session_id, "run": run.run_id},
        )
        return "".join(row[0] for row in rows), True
    text = stored or ""
    if len(text) < ANSWER_CHARS:
        return text, True
    row = tx.one("SELECT result FROM tasks WHERE task_id = :id AND status = 'done'", {"id": run.envelope_id})
    return (row[0], True) if row is not None and row[0] is not None else (text, False)


def _steps(tx: Tx, run: Run, holder: str, user_id: str) -> tuple[Step, ...]:
    rows = tx.read(
        "SELECT step, kind, name, outcome, request, result, created, ended, run_id, key, done FROM steps"
        " WHERE envelope_id = :id AND kind NOT IN ('sent', 'given', 'memory') ORDER BY step",
        {"id": run.envelope_id},
    )
    approvals = step_links.approvals(tx, holder, run.envelope_id)
    return tuple(
        replace(
            _step_of(run.envelope_id, row),
            approval_id=approvals.get(row[0]),
            asked_run_id=_asked_run(tx, run, user_id, row),
        )
        for row in rows
    )


def _asked_run(tx: Tx, run: Run, user_id: str, row: Row) -> str | None:
    """Return the run that answered a question, if the user's own agent was asked."""
    _, kind, address, _, _, _, created, ended, _, question, _ = row
    if kind != StepKind.ASK or not address.startswith(f"{user_id}/"):
        return None
    return step_links.asked_run(tx, address, run.root, question, created, ended)


def _step_of(envelope_id: str, row: Row) -> Step:
    number, kind, name, outcome, request, result, created, ended, run_id, key, done = row
    if not outcome:
        outcome = StepOutcome.DONE if done else StepOutcome.BEGUN
    parsed_request = _parsed(request) if kind in (StepKind.TOOL, StepKind.MODEL) else request
    step_key = idempotency_key(envelope_id, key) if key else ""
    return Step(
        number,
        kind,
        name,
        outcome,
        parsed_request,
        _parsed(result),
        at(created),
        _at(ended),
        run_id,
        step_key,
    )


def _parsed(text: str | None) -> Any:
    """Return parsed JSON; truncated JSON is returned as text."""
    if text is None:
        return None
    try:
        return checks.normalized(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _run_of(row: Row) -> Run:
    run_id, kind, talk_id, address, envelope_id, outcome, attempts, started, ended, fault, root, *usage, count = row
    return Run(
        run_id,
        kind,
        talk_id or None,
        of_key(address).agent_id if address else None,
        root if talk_id else envelope_id,
        outcome,
        attempts,
        at(started),
        at(ended),
        fault,
        count,
        root,
        meeting_of_turn(envelope_id) if kind == Kind.MEETING else None,
        Usage(*usage),
    )
