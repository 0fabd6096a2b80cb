"""A write of a run and the takeover of its agent or talk on two connections, in every order of their statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import inf
from typing import Any

import pytest

from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.effects import Effect, Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.envelopes.requests import Request, request_name
from roost.core.journal.steps import Attempt
from roost.core.limits.usage import Usage
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.schedules import rules
from roost.core.values.priority import Priority
from roost.ports import ClaimEnvironment, ClaimRequest, Tx
from roost.stores import locking
from roost.stores.sql import mail, settlement
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.inbox import claims, in_progress
from roost.stores.sql.journal import steps
from roost.stores.sql.schedules import schedules
from roost.stores.sql.sending import effects, requests
from roost.stores.sql.tables import token_usage
from roost.stores.sql.talks import answers, messages, runs, talks
from tests.contracts.interleaving import Interleaving, Transaction
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
numbers = count(1)


@pytest.fixture(scope="module")
def sides(postgres: str) -> Iterator[Interleaving]:
    with fresh_store(postgres) as url:
        made = Interleaving(url)
        yield made
        made.close()


def name(kind: str) -> str:
    return f"{kind}_{next(numbers):06}"


def change(after: State = State.IDLE, *, announced: bool = False) -> StateChange:
    return StateChange(name("change"), 1.0, None, after, "test", "user:ann", announced)


@dataclass
class Case:
    """An agent with a task and a mail, and a talk with an open answer; each was claimed in epoch 1."""

    agent: str
    recipient: str
    task: Envelope
    mail_id: str
    talk_id: str
    message: Envelope

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.task.envelope_id, self.agent, False, 1, "run_old", "ann", self.agent[4:])

    @property
    def talk_attempt(self) -> Attempt:
        return Attempt(self.message.envelope_id, self.talk_id, True, 1, "run_old", "ann", None)

    def closing(self, epoch: int, *sent: Effect) -> Closing:
        return Closing(f"run_{epoch}_{self.task.envelope_id}", self.task, epoch, Verdict.DONE, "", 1.0, 2.0, sent=sent)

    def closing_with_state(self) -> Closing:
        """The end of a turn of the talk, which changes the state of the agent."""
        envelope = replace(self.message, address=self.agent)
        return replace(self.talk_closing(1), envelope=envelope, state='{"n": 1}', agent_epoch=1)

    def talk_closing(self, epoch: int, *sent: Effect, run_id: str = "run_old") -> Closing:
        answer = AnswerEnd()
        return Closing(run_id, self.message, epoch, Verdict.DONE, "text", 1.0, 2.0, sent=sent, answer=answer)


def given(sides: Interleaving) -> Case:
    agent, recipient = name("d"), name("e")
    sides.do(lambda tx: agents.create(tx, "ann", (agent, recipient), AgentConfig(), change(), 10**6))
    task, mail_id = envelope(f"ann/{agent}"), name("mail")

    def take_agent(tx: Tx) -> None:
        effects.post(tx, SendTask(task))
        effects.post(tx, mail_to(f"ann/{agent}", mail_id))
        assert claim(tx, f"ann/{agent}").epoch == 1

    sides.do(take_agent)
    talk_id, message = sides.do(_claimed_talk)
    return Case(f"ann/{agent}", f"ann/{recipient}", task, mail_id, talk_id, message)


def _claimed_talk(tx: Tx) -> tuple[str, Envelope]:
    talk_id = name("talk")
    talks.create(tx, talk_id, "ann", "echo", "interrupt", "", "{}", 10**6)
    posted = say(tx, talk_id)
    claimed = runs.claim(tx, talk_id)
    assert claimed is not None
    assert claimed.epoch == 1
    assert answers.open_answer(tx, talk_id, "run_old", 1, "first")
    return talk_id, posted.envelope


def envelope(address: str, **how: Any) -> Envelope:
    made = name("task")
    fields: dict[str, Any] = {"recorded": True, **how}
    return Envelope(made, address, Kind.TASK, made, Priority.NORMAL, "user:ann", "hi", 1.0, 1.0, **fields)


def mail_to(address: str, mail_id: str) -> SendMail:
    lane = Envelope(mail_id, address, Kind.MAIL, mail_id, Priority.NORMAL, "user:ann", mail_id, 1.0, 1.0)
    return SendMail(
        mail_id, None, "user:ann", f"agent:{address}", "hi", "hi", Priority.NORMAL, 1.0, None, None, None, lane
    )


def say(tx: Tx, talk_id: str) -> Any:
    return messages.post(tx, "ann", talk_id, "hello", None, None, "t", name("env"), 0.0, 100)


def claim(tx: Tx, address: str, *, ready: bool = True) -> Any:
    world = ClaimEnvironment(1_000.0, partial(name, "change"))
    [claimed] = claims.claim(tx, (ClaimRequest(address, True),), world)
    assert claimed.ready or not ready
    return claimed


def stop(tx: Tx, address: str) -> Any:
    event = Publish(name("event"), "ann", "agent.stopped", {}, Priority.NORMAL, "user:ann", 2.0, optional=True)
    return lifecycle.stop(tx, "ann", address[4:], change(State.STOPPED), event)


# --- every check of an epoch against every takeover ----------------------------------------------------------


def is_asked(tx: Tx, case: Case, holder: str, task: Envelope, talk_run: str) -> bool:
    asked = Envelope(name("env"), case.recipient, Kind.TASK, "lane", Priority.NORMAL, f"agent:{holder}", "?", 1.0, 1.0)
    asked = Envelope(**{**fields_of(asked), "ask": request_name(holder, task.envelope_id, 5)})
    [result] = requests.ask(tx, (Request(task.envelope_id, holder, 1, 5, asked, talk_run),))
    return bool(result)


@dataclass
class Call:
    op: Callable[..., Any]
    args: tuple[Any, ...]


def is_settled(tx: Tx, closing: Closing) -> bool:
    """Settle after the rows of several tables were locked, as the engine does."""
    locking.acquire(tx, [Call(settlement.settle, ((closing,),))])
    return settlement.settle(tx, (closing,))[0].taken


def fields_of(one: Envelope) -> dict[str, Any]:
    return {field: getattr(one, field) for field in Envelope.__dataclass_fields__}


def is_read(tx: Tx, case: Case) -> bool:
    read = mail.begin(tx, case.mail_id, case.agent, 1, 5.0)
    return read is not None and read.status == "read"


def _begin(tx: Tx, attempt: Attempt) -> bool:
    return steps.begin(tx, attempt, 1, "step", "s", "k", None, "begun", 2.0)


OF_AGENTS: dict[str, Callable[[Tx, Case], Any]] = {
    "post_now": lambda tx, c: in_progress.post_now(tx, c.attempt, 1, (SendTask(envelope(c.recipient)),), ("k",), 2.0),
    "open": lambda tx, c: steps.open(tx, c.attempt, 2.0),
    "begin": lambda tx, c: _begin(tx, c.attempt),
    "begin_again": lambda tx, c: steps.begin_again(tx, c.attempt, 1, "begun", 2.0),
    "ask": lambda tx, c: is_asked(tx, c, c.agent, c.task, ""),
    "mail": is_read,
    "settle": lambda tx, c: settlement.settle(tx, (c.closing(1),))[0].taken,
    "settle_talk": lambda tx, c: is_settled(tx, c.closing_with_state()),
}
OF_TALKS: dict[str, Callable[[Tx, Case], Any]] = {
    "post_now": lambda tx, c: in_progress.post_now(
        tx, c.talk_attempt, 1, (SendTask(envelope(c.recipient)),), ("k",), 2.0
    ),
    "begin": lambda tx, c: _begin(tx, c.talk_attempt),
    "ask": lambda tx, c: is_asked(tx, c, c.talk_id, c.message, "run_old"),
    "open_answer": lambda tx, c: answers.open_answer(tx, c.talk_id, "run_old", 1, "again"),
    "checkpoint": lambda tx, c: answers.checkpoint(tx, c.talk_id, "run_old", 1, 1, "more"),
    "split_answer": lambda tx, c: not answers.split_answer(tx, c.talk_id, "run_old", 1, "part").superseded,
    "settle": lambda tx, c: settlement.settle(tx, (c.talk_closing(1),))[0].taken,
}
TAKEOVERS_OF_AGENTS: dict[str, Callable[[Tx, Case], Any]] = {
    "take": lambda tx, c: claim(tx, c.agent),
    "stop": lambda tx, c: stop(tx, c.agent),
}
TAKEOVERS_OF_TALKS: dict[str, Callable[[Tx, Case], Any]] = {
    "claim": lambda tx, c: runs.claim(tx, c.talk_id),
    "stop": lambda tx, c: runs.stop(tx, "ann", c.talk_id),
    "interrupt": lambda tx, c: say(tx, c.talk_id),
}
PAIRS = [
    pytest.param(write, takeover, id=f"{kind}-{write_name}-{takeover_name}")
    for kind, writes, takeovers in (("agent", OF_AGENTS, TAKEOVERS_OF_AGENTS), ("talk", OF_TALKS, TAKEOVERS_OF_TALKS))
    for write_name, write in writes.items()
    for takeover_name, takeover in takeovers.items()
]


@pytest.mark.parametrize(("write", "takeover"), PAIRS)
def test_no_write_of_an_old_epoch_is_committed_after_the_takeover(
    sides: Interleaving, write: Callable[[Tx, Case], Any], takeover: Callable[[Tx, Case], Any]
) -> None:
    def both() -> tuple[list[Transaction], list[Transaction]]:
        case = given(sides)
        return [lambda tx: write(tx, case)], [lambda tx: takeover(tx, case)]

    written = 0
    for done in sides.run_all(both, switches=3):
        is_first = done.is_before((0, 0), (1, 0))
        assert is_first or not done.results[0][0], f"written in an old epoch, in the order {done.order}"
        written += is_first and bool(done.results[0][0])
    assert written, "the run may write as long as it has its claim"


# --- a turn that has sent something is taken over, and runs again --------------------------------------------


def repeated(case: Case) -> list[Transaction]:
    """Take the agent over, and run its task again: send what is not on record, and settle."""
    claimed: list[Any] = []

    def run_again(tx: Tx) -> bool:
        epoch = claimed[0].epoch
        if case.task.envelope_id not in {e.envelope_id for e in claimed[0].envelopes}:  # it was settled before
            return False
        on_record = in_progress.recorded(tx, case.task, epoch)
        assert on_record is not None
        again = () if any(step.kind == "sent" for step in on_record) else (SendTask(message(case)),)
        return settlement.settle(tx, (case.closing(epoch, *again),))[0].taken

    return [lambda tx: claimed.append(claim(tx, case.agent)), run_again]


def message(case: Case) -> Envelope:
    return envelope(case.recipient, recorded=False)


def delivered(sides: Interleaving, case: Case) -> int:
    query = "SELECT count(*) FROM inbox WHERE address = :to AND body = 'hi'"
    return int(sides.do(lambda tx: tx.one(query, {"to": case.recipient}))[0])


FIRST_RUNS: dict[str, Callable[[Case], list[Transaction]]] = {
    "post_now": lambda c: [lambda tx: in_progress.post_now(tx, c.attempt, 1, (SendTask(message(c)),), ("k",), 2.0)],
    "settle": lambda c: [lambda tx: settlement.settle(tx, (c.closing(1, SendTask(message(c))),))[0].taken],
    "both": lambda c: [
        lambda tx: in_progress.post_now(tx, c.attempt, 1, (SendTask(message(c)),), ("k",), 2.0),
        lambda tx: settlement.settle(tx, (c.closing(1),))[0].taken,
    ],
}


@pytest.mark.parametrize("switches", [2, pytest.param(inf, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("first_run", FIRST_RUNS.values(), ids=FIRST_RUNS)
def test_a_turn_that_is_taken_over_delivers_once(
    sides: Interleaving, first_run: Callable[[Case], list[Transaction]], switches: float
) -> None:
    cases: list[Case] = []

    def both() -> tuple[list[Transaction], list[Transaction]]:
        cases.append(given(sides))
        return first_run(cases[-1]), repeated(cases[-1])

    for done in sides.run_all(both, switches=switches):
        assert delivered(sides, cases[-1]) == 1, f"in the order {done.order}"
    assert len(cases) > 5


# --- rows that all writers change ----------------------------------------------------------------------------


def _create_talk(tx: Tx) -> None:
    talks.create(tx, name("talk"), "ann", "echo", "interrupt", "", "{}", 10**6)


def _create_agent(tx: Tx) -> None:
    agents.create(tx, "ann", (name("d"),), AgentConfig(), change(), 10**6)


def _use_tokens(tx: Tx) -> None:
    token_usage.add_usage(tx, name("run"), "echo", Usage(3, 4), 1.0)


@pytest.mark.parametrize("write", [_create_talk, _create_agent, _use_tokens])
def test_writers_do_not_wait_for_each_other(sides: Interleaving, write: Transaction) -> None:
    sides.run([write], [write], "")  # the user exists, and is known to both
    alone = sides.run([write], [], "")
    done = sides.run([write], [write], "0" * (len(alone.order) - 1) + "1" * 100)
    assert done.commits == [(1, 0), (0, 0)], "the second one has not waited for the commit of the first one"


def test_tokens_of_all_writers_are_added_up(sides: Interleaving) -> None:
    sides.run([lambda tx: token_usage.add_usage(tx, name("run"), "both", Usage(3, 4), 1.0)] * 2, [], "")
    sides.run([], [lambda tx: token_usage.add_usage(tx, name("run"), "both", Usage(5, 6), 1.0)], "")
    assert sides.do(lambda tx: token_usage.tokens_used(tx, "1970-01-01", "both")) == 25


# --- timers --------------------------------------------------------------------------------------------------


def test_two_processes_that_fire_at_once_queue_a_tick_once(sides: Interleaving) -> None:
    agent, rule = name("d"), rules.to_json(rules.Once(50.0))
    sides.do(lambda tx: agents.create(tx, "ann", (agent,), AgentConfig(), change(), 10**6))
    created: list[str] = []

    def both() -> tuple[list[Transaction], list[Transaction]]:
        created.append(name("schedule"))
        texts = (created[-1], "ann", f"ann/{agent}", created[-1], "go", "normal", rule, "queue_all", "all")
        sides.do(lambda tx: schedules.create(tx, *texts, 60.0, 1.0, 10**6))
        fire = partial(schedules.fire, now=100.0, new_id=partial(name, "task"), has_begun=lambda *_: False)
        return [fire], [fire]

    for done in sides.run_all(both, switches=2):
        rows = sides.do(lambda tx: tx.read("SELECT 1 FROM tasks WHERE schedule_id = :id", {"id": created[-1]}))
        assert len(rows) == 1, f"in the order {done.order}"
    assert len(created) > 5
