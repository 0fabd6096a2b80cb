"""The inbox of agents: post, claim, settle, release and dead-letter are the only verbs.

Whatever writes for an agent proves by its epoch that it still may. What is sent, by people and by turns
alike, is an effect; effects of a turn are posted in the transaction that settles it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeGuard

from roost.core import patterns
from roost.core.addresses import parse, unknown
from roost.core.envelopes import (
    Change,
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
from roost.core.messages import at
from roost.core.priority import Priority, rank
from roost.core.tasks import TaskStatus
from roost.errors import Conflict, NotFound
from roost.ports import Row, Tx
from roost.stores.statements import bulk, burial
from roost.stores.statements.burial import bury
from roost.stores.statements.sleep import arm, fall_asleep, record

_COLUMNS = (
    "envelope_id", "address", "kind", "lane", "priority", "sender", "body", "created", "rank", "due", "attempts",
    "most_attempts", "retry_delay", "expires", "hops", "recorded", "ask", "root",
)  # fmt: skip
ENVELOPE = ", ".join(_COLUMNS)
_OURS = "EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch)"
_INSERT = (
    f"INSERT INTO inbox ({ENVELOPE}, seq, busy) SELECT {', '.join(f':{name}' for name in _COLUMNS)}, 0, ''"
    " FROM agents WHERE address = :address ON CONFLICT (envelope_id) DO NOTHING RETURNING attempts"
)


def envelope_of(row: Row, *, claimed: bool) -> Envelope:
    (envelope_id, address, kind, lane, priority, sender, body, created, ranked, due, attempts, most, delay, expires,
     hops, recorded, ask, root) = row[:18]  # fmt: skip
    return Envelope(
        envelope_id, address, Kind(kind), lane, Priority(priority), sender, body, created, ranked, due,
        max(attempts, 1) if claimed else attempts, most, delay, expires, hops, bool(recorded), ask, claimed, root,
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


def _put(tx: Tx, envelope: Envelope) -> bool:
    """False: there is no such agent (any more)."""
    values = {name: getattr(envelope, name) for name in _COLUMNS}
    values["recorded"] = int(envelope.recorded)
    values["attempts"] = 1 if envelope.claimed else 0
    return bool(tx.write(_INSERT, values))


def insert(tx: Tx, envelope: Envelope) -> None:
    if not _put(tx, envelope):
        raise NotFound(f"there is no agent {envelope.address.rpartition('/')[2]!r}: it was deleted meanwhile")


def _post_task(tx: Tx, effect: SendTask) -> tuple[Envelope, ...]:
    e = effect.envelope
    if not e.recorded:
        insert(tx, e)
        return (e,)
    if effect.key is not None and _same_task(tx, e, effect.key):
        return ()
    insert(tx, e)
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
    if m.key is not None and _same_mail(tx, m):
        return ()
    posted = () if m.envelope is None else _post_letter(tx, m.envelope, m.check_by)
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
    return posted + _publish(tx, _urgent_mail(m)) if m.priority is Priority.URGENT else posted


def _same_mail(tx: Tx, m: SendMail) -> bool:
    row = tx.one(
        "SELECT recipient, subject, body FROM mail WHERE sender = :sender AND key = :key",
        {"sender": m.sender, "key": m.key},
    )
    if row is not None and tuple(row) != (m.recipient, m.subject, m.body):
        raise Conflict(f"the key {m.key!r} was used for another mail: use a new key for a new mail")
    return row is not None


def _post_letter(tx: Tx, e: Envelope, check_by: float | None) -> tuple[Envelope, ...]:
    """With those of its lane that waited for the next check and need not any more, first.

    A lane is as urgent as the most urgent in it, and its order is strict: older ones are due when this is.
    """
    insert(tx, e)
    if check_by is not None:
        arm(tx, e.address, "mail", check_by, earlier=True)
    rows = tx.write(
        "UPDATE inbox SET due = :due, rank = CASE WHEN rank > :rank THEN :rank ELSE rank END"
        " WHERE lane = :lane AND kind <> 'task' AND address = :address AND attempts = 0 AND due > :due"
        f" RETURNING {ENVELOPE}",
        {"address": e.address, "lane": e.lane, "due": e.due, "rank": e.rank},
    )
    return (*sorted((envelope_of(row, claimed=False) for row in rows), key=lambda one: one.envelope_id), e)


def _urgent_mail(m: SendMail) -> Publish:
    """What those hear whose owner got it; its id is the mail's, so that it is told once."""
    data = {"mail_id": m.mail_id, "to": m.recipient, "from": m.sender, "subject": m.subject}
    return Publish(
        f"event_{m.mail_id.removeprefix('mail_')}", parse(m.recipient, "").user_id, "urgent_mail", data, m.priority,
        m.sender, m.created, m.hops, optional=True, root=m.envelope.origin if m.envelope else "",
    )  # fmt: skip


