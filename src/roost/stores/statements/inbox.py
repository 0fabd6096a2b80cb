"""The inbox of agents: post, claim, settle, release and dead-letter are the only verbs.

Whatever writes for an agent proves by its epoch that it still may. What is sent, by people and by turns
alike, is an effect; effects of a turn are posted in the transaction that settles it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from roost.core import patterns
from roost.core.envelopes import (
    Change,
    DeadLetter,
    Effect,
    Envelope,
    Kind,
    Publish,
    Recorded,
    SendMail,
    SendTask,
    Verdict,
    WorkClosing,
    WorkSettled,
)
from roost.core.priority import Priority, rank
from roost.core.tasks import TaskStatus
from roost.errors import Conflict, NotFound
from roost.ports import Row, Tx
from roost.stores.statements.sleep import arm, fall_asleep, record

_COLUMNS = (
    "envelope_id", "address", "kind", "lane", "priority", "sender", "body", "created", "rank", "due", "attempts",
    "most_attempts", "retry_delay", "expires", "hops", "recorded", "ask",
)  # fmt: skip
ENVELOPE = ", ".join(_COLUMNS)
_OURS = "EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch)"
_INSERT = (
    f"INSERT INTO inbox ({ENVELOPE}, seq, busy) SELECT {', '.join(f':{name}' for name in _COLUMNS)}, 0, ''"
    " FROM agents WHERE address = :address ON CONFLICT (envelope_id) DO NOTHING RETURNING attempts"
)


def envelope_of(row: Row, *, claimed: bool) -> Envelope:
    (envelope_id, address, kind, lane, priority, sender, body, created, ranked, due, attempts, most, delay, expires,
     hops, recorded, ask) = row[:17]  # fmt: skip
    return Envelope(
        envelope_id, address, Kind(kind), lane, Priority(priority), sender, body, created, ranked, due,
        max(attempts, 1) if claimed else attempts, most, delay, expires, hops, bool(recorded), ask, claimed,
    )  # fmt: skip


# --- posting -----------------------------------------------------------------------------------------


def post(tx: Tx, effect: Effect) -> tuple[Envelope, ...]:
    """What it has put into inboxes. NotFound if the recipient does not exist (any more)."""
    if type(effect) is SendTask:
        return _post_task(tx, effect)
    if type(effect) is SendMail:
        return _post_mail(tx, effect)
    assert type(effect) is Publish
    return _publish(tx, effect)


def _insert(tx: Tx, envelope: Envelope) -> None:
    values = {name: getattr(envelope, name) for name in _COLUMNS}
    values["recorded"] = int(envelope.recorded)
    values["attempts"] = 1 if envelope.claimed else 0
    if not tx.write(_INSERT, values):
        raise NotFound(f"there is no agent {envelope.address.rpartition('/')[2]!r}: it was deleted meanwhile")


def _post_task(tx: Tx, effect: SendTask) -> tuple[Envelope, ...]:
    e = effect.envelope
    if not e.recorded:
        _insert(tx, e)
        return (e,)
    if effect.key is not None and _same_task(tx, e, effect.key):
        return ()
    _insert(tx, e)
    tx.write(
        "INSERT INTO tasks (task_id, address, user_id, sender, prompt, priority, status, attempts, created, expires,"
        " schedule_id, key) VALUES (:id, :address, :user, :sender, :prompt, :priority, 'queued', 0, :created, :expires,"
        " :schedule, :key)",
        {"id": e.envelope_id, "address": e.address, "user": e.address.rpartition("/")[0], "sender": e.sender,
         "prompt": e.body, "priority": e.priority, "created": e.created, "expires": e.expires,
         "schedule": effect.schedule_id, "key": effect.key},
    )  # fmt: skip
    return (e,)


def _same_task(tx: Tx, e: Envelope, key: str) -> str | None:
    row = tx.one(
        "SELECT task_id, prompt FROM tasks WHERE address = :address AND key = :key", {"address": e.address, "key": key}
    )
    if row is not None and row[1] != e.body:
        raise Conflict(f"the key {key!r} was used for another task: use a new key for a new task")
    return row[0] if row else None


def _post_mail(tx: Tx, m: SendMail) -> tuple[Envelope, ...]:
    if m.key is not None and tx.one(
        "SELECT 1 FROM mail WHERE sender = :sender AND key = :key", {"sender": m.sender, "key": m.key}
    ):
        return ()
    if m.envelope is not None:
        _insert(tx, m.envelope)
    tx.write(
        "INSERT INTO mail (mail_id, thread_id, sender, recipient, subject, body, priority, rank, status, reply_to,"
        " created, expires, key) VALUES (:id, :thread, :sender, :recipient, :subject, :body, :priority, :rank,"
        " 'unread', :reply_to, :created, :expires, :key)",
        {"id": m.mail_id, "thread": m.thread_id or m.mail_id, "sender": m.sender, "recipient": m.recipient,
         "subject": m.subject, "body": m.body, "priority": m.priority, "rank": rank(m.created, m.priority),
         "reply_to": m.reply_to, "created": m.created, "expires": m.expires, "key": m.key},
    )  # fmt: skip
    if m.reply_to is not None:
        tx.write(
            "UPDATE mail SET status = 'replied', read_at = COALESCE(read_at, :now)"
            " WHERE mail_id = :id AND recipient = :sender AND status <> 'archived'",
            {"id": m.reply_to, "sender": m.sender, "now": m.created},
        )
    if m.envelope is not None and m.check_by is not None:
        arm(tx, m.envelope.address, "mail", m.check_by, earlier=True)
    return (m.envelope,) if m.envelope is not None else ()


def _publish(tx: Tx, p: Publish) -> tuple[Envelope, ...]:
    rows = tx.read(
        "SELECT DISTINCT s.address, s.pattern, s.fields, a.config FROM subscriptions s"
        " JOIN agents a ON a.address = s.address WHERE s.user_id = :user ORDER BY s.address",
        {"user": p.user_id},
    )
    takers: dict[str, Mapping[str, Any]] = {}
    for address, pattern, fields, config in rows:
        if patterns.matches(pattern, p.name) and patterns.fields_match(json.loads(fields), p.data):
            takers.setdefault(address, json.loads(config))
    text = json.dumps(p.data)
    tx.write(
        "INSERT INTO events (event_id, user_id, name, data, priority, publisher, created, takers)"
        " VALUES (:id, :user, :name, :data, :priority, :publisher, :created, :takers)",
        {"id": p.event_id, "user": p.user_id, "name": p.name, "data": text, "priority": p.priority,
         "publisher": p.publisher, "created": p.created, "takers": len(takers)},
    )  # fmt: skip
    if not takers and not p.optional:
        bury(tx, _untaken(p))
    posted = tuple(_event_envelope(p, address, config) for address, config in takers.items())
    for envelope in posted:
        _insert(tx, envelope)
    return posted


def _event_envelope(p: Publish, address: str, config: Mapping[str, Any]) -> Envelope:
    body = json.dumps({"event_id": p.event_id, "name": p.name, "data": p.data})
    return Envelope(
        f"{p.event_id}:{address}", address, Kind.EVENT, f"event:{p.name}", p.priority, p.publisher, body, p.created,
        rank(p.created, p.priority), most_attempts=config["max_attempts"], retry_delay=config["retry_delay"],
        hops=p.hops, claimed=False,
    )  # fmt: skip


def _untaken(p: Publish) -> DeadLetter:
    kept = {"event": p.name, "data": p.data, "priority": p.priority, "publisher": p.publisher}
    return DeadLetter(p.event_id, p.user_id, "", "event", "nobody takes this event", 0, p.created, kept)


# --- claiming and settling ---------------------------------------------------------------------------


def claim(tx: Tx, envelope: Envelope, epoch: int) -> tuple[int, tuple[Recorded, ...]] | None:
    ids = {"id": envelope.envelope_id, "address": envelope.address, "epoch": epoch}
    rows = tx.write(
        f"UPDATE inbox SET attempts = attempts + 1 WHERE envelope_id = :id AND {_OURS} RETURNING attempts", ids
    )
    if not rows:
        return None
    steps = tx.read("SELECT step, kind, name, result, done FROM steps WHERE envelope_id = :id ORDER BY step", ids)
    return rows[0][0], tuple(Recorded(n, kind, name, result, bool(done)) for n, kind, name, result, done in steps)


def post_now(
    tx: Tx, envelope_id: str, address: str, epoch: int, number: int, effects: tuple[Effect, ...], now: float
) -> tuple[Envelope, ...] | None:
    if not _is_ours(tx, address, epoch):
        return None
    named = json.dumps([_name(effect) for effect in effects])
    _note(tx, envelope_id, number, "sent", "", named, True, now)
    return post_all(tx, effects, address, now)


def begin_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int, name: str, now: float) -> bool:
    if not _is_ours(tx, address, epoch):
        return False
    _note(tx, envelope_id, number, "step", name, None, False, now)
    return True


def end_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int, result: str) -> None:
    tx.write(
        f"UPDATE steps SET result = :result, done = 1 WHERE envelope_id = :id AND step = :step AND {_OURS}",
        {"id": envelope_id, "step": number, "address": address, "epoch": epoch, "result": result},
    )


def forget_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int) -> None:
    tx.write(
        f"DELETE FROM steps WHERE envelope_id = :id AND step = :step AND {_OURS}",
        {"id": envelope_id, "step": number, "address": address, "epoch": epoch},
    )


def _is_ours(tx: Tx, address: str, epoch: int) -> bool:
    row = tx.one("SELECT epoch FROM agents WHERE address = :address", {"address": address})
    return row is not None and row[0] == epoch


def _note(
    tx: Tx, envelope_id: str, number: int, kind: str, name: str, result: str | None, done: bool, now: float
) -> None:  # fmt: skip
    tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created)"
        " VALUES (:id, :step, :kind, :name, :result, :done, :now) ON CONFLICT (envelope_id, step) DO NOTHING",
        {"id": envelope_id, "step": number, "kind": kind, "name": name, "result": result, "done": int(done),
         "now": now},
    )  # fmt: skip


def settle(tx: Tx, closings: tuple[WorkClosing, ...]) -> tuple[WorkSettled, ...]:
    """End tries: of each the envelope, the record, the agent's memory and all that it sends, at once or not at all."""
    return tuple(_settle(tx, c) for c in closings)


