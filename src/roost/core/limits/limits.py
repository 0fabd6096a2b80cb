"""Limits, all in one place. Each is a setting of the same name."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, fields
from typing import Any

from roost.core.values.checks import shown
from roost.errors import Invalid

UNBOUNDED = ("keep_", "process_mib", "stored_mib")
"""Name prefixes of limits that may be 0, for no limit."""


MOST = {"meeting_participants": 256}
"""Upper bounds of limits: every entry of a meeting may name all its participants."""
RENAMED = {"memory_chars": "state_chars", "talks_in_memory": "talks_in_ram"}
"""Former names of limits, with their present ones. A setting with a former name is refused."""


class BadLimit(Invalid):
    """Invalid value of the limit `name`; `expected` says what is allowed."""

    def __init__(self, name: str, expected: str, value: object) -> None:
        super().__init__(f"the limit {name} {expected}, not {shown(value)}")
        self.name = name
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one Roost. Durations are in seconds."""

    message_bytes: int = 4 * 1024 * 1024
    answer_chars: int = 16 * 1024 * 1024
    attachment_bytes: int = 10 * 1024 * 1024
    attachments_per_message: int = 10
    talks_per_user: int = 10_000
    stored_mib_per_user: float = 4_096.0
    waiting_per_talk: int = 5_000
    attempts: int = 3
    queued_writes: int = 20_000
    talks_in_ram: int = 2_000
    talk_workers: int = 2
    crashes: int = 5
    crashes_within: float = 60.0
    silent_loop: float = 2.0
    blocked_loops: int = 64
    blocked_functions: int = 256
    stop_patience: float = 0.6
    drain: float = 5.0
    rest_after: float = 30.0
    checkpoint_every: float = 0.5
    checkpoint_chars: int = 8_192
    collect_quiet: float = 0.5
    collect_most: float = 2.0
    agents_per_user: int = 1_000_000
    awake_agents: int = 5_000
    warm_loops: int = 8
    process_mib: float = 0.0
    state_chars: int = 1024 * 1024
    memories_per_agent: int = 10_000
    chars_per_memory: int = 8_192
    facts_kept: int = 10_000
    keep_runs_days: float = 30.0
    keep_journals_days: float = 30.0
    keep_events_days: float = 30.0
    keep_changes_days: float = 90.0
    keep_tasks_days: float = 30.0
    keep_mail_days: float = 365.0
    keep_letters_days: float = 90.0
    keep_deliveries_days: float = 7.0
    keep_talks_days: float = 0.0
    keep_meeting_logs_days: float = 30.0
    keep_meetings_days: float = 365.0
    keep_audit_days: float = 365.0
    meetings_at_once: int = 1_000
    meeting_participants: int = 64
    meeting_words: int = 200
    meeting_quiet: float = 0.5
    meeting_most: float = 2.0
    hops: int = 32
    runs_per_origin: int = 10_000
    messages_per_origin: int = 100_000
    meetings_per_origin: int = 100
    tokens_per_origin: int = 10_000_000
    agents_per_broadcast: int = 10_000
    schedules_per_agent: int = 1_000
    breaker_failures: int = 5
    breaker_pause: float = 30.0
    requests_per_second: float = 60.0
    request_burst: float = 600.0
    address_requests_per_second: float = 600.0
    address_request_burst: float = 6_000.0
    connections: int = 2_000
    connections_per_address: int = 1_000
    connections_mib: float = 128.0
    open_requests: int = 512
    open_requests_per_address: int = 256
    open_requests_per_user: int = 32
    bodies_mib: float = 128.0
    request_timeout: float = 10.0
    send_timeout: float = 20.0
    webhooks_per_user: int = 20
    webhook_attempts: int = 8
    webhook_timeout: float = 10.0
    webhook_backlog: int = 10_000
    hooks_per_user: int = 100
    hook_bytes: int = 1024 * 1024
    hook_requests_per_second: float = 10.0
    hook_request_burst: float = 100.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not _is_good(field, value):
                raise BadLimit(field.name, _expected(field), value)


def _is_good(field: Field[Any], value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if field.type == "int" else int | float):
        return False
    if value > MOST.get(field.name, value):
        return False
    return math.isfinite(value) and (value > 0 or (value == 0 and field.name.startswith(UNBOUNDED)))


def _expected(field: Field[Any]) -> str:
    kind = "a whole number" if field.type == "int" else "a number"
    most = f" and at most {MOST[field.name]}" if field.name in MOST else ""
    least = ", 0 (no bound) or greater" if field.name.startswith(UNBOUNDED) else " greater than 0"
    return f"must be {kind}{least}{most}"
