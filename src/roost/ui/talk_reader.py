"""Reader of one talk in one tab: the messages so far, and the cursor for changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost.core.talks.messages import Message, Sender, Status
from roost.errors import NotFound
from roost.service import AgentService

NEWEST = 50
OLDER = 50
NEW = 200


@dataclass(slots=True)
class TalkReader:
    """Messages of a talk, kept in the tab's session state so that each poll reads only changes."""

    user_id: str
    talk_id: str
    cursor: str
    running: bool
    more_before: bool
    known: dict[int, Message] = field(default_factory=dict)
    tracebacks: dict[str, str | None] = field(default_factory=dict)
    """Tracebacks of failed runs that were read; they do not change."""

    @classmethod
    def start(cls, service: AgentService, user_id: str, talk_id: str) -> TalkReader:
        """Read the newest messages. Raises NotFound."""
        page = service.get_messages(user_id, talk_id, limit=NEWEST)
        known = {message.seq: message for message in page.messages}
        return cls(user_id, talk_id, page.cursor, page.running, page.more_before, known)

    def go_on(self, service: AgentService) -> None:
        """Read messages that are new or changed since the last poll."""
        more = True
        while more:
            page = service.get_messages(self.user_id, self.talk_id, after=self.cursor, limit=NEW)
            first = min(self.known, default=1)
            # Changes of messages older than the first one shown are read when those are loaded.
            self.known |= {message.seq: message for message in page.messages if message.seq >= first}
            self.cursor, self.running, more = page.cursor, page.running, page.more_after

    def go_back(self, service: AgentService) -> None:
        """Read messages older than the known ones."""
        first = min(self.known, default=1)
        page = service.get_messages(self.user_id, self.talk_id, before=first, limit=OLDER)
        self.known |= {message.seq: message for message in page.messages}
        self.more_before = page.more_before

    @property
    def messages(self) -> list[Message]:
        """Return the messages to show, in order."""
        return [self.known[seq] for seq in sorted(self.known) if self.known[seq].status is not Status.WITHDRAWN]

    @property
    def writing(self) -> Message | None:
        """Return the message that is being written."""
        last = [message for message in self.messages if message.status is Status.STREAMING]
        return last[-1] if last else None

    @property
    def shape(self) -> tuple[object, ...]:
        """Return a value that changes whenever more than the text of the message being written changes."""
        steps = tuple((message.seq, message.status) for message in self.messages)
        return (self.talk_id, steps, self.running, self.more_before)

    def traceback(self, service: AgentService, message: Message) -> str | None:
        """Return the traceback of the run that wrote a message, if it failed and is still on record."""
        run_id = message.run_id
        if message.status is not Status.FAILED or run_id is None:
            return None
        if run_id not in self.tracebacks:
            try:
                self.tracebacks[run_id] = service.runs.get(self.user_id, run_id).traceback
            except NotFound:
                self.tracebacks[run_id] = None
        return self.tracebacks[run_id]

    def question_before(self, seq: int) -> Message | None:
        """Return the question that the message `seq` answers."""
        asked = [m for m in self.messages if m.seq < seq and m.sender is Sender.USER]
        return asked[-1] if asked else None
