"""Search index: writes the blocks of messages in the background, with a small share of the time."""

from __future__ import annotations

import logging

from roost.errors import Unavailable
from roost.runtime.context import RuntimeContext
from roost.stores.sql.talks import search

log = logging.getLogger("roost.search")

FIRST = 60.0
"""Seconds between the start and the first sweep: a start is busy."""
EVERY = 600.0
"""Seconds between two sweeps. Searches also read messages without a block."""
LOOK = 2_000
"""Talks per read."""
TALKS = 50
"""Talks per write."""
CHARS = 65_536
"""Characters of messages per write."""
REST = 19.0
"""Pause after each write, as a multiple of the time that it took: a sweep uses a twentieth of one core."""
LONGEST_REST = 2.0


class SearchIndex:
    """Writer of missing blocks, on the supervisor's loop. A sweep that is cut off is completed by the next."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context
        self._next = context.host.clock.monotonic() + FIRST
        self._sweeping = False
        self.closing = False

    @property
    def is_due(self) -> bool:
        return not self._sweeping and not self.closing and self._context.host.clock.monotonic() >= self._next

    async def sweep(self) -> int:
        """Write all missing blocks; return their number."""
        self._sweeping = True
        count = 0
        try:
            count = await self._sweep()
        except Unavailable as error:
            log.warning("the search index could not be written; retrying later: %s", error)
        except Exception:  # logged here: nobody awaits the sweep
            log.exception("the search index could not be written; retrying with the next sweep")
        finally:
            self._sweeping = False
            self._next = self._context.host.clock.monotonic() + EVERY
        return count

    async def _sweep(self) -> int:
        count, after = 0, ""
        while not self.closing:
            talk_ids, after = await self._context.store.read(search.outdated, after, LOOK)
            for start in range(0, len(talk_ids), TALKS):
                count += await self._write(talk_ids[start : start + TALKS])
            if not after:
                break
        return count

    async def _write(self, talk_ids: list[str]) -> int:
        """Write the missing blocks of these talks, a few at a time."""
        store, clock = self._context.store, self._context.host.clock
        count = 0
        while not self.closing:
            began = clock.monotonic()
            blocks = await store.read(search.missing_blocks, talk_ids, CHARS)
            if not blocks:
                break
            await store.write(search.write_blocks, blocks)
            count += len(blocks)
            talk_ids = talk_ids[talk_ids.index(blocks[-1].talk_id) :]  # the earlier ones are complete
            await self._context.host.pending().within(min(LONGEST_REST, REST * (clock.monotonic() - began)))
        return count
