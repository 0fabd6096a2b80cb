"""History of runs, with their steps. Every query includes the owner: another user's run is `NotFound`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.lanes import meeting_of_turn
from roost.core.journal.run_history import Run
from roost.core.journal.steps import Recorded, Step, StepKind, StepOutcome, idempotency_key
from roost.core.limits.usage import NOTHING, Usage
from roost.core.meetings.log import entries
from roost.core.meetings.log.bodies import Withheld
from roost.core.meetings.view.shown import Refusal, name_of
from roost.core.talks.messages import at
from roost.core.values import checks
from roost.core.values.addresses import of_key
from roost.errors import NotFound
from roost.ports import Row, Tx
from roost.stores.sql.agents import agents
from roost.stores.sql.journal import steps
from roost.stores.sql.tables.runs import ANSWER_CHARS
from roost.stores.sql.talks import talks

_RUN = (
    "r.run_id, r.kind, r.talk_id, r.address, r.envelope_id, r.outcome, r.attempts, r.started, r.ended, r.fault, r.root"
)
_STEPS = (
    "(SELECT count(*) FROM steps s WHERE s.kind NOT IN ('sent', 'given', 'memory')"
    " AND s.envelope_id = CASE WHEN r.talk_id <> '' THEN r.root ELSE r.envelope_id END)"
)
_OWNED = (
    "((r.talk_id <> '' AND EXISTS (SELECT 1 FROM talks t WHERE t.talk_id = r.talk_id AND t.user_id = :user))"
    " OR (r.address <> '' AND EXISTS (SELECT 1 FROM agents a WHERE a.address = r.address AND a.user_id = :user)))"
)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with everything that is stored about it."""

    run: Run
    turn_input: str | None
    envelope_id: str
    text: str
    """Its text, as far as it is kept."""
    is_whole: bool
    """Whether the text is complete."""
    steps: tuple[Step, ...]
    recorded: tuple[Recorded, ...]
    usage: Usage = NOTHING
    refused: tuple[Refusal, ...] = ()
    traceback: str | None = None


def listed(tx: Tx, user_id: str, talk_id: str | None, agent_id: str | None, limit: int, before: str) -> list[Run]:
    """Return runs, newest first, before `before`: of a talk, of an agent, or all of the user's."""
    ids = {"user": user_id, "talk": talk_id, "before": before, "limit": limit, "address": f"{user_id}/{agent_id}"}
    if talk_id is not None:
        talks.get(tx, user_id, talk_id)
        where = "r.talk_id = :talk"
    elif agent_id is not None:
        agents.get(tx, user_id, agent_id)
        where = "r.address = :address AND r.address <> ''"
    else:
        where = _OWNED
    rows = tx.read(
        f"SELECT {_RUN}, {_STEPS} FROM runs r WHERE {where} AND r.run_id < :before ORDER BY r.run_id DESC LIMIT :limit",
        ids,
    )
    return [_run_of(row) for row in rows]


def entry(tx: Tx, user_id: str, run_id: str) -> StoredRun:
    row = tx.one(
        f"SELECT {_RUN}, {_STEPS}, r.given, r.said, r.input_tokens, r.output_tokens, r.cost, r.model, r.traceback"
        f" FROM runs r WHERE r.run_id = :run AND {_OWNED}",
        {"run": run_id, "user": user_id},
    )
    if row is None:
        raise NotFound(f"there is no run {run_id!r:.80}: it is not over yet, is not kept any more, or never existed")
    run = _run_of(row[:12])
    text, is_whole = _text_of(tx, run, row[13])
    if _is_with_others_agent(tx, run, user_id):
        return StoredRun(replace(run, steps=0), None, run.envelope_id, text, is_whole, (), ())
    return StoredRun(
        run,
        row[12],
        run.envelope_id,
        text,
        is_whole,
        _steps(tx, run),
        steps.recorded(tx, [run.envelope_id]),
        Usage(*row[14:18]),
        _refused(tx, run, row[3]),
        row[18],
    )


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
        Refusal(name_of(entry.id), entry.author, entry.body.what, entry.body.reason, entry.body.text)
        for entry in written
        if isinstance(entry.body, Withheld) and entry.body.run == run.run_id
    )


def _is_with_others_agent(tx: Tx, run: Run, user_id: str) -> bool:
    """Return whether it is a talk with another user's agent, whose state and steps belong to that user."""
    row = tx.one("SELECT agent FROM talks WHERE talk_id = :talk", {"talk": run.talk_session_id or ""})
    return row is not None and row[0] != "" and row[0].rpartition("/")[0] != user_id


def source(tx: Tx, run: Run, envelope_id: str) -> str | None:
    """Return the input of an agent's run as JSON; None if it is no longer kept."""
    found: Row | None
    if run.kind == "task":
        found = tx.one("SELECT sender, prompt FROM tasks WHERE task_id = :id", {"id": envelope_id})
        return None if found is None else json.dumps({"sender": found[0], "text": found[1]})
    if run.kind == "mail":
        found = tx.one("SELECT sender, body, subject FROM mail WHERE mail_id = :id", {"id": envelope_id})
        return None if found is None else json.dumps({"sender": found[0], "text": found[1], "subject": found[2]})
    name = envelope_id.partition(":")[0]
    found = tx.one("SELECT publisher, name, data FROM events WHERE event_id = :id", {"id": name})
    return None if found is None else json.dumps({"sender": found[0], "text": found[1], "data": json.loads(found[2])})


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


def _steps(tx: Tx, run: Run) -> tuple[Step, ...]:
    rows = tx.read(
        "SELECT step, kind, name, outcome, request, result, created, ended, run_id, key, done FROM steps"
        " WHERE envelope_id = :id AND kind NOT IN ('sent', 'given', 'memory') ORDER BY step",
        {"id": run.envelope_id},
    )
    return tuple(_step_of(run.envelope_id, row) for row in rows)


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
        None if ended is None else at(ended),
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
    run_id, kind, talk_id, address, envelope_id, outcome, attempts, started, ended, fault, root, count = row
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
    )
