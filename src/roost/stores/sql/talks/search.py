"""Search in the messages of a user, and the blocks that make it fast.

A block is the distinct words of neighbouring messages of a talk. Blocks are written in the background; messages after
the last block of a talk are read one by one, so nothing is missed meanwhile. A block only says where a message may be
found: each message is compared before it is a hit.

Order of hits: talks last used first, and in a talk the newest message first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf

from roost.core.talks.messages import Sender, at
from roost.core.talks.search import Hit, Matcher, Place, Term, distinct_words, patterns
from roost.ports import Tx
from roost.stores import bulk, locking

TALKS = 100
"""Talks whose blocks are read at once."""
CHUNK = 16
"""Messages read at once: each may be long."""
STEP_CHARS = 1_000_000
"""Characters of messages that one step of a search compares, and a few more."""
MESSAGE_COST = 100
"""Characters for which the reading of one message counts."""
BLOCK_MESSAGES = 64
BLOCK_CHARS = 65_536
"""A block with this number of messages, or at least this number of characters, is full."""
_END = 1 << 62
_INDEXED = "COALESCE((SELECT max(b.last) FROM search_blocks b WHERE b.talk_id = {}.talk_id), 0)"
_COLUMNS = bulk.columns("talk_id, first, last, chars, words")


@dataclass(frozen=True, slots=True)
class Found:
    """Hits of one step, each with its place, and the place where the next step begins; None after the last one."""

    hits: tuple[tuple[Hit, Place], ...]
    place: Place | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Messages of a talk that may contain all words. `shared`: number of messages that its parent has too."""

    place: Place
    title: str
    first: int
    last: int
    shared: int


def search(tx: Tx, user_id: str, terms: Sequence[Term], place: Place | None, talk_id: str | None, limit: int) -> Found:
    """Find up to `limit` messages from a place on, in a step of bounded length; with `talk_id` in one talk only."""
    if talk_id is not None:
        candidates = _in_talk(tx, user_id, terms, Place(0.0, talk_id, _END if place is None else place.seq))
        rest = None
    elif place is not None and place.seq > 0:
        candidates = _own(_in_talk(tx, user_id, terms, place))
        rest = Place(place.updated, place.talk_id, 0)
    else:
        candidates, rest = _in_talks(tx, user_id, terms, place)
    hits: list[tuple[Hit, Place]] = []
    matcher = Matcher(terms)
    spent = 0
    for candidate, seq, sender, content, created in _messages(tx, candidates):
        here = replace(candidate.place, seq=seq)
        if (found := matcher.excerpt(content)) is not None:
            hits.append((Hit(here.talk_id, candidate.title, seq, Sender(sender), at(created), *found), here))
        spent += MESSAGE_COST + len(content)
        if len(hits) >= limit or spent >= STEP_CHARS:
            return Found(tuple(hits), here)
    return Found(tuple(hits), rest)


def _in_talk(tx: Tx, user_id: str, terms: Sequence[Term], place: Place) -> list[_Candidate]:
    found, _ = _candidates(tx, "talk_id = ? AND user_id = ?", [place.talk_id, user_id], terms)
    return [replace(c, place=place, last=min(c.last, place.seq - 1)) for c in found]


def _in_talks(
    tx: Tx, user_id: str, terms: Sequence[Term], place: Place | None
) -> tuple[list[_Candidate], Place | None]:
    """Return the candidates in the next talks, and the place after these talks."""
    before = (inf, "") if place is None else (place.updated, place.talk_id)
    where = f"user_id = ? AND (updated, talk_id) < (?, ?) ORDER BY updated DESC, talk_id DESC LIMIT {TALKS}"
    found, talks = _candidates(tx, where, [user_id, *before], terms)
    return _own(found), None if len(talks) < TALKS else replace(talks[-1], seq=0)


