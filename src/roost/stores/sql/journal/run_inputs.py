"""Input of a run: what its brain was asked, as far as it is still kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.late_answers import from_body
from roost.core.journal.run_history import Run, RunInput
from roost.ports import Row, Tx
from roost.stores import bulk


def source(tx: Tx, run: Run, envelope_id: str) -> str | None:
    """Return the input of an agent's run as JSON; None if it is no longer kept."""
    found: Row | None
    if run.kind == Kind.TASK:
        found = tx.one("SELECT sender, prompt FROM tasks WHERE task_id = :id", {"id": envelope_id})
        return None if found is None else json.dumps({"sender": found[0], "text": found[1]})
    if run.kind == Kind.MAIL:
        found = tx.one("SELECT sender, body, subject FROM mail WHERE mail_id = :id", {"id": envelope_id})
        return None if found is None else json.dumps({"sender": found[0], "text": found[1], "subject": found[2]})
    name = envelope_id.partition(":")[0]
    found = tx.one("SELECT publisher, name, data FROM events WHERE event_id = :id", {"id": name})
    return None if found is None else json.dumps({"sender": found[0], "text": found[1], "data": json.loads(found[2])})


def inputs(tx: Tx, run: Run, envelope_id: str, given: Mapping[str, Any]) -> tuple[RunInput, ...]:
    """Return the messages that a run handled, in order; none for a turn in a meeting. `given`: its recorded input."""
    if run.talk_session_id is not None:
        return _messages(tx, run.talk_session_id, given)
    if run.kind == Kind.MEETING:
        return ()
    kept = given.get("message") or json.loads(source(tx, run, envelope_id) or "null")
    if not kept:
        return ()
    text = from_body(kept["text"]).text if run.kind == Kind.ANSWER else kept["text"]
    return (RunInput(kept["sender"], text, kept.get("subject", ""), kept.get("data")),)


def _messages(tx: Tx, talk_id: str, given: Mapping[str, Any]) -> tuple[RunInput, ...]:
    later = (seq for _, seqs in given.get("steered", []) for seq in seqs)
    numbers = sorted({*given.get("messages", []), *later})
    sql = "SELECT m.seq, t.user_id, m.content FROM messages m JOIN talks t ON t.talk_id = m.talk_id"
    rows = bulk.read(tx, f"{sql} WHERE m.talk_id = ? AND m.seq IN", numbers, first=[talk_id])
    return tuple(RunInput(f"user:{user}", text) for _, user, text in sorted(rows, key=lambda row: int(row[0])))
