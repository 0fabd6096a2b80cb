"""`roost backup` and `roost restore`: copy a SQLite store while it is in use, and restore it."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from roost.cli.app.connect import check_free_store, store_url
from roost.cli.render.text import single_line
from roost.errors import Invalid
from roost.settings import Settings
from roost.stores import backups
from roost.wiring import sqlite_path

MEGABYTE = 1_000_000


def back_up(settings: Settings, target: Path, *, as_json: bool) -> None:
    store = _file(settings, "pg_dump")
    size = backups.back_up(store, target, _progress(store.stat().st_size if store.exists() else 0))
    _print({"backup": str(target), "bytes": size}, f"Backed up to {target} ({_megabytes(size)}).", as_json=as_json)


def restore(settings: Settings, backup: Path, *, as_json: bool) -> None:
    store = _file(settings, "pg_restore")
    check_free_store(settings)
    aside = store.with_name(f"{store.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    size = backup.stat().st_size if backup.exists() else 0
    existed = backups.restore(backup, store, aside, secrets.token_hex(4), _progress(size))
    kept = f" The old store is kept as {aside}." if existed else ""
    result = {"store": str(store), "from": str(backup), "before": str(aside) if existed else None}
    _print(result, f"Restored {store} from {backup}.{kept}", as_json=as_json)


def _file(settings: Settings, tool: str) -> Path:
    path = sqlite_path(store_url(settings))
    if path is None:
        raise Invalid(f"this command supports SQLite only: use PostgreSQL's {tool} for this store")
    return path


def _progress(whole: int) -> backups.Report:
    """Return a callback that shows the progress in a terminal."""
    if not sys.stderr.isatty():
        return bool

    def show(size: int) -> None:
        share = f" of about {_megabytes(whole)}" if whole else ""
        print(f"\r{_megabytes(size)}{share} copied", end="", file=sys.stderr, flush=True)

    return show


def _print(result: Mapping[str, object], text: str, *, as_json: bool) -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(json.dumps(result) if as_json else single_line(text))


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:,.1f} MB"
