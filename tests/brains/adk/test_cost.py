"""B2: a turn after many others costs what the tenth did: it reads, is shown and writes no more than that."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from statistics import median
from time import process_time

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import Open, settled


class Talk:
    def __init__(self, service: roost.AgentService, turns: int) -> None:
        self.service = service
        self.talk = service.create_talk_session("ann", profile="helper")
        self.cursor: str | None = None
        for _ in range(turns):
            self.turn()

    def turn(self) -> float:
        """The processor time that it took: others are at work on this machine too."""
        start = process_time()
        self.service.add_message("ann", self.talk, "hello there")
        for change in self.service.stream_messages("ann", self.talk, after=self.cursor):
            self.cursor = change.cursor
        return process_time() - start


def ratio(service: roost.AgentService, turns: int, rounds: int) -> float:
    """Of late turns of a long talk to the tenth ones of short talks; in turn, since the machine changes its speed."""
    long, pairs = Talk(service, turns), []
    for _ in range(rounds):
        short = Talk(service, 8)
        pairs += [(short.turn(), long.turn()) for _ in range(4)]
    return median(late for _, late in pairs) / median(early for early, _ in pairs)


class Curt(BaseLlm):
    """Model with a constant answer; it ignores its input."""

    model: str = "curt"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield models.said("well", partial=True)
        yield models.said("well")


def curt() -> Adk:
    return Adk(models.agent(model=Curt()))


@pytest.mark.alone
def test_a_late_turn_costs_about_what_the_tenth_did(service: Open) -> None:
    assert ratio(service({"helper": curt()}), 60, rounds=3) < 2


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_turn_1000_costs_at_most_half_as_much_again_as_turn_10(service: Open) -> None:
    assert ratio(service({"helper": curt()}), 1_000, rounds=5) <= 1.5


@pytest.mark.parametrize(("recent", "least", "most"), [(4, 2, 5), (20, 10, 21)])
def test_how_much_is_shown_can_be_set(
    tmp_path: Path, shown: list[list[str]], recent: int, least: int, most: int
) -> None:
    config = tmp_path / "roost.toml"
    agent = "tests.brains.adk.models:root_agent"
    config.write_text(f'[profiles.helper]\nbrain = "adk"\nagent = "{agent}"\nrecent_messages = {recent}\n')
    with roost.open(f"sqlite:///{tmp_path}/roost.db", config=config) as service:
        talk = service.create_talk_session("ann", profile="helper")
        for _ in range(14):
            service.add_message("ann", talk, "hello")
            settled(service, "ann", talk)
    assert least <= len(shown[-1]) <= most
    assert shown[-1][-1] == "user: hello"
