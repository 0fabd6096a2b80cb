"""Keeper of figures: writes the counts of this process, samples gauges, and moves old figures to wider buckets."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import pairwise

from roost.core.agents.agent import State
from roost.core.monitoring.figures import NARROW, WIDTHS, FigureName
from roost.errors import Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql import figures
from roost.stores.sql.figures import FigureRow

log = logging.getLogger("roost.figures")

ROLL_UP_EVERY = 60.0
ROWS = 2_000
"""Rows per write of counts."""
BATCH = 500
"""Rows per write that moves old figures: other writes do not wait long."""
USERS = 100
"""Users who are sampled at the end of a bucket; of more, the next ones follow at the end of the next bucket."""
LONGEST_ROUND = 6 * NARROW
"""Most seconds back to look for busy users: that query reads all figures of the time."""
DAY = 86_400.0


class FigureKeeper:
    """Runs on the supervisor's loop, every ten seconds. In a cluster each node adds what it has counted.

    A process that is killed loses the counts of the unfinished bucket.
    """

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._bucket = self._now_bucket()
        self._is_first = True
        """The first bucket began before this process: another one may have sampled it."""
        self._rolled_up = context.host.clock.monotonic()
        self._offset = self._clock_offset()
        self._keeping = False
        self._after = ""
        """Last user that was sampled in this round; empty: a new round."""
        self._round = self._last_round = self._bucket - NARROW
        """Buckets at whose ends this round of samples began, and the previous one."""
        self.closing = False

    @property
    def is_due(self) -> bool:
        return not self._keeping and not self.closing and self._now_bucket() != self._bucket

    async def keep(self) -> None:
        """Write what was counted until now, then sample and roll up. What fails is retried with the next bucket."""
        self._keeping = True
        self._bucket = self._now_bucket()
        try:
            await self.write()
            if not self._is_first:
                await self._sample(self._bucket - NARROW)
            self._is_first = False
            if self._context.does_chores() and self._is_time_to_roll_up():
                await self.roll_up()
        except Unavailable as error:
            log.warning("figures of the monitor could not be written; retrying later: %s", error)
        except Exception:  # logged here: nobody awaits it
            log.exception("figures of the monitor could not be written; retrying later")
        finally:
            self._keeping = False

    async def write(self, *, all_of_it: bool = False) -> None:
        """Write the counts of finished buckets; `all_of_it`: also those of the unfinished one."""
        rows = self._context.facts.take_figures(all_of_it=all_of_it)
        while rows:
            try:
                await self._context.store.write(figures.add, rows[:ROWS])
            except BaseException:
                self._context.facts.give_back_figures(rows)
                raise
            del rows[:ROWS]

    async def close(self) -> None:
        """Write the rest."""
        self.closing = True
        try:
            await self.write(all_of_it=True)
        except Unavailable as error:
            log.warning("the last figures of the monitor could not be written: %s", error)

    async def roll_up(self) -> int:
        """Move figures that are older than their buckets are kept; return the number of moved rows."""
        now = int(self._context.host.clock.now())
        moved = 0
        for width, wider in [*pairwise(WIDTHS), (max(WIDTHS), None)]:
            unit = wider or width
            before = (now - WIDTHS[width]) // unit * unit
            count = BATCH
            while count == BATCH and not self.closing:
                count = await self._context.store.write(figures.roll_up, width, wider, before, BATCH)
                moved += count
        return moved

    # --- inside ----------------------------------------------------------------------------------

    def _now_bucket(self) -> int:
        return int(self._context.host.clock.now()) // NARROW * NARROW

    def _clock_offset(self) -> float:
        return self._context.host.clock.now() - self._context.host.clock.monotonic()

    def _is_time_to_roll_up(self) -> bool:
        """Return True once per minute; not for an hour after the clock was set forward by more than a day."""
        before, self._offset = self._offset, self._clock_offset()
        now = self._context.host.clock.monotonic()
        if self._offset > before + DAY:
            self._rolled_up = now + 3_600.0
        if now - self._rolled_up < ROLL_UP_EVERY:
            return False
        self._rolled_up = now
        return True

    async def _sample(self, start: int) -> None:
        if rows := self._awake(start):
            await self._context.store.write(figures.add_samples, rows)
        if self._context.does_chores():
            samples: list[FigureRow] = []
            for user_id in await self._next_users(start):
                samples += await self._context.store.read(figures.sample, user_id, start)
            if samples:
                await self._context.store.write(figures.keep_samples, samples)

    async def _next_users(self, start: int) -> list[str]:
        """Return the next users to sample, of all that were busy since the previous round began."""
        if not self._after:
            self._last_round, self._round = self._round, start
        since = max(min(self._last_round, start - NARROW), start - LONGEST_ROUND)
        users = await self._context.store.read(figures.busy_users, since, start, self._after, USERS)
        self._after = users[-1] if len(users) == USERS else ""
        return users

    def _awake(self, start: int) -> list[FigureRow]:
        """Return the states and queues of awake agents, by user."""
        sums: Counter[tuple[str, FigureName, str]] = Counter()
        for agent in self._dispatcher.all():
            if (state := agent.state_log.state) in (State.ACTIVE, State.WAITING):
                sums[agent.owner, FigureName.AGENTS, state] += 1
            if depth := agent.depth:
                sums[agent.owner, FigureName.QUEUE, "awake"] += depth
        return [FigureRow(user, name, start, label, 0, 1, float(n)) for (user, name, label), n in sums.items()]
