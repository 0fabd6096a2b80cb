"""Digest of what the page shows around the messages: if it differs from the page's own, the page is redrawn."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from zlib import crc32

from roost.core.journal.approvals import Approval
from roost.core.talks.talk import Talk

PROCESS = secrets.token_hex(8)
"""A restarted server knows nothing of the pages that it did not draw: they have to run again."""
TALKS = 13
"""Talks that count: those that the sidebar lists at first, and one more."""


def digest(talks: Sequence[Talk], waiting: Iterable[Approval], unread: int, problem: str | None) -> str:
    """Return a value that changes with the list of talks, the pending approvals, unread mail, and the health."""
    listed = [(talk.talk_session_id, talk.title, talk.running) for talk in talks[:TALKS]]
    asked = sorted(approval.approval_id for approval in waiting)
    return f"{crc32(repr((PROCESS, listed, asked, unread, problem)).encode(errors='replace')):08x}"
