"""Messages: added by people, and read by page or by revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roost.core.envelopes.envelope import Envelope, message_envelope
from roost.core.talks import side_channels
from roost.core.talks.attachments import unpack
from roost.core.talks.messages import Message, Sender, Status, at
from roost.core.talks.runs import Posted, StopReason
from roost.errors import Busy, Conflict, LimitReached, NotFound
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.batching import Calls, batched_by
from roost.stores.sql.agents import agents
from roost.stores.sql.tables import attachments, capacity, owners
from roost.stores.sql.tables.parked import interrupt, is_unclaimed

COLUMNS = ("seq", "sender", "content", "status", "created", "error", "run_id", "revision", "notes", "attachments")
MESSAGE = ", ".join(f"m.{column}" for column in COLUMNS)
_OWNED = "FROM messages m JOIN talks t ON t.talk_id = m.talk_id WHERE m.talk_id = :talk AND t.user_id = :user"


def _may_reach(reached: str) -> str:
    """Return the condition that the talk's agent is the user's, or `reached`.

    Another user's agent is checked first: it may no longer be shared.
    """
    return f"""(agent = '' OR agent = {reached} OR EXISTS
    (SELECT 1 FROM agents a WHERE a.address = talks.agent AND a.user_id = talks.user_id))"""


def _advance(take: str, owner: str) -> str:
    """Return the update that numbers a message; in it the run of a busy talk loses its right to write."""
    return f"""
UPDATE talks SET last_seq = last_seq + 1, revision = revision + 1, waiting = waiting + 1, updated = roost_now(),
  epoch = epoch + CASE WHEN waiting > 0 AND COALESCE(:busy, busy) IN ('interrupt', 'rollback') THEN 1 ELSE 0 END,
  title = CASE WHEN title = '' THEN :title ELSE title END{take}
WHERE talk_id = :talk AND user_id = :user AND waiting < :most
  AND NOT (waiting > 0 AND COALESCE(:busy, busy) = 'reject')
  AND {_may_reach(":reached")}
RETURNING last_seq, revision, epoch, waiting, COALESCE(:busy, busy), updated, answer_seq, agent, {owner}
"""


def _advance_idle(take: str, owner: str) -> str:
    return f"""
UPDATE talks SET last_seq = last_seq + 1, revision = revision + 1, waiting = 1, updated = roost_now(),
  title = CASE WHEN title = '' THEN batch.new_title ELSE title END{take}
FROM batch WHERE talk_id = batch.talk AND user_id = batch.owner AND waiting = 0
  AND {_may_reach("''")}
RETURNING talk_id, last_seq, revision, epoch, busy, updated, answer_seq, agent, {owner}
"""


_ADVANCE = owners.TakingUpdate.made(_advance)
_ADVANCE_IDLE = owners.TakingUpdate.made(_advance_idle, "batch.node")
_BATCH = {"talk": "TEXT", "owner": "TEXT", "new_title": "TEXT", "node": "TEXT"}


def post_many(tx: Tx, calls: Calls) -> list[Posted | None]:
    """Add messages in a batch; return None for those with a key, to busy talks, or to another user's agent."""
    idle_posts = [
        (talk, user, title, tx.node) for user, talk, _, key, _, title, _, _, most in calls if key is None and most > 0
    ]
    advanced = {row[0]: row[1:] for row in bulk.with_batch(tx, _ADVANCE_IDLE.sql(tx), _BATCH, idle_posts)}
    posted: list[Posted | None] = []
    for _, talk_id, content, _, busy, _, envelope_id, quiet, _ in calls:
        row = advanced.get(talk_id)
        if row is None:
            posted.append(None)
            continue
        seq, revision, epoch, policy, now, answer_seq, agent, node = row
        message, envelope = _insert_message(
            tx, talk_id, seq, content, None, revision, now, envelope_id, busy or policy, quiet, agent
        )
        posted.append(Posted(message, revision, epoch, envelope, None, agent=agent, alone=not answer_seq, node=node))
    return posted


