"""Requests between agents and their answers; many at once, in few statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from roost.core.agents.agent import State
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.late_answers import to_body
from roost.core.envelopes.requests import Answered, Request, asks_in_talk, request_name, request_parts
from roost.core.journal.steps import Attempt, digest
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import rank
from roost.errors import LimitReached
from roost.ports import Tx
from roost.stores import bulk, locking
from roost.stores.sql.sending.row_locks import claim_lock
from roost.stores.sql.tables import capacity
from roost.stores.sql.tables.envelopes import put, put_all

_STEP = ("envelope_id", "step", "name", "created", "key", "holder", "run_id")
_OPEN = {"kind": "'ask'", "done": "0"}
_STOPPED = {"error": "it is stopped"}
_ONCE = " ON CONFLICT (envelope_id, step) DO NOTHING"


Asked = bool | Answered | LimitReached | None


def _by_requests(tx: Tx, requests: Sequence[Request], close: Callable[[], object] = bool) -> locking.Rows:
    close()
    askers = [locking.talk(r.holder) if r.talk_run else locking.agent(r.holder) for r in requests]
    return askers + [locking.agent(r.envelope.address) for r in requests if r.envelope.expires is not None]


@locking.locks(_by_requests)
def ask(tx: Tx, requests: Sequence[Request], close: Callable[[], object] = bool) -> tuple[Asked, ...]:
    """Post requests, and record that their answers are awaited. `close` is called first: none is added after it.

    Return for each whether it was posted: False if the recipient does not exist, None if the turn lost its claim, an
    answer if the recipient is stopped, LimitReached if its inbox is full.
    """
    close()
    claims = _valid_claims(tx, requests)
    valid = [r for r in requests if (r.envelope_id, r.holder, r.epoch) in claims]
    rows = bulk.read(
        tx, "SELECT address, state FROM agents WHERE address IN", sorted({r.envelope.address for r in valid})
    )
    states: dict[str, str] = {row[0]: row[1] for row in rows}
    reachable = [r for r in valid if states.get(r.envelope.address, State.STOPPED) != State.STOPPED]
    full = capacity.overflow(tx, [r.envelope for r in reachable])
    posted = [r for r in reachable if r.envelope.envelope_id not in full]
    put_all(tx, [r.envelope for r in posted], recorded=False)
    bulk.insert(tx, "steps", _STEP, [_step(r) for r in posted], _ONCE, _OPEN)
    refused = [r for r in valid if states.get(r.envelope.address) == State.STOPPED]
    refused_steps = [(*_step(r), json.dumps(_STOPPED)) for r in refused]
    bulk.insert(tx, "steps", (*_STEP, "result"), refused_steps, _ONCE, {**_OPEN, "done": "1"})
    results: dict[int, Asked] = {id(r): r.envelope.address in states for r in valid}
    results |= {id(r): Answered(str(r.envelope.ask), _STOPPED) for r in refused}
    if full:
        refusals = [r for r in reachable if r.envelope.envelope_id in full]
        results |= {id(r): capacity.full_error(tx, r.envelope.address) for r in refusals}
    return tuple(results.get(id(r)) for r in requests)


def _valid_claims(tx: Tx, requests: Sequence[Request]) -> set[tuple[str, str, int]]:
    """Return the claims of these turns as stored, and lock them: envelope, its agent or talk, and the epoch of that."""
    of_agents = sorted({r.envelope_id for r in requests if not r.talk_run})
    of_talks = sorted({r.envelope_id for r in requests if r.talk_run})
    rows = bulk.read(
        tx,
        "SELECT i.envelope_id, t.talk_id, t.epoch FROM inbox i JOIN talks t ON t.talk_id = i.lane"
        " WHERE i.envelope_id IN",
        of_talks,
        f" ORDER BY t.talk_id{locking.of_table(tx, 't')}" if tx.for_update else "",
    )
    rows += bulk.read(
        tx,
        "SELECT i.envelope_id, a.address, a.epoch FROM inbox i JOIN agents a ON a.address = i.address"
        " WHERE i.envelope_id IN",
        of_agents,
        f" ORDER BY a.address{locking.of_table(tx, 'a')}" if tx.for_update else "",
    )
    return {(envelope_id, holder, epoch) for envelope_id, holder, epoch in rows}


def _step(r: Request) -> tuple[str, int, str, float, str, str, str]:
    holder = r.holder if r.talk_run else ""  # an agent's journal is found by its envelopes
    return r.envelope_id, r.number, r.envelope.address, r.envelope.created, digest(r.envelope.body), holder, r.talk_run


def _by_asked(tx: Tx, place: Attempt, asked: Sequence[tuple[int, str]], now: float) -> locking.Rows:
    return (claim_lock(place), *(locking.agent(address) for _, address in asked))


@locking.locks(_by_asked)
def withdraw(tx: Tx, place: Attempt, asked: Sequence[tuple[int, str]], now: float) -> tuple[tuple[str, str], ...]:
    """Cancel questions of a turn, each by its number and the key of the agent that was asked.

    Return the envelopes that these agents may have in RAM, by key and id; those of agents that sleep or are stopped
    are removed. A late answer is recorded with the question.
    """
    posted: list[tuple[str, str]] = []
    for number, address in asked:
        ids = {
            "id": place.envelope_id,
            "step": number,
            "run": place.run_id,
            "now": now,
            "address": address,
            "none": json.dumps({"cancelled": True}),
            "ask": request_name(place.holder, place.envelope_id, number),
        }
        tx.write(
            "UPDATE steps SET done = 1, result = :none, outcome = 'interrupted', run_id = :run, ended = :now"
            " WHERE envelope_id = :id AND step = :step AND done = 0",
            ids,
        )
        tx.write(
            "DELETE FROM inbox WHERE address = :address AND address <> '' AND ask = :ask AND EXISTS"
            " (SELECT 1 FROM agents a WHERE a.address = :address"
            " AND (a.state IN ('sleeping', 'stopped') OR a.paused = 1))",
            ids,
        )
        query = "SELECT envelope_id FROM inbox WHERE address = :address AND address <> '' AND ask = :ask"
        posted += [(address, row[0]) for row in tx.read(query, ids)]
    return tuple(posted)


def answer_to(tx: Tx, envelope_id: str, number: int, give_up: bool) -> str | None:
    """Return the answer to a request as JSON; with `give_up` stop waiting for it."""
    ids = {"id": envelope_id, "step": number}
    if give_up:
        tx.write(
            "UPDATE steps SET done = 1, result = :none, ended = roost_now()"
            " WHERE envelope_id = :id AND step = :step AND done = 0",
            {**ids, "none": json.dumps({"timeout": True})},
        )
    row = tx.one("SELECT result FROM steps WHERE envelope_id = :id AND step = :step AND done = 1", ids)
    return row[0] if row else None


def answer(tx: Tx, closings: Sequence[Closing]) -> dict[int, tuple[Answered | None, tuple[Envelope, ...]]]:
    """Give requests their answers, by the id of each closing; return also the envelopes put into inboxes.

    An answer that is no longer awaited is delivered as an envelope of the kind `answer`. If a turn of a talk asked, it
    is recorded with the question instead.
    """
    answers = [(c, Answered(str(c.envelope.ask), _answer_of(c))) for c in closings]
    awaited = set_answers(tx, [answered for _, answered in answers])
    return {
        id(c): (answered, ()) if answered.request in awaited else (None, _deliver_late(tx, c, answered))
        for c, answered in answers
    }


def fail_all(tx: Tx, address: str, why: str) -> tuple[Answered, ...]:
    """Fail all requests that wait for this agent."""
    rows = tx.read(
        "SELECT ask FROM inbox WHERE address = :address AND address <> '' AND ask IS NOT NULL ORDER BY envelope_id",
        {"address": address},
    )
    answers = [Answered(row[0], {"error": why}) for row in rows]
    awaited = set_answers(tx, answers)
    return tuple(answered for answered in answers if answered.request in awaited)


def set_answers(tx: Tx, answers: Sequence[Answered]) -> frozenset[str]:
    """Answer requests; return the ids of those that were still awaited."""
    names = {request_parts(one.request)[1:]: one for one in answers}
    batch = [(asker, number, _as_json(one.answer)) for (asker, number), one in names.items()]
    if bulk.FEW < len(names) == len(answers) and _all_awaited(tx, list(names)):
        bulk.with_batch(tx, _SET_ANSWER, _BATCH, batch)
        return frozenset(one.request for one in answers)
    rows = bulk.with_batch(tx, f"{_SET_ANSWER} RETURNING envelope_id, step", _BATCH, batch)
    return frozenset(names[envelope_id, step].request for envelope_id, step in rows)


_BATCH = {"asker": "TEXT", "number": "BIGINT", "answer": "TEXT"}
_SET_ANSWER = (
    "UPDATE steps SET result = batch.answer, done = 1, ended = roost_now() FROM batch"
    " WHERE envelope_id = batch.asker AND step = batch.number AND done = 0"
)


def _all_awaited(tx: Tx, steps: list[tuple[str, int]]) -> bool:
    """Return whether all answers are awaited; reads one row in the usual case."""
    counted = bulk.with_batch(
        tx,
        "SELECT count(*) FROM (SELECT 1 FROM steps WHERE done = 0 AND (envelope_id, step) IN"
        f" (SELECT asker, number FROM batch){tx.for_update}) AS found",
        {"asker": "TEXT", "number": "BIGINT"},
        steps,
    )
    return bool(sum(count for (count,) in counted) == len(steps))


def _answer_of(c: Closing) -> dict[str, str]:
    return {"text": c.text} if c.verdict is Verdict.DONE else {"error": c.reason or "it was cancelled"}


def _as_json(answer: Mapping[str, str]) -> str:
    """Return JSON like `json.dumps`, ten times as fast for these dictionaries."""
    return "{" + ", ".join([f'"{key}": {json.dumps(value)}' for key, value in answer.items()]) + "}"


def _deliver_late(tx: Tx, c: Closing, answered: Answered) -> tuple[Envelope, ...]:
    e = c.envelope
    if asks_in_talk(answered.request):
        _record_late(tx, answered)
        return ()
    body = to_body(e.body, answered.answer)
    late = Envelope(
        f"{e.envelope_id}:late",
        request_parts(answered.request)[0],
        Kind.ANSWER,
        f"from:agent:{e.address}",
        e.priority,
        f"agent:{e.address}",
        body,
        c.ended,
        rank(c.ended, e.priority),
        hops=e.hops + 1,
        root=e.origin,
    )
    return (late,) if put(tx, late) else ()


def _record_late(tx: Tx, answered: Answered) -> None:
    """Record a late answer beside what the run has seen, which a replay needs; a deleted talk has no record."""
    _, envelope_id, number = request_parts(answered.request)
    ids = {"id": envelope_id, "step": number}
    row = tx.one("SELECT result FROM steps WHERE envelope_id = :id AND step = :step AND kind = 'ask'", ids)
    if row is not None:
        result = {**json.loads(row[0] or "{}"), "late": dict(answered.answer)}
        tx.write(
            "UPDATE steps SET result = :kept WHERE envelope_id = :id AND step = :step",
            {**ids, "kept": json.dumps(result)},
        )
