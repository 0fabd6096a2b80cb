"""A little network for meetings, all in memory: it loses, doubles, delays, reorders and cuts, by a seed."""

from __future__ import annotations

from random import Random

from roost.core.meetings.log import digests, entries
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Bounds,
    Called,
    Declined,
    Ended,
    EntryId,
    EntryKind,
    Failed,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Missed,
    Moved,
    Passed,
    Raised,
    Said,
    Started,
    Withheld,
)
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.participants.decisions import due, may
from roost.core.meetings.view import floor
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from tests.core.meetings.cast import NOON
from tests.core.meetings.people import Person

YEAR = 365 * 86_400_000


class Net:
    """People, the first of which calls a meeting; a share of their messages is lost, repeated or reordered."""

    def __init__(self, seed: int, size: int, *, faults: float = 0.3) -> None:
        self.random = Random(seed)
        self.faults = faults
        names = [f"agent:ann/p{number}" for number in range(size)]
        self.people = {name: Person(name, names[0], NOON + self.random.randint(-20_000, 20_000)) for name in names}
        self.names = names
        self.sides = dict.fromkeys(names, 0)
        self.travelling: list[tuple[str, str]] = []
        self.ended: dict[EntryId, View] = {}
        """Entries that each rightful end of the meeting had seen."""

    @property
    def creator(self) -> Person:
        return self.people[self.names[0]]

    def call(self) -> Called:
        random, others = self.random, self.names[1:]
        asked = [name for name in others if random.random() < 0.9]
        required = tuple(name for name in asked if random.random() < 0.3)
        optional = tuple(name for name in asked if name not in required)
        plays = random.random() < 0.7
        return Called(
            "Anything",
            NOON + random.randint(10_000, 99_000),
            required,
            optional,
            random.choice(list(FloorRule)),
            random.choice([None, *self.names]),
            open=random.random() < 0.5,
            game="tic-tac-toe" if plays else None,
            setting={"players": random.sample(self.names, 2)} if plays else None,
            bounds=Bounds(words=random.choice([10, 99]), moves=random.choice([5, 99]), turn=random.choice([0, 2_000])),
        )

    # --- what happens --------------------------------------------------------------------------------

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.55:
            self.act(self.random.choice(list(self.people.values())))
        elif chance < 0.85:
            self.deliver(self.random.randint(1, 8))
        elif chance < 0.92:
            self.meet(*self.random.sample(self.names, 2))
        elif chance < 0.96:
            self.sides = {name: self.random.randint(0, 1) for name in self.names}
        else:
            self.sides = dict.fromkeys(self.names, 0)

    def act(self, person: Person) -> None:
        person.now += self.random.choice([0, 0, 1, 50, 700, 3_000])
        if self.random.random() < 0.02:
            person.now += self.random.choice([-3_600_000, 3_600_000, 100 * YEAR, -100 * YEAR])
            person.now = max(person.now, 0)
        if person.log.order:
            wise = self.random.random() < 0.8
            body = self.wise(person, person.view) if wise else self.foolish(person.view)
            if body is not None:
                self.post(person, body)

    def post(self, person: Person, body: Body) -> Entry:
        before = person.view
        entry = person.write(body)
        if isinstance(body, Ended) and may(before, entry) is None:
            self.ended[entry.id] = before
        for name in person.view.participants:
            if name != person.address:
                self.send(person.address, name, entry)
        return entry

    def send(self, sender: str, to: str, entry: Entry) -> None:
        if self.random.random() < self.faults or self.sides[sender] != self.sides[to]:
            return
        for _ in range(2 if self.random.random() < self.faults else 1):
            place = self.random.randint(0, len(self.travelling))
            self.travelling.insert(place, (to, entries.to_json(entry)))

    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.travelling))):
            to, text = self.travelling.pop(0)
            self.people[to].take(entries.from_json(text))

    # --- and how it is put right ---------------------------------------------------------------------

    def meet(self, one: str, other: str) -> bool:
        """Both tell what the other lacks, unless one was kicked as the other sees it; whether anything was new."""
        a, b = self.people[one], self.people[other]
        if self.sides[one] != self.sides[other] or not self.talk(a, b):
            return False
        before = a.log, b.log
        for asks, answers in ((a, b), (b, a)):
            digest = digests.from_json(digests.to_json(asks.log.digest()))
            asks.take(*(entries.from_json(entries.to_json(entry)) for entry in answers.log.answer_to(digest)))
        return (a.log, b.log) != before

    def talk(self, a: Person, b: Person) -> bool:
        known = [a.view.participants.get(b.address), b.view.participants.get(a.address)]
        return any(known) and not any(one is not None and one.status is ParticipantStatus.KICKED for one in known)

    def settle(self) -> None:
        """Lose what travels; all who are not kicked ask each other until nobody learns anything."""
        self.travelling.clear()
        self.sides = dict.fromkeys(self.names, 0)
        pairs = [(one, other) for one in self.names for other in self.names if one < other]
        self.random.shuffle(pairs)
        while sum(self.meet(*pair) for pair in pairs):
            pass

    # --- what people do ------------------------------------------------------------------------------

    def wise(self, person: Person, view: View) -> Body | None:
        """Return a body that makes sense with this view; mostly lawful."""
        me, random = person.address, self.random
        mine = view.participants.get(me)
        if (body := due(view, me, person.now, grace=100)) is not None:
            return body
        if mine is None or mine.status is not ParticipantStatus.IN:
            comes = Joined() if mine is None or mine.status is not ParticipantStatus.INVITED else Accepted()
            return comes if random.random() < 0.95 else Declined("no")
        if view.phase is not Phase.RUNNING:
            return None
        if view.state is not None and random.random() < 0.5:
            return self.move(view)
        if random.random() < 0.1 and view.chair == me:
            rights: list[Body] = [Kicked(random.choice(self.names)), Invited(random.choice(self.names)), Ended("so")]
            return random.choice(rights)
        if me in floor.speakers(view):
            return Said(f"{me} {len(view.words)}", tuple(random.sample(self.names, 2)), random.random() < 0.3)
        return Granted(random.choice(view.present)) if view.moderator == me else Raised()

    def foolish(self, view: View) -> Body:
        """Anything."""
        who, random = self.random.choice(self.names), self.random
        bodies: list[Body] = [
            Accepted(),
            Declined("why not"),
            Joined(),
            Left("bored"),
            Kicked(who),
            Invited(who, random.random() < 0.3),
            Raised(),
            Granted(who),
            Passed(who),
            Said("anything", (who,)),
            Said("more", hand=True),
            Started(),
            Missed(view.head or EntryId(who, 1)),
            self.move(view),
            Failed("whatever") if random.random() < 0.2 else Said("not yet"),
            Ended("enough"),
            Withheld(random.choice((EntryKind.SAID, EntryKind.MOVED)), "words", "it was too late"),
        ]
        return random.choice(bodies)

    def move(self, view: View) -> Moved:
        return Moved(view.head or EntryId(self.names[0], 1), {"cell": self.random.randint(1, 9)})