def _settle(tx: Tx, c: WorkClosing) -> WorkSettled:
    e = c.envelope
    ids = {"id": e.envelope_id, "address": e.address, "epoch": c.epoch, "due": c.due}
    if c.verdict is Verdict.RETRY:
        taken = tx.write(f"UPDATE inbox SET due = :due WHERE envelope_id = :id AND {_OURS} RETURNING attempts", ids)
        arm(tx, e.address, "retry", c.due, earlier=True)
    elif c.verdict is Verdict.RELEASED:
        taken = tx.write("UPDATE inbox SET attempts = attempts - 1 WHERE envelope_id = :id RETURNING attempts", ids)
        return WorkSettled(bool(taken))
    else:
        taken = tx.write(f"DELETE FROM inbox WHERE envelope_id = :id AND {_OURS} RETURNING attempts", ids)
    if not taken:
        return WorkSettled(False)
    _keep(tx, c)
    dead = _dead(c) if c.verdict is Verdict.DEAD else None
    if dead is not None:
        bury(tx, dead)
    over = e.envelope_id if e.recorded and c.verdict is not Verdict.RETRY else None
    return WorkSettled(True, post_all(tx, c.sent, e.address, c.ended), dead, over)


def _keep(tx: Tx, c: WorkClosing) -> None:
    """The agent's side of it: memory, errors, changes of state, the record of the run."""
    e = c.envelope
    plain = c.verdict is Verdict.DONE and e.kind is Kind.TASK and not e.recorded
    if c.memory is not None or c.changes or c.verdict is not Verdict.DONE:
        tx.write(
            "UPDATE agents SET memory = COALESCE(:memory, memory), last_active = :now,"
            " errors = CASE WHEN :failed = 1 THEN errors + 1 ELSE 0 END WHERE address = :address",
            {"address": e.address, "memory": c.memory, "now": c.ended,
             "failed": int(c.verdict in (Verdict.RETRY, Verdict.DEAD))},
        )  # fmt: skip
    for change in c.changes:
        record(tx, e.address, change)
    if c.sleep is not None:
        asked = Change(f"{c.run_id}:sleep", c.ended, "active", "sleeping", "asked for by its turn", e.address)
        fall_asleep(tx, e.address.rpartition("/")[0], e.address, c.sleep, asked)
    if not plain:
        _record(tx, c)
    if e.recorded:
        _end_task(tx, c)
    elif e.kind is Kind.MAIL and c.verdict is Verdict.DONE:
        tx.write(
            "UPDATE mail SET processed = :now, read_at = COALESCE(read_at, :now),"
            " status = CASE WHEN status = 'unread' THEN 'read' ELSE status END WHERE mail_id = :mail",
            {"mail": e.body, "now": c.ended},
        )


