"""Events of a talk are formatted without a model, and are what the model of the wire says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message, Sender, Status, at
from roost.core.talks.side_channels import Channel, Note
from roost.protocol.talks import ChangeEvent, event_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ATTACHMENTS = st.builds(Attachment, TEXTS, TEXTS, TEXTS, st.integers(0), TEXTS)
MESSAGES = st.builds(
    Message,
    st.integers(1),
    st.sampled_from(Sender),
    TEXTS,
    st.sampled_from(Status),
    st.floats(0, 4e9).map(at),
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.lists(st.builds(Note, st.sampled_from([str(c) for c in Channel]) | TEXTS, TEXTS)).map(tuple),
    st.lists(ATTACHMENTS, max_size=2).map(tuple),
)


@given(MESSAGES, st.integers(0, 10**12), st.booleans(), st.integers(0, 10**12))
def test_an_event_is_the_json_of_its_model(message: Message, offset: int, reset: bool, noted: int) -> None:
    content = event_json(message, message.content, offset, reset, message.notes, noted)
    event = ChangeEvent.model_validate_json(f'{content[:-1]},"cursor":"abcd.1.2.3"}}')
    assert event.model_dump_json(exclude={"cursor"}) == content
    assert (event.text, event.offset, event.reset, event.noted) == (message.content, offset, reset, noted)
