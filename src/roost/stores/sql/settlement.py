"""Settlement: end attempts of many talks and agents in one transaction and few statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import NEVER, StateChange, StateWrite
from roost.core.envelopes.requests import Answered
from roost.core.envelopes.tasks import TaskStatus
from roost.core.failures.suspicion import Suspicion
from roost.core.runs import FINAL, KEPT, Closing, RunOutcome, Settled, Verdict
from roost.ports import Tx
from roost.stores import bulk, locking
from roost.stores.batching import Calls, batched_by
from roost.stores.sql.brain_data import agent_state, brain_context
from roost.stores.sql.journal import steps
from roost.stores.sql.sending.effects import post_all, post_each
from roost.stores.sql.sending.requests import answer
from roost.stores.sql.sending.row_locks import locks_of
from roost.stores.sql.sleep import window
from roost.stores.sql.tables import dead_letters
from roost.stores.sql.tables.agent_changes import append
from roost.stores.sql.tables.dead_letters import add_dead_letter
from roost.stores.sql.tables.parked import park
from roost.stores.sql.tables.runs import record
from roost.stores.sql.tables.timers import arm
from roost.stores.sql.tables.token_usage import add_usage
from roost.stores.sql.talks import runs as talk_runs
from roost.stores.sql.talks import talk_values


def settle_many(tx: Tx, calls: Calls) -> list[tuple[Settled, ...] | None]:
    """Settle the closings of several calls together; of the calls with `notes` or `writes` only the first one."""
    with_extras = [call for call in calls if any(call[1:])]
    together = [call for call in calls if not any(call[1:]) or call is with_extras[0]]
    together.sort(key=lambda call: not any(call[1:]))  # first, since writes refer to the positions of its closings
    settled = iter(
        settle(tx, tuple(c for call in together for c in call[0]), *(with_extras[0][1:] if with_extras else ()))
    )
    results = {id(call): tuple(islice(settled, len(call[0]))) for call in together}
    return [results.get(id(call)) for call in calls]


def _by_closings(
    tx: Tx,
    closings: tuple[Closing, ...],
    notes: tuple[tuple[str, int, StateChange], ...] = (),
    writes: tuple[StateWrite, ...] = (),
) -> locking.Rows:
    for c in closings:
        if c.answer is not None:
            yield locking.talk(c.envelope.lane)
        if c.envelope.address:
            yield locking.agent(c.envelope.address)
        if c.sleep is not None:
            yield from window.locks_of([(c.envelope.address, c.sleep)])
        yield from locks_of(c.sent)
    yield from (locking.agent(address) for address, _, _ in notes)
    yield from (locking.agent(write.address) for write in writes)


@locking.locks(_by_closings)
@batched_by(settle_many)
def settle(
    tx: Tx,
    closings: tuple[Closing, ...],
    notes: tuple[tuple[str, int, StateChange], ...] = (),
    writes: tuple[StateWrite, ...] = (),
) -> tuple[Settled, ...]:
    """End attempts. For each: envelope, run record, answer, state and everything it sends, or nothing of it.

    A failed attempt is counted here. `notes`: state changes without an attempt, each with the epoch in which it was
    announced. `writes`: state changes by turns of talks, in order with the closings; they are merged, never refused.

    An attempt whose agent was stopped or taken over, or whose task was cancelled, has no effect: its run is recorded as
    `stopped` with its cost; for a deleted agent nothing is recorded. An attempt that changed state which differs from
    what it knew is refused: it runs again and is not counted. A superseded run of a talk may close its message.
    A run of a talk that changes its agent is superseded too if the agent was stopped or taken over.
    """
    if tx.for_share:
        window.lock(tx, [(c.envelope.address, c.sleep) for c in closings if c.sleep is not None])
    of_talks = tuple(c for c in closings if c.answer is not None)
    if not of_talks:
        return _settle_agents(tx, closings, notes, writes)
    settled = dict(zip(map(id, of_talks), _settle_talks(tx, of_talks), strict=True))
    of_agents = tuple(c for c in closings if c.answer is None)
    if of_agents or notes or writes:
        settled |= zip(map(id, of_agents), _settle_agents(tx, of_agents, notes, writes), strict=True)
    return tuple(settled[id(c)] for c in closings)


def _settle_talks(tx: Tx, closings: tuple[Closing, ...]) -> list[Settled]:
    ended = talk_runs.end(tx, closings, _without_agent(tx, closings))
    runs = list(zip(closings, ended, strict=True))
    kept = [(c, run) for c, run in runs if not run.update.gone]
    brain_context.write(tx, (c.brain_context for c, _ in kept if c.brain_context is not None))
    for c, run in kept:
        seq = run.seq or max(envelope.seq for envelope in c.envelopes)
        talk_values.keep(tx, c, seq, superseded=run.update.superseded)
    record(tx, [(c, run.outcome, run.seq, run.ended) for c, run in runs if run.outcome is not None])
    in_lock_order = sorted(range(len(runs)), key=lambda number: runs[number][0].envelope.address)
    settled = {number: _apply_effects(tx, *runs[number]) for number in in_lock_order}
    return [settled[number] for number in range(len(runs))]


def _without_agent(tx: Tx, closings: tuple[Closing, ...]) -> set[int]:
    """Return runs that change an agent which was stopped or taken over meanwhile, by the id of the closing."""
    of_agents = [c for c in closings if c.agent_epoch is not None]
    changing = [c for c in of_agents if c.state is not None or c.sleep is not None or c.changes]
    keys = sorted({c.envelope.address for c in changing})
    ending = f" ORDER BY address{tx.for_update}" if tx.for_update else ""
    rows = bulk.read(tx, "SELECT address, epoch FROM agents WHERE address IN", keys, ending)
    epochs = {row[0]: row[1] for row in rows}
    return {id(c) for c in changing if epochs.get(c.envelope.address) != c.agent_epoch}


def _apply_effects(tx: Tx, c: Closing, run: talk_runs.EndedRun) -> Settled:
    """Apply the effects of a run of a talk that has ended, unless it was superseded."""
    update, agent = run.update, c.envelope.address
    if update.superseded:
        return Settled(False, talk=update)
    if agent and c.state is not None:
        agent_state.add(tx, agent, c.state_before, c.state, run.ended)
    if c.changes:
        append(tx, [(agent, change) for change in c.changes])
    posted = post_all(tx, c.sent, run.ended) if c.sent else ()
    return Settled(True, posted + _fall_asleep(tx, c, run.ended), talk=update)


def _fall_asleep(tx: Tx, c: Closing, now: float) -> tuple[Envelope, ...]:
    """Put the agent to sleep if the turn asked for it; return the events that are delivered to it."""
    if c.sleep is None:
        return ()
    handled = [e.envelope_id for e in c.envelopes]
    return window.fall_asleep(tx, c.envelope.address, c.sleep, c.run_id, handled, c.published, now)


def _settle_agents(
    tx: Tx,
    closings: tuple[Closing, ...],
    notes: tuple[tuple[str, int, StateChange], ...],
    writes: tuple[StateWrite, ...],
) -> tuple[Settled, ...]:
    unfenced, errors = _unfenced(tx, closings)
    states = agent_state.compute(tx, closings, unfenced, writes)
    if states.refused:
        unfenced = [c for c in unfenced if id(c) not in states.refused]
    final = [c.envelope.envelope_id for c in unfenced if c.verdict in FINAL]
    removed = _remove(tx, final)
    settling = [
        c for c in unfenced if c.envelope.envelope_id in removed or (c.verdict in KEPT and _keep_envelope(tx, c))
    ]
    eventful = _eventful(settling, errors)
    for c in eventful:
        if _is_plain(c):
            add_usage(tx, c.run_id, c.profile, c.usage, c.ended)
    record(tx, [(c, c.outcome, None, c.ended) for c in eventful if c.run_id and not _is_plain(c)])
    changes = _valid_changes(tx, notes)
    append(tx, sorted([*_changes_of(eventful), *changes], key=_by_id))
    _update_agents(tx, eventful, errors, changes)
    if states.texts:
        agent_state.write(tx, states)
    _end_tasks(tx, [c for c in eventful if c.envelope.recorded])
    brain_context.write(tx, (c.brain_context for c in eventful if c.brain_context is not None))
    posted = post_each(tx, [(c.sent, c.ended) for c in eventful])
    answers = answer(tx, [c for c in eventful if c.envelope.ask is not None and c.verdict not in KEPT])
    settled = {
        id(c): _settled(tx, c, sent, *answers.get(id(c), _NO_ANSWER)) for c, sent in zip(eventful, posted, strict=True)
    }
    if len(settling) == len(closings):
        return tuple(settled.get(id(c), _ACCEPTED) for c in closings)
    settled = dict.fromkeys(map(id, settling), _ACCEPTED) | settled
    _record_stopped(tx, [c for c in closings if c.run_id and id(c) not in settled and not _is_plain(c)])
    for c in closings:
        if c.verdict is Verdict.RELEASED:
            settled[id(c)] = _released(tx, c)
        elif id(c) in states.refused:
            _released(tx, c)
    return tuple(settled.get(id(c), _REFUSED) for c in closings)


def _record_stopped(tx: Tx, stopped: list[Closing]) -> None:
    """Record attempts that have no effect any more: the run and its cost, nothing else.

    Their agents were stopped or taken over, or their tasks cancelled. For a deleted agent nothing is recorded, even if
    a new agent has its name.
    """
    keys = sorted({c.envelope.address for c in stopped})
    created = {row[0]: row[1] for row in bulk.read(tx, "SELECT address, created FROM agents WHERE address IN", keys)}
    existing = [c for c in stopped if c.started >= created.get(c.envelope.address, NEVER)]
    record(tx, [(c, RunOutcome.STOPPED, None, c.ended) for c in existing])
    bulk.with_batch(
        tx,
        "UPDATE tasks SET attempts = batch.attempts, started = COALESCE(tasks.started, batch.started) FROM batch"
        " WHERE tasks.task_id = batch.task_id AND tasks.status = 'cancelled'",
        {"task_id": "TEXT", "attempts": "BIGINT", "started": "DOUBLE PRECISION"},
        [(c.envelope.envelope_id, c.envelope.attempts, c.started) for c in existing if c.envelope.recorded],
    )


def _unfenced(tx: Tx, closings: tuple[Closing, ...]) -> tuple[Sequence[Closing], dict[str, int]]:
    """Return the attempts whose epoch is current, and each agent's number of failures in a row.

    In the usual case, where all epochs are current and no agent has failed, one count is enough.
    """
    claimed = sorted({(c.envelope.address, c.epoch) for c in closings})
    if len(claimed) > bulk.FEW:
        counted = bulk.with_batch(
            tx, _COUNT_CLAIMS.format(tx.for_update), {"agent": "TEXT", "claimed_epoch": "BIGINT"}, claimed
        )
        if sum(count for [count] in counted) == len(claimed):
            return closings, dict.fromkeys((address for address, _ in claimed), 0)
    addresses, ending = sorted({address for address, _ in claimed}), f" ORDER BY address{tx.for_update}"
    rows = bulk.read(tx, "SELECT address, epoch, errors FROM agents WHERE address IN", addresses, ending)
    epochs = {address: epoch for address, epoch, _ in rows}
    unfenced = [c for c in closings if epochs.get(c.envelope.address) == c.epoch]
    return unfenced, {address: count for address, _, count in rows}


def _remove(tx: Tx, envelope_ids: list[str]) -> set[str]:
    """Delete envelopes and return those that existed. If a task is cancelled concurrently, one of both deletes it."""
    distinct = set(envelope_ids)
    if bulk.FEW < len(distinct) == len(envelope_ids) and bulk.all_exist(
        tx, _COUNT_ENVELOPES, envelope_ids, f"{tx.for_update}) AS found"
    ):
        bulk.write(tx, _DELETE_ENVELOPES, envelope_ids)
        return distinct
    return {row[0] for row in bulk.write(tx, _DELETE_ENVELOPES, envelope_ids, " RETURNING envelope_id")}


def _eventful(settling: list[Closing], errors: Mapping[str, int]) -> list[Closing]:
    """Return the closings with an effect other than `done`, and all closings of agents with failures."""
    eventful = [c for c in settling if not _is_uneventful(c)]
    failing = {c.envelope.address for c in eventful if c.verdict is not Verdict.DONE}
    failing |= {address for address, count in errors.items() if count}
    if not failing:
        return eventful
    return [c for c in settling if c.envelope.address in failing or not _is_uneventful(c)]


def _is_uneventful(c: Closing) -> bool:
    if c.sent or c.changes or c.state is not None or c.sleep is not None or c.brain_context is not None:
        return False
    return not c.usage.tokens and c.envelope.ask is None and _is_plain(c)


def _changes_of(closings: list[Closing]) -> list[tuple[str, StateChange]]:
    return [(c.envelope.address, change) for c in closings for change in c.changes]


def _by_id(change: tuple[str, StateChange]) -> tuple[str, str]:
    return change[0], change[1].change_id


def _valid_changes(tx: Tx, notes: tuple[tuple[str, int, StateChange], ...]) -> list[tuple[str, StateChange]]:
    """Return the announced changes of agents that were not taken over, stopped or deleted meanwhile; lock these."""
    keys, ending = sorted({key for key, _, _ in notes}), f" ORDER BY address{tx.for_update}" if tx.for_update else ""
    rows = bulk.read(tx, "SELECT address, epoch FROM agents WHERE address IN", keys, ending)
    current = {(row[0], row[1]) for row in rows}
    return [(key, change) for key, epoch, change in notes if (key, epoch) in current]


_ACCEPTED, _REFUSED = Settled(True), Settled(False)
_NO_ANSWER: tuple[None, tuple[Envelope, ...]] = (None, ())
_COUNT_CLAIMS = (
    "SELECT count(DISTINCT address) FROM (SELECT address FROM batch CROSS JOIN agents WHERE address = batch.agent"
    " AND epoch = batch.claimed_epoch AND errors = 0 ORDER BY address{}) AS found"
)
_DELETE_ENVELOPES = "DELETE FROM inbox WHERE envelope_id IN"
_COUNT_ENVELOPES = "SELECT count(*) FROM (SELECT 1 FROM inbox WHERE envelope_id IN"


def _is_plain(c: Closing) -> bool:
    """Return whether it is a message between agents, handled without a step: these are many and leave no record."""
    return c.verdict is Verdict.DONE and c.envelope.kind is Kind.TASK and not c.envelope.recorded and not c.journaled


def _keep_envelope(tx: Tx, c: Closing) -> bool:
    """Keep the envelope in its inbox for another attempt."""
    if c.verdict is Verdict.WAITING:
        return park(tx, [c.envelope.envelope_id]) is not None
    if c.verdict is Verdict.REPEATED:
        return _repeat(tx, c)
    ids = {"id": c.envelope.envelope_id, "due": c.due, "attempts": c.envelope.attempts}
    query = (
        "UPDATE inbox SET due = :due, attempts = :attempts, suspect = 0, status = 'ready' WHERE envelope_id = :id"
        " RETURNING attempts"
    )
    if not tx.write(query, ids):
        return False
    arm(tx, c.envelope.address, "retry", c.due, earlier=True)
    if c.journaled:
        steps.prepare_retry(tx, c.envelope.envelope_id)
    return True


def _repeat(tx: Tx, c: Closing) -> bool:
    """Let the envelope run again at once. It ended without a crash, so it is no longer suspect."""
    ids = {"id": c.envelope.envelope_id}
    if c.envelope.suspect:
        return bool(tx.write("UPDATE inbox SET suspect = 0 WHERE envelope_id = :id RETURNING envelope_id", ids))
    return tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", ids) is not None


def _released(tx: Tx, c: Closing) -> Settled:
    """Release an envelope whose attempt was ended from outside and is not counted; it may return to quarantine."""
    if c.envelope.suspect:
        ids = {"id": c.envelope.envelope_id, "quarantined": int(Suspicion.QUARANTINED)}
        tx.write("UPDATE inbox SET suspect = :quarantined WHERE envelope_id = :id AND suspect > :quarantined", ids)
    return _ACCEPTED


def _settled(
    tx: Tx, c: Closing, posted: tuple[Envelope, ...], answered: Answered | None, late: tuple[Envelope, ...]
) -> Settled:
    posted += late
    if _is_plain(c) and c.sleep is None:
        return Settled(True, posted, answered=answered) if posted or answered is not None else _ACCEPTED
    posted += _fall_asleep(tx, c, c.ended)
    if c.envelope.kind is Kind.MAIL and c.verdict is Verdict.DONE:
        processed = {"mail": c.envelope.body, "now": c.ended}
        tx.write("UPDATE mail SET processed = :now WHERE mail_id = :mail", processed)
    if c.verdict is Verdict.DEAD:
        add_dead_letter(tx, dead_letters.last_attempt_failed(c))
    over = c.envelope.envelope_id if c.envelope.recorded and c.verdict not in KEPT else None
    return Settled(True, posted, over, answered)


def _update_agents(
    tx: Tx, closings: list[Closing], errors: Mapping[str, int], changes: list[tuple[str, StateChange]]
) -> None:
    """Update the agents' rows: last activity and number of failures in a row."""
    failures: dict[str, tuple[float, int]] = {}
    for c in closings:
        address = c.envelope.address
        if c.fault in ("expired", "withdrawn"):  # it was not attempted
            continue
        before = failures[address][1] if address in failures else errors[address]
        if c.state is None and not c.changes and c.verdict is Verdict.DONE and not before:
            continue
        failed = c.verdict in (Verdict.RETRY, Verdict.DEAD)
        failures[address] = (c.ended, before + 1 if failed else before if c.verdict in KEPT else 0)
    active: dict[str, tuple[float, int | None]] = {key: (change.at, None) for key, change in changes}
    active |= failures
    bulk.with_batch(
        tx,
        "UPDATE agents SET last_active = batch.now, errors = COALESCE(batch.errors, agents.errors) FROM batch"
        " WHERE agents.address = batch.address",
        {"address": "TEXT", "now": "DOUBLE PRECISION", "errors": "BIGINT"},
        [(address, ended, count) for address, (ended, count) in active.items()],
    )


