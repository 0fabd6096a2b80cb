"""`roost import`: add what an export has, and leave what exists as it is."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from tempfile import TemporaryFile
from typing import IO, Any

from roost.cli.app.connect import Service, current_user, open_service
from roost.cli.commands.archives import records
from roost.cli.commands.archives.exporting import NAMES, pages, summary
from roost.cli.commands.archives.records import Record
from roost.cli.render.output import print_json, shown
from roost.cli.render.progress import Progress
from roost.cli.render.text import single_line
from roost.core.agents.agent import State
from roost.core.monitoring.health import Inspection
from roost.errors import Conflict, Forbidden, Invalid, NotFound, RoostError
from roost.settings import Settings

ADDED, KEPT, FAILED = "added", "kept", "failed"
_CHOSEN = {"profile"}
"""Settings that may differ from the export: `--profile` replaces them."""
_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def run(settings: Settings, source: str, profile: str | None, *, as_json: bool) -> int:
    """Import a file; return the exit code. The whole file is checked before anything is added."""
    user = current_user(settings)
    with _opened(source) as file, open_service(settings) as service, Progress("Imported") as progress:
        archive = Import(service, user, profile)
        archive.check(records.read(file))
        file.seek(0)
        for one in records.read(file):
            archive.add(one)
            progress.show(archive.summary(ADDED))
    return _report(archive, as_json=as_json)


def _report(archive: Import, *, as_json: bool) -> int:
    for problem in archive.problems:
        print(f"roost: {single_line(problem)}", file=sys.stderr)
    if as_json:
        print_json({outcome: archive.counts(outcome) for outcome in (ADDED, KEPT, FAILED)})
    else:
        print(f"Imported {archive.summary(ADDED)}.")
        if any(archive.counts(KEPT).values()):
            print(f"Left as they are, because they exist: {archive.summary(KEPT)}.")
    return 1 if archive.problems else 0


@contextmanager
def _opened(source: str) -> Iterator[IO[bytes]]:
    """Open the file; standard input is copied first, because it is read twice."""
    try:
        with TemporaryFile() if source == "-" else open(source, "rb") as file:
            if source == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
                file.seek(0)
            yield file
    except OSError as error:
        raise Invalid(f"{source!r} cannot be read: {error.strerror or error}") from None


class Import:
    """Adds records to a user. One that exists is kept; one that cannot be added is reported, and the rest follows."""

    def __init__(self, service: Service, user: str, profile: str | None) -> None:
        self._service = service
        self._user = user
        self._profile = profile
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._keys: tuple[str, set[str]] = ("", set())
        self.problems: list[str] = []

    def check(self, found: Iterator[Record]) -> None:
        """Read all records. Raise Invalid if one is not valid, or if a profile is not configured here."""
        known = {one.name for one in self._service.profiles()}
        if self._profile is not None and self._profile not in known:
            raise Invalid(f"there is no profile {self._profile!r:.80}: use one of {', '.join(sorted(known))}")
        missing = {name for one in found if (name := _profile(one)) and name not in known}
        if missing and self._profile is None:
            raise Invalid(
                f"these profiles are not configured here: {', '.join(sorted(missing))}. Configure them, or name one to"
                " use in their place with --profile"
            )
        self._missing = missing

    def add(self, one: Record) -> None:
        try:
            outcome = getattr(self, f"_{one.kind}")(one.value)
        except (Invalid, NotFound, Conflict, Forbidden, KeyError, TypeError) as error:
            why = f"{error}" if isinstance(error, RoostError) else f"the field {error} is missing or wrong"
            self.problems.append(f"line {one.line}: {one.kind} not imported: {why}")
            outcome = FAILED
        except RoostError as error:
            raise type(error)(
                f"{error}. Everything before line {one.line} is imported; run the same command again to continue"
            ) from error
        self._outcomes[one.kind, outcome] += 1

    def counts(self, outcome: str) -> dict[str, int]:
        return {kind: self._outcomes[kind, outcome] for kind in NAMES}

    def summary(self, outcome: str) -> str:
        return summary(self.counts(outcome))

    # --- kinds -----------------------------------------------------------------------------------

    def _agent(self, value: dict[str, Any]) -> str:
        agents, agent_id = self._service.agents, value["agentId"]
        config = {_snake(name): given for name, given in value["config"].items()}
        config["profile"] = self._known(config["profile"])
        events = config.get("subscriptions", ())
        config["subscriptions"] = [{"event": one["pattern"], "fields": one["fields"]} for one in events]
        is_whole = not value["turnState"] and not value["paused"]
        try:
            agents.create(self._user, agent_id, start=is_whole and value["state"] != "stopped", **config)
        except Conflict:
            known = agents.inspect(self._user, agent_id)
            return ADDED if _was_interrupted(known, value) and self._complete(known, value) else KEPT
        if not is_whole:
            self._complete(agents.inspect(self._user, agent_id), value)
        return ADDED

    def _complete(self, known: Inspection, value: dict[str, Any]) -> bool:
        """Set the state of a stopped agent, pause it, and start it last; return False if there was nothing to do."""
        agents, agent_id = self._service.agents, known.agent.agent_id
        needs_state = bool(value["turnState"]) and not known.turn_state
        needs_pause = value["paused"] and not known.agent.paused
        needs_start = value["state"] != "stopped"
        if needs_state:
            agents.set_state(self._user, agent_id, value["turnState"])
        if needs_pause:
            agents.pause(self._user, agent_id)
        if needs_start:
            agents.start(self._user, agent_id)
        return needs_state or needs_pause or needs_start

    def _memory(self, value: dict[str, Any]) -> str:
        agent, key = value["agentId"], value["key"]
        if self._keys[0] != agent:
            listed = pages(lambda last: self._service.agents.memories(self._user, agent, limit=200, before=last), "key")
            self._keys = agent, {one.key for one in listed}
        if key in self._keys[1]:
            return KEPT
        self._service.agents.remember(self._user, agent, value["text"], key=key)
        return ADDED

    def _schedule(self, value: dict[str, Any]) -> str:
        if value["name"] in self._schedules:
            return KEPT
        rule = value["rule"]
        made = self._service.schedules.create(
            self._user,
            value["agentId"],
            value["prompt"],
            **_times(rule),
            name=value["name"],
            priority=value["priority"],
            overlap=value["overlap"],
            missed=value["missed"],
            catch_up=value["catchUp"],
        )
        if value["paused"]:
            self._service.schedules.pause(self._user, made.schedule_id)
        return ADDED

    def _mail(self, value: dict[str, Any]) -> str:
        times: dict[str, Any] = {_snake(name): _moment(value[name]) for name in ("created", "expires", "readAt")}
        given = {_snake(name): value[name] for name in ("threadId", "priority", "status", "replyTo")}
        mail_id, sender, subject, body = (value[name] for name in ("mailId", "sender", "subject", "body"))
        added = self._service.mail.import_mail(self._user, mail_id, sender, subject, body, **times, **given)
        return ADDED if added else KEPT

    def _talk(self, value: dict[str, Any]) -> str:
        transcript = value["transcript"]
        profile = None if transcript["talk"].get("agent") else self._known(transcript["talk"]["profile"])
        text = json.dumps(transcript, ensure_ascii=False)
        key = f"import {value['talkSessionId']}"
        before = self._talks
        made = self._service.import_talk(self._user, text, profile=profile, key=key)
        return KEPT if made in before else ADDED

    def _known(self, profile: str) -> str:
        return self._profile if self._profile and profile in self._missing else profile

    @cached_property
    def _talks(self) -> set[str]:
        listed = pages(lambda last: self._service.list_sessions(self._user, limit=200, before=last), "talk_session_id")
        return {one.talk_session_id for one in listed}

    @cached_property
    def _schedules(self) -> set[str]:
        listed = pages(
            lambda last: self._service.schedules.list(self._user, limit=200, after=last or ""), "schedule_id"
        )
        return {one.name for one in listed}


def _profile(one: Record) -> str:
    """Return the profile that a record needs, if any."""
    try:
        if one.kind == "agent":
            return str(one.value["config"]["profile"])
        if one.kind == "talk" and not one.value["transcript"]["talk"].get("agent"):
            return str(one.value["transcript"]["talk"]["profile"])
    except (KeyError, TypeError, AttributeError):
        raise Invalid(f"line {one.line} is not a valid {one.kind}: the file was changed; export it again") from None
    return ""


def _was_interrupted(known: Inspection, value: dict[str, Any]) -> bool:
    """Return whether an import has created this agent and ended before it was complete: it has never run."""
    causes = {one.cause for one in known.changes}
    has_never_run = known.agent.state is State.STOPPED and causes in ({"created"}, {"created", "paused"})
    config = shown(known.agent)["config"]
    return has_never_run and all(config.get(name) == value["config"][name] for name in value["config"].keys() - _CHOSEN)


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


def _moment(value: Any) -> datetime | None:
    """Return a time of a record, if it has one."""
    try:
        return None if value is None else datetime.fromisoformat(value)
    except ValueError:
        raise Invalid(f"the time {value!r:.80} is not valid") from None


def _times(rule: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a schedule for its rule."""
    if cron := rule.get("cron"):
        return {"cron": cron["expression"], "zone": cron["zone"]}
    if every := rule.get("every"):
        return {"every": every["seconds"]}
    moment = datetime.fromtimestamp(rule["once"]["time"], UTC)
    if moment <= datetime.now(UTC):
        raise Invalid(f"its time, {moment:%Y-%m-%d %H:%M} UTC, is in the past")
    return {"at": moment}
