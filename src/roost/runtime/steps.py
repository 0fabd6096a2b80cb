"""Steps of a brain's own: something done outside, by any function, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roost.core import checks
from roost.core.approvals import Question
from roost.core.steps import Recorded, StepKind, StepOutcome
from roost.errors import BrainFailed
from roost.ports.tools import STEP_KEY
from roost.runtime.doing import do

if TYPE_CHECKING:
    from roost.runtime.asking import Asking
    from roost.runtime.journal import Journal
    from roost.runtime.thinking import Thinking


class Steps:
    """`turn.step` of one turn; used on its loop."""

    def __init__(self, thinking: Thinking, journal: Journal, asking: Asking) -> None:
        self._thinking = thinking
        self._journal = journal
        self._asking = asking
        self._names: dict[str, int] = {}

    async def step(self, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The result on record; or do it, with a note before it and its result after it."""
        checks.name(name, "the name of a step")
        self._names[name] = count = self._names.get(name, 0) + 1
        name = name if count == 1 else f"{name} ({count})"  # the same name again in one turn is another step
        key = f"{StepKind.STEP}:{name}"
        there = self._journal.found(key)
        if there is not None and there.done:
            return json.loads(there.result or "null")
        if there is None:
            number = await self._journal.begin(StepKind.STEP, name, key, None)
        elif (known := await self._left_open(there)) is not None:
            return known
        else:
            number = there.number
        return await self._do(number, name, key, act, args, options)

    async def _left_open(self, there: Recorded) -> str | None:
        """What a person says of one that an earlier try has left open. Of an agent's it is a dead letter."""
        place = self._journal.place
        if not place.is_talk:
            raise BrainFailed(
                f"whether the step {there.name!r} was done before the program ended is not known", kind="unknown_step"
            )
        if there.outcome == StepOutcome.ASKED and (asked := await self._asking.known(there.number)) is not None:
            return await self._asking.decided(asked, is_new=False)
        asked = self._asking.question(Question.UNKNOWN, there.name, {}, there.number)
        await self._journal.take_up(there.number, StepOutcome.ASKED, await self._asking.letter(asked))
        return await self._asking.decided(asked, is_new=True)

    async def _do(
        self, number: int, name: str, key: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        journal = self._journal
        token = STEP_KEY.set(journal.step_key(key))
        try:
            with self._thinking.acting():
                result = await do(self._thinking, act, args, options)
        except BaseException as error:
            # It failed, which is known: a retry does it again. One that was cut off is not known.
            if isinstance(error, Exception):
                said = journal.clean(f"{type(error).__name__}: {error}")
                await journal.end(number, StepOutcome.RETRIED, json.dumps(said))
            else:
                journal.cut_off(number, "it was stopped before it had ended: whether it was done is not known")
            raise
        finally:
            STEP_KEY.reset(token)
        try:
            text = json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:  # it is done, and a retry would do it again
            raise BrainFailed(
                f"the step {name!r} was done, and its result cannot be kept: it must be what JSON can hold ({error})",
                kind="unknown_step",
            ) from error
        await journal.end(number, StepOutcome.DONE, journal.clean_json(text))
        return json.loads(text)
