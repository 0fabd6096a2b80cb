"""Settling: what tries leave behind, of many agents at once, in one transaction and few statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from roost.core import wake
from roost.core.agents import State
from roost.core.envelopes import KEPT, NEVER, Answered, Change, Envelope, Kind, Verdict, WorkClosing, WorkSettled
from roost.core.recall import merged
from roost.core.tasks import TaskStatus
from roost.ports import Tx
from roost.stores.statements import bulk, burial, diary, steps
from roost.stores.statements.burial import bury
from roost.stores.statements.posting import post_each
from roost.stores.statements.requests import answer
from roost.stores.statements.resting import rest
from roost.stores.statements.sleep import arm, await_condition, record_all, sleeping
from roost.stores.statements.spending import spend


def settle(
    tx: Tx, closings: tuple[WorkClosing, ...], full: frozenset[str] = frozenset(),
    notes: tuple[tuple[str, Change], ...] = (),
) -> tuple[WorkSettled, ...]:  # fmt: skip
    """End tries: of each the envelope, the record, the agent's memory and all that it sends, at once or not at all."""
    ours, errors = _ours(tx, closings)
    gone = [c.envelope.envelope_id for c in ours if c.verdict in _FINAL]
    removed = _remove(tx, gone)
    taken = [c for c in ours if c.envelope.envelope_id in removed or (c.verdict in KEPT and _keep_on(tx, c))]
    told = _eventful(taken, errors)
    for c in told:
        if c.usage.tokens:
            spend(tx, c.run_id, c.profile, c.usage, c.ended)
    bulk.insert(tx, "runs", _RUN, [_run_of(c) for c in told if c.run_id and not _is_plain(c)], _ONCE)
    noted = _noted(tx, notes)
    record_all(tx, [*_changed(tx, told), *noted])
    _keep(tx, told, errors, noted)
    _end_tasks(tx, [c for c in told if c.envelope.recorded])
    diary.write(tx, (c.diary for c in told if c.diary is not None))
    posted = post_each(tx, [(c.sent, c.ended) for c in told], full)
    answers = answer(tx, [c for c in told if c.envelope.ask is not None and c.verdict not in KEPT])
    settled = {
        id(c): _settled(tx, c, sent, *answers.get(id(c), _NO_ANSWER)) for c, sent in zip(told, posted, strict=True)
    }
    if len(taken) == len(closings):
        return tuple(settled.get(id(c), _TAKEN) for c in closings)
    settled = dict.fromkeys(map(id, taken), _TAKEN) | settled
    _cut_off(tx, [c for c in closings if c.run_id and id(c) not in settled and not _is_plain(c)])
    for c in closings:
        if c.verdict is Verdict.RELEASED:
            settled[id(c)] = WorkSettled(_release(tx, c))
    return tuple(settled.get(id(c), _REFUSED) for c in closings)


def _cut_off(tx: Tx, stopped: list[WorkClosing]) -> None:
    """Of tries that count for nothing any more: that they were there, and what they have cost; nothing else.

    Their agents were stopped or taken over, or their tasks cancelled. Of one that was deleted nothing is kept, though
    another may have its name by now.
    """
    keys = sorted({c.envelope.address for c in stopped})
    born = {row[0]: row[1] for row in bulk.among(tx, "SELECT address, created FROM agents WHERE address IN", keys)}
    there = [c for c in stopped if c.started >= born.get(c.envelope.address, NEVER)]
    for c in there:
        spend(tx, c.run_id, c.profile, c.usage, c.ended)
    bulk.insert(tx, "runs", _RUN, [_run_of(replace(c, verdict=Verdict.CANCELLED)) for c in there], _ONCE)
    bulk.using(
        tx, "UPDATE tasks SET attempts = given.attempts, started = COALESCE(tasks.started, given.started) FROM given"
        " WHERE tasks.task_id = given.task_id AND tasks.status = 'cancelled'",
        {"task_id": "TEXT", "attempts": "BIGINT", "started": "DOUBLE PRECISION"},
        [(c.envelope.envelope_id, c.envelope.attempts, c.started) for c in there if c.envelope.recorded],
    )  # fmt: skip


def _ours(tx: Tx, closings: tuple[WorkClosing, ...]) -> tuple[Sequence[WorkClosing], dict[str, int]]:
    """Those whose agents nobody else has taken over, and how often in a row each of these agents has failed.

    Where nobody has, and none has failed, one number says so.
    """
    claimed = sorted({(c.envelope.address, c.epoch) for c in closings})
    if len(claimed) > bulk.FEW:
        counted = bulk.using(tx, _WELL.format(tx.for_update), {"agent": "TEXT", "reign": "BIGINT"}, claimed)
        if sum(count for [count] in counted) == len(claimed):
            return closings, dict.fromkeys((address for address, _ in claimed), 0)
    addresses, locked = sorted({address for address, _ in claimed}), f" ORDER BY address{tx.for_update}"
    rows = bulk.among(tx, "SELECT address, epoch, errors FROM agents WHERE address IN", addresses, locked)
    epochs = {address: epoch for address, epoch, _ in rows}
    ours = [c for c in closings if epochs.get(c.envelope.address) == c.epoch]
    return ours, {address: count for address, _, count in rows}