@locking.locks(locking.by_user_and_talk)
@batched_by(post_many)
def post(
    tx: Tx,
    user_id: str,
    talk_id: str,
    content: str,
    key: str | None,
    busy: str | None,
    title: str,
    envelope_id: str,
    quiet: float,
    most: int,
) -> Posted:
    """Add a person's message and its envelope, and supersede the lane's run where the policy says so.

    The same key again returns the existing message; with other content raise Conflict. Raise Busy if the policy is
    `reject` and the talk is being answered, LimitReached if `most` messages wait, NotFound if the talk's agent belongs
    to another user and is not shared.
    """
    if key is not None and (existing := _by_key(tx, user_id, talk_id, key, content)) is not None:
        return existing
    advance = _ADVANCE.sql(tx)
    params = {"talk": talk_id, "user": user_id, "busy": busy, "title": title, "most": most, "node": tx.node}
    rows = tx.write(advance, {**params, "reached": ""})
    if not rows and (reached := _shared_agent(tx, user_id, talk_id)):
        rows = tx.write(advance, {**params, "reached": reached})
    if not rows:
        raise _refusal(tx, user_id, talk_id, most)
    seq, revision, epoch, waiting, policy, now, answer_seq, agent, node = rows[0]
    message, envelope = _insert_message(
        tx, talk_id, seq, content, key, revision, now, envelope_id, policy, quiet, agent
    )
    superseded = StopReason(policy) if waiting > 1 and policy in ("interrupt", "rollback") else None
    was_parked = waiting > 1 and is_unclaimed(tx, talk_id)
    withdrawn = _withdraw(tx, talk_id, answer_seq, revision) if superseded is StopReason.ROLLBACK else 0
    if was_parked and superseded is not None:
        interrupt(tx, talk_id, 0 if withdrawn else answer_seq, revision, now)
    alone = waiting == 1 and not answer_seq
    return Posted(
        message,
        revision,
        epoch,
        envelope,
        superseded,
        withdrawn,
        agent=agent,
        was_parked=was_parked,
        alone=alone,
        node=node,
    )


@locking.locks(locking.by_user_and_talk)
def post_with_attachments(
    tx: Tx,
    user_id: str,
    talk_id: str,
    content: str,
    key: str | None,
    busy: str | None,
    title: str,
    envelope_id: str,
    quiet: float,
    most: int,
    ids: Sequence[str],
) -> Posted:
    """Add a person's message as `post` does, with files that the user has uploaded.

    Raise NotFound if one is unknown, Conflict if one is in another message. The same key again needs the same ids.
    """
    if key is not None and (existing := _by_key(tx, user_id, talk_id, key, content, ids)) is not None:
        return existing
    files = attachments.unused(tx, user_id, ids)
    posted = post(tx, user_id, talk_id, content, key, busy, title, envelope_id, quiet, most)
    attachments.attach(tx, talk_id, posted.message.seq, files)
    return replace(posted, message=replace(posted.message, attachments=tuple(files)))


def newest(tx: Tx, talk_id: str, limit: int) -> list[tuple[Message, int]]:
    """Return the newest messages with their revisions, in order; of an open one what was saved."""
    rows = tx.read(
        f"SELECT {MESSAGE} FROM messages m WHERE m.talk_id = :talk ORDER BY m.seq DESC LIMIT :limit",
        {"talk": talk_id, "limit": limit},
    )
    return [(_with_checkpoints(tx, talk_id, message_of(row)), row[7]) for row in reversed(rows)]


def before(tx: Tx, user_id: str, talk_id: str, seq: int, limit: int) -> list[Message]:
    """Return the messages just before `seq`, in order."""
    rows = tx.read(
        f"SELECT {MESSAGE} {_OWNED} AND m.seq < :seq ORDER BY m.seq DESC LIMIT :limit",
        {"talk": talk_id, "user": user_id, "seq": seq, "limit": limit},
    )
    return [_with_checkpoints(tx, talk_id, message_of(row)) for row in reversed(rows)]


def withdrawn(tx: Tx, user_id: str, talk_id: str, seq: int) -> list[int]:
    """Return the numbers of withdrawn messages before `seq`, in order."""
    rows = tx.read(
        f"SELECT m.seq {_OWNED} AND m.status = 'withdrawn' AND m.seq < :seq ORDER BY m.seq",
        {"talk": talk_id, "user": user_id, "seq": seq},
    )
    return [row[0] for row in rows]


def count_of(tx: Tx, user_id: str, talk_id: str, seq: int, sender: str) -> int:
    """Return the number of messages before `seq` from this sender that were not withdrawn."""
    row = tx.one(
        f"SELECT count(*) {_OWNED} AND m.status <> 'withdrawn' AND m.seq < :seq AND m.sender = :sender",
        {"talk": talk_id, "user": user_id, "seq": seq, "sender": sender},
    )
    return row[0] if row else 0


def changed(tx: Tx, user_id: str, talk_id: str, revision: int, position: int, limit: int) -> list[Message]:
    """Return messages changed after `revision`, in order of number, after the message `position`."""
    rows = tx.read(
        f"SELECT {MESSAGE} {_OWNED} AND m.revision > :revision AND m.seq > :position ORDER BY m.seq LIMIT :limit",
        {"talk": talk_id, "user": user_id, "revision": revision, "position": position, "limit": limit},
    )
    return [_with_checkpoints(tx, talk_id, message_of(row)) for row in rows]


def message_of(row: Row) -> Message:
    seq, sender, content, status, created, error, run_id, _, packed, files = row
    if status == "withdrawn":
        content = packed = ""
    notes = side_channels.unpack(packed) if packed else ()
    return Message(seq, Sender(sender), content, Status(status), at(created), error, run_id, notes, unpack(files))


def saved(tx: Tx, talk_id: str, seq: int) -> tuple[str, str]:
    """Return the checkpointed text and notes of an open message, after its first text."""
    rows = tx.read(
        "SELECT content, notes FROM parts WHERE talk_id = :talk AND seq = :seq ORDER BY part",
        {"talk": talk_id, "seq": seq},
    )
    return "".join(row[0] for row in rows), "".join(row[1] for row in rows)


