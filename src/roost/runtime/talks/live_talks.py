"""Registry of the talks in RAM."""

from __future__ import annotations

from roost.core.talks.runs import Loaded
from roost.errors import NotFound
from roost.ports import Host, Store
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.turns.history import TAIL
from roost.stores.sql.talks import talks as talks_sql


class LiveTalks:
    """Talks in RAM, by id. Idle talks that were not used for long are removed."""

    def __init__(self, host: Host, store: Store, most: int) -> None:
        self._host = host
        self._store = store
        self._most = most
        self._talks: dict[str, LiveTalk] = {}

    def known(self, talk_id: str) -> LiveTalk | None:
        return self._talks.get(talk_id)

    async def get(self, user_id: str, talk_id: str) -> LiveTalk:
        """Return the talk, loaded through the writer in order with all commits. Raise NotFound for another user's."""
        live = self._talks.get(talk_id)
        while live is None or live.gone:
            await self._store.write(talks_sql.load, user_id, talk_id, TAIL, key=talk_id, then=self.add)
            live = self._talks.get(talk_id)
        if live.owner != user_id:
            raise NotFound("there is no such talk: it was deleted, or it never existed")
        live.used = self._host.clock.monotonic()
        return live

    def add(self, loaded: Loaded) -> None:
        talk_id = loaded.talk.talk_session_id
        known = self._talks.get(talk_id)
        if known is None or known.gone:
            self._talks[talk_id] = LiveTalk(self._host, loaded, self._store.generation)

    def forget(self, talk_id: str) -> None:
        live = self._talks.pop(talk_id, None)
        if live is not None:
            live.drop()

    def wake_all(self) -> None:
        for live in list(self._talks.values()):
            live.wake()

    def trim(self) -> None:
        """Remove the longest unused talks, down to the limit; talks with a run or a waiting reader stay."""
        now = self._host.clock.monotonic()
        for live in list(self._talks.values()):
            if live.touched:
                live.touched, live.used = False, now
        excess = len(self._talks) - self._most
        for live in sorted(self._talks.values(), key=lambda live: live.used):
            if excess <= 0:
                return
            if live.retire():
                self._talks.pop(live.talk_id, None)
                excess -= 1
