"""Pages of agents in a browser: a user's path by visible labels, live changes, and looks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, WebSocket, expect

import roost
from tests.browser.conftest import Server, Visit
from tests.browser.steps import SlowPage, choose, expect_drawn, shot
from tests.browser.test_looks import LOOKS, faults, sticking_out
from tests.conftest import eventually

pytestmark = pytest.mark.browser

NASTY = "<img src=http://pictures.example/a.png onerror=alert(1)> **bold** :smile:"

CHOOSE_AND_PAUSE = """() => {
  const click = (selector) => document.querySelector(selector).click();
  click('[aria-label="Choose a"]');
  click('[aria-label="Choose b"]');
  click('.roost-table-bar button');
}"""
"""Actions of an impatient user, faster than the page can be drawn."""

WATCH_DIALOG = """() => {
  const dialog = document.querySelector('[data-testid="stDialog"]');
  window.removed = 0;
  new MutationObserver(() => { if (!dialog.isConnected) window.removed += 1; }).observe(
    document.body, { childList: true, subtree: true });
}"""


COUNT_TIMERS = """
const [set, clear] = [window.setTimeout, window.clearTimeout];
window.timers = new Set();
window.setTimeout = (act, after, ...given) => {
  const timer = set(() => { window.timers.delete(timer); act(...given); }, after);
  if (after > 1_000 && after < 2_000) window.timers.add(timer);
  return timer;
};
window.clearTimeout = (timer) => { window.timers.delete(timer); clear(timer); };
"""
"""Keep the timers after which the page would ask again."""


@pytest.fixture
def service(server: Server) -> Iterator[roost.RemoteService]:
    """The service of the local user, who has no agents."""
    with roost.connect(server.url, server.token) as connected:
        user = connected.me().user_id
        for agent in connected.agents.list(user, limit=1_000):
            connected.agents.delete(user, agent.agent_id)
        yield connected


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row", name=re.compile(rf"\b{re.escape(name)}\b"))


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def settled(page: Page) -> None:
    """The page is drawn, and shows its content."""
    expect(page.locator(".st-key-title h1")).to_be_visible()
    expect_drawn(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)


def go(page: Page, path: str) -> None:
    """Open a page as the back button does, which does not load the application again."""
    page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def complaints(page: Page) -> list[str]:
    """Return the list to which errors in the browser's console will be added."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def test_an_agent_is_made_put_to_sleep_and_woken_by_mail(
    server: Server, service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    page = visit("/agents", user=user)
    errors = complaints(page)
    button(page, "New agent").click()
    page.get_by_label("Name", exact=True).fill("d")
    button(page, "Create agent").click()
    expect(page.get_by_role("heading", name="d", exact=True)).to_be_visible()
    button(page, "Sleep").click()
    page.get_by_role("dialog").get_by_role("textbox", name="Events").fill("alerts.*")
    choose(page, page.get_by_role("dialog").get_by_label("Mail"), "Of high priority or above")
    button(page, "Put to sleep").click()
    expect(page.get_by_role("status").filter(has_text="sleeping")).to_contain_text(
        "until mail of at least high or event alerts.*"
    )
    button(page, "Send mail").click()
    page.get_by_label("Subject").fill("wake up")
    page.get_by_role("dialog").get_by_label("Text").fill("please")
    page.evaluate(WATCH_DIALOG)
    service.agents.create(user, "other", profile="other")  # the page would be drawn again
    expect(row(visit("/agents", user=user), "other")).to_be_visible()
    choose(page, page.get_by_role("dialog").get_by_label("Priority"), "urgent")
    expect(page.get_by_label("Subject")).to_have_value("wake up")
    assert page.evaluate("() => window.removed") == 0
    button(page, "Send").click()
    expect(page.get_by_role("row", name="Last woken by")).to_contain_text("mail high")
    [reply] = eventually(lambda: [mail for mail in service.mail.inbox(user) if mail.sender.endswith("/d")])
    assert "please" in reply.body
    assert errors == []


