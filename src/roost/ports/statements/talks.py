"""The operations of the store for talks: what people say there, and what answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from roost.core.messages import Message
from roost.core.runs import Claimed, Closing, Halted, Loaded, Opened, Posted, Settled
from roost.core.talks import Talk
from roost.ports.store import Tx


class TalkStatements(Protocol):
    """Talks themselves. A talk that is not this user's is `NotFound`, as is one that does not exist."""

    def create(
        self,
        tx: Tx,
        talk_id: str,
        user_id: str,
        profile: str,
        busy: str,
        title: str,
        options: str,
        most: int,
        agent: str = ...,
        /,
    ) -> Loaded:
        """Raises LimitReached when the user has `most` talks already."""
        ...

    def get(self, tx: Tx, user_id: str, talk_id: str, /) -> Talk: ...

    def listed(self, tx: Tx, user_id: str, limit: int, before: str | None, /) -> list[Talk]:
        """The user's talks, last used first; with `before` those that come after that one in this order."""
        ...

    def change(self, tx: Tx, user_id: str, talk_id: str, values: Mapping[str, str], /) -> Talk:
        """Set `title`, `profile`, `busy` or `options`."""
        ...

    def delete(self, tx: Tx, user_id: str, talk_id: str, /) -> None:
        """With everything that belongs to it."""
        ...

    def load(self, tx: Tx, user_id: str, talk_id: str, tail: int, /) -> Loaded: ...


class MessageStatements(Protocol):
    def post(
        self, tx: Tx, user_id: str, talk_id: str, content: str, key: str | None, busy: str | None, title: str,
        envelope_id: str, quiet: float, most: int, /,
    ) -> Posted:  # fmt: skip
        """Add a person's message and its envelope, and supersede the run of the lane where the policy says so.

        The same key again gives the message that is there and changes nothing; with other content it is a
        Conflict. Raises Busy where the policy is `reject` and the talk is being answered, LimitReached when
        `most` messages wait, NotFound where the talk is with another's agent that is not shared (any more).
        """
        ...

    def before(self, tx: Tx, user_id: str, talk_id: str, seq: int, limit: int, /) -> list[Message]:
        """The messages just before `seq`, in order."""
        ...

    def changed(self, tx: Tx, user_id: str, talk_id: str, revision: int, position: int, limit: int, /) -> list[Message]:
        """What was changed after `revision`, in order of number, after the message `position`."""
        ...


class RunStatements(Protocol):
    """What runs write. Each proves by the talk's epoch that it still may."""

    def open_answer(
        self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = ..., /
    ) -> Opened | None:
        """Give the run's answer its number, with its first words and notes; one that has its number keeps it.

        None: the run was superseded before it said any.
        """
        ...

    def checkpoint(
        self, tx: Tx, talk_id: str, run_id: str, epoch: int, part: int, content: str, notes: str = ..., /
    ) -> None:
        """Keep what was said since the last checkpoint, as part 1, 2, 3 …

        Nothing happens if the run was superseded, or if the part before could not be kept.
        """
        ...

    def split_answer(self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = ..., /) -> Settled:
        """End the message being written, while its run goes on in a new one."""
        ...

    def settle(self, tx: Tx, closing: Closing, /) -> Settled:
        """End a run: its message, its envelopes, its record and the talk's state, all at once.

        A superseded run may close the message it had opened, as interrupted, and nothing else; if it had
        not opened one, or had said nothing but notes, its envelopes stay for the run that comes after it.
        """
        ...

    def rest(self, tx: Tx, closing: Closing, /) -> Settled:
        """Put a run to rest that waits for a person: its answer stays open, and all of the lane waits with it.

        What it is about is `left`, to be run again at once, if they have decided meanwhile.
        """
        ...

    def stop(self, tx: Tx, user_id: str, talk_id: str, /) -> Halted:
        """Supersede the run of a talk and drop all that waits for an answer there."""
        ...

    def unfinished(self, tx: Tx, after: str, limit: int, /) -> list[tuple[str, str, str]]:
        """Talks with something to handle or to close, by id: (talk, user, the agent it is with or nothing)."""
        ...

    def used(self, tx: Tx, day: str, profile: str, /) -> int:
        """How many tokens the profile has used on that day, by the runs that are settled."""
        ...

    def claim(self, tx: Tx, talk_id: str, /) -> Claimed | None:
        """Take a lane over: count the attempt, close what was being written, give the envelopes. None: no such talk."""
        ...
