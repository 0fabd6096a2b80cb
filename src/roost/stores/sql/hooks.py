"""Hooks of users, found by the digest of their token, and the requests that were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.envelopes.effects import Publish, SendTask
from roost.core.envelopes.envelope import Envelope
from roost.core.talks.messages import at
from roost.core.values import addresses
from roost.core.values.addresses import Address
from roost.core.webhooks.hook import Hook, VerifiableHook
from roost.errors import Invalid, LimitReached, NotFound
from roost.ports import Tx
from roost.stores import locking
from roost.stores.sql.accounts import accounts
from roost.stores.sql.agents import agents
from roost.stores.sql.sending import effects
from roost.stores.sql.sending.row_locks import locks_of

_COLUMNS = "hook_id, user_id, name, event, agent, task, headers, secret, created"


def create(tx: Tx, hook: Hook, digest: str, secret: str | None, most: int) -> Hook:
    """Store a hook. Raise NotFound if its user may not give tasks to its agent, LimitReached beyond `most` hooks."""
    if hook.agent is not None:
        _check_agent(tx, hook.user_id, addresses.parse(hook.agent, hook.user_id))
    [(count,)] = tx.read("SELECT count(*) FROM hooks WHERE user_id = :user", {"user": hook.user_id})
    if count >= most:
        raise LimitReached(f"you have {count:,} hooks, and no more are allowed: delete some first")
    tx.write(
        f"INSERT INTO hooks ({_COLUMNS}, digest)"
        " VALUES (:id, :user, :name, :event, :agent, :task, :headers, :secret, :created, :digest)",
        {
            "id": hook.hook_id,
            "user": hook.user_id,
            "name": hook.name,
            "event": hook.event,
            "agent": hook.agent,
            "task": hook.task,
            "headers": " ".join(hook.headers),
            "secret": secret,
            "created": hook.created.timestamp(),
            "digest": digest,
        },
    )
    return hook


def _check_agent(tx: Tx, user_id: str, address: Address) -> None:
    try:
        agents.recipient_config(tx, user_id, address.key)
    except NotFound:
        raise NotFound(
            f"there is no agent {address.agent_id!r} for tasks of this hook: create the agent first, or name another"
        ) from None


def listed(tx: Tx, user_id: str, limit: int, after: str) -> list[Hook]:
    """Return the hooks of a user, oldest first."""
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM hooks WHERE user_id = :user AND hook_id > :after ORDER BY hook_id LIMIT :limit",
        {"user": user_id, "after": after, "limit": limit},
    )
    return [_hook(row).hook for row in rows]


def get(tx: Tx, user_id: str, hook_id: str) -> Hook:
    ids = {"id": hook_id, "user": user_id}
    row = tx.one(f"SELECT {_COLUMNS} FROM hooks WHERE hook_id = :id AND user_id = :user", ids)
    if row is None:
        raise _missing(hook_id)
    return _hook(row).hook


def delete(tx: Tx, user_id: str, hook_id: str) -> None:
    ids = {"id": hook_id, "user": user_id}
    if not tx.write("DELETE FROM hooks WHERE hook_id = :id AND user_id = :user RETURNING hook_id", ids):
        raise _missing(hook_id)
    tx.write("DELETE FROM hook_requests WHERE hook_id = :id", ids)


def find(tx: Tx, digest: str) -> VerifiableHook | None:
    """Return the hook whose token has this digest; not those of disabled users."""
    may_act = accounts.may_act("hooks")
    row = tx.one(f"SELECT {_COLUMNS} FROM hooks WHERE digest = :digest AND {may_act}", {"digest": digest})
    return None if row is None else _hook(row)


@locking.locks(lambda tx, hook, request_id, effect, now: locks_of((effect,)))
def accept(
    tx: Tx, hook: Hook, request_id: str | None, effect: Publish | SendTask, now: float
) -> tuple[str, tuple[Envelope, ...] | None]:
    """Post the event or task of a request; return its id, and the envelopes put into inboxes.

    A request that was accepted before returns the id of then, and None. Raise Invalid for one of an own webhook.
    """
    result = effect.event_id if type(effect) is Publish else effect.envelope.envelope_id  # type: ignore[union-attr]
    if request_id is not None:
        ids = {"hook": hook.hook_id, "request": request_id}
        _refuse_own(tx, request_id)
        new = tx.write(
            "INSERT INTO hook_requests (hook_id, request_id, user_id, result, created)"
            " VALUES (:hook, :request, :user, :result, :now)"
            " ON CONFLICT (hook_id, request_id) DO NOTHING RETURNING result",
            {**ids, "user": hook.user_id, "result": result, "now": now},
        )
        if not new:
            [(known,)] = tx.read(
                "SELECT result FROM hook_requests WHERE hook_id = :hook AND request_id = :request", ids
            )
            return known, None
    return result, effects.post(tx, effect)


def _refuse_own(tx: Tx, request_id: str) -> None:
    """Raise Invalid if a webhook of this store sends the request: its effect would be the next fact, without end."""
    if tx.one("SELECT 1 FROM webhook_deliveries WHERE delivery_id = :id", {"id": request_id}) is not None:
        raise Invalid("a webhook must not post to a hook of the same Roost, since this could repeat itself without end")


def _missing(hook_id: str) -> NotFound:
    return NotFound(f"there is no hook {hook_id!r:.80}: it was deleted, or it never existed")


def _hook(row: Sequence[Any]) -> VerifiableHook:
    hook_id, user_id, name, event, agent, task, headers, secret, created = row
    names, is_signed = tuple(headers.split()), secret is not None
    return VerifiableHook(Hook(hook_id, user_id, name, event, agent, task, names, is_signed, at(created)), secret)
