"""Talks of other nodes: read and stopped there, or by the store while the other node cannot be reached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from roost.core.envelopes.envelope_json import of_json, to_json
from roost.core.talks import attachments, side_channels
from roost.core.talks.messages import Cursor, Message, Page, Status, TalkLog, at
from roost.core.talks.runs import Halted, Posted, StopReason
from roost.core.talks.talk import Receipt
from roost.runtime.cluster.mesh import Mesh
from roost.runtime.context import RuntimeContext
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.live_text import LiveText
from roost.runtime.turns.history import TAIL
from roost.stores.sql.talks import talks as talks_sql

PATIENCE = 1.0
"""Seconds that another node has to answer, beyond those that it waits for news."""
POLL = 0.5
"""Seconds between two reads of the store for a reader that waits."""
ARRIVAL = 0.5
"""Seconds for which a sender waits until readers on all nodes see its message."""

MOST_UNCONFIRMED = 10_000

Read = Callable[[LiveTalk, str | None, int | None, int], Awaitable[Page]]


class TalksElsewhere:
    """Any thread may call. `read_live` reads from a talk in RAM."""

    def __init__(self, context: RuntimeContext, talks: LiveTalks, mesh: Mesh, read_live: Read) -> None:
        self._context = context
        self._talks = talks
        self._mesh = mesh
        self._read_live = read_live
        self._unconfirmed: OrderedDict[str, int] = OrderedDict()
        """Revisions of talks with messages sent here, of which their nodes have not said that they know them."""

    # --- notices ---------------------------------------------------------------------------------

    def posted(self, user_id: str, talk_id: str, posted: Posted) -> None:
        """Notify the node of a talk of a new message."""
        self._talks.owners.put(talk_id, posted.node)
        self._mesh.tell(posted.node, "posted", user_id, talk_id, posted_to_json(posted))

    def changed(self, user_id: str, talk_id: str) -> None:
        self._mesh.tell_all("talk_changed", user_id, talk_id)

    def deleted(self, talk_ids: list[str]) -> None:
        self._mesh.tell_all("talks_deleted", talk_ids)

    # --- questions -------------------------------------------------------------------------------

    async def arrive(self, user_id: str, talk_id: str, posted: Posted) -> None:
        """Wait a moment until the node of the talk knows of a message: then all readers see it."""
        for _ in range(2):  # a message on the way may be lost
            if await self._bring(user_id, talk_id, posted.node, posted.revision, ARRIVAL / 2):
                return
            if not self._mesh.is_up:
                break
        self._unconfirmed[talk_id] = max(posted.revision, self._unconfirmed.get(talk_id, 0))
        if len(self._unconfirmed) > MOST_UNCONFIRMED:
            with suppress(KeyError):  # another thread has dropped it
                self._unconfirmed.popitem(last=False)

    async def _bring(self, user_id: str, talk_id: str, node: str, revision: int, seconds: float) -> bool:
        """Have the node of a talk follow up to a revision; return whether it has answered."""
        if await self._mesh.ask(node, "catch_up", user_id, talk_id, revision, seconds=seconds) is None:
            return False
        if self._unconfirmed.get(talk_id, revision + 1) <= revision:
            self._unconfirmed.pop(talk_id, None)
        return True

    async def read(
        self,
        user_id: str,
        talk_id: str,
        node: str,
        after: str | None,
        before: int | None,
        limit: int,
        wait: float = 0.0,
    ) -> Page:
        """Return messages as its node has them; if it does not answer, those in the store.

        Wait up to `wait` seconds for changes after the cursor.
        """
        if node and self._mesh.is_up and await self._knows(user_id, talk_id, node):
            arguments = (user_id, talk_id, after and str(after), before, limit, wait)
            answer = await self._mesh.ask(node, "read", *arguments, seconds=wait + PATIENCE)
            if answer is not None:
                return page_of_json(answer)
            self._talks.owners.forget(talk_id)
        elif wait:
            await self._context.host.pending().within(min(wait, POLL))
        return await self._read_store(user_id, talk_id, after, before, limit)

    async def _knows(self, user_id: str, talk_id: str, node: str) -> bool:
        """Return whether the node of a talk knows all messages that were sent here: their senders read them here."""
        revision = self._unconfirmed.get(talk_id)
        return revision is None or await self._bring(user_id, talk_id, node, revision, PATIENCE)

    async def stop(self, user_id: str, talk_id: str, halted: Halted, wait: float) -> Receipt:
        """Have another node stop the run of its talk, which can no longer write; return what it has acknowledged."""
        requested = at(halted.now)
        question = ("stop", user_id, talk_id, halted.now, halted.epoch, halted.revision, wait)
        answer = await self._mesh.ask(halted.node, *question, seconds=wait + PATIENCE)
        if answer is None:  # a run that can no longer write may not have ended
            return Receipt(requested)
        acknowledged, quiesced, abandoned = answer
        return Receipt(requested, acknowledged and at(acknowledged), quiesced and at(quiesced), tuple(abandoned))

    async def _read_store(self, user_id: str, talk_id: str, after: str | None, before: int | None, limit: int) -> Page:
        loaded = await self._context.store.read(talks_sql.snapshot, user_id, talk_id, TAIL)
        generation = self._context.store.generation
        live = LiveTalk(self._context.host, loaded, generation)
        cursor = Cursor(0) if after is None else Cursor.decode(after, TalkLog(talk_id, generation))
        newest = loaded.messages[-1][0] if loaded.messages else None
        if newest is not None and newest.status is Status.STREAMING:
            text = _checkpointed(newest)
            # A reader who has seen more than was saved waits until as much is saved.
            if cursor.seq != newest.seq or cursor.offset <= text.length:
                live.answer = text
        return await self._read_live(live, after, before, limit)


def _checkpointed(message: Message) -> LiveText:
    text = LiveText()
    text.message = message
    text.append(message.content)
    for note in message.notes:
        text.note(note)
    return text


def page_to_json(page: Page) -> list[Any]:
    return [
        [_message_to_json(message) for message in page.messages],
        str(page.cursor),
        page.running,
        page.more_before,
        page.more_after,
    ]


def page_of_json(value: list[Any]) -> Page:
    messages, *rest = value
    return Page(tuple(_message_of_json(message) for message in messages), *rest)


def posted_to_json(posted: Posted) -> list[Any]:
    superseded = posted.superseded and str(posted.superseded)
    what = (posted.revision, posted.epoch, superseded, posted.withdrawn, posted.repeated, posted.agent)
    return [_message_to_json(posted.message), to_json(posted.envelope), *what, posted.was_parked, posted.alone]


def posted_of_json(value: list[Any]) -> Posted | None:
    """Return what another node has posted; None if that node has another version."""
    message, envelope, revision, epoch, superseded, *rest = value
    found = of_json(envelope)
    if found is None:
        return None
    return Posted(_message_of_json(message), revision, epoch, found, superseded and StopReason(superseded), *rest)


def _message_to_json(m: Message) -> list[Any]:
    notes, files = side_channels.pack(m.notes), attachments.pack(m.attachments)
    return [m.seq, str(m.sender), m.content, str(m.status), m.created.timestamp(), m.error, m.run_id, notes, files]


def _message_of_json(value: list[Any]) -> Message:
    seq, sender, content, status, created, error, run_id, notes, files = value
    return Message(
        seq,
        sender,
        content,
        Status(status),
        at(created),
        error,
        run_id,
        side_channels.unpack(notes),
        attachments.unpack(files),
    )
