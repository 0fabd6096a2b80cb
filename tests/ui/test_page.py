"""The page, tested without a browser."""

from __future__ import annotations

import time

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

import roost
from roost.api.auth import Identity
from roost.ui import access, page_url, talk
from roost.ui.message_sender import MessageSender
from roost.ui.shell.signed_in import label
from roost.ui.talk import QUICK, PageState
from roost.ui.talk_reader import TalkReader
from roost.ui.text import plain
from tests.ui.conftest import USER, Tab


def test_an_empty_page_invites_and_makes_no_talk_yet(tab: Tab) -> None:
    before = len(tab.service.list_sessions(USER, limit=1000))
    assert [title.value for title in tab.app.subheader] == ["What would you like to talk about?"]
    assert tab.shown == []
    assert len(tab.service.list_sessions(USER, limit=1000)) == before


def test_a_first_message_makes_the_talk_and_puts_it_into_the_address(tab: Tab) -> None:
    tab.say("hello")
    tab.settle()
    assert tab.look().shown == [("user", "hello"), ("agent", "Answer to hello")]
    assert tab.talk_id in {talk.talk_session_id for talk in tab.service.list_sessions(USER)}


def test_a_run_can_be_stopped_and_is_marked(tab: Tab) -> None:
    tab.say("hold")
    assert tab.input["running"]
    tab.stop()
    tab.settle()
    tab.look()
    assert not tab.input["running"]
    assert tab.shown[0] == ("user", "hold")
    assert [message["status"] for message in tab.messages][1:] in ([], ["interrupted"])


def test_a_profile_whose_name_says_little_is_offered_by_its_label() -> None:
    def page() -> None:
        from types import SimpleNamespace

        from roost.ports import Profile
        from roost.ui.first_visit import cards
        from roost.ui.sidebar.sidebar import Draft

        profiles = [Profile("gguf", "gguf", label="A small model"), Profile("guide", "guide")]
        agents = SimpleNamespace(list=lambda *_, **__: [])
        service = SimpleNamespace(profiles=lambda: profiles, agents=agents)
        cards.draw(service, "ann", Draft("gguf"), print)  # type: ignore[arg-type]

    app = AppTest.from_function(page).run()
    assert [button.label for button in app.button][:2] == ["A small model", "guide"]


def test_messages_left_out_of_the_context_are_mentioned_with_the_answer(tab: Tab) -> None:
    tab.say("forget")
    tab.settle()
    told = tab.look().messages[-1]["remark"]
    assert told == "Earlier messages were omitted here to fit the model's context window."


def test_the_question_of_a_failed_answer_can_be_asked_again(tab: Tab) -> None:
    tab.say("fail")
    tab.settle()
    tab.look()
    failed = tab.messages[-1]
    assert "reference" in failed["error"]
    assert "broken" not in failed["error"]
    tab.act("action", {"name": "retry", "seq": failed["seq"]})
    tab.settle()
    asked = [text for name, text in tab.look().shown if name == "user"]
    assert asked == ["fail", "fail"]


@pytest.mark.parametrize("operator", [USER, "somebody else"])
def test_the_traceback_of_a_failed_answer_is_shown_to_the_operator_alone(
    service: roost.AgentService, operator: str
) -> None:
    try:
        access.host(service, lambda _: USER, operator)
        tab = Tab(service=service).look()
        tab.say("fail")
        tab.settle()
        tab.look()
        failed = tab.messages[-1]
        assert "broken" not in failed["error"]
        if operator != USER:
            assert "details" not in failed
            return
        traceback = failed["details"]
        assert traceback.startswith("Traceback (most recent call last):")
        assert traceback.endswith("ValueError: broken inside")
    finally:
        access.host(service, lambda _: USER)


def test_a_talk_that_is_not_there_says_so_and_leaves_a_new_one(tab: Tab) -> None:
    tab.open("talk_of_somebody_else")
    assert "no longer exists" in tab.notices[0]
    assert tab.talk_id is None
    tab.say("a new one")
    tab.settle()
    assert tab.look().shown[0] == ("user", "a new one")


