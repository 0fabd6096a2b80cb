from __future__ import annotations

import pytest

from tests.brains.adk import models


@pytest.fixture(autouse=True)
def shown() -> list[list[str]]:
    """Return the contents that the models were shown, call by call."""
    models.seen.clear()
    return models.seen
