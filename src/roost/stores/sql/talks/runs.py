"""Runs of talks: settle, park, stop, and claim lanes. What they write meanwhile is in `answers`.

Each statement that writes for a run checks the talk's epoch.
"""

from __future__ import annotations

import json
from dataclasses import replace

from roost.core.envelopes.envelope import Envelope as Posting
from roost.core.talks import side_channels
from roost.core.talks.messages import Message, Sender, Status, at
from roost.core.talks.runs import Claimed, Closing, Halted, RunOutcome, Settled, TalkEnvelope
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.batching import Calls, batched_by
from roost.stores.sql.brain_data import agent_state, brain_context
from roost.stores.sql.sending.effects import post_all
from roost.stores.sql.sleep import window
from roost.stores.sql.tables import parked
from roost.stores.sql.tables.agent_changes import append
from roost.stores.sql.tables.parked import PARKED_TALK, UNCLAIMED_TALK
from roost.stores.sql.tables.token_usage import spend
from roost.stores.sql.talks.answers import (
    close_lost,
    lock,
    message_at,
    write_answer,
)
from roost.stores.sql.talks.messages import insert
from roost.stores.sql.talks.talks import found

_END = (
    "UPDATE talks SET revision = revision + 1, last_seq = last_seq + 1, waiting = waiting - 1,"
    " state = COALESCE(given.kept, state) FROM given WHERE talk_id = given.talk AND epoch = given.reign"
    " AND answer_seq = 0 AND EXISTS (SELECT 1 FROM inbox WHERE envelope_id = given.envelope)"
    " RETURNING talk_id, last_seq, revision, waiting, roost_now()"
)
_GIVEN = {"talk": "TEXT", "reign": "BIGINT", "kept": "TEXT", "envelope": "TEXT"}


def settle_many(tx: Tx, calls: Calls) -> list[Settled | None]:
    """Settle short turns in few statements; leave those that are not simple."""
    simple = [c for [c] in calls if _is_simple(c)]
    given = [(c.talk_id, c.epoch, None if c.agent else c.state, c.envelopes[0].envelope_id) for c in simple]
    ended = {row[0]: row[1:] for row in bulk.using(tx, _END, _GIVEN, given)}
    gone = [c.envelopes[0].envelope_id for c in simple if c.talk_id in ended]
    bulk.change(tx, "DELETE FROM inbox WHERE envelope_id IN", gone)
    return [_settle_simple(tx, c, ended[c.talk_id]) if c.talk_id in ended else None for [c] in calls]


@batched_by(settle_many)
def settle(tx: Tx, c: Closing) -> Settled:
    """End a run: its message, envelopes, record and the talk's state, in one transaction.

    A superseded run may only close the message it opened, as interrupted. If it opened none, or wrote nothing but
    notes, its envelopes stay for the next run.
    """
    [settled] = settle_many(tx, [(c,)])
    if settled is not None:
        return settled
    row = lock(tx, c.talk_id)
    if row is None:
        return Settled(0, c.epoch, 0, None, superseded=True, gone=True)
    _note(tx, c)
    # Without envelopes it was settled before, or they were dropped.
    if row[0] != c.epoch or not _still_there(tx, c.envelopes):
        return _settle_superseded(tx, c, row)
    handled = bool(row[2]) if c.handled is None else c.handled
    done = _remove(tx, c.envelopes) if handled else 0
    if not handled:
        _run_again(tx, c)
    settled = write_answer(
        tx,
        c.talk_id,
        c.run_id,
        row,
        c.text,
        c.notes,
        c.status,
        c.error,
        done=done,
        state=None if c.agent else c.state,
        supersede=c.supersede,
        again=not handled,
    )
    _record(tx, c, c.outcome, settled.message, row[3])
    if c.sent or c.agent:
        settled = replace(settled, posted=_act(tx, c, row[3]))
    return settled if handled else replace(settled, left=c.envelopes)


