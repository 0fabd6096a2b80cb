"""What of a talk a model with a window is shown."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from roost.brains.dialogue import STEP, fitting, tokens
from roost.core.messages import Message, Sender, Status

WHEN = datetime(2030, 1, 1, tzinfo=UTC)


def talk(said: list[tuple[str, str]]) -> list[Message]:
    """A log that ends with what a person says."""
    senders = [*(sender for sender, _ in said[:-1]), Sender.USER]
    return [
        Message(seq, sender, content, Status.COMPLETE, WHEN)
        for seq, (sender, (_, content)) in enumerate(zip(senders, said, strict=True), start=1)
    ]


TALKS = st.lists(
    st.tuples(st.sampled_from([Sender.USER, Sender.AGENT, "agent:ann/d"]), st.text(min_size=1, max_size=40)),
    min_size=1,
    max_size=60,
).map(talk)


@given(TALKS, st.integers(min_value=0, max_value=600))
def test_what_is_shown_is_the_newest_in_turn_and_fits(messages: list[Message], room: int) -> None:
    shown = fitting(messages, room, len)
    assert [said["role"] for said in shown] == [("user", "assistant")[at % 2] for at in range(len(shown))]
    assert shown[-1]["content"].endswith(messages[-1].content)
    characters = sum(len(said["content"].replace("\n\n", "")) for said in shown)
    assert characters <= max(room, len(messages[-1].content))
    everything = "\n\n".join(message.content for message in messages)
    assert everything.endswith("\n\n".join(said["content"] for said in shown))


@given(TALKS)
def test_nothing_is_left_out_where_there_is_room(messages: list[Message]) -> None:
    shown = fitting(messages, 10_000, len)
    first = next(at for at, message in enumerate(messages) if message.sender != Sender.AGENT)
    assert "\n\n".join(said["content"] for said in shown) == "\n\n".join(m.content for m in messages[first:])


def test_what_is_kept_of_a_long_talk_begins_at_the_same_message_for_a_while() -> None:
    messages = talk([(Sender.USER if seq % 2 else Sender.AGENT, f"{seq:04} ") for seq in range(1, 402)])
    begins = [fitting(messages[:end], 5 * 5 * STEP, len)[0]["content"] for end in range(201, 401, 2)]
    assert len(set(begins)) <= 200 // STEP + 2


@given(st.text())
def test_a_text_has_no_more_tokens_than_bytes_and_is_not_taken_for_nothing(text: str) -> None:
    assert 8 <= tokens(text) <= len(text.encode()) + 8
