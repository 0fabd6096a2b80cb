"""Minutes: a meeting as text, the same for equal views."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.core.meetings.games.games import Games, drawn
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.view.view import Going, ParticipantStatus, Phase, View, Word


def minutes(view: View, games: Games = GAMES) -> str:
    """Return the minutes: topic, time, participants, messages, result; then those written by the one that ended it."""
    parts = [
        _head(view),
        _people(view),
        _goings(view),
        _said(view),
        _result(view, games),
        view.minutes and _under("Minutes", view.minutes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(view: View) -> str:
    topic = view.call.topic if view.call else view.meeting
    lines = [f"# {topic}", "", f"Called by {view.creator}{_at(view.called_at)}."]
    if view.began_at is not None:
        lines.append(f"Began{_at(view.began_at)}.")
    if view.phase is Phase.FAILED:
        lines.append(f"Failed{_at(view.over_at)}: {_indented(view.reason)}")
    if view.ended_by is not None:
        lines.append(f"Ended{_at(view.over_at)} by {view.ended_by.author}.")
    return "\n".join(lines)


def _people(view: View) -> str:
    lines = []
    for participant in view.participants.values():
        status = "there" if participant.status is ParticipantStatus.IN else participant.status
        lines.append(
            f"- {participant.address}: {status}{f' ({_indented(participant.reason)})' if participant.reason else ''}"
        )
    return _under("Participants", "\n".join(lines)) if lines else ""


def _goings(view: View) -> str:
    """Return who declined, left, was kicked or came back, with times."""
    return _under("Came and went", "\n".join(map(_going, view.goings))) if len(view.goings) else ""


def _going(going: Going) -> str:
    verb = {ParticipantStatus.IN: "came back", ParticipantStatus.KICKED: f"was kicked by {going.by}"}.get(
        going.status, str(going.status)
    )
    return f"- {_moment(going.at):%H:%M:%S} {going.who} {verb}{f': {_indented(going.reason)}' if going.reason else ''}"


def _said(view: View) -> str:
    return _under("Said", "\n".join(_line(word) for word in view.words)) if len(view.words) else ""


def _line(word: Word) -> str:
    return f"- {_moment(word.at):%H:%M:%S} {word.author}: {_indented(word.text)}"


def _result(view: View, games: Games) -> str:
    game = games.get(view.call.game) if view.call and view.call.game else None
    if game is None:
        return ""
    unfinished = "It is being played." if view.phase is Phase.RUNNING else "It was not played to its end."
    how = view.outcome.text if view.outcome else unfinished
    return _under("Result", f"{how}\n\n{_indented(f'    {drawn(game, view.state)}')}")


def _under(heading: str, text: str) -> str:
    return f"## {heading}\n\n{text}"


def _indented(text: str) -> str:
    """Indent a text, so that its lines do not look like lines of the minutes."""
    return "\n    ".join(text.splitlines())


def _at(ms: int | None) -> str:
    return f" at {_moment(ms):%Y-%m-%d %H:%M:%S} UTC" if ms is not None else ""


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC)
