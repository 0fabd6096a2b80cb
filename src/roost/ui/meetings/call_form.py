"""Form that calls a meeting."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roost.core.meetings.games.registry import GAMES
from roost.errors import Invalid
from roost.ui.callbacks import once, uninterrupted
from roost.ui.meetings import people, status
from roost.ui.shell import actions, frame, live, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.text import parsed_json

_TOPIC, _REQUIRED, _OPTIONAL, _FLOOR, _MODERATOR = (
    f"call_{name}" for name in ("topic", "required", "optional", "floor", "moderator")
)
_GAME, _PLAYERS, _SETTING, _OPEN, _DEADLINE = (
    f"call_{name}" for name in ("game", "players", "setting", "open", "deadline")
)
_WORDS, _MOVES, _TURN, _BY, _X, _O = (f"call_{name}" for name in ("words", "moves", "turn", "by", "x", "o"))
MOST_WORDS = 10_000


def draw(visit: Visit) -> None:
    """Draw the form; a meeting that was called is opened."""
    frame.draw(visit, Route.MEETINGS, "Call a meeting")
    people.back()
    live.draw(visit, lambda: _form(visit))


def _form(visit: Visit) -> None:
    offered = people.options(visit)
    with st.container(key="call_form", width=720):
        st.text_input("Topic", key=_TOPIC, max_chars=200, placeholder="What the meeting is about")
        people.several(
            "Required participants",
            offered,
            visit,
            key=_REQUIRED,
            help="The meeting begins when all of them have joined, and fails if one declines or does not answer.",
        )
        people.several(
            "Optional participants", offered, visit, key=_OPTIONAL, help="They are not waited for, and may join late."
        )
        _floor(visit)
        _game(visit)
        st.toggle("Open: anyone who knows its URL may join", key=_OPEN)
        _more(visit)
        st.button("Call meeting", key="call", type="primary", on_click=once(_call), args=(visit,))


def _floor(visit: Visit) -> None:
    st.radio(
        "Who may speak",
        list(status.FLOORS),
        format_func=lambda rule: status.FLOORS[rule][0],
        captions=[sentence for _, sentence in status.FLOORS.values()],
        key=_FLOOR,
    )
    if st.session_state[_FLOOR] == "moderator":
        people.one(
            "Moderator", _invited(visit), visit, key=_MODERATOR, placeholder="You, as the one who calls the meeting"
        )


def _game(visit: Visit) -> None:
    game = st.selectbox("Game", sorted(GAMES), index=None, key=_GAME, placeholder="No game", accept_new_options=True)
    if not game:
        return
    if game == status.TICTACTOE:
        _sides(visit)
        return
    people.several("Players, in the order of their moves", _invited(visit), visit, key=_PLAYERS)
    st.text_input("Setting of the game", key=_SETTING, placeholder='{"to": 5}', help="A JSON object.")


def _sides(visit: Visit) -> None:
    """Draw who plays which mark: at first the user against the first other participant."""
    _fill_sides(visit)
    for key, label in ((_X, "Plays X, and begins"), (_O, "Plays O")):
        people.one(label, _invited(visit), visit, key=key, placeholder="A participant")


def _fill_sides(visit: Visit) -> None:
    """Choose who plays where nobody is chosen, also if the form is sent before the fields are drawn."""
    for key, who in zip((_X, _O), _invited(visit), strict=False):
        st.session_state[key] = st.session_state.get(key) or who  # each time: one that is set once may be lost


def _invited(visit: Visit) -> list[str]:
    """Return the participants that the form has now, the user first."""
    chosen = [*st.session_state.get(_REQUIRED, ()), *st.session_state.get(_OPTIONAL, ())]
    return list(dict.fromkeys([f"user:{visit.user}", *people.addresses(chosen)]))


def _more(visit: Visit) -> None:
    with st.expander("More"):
        st.number_input("Deadline in seconds", 1, 86_400, 60, key=_DEADLINE)
        st.number_input(
            "Most messages",
            1,
            MOST_WORDS,
            None,
            key=_WORDS,
            placeholder="The usual limit",
            help="Then the meeting ends.",
        )
        st.number_input("Most moves of a game", 1, 10_000, 100, key=_MOVES)
        st.number_input(
            "Seconds for a turn or a move", 0, 86_400, 300, key=_TURN, help="Then it is passed, or missed. 0: no limit."
        )
        people.one(
            "Called by",
            people.options(visit, with_self=False),
            visit,
            key=_BY,
            placeholder="You, or one of your agents",
        )


@uninterrupted
def _call(visit: Visit) -> None:
    try:
        options = _options(visit)
    except Invalid as error:
        actions.report(error)
        return

    def call() -> None:
        topic = str(st.session_state[_TOPIC]).strip()
        navigation.show(meeting=visit.service.meetings.call(visit.user, topic, **options))

    if actions.attempt(call):
        _forget()


def _options(visit: Visit) -> dict[str, Any]:
    state = st.session_state
    if not str(state[_TOPIC]).strip():
        raise Invalid("the topic is missing: say what the meeting is about")
    by, moderator, game = (state.get(key) for key in (_BY, _MODERATOR, _GAME))
    options = {
        "required": people.addresses(state[_REQUIRED]),
        "optional": people.addresses(state[_OPTIONAL]),
        "floor": state[_FLOOR],
        "open": bool(state[_OPEN]),
        "deadline": float(state[_DEADLINE]),
        "max_words": state[_WORDS],
        "max_moves": state[_MOVES],
        "turn_timeout": float(state[_TURN]),
        "by": people.address(by) if by else None,
    }
    if moderator and state[_FLOOR] == "moderator":
        options["moderator"] = people.address(moderator)
    return options | ({"game": game, "setting": _setting(visit)} if game else {})


def _setting(visit: Visit) -> dict[str, Any]:
    state = st.session_state
    is_board = state[_GAME] == status.TICTACTOE
    if is_board:
        _fill_sides(visit)
    players = people.addresses([state.get(_X) or "", state.get(_O) or ""] if is_board else state.get(_PLAYERS))
    text = "" if is_board else str(state.get(_SETTING) or "").strip()
    problem = 'the setting of the game is not a JSON object, such as {"to": 5}'
    more = parsed_json(text, problem) if text else {}
    if not isinstance(more, dict):
        raise Invalid(problem)
    return more | ({"players": players} if players else {})


def _forget() -> None:
    """Empty the form."""
    for key in [key for key in st.session_state if str(key).startswith("call_")]:
        del st.session_state[key]
