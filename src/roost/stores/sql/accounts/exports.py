"""Export of everything that belongs to a user, as JSON in parts."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from roost.core.accounts.users import ExportPart
from roost.errors import Invalid, NotFound
from roost.ports import Tx
from roost.stores.sql.accounts.belongings import EXPORTED, KNOWN_BY, Belonging, params

LARGE = 256 * 1024
"""Characters after which a part ends."""
_NUMBERS = frozenset({"seq", "piece", "number", "awaited", "step"})
"""Columns of keys that are no texts."""


def part(tx: Tx, user_id: str, after: str, now: str) -> ExportPart:
    """Return the part after a cursor, or the first one. The parts of an export, joined, are one JSON object."""
    number, last = _place(after)
    texts = [] if after else [_head(tx, user_id, now)]
    while sum(map(len, texts)) < LARGE and number < len(EXPORTED):
        text, last = _page(tx, EXPORTED[number], user_id, last)
        texts.append(text)
        number += not last
    if number == len(EXPORTED):
        return ExportPart("".join([*texts, "\n}\n"]), None)
    return ExportPart("".join(texts), json.dumps([number, *last]))


def _head(tx: Tx, user_id: str, now: str) -> str:
    if not is_known(tx, user_id):
        raise NotFound(f"there is no user {user_id!r:.80}: there is neither an account nor data of this name")
    start = json.dumps({"kind": "roost.user", "version": 1, "user": user_id, "exported": now}, ensure_ascii=False)
    return start.removesuffix("}")


def is_known(tx: Tx, user_id: str) -> bool:
    """Return whether anything belongs to a user, or is being deleted."""
    ids = params(user_id)
    return any(tx.one(f"SELECT 1 FROM {table} WHERE {rows} LIMIT 1", ids) for table, rows in KNOWN_BY.items())


def _page(tx: Tx, one: Belonging, user_id: str, last: list[Any]) -> tuple[str, list[Any]]:
    """Return rows of a table as JSON, and the key of the last one if more follow."""
    rows = _rows(tx, one, user_id, last)
    shown = [json.dumps(_shown(one, row), ensure_ascii=False) for row in rows[: one.rows]]
    start = "," if last else f',\n"{one.table}": ['
    if len(rows) > one.rows:
        return start + ",\n".join(shown), list(rows[one.rows - 1][: len(one.key)])
    return (start if shown or not last else "") + ",\n".join(shown) + "]", []


def _rows(tx: Tx, one: Belonging, user_id: str, last: Sequence[Any]) -> Sequence[Sequence[Any]]:
    names = ", ".join(one.key)
    after = {f"last_{name}": value for name, value in zip(one.key, last, strict=False)}
    beyond = f" AND ({names}) > ({', '.join(f':{name}' for name in after)})" if after else ""
    return tx.read(
        f"SELECT {', '.join(one.columns)} FROM {one.table} WHERE {one.where}{beyond} ORDER BY {names} LIMIT :limit",
        {**params(user_id), **after, "limit": one.rows + 1},
    )


def _shown(one: Belonging, row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: base64.b64encode(bytes(value)).decode() if isinstance(value, bytes | memoryview) else value
        for name, value in zip(one.columns, row, strict=True)
    }


def _place(after: str) -> tuple[int, list[Any]]:
    """Return the table and the last key of a cursor."""
    if not after:
        return 0, []
    try:
        number, *last = json.loads(after)
        if number in range(len(EXPORTED)) and _is_key(last, EXPORTED[number].key):
            return number, last
    except (ValueError, TypeError, RecursionError):
        pass
    raise Invalid("`after` is not a cursor of an export: use that of the previous part")


def _is_key(values: list[Any], names: Sequence[str]) -> bool:
    kinds = [int if name in _NUMBERS else str for name in names]
    return not values or [type(value) for value in values] == kinds
