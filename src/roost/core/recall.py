"""The memory of an agent, as JSON: how what turns change in it comes together."""

from __future__ import annotations

import json
from typing import Any


def merged(before: str | None, after: str, now: str | None) -> dict[str, Any]:
    """What is there now, with what differs between before and after."""
    was, new, there = json.loads(before or "{}"), json.loads(after), json.loads(now or "{}")
    for name in was.keys() - new.keys():
        there.pop(name, None)
    there |= {name: value for name, value in new.items() if name not in was or was[name] != value}
    return dict(there)