def test_settings_are_kept_with_the_talk(tab: Tab) -> None:
    tab.say("hello")
    tab.settle()
    tab.look()
    next(field for field in tab.app.sidebar.text_input if field.label == "Model").set_value("some-model")
    field_of(tab, "Temperature").set_value("0,5")
    next(button for button in tab.app.sidebar.button if button.label == "Save").click().run()
    assert tab.talk_id is not None
    assert tab.service.get_session(USER, tab.talk_id).options == {"model": "some-model", "temperature": 0.5}


def field_of(tab: Tab, label: str) -> TextInput:
    return next(field for field in tab.app.sidebar.text_input if field.label == label)


def save(tab: Tab) -> None:
    next(button for button in tab.app.sidebar.button if button.label == "Save").click().run()
    assert not tab.app.exception


def test_a_temperature_can_be_removed_again(tab: Tab) -> None:
    tab.say("hello")
    tab.settle()
    tab.look()
    field_of(tab, "Temperature").set_value("0.5")
    save(tab)
    assert tab.service.get_session(USER, str(tab.talk_id)).options == {"temperature": 0.5}
    assert field_of(tab.look(), "Temperature").proto.default == "0.5", (
        "also if the run before did not reach the browser"
    )
    field_of(tab, "Temperature").set_value("")
    save(tab)
    assert tab.service.get_session(USER, str(tab.talk_id)).options == {}


@pytest.mark.parametrize("text", ["warm", "2.5", "-1", "nan"])
def test_a_temperature_that_is_no_number_from_0_to_2_is_refused(tab: Tab, text: str) -> None:
    field_of(tab.look(), "Temperature").set_value(text)
    save(tab)
    assert tab.app.sidebar.error[0].value.startswith("The temperature must be a number from 0 to 2")
    tab.say("hello")
    tab.settle()
    assert tab.service.get_session(USER, str(tab.talk_id)).options == {}


def test_settings_that_another_tab_has_saved_meanwhile_are_kept(tab: Tab) -> None:
    tab.say("hello")
    tab.settle()
    tab.look()
    talk_id = str(tab.talk_id)
    tab.service.configure(USER, talk_id, busy="queue", options={"model": "of another tab"})
    tab.app.sidebar.text_area[0].set_value("Be brief.")
    save(tab)
    found = tab.service.get_session(USER, talk_id)
    assert (found.options, found.busy) == ({"model": "of another tab", "instructions": "Be brief."}, "queue")


def test_a_talk_with_an_agent_offers_no_other_profile(tab: Tab) -> None:
    tab.service.agents.create(USER, "helper-of-settings", start=False)
    try:
        talk_id = tab.service.create_talk_session(USER, agent="helper-of-settings")
        tab.open(talk_id)
        assert [field.label for field in tab.app.sidebar.selectbox] == ["A message sent during an answer"]
        field_of(tab, "Model").set_value("another")
        save(tab)
        assert tab.service.get_session(USER, talk_id).options == {"model": "another"}
        with pytest.raises(roost.Invalid, match="configure the agent"):
            tab.service.configure(USER, talk_id, profile=tab.service.profiles()[0].name)
    finally:
        tab.service.agents.delete(USER, "helper-of-settings")


def test_the_sidebar_names_the_product_and_who_one_is(tab: Tab) -> None:
    assert tab.app.sidebar.get("html")[0].proto.body.endswith("<span>Roost</span>")
    assert tab.app.sidebar.caption[-1].value == f"Signed in as {USER}"


def test_a_visitor_is_distinguished_from_the_user_of_the_command_line() -> None:
    visitor = Identity(b"secret" * 4, "ann").new_user()
    assert label("ann") == "Signed in as ann"
    assert label("a_*b*") == "Signed in as " + plain("a_*b*")
    assert label(visitor) == f"Visitor {visitor[-4:]} (this browser only)"


def test_a_browser_without_a_cookie_sees_that_it_is_not_signed_in(service: roost.AgentService) -> None:
    try:
        access.host(service, lambda _: None)
        tab = Tab(service=service).look()
        assert "not signed in" in tab.app.error[0].value
        assert len(tab.app.get("bidi_component")) == 0
    finally:
        access.host(service, lambda _: USER)


def test_the_pulse_asks_for_a_new_page_only_when_more_has_changed_than_the_text(tab: Tab) -> None:
    tab.say("hold")
    assert tab.talk_id is not None
    reading = TalkReader.start(tab.service, USER, tab.talk_id)
    while reading.writing is None:
        reading.go_on(tab.service)
    scene = PageState(tab.service, USER, reading, talks=[], every=QUICK)
    scene.remember()
    assert not scene.is_stale
    tab.service.stop(USER, tab.talk_id, wait=5)
    assert scene.is_stale


