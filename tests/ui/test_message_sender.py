"""Messages that are handled twice are sent once; refused ones leave nothing."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

import roost
from roost.core.limits.limits import Limits
from roost.ui.message_sender import MessageSender
from roost.ui.sidebar.sidebar import Draft
from tests.ui.conftest import USER, Tab


def talks(service: roost.AgentService) -> set[str]:
    return {talk.talk_session_id for talk in service.list_sessions(USER, limit=1000)}


def asked(service: roost.AgentService, talk_id: str) -> list[str]:
    return [m.content for m in service.get_messages(USER, talk_id).messages if m.sender == "user"]


def test_the_same_words_sent_twice_from_one_line_are_one_message_in_one_talk(service: roost.AgentService) -> None:
    before = talks(service)
    line = MessageSender(service, USER, Draft("brain"))
    talk_id = line.send("hello")
    assert line.send("hello") == talk_id
    assert talks(service) - before == {talk_id}
    assert asked(service, talk_id) == ["hello"]


def test_other_words_from_one_line_are_another_message_in_the_same_talk(service: roost.AgentService) -> None:
    before = talks(service)
    line = MessageSender(service, USER, Draft("brain"))
    talk_id = line.send("one")
    assert line.send("two") == talk_id
    assert talks(service) - before == {talk_id}
    assert asked(service, talk_id) == ["one", "two"]


def test_a_message_with_files_is_sent_once_and_may_have_no_words(service: roost.AgentService) -> None:
    files = [service.add_attachment(USER, name, b"x").attachment_id for name in ("a.txt", "b.txt")]
    line = MessageSender(service, USER, Draft("brain"))
    talk_id = line.send("", files[:1])
    assert line.send("", files[:1]) == line.send("", files[1:]) == talk_id
    sent = [m.attachments for m in service.get_messages(USER, talk_id).messages if m.sender == "user"]
    assert [[one.name for one in files] for files in sent] == [["a.txt"], ["b.txt"]]


def test_the_same_words_from_another_line_are_said_again(service: roost.AgentService) -> None:
    talk_id = MessageSender(service, USER, Draft("brain")).send("hello")
    MessageSender(service, USER, Draft("brain"), talk_id).send("hello")
    assert asked(service, talk_id) == ["hello", "hello"]


@pytest.mark.parametrize("text", ["\0", "x" * (Limits().message_bytes + 1)], ids=["NUL", "too long"])
def test_a_first_message_that_is_refused_leaves_no_talk_and_can_be_mended(
    service: roost.AgentService, text: str
) -> None:
    before = talks(service)
    line = MessageSender(service, USER, Draft("brain"))
    with pytest.raises(roost.Invalid):
        line.send(text)
    assert talks(service) == before
    assert asked(service, line.send("shorter")) == ["shorter"]


def test_what_is_said_goes_to_the_talk_on_the_page_though_the_browser_still_sends_the_old_address(tab: Tab) -> None:
    tab.say("one")
    talk_id = tab.talk_id
    assert talk_id is not None
    tab.app.query_params.clear()
    tab.say("two")
    assert tab.talk_id == talk_id
    assert asked(tab.service, talk_id) == ["one", "two"]


def test_a_refused_message_shows_a_sentence_and_stays_in_the_input(tab: Tab) -> None:
    before = talks(tab.service)
    tab.say("a\0b")
    assert tab.notices == ["The message must not contain the NUL character."]
    assert talks(tab.service) == before
    tab.say("ab")
    assert tab.notices == []
    assert len(talks(tab.service) - before) == 1


def draw_again() -> None:
    """A page whose pulse finds that it is to be drawn anew; runs as a script."""
    import streamlit as st

    from roost.ui import access, talk
    from roost.ui.talk_reader import TalkReader

    service, user = access.current()
    opened = st.session_state["opened"]
    if not st.session_state.get("drawn"):
        st.session_state["drawn"] = True
        reading = TalkReader.start(service, user, opened) if opened else None
        talk._draw_again(talk.PageState(service, user, reading, [], talk.QUICK))


@pytest.mark.parametrize(("opened", "sent"), [(True, False), (False, True)])
def test_the_same_page_is_drawn_again_though_the_browser_still_sends_the_old_address(
    service: roost.AgentService, opened: bool, sent: bool
) -> None:
    talk_id = service.create_talk_session(USER)
    tab = Tab(service=service, app=AppTest.from_function(draw_again))
    tab.app.session_state["opened"] = talk_id if opened else None
    tab.app.query_params = {"talk": [talk_id]} if sent else {}
    assert tab.look().talk_id == (talk_id if opened else None)
