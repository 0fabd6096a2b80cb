"""Registry of the talks in RAM."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from roost.core.talks.runs import Loaded
from roost.errors import NotFound
from roost.ports import Host, Store
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.turns.history import TAIL
from roost.stores.sql.talks import talks as talks_sql

FRESH = 5.0
"""Seconds for which the node of a talk is not looked up again."""
MOST_OWNERS = 100_000
IDLE = 10.0
"""Seconds after which a talk that nobody has used is compared with the store before it is read again."""


class TalkElsewhere(Exception):
    """The talk belongs to another node, or to an agent that belongs to none."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


class LiveTalks:
    """Talks in RAM, by id. Idle talks that were not used for long are removed.

    In a cluster these are the talks of this node: it alone knows what is being written in them.
    """

    def __init__(self, host: Host, store: Store, most: int, node: str = "") -> None:
        self._host = host
        self._store = store
        self._most = most
        self._node = node
        self._talks: dict[str, LiveTalk] = {}
        self.owners = TalkOwners(host)

    def known(self, talk_id: str) -> LiveTalk | None:
        return self._talks.get(talk_id)

    async def get(self, user_id: str, talk_id: str, *, for_run: bool = False) -> LiveTalk:
        """Return the talk, loaded through the writer in order with all commits.

        Raise NotFound for another user's, TalkElsewhere for another node's. `for_run`: ask the store whose it is.
        """
        live = self._talks.get(talk_id)
        if self._node and live is not None and not self._is_in_use(live):
            live.missed = True
        while live is None or live.gone or live.missed:
            if live is None and not for_run and (node := self.owners.get(talk_id)):
                raise TalkElsewhere(node)
            loaded = await self._store.write(talks_sql.load, user_id, talk_id, TAIL, key=talk_id, then=self.add)
            live = self._talks.get(talk_id)
            if live is None and not self._is_own(loaded):
                raise TalkElsewhere(loaded.node)
        if live.owner != user_id:
            raise NotFound("there is no such talk: it was deleted, or it never existed")
        live.used = self._host.clock.monotonic()
        return live

    def add(self, loaded: Loaded) -> None:
        talk_id = loaded.talk.talk_session_id
        known = self._talks.get(talk_id)
        if not self._is_own(loaded):
            self.owners.put(talk_id, loaded.node)
            self.forget(talk_id)
        elif known is None or known.gone:
            self._talks[talk_id] = LiveTalk(self._host, loaded, self._store.generation)
        elif self._node:
            known.refresh(loaded)

    def in_use(self, held: Iterable[str]) -> dict[str, LiveTalk]:
        """Return the talks that run, as they are `held`, and those that were read lately."""
        held = set(held)
        return {one.talk_id: one for one in list(self._talks.values()) if one.talk_id in held or self._is_in_use(one)}

    def _is_in_use(self, live: LiveTalk) -> bool:
        return bool(live.waiters) or live.touched or self._host.clock.monotonic() - live.used < IDLE

    def refresh(self, user_id: str, talk_id: str, then: Callable[[Loaded], object]) -> None:
        """Follow what another node has committed, and call `then`."""

        def refreshed(loaded: Loaded) -> None:
            if self._talks.get(talk_id) is not None:
                self.add(loaded)
            then(loaded)

        self._store.write(talks_sql.load, user_id, talk_id, TAIL, key=talk_id, then=refreshed)

    def _is_own(self, loaded: Loaded) -> bool:
        return loaded.node == self._node

    def forget(self, talk_id: str) -> None:
        live = self._talks.pop(talk_id, None)
        if live is not None:
            live.drop()

    def forget_all_but(self, kept: Collection[str]) -> None:
        """Have readers load all other talks again: they may belong to another node now."""
        kept = set(kept)
        for talk_id in [one for one in list(self._talks) if one not in kept]:
            self.forget(talk_id)

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


class TalkOwners:
    """Nodes that talks belong to, as far as they were seen within the last seconds. Any thread may call."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def get(self, talk_id: str) -> str:
        """Return the node; empty if it is not known."""
        node, seen = self._known.get(talk_id, ("", 0.0))
        return node if node and self._host.clock.monotonic() - seen < FRESH else ""

    def put(self, talk_id: str, node: str) -> None:
        self._known[talk_id] = node, self._host.clock.monotonic()
        if len(self._known) > MOST_OWNERS:
            with suppress(KeyError):  # another thread has dropped it
                self._known.popitem(last=False)

    def forget(self, talk_id: str) -> None:
        self._known.pop(talk_id, None)

    def clear(self) -> None:
        """Forget all: talks have changed their node."""
        self._known.clear()
