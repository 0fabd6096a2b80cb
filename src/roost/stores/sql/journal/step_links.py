"""Links of recorded steps: to the approvals that they asked for, and to the runs of the agents that were asked."""

from __future__ import annotations

from collections.abc import Mapping

from roost.core.journal.run_history import parsed_input
from roost.core.journal.steps import digest
from roost.core.values.ids import encode
from roost.ports import Tx

MOST = 50
"""Runs of an asked agent among which the one is searched that handled a question."""
_EARLIER, _LATER = 60.0, 3_600.0
"""Seconds before a question in which ids of its runs may begin, as clocks differ, and seconds after its answer."""


def approvals(tx: Tx, holder: str, envelope_id: str) -> Mapping[int, str]:
    """Return the ids of approvals by the numbers of their steps; of several for one step, the newest.

    `holder`: id of the talk, or key of the agent.
    """
    rows = tx.read(
        "SELECT step, approval_id FROM approvals WHERE holder = :holder AND envelope_id = :id ORDER BY approval_id",
        {"holder": holder, "id": envelope_id},
    )
    return {row[0]: row[1] for row in rows}


def asked_run(tx: Tx, address: str, root: str, question: str, began: float, ended: float | None) -> str | None:
    """Return the run of an agent that handled a question, if it has left a record. `question`: digest of its text."""
    rows = tx.read(
        "SELECT run_id, given FROM runs WHERE address = :address AND address <> '' AND run_id > :first"
        " AND run_id < :last AND root = :root ORDER BY run_id LIMIT :most",
        {
            "address": address,
            "first": _first_id(began - _EARLIER),
            "last": _first_id((ended or began) + _LATER),
            "root": root,
            "most": MOST,
        },
    )
    return next((row[0] for row in rows if _question(row[1]) == question), None)


def _first_id(time: float) -> str:
    return f"run_{encode(max(int(time * 1000), 0), 0)}"


def _question(given: str | None) -> str | None:
    message = parsed_input(given).get("message")
    return digest(str(message.get("text"))) if isinstance(message, dict) else None
