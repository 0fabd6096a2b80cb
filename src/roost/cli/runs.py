"""`roost runs` and `roost replay`: what was done, step by step, and the same once more."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli import talks
from roost.cli.desk import NEWEST, found, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.options import Config, Json, Limit, OfAgent, Store, group
from roost.cli.tables import ago, at, facts
from roost.cli.text import line, plain
from roost.core.envelopes import Kind
from roost.core.faults import Fault, sentence
from roost.core.ids import reference
from roost.core.runbook import Replay, Run, RunEntry
from roost.core.steps import Step
from roost.core.usage import Usage
from roost.errors import NotFound

app = group()
Name = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or any part of it that no other has.")]
DIFFERS = 1
SHOWN = 400
"""Characters of a request or a result that are shown of each step."""


@app.command()
def ls(
    agent: OfAgent = None,
    talk: Annotated[str | None, typer.Option("--talk", help="The id of a talk, or a part of it.")] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List runs that are over, newest first."""
    with opened(store, config) as (service, user):
        talk_id = talks.found(service, user, talk).talk_session_id if talk is not None else None
        listed = service.runs.list(user, agent=agent, talk=talk_id, limit=limit)
    show_list(listed, ("ID", "KIND", "WHERE", "OUTCOME", "STEPS", "TOOK", "ENDED"), _row, "No runs.", as_json=json)


def _row(one: Run) -> tuple[str, ...]:
    took = f"{(one.ended - one.started).total_seconds():.1f} s"
    where = one.agent_id or short(one.talk_session_id or "")
    ending = f"{one.outcome} ({one.fault})" if one.fault else one.outcome
    return short(one.run_id), one.kind, where, ending, str(one.steps), took, ago(one.ended)


@app.command("show")
def show_one(run: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a run: each step, and what was said."""
    with opened(store, config) as (service, user):
        one = service.runs.get(user, _found(service, user, run).run_id)
        error = _error(service, user, one.run)
    show(one, lambda: _facts(one, error), as_json=json)


def _error(service: Service, user: str, run: Run) -> str | None:
    """What its task says went wrong, if it was in this run; else the usual sentence of such a fault."""
    if run.fault not in set(Fault):
        return None
    with suppress(NotFound):
        told = service.tasks.get(user, run.envelope_id).error if run.kind == Kind.TASK else None
        if told and reference(run.run_id) in told:
            return told
    return sentence(Fault(run.fault), run.run_id)


def _facts(one: RunEntry, error: str | None) -> Iterator[str]:
    run = one.run
    yield from facts(
        [
            ("run", run.run_id),
            ("kind", run.kind),
            ("agent", run.agent_id),
            ("talk", run.talk_session_id),
            ("meeting", run.meeting_id),
            ("profile", one.given.get("profile")),
            ("outcome", f"{run.outcome} ({run.fault})" if run.fault else run.outcome),
            ("error", error),
            ("tries", str(run.attempts)),
            ("began", at(run.started)),
            ("ended", at(run.ended)),
            ("model", one.usage.model),
            ("tokens", _tokens(one.usage)),
            ("cost", None if one.usage.cost is None else f"{one.usage.cost:.6f} US dollars"),
        ]
    )
    for step in one.steps:
        yield from _step(step, run)
    if one.text:
        yield "\n" + plain(one.text)


def _tokens(usage: Usage) -> str:
    return f"{usage.input_tokens:,} read, {usage.output_tokens:,} said" if usage.tokens else ""


def _step(step: Step, run: Run) -> Iterator[str]:
    took = "" if step.ended is None else f", {(step.ended - step.began).total_seconds():.2f} s"
    earlier = "" if step.run_id in ("", run.run_id) else f", by run {short(step.run_id)}"
    yield f"\n{step.number}. {step.kind} {line(step.name)}: {step.outcome}{took}{earlier}"
    for arrow, value in (("→", step.request), ("←", step.result)):
        if value is not None:
            yield f"   {arrow} {_short(value)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json_module.dumps(value, ensure_ascii=False)
    return line(text[:SHOWN] + ("…" if len(text) > SHOWN else ""))


def _found(service: Service, user: str, part: str) -> Run:
    return found(
        part, "runs", lambda name: service.runs.get(user, name).run, lambda: service.runs.list(user, limit=NEWEST),
        lambda one: one.run_id,
    )  # fmt: skip


# --- replay ------------------------------------------------------------------------------------------------


def replay(store: str | None, config: Path | None, run: str, until: int | None, *, live: bool, as_json: bool) -> int:
    """The exit code: 0 if it is the same."""
    with opened(store, config) as (service, user):
        result = service.runs.replay(user, _found(service, user, run).run_id, until=until, live=live)
    show(result, lambda: _told(result), as_json=as_json)
    return 0 if result.is_identical else DIFFERS


def _told(one: Replay) -> Iterator[str]:
    for number, step in enumerate(one.steps, start=1):
        yield f"{number}. {line(step)}"
    for sent in one.sent:
        yield f"would send: {line(sent)}"
    if one.error is not None:
        yield f"ended with {line(one.error)}"
    yield plain(one.text)
    if one.is_identical:
        yield "\nIdentical." if one.stopped_at is None else f"\nIdentical up to step {one.stopped_at}."
    else:
        yield "\nIt differs:"
        yield plain(one.diff)