def test_a_list_changes_while_it_is_open_and_its_filters_are_shared(
    server: Server, service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    for name in ("a", "b", "c"):
        service.agents.create(user, name, profile="steered", description=NASTY)
    page = visit("/agents", user=user)
    errors = complaints(page)
    expect(row(page, "c")).to_be_visible()
    page.evaluate(CHOOSE_AND_PAUSE)
    expect(page.get_by_text("Paused 2 agents.")).to_be_visible()  # first: it disappears
    expect(row(page, "a")).to_contain_text("idle, paused")
    choose(page, page.get_by_label("State"), "paused")
    expect(page).to_have_url(re.compile(r"\?state=paused$"))
    expect(row(page, "c")).to_have_count(0)
    other = visit(f"/agents{page.url.partition('/agents')[2]}", user=user)
    expect(row(other, "b")).to_be_visible()
    service.agents.pause(user, "c")
    for one in (page, other):
        expect(row(one, "c")).to_be_visible()
    service.tasks.send(user, "c", "held 1")
    service.agents.resume(user, "c")
    expect(row(other, "c")).to_have_count(0)
    page.goto(f"{server.url}/agents?agent=c")
    expect(page.get_by_role("row", name="Working on")).to_contain_text("Task: held 1")
    expect(page.get_by_text(NASTY)).to_be_visible()
    page.get_by_role("radio", name="Tasks").click()
    expect(page).to_have_url(re.compile("tab=tasks"))
    page.go_back()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    service.agents.stop(user, "c")
    expect(page.get_by_role("status").filter(has_text="stopped")).to_be_visible()
    assert errors == []


def test_a_page_that_was_drawn_for_another_url_is_drawn_again_for_that_of_the_browser(
    service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    service.agents.create(user, "a", profile="steered")
    page = visit("/agents", user=user)
    expect(row(page, "a")).to_be_visible()
    page.evaluate("history.replaceState(null, '', '?state=paused')")  # the server does not know of it
    service.agents.create(user, "b", profile="steered")
    expect(page.get_by_text("No agents match these filters.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?state=paused$"))


def test_news_that_arrive_while_the_user_goes_back_do_not_undo_it(service: roost.RemoteService, visit: Visit) -> None:
    user = service.me().user_id
    service.agents.create(user, "a", profile="other")
    page = visit("/agents?agent=a", user=user)
    runs, news = SlowPage(page), received(page)
    page.reload()
    settled(page)
    page.get_by_role("radio", name="Tasks").click()
    expect(page.get_by_text("No tasks yet")).to_be_visible()
    settled(page)
    runs.hold()
    page.go_back()
    eventually(lambda: turn(page) and runs.has_ended)
    news.clear()
    service.agents.pause(user, "a")
    eventually(lambda: turn(page) and news)
    turn(page)
    runs.release()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    service.agents.stop(user, "a")
    expect(page.get_by_role("status").filter(has_text="stopped, paused")).to_be_visible()
    settled(page)
    expect(page).to_have_url(re.compile(r"\?agent=a$"))
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


def received(page: Page) -> list[bytes | str]:
    """Return the list to which frames of the live stream will be added."""
    found: list[bytes | str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: found.append(frame))

    page.on("websocket", listen)
    return found


def turn(page: Page) -> bool:
    """Let the browser do what it has received."""
    return bool(page.evaluate("() => new Promise((done) => setTimeout(() => done(true)))"))


def test_a_step_back_whose_request_is_lost_is_repeated(service: roost.RemoteService, visit: Visit) -> None:
    user = service.me().user_id
    service.agents.create(user, "a", profile="other")
    page = visit("/agents?agent=a", user=user)
    runs, news = SlowPage(page), SlowPage(page, "api/v1/live")
    page.add_init_script(COUNT_TIMERS)
    page.reload()
    settled(page)
    page.get_by_role("radio", name="Tasks").click()
    expect(page.get_by_text("No tasks yet")).to_be_visible()
    settled(page)
    news.hold()
    page.wait_for_function("() => window.timers.size === 0")
    settled(page)
    runs.lose()
    page.go_back()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?agent=a$"))


def populate(service: roost.RemoteService, user: str) -> None:
    """Create an agent in each state, with a bit of everything."""
    agents = service.agents
    agents.create(user, "assistant", profile="steered", description=NASTY)
    agents.create(user, "night-watch", profile="other", subscriptions=["alerts.*"])
    agents.create(user, "worker-1", profile="steered", max_concurrent_tasks=3)
    agents.create(user, "worker-2", profile="steered")
    agents.create(user, "worker-3", profile="other", start=False)
    agents.sleep(user, "night-watch", 3_600, wake_on=roost.any_of(roost.event("alerts.*"), roost.mail("high")))
    for prompt in ("Summarise the news", f"Say {NASTY}"):
        service.tasks.wait(user, service.tasks.send(user, "assistant", prompt))
    service.tasks.wait(user, service.tasks.send(user, "worker-2", "fail at it", max_attempts=1))
    for number in (1, 2):
        service.tasks.send(user, "worker-1", f"slow {number}0000")
    agents.pause(user, "assistant")
    service.tasks.send(user, "assistant", "Water the plants", priority="high")
    service.schedules.create(user, "assistant", "Say good morning", cron="0 9 * * 1-5", name="morning")
    agents.remember(user, "assistant", "Ann likes green tea", key="ann.tea")
    agents.set_state(user, "assistant", {"seen": 3, "parts": {"a": [1, 2]}})


STATES = {
    "list": ("/agents", "text=worker-3"),
    "none": ("/agents?text=nothing", "text=No agents match"),
    "new": ("/agents?new=1&template=rounds", "text=Task of the schedule"),
    "overview": ("/agents?agent=assistant", ".roost-timeline"),
    "busy": ("/agents?agent=worker-1", "text=and 1 more"),
    "failing": ("/agents?agent=worker-2", "text=since its last success"),
    "inbox": ("/agents?agent=assistant&tab=inbox", "text=Water the plants"),
    "tasks": ("/agents?agent=assistant&tab=tasks", "text=Summarise the news"),
    "schedules": ("/agents?agent=assistant&tab=schedules", "text=Say good morning"),
    "memory": ("/agents?agent=assistant&tab=memory", "text=Ann likes green tea"),
    "settings": ("/agents?agent=assistant&tab=settings", "text=Tasks at once"),
    "history": ("/agents?agent=assistant&tab=history", "text=nothing left to do"),
    "missing": ("/agents?agent=never", ".roost-notice"),
}
"""URL of each state, and what is seen when it is drawn."""
IN_THE_DARK = ("list", "overview", "busy", "failing", "tasks", "memory", "settings")


@pytest.mark.parametrize("look", LOOKS)
def test_pages_of_agents_are_tidy_in_every_look(
    server: Server, service: roost.RemoteService, visit: Visit, look: str
) -> None:
    user = service.me().user_id
    populate(service, user)
    page = visit("/agents", user=user, **LOOKS[look])
    errors = complaints(page)
    for state in IN_THE_DARK if look == "dark" else STATES:
        path, shown = STATES[state]
        go(page, path)
        expect(page.locator(shown).first, state).to_be_visible()
        settled(page)
        shot(page, f"{look}-agents-{state}")
        assert sticking_out(page) == [], state
        assert look == "phone" or faults(page) == [], state
    page.goto(f"{server.url}/agents?agent=assistant")
    button(page, "Sleep").click()
    expect(button(page, "Put to sleep")).to_be_attached()
    shot(page, f"{look}-agents-sleep")
    assert look == "phone" or faults(page) == []
    assert errors == []