def post_all(tx: Tx, effects: tuple[Effect, ...], sender: str, now: float) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    for effect in effects:
        try:
            posted += post(tx, effect)
        except (NotFound, Conflict) as error:  # it was there when the turn sent it
            bury(tx, _undeliverable(sender, effect, str(error), now))
    return tuple(posted)


_STATUS = {
    Verdict.DONE: TaskStatus.DONE,
    Verdict.RETRY: TaskStatus.QUEUED,
    Verdict.DEAD: TaskStatus.FAILED,
    Verdict.CANCELLED: TaskStatus.CANCELLED,
}


def _end_task(tx: Tx, c: WorkClosing) -> None:
    over = c.verdict is not Verdict.RETRY
    status = TaskStatus.EXPIRED if c.fault == "expired" else _STATUS[c.verdict]
    tx.write(
        "UPDATE tasks SET status = :status, attempts = :attempts, started = COALESCE(started, :started),"
        " ended = :ended, result = :result, error = :error, fault = :fault WHERE task_id = :id",
        {"id": c.envelope.envelope_id, "status": status, "attempts": c.envelope.attempts,
         "started": c.started if c.run_id else None, "ended": c.ended if over else None,
         "result": c.text if c.verdict is Verdict.DONE else None, "error": c.reason or None, "fault": c.fault},
    )  # fmt: skip


