"""A person with something in every table, and others who have to do with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import roost
from roost.core.brain_data.brain_context import Scope
from roost.hosts.pending import drive
from roost.ports import Tx
from roost.stores.sql.brain_data import artifacts
from tests.api.conftest import BRAINS, deploy
from tests.conftest import QUICK, eventually, settled

PASSWORD = "correct horse battery"


async def keeper(turn: roost.Turn) -> AsyncIterator[str]:
    """Keep something in every place that a brain has."""
    turn.state["seen"] = turn.user_id
    await turn.brain_context.read("app", 1)
    turn.brain_context.add('{"item": 1}')
    for scope in (Scope.OWN, Scope.USER):
        turn.brain_context.set(scope, "name", '"value"')
        await turn.brain_context.artifacts.save("app", scope, "file", "content", "{}")
    yield "kept"


def opened(url: str) -> roost.AgentService:
    return roost.open(url, brains={**BRAINS, "keeper": keeper}, default="parrot", limits=QUICK, tools=[deploy])


def written(service: roost.AgentService, op: Any, *args: Any) -> Any:
    async def run() -> Any:
        return await service.roost.context.store.write(op, *args)

    return drive(run())


def rows(service: roost.AgentService) -> dict[str, list[str]]:
    """All rows of all tables, as texts."""

    def read(tx: Tx) -> dict[str, list[str]]:
        listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        if is_sqlite(service):
            listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        tables = [str(name) for (name,) in tx.read(listed)]
        return {table: [repr(tuple(row)) for row in tx.read(f"SELECT * FROM {table}")] for table in tables}

    async def run() -> dict[str, list[str]]:
        return await service.roost.context.store.read(read)

    return drive(run())


def columns(service: roost.AgentService) -> dict[str, set[str]]:
    """The columns of all tables."""
    tables = rows(service).keys()

    def read(tx: Tx) -> dict[str, set[str]]:
        if is_sqlite(service):
            return {name: {row[1] for row in tx.read(f"PRAGMA table_info({name})")} for name in tables}
        found: dict[str, set[str]] = {}
        listed = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        for table, column in tx.read(listed):
            found.setdefault(table, set()).add(column)
        return found

    async def run() -> dict[str, set[str]]:
        return await service.roost.context.store.read(read)

    return drive(run())


def is_sqlite(service: roost.AgentService) -> bool:
    store: Any = service.roost.context.store
    return type(store.database).__name__ == "Sqlite"


def mentions(service: roost.AgentService, name: str) -> dict[str, list[str]]:
    """The rows that have a name anywhere, by table."""
    found = {table: [row for row in kept if name in row] for table, kept in rows(service).items()}
    return {table: kept for table, kept in found.items() if kept}


def populate(service: roost.AgentService, name: str, other: str) -> None:
    """Give a person something in every table, also together with another person."""
    account(service, name)
    service.agents.create(other, "desk", shared=True)
    for who in (name, other):
        hook = service.webhooks.create(who, "https://localhost:9/never", events=["*"]).webhook
        incoming = service.hooks.create(who, event="heard").hook
        drive(service.asynchronous.hooks.accept(incoming, {"webhook-id": f"request of {who}"}, {"by": who}))
        service.webhooks.pause(who, hook.webhook_id)
    agents(service, name)
    talks(service, name, other)
    together(service, name, other)
    written(service, artifacts.save, "artifact_x", "user", f"app/x/{name}", "file", "content", "{}", 1.0)


def account(service: roost.AgentService, name: str) -> None:
    server = service.asynchronous.users
    drive(server.redeem(service.users.add("root", name).code, PASSWORD, "10.0.0.1"))
    service.tokens.create(name, "mine")
    drive(server.record(name, "sign-in", name, "10.0.0.1", f"user:{name}"))

    def identity(tx: Tx) -> None:
        tx.write(
            "INSERT INTO identities (issuer, subject, user_id, created) VALUES ('https://id', :who, :who, 1)",
            {"who": name},
        )

    written(service, identity)
    service.users.reset("root", name)


def agents(service: roost.AgentService, name: str) -> None:
    service.agents.create(name, "d", shared=True, subscriptions=["news.*"], max_concurrent_tasks=2)
    service.agents.create(name, "sleeper")
    service.agents.create(name, "careful", profile="careful")
    service.agents.create(name, "busy", profile="endless")
    service.agents.remember(name, "d", "likes birds", key="birds")
    service.agents.sleep(name, "sleeper", 3600)
    service.schedules.create(name, "d", "look", every=3600)
    service.events.publish(name, "news.today", {"by": f"user:{name}"})
    service.events.publish(name, "nobody.hears", {})
    service.tasks.wait(name, service.tasks.send(name, "d", "work"), 30)
    service.mail.send(name, "agent:d", "subject", "body")
    service.mail.send(name, f"user:{name}", "to me", "body", sender="agent:d")
    service.mail.arrivals(name)
    service.tasks.send(name, "busy", "without end")
    service.tasks.send(name, "careful", "it")
    eventually(lambda: service.approvals.list(name))
    service.approvals.allow_always(name, service.approvals.list(name)[0].approval_id)
    service.tasks.send(name, "sleeper", "later")


def talks(service: roost.AgentService, name: str, other: str) -> None:
    file = service.add_attachment(name, "notes.txt", b"seeds")
    service.add_attachment(name, "unused.txt", b"seeds")
    talk = service.create_talk_session(name, profile="parrot")
    service.add_message(name, talk, "hello", attachments=[file.attachment_id])
    settled(service, name, talk)
    service.edit_message(name, talk, 1, "hello again")
    service.fork(name, talk, seq=1)
    keeping = service.create_talk_session(name, profile="keeper")
    service.add_message(name, keeping, "keep")
    settled(service, name, keeping)
    running = service.create_talk_session(name, profile="endless")
    service.add_message(name, running, "go")
    next(change for change in service.stream_messages(name, running) if change.message.content)
    for who, agent in ((name, f"agent:{other}/desk"), (other, f"agent:{name}/d")):
        shared = service.create_talk_session(who, agent=agent)
        service.add_message(who, shared, "hello")
        settled(service, who, shared)


def together(service: roost.AgentService, name: str, other: str) -> None:
    """Create what two users share: tasks, mail and meetings across both."""
    desk, d = f"agent:{other}/desk", f"agent:{name}/d"
    service.tasks.wait(name, service.tasks.send(name, desk, "work for me"), 30)
    service.tasks.wait(other, service.tasks.send(other, d, "work for you"), 30)
    service.agents.pause(other, "desk")
    service.tasks.send(name, desk, "never begun")
    service.mail.send(name, desk, "to your desk", "from me")
    service.mail.send(other, d, "to your agent", "from them")
    service.agents.resume(other, "desk")
    for who, guests in ((name, [desk, "agent:d"]), (other, ["agent:desk", d])):
        meeting = service.meetings.call(who, "plan", optional=guests)
        service.meetings.say(who, meeting, "let us begin")
        eventually(lambda: len(service.meetings.view(who, meeting).words) > 1)  # noqa: B023
    eventually(lambda: not service.tasks.list(other, agent="desk", status="queued"))
    eventually(lambda: service.agents.get(other, "desk").state == "idle")
    over = service.meetings.call(name, "alone", optional=["agent:d"])
    service.meetings.end(name, over, "done")
