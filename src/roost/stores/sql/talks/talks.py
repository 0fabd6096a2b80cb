"""Talks: create, list, rename, configure, delete, load.

Every query includes the owner: another user's talk is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from roost.core.limits.usage import Usage
from roost.core.talks.messages import at
from roost.core.talks.runs import Loaded
from roost.core.talks.talk import BusyPolicy, Talk
from roost.errors import Invalid, LimitReached, NotFound
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.batching import Calls, batched_by
from roost.stores.sql.brain_data import brain_context
from roost.stores.sql.journal.approvals import WAITED_FOR
from roost.stores.sql.journal.steps import delete_journal
from roost.stores.sql.tables import owners, quotas, talk_contents
from roost.stores.sql.tables.parked import PARKED_TALK
from roost.stores.sql.talks.messages import newest

_TALK = (
    "talk_id, user_id, profile, busy, title, created, updated, last_seq, waiting, options, agent,"
    " parent, parent_seq, root"
)
_NEW = bulk.columns(
    "talk_id, user_id, profile, busy, title, options, created, updated, last_seq, revision, epoch, waiting,"
    " answer_seq, agent, node"
)
_TAKE = f"UPDATE talks SET node = :node WHERE talk_id = :talk AND user_id = :user AND {owners.may_take(':node')}"
_IS_LAST_USED = (
    "(root = '' OR NOT EXISTS (SELECT 1 FROM talks b WHERE b.root = talks.root AND b.root <> ''"
    " AND (b.updated, b.talk_id) > (talks.updated, talks.talk_id)))"
)
"""Condition: no branch of the same family was used later."""
_HAS_OPEN_APPROVAL = f"EXISTS (SELECT 1 FROM approvals WHERE approvals.holder = talks.talk_id AND {WAITED_FOR})"


def create_many(tx: Tx, calls: Calls) -> list[Loaded | None]:
    """Create talks in a batch; return None for talks of a user who would have too many."""
    most = {user_id: bound for _, user_id, _, _, _, _, bound, *_ in calls}
    counted = sorted(Counter(call[1] for call in calls).items())
    times = {user_id: count_new(tx, user_id, count, most[user_id]) for user_id, count in counted}
    return [None if (now := times[call[1]]) is None else _create(tx, now, *call) for call in calls]


@batched_by(create_many)
def create(
    tx: Tx,
    talk_id: str,
    user_id: str,
    profile: str,
    busy: str,
    title: str,
    options: str,
    most: int,
    agent: str = "",
) -> Loaded:
    """Create a talk. Raise LimitReached if the user has `most` talks already."""
    now = count_new(tx, user_id, 1, most)
    if now is None:
        raise LimitReached(f"you have {most:,} talks, and no more are allowed: delete some first")
    return _create(tx, now, talk_id, user_id, profile, busy, title, options, most, agent)


def count_new(tx: Tx, user_id: str, new: int, most: int) -> float | None:
    """Reserve places for new talks of the user and return the time; None if there would be too many."""
    if not quotas.reserve(tx, "talks", user_id, new, most):
        return None
    row = tx.one("SELECT roost_now()")
    assert row is not None
    return float(row[0])


def _create(
    tx: Tx,
    now: float,
    talk_id: str,
    user_id: str,
    profile: str,
    busy: str,
    title: str,
    options: str,
    _most: int,
    agent: str = "",
) -> Loaded:
    node = "" if agent else tx.node
    tx.later("talks", _NEW, (talk_id, user_id, profile, busy, title, options, now, now, 0, 0, 0, 0, 0, agent, node))
    row = (talk_id, user_id, profile, busy, title, now, now, 0, 0, options, agent, "", 0, "")
    return Loaded(_talk_of(row), 0, 0, None, [], 0, node=node)


def get(tx: Tx, user_id: str, talk_id: str) -> Talk:
    return _talk_of(
        found(
            tx.one(
                f"SELECT {_TALK}, {_HAS_OPEN_APPROVAL} FROM talks WHERE talk_id = :talk AND user_id = :user",
                _ids(user_id, talk_id),
            )
        )
    )


def usage(tx: Tx, user_id: str, talk_id: str) -> Usage:
    """Return what the runs of a talk have used; the cost only if that of each run is known."""
    found(tx.one("SELECT 1 FROM talks WHERE talk_id = :talk AND user_id = :user", _ids(user_id, talk_id)))
    row = tx.one(
        "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost),"
        " SUM(CASE WHEN cost IS NULL AND input_tokens + output_tokens > 0 THEN 1 ELSE 0 END)"
        " FROM runs WHERE talk_id = :talk",
        {"talk": talk_id},
    )
    taken, given, cost, unknown = row or (None,) * 4
    return Usage(int(taken or 0), int(given or 0), None if unknown else cost)


def listed(tx: Tx, user_id: str, limit: int, before: str | None) -> list[Talk]:
    """Return the user's talks, last used first, of branches only the last used one; `before`: start after that one."""
    where = ""
    if before is not None:
        get(tx, user_id, before)
        where = " AND (updated, talk_id) < (SELECT updated, talk_id FROM talks WHERE talk_id = :before)"
    rows = tx.read(
        f"SELECT {_TALK}, {_HAS_OPEN_APPROVAL} FROM talks WHERE user_id = :user AND {_IS_LAST_USED}{where}"
        " ORDER BY updated DESC, talk_id DESC LIMIT :limit",
        {"user": user_id, "limit": limit, "before": before},
    )
    return [_talk_of(row) for row in rows]


