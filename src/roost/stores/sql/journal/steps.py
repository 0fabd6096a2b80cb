"""Steps of a run, written before and after each. The epoch proves that the run still owns its agent or talk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost.core.journal.approvals import ApprovalRequest
from roost.core.journal.steps import OPEN, Attempt, Recorded, StepKind, StepOutcome
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.sending.effects import post
from roost.stores.sql.sending.row_locks import claim_lock, locks_of

_SECONDS = (
    "CASE WHEN EXISTS (SELECT 1 FROM approvals a WHERE a.envelope_id = steps.envelope_id AND a.step = steps.step"
    " AND a.decision IN ('declined', 'answered')) THEN NULL ELSE ended - created END"
)
"""Duration of a step. One that a person has decided otherwise was not executed: it only waited."""
_RECORDED = f"SELECT step, kind, name, result, done, key, outcome, run_id, {_SECONDS} FROM steps WHERE envelope_id"


def _by_attempt(tx: Tx, attempt: Attempt, *_: Any) -> locking.Rows:
    return (claim_lock(attempt),)


def _by_question(tx: Tx, attempt: Attempt, *arguments: Any) -> locking.Rows:
    """Return the locks of a step about which a person is asked, by mail."""
    questions = [one.mail for one in arguments if isinstance(one, ApprovalRequest) and one.mail is not None]
    return (claim_lock(attempt), *locks_of(questions))


@locking.locks(_by_attempt)
def open(tx: Tx, attempt: Attempt, now: float) -> bool:
    """Record the input of the turn. Return False if the run lost its claim."""
    if not _owns_claim(tx, attempt):
        return False
    if attempt.turn_input is not None:
        record_input(tx, attempt.envelope_id, attempt.holder, attempt.turn_input, now)
    return True


def record_input(tx: Tx, envelope_id: str, holder: str, turn_input: Mapping[str, Any], now: float) -> None:
    """Record the input of the first attempt, before anything else of it."""
    tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created, holder)"
        " VALUES (:id, 0, 'given', '', :given, 1, :now, :holder) ON CONFLICT (envelope_id, step) DO NOTHING",
        {"id": envelope_id, "given": json.dumps(turn_input), "now": now, "holder": holder},
    )


@locking.locks(_by_question)
def begin(
    tx: Tx,
    attempt: Attempt,
    number: int,
    kind: str,
    name: str,
    key: str,
    request: str | None,
    outcome: str,
    now: float,
    question: ApprovalRequest | None = None,
) -> bool:
    """Record that a step starts, or that a person is asked about it. Return False if the run lost its claim."""
    if not _owns_claim(tx, attempt):
        return False
    ids = {
        "id": attempt.envelope_id,
        "step": number,
        "kind": kind,
        "name": name,
        "key": key,
        "request": request,
        "outcome": outcome,
        "run": attempt.run_id,
        "holder": attempt.holder,
        "now": now,
    }
    tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, done, created, holder, run_id, key, outcome, request)"
        " VALUES (:id, :step, :kind, :name, 0, :now, :holder, :run, :key, :outcome, :request)"
        " ON CONFLICT (envelope_id, step) DO NOTHING",
        ids,
    )
    if question is not None:
        _record_question(tx, attempt, question)
    return True


@locking.locks(_by_question)
def begin_again(
    tx: Tx, attempt: Attempt, number: int, outcome: str, now: float, question: ApprovalRequest | None = None
) -> bool:
    """Record the same for a step that an earlier attempt left open."""
    if not _owns_claim(tx, attempt):
        return False
    tx.write(
        "UPDATE steps SET outcome = :outcome, run_id = :run, created = :now, done = 0, result = NULL"
        " WHERE envelope_id = :id AND step = :step",
        {"id": attempt.envelope_id, "step": number, "outcome": outcome, "run": attempt.run_id, "now": now},
    )
    if question is not None:
        _record_question(tx, attempt, question)
    return True


@locking.locks(_by_attempt)
def end(
    tx: Tx,
    attempt: Attempt,
    number: int,
    outcome: str,
    result: str | None,
    now: float,
    begun: tuple[Any, ...] | None = None,
) -> None:
    """Record the result of a step, unless another run has taken it over. Idempotent.

    `begun`: the arguments of `begin`, if that may not have been written.
    """
    if begun is not None:
        begin(tx, attempt, *begun)
    tx.write(
        "UPDATE steps SET result = :result, done = 1, outcome = :outcome, ended = :now WHERE envelope_id = :id"
        f" AND step = :step AND run_id = :run AND outcome IN ({_listed(OPEN)})",
        {
            "id": attempt.envelope_id,
            "step": number,
            "run": attempt.run_id,
            "outcome": outcome,
            "result": result,
            "now": now,
        },
    )


@locking.locks(_by_attempt)
def record(
    tx: Tx,
    attempt: Attempt,
    number: int,
    kind: str,
    name: str,
    request: str | None,
    result: str | None,
    outcome: str,
    now: float,
) -> None:
    """Record a step that is never reused."""
    if begin(tx, attempt, number, kind, name, "", request, StepOutcome.BEGUN, now):
        end(tx, attempt, number, outcome, result, now)


def recorded(tx: Tx, envelope_ids: Sequence[str]) -> tuple[Recorded, ...]:
    """Return the steps that earlier attempts recorded, in order."""
    rows = bulk.read(tx, f"{_RECORDED} IN", sorted(envelope_ids), " ORDER BY envelope_id, step")
    return tuple(_recorded_of(row) for row in rows)


def prepare_retry(tx: Tx, envelope_id: str) -> None:
    """Prepare a retry: failed steps are not reused, and nothing is reused of an attempt without results."""
    tx.write(
        "UPDATE steps SET outcome = CASE WHEN outcome = 'failed' THEN 'retried' ELSE 'stale' END"
        " WHERE envelope_id = :id AND (outcome = 'failed' OR (kind = 'model'"
        " AND outcome = 'done' AND step > (SELECT COALESCE(max(s.step), 0) FROM steps s WHERE s.envelope_id = :id"
        " AND s.kind <> 'model' AND s.done = 1 AND s.outcome NOT IN ('failed', 'retried', 'stale', 'interrupted'))))",
        {"id": envelope_id},
    )
    tx.write(
        "DELETE FROM steps WHERE envelope_id = :id AND kind = 'given' AND NOT EXISTS (SELECT 1 FROM steps s"
        " WHERE s.envelope_id = :id AND s.kind NOT IN ('given', 'model')"
        " AND s.outcome NOT IN ('failed', 'retried', 'stale', 'interrupted'))",
        {"id": envelope_id},
    )


def _record_question(tx: Tx, attempt: Attempt, question: ApprovalRequest) -> None:
    """Record a question to a person. The waiting attempt is not counted, and its envelope does not expire.

    A question that is decided by a standing permission is recorded, and nobody waits.
    """
    approval = question.approval
    rows = tx.write(
        "INSERT INTO approvals (approval_id, user_id, holder, agent_id, talk_id, envelope_id, step, run_id, kind, tool,"
        " arguments, created, decision, decided, profile, seq) VALUES (:approval, :user, :holder, :agent, :talk, :id,"
        " :step, :run, :kind, :tool, :arguments, :now, :decision, :decided, :profile,"
        " COALESCE((SELECT t.last_seq FROM talks t WHERE t.talk_id = :talk), 0))"
        " ON CONFLICT (approval_id) DO NOTHING RETURNING step",
        {
            "approval": approval.approval_id,
            "user": attempt.user_id,
            "holder": attempt.holder,
            "agent": attempt.agent_id,
            "talk": attempt.holder if attempt.is_talk else None,
            "id": attempt.envelope_id,
            "step": approval.step,
            "run": attempt.run_id,
            "kind": approval.kind,
            "tool": approval.tool,
            "arguments": json.dumps(approval.arguments),
            "now": approval.created.timestamp(),
            "decision": approval.decision or "",
            "decided": None if approval.decided is None else approval.decided.timestamp(),
            "profile": approval.profile,
        },
    )
    if approval.decision is not None:
        return
    if rows and question.mail is not None:
        post(tx, question.mail)
    envelope_ids = (attempt.envelope_id, *attempt.others)
    bulk.write(tx, "UPDATE inbox SET expires = NULL WHERE envelope_id IN", sorted(envelope_ids))


def _owns_claim(tx: Tx, attempt: Attempt) -> bool:
    """Return whether the run still owns its agent or talk, and its envelope is not settled; lock the claim."""
    ids = {"holder": attempt.holder, "id": attempt.envelope_id}
    table, column = ("talks", "talk_id") if attempt.is_talk else ("agents", "address")
    query = f"SELECT h.epoch FROM {table} h JOIN inbox i ON i.envelope_id = :id WHERE h.{column} = :holder"
    row = tx.one(f"{query}{locking.of_table(tx, 'h')}", ids)
    return row is not None and row[0] == attempt.epoch


def _recorded_of(row: Row) -> Recorded:
    number, kind, name, result, done, key, outcome, run_id, seconds = row
    if not outcome:  # from an older version, or of another kind
        outcome = StepOutcome.DONE if done else StepOutcome.BEGUN
    if not key and kind == StepKind.STEP and not run_id:
        key = f"{kind}:{name}"
    return Recorded(number, kind, name, result, bool(done), key, outcome, run_id, seconds)


def _listed(outcomes: frozenset[StepOutcome]) -> str:
    return ", ".join(f"'{one}'" for one in sorted(outcomes))


def delete_journal(tx: Tx, holder: str) -> None:
    """Delete the journal of a talk or an agent."""
    for table in ("steps", "approvals"):
        tx.write(f"DELETE FROM {table} WHERE holder = :holder AND holder <> ''", {"holder": holder})
