"""Tour: it fills every page, and its removal leaves the store as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import roost
from roost.demos import tour
from roost.demos.tour import ABOUT, GROUP
from roost.demos.tour_brains import BUYER, PLANNER, WATCHER
from tests.conftest import Open, eventually


def build(service: roost.AgentService, user: str = "ann") -> tour.Tour:
    return tour.build(service, user, pace=0)


def is_settled(service: roost.AgentService, user: str = "ann") -> bool:
    """Return whether nothing of the tour runs any more, except the run that waits for an approval."""
    is_over = all(one.phase == "ended" for one in service.meetings.list(user))
    return is_over and {agent.agent_id: agent.queue_depth for agent in service.agents.list(user)} == {
        BUYER: 1,
        PLANNER: 0,
        WATCHER: 0,
    }


def stored(service: roost.AgentService, user: str = "ann") -> dict[str, list[object]]:
    """Return everything that the pages list."""
    lists: dict[str, Callable[[], list[object]]] = {
        "agents": lambda: [one.agent_id for one in service.agents.list(user)],
        "mail": lambda: [one.mail_id for one in service.mail.inbox(user, include_archived=True)],
        "approvals": lambda: [one.approval_id for one in service.approvals.list(user, all=True)],
        "meetings": lambda: [one.meeting_id for one in service.meetings.list(user)],
        "runs": lambda: [one.run_id for one in service.runs.list(user)],
        "dead letters": lambda: [one.letter_id for one in service.dead_letters.list(user)],
        "schedules": lambda: [one.schedule_id for one in service.schedules.list(user)],
        "tasks": lambda: [one.task_id for one in service.tasks.list(user)],
    }
    return {name: found() for name, found in lists.items()}


def test_the_tour_gives_every_page_something_to_show(service: Open) -> None:
    opened = service({})
    built = build(opened)
    assert built.agents == (PLANNER, BUYER, WATCHER)
    eventually(partial(is_settled, opened))
    assert {mail.subject for mail in opened.mail.inbox("ann")} >= {"The plan of the day"}
    assert any(mail.sender == f"agent:ann/{PLANNER}" for mail in opened.mail.inbox("ann", f"agent:{BUYER}"))
    [asked] = opened.approvals.list("ann")
    assert (asked.agent_id, asked.tool, asked.arguments["count"]) == (BUYER, "order", 12)
    assert {(one.kind, one.fault) for one in opened.dead_letters.list("ann")} == {
        ("event", "untaken"),
        ("task", "internal"),
    }
    runs = opened.runs.list("ann")
    failed, _ = (run for run in runs if run.outcome == "failed")  # it was tried twice
    assert "where the key of the shed is" in str(opened.runs.get("ann", failed.run_id).traceback)
    planned = next(run for run in runs if run.agent_id == PLANNER and run.kind == "task")
    assert {step.kind for step in opened.runs.get("ann", planned.run_id).steps} == {"step", "ask", "model"}
    assert built.standup is not None
    assert built.game is not None
    assert opened.meetings.view("ann", built.game).outcome
    assert len(opened.meetings.view("ann", built.standup).words) >= 3
    assert "planned the day" in opened.meetings.minutes("ann", built.standup)
    assert built.schedule is not None
    assert opened.schedules.get("ann", built.schedule).next
    eventually(lambda: opened.agents.get("ann", PLANNER).state == "sleeping")


def test_what_the_tour_suggests_works(service: Open) -> None:
    opened = service({})
    build(opened)
    eventually(partial(is_settled, opened))
    opened.approvals.approve("ann", opened.approvals.list("ann")[0].approval_id)
    eventually(lambda: [one for one in opened.mail.inbox("ann") if one.subject == "The order of seeds"])
    [shed] = opened.dead_letters.list("ann", kind="task")
    opened.agents.remember("ann", WATCHER, "The key of the shed is under the mat.")
    opened.dead_letters.retry("ann", shed.letter_id)
    eventually(lambda: [one for one in opened.tasks.list("ann") if "under the mat" in str(one.result)])
    [alarm] = opened.dead_letters.list("ann", kind="event")
    opened.agents.configure("ann", WATCHER, subscriptions=["tour.*"])
    opened.dead_letters.retry("ann", alarm.letter_id)
    eventually(lambda: opened.dead_letters.list("ann") == [])
    [plan] = [one for one in opened.mail.inbox("ann") if one.subject == "The plan of the day"]
    eventually(lambda: opened.agents.get("ann", PLANNER).state == "sleeping")
    opened.mail.reply("ann", plan.mail_id, "paint the door")
    eventually(lambda: any("paint the door" in one.body for one in opened.mail.inbox("ann") if one.reply_to))
    assert opened.agents.get("ann", PLANNER).wake_reason


def test_removal_leaves_what_was_there_and_the_tour_can_be_built_again(service: Open) -> None:
    opened = service({})
    opened.mail.send("ann", "user:ann", "mine", "words")
    opened.events.publish("ann", "mine")
    opened.agents.create("ann", "mine", profile="echo", groups=["mine"])
    opened.tasks.wait("ann", opened.tasks.send("ann", "mine", "words"))
    before = stored(opened)
    assert all(before[name] for name in ("agents", "mail", "runs", "dead letters", "tasks"))
    for _ in range(2):
        build(opened)
        eventually(lambda: len(opened.dead_letters.list("ann")) == 3 and opened.approvals.list("ann"))
        assert tour.remove(opened, "ann") > len(ABOUT)
        assert stored(opened) == before
        assert not tour.find(opened, "ann").is_built
        assert tour.remove(opened, "ann") == 0


def test_the_tour_is_removed_after_a_restart(service: Open) -> None:
    opened = service({})
    build(opened)
    eventually(lambda: opened.mail.inbox("ann") and opened.approvals.list("ann"))
    opened.close()
    again = service({})
    assert tour.find(again, "ann").is_built
    tour.remove(again, "ann")
    assert not any(stored(again).values())


def test_a_second_build_adds_nothing_and_repairs_what_was_deleted(service: Open) -> None:
    opened = service({})
    first = build(opened)
    eventually(partial(is_settled, opened))
    tasks = len(opened.tasks.list("ann"))
    assert build(opened) == first
    assert len(opened.tasks.list("ann")) == tasks
    opened.agents.delete("ann", BUYER)
    assert tour.find(opened, "ann").agents == (PLANNER, WATCHER)
    assert build(opened).agents == (PLANNER, BUYER, WATCHER)
    eventually(lambda: opened.approvals.list("ann"))
    tour.remove(opened, "ann")
    assert not any(stored(opened).values())


def test_mail_of_an_agent_that_was_deleted_by_hand_is_removed_too(service: Open) -> None:
    opened = service({})
    build(opened)
    eventually(lambda: len(opened.mail.inbox("ann")) >= 2 and opened.dead_letters.list("ann", kind="event"))
    for name in ABOUT:
        opened.agents.delete("ann", name)
    assert opened.mail.inbox("ann")
    tour.remove(opened, "ann")
    assert not any(stored(opened).values())


def test_an_agent_taken_out_of_the_group_stays_with_its_mail(service: Open) -> None:
    opened = service({})
    build(opened)
    eventually(lambda: [one for one in opened.mail.inbox("ann") if one.sender.endswith(PLANNER)])
    opened.agents.configure("ann", PLANNER, groups=["mine"], description="mine now")
    kept = [one.mail_id for one in opened.mail.inbox("ann") if one.sender.endswith(PLANNER)]
    tour.remove(opened, "ann")
    assert [one.agent_id for one in opened.agents.list("ann")] == [PLANNER]
    assert [one.mail_id for one in opened.mail.inbox("ann") if one.sender.endswith(PLANNER)] == kept


def test_an_agent_of_the_user_with_such_a_name_is_left_alone(service: Open) -> None:
    opened = service({})
    opened.agents.create("ann", WATCHER, profile="echo")
    with pytest.raises(roost.Conflict, match="not part of the tour: delete it first"):
        build(opened)
    assert [one.agent_id for one in opened.agents.list("ann")] == [WATCHER]
    assert tour.remove(opened, "ann") == 0
    assert opened.agents.get("ann", WATCHER).config.profile == "echo"


def test_each_user_has_a_tour_of_their_own(service: Open) -> None:
    opened = service({})
    build(opened, "ann")
    build(opened, "bob")
    tour.remove(opened, "ann")
    assert tour.find(opened, "bob").is_built
    assert all(GROUP in one.config.groups for one in opened.agents.list("bob"))
