"""History of a talk for a brain: the newest messages are in RAM, older ones are read by page."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from roost.core.talks.messages import Message, Status
from roost.errors import NotFound
from roost.stores.sql.talks import messages as messages_sql

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext

PAGE = 250
"""Messages per read: about a millisecond's work."""
TAIL = 250
"""Newest messages of a talk that are loaded with it."""
PAGES = 4
"""Pages in the cache, for brains that read back and forth."""


class TalkHistory(Sequence[Message]):
    """All messages before a turn, as they were when it began. Behaves like a list.

    `tail` holds the messages from number `first` on. Reading older ones blocks the thread for a page at a time; `async
    for` does not.
    """

    def __init__(self, context: RuntimeContext, user_id: str, talk_id: str, first: int, tail: list[Message]) -> None:
        self._context = context
        self._user_id = user_id
        self._talk_id = talk_id
        self._first = first
        self._tail = tail
        self._withdrawn: list[int] | None = None
        self._pages: OrderedDict[int, list[Message]] = OrderedDict()

    # --- as a sequence ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._older + len(self._tail)

    def __bool__(self) -> bool:
        return bool(self._tail) or self._older > 0

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return self._slice(index)
        if -len(self._tail) <= index < 0:
            return self._tail[index]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError("history index out of range")
        return self._tail[place - self._older] if place >= self._older else self._at(place)

    def _slice(self, wanted: slice) -> list[Message]:
        start, stop = wanted.start, wanted.stop
        is_near = start is not None and -len(self._tail) <= start < 0 and (stop is None or stop < 0)
        if is_near and (wanted.step or 1) > 0:
            return self._tail[wanted]
        return [self[place] for place in range(*wanted.indices(len(self)))]

    def __iter__(self) -> Iterator[Message]:
        for number in range(self._count):
            yield from _shown(self._page(number))
        yield from self._tail

    def __reversed__(self) -> Iterator[Message]:
        yield from reversed(self._tail)
        for number in range(self._count - 1, -1, -1):
            yield from reversed(_shown(self._page(number)))

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Iterate over the messages, oldest first, without blocking the loop."""
        read = messages_sql.before
        for number in range(self._count):
            found = self._pages.get(number)
            if found is None:
                found = self._whole(number, await self._context.store.read(read, *self._bounds(number)))
            for message in _shown(found):
                yield message
        for message in self._tail:
            yield message

    def __add__(self, other: Sequence[Message]) -> list[Message]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(one == its for one, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<history of {len(self):,} messages>"

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Message]:
        return [*self]

    def count_of(self, sender: str) -> int:
        """Return the number of messages of this sender, without reading them."""
        count = messages_sql.count_of
        older = self._context.store.read_now(count, self._user_id, self._talk_id, self._first, sender)
        return older + sum(message.sender == sender for message in self._tail)

    # --- what is only in the store ---------------------------------------------------------------

    @property
    def _count(self) -> int:
        """Return the number of pages."""
        return -(-(self._first - 1) // PAGE)

    @property
    def _older(self) -> int:
        """Return the number of messages before the tail."""
        return self._first - 1 - len(self._gone)

    @property
    def _gone(self) -> list[int]:
        """Return the numbers of the withdrawn messages: mostly none."""
        if self._withdrawn is None:
            withdrawn = messages_sql.withdrawn
            self._withdrawn = self._context.store.read_now(withdrawn, self._user_id, self._talk_id, self._first)
        return self._withdrawn

    def _at(self, place: int) -> Message:
        gone, seq = self._gone, place + 1
        while (after := place + 1 + bisect_right(gone, seq)) != seq:
            seq = after
        number, offset = divmod(seq - 1, PAGE)
        return self._page(number)[offset]

    def _page(self, number: int) -> list[Message]:
        found = self._pages.pop(number, None)
        if found is None:
            read = messages_sql.before
            found = self._whole(number, self._context.store.read_now(read, *self._bounds(number)))
        self._pages[number] = found
        while len(self._pages) > PAGES:
            self._pages.popitem(last=False)
        return found

    def _bounds(self, number: int) -> tuple[str, str, int, int]:
        end = min((number + 1) * PAGE, self._first - 1)
        return self._user_id, self._talk_id, end + 1, end - number * PAGE

    def _whole(self, number: int, found: list[Message]) -> list[Message]:
        if len(found) != self._bounds(number)[3]:
            raise NotFound("the talk was deleted while its history was read")
        return found


def _shown(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message.status is not Status.WITHDRAWN]
