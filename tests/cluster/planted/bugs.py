"""Defects of the cluster that its tests have to find, each with the cheapest harness that does."""

from __future__ import annotations

from roost.runtime.cluster.membership import Membership
from roost.runtime.handlers.talks.reading import TalkReading
from roost.runtime.handlers.talks.remote import TalksElsewhere
from roost.runtime.supervisor import Supervisor
from roost.stores.postgres import Postgres
from roost.stores.sql import nodes, settlement
from roost.stores.sql.inbox import claims
from roost.stores.sql.journal import steps
from roost.stores.sql.schedules import schedules
from roost.stores.sql.sending import requests
from roost.stores.sql.tables import owners
from roost.stores.sql.talks import answers, runs
from tests.cluster.planted.harnesses import (
    Harness,
    fenced,
    in_one_process,
    on_a_store,
    on_two_connections,
    seeds,
    simulated,
)
from tests.cluster.planted.planting import Bug
from tests.contracts.sql import test_nodes, test_ownership, test_takeovers
from tests.contracts.sql.test_fences import OF_AGENTS
from tests.runtime.cluster import test_cursors, test_network, test_older_copy, test_stops
from tests.testing import test_cluster

LEASES: list[tuple[Bug, Harness]] = [
    (
        Bug("renewal", "A lease that has ended is renewed.", nodes.renew, "AND {_ALIVE} ", ""),
        on_a_store(test_nodes.test_a_node_is_evicted_once_and_can_never_renew_again),
    ),
    (
        Bug(
            "self-stop",
            "A node works on when its lease has ended.",
            Membership._watch,
            "remaining <= 0",
            "False",
        ),
        seeds(store_cut=1.0),
    ),
    (
        Bug("evict-alive", "A node is evicted before its lease ends.", nodes.evict, "AND lease <= roost_now()", ""),
        on_a_store(test_nodes.test_a_node_with_a_lease_is_not_evicted_and_keeps_its_work),
    ),
    (
        Bug("disown-alive", "The work of a node that is alive is taken.", nodes.disown, "AND {is_gone}", ""),
        on_a_store(test_nodes.test_a_node_with_a_lease_is_not_evicted_and_keeps_its_work),
    ),
    (
        Bug(
            "no-eviction",
            "A node that has died is never evicted.",
            Membership._look,
            "await self._evict(node.node_id, work)",
            "pass",
        ),
        simulated(test_cluster.test_another_node_does_the_work_of_a_killed_one, False),
    ),
    (
        Bug("old-epochs", "An eviction raises no epochs.", nodes.disown, "epoch = epoch + 1", "epoch = epoch"),
        on_two_connections(
            test_takeovers.test_no_write_of_a_node_is_committed_after_its_work_was_taken, OF_AGENTS["settle"], "evicted"
        ),
    ),
    (
        Bug(
            "backends",
            "An eviction leaves the transactions of a frozen node open.",
            nodes.evict,
            "tx.read(_END_BACKENDS",
            "tx.read('SELECT :name'",
        ),
        on_two_connections(
            test_takeovers.test_a_transaction_of_a_frozen_node_ends_with_its_eviction_and_its_locks_are_free
        ),
    ),
    (
        Bug(
            "reconnection",
            "A node that was evicted connects again.",
            Postgres._check_node,
            'row[0] == "gone"',
            'row[0] == "none"',
        ),
        on_two_connections(test_takeovers.test_a_node_that_was_evicted_cannot_connect_again),
    ),
    (
        Bug(
            "older-copy",
            "A node writes to an older copy of the database, which does not know it.",
            Postgres._check_node,
            "row is None and self.is_member",
            "False",
        ),
        in_one_process(test_older_copy.test_nodes_of_before_are_refused_and_new_ones_continue_from_the_copy),
    ),
    (
        Bug(
            "no-suspects",
            "What ran on a node that died is not suspect.",
            nodes.evict,
            "recovery.mark_suspects(tx, rows[0][0], node_id)",
            "pass",
        ),
        on_a_store(test_ownership.test_only_what_ran_on_a_dead_node_is_suspect),
    ),
    (
        Bug(
            "suspects-of-leaving",
            "What ran on a node that leaves is suspect.",
            nodes.leave,
            "recovery.return_to_quarantine(tx, node_id)",
            "pass",
        ),
        on_a_store(test_ownership.test_what_ran_in_quarantine_on_a_node_that_leaves_is_still_to_run_there),
    ),
]

