"""People for tests of meetings: each with a log, a clock and a reader of their own; and rooms in which all hear all."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from roost.core.meetings.log.bodies import Accepted, Body, FloorRule, Said, Started
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.log import Log
from roost.core.meetings.log.stamps import HybridClock
from roost.core.meetings.view import floor
from roost.core.meetings.view.fold import LogReader, fold
from roost.core.meetings.view.view import Refused, View
from tests.core.meetings.cast import HOST, MEETING, NOON, call


class Person:
    """One participant; `now` is the time on its wall."""

    def __init__(self, address: str, creator: str = HOST, now: int = NOON) -> None:
        self.address = address
        self.now = now
        self.log = Log(MEETING, creator)
        self.clock = HybridClock(address)
        self._reader = LogReader()

    @property
    def view(self) -> View:
        return self._reader.read(self.log)

    def write(self, body: Body) -> Entry:
        """Lawful or not."""
        self.log, self.clock, entry = self.log.written(self.clock, body, self.now)
        return entry

    def take(self, *entries: Entry) -> None:
        for entry in entries:
            self.clock = self.clock.receive(entry.at, self.now)
        self.log = self.log.added(*entries)

    def meet(self, other: Person) -> None:
        """Both tell each other what the other lacks."""
        mine, others = self.log.digest(), other.log.digest()
        self.take(*other.log.answer_to(mine))
        other.take(*self.log.answer_to(others))


class Room:
    """Room in which everyone hears everything at once, a second after what came before."""

    def __init__(self, *addresses: str) -> None:
        self.people = {address: Person(address) for address in addresses}
        self.now = NOON

    def __getitem__(self, address: str) -> Person:
        return self.people[address]

    def post(self, who: str, body: Body, at: int | None = None) -> Entry:
        self.now = self.now + 1_000 if at is None else at
        self[who].now = self.now
        entry = self[who].write(body)
        self.tell(entry)
        return entry

    def tell(self, *entries: Entry) -> None:
        for person in self.people.values():
            person.now = self.now
            person.take(*entries)

    @property
    def view(self) -> View:
        """The same in every view, or the test fails."""
        first, *others = (person.view for person in self.people.values())
        assert all(other == first for other in others)
        return first

    def says(self, who: str, text: str = "hello", **more: Any) -> str | None:
        """Have it said; why it was refused, if it was."""
        return self.tries(who, Said(text, **more))

    def tries(self, who: str, body: Body) -> str | None:
        """Have it written; why it was refused, if it was."""
        entry = self.post(who, body)
        return refusal(self.view, entry)

    def speakers(self) -> tuple[str, ...]:
        return floor.speakers(self.view)


def running(*addresses: str, rule: FloorRule = FloorRule.FREE, **more: Any) -> Room:
    """A meeting of the host and these that has begun."""
    room = Room(HOST, *addresses)
    room.post(HOST, call(*addresses, rule=rule, **more))
    for address in addresses:
        room.post(address, Accepted())
    room.post(HOST, Started())
    return room


def refusal(view: View, entry: Entry) -> str | None:
    found: list[Refused] = [one for one in view.refused if one.entry_id == entry.id]
    assert len(found) <= 1
    return found[0].reason if found else None


def said(view: View) -> list[tuple[str, str]]:
    return [(word.author, word.text) for word in view.words]


def without(view: View, *names: str) -> dict[str, Any]:
    """All fields of a view but these."""
    return {field.name: getattr(view, field.name) for field in fields(view) if field.name not in names}


def fold_of(*people: Person) -> View:
    merged = people[0].log
    for person in people[1:]:
        merged = merged.merged(person.log)
    return fold(merged)
