"""Branches: talks that begin with the messages of another one. Messages and brain data are copied up to a message."""

from __future__ import annotations

import json
from dataclasses import dataclass

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import NEVER
from roost.core.talks.branches import Branch, BranchAction, NewBranch
from roost.core.talks.messages import Sender, Status, at
from roost.core.talks.talk import Talk, fork_title, title_from
from roost.errors import Conflict, Invalid, LimitReached, NotFound
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.agents import agents
from roost.stores.sql.tables import attachments
from roost.stores.sql.talks import answers, messages, talk_values, talks

_END = 1 << 53


@dataclass(frozen=True, slots=True)
class Branched:
    """Result of creating a branch. `envelope`: its message that waits for an answer."""

    talk: Talk
    agent: str
    envelope: Envelope | None = None


@locking.locks(locking.by_user_and_talk)
def create(tx: Tx, user_id: str, source: str, new: NewBranch, most_talks: int, quiet: float) -> Branched:
    """Create a talk from the messages of `source` up to one of them, and post the message that is to be answered.

    The same key again returns the existing talk. Raise Conflict if a message in it is still being written,
    LimitReached if the user has `most_talks` talks.
    """
    if new.key is not None and (existing := _by_key(tx, user_id, source, new)) is not None:
        return existing
    parent = _parent(tx, user_id, source)
    if parent.agent:
        agents.recipient(tx, user_id, parent.agent, False)
    last, question = _cut(tx, source, new)
    now = talks.count_new(tx, user_id, 1, most_talks)
    if now is None:
        raise LimitReached(f"you have {most_talks:,} talks, and no more are allowed: delete some first")
    _insert(tx, user_id, parent, new, last, now)
    _copy(tx, source, new.talk_id, last)
    envelope = _post(tx, user_id, parent, new, question, now, quiet)
    return Branched(talks.get(tx, user_id, new.talk_id), parent.agent, envelope)


def copied_chars(tx: Tx, user_id: str, talk_id: str, seq: int | None) -> int:
    """Return how much a branch with the messages up to `seq` copies, for the quota of its user."""
    talks.get(tx, user_id, talk_id)
    row = tx.one(
        "SELECT SUM(LENGTH(content) + LENGTH(notes) + LENGTH(COALESCE(error, ''))) FROM messages"
        " WHERE talk_id = :talk AND seq <= :last",
        {"talk": talk_id, "last": _END if seq is None else seq},
    )
    return int(row[0] or 0) if row else 0


def family(tx: Tx, user_id: str, talk_id: str) -> list[Branch]:
    """Return the branches of a talk in order of creation, with itself; only itself if there are none."""
    talks.get(tx, user_id, talk_id)
    rows = tx.read(
        "SELECT talk_id, parent, parent_seq, created, root FROM talks WHERE user_id = :user AND (talk_id = :talk OR"
        " (root <> '' AND root = (SELECT t.root FROM talks t WHERE t.talk_id = :talk))) ORDER BY created, talk_id",
        {"user": user_id, "talk": talk_id},
    )
    return [Branch(*_origin(name, parent, seq, root), at(created)) for name, parent, seq, created, root in rows]


def _origin(talk_id: str, parent: str, seq: int, root: str) -> tuple[str, str | None, int]:
    """Return the parent of a branch within its family: a fork, and the first talk, have none."""
    is_first = root in ("", talk_id)
    return talk_id, None if is_first else parent or None, 0 if is_first else seq


def _by_family(tx: Tx, user_id: str, talk_id: str) -> locking.Rows:
    rows = tx.read(
        "SELECT talk_id FROM talks WHERE talk_id = :talk OR (parent = :talk AND parent <> '')"
        " OR (root <> '' AND root = (SELECT t.root FROM talks t WHERE t.talk_id = :talk))",
        {"talk": talk_id},
    )
    return [locking.talk(row[0]) for row in rows]


@locking.locks(_by_family)
def delete(tx: Tx, user_id: str, talk_id: str) -> list[str]:
    """Delete a talk with all its branches; return their ids. Forks stay."""
    found = [branch.talk_session_id for branch in family(tx, user_id, talk_id)]
    for name in sorted(found):
        talks.delete(tx, user_id, name)
    return found