@locking.locks(locking.by_user_and_talk)
def change(tx: Tx, user_id: str, talk_id: str, values: Mapping[str, str]) -> tuple[Talk, int]:
    """Set `title`, `profile`, `busy` or `options`; return the talk, and its revision, by which its node notices it.

    Raise Invalid for the profile of a talk with an agent.
    """
    if "profile" in values and get(tx, user_id, talk_id).agent:
        raise Invalid("this talk is with an agent, which has a profile of its own: configure the agent instead")
    columns = ", ".join(f"{name} = :{name}" for name in ("title", "profile", "busy", "options") if name in values)
    rows = tx.write(
        f"UPDATE talks SET {columns}, revision = revision + 1 WHERE talk_id = :talk AND user_id = :user"
        f" RETURNING revision, {_TALK}",
        {**values, **_ids(user_id, talk_id)},
    )
    revision, *row = found(rows[0] if rows else None)
    return _talk_of(row), revision


@locking.locks(locking.by_user_and_talk)
def delete(tx: Tx, user_id: str, talk_id: str) -> None:
    """Delete a talk with everything that belongs to it; its branches and forks stay."""
    ids = _ids(user_id, talk_id)
    found(tx.one(f"SELECT talk_id FROM talks WHERE talk_id = :talk AND user_id = :user{tx.for_update}", ids))
    talk_contents.delete(tx, talk_id)
    tx.write("UPDATE talks SET parent = '', parent_seq = 0 WHERE parent = :talk AND parent <> ''", ids)
    brain_context.forget(tx, talk_id)
    delete_journal(tx, talk_id)
    tx.write("DELETE FROM inbox WHERE lane = :talk AND kind <> 'task'", {"talk": talk_id})
    tx.write("DELETE FROM talks WHERE talk_id = :talk AND user_id = :user", ids)


def load(tx: Tx, user_id: str, talk_id: str, tail: int) -> Loaded:
    """Return a talk with its newest messages. In a cluster, a free talk with a profile then belongs to this node."""
    if tx.node:
        tx.write(_TAKE, {**_ids(user_id, talk_id), "node": tx.node})
    return snapshot(tx, user_id, talk_id, tail)


def snapshot(tx: Tx, user_id: str, talk_id: str, tail: int) -> Loaded:
    """Return a talk with its newest messages, all as they were at one moment."""
    while True:
        loaded = _read(tx, user_id, talk_id, tail)
        # Another node may have committed between two statements, each of which sees what was committed before.
        if not tx.node or _has_revision(tx, talk_id, loaded.revision):
            return loaded


def _has_revision(tx: Tx, talk_id: str, revision: int) -> bool:
    ids = {"talk": talk_id, "revision": revision}
    return tx.one("SELECT 1 FROM talks WHERE talk_id = :talk AND revision = :revision", ids) is not None


def _read(tx: Tx, user_id: str, talk_id: str, tail: int) -> Loaded:
    row = found(
        tx.one(
            f"SELECT {_TALK}, revision, epoch, state, {PARKED_TALK}, {owners.of_talk(tx)} FROM talks"
            " WHERE talk_id = :talk AND user_id = :user",
            _ids(user_id, talk_id),
        )
    )
    messages = newest(tx, talk_id, tail)
    floor = 0
    if messages and messages[0][0].seq > 1:
        older = tx.one(
            # Uses the index of revisions, newest first: `+ 0` prevents a scan of all messages.
            "SELECT revision FROM messages WHERE talk_id = :talk AND seq + 0 < :first ORDER BY revision DESC LIMIT 1",
            {"talk": talk_id, "first": messages[0][0].seq},
        )
        floor = older[0] if older else 0
    *talk, revision, epoch, state, is_parked, node = row
    return Loaded(_talk_of(talk), revision, epoch, state, messages, floor, bool(is_parked), node)


def found(row: Row | None) -> Row:
    if row is None:
        raise NotFound("there is no such talk: it was deleted, or it never existed")
    return row


def _ids(user_id: str, talk_id: str) -> dict[str, Any]:
    return {"user": user_id, "talk": talk_id}


def _talk_of(row: Sequence[Any]) -> Talk:
    talk_id, user_id, profile, busy, title, created, updated, last_seq, waiting, options, agent, *more = row
    parent, parent_seq, root, *has_open_approval = more
    return Talk(
        talk_session_id=talk_id,
        user_id=user_id,
        profile=profile,
        busy=BusyPolicy(busy),
        title=title,
        created=at(created),
        updated=at(updated),
        messages=last_seq,
        running=waiting > 0,
        options=json.loads(options),
        agent=f"agent:{agent}" if agent else None,
        asking=any(has_open_approval),
        parent=parent or None,
        parent_seq=parent_seq,
        root=root or talk_id,
    )
