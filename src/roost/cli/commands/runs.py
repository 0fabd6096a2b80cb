"""`roost runs` and `roost replay`: finished runs, and replays from their journals."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.app.connect import Service
from roost.cli.app.options import Config, Json, Limit, OfAgent, Store, command_group
from roost.cli.app.shared import NEWEST, find_by_id, open_session
from roost.cli.commands.talks import talks
from roost.cli.render.meetings import refusal_lines
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import key_values, local_time, relative_time
from roost.cli.render.text import sanitize, single_line
from roost.core.envelopes.envelope import Kind
from roost.core.failures.faults import Fault, sentence
from roost.core.journal.run_history import Replay, Run, RunEntry
from roost.core.journal.steps import Step
from roost.core.limits.usage import Usage
from roost.core.values.ids import reference
from roost.errors import NotFound

app = command_group()
Name = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or a unique part of it.")]
DIFFERS = 1
SHOWN = 400
"""Maximum number of characters shown of the request and the result of a step."""


@app.command()
def ls(
    agent: OfAgent = None,
    talk: Annotated[
        str | None, typer.Option("--talk", help="Only of this talk: its id or a unique part of it.")
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List finished runs, newest first."""
    with open_session(store, config) as (service, user):
        talk_id = talks.find_talk(service, user, talk).talk_session_id if talk is not None else None
        listed = service.runs.list(user, agent=agent, talk=talk_id, limit=limit)
    print_table(
        listed, ("ID", "KIND", "AGENT/TALK", "OUTCOME", "STEPS", "DURATION", "ENDED"), _row, "No runs.", as_json=json
    )


def _row(one: Run) -> tuple[str, ...]:
    took = f"{(one.ended - one.started).total_seconds():.1f} s"
    where = one.agent_id or short_id(one.talk_session_id or "")
    ending = f"{one.outcome} ({one.fault})" if one.fault else one.outcome
    return short_id(one.run_id), one.kind, where, ending, str(one.steps), took, relative_time(one.ended)


@app.command("show")
def show_one(run: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a run: its steps, its answer and its traceback."""
    with open_session(store, config) as (service, user):
        one = service.runs.get(user, _find(service, user, run).run_id)
        error = _error(service, user, one.run)
    print_result(one, lambda: _facts(one, error, user), as_json=json)


def _error(service: Service, user: str, run: Run) -> str | None:
    """Return the error of the run's task if it is from this run, else the general sentence for the fault."""
    if run.fault not in set(Fault):
        return None
    with suppress(NotFound):
        error = service.tasks.get(user, run.envelope_id).error if run.kind == Kind.TASK else None
        if error and reference(run.run_id) in error:
            return error
    return sentence(Fault(run.fault), run.run_id)


def _facts(one: RunEntry, error: str | None, user: str) -> Iterator[str]:
    run = one.run
    yield from key_values(
        [
            ("run", run.run_id),
            ("kind", run.kind),
            ("agent", run.agent_id),
            ("talk", run.talk_session_id),
            ("meeting", run.meeting_id),
            ("profile", one.given.get("profile")),
            ("outcome", f"{run.outcome} ({run.fault})" if run.fault else run.outcome),
            ("error", error),
            ("attempts", str(run.attempts)),
            ("started", local_time(run.started)),
            ("ended", local_time(run.ended)),
            ("model", one.usage.model),
            ("tokens", _tokens(one.usage)),
            ("cost", None if one.usage.cost is None else f"{one.usage.cost:.6f} US dollars"),
        ]
    )
    for step in one.steps:
        yield from _step(step, run)
    if one.text:
        yield "\n" + sanitize(one.text)
    if one.traceback:
        yield "\n" + sanitize(one.traceback)
    for refusal in one.refused:
        yield ""
        yield from refusal_lines(refusal, user)


def _tokens(usage: Usage) -> str:
    return f"{usage.input_tokens:,} in, {usage.output_tokens:,} out" if usage.tokens else ""


def _step(step: Step, run: Run) -> Iterator[str]:
    took = "" if step.ended is None else f", {(step.ended - step.began).total_seconds():.2f} s"
    earlier = "" if step.run_id in ("", run.run_id) else f", by run {short_id(step.run_id)}"
    yield f"\n{step.number}. {step.kind} {single_line(step.name)}: {step.outcome}{took}{earlier}"
    for arrow, value in (("→", step.request), ("←", step.result)):
        if value is not None:
            yield f"   {arrow} {_short(value)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json_module.dumps(value, ensure_ascii=False)
    return single_line(text[:SHOWN] + ("…" if len(text) > SHOWN else ""))


def _find(service: Service, user: str, part: str) -> Run:
    return find_by_id(
        part,
        "runs",
        lambda name: service.runs.get(user, name).run,
        lambda: service.runs.list(user, limit=NEWEST),
        lambda one: one.run_id,
    )


# --- replay ------------------------------------------------------------------------------------------------


def replay(store: str | None, config: Path | None, run: str, until: int | None, *, live: bool, as_json: bool) -> int:
    """Replay a run, print the result and return the exit code: 0 if it is identical."""
    with open_session(store, config) as (service, user):
        result = service.runs.replay(user, _find(service, user, run).run_id, until=until, live=live)
    print_result(result, lambda: _replay_lines(result), as_json=as_json)
    return 0 if result.is_identical else DIFFERS


def _replay_lines(one: Replay) -> Iterator[str]:
    for number, step in enumerate(one.steps, start=1):
        yield f"{number}. {single_line(step)}"
    for sent in one.sent:
        yield f"would send: {single_line(sent)}"
    if one.error is not None:
        yield f"ended with {single_line(one.error)}"
    yield sanitize(one.text)
    if one.is_identical:
        yield "\nIdentical." if one.stopped_at is None else f"\nIdentical up to step {one.stopped_at}."
    else:
        yield "\nThe replay differs:"
        yield sanitize(one.diff)
