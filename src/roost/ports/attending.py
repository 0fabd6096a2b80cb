"""Attending: a meeting as the brain of a participant has it in a turn, to look at and to act in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, overload

from roost.core.addresses import parse
from roost.core.meetings import floor
from roost.core.meetings.attention import Attention, Why, attention, unheard
from roost.core.meetings.bodies import (
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
from roost.core.meetings.catalogue import GAMES
from roost.core.meetings.effects import EndTurn
from roost.core.meetings.entries import Vector
from roost.core.meetings.games import Game
from roost.core.meetings.play import mover
from roost.core.meetings.seats import Seat
from roost.core.meetings.shown import moment
from roost.core.meetings.trails import Trail
from roost.core.meetings.view import Status, View, Word
from roost.core.messages import Message
from roost.core.messages import Status as MessageStatus
from roost.errors import Forbidden, Invalid
from roost.ports.statements.meetings import Seated

EARLIER = 30
"""How many earlier words are told to a model."""
Write = Callable[["Meeting", Body], Awaitable[None]]


class Meeting:
    """`turn.meeting`. Whatever it does is checked at once: Forbidden says why not, and what to do instead.

    What is done is told to the others when the turn ends, or in a moment if it does not.
    """

    def __init__(self, seated: Seated, *, is_asked: bool) -> None:
        self.me = seated.participant
        self.meeting_id = seated.meeting_id
        self._seated = seated
        self._is_asked = is_asked
        self._owner = parse(self.me, "").user_id
        self._seat = Seat(self.me, seated.version)
        self._first = seated.version.view
        self._found: Attention | None = attention(
            self._first, self.me, seated.heard, seated.asked, is_asked=is_asked
        )  # fmt: skip
        self._heard: Vector = seated.heard
        self.new: tuple[Word, ...] = unheard(self._first, self.me, seated.heard)
        """What others said since the last turn."""
        self.write: Write = _made_by_hand

    # --- looking ---------------------------------------------------------------------------------

    @property
    def why(self) -> Why | None:
        """Why it is asked: invited, move, floor, opening, hands, over, mentioned or words."""
        return self._found.why if self._found is not None else None

    @property
    def view(self) -> View:
        """The meeting as this participant sees it, with what it did in this turn."""
        return self._seat.view

    @property
    def topic(self) -> str:
        return self.view.call.topic if self.view.call else ""

    @property
    def attendees(self) -> tuple[str, ...]:
        """All who are there or were asked to come, the creator first."""
        return tuple(self.view.participants)

    @property
    def present(self) -> tuple[str, ...]:
        return self.view.present

    @property
    def chair(self) -> str | None:
        """Who may kick and end."""
        return self.view.chair

    @property
    def is_chair(self) -> bool:
        return self.view.chair == self.me

    @property
    def may_speak(self) -> bool:
        return self.me in floor.speakers(self.view)

    @property
    def mover(self) -> str | None:
        """Whose move it is, if the game says so."""
        return mover(self.view)

    @property
    def my_move(self) -> bool:
        return self.mover == self.me

    @property
    def state(self) -> Any:
        """What the game has made of the moves; a copy, on which moves can be tried."""
        return deepcopy(self.view.state)

    @property
    def board(self) -> str:
        """The same as a text."""
        return self._game.drawn(self.view.state) if self._game else ""

    @property
    def asked(self) -> str:
        """What whoever is to move is asked for, in words."""
        return self._game.asked(self.view.state) if self._game and self.mover else ""

    @property
    def earlier(self) -> tuple[Word, ...]:
        """The newest of what was said before that, by others and by itself."""
        new = {word.entry_id for word in self.new}
        found = (word for word in reversed(self._first.words) if word.entry_id not in new)
        return tuple(reversed(list(islice(found, EARLIER))))

    @property
    def _game(self) -> Game | None:
        return GAMES.get(self.view.call.game) if self.view.call and self.view.call.game else None

    @property
    def _head(self) -> EntryId:
        """What a move answers."""
        return self.view.head or EntryId(self.view.creator, 1)

    @property
    def prompt(self) -> str:
        """All that a model needs to know to take part."""
        return _prompt(self)

    # --- acting ----------------------------------------------------------------------------------

    async def say(self, text: str, *, to: Sequence[str] = (), hand: bool = False) -> None:
        """`to`: who is mentioned. `hand`: there is more to say after this."""
        await self._do(Said(text, self._all(to), hand))

    async def move(self, move: Any) -> None:
        """Change the shared state by the rules of the game; tic-tac-toe takes `{"cell": 5}`."""
        await self._do(Moved(self._head, move))

    async def raise_hand(self) -> None:
        await self._do(Raised())

    async def grant(self, who: str) -> None:
        """Give somebody the floor, as the moderator."""
        await self._do(Granted(self._full(who)))

    async def pass_turn(self, who: str | None = None) -> None:
        """Let one's own turn go by; or, as the chair or the moderator, somebody else's."""
        await self._do(Passed(self.me if who is None else self._full(who)))

    async def invite(self, who: str, *, required: bool = False) -> None:
        await self._do(Invited(self._full(who), required))

    async def kick(self, who: str, reason: str = "") -> None:
        await self._do(Kicked(self._full(who), reason))

    async def decline(self, reason: str = "") -> None:
        """Do not come, when asked about an invitation."""
        await self._do(Declined(reason))

    async def leave(self, reason: str = "") -> None:
        await self._do(Left(reason))

    async def end(self, minutes: str = "") -> None:
        """End the meeting for all; without `minutes` there are those made from what was said."""
        await self._do(Ended(minutes))

    async def _do(self, body: Body) -> None:
        await self.write(self, body)

    def _full(self, who: str) -> str:
        return parse(who, self._owner).text

    def _all(self, whom: Iterable[str]) -> tuple[str, ...]:
        if isinstance(whom, str):
            raise Invalid(f"those mentioned must be a list of addresses, not the text {whom!r:.80}")
        return tuple(self._full(one) for one in whom)

    # --- for the runtime -------------------------------------------------------------------------

    def note(self, body: Body, now: int) -> None:
        """It is done, as far as this turn sees it. Raises Forbidden if it may not be."""
        self._seat.write(body, now)

    def last_words(self, said: str, now: int, *, spoke: bool) -> list[Body]:
        """What comes of what the brain has said at last, or has not, when its turn is over."""
        bodies: list[Body] = []
        if (meant := self._meant(said)) is not None:
            try:
                self.note(meant, now)
                bodies.append(meant)
            except Forbidden as refused:
                said = f"{said.strip()} (refused: {refused})"
        if self.why is Why.INVITED:
            wanted: list[Body] = [Accepted()] if self._seat.status is Status.INVITED else []
        elif said.strip():
            wants_hand = self.view.rule in (FloorRule.RAISE_HAND, FloorRule.MODERATOR) and not self.may_speak
            wanted = [Raised()] if wants_hand else [Said(said.strip())]
        else:
            passes = not spoke and self.why is Why.FLOOR and floor.holder(self.view) == self.me
            wanted = [Passed(self.me)] if passes else []
        for body in wanted:
            try:
                self.note(body, now)
            except Forbidden:
                continue
            bodies.append(body)
        return bodies

    def _meant(self, said: str) -> Body | None:
        """The move that its words stand for, if it is to move and has not: whoever can only speak can play."""
        move = self._game.read(said) if self._game and self.my_move else None
        return Moved(self._head, move) if move is not None else None

    def end_of_turn(self, effect_id: str) -> EndTurn:
        if self._found is None:
            return EndTurn(effect_id, self.me, self.meeting_id, None, ())
        return EndTurn(effect_id, self.me, self.meeting_id, self._first.seen, self._found.keys)

    def given(self) -> dict[str, Any]:
        """What tells how the meeting was when this turn began: in a log that has grown since, it is found by it."""
        one = self._seated
        seen, heard = one.version.log.vector, one.heard
        return {"seen": seen, "heard": dict(heard), "asked": list(one.asked), "is_asked": self._is_asked}

    def as_given(self, given: Mapping[str, Any]) -> Meeting | None:
        """As it was then; None: its log does not go back to that."""
        version = self._seated.version.earlier(given["seen"])
        if version is None:
            return None
        told = replace(self._seated, version=version, heard=given["heard"], asked=tuple(given["asked"]))
        return Meeting(told, is_asked=given["is_asked"])

    def messages(self) -> tuple[Message, ...]:
        before = len(self._first.words) - len(self.new)
        return tuple(_message(word, number) for number, word in enumerate(self.new, before + 1))

    def history(self) -> Sequence[Message]:
        return Words(self._first.words, self.new) if len(self._first.words) > len(self.new) else ()


class Words(Sequence[Message]):
    """Words but for the new ones, as messages; made when they are looked at."""

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
    def __getitem__(self, place: int) -> Message: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Message]: ...

    def __getitem__(self, place: int | slice) -> Message | Sequence[Message]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return _message(self._words[place], range(len(self))[place] + 1)


def _message(word: Word, number: int) -> Message:
    return Message(number, word.author, word.text, MessageStatus.COMPLETE, moment(word.at))


_EXPECTED = {
    Why.INVITED: "You are invited. Say nothing to come, or decline.",
    Why.MOVE: "It is your move.",
    Why.FLOOR: "You have the floor: say something, or nothing to pass it on.",
    Why.OPENING: "The meeting has begun, and it is for you to open it.",
    Why.HANDS: "Hands are up: give somebody the floor.",
    Why.OVER: "The game is over: say what came of it, and end the meeting.",
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
    if meeting.why is not None:
        asked = meeting.asked if meeting.my_move else ""
        again = "You did not move in time: if that happens again, you lose." if asked and view.misses else ""
        lines += ["", " ".join(filter(None, (_EXPECTED[meeting.why], asked, again)))]
    return "\n".join(lines)


def _line(word: Word) -> str:
    return f"{word.author}: {word.text}"


async def _made_by_hand(meeting: Meeting, body: Body) -> None:
    raise Invalid("this meeting has no means to act: it was made by hand")
