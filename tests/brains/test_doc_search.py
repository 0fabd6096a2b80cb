"""The guide finds what the docs say about a question, and says where."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost import bundled_docs
from roost.brains.guide import doc_search
from tests.servers import ROOT

Ask = Callable[[roost.AgentService, str, str], roost.Message]


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("How do I create an agent?", "guides/agents#create-an-agent"),
        ("how do schedules work", "guides/agents#schedules"),
        ("What is a dead letter?", "guides/agents#dead-letters"),
        ("Can I use Ollama?", "guides/models#choose-a-model"),
        ("How do I write a brain?", "guides/write-a-brain#write-a-brain"),
        ("fork a talk", "guides/talk-from-python#edit-regenerate-and-fork"),
        ("PostgreSQL", "concepts/store#postgresql"),
        ("run my ADK agent", "guides/adk#run-an-adk-agent"),
    ],
)
def test_the_best_section_comes_first(question: str, page: str) -> None:
    assert f"(/docs/{page})" in doc_search.find(question)[0].link


@pytest.mark.parametrize(
    "question", ["what is the weather in Paris?", "tell me a joke", "asdf qwer", "", "the and you"]
)
def test_what_the_docs_do_not_answer_finds_nothing(question: str) -> None:
    assert doc_search.find(question) == []


@given(st.text(max_size=200))
def test_any_text_is_a_question(question: str) -> None:
    assert len(doc_search.find(question)) <= doc_search.MOST


def test_every_link_leads_to_a_heading_and_every_excerpt_is_short() -> None:
    index, _ = doc_search._index()
    assert len(index) > 100
    for section in (one.section for one in index):
        page, _, anchor = re.findall(r"\(/docs/(.*)\)", section.link)[0].partition("#")
        headings = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert f"# {section.title}" in headings.replace("`", "")
        assert re.fullmatch(r"[\w-]+", anchor)
        assert len(section.excerpt) <= 2 * bundled_docs.EXCERPT
        assert "](" not in re.sub(r"```.*?```", "", section.excerpt, flags=re.DOTALL)


def test_the_guide_answers_from_the_docs_with_a_link(shared_service: roost.AgentService, ask: Ask) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    answer = ask(shared_service, talk, "How do I create an agent?").content
    assert "service.agents.create(" in answer
    assert "[Create an agent](/docs/guides/agents#create-an-agent)" in answer


def test_a_wheel_has_the_pages_that_are_searched(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    [wheel] = tmp_path.glob("*.whl")
    inside = {name.removeprefix("roost/docs/") for name in zipfile.ZipFile(wheel).namelist() if "/docs/" in name}
    assert inside >= {f"{doc.name}.md" for doc in bundled_docs.pages()}
