"""AutoGen core, in memory: messages between agents that answer at once. Runs in the environment of its own.

Tracing is off, which is its best case. Each figure is that of a second run, so that all is warm.
"""
# mypy: ignore-errors

import asyncio
import json
import os
import statistics
import time
from dataclasses import dataclass

os.environ["AUTOGEN_DISABLE_RUNTIME_TRACING"] = "true"

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
)

MESSAGES, AGENTS, EACH, ROUNDS = 20_000, 100, 200, 50


@dataclass
class Ping:
    number: int


@dataclass
class Go:
    count: int


class Sink(RoutedAgent):
    """Counts what arrives, at all instances together."""

    count = 0

    def __init__(self):
        super().__init__("sink")

    @message_handler
    async def on_ping(self, message: Ping, context: MessageContext) -> None:
        Sink.count += 1


class Source(RoutedAgent):
    def __init__(self):
        super().__init__("source")

    @message_handler
    async def on_go(self, message: Go, context: MessageContext) -> None:
        for number in range(message.count):
            await self.publish_message(Ping(number), TopicId("sink", "one"))


class Caller(RoutedAgent):
    """Publishes to all."""

    def __init__(self):
        super().__init__("caller")

    @message_handler
    async def on_go(self, message: Go, context: MessageContext) -> None:
        for number in range(message.count):
            await self.publish_message(Ping(number), TopicId("all", "x"))


class Node(Sink):
    """One of many that send to each other."""

    @message_handler
    async def on_go(self, message: Go, context: MessageContext) -> None:
        own = int(self.id.key)
        for step in range(message.count):
            await self.publish_message(Ping(step), TopicId("node", str((own + step + 1) % AGENTS)))


class Echo(RoutedAgent):
    def __init__(self):
        super().__init__("echo")

    @message_handler
    async def on_ping(self, message: Ping, context: MessageContext) -> Ping:
        return message


class Asker(RoutedAgent):
    """Asks once after the other, then a hundred times at once."""

    def __init__(self):
        super().__init__("asker")
        Asker.alone, Asker.together = [], []

    @message_handler
    async def on_go(self, message: Go, context: MessageContext) -> None:
        echo = AgentId("echo", "one")
        Asker.alone, Asker.together = [], []
        for number in range(1_000):
            start = time.perf_counter()
            await self.send_message(Ping(number), echo)
            Asker.alone.append(time.perf_counter() - start)
        for _ in range(message.count):
            start = time.perf_counter()
            answers = await asyncio.gather(*(self.send_message(Ping(number), echo) for number in range(100)))
            assert [answer.number for answer in answers] == list(range(100))
            Asker.together.append(time.perf_counter() - start)


def emit(metric: str, value: float) -> None:
    print(json.dumps({"metric": metric, "value": value}), flush=True)


async def handled(runtime: SingleThreadedAgentRuntime, expected: int, *sends: tuple[Go, AgentId]) -> float:
    """Return the messages per second until all of them are handled; of the second of two runs."""
    seconds = 0.0
    for _ in range(2):
        Sink.count = 0
        runtime.start()
        start = time.perf_counter()
        await asyncio.gather(*(runtime.send_message(go, to) for go, to in sends))
        await runtime.stop_when_idle()
        seconds = time.perf_counter() - start
        assert Sink.count == expected, Sink.count
    return expected / seconds


async def main() -> None:
    runtime = SingleThreadedAgentRuntime()
    await Sink.register(runtime, "sink", Sink)
    await Source.register(runtime, "source", Source)
    await runtime.add_subscription(TypeSubscription("sink", "sink"))
    emit("one_way", await handled(runtime, MESSAGES, (Go(MESSAGES), AgentId("source", "one"))))

    runtime = SingleThreadedAgentRuntime()
    await Node.register(runtime, "node", Node)
    await runtime.add_subscription(TypeSubscription("node", "node"))
    goes = [(Go(EACH), AgentId("node", str(number))) for number in range(AGENTS)]
    to_others = AGENTS * EACH - EACH // AGENTS * AGENTS  # it does not deliver an agent's messages to itself
    emit("among_100", await handled(runtime, to_others, *goes))

    runtime = SingleThreadedAgentRuntime()
    for number in range(AGENTS):
        await Sink.register(runtime, f"sink{number}", Sink)
        await runtime.add_subscription(TypeSubscription("all", f"sink{number}"))
    await Caller.register(runtime, "caller", Caller)
    emit("broadcast", await handled(runtime, AGENTS * 100, (Go(100), AgentId("caller", "one"))))

    runtime = SingleThreadedAgentRuntime()
    await Echo.register(runtime, "echo", Echo)
    await Asker.register(runtime, "asker", Asker)
    runtime.start()
    for _ in range(2):
        await runtime.send_message(Go(ROUNDS), AgentId("asker", "one"))
    emit("request", statistics.median(Asker.alone) * 1e3)
    emit("in_flight_100", 100 * ROUNDS / sum(Asker.together))
    await runtime.stop_when_idle()


asyncio.run(main())
