"""Over HTTP a traceback is for the operator: the local user and holders of the token. Others read one sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import roost
from tests.api.serving import Served, ask, serving
from tests.conftest import Open, settled


async def broken(turn: roost.Turn) -> AsyncIterator[str]:
    yield "so far "
    raise ValueError(f"cannot answer {turn.text}")


def failed(served: Served, user: str) -> dict[str, Any]:
    """The arguments that ask for a failed run of this user."""
    talk = served.service.create_talk_session(user, profile="broken")
    served.service.add_message(user, talk, "hunter2")
    settled(served.service, user, talk)
    return {"runId": served.service.runs.list(user, talk=talk)[0].run_id}


def test_only_the_operator_reads_a_traceback(service: Open) -> None:
    with serving(service({"broken": broken})) as served:
        of_ann, of_local = failed(served, "ann"), failed(served, "local")
        with served.browser("ann") as ann, served.browser("local") as local, served.command_line() as command:
            for client in (local, command):
                reply = ask(client, "runs.get", **of_local).json()
                assert reply["traceback"].endswith("ValueError: cannot answer hunter2")
                assert ask(client, "runs.get", **of_ann).status_code == 404
            hers = ask(ann, "runs.get", **of_ann)
            assert (hers.status_code, hers.json()["traceback"]) == (200, None)
            assert "ValueError" not in hers.text
            assert ask(ann, "runs.get", **of_local).status_code == 404
            assert ask(ann, "runs.replay", **of_ann).json()["error"] == "ValueError"
            assert ask(local, "runs.replay", **of_local).json()["error"].endswith("cannot answer hunter2")


def test_the_owner_of_a_talk_with_an_agent_of_somebody_else_reads_no_traceback_of_it(service: Open) -> None:
    opened = service({"broken": broken})
    opened.agents.create("bob", "helper", profile="broken", shared=True)
    talk = opened.create_talk_session("ann", agent="agent:bob/helper")
    opened.add_message("ann", talk, "hello")
    assert settled(opened, "ann", talk)[-1].status == "failed"
    [run] = opened.runs.list("ann", talk=talk)
    assert opened.runs.get("ann", run.run_id).traceback is None
    with pytest.raises(roost.NotFound):
        opened.runs.get("bob", run.run_id)
