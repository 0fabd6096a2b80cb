"""Search in talks: steps of bounded length on the store, until a page is full or its time is over."""

from __future__ import annotations

from roost.core.talks.search import MOST, Hit, Place, SearchPage, parsed
from roost.core.values import checks
from roost.runtime.context import RuntimeContext
from roost.stores.sql.talks import search as search_sql
from roost.stores.sql.talks import talks

SECONDS = 1.0
"""Time for one page, after which it is returned as it is."""


async def search_talks(
    context: RuntimeContext,
    user_id: str,
    query: str,
    limit: int,
    after: str | None,
    talk_id: str | None,
) -> SearchPage:
    """Return a page of hits; see `Talks.search`."""
    terms = parsed(query)
    checks.count(limit, "the limit", least=1, most=MOST)
    place = None if after is None else Place.decode(after)
    if talk_id is not None:
        await context.store.read(talks.get, user_id, checks.name(talk_id, "the talk session id"))
    hits: list[tuple[Hit, Place]] = []
    ends = context.host.clock.monotonic() + SECONDS
    while terms:
        wanted = limit + 1 - len(hits)  # one more, to know whether there is a next page
        found = await context.store.read(search_sql.search, user_id, terms, place, talk_id, wanted)
        hits += found.hits
        place = found.place
        if len(hits) > limit:
            place = hits[limit - 1][1]
        if place is None or len(hits) > limit or context.host.clock.monotonic() > ends:
            break
    return SearchPage(tuple(hit for hit, _ in hits[:limit]), place.encode() if terms and place is not None else None)
