"""Approvals of the user: those that wait, those that were decided, and tools that are always allowed."""

from __future__ import annotations

from roost.ui.approvals import decided_list, permission_list, waiting_list
from roost.ui.shell import frame, live, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

APPROVAL = "approval"
SHOW, WAITING, DECIDED, ALWAYS = "show", "waiting", "decided", "always"
VIEWS = {WAITING: "Waiting", DECIDED: "Decided", ALWAYS: "Always allowed"}
_DRAWN = {WAITING: waiting_list.draw, DECIDED: decided_list.draw, ALWAYS: permission_list.draw}


def page(visit: Visit) -> None:
    frame.draw(visit, Route.APPROVALS)
    live.draw(visit, lambda: _content(visit))


def _content(visit: Visit) -> None:
    if approval_id := navigation.asked(APPROVAL):
        return _one(visit, approval_id)
    _DRAWN[url_choice.segments(SHOW, "Approvals", VIEWS)](visit)
    return None


def _one(visit: Visit, approval_id: str) -> None:
    """Draw one approval, to which the steps of runs link."""
    navigation.link(Route.APPROVALS, "All approvals", icon=False)
    approval = visit.service.approvals.get(visit.user, approval_id)
    if approval.decision is None:
        waiting_list.draw_list(visit, [approval])
    else:
        decided_list.draw_list(visit, [approval])
