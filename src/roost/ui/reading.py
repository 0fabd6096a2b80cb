"""What one tab has read of one talk: the messages so far, and the cursor for what is new."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost.core.messages import Message, Sender, Status
from roost.service import AgentService

NEWEST = 50
OLDER = 50
NEW = 200


@dataclass(slots=True)
class Reading:
    """Kept in the tab's session state, so that each look asks only for what is new."""

    user_id: str
    talk_id: str
    cursor: str
    running: bool
    more_before: bool
    known: dict[int, Message] = field(default_factory=dict)

    @classmethod
    def start(cls, service: AgentService, user_id: str, talk_id: str) -> Reading:
        """Read the newest messages. Raises NotFound."""
        page = service.get_messages(user_id, talk_id, limit=NEWEST)
        known = {message.seq: message for message in page.messages}
        return cls(user_id, talk_id, page.cursor, page.running, page.more_before, known)

    def go_on(self, service: AgentService) -> None:
        """Take in what is new or changed since the last look."""
        more = True
        while more:
            page = service.get_messages(self.user_id, self.talk_id, after=self.cursor, limit=NEW)
            first = min(self.known, default=1)
            # A change of a message that is older than what is on the page is seen when it is asked for.
            self.known |= {message.seq: message for message in page.messages if message.seq >= first}
            self.cursor, self.running, more = page.cursor, page.running, page.more_after

    def go_back(self, service: AgentService) -> None:
        """Read some messages that are older than those known."""
        first = min(self.known, default=1)
        page = service.get_messages(self.user_id, self.talk_id, before=first, limit=OLDER)
        self.known |= {message.seq: message for message in page.messages}
        self.more_before = page.more_before

    @property
    def messages(self) -> list[Message]:
        """What is to be shown, in order."""
        return [self.known[seq] for seq in sorted(self.known) if self.known[seq].status is not Status.WITHDRAWN]

    @property
    def writing(self) -> Message | None:
        """The message that is being written."""
        last = [message for message in self.messages if message.status is Status.STREAMING]
        return last[-1] if last else None

    @property
    def shape(self) -> tuple[object, ...]:
        """Changes whenever more than the text of the message being written has changed."""
        steps = tuple((message.seq, message.status) for message in self.messages)
        return (self.talk_id, steps, self.running, self.more_before)

    def question_before(self, seq: int) -> Message | None:
        """What the answer `seq` was to answer."""
        asked = [m for m in self.messages if m.seq < seq and m.sender is Sender.USER]
        return asked[-1] if asked else None
