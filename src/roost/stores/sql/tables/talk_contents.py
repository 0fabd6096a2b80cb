"""Contents of a talk in other tables than its own."""

from __future__ import annotations

from roost.ports import Tx
from roost.stores.sql.tables import attachments

_TABLES = ("parts", "messages", "search_blocks", "runs", "talk_values")


def delete(tx: Tx, talk_id: str) -> None:
    """Delete the messages of a talk, their files and search index, the records of its runs, and its values."""
    for table in _TABLES:
        tx.write(f"DELETE FROM {table} WHERE talk_id = :talk", {"talk": talk_id})
    attachments.forget(tx, talk_id)
