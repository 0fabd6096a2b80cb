"""Runs: they are settled, put to rest or stopped, and lanes are taken over. What they write on the way is `answers`.

Each statement that writes for a run proves by the talk's epoch that it still may.
"""

from __future__ import annotations

import json
from dataclasses import replace

from roost.core import notes, wake
from roost.core.envelopes import Envelope as Posting
from roost.core.messages import Message, Sender, Status, at
from roost.core.runs import Claimed, Closing, Envelope, Halted, Outcome, Settled
from roost.ports import Row, Tx
from roost.stores.statements import bulk, diary, resting
from roost.stores.statements.answers import (
    checkpoint,
    close_lost,
    lock,
    message_at,
    open_answer,
    split_answer,
    write_answer,
)
from roost.stores.statements.messages import insert
from roost.stores.statements.posting import post_all
from roost.stores.statements.resting import IDLE_TALK, RESTING_TALK
from roost.stores.statements.sleep import await_condition, record_all, sleeping
from roost.stores.statements.spending import spend, used
from roost.stores.statements.talks import found
from roost.stores.together import Calls, done_by

__all__ = [
    "checkpoint", "claim", "open_answer", "rest", "settle", "split_answer", "stop", "unfinished", "used",
]  # fmt: skip


_END = (
    "UPDATE talks SET revision = revision + 1, last_seq = last_seq + 1, waiting = waiting - 1,"
    " state = COALESCE(given.kept, state) FROM given WHERE talk_id = given.talk AND epoch = given.reign"
    " AND answer_seq = 0 AND EXISTS (SELECT 1 FROM inbox WHERE envelope_id = given.envelope)"
    " RETURNING talk_id, last_seq, revision, waiting, roost_now()"
)
_GIVEN = {"talk": "TEXT", "reign": "BIGINT", "kept": "TEXT", "envelope": "TEXT"}


def settle_many(tx: Tx, calls: Calls) -> list[Settled | None]:
    """The usual end of short turns, in as few statements as can be; those that are not that simple are left."""
    simple = [c for [c] in calls if _is_simple(c)]
    given = [(c.talk_id, c.epoch, None if c.agent else c.state, c.envelopes[0].envelope_id) for c in simple]
    ended = {row[0]: row[1:] for row in bulk.using(tx, _END, _GIVEN, given)}
    gone = [c.envelopes[0].envelope_id for c in simple if c.talk_id in ended]
    bulk.change(tx, "DELETE FROM inbox WHERE envelope_id IN", gone)
    return [_settle_simple(tx, c, ended[c.talk_id]) if c.talk_id in ended else None for [c] in calls]


@done_by(settle_many)
def settle(tx: Tx, c: Closing) -> Settled:
    """End a run: its message, its envelopes, its record and the talk's state, all at once.

    A superseded run may close the message it had opened, as interrupted, and nothing else; if it had
    not opened one, its envelopes stay for the run that comes after it.
    """
    [settled] = settle_many(tx, [(c,)])
    if settled is not None:
        return settled
    row = lock(tx, c.talk_id)
    if row is None:
        return Settled(0, c.epoch, 0, None, superseded=True, gone=True)
    _note(tx, c)
    # With none of its envelopes left it was settled before, or what it answers was dropped.
    if row[0] != c.epoch or not _still_there(tx, c.envelopes):
        return _settle_superseded(tx, c, row)
    handled = bool(row[2]) if c.handled is None else c.handled
    done = _remove(tx, c.envelopes) if handled else 0
    if not handled and c.outcome is Outcome.STOPPED:  # drained: that it is run again is nobody's failure
        tx.write(
            "UPDATE inbox SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
            " WHERE lane = :talk AND kind <> 'task'",
            {"talk": c.talk_id},
        )
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
    )
    _record(tx, c, c.outcome, settled.message, row[3])
    if c.sent or c.agent:
        settled = replace(settled, posted=_act(tx, c, row[3]))
    return settled if handled else replace(settled, left=c.envelopes)


def rest(tx: Tx, c: Closing) -> Settled:
    """Put a run to rest until a person has decided; if they have meanwhile, it is left to be run again at once."""
    row = lock(tx, c.talk_id)
    if row is None:
        return Settled(0, c.epoch, 0, None, superseded=True, gone=True)
    if row[0] != c.epoch or not _still_there(tx, c.envelopes):
        return _settle_superseded(tx, c, row)
    rested = bool(resting.rest(tx, [e.envelope_id for e in c.envelopes], goes_on=True))
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
            resting.leave(tx, c.talk_id, answer_seq, revision, again=True)
        message = message_at(tx, c.talk_id, answer_seq)
    _record(tx, c, Outcome.WAITING, message, now)
    left = () if rested else tuple(replace(e, due=0.0) for e in c.envelopes)
    return Settled(revision, c.epoch, waiting, message, left=left, rested=rested)


def _is_simple(c: Closing) -> bool:
    """Whether it handles one message, and was over before its answer was opened."""
    said = bool(c.text or c.error or c.notes) and c.status is not Status.INTERRUPTED
    return bool(c.handled) and not c.supersede and said and len(c.envelopes) == 1


def _settle_simple(tx: Tx, c: Closing, row: Row) -> Settled:
    seq, revision, waiting, now = row
    _note(tx, c)
    message = Message(seq, Sender.AGENT, c.text, c.status, at(now), c.error, c.run_id, notes.unpack(c.notes))
    insert(tx, c.talk_id, message, revision, now, noted=c.notes)
    _record(tx, c, c.outcome, message, now)
    return Settled(revision, c.epoch, waiting, message, posted=_act(tx, c, now))


