"""B2 on every store: an agent of the ADK continues after a stop in the middle of a tool, and after a restart."""

from __future__ import annotations

from functools import partial

import pytest

import roost
from roost.brains.adk import Adk
from roost.brains.adk.history import UNKNOWN
from tests.brains.adk import models
from tests.conftest import QUICK, eventually, settled


def opened(url: str) -> roost.AgentService:
    return roost.open(url, brains={"helper": Adk(models.agent())}, limits=QUICK)


def calls(service: roost.AgentService, talk: str) -> bool:
    return any(note.channel == "tools" for note in service.get_messages("ann", talk).messages[-1].notes)


def ask(service: roost.AgentService, talk: str, text: str) -> None:
    service.add_message("ann", talk, text)
    settled(service, "ann", talk)


def test_both_histories_agree_on_every_store(url: str) -> None:
    models.seen.clear()
    with opened(url) as service:
        talk = service.create_talk_session("ann", profile="helper")
        service.add_message("ann", talk, "look then call slow")
        eventually(partial(calls, service, talk))
        service.stop("ann", talk, wait=5)
        ask(service, talk, "call quick x")
    with opened(url) as service:
        ask(service, talk, "still there?")
        assert models.seen[-1] == [
            "user: look then call slow",
            "model: look | call slow",
            f"user: result {{'error': '{UNKNOWN}'}}",
            "model: [this answer was interrupted here]",
            "user: call quick x",
            "model: call quick",
            "user: result {'result': 'quick x'}",
            "model: the tool says quick x",
            "user: still there?",
        ]
        assert [m.content for m in service.get_messages("ann", talk).messages] == [
            "look then call slow",
            "look",
            "call quick x",
            "the tool says quick x",
            "still there?",
            "you said still there?",
        ]
        service.delete("ann", talk)
        with pytest.raises(roost.NotFound):
            service.get_messages("ann", talk)
