"""One service for a module's examples; each example has a talk of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import strategies as st

import roost
from tests.brains_for_tests import Puppet
from tests.conftest import QUICK

USER = "ann"
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
"""All that may be said."""


@dataclass(frozen=True)
class Home:
    """A real service on a real file, and the puppet that answers in it."""

    service: roost.AgentService
    puppet: Puppet

    def talk(self, busy: str = "interrupt") -> str:
        return self.service.create_talk_session(USER, profile="puppet", busy=busy)

    def say(self, talk: str, text: str) -> roost.Message:
        return self.service.add_message(USER, talk, text)

    def read(self, talk: str, after: str | None = None, limit: int = 200) -> roost.Page:
        return self.service.get_messages(USER, talk, after=after, limit=limit)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    puppet = Puppet()
    path = tmp_path_factory.mktemp("home") / "roost.db"
    # One home for all examples: what fails in one of them must not count against the next, nor how many there are.
    limits = replace(QUICK, breaker_failures=1_000_000, talks_per_user=1_000_000)
    with roost.open(f"sqlite:///{path}", brains={"puppet": puppet}, limits=limits) as service:
        yield Home(service, puppet)