def _act(tx: Tx, c: Closing, now: float) -> tuple[Posting, ...]:
    """What the turn does beside its answer: it sends, and its agent remembers and falls asleep."""
    if c.agent is not None and c.state is not None:
        tx.write(
            "UPDATE agents SET memory = :memory, last_active = :now WHERE address = :address",
            {"address": c.agent, "memory": c.state, "now": now},
        )
    if c.agent is not None and c.sleep is not None and c.asleep is not None:
        slept = sleeping(tx, [c.agent])
        await_condition(tx, c.agent.rpartition("/")[0], c.agent, wake.from_json(c.sleep))
        record_all(tx, [] if slept else [(c.agent, c.asleep)])
    return post_all(tx, c.sent, now) if c.sent else ()


def _note(tx: Tx, c: Closing) -> None:
    if c.diary is not None:
        diary.write(tx, (c.diary,))


def _settle_superseded(tx: Tx, c: Closing, row: Row) -> Settled:
    _, _, answer_seq, now = row
    mine = answer_seq and tx.one(
        "SELECT seq FROM messages WHERE talk_id = :talk AND seq = :seq AND run_id = :run",
        {"talk": c.talk_id, "seq": answer_seq, "run": c.run_id},
    )
    if not mine:
        _record(tx, c, Outcome.STOPPED, None, now)
        return Settled(0, c.epoch, 0, None, superseded=True, left=_still_there(tx, c.envelopes))
    left = () if c.text else _still_there(tx, c.envelopes)
    # Nobody has read a word of an answer: it is withdrawn, and what it was to answer waits for the next run.
    status = Status.WITHDRAWN if left else Status.INTERRUPTED
    done = 0 if left else _remove(tx, c.envelopes)
    settled = write_answer(
        tx, c.talk_id, c.run_id, row, c.text, "" if left else c.notes, status, None, done=done, superseded=True
    )  # fmt: skip
    _record(tx, c, Outcome.STOPPED, settled.message, now)
    return replace(settled, left=left)


def stop(tx: Tx, user_id: str, talk_id: str) -> Halted:
    ids = {"talk": talk_id, "user": user_id}
    row = found(
        tx.one(
            f"SELECT revision, epoch, waiting, roost_now(), answer_seq, {IDLE_TALK} FROM talks"
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
            resting.leave(tx, talk_id, answer_seq, revision, again=False)
            message = message_at(tx, talk_id, answer_seq)
    return Halted(revision, epoch, waiting, now, message)


def unfinished(tx: Tx, after: str, limit: int) -> list[tuple[str, str, str]]:
    rows = tx.read(
        "SELECT talk_id, user_id, agent FROM talks WHERE talk_id > :after AND talk_id IN"
        " (SELECT lane FROM inbox UNION SELECT talk_id FROM talks WHERE answer_seq > 0)"
        f" AND NOT {RESTING_TALK} ORDER BY talk_id LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [(row[0], row[1], row[2]) for row in rows]


def claim(tx: Tx, talk_id: str) -> Claimed | None:
    """Take a lane over: count the attempt, close what was being written, and give its envelopes.

    Nothing, while it waits for a person.
    """
    row = tx.one(
        f"SELECT answer_seq, roost_now(), {RESTING_TALK} FROM talks WHERE talk_id = :talk{tx.for_update}",
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
    taken = tx.write(
        "UPDATE inbox SET attempts = attempts + 1 WHERE lane = :talk AND kind <> 'task'"
        " RETURNING envelope_id, lane, seq, attempts, due, busy",
        {"talk": talk_id},
    )
    envelopes = tuple(sorted((Envelope(*e) for e in taken), key=lambda e: e.seq))
    message = None
    if answer_seq and any(e.is_taken_up for e in envelopes):
        resting.leave(tx, talk_id, answer_seq, revision, again=True)
        message = message_at(tx, talk_id, answer_seq)
    elif answer_seq:
        message = close_lost(tx, talk_id, answer_seq, revision, now)
    return Claimed(revision, epoch, envelopes, message)


def _remove(tx: Tx, envelopes: tuple[Envelope, ...]) -> int:
    """How many of them were still there to be removed."""
    return sum(
        len(tx.write("DELETE FROM inbox WHERE envelope_id = :id RETURNING seq", {"id": e.envelope_id}))
        for e in envelopes
    )


def _still_there(tx: Tx, envelopes: tuple[Envelope, ...]) -> tuple[Envelope, ...]:
    return tuple(e for e in envelopes if tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", {"id": e.envelope_id}))


def _record(tx: Tx, c: Closing, outcome: Outcome, message: Message | None, now: float) -> None:
    stop, usage = c.stop, c.usage
    spend(tx, c.run_id, c.profile, usage, now)
    tx.later(
        "runs", _RUN,
        (
            c.run_id, c.talk_id, outcome, message and message.seq, max((e.attempts for e in c.envelopes), default=1),
            c.started, c.first_chunk, now, c.fault, stop and stop.requested, stop and stop.acknowledged,
            stop and stop.quiesced, json.dumps(stop.abandoned) if stop and stop.abandoned else None,
            c.envelopes[0].envelope_id if c.envelopes else "", usage.model, usage.input_tokens, usage.output_tokens,
            usage.cost, c.given,
        ),
        " ON CONFLICT (run_id) DO NOTHING",
    )  # fmt: skip


_RUN = (
    "run_id", "talk_id", "outcome", "seq", "attempts", "started", "first_chunk", "ended", "fault", "stop_requested",
    "stop_acknowledged", "stop_quiesced", "abandoned", "root", "model", "input_tokens", "output_tokens", "cost",
    "given",
)  # fmt: skip
