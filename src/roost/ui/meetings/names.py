"""Names of participants on pages: `You`, own agents by their id, others with their owner."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roost.core.values.addresses import shortened
from roost.ui.shell.signed_in import VISITOR

_AGENT = re.compile(r"(?<![\w:/.-])agent:(?=\w)")


def short(address: str, user: str) -> str:
    """Return the name of a participant: `You`, `d` for an own agent, `bob/d` or `bob` for others."""
    if address == f"user:{user}":
        return "You"
    name = shortened(address, user).partition(":")[2]
    return f"Visitor {name[-4:]}" if address.startswith(f"user:{VISITOR}") else name


def listed(addresses: Iterable[str], user: str, *, most: int = 4) -> str:
    """Return names as a list, of which the end may be left out: `You, d, e and 3 more`."""
    names = [short(address, user) for address in addresses]
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def readable(text: str, user: str) -> str:
    """Return a sentence of Roost with the user's agents as they are named on pages."""
    return _AGENT.sub("", shortened(text, user)).replace(f"user:{user}", user)
