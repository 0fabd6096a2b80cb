"""Transcripts as Markdown and JSON, and what is refused when one is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import Note, joined
from roost.core.talks.talk import BusyPolicy, Talk
from roost.core.talks.transcripts import TranscriptFormat, TranscriptLimits, part, read
from roost.errors import Invalid

NOW = datetime(2030, 1, 2, 3, 4, 5, 678, UTC)
LIMITS = TranscriptLimits(text=1_000_000, attachment=1_000, attachments=2)
NEW_ID = partial(next, map("attachment_{}".format, count()))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))
NOTES = st.lists(st.builds(Note, st.sampled_from(["thinking", "tools"]), TEXTS), max_size=3).map(joined)
ASKED = st.builds(Message, st.just(0), st.just(Sender.USER), TEXTS, st.just(Status.COMPLETE), TIMES)
ANSWERS = st.builds(
    Message,
    st.just(0),
    st.just(Sender.AGENT),
    TEXTS | st.just(""),
    st.sampled_from([Status.COMPLETE, Status.INTERRUPTED, Status.FAILED]),
    TIMES,
    st.none() | TEXTS,
    st.none(),
    NOTES,
)


def talk(**fields: Any) -> Talk:
    known = {"talk_session_id": "talk_1", "user_id": "ann", "profile": "echo", "busy": BusyPolicy.QUEUE}
    about = {"title": "Birds", "created": NOW, "updated": NOW, "messages": 2, "running": False}
    return Talk(**{**known, **about, **fields})


def message(text: str, sender: Sender = Sender.USER, **fields: Any) -> Message:
    return Message(**{"seq": 1, "sender": sender, "content": text, "status": Status.COMPLETE, "created": NOW, **fields})


def numbered(messages: list[Message]) -> list[Message]:
    return [message(m.content, **_other(m, seq)) for seq, m in enumerate(messages, start=1)]


def _other(m: Message, seq: int) -> dict[str, Any]:
    fields = ("sender", "status", "created", "error", "notes")
    return {"seq": seq, **{name: getattr(m, name) for name in fields}}


@given(st.lists(ASKED | ANSWERS, max_size=6), st.integers(0, 6), TEXTS.filter(lambda t: len(t.splitlines()) == 1))
def test_what_is_read_is_what_was_written_in_any_number_of_parts(found: list[Message], cut: int, title: str) -> None:
    messages, form = numbered(found), TranscriptFormat.JSON
    cut = max(1, cut) if messages else 0
    about = talk(title=title, options={"temperature": 0.5}, agent="agent:ann/d", profile="")
    if cut >= len(messages):
        text = part(about, messages, form, is_first=True, is_last=True)
    else:
        text = part(about, messages[:cut], form, is_first=True, is_last=False)
        text += part(about, messages[cut:], form, is_first=False, is_last=True)
    again = read(text, LIMITS, NEW_ID)
    assert list(again.messages) == messages
    assert (again.title, again.busy, again.created) == (title, BusyPolicy.QUEUE, NOW)
    assert (again.agent, again.profile, again.options) == ("agent:d", "", {"temperature": 0.5})


def test_an_answer_that_is_being_written_is_interrupted_in_its_transcript() -> None:
    open_answer = message("half", Sender.AGENT, status=Status.STREAMING)
    text = part(talk(), [open_answer], TranscriptFormat.JSON, is_first=True, is_last=True)
    assert [m.status for m in read(text, LIMITS, NEW_ID).messages] == [Status.INTERRUPTED]


def written() -> Any:
    answer = message("hello", Sender.AGENT, notes=(Note("thinking", "hm"),), error="why", status=Status.FAILED)
    return json.loads(part(talk(), [message("hi"), answer], TranscriptFormat.JSON, is_first=True, is_last=True))


def at(path: str, value: Any) -> Callable[[Any], None]:
    *places, last = [int(name) if name.isdigit() else name for name in path.split(".")]

    def change(document: Any) -> None:
        for place in places:
            document = document[place]
        if value is GONE:
            del document[last]
        else:
            document[last] = value

    return change


GONE = object()


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("kind", "x", "kind must be"),
        ("version", 2, "use a newer Roost"),
        ("version", True, "version must be"),
        ("version", "1", "version must be"),
        ("talk", [], "talk must be a JSON object"),
        ("talk.title", 7, "talk.title must be a text"),
        ("talk.title", "a\nb", "talk.title must be one line"),
        ("talk.title", "x" * 201, "talk.title must be one line"),
        ("talk.title", GONE, "talk has no field 'title'"),
        ("talk.busy", "never", "talk.busy 'never' is not known"),
        ("talk.owner", "bob", "talk has the field 'owner'"),
        ("talk.created", "yesterday", "talk.created must be a time"),
        ("talk.created", "2030-01-01T00:00:00", "talk.created must be a time"),
        ("talk.created", "0001-01-01T00:00:00+14:00", "talk.created must be a time"),
        ("talk.created", "1969-12-31T00:00:00+00:00", "talk.created must be a time"),
        ("talk.created", 5, "talk.created must be a text"),
        ("talk.agent", 5, "talk.agent must be a text"),
        ("talk.options.key", 5, "talk.options has the field 'key'"),
        ("messages", {}, "messages must be a JSON list"),
        ("messages.0", None, r"messages\[0\] must be a JSON object"),
        ("messages.1.sender", "system", r"messages\[1\].sender 'system' is not known"),
        ("messages.0.text", "", r"messages\[0\].text must not be empty"),
        ("messages.0.text", "a\0b", r"messages\[0\].text must not contain the NUL"),
        ("messages.0.text", "\ud800", r"messages\[0\].text must be valid Unicode"),
        ("messages.0.text", "x" * (LIMITS.text + 1), r"messages\[0\].text is too long"),
        ("messages.0.status", "failed", r"messages\[0\].status must not be failed"),
        ("messages.0.error", "x", r"messages\[0\] must not have an error"),
        ("messages.1.status", "streaming", r"messages\[1\].status must not be streaming"),
        ("messages.1.status", "withdrawn", r"messages\[1\].status must not be withdrawn"),
        ("messages.1.error", 5, r"messages\[1\].error must be a text"),
        ("messages.1.notes.0.channel", "a\nb", r"messages\[1\].notes\[0\].channel must be printable"),
        ("messages.1.notes.0.text", None, r"messages\[1\].notes\[0\].text must be a text"),
        ("messages.1.notes.0.more", 1, r"messages\[1\].notes\[0\] has the field 'more'"),
        ("messages.0.attachments", {}, r"messages\[0\].attachments must be a JSON list"),
        ("messages.0.attachments", [{}] * 3, r"messages\[0\].attachments must have at most 2 files"),
        ("messages.0.attachments", [{"name": "a", "data": "?"}], r"attachments\[0\].data must be a file in Base64"),
        ("messages.0.attachments", [{"name": "a", "data": 5}], r"attachments\[0\].data must be a file in Base64"),
        ("messages.0.attachments", [{"name": "a", "data": ""}], r"messages\[0\].attachments\[0\] is empty"),
        ("messages.0.attachments", [{"name": "..", "data": "YQ=="}], r"attachments\[0\] must be a file name"),
        ("messages.0.attachments", [{"name": "a", "data": "YQ==" * 2}], r"data must be a file in Base64"),
        ("messages.0.attachments", [{"name": "a", "data": "YWFh" * 400}], r"attachments\[0\] is too large"),
        ("messages.1.attachments", [{"name": "a", "data": "YQ=="}], r"messages\[1\] must not have attachments"),
        ("messages.1.seq", 1, r"messages\[1\] has the field 'seq'"),
    ],
)
def test_a_wrong_field_is_refused_with_its_place(path: str, value: Any, told: str) -> None:
    document = written()
    at(path, value)(document)
    with pytest.raises(Invalid, match=told):
        read(json.dumps(document), LIMITS, NEW_ID)


@pytest.mark.parametrize("text", ["", "x", "[" * 100_000, "{}", "NaN", '{"kind": 1' + "0" * 5_000 + "}", 5, None, "\0"])
def test_what_is_no_transcript_is_refused(text: object) -> None:
    with pytest.raises(Invalid):
        read(text, LIMITS, NEW_ID)


TRICKY = "# Heading\n## 9. Agent, now\n```\nnever closed\r> quote\r\n~~~\n---\n<script>"


def test_markdown_keeps_every_character_and_marks_what_is_ours() -> None:
    answer = message(TRICKY, Sender.AGENT, seq=2, status=Status.FAILED, error="why", notes=(Note("tools", "a ``` b"),))
    text = part(talk(title="*B* <b>"), [message("hi"), answer], TranscriptFormat.MARKDOWN, is_first=True, is_last=True)
    ours = [line for line in text.split("\n") if line and not line.startswith(">")]
    assert ours == [
        r"# \*B\* \<b\>",
        "Talk with echo, begun 2030-01-02 03:04:05 UTC.",
        "## 1. User, 2030-01-02 03:04:05 UTC",
        "## 2. Agent, 2030-01-02 03:04:05 UTC, failed",
        "*tools*",
        "*error*",
    ]
    assert "> ````text\n> a ``` b\n> ````\n" in text
    quoted = "\n".join(f"> {line}" for line in re.split("\r\n|\r|\n", TRICKY))
    assert f"\n\n{quoted}\n\n*error*" in text


@given(st.lists(ASKED | ANSWERS, min_size=1, max_size=4))
def test_no_text_in_markdown_can_pass_for_a_heading(found: list[Message]) -> None:
    text = part(talk(), numbered(found), TranscriptFormat.MARKDOWN, is_first=True, is_last=True)
    headings = [line for line in re.split("\r\n|\r|\n", text) if line.startswith("#")]
    assert len(headings) == 1 + len(found)