DOWN = "1 of 2 workers crashed too often and stay down: answers may be slow until Roost is restarted"


def test_workers_that_are_down_are_shown_once_until_they_are_back(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tab.notices == []
    for place in (tab, tab.say("hello")):  # on the empty page as well as in a talk
        monkeypatch.setattr(tab.service.roost.supervisor, "down", DOWN)
        assert place.look().notices == [f"{DOWN}."]
        assert place.look().notices == [f"{DOWN}."]
        monkeypatch.setattr(tab.service.roost.supervisor, "down", None)
        assert place.look().notices == []


def test_the_pulse_asks_for_a_new_page_when_workers_go_down_and_when_they_are_back(
    service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = PageState(service, USER, None, talks=[], every=QUICK)
    for down in (DOWN, None):
        scene.remember()
        assert not scene.is_stale
        monkeypatch.setattr(service.roost.supervisor, "down", down)
        assert scene.is_stale


def test_a_page_with_the_stream_neither_polls_nor_carries_messages_until_the_stream_is_lost(
    service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[PageState] = []
    poll = talk._poll

    def polled(scene: PageState, line: MessageSender) -> None:
        drawn.append(scene)
        poll(scene, line)

    monkeypatch.setattr(talk, "_poll", polled)
    try:
        access.host(service, lambda _: USER, stream="/live")
        tab = Tab(service=service).look().say("hello")
        tab.settle()
        assert (tab.look().listed["live"], "messages" in tab.listed) == ("/live", False)
        assert drawn == []
        assert tab.act("stream", "lost").shown == [("user", "hello"), ("agent", "Answer to hello")]
        assert len(drawn) == 1
        assert "messages" not in tab.act("stream", "live").listed
        assert len(drawn) == 1
    finally:
        access.host(service, lambda _: USER)


def test_a_refused_message_is_given_back_in_every_run_until_the_next_one_is_sent(tab: Tab) -> None:
    tab.say("a\0b")
    refused = tab.input["refused"]
    assert refused["text"] == "a\0b"
    assert tab.look().input["refused"] == refused
    assert tab.say("ab").input["refused"] is None


def test_the_list_gets_the_message_that_this_tab_has_sent(tab: Tab) -> None:
    tab.say("hello")
    messages = tab.settle()
    assert tab.look().listed["sent"] == messages[0].seq == 1
    assert tab.talk_id is not None
    assert Tab(service=tab.service).open(tab.talk_id).listed["sent"] == 0


def test_a_page_that_was_shown_stays_while_the_service_is_away_for_a_moment(
    service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = Tab(service=service).look().say("hello")
    tab.settle()
    answers = iter([roost.Unavailable("this Roost is closed")] * 2)

    def listed(user: str, limit: int) -> list[roost.Talk]:
        for error in answers:
            raise error
        return original(user, limit=limit)

    original = service.list_sessions
    monkeypatch.setattr(service, "list_sessions", listed)
    assert tab.look().shown == [("user", "hello"), ("agent", "Answer to hello")]
    assert list(tab.app.error) == []


def test_an_error_that_stays_is_shown_in_the_end(service: roost.AgentService, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(user: str, **options: int) -> list[roost.Talk]:
        raise roost.Unavailable("this Roost is closed")

    tab = Tab(service=service).look()
    monkeypatch.setattr(service, "list_sessions", closed)
    assert [error.value for error in tab.look().app.error] == ["This Roost is closed\\."]


def test_a_request_with_the_url_of_before_does_not_open_the_talk_of_before_again(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(tab.say("hello").talk_id)
    tab.click("new_talk")
    tab.app.query_params["talk"] = first  # the browser has not received the new one yet
    assert tab.look().input["talk"] is None
    assert tab.say("another").input["talk"] not in (None, first)
    assert tab.open(first).input["talk"] == first
    tab.click("new_talk")
    tab.app.query_params["talk"] = first
    monkeypatch.setattr(page_url, "monotonic", lambda: time.monotonic() + page_url.GRACE)
    assert tab.look().input["talk"] == first
