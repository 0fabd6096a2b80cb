"""Questions of a turn to other agents, and the wait for their answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.requests import Request, request_name
from roost.core.journal.steps import Attempt, EarlierRequests, Recorded
from roost.errors import NoAnswer, RoostError, Unavailable
from roost.runtime.outgoing.outbox import Outbox, as_recorded_error
from roost.runtime.outgoing.requests import Answers, Requests
from roost.stores.sql.sending import requests as requests_sql

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.ports.notifier import Notifier

Make = Callable[[str, str, str, str], Awaitable[SendTask]]
"""Builds the message to the other agent from the address, the text, the priority and the name of the request."""


class Questions:
    """Questions of one attempt of one envelope, of an agent or of a talk. Used on its loop.

    Each question is a recorded step: a repeated turn waits for the same answer and does not ask again.
    """

    def __init__(
        self,
        context: RuntimeContext,
        requests: Requests,
        notifier: Notifier,
        execution: TurnExecution,
        place: Attempt,
        recorded: tuple[Recorded, ...],
        seen: dict[str, list[Any]],
        make: Make,
    ) -> None:
        self._context = context
        self._poster = requests
        self._notifier = notifier
        self._execution = execution
        self._place = place
        self._recorded = EarlierRequests(recorded)
        self._seen = seen
        self._make = make
        self._counts: dict[str, int] = {}
        """Number of questions to each agent so far."""
        self._requests: list[Request] = []
        """Questions that are not posted yet."""
        self._open: dict[int, str] = {}
        """Agents whose answers are awaited, by the number of the step."""

    async def ask(
        self, to: str, key: str, text: str, seconds: float, priority: str, outbox: Outbox, next_step: Callable[[], int]
    ) -> str:
        """Ask the agent with this key, which the brain calls `to`, and return its answer.

        Earlier sends of the turn are posted first. Raises NoAnswer if there is no answer.
        """
        self._execution.action_log.add(["question", key, text])
        self._counts[key] = count = self._counts.get(key, 0) + 1
        recorded = self._recorded.take(key, text)
        if recorded is not None and recorded.done:
            return answered(to, json.loads(recorded.result or "{}"))
        if recorded is None and not outbox.is_empty:
            await outbox.post_all()
        number = recorded.number if recorded is not None else next_step()
        name = request_name(self._place.holder, self._place.envelope_id, number)
        self._answers.listen(name)  # listen first, then check, then wait
        self._open[number] = key
        execution = self._execution
        execution.waits(True)
        execution.acts += 1
        try:
            if recorded is None:
                await self._post(to, text, priority, number, name)
            found = await self._answers.get(name, number, seconds, in_store=recorded is not None)
            del self._open[number]
            await execution.regain()
        except RoostError as error:
            del self._open[number]
            self._seen.setdefault("asks", []).append([key, count, as_recorded_error(error)])
            await execution.regain()
            raise
        finally:
            execution.acts -= 1
            execution.waits(False)
            self._answers.unlisten(name)
        return answered(to, found)

    def withdraw(self) -> None:
        """Cancel all questions that are still open: the turn is over and is not repeated.

        A later answer is recorded with the question.
        """
        if not self._open:
            return
        asked, self._open = tuple(self._open.items()), {}
        now = self._context.host.clock.now()
        with suppress(Unavailable):  # then a later answer is recorded as if it were in time
            self._context.store.write(
                requests_sql.withdraw,
                self._place,
                asked,
                now,
                key=self._place.envelope_id,
                then=self._notifier.withdraw,
            )

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self._context, self._poster, self._execution.loop, self._place.envelope_id)

    async def _post(self, to: str, text: str, priority: str, number: int, name: str) -> None:
        """Post a question, together with others asked in the same iteration of the loop."""
        effect, place = await self._make(to, text, priority, name), self._place
        if not self._requests:
            asyncio.get_running_loop().call_soon(self._hand_over)
        run_id = place.run_id if place.is_talk else ""
        self._requests.append(Request(place.envelope_id, place.holder, place.epoch, number, effect.envelope, run_id))

    def _hand_over(self) -> None:
        requests, self._requests = self._requests, []
        self._poster.post(requests)


def answered(asked: str, answer: Mapping[str, str]) -> str:
    if "text" in answer:
        return answer["text"]
    if "error" in answer:
        raise NoAnswer(f"{asked} could not answer: {answer['error']}")
    raise NoAnswer(f"{asked} has not answered in time")
