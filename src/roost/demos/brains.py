"""Brains of `roost demo` and of a user's first agent: scripts that need no model.

Their settings are in `turn.state`: `seed` replaces chance, `pace` is the number of seconds they pause before an action.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence

from roost.core.meetings.games.tictactoe import MARKS, ROWS
from roost.core.meetings.view.view import Word
from roost.errors import Forbidden
from roost.ports import Turn
from roost.ports.meeting import Meeting

REMINDERS = 3
NOTES = 20
"""Most notes of a first agent that are listed at once."""

# --- tic-tac-toe -------------------------------------------------------------------------------------


async def player(turn: Turn) -> AsyncIterator[str]:
    """Win if possible, block if necessary, else choose by `seed`. With `clumsy` the first move is illegal."""
    meeting = turn.meeting
    if turn.kind != "meeting" or not meeting.my_move:
        return
    await asyncio.sleep(turn.state.get("pace", 0))
    board, mark = meeting.state["board"], meeting.state["next"]
    is_clumsy = turn.state.get("clumsy") and mark not in board
    if is_clumsy and any(board):
        yield await _tried(meeting, next(cell for cell in range(1, 10) if board[cell - 1]))
    cell = chosen(board, mark, turn.state.get("seed", 0))
    await meeting.move({"cell": cell})
    if is_clumsy and not any(board):
        yield await _tried(meeting, cell % 9 + 1)


async def _tried(meeting: Meeting, cell: int) -> str:
    """Attempt an illegal move and return a sentence on the refusal."""
    try:
        await meeting.move({"cell": cell})
    except Forbidden as refused:
        return f"I tried {cell}, and was refused: {refused}."
    return f"I took {cell}."


def chosen(board: Sequence[str], mark: str, seed: int) -> int:
    """Return the cell to take. It depends only on board and seed, so that a repeated turn makes the same move."""
    other = MARKS[1 - MARKS.index(mark)]
    for wanted in (mark, other):
        for row in ROWS:
            marks = [board[cell - 1] for cell in row]
            if marks.count(wanted) == 2 and "" in marks:
                return row[marks.index("")]
    free = [cell for cell in range(1, 10) if not board[cell - 1]]
    chance = hashlib.sha256(f"{seed} {mark} {board}".encode()).digest()
    return free[int.from_bytes(chance[:4]) % len(free)]


async def host(turn: Turn) -> AsyncIterator[str]:
    """Open the game, remind an agent that talks instead of moving, and announce the outcome."""
    meeting = turn.meeting
    if turn.kind != "meeting":
        return
    if meeting.why == "opening":
        x, o = meeting.state["players"]
        yield f"Welcome. {x} plays X and begins, {o} plays O. Cells are numbered from 1, top left, to 9."
    elif meeting.why == "over":
        outcome = meeting.view.outcome
        result = outcome.text if outcome else "Nobody wins: as many moves were tried as we allow."
        await meeting.say(result)
        await meeting.end(result)
    else:
        async for text in _reminded(turn):
            yield text


async def _reminded(turn: Turn) -> AsyncIterator[str]:
    """Remind a player who posts instead of moving; end the game after REMINDERS reminders."""
    meeting, mover = turn.meeting, turn.meeting.mover
    if mover is None or mover.startswith("user:") or mover not in [word.author for word in meeting.new]:
        return
    reminded = turn.state.get("reminded", {})
    times = reminded["times"] + 1 if reminded.get("of") == str(meeting.view.head) else 1
    turn.state["reminded"] = {"of": str(meeting.view.head), "times": times}
    if times > REMINDERS:
        await meeting.say(f"{mover} does not move. We leave it at that.")
        await meeting.end("It was not played to its end.")
    else:
        await meeting.say(f"{mover}, it is your move. {meeting.asked}", to=[mover])
    yield ""


# --- a standup ---------------------------------------------------------------------------------------


async def reporter(turn: Turn) -> AsyncIterator[str]:
    """Post `report` when it has the floor. The chair gets the floor again after all others and writes the minutes."""
    meeting = turn.meeting
    if turn.kind != "meeting" or not meeting.may_speak:
        return
    await asyncio.sleep(turn.state.get("pace", 0))
    words = meeting.view.words
    if meeting.is_chair and any(word.author == meeting.me for word in words):
        await meeting.end(minutes(words))
    else:
        yield turn.state.get("report", "Nothing new.")


def minutes(words: Iterable[Word]) -> str:
    """Return the minutes of a standup."""
    said = list(words)
    blocked = [f"Blocked: {word.author}: {word.text}" for word in said if "blocked" in word.text]
    return "\n".join([f"{len({word.author for word in said})} have reported.", *blocked])


# --- a planner ---------------------------------------------------------------------------------------


async def planner(turn: Turn) -> AsyncIterator[str]:
    """Ask all workers at once and combine the answers; omit late ones."""
    if turn.kind == "answer":
        return
    parts: dict[str, str] = turn.state.get("parts", {})
    answers = await asyncio.gather(*(turn.ask(who, part, deadline=30) for who, part in parts.items()))
    yield f"{turn.text}:\n"
    for who, answer in zip(parts, answers, strict=True):
        yield f"- {who.rpartition('/')[2]}: {answer}\n"


async def worker(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(turn.state.get("pace", 0))
    yield f"I see to {turn.text}."


# --- a first agent -----------------------------------------------------------------------------------


async def notebook(turn: Turn) -> AsyncIterator[str]:
    """Keep notes of a talk in memory, and mail them to the owner with each task."""
    if turn.kind == "task":
        yield await _mailed(turn)
    elif turn.kind == "talk":
        yield await _noted(turn)


async def _noted(turn: Turn) -> str:
    told = turn.text.strip()
    if told.rstrip("?").casefold() in ("notes", "what do you remember", "what do you know"):
        notes = await turn.recall(limit=NOTES)
        return "\n".join(["My notes:", "", *(f"- {note.text}" for note in notes)]) if notes else "I have no notes yet."
    if told.casefold().startswith("remember "):
        await turn.remember(told[len("remember ") :].strip())
        return "I have made a note of it, and still have it after a restart. Say **notes** to read all of them."
    return (
        f"I am {turn.agent_id}, your own agent: a script of a few lines, not a model. Say **remember** and then what I "
        "should keep, or **notes**. When I get a task, as from a schedule, I send you mail with my notes."
    )


async def _mailed(turn: Turn) -> str:
    notes = [f"- {note.text}" for note in await turn.recall(limit=NOTES)]
    subject = turn.text.partition("\n")[0][:100] or "A reminder"
    await turn.mail(f"user:{turn.user_id}", subject, "\n".join(["Your notes:", *notes] if notes else ["No notes yet."]))
    return f"Sent you mail: {subject}"
