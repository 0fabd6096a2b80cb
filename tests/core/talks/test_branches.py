"""Versions of messages in a family of branches: each switch leads to a talk that differs from that message on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.core.talks.branches import Branch, versions
from roost.core.talks.messages import at


def branch(name: str, parent: str | None = None, seq: int = 0) -> Branch:
    return Branch(name, parent, seq, at(0.0))


def test_a_talk_without_branches_has_one_version_of_each_message() -> None:
    assert versions([branch("a")], "a") == {}


def test_each_branch_of_a_message_is_a_version_of_it() -> None:
    family = [branch("a"), branch("b", "a", 2), branch("c", "a", 2), branch("d", "b", 4)]
    assert {seq: (v.talks, v.current) for seq, v in versions(family, "c").items()} == {3: (("a", "b", "c"), 2)}
    assert {seq: (v.talks, v.current) for seq, v in versions(family, "d").items()} == {
        3: (("a", "b", "c"), 1),
        5: (("b", "d"), 1),
    }
    assert {seq: (v.talks, v.current) for seq, v in versions(family, "a").items()} == {3: (("a", "b", "c"), 0)}


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=12), st.integers(0, 20))
def test_the_current_version_is_the_talk_or_an_ancestor_and_the_others_are_not(
    made: list[tuple[int, int]], chosen: int
) -> None:
    family = [branch("t0")]
    for number, (parent, seq) in enumerate(made):
        origin = family[parent % len(family)]
        while origin.parent is not None and seq <= origin.parent_seq:  # as the store does it
            origin = next(b for b in family if b.talk_session_id == origin.parent)
        family.append(branch(f"t{number + 1}", origin.talk_session_id, seq))
    talk = family[chosen % len(family)]
    path = {talk.talk_session_id}
    at_talk = talk
    while at_talk.parent is not None:
        at_talk = next(b for b in family if b.talk_session_id == at_talk.parent)
        path.add(at_talk.talk_session_id)
    found = versions(family, talk.talk_session_id)
    for seq, several in found.items():
        assert several.talks[several.current] in path
        assert len(set(several.talks)) == len(several.talks) > 1
        starts = [b.parent_seq + 1 for b in family if b.talk_session_id in several.talks[1:]]
        assert set(starts) == {seq}
    own = {b.parent_seq + 1 for b in family if b.parent == talk.talk_session_id}
    assert own <= set(found)
