"""What everything in the runtime is given: the ports, the bounds, and the talks in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roost.core.limits import Limits
from roost.core.runs import Loaded
from roost.core.secrets import Redactor
from roost.errors import NotFound
from roost.ports import Brains, Host, Pending, Statements, Store, Tracer
from roost.runtime.live import LiveTalk

if TYPE_CHECKING:
    from roost.runtime.breakers import Breakers
    from roost.runtime.ledger import Ledger
    from roost.runtime.memory import Memory
    from roost.runtime.monitor import Monitor
    from roost.runtime.office import Office
    from roost.runtime.tools import Toolbox

TAIL = 250


@dataclass(slots=True)
class Shop:
    host: Host
    store: Store
    statements: Statements
    brains: Brains
    limits: Limits
    talks: LiveTalks
    tracer: Tracer | None = None
    redactor: Redactor = field(default_factory=Redactor)
    tools: Toolbox = field(init=False)
    breakers: Breakers = field(init=False)
    ledger: Ledger = field(init=False)
    office: Office = field(init=False)
    monitor: Monitor = field(init=False)
    memory: Memory = field(init=False)
    """Set by whoever starts the parts."""
    bells: dict[str, Pending[None]] = field(default_factory=dict)
    """Runs here that wait for a person's word, by the id of what they asked."""


class LiveTalks:
    """The talks in memory, by id. Idle ones that were not used for long are forgotten."""

    def __init__(self, host: Host, store: Store, statements: Statements, most: int) -> None:
        self._host = host
        self._store = store
        self._statements = statements
        self._most = most
        self._talks: dict[str, LiveTalk] = {}

    def known(self, talk_id: str) -> LiveTalk | None:
        return self._talks.get(talk_id)

    async def get(self, user_id: str, talk_id: str) -> LiveTalk:
        """Raises NotFound for what is not this user's. Loads through the writer, in order with all commits."""
        live = self._talks.get(talk_id)
        while live is None or live.gone:
            await self._store.write(self._statements.talks.load, user_id, talk_id, TAIL, key=talk_id, then=self.add)
            live = self._talks.get(talk_id)
        if live.owner != user_id:
            raise NotFound("there is no such talk: it was deleted, or it never existed")
        live.used = self._host.clock.monotonic()
        return live

    def add(self, loaded: Loaded) -> None:
        talk_id = loaded.talk.talk_session_id
        known = self._talks.get(talk_id)
        if known is None or known.gone:
            self._talks[talk_id] = LiveTalk(self._host, loaded)

    def forget(self, talk_id: str) -> None:
        live = self._talks.pop(talk_id, None)
        if live is not None:
            live.drop()

    def wake_all(self) -> None:
        for live in list(self._talks.values()):
            live.wake()

    def trim(self) -> None:
        """Forget the longest unused, down to the bound; those being answered or watched stay."""
        now = self._host.clock.monotonic()
        for live in list(self._talks.values()):
            if live.touched:
                live.touched, live.used = False, now
        spare = len(self._talks) - self._most
        for live in sorted(self._talks.values(), key=lambda t: t.used):
            if spare <= 0:
                return
            if live.retire():
                self._talks.pop(live.talk_id, None)
                spare -= 1
