"""Standing permissions: tools that agents and profiles call without asking their owner."""

from __future__ import annotations

from roost.core.journal.approvals import Approval, Decided, Decision, Permission, Question
from roost.core.talks.messages import at
from roost.errors import Invalid, NotFound
from roost.ports import Tx
from roost.stores.sql.journal import approvals

_KEY = "user_id = :user AND agent_id = :agent AND profile = :profile AND tool = :tool"


def allow(tx: Tx, user_id: str, approval_id: str, now: float) -> Decided:
    """Decide an approval, and allow the same agent or profile further calls of its tool. Idempotent.

    Raise Invalid if it does not ask for a call, and Conflict if it was decided otherwise, or no run waits for it.
    """
    if approvals.get(tx, user_id, approval_id).kind is not Question.CALL:
        raise Invalid("only a tool call can always be allowed: this approval asks whether a step was executed")
    decided = approvals.decide(tx, user_id, approval_id, Decision.ALLOWED, None, now)
    if decided.is_new:
        tx.write(
            "INSERT INTO permissions (user_id, agent_id, profile, tool, created)"
            " VALUES (:user, :agent, :profile, :tool, :now) ON CONFLICT (user_id, agent_id, profile, tool) DO NOTHING",
            {**_key_of(decided.approval), "now": now},
        )
    return decided


def allows(tx: Tx, asked: Approval) -> bool:
    """Return whether a standing permission covers this call."""
    return tx.one(f"SELECT 1 FROM permissions WHERE {_KEY}", _key_of(asked)) is not None


def listed(tx: Tx, user_id: str, limit: int) -> list[Permission]:
    """Return the permissions of a user by agent, profile and tool."""
    rows = tx.read(
        "SELECT user_id, tool, agent_id, profile, created FROM permissions WHERE user_id = :user"
        " ORDER BY agent_id, profile, tool LIMIT :limit",
        {"user": user_id, "limit": limit},
    )
    return [
        Permission(user, tool, agent or None, profile or None, at(made)) for user, tool, agent, profile, made in rows
    ]


def revoke(tx: Tx, user_id: str, tool: str, agent_id: str | None, profile: str | None) -> None:
    """Delete a permission. Raise NotFound if there is none."""
    ids = {"user": user_id, "agent": agent_id or "", "profile": profile or "", "tool": tool}
    if not tx.write(f"DELETE FROM permissions WHERE {_KEY} RETURNING tool", ids):
        raise NotFound(f"there is no permission to call {tool!r:.80} without asking")


def forget_agent(tx: Tx, user_id: str, agent_id: str) -> None:
    """Delete the permissions of a deleted agent: another one of the same name does not inherit them."""
    tx.write(
        "DELETE FROM permissions WHERE user_id = :user AND agent_id = :agent AND agent_id <> ''",
        {"user": user_id, "agent": agent_id},
    )


def _key_of(asked: Approval) -> dict[str, str]:
    agent = asked.agent_id or ""
    return {"user": asked.user_id, "agent": agent, "profile": "" if agent else asked.profile, "tool": asked.tool}
