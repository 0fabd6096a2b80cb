"""Pictures of the README: `python -m tools.pictures` starts Roost, uses its page, and writes docs/images."""

from __future__ import annotations

import asyncio
import base64
import io
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import FilePayload, Page, ViewportSize, expect, sync_playwright

from roost import tool
from roost.core.talks.side_channels import Channel, answered, called
from roost.ports import Chunk, Turn
from tests.browser.conftest import ARGUMENTS, free_port, up
from tests.browser.steps import messages, say
from tests.servers import ROOT, find_chromium

IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1200, height=780)
FRAMES_PER_SECOND = 4
PAGES = [
    ("agents", "/agents", "tour-watcher"),
    ("agent", "/agents?agent=tour-planner", "Timeline"),
    ("mail", "/mail", "The plan of the day"),
    ("approvals", "/approvals", "asked by agent tour-buyer"),
    ("monitor", "/monitor", "Duration of turns"),
]
"""Pages of the tour: name of the picture, path, and a text that is on it once it is drawn."""
SETTINGS = """
default_profile = "travel-desk"
tools = ["tools.pictures:find_trains", "tools.pictures:book"]

[profiles.travel-desk]
brain = "tools.pictures:travel"
description = "Finds trains, and books them when you say so."
tools = ["find_trains", "book"]
"""
TRAINS = """| Train | Leaves | Arrives | Price |
| --- | --- | --- | --- |
| EC 51 | 08:07 | 11:37 | €39 |
| EC 57 | 12:07 | 15:37 | €29 |

The later one is cheaper, so I would book **EC 57**. """
CODE = """The fare per kilometre is \\(f = p / d\\). As a function:

```python
def fare_per_km(price: float, km: float) -> float:
    \"\"\"Return the fare per kilometre.\"\"\"
    return round(price / km, 3)
```

I have read `distances.csv`: Bern to Milan is 282 km, so both trains are cheap:

| Train | Price | Per km |
| --- | --- | --- |
| EC 51 | €39 | €0.138 |
| EC 57 | €29 | €0.103 |
"""


@tool
def find_trains(start: str, end: str, day: str) -> str:
    """Find trains."""
    return f"EC 51 08:07-11:37, EC 57 12:07-15:37 ({start} to {end}, {day})"


@tool(approval=True)
def book(train: str, seats: int, euros: int) -> str:
    """Book seats."""
    return f"{seats} seat on {train} for {euros} euros"


async def travel(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Plans a trip with tools; with a file it explains a fare."""
    if turn.attachments:
        for word in CODE.split(" "):
            yield word + " "
            await asyncio.sleep(0.02)
        return
    yield Chunk("They want to travel on Friday. I look for direct trains first.", Channel.THINKING)
    await asyncio.sleep(0.6)
    asked = {"start": "Bern", "end": "Milan", "day": "Friday"}
    yield Chunk(called("1", "find_trains", asked), Channel.TOOLS)
    yield Chunk(answered("1", await turn.call_tool("find_trains", asked)), Channel.TOOLS)
    for word in f"There are two direct trains on Friday:\n\n{TRAINS}".split(" "):
        yield word + " "
        await asyncio.sleep(0.06)
    done = await turn.call_tool("book", {"train": "EC 57", "seats": 1, "euros": 29})
    yield f"\n\nDone: {done}. Have a good trip!"


@contextmanager
def recorded(page: Page, name: str) -> Iterator[None]:
    """Write what happens on the page as an animation: a frame for each change, at most some per second."""
    frames: list[tuple[float, bytes]] = []
    session = page.context.new_cdp_session(page)

    def keep(event: dict[str, str]) -> None:
        frames.append((time.monotonic(), event["data"].encode()))
        session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    session.on("Page.screencastFrame", keep)
    session.send("Page.startScreencast", {"format": "jpeg", "quality": 80, "maxWidth": 900, "maxHeight": 585})
    yield
    session.send("Page.stopScreencast")
    _animate(frames, IMAGES / name)


def _animate(frames: list[tuple[float, bytes]], file: Path) -> None:
    kept: list[tuple[float, bytes]] = []
    for at, data in frames:
        if not kept or at - kept[-1][0] >= 1 / FRAMES_PER_SECOND:
            kept.append((at, data))
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(data))).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
        for _, data in kept
    ]
    ends = [at for at, _ in kept[1:]] + [kept[-1][0] + 2]
    durations = [int(min(2.0, end - at) * 1000) for (at, _), end in zip(kept, ends, strict=True)]
    pictures[0].save(file, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)


def _reduced(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)


def type_slowly(page: Page, text: str) -> None:
    page.locator(".roost-input").press_sequentially(text, delay=40)
    page.keyboard.press("Enter")


def take(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / name, animations="disabled")


def first_visit(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    page.get_by_role("button", name="Guide", exact=True).click()
    expect(page.get_by_role("button", name="What is Roost?")).to_be_visible()
    take(page, "first-visit.png")


def plan(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator(".roost-input")).to_be_focused()
    with recorded(page, "talk.gif"):
        type_slowly(page, "Find me a train from Bern to Milan on Friday, and book it.")
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        page.get_by_text("Thoughts and steps").first.click()
        page.wait_for_timeout(1_500)
        take(page, "talk.png")
        page.get_by_role("button", name="Approve").click()
        expect(messages(page).last).to_contain_text("Have a good trip!")
        page.wait_for_timeout(1_500)


def explain(page: Page, url: str) -> None:
    page.goto(url)
    table = FilePayload(name="distances.csv", mimeType="text/csv", buffer=b"from,to,km\nBern,Milan,282\n")
    page.locator(".roost-compose input[type=file]").set_input_files([table])
    expect(page.get_by_text("Sending…")).to_have_count(0)
    say(page, "What does each train cost per kilometre?")
    expect(messages(page).last).to_contain_text("€0.103")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    take(page, "answer.png")


def tour(page: Page, url: str) -> None:
    """Take pictures of the pages beside the talks, with the tour on them."""
    page.goto(f"{url}/agents")
    page.get_by_role("button", name="Build the tour").click()
    expect(page.get_by_role("row").filter(has_text="tour-planner").filter(has_text="sleeping")).to_be_visible()
    for name, path, text in PAGES:
        page.goto(url + path)
        expect(page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()
        page.wait_for_timeout(1_500)
        take(page, f"pages/{name}.png")
    page.goto(f"{url}/meetings")
    page.get_by_role("link", name="Tic-tac-toe in the garden").click()
    expect(page.locator(".roost-cell").first).to_be_visible()
    page.wait_for_timeout(1_500)
    take(page, "pages/meeting.png")
    page.goto(f"{url}/runs?agent=tour-planner&kind=task")
    page.get_by_role("row").filter(has_text="Done").get_by_role("link").first.click()
    expect(page.get_by_text("read the calendar").first).to_be_visible()
    page.wait_for_timeout(1_500)
    take(page, "pages/run.png")


def main() -> None:
    (IMAGES / "pages").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "roost.toml").write_text(SETTINGS)
        with up(folder, free_port()) as (url, _):
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            for draw in (first_visit, plan, explain, tour):
                page = browser.new_context(viewport=SIZE).new_page()
                draw(page, url)
                page.context.close()
            browser.close()
    for file in sorted(path for path in IMAGES.rglob("*") if path.is_file()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
