"""The nodes of a cluster: shown, and asked to leave."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from roost.cli.app.shared import open_session, single_match
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import relative_time
from roost.cli.render.text import sanitize
from roost.core.cluster.nodes import Node
from roost.errors import NotFound

NONE = "No nodes: this store belongs to one process. See docs/guides/many-machines.md."
INEXACT = 0.05
"""Seconds by which the clock of a node may differ from that of the database before it is shown."""


def show(store: str | None, config: Path | None, *, as_json: bool) -> None:
    with open_session(store, config) as (service, user):
        listed = service.nodes.list(user)
    header = ("ID", "NAME", "STATE", "AWAKE", "ROOM", "CPU", "STARTED", "LEASE", "VERSION")
    print_table(listed, header, _row, NONE, as_json=as_json)
    for node in listed if not as_json else ():
        if node.load.clock_error > INEXACT:
            error = f"{node.load.clock_error * 1000:.0f} ms"
            print(f"The clock of {sanitize(node.name)} may be {error} off: the database answers it slowly.")


def drain(part: str, store: str | None, config: Path | None, *, as_json: bool) -> None:
    with open_session(store, config) as (service, user):
        listed = service.nodes.list(user)
        named = [node for node in listed if node.name == part] or [node for node in listed if part in node.node_id]
        if not named:
            raise NotFound(f"there is no node {part!r:.80}: `roost nodes` lists them")
        node = single_match(named, part, "node", lambda one: f"{one.name} ({one.node_id})")
        service.nodes.drain(user, node.node_id)
    name = sanitize(node.name)
    print_result(node, lambda: [f"{name} ({short_id(node.node_id)}) finishes its work and leaves."], as_json=as_json)


def _row(node: Node) -> tuple[str, ...]:
    left = (node.lease - datetime.now(UTC)).total_seconds()
    return (
        short_id(node.node_id),
        node.name,
        str(node.state),
        str(node.load.awake),
        str(node.load.room),
        "–" if node.load.cpu is None else f"{node.load.cpu:.0%}",
        relative_time(node.started),
        f"{left:.0f} s" if left > 0 else "ended",
        node.version,
    )