def park(tx: Tx, c: Closing) -> Settled:
    """Park a run that waits for a person: its answer stays open, and the whole lane waits.

    If the person has decided meanwhile, its envelopes are `left`, to run again at once.
    """
    row = lock(tx, c.talk_id)
    if row is None:
        return Settled(0, c.epoch, 0, None, superseded=True, gone=True)
    if row[0] != c.epoch or not _still_there(tx, c.envelopes):
        return _settle_superseded(tx, c, row)
    rested = bool(parked.park(tx, [e.envelope_id for e in c.envelopes], retry_now=True))
    _, _, answer_seq, now = row
    advance = "UPDATE talks SET revision = revision + 1 WHERE talk_id = :talk RETURNING revision, waiting"
    revision, waiting = tx.write(advance, {"talk": c.talk_id})[0]
    message = None
    if answer_seq:
        ids = {"talk": c.talk_id, "seq": answer_seq, "text": c.text, "notes": c.notes, "revision": revision}
        tx.write(
            "UPDATE messages SET content = :text, notes = :notes, revision = :revision"
            " WHERE talk_id = :talk AND seq = :seq",
            ids,
        )
        tx.write("DELETE FROM parts WHERE talk_id = :talk AND seq = :seq", ids)
        if not rested:
            parked.close_answer(tx, c.talk_id, answer_seq, revision, again=True)
        message = message_at(tx, c.talk_id, answer_seq)
    _record(tx, c, RunOutcome.WAITING, message, now)
    left = () if rested else tuple(replace(e, due=parked.RESUMED, suspect=0) for e in c.envelopes)
    return Settled(revision, c.epoch, waiting, message, left=left, rested=rested)


def _is_simple(c: Closing) -> bool:
    """Return whether it handles one message and ended before its answer was opened."""
    said = bool(c.text or c.error or c.notes) and c.status is not Status.INTERRUPTED
    return bool(c.handled) and not c.supersede and said and len(c.envelopes) == 1


def _settle_simple(tx: Tx, c: Closing, row: Row) -> Settled:
    seq, revision, waiting, now = row
    _note(tx, c)
    message = Message(seq, Sender.AGENT, c.text, c.status, at(now), c.error, c.run_id, side_channels.unpack(c.notes))
    insert(tx, c.talk_id, message, revision, now, noted=c.notes)
    _record(tx, c, c.outcome, message, now)
    return Settled(revision, c.epoch, waiting, message, posted=_act(tx, c, now))


def _act(tx: Tx, c: Closing, now: float) -> tuple[Posting, ...]:
    """Apply the turn's other effects: what it sends, and its agent's state and sleep."""
    if c.agent is not None and c.sleep is not None:
        window.lock(tx, [(c.agent, c.sleep)])
    if c.agent is not None and c.state is not None:
        agent_state.add(tx, c.agent, c.knew, c.state, now)
    if c.agent is not None and c.sleep is not None and c.asleep is not None:
        append(tx, [(c.agent, c.asleep)])
    posted = post_all(tx, c.sent, now) if c.sent else ()
    if c.agent is not None and c.sleep is not None:
        handled = [e.envelope_id for e in c.envelopes]
        posted += window.fall_asleep(tx, c.agent, c.sleep, c.run_id, handled, c.published, now)
    return posted


def _note(tx: Tx, c: Closing) -> None:
    if c.brain_context is not None:
        brain_context.write(tx, (c.brain_context,))


def _settle_superseded(tx: Tx, c: Closing, row: Row) -> Settled:
    _, _, answer_seq, now = row
    mine = answer_seq and tx.one(
        "SELECT seq FROM messages WHERE talk_id = :talk AND seq = :seq AND run_id = :run",
        {"talk": c.talk_id, "seq": answer_seq, "run": c.run_id},
    )
    if not mine:
        _record(tx, c, RunOutcome.STOPPED, None, now)
        return Settled(0, c.epoch, 0, None, superseded=True, left=_still_there(tx, c.envelopes))
    left = () if c.text else _still_there(tx, c.envelopes)
    # Nobody has read any text: withdraw the answer, and leave its envelopes to the next run.
    status = Status.WITHDRAWN if left else Status.INTERRUPTED
    done = 0 if left else _remove(tx, c.envelopes)
    settled = write_answer(
        tx, c.talk_id, c.run_id, row, c.text, "" if left else c.notes, status, None, done=done, superseded=True
    )
    _record(tx, c, RunOutcome.STOPPED, settled.message, now)
    return replace(settled, left=left)


def stop(tx: Tx, user_id: str, talk_id: str) -> Halted:
    """Supersede the run of a talk and drop everything that waits for an answer there."""
    ids = {"talk": talk_id, "user": user_id}
    row = found(
        tx.one(
            f"SELECT revision, epoch, waiting, roost_now(), answer_seq, {UNCLAIMED_TALK} FROM talks"
            f" WHERE talk_id = :talk AND user_id = :user{tx.for_update}",
            ids,
        )
    )
    revision, epoch, waiting, now, answer_seq, rests = row
    message = None
    if waiting:
        tx.write(
            "UPDATE talks SET epoch = epoch + 1, revision = revision + 1, waiting = 0 WHERE talk_id = :talk",
            ids,
        )
        tx.write("DELETE FROM inbox WHERE lane = :talk AND kind <> 'task'", ids)
        revision, epoch = revision + 1, epoch + 1
        if rests and answer_seq:
            parked.close_answer(tx, talk_id, answer_seq, revision, again=False)
            message = message_at(tx, talk_id, answer_seq)
    return Halted(revision, epoch, waiting, now, message)


