"""`roost backup` and `roost restore`: copy a SQLite store while it is in use, and restore it."""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from roost.cli.app.connect import check_free_store, store_url
from roost.cli.render.text import single_line
from roost.errors import Invalid
from roost.settings import Settings
from roost.stores.copies import backups
from roost.wiring import sqlite_path

MEGABYTE = 1_000_000


def back_up(settings: Settings, target: Path, *, as_json: bool) -> None:
    store = _file(settings, f"pg_dump --format=custom --file={shlex.quote(str(target))}", "")
    size = backups.back_up(store, target, _progress(store.stat().st_size if store.exists() else 0))
    _print({"backup": str(target), "bytes": size}, f"Backed up to {target} ({_megabytes(size)}).", as_json=as_json)


def restore(settings: Settings, backup: Path, *, replace: bool, as_json: bool) -> None:
    """Restore a backup. Raise Invalid if a store would be replaced that nobody said may be."""
    store = _file(settings, "pg_restore --clean --if-exists --single-transaction --dbname=", shlex.quote(str(backup)))
    check_free_store(settings)
    if store.exists() and not replace:
        raise Invalid(f"{str(store)!r} exists: --yes replaces it by the backup, and keeps it under another name")
    aside = store.with_name(f"{store.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    size = backup.stat().st_size if backup.exists() else 0
    existed = backups.restore(backup, store, aside, secrets.token_hex(4), _progress(size))
    kept = f" The old store is kept as {aside}." if existed else ""
    result = {"store": str(store), "from": str(backup), "before": str(aside) if existed else None}
    _print(result, f"Restored {store} from {backup}.{kept}", as_json=as_json)


def _file(settings: Settings, before: str, after: str) -> Path:
    """Return the file of the store. Raise Invalid with the command to run instead if it is in PostgreSQL."""
    url = store_url(settings)
    path = sqlite_path(url)
    if path is None:
        space = "" if before.endswith("=") else " "
        command = f"{before}{space}{shlex.quote(_without_password(url))} {after}".strip()
        raise Invalid(f"this store is in PostgreSQL, which has its own tools. Run: {command}")
    return path


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    account, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=account.partition(":")[0] + at + host))


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