def _record(tx: Tx, c: WorkClosing) -> None:
    if not c.run_id:
        return
    e = c.envelope
    tx.write(
        "INSERT INTO runs (run_id, talk_id, outcome, attempts, started, ended, fault, address, kind, envelope_id, said)"
        " VALUES (:run, '', :outcome, :attempts, :started, :ended, :fault, :address, :kind, :envelope, :said)"
        " ON CONFLICT (run_id) DO NOTHING",
        {"run": c.run_id, "outcome": _OUTCOMES[c.verdict], "attempts": e.attempts, "started": c.started,
         "ended": c.ended, "fault": c.fault, "address": e.address, "kind": e.kind, "envelope": e.envelope_id,
         "said": c.text[:10_000] or None},
    )  # fmt: skip


_OUTCOMES = {
    Verdict.DONE: "done",
    Verdict.RETRY: "failed",
    Verdict.DEAD: "failed",
    Verdict.CANCELLED: "stopped",
}


# --- dead letters ------------------------------------------------------------------------------------


def bury(tx: Tx, letter: DeadLetter) -> None:
    tx.write(
        "INSERT INTO dead_letters (letter_id, user_id, address, kind, reason, attempts, created, envelope)"
        " VALUES (:id, :user, :address, :kind, :reason, :attempts, :created, :envelope)"
        " ON CONFLICT (letter_id) DO UPDATE SET reason = excluded.reason, attempts = excluded.attempts,"
        " created = excluded.created",
        {"id": letter.letter_id, "user": letter.user_id, "address": letter.address, "kind": letter.kind,
         "reason": letter.reason, "attempts": letter.attempts, "created": letter.created,
         "envelope": json.dumps(letter.envelope)},
    )  # fmt: skip


def _dead(c: WorkClosing) -> DeadLetter:
    e = c.envelope
    owner = e.address.rpartition("/")[0]
    kept = {name: value for name, value in dataclasses.asdict(e).items() if name != "claimed"}
    return DeadLetter(e.envelope_id, owner, e.address, e.kind, c.reason, e.attempts, c.ended, kept)


def _undeliverable(sender: str, effect: Effect, reason: str, now: float) -> DeadLetter:
    kept = {name: value for name, value in dataclasses.asdict(effect).items() if name != "envelope"}
    if type(effect) is SendTask:
        kept["prompt"] = effect.envelope.body
    return DeadLetter(_name(effect), sender.rpartition("/")[0], sender, "outgoing", reason, 1, now, kept)


def _name(effect: Effect) -> str:
    if type(effect) is SendTask:
        return effect.envelope.envelope_id
    return effect.mail_id if type(effect) is SendMail else effect.event_id  # type: ignore[union-attr]
