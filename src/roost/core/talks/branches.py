"""Branches of a talk: they share its first messages and continue on their own. No message is ever changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class BranchAction(StrEnum):
    """Action that creates a talk from another one."""

    FORK = "fork"
    """An independent talk, which knows its parent."""
    EDIT = "edit"
    REGENERATE = "regenerate"


@dataclass(frozen=True, slots=True)
class Branch:
    """Branch of a talk: it shares the messages of `parent` up to number `parent_seq`."""

    talk_session_id: str
    parent: str | None
    parent_seq: int
    created: datetime


@dataclass(frozen=True, slots=True)
class NewBranch:
    """Request for a branch. `seq`: the message to fork after, to edit or to answer again; None: the last one."""

    talk_id: str
    action: BranchAction
    seq: int | None
    envelope_id: str
    content: str = ""
    title: str = ""
    """Title, if one was given; by default that of the parent, with a suffix for forks."""
    key: str | None = None


@dataclass(frozen=True, slots=True)
class MessageVersions:
    """Versions of one message of a talk, as ids of the talks that have them, in order of creation."""

    talks: tuple[str, ...]
    current: int
    """Index of the version in this talk."""


def versions(branches: Sequence[Branch], talk_id: str) -> dict[int, MessageVersions]:
    """Return the versions of each message of this talk that has several, by the number of the message.

    A branch and its parent differ from number `parent_seq` + 1 on.
    """
    known = {branch.talk_session_id: branch for branch in branches}
    found: dict[int, MessageVersions] = {}
    shared: int | None = None  # number of messages that this talk has in common with `talk`
    talk, child = known.get(talk_id), ""
    while talk is not None:
        for seq in sorted({b.parent_seq for b in branches if b.parent == talk.talk_session_id}):
            if shared is not None and seq > shared:
                continue
            children = _children(branches, talk.talk_session_id, seq)
            ids = (talk.talk_session_id, *children)
            found[seq + 1] = MessageVersions(ids, ids.index(child) if seq == shared else 0)
        child, shared = talk.talk_session_id, talk.parent_seq
        talk = known.get(talk.parent or "")
    return found


def _children(branches: Iterable[Branch], parent: str, seq: int) -> Iterable[str]:
    return [b.talk_session_id for b in branches if b.parent == parent and b.parent_seq == seq]
