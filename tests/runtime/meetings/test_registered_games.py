"""M7: registered games: every view applies their rules, and their exceptions stop no meeting."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import roost
from examples.nim import Nim, player
from roost import AsyncAgentService, Turn
from roost.core.meetings.games import registry as catalogue
from roost.hosts.pending import drive
from roost.ports import Tx
from roost.testing import check_game, eventually
from tests.runtime.meetings.meeting_rooms import BRAINS, all_see, play, seen, team

SETTING = {"players": ["agent:a", "agent:b"], "sticks": 10}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has the built-in games alone at first."""
    known = {"tic-tac-toe": catalogue.GAMES["tic-tac-toe"]}
    before = dict(catalogue._KNOWN)
    catalogue._KNOWN.clear()
    catalogue._KNOWN.update(known)
    yield
    catalogue._KNOWN.clear()
    catalogue._KNOWN.update(before)


def test_a_registered_game_is_played_and_seen_alike_by_all() -> None:
    roost.register_game("nim", Nim())

    async def story(s: AsyncAgentService) -> None:
        a, b = await team(s, "a", "b", profile="nim")
        meeting = await s.meetings.call("ann", "nim", required=[a, b], game="nim", setting=SETTING)
        view = await all_see(s, meeting, ["user:ann", a, b], lambda view: view.outcome)
        assert (view.winner, view.state["sticks"], view.board) == (a, 0, "")
        with pytest.raises(roost.Forbidden, match="the game is over"):
            await s.meetings.move("ann", meeting, {"take": 1}, by="agent:a")

    play(story, {**BRAINS, "nim": player})


