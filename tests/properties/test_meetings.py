"""M4, M6, M7: whatever is lost, doubled, reordered and cut off, all participants see the same in the end.

The quick run takes a hundred meetings for each test; with `pytest --hypothesis-profile=long --timeout=0` and this file
it is two thousand. A meeting follows from its seed, its size and its length, which a failure shows.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.games.games import Outcome
from roost.core.meetings.games.tictactoe import TicTacToe
from roost.core.meetings.log.bodies import (
    Accepted,
    Called,
    Ended,
    EntryKind,
    FloorRule,
    Invited,
    Joined,
    Moved,
    Said,
    Started,
    Withheld,
    kind_of,
)
from roost.core.meetings.log.entries import from_json, to_json
from roost.core.meetings.log.log import Log
from roost.core.meetings.participants.decisions import due
from roost.core.meetings.participants.versions import Versions
from roost.core.meetings.view import floor
from roost.core.meetings.view.fold import LogReader, fold
from roost.core.meetings.view.minutes import minutes
from roost.core.meetings.view.view import Phase, View
from roost.errors import Invalid
from tests.core.meetings.cast import MEETING, NOON
from tests.core.meetings.people import Person, without
from tests.properties.meeting_net import Net

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(2, 8)
LENGTHS = st.integers(0, 200)


def happened(seed: int, size: int, length: int) -> Net:
    """A meeting after this number of acts, before any participant has asked for missing entries."""
    net = Net(seed, size)
    net.post(net.creator, net.call())
    for _ in range(length):
        net.step()
    return net


def settled(seed: int, size: int, length: int) -> tuple[Net, View]:
    net = happened(seed, size, length)
    net.settle()
    return net, net.creator.view


@given(SEEDS, SIZES, LENGTHS)
def test_all_who_are_there_come_to_see_the_same(seed: int, size: int, length: int) -> None:
    net, view = settled(seed, size, length)
    for name in view.present:
        person = net.people[name]
        assert person.view == view
        assert person.log == net.creator.log
        assert floor.speakers(person.view) == floor.speakers(view)
        assert minutes(person.view) == minutes(view)


@given(SEEDS, SIZES, LENGTHS)
def test_no_entry_of_a_present_participant_is_lost(seed: int, size: int, length: int) -> None:
    net, view = settled(seed, size, length)
    log = net.creator.log
    for name in view.present:
        written = [placed.entry for placed in net.people[name].log.placed.get(name, ())]
        assert [placed.entry for placed in log.placed.get(name, ())] == written
    bodies = [placed.entry.body for placed in log.order]
    kinds = Counter(body.what if isinstance(body, Withheld) else kind_of(body) for body in bodies)
    refused = Counter(one.kind for one in view.refused)
    assert kinds[EntryKind.SAID] == len(view.words) + refused[EntryKind.SAID]
    assert len({one.entry_id for one in view.refused}) == len(view.refused)
    assert view.seen == log.vector


@given(SEEDS, SIZES, LENGTHS)
def test_a_view_that_grew_is_the_view_of_the_whole(seed: int, size: int, length: int) -> None:
    net = happened(seed, size, length)
    whole = net.creator.log
    for person in net.people.values():
        assert person.view == fold(person.log)
        whole = whole.merged(person.log)
    log, reader = Log(MEETING, net.names[0]), LogReader()
    for entry in net.random.sample(list(whole), whole.size):
        log = log.added(entry)
        if net.random.random() < 0.3:
            assert reader.read(log) == fold(log)
    assert log == whole
    assert reader.read(log) == fold(whole)


@given(SEEDS, st.integers(2, 4), st.integers(0, 60), st.integers(0, 60))
def test_what_a_log_was_is_found_again_when_it_has_grown(seed: int, size: int, length: int, more: int) -> None:
    net = happened(seed, size, length)
    before = {name: (one.log.vector, one.view) for name, one in net.people.items()}
    for _ in range(more):
        net.step()
    for name, (vector, view) in before.items():
        log = net.people[name].log
        grown = Versions().empty(log.meeting, log.creator).added(log)
        earlier = grown.earlier(vector)
        assert earlier is not None
        assert (earlier.log.vector, earlier.view) == (vector, view)
        assert grown.view == net.people[name].view, "and it is what it was"
        assert grown.earlier({**log.vector, name: log.vector.get(name, 0) + 1}) is None, "nobody has this yet"


@given(SEEDS, SIZES, LENGTHS)
def test_an_ended_meeting_is_what_its_ending_participant_had_seen(seed: int, size: int, length: int) -> None:
    net, view = settled(seed, size, length)
    if view.ended_by in net.ended:
        changed = ("refused", "seen", "at", "phase", "over_at", "ended_by", "minutes")
        assert without(view, *changed) == without(net.ended[view.ended_by], *changed)
    if view.phase is Phase.ENDED:
        for person in [net.people[name] for name in view.present]:
            person.write(Said("more"))
            assert without(person.view, "refused", "seen", "at") == without(view, "refused", "seen", "at")


@given(SEEDS, SIZES, LENGTHS)
def test_a_late_participant_gets_everything_from_the_beginning(seed: int, size: int, length: int) -> None:
    net, view = settled(seed, size, length)
    late = Person("agent:ann/late", net.names[0])
    late.take(*net.creator.log.answer_to(late.log.digest()))
    assert late.view == view
    if not view.is_over and view.present:
        host = net.people[view.present[0]]
        host.write(Invited(late.address))
        late.meet(host)
        late.write(Joined())
        host.meet(late)
        assert late.view == host.view
        assert late.view.is_in(late.address)


@given(SEEDS, SIZES)
def test_every_meeting_begins_or_fails_whatever_goes_wrong(seed: int, size: int) -> None:
    net = happened(seed, size, 40)
    for _ in range(4 * size):
        net.settle()
        for person in net.people.values():
            person.now = max(person.now, NOON + 10_000_000)
            body = due(person.view, person.address, person.now, grace=0)
            if body is not None and person.view.phase is Phase.CALLING:
                net.post(person, body)
    net.settle()
    if net.creator.view.present:
        assert net.creator.view.phase is not Phase.CALLING
    decided = {net.people[name].view.decided_by for name in net.creator.view.present}
    assert len(decided) <= 1


@given(SEEDS, st.permutations(range(1, 10)))
def test_a_game_of_tic_tac_toe_comes_out_as_it_was_played(seed: int, cells: list[int]) -> None:
    net = Net(seed, 3)
    players, game = net.names[1:], TicTacToe()
    setting = {"players": players}
    net.post(net.creator, Called("Game", NOON + 10**9, tuple(players), game="tic-tac-toe", setting=setting))
    expected = game.initial(setting)
    for number, cell in enumerate(cells):
        if expected["next"]:
            expected = game.apply(expected, players[number % 2], {"cell": cell})
    for _ in range(200):
        for name in net.names:
            body = player_does(net, name, cells)
            if body is not None:
                net.post(net.people[name], body)
        net.deliver(4)
        net.meet(*net.random.sample(net.names, 2))
    net.settle()
    for person in net.people.values():
        assert game.drawn(person.view.state) == game.drawn(expected)
        assert person.view.outcome == game.outcome(expected)
        assert isinstance(person.view.outcome, Outcome)
        assert person.view.phase is Phase.ENDED


def player_does(net: Net, name: str, cells: list[int]) -> Accepted | Started | Moved | Ended | None:
    """Return the next act of a player or the host by its own view; the next cell is that of a list."""
    view = net.people[name].view
    if view.call is None or view.is_over:
        return None
    if view.phase is Phase.CALLING:
        if name != net.names[0]:
            return Accepted() if not view.is_in(name) else None
        return Started() if not view.awaited else None
    if view.outcome is not None:
        return Ended() if name == net.names[0] else None
    played = 9 - view.state["board"].count("")
    if view.head is None or name == net.names[0] or name != net.names[1 + played % 2]:
        return None
    return Moved(view.head, {"cell": cells[played]})


@given(SEEDS, SIZES, LENGTHS)
def test_every_floor_rule_agrees_with_what_was_let_through(seed: int, size: int, length: int) -> None:
    """Walks through the order once more: each word that counts was said by one who had the floor."""
    net, view = settled(seed, size, length)
    counted = {word.entry_id for word in view.words}
    log, reader = Log(MEETING, net.names[0]), LogReader()
    if any(placed.entry.kind in (EntryKind.KICKED, EntryKind.ENDED) for placed in net.creator.log.order):
        return  # These reach back, and what was let through at first need not have been in the end.
    for placed in net.creator.log.order:
        before = reader.read(log)
        log = log.added(placed.entry)
        if placed.entry.kind is EntryKind.SAID:
            is_full = view.call is not None and len(before.words) >= view.call.bounds.words
            allowed = placed.author in floor.speakers(before) and not is_full
            assert (placed.entry.id in counted) is allowed
            assert (
                before.rule is not FloorRule.FREE
                or before.phase is not Phase.RUNNING
                or allowed is (before.is_in(placed.author) and not is_full)
            )


@given(SEEDS, SIZES, LENGTHS, st.data())
def test_no_text_that_was_tampered_with_breaks_a_log(seed: int, size: int, length: int, data: st.DataObject) -> None:
    net = happened(seed, size, min(length, 30))
    log = net.creator.log
    text = to_json(data.draw(st.sampled_from([placed.entry for placed in log.order])))
    cut, junk = data.draw(st.integers(0, len(text))), data.draw(st.text(max_size=3))
    try:
        forged = from_json(text[:cut] + junk + text[cut + len(junk) :])
        grown = log.added(forged)
    except Invalid:
        return
    assert fold(grown) == fold(Log(log.meeting, log.creator).added(*reversed(list(grown))))
