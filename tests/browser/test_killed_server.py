"""A server that is killed and started again: every page that is open is right again by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import roost
from roost.api.auth import identity
from roost.stores.sqlite import owner
from tests.browser.conftest import SETTINGS, expect_ready, free_port, up
from tests.browser.steps import logged_errors
from tests.conftest import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

AWAY = (
    "net::ERR_",
    "WebSocket connection to",
    "No response received when attempting to reach /_stcore/",
    "Is Streamlit still running?",
)
"""Errors that a browser logs while it reaches no server."""


@dataclass(frozen=True)
class Open:
    """Page of one tab: what it shows before the server is killed, and what after the changes that follow."""

    path: str
    before: Callable[[Page], Locator]
    after: Callable[[Page], Locator]


def live(service: roost.RemoteService, user: str) -> dict[str, Open]:
    """Create something of everything; return pages that show it, by name."""
    service.agents.create(user, "worker", profile="steered")
    service.agents.create(user, "payer", profile="steered", max_attempts=1)  # declined, it does not ask again
    service.tasks.wait(user, service.tasks.send(user, "worker", "hello"))
    run = service.runs.list(user, agent="worker")[0].run_id
    service.tasks.send(user, "payer", "pay 5")
    eventually(lambda: service.approvals.list(user))
    mail_id = service.mail.send(user, f"user:{user}", "Before", "It rains", sender="agent:worker")
    thread = service.mail.get(user, mail_id).thread_id
    meeting = service.meetings.call(user, "A long evening")
    eventually(lambda: service.meetings.view(user, meeting).phase == "running")
    service.meetings.say(user, meeting, "Said before")
    service.events.publish(user, "seen.before", optional=True)
    held = service.tasks.send(user, "worker", "held 1")  # it is under way when the server is killed
    eventually(lambda: service.tasks.get(user, held).status == "running")
    return {
        "agents": Open("/agents", link("worker"), link("newcomer")),
        "agent": Open("/agents?agent=worker", words("Task: held 1"), words("paused")),
        "runs": Open("/runs", row("held 1"), row("Mail")),
        "run": Open(f"/runs?run={run}", words("You said: hello"), sidebar("Approvals")),
        "mail": Open("/mail", link("Before"), link("● After")),
        "thread": Open(f"/mail?thread={thread}", words("It rains"), words("It has stopped")),
        "approvals": Open("/approvals", words("asked by agent payer"), words("Nothing waits for your approval.")),
        "meetings": Open("/meetings", link("A long evening"), link("Another evening")),
        "meeting": Open(f"/meetings?meeting={meeting}", words("Said before"), words("Said after")),
        "monitor": Open("/monitor?tab=events", row("seen.before"), row("seen.after")),
        "letters": Open("/monitor?tab=dead-letters", words("No dead letters"), row("Event")),
        "talk": Open("/", words("What would you like to talk about?"), words("A talk from elsewhere")),
    }


def change(service: roost.RemoteService, user: str) -> None:
    """Change what each of the pages shows."""
    service.agents.create(user, "newcomer", profile="other")
    service.agents.pause(user, "worker")
    before = next(one for one in service.mail.inbox(user) if one.subject == "Before")
    service.mail.reply(user, before.mail_id, "It has stopped")
    service.mail.send(user, f"user:{user}", "After", "The sun shines", sender="agent:payer")
    service.mail.send(user, "agent:newcomer", "Hello", "Are you there?", priority="urgent")
    meeting = service.meetings.list(user)[0].meeting_id
    service.meetings.say(user, meeting, "Said after")
    service.meetings.call(user, "Another evening")
    service.events.publish(user, "seen.after", optional=True)
    service.events.publish(user, "nobody.takes.it")
    [waiting] = eventually(lambda: service.approvals.list(user))
    service.approvals.decline(user, waiting.approval_id)
    service.create_talk_session(user, profile="other", title="A talk from elsewhere")


def link(name: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_test_id("stMain").get_by_role("link", name=name, exact=True)


def sidebar(name: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True)


def row(name: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_role("row", name=name).first


def words(text: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_text(text).first


def test_every_page_is_right_again_by_itself_after_the_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS)
    port, context = free_port(), browser.new_context()
    context.set_default_timeout(60_000)
    tabs: dict[str, Page] = {}
    errors: dict[str, list[str]] = {}
    with up(tmp_path, port) as (url, process):
        me = identity(tmp_path)
        context.add_cookies([{"name": me.cookie_name, "value": me.cookie(me.local_user), "url": url}])
        with roost.connect(url, owner(tmp_path / "roost.db.lock")["token"]) as service:
            pages = live(service, me.local_user)
        for name, opened in pages.items():
            tabs[name] = context.new_page()
            errors[name] = logged_errors(tabs[name])
            tabs[name].goto(url + opened.path, wait_until="commit")
        for name, tab in tabs.items():
            expect_ready(tab)
            expect(pages[name].before(tab), name).to_be_visible()
            tab.evaluate("() => { window.isTheSame = true; }")
        process.kill()
    with up(tmp_path, port), roost.connect(url, owner(tmp_path / "roost.db.lock")["token"]) as service:
        change(service, me.local_user)
        for name, tab in tabs.items():
            expect(pages[name].after(tab), name).to_be_visible()
            assert tab.evaluate("() => window.isTheSame"), name
            assert [one for one in errors[name] if not any(known in one for known in AWAY)] == [], name
    context.close()
