"""A8 and A14 on every store: recipients of an event, its history, and its dead letters."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig, State, Subscription
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.events import Event
from roost.core.envelopes.outcomes import StateChange
from roost.core.journal.steps import Attempt
from roost.core.runs import Closing, Verdict
from roost.core.values import patterns
from roost.core.values.priority import Priority
from roost.errors import Conflict, LimitReached, NotFound
from roost.ports import ClaimEnvironment, ClaimRequest, Tx
from roost.stores.sql import dead_letters, events, settlement, tasks
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.dead_letters import LetterFilter
from roost.stores.sql.inbox import claims, in_progress
from roost.stores.sql.journal import steps
from roost.stores.sql.sending import effects
from tests.contracts.conftest import Driven

LAST = "\x7f"
numbers = itertools.count(1)


def create(store: Driven, agent: str, *subscriptions: str | Subscription, user: str = "ann", **config: Any) -> str:
    wanted = tuple(Subscription(one) if isinstance(one, str) else one for one in subscriptions)
    change = StateChange(f"change_{next(numbers):09}", 1.0, None, State.IDLE, "created", user)
    store.write(agents.create, user, (agent,), AgentConfig(subscriptions=wanted, **config), change, 100)
    return f"{user}/{agent}"


def pause(store: Driven, agent: str, paused: bool) -> None:
    change = StateChange(
        f"change_{next(numbers):09}", 1.0, None, State.IDLE, "paused" if paused else "resumed", "user:ann"
    )
    store.write(lifecycle.pause, "ann", agent, paused, change)


def sleep(store: Driven, agent: str, condition: wake.Condition, user: str = "ann") -> None:
    change = StateChange(f"change_{next(numbers):09}", 1.0, None, State.SLEEPING, "asked", user)
    store.write(lifecycle.sleep, user, agent, wake.to_json(condition), change)


def take(store: Driven, key: str, now: float = 1_000.0) -> ClaimedWork:
    world = ClaimEnvironment(now, lambda: f"change_{next(numbers):09}")
    [taken] = store.write(claims.claim, (ClaimRequest(key, True),), world)
    assert isinstance(taken, ClaimedWork)
    return taken


def fact(name: str, data: Any = None, *, user: str = "ann", created: float | None = None, **more: Any) -> Publish:
    number = next(numbers)
    when = float(number) if created is None else created
    fields: dict[str, Any] = {"priority": Priority.NORMAL, "publisher": f"user:{user}", **more}
    return Publish(f"event_{number:09}", user, name, data, created=when, **fields)


def publish(store: Driven, name: str, data: Any = None, **more: Any) -> list[str]:
    """Into whose inboxes it was put."""
    posted: tuple[Envelope, ...] = store.write(effects.post, fact(name, data, **more))
    return [envelope.address for envelope in posted]


def history(store: Driven, pattern: str | None = None, *, user: str = "ann", **chosen: Any) -> list[Event]:
    options = {"since": None, "until": None, "limit": 100, "before": LAST, **chosen}
    found: list[Event] = store.read(events.listed, user, pattern, *options.values())
    return found


def dead(store: Driven, user: str = "ann", **chosen: Any) -> list[DeadLetter]:
    limit, before = chosen.pop("limit", 100), chosen.pop("before", LAST)
    found: list[DeadLetter] = store.read(dead_letters.listed, user, LetterFilter(**chosen), limit, before)
    return found


def everything(store: Driven, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in store.read(lambda tx: tx.read(f"SELECT * FROM {table} ORDER BY 1"))]


def envelope(key: str, number: int, **changes: Any) -> Envelope:
    name = f"task_{number}"
    fields: dict[str, Any] = {"sender": "user:ann", "body": "do it", **changes}
    return Envelope(name, key, Kind.TASK, name, Priority.NORMAL, created=100.0, rank=40.0, **fields)


def die(store: Driven, e: Envelope, **changes: Any) -> DeadLetter:
    """Have it tried for the last time."""
    values: dict[str, Any] = {"reason": "it broke", "fault": "internal", **changes}
    closing = Closing("run_1", e, 0, Verdict.DEAD, "", 110.0, 120.0, **values)
    told: list[DeadLetter] = []
    store.engine.listen(told.extend)
    [settled] = store.write(settlement.settle, (closing,))
    assert settled.taken
    [found] = told
    return found


# --- who hears it ----------------------------------------------------------------------------------------


def test_an_event_goes_to_those_whose_pattern_and_fields_it_has(store: Driven) -> None:
    exact, wild, every = create(store, "exact", "disk.full"), create(store, "wild", "disk.*"), create(store, "all", "*")
    picky = create(store, "picky", Subscription("disk.*", {"host": "a", "level": 3}))
    create(store, "other", "disk.fullness", "net.*", "disk")
    assert publish(store, "disk.full", {"host": "a", "level": 3, "more": 1}) == sorted([exact, wild, every, picky])
    assert publish(store, "disk.full", {"host": "a", "level": 4}) == sorted([exact, wild, every])
    assert publish(store, "disk.slow", "no fields at all") == sorted([wild, every])


def test_it_is_put_into_each_inbox_once_however_often_it_is_subscribed_to(store: Driven) -> None:
    key = create(store, "d", "data.*", "data.ready", "*")
    sleep(store, "d", wake.any_of(wake.event("data.ready"), wake.event("data.*")))
    assert publish(store, "data.ready") == [key]
    assert len(everything(store, "inbox")) == 1


def test_only_the_owners_agents_hear_it(store: Driven) -> None:
    hers, his = create(store, "d", "*"), create(store, "d", "*", user="bob")
    sleep(store, "d", wake.event("*"), user="bob")
    assert publish(store, "news") == [hers]
    assert publish(store, "news", user="bob") == [his]


def test_who_does_not_sleep_any_more_does_not_wait_any_more(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.event("news"))
    assert publish(store, "news") == [key]
    assert take(store, key).woken == "event news"
    assert publish(store, "news") == []


def test_a_changed_subscription_is_used_at_once(store: Driven) -> None:
    key = create(store, "d", "old")
    config = AgentConfig(subscriptions=(Subscription("new.*"),))
    store.write(agents.configure, "ann", "d", config, 1.0)
    assert publish(store, "old") == []
    assert publish(store, "new.thing") == [key]


def test_an_awaited_event_wakes_however_much_else_waits_before_it(store: Driven) -> None:
    key = create(store, "d", "noise")
    sleep(store, "d", wake.event("signal"))
    noise = [fact("noise") for _ in range(1_200)]
    store.write(lambda tx: [effects.post(tx, one) for one in noise])
    assert take(store, key).woken is None
    publish(store, "signal")
    assert take(store, key).woken == "event signal"


def test_an_event_that_finds_an_inbox_full_is_a_dead_letter_of_that_agent(store: Driven) -> None:
    full, free = create(store, "full", "news", inbox_limit=1), create(store, "free", "news")
    assert publish(store, "news", 1) == sorted([full, free])
    assert publish(store, "news", 2) == [free]
    [letter] = dead(store)
    assert (letter.agent_id, letter.kind, letter.fault, letter.attempts) == ("full", "event", "full", 0)
    assert "full" in letter.reason
    with pytest.raises(LimitReached, match="inbox of the agent 'full' is full"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 50.0)
    store.write(lambda tx: tx.write("DELETE FROM inbox WHERE address = :a", {"a": full}))
    [again] = store.write(dead_letters.retry, "ann", letter.letter_id, 50.0)
    assert (again.address, json.loads(again.body)["data"]) == (full, 2)
    assert dead(store) == []


def test_an_awaited_event_wakes_a_sleeping_agent_with_a_full_inbox(store: Driven) -> None:
    key = create(store, "d", "noise", inbox_limit=2)
    sleep(store, "d", wake.event("signal"))
    for number in (1, 2):
        store.write(effects.post, SendTask(envelope(key, number)))
    assert publish(store, "noise") == []
    assert publish(store, "signal", 1) == [key]
    taken = take(store, key)
    assert taken.woken == "event signal"
    assert json.loads(next(e for e in taken.envelopes if e.kind is Kind.EVENT).body)["data"] == 1
    assert [letter.envelope["lane"] for letter in dead(store)] == ["event:noise"]


def test_a_full_inbox_takes_one_event_of_each_pattern_that_is_awaited(store: Driven) -> None:
    key = create(store, "d", inbox_limit=1)
    sleep(store, "d", wake.all_of(wake.event("a.*"), wake.event("*.b"), wake.event("c")))
    store.write(effects.post, SendTask(envelope(key, 1)))
    took = {name: publish(store, name) == [key] for name in ("a.a", "a.c", "a.b", "b.b", "c")}
    assert took == {"a.a": True, "a.c": False, "a.b": True, "b.b": False, "c": True}
    assert take(store, key).woken == "event a.a (a.*) and event a.b (*.b) and event c"


def test_publishing_reads_few_of_many_subscriptions_to_other_names(store: Driven) -> None:
    create(store, "near", "data.ready")

    def subscribe(tx: Tx) -> None:
        config = AgentConfig(subscriptions=(Subscription("other"), Subscription("else.*")))
        change = StateChange("change_many", 1.0, None, State.IDLE, "created", "ann")
        agents.create(tx, "ann", [f"far{number}" for number in range(300)], config, change, 1_000)

    store.write(subscribe)
    read: list[int] = []

    def counted(tx: Tx) -> tuple[Envelope, ...]:
        return effects.post(_Counting(tx, read), fact("data.ready"))  # type: ignore[arg-type]

    assert len(store.write(counted)) == 1
    assert sum(read) < 10


class _Counting:
    """Notes how many rows are read."""

    def __init__(self, tx: Tx, read: list[int]) -> None:
        self._tx, self._read = tx, read

    def read(self, sql: str, params: Mapping[str, Any]) -> Sequence[Any]:
        rows = self._tx.read(sql, params)
        self._read.append(len(rows))
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


# --- what has been counts ---------------------------------------------------------------------------------


def wakes_by(store: Driven, agent: str) -> list[Any]:
    """The time and the events it still waits for, and the rows that are kept for them."""
    found = store.read(agents.get, "ann", agent)
    until = found.sleep_until and found.sleep_until.timestamp()
    rows = [row[2] for row in everything(store, "subscriptions") if row[4]]
    return [until, found.wake_events, rows, [row[2] for row in everything(store, "timers") if row[1] == "wake"]]


def test_mail_that_came_and_went_still_counts(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.all_of(wake.mail("low"), wake.event("x")))
    mail = outgoing(key, "user:ann")[1]
    store.write(effects.post, mail)
    assert take(store, key).woken is None
    die(store, mail.envelope, fault="expired")
    publish(store, "x")
    assert take(store, key).woken == "mail low and event x"


def test_a_time_that_has_passed_still_counts_when_the_clock_goes_back(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.all_of(wake.at(500.0), wake.event("x")))
    assert take(store, key, 510.0).woken is None
    publish(store, "x")
    assert take(store, key, 10.0).woken == "time and event x"


def test_a_sleeping_agent_waits_for_the_rest_of_its_condition(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.all_of(wake.at(500.0), wake.at(2_000.0), wake.event("a"), wake.event("b")))
    assert wakes_by(store, "d") == [500.0, ("a", "b"), ["a", "b"], [500.0]]
    publish(store, "a")
    assert take(store, key, 100.0).woken is None
    assert wakes_by(store, "d") == [500.0, ("b",), ["b"], [500.0]]
    assert publish(store, "a") == []
    assert take(store, key, 600.0).woken is None
    assert wakes_by(store, "d") == [2_000.0, ("b",), ["b"], [2_000.0]]
    assert take(store, key, 2_000.0).woken is None
    assert wakes_by(store, "d") == [None, ("b",), ["b"], []]
    publish(store, "b")
    assert take(store, key, 100.0).woken == "time and time and event a and event b"


def test_its_owner_sees_what_it_waits_for_and_what_of_it_has_been(store: Driven) -> None:
    key = create(store, "d")
    wanted = wake.all_of(wake.at(500.0), wake.mail("high"), wake.load_below(cpu=0.5), wake.event("x"))
    assert store.read(agents.get, "ann", "d").wake_condition is None
    sleep(store, "d", wanted)
    assert store.read(agents.get, "ann", "d").wake_condition == wanted
    publish(store, "x")
    take(store, key, 100.0)
    assert store.read(agents.get, "ann", "d").wake_condition == wake.heard(wanted, "x")


def test_what_has_been_while_it_was_paused_counts_when_it_is_resumed(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.any_of(wake.at(500.0), wake.event("x")))
    pause(store, "d", True)
    assert take(store, key, 600.0).woken is None
    assert wakes_by(store, "d") == [None, ("x",), ["x"], []]
    pause(store, "d", False)
    assert take(store, key, 100.0).woken == "time"


def test_a_load_counts_only_as_it_is_now(store: Driven) -> None:
    key = create(store, "d")
    sleep(store, "d", wake.all_of(wake.load_below(cpu=0.5), wake.event("x")))
    for cpu in (0.1, 0.9):
        world = ClaimEnvironment(1_000.0, lambda: f"change_{next(numbers):09}", cpu)
        assert store.write(claims.claim, (ClaimRequest(key, True),), world)[0].woken is None
        publish(store, "x", optional=True)
    assert take(store, key).woken is None


def test_a_look_that_finds_nothing_new_writes_nothing(store: Driven) -> None:
    key = create(store, "d", "a")
    sleep(store, "d", wake.all_of(wake.at(500.0), wake.event("a"), wake.event("b")))
    publish(store, "a")
    take(store, key, 600.0)
    wrote: list[str] = []

    def looked_at(tx: Tx) -> tuple[ClaimedWork, ...]:
        return claims.claim(_Noting(tx, wrote), (ClaimRequest(key, True),), ClaimEnvironment(700.0, str))  # type: ignore[arg-type]

    assert store.write(looked_at)[0].woken is None
    assert wrote == []


class _Noting:
    """Notes what is written."""

    def __init__(self, tx: Tx, wrote: list[str]) -> None:
        self._tx, self._wrote = tx, wrote

    def write(self, sql: str, params: Any) -> Any:
        self._wrote.append(sql)
        return self._tx.write(sql, params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


# --- a model of it ---------------------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "ab", "ba"])
pieces = st.one_of(words, st.sampled_from(["*", "a*", "*b", "a*b"]))
names = st.lists(words, min_size=1, max_size=3).map(".".join)
wildcards = st.lists(pieces, min_size=1, max_size=3).map(".".join)
values = st.sampled_from([0, 1, True, False, None, "1", [1], {"x": 1}])
fields = st.dictionaries(st.sampled_from("xy"), values, max_size=2)
facts = st.tuples(names, st.one_of(fields, values), st.booleans())
subscribed = st.lists(st.tuples(wildcards, fields), max_size=3)


def stands_for(pattern: str, name: str) -> bool:
    *init, last = pattern.split(".")
    inner = [re.escape(piece).replace(r"\*", "[^.]*") for piece in init]
    end = ".+" if last == "*" else re.escape(last).replace(r"\*", "[^.]*")
    return re.fullmatch(r"\.".join([*inner, end]), name) is not None


def has(data: Any, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    return isinstance(data, dict) and all(k in data and json.dumps(data[k]) == json.dumps(v) for k, v in wanted.items())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    by_config=st.lists(subscribed, min_size=1, max_size=3),
    awaited=st.lists(wildcards, max_size=2),
    told=st.lists(facts, min_size=1, max_size=6),
)
def test_who_gets_what_is_what_a_simple_model_says(
    store: Driven, by_config: list[Any], awaited: list[str], told: list[Any]
) -> None:
    user = f"user{next(numbers)}"
    filters: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for number, wanted in enumerate(by_config):
        last_of_each = {pattern: (pattern, chosen) for pattern, chosen in wanted}
        key = create(store, f"d{number}", *(Subscription(*one) for one in last_of_each.values()), user=user)
        filters[key] = list(last_of_each.values())
    if awaited:
        sleep(store, "d0", wake.any_of(*map(wake.event, awaited)), user=user)
        filters[f"{user}/d0"] += [(pattern, {}) for pattern in awaited]
    untaken = 0
    for name, data, optional in told:
        hears = [k for k, all_of in filters.items() if any(stands_for(p, name) and has(data, f) for p, f in all_of)]
        assert publish(store, name, data, user=user, optional=optional) == sorted(hears)
        assert history(store, user=user)[0].takers == len(hears)
        untaken += not hears and not optional
    assert len(dead(store, user)) == untaken


@given(pattern=wildcards, name=names)
def test_a_pattern_that_stands_for_a_name_is_filed_under_one_of_its_heads(pattern: str, name: str) -> None:
    if patterns.matches(pattern, name):
        assert patterns.head(pattern) in patterns.heads(name)


# --- what was published ----------------------------------------------------------------------------------


def test_history_is_found_by_name_pattern_and_time_newest_first_and_in_pages(store: Driven) -> None:
    for number, name in enumerate(["a.b", "a", "a_b", "a.b.c", "a%b"]):
        publish(store, name, number, created=10.0 + number, optional=True)
    publish(store, "a.b", user="bob", optional=True)

    def found(pattern: str | None = None, **chosen: Any) -> list[Any]:
        return [event.data for event in history(store, pattern, **chosen)]

    assert found() == [4, 3, 2, 1, 0]
    assert found("a.b") == [0]
    assert found("a.*") == [3, 0]
    assert found("a_*") == [2]
    assert found("a%*") == [4]
    assert found(since=11.0, until=13.0) == [2, 1]
    publish(store, "exact", 5, created=20.0000006, optional=True)
    [exact] = history(store, "exact")
    assert found(since=exact.created.timestamp()) == [5]
    assert 5 not in found(until=exact.created.timestamp())
    first = history(store, limit=2, before=exact.event_id)
    assert found(limit=2, before=first[-1].event_id) == [2, 1]


# --- dead letters ----------------------------------------------------------------------------------------


def test_a_dead_letter_says_why_when_and_how_often(store: Driven) -> None:
    key = create(store, "d")
    e = envelope(key, 1, recorded=True, attempts=3)
    store.write(effects.post, SendTask(e))
    letter = die(store, e)
    assert dead(store) == [letter] == [store.read(dead_letters.get, "ann", letter.letter_id)]
    assert (letter.agent_id, letter.kind, letter.fault, letter.reason) == ("d", "task", "internal", "it broke")
    assert (letter.attempts, letter.created.timestamp(), letter.envelope["body"]) == (3, 120.0, "do it")


def test_a_retried_task_is_queued_as_new_and_has_as_much_time_as_it_had(store: Driven) -> None:
    key = create(store, "d")
    e = envelope(key, 1, recorded=True, attempts=3, expires=105.0, hops=7)
    store.write(effects.post, SendTask(e))
    letter = die(store, e, fault="expired")
    assert store.read(tasks.get, "ann", "task_1").status == "expired"
    [again] = store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    task = store.read(tasks.get, "ann", "task_1")
    assert (task.status, task.attempts, task.error, task.ended) == ("queued", 0, None, None)
    assert task.expires.timestamp() == again.expires == 1_005.0
    assert (again.envelope_id, again.hops, again.rank, again.created) == ("task_1", 0, 940.0, 1_000.0)
    [taken] = take(store, key).envelopes
    assert (taken.attempts, taken.journaled) == (1, False)
    assert dead(store) == []


def test_what_is_known_of_steps_stays_and_what_is_not_known_is_forgotten(store: Driven) -> None:
    key = create(store, "d")
    e = envelope(key, 1, recorded=True)
    store.write(effects.post, SendTask(e))
    place = Attempt("task_1", key, False, 0, "run_1", "ann", "d")
    store.write(steps.begin, place, 1, "step", "known", "step:known", None, "begun", 1.0)
    store.write(steps.end, place, 1, "done", "42", 1.0)
    store.write(steps.begin, place, 2, "step", "unknown", "step:unknown", None, "begun", 2.0)
    letter = die(store, e, fault="unknown_step")
    store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    [taken] = take(store, key).envelopes
    assert taken.journaled, "what is on record is read when it begins"
    recorded = store.write(in_progress.recorded, taken, 1)
    assert [(one.name, one.result, one.done) for one in recorded] == [("known", "42", True)]


def test_retrying_twice_posts_once(store: Driven) -> None:
    key = create(store, "d")
    store.write(effects.post, SendTask(envelope(key, 1)))
    letter = die(store, envelope(key, 1))
    store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    with pytest.raises(NotFound):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert len(everything(store, "inbox")) == 1


def test_what_dies_again_is_a_new_letter(store: Driven) -> None:
    key = create(store, "d")
    store.write(effects.post, SendTask(envelope(key, 1)))
    first = die(store, envelope(key, 1))
    [again] = store.write(dead_letters.retry, "ann", first.letter_id, 1_000.0)
    closing = Closing("run_2", again, 0, Verdict.DEAD, "", 1_001.0, 1_002.0, reason="again", fault="internal")
    store.write(settlement.settle, (closing,))
    [second] = dead(store)
    assert second.letter_id > first.letter_id
    assert second.reason == "again"


def test_an_untaken_event_stays_until_somebody_takes_it_and_is_the_same_event_then(store: Driven) -> None:
    publish(store, "news", {"n": 1})
    [letter] = dead(store)
    assert (letter.kind, letter.fault, letter.agent_id, letter.attempts) == ("event", "untaken", None, 0)
    with pytest.raises(Conflict, match="no agent subscribes to the event 'news'"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert dead(store) == [letter]
    key = create(store, "d", "news")
    [posted] = store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert (posted.address, json.loads(posted.body)["data"]) == (key, {"n": 1})
    [event] = history(store)
    assert event.takers == 1
    assert dead(store) == []


def test_an_untaken_event_whose_takers_are_full_by_now_stays_and_says_so(store: Driven) -> None:
    told: list[DeadLetter] = []
    publish(store, "news")
    [letter] = dead(store)
    create(store, "d", "news", "other", inbox_limit=1)
    publish(store, "other")
    store.engine.listen(told.extend)
    with pytest.raises(LimitReached, match="inboxes of all subscribers to the event 'news' are full"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert (dead(store), told) == ([letter], [])


def outgoing(key: str, sender: str) -> list[Any]:
    e = envelope(key, 1, sender=sender, recorded=True, hops=3)
    mail = SendMail(
        "mail_1",
        None,
        sender,
        f"agent:{key}",
        "hello",
        "you",
        Priority.LOW,
        100.0,
        130.0,
        None,
        None,
        Envelope("mail_1", key, Kind.MAIL, "mail:1", Priority.LOW, sender, "mail_1", 100.0, 100.0, expires=130.0),
        400.0,
    )
    return [SendTask(e, key="once"), mail]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("sender", "agent_id"), [("agent:ann/d", "d"), ("user:ann", None)])
def test_what_could_not_be_delivered_is_its_senders_and_is_delivered_when_it_can_be(
    store: Driven, which: int, sender: str, agent_id: str | None
) -> None:
    create(store, "d")
    effect = outgoing("ann/e", sender)[which]
    assert store.write(effects.post_all, (effect,), 110.0) == ()
    [letter] = dead(store)
    assert (letter.agent_id, letter.kind, letter.fault, letter.attempts) == (agent_id, "outgoing", "undeliverable", 1)
    assert "'e'" in letter.reason
    with pytest.raises(NotFound, match="no agent 'e'"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert dead(store) == [letter]
    create(store, "e")
    [posted] = store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert (posted.address, posted.sender, posted.hops, posted.due) == ("ann/e", sender, 0, 0.0)
    assert len(everything(store, "mail" if which else "tasks")) == 1
    assert dead(store) == []


def test_what_was_sent_to_anothers_agent_is_not_given_to_one_that_is_not_shared(store: Driven) -> None:
    create(store, "d")
    store.write(effects.post_all, (outgoing("bob/e", "agent:ann/d")[0],), 110.0)
    [letter] = dead(store)
    create(store, "e", user="bob")
    with pytest.raises(NotFound, match="no agent 'e'"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    store.write(agents.configure, "bob", "e", AgentConfig(shared=True), 1.0)
    assert len(store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)) == 1


def test_a_mail_that_is_gone_cannot_be_retried_and_its_letter_stays(store: Driven) -> None:
    key = create(store, "d")
    mail = outgoing(key, "user:ann")[1]
    store.write(effects.post, mail)
    letter = die(store, mail.envelope)
    before = everything(store, "dead_letters")
    store.write(lambda tx: tx.write("DELETE FROM mail"))
    with pytest.raises(Conflict, match="drop the dead letter"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 1_000.0)
    assert everything(store, "dead_letters") == before
    assert everything(store, "inbox") == []


def test_letters_are_chosen_by_agent_and_kind_and_come_newest_first_in_pages(store: Driven) -> None:
    for number in range(4):
        publish(store, f"event{number}", created=10.0 + number)
    key = create(store, "d")
    store.write(effects.post, SendTask(envelope(key, 1)))
    die(store, envelope(key, 1))
    found = dead(store)
    assert [letter.created.timestamp() for letter in found] == [120.0, 13.0, 12.0, 11.0, 10.0]
    assert dead(store, address=key) == dead(store, kind="task") == found[:1]
    assert dead(store, kind="event") == dead(store, fault=found[1].fault) == found[1:]
    assert dead(store, kind="task", fault=found[1].fault) == []
    assert dead(store, limit=2, before=found[1].letter_id) == found[2:4]
    oldest_first = [letter.letter_id for letter in reversed(found)]
    assert store.read(dead_letters.letter_ids, "ann", LetterFilter(), 120.0, 100, "") == oldest_first
    assert store.read(dead_letters.letter_ids, "ann", LetterFilter(), 12.0, 2, oldest_first[0]) == oldest_first[1:3]
    events = LetterFilter(kind="event", fault=found[1].fault)
    assert store.read(dead_letters.letter_ids, "ann", events, 120.0, 100, "") == oldest_first[:4]
    assert store.read(dead_letters.letter_ids, "ann", LetterFilter(key), 120.0, 100, "") == oldest_first[4:]


@pytest.mark.parametrize("op", [dead_letters.get, dead_letters.drop, dead_letters.retry])
def test_someone_elses_letter_is_answered_like_one_that_never_was(store: Driven, op: Any) -> None:
    publish(store, "news")
    [letter] = dead(store)
    more = (50.0,) if op is dead_letters.retry else ()
    refusals = []
    for user, letter_id in (("bob", letter.letter_id), ("ann", letter.letter_id[:-1] + "x")):
        with pytest.raises(NotFound) as refused:
            store.write(op, user, letter_id, *more)
        refusals.append(str(refused.value).replace(letter_id, "ID"))
    assert refusals[0] == refusals[1]
    assert dead(store, "bob") == []
    assert dead(store) == [letter]


def test_a_deleted_agent_takes_its_dead_letters_with_it(store: Driven) -> None:
    key = create(store, "d")
    store.write(effects.post, SendTask(envelope(key, 1)))
    die(store, envelope(key, 1))
    publish(store, "news")
    store.write(lifecycle.delete, "ann", "d")
    assert [letter.kind for letter in dead(store)] == ["event"]