def _remove(tx: Tx, gone: list[str]) -> set[str]:
    """Those of them that were there: of what somebody else cancels at the same moment, one of the two is told so."""
    there = set(gone)
    if bulk.FEW < len(there) == len(gone) and bulk.all_there(tx, _COUNT, gone, f"{tx.for_update}) AS found"):
        bulk.change(tx, _DELETE, gone)
        return there
    return {row[0] for row in bulk.change(tx, _DELETE, gone, " RETURNING envelope_id")}


def _eventful(taken: list[WorkClosing], errors: Mapping[str, int]) -> list[WorkClosing]:
    """Those that leave more behind than that they are done; with all of agents that have failed, which are counted."""
    told = [c for c in taken if not _is_uneventful(c)]
    failing = {c.envelope.address for c in told if c.verdict is not Verdict.DONE}
    failing |= {address for address, count in errors.items() if count}
    if not failing:
        return told
    return [c for c in taken if c.envelope.address in failing or not _is_uneventful(c)]


def _is_uneventful(c: WorkClosing) -> bool:
    if c.sent or c.changes or c.memory is not None or c.sleep is not None or c.diary is not None or c.usage.tokens:
        return False
    return c.envelope.ask is None and _is_plain(c)


def _changed(tx: Tx, told: list[WorkClosing]) -> list[tuple[str, Change]]:
    """How their agents have changed. Of several turns that ask for sleep, one puts the agent to sleep."""
    changes = [(c.envelope.address, change) for c in told for change in c.changes]
    sleepers = sorted({key for key, change in changes if change.after == State.SLEEPING})
    if not sleepers:
        return changes
    asleep, recorded = sleeping(tx, sleepers), []
    for key, change in changes:
        if change.after != State.SLEEPING or key not in asleep:
            recorded.append((key, change))
        if change.after == State.SLEEPING:
            asleep.add(key)
    return recorded


def _noted(tx: Tx, notes: tuple[tuple[str, Change], ...]) -> list[tuple[str, Change]]:
    """Those of agents that were not deleted meanwhile."""
    keys = sorted({key for key, _ in notes})
    there = {row[0] for row in bulk.among(tx, "SELECT address FROM agents WHERE address IN", keys)}
    return [(key, change) for key, change in notes if key in there]


_TAKEN, _REFUSED = WorkSettled(True), WorkSettled(False)
_NO_ANSWER: tuple[None, tuple[Envelope, ...]] = (None, ())
_FINAL = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.CANCELLED})
_WELL = (
    "SELECT count(DISTINCT address) FROM (SELECT address FROM given CROSS JOIN agents WHERE address = given.agent"
    " AND epoch = given.reign AND errors = 0 ORDER BY address{}) AS found"
)
_DELETE = "DELETE FROM inbox WHERE envelope_id IN"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM inbox WHERE envelope_id IN"
_ONCE = " ON CONFLICT (run_id) DO NOTHING"
_RUN = (
    "run_id", "talk_id", "outcome", "attempts", "started", "ended", "fault", "address", "kind", "envelope_id", "said",
    "root", "model", "input_tokens", "output_tokens", "cost", "given",
)  # fmt: skip


def _is_plain(c: WorkClosing) -> bool:
    """A message from agent to agent, handled without a step: of those there are many, and nothing is kept of them."""
    return c.verdict is Verdict.DONE and c.envelope.kind is Kind.TASK and not c.envelope.recorded and not c.journaled


def _keep_on(tx: Tx, c: WorkClosing) -> bool:
    """It stays in its inbox, for another try."""
    if c.verdict is Verdict.WAITING:
        return rest(tx, [c.envelope.envelope_id]) is not None
    ids = {"id": c.envelope.envelope_id, "due": c.due}
    if not tx.write("UPDATE inbox SET due = :due WHERE envelope_id = :id RETURNING attempts", ids):
        return False
    arm(tx, c.envelope.address, "retry", c.due, earlier=True)
    if c.journaled:
        steps.freshen(tx, c.envelope.envelope_id)
    return True


def _release(tx: Tx, c: WorkClosing) -> bool:
    ids = {"id": c.envelope.envelope_id}
    return bool(tx.write(_UNTRY, ids))


_UNTRY = (
    "UPDATE inbox SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    " WHERE envelope_id = :id RETURNING attempts"
)


def _settled(
    tx: Tx, c: WorkClosing, posted: tuple[Envelope, ...], answered: Answered | None, late: tuple[Envelope, ...]
) -> WorkSettled:  # fmt: skip
    posted += late
    if _is_plain(c) and c.sleep is None:
        return WorkSettled(True, posted, answered=answered) if posted or answered is not None else _TAKEN
    if c.sleep is not None:
        await_condition(tx, c.envelope.address.rpartition("/")[0], c.envelope.address, wake.from_json(c.sleep))
    if c.envelope.kind is Kind.MAIL and c.verdict is Verdict.DONE:
        processed = {"mail": c.envelope.body, "now": c.ended}
        tx.write("UPDATE mail SET processed = :now WHERE mail_id = :mail", processed)
    if c.verdict is Verdict.DEAD:
        bury(tx, burial.failed(c))
    over = c.envelope.envelope_id if c.envelope.recorded and c.verdict not in KEPT else None
    return WorkSettled(True, posted, over, answered)


