"""Messages as the list shows them: safe HTML, rendered once for each state, with only the blocks that have changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import roost
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Sender, Status
from roost.ui.messages.views import Views
from tests.browser.brains import MARKDOWN

ANSWER = roost.Message(2, Sender.AGENT, "", Status.STREAMING, datetime(2030, 1, 1, tzinfo=UTC))


def shown(text: str) -> str:
    return "".join(Views().get("talk", replace(ANSWER, content=text)).text)


def test_html_is_text_and_images_are_links() -> None:
    html = shown(MARKDOWN)
    assert "<script" not in html
    assert "<img" not in html
    assert '<a href="http://pictures.example/pixel.png" ' in html
    assert "<a" not in shown("[x](javascript:alert(1)) ![y](data:text/html,z)")


def test_an_answer_that_starts_again_is_rendered_anew() -> None:
    views = Views()
    views.get("talk", replace(ANSWER, content="one\n\ntwo\n\nthree"))
    assert "".join(views.get("talk", replace(ANSWER, content="other")).text) == shown("other")


def test_each_state_is_rendered_once_for_all_readers() -> None:
    views, states = Views(), [replace(ANSWER, content="word " * count) for count in range(1, 21)]
    with ThreadPoolExecutor(8) as readers:
        for state in states:
            shown = set(map(id, readers.map(lambda _, state=state: views.get("talk", state), range(8))))
            assert len(shown) == 1
    assert views.rendered == len(states)


TEXTS = ("one", "two", "two and more", "three")


def test_a_reader_gets_the_blocks_after_the_first_that_differs() -> None:
    views = Views()
    first = views.get("talk", replace(ANSWER, content="one\n\ntwo"))
    second = views.get("talk", replace(ANSWER, content="one\n\ntwo and more\n\nthree"))
    [one], [two], [more], [three] = (Views().get("t", replace(ANSWER, content=text)).text for text in TEXTS)
    assert first.as_json()["text"] == {"keep": 0, "add": (one, two)}
    assert second.as_json(first)["text"] == {"keep": 1, "add": (more, three)}


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


def test_files_of_a_message_are_shown_by_name_size_and_address() -> None:
    files = (
        Attachment("attachment_1", "<b>.png", "image/png", 1_234_567, ""),
        Attachment("a/2", "x.svg", "text/plain", 1, ""),
    )
    said = replace(ANSWER, sender=Sender.USER, status=Status.COMPLETE, attachments=files)
    assert Views().get("talk", said).as_json()["files"] == [
        {"name": "<b>.png", "size": "1.2 MB", "isImage": True, "url": "/api/v1/attachments/attachment_1"},
        {"name": "x.svg", "size": "1 byte", "isImage": False, "url": "/api/v1/attachments/a%2F2"},
    ]
    assert "files" not in Views().get("talk", replace(said, attachments=())).as_json()
