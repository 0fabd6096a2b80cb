"""All rows of a store, read from its database without Roost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg import sql

Rows = dict[str, list[str]]
"""Rows of each table as texts, sorted: databases return them in different orders."""
OF_A_PROCESS = ("owner", "heartbeat of ", "room of ", "cluster")
"""Prefixes of the names of rows in `meta` that belong to a process or a cluster."""


def in_sqlite(path: Path) -> Rows:
    listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute(listed)]
        found: Rows = {}
        for table in tables:
            columns = sorted(row[1] for row in db.execute(f"PRAGMA table_info({table})"))
            quoted = ", ".join(f'"{column}"' for column in columns)
            found[table] = sorted(f"{columns} {row}" for row in db.execute(f"SELECT {quoted} FROM {table}"))
    return _of_the_store(found)


def in_postgres(url: str) -> Rows:
    listed = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
    with psycopg.connect(url) as db:
        tables: dict[str, list[str]] = {}
        for table, column in db.execute(listed):
            tables.setdefault(table, []).append(column)
        found: Rows = {}
        for table, columns in tables.items():
            columns.sort()
            query = sql.SQL("SELECT {} FROM {}").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(table)
            )
            found[table] = sorted(f"{columns} {row}" for row in db.execute(query))
    return _of_the_store(found)


def _of_the_store(found: Rows) -> Rows:
    begins = tuple(f"['name', 'value'] ('{name}" for name in OF_A_PROCESS)
    return {**found, "meta": [row for row in found["meta"] if not row.startswith(begins)]}


def relations(url: str) -> list[str]:
    """Names of everything that is in a database of PostgreSQL: tables, indices, functions."""
    query = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    )
    with psycopg.connect(url) as db:
        return [name for (name,) in db.execute(query.encode())]