# --- the source of a branch ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parent:
    """Columns of the talk that is branched, as a new talk gets them."""

    talk_id: str
    profile: str
    busy: str
    title: str
    options: str
    agent: str
    parent: str
    parent_seq: int
    root: str


def _parent(tx: Tx, user_id: str, talk_id: str) -> _Parent:
    row = tx.one(
        "SELECT talk_id, profile, busy, title, options, agent, parent, parent_seq, root FROM talks"
        f" WHERE talk_id = :talk AND user_id = :user{tx.for_update}",
        {"talk": talk_id, "user": user_id},
    )
    return _Parent(*talks.found(row))


def _by_key(tx: Tx, user_id: str, source: str, new: NewBranch) -> Branched | None:
    row = tx.one(
        "SELECT talk_id, agent FROM talks WHERE user_id = :user AND branch_key = :key",
        {"user": user_id, "key": _key(source, new)},
    )
    return None if row is None else Branched(talks.get(tx, user_id, row[0]), row[1])


def _key(source: str, new: NewBranch) -> str | None:
    """Return the key as it is stored: the same key for another call is another branch."""
    return None if new.key is None else json.dumps([new.action, source, new.seq, new.key])


def _cut(tx: Tx, source: str, new: NewBranch) -> tuple[int, int]:
    """Return the number of the last message to copy, and that of the question to answer again, or 0."""
    chosen = _chosen(tx, source, new)
    if chosen is None:
        raise Invalid("the talk has no messages yet: send one first")
    seq, sender, _ = chosen
    if new.action is BranchAction.EDIT and sender != Sender.USER:
        raise Invalid(f"message {seq} is an answer: edit a message of your own, or regenerate the answer")
    if new.action is BranchAction.FORK:
        last, question = seq, 0
    elif new.action is BranchAction.EDIT:
        last, question = seq - 1, 0
    else:
        last, question = _question(tx, source, seq, sender)
    _check_closed(tx, source, last)
    return last, question


def _chosen(tx: Tx, source: str, new: NewBranch) -> Row | None:
    if new.seq is None:
        return tx.one(f"SELECT {_HEAD} WHERE talk_id = :talk AND {_SHOWN} ORDER BY seq DESC LIMIT 1", {"talk": source})
    ids = {"talk": source, "seq": new.seq}
    row = tx.one(f"SELECT {_HEAD} WHERE talk_id = :talk AND seq = :seq AND {_SHOWN}", ids)
    if row is None:
        raise NotFound(f"the talk has no message {new.seq}: see `get_messages`")
    return row


_HEAD = "seq, sender, status FROM messages"
_SHOWN = "status <> 'withdrawn'"


def _question(tx: Tx, source: str, seq: int, sender: str) -> tuple[int, int]:
    """Return the last message before an answer, and the question; of a question itself, both are its number."""
    if sender == Sender.USER:
        return seq, seq
    row = tx.one(
        "SELECT seq FROM messages WHERE talk_id = :talk AND seq < :seq AND sender = 'user' ORDER BY seq DESC LIMIT 1",
        {"talk": source, "seq": seq},
    )
    if row is None:
        raise Invalid(f"message {seq} answers no message of this talk: it cannot be regenerated")
    return seq - 1, row[0]


def _check_closed(tx: Tx, source: str, last: int) -> None:
    row = tx.one(
        "SELECT seq FROM messages WHERE talk_id = :talk AND seq <= :last AND status = :open",
        {"talk": source, "last": last, "open": Status.STREAMING},
    )
    if row is not None:
        raise Conflict(f"message {row[0]} is still being written: wait for it, or stop it first")


# --- writing ---------------------------------------------------------------------------------------


def _insert(tx: Tx, user_id: str, parent: _Parent, new: NewBranch, last: int, now: float) -> None:
    """Insert the talk, of the family of its parent unless it is a fork."""
    origin = _nearest(tx, parent, last)
    root = "" if new.action is BranchAction.FORK else parent.root or parent.talk_id
    if root and not parent.root:
        tx.write("UPDATE talks SET root = talk_id WHERE talk_id = :talk", {"talk": parent.talk_id})
    title = new.title or (parent.title if root else fork_title(parent.title))
    values = (new.talk_id, user_id, parent.profile, parent.busy, title, parent.options, now, now, last, last, 0, 0, 0)
    tx.later("talks", _TALK, (*values, parent.agent, origin, last, root, _key(parent.talk_id, new)))


