"""Things that the guide offers to build: the page has a button for each, and a terminal a command."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """Thing to build. `called` matches questions that it fits, `button` is its label on the page."""

    button: str
    called: str
    command: str

    def __str__(self) -> str:
        return f"To try it, press *{self.button}* on the page, or type in a terminal:\n\n```sh\n{self.command}\n```"


OFFERS = (
    Offer(
        "Schedule a task",
        r"schedul|remind|cron|every (?:morning|day|hour)",
        'roost schedules add first-agent "Good morning" --cron "0 9 * * *"',
    ),
    Offer("Start a demo meeting", r"meetings?\b|tic-?tac-?toe|game", "roost demo tictactoe --keep"),
    Offer(
        "Create a first agent",
        r"(?:create|make|build|add|have|start|first|own|new) (?:\w+ ){0,3}agents?\b",
        "roost agents create first-agent --profile demo-notebook",
    ),
)


def offer_for(question: str) -> Offer | None:
    """Return what fits a question."""
    asked = " ".join(question[:1_000].casefold().split())
    return next((offer for offer in OFFERS if re.search(rf"\b(?:{offer.called})", asked)), None)