def _publish(tx: Tx, p: Publish) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    crowded = 0
    for address, config in _takers(tx, p):
        envelope = _event_envelope(p, address, config)
        if not _has_room(tx, address, config["inbox_limit"]):
            bury(tx, burial.crowded_out(envelope, config["inbox_limit"]))
            crowded += 1
        elif _put(tx, envelope):
            posted.append(envelope)
    tx.write(
        "INSERT INTO events (event_id, user_id, name, data, priority, publisher, created, takers)"
        " VALUES (:id, :user, :name, :data, :priority, :publisher, :created, :takers)"
        " ON CONFLICT (event_id) DO UPDATE SET takers = excluded.takers",
        {"id": p.event_id, "user": p.user_id, "name": p.name, "data": json.dumps(p.data), "priority": p.priority,
         "publisher": p.publisher, "created": at(p.created).timestamp(), "takers": len(posted)},
    )  # fmt: skip
    if not posted and not crowded and not p.optional:
        bury(tx, burial.untaken(p))
    return tuple(posted)


def _takers(tx: Tx, p: Publish) -> list[tuple[str, Mapping[str, Any]]]:
    """Who hears it, each once, with its config."""
    whole, first, rest = patterns.heads(p.name)
    rows = tx.read(
        "SELECT s.address, s.pattern, s.fields, a.config FROM subscriptions s JOIN agents a ON a.address = s.address"
        " WHERE s.user_id = :user AND s.head IN (:whole, :first, :rest) ORDER BY s.address",
        {"user": p.user_id, "whole": whole, "first": first, "rest": rest},
    )
    takers: dict[str, str] = {}
    for address, pattern, fields, config in rows:
        if patterns.matches(pattern, p.name) and patterns.fields_match(json.loads(fields), p.data):
            takers[address] = config
    return [(address, json.loads(config)) for address, config in takers.items()]


def _has_room(tx: Tx, address: str, limit: int) -> bool:
    last = "SELECT 1 FROM inbox WHERE address = :address AND address <> '' LIMIT 1 OFFSET :last"
    return tx.one(last, {"address": address, "last": limit - 1}) is None


def _event_envelope(p: Publish, address: str, config: Mapping[str, Any]) -> Envelope:
    body = json.dumps({"event_id": p.event_id, "name": p.name, "data": p.data})
    return Envelope(
        f"{p.event_id}:{address}", address, Kind.EVENT, f"event:{p.name}", p.priority, p.publisher, body, p.created,
        rank(p.created, p.priority), attempts=0, most_attempts=config["max_attempts"],
        retry_delay=config["retry_delay"], hops=p.hops, claimed=False, root=p.root or p.event_id,
    )  # fmt: skip


# --- claiming and settling ---------------------------------------------------------------------------


def claim(tx: Tx, envelope: Envelope, epoch: int) -> tuple[int, tuple[Recorded, ...]] | None:
    # Not one more than the store has: whoever claims it knows, and a look at the agent may have counted this try.
    ids = {"id": envelope.envelope_id, "address": envelope.address, "epoch": epoch, "tries": envelope.attempts + 1}
    rows = tx.write(
        f"UPDATE inbox SET attempts = :tries WHERE envelope_id = :id AND {_OURS} RETURNING attempts", ids
    )  # fmt: skip
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
    return post_all(tx, effects, now)


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


