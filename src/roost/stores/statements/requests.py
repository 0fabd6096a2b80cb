"""Requests: asked by turns, answered by what is said about them; many at once, in few statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from roost.core.agents import State
from roost.core.envelopes import Answered, Envelope, Kind, Request, Verdict, WorkClosing, request_parts
from roost.core.priority import rank
from roost.core.steps import digest
from roost.ports import Tx
from roost.stores.statements import bulk
from roost.stores.statements.envelopes import put, put_all

_STEP = ("envelope_id", "step", "name", "created", "key")
_ASKED = {"kind": "'ask'", "done": "0"}
_STOPPED = {"error": "it is stopped"}
_ONCE = " ON CONFLICT (envelope_id, step) DO NOTHING"


def ask(
    tx: Tx, requests: tuple[Request, ...], full: frozenset[str] = frozenset()
) -> tuple[bool | Answered | None, ...]:  # fmt: skip
    """Post requests, and put on record that their answers are waited for.

    Of each whether it was posted: False if whom it asks does not exist (any more), None if its turn may not ask. One
    who is stopped is not asked: that is the answer.
    """
    askers = sorted({request.envelope_id for request in requests})
    rows = bulk.among(
        tx, "SELECT i.envelope_id, a.address, a.epoch FROM inbox i JOIN agents a ON a.address = i.address"
        " WHERE i.envelope_id IN", askers,
    )  # fmt: skip
    may = {(envelope_id, address, epoch) for envelope_id, address, epoch in rows}
    ours = [r for r in requests if (r.envelope_id, r.address, r.epoch) in may]
    asked = bulk.among(
        tx, "SELECT address, state FROM agents WHERE address IN", sorted({r.envelope.address for r in ours})
    )  # fmt: skip
    states: dict[str, str] = {row[0]: row[1] for row in asked}
    posted = [r for r in ours if states.get(r.envelope.address, State.STOPPED) != State.STOPPED]
    put_all(tx, [r.envelope for r in posted], recorded=False, full=full)
    bulk.insert(tx, "steps", _STEP, [_step(r) for r in posted], _ONCE, _ASKED)
    refused = [r for r in ours if states.get(r.envelope.address) == State.STOPPED]
    noted = [(*_step(r), json.dumps(_STOPPED)) for r in refused]
    bulk.insert(tx, "steps", (*_STEP, "result"), noted, _ONCE, {**_ASKED, "done": "1"})
    found: dict[int, bool | Answered] = {id(r): r.envelope.address in states for r in ours}
    found |= {id(r): Answered(str(r.envelope.ask), _STOPPED) for r in refused}
    return tuple(found.get(id(r)) for r in requests)


def _step(r: Request) -> tuple[str, int, str, float, str]:
    return r.envelope_id, r.number, r.envelope.address, r.envelope.created, digest(r.envelope.body)


def answer_to(tx: Tx, envelope_id: str, number: int, give_up: bool) -> str | None:
    """The answer to a request, as JSON; with `give_up` none is waited for from now on."""
    ids = {"id": envelope_id, "step": number}
    if give_up:
        tx.write(
            "UPDATE steps SET done = 1, result = :none WHERE envelope_id = :id AND step = :step AND done = 0",
            {**ids, "none": json.dumps({"timeout": True})},
        )
    row = tx.one("SELECT result FROM steps WHERE envelope_id = :id AND step = :step AND done = 1", ids)
    return row[0] if row else None


def answer(
    tx: Tx, closings: Sequence[WorkClosing]
) -> dict[int, tuple[Answered | None, tuple[Envelope, ...]]]:  # fmt: skip
    """Give requests their answers, by the id of each closing; with what that has put into inboxes.

    One that is not waited for any more is delivered as a message that says so.
    """
    said = [(c, Answered(str(c.envelope.ask), _answer_of(c))) for c in closings]
    waiting = give(tx, [answered for _, answered in said])
    return {
        id(c): (answered, ()) if answered.request in waiting else (None, _late(tx, c, answered)) for c, answered in said
    }


def end(tx: Tx, address: str, why: str) -> tuple[Answered, ...]:
    """Those who wait for answers of this agent are told that there will be none."""
    rows = tx.read(
        "SELECT ask FROM inbox WHERE address = :address AND address <> '' AND ask IS NOT NULL ORDER BY envelope_id",
        {"address": address},
    )
    answers = [Answered(row[0], {"error": why}) for row in rows]
    waiting = give(tx, answers)
    return tuple(one for one in answers if one.request in waiting)


def give(tx: Tx, answers: Sequence[Answered]) -> frozenset[str]:
    """The ids of those requests that were still waited for."""
    names = {request_parts(one.request)[1:]: one for one in answers}
    given = [(asker, number, _as_json(one.answer)) for (asker, number), one in names.items()]
    if bulk.FEW < len(names) == len(answers) and _all_wait(tx, list(names)):
        bulk.using(tx, _GIVE, _GIVEN, given)
        return frozenset(one.request for one in answers)
    rows = bulk.using(tx, f"{_GIVE} RETURNING envelope_id, step", _GIVEN, given)
    return frozenset(names[envelope_id, step].request for envelope_id, step in rows)


_GIVEN = {"asker": "TEXT", "number": "BIGINT", "answer": "TEXT"}
_GIVE = (
    "UPDATE steps SET result = given.answer, done = 1 FROM given"
    " WHERE envelope_id = given.asker AND step = given.number AND done = 0"
)


def _all_wait(tx: Tx, steps: list[tuple[str, int]]) -> bool:
    """As a rule they do, and then one row says so instead of one for each."""
    counted = bulk.using(
        tx, "SELECT count(*) FROM (SELECT 1 FROM steps WHERE done = 0 AND (envelope_id, step) IN"
        f" (SELECT asker, number FROM given){tx.for_update}) AS found", {"asker": "TEXT", "number": "BIGINT"}, steps,
    )  # fmt: skip
    return bool(sum(count for (count,) in counted) == len(steps))


def _answer_of(c: WorkClosing) -> dict[str, str]:
    return {"text": c.text} if c.verdict is Verdict.DONE else {"error": c.reason or "it was cancelled"}


def _as_json(answer: Mapping[str, str]) -> str:
    """As `json.dumps` does it, which takes ten times as long for a dictionary as for what is in it."""
    return "{" + ", ".join([f'"{key}": {json.dumps(value)}' for key, value in answer.items()]) + "}"


def _late(tx: Tx, c: WorkClosing, answered: Answered) -> tuple[Envelope, ...]:
    e = c.envelope
    body = json.dumps({"late": True, "asked": e.body, **answered.answer})
    late = Envelope(
        f"{e.envelope_id}:late", request_parts(answered.request)[0], Kind.TASK, f"from:agent:{e.address}", e.priority,
        f"agent:{e.address}", body, c.ended, rank(c.ended, e.priority), attempts=0, hops=e.hops + 1, claimed=False,
        root=e.origin,
    )  # fmt: skip
    return (late,) if put(tx, late) else ()
