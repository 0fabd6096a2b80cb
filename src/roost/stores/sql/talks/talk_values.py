"""Values of brains in a talk, kept as of each answer: a branch gets those of its last message."""

from __future__ import annotations

import json
from collections.abc import Iterable

from roost.core.brain_data.brain_context import Scope
from roost.core.brain_data.state_merge import differing, parsed
from roost.core.runs import Closing
from roost.ports import Tx

_STATE, _CONTEXT = "state", "context"
_COLUMNS = ("talk_id", "kind", "name", "seq", "value")
_REPLACE = " ON CONFLICT (talk_id, kind, name, seq) DO UPDATE SET value = excluded.value"


def keep(tx: Tx, c: Closing, seq: int, *, superseded: bool) -> None:
    """Keep the values that a run has changed, as of the message `seq`. The state of an agent is not one of its talk."""
    if c.state is not None and not c.envelope.address and not superseded:
        after = parsed(c.state)
        changed = differing(c.state_before, c.state)
        values = ((name, json.dumps(after[name]) if name in after else None) for name in changed)
        _keep(tx, c.envelope.lane, _STATE, seq, values)
    if c.brain_context is not None:
        _keep(tx, c.envelope.lane, _CONTEXT, seq, c.brain_context.values.get(Scope.OWN, {}).items())


def copy(tx: Tx, source: str, talk_id: str, last: int) -> str | None:
    """Copy the values up to the message `last`, set those of the brain's context, and return the state."""
    tx.write(
        "INSERT INTO talk_values (talk_id, kind, name, seq, value) SELECT CAST(:new AS TEXT), kind, name, seq, value"
        " FROM talk_values WHERE talk_id = :old AND seq <= :last",
        {"old": source, "new": talk_id, "last": last},
    )
    rows = tx.read(
        "SELECT kind, name, value FROM talk_values WHERE talk_id = :talk ORDER BY seq, name", {"talk": talk_id}
    )
    state: dict[str, str | None] = {}
    context: dict[str, str] = {}
    for kind, name, value in rows:
        if kind == _CONTEXT:
            context[name] = value
        elif name:
            state[name] = value
        else:  # the whole state, from before single values were kept
            state = {name: json.dumps(value) for name, value in parsed(value).items()}
    for name, value in context.items():
        tx.later("diary_values", ("owner", "lane", "name", "value"), (talk_id, "", name, value))
    kept = {name: json.loads(value) for name, value in state.items() if value is not None}
    return json.dumps(kept) if state else None


def _keep(tx: Tx, talk_id: str, kind: str, seq: int, values: Iterable[tuple[str, str | None]]) -> None:
    for name, value in values:
        tx.later("talk_values", _COLUMNS, (talk_id, kind, name, seq, value), _REPLACE)
