"""Transcripts and usage of talks: export, import, tokens and cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from roost.core.limits.usage import Usage
from roost.core.talks import transcripts
from roost.core.talks.transcripts import Transcript, TranscriptFormat, TranscriptLimits, TranscriptPart
from roost.core.values import checks
from roost.core.values.traits import NewId
from roost.errors import Invalid
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.talks.settings import options_json, reached
from roost.stores.sql.tables import attachments as attachments_sql
from roost.stores.sql.talks import talks as talks_sql
from roost.stores.sql.talks import transcripts as transcripts_sql

MOST_UPLOADS = 1_000
"""Pieces of one transcript."""


class TalkTranscripts:
    """Methods of talks that write and read transcripts, and sum up usage."""

    _context: RuntimeContext

    async def get_usage(self, user_id: str, talk_session_id: str) -> Usage:
        """Return the tokens of all answers of the talk, and their cost if it is known for each of them."""
        checks.talk(user_id, talk_session_id)
        return await self._context.store.read(talks_sql.usage, user_id, talk_session_id)

    async def export_part(
        self, user_id: str, talk_session_id: str, *, format: str = "markdown", after: int = 0
    ) -> TranscriptPart:
        """Return a part of the transcript of a talk, as `markdown` or `json`: the messages after a number.

        `after` of a part is that of the next part, and None in the last one. Joined, the parts are the transcript.
        """
        checks.talk(user_id, talk_session_id)
        form = checks.choice(format, "the format", TranscriptFormat)
        checks.count(after, "`after`", least=0, most=1 << 53)
        return await self._context.store.read(_part, user_id, talk_session_id, form, after)

    async def import_talk(
        self,
        user_id: str,
        text: str = "",
        *,
        profile: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        attachments: Sequence[str] = (),
    ) -> NewId:
        """Add a transcript in JSON as a new talk, and return its id. Nothing is added if any field is invalid.

        With `profile` or `agent`, the talk continues with this one instead of the one in the transcript. With a known
        `key` it returns the talk that was added then. A transcript that is too large for one request is uploaded in
        pieces first: `attachments` are their ids, in order, in place of the text. They are deleted afterwards.
        """
        checks.name(user_id, "the user id")
        store = self._context.store
        if key is not None and (
            known := await store.read(transcripts_sql.by_key, user_id, checks.name(key, "the key"))
        ):
            return known
        uploads = _checked_uploads(attachments, text)
        t = await store.read(self._transcript, await store.read(_joined, user_id, uploads) if uploads else text)
        if profile is None and agent is None:
            profile, agent = (t.profile, None) if t.agent is None else (None, t.agent)
        with_agent = await reached(self._context, user_id, agent, profile) if agent is not None else ""
        name = "" if with_agent else self._context.brains.profile(profile or self._context.brains.default).name
        try:
            options = options_json(t.options)
        except Invalid as error:
            raise Invalid(f"talk.options: {error}") from None
        self._context.ram.check()
        await self._context.quota.use(user_id, t.chars)
        talk_id = self._context.host.new_id("talk")
        most = self._context.limits.talks_per_user
        added = await store.write(
            transcripts_sql.add, user_id, talk_id, name, with_agent, options, t, most, key, key=talk_id
        )
        if uploads:
            await store.write(attachments_sql.remove, uploads)
        return added

    def _transcript(self, _: Tx, text: str) -> Transcript:
        """Read a transcript, on the thread of a reader: a long one takes a second, which no loop has."""
        limits = self._context.limits
        most_text = max(limits.message_bytes, 4 * limits.answer_chars)
        bounds = TranscriptLimits(most_text, limits.attachment_bytes, limits.attachments_per_message)
        return transcripts.read(text, bounds, partial(self._context.host.new_id, "attachment"))


def _checked_uploads(ids: object, text: object) -> list[str]:
    """Return the ids of the uploads that hold a transcript; none if it is in the text."""
    if not isinstance(ids, Sequence) or isinstance(ids, str) or len(ids) > MOST_UPLOADS:
        raise Invalid(f"`attachments` must be a list of at most {MOST_UPLOADS:,} ids")
    if ids and text:
        raise Invalid("a transcript is either a text or in `attachments`: leave one out")
    return [checks.name(one, "the attachment id") for one in ids]


def _joined(tx: Tx, user_id: str, uploads: Sequence[str]) -> str:
    """Return the text in these uploads of the user, on the thread of a reader."""
    size = sum(attachments_sql.get(tx, user_id, one).size for one in uploads)
    if size > transcripts.MOST_BYTES:
        raise Invalid(f"the transcript is too long: {size:,} bytes, and {transcripts.MOST_BYTES:,} are allowed")
    try:
        return b"".join(attachments_sql.read(tx, one) for one in uploads).decode()
    except UnicodeDecodeError:
        raise Invalid("the transcript is not a text in UTF-8") from None


def _part(tx: Tx, user_id: str, talk_id: str, form: TranscriptFormat, after: int) -> TranscriptPart:
    """Read and write a part, on the thread of a reader: files in it take long."""
    talk, messages, is_last = transcripts_sql.read_part(tx, user_id, talk_id, after)
    files = transcripts_sql.files(tx, messages) if form is TranscriptFormat.JSON else {}
    text = transcripts.part(talk, messages, form, is_first=after == 0, is_last=is_last, files=files)
    return TranscriptPart(text, None if is_last else messages[-1].seq)