def _own(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates without what branches share with their parents, where it is found too."""
    return [replace(c, first=max(c.first, c.shared + 1)) for c in candidates]


def _candidates(
    tx: Tx, where: str, params: Sequence[str | float], terms: Sequence[Term]
) -> tuple[list[_Candidate], list[Place]]:
    """Return the blocks of these talks with all words, with what follows the last block of each; and these talks.

    One statement reads all of it: between two, a talk could be used, or what follows a block could become one.
    """
    wanted = patterns(terms)
    rows = tx.read(
        f"WITH p AS (SELECT talk_id, updated, title, last_seq, parent_seq, {_INDEXED.format('talks')} AS indexed"
        f" FROM talks WHERE {where}) SELECT p.updated, p.talk_id, p.title, b.first, b.last, p.parent_seq FROM p"
        f" JOIN search_blocks b ON b.talk_id = p.talk_id WHERE {' AND '.join(['b.words LIKE ?'] * len(wanted))}"
        " UNION ALL SELECT updated, talk_id, title, indexed + 1, last_seq, parent_seq FROM p",
        [*params, *wanted],
    )
    rows.sort(key=lambda row: (row[0], row[1], row[3]), reverse=True)
    found = [_Candidate(Place(row[0], row[1], _END), *row[2:]) for row in rows]
    talks = dict.fromkeys(candidate.place for candidate in found)
    return [candidate for candidate in found if candidate.first <= candidate.last], list(talks)


def _messages(tx: Tx, candidates: Sequence[_Candidate]) -> Iterator[tuple[_Candidate, int, str, str, float]]:
    """Yield the closed messages of candidates, the newest of each first."""
    for candidate in candidates:
        last = candidate.last
        while last >= candidate.first:
            rows = tx.read(
                "SELECT seq, sender, content, created FROM messages WHERE talk_id = :talk"
                " AND seq BETWEEN :first AND :last AND status NOT IN ('streaming', 'withdrawn')"
                " ORDER BY seq DESC LIMIT :limit",
                {"talk": candidate.place.talk_id, "first": candidate.first, "last": last, "limit": CHUNK},
            )
            for seq, sender, content, created in rows:
                yield candidate, seq, sender, content, created
            last = rows[-1][0] - 1 if len(rows) == CHUNK else 0


# --- blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordBlock:
    """Distinct words of the messages from `first` to `last`, each between two spaces."""

    talk_id: str
    first: int
    last: int
    chars: int
    words: str

    @property
    def is_full(self) -> bool:
        return self.last - self.first + 1 >= BLOCK_MESSAGES or self.chars >= BLOCK_CHARS


def outdated(tx: Tx, after: str, limit: int) -> tuple[list[str], str]:
    """Look at `limit` talks by id; return those with closed messages without a block, and the last id, or ''."""
    rows = tx.read(
        "SELECT t.talk_id, CASE WHEN t.answer_seq > 0 THEN t.answer_seq - 1 ELSE t.last_seq END,"
        f" {_INDEXED.format('t')} FROM talks t WHERE t.talk_id > :after ORDER BY t.talk_id LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [talk_id for talk_id, closed, indexed in rows if closed > indexed], rows[-1][0] if len(rows) == limit else ""


def missing_blocks(tx: Tx, talk_ids: Sequence[str], most: int) -> list[WordBlock]:
    """Return blocks for closed messages of these talks, in order, until they have `most` characters.

    A block that is not full is returned again with more messages.
    """
    blocks: list[WordBlock] = []
    read = 0
    for talk_id in talk_ids:
        for block in _blocks(tx, talk_id):
            blocks.append(block)
            read += block.chars
            if read >= most:
                return blocks
    return blocks


@locking.locks(lambda tx, blocks: [locking.talk(block.talk_id, shared=True) for block in blocks])
def write_blocks(tx: Tx, blocks: Sequence[WordBlock]) -> None:
    """Write blocks, unless their talks were deleted meanwhile."""
    ids = sorted({block.talk_id for block in blocks})
    rows = bulk.read(tx, "SELECT talk_id FROM talks WHERE talk_id IN", ids, f" ORDER BY talk_id{tx.for_share}")
    existing = {row[0] for row in rows}
    written = [(b.talk_id, b.first, b.last, b.chars, b.words) for b in blocks if b.talk_id in existing]
    update = " ON CONFLICT (talk_id, first) DO UPDATE SET last = excluded.last, chars = excluded.chars,"
    bulk.insert(tx, "search_blocks", _COLUMNS, written, f"{update} words = excluded.words")


def _blocks(tx: Tx, talk_id: str) -> Iterator[WordBlock]:
    last = tx.one(
        "SELECT talk_id, first, last, chars, words FROM search_blocks WHERE talk_id = :talk"
        " ORDER BY first DESC LIMIT 1",
        {"talk": talk_id},
    )
    block = WordBlock(talk_id, 1, 0, 0, "") if last is None else WordBlock(*last)
    while True:
        extended = _extended(tx, WordBlock(talk_id, block.last + 1, block.last, 0, "") if block.is_full else block)
        if extended is None:
            return
        yield extended
        if not extended.is_full:  # more of it may be committed meanwhile: that is for the next time
            return
        block = extended


def _extended(tx: Tx, block: WordBlock) -> WordBlock | None:
    """Return the block with the closed messages that follow, until it is full; None if there are none."""
    words = set(block.words.split(" ")) - {""}
    last, chars = block.last, block.chars
    for seq, content, _ in takewhile(lambda row: row[2] != "streaming", _following(tx, block)):
        words |= distinct_words(content)
        last, chars = seq, chars + len(content)
        if chars >= BLOCK_CHARS or last - block.first + 1 >= BLOCK_MESSAGES:
            break
    if last == block.last:
        return None
    return WordBlock(block.talk_id, block.first, last, chars, f" {' '.join(sorted(words))} ")


def _following(tx: Tx, block: WordBlock) -> Iterator[tuple[int, str, str]]:
    last = block.last
    while rows := tx.read(
        "SELECT seq, CASE WHEN status = 'withdrawn' THEN '' ELSE content END, status FROM messages"
        " WHERE talk_id = :talk AND seq > :last ORDER BY seq LIMIT :limit",
        {"talk": block.talk_id, "last": last, "limit": CHUNK},
    ):
        for row in rows:
            yield row[0], row[1], row[2]
        last = rows[-1][0]
