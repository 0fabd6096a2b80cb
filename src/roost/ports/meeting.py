"""Meetings as a brain sees them in a turn, with the methods to act in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, overload

from roost.core.meetings.effects import EndTurn
from roost.core.meetings.games import games
from roost.core.meetings.games.games import Game
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Declined,
    Ended,
    EntryId,
    FloorRule,
    Granted,
    Invited,
    Kicked,
    Left,
    Moved,
    Passed,
    Raised,
    Said,
)
from roost.core.meetings.log.entries import Vector
from roost.core.meetings.participants.attention import Attention, Why, attention, refusals, unheard
from roost.core.meetings.participants.participant_log import ParticipantLog
from roost.core.meetings.participants.seats import Seat
from roost.core.meetings.view import floor
from roost.core.meetings.view.play import mover
from roost.core.meetings.view.shown import moment
from roost.core.meetings.view.trails import Trail
from roost.core.meetings.view.view import ParticipantStatus, Refused, View, Word
from roost.core.talks.messages import Message
from roost.core.talks.messages import Status as MessageStatus
from roost.core.values.addresses import parse
from roost.errors import Forbidden, Invalid
from roost.ports.awaited import CreatedCoroutines, tracked

EARLIER = 30
"""Number of earlier messages in the prompt."""
Write = Callable[["Meeting", Body], Awaitable[None]]


class Meeting:
    """Meeting of a turn, `turn.meeting`. Actions are checked at once; Forbidden says why not, and what to do instead.

    Actions are sent to the others when the turn ends, or soon if the turn is long.
    """

    _coroutines: CreatedCoroutines | None = None
    """Coroutines that the brain has created, to detect those never awaited."""

    def __init__(self, seated: ParticipantLog, *, is_asked: bool) -> None:
        self.me = seated.participant
        self.meeting_id = seated.meeting_id
        self._seated = seated
        self._is_asked = is_asked
        self._owner = parse(self.me, "").user_id
        self._seat = Seat(self.me, seated.version)
        self._first = seated.version.view
        self._found: Attention | None = attention(self._first, self.me, seated.heard, seated.asked, is_asked=is_asked)
        self._heard: Vector = seated.heard
        self.new: tuple[Word, ...] = unheard(self._first, self.me, seated.heard)
        """Messages of others since the last turn."""
        self.refused: tuple[Refused, ...] = refusals(self._first, self.me, seated.heard)
        """Own entries that were refused since then, each with its `kind`, `text` and `reason`."""
        self.write: Write = _not_created_by_roost

    # --- looking ---------------------------------------------------------------------------------

    @property
    def why(self) -> Why | None:
        """Return the reason of the turn: invited, move, floor, opening, hands, over, refused, mentioned or words."""
        return self._found.why if self._found is not None else None

    @property
    def view(self) -> View:
        """Return the view of this participant, with its own entries of this turn."""
        return self._seat.view

    @property
    def topic(self) -> str:
        return self.view.call.topic if self.view.call else ""

    @property
    def attendees(self) -> tuple[str, ...]:
        """Return all participants and invited, the creator first."""
        return tuple(self.view.participants)

    @property
    def present(self) -> tuple[str, ...]:
        return self.view.present

    @property
    def chair(self) -> str | None:
        """Return the participant that may kick and end."""
        return self.view.chair

    @property
    def is_chair(self) -> bool:
        return self.view.chair == self.me

    @property
    def may_speak(self) -> bool:
        return self.me in floor.speakers(self.view)

    @property
    def mover(self) -> str | None:
        """Return the participant whose move it is, if any."""
        return mover(self.view)

    @property
    def my_move(self) -> bool:
        return self.mover == self.me

    @property
    def state(self) -> Any:
        """Return a copy of the state of the game, on which moves can be tried."""
        return deepcopy(self.view.state)

    @property
    def board(self) -> str:
        """Return the state of the game as text."""
        return games.drawn(self._game, self.view.state)

    @property
    def asked(self) -> str:
        """Return the question to the next player, in words."""
        return games.asked(self._game, self.view.state) if self.mover else ""

    @property
    def earlier(self) -> tuple[Word, ...]:
        """Return the newest messages before `new`, of all participants."""
        new = {word.entry_id for word in self.new}
        found = (word for word in reversed(self._first.words) if word.entry_id not in new)
        return tuple(reversed(list(islice(found, EARLIER))))

    @property
    def _game(self) -> Game | None:
        return GAMES.get(self.view.call.game) if self.view.call and self.view.call.game else None

    @property
    def _head(self) -> EntryId:
        """Return the entry that a move refers to."""
        return self.view.head or EntryId(self.view.creator, 1)

    @property
    def prompt(self) -> str:
        """Return the prompt for a model that takes part."""
        return _prompt(self)

    # --- acting ----------------------------------------------------------------------------------

    @tracked
    async def say(self, text: str, *, to: Sequence[str] = (), hand: bool = False) -> None:
        """Say something. `to`: participants to mention. `hand`: raise a hand to say more."""
        await self._do(Said(text, self._all(to), hand))

    @tracked
    async def move(self, move: Any) -> None:
        """Change the shared state by the rules of the game; tic-tac-toe takes `{"cell": 5}`."""
        await self._do(Moved(self._head, move))

    @tracked
    async def raise_hand(self) -> None:
        await self._do(Raised())

    @tracked
    async def grant(self, who: str) -> None:
        """Give a participant the floor, as the moderator."""
        await self._do(Granted(self._full(who)))

    @tracked
    async def pass_turn(self, who: str | None = None) -> None:
        """Skip the own turn; or, as the chair or the moderator, that of another participant."""
        await self._do(Passed(self.me if who is None else self._full(who)))

    @tracked
    async def invite(self, who: str, *, required: bool = False) -> None:
        await self._do(Invited(self._full(who), required))

    @tracked
    async def kick(self, who: str, reason: str = "") -> None:
        await self._do(Kicked(self._full(who), reason))

    @tracked
    async def decline(self, reason: str = "") -> None:
        """Decline an invitation."""
        await self._do(Declined(reason))

    @tracked
    async def leave(self, reason: str = "") -> None:
        await self._do(Left(reason))

    @tracked
    async def end(self, minutes: str = "") -> None:
        """End the meeting for all. Without `minutes`, they are generated from the log."""
        await self._do(Ended(minutes))

    async def _do(self, body: Body) -> None:
        await self.write(self, body)

    def _full(self, who: str) -> str:
        return parse(who, self._owner).text

    def _all(self, mentioned: Iterable[str]) -> tuple[str, ...]:
        if isinstance(mentioned, str):
            raise Invalid(f"`to` must be a list of addresses, not the text {mentioned!r:.80}")
        return tuple(self._full(address) for address in mentioned)

    # --- for the runtime -------------------------------------------------------------------------

    def note(self, body: Body, now: int) -> None:
        """Apply an entry to the view of this turn. Raises Forbidden if it is not allowed."""
        self._seat.write(body, now)

    def last_words(self, said: str, now: int, *, spoke: bool) -> list[Body]:
        """Return the entries that follow from the final text of the brain, or from its silence."""
        bodies: list[Body] = []
        if (move := self._move_in(said)) is not None:
            try:
                self.note(move, now)
                bodies.append(move)
            except Forbidden as refused:
                said = f"{said.strip()} (refused: {refused})"
        if self.why is Why.INVITED:
            entries: list[Body] = [Accepted()] if self._seat.status is ParticipantStatus.INVITED else []
        elif said.strip():
            wants_hand = self.view.rule in (FloorRule.RAISE_HAND, FloorRule.MODERATOR) and not self.may_speak
            entries = [Raised()] if wants_hand else [Said(said.strip())]
        else:
            passes = not spoke and self.why is Why.FLOOR and floor.holder(self.view) == self.me
            entries = [Passed(self.me)] if passes else []
        for body in entries:  # entries that are not allowed are recorded as refused
            with suppress(Forbidden):
                self.note(body, now)
        return bodies + entries

    def _move_in(self, said: str) -> Body | None:
        """Return the move that the text stands for, if it is its move: a brain that only speaks can play."""
        move = games.read(self._game, said) if self._game and self.my_move else None
        return Moved(self._head, move) if move is not None else None

    def end_of_turn(self, effect_id: str) -> EndTurn:
        if self._found is None:
            return EndTurn(effect_id, self.me, self.meeting_id, None, ())
        return EndTurn(effect_id, self.me, self.meeting_id, self._first.seen, self._found.keys)

    def position(self) -> dict[str, Any]:
        """Return the position of this turn in the log, to find it again when the log has grown."""
        seated = self._seated
        seen, heard = seated.version.log.vector, seated.heard
        return {"seen": seen, "heard": dict(heard), "asked": list(seated.asked), "is_asked": self._is_asked}

    def at_position(self, position: Mapping[str, Any]) -> Meeting | None:
        """Return the meeting at that position; None if the log does not reach back to it."""
        version = self._seated.version.earlier(position["seen"])
        if version is None:
            return None
        seated = replace(self._seated, version=version, heard=position["heard"], asked=tuple(position["asked"]))
        return Meeting(seated, is_asked=position["is_asked"])

    def messages(self) -> tuple[Message, ...]:
        before = len(self._first.words) - len(self.new)
        return tuple(_message(word, number) for number, word in enumerate(self.new, before + 1))

    def history(self) -> Sequence[Message]:
        return Words(self._first.words, self.new) if len(self._first.words) > len(self.new) else ()


class Words(Sequence[Message]):
    """Sequence of the earlier messages, converted when they are read."""

    def __init__(self, words: Trail[Word], new: Sequence[Word]) -> None:
        self._all = words
        self._new = new

    @cached_property
    def _words(self) -> tuple[Word, ...]:
        new = {word.entry_id for word in self._new}
        return tuple(word for word in self._all if word.entry_id not in new)

    def __len__(self) -> int:
        return len(self._all) - len(self._new)

    @overload
    def __getitem__(self, position: int) -> Message: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Message]: ...

    def __getitem__(self, position: int | slice) -> Message | Sequence[Message]:
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        return _message(self._words[position], range(len(self))[position] + 1)


def _message(word: Word, number: int) -> Message:
    return Message(number, word.author, word.text, MessageStatus.COMPLETE, moment(word.at))


_EXPECTED = {
    Why.INVITED: "You are invited. Say nothing to come, or decline.",
    Why.MOVE: "It is your move.",
    Why.FLOOR: "You have the floor: say something, or nothing to pass it on.",
    Why.OPENING: "The meeting has begun, and it is for you to open it.",
    Why.HANDS: "Hands are up: give somebody the floor.",
    Why.OVER: "The game is over: say what came of it, and end the meeting.",
    Why.REFUSED: "Say or do it again when you may; say nothing to leave it.",
    Why.MENTIONED: "You were mentioned.",
    Why.WORDS: "Answer if you have something to say; else say nothing.",
}


def _prompt(meeting: Meeting) -> str:
    view = meeting.view
    lines = [f"You are {meeting.me} in the meeting {meeting.topic!r} ({meeting.meeting_id}), called by {view.creator}."]
    lines += [f"There: {', '.join(view.present)}. The chair is {view.chair}. Floor: {view.rule}."]
    if view.floor.hands:
        lines.append(f"Hands up: {', '.join(view.floor.hands)}.")
    if meeting.board:
        lines += ["", meeting.board]
    if meeting.earlier:
        lines += ["", "Said before:", *map(_line, meeting.earlier)]
    if meeting.new:
        lines += ["", "New:", *map(_line, meeting.new)]
    if meeting.refused:
        lines += ["", "Refused, and not heard by anyone:", *map(_refusal, meeting.refused)]
    if meeting.why is not None:
        asked = meeting.asked if meeting.my_move else ""
        again = "You did not move in time: if that happens again, you lose." if asked and view.misses else ""
        lines += ["", " ".join(filter(None, (_EXPECTED[meeting.why], asked, again)))]
    return "\n".join(lines)


def _line(word: Word) -> str:
    return f"{word.author}: {word.text}"


def _refusal(refused: Refused) -> str:
    return f"You {refused.kind}: {refused.text}\nReason: {refused.reason}"


async def _not_created_by_roost(meeting: Meeting, body: Body) -> None:
    raise Invalid("this meeting cannot act: it was not created by Roost")
