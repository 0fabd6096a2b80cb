"""Checks of a cluster after a load, whatever faults it had: nothing is lost, doubled, or done on two nodes at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from roost.testing import meeting_views
from tests.cluster import brains
from tests.cluster.ledger import Freeze, effects, has_just_thawed, overlaps
from tests.cluster.load import NAMES, TIMERS, Load
from tests.cluster.processes import Cluster
from tests.conftest import eventually, everything

AGREED = 140.0
"""Seconds after which participants of a meeting have asked each other for what they missed."""


def check(load: Load, freezes: Sequence[Freeze] = ()) -> None:
    """Wait until everything is handled, and check all of it."""
    made = load.made
    eventually(made.is_whole, 60)
    with made.nodes["a"].connect() as service:
        service.schedules.pause("ann", load.schedule)
    unfinished = "SELECT address, lane, kind, attempts, status FROM inbox WHERE status <> 'parked' LIMIT 5"
    eventually(lambda: not made.rows(unfinished) or None, 90)
    assert made.rows("SELECT reason FROM dead_letters") == []
    check_handled_once(load)
    check_timers(load)
    check_effects(load, freezes)
    check_talks(load)
    check_readers(load)
    check_meeting(load)
    check_overlap(made, freezes)


def check_handled_once(load: Load) -> None:
    """Check that each task and mail was settled once, and that what it mailed is there once."""
    rows = load.made.rows
    tasks = dict(rows("SELECT task_id, status FROM tasks"))
    assert {tasks[task_id] for task_id in load.sent.values()} == {"done"}
    assert set(tasks.values()) == {"done"}
    settled = "SELECT envelope_id, count(*) FROM runs WHERE outcome = 'done' AND kind IN ('task', 'mail')"
    assert rows(f"{settled} GROUP BY envelope_id HAVING count(*) > 1") == [], "each is settled once"
    mail: dict[Any, Any] = dict(rows("SELECT mail_id, subject FROM mail WHERE recipient LIKE 'agent:%'"))
    assert set(Counter(mail.values()).values()) <= {1}, "no mail of a client is there twice"
    assert {mail[mail_id] for mail_id in load.mailed.values()} == set(load.mailed)
    assert rows("SELECT mail_id FROM mail WHERE recipient LIKE 'agent:%' AND processed IS NULL") == []
    prompts = Counter(row[0] for row in rows("SELECT prompt FROM tasks"))
    assert {count for text, count in prompts.items() if text != "tick"} <= {1}
    expected = prompts + Counter(mail.values()) + Counter(f"Re: {subject}" for subject in mail.values())
    found = Counter(row[0] for row in rows("SELECT subject FROM mail WHERE recipient = 'user:ann'"))
    assert found == expected, f"lost {expected - found}, doubled {found - expected}"


def check_timers(load: Load) -> None:
    """Check that each timer, and each tick of a schedule, was posted once, at its time."""
    rows = load.made.rows
    timers = Counter(row[0] for row in rows("SELECT prompt FROM tasks WHERE prompt LIKE 'timer-%'"))
    assert timers == {f"timer-{number}": 1 for number in range(TIMERS)}
    ticks = sorted(float(str(row[0])) for row in rows(f"SELECT key FROM tasks WHERE schedule_id = '{load.schedule}'"))
    assert len(ticks) > 5
    assert [after - before for before, after in pairwise(ticks)] == pytest.approx([1.0] * (len(ticks) - 1))


def check_effects(load: Load, freezes: Sequence[Freeze]) -> None:
    """Check that each text had one effect outside of Roost. A process that thaws may repeat it, with the same key."""
    found = effects(load.made)
    done = {row[0] for row in load.made.rows("SELECT prompt FROM tasks")} | set(load.mailed)
    assert done <= set(found)
    for text, one in found.items():
        if text == "tick":
            continue
        assert len({key for _, _, key in one.times}) == 1, f"{text} has another key in a repeated turn"
        late = [when for when, pid, _ in one.times if has_just_thawed(pid, when, freezes)]
        assert len(one.times) - len(late) <= 1, f"{text} was done again: {one.times}"
        assert all(when <= (one.recorded or when) or when in late for when, _, _ in one.times), text


def check_talks(load: Load) -> None:
    """Check that talks have no gaps, and that each message was answered once, or interrupted by a later one."""
    for number, talk in enumerate(load.talks):
        query = f"SELECT seq, sender, content, status FROM messages WHERE talk_id = '{talk}' ORDER BY seq"
        rows: list[tuple[Any, ...]] = load.made.rows(query)
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1)), "without gaps"
        said = [content for _, sender, content, _ in rows if sender == "user"]
        assert set(Counter(said).values()) <= {1}
        assert load.said.get(talk, set()) <= set(said), "each acknowledged message is there"
        answers = [(*content.partition(":"), status) for _, sender, content, status in rows if sender == "agent"]
        assert {status for *_, status in answers} <= {"complete", "interrupted"}
        complete = [(texts.split("+"), rest) for texts, _, rest, status in answers if status == "complete"]
        assert {rest for _, rest in complete} <= {"".join(f" {piece}" for piece in range(brains.PIECES))}
        answered = [text for texts, _ in complete for text in texts]
        assert set(Counter(answered).values()) <= {1}, "no message was answered twice"
        if number < len(load.talks) // 2:
            assert answered == said, "each message was answered, in order"
        else:
            begun = {text for texts, *_ in answers for text in texts.split("+")}
            assert set(said) == begun, "each message was answered or interrupted"


def check_readers(load: Load) -> None:
    """Check that readers that have changed nodes have put together the texts that every node shows."""
    dice = random.Random(load.seed)
    for reader in load.readers:
        assert reader.moves > 1
        reader.read(load.made.nodes[dice.choice(NAMES)])
        for node in load.made.nodes.values():
            with node.connect() as service:
                shown = {message.seq: message.content for message in everything(service, "ann", reader.talk)}
            differ = {
                seq: (reader.texts.get(seq), text) for seq, text in shown.items() if reader.texts.get(seq) != text
            }
            assert differ == {}, f"read on {node.name}"
            assert reader.texts.keys() == shown.keys(), f"read on {node.name}"


def check_meeting(load: Load) -> None:
    """Check that all participants of the meeting see the same, with each message once."""

    def agreed() -> bool:
        views = list(meeting_views(load.made)[load.meeting].values())
        return len(views) > 1 and all(view == views[0] for view in views)

    eventually(agreed, AGREED)
    view = meeting_views(load.made)[load.meeting]["user:ann"]
    words = Counter(word.text for word in view.words)
    assert set(words.values()) <= {1}, "nothing was said twice"
    assert load.said.get(load.meeting, set()) <= set(words)
    with load.made.nodes["b"].connect() as service:
        assert service.meetings.view("ann", load.meeting).said == len(view.words)


def check_overlap(made: Cluster, freezes: Sequence[Freeze]) -> None:
    found = overlaps(made, freezes)
    assert not found, f"{len(found)} runs of one address at once: {found[:3]}"
