"""Templates for new agents."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.agents.agent import AgentConfig, Subscription
from roost.core.values.priority import Priority


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """Settings to begin with. `cron` and `prompt` belong to the schedule of the agent, if it has one."""

    label: str
    about: str
    name: str
    config: AgentConfig
    cron: str = ""
    prompt: str = ""


TEMPLATES = {
    "assistant": AgentTemplate(
        "Assistant",
        "Talks with you, does tasks, reads mail, and remembers.",
        "assistant",
        AgentConfig(description="Does tasks and answers mail"),
    ),
    "watcher": AgentTemplate(
        "Watcher",
        "Receives events, such as alerts, and is woken by urgent mail only.",
        "watcher",
        AgentConfig(
            description="Watches for alerts",
            subscriptions=(Subscription("alerts.*"), Subscription("agent.failed")),
            wake_on_priority=Priority.URGENT,
        ),
    ),
    "rounds": AgentTemplate(
        "Nightly rounds",
        "Does the same task each night, by a schedule.",
        "nightly-rounds",
        AgentConfig(description="Makes the rounds at night", task_expiry=6 * 3_600.0),
        "0 2 * * *",
        "Check what has happened since yesterday, and mail me a summary",
    ),
    "worker": AgentTemplate(
        "Worker",
        "Does several tasks at once, and expects them from other agents.",
        "worker-1",
        AgentConfig(description="Does tasks for other agents", max_concurrent_tasks=4, groups=("workers",)),
    ),
    "echo": AgentTemplate(
        "Echo",
        "Repeats what it gets: to try things out, without a model.",
        "echo",
        AgentConfig(profile="echo", description="Repeats what it gets"),
    ),
}
FIRST = "assistant"