_TALK = bulk.columns(
    "talk_id, user_id, profile, busy, title, options, created, updated, last_seq, revision, epoch, waiting,"
    " answer_seq, agent, parent, parent_seq, root, branch_key"
)


def _nearest(tx: Tx, parent: _Parent, last: int) -> str:
    """Return the ancestor that the message after `last` belongs to, so that all versions of it have one parent."""
    while parent.root and parent.parent and last <= parent.parent_seq:
        row = tx.one(
            "SELECT talk_id, profile, busy, title, options, agent, parent, parent_seq, root FROM talks"
            " WHERE talk_id = :talk AND root = :root",
            {"talk": parent.parent, "root": parent.root},
        )
        if row is None:
            break
        parent = _Parent(*row)
    return parent.talk_id


def _copy(tx: Tx, source: str, talk_id: str, last: int) -> None:
    """Copy the messages up to `last`, and what brains have kept with them."""
    tx.write(
        "INSERT INTO messages (talk_id, seq, sender, content, status, error, run_id, created, revision, notes,"
        " attachments)"
        " SELECT CAST(:new AS TEXT), seq, sender, content, status, error, run_id, created, seq, notes,"
        " attachments FROM messages"
        " WHERE talk_id = :old AND seq <= :last",
        {"old": source, "new": talk_id, "last": last},
    )
    attachments.copy(tx, source, talk_id, last)
    _copy_context(tx, source, talk_id, last)
    _copy_artifacts(tx, source, talk_id, last)
    state = talk_values.copy(tx, source, talk_id, last)
    if state is not None:
        tx.write("UPDATE talks SET state = :state WHERE talk_id = :talk", {"state": state, "talk": talk_id})


def _copy_context(tx: Tx, source: str, talk_id: str, last: int) -> None:
    """Copy the context entries of the runs whose messages are all copied."""
    tx.write(
        "INSERT INTO diary (owner, lane, run_id, content, seqs)"
        " SELECT CAST(:new AS TEXT), lane, run_id, content, seqs FROM diary"
        " WHERE owner = :old AND lane = '' AND run_id IN (SELECT run_id FROM messages"
        " WHERE talk_id = :old AND run_id IS NOT NULL GROUP BY run_id HAVING max(seq) <= :last)",
        {"old": source, "new": talk_id, "last": last},
    )


def _copy_artifacts(tx: Tx, source: str, talk_id: str, last: int) -> None:
    """Copy the versions of artifacts that existed after the message `last`."""
    until = tx.one(
        "SELECT min(created) FROM messages WHERE talk_id = :old AND ((seq = :last AND sender = 'user') OR seq > :last)",
        {"old": source, "last": last},
    )
    tx.write(
        "INSERT INTO artifacts (artifact_id, owner, lane, name, version, content, about, created)"
        " SELECT artifact_id || ':' || CAST(:new AS TEXT), CAST(:new AS TEXT), lane, name, version, content, about,"
        " created FROM artifacts WHERE owner = :old AND lane = '' AND created <= :until",
        {"old": source, "new": talk_id, "until": NEVER if until is None or until[0] is None else until[0]},
    )


def _post(
    tx: Tx, user_id: str, parent: _Parent, new: NewBranch, question: int, now: float, quiet: float
) -> Envelope | None:
    """Post the edited message, or the question that is answered again."""
    if new.action is BranchAction.FORK:
        return None
    if new.action is BranchAction.EDIT:
        title = title_from(new.content)
        posted = messages.post(tx, user_id, new.talk_id, new.content, None, None, title, new.envelope_id, quiet, 1)
        _keep_attachments(tx, parent.talk_id, new.talk_id, posted.message.seq)
        return posted.envelope
    tx.write("UPDATE talks SET waiting = 1 WHERE talk_id = :talk", {"talk": new.talk_id})
    return messages.post_envelope(tx, new.talk_id, question, new.envelope_id, parent.busy, now, parent.agent)


def _keep_attachments(tx: Tx, source: str, talk_id: str, seq: int) -> None:
    """Give an edited message the files of the message that it replaces, which has the same number."""
    original = answers.message_at(tx, source, seq)
    if original is not None and original.attachments:
        attachments.attach(tx, talk_id, seq, original.attachments)
