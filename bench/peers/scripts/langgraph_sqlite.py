"""LangGraph on SQLite: a graph of one instant node, in fresh threads and in a long one. Runs in its own environment."""
# mypy: ignore-errors

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

os.environ["LANGSMITH_TRACING"] = "false"

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

AT_ONCE, TURNS, LONG = 20, 600, 1_000


class State(TypedDict):
    messages: Annotated[list, add_messages]


async def instant(state: State) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage("ok")]}


def build(saver: AsyncSqliteSaver):
    graph = StateGraph(State)
    graph.add_node("instant", instant)
    graph.add_edge(START, "instant")
    graph.add_edge("instant", END)
    return graph.compile(checkpointer=saver)


def asked() -> dict[str, list[HumanMessage]]:
    return {"messages": [HumanMessage("hello")]}


def thread(name: object) -> dict[str, dict[str, str]]:
    return {"configurable": {"thread_id": str(name)}}


def emit(metric: str, value: float) -> None:
    print(json.dumps({"metric": metric, "value": value}), flush=True)


async def main(folder: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        graph = build(saver)

        async def lane(first: int, count: int) -> None:
            for number in range(count):
                await graph.ainvoke(asked(), thread(f"{first}-{number}"))

        await asyncio.gather(*(lane(-1 - number, 2) for number in range(AT_ONCE)))
        start = time.perf_counter()
        await asyncio.gather(*(lane(number, TURNS // AT_ONCE) for number in range(AT_ONCE)))
        emit("turns", TURNS / (time.perf_counter() - start))

        waits = []
        for number in range(100):
            start = time.perf_counter()
            stream = graph.astream(asked(), thread(f"first-{number}"), stream_mode="updates")
            async for _ in stream:
                waits.append(time.perf_counter() - start)
                break
            await stream.aclose()
        emit("first_chunk", statistics.median(waits) * 1e3)

        times = []
        for _ in range(LONG + 10):
            start = time.perf_counter()
            await graph.ainvoke(asked(), thread("long"))
            times.append(time.perf_counter() - start)
        emit("turn_1000", statistics.median(times[LONG - 10 :]) * 1e3)


asyncio.run(main(Path(sys.argv[1])))