def _keep(
    tx: Tx, taken: list[WorkClosing], errors: Mapping[str, int], noted: list[tuple[str, Change]]
) -> None:  # fmt: skip
    """What agents remember of it: their memory, when they were last active, how often in a row they have failed."""
    memories: dict[str, list[WorkClosing]] = {}
    kept: dict[str, tuple[float, int]] = {}
    for c in taken:
        address = c.envelope.address
        if c.fault == "expired":  # nobody has tried it
            continue
        before = kept[address][1] if address in kept else errors[address]
        if c.memory is None and not c.changes and c.verdict is Verdict.DONE and not before:
            continue
        if c.memory is not None:
            memories.setdefault(address, []).append(c)
        failed = c.verdict in (Verdict.RETRY, Verdict.DEAD)
        kept[address] = (c.ended, before + 1 if failed else before if c.verdict is Verdict.WAITING else 0)
    active: dict[str, tuple[float, int | None]] = {key: (change.at, None) for key, change in noted}
    active |= kept
    bulk.using(
        tx, "UPDATE agents SET last_active = given.now, errors = COALESCE(given.errors, agents.errors) FROM given"
        " WHERE agents.address = given.address",
        {"address": "TEXT", "now": "DOUBLE PRECISION", "errors": "BIGINT"},
        [(address, ended, count) for address, (ended, count) in active.items()],
    )  # fmt: skip
    _remember(tx, {address: _remembered(tries) for address, tries in memories.items()})


def _remember(tx: Tx, memories: Mapping[str, tuple[str, str]]) -> None:
    """Of each agent what it knew before, and what it knows now.

    If it is not what is there, something that it knew was refused, or somebody else has changed it: then only what
    differs is written.
    """
    columns = {"address": "TEXT", "knew": "TEXT", "memory": "TEXT"}
    written = bulk.using(
        tx, "UPDATE agents SET memory = given.memory FROM given WHERE agents.address = given.address"
        " AND COALESCE(agents.memory, '') = given.knew RETURNING agents.address",
        columns, [(address, knew, memory) for address, (knew, memory) in memories.items()],
    )  # fmt: skip
    differing = sorted(memories.keys() - {row[0] for row in written})
    for address, there in bulk.among(tx, "SELECT address, memory FROM agents WHERE address IN", differing):
        memory = json.dumps(merged(*memories[address], there))
        tx.write("UPDATE agents SET memory = :memory WHERE address = :address", {"address": address, "memory": memory})


def _remembered(tries: list[WorkClosing]) -> tuple[str, str]:
    """What was known before the first of them, and after the last."""
    knew = memory = tries[0].knew or ""
    for c in tries:
        after = c.memory or "{}"
        memory = after if (c.knew or "") == memory else json.dumps(merged(c.knew, after, memory))
    return knew, memory


_STATUS = {
    Verdict.DONE: TaskStatus.DONE,
    Verdict.RETRY: TaskStatus.QUEUED,
    Verdict.WAITING: TaskStatus.QUEUED,
    Verdict.DEAD: TaskStatus.FAILED,
    Verdict.CANCELLED: TaskStatus.CANCELLED,
}


def _end_tasks(tx: Tx, ended: list[WorkClosing]) -> None:
    bulk.using(
        tx, "UPDATE tasks SET status = given.status, attempts = given.attempts,"
        " started = COALESCE(tasks.started, given.started), ended = given.ended, result = given.result,"
        " error = given.error, fault = given.fault FROM given WHERE tasks.task_id = given.task_id",
        {"task_id": "TEXT", "status": "TEXT", "attempts": "BIGINT", "started": "DOUBLE PRECISION",
         "ended": "DOUBLE PRECISION", "result": "TEXT", "error": "TEXT", "fault": "TEXT"},
        [
            (c.envelope.envelope_id, TaskStatus.EXPIRED if c.fault == "expired" else _STATUS[c.verdict],
             c.envelope.attempts, c.started if c.run_id else None, None if c.verdict in KEPT else c.ended,
             c.text if c.verdict is Verdict.DONE else None, c.reason or None, c.fault)
            for c in ended
        ],
    )  # fmt: skip


def _run_of(c: WorkClosing) -> tuple[Any, ...]:
    e = c.envelope
    return (
        c.run_id, "", _OUTCOMES[c.verdict], e.attempts, c.started, c.ended, c.fault, e.address, e.kind, e.envelope_id,
        c.text[:10_000] or None, e.origin, c.usage.model, c.usage.input_tokens, c.usage.output_tokens, c.usage.cost,
        c.given,
    )  # fmt: skip


_OUTCOMES = {
    Verdict.DONE: "done",
    Verdict.RETRY: "failed",
    Verdict.DEAD: "failed",
    Verdict.CANCELLED: "stopped",
    Verdict.WAITING: "waiting",
}
