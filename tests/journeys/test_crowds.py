"""T2, T11: many threads, many talks, many people, at once."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import roost
from tests.brains_for_tests import Puppet
from tests.conftest import Open, everything, settled


@pytest.mark.parametrize("busy", ["interrupt", "queue", "rollback", "steer"])
def test_a_thousand_messages_of_twenty_threads_with_retries_are_each_kept_once_and_answered(
    service: Open, busy: str
) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet})
    talk = roosted.create_talk_session("ann", profile="puppet", busy=busy)
    numbers: dict[str, set[int]] = {f"{t}-{n}": set() for t in range(20) for n in range(50)}

    def send(thread: int) -> None:
        luck = random.Random(thread)
        for n in range(50):
            key = f"{thread}-{n}"
            for _ in range(1 + luck.randrange(3)):
                numbers[key].add(roosted.add_message("ann", talk, f"text {key}", key=key).seq)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(send, range(20)))
    whole = settled(roosted, "ann", talk)
    assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
    by_seq = {m.seq: m.content for m in whole if m.sender == "user"}
    assert sorted(by_seq.values()) == sorted(f"text {key}" for key in numbers)
    assert {key: {by_seq[s] for s in seqs} for key, seqs in numbers.items()} == {k: {f"text {k}"} for k in numbers}
    assert all(len(seqs) == 1 for seqs in numbers.values())
    last = puppet.turns[talk][-1]
    assert last.messages[-1].seq == max(by_seq)
    assert (whole[-1].sender, whole[-1].status) == ("agent", "complete")
    assert not [m for m in whole if not m.content and m.status != "withdrawn"]


def test_each_thread_finds_its_own_messages_in_the_order_in_which_it_sent_them(service: Open) -> None:
    roosted = service({"puppet": Puppet()})
    talk = roosted.create_talk_session("ann", profile="puppet")

    def send(thread: int) -> list[int]:
        return [roosted.add_message("ann", talk, f"{thread}-{n}").seq for n in range(20)]

    with ThreadPoolExecutor(20) as threads:
        sent = list(threads.map(send, range(20)))
    whole = {m.seq: m.content for m in settled(roosted, "ann", talk)}
    for thread, numbers in enumerate(sent):
        assert numbers == sorted(numbers)
        assert [whole[seq] for seq in numbers] == [f"{thread}-{n}" for n in range(20)]


async def token_keeper(turn: roost.Turn) -> AsyncIterator[str]:
    """Says whose talk it thinks it is in, and everything it has heard there."""
    yield f"{turn.user_id} {turn.talk_session_id}: "
    for message in (*turn.history, *turn.messages):
        if message.sender == "user":
            yield f"[{message.content}]"


def test_two_hundred_talks_of_fifty_people_at_once_hear_nothing_of_each_other(service: Open) -> None:
    roosted = service({"keeper": token_keeper})
    talks = [
        (f"user{n % 50}", roosted.create_talk_session(f"user{n % 50}", profile="keeper", busy="queue"))
        for n in range(200)
    ]

    def converse(place: tuple[str, str]) -> tuple[roost.Message, ...]:
        user, talk = place
        for n in range(3):
            roosted.add_message(user, talk, f"{talk}#{n}")
            settled(roosted, user, talk)
        return everything(roosted, user, talk)

    with ThreadPoolExecutor(20) as threads:
        for (user, talk), whole in zip(talks, threads.map(converse, talks), strict=True):
            questions = [f"{talk}#{n}" for n in range(3)]
            assert [m.content for m in whole if m.sender == "user"] == questions
            expected = [f"{user} {talk}: " + "".join(f"[{q}]" for q in questions[: n + 1]) for n in range(3)]
            assert [m.content for m in whole if m.sender == "agent"] == expected
    for n in range(50):
        mine = {talk for user, talk in talks if user == f"user{n}"}
        assert {t.talk_session_id for t in roosted.list_sessions(f"user{n}")} == mine


def test_writers_readers_stops_and_renames_on_one_talk_at_once_leave_it_consistent(service: Open) -> None:
    roosted = service({"puppet": Puppet()})
    talk = roosted.create_talk_session("ann", profile="puppet")
    over, failures = threading.Event(), list[BaseException]()

    def until_over(act: Callable[[], object]) -> None:
        try:
            while not over.is_set():
                act()
        except BaseException as error:
            failures.append(error)

    def read_all() -> None:
        whole = everything(roosted, "ann", talk)
        assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
        assert sum(m.status == "streaming" for m in whole) <= 1

    acts: list[Callable[[], object]] = [
        read_all,
        read_all,
        lambda: roosted.stop("ann", talk, wait=1),
        lambda: roosted.rename("ann", talk, "busy"),
        lambda: list(roosted.stream_messages("ann", talk)),
    ]
    with ThreadPoolExecutor(9) as threads:
        for act in acts:
            threads.submit(until_over, act)
        sent = list(threads.map(lambda n: roosted.add_message("ann", talk, f"message {n}").seq, range(300)))
        over.set()
    assert failures == []
    assert len(set(sent)) == 300
    roosted.add_message("ann", talk, "last")
    assert settled(roosted, "ann", talk)[-1].content.endswith("last")
