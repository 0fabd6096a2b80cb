"""All bounds in one place; each is a setting of the same name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    message_bytes: int = 4 * 1024 * 1024
    answer_chars: int = 16 * 1024 * 1024
    talks_per_user: int = 10_000
    waiting_per_talk: int = 5_000
    attempts: int = 3
    queued_writes: int = 20_000
    talks_in_memory: int = 2_000
    talk_workers: int = 2
    crashes: int = 5
    crashes_within: float = 60.0
    silent_loop: float = 2.0
    blocked_loops: int = 64
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
    memory_chars: int = 1024 * 1024
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
    keep_talks_days: float = 0.0
    keep_meeting_logs_days: float = 30.0
    keep_meetings_days: float = 365.0
    meetings_at_once: int = 1_000
    meeting_words: int = 200
    meeting_quiet: float = 0.5
    meeting_most: float = 2.0
    hops: int = 32
    agents_per_broadcast: int = 10_000
    schedules_per_agent: int = 1_000
    breaker_failures: int = 5
    breaker_pause: float = 30.0
    requests_per_second: float = 60.0
    request_burst: float = 600.0
    address_requests_per_second: float = 600.0
    address_request_burst: float = 6_000.0
