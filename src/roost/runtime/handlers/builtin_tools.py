"""Built-in tools of agents: mail, sleep, schedules, events, memories, meetings, and other agents.

Their sends and memories settle with the turn. When a turn is repeated they run again, so their results do not differ
between attempts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from roost.core.agents import wake
from roost.core.brain_data.memories import RECALLED
from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.meetings.options import MeetingOptions
from roost.core.values import addresses
from roost.errors import Conflict, Invalid, NotFound
from roost.ports import Meeting, Tool, Turn

if TYPE_CHECKING:
    from roost.runtime.handlers.agents.agents import Agents
    from roost.runtime.handlers.mail import Mails
    from roost.runtime.handlers.meetings import Meetings
    from roost.runtime.handlers.schedules import Schedules
    from roost.runtime.turns.actions import TurnActions

Urgency = Literal["low", "normal", "high", "urgent"]
To = Annotated[str, Field(description="agent:NAME, or user:NAME for a person")]
Other = Annotated[str, Field(description="agent:NAME")]
MailId = Annotated[str, Field(description="as in the result of mail.check")]


class BuiltinTools:
    """Built-in tools: each public method is a tool, and its docstring is for the model."""

    def __init__(self, mails: Mails, schedules: Schedules, agents: Agents, meetings: Meetings) -> None:
        self._mails = mails
        self._meetings = meetings
        self._schedules = schedules
        self._agents = agents

    def all(self) -> Iterator[Tool]:
        with_the_turn = {"with_turn": lambda turn, arguments: True}
        again = {"repeatable": True}
        here_with_it = {**again, "with_turn": lambda turn, arguments: _is_here(turn, arguments["meeting_id"])}
        made: Sequence[tuple[str, Callable[..., Any], dict[str, Any]]] = (
            ("mail.send", self.send_mail, with_the_turn),
            ("mail.check", self.check_mail, again),
            ("mail.read", self.read_mail, again),
            ("mail.reply", self.reply, again),
            ("mail.archive", self.archive, again),
            ("meeting.call", self.call_meeting, again),
            ("meeting.join", self.join_meeting, again),
            ("meeting.say", self.say, here_with_it),
            ("meeting.view", self.view_meeting, again),
            ("meeting.leave", self.leave_meeting, here_with_it),
            ("meeting.decline", self.decline_meeting, with_the_turn),
            ("meeting.grant", self.grant, with_the_turn),
            ("meeting.end", self.end_meeting, with_the_turn),
            ("meeting.cancel", self.cancel_meeting, again),
            ("meeting.list", self.list_meetings, again),
            ("send", self.send, with_the_turn),
            ("ask", self.ask, with_the_turn),
            ("publish", self.publish, with_the_turn),
            ("sleep", self.sleep, with_the_turn),
            ("wake", self.wake, again),
            ("schedule", self.schedule, again),
            ("remember", self.remember, with_the_turn),
            ("recall", self.recall, again),
            ("forget", self.forget, with_the_turn),
        )
        for name, method, options in made:
            limit = {"limit": LONGEST_ASK} if name == "ask" else {}
            yield Tool(name, inspect.getdoc(method) or "", method, **options, **limit)  # type: ignore[arg-type]

    # --- mail ------------------------------------------------------------------------------------

    async def send_mail(self, turn: Turn, to: To, subject: str, body: str, priority: Urgency = "normal") -> str:
        """Write a mail to another agent or to a person."""
        await turn.mail(to, subject, body, priority=priority)
        return f"sent to {to}"

    async def check_mail(
        self, turn: Turn, unread_only: bool = True, limit: Annotated[int, Field(ge=1, le=100)] = 20
    ) -> list[dict[str, str]]:
        """List the mails in your mailbox, urgent ones first: unread ones, and the one you are handling."""
        owner, mailbox = _owner(turn)
        found = await self._mails.inbox(owner, mailbox, status="unread" if unread_only else None, limit=limit)
        if unread_only and turn.kind == "mail":
            mail = await self._mails.get(owner, str(_actions(turn).handled_id))
            found = [mail, *found][:limit] if mail.status is MailStatus.READ else found
        return [_shown(mail) for mail in found]

    async def read_mail(self, turn: Turn, mail_id: MailId) -> dict[str, str]:
        """Read one mail of your mailbox."""
        await self._own(turn, mail_id)
        mail = await self._mails.read(_owner(turn)[0], mail_id)
        return {**_shown(mail), "body": mail.body}

    async def reply(self, turn: Turn, mail_id: MailId, body: str) -> str:
        """Answer a mail of your mailbox."""
        mail = await self._own(turn, mail_id)
        actions = _actions(turn)
        actions.check_hops(mail.sender, mail.priority)
        await self._mails.answer(actions.sender, mail, actions.clean(body), key=turn.step_key)
        return f"sent to {mail.sender}"

    async def archive(self, turn: Turn, mail_id: MailId) -> str:
        """Archive a mail of your mailbox that is done."""
        await self._own(turn, mail_id)
        await self._mails.archive(_owner(turn)[0], mail_id)
        return "archived"

    async def _own(self, turn: Turn, mail_id: str) -> Mail:
        """Return a mail of the agent's own mailbox. Raises NotFound for other mail of its owner."""
        owner, mailbox = _owner(turn)
        mail = await self._mails.get(owner, mail_id)
        if mail.recipient != mailbox:
            raise NotFound(f"there is no mail {mail_id!r:.80} in your mailbox")
        return mail

    # --- others ----------------------------------------------------------------------------------

    async def send(self, turn: Turn, to: Other, text: str, priority: Urgency = "normal") -> str:
        """Send a message to another agent, without waiting for an answer."""
        await turn.send(to, text, priority=priority)
        return f"sent to {to}"

    async def ask(
        self, turn: Turn, to: Other, text: str, seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    ) -> str:
        """Ask another agent something, and wait up to `seconds` for the answer."""
        return await turn.ask(to, text, deadline=seconds)

    async def wake(self, turn: Turn, agent: Other) -> str:
        """Wake another agent that sleeps."""
        owner, _ = _owner(turn)
        address = addresses.of_agent(agent, owner)
        if address.user_id != owner:
            raise NotFound(f"there is no agent {agent!r:.80} that you may wake")
        await self._agents.wake(owner, str(address.agent_id), f"woken by {turn.agent_id}")
        return f"{agent} is awake"

    async def publish(self, turn: Turn, name: str, data: Any = None, priority: Urgency = "normal") -> str:
        """Publish an event to all subscribers; names are like `data.ready`."""
        await turn.publish(name, data, priority=priority, optional=True)
        return "published"

    # --- meetings --------------------------------------------------------------------------------

    async def call_meeting(
        self,
        turn: Turn,
        topic: str,
        required: list[To] = [],  # noqa: B006
        optional: list[To] = [],  # noqa: B006
        floor: Literal["free", "round_robin", "raise_hand", "moderator", "mention"] = "free",
    ) -> str:
        """Call a meeting with other agents and people; it starts when all required participants have joined."""
        actions = _actions(turn)
        actions.check_hops()
        options = MeetingOptions(required=required, optional=optional, floor=floor)
        name = await self._meetings.convene(actions.sender, actions.clean(topic), options, turn.step_key)
        return f"called: {name}"

    async def join_meeting(self, turn: Turn, meeting_id: str) -> str:
        """Join a meeting that you were invited to, or left."""
        owner, me = _owner(turn)
        view = await self._meetings.join(owner, meeting_id, by=me)
        return f"you are there; present: {', '.join(view.present)}"

    async def say(
        self,
        turn: Turn,
        meeting_id: str,
        text: str,
        to: Annotated[list[To], Field(description="participants to mention")] = [],  # noqa: B006
    ) -> str:
        """Say something in a meeting that you are in."""
        owner, me = _owner(turn)
        if _is_here(turn, meeting_id):
            await turn.meeting.say(text, to=to)
        else:
            await self._meetings.say(owner, meeting_id, _actions(turn).clean(text), to=to, by=me, key=turn.step_key)
        return "said"

    async def view_meeting(self, turn: Turn, meeting_id: str) -> dict[str, Any]:
        """Show a meeting that you are in: participants, whose turn it is, and the newest messages."""
        owner, me = _owner(turn)
        view = await self._meetings.view(owner, meeting_id, seen_by=me, limit=50)
        return {
            "topic": view.topic,
            "phase": view.phase,
            "present": view.present,
            "speakers": view.speakers,
            "hands": view.hands,
            "board": view.board,
            "words": [f"{word.sender}: {word.text}" for word in view.words],
        }

    async def leave_meeting(self, turn: Turn, meeting_id: str, reason: str = "") -> str:
        """Leave a meeting."""
        owner, me = _owner(turn)
        if _is_here(turn, meeting_id):
            await turn.meeting.leave(reason)
        else:
            await self._meetings.leave(owner, meeting_id, reason, by=me)
        return "you have left"

    async def decline_meeting(self, turn: Turn, reason: str = "") -> str:
        """Decline the invitation that you are asked about."""
        await _here(turn).decline(reason)
        return "you do not come"

    async def grant(self, turn: Turn, who: To) -> str:
        """Give somebody the floor, as the moderator of the current meeting."""
        await _here(turn).grant(who)
        return f"{who} has the floor"

    async def end_meeting(
        self, turn: Turn, minutes: Annotated[str, Field(description="summary of the meeting")] = ""
    ) -> str:
        """End the current meeting for all, as its chair."""
        await _here(turn).end(minutes)
        return "the meeting has ended"

    async def cancel_meeting(self, turn: Turn, meeting_id: str, reason: str = "") -> str:
        """Cancel a meeting that you have called and that has not started."""
        owner, me = _owner(turn)
        await self._meetings.cancel(owner, meeting_id, reason, by=me)
        return "cancelled"

    async def list_meetings(self, turn: Turn) -> list[dict[str, str]]:
        """List the meetings that you are in, or invited to, and that are not over."""
        _owner(turn)
        return [
            {
                "meeting_id": meeting.meeting_id,
                "topic": meeting.topic,
                "phase": meeting.phase,
                "you_are": meeting.status,
            }
            for meeting in await turn.meetings()
        ]

    # --- time ------------------------------------------------------------------------------------

    async def sleep(
        self,
        turn: Turn,
        seconds: Annotated[float, Field(gt=0)] | None = None,
        until: datetime | None = None,
        events: Annotated[list[str], Field(description="wake on these, such as alerts.*")] = [],  # noqa: B006
        mail: Annotated[Urgency | None, Field(description="wake on mail of at least this priority")] = None,
    ) -> str:
        """Sleep after this turn: for some seconds, until a time, or until one of these events or mail arrives."""
        wanted = [wake.event(name) for name in events] + ([wake.mail(mail)] if mail is not None else [])
        await turn.sleep(seconds, until=until, wake_on=wake.any_of(*wanted) if wanted else None)
        return "you will sleep when this turn is over"

    async def schedule(
        self,
        turn: Turn,
        prompt: Annotated[str, Field(description="what to do then")],
        cron: Annotated[str | None, Field(description="such as 0 9 * * 1-5")] = None,
        every: Annotated[float | None, Field(gt=0, description="seconds")] = None,
        at: datetime | None = None,
        zone: str | None = None,
        name: str | None = None,
    ) -> str:
        """Schedule a task for yourself: by cron, at an interval in seconds, or once at a time."""
        owner, _ = _owner(turn)
        named, prompt = name or f"by itself {turn.step_key}", _actions(turn).clean(prompt)
        try:
            made = await self._schedules.create(
                owner, str(turn.agent_id), prompt, cron=cron, every=every, at=at, zone=zone, name=named
            )
        except Conflict:
            return f"there is a schedule {named!r} already"
        return f"scheduled; next at {made.next.isoformat() if made.next else 'no time'}"

    # --- memory ----------------------------------------------------------------------------------

    async def remember(
        self,
        turn: Turn,
        text: str,
        key: Annotated[str | None, Field(description="a newer text under the same key replaces it")] = None,
    ) -> str:
        """Remember something for later turns."""
        return f"remembered under {await turn.remember(text, key=key or turn.step_key)}"

    async def recall(
        self, turn: Turn, query: str = "", limit: Annotated[int, Field(ge=1, le=100)] = RECALLED
    ) -> list[dict[str, str]]:
        """Find memories by words of the query; without a query, the newest."""
        return [{"key": memory.key, "text": memory.text} for memory in await turn.recall(query, limit=limit)]

    async def forget(self, turn: Turn, key: str) -> str:
        """Delete the memory under a key."""
        return "forgotten" if await turn.forget(key) else f"there is nothing under {key!r:.80}"


