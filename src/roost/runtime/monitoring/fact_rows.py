"""Rows of facts: how settlements, sends and dead letters are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from roost.core.brain_data.memories import Remember
from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import Broadcast, Effect, Publish, SendMail, SendTask, urgent_mail
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.meetings.effects import MeetingEffect, WriteEntry
from roost.core.meetings.log.bodies import Called, Ended
from roost.core.monitoring.facts import FactRow, Name
from roost.core.runs import Closing, Verdict

EXPIRED = "expired"
FULL = "full"
ENDS = {
    Verdict.DONE: Name.TASK_DONE,
    Verdict.RETRY: Name.TASK_RETRIED,
    Verdict.DEAD: Name.TASK_FAILED,
    Verdict.CANCELLED: Name.TASK_CANCELLED,
}


def fault_of(c: Closing) -> str | None:
    """Return the fault of an attempt that failed."""
    return str(c.fault) if c.fault and c.verdict in (Verdict.RETRY, Verdict.DEAD) else None


def add_end(rows: list[FactRow], c: Closing) -> None:
    """Append the facts of a finished attempt."""
    e, verdict, when, root = c.envelope, c.verdict, c.ended, c.envelope.origin
    failed = verdict is Verdict.RETRY or verdict is Verdict.DEAD
    fault = fault_of(c)
    if c.run_id:
        data: dict[str, Any] = {
            "run_id": c.run_id,
            "kind": e.kind,
            "envelope_id": e.envelope_id,
            "outcome": c.outcome,
            "attempt": e.attempts,
            "seconds": c.ended - c.started,
        }
        data |= c.usage.facts()
        if fault is not None:
            data["fault"] = fault
        rows.append((Name.RUN_ENDED, when, None, e.address, data, root))
    if e.recorded and verdict not in (Verdict.RELEASED, Verdict.WAITING, Verdict.REPEATED):
        data = {"task_id": e.envelope_id, "attempt": e.attempts}
        if failed:
            data |= {"fault": fault, "reason": c.reason}
        name = Name.TASK_EXPIRED if fault == EXPIRED else ENDS[verdict]
        rows.append((name, when, None, e.address, data, root))
    elif e.kind is Kind.MAIL and verdict is Verdict.DONE:
        rows.append((Name.MAIL_PROCESSED, when, None, e.address, {"mail_id": e.body}, root))
    if verdict is Verdict.DEAD and fault != EXPIRED:
        data = {"envelope_id": e.envelope_id, "kind": e.kind, "fault": fault, "reason": c.reason}
        rows.append((Name.AGENT_FAILED, when, None, e.address, data, root))


def add_sends(
    rows: list[FactRow],
    effects: Sequence[Effect],
    posted: Sequence[Envelope],
    address: str,
    root: str,
    when: float,
    *,
    asleep: bool = False,
) -> None:
    """Append the facts of the sends of a turn or a user; `address` is the sender."""
    if asleep:
        rows.append((Name.AGENT_SLEPT, when, None, address, {"by": "its turn"}, root))
    if all(type(e) is SendTask and not e.envelope.recorded for e in effects):
        return  # plain messages
    posted_ids = {e.envelope_id for e in posted}
    for effect in effects:
        if type(effect) is Remember:
            continue  # memories are private to the agent
        if isinstance(effect, MeetingEffect):
            rows += [(name, when, None, address, data, root) for name, data in _written(effect)]
            continue
        rows += _sent(effect, posted_ids, address, root, when)


def _written(effect: MeetingEffect) -> Iterator[tuple[Name, dict[str, Any]]]:
    """Yield the facts of an entry; other participants get their own."""
    if type(effect) is WriteEntry and isinstance(effect.body, Called | Ended):
        name = Name.MEETING_CALLED if isinstance(effect.body, Called) else Name.MEETING_ENDED
        yield name, {"meeting_id": effect.meeting_id, "participant": effect.participant}


def _sent(effect: Effect, posted_ids: set[str], address: str, root: str, when: float) -> Iterator[FactRow]:
    if type(effect) is SendTask:
        e = effect.envelope
        if e.recorded and e.envelope_id in posted_ids:
            yield Name.TASK_SENT, when, None, e.address, {"task_id": e.envelope_id, "sender": e.sender}, e.origin
    elif type(effect) is SendMail:
        if effect.envelope is None or effect.envelope.envelope_id in posted_ids:
            data = {"mail_id": effect.mail_id, "from": effect.sender, "to": effect.recipient}
            yield Name.MAIL_SENT, when, None, address, data, root or effect.origin
            if (event := urgent_mail(effect)) is not None:
                yield _published(event, address, root, when)
    elif type(effect) is Broadcast:
        rows = {"broadcast_id": effect.broadcast_id, "from": effect.sender, "agents": len(effect.envelopes)}
        yield Name.BROADCAST_SENT, when, None, address, rows, root or effect.broadcast_id
    else:
        assert type(effect) is Publish
        yield _published(effect, address, root, when)


def _published(event: Publish, address: str, root: str, when: float) -> FactRow:
    """Return the fact for the owner whose agents receive the event; of urgent mail, its recipient."""
    about = address if address.startswith(f"{event.user_id}/") else f"{event.user_id}/"
    data = {"event_id": event.event_id, "event": event.name}
    return Name.EVENT_PUBLISHED, when, None, about, data, root or event.root or event.event_id


def of_dead_letter(letter: DeadLetter, when: float) -> Iterator[FactRow]:
    about, data = f"{letter.user_id}/{letter.agent_id or ''}", {"fault": letter.fault, "reason": letter.reason}
    if letter.fault == FULL and letter.envelope.get("recorded"):  # a tick that was never attempted
        task = {"task_id": letter.envelope["envelope_id"], "attempt": 0, **data}
        yield Name.TASK_FAILED, when, None, about, task, letter.origin
    data = {"letter_id": letter.letter_id, "kind": letter.kind, **data}
    if "webhook_id" in letter.envelope:
        data["webhook_id"] = letter.envelope["webhook_id"]
    yield Name.LETTER_DIED, when, None, about, data, letter.origin
