"""Rows of what a node holds in RAM: other nodes may have changed them without a notice arriving."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from roost.ports import Tx
from roost.stores import bulk


@dataclass(frozen=True, slots=True)
class HeldTalk:
    """A talk as it is in the store."""

    revision: int
    epoch: int
    waiting: int
    agent: str
    settings: tuple[str, str, str, Any]
    """Title, profile, busy policy and options."""


@dataclass(frozen=True, slots=True)
class HeldAgent:
    """An agent as it is in the store."""

    epoch: int
    state: str
    paused: bool
    config: str


def talks(tx: Tx, talk_ids: Collection[str]) -> dict[str, HeldTalk]:
    """Return those of the talks that exist."""
    sql = "SELECT talk_id, revision, epoch, waiting, agent, title, profile, busy, options FROM talks WHERE talk_id IN"
    rows = bulk.read(tx, sql, sorted(talk_ids))
    return {
        talk_id: HeldTalk(revision, epoch, waiting, agent, (title, profile, busy, json.loads(options)))
        for talk_id, revision, epoch, waiting, agent, title, profile, busy, options in rows
    }


def agents(tx: Tx, addresses: Collection[str]) -> dict[str, HeldAgent]:
    """Return those of the agents that exist."""
    sql = "SELECT address, epoch, state, paused, config FROM agents WHERE address IN"
    rows = bulk.read(tx, sql, sorted(addresses))
    return {row[0]: HeldAgent(row[1], row[2], bool(row[3]), row[4]) for row in rows}


def nodes_of_agents(tx: Tx, addresses: Collection[str]) -> dict[str, str]:
    """Return the nodes that agents belong to; those that belong to none are left out."""
    rows = bulk.read(tx, "SELECT address, node FROM agents WHERE node <> '' AND address IN", sorted(addresses))
    return {str(row[0]): str(row[1]) for row in rows}


def envelopes(tx: Tx, envelope_ids: Collection[str]) -> set[str]:
    """Return those of the envelopes that have not been handled, cancelled or dropped."""
    rows = bulk.read(tx, "SELECT envelope_id FROM inbox WHERE envelope_id IN", sorted(envelope_ids))
    return {row[0] for row in rows}