def test_open_registers_games_and_a_meeting_survives_a_start_without_its_game(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/games.db"
    with roost.open(url, brains={"silent": BRAINS["silent"]}, games={"nim": Nim()}) as service:
        service.agents.create_many("ann", ["a", "b"], profile="silent")
        meeting = service.meetings.call(
            "ann", "nim", required=["agent:a", "agent:b"], game="nim", setting=SETTING, turn_timeout=0.3, max_misses=50
        )
        eventually(lambda: service.meetings.view("ann", meeting).phase == "running")
    del catalogue._KNOWN["nim"]
    with roost.open(url, brains={"silent": BRAINS["silent"]}) as service:
        with pytest.raises(roost.Unavailable, match="plays 'nim', which is not registered in this program: give it as"):
            service.meetings.view("ann", meeting)
        with pytest.raises(roost.Unavailable, match="not registered"):
            service.meetings.say("ann", meeting, "hello?")
        eventually(lambda: next_look(service) > 60.0)  # she has looked, to see who has missed a move
        assert [(one.phase, one.status) for one in service.meetings.list("ann")] == [("running", "in")]
    with roost.open(url, brains={"silent": BRAINS["silent"]}, games={"nim": Nim()}) as service:
        service.meetings.say("ann", meeting, "on we go")
        service.meetings.move("ann", meeting, {"take": 2}, by="agent:a")
        view = service.meetings.view("ann", meeting)
        assert (view.phase, view.state["sticks"], len(view.present)) == ("running", 8, 3)


def next_look(service: roost.AgentService) -> float:
    """In how many seconds ann looks at her meeting."""
    shop = service.roost.context

    def due(tx: Tx) -> float:
        [[found]] = tx.read("SELECT due FROM timers WHERE address = 'user:ann'")
        return float(found)

    async def look() -> float:
        return await shop.store.read(due) - shop.host.clock.now()

    return drive(look())


class Broken(Nim):
    """Fails in all that is not a rule, and changes what it is given."""

    def apply(self, state: Any, author: str, move: Any) -> Any:
        after = super().apply(dict(state), author, move)
        state["sticks"] = -1
        return after

    def drawn(self, state: Any) -> str:
        state["sticks"] = 99
        raise RuntimeError("no paper")

    def asked(self, state: Any) -> str:
        raise RuntimeError("no voice")

    def read(self, text: str) -> Any:
        raise RuntimeError("no glasses")

    def forfeit(self, state: Any, who: str) -> roost.Outcome:
        raise RuntimeError("no rules")


def test_a_game_that_raises_does_not_stop_the_meeting() -> None:
    roost.register_game("broken", Broken())

    async def talking(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "meeting" and turn.meeting.my_move and turn.meeting.state["sticks"] > 8:
            await turn.meeting.move({"take": 1})
            yield f"{len(turn.meeting.prompt) > 0}"

    async def story(s: AsyncAgentService) -> None:
        a, b = await team(s, "a", "b", profile="talking")
        meeting = await s.meetings.call(
            "ann", "nim", required=[a, b], game="broken", setting=SETTING, turn_timeout=5, max_misses=1
        )
        view = await seen(s, meeting, lambda view: view.outcome)
        assert (view.state["sticks"], view.outcome) == (8, "agent:ann/a did not move: nobody wins.")
        assert view.board == "(the game failed with RuntimeError)"
        assert "no paper" not in await s.meetings.minutes("ann", meeting)

    play(story, {**BRAINS, "talking": talking})


def test_what_is_no_game_is_refused_when_it_is_registered() -> None:
    with pytest.raises(roost.Invalid, match="the game 'nim' is a class: give an instance of it"):
        roost.register_game("nim", cast("roost.Game", Nim))
    with pytest.raises(roost.Invalid, match=r"the game 'x' lacks initial, apply, outcome, mover, .*roost.Game"):
        roost.register_game("x", cast("roost.Game", object()))
    with pytest.raises(
        roost.Conflict, match="the name 'tic-tac-toe' belongs to another game, TicTacToe: choose another name"
    ):
        roost.register_game("tic-tac-toe", Nim())
    roost.register_game("nim", Nim())
    roost.register_game("nim", Nim())


def test_a_game_is_named_in_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_games.py").write_text("from examples.nim import Nim\nnothing = 3\n")
    config = tmp_path / "roost.toml"
    monkeypatch.setattr(sys, "path", list(sys.path))
    for named, why in [
        ("nowhere:Nim", "cannot be loaded"),
        ("my_games:Chess", "has no 'Chess'"),
        ("my_games:nothing", "lacks initial"),
    ]:
        config.write_text(f'store = "sqlite:///{tmp_path}/roost.db"\n[games]\nnim = "{named}"\n')
        with pytest.raises(roost.Invalid, match=why):
            roost.open(config=config)
    config.write_text("[games]\nnim = 'my_games.Nim'\n")
    with pytest.raises(roost.Invalid, match=r"games.nim must be module:name, a class derived from roost.Game"):
        roost.open(config=config)
    config.write_text(f'store = "sqlite:///{tmp_path}/roost.db"\n[games]\nnim = "my_games:Nim"\n')
    with roost.open(config=config) as service:
        service.agents.create_many("ann", ["a", "b"], profile="echo")
        service.meetings.call("ann", "nim", required=["agent:a", "agent:b"], game="nim", setting=SETTING)


class Moody(Nim):
    """Counts how often it was asked, which no rules may."""

    def __init__(self) -> None:
        self.calls = 0

    def apply(self, state: Any, author: str, move: Any) -> Any:
        self.calls += 1
        return {**super().apply(state, author, move), "mood": self.calls}


def test_rules_that_depend_on_more_than_they_are_given_are_found() -> None:
    setting = {"players": ["a", "b"], "sticks": 4}
    assert check_game(Nim(), setting, [("a", {"take": 3}), ("b", {"take": 1})])["sticks"] == 0
    with pytest.raises(roost.Invalid, match="it is the turn of a"):
        check_game(Nim(), setting, [("b", {"take": 3})])
    with pytest.raises(AssertionError, match=r"Moody.apply gave .* for the same"):
        check_game(Moody(), setting, [("a", {"take": 3})])
