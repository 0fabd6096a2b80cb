"""Ask an ADK agent, close everything, and ask again: it remembers the talk."""

from __future__ import annotations

from pathlib import Path

import roost

CONFIG = Path(__file__).parent / "roost.toml"


def ask(service: roost.AgentService, talk: str, text: str) -> str:
    service.add_message("ann", talk, text)
    for _ in service.stream_messages("ann", talk):
        pass
    return service.get_messages("ann", talk).messages[-1].content


with roost.open("sqlite:///shop.db", config=CONFIG) as service:
    talk = service.create_talk_session("ann", profile="clerk")
    print(ask(service, talk, "What is the rope?"))

with roost.open("sqlite:///shop.db", config=CONFIG) as service:
    print(ask(service, talk, "Thank you."))
