"""Messages as the list shows them: plain JSON with safe HTML, rendered once for all readers of a talk."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import LEFT_OUT, Channel, Notes, waited_for
from roost.ui.messages.tool_cards import result_cards, tool_cards
from roost.ui.rendering.blocks import Blocks
from roost.ui.text import file_size, sentence

KEPT = 32 * 1024 * 1024
"""Characters of views in RAM."""
FILES = "/api/v1/attachments/"
"""Path of the files of messages, which the browser's cookie opens."""
UNFINISHED = "The answer could not be completed."


@dataclass(frozen=True, slots=True)
class MessageView:
    """One state of a message. `text` and `notes` are blocks of HTML; the other fields are plain text."""

    seq: int
    fields: Mapping[str, object]
    text: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        source = self.fields.get("source")
        return 500 + sum(map(len, self.text + self.notes)) + (len(source) if isinstance(source, str) else 0)

    def as_json(self, known: MessageView | None = None) -> dict[str, Any]:
        """Return what a browser needs that has the state `known`: of blocks, those after the first difference."""
        text, notes = (known.text, known.notes) if known else ((), ())
        return {"seq": self.seq, **self.fields, "text": _after(text, self.text), "notes": _after(notes, self.notes)}


def _after(known: tuple[str, ...], blocks: tuple[str, ...]) -> dict[str, object]:
    same = 0
    while same < len(known) and same < len(blocks) and known[same] == blocks[same]:
        same += 1
    return {"keep": same, "add": blocks[same:]}


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    message: Message | None = None
    view: MessageView | None = None
    text: Blocks = field(default_factory=Blocks)
    notes: defaultdict[int, Blocks] = field(default_factory=lambda: defaultdict(Blocks))
    """Renderers of the notes, by their place."""

    def render(self, message: Message) -> MessageView:
        self.view, self.message = _view(message, self), message
        if message.status is not Status.STREAMING:
            self.text, self.notes = Blocks(), defaultdict(Blocks)
        return self.view


class Views:
    """Views of messages, the least recently used ones removed. All methods may be called from any thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._size = 0
        self._entries: OrderedDict[tuple[str, int], _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self.rendered = 0
        """Number of states that were rendered."""

    def known(self, talk_id: str, message: Message) -> MessageView | None:
        """Return the view of this state of a message, if it was rendered already."""
        entry = self._entries.get((talk_id, message.seq))
        view = entry.view if entry else None
        return view if entry and entry.message == message else None

    def get(self, talk_id: str, message: Message) -> MessageView:
        """Return the view of this state of a message; of several callers one renders it."""
        entry = self._entry((talk_id, message.seq))
        with entry.lock:
            if entry.view is None or entry.message != message:
                before = entry.view.size if entry.view else 0
                self._grow(entry.render(message).size - before)
            assert entry.view is not None
            return entry.view

    def _entry(self, key: tuple[str, int]) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            return entry

    def _grow(self, by: int) -> None:
        with self._lock:
            self.rendered += 1
            self._size += by
            while self._size > self._kept and len(self._entries) > 1:
                _, oldest = self._entries.popitem(last=False)
                self._size -= oldest.view.size if oldest.view else 0


def _view(message: Message, entry: _Entry) -> MessageView:
    is_streaming = message.status is Status.STREAMING
    fields: dict[str, object] = {
        "sender": message.sender,
        "status": message.status,
        "created": message.created.timestamp(),
    }
    if not is_streaming:
        fields["source"] = message.content
    if message.status is Status.FAILED:
        fields["error"] = sentence(message.error or UNFINISHED)
    if message.attachments:
        fields["files"] = [_file(one) for one in message.attachments]
    if message.sender == Sender.USER:
        return MessageView(message.seq, fields, notes=tuple(result_cards(message.content)))
    if is_streaming and not message.content:
        fields["waiting"] = waited_for(message.notes)
    if remark := _remark(message.notes):
        fields["remark"] = remark
    return MessageView(
        message.seq, fields, _html(entry.text, message.content), tuple(_note_blocks(message.notes, entry))
    )


def _file(attachment: Attachment) -> dict[str, object]:
    return {
        "name": attachment.name,
        "size": file_size(attachment.size),
        "isImage": attachment.is_image,
        "url": FILES + quote(attachment.attachment_id, safe=""),
    }


def _html(blocks: Blocks, source: str) -> tuple[str, ...]:
    return tuple(block.html for block in blocks.update(source))


def _remark(notes: Notes) -> str:
    summary = next((note.text for note in notes if note.channel == Channel.SUMMARY), None)
    if summary is None:
        return ""
    done = "omitted" if LEFT_OUT in summary.partition("\n")[0] else "summarized"
    return f"Earlier messages were {done} here to fit the model's context window."


def _note_blocks(notes: Notes, entry: _Entry) -> Iterator[str]:
    """Yield thoughts as Markdown, and tool calls as cards."""
    for place, note in enumerate(notes):
        if note.channel == Channel.TOOLS:
            later = (other.text for other in notes[place + 1 :] if other.channel == Channel.TOOLS)
            yield from tool_cards(note.text, "".join(later))
        elif note.channel != Channel.WAITING:
            yield from _html(entry.notes[place], note.text)
