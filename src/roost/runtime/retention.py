"""Retention: deletes expired rows and gives their space back, in the background and a little at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from roost.core.limits.limits import Limits
from roost.errors import Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.talks.live_talks import LiveTalks
from roost.stores.sql import retention, run_history

T = TypeVar("T")
log = logging.getLogger("roost.retention")

FIRST = 60.0
"""Seconds between the start and the first sweep: a start is busy."""
EVERY = 3_600.0
"""Seconds between two sweeps."""
LOOK = 1_000
"""Rows per read."""
BATCH = 200
"""Rows per write: others wait for half a millisecond."""
PAGES = 64
"""Free pages per write that are given back to the file system."""
KEPT_FREE = 0.1
"""Share of the pages of a store that stays free, for new rows."""
REST = 3.0
"""Pause after each write, as a multiple of the time that it took: a sweep uses at most a quarter of the writer."""
LONGEST_REST = 0.5
DAY = 86_400.0
UNUSED_UPLOAD_DAYS = 1.0
"""Days for which an uploaded file is kept that no message has."""


class Retention:
    """Sweeper of expired rows, on the supervisor's loop. A sweep that is cut off is completed by the next."""

    def __init__(self, context: RuntimeContext, talks: LiveTalks) -> None:
        self._context = context
        self._talks = talks
        self._next = context.host.clock.monotonic() + FIRST
        self._offset = self._clock_offset()
        self._sweeping = False
        self.sweeps = 0
        """Number of sweeps."""
        self.closing = False

    @property
    def is_due(self) -> bool:
        return not self._sweeping and not self.closing and self._context.host.clock.monotonic() >= self._next

    def _clock_offset(self) -> float:
        return self._context.host.clock.now() - self._context.host.clock.monotonic()

    def trusts_clock(self) -> bool:
        """Return False once if the clock was set forward by more than a day; deletion waits until it has stayed so."""
        before, self._offset = self._offset, self._clock_offset()
        if self._offset <= before + DAY:
            return True
        log.warning(
            "the clock was set forward by %.1f days: no expired rows are deleted for an hour",
            (self._offset - before) / DAY,
        )
        self._next = self._context.host.clock.monotonic() + EVERY
        return False

    async def sweep(self) -> dict[str, int]:
        """Delete all expired rows; return their number by kind."""
        self._sweeping = True
        self._next = self._context.host.clock.monotonic() + EVERY
        removed: dict[str, int] = {}
        now = self._context.host.clock.now()  # read once: the clock may be set during the sweep
        try:
            await self._set_users_of_runs()
            for kind, days in kept(self._context.limits).items():
                if days and not self.closing:
                    removed[kind] = await self._remove(kind, now - days * DAY)
            await self._give_back()
        except Unavailable as error:
            log.warning("expired rows could not be deleted; retrying later: %s", error)
        except Exception:  # logged here: nobody awaits the sweep
            log.exception("expired rows could not be deleted; retrying with the next sweep")
        finally:
            self._sweeping = False
            self.sweeps += 1
        if any(removed.values()):
            log.info("expired rows were deleted", extra={"removed": removed})
        return removed

    async def _set_users_of_runs(self) -> None:
        """Complete runs that older programs recorded, so that lists of runs read only those of their user."""
        count = BATCH
        while count == BATCH and not self.closing:
            count = await self._write(run_history.set_users, BATCH)

    async def _give_back(self) -> None:
        """Give space that is free now back to the file system, a few pages at a time."""
        continues = True
        while continues and not self.closing:
            continues = await self._write(retention.give_back, PAGES, KEPT_FREE)

    async def _write(self, op: Callable[..., T], *args: Any, then: Callable[[T], object] | None = None) -> T:
        """Write a little, then rest, so that others have the writer for most of the time."""
        clock = self._context.host.clock
        began = clock.monotonic()
        result = await self._context.store.write(op, *args, then=then)
        if not self.closing:
            await self._context.host.pending().within(min(LONGEST_REST, REST * (clock.monotonic() - began)))
        return result

    async def _remove(self, kind: str, before: float) -> int:
        size = 1 if kind == "talks" else BATCH  # a talk has many messages
        count = 0
        after: tuple[str, ...] = ()
        while not self.closing:
            page = await self._context.store.read(retention.old, kind, before, after, LOOK)
            batches = [page.keys[start : start + size] for start in range(0, len(page.keys), size)]
            while batches and not self.closing:
                keys = batches.pop(0)
                then = partial(self._forget, keys) if kind == "talks" else None
                count += await self._write(retention.remove, kind, before, keys, then=then)
            if not page.next_after:
                break
            after = page.next_after
        return count

    def _forget(self, keys: tuple[tuple[str, ...], ...], _: int) -> None:
        for (talk_id,) in keys:
            self._talks.forget(talk_id)


def kept(limits: Limits) -> dict[str, float]:
    """Return the days for which each kind is kept; 0: without a limit.

    Brain contexts and artifacts are kept as long as mail, schedules as long as tasks.
    """
    return {
        "letters": limits.keep_letters_days,
        "deliveries": limits.keep_deliveries_days,
        "hook_requests": limits.keep_deliveries_days,
        "tasks": limits.keep_tasks_days,
        "schedules": limits.keep_tasks_days,
        "runs": limits.keep_runs_days,
        "budgets": limits.keep_runs_days,
        "steps": limits.keep_journals_days,
        "approvals": limits.keep_journals_days,
        "events": limits.keep_events_days,
        "changes": limits.keep_changes_days,
        "mail": limits.keep_mail_days,
        "diary": limits.keep_mail_days,
        "artifacts": limits.keep_mail_days,
        "attachments": UNUSED_UPLOAD_DAYS,
        "talks": limits.keep_talks_days,
        "meeting_logs": limits.keep_meeting_logs_days,
        "meetings": limits.keep_meetings_days,
        "audit": limits.keep_audit_days,
    }
