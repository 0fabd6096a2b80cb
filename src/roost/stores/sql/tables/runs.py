"""Records of runs, of talks and agents alike."""

from __future__ import annotations

import json
from collections.abc import Sequence

from roost.core.envelopes.envelope import Kind
from roost.core.runs import Closing, RunOutcome
from roost.core.values.addresses import of_key
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.tables.token_usage import add_usage

ANSWER_CHARS = 10_000
"""Characters of an agent's answer that its record keeps; the answer of a talk is stored as a message."""
_COLUMNS = bulk.columns(
    "run_id, talk_id, outcome, seq, attempts, started, first_chunk, ended, fault, stop_requested, stop_acknowledged,"
    " stop_quiesced, abandoned, address, kind, envelope_id, said, root, model, input_tokens, output_tokens, cost,"
    " given, traceback, user_id"
)


def record(tx: Tx, runs: Sequence[tuple[Closing, RunOutcome, int | None, float]]) -> None:
    """Record runs and their usage, each once: outcome, number of the answer in a talk, and time of the end."""
    for c, _, _, ended in runs:
        add_usage(tx, c.run_id, c.profile, c.usage, ended)
    for c, outcome, seq, ended in runs:  # after all usage: reading `runs` would write the deferred rows one by one
        _add(tx, c, outcome, seq, ended, of_key(c.envelope.address).user_id if c.answer is None else c.answer.owner)


def record_lost(tx: Tx, run_id: str, talk_id: str, seq: int, started: float, ended: float) -> None:
    """Record the run of a talk whose process ended without settling it."""
    tx.write(
        "INSERT INTO runs (run_id, talk_id, outcome, seq, attempts, started, ended, user_id)"
        " VALUES (:run, :talk, :outcome, :seq, 1, :started, :ended,"
        " (SELECT user_id FROM talks WHERE talk_id = :talk)) ON CONFLICT (run_id) DO NOTHING",
        {
            "run": run_id,
            "talk": talk_id,
            "outcome": RunOutcome.LOST,
            "seq": seq,
            "started": started,
            "ended": ended,
        },
    )


def _add(tx: Tx, c: Closing, outcome: RunOutcome, seq: int | None, ended: float, user_id: str | None) -> None:
    e, usage, answer = c.envelope, c.usage, c.answer
    stop = answer.stop if answer is not None else None
    tx.later(
        "runs",
        _COLUMNS,
        (
            c.run_id,
            "" if answer is None else e.lane,
            outcome,
            seq,
            max(one.attempts for one in c.envelopes) if c.others else e.attempts,
            c.started,
            None if answer is None else answer.first_chunk,
            ended,
            c.fault,
            stop and stop.requested,
            stop and stop.acknowledged,
            stop and stop.quiesced,
            json.dumps(stop.abandoned) if stop and stop.abandoned else None,
            e.address if answer is None else "",
            e.kind if answer is None else Kind.TALK,
            e.envelope_id if answer is None else "",
            (c.text[:ANSWER_CHARS] or None) if answer is None else None,
            e.origin,
            usage.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.cost,
            c.turn_input,
            c.traceback,
            user_id,
        ),
        " ON CONFLICT (run_id) DO NOTHING",
    )
