"""Text of a message while it is being written."""

from __future__ import annotations

from roost.core.talks import side_channels as notes
from roost.core.talks.messages import Message
from roost.core.talks.side_channels import Note, Notes


class LiveText:
    """The text of a message while it is being written: appended to by one thread, read by any."""

    __slots__ = ("_joined", "_notes", "_parts", "_pieces", "length", "message", "noted")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._joined = (0, "")
        """Number of parts and their text; replaced as one, so that readers need no lock."""
        self.length = 0
        self._pieces: list[Note] = []
        self._notes: tuple[int, Notes] = (0, ())
        self.noted = 0
        self.message: Message | None = None

    def append(self, chunk: str) -> None:
        # In this order: a reader of the length finds at least that much text.
        self._parts.append(chunk)
        self.length += len(chunk)

    def note(self, piece: Note) -> None:
        self._pieces.append(piece)
        self.noted += len(piece.text)

    def text(self) -> str:
        known, text = self._joined
        count = len(self._parts)
        if count != known:
            text += "".join(self._parts[known:count])
            self._joined = (count, text)
        return text

    def notes(self) -> Notes:
        known, joined = self._notes
        count = len(self._pieces)
        if count != known:
            joined = notes.joined([*joined, *self._pieces[known:count]])
            self._notes = (count, joined)
        return joined

    def so_far(self) -> Message:
        m = self.message
        assert m is not None
        return Message(m.seq, m.sender, self.text(), m.status, m.created, m.error, m.run_id, self.notes())
