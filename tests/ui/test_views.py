"""Messages as the list shows them: safe HTML, rendered once for each state, with only the blocks that have changed."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

import roost
from roost.core.talks.messages import Sender, Status
from roost.ui.live.markdown import GrowingMarkdown, render_blocks
from roost.ui.live.views import Views
from tests.browser.brains import MARKDOWN

ANSWER = roost.Message(2, Sender.AGENT, "", Status.STREAMING, datetime(2030, 1, 1, tzinfo=UTC))
GROWTH = st.lists(
    st.sampled_from(
        ["word ", "\n", "\n\n", "# ", "- ", "1. ", "```\n", "> ", "| a | b |\n| - | - |\n", "    ", "***", "\r"]
    ),
    max_size=30,
)

PIECES = [
    "![x](http://a.example/p.png)",
    "![x][r]",
    "![r]",
    "[r]: http://a.example/p.png",
    "`",
    "```",
    "~~~",
    "\n",
    "\n\n",
    "    ",
    "> ",
    "- ",
    "1. ",
    "<pre>",
    "</pre>",
    "<!--",
    "-->",
    "$",
    "$$",
    "[^1]: ",
    "[^1]",
    ":::",
    "|",
    "---",
    "\\",
    "a",
    " ",
    "\t",
    "\r",
]


def test_html_is_text_and_images_are_links() -> None:
    html = "".join(render_blocks(MARKDOWN))
    assert "<script" not in html
    assert "<img" not in html
    assert '<a href="http://pictures.example/pixel.png" target="_blank" rel="noopener noreferrer">a picture</a>' in html
    assert "<a" not in "".join(render_blocks("[x](javascript:alert(1)) ![y](data:text/html,z)"))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_nothing_is_fetched_and_nothing_is_run_whatever_is_written(markdown: str) -> None:
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z!]+)", "".join(render_blocks(markdown)))}
    assert not tags & {"img", "script", "style", "iframe", "object", "embed", "link", "svg", "video", "audio", "!"}


@given(pieces=GROWTH)
def test_a_text_that_grows_is_rendered_as_the_whole_text_is(pieces: list[str]) -> None:
    growing, text = GrowingMarkdown(), ""
    for piece in pieces:
        text += piece
        assert growing.render(text) == render_blocks(text)


def test_a_text_that_starts_again_is_rendered_anew() -> None:
    growing = GrowingMarkdown()
    growing.render("one\n\ntwo\n\nthree")
    assert growing.render("other") == render_blocks("other")


def test_each_state_is_rendered_once_for_all_readers() -> None:
    views, states = Views(), [replace(ANSWER, content="word " * count) for count in range(1, 21)]
    with ThreadPoolExecutor(8) as readers:
        for state in states:
            shown = set(map(id, readers.map(lambda _, state=state: views.get("talk", state), range(8))))
            assert len(shown) == 1
    assert views.rendered == len(states)


def test_a_reader_gets_the_blocks_after_the_first_that_differs() -> None:
    views = Views()
    first = views.get("talk", replace(ANSWER, content="one\n\ntwo"))
    second = views.get("talk", replace(ANSWER, content="one\n\ntwo and more\n\nthree"))
    assert first.as_json()["text"] == {"keep": 0, "add": ("<p>one</p>\n", "<p>two</p>\n")}
    assert second.as_json(first)["text"] == {"keep": 1, "add": ("<p>two and more</p>\n", "<p>three</p>\n")}


def test_the_source_comes_with_the_finished_message_only_and_to_the_letter() -> None:
    source = "\ufeff *a*\r\n\t\u2028 $5 -- <b>"
    assert "source" not in Views().get("talk", replace(ANSWER, content=source)).fields
    done = replace(ANSWER, content=source, status=Status.COMPLETE)
    assert Views().get("talk", done).fields["source"] == source


def test_views_that_were_not_used_for_long_are_removed() -> None:
    views = Views(kept=10_000)
    messages = [replace(ANSWER, seq=seq, content="x" * 1_000, status=Status.COMPLETE) for seq in range(1, 51)]
    for message in messages:
        views.get("talk", message)
    assert views.known("talk", messages[0]) is None
    assert views.known("talk", messages[-1]) is not None


def test_an_answer_says_what_it_waits_for_until_it_begins() -> None:
    waits = roost.Note("waiting", "2 before you …\n<1> before you …\n")
    message = replace(ANSWER, notes=(waits,))
    assert Views().get("talk", message).fields["waiting"] == "<1> before you …"
    assert "waiting" not in Views().get("talk", replace(message, content="Hello")).fields
