"""Talks of any length: what opens, reads and continues one finds its rows by an index, and sorts nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.stores.sql.talks import messages, talks
from tests.contracts.plans import Plan

WITH_MESSAGES = """
INSERT INTO talks (talk_id, user_id, profile, busy, title, options, created, updated, last_seq, revision, epoch,
waiting, answer_seq) VALUES ('talk_1', 'ann', 'echo', 'queue', '', '{}', 0, 0, 9, 9, 0, 0, 0);
WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 9)
INSERT INTO messages (talk_id, seq, sender, content, status, created, revision)
SELECT 'talk_1', i, 'user', 'hello', 'complete', i, i FROM n;
"""


@pytest.mark.parametrize(
    ("op", "arguments", "indices"),
    [
        (
            talks.snapshot,
            (3,),
            ["m USING PRIMARY KEY (talk_id=?)", "messages USING COVERING INDEX messages_by_revision"],
        ),
        (messages.before, (5, 3), ["m USING PRIMARY KEY (talk_id=? AND seq<?)"]),
        (messages.changed, (4, 5, 3), ["m USING PRIMARY KEY (talk_id=? AND seq>?)"]),
        (messages.withdrawn, (5,), ["m USING COVERING INDEX messages_withdrawn (talk_id=? AND status=? AND seq<?)"]),
    ],
)
def test_a_part_of_a_talk_is_read_in_the_order_of_an_index(
    plan: Plan, op: Callable[..., object], arguments: tuple[Any, ...], indices: list[str]
) -> None:
    steps = plan(op, "ann", "talk_1", *arguments, before=WITH_MESSAGES)
    for index in indices:
        assert any(step.startswith(f"SEARCH {index}") for step in steps), steps
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in steps), steps
