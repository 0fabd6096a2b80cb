"""The monitor in a browser: plots, lists and what one can do with them, in every look."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import roost
from roost.api.auth import identity, local_user
from roost.stores.sqlite import owner
from tests.browser.busy_store import NASTY, fill
from tests.browser.conftest import SETTINGS, Server, Visit, free_port, up
from tests.browser.steps import expect_drawn, shot
from tests.browser.test_looks import LOOKS, faults, sticking_out

pytestmark = pytest.mark.browser

TABS = {
    "overview": "Overview",
    "dead-letters": "Dead letters",
    "events": "Events",
    "graph": "Who talks to whom",
    "nodes": "Nodes",
    "facts": "Facts",
}
IN_THE_DARK = ("overview", "graph")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose local user has a busy roost; the name of a failed run is in place of that of a long talk."""
    folder = tmp_path_factory.mktemp("busy")
    (folder / "roost.toml").write_text(SETTINGS)
    run_id = fill(folder / "roost.db", local_user())
    with up(folder, free_port()) as (url, process):
        token = owner(folder / "roost.db.lock")["token"]
        yield Server(url, identity(folder), run_id, process, token, folder)


def settled(page: Page) -> None:
    """The page is drawn, and shows its content."""
    expect(page.locator(".st-key-title h1")).to_be_visible()
    expect_drawn(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    expect(page.locator("[data-stale=true]")).to_have_count(0)


def open_tab(page: Page, tab: str) -> None:
    settled(page)
    page.get_by_role("radiogroup", name="Section").get_by_text(TABS[tab], exact=True).click()
    if tab != "overview":
        expect(page).to_have_url(re.compile(f"tab={tab}"))
    settled(page)


def complaints(page: Page) -> list[str]:
    """Return the list to which errors in the browser's console will be added."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


@pytest.mark.parametrize("look", LOOKS)
def test_every_section_is_tidy_in_every_look(server: Server, visit: Visit, look: str) -> None:
    page = visit("/monitor?range=6h", user=server.identity.local_user, **LOOKS[look])
    errors = complaints(page)
    for tab in IN_THE_DARK if look == "dark" else TABS:
        open_tab(page, tab)
        shot(page, f"monitor-{look}-{tab}")
        assert sticking_out(page) == [], tab
        assert look == "phone" or faults(page) == [], tab
    assert errors == []


def test_a_plot_tells_its_values_by_pointer_keyboard_and_table(server: Server, visit: Visit) -> None:
    page = visit("/monitor?range=6h", user=server.identity.local_user)
    settled(page)
    plot = page.locator(".st-key-plot_runs")
    image = plot.get_by_role("img", name=re.compile(r"^Turns per 2 min, from .* Tasks: highest"))
    image.hover()
    expect(plot.locator(".roost-chart-tip")).to_contain_text("Tasks")
    shot(page, "monitor-hover")
    image.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(plot.locator(".roost-chart-live")).to_contain_text("Tasks")
    plot.get_by_text("Values as a table").click()
    expect(plot.get_by_role("columnheader", name="Tasks")).to_be_visible()
    assert plot.get_by_role("row").count() > 100
    page.get_by_text("24 h", exact=True).click()
    expect(page).to_have_url(re.compile("range=24h"))
    expect(plot.get_by_role("img", name=re.compile("^Turns per 10 min"))).to_be_visible()


def test_an_error_links_to_its_run_and_a_dead_letter_is_retried(server: Server, visit: Visit) -> None:
    user, run_id = server.identity.local_user, server.long_talk
    page = visit("/monitor?range=6h", user=user)
    failed = page.get_by_role("region", name="Failed runs")
    expect(failed.locator(f'a[href="/runs?run={run_id}"]')).to_have_count(1)
    open_tab(page, "dead-letters")
    letters = page.get_by_role("region", name="Dead letters")
    expect(letters.get_by_role("row")).to_have_count(5)
    letters.get_by_role("row", name="Event").get_by_role("checkbox").check()
    page.get_by_role("button", name="Drop", exact=True).click()
    expect(letters.get_by_role("row")).to_have_count(4)
    page.get_by_role("button", name="Retry all").click()
    with roost.connect(server.url, server.token) as service:
        expect(page.get_by_text("Retried: 3.")).to_be_visible()
        assert {one.run_id for one in service.dead_letters.list(user)}.isdisjoint({run_id})
    open_tab(page, "events")
    expect(page.get_by_role("region", name="Events").get_by_text(NASTY[:40]).first).to_be_visible()
    open_tab(page, "graph")
    page.get_by_role("link", name="planner").first.click()
    expect(page).to_have_url(re.compile(r"/agents\?agent=planner"))


def test_a_user_without_anything_sees_what_will_be_here(server: Server, visit: Visit) -> None:
    page = visit("/monitor", user="nobody.yet")
    settled(page)
    expect(page.get_by_text("No turns in the last 15 minutes.").first).to_be_visible()
    shot(page, "monitor-empty")
