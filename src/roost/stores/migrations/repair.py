"""Repair of stores whose schema differs from their version: step 2 was edited five times after its first use.

Steps are immutable since then; tests/contracts/migrations.sha256 holds their hashes. Each repair names what is missing
in a store that was made before the edit, and the statements that lead to what the edited step makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roost.core.values import patterns

if TYPE_CHECKING:
    from roost.stores.migrations import Migrating

FIRST, LAST = 2, 8
"""Versions that may need a repair."""


@dataclass(frozen=True, slots=True)
class Repair:
    missing: tuple[str, str]
    """A table and the column that it lacks; without a column, a table or an index that is not there."""
    statements: tuple[str, ...]


REPAIRS = (
    Repair(
        ("subscriptions", "head"),
        (
            "CREATE INDEX talks_by_agent ON talks (agent) WHERE agent <> ''",
            "ALTER TABLE inbox ADD COLUMN root TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE runs ADD COLUMN root TEXT NOT NULL DEFAULT ''",
            "DROP INDEX mail_by_recipient",
            "CREATE INDEX mail_by_recipient ON mail (recipient, rank, mail_id)",
            "CREATE INDEX mail_unread ON mail (recipient, rank, mail_id) WHERE status = 'unread'",
            "CREATE INDEX events_by_name ON events (user_id, name, event_id)",
            "ALTER TABLE subscriptions ADD COLUMN head TEXT NOT NULL DEFAULT ''",
            "DROP INDEX subscriptions_by_user",
            "CREATE INDEX subscriptions_by_head ON subscriptions (user_id, head)",
            "ALTER TABLE dead_letters ADD COLUMN fault TEXT NOT NULL DEFAULT 'internal'",
            "ALTER TABLE dead_letters ADD COLUMN envelope_id TEXT NOT NULL DEFAULT ''",
            "CREATE INDEX dead_letters_by_envelope ON dead_letters (envelope_id) WHERE envelope_id <> ''",
        ),
    ),
    Repair(
        ("inbox_by_due", ""),
        (
            "DROP INDEX inbox_by_lane",
            "CREATE INDEX inbox_by_lane ON inbox (lane, seq) WHERE kind <> 'task'",
            "CREATE INDEX inbox_by_due ON inbox (address, due) WHERE address <> '' AND due > 0",
        ),
    ),
    Repair(
        ("tasks_by_user", ""),
        (
            "CREATE INDEX tasks_by_user ON tasks (user_id, task_id)",
            "CREATE INDEX tasks_by_sender ON tasks (sender, task_id)",
            "DROP INDEX tasks_by_key",
            "CREATE UNIQUE INDEX tasks_by_key ON tasks (address, sender, key) WHERE key IS NOT NULL",
        ),
    ),
    Repair(
        ("memories", ""),
        (
            "CREATE TABLE memories (address TEXT NOT NULL, number BIGINT NOT NULL, key TEXT NOT NULL,"
            " text TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, PRIMARY KEY (address, number)){without_rowid}",
            "CREATE UNIQUE INDEX memories_by_key ON memories (address, key)",
            "CREATE TABLE memory_words (address TEXT NOT NULL, word TEXT NOT NULL, number BIGINT NOT NULL,"
            " PRIMARY KEY (address, word, number)){without_rowid}",
        ),
    ),
    Repair(
        ("tasks_by_guest", ""),
        (
            "DROP INDEX tasks_by_sender",
            "CREATE INDEX tasks_by_guest ON tasks (sender, task_id)"
            " WHERE sender > 'user:' AND sender <> 'user:' || user_id",
        ),
    ),
)


def repair(connection: Migrating, dialect: str) -> None:
    """Bring the tables of step 2 to what it makes today. Changes nothing where nothing is missing."""
    without_rowid = " WITHOUT ROWID" if dialect == "sqlite" else ""
    for one in REPAIRS:
        if _is_there(connection, *one.missing, dialect):
            continue
        for statement in one.statements:
            connection.write(statement.format(without_rowid=without_rowid))
    for (pattern,) in connection.read("SELECT DISTINCT pattern FROM subscriptions WHERE head = ''"):
        connection.write(
            "UPDATE subscriptions SET head = :head WHERE pattern = :pattern",
            {"head": patterns.head(pattern), "pattern": pattern},
        )


def _is_there(connection: Migrating, name: str, column: str, dialect: str) -> bool:
    return connection.one(_PROBES[dialect, bool(column)], {"name": name, "column": column}) is not None


_PROBES = {
    ("sqlite", False): "SELECT 1 FROM sqlite_master WHERE name = :name AND :column = ''",
    ("sqlite", True): "SELECT 1 FROM pragma_table_info(:name) WHERE name = :column",
    ("postgres", False): "SELECT 1 FROM pg_class WHERE oid = to_regclass(:name) AND :column = ''",
    ("postgres", True): "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(:name) AND attname = :column",
}