def _with_checkpoints(tx: Tx, talk_id: str, message: Message) -> Message:
    if message.status is not Status.STREAMING:
        return message
    text, packed = saved(tx, talk_id, message.seq)
    notes = side_channels.joined([*message.notes, *side_channels.unpack(packed)])
    return replace(message, content=message.content + text, notes=notes)


def _by_key(tx: Tx, user_id: str, talk_id: str, key: str, content: str, ids: Sequence[str] = ()) -> Posted | None:
    query = f"SELECT {MESSAGE}, t.epoch, t.agent, {owners.of_talk(tx, 't')} {_OWNED} AND m.key = :key"
    row = tx.one(query, {"talk": talk_id, "user": user_id, "key": key})
    if row is None:
        return None
    message, (epoch, agent, node) = message_of(row[:10]), row[10:]
    if message.content != content or [one.attachment_id for one in message.attachments] != list(ids):
        raise Conflict(f"the key {key!r} was used for a message with another content: use a new key for a new message")
    envelope = message_envelope("", talk_id, agent, message.seq, 0.0, "")
    return Posted(message, row[7], epoch, envelope, agent=agent, repeated=True, node=node)


def _shared_agent(tx: Tx, user_id: str, talk_id: str) -> str:
    """Return another user's agent in this talk; empty if it is the user's own. Raise NotFound if it is not shared."""
    row = tx.one(
        "SELECT agent FROM talks WHERE talk_id = :talk AND user_id = :user", {"talk": talk_id, "user": user_id}
    )
    if row is None or not row[0] or row[0].rpartition("/")[0] == user_id:
        return ""
    agents.recipient_config(tx, user_id, row[0])
    return str(row[0])


def _refusal(tx: Tx, user_id: str, talk_id: str, most: int) -> Exception:
    row = tx.one(
        "SELECT waiting FROM talks WHERE talk_id = :talk AND user_id = :user",
        {"talk": talk_id, "user": user_id},
    )
    if row is None:
        return NotFound("there is no such talk: it was deleted, or it never existed")
    if row[0] >= most:
        return LimitReached(
            f"{most:,} messages of this talk wait for an answer, and no more are allowed: wait or stop it"
        )
    return Busy("the agent is still answering: wait for it, stop it, or send with another busy policy")


def _withdraw(tx: Tx, talk_id: str, answer_seq: int, revision: int) -> int:
    """Withdraw the open answer, and count what it answered as handled."""
    if answer_seq:
        ids = {"talk": talk_id, "seq": answer_seq, "revision": revision}
        tx.write(
            "UPDATE messages SET status = 'withdrawn', content = '', notes = '', revision = :revision"
            " WHERE talk_id = :talk AND seq = :seq",
            ids,
        )
        tx.write("DELETE FROM parts WHERE talk_id = :talk AND seq = :seq", ids)
        remove = "DELETE FROM inbox WHERE lane = :talk AND kind <> 'task' AND seq < :seq RETURNING seq"
        done = len(tx.write(remove, ids))
        tx.write(
            "UPDATE talks SET answer_seq = 0, waiting = waiting - :done WHERE talk_id = :talk",
            {"talk": talk_id, "done": done},
        )
    return answer_seq


def _insert_message(
    tx: Tx,
    talk_id: str,
    seq: int,
    content: str,
    key: str | None,
    revision: int,
    now: float,
    envelope_id: str,
    policy: str,
    quiet: float,
    agent: str,
) -> tuple[Message, Envelope]:
    message = Message(seq, Sender.USER, content, Status.COMPLETE, at(now))
    insert(tx, talk_id, message, revision, now, key=key)
    due = now + quiet if policy == "collect" else now
    return message, post_envelope(tx, talk_id, seq, envelope_id, policy, due, agent)


def post_envelope(tx: Tx, talk_id: str, seq: int, envelope_id: str, policy: str, due: float, agent: str) -> Envelope:
    """Post the envelope of a message, which is then answered."""
    tx.later("inbox", _ENVELOPE_COLUMNS, (envelope_id, talk_id, seq, 0, due, policy, agent, due))
    if agent:
        capacity.subtract(tx, agent)
    return message_envelope(envelope_id, talk_id, agent, seq, due, policy)


def insert(
    tx: Tx, talk_id: str, m: Message, revision: int, now: float, *, notes: str = "", key: str | None = None
) -> None:
    tx.later(
        "messages",
        _MESSAGE_COLUMNS,
        (talk_id, m.seq, m.sender, m.content, m.status, m.error, m.run_id, now, revision, notes, key),
    )


_ENVELOPE_COLUMNS = ("envelope_id", "lane", "seq", "attempts", "due", "busy", "address", "rank")
_MESSAGE_COLUMNS = bulk.columns("talk_id, seq, sender, content, status, error, run_id, created, revision, notes, key")
