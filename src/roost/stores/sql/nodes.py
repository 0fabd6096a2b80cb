"""Nodes of a cluster: leases, and the agents and talks that belong to them. All times are those of the database."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from roost.core.cluster.nodes import NewNode, Node, NodeLoad, NodeState, announcement, application_name
from roost.core.talks.messages import at
from roost.errors import Unavailable
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.inbox import recovery

_COLUMNS = "node_id, name, url, version, profiles, state, started, lease, awake, room, cpu, clock_error"
_ALIVE = f"state <> '{NodeState.GONE}' AND lease > roost_now()"


_END_BACKENDS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = :name AND datname = current_database() AND usename = current_user"
)


def cluster_id(tx: Tx, new_id: str) -> str:
    """Return the id of the cluster of this store; set it if there is none."""
    tx.write(
        "INSERT INTO meta (name, value) VALUES ('cluster', :id) ON CONFLICT (name) DO NOTHING",
        {"id": new_id},
    )
    [(found,)] = tx.read("SELECT value FROM meta WHERE name = 'cluster'")
    return str(found)


def join(tx: Tx, joined: NewNode, seconds: float) -> float:
    """Add a node with a lease of this length; return the time. Raise Unavailable if its program is too old."""
    _refuse_older(tx, joined.schema)
    [(now,)] = tx.write(
        f"INSERT INTO nodes ({_COLUMNS}, schema_version) VALUES (:node, :name, :url, :version, :profiles, :up,"
        " roost_now(), roost_now() + :seconds, 0, 0, NULL, 0, :schema) RETURNING started",
        {
            "node": joined.node_id,
            "name": joined.name,
            "url": joined.url,
            "version": joined.version,
            "profiles": json.dumps(sorted(joined.profiles), ensure_ascii=False),
            "up": str(NodeState.UP),
            "seconds": seconds,
            "schema": joined.schema,
        },
    )
    return float(now)


def _refuse_older(tx: Tx, schema: int) -> None:
    """Raise Unavailable if the store was migrated since it was opened, and no longer works with this program."""
    tx.one(f"SELECT value FROM meta WHERE name = 'schema'{tx.for_update}")  # migrations lock it too
    row = tx.one("SELECT value FROM meta WHERE name = 'oldest'")
    if row is not None and int(row[0]) > schema:
        raise Unavailable(f"the store was migrated by a newer Roost (this one knows schema {schema}): install that one")


def renew(tx: Tx, node_id: str, seconds: float, load: NodeLoad) -> float | None:
    """Renew a lease that has not ended; return the time. None: the lease has ended, and the node must stop its work."""
    rows = tx.write(
        "UPDATE nodes SET lease = roost_now() + :seconds, awake = :awake, room = :room, cpu = :cpu,"
        f" clock_error = :error WHERE node_id = :node AND {_ALIVE} RETURNING roost_now()",
        {
            "node": node_id,
            "seconds": seconds,
            "awake": load.awake,
            "room": load.room,
            "cpu": load.cpu,
            "error": load.clock_error,
        },
    )
    return float(rows[0][0]) if rows else None


def drain(tx: Tx, node_id: str) -> bool:
    """Give the node no more work; return False if it is not alive."""
    sql = f"UPDATE nodes SET state = :draining WHERE node_id = :node AND {_ALIVE} RETURNING node_id"
    return bool(tx.write(sql, {"node": node_id, "draining": str(NodeState.DRAINING)}))


def release(tx: Tx, node_id: str, agents: Collection[str], talks: Collection[str]) -> int:
    """Free the agents and talks of a node that drains, but for these, which still run there; return how many."""
    freed = 0
    for table, key, kept in (("talks", "talk_id", set(talks)), ("agents", "address", set(agents))):
        rows = tx.read(
            f"SELECT {key} FROM {table} WHERE node = :node AND node <> ''"
            f" ORDER BY {locking.in_order(tx, key)}{tx.for_update}",
            {"node": node_id},
        )
        ended = [row[0] for row in rows if row[0] not in kept]
        bulk.write(tx, f"UPDATE {table} SET node = '', epoch = epoch + 1 WHERE {key} IN", ended)
        freed += len(ended)
    return freed


def leave(tx: Tx, node_id: str) -> None:
    """End the lease of a node that has stopped its work: nothing of it is suspect."""
    sql = "UPDATE nodes SET state = :gone, lease = roost_now() WHERE node_id = :node AND state <> :gone"
    tx.write(sql, {"node": node_id, "gone": str(NodeState.GONE)})
    recovery.return_to_quarantine(tx, node_id)


def give_up(tx: Tx, node_id: str) -> None:
    """End the lease of a node that has died: others take over its work at once."""
    sql = "UPDATE nodes SET lease = roost_now() WHERE node_id = :node AND state <> :gone AND lease > roost_now()"
    tx.write(sql, {"node": node_id, "gone": str(NodeState.GONE)})


def expired(tx: Tx) -> list[str]:
    """Return the nodes whose lease has ended and whose work nobody has taken over."""
    sql = "SELECT node_id FROM nodes WHERE state <> :gone AND lease <= roost_now() ORDER BY node_id"
    return [row[0] for row in tx.read(sql, {"gone": str(NodeState.GONE)})]


def evict(tx: Tx, node_id: str) -> bool:
    """Mark a node as gone if its lease has ended; return True for the one caller that has done it.

    What may have been running there is suspect, as after the crash of a process.
    """
    sql = (
        "UPDATE nodes SET state = :gone WHERE node_id = :node AND state <> :gone AND lease <= roost_now()"
        " RETURNING roost_now()"
    )
    rows = tx.write(sql, {"node": node_id, "gone": str(NodeState.GONE)})
    if rows:
        if tx.for_update:  # a frozen process may hold locks in an open transaction
            tx.read(_END_BACKENDS, {"name": application_name(node_id)})
        tx.write("DELETE FROM meta WHERE name = :name", {"name": announcement(node_id)})
        recovery.mark_suspects(tx, rows[0][0], node_id)
    return bool(rows)


def disown(tx: Tx, node_id: str, most: int) -> list[str]:
    """Take up to `most` agents, and as many talks, from a node that is gone: it can no longer write for them.

    Return the addresses of the agents. Call it again until `owned` is 0.
    """
    ids = {"node": node_id, "most": most, "gone": str(NodeState.GONE)}
    is_gone = "NOT EXISTS (SELECT 1 FROM nodes WHERE node_id = :node AND state <> :gone)"
    tx.write(
        "UPDATE talks SET node = '', epoch = epoch + 1 WHERE talk_id IN (SELECT talk_id FROM talks"
        f" WHERE node = :node AND node <> '' ORDER BY {locking.in_order(tx, 'talk_id')} LIMIT :most{tx.for_update})"
        f" AND {is_gone}",
        ids,
    )
    rows = tx.write(
        "UPDATE agents SET node = '', epoch = epoch + 1 WHERE address IN (SELECT address FROM agents"
        f" WHERE node = :node AND node <> '' ORDER BY {locking.in_order(tx, 'address')} LIMIT :most{tx.for_update})"
        f" AND {is_gone}"
        " RETURNING address",
        ids,
    )
    return sorted(row[0] for row in rows)


def left_behind(tx: Tx) -> list[str]:
    """Return nodes that are gone and still own agents or talks."""
    rows = tx.read(
        "SELECT node FROM (SELECT node FROM agents WHERE node <> '' UNION SELECT node FROM talks WHERE node <> '') used"
        " WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = used.node AND n.state <> :gone) ORDER BY node",
        {"gone": str(NodeState.GONE)},
    )
    return [row[0] for row in rows]


def owned(tx: Tx, node_id: str) -> int:
    """Return the number of agents and talks that belong to a node."""
    [(agents,)] = tx.read("SELECT count(*) FROM agents WHERE node = :node AND node <> ''", {"node": node_id})
    [(talks,)] = tx.read("SELECT count(*) FROM talks WHERE node = :node AND node <> ''", {"node": node_id})
    return int(agents) + int(talks)


def listed(tx: Tx, *, gone: bool = False) -> list[Node]:
    """Return the nodes, oldest first; with `gone` also those that are gone."""
    where = "" if gone else f" WHERE state <> '{NodeState.GONE}'"
    return [_node(row) for row in tx.read(f"SELECT {_COLUMNS} FROM nodes{where} ORDER BY started, node_id")]


def forget(tx: Tx, before: float) -> int:
    """Delete the rows of nodes whose lease has ended before this time; return how many."""
    sql = "DELETE FROM nodes WHERE state = :gone AND lease < :before RETURNING node_id"
    return len(tx.write(sql, {"gone": str(NodeState.GONE), "before": before}))


def _node(row: Row) -> Node:
    node_id, name, url, version, profiles, state, started, lease, *load = row
    names: list[Any] = json.loads(profiles)
    return Node(
        node_id,
        name,
        url,
        version,
        tuple(names),
        NodeState(state),
        at(started),
        at(lease),
        NodeLoad(load[0], load[1], load[2], load[3]),
    )
