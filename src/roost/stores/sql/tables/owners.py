"""Owners: the nodes of a cluster that agents and talks belong to.

An agent, with its talks, and a talk with a profile belong to the node that is named in their row. In a store of one
process these columns are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roost.ports import Tx

_IN_JSON = """'"' || REPLACE(REPLACE(talks.profile, '\\', '\\\\'), '"', '\\"') || '"'"""
"""SQL of a profile's name as it is in a list in JSON."""


@dataclass(frozen=True, slots=True)
class TakingUpdate:
    """Update of talks as two statements: the one for a cluster also gives free talks to the node that writes."""

    alone: str
    in_cluster: str

    @classmethod
    def made(cls, update: Callable[[str, str], str], node: str = ":node") -> TakingUpdate:
        """Return the update of a function from further assignments, and the SQL of the owner.

        `node` is the SQL of the node that writes.
        """
        take = f", node = CASE WHEN {may_take(node)} THEN {node} ELSE talks.node END"
        return cls(update("", "''"), update(take, _owner("talks")))

    def sql(self, tx: Tx) -> str:
        return self.in_cluster if tx.node else self.alone


def may_take(node: str) -> str:
    """Return the condition that a talk is free, and that the node, if it is up, knows its profile."""
    return (
        f"talks.agent = '' AND talks.node = '' AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = {node}"
        f" AND (n.state <> 'up' OR REPLACE(n.profiles, {_IN_JSON}, '') = n.profiles))"
    )


def _owner(talks: str) -> str:
    return (
        f"CASE WHEN {talks}.agent = '' THEN {talks}.node"
        f" ELSE COALESCE((SELECT o.node FROM agents o WHERE o.address = {talks}.agent), '') END"
    )


def is_own(tx: Tx, node: str) -> bool:
    """Return whether a row that names this node may be claimed: it is free, or belongs to the node that writes."""
    return not tx.node or node in ("", tx.node)


def and_own(tx: Tx, column: str) -> str:
    """Return the condition, with the parameter `node`, that a row is free or belongs to the node that writes."""
    return f" AND {column} IN ('', :node)" if tx.node else ""


def and_own_agent(tx: Tx, address: str) -> str:
    """Return the same condition for the agent with this address, if there is one."""
    if not tx.node:
        return ""
    return f" AND NOT EXISTS (SELECT 1 FROM agents o WHERE o.address = {address} AND o.node NOT IN ('', :node))"


def of_talk(tx: Tx, talks: str = "talks") -> str:
    """Return the SQL of the node that a talk belongs to; it is empty in a store of one process.

    `talks` is the table in the statement, or its alias.
    """
    return _owner(talks) if tx.node else "''"
