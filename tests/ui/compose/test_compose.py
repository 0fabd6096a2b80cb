"""Reports of the message input: each message is taken once, and goes to its own talk."""

from __future__ import annotations

import pytest

from tests.conftest import eventually
from tests.ui.conftest import USER, Tab


def asked(tab: Tab, talk_id: str | None = None) -> list[str]:
    page = tab.service.get_messages(USER, talk_id or str(tab.talk_id))
    return [message.content for message in page.messages if message.sender == "user"]


def test_a_message_that_is_sent_again_is_stored_once_and_its_key_is_returned(tab: Tab) -> None:
    tab.send("first", "hello").send("first", "hello").send("second", "hello")
    assert asked(tab) == ["hello", "hello"]
    assert tab.input["received"] == ["first", "second"]


def test_a_message_is_stored_once_also_by_a_page_that_knows_nothing_of_it(tab: Tab) -> None:
    talk_id = str(tab.send("first", "hello").talk_id)
    restarted = Tab(service=tab.service).open(talk_id).send("first", "hello")
    assert asked(restarted) == ["hello"]
    assert restarted.input["received"] == ["first"]


def test_several_messages_at_once_begin_one_talk(tab: Tab) -> None:
    before = len(tab.service.list_sessions(USER, limit=1000))
    one, two = ({"key": text, "text": text, "talk": None, "place": "here"} for text in ("one", "two"))
    tab.report("input", "send", [one, two])
    first = tab.talk_id
    tab.app.query_params.clear()  # as by a browser that is late
    tab.look().report("input", "send", [two, one | {"key": "three", "text": "three"}])
    assert tab.talk_id == first
    assert asked(tab) == ["one", "two", "three"]
    assert len(tab.service.list_sessions(USER, limit=1000)) == before + 1


def test_a_message_goes_to_the_talk_in_which_it_was_typed(tab: Tab) -> None:
    first = str(tab.say("one").talk_id)
    second = str(tab.click("new_talk").say("two").talk_id)
    tab.send("late", "and more", talk=first)
    assert (asked(tab, first), asked(tab, second)) == (["one", "and more"], ["two"])
    assert tab.talk_id == second


def test_a_message_that_follows_the_choice_of_an_agent_at_once_goes_to_it(tab: Tab) -> None:
    names = [profile.name for profile in tab.service.profiles()]
    assert len(names) > 1
    for name in names:
        tab.click("new_talk").app.button(key=f"choose_profile_{name}").click()  # in the same run as the message
        tab.say("hello")
        assert tab.service.list_sessions(USER, limit=1)[0].profile == name


def test_a_message_for_a_talk_of_somebody_else_is_refused(tab: Tab) -> None:
    other = tab.service.create_talk_session("bob")
    tab.send("key", "hello", talk=other)
    assert "no such talk" in tab.notices[0]
    assert tab.input["refused"] == {"key": "key", "text": "hello"}
    assert tab.service.get_messages("bob", other).messages == ()


@pytest.mark.parametrize("sent", [None, "text", [None], [{"key": "k"}], [{"text": 1}], {"text": "x"}])
def test_what_is_no_message_is_ignored(tab: Tab, sent: object) -> None:
    before = len(tab.service.list_sessions(USER, limit=1000))
    tab.report("input", "send", sent)
    assert len(tab.service.list_sessions(USER, limit=1000)) == before


def test_one_message_has_the_policy_that_was_chosen_for_it(tab: Tab) -> None:
    tab.say("hold").send("key", "afterwards", busy="queue")
    assert tab.input["policy"] == "interrupt"
    assert [message.content for message in tab.stored() if message.sender == "user"] == ["hold", "afterwards"]
    assert tab.look().input["running"]
    tab.send("other", "hello", busy="nonsense")
    assert "busy policy" in tab.notices[0]


@pytest.mark.parametrize("name", ["rename", "export", "delete", "fork", "regenerate"])
def test_commands_for_a_talk_need_one(tab: Tab, name: str) -> None:
    tab.report("input", "command", {"name": name})
    assert tab.notices == ["There is no talk yet: send a message first."]


def test_commands_start_and_search(tab: Tab) -> None:
    tab.say("hello")
    tab.settle()
    assert (
        tab.report("input", "command", {"name": "search", "text": "hello"}).app.text_input(key="search").value
        == "hello"
    )
    first = tab.talk_id
    tab.report("input", "command", {"name": "regenerate"})
    branch = tab.talk_id
    assert branch not in (first, None)
    tab.report("input", "command", {"name": "new"})
    assert not tab.shown
    tab.report("input", "command", {"name": "unknown"})


def test_a_stop_and_the_message_after_it_are_done_in_order_and_once(tab: Tab) -> None:
    tab.say("hold")
    talk_id = str(tab.talk_id)
    stop = {"key": "stop", "stop": True, "talk": talk_id}
    then = {"key": "then", "text": "hold on", "talk": talk_id, "busy": "queue"}
    tab.report("input", "send", [stop, then])
    eventually(lambda: len([one for one in tab.service.get_messages(USER, talk_id).messages if one.run_id]) == 2)
    tab.report("input", "send", [stop, then])
    assert tab.input["running"], "a stop that was received is not repeated"
    assert tab.input["received"][-2:] == ["stop", "then"]
    assert asked(tab) == ["hold", "hold on"]
    tab.stop().settle()
    assert not tab.look().input["running"]


@pytest.mark.parametrize("talk", [None, "", "talk_that_was_deleted", 5])
def test_a_stop_of_no_talk_changes_nothing(tab: Tab, talk: object) -> None:
    tab.say("hold")
    tab.report("input", "send", [{"key": "stop", "stop": True, "talk": talk}])
    assert tab.input["running"]
    assert "stop" in tab.input["received"], "the browser sends it no more"
    tab.stop().settle()
