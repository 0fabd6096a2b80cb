"""`roost migrate`: bring the schema of the store up to date, as a job before the new version is started."""

from __future__ import annotations

import sys
from time import time

from roost.cli.app.connect import store_url
from roost.cli.render.output import print_json
from roost.hosts.threads import ThreadHost
from roost.settings import Settings
from roost.wiring import database, read_secrets


def run(settings: Settings, *, as_json: bool) -> None:
    """Migrate. Raise Unavailable if the store is in use by one process, or by nodes that would not work with it."""
    read_secrets(settings)
    node = ThreadHost().new_id("migration") if settings.cluster is not None else ""  # runs beside nodes
    applied: list[str] = []

    def follow(step: str) -> None:
        applied.append(step)
        if not as_json:
            print(f"Applied {step}.", file=sys.stderr, flush=True)

    opened = database(store_url(settings), time, node, follow)
    schema = opened.schema
    opened.release()
    if as_json:
        print_json({"schema": schema.version, "oldest": schema.oldest, "applied": applied})
        return
    count = f"{len(applied)} {'step' if len(applied) == 1 else 'steps'} applied"
    done = f"Migrated to schema {schema.version}: {count}." if applied else f"Schema {schema.version} is up to date."
    print(f"{done} Programs that know schema {schema.oldest} or newer can use it.")
