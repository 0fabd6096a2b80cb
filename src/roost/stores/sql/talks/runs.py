"""Runs of talks: end, stop, and claim lanes. What they write meanwhile is in `answers`.

Each statement that writes for a run checks the talk's epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from roost.core.envelopes.envelope import Envelope, EnvelopeStatus, message_envelope
from roost.core.failures.suspicion import Suspicion
from roost.core.runs import FINAL, AnswerEnd, Closing, RunOutcome, Verdict
from roost.core.talks import side_channels
from roost.core.talks.messages import Message, Sender, Status, at
from roost.core.talks.runs import Claimed, Halted, TalkUpdate
from roost.core.values.records import record
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.tables import owners, parked
from roost.stores.sql.tables.parked import PARKED_TALK, UNCLAIMED_TALK
from roost.stores.sql.talks.answers import close_lost, lock, message_at, write_answer
from roost.stores.sql.talks.messages import insert
from roost.stores.sql.talks.talks import found

_END = (
    "UPDATE talks SET revision = revision + 1, last_seq = last_seq + 1, waiting = waiting - 1,"
    " state = COALESCE(batch.new_state, state) FROM batch WHERE talk_id = batch.talk AND epoch = batch.claimed_epoch"
    " AND answer_seq = 0 AND EXISTS (SELECT 1 FROM inbox WHERE envelope_id = batch.envelope)"
    " RETURNING talk_id, last_seq, revision, waiting, roost_now()"
)
_CLAIM = owners.TakingUpdate.made(
    lambda take, owner: (
        f"UPDATE talks SET epoch = epoch + 1, revision = revision + 1, answer_seq = 0{take} WHERE talk_id = :talk"
        f" RETURNING revision, epoch, {owner}"
    )
)
_BATCH = {"talk": "TEXT", "claimed_epoch": "BIGINT", "new_state": "TEXT", "envelope": "TEXT"}


@record(frozen=True, slots=True)
class EndedRun:
    """Run of a talk that has ended in the store; `outcome`: for its record, None if the talk is gone."""

    update: TalkUpdate
    outcome: RunOutcome | None
    ended: float

    @property
    def seq(self) -> int | None:
        """Return the number of the answer, if there is one."""
        return None if self.update.message is None else self.update.message.seq


def end(tx: Tx, closings: Sequence[Closing], fenced: Collection[int] = ()) -> list[EndedRun]:
    """End runs of talks: the answer, the envelopes and the talk. Records and effects are up to `settlement`.

    `fenced`: closings that are superseded whatever the epoch of their talk is, by the id of the object.

    A superseded run may only close the message it opened, as interrupted. If it opened none, or wrote nothing but
    notes, its envelopes stay for the next run.
    """
    short = {id(c): c for c in closings if _is_short(c) and id(c) not in fenced}
    claims = [(c.envelope.lane, c.epoch, _talk_state(c), c.envelope.envelope_id) for c in short.values()]
    ended = {row[0]: row[1:] for row in bulk.with_batch(tx, _END, _BATCH, claims)}
    settled = [c.envelope.envelope_id for c in short.values() if c.envelope.lane in ended]
    bulk.write(tx, "DELETE FROM inbox WHERE envelope_id IN", settled)
    return [
        _end_short(tx, c, ended[c.envelope.lane])
        if id(c) in short and c.envelope.lane in ended
        else _end(tx, c, is_fenced=id(c) in fenced)
        for c in closings
    ]


def _is_short(c: Closing) -> bool:
    """Return whether it handles one message and ended before its answer was opened."""
    answer = _answer(c)
    has_output = bool(c.text or c.reason or answer.notes)
    return has_output and c.verdict in (Verdict.DONE, Verdict.DEAD) and not c.others and not answer.lost


def _talk_state(c: Closing) -> str | None:
    """Return the state to store with the talk; None if the state belongs to an agent."""
    return None if c.envelope.address else c.state


def _end_short(tx: Tx, c: Closing, row: Row) -> EndedRun:
    seq, revision, waiting, now = row
    notes = _answer(c).notes
    message = Message(
        seq, Sender.AGENT, c.text, c.status, at(now), c.reason or None, c.run_id, side_channels.unpack(notes)
    )
    insert(tx, c.envelope.lane, message, revision, now, notes=notes)
    return EndedRun(TalkUpdate(revision, c.epoch, waiting, message), c.outcome, now)


def _end(tx: Tx, c: Closing, *, is_fenced: bool) -> EndedRun:
    talk_id, answer = c.envelope.lane, _answer(c)
    row = lock(tx, talk_id)
    if row is None:
        return EndedRun(TalkUpdate(0, c.epoch, 0, None, superseded=True, gone=True), None, c.ended)
    # Without envelopes it was settled before, or they were dropped.
    if is_fenced or row[0] != c.epoch or not _existing(tx, c.envelopes):
        return _end_superseded(tx, c, row)
    if c.verdict is Verdict.WAITING:
        return _park(tx, c, row)
    handled = bool(row[2]) if c.verdict is Verdict.INTERRUPTED else c.verdict in FINAL
    done = _remove(tx, c.envelopes) if handled else 0
    if not handled:
        _run_again(tx, c)
    update = write_answer(
        tx,
        talk_id,
        c.run_id,
        row,
        c.text,
        answer.notes,
        c.status,
        c.reason or None,
        done=done,
        state=_talk_state(c),
        supersede=answer.lost,
        again=not handled,
    )
    return EndedRun(update if handled else replace(update, left=c.envelopes), c.outcome, row[3])


def _answer(c: Closing) -> AnswerEnd:
    assert c.answer is not None
    return c.answer


def _park(tx: Tx, c: Closing, row: Row) -> EndedRun:
    """Park a run that waits for a person: its answer stays open, and the whole lane waits.

    If the person has decided meanwhile, its envelopes are `left`, to run again at once.
    """
    talk_id, (_, _, answer_seq, now) = c.envelope.lane, row
    is_parked = bool(parked.park(tx, [e.envelope_id for e in c.envelopes], retry_now=True))
    advance = "UPDATE talks SET revision = revision + 1 WHERE talk_id = :talk RETURNING revision, waiting"
    revision, waiting = tx.write(advance, {"talk": talk_id})[0]
    message = None
    if answer_seq:
        ids = {"talk": talk_id, "seq": answer_seq, "text": c.text, "notes": _answer(c).notes, "revision": revision}
        tx.write(
            "UPDATE messages SET content = :text, notes = :notes, revision = :revision"
            " WHERE talk_id = :talk AND seq = :seq",
            ids,
        )
        tx.write("DELETE FROM parts WHERE talk_id = :talk AND seq = :seq", ids)
        if not is_parked:
            parked.close_answer(tx, talk_id, answer_seq, revision, again=True)
        message = message_at(tx, talk_id, answer_seq)
    left = () if is_parked else tuple(replace(e, status=EnvelopeStatus.RESUMED, suspect=0) for e in c.envelopes)
    update = TalkUpdate(revision, c.epoch, waiting, message, left=left, parked=is_parked)
    return EndedRun(update, RunOutcome.WAITING, now)


def _end_superseded(tx: Tx, c: Closing, row: Row) -> EndedRun:
    talk_id, (_, _, answer_seq, now) = c.envelope.lane, row
    own_answer = answer_seq and tx.one(
        "SELECT seq FROM messages WHERE talk_id = :talk AND seq = :seq AND run_id = :run",
        {"talk": talk_id, "seq": answer_seq, "run": c.run_id},
    )
    if not own_answer:
        left = _existing(tx, c.envelopes)
        return EndedRun(TalkUpdate(0, c.epoch, 0, None, superseded=True, left=left), RunOutcome.STOPPED, now)
    left = () if c.text else _existing(tx, c.envelopes)
    # Nobody has read any text: withdraw the answer, and leave its envelopes to the next run.
    status = Status.WITHDRAWN if left else Status.INTERRUPTED
    done = 0 if left else _remove(tx, c.envelopes)
    notes = "" if left else _answer(c).notes
    update = write_answer(tx, talk_id, c.run_id, row, c.text, notes, status, None, done=done, superseded=True)
    return EndedRun(replace(update, left=left), RunOutcome.STOPPED, now)


@locking.locks(locking.by_user_and_talk)
def stop(tx: Tx, user_id: str, talk_id: str) -> Halted:
    """Supersede the run of a talk and drop everything that waits for an answer there."""
    ids = {"talk": talk_id, "user": user_id}
    row = found(
        tx.one(
            f"SELECT revision, epoch, waiting, roost_now(), answer_seq, {UNCLAIMED_TALK}, {owners.of_talk(tx)}"
            f" FROM talks WHERE talk_id = :talk AND user_id = :user{tx.for_update}",
            ids,
        )
    )
    revision, epoch, waiting, now, answer_seq, is_unclaimed, node = row
    message = None
    if waiting:
        tx.write(
            "UPDATE talks SET epoch = epoch + 1, revision = revision + 1, waiting = 0 WHERE talk_id = :talk",
            ids,
        )
        tx.write("DELETE FROM inbox WHERE lane = :talk AND kind <> 'task'", ids)
        revision, epoch = revision + 1, epoch + 1
        if is_unclaimed and answer_seq:
            parked.close_answer(tx, talk_id, answer_seq, revision, again=False)
            message = message_at(tx, talk_id, answer_seq)
    return Halted(revision, epoch, waiting, now, message, node)


def unfinished(tx: Tx, after: str, limit: int) -> list[tuple[str, str, str, str, str]]:
    """Return talks with something to handle or to close, by id: talk, user, agent or empty, node or empty, profile."""
    rows = tx.read(
        f"SELECT talk_id, user_id, agent, {owners.of_talk(tx)}, profile FROM talks WHERE talk_id > :after"
        " AND talk_id IN (SELECT lane FROM inbox UNION SELECT talk_id FROM talks WHERE answer_seq > 0)"
        f" AND NOT {PARKED_TALK}{owners.and_own(tx, owners.of_talk(tx))} ORDER BY talk_id LIMIT :limit",
        {"after": after, "limit": limit, "node": tx.node},
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


@locking.locks(locking.by_talk)
def claim(tx: Tx, talk_id: str) -> Claimed | None:
    """Claim a lane: close its open answer and return its envelopes.

    Return None if the talk is gone or parked, or belongs to another node.
    """
    row = tx.one(
        f"SELECT answer_seq, roost_now(), {PARKED_TALK}, {owners.of_talk(tx)} FROM talks"
        f" WHERE talk_id = :talk{locking.of_table(tx, 'talks')}",
        {"talk": talk_id},
    )
    if row is None or row[2] or not owners.is_own(tx, row[3]):
        return None
    answer_seq, now, *_ = row
    revision, epoch, _ = tx.write(_CLAIM.sql(tx), {"talk": talk_id, "node": tx.node})[0]
    tx.write(
        "UPDATE inbox SET status = 'resumed' WHERE lane = :talk AND kind <> 'task' AND status = 'decided'",
        {"talk": talk_id},
    )
    claimed = tx.read(
        "SELECT envelope_id, address, seq, due, busy, attempts, suspect, status FROM inbox"
        " WHERE lane = :talk AND kind <> 'task' ORDER BY seq",
        {"talk": talk_id},
    )
    envelopes = tuple(
        message_envelope(name, talk_id, agent, seq, due, busy, attempts=failed + 1, suspect=suspect, status=status)
        for name, agent, seq, due, busy, failed, suspect, status in claimed
    )
    message = None
    if answer_seq and any(e.is_resumed for e in envelopes):
        parked.close_answer(tx, talk_id, answer_seq, revision, again=True)
        message = message_at(tx, talk_id, answer_seq)
    elif answer_seq:
        message = close_lost(tx, talk_id, answer_seq, revision, now)
    return Claimed(revision, epoch, envelopes, message)


def _run_again(tx: Tx, c: Closing) -> None:
    """Leave the envelopes for another run; count an attempt if the cause of its end is unknown."""
    has_failed = c.verdict is Verdict.RETRY
    counted = "attempts = attempts + 1, " if has_failed else ""
    least = int(Suspicion.QUARANTINED)  # it ended without a crash
    sql = f"UPDATE inbox SET {counted}suspect = CASE WHEN suspect > {least} THEN {least} ELSE suspect END"
    if has_failed or any(e.suspect for e in c.envelopes):
        bulk.write(tx, f"{sql} WHERE envelope_id IN", [e.envelope_id for e in c.envelopes])


def _remove(tx: Tx, envelopes: tuple[Envelope, ...]) -> int:
    """Delete envelopes; return how many existed."""
    return sum(
        len(tx.write("DELETE FROM inbox WHERE envelope_id = :id RETURNING seq", {"id": e.envelope_id}))
        for e in envelopes
    )


def _existing(tx: Tx, envelopes: tuple[Envelope, ...]) -> tuple[Envelope, ...]:
    return tuple(e for e in envelopes if tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", {"id": e.envelope_id}))