LONGEST_ASK = 3_660.0


def _owner(turn: Turn) -> tuple[str, str]:
    """Return the owner of the actions, and the mailbox of the agent. In a talk that may be another user's agent."""
    sender = _actions(turn).sender
    return sender.user_id, sender.address


def _actions(turn: Turn) -> TurnActions:
    actions: TurnActions | None = turn._runtime and turn._runtime.actions  # type: ignore[assignment]
    if actions is None or turn.agent_id is None:
        raise Invalid("only an agent can do this")
    return actions


def _is_here(turn: Turn, meeting_id: str) -> bool:
    """Return True if it is the meeting of the turn."""
    return turn.kind == "meeting" and turn.meeting.meeting_id == meeting_id


def _here(turn: Turn) -> Meeting:
    """Return the meeting of the turn. Actions in it are part of the turn, after the words said before."""
    if turn.kind != "meeting":
        raise Invalid("this turn is not in a meeting: the tool works only there")
    return turn.meeting


def _shown(mail: Mail) -> dict[str, str]:
    return {
        "mail_id": mail.mail_id,
        "from": mail.sender,
        "to": mail.recipient,
        "subject": mail.subject,
        "priority": mail.priority,
        "status": mail.status,
        "sent": mail.created.isoformat(timespec="seconds"),
    }
