"""`roost migrate-store`: copy a SQLite store to PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from roost.cli.render.output import print_json
from roost.cli.render.progress import Progress
from roost.cli.render.text import single_line
from roost.errors import Invalid, Unavailable
from roost.wiring import sqlite_path


def run(source: str, target: str, *, as_json: bool) -> None:
    path = _file(source)
    if not target.startswith(("postgresql://", "postgres://")):
        raise Invalid("TO must be a database of PostgreSQL: use postgresql://user@host/name")
    try:
        from roost.stores.copies.store_copy import copy_store  # an extra
    except ImportError as error:
        raise Unavailable("PostgreSQL needs an extra: pip install 'roost[postgres]'") from error
    with Progress("Copied") as copied, Progress("Verified") as verified:
        lines = {"Copied": copied, "Verified": verified}
        done = copy_store(path, target, lambda verb, n, whole: lines[verb].show(f"{n:,} of {whole:,} rows"))
    if as_json:
        tables = {one.name: {"rows": one.rows, "checksum": one.checksum} for one in done.tables}
        print_json({"from": str(path), "to": done.target, "rows": done.rows, "tables": tables, "skipped": done.skipped})
        return
    skipped = f" Not copied, since not of Roost: {', '.join(done.skipped)}." if done.skipped else ""
    print(
        single_line(f"Copied and verified {done.rows:,} rows of {len(done.tables)} tables to {done.target}.{skipped}")
    )
    print("Set `store` to the new URL, and do not start Roost on the old store again.")


def _file(source: str) -> Path:
    """Return the file of the source, which is a URL or a path."""
    if source.startswith(("postgresql:", "postgres:")):
        raise Invalid("FROM is in PostgreSQL already: name a SQLite store, such as sqlite:///file.db")
    if "://" in source and not source.startswith("sqlite:"):
        raise Invalid(f"unknown store URL scheme {source.partition(':')[0]!r:.20}: use sqlite:///file.db")
    return sqlite_path(source) or Path(source).resolve()