def settle(tx: Tx, closings: tuple[WorkClosing, ...], full: frozenset[str] = frozenset()) -> tuple[WorkSettled, ...]:
    """End tries: of each the envelope, the record, the agent's memory and all that it sends, at once or not at all."""
    addresses = sorted({c.envelope.address for c in closings})
    rows = bulk.among(tx, "SELECT address, epoch FROM agents WHERE address IN", addresses, tx.for_update)
    epochs: dict[str, int] = {row[0]: row[1] for row in rows}
    ours = [c for c in closings if epochs.get(c.envelope.address) == c.epoch]
    gone = [c.envelope.envelope_id for c in ours if c.verdict in _FINAL]
    removed = {row[0] for row in bulk.remove(tx, "DELETE FROM inbox WHERE envelope_id IN", gone, _RETURNING)}
    taken = [c for c in ours if c.envelope.envelope_id in removed or (c.verdict is Verdict.RETRY and _retry(tx, c))]
    bulk.insert(tx, "runs", _RUN, [_run_of(c) for c in taken if c.run_id and not _is_plain(c)], _ONCE)
    posted = post_each(tx, [(c.sent, c.ended) for c in taken], full)
    settled = {id(c): _settled(tx, c, sent) for c, sent in zip(taken, posted, strict=True)}
    for c in closings:
        if c.verdict is Verdict.RELEASED:
            settled[id(c)] = WorkSettled(_release(tx, c))
    return tuple(settled.get(id(c)) or WorkSettled(False) for c in closings)


_TAKEN = WorkSettled(True)
_FINAL = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.CANCELLED})
_RETURNING = " RETURNING envelope_id"
_ONCE = " ON CONFLICT (run_id) DO NOTHING"
_RUN = (
    "run_id", "talk_id", "outcome", "attempts", "started", "ended", "fault", "address", "kind", "envelope_id", "said",
    "root",
)  # fmt: skip


def _is_plain(c: WorkClosing) -> bool:
    """A message from agent to agent that was handled: of those there are many, and nothing is kept of them."""
    return c.verdict is Verdict.DONE and c.envelope.kind is Kind.TASK and not c.envelope.recorded


def _retry(tx: Tx, c: WorkClosing) -> bool:
    ids = {"id": c.envelope.envelope_id, "due": c.due}
    if not tx.write("UPDATE inbox SET due = :due WHERE envelope_id = :id RETURNING attempts", ids):
        return False
    arm(tx, c.envelope.address, "retry", c.due, earlier=True)
    return True


def _release(tx: Tx, c: WorkClosing) -> bool:
    ids = {"id": c.envelope.envelope_id}
    return bool(tx.write("UPDATE inbox SET attempts = attempts - 1 WHERE envelope_id = :id RETURNING attempts", ids))


def _settled(tx: Tx, c: WorkClosing, posted: tuple[Envelope, ...]) -> WorkSettled:
    if _is_plain(c) and c.memory is None and not c.changes and c.sleep is None and c.envelope.ask is None:
        return WorkSettled(True, posted) if posted else _TAKEN
    answered = None
    if c.envelope.ask is not None and c.verdict is not Verdict.RETRY:
        answered, late = _answer(tx, c)
        posted += late
    _keep(tx, c)
    dead = burial.failed(c) if c.verdict is Verdict.DEAD else None
    if dead is not None:
        bury(tx, dead)
    over = c.envelope.envelope_id if c.envelope.recorded and c.verdict is not Verdict.RETRY else None
    return WorkSettled(True, posted, dead, over, answered)


def _answer(tx: Tx, c: WorkClosing) -> tuple[str | None, tuple[Envelope, ...]]:
    """Give a request its answer; one that is not waited for any more is delivered as a message that says so."""
    e = c.envelope
    asker, envelope_id, number = json.loads(e.ask or "[]")
    answer = {"text": c.text} if c.verdict is Verdict.DONE else {"error": c.reason or "it was cancelled"}
    rows = tx.write(
        "UPDATE steps SET result = :answer, done = 1 WHERE envelope_id = :id AND step = :step AND done = 0"
        " RETURNING step",
        {"id": envelope_id, "step": number, "answer": json.dumps(answer)},
    )
    if rows:
        return e.ask, ()
    body = json.dumps({"late": True, "asked": e.body, **answer})
    late = Envelope(
        f"{e.envelope_id}:late", asker, Kind.TASK, f"from:agent:{e.address}", e.priority, f"agent:{e.address}", body,
        c.ended, rank(c.ended, e.priority), attempts=0, hops=e.hops + 1, claimed=False, root=e.origin,
    )  # fmt: skip
    return None, (late,) if _put(tx, late) else ()


def ask(
    tx: Tx, envelope_id: str, address: str, epoch: int, number: int, effect: SendTask, now: float
) -> tuple[Envelope, ...] | None:
    if not _is_ours(tx, address, epoch):
        return None
    _note(tx, envelope_id, number, "ask", effect.envelope.address, None, False, now)
    return post(tx, effect)


