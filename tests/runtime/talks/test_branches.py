"""Forks, edited messages and regenerated answers: other talks, which begin like the first one. It never changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.talks.branches import versions
from tests.conftest import settled
from tests.runtime.agents.test_agents import teller
from tests.runtime.conftest import World, ended, short

pytestmark = pytest.mark.order


async def counter(turn: Turn) -> AsyncIterator[str]:
    """Counts its turns, and repeats what it knows of the talk."""
    turn.state["count"] = turn.state.get("count", 0) + 1
    if turn.text == "forget":
        turn.state["seen"] = []
    turn.state["seen"] = [*turn.state.get("seen", []), turn.text]
    yield f"{turn.state['count']}: {'|'.join(turn.state['seen'])} after {len(turn.history)}"


async def holding(service: AsyncAgentService, *texts: str) -> str:
    talk = await service.create_talk_session("ann", profile="counter")
    for text in texts:
        await service.add_message("ann", talk, text)
        await ended(service, talk)
    return talk


async def texts(service: AsyncAgentService, talk: str) -> list[str]:
    return [text for _, text, _ in short(await ended(service, talk))]


THREE = ["a", "1: a after 0", "b", "2: a|b after 2", "c", "3: a|b|c after 4"]


def test_an_edited_message_is_answered_in_a_branch_that_knows_nothing_of_what_came_later(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str], tuple[str | None, int]]:
        talk = await holding(service, "a", "b", "c")
        branch = await service.edit_message("ann", talk, 3, "B")
        found = await texts(service, branch.talk_session_id)
        return await texts(service, talk), found, (branch.parent and "talk", branch.parent_seq)

    before, branch, origin = world({"counter": counter}, story)
    assert before == THREE
    assert branch == ["a", "1: a after 0", "B", "2: a|B after 2"]
    assert origin == ("talk", 2)


def test_a_regenerated_answer_starts_from_the_state_before_it(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str], list[str]]:
        talk = await holding(service, "a", "b", "c")
        last = await service.regenerate("ann", talk)
        second = await service.regenerate("ann", talk, seq=4)
        await ended(service, second.talk_session_id)
        await service.add_message("ann", second.talk_session_id, "d")
        return (
            await texts(service, talk),
            await texts(service, last.talk_session_id),
            await texts(service, second.talk_session_id),
        )

    before, last, second = world({"counter": counter}, story)
    assert before == last == THREE
    assert second == [*THREE[:4], "d", "3: a|b|d after 4"]


def test_a_fork_is_a_talk_of_its_own_with_the_state_at_its_last_message(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str], list[str], str]:
        talk = await holding(service, "a", "forget", "c")
        fork = await service.fork("ann", talk, seq=2, title="another way")
        await service.add_message("ann", fork.talk_session_id, "d")
        found = await texts(service, fork.talk_session_id)
        for parent in (talk, (await service.fork("ann", talk)).talk_session_id):
            await service.fork("ann", parent)
        listed = [one.title for one in await service.list_sessions("ann")]
        await service.delete("ann", talk)
        alone = await service.get_session("ann", fork.talk_session_id)
        return found, listed, await texts(service, fork.talk_session_id), str(alone.parent)

    found, listed, after, parent = world({"counter": counter}, story)
    assert found == after == ["a", "1: a after 0", "d", "2: a|d after 2"]
    assert sorted(listed) == ["a", "a (fork)", "a (fork)", "a (fork)", "another way"]
    assert parent == "None"


def test_of_all_branches_the_last_used_one_is_listed_and_all_are_deleted_together(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[bool], list[int], int]:
        talk = await holding(service, "a", "b")
        one = await service.edit_message("ann", talk, 3, "x")
        two = await service.edit_message("ann", one.talk_session_id, 3, "y")
        await ended(service, two.talk_session_id)
        [listed] = await service.list_sessions("ann")
        branches = await service.list_branches("ann", talk)
        shown = versions(branches, one.talk_session_id)
        await service.add_message("ann", talk, "c")
        await ended(service, talk)
        [again] = await service.list_sessions("ann")
        await service.delete("ann", one.talk_session_id)
        right = [
            listed.talk_session_id == two.talk_session_id,
            again.talk_session_id == talk,
            list(shown) == [3],
            shown[3].talks == (talk, one.talk_session_id, two.talk_session_id),
            listed.root == talk == one.root == again.root,
        ]
        return right, [shown[3].current], len(await service.list_sessions("ann"))

    assert world({"counter": counter}, story) == ([True] * 5, [1], 0)


def test_the_same_key_makes_one_branch(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, bool, int]:
        talk = await holding(service, "a")
        one = await service.edit_message("ann", talk, 1, "x", key="k")
        same = await service.edit_message("ann", talk, 1, "x", key="k")
        other = await service.regenerate("ann", talk, key="k")
        await ended(service, other.talk_session_id)
        count = len(await service.list_branches("ann", talk))
        return one.talk_session_id == same.talk_session_id, one.talk_session_id == other.talk_session_id, count

    assert world({"counter": counter}, story) == (True, False, 3)


def test_what_cannot_be_branched_is_refused_and_changes_nothing(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], int]:
        talk = await holding(service, "a")
        empty = await service.create_talk_session("ann", profile="counter")
        calls = [
            service.edit_message("ann", talk, 2, "x"),
            service.edit_message("ann", talk, 9, "x"),
            service.edit_message("ann", talk, 1, ""),
            service.fork("ann", talk, seq=0),
            service.fork("bob", talk),
            service.regenerate("ann", empty),
            service.fork("ann", "talk_unknown"),
            service.list_branches("bob", talk),
        ]
        refusals = []
        for call in calls:
            with pytest.raises(roost.RoostError) as refused:
                await call
            refusals.append(type(refused.value).__name__)
        return refusals, len(await service.list_sessions("ann"))

    refusals, count = world({"counter": counter}, story)
    assert refusals == ["Invalid", "NotFound", "Invalid", "Invalid", "NotFound", "Invalid", "NotFound", "NotFound"]
    assert count == 2


def test_a_branch_of_a_talk_with_an_agent_is_answered_by_the_agent(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="teller")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        branch = await service.edit_message("ann", talk, 1, "hi")
        return await texts(service, branch.talk_session_id)

    assert world({"teller": teller}, story) == ["hi", "talk hi from user:ann, 2"]


def test_a_search_finds_a_copied_message_once_and_in_a_fork_when_its_parent_is_gone(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[tuple[bool, int]]]:
        talk = await holding(service, "apples", "pears")
        fork = (await service.fork("ann", talk)).talk_session_id
        edited = await service.edit_message("ann", talk, 3, "plums")
        await ended(service, edited.talk_session_id)

        async def places(query: str, talk: str | None = None) -> list[tuple[bool, int]]:
            page = await service.search("ann", query, talk_session_id=talk)
            return sorted((hit.talk_session_id == fork, hit.seq) for hit in page.hits if hit.sender == "user")

        before = [await places("apples"), await places("plums"), await places("pears", fork)]
        await service.delete("ann", talk)
        return [*before, await places("apples")]

    assert world({"counter": counter}, story) == [[(False, 1)], [(False, 3)], [(True, 3)], [(True, 1)]]


def test_a_copied_message_is_found_once_however_small_the_pages_are(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        talk = await holding(service, "apples 1", "apples 2")
        edited = await service.edit_message("ann", talk, 3, "apples 3")
        await ended(service, edited.talk_session_id)
        whole = (await service.search("ann", "apples")).hits
        page = await service.search("ann", "apples", limit=1)
        hits = list(page.hits)
        while page.cursor is not None:
            page = await service.search("ann", "apples", limit=1, after=page.cursor)
            hits += page.hits
        assert hits == list(whole)

    world({"counter": counter}, story)


def test_copies_count_towards_the_storage_quota_of_their_user(tmp_path: Path) -> None:
    limits = roost.Limits(stored_mib_per_user=0.05)
    with roost.open(f"sqlite:///{tmp_path}/r.db", limits=limits) as service:
        talk = service.create_talk_session("ann", profile="echo")
        service.add_message("ann", talk, "x" * 10_000)
        settled(service, "ann", talk)
        with pytest.raises(roost.LimitReached, match="stored_mib_per_user"):
            for _ in range(10):
                service.fork("ann", talk)
        assert 1 < len(service.list_sessions("ann")) < 5
