"""M4: seats that tell each other over a network that loses, doubles, delays and reorders come to see the same."""

from __future__ import annotations

from functools import partial, reduce
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.log.bodies import Body, Called, FloorRule, Invited, Joined, Kicked, Left, Said
from roost.core.meetings.log.log import Log
from roost.core.meetings.log.posts import from_json, to_json
from roost.core.meetings.participants.seats import Seat
from roost.core.meetings.participants.versions import Versions
from roost.core.meetings.view.fold import fold
from roost.core.meetings.view.view import View
from roost.errors import Forbidden, Invalid
from roost.testing import Network

NOON = 1_800_000_000_000
MEETING = "meeting_1"
MOST = 3_000
"""Messages that may follow from one thing that happens: they do not ask each other in circles."""
NAMES = [f"agent:ann/{name}" for name in "abcdef"]


class Table:
    """All seats of a meeting, each with what it has kept, and the network between them."""

    def __init__(self, seed: int, count: int, rule: FloorRule, loss: float) -> None:
        self.dice = Random(seed)
        self.names = NAMES[:count]
        self.network: Network[str, str] = Network(seed, lose=loss, double=loss, delay=(0.0, 0.5), reorder=loss)
        self.versions = {name: Versions() for name in self.names}  # they share nothing
        self.seats: dict[str, Seat] = {}
        for name in self.names:
            self.network.join(name, partial(self.hear, name))
        creator = self.seat(self.names[0])
        creator.write(Called("news", NOON + 10**9, tuple(self.names[1:]), floor=rule), self.now)
        self.send(creator)

    @property
    def now(self) -> int:
        return NOON + round(self.network.clock.monotonic() * 1000)

    def seat(self, name: str) -> Seat:
        if name not in self.seats:
            self.seats[name] = Seat(name, self.versions[name].empty(MEETING, self.names[0]))
        return self.seats[name]

    def hear(self, name: str, sender: str, text: str) -> None:
        seat = self.seat(name)
        seat.hear(sender, from_json(text))
        self.send(seat)

    def send(self, seat: Seat) -> None:
        seat.act(self.now, accepts=True)
        outgoing, seat.outgoing = seat.outgoing, []
        fresh = Seat(seat.me, seat.version)  # as the next operation of the store finds it
        self.seats[seat.me] = fresh
        for to, post in outgoing:
            self.network.send(seat.me, to, to_json(post))

    def do_something(self) -> None:
        seat = self.seats[self.dice.choice(list(self.seats))]
        view, who = seat.view, self.dice.choice(self.names)
        chances: list[Body] = [Said(f"{seat.me} {len(view.words)}", (who,))] * 6
        chances += [Left("tired"), Joined(), Invited(who), Kicked(who)]
        try:
            seat.write(self.dice.choice(chances), self.now)
        except (Forbidden, Invalid):  # it may not have heard of the call yet
            return
        self.send(seat)

    def heal(self) -> None:
        """Nothing is lost any more, and they ask each other in turn."""
        self.network.lose = 0.0
        for turn in range(6 * len(self.names)):
            for seat in list(self.seats.values()):
                seat.ask_in_turn(turn)
                self.send(seat)
            self.network.run(most=MOST)

    def views(self) -> dict[str, View]:
        """Participants that are present, or were at the end, as far as any view knows."""
        whole = reduce(Log.merged, (seat.log for seat in self.seats.values()))
        return {name: self.seats[name].view for name in fold(whole).present}


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 6),
    rule=st.sampled_from([FloorRule.FREE, FloorRule.ROUND_ROBIN, FloorRule.MENTION]),
    loss=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_all_who_are_there_see_the_same(seed: int, count: int, rule: FloorRule, loss: float) -> None:
    table = Table(seed, count, rule, loss)
    table.network.run(most=MOST)
    for _ in range(25):
        table.do_something()
        table.network.run(table.dice.choice((0.0, 0.1, 2.0)), most=MOST)
    table.heal()
    views = list(table.views().values())
    assert all(view == views[0] for view in views)


def test_a_gap_is_asked_for_as_soon_as_it_shows() -> None:
    table = Table(1, 3, FloorRule.FREE, 0.0)
    table.network.run()
    speaker, *others = table.names
    for text, lost in (("lost", 1.0), ("heard", 0.0)):
        table.network.lose = lost
        table.seats[speaker].write(Said(text), table.now)
        table.send(table.seats[speaker])
        table.network.run()
    for name in others:
        assert [word.text for word in table.seats[name].view.words] == ["lost", "heard"]


def test_a_kicked_participant_sees_the_kick_and_nothing_after_it() -> None:
    table = Table(1, 3, FloorRule.FREE, 0.0)
    table.network.run()
    a, b, c = table.names
    table.network.lose = 1.0  # all of it is lost
    for body in (Said("before"), Kicked(c), Said("after")):
        table.seats[a].write(body, table.now)
        table.send(table.seats[a])
    table.heal()
    assert [word.text for word in table.seats[b].view.words] == ["before", "after"]
    table.seats[c].ask(a)
    table.send(table.seats[c])
    table.network.run()
    view = table.seats[c].view
    assert str(view.participants[c].status) == "kicked"
    assert [word.text for word in view.words] == ["before"]