OWNERSHIP: list[tuple[Bug, Harness]] = [
    (
        Bug("theft", "A node takes agents and talks of one that is alive.", owners.is_own, "not tx.node or", "True or"),
        on_a_store(test_ownership.test_a_talk_with_an_agent_belongs_to_the_node_of_the_agent),
    ),
    (
        Bug(
            "theft-by-post",
            "A message takes its talk from a node that is alive.",
            owners.TakingUpdate.sql,
            "self.in_cluster if",
            'self.in_cluster.replace("talks.node = \'\'", "TRUE") if',
        ),
        on_a_store(
            test_ownership.test_a_talk_belongs_to_the_node_that_creates_it_and_a_message_elsewhere_names_the_owner
        ),
    ),
    (
        Bug(
            "two-owners",
            "A node that claims a free agent does not become its owner.",
            claims.claim,
            "epoch = epoch + 1, node = ? WHERE",
            "epoch = epoch + 1, node = substr(?, 1, 0) WHERE",
        ),
        on_a_store(test_ownership.test_an_agent_belongs_to_the_node_that_wakes_it_and_other_nodes_learn_which_one),
    ),
    (
        Bug(
            "foreign-timers",
            "A node fires timers of agents of other nodes.",
            schedules._own,
            "owners.and_own_agent(tx, key)",
            '""',
        ),
        on_a_store(test_ownership.test_a_node_fires_its_own_timers_and_those_of_agents_that_are_not_awake),
    ),
    (
        Bug(
            "dropped-work", "A node that drains frees what still runs there.", nodes.release, "not in kept", "not in ()"
        ),
        seeds(node_drained=1.0),
    ),
    (
        Bug(
            "blind-sweep",
            "Work whose notice was lost is never found.",
            Supervisor._sweep_agents,
            "for address in found:",
            "for address in ():",
        ),
        simulated(test_cluster.test_another_node_does_the_work_of_a_killed_one, False),
    ),
]

FENCES: list[tuple[Bug, Harness]] = [
    (
        Bug("step", "A step is begun in an old epoch.", steps._owns_claim, "row[0] == attempt.epoch", "True"),
        fenced("agent begin", "take"),
    ),
    (
        Bug(
            "step-lock",
            "A run checks its epoch without a lock.",
            steps._owns_claim,
            "{locking.of_table(tx, 'h')}",
            "",
        ),
        fenced("agent post_now", "take"),
    ),
    (
        Bug("ask", "A request is posted in an old epoch.", requests.ask, "r.epoch) in claims", "r.epoch)"),
        fenced("agent ask", "take"),
    ),
    (
        Bug(
            "settle-agent",
            "A turn of an agent settles in an old epoch.",
            settlement._unfenced,
            "epochs.get(c.envelope.address) == c.epoch",
            "True",
        ),
        fenced("agent settle", "take"),
    ),
    (
        Bug("settle-talk", "A run of a talk settles in an old epoch.", runs._end, "row[0] != c.epoch", "False"),
        fenced("talk settle", "claim"),
    ),
    (
        Bug("checkpoint", "A superseded run saves text.", answers.checkpoint, " AND t.epoch = :epoch", ""),
        fenced("talk checkpoint", "interrupt"),
    ),
    (
        Bug("claim", "A claim raises no epoch.", claims.claim, "epoch = epoch + 1, node", "epoch = epoch, node"),
        fenced("agent settle", "take"),
    ),
    (
        Bug(
            "claim-lock",
            "A claim reads the owner without a lock.",
            claims.claim,
            "ORDER BY address{tx.for_update}",
            "ORDER BY address",
        ),
        on_two_connections(test_takeovers.test_a_free_agent_is_claimed_by_one_of_two_nodes),
    ),
]

LONGER: list[tuple[Bug, Harness]] = [
    (
        Bug(
            "blind-check",
            "A stop whose notice was lost is never found.",
            Supervisor._check_held,
            "await self._missed_changes.check()",
            "pass",
        ),
        in_one_process(test_network.test_an_agents_work_ends_on_a_node_that_is_cut_off, "stop"),
    ),
    (
        Bug(
            "receipt",
            "A stop is acknowledged without an answer of the node of the talk.",
            TalksElsewhere.stop,
            "return Receipt(requested)",
            "return Receipt(requested, requested, requested)",
        ),
        in_one_process(test_stops.test_a_stop_without_transport_ends_the_run_and_acknowledges_nothing, 1),
    ),
    (
        Bug(
            "short-text",
            "A reader on a node that is cut off gets less text than it has seen.",
            TalksElsewhere._read_store,
            "cursor.offset <= text.length",
            "True",
        ),
        in_one_process(test_cursors.test_a_reader_that_has_seen_more_than_was_saved_gets_no_shorter_text, patched=True),
    ),
    (
        Bug(
            "old-cursor",
            "A node refuses the cursor of another one that knows more.",
            TalkReading._look,
            "cursor.revision > live.revision and self.remote is not None",
            "False",
        ),
        in_one_process(test_cursors.test_a_reader_with_a_newer_cursor_catches_up_on_the_node_of_the_talk),
    ),
]

BUGS = [*LEASES, *OWNERSHIP, *FENCES]
