"""Compatibility of programs with a store, for upgrades of one node after another.

A program that knows version n of the schema works on a store if n is at least the store's `oldest`. A step declares in
its first line, `-- oldest: N`, the oldest version whose program still works after it. Without that line it is its own
number: no older program works, and the step is refused while older nodes are alive.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roost.core.cluster.nodes import application_name
from roost.errors import Unavailable

if TYPE_CHECKING:
    from roost.stores.migrations import Migrating

NODES, NODES_WITH_SCHEMA = 28, 31
"""Versions since which there are nodes, and since which a node says what it knows."""
_DECLARED = re.compile(r"-- oldest: ([0-9]+)\s*")
_END_BACKENDS = (
    "SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity"
    " WHERE application_name = :name AND datname = current_database() AND usename = current_user"
)


def declared(text: str, number: int) -> int:
    """Return the oldest version whose program works on a store after this step."""
    found = _DECLARED.fullmatch(text.partition("\n")[0])
    if found is None:
        return number
    return min(int(found[1]), number)


def refuse_older_nodes(connection: Migrating, reached: int, needed: int) -> None:
    """Raise Unavailable while a node is alive that does not know the needed version.

    A node that joins meanwhile waits for the row of the version, and then finds itself too old. One whose lease has
    ended is disconnected, and its new connections are refused. SQLite has no nodes.
    """
    if reached < NODES or not connection.for_update:
        return
    connection.one(f"SELECT value FROM meta WHERE name = 'schema'{connection.for_update}")
    knows = "schema_version" if reached >= NODES_WITH_SCHEMA else str(reached)
    older = connection.read(
        "SELECT node_id, name, version, lease > roost_now() FROM nodes"
        f" WHERE state <> 'gone' AND {knows} < :needed ORDER BY started, node_id",
        {"needed": needed},
    )
    if alive := [f"{name!r} ({version})" for _, name, version, is_alive in older if is_alive]:
        raise Unavailable(
            f"the database cannot be migrated, since these nodes run an older Roost that would not work with it:"
            f" {', '.join(alive)}. Stop all of them first, then start the new version; nothing was changed"
        )
    for node_id, *_ in older:
        connection.read(_END_BACKENDS, {"name": application_name(node_id)})
