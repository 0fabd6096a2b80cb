"""Any talk: its export is imported as the same talk, and search finds the same messages with and without an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost.core.talks.messages import Message, Status
from roost.core.talks.search import LIMIT, Matcher, parsed
from roost.core.talks.transcripts import TranscriptFormat, part
from roost.hosts.pending import drive
from tests.core.talks.test_transcripts import ANSWERS, ASKED, TEXTS, numbered, talk

QUERIES = st.lists(st.sampled_from(['"', " ", "a", "ab", "é", "東", "🐦", "%", "_", "-"]), max_size=5).map("".join)
WORDS = st.lists(st.sampled_from(["a", "ab", "abc", "É", "東京", "🐦", ",", "\n"]), min_size=1).map(" ".join)
SAID = st.lists(ASKED | ANSWERS, max_size=8).map(numbered)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[roost.AgentService]:
    path: Path = tmp_path_factory.mktemp("transcripts") / "store.db"
    with roost.open(f"sqlite:///{path}", brains={"echo": lambda turn: iter([turn.text])}) as opened:
        yield opened


@given(messages=SAID)
def test_an_imported_talk_is_exported_as_it_was(service: roost.AgentService, messages: list[Message]) -> None:
    written = part(talk(), messages, TranscriptFormat.JSON, is_first=True, is_last=True)
    copy = service.import_talk("ann", written)
    assert service.export_talk("ann", copy, format="json") == written
    service.delete("ann", copy)


@given(texts=st.lists(WORDS | TEXTS, min_size=1, max_size=LIMIT), query=QUERIES | TEXTS)
def test_search_finds_what_matches_with_and_without_an_index(
    service: roost.AgentService, texts: list[str], query: str
) -> None:
    said = numbered([Message(0, "user", text, Status.COMPLETE, talk().created) for text in texts])
    copy = service.import_talk("bob", part(talk(), said, TranscriptFormat.JSON, is_first=True, is_last=True))
    terms = parsed(query)
    expected = [m.seq for m in reversed(said) if terms and Matcher(terms).excerpt(m.content) is not None]
    assert [hit.seq for hit in service.search("bob", query).hits] == expected
    assert drive(service.roost.search_index.sweep()) == 1
    assert [hit.seq for hit in service.search("bob", query).hits] == expected
    service.delete("bob", copy)
