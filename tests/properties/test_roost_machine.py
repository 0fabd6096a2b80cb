"""A whole roost against a simple model: states, counts, results and wake reasons agree after every step."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import roost
from roost import Turn
from roost.core.agents import wake
from roost.testing import Simulation

T = TypeVar("T")
LIMITS = roost.Limits(drain=0.3, stop_patience=0.15)
NAMES = ("a", "b")
LEVELS = ("low", "normal", "high", "urgent")
EVENTS = ("data_ready", "shutdown")
AGENTS = st.sampled_from(NAMES)
SUBSCRIBER = "b"
"""Subscribed to `data_ready` in every state."""
LASTING = 20.0531
"""Seconds in which some tasks expire: never just when somebody looks."""
LONG = 10.0
"""Seconds that a long task takes."""
HURDLES: set[str] = set()
"""Hurdles; a fragile task fails while there is one."""


async def worker(turn: Turn) -> AsyncIterator[str]:
    """Does what its task says, and has the outcome that the task names."""
    if turn.text == "long":
        await asyncio.sleep(LONG)
    if turn.text == "fragile" and HURDLES:
        raise ValueError("there is a hurdle")
    turn.state["handled"] = turn.state.get("handled", 0) + 1
    if turn.text == "write home":
        await turn.mail(f"user:{turn.user_id}", "hello", "from afar")
    if turn.kind == "task":
        yield f"done: {turn.text}"


@dataclass
class Model:
    """Agent as the model knows it."""

    state: str = "idle"
    paused: bool = False
    wait: tuple[str, float, str, str] | None = None
    """Condition of its sleep: the kind, the time, the event, the priority of mail."""
    reason: str | None = None
    inbox: list[tuple[str, str]] = field(default_factory=list)
    """Waiting work: kind, and the task, the name of the event or the priority of the mail."""
    handled: int = 0
    letters: int = 0
    """Dead letters of its own."""


class Everything(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        HURDLES.clear()
        self._folder = tempfile.TemporaryDirectory(prefix="roost-machine-")
        self.simulation = Simulation(Path(self._folder.name), seed=11)
        self.service = self.simulation.start({"worker": worker}, LIMITS)
        self.agents: dict[str, Model] = {}
        self.tasks: dict[str, tuple[str, str]] = {}
        """Agent and text of each task."""
        self.expiring: dict[str, float] = {}
        self.ends: dict[str, tuple[str, str | None]] = {}
        """Status and result of tasks that have ended."""
        self.letters = 0
        """Events that nobody took."""
        self.mail = 0

    def run(self, act: Coroutine[Any, Any, T]) -> T:
        return self.simulation.run(act)

    def teardown(self) -> None:
        self.simulation.crash()
        self._folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.create("a")

    # --- what can be done ------------------------------------------------------------------------

    @rule(name=AGENTS)
    def create(self, name: str) -> None:
        heard = ["data_ready"] if name == SUBSCRIBER else []
        made = self.service.agents.create(
            "ann",
            name,
            profile="worker",
            wake_on_priority="low",
            max_attempts=3,
            retry_delay=0.05,
            subscriptions=heard,
        )
        if name in self.agents:
            with pytest.raises(roost.Conflict):
                self.run(made)
        else:
            self.run(made)
            self.agents[name] = Model()

    @precondition(lambda self: self.agents)
    @rule(
        name=AGENTS,
        text=st.sampled_from(["work", "write home", "fragile"]),
        priority=st.sampled_from(LEVELS),
        lasting=st.sampled_from([None, LASTING]),
    )
    def send(self, name: str, text: str, priority: str, lasting: float | None) -> None:
        if name not in self.agents:
            with pytest.raises(roost.NotFound):
                self.run(self.service.tasks.send("ann", name, text))
            return
        task = self.run(self.service.tasks.send("ann", name, text, priority=priority, expires_in=lasting))
        self.tasks[task] = (name, text)
        if lasting is not None:
            self.expiring[task] = self.simulation.clock.now() + lasting
        self._arrives(name, "task", task)

    @rule()
    def hurdle(self) -> None:
        """From now on fragile tasks fail, or do not any more."""
        HURDLES.symmetric_difference_update({"there"})

    @precondition(lambda self: any(model.letters for model in self.agents.values()))
    @rule()
    def retry(self) -> None:
        """Try again all that has died, of all agents."""
        for letter in self.run(self.service.dead_letters.list("ann", limit=1_000)):
            if letter.agent_id is None:
                continue
            self.run(self.service.dead_letters.retry("ann", letter.letter_id))
            task = letter.envelope["envelope_id"]
            self.agents[letter.agent_id].letters -= 1
            if task in self.expiring:  # it lasts as long again
                self.expiring[task] = self.simulation.clock.now() + LASTING
            del self.ends[task]
            self._arrives(letter.agent_id, "task", task)

    @precondition(lambda self: any(self._is_free(name) for name in self.agents))
    @rule(
        how=st.sampled_from(["kill", "kill twice", "restart", "stop", "restart it", "pause", "cancel", "delete"]),
        after=st.sampled_from([0.0, 0.01, LONG / 2, LONG]),
        waiting=st.booleans(),
    )
    def disturb(self, how: str, after: float, waiting: bool) -> None:
        """Something happens to an agent in the middle of a long task, or just when it begins or ends."""
        name = next(name for name in self.agents if self._is_free(name))
        task = self._give(name, "long")
        # Cancelled just when it ends, its memories are dropped; turns that have read them keep them.
        waiting = waiting and (how, after) != ("cancel", LONG)
        behind = self._give(name, "write home") if waiting else None
        if how == "pause":  # only what has begun may end
            after = LONG / 2
        elif how == "delete":  # only what was done has been done
            after = min(after, LONG / 2)
        self.run(asyncio.sleep(after))
        if how == "cancel":
            if self.run(self.service.tasks.cancel("ann", task)).status == "cancelled":
                self.agents[name].inbox.remove(("task", task))
                self.ends[task] = ("cancelled", None)
        elif how == "delete":
            self.delete(name)
        elif how == "restart it":
            self.command(name, "restart")
        elif how in ("stop", "pause"):
            self.command(name, how)
            self.run(asyncio.sleep(2 * LONG))
            if how == "pause":
                assert self._status(task) == "done", "what had begun may end"
                assert behind is None or self._status(behind) == "queued", "and nothing else begins"
            self.command(name, "start" if how == "stop" else "resume")
        else:
            for _ in range(2 if how == "kill twice" else 1):
                (self.restart if how == "restart" else self.kill)()
                self.run(asyncio.sleep(after / 2))
        self.run(asyncio.sleep(3 * LONG))

    def _give(self, name: str, text: str) -> str:
        task = self.run(self.service.tasks.send("ann", name, text))
        self.tasks[task] = (name, text)
        self._arrives(name, "task", task)
        return task

    def _status(self, task: str) -> str:
        return str(self.run(self.service.tasks.get("ann", task)).status)

    def _is_free(self, name: str) -> bool:
        model = self.agents[name]
        return model.state == "idle" and not model.paused

    @precondition(lambda self: self.agents)
    @rule(
        name=AGENTS,
        kind=st.sampled_from(["time", "event", "mail", "any", "all", "both", "woken"]),
        seconds=st.sampled_from([1.0, 10.0, 100.0]),
        event=st.sampled_from(EVENTS),
        level=st.sampled_from(LEVELS),
    )
    def sleep(self, name: str, kind: str, seconds: float, event: str, level: str) -> None:
        model = self.agents.get(name)
        if model is None:
            return
        time = self.simulation.clock.now() + seconds
        moment = roost.at(datetime.fromtimestamp(time, UTC))
        condition: wake.Condition = {
            "time": moment,
            "event": roost.event(event),
            "mail": roost.mail(level),
            "any": roost.any_of(roost.event(event), moment),
            "all": roost.all_of(moment, roost.event(event)),
            "both": roost.all_of(roost.mail(level), roost.event(event)),
            "woken": roost.event("never"),
        }[kind]
        if model.state == "stopped":
            with pytest.raises(roost.Conflict):
                self.run(self.service.agents.sleep("ann", name, wake_on=condition))
            return
        self.run(self.service.agents.sleep("ann", name, wake_on=condition))
        model.state, model.wait = "sleeping", (kind, time, event, level)

    @precondition(lambda self: self.agents)
    @rule(name=AGENTS)
    def wake(self, name: str) -> None:
        model = self.agents.get(name)
        if model is not None:
            self.run(self.service.agents.wake("ann", name, "asked for"))
            if model.state == "sleeping":
                self._wakes(model, "asked for")

    @precondition(lambda self: self.agents)
    @rule(name=AGENTS, priority=st.sampled_from(LEVELS))
    def write(self, name: str, priority: str) -> None:
        if name not in self.agents:
            with pytest.raises(roost.NotFound):
                self.run(self.service.mail.send("ann", f"agent:{name}", "hello", "there", priority=priority))
            return
        self.run(self.service.mail.send("ann", f"agent:{name}", "hello", "there", priority=priority))
        self._arrives(name, "mail", priority)

    @rule(name=st.sampled_from(EVENTS))
    def publish(self, name: str) -> None:
        self.run(self.service.events.publish("ann", name))
        takers = [agent for agent, model in self.agents.items() if self._hears(agent, model, name)]
        for agent in takers:
            self._arrives(agent, "event", name)
        self.letters += not takers

    def _hears(self, agent: str, model: Model, name: str) -> bool:
        if (agent, name) == (SUBSCRIBER, "data_ready"):
            return True
        waits = model.wait is not None and model.wait[0] in ("event", "any", "all", "both") and model.wait[2] == name
        return waits and ("event", name) not in model.inbox  # what has been is not waited for any more

    @precondition(lambda self: any(model.wait for model in self.agents.values()))
    @rule(near=st.sampled_from(["time", "event", "mail"]), level=st.sampled_from(LEVELS))
    def tempt(self, near: str, level: str) -> None:
        """Something happens that a sleeper may well be waiting for."""
        name, model = next((name, model) for name, model in self.agents.items() if model.wait)
        assert model.wait is not None
        if near == "mail" or model.wait[0] == "mail":
            self.write(name, level)
        elif near == "event":
            self.publish(model.wait[2])
        else:
            self.time_passes(max(0.5, model.wait[1] - self.simulation.clock.now()))

    @precondition(lambda self: self.agents)
    @rule(name=AGENTS, what=st.sampled_from(["stop", "start", "pause", "resume", "restart"]))
    def command(self, name: str, what: str) -> None:
        model = self.agents.get(name)
        if model is None:
            return
        self.run(getattr(self.service.agents, what)("ann", name))
        if what in ("pause", "resume"):
            model.paused = what == "pause"
        elif what == "stop" or (what == "start" and model.state == "stopped") or what == "restart":
            model.state = "stopped" if what == "stop" else "idle"
            model.wait = None

    @precondition(lambda self: self.agents)
    @rule(name=AGENTS)
    def delete(self, name: str) -> None:
        if name in self.agents:
            self.run(self.service.agents.delete("ann", name))
            del self.agents[name]
            self.tasks = {task: kept for task, kept in self.tasks.items() if kept[0] != name}
            self.ends = {task: end for task, end in self.ends.items() if task in self.tasks}

    @rule()
    def kill(self) -> None:
        self.simulation.crash()
        self.service = self.simulation.start({"worker": worker}, LIMITS)

    @rule()
    def restart(self) -> None:
        self.run(self.service.close())
        self.simulation.crash()
        self.service = self.simulation.start({"worker": worker}, LIMITS)

    @rule(seconds=st.sampled_from([0.5, 5.0, 50.0]))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    # --- the model -------------------------------------------------------------------------------

    def _arrives(self, name: str, kind: str, what: str) -> None:
        self.agents[name].inbox.append((kind, what))

    def _settle(self) -> None:
        """Do what happens without a call: agents wake, those that may work have worked, the rest expires."""
        for model in self.agents.values():
            reason = self._reason(model) if model.state == "sleeping" and not model.paused else None
            self._expire(model, self._wakes_at(model) if reason else self.simulation.clock.now())
            if reason:
                self._wakes(model, reason)
            if model.state == "idle" and not model.paused:
                for kind, what in model.inbox:
                    self._handle(model, kind, what)
                model.inbox.clear()

    def _wakes_at(self, model: Model) -> float:
        """Return the time at which it woke: its own, if it waited for nothing else."""
        assert model.wait is not None
        now = self.simulation.clock.now()
        return min(model.wait[1], now) if model.wait[0] in ("time", "any", "all") else now

    def _expire(self, model: Model, until: float) -> None:
        if model.state == "idle" and not model.paused:
            return
        for kind, what in list(model.inbox):
            if kind == "task" and self.expiring.get(what, until + 1) <= until:
                model.inbox.remove((kind, what))
                model.letters += 1
                self.ends[what] = ("expired", None)

    def _handle(self, model: Model, kind: str, what: str) -> None:
        text = self.tasks[what][1] if kind == "task" else ""
        if text == "fragile" and HURDLES:
            model.letters += 1
            self.ends[what] = ("failed", None)
            return
        model.handled += 1
        if kind == "task":
            self.ends[what] = ("done", f"done: {text}")
            self.mail += text == "write home"

    def _reason(self, model: Model) -> str | None:
        assert model.wait is not None
        kind, time, event, level = model.wait
        passed = time <= self.simulation.clock.now()
        heard = ("event", event) in model.inbox
        enough = [what for what in LEVELS[LEVELS.index(level) :] if ("mail", what) in model.inbox]
        met = {
            "time": "time" if passed else None,
            "event": f"event {event}" if heard else None,
            "mail": f"mail {level}" if enough else None,
            "any": f"event {event}" if heard else "time" if passed else None,
            "all": f"time and event {event}" if passed and heard else None,
            "both": f"mail {level} and event {event}" if enough and heard else None,
        }
        return met.get(kind)

    def _wakes(self, model: Model, reason: str) -> None:
        model.state, model.reason, model.wait = "idle", reason, None

    @invariant()
    def the_roost_is_as_the_model_says(self) -> None:
        self.run(asyncio.sleep(0.4))
        self._settle()
        found = {agent.agent_id: agent for agent in self.run(self.service.agents.list("ann"))}
        assert found.keys() == self.agents.keys()
        for name, model in self.agents.items():
            agent = found[name]
            assert (name, agent.state, agent.paused) == (name, model.state, model.paused)
            assert (name, agent.wake_reason) == (name, model.reason)
            assert (name, agent.queue_depth) == (name, len(model.inbox))
            state = self.run(self.service.agents.inspect("ann", name)).turn_state
            assert (name, state.get("handled", 0)) == (name, model.handled), "each once"
        tasks = {task.task_id: task for task in self.run(self.service.tasks.list("ann", limit=1_000))}
        assert {task: (one.status, one.result) for task, one in tasks.items() if one.is_over} == self.ends
        assert tasks.keys() == self.tasks.keys()
        assert self.run(self.service.mail.unread_count("ann")) == self.mail
        letters = self.run(self.service.dead_letters.list("ann", limit=1_000))
        expected = {name: model.letters for name, model in self.agents.items()} | {None: self.letters}
        assert Counter(letter.agent_id for letter in letters) == Counter(expected)


TestEverything = Everything.TestCase
TestEverything.settings = settings(stateful_step_count=20)