def unfinished(tx: Tx, after: str, limit: int) -> list[tuple[str, str, str]]:
    """Return talks with something to handle or to close, by id: (talk, user, agent or empty)."""
    rows = tx.read(
        "SELECT talk_id, user_id, agent FROM talks WHERE talk_id > :after AND talk_id IN"
        " (SELECT lane FROM inbox UNION SELECT talk_id FROM talks WHERE answer_seq > 0)"
        f" AND NOT {PARKED_TALK} ORDER BY talk_id LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [(row[0], row[1], row[2]) for row in rows]


def claim(tx: Tx, talk_id: str) -> Claimed | None:
    """Claim a lane: close its open answer and return its envelopes; None if the talk is gone or parked."""
    row = tx.one(
        f"SELECT answer_seq, roost_now(), {PARKED_TALK} FROM talks WHERE talk_id = :talk{tx.for_update}",
        {"talk": talk_id},
    )
    if row is None or row[2]:
        return None
    answer_seq, now, _ = row
    rows = tx.write(
        "UPDATE talks SET epoch = epoch + 1, revision = revision + 1, answer_seq = 0 WHERE talk_id = :talk"
        " RETURNING revision, epoch",
        {"talk": talk_id},
    )
    revision, epoch = rows[0]
    tx.write(
        f"UPDATE inbox SET due = {parked.RESUMED:.0f} WHERE lane = :talk AND kind <> 'task' AND due = 0",
        {"talk": talk_id},
    )
    taken = tx.read(
        "SELECT envelope_id, lane, seq, attempts + 1, due, busy, suspect FROM inbox"
        " WHERE lane = :talk AND kind <> 'task' ORDER BY seq",
        {"talk": talk_id},
    )
    envelopes = tuple(TalkEnvelope(*e) for e in taken)
    message = None
    if answer_seq and any(e.is_taken_up for e in envelopes):
        parked.close_answer(tx, talk_id, answer_seq, revision, again=True)
        message = message_at(tx, talk_id, answer_seq)
    elif answer_seq:
        message = close_lost(tx, talk_id, answer_seq, revision, now)
    return Claimed(revision, epoch, envelopes, message)


def _run_again(tx: Tx, c: Closing) -> None:
    """Leave the envelopes for another run; count an attempt if the cause of its end is unknown."""
    counted = "attempts = attempts + 1, " if c.tried else ""
    sql = f"UPDATE inbox SET {counted}suspect = CASE WHEN suspect > 2 THEN 2 ELSE suspect END WHERE envelope_id IN"
    if c.tried or any(e.suspect for e in c.envelopes):
        bulk.change(tx, sql, [e.envelope_id for e in c.envelopes])


def _remove(tx: Tx, envelopes: tuple[TalkEnvelope, ...]) -> int:
    """Delete envelopes; return how many existed."""
    return sum(
        len(tx.write("DELETE FROM inbox WHERE envelope_id = :id RETURNING seq", {"id": e.envelope_id}))
        for e in envelopes
    )


def _still_there(tx: Tx, envelopes: tuple[TalkEnvelope, ...]) -> tuple[TalkEnvelope, ...]:
    return tuple(e for e in envelopes if tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", {"id": e.envelope_id}))


def _record(tx: Tx, c: Closing, outcome: RunOutcome, message: Message | None, now: float) -> None:
    stop, usage = c.stop, c.usage
    spend(tx, c.run_id, c.profile, usage, now)
    tx.later(
        "runs",
        _RUN,
        (
            c.run_id,
            c.talk_id,
            outcome,
            message and message.seq,
            max((e.attempts for e in c.envelopes), default=1),
            c.started,
            c.first_chunk,
            now,
            c.fault,
            stop and stop.requested,
            stop and stop.acknowledged,
            stop and stop.quiesced,
            json.dumps(stop.abandoned) if stop and stop.abandoned else None,
            c.envelopes[0].envelope_id if c.envelopes else "",
            usage.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.cost,
            c.given,
            c.traceback,
        ),
        " ON CONFLICT (run_id) DO NOTHING",
    )


_RUN = bulk.columns(
    "run_id, talk_id, outcome, seq, attempts, started, first_chunk, ended, fault, stop_requested, stop_acknowledged,"
    " stop_quiesced, abandoned, root, model, input_tokens, output_tokens, cost, given, traceback"
)