_STATUS = {
    Verdict.DONE: TaskStatus.DONE,
    Verdict.RETRY: TaskStatus.QUEUED,
    Verdict.WAITING: TaskStatus.QUEUED,
    Verdict.REPEATED: TaskStatus.QUEUED,
    Verdict.DEAD: TaskStatus.FAILED,
    Verdict.CANCELLED: TaskStatus.CANCELLED,
}


def _end_tasks(tx: Tx, ended: list[Closing]) -> None:
    bulk.with_batch(
        tx,
        "UPDATE tasks SET status = batch.status, attempts = batch.attempts,"
        " started = COALESCE(tasks.started, batch.started), ended = batch.ended, result = batch.result,"
        " error = batch.error, fault = batch.fault FROM batch WHERE tasks.task_id = batch.task_id",
        {
            "task_id": "TEXT",
            "status": "TEXT",
            "attempts": "BIGINT",
            "started": "DOUBLE PRECISION",
            "ended": "DOUBLE PRECISION",
            "result": "TEXT",
            "error": "TEXT",
            "fault": "TEXT",
        },
        [
            (
                c.envelope.envelope_id,
                TaskStatus.EXPIRED if c.fault == "expired" else _STATUS[c.verdict],
                c.envelope.attempts,
                c.started if c.run_id else None,
                None if c.verdict in KEPT else c.ended,
                c.text if c.verdict is Verdict.DONE else None,
                c.reason or None,
                c.fault,
            )
            for c in ended
        ],
    )
