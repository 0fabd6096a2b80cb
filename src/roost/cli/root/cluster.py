"""`roost nodes` and `roost drain`."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.app.options import Config, Json, Store, command_group

app = command_group()


@app.command()
def nodes(json: Json = False, store: Store = None, config: Config = None) -> None:
    """List the nodes of the cluster, with their load.

    AWAKE counts agents; ROOM is how many more can be awake there.
    """
    from roost.cli.commands.server import nodes as command

    command.show(store, config, as_json=json)


@app.command()
def drain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of a node, its id, or a unique part of it.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Have a node finish its work and leave the cluster.

    The others take over its agents and talks. Its process ends.
    """
    from roost.cli.commands.server import nodes as command

    command.drain(node, store, config, as_json=json)
