"""The header and the list of talks: tokens, cost, and dates that people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from roost.core.limits.usage import Usage
from roost.ui.design.components import period
from roost.ui.header import used
from tests.ui.conftest import USER, Tab


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), ""),
        (Usage(1_200, 4), "1,204 tokens"),
        (Usage(1_200, 4, 0.0), "1,204 tokens · $0.00"),
        (Usage(1_200, 4, 0.004), "1,204 tokens · under $0.01"),
        (Usage(1_200, 4, 0.031), "1,204 tokens · $0.03"),
    ],
)
def test_tokens_and_cost_are_written_for_people(usage: Usage, text: str) -> None:
    assert used(usage) == text


def test_talks_are_listed_under_days_weeks_and_months() -> None:
    now = datetime.now(UTC)
    headings = [period(now - timedelta(days=days)) for days in (0, 1, 2, 7, 8, 29)]
    assert headings == ["Today", "Yesterday", *["Previous 7 days"] * 2, *["Previous 30 days"] * 2]
    assert period(datetime(2021, 3, 4, tzinfo=UTC)) == "March 2021"


def test_a_stop_removes_the_notice_that_the_agent_is_still_answering(tab: Tab) -> None:
    tab.say("hold")
    service = tab.service
    service.configure(USER, str(tab.talk_id), busy="reject")
    tab.look().say("too early")
    assert tab.notices
    tab.stop()
    tab.settle()
    assert tab.look().notices == []