def answer_to(tx: Tx, envelope_id: str, number: int, give_up: bool) -> str | None:
    if give_up:
        tx.write(
            "UPDATE steps SET done = 1, result = :none WHERE envelope_id = :id AND step = :step AND done = 0",
            {"id": envelope_id, "step": number, "none": json.dumps({"timeout": True})},
        )
    row = tx.one(
        "SELECT result FROM steps WHERE envelope_id = :id AND step = :step AND done = 1",
        {"id": envelope_id, "step": number},
    )
    return row[0] if row else None


def _keep(tx: Tx, c: WorkClosing) -> None:
    """The agent's side of it: memory, errors, changes of state, the record of the run."""
    e = c.envelope
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
    if e.recorded:
        _end_task(tx, c)
    elif e.kind is Kind.MAIL and c.run_id:  # read by whoever has begun with it, processed by who has done it
        tx.write(
            "UPDATE mail SET processed = CASE WHEN :done = 1 THEN :now ELSE processed END,"
            " read_at = COALESCE(read_at, :started),"
            " status = CASE WHEN status = 'unread' THEN 'read' ELSE status END WHERE mail_id = :mail",
            {"mail": e.body, "started": c.started, "now": c.ended, "done": int(c.verdict is Verdict.DONE)},
        )


def post_all(tx: Tx, effects: tuple[Effect, ...], now: float) -> tuple[Envelope, ...]:
    return post_each(tx, [(effects, now)])[0]


def post_each(
    tx: Tx, outgoing: list[tuple[tuple[Effect, ...], float]], full: frozenset[str] = frozenset()
) -> list[tuple[Envelope, ...]]:
    """Post what several turns send, each at its time; what each has put into inboxes."""
    plain = [effect.envelope for effects, _ in outgoing for effect in effects if _is_message(effect)]
    lost = _insert_all(tx, plain, full)
    return [_post_rest(tx, effects, now, lost) if effects else () for effects, now in outgoing]


def _is_message(effect: Effect) -> TypeGuard[SendTask]:
    return type(effect) is SendTask and not effect.envelope.recorded


def _insert_all(tx: Tx, envelopes: list[Envelope], full: frozenset[str]) -> set[str]:
    """Messages from agent to agent, all at once; the addresses of those who do not exist any more."""
    addresses = sorted({envelope.address for envelope in envelopes})
    known = {row[0] for row in bulk.among(tx, "SELECT address FROM agents WHERE address IN", addresses)}
    there = [e for e in envelopes if e.address in known]
    rows = [_values(e if e.address not in full else replace(e, attempts=0)) for e in there]
    bulk.insert(tx, "inbox", _MESSAGE, rows, constants=_CONSTANTS)
    return set(addresses) - known


_CONSTANTS = {"recorded": "0", "seq": "0", "busy": "''"}
_MESSAGE = tuple(name for name in _COLUMNS if name not in _CONSTANTS)
_values = attrgetter(*_MESSAGE)


def _post_rest(tx: Tx, effects: tuple[Effect, ...], now: float, lost: set[str]) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    for effect in effects:
        try:
            if not _is_message(effect):
                posted += post(tx, effect)
            elif effect.envelope.address not in lost:
                posted.append(effect.envelope)
            else:
                raise unknown(effect.envelope.address.rpartition("/")[2])
        except (NotFound, Conflict) as error:  # it was there when the turn sent it
            bury(tx, burial.undeliverable(effect, str(error), now))
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


def _run_of(c: WorkClosing) -> tuple[Any, ...]:
    e = c.envelope
    return (
        c.run_id, "", _OUTCOMES[c.verdict], e.attempts, c.started, c.ended, c.fault, e.address, e.kind, e.envelope_id,
        c.text[:10_000] or None, e.origin,
    )  # fmt: skip


_OUTCOMES = {
    Verdict.DONE: "done",
    Verdict.RETRY: "failed",
    Verdict.DEAD: "failed",
    Verdict.CANCELLED: "stopped",
}


def _name(effect: Effect) -> str:
    if type(effect) is SendTask:
        return effect.envelope.envelope_id
    return effect.mail_id if type(effect) is SendMail else effect.event_id  # type: ignore[union-attr]
