"""A database is replaced by an older copy under a running cluster: nodes of before can write nothing there."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from roost import RoostError, StaleCursor
from roost.core.cluster.nodes import LeaseTimes
from roost.service import AgentService
from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes
from tests.servers import ROOT

pytestmark = pytest.mark.postgres
GUIDE = ROOT / "docs" / "guides" / "configure.md"
TIMES = LeaseTimes(length=3.0, renewal=0.5, margin=0.5)


class Copies:
    """The database of a cluster, and an older copy of it."""

    def __init__(self, url: str) -> None:
        self._server = urlunsplit(urlsplit(url)._replace(path="/postgres"))
        self._name = urlsplit(url).path[1:]

    def copy(self) -> None:
        """Copy the database, to which nothing is connected."""
        self._execute("CREATE DATABASE {copy} TEMPLATE {name} STRATEGY FILE_COPY")

    def put_back(self) -> None:
        """Replace the database by the copy, and end all connections."""
        self._execute("ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        self._execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {text}")
        eventually(self._is_unused)
        self._execute("ALTER DATABASE {name} RENAME TO {lost}")
        self._execute("ALTER DATABASE {copy} RENAME TO {name}")

    def _is_unused(self) -> bool:
        with psycopg.connect(self._server, autocommit=True) as admin:
            query = "SELECT 1 FROM pg_stat_activity WHERE datname = %s"
            return admin.execute(query, [self._name]).fetchone() is None

    def _execute(self, text: str) -> None:
        names = {
            name: sql.Identifier(f"{self._name}{end}")
            for name, end in (("name", ""), ("copy", "_copy"), ("lost", "_x"))
        }
        with psycopg.connect(self._server, autocommit=True) as admin:
            admin.execute(sql.SQL(text).format(text=sql.Literal(self._name), **names))

    def renew(self, url: str) -> None:
        """Give the copy a new generation, as the guide says."""
        command = GUIDE.read_text().partition("```sql\n")[2].partition("```")[0]
        with psycopg.connect(url, autocommit=True) as admin:
            assert admin.execute(command.encode()).rowcount == 1

    def drop(self) -> None:
        for end in ("_copy", "_x"):
            name = sql.Identifier(f"{self._name}{end}")
            with psycopg.connect(self._server, autocommit=True) as admin:
                admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))


def settled_cursor(node: AgentService, talk: str) -> str:
    settled(node, "ann", talk)
    return str(node.get_messages("ann", talk).cursor)


def test_nodes_of_before_are_refused_and_new_ones_continue_from_the_copy(nodes: Nodes) -> None:
    brains, copies = {"echo": echo}, Copies(nodes.url)
    [first] = nodes.start(brains, times=TIMES)
    talk = first.create_talk_session("ann", profile="echo")
    first.add_message("ann", talk, "one")
    settled(first, "ann", talk)
    first.agents.create("ann", "d", profile="echo")
    before = first.tasks.send("ann", "d", "early")
    assert first.tasks.wait("ann", before).result == "early"
    first.close()
    nodes.services.clear()
    copies.copy()
    old = nodes.start(brains, 2, times=TIMES)
    try:
        late = old[0].tasks.send("ann", "d", "late")
        assert old[0].tasks.wait("ann", late).result == "late"
        old[0].add_message("ann", talk, "lost")
        cursor = settled_cursor(old[0], talk)
        copies.put_back()
        for node in old:
            for _ in range(3):
                with pytest.raises(RoostError):
                    node.tasks.send("ann", "d", "refused")
            assert node.roost.context.store.lost is not None
        copies.renew(nodes.url)
        nodes.services.clear()
        [new] = nodes.start(brains, times=TIMES)
        assert [m.content for m in everything(new, "ann", talk)] == ["one", "one"]
        new.add_message("ann", talk, "two")
        settled(new, "ann", talk)
        with pytest.raises(StaleCursor):  # it has the same numbers, with other contents
            new.get_messages("ann", talk, after=cursor)
        again = new.tasks.send("ann", "d", "again")
        assert new.tasks.wait("ann", again).result == "again"
        assert before < late < again, "ids do not go back"
        assert [task.prompt for task in new.tasks.list("ann")][::-1] == ["early", "again"]
    finally:
        for node in old:
            with suppress(RoostError):
                node.close()
        copies.drop()
