"""The service over the network is the service: same results, same errors, whatever the network does."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import roost
from roost.client import RemoteService, aconnect, connect
from roost.core.accounts.users import Role
from tests.api.serving import Served
from tests.client.conftest import Dial
from tests.client.proxy import failing
from tests.conftest import ENVIRONMENT, eventually


def test_every_method_gives_what_the_service_itself_gives(served: Served, remote: RemoteService) -> None:
    own = served.service
    talk = remote.create_talk_session("ann", profile="parrot", busy="queue", title="Birds", instructions="Be brief.")
    assert remote.get_session("ann", talk) == own.get_session("ann", talk)
    message = remote.add_message("ann", talk, "grüß dich 🐦\n")
    changes = list(remote.stream_messages("ann", talk))
    assert changes[-1].message.status == "complete"
    assert remote.get_messages("ann", talk) == own.get_messages("ann", talk)
    assert remote.get_messages("ann", talk).messages[0] == message
    assert remote.list_sessions("ann") == own.list_sessions("ann")
    assert remote.rename("ann", talk, "Words").title == "Words"
    assert remote.configure("ann", talk, profile="slow", options={"temperature": 1.0}) == own.get_session("ann", talk)
    assert [(p.name, p.shown) for p in remote.profiles()] == [(p.name, p.shown) for p in own.profiles()]
    assert remote.health() == own.health()
    remote.delete("ann", talk)
    assert own.list_sessions("ann") == []


def test_a_stream_has_the_same_changes_as_the_services_own(served: Served, remote: RemoteService) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    served.service.add_message("ann", talk, "one two three")
    list(served.service.stream_messages("ann", talk))
    assert list(remote.stream_messages("ann", talk)) == list(served.service.stream_messages("ann", talk))


def test_a_stream_begun_in_the_middle_of_a_text_knows_the_whole_text(served: Served, remote: RemoteService) -> None:
    talk = served.service.create_talk_session("ann", profile="slow")
    served.service.add_message("ann", talk, "go")
    for change in served.service.stream_messages("ann", talk):
        if len(change.message.content) > 30:
            break
    later = list(remote.stream_messages("ann", talk, after=change.cursor))
    assert change.message.content + "".join(c.text for c in later) == later[-1].message.content
    assert later[-1].message == served.service.get_messages("ann", talk).messages[-1]


@pytest.mark.alone
def test_small_answers_on_a_kept_connection_do_not_wait_for_each_other(remote: RemoteService) -> None:
    def seconds() -> float:
        started = time.perf_counter()
        remote.profiles()
        return time.perf_counter() - started

    # Held back by the kernel, each would take 40 ms, but for the first ones of a connection.
    assert min([seconds() for _ in range(40)][20:]) < 0.03


def test_stop_gives_its_receipt(served: Served, remote: RemoteService) -> None:
    talk = remote.create_talk_session("ann", profile="endless")
    remote.add_message("ann", talk, "go")
    eventually(lambda: len(remote.get_messages("ann", talk).messages) == 2)
    receipt = remote.stop("ann", talk, wait=5)
    assert receipt.quiesced is not None
    assert receipt.requested <= receipt.quiesced


@pytest.mark.parametrize(
    ("error", "content", "options"),
    [
        (roost.Invalid, "", {}),
        (roost.Invalid, "a\0b", {}),
        (roost.Invalid, "\ud800", {}),
        (roost.Invalid, "x", {"busy": "never"}),
        (roost.Conflict, "other", {"key": "k"}),
        (roost.Busy, "x", {"busy": "reject"}),
    ],
)
def test_errors_come_back_as_the_same_errors(
    unchanged: Served, dial: Dial, error: type[Exception], content: str, options: dict[str, str]
) -> None:
    with dial(unchanged.url, unchanged.identity.token) as remote:
        talk = remote.create_talk_session("ann", profile="endless")
        remote.add_message("ann", talk, "go", key="k")
        with pytest.raises(error):
            remote.add_message("ann", talk, content, **options)
        assert [m.content for m in remote.get_messages("ann", talk).messages if m.sender == "user"] == ["go"]


def test_bad_ids_users_and_limits_are_refused_as_by_the_service(served: Served, remote: RemoteService) -> None:
    talk = served.service.create_talk_session("ann")
    for side in (served.service, remote):
        for user, talk_id, limit in (("", talk, 1), ("ann", "", 1), ("ann", talk, 0), ("ann\n", talk, 1)):
            with pytest.raises(roost.Invalid):
                side.get_messages(user, talk_id, limit=limit)
        with pytest.raises(roost.NotFound):
            side.get_messages("ann", "a/../b?c#d", limit=1)


def test_a_message_whose_answer_was_lost_is_sent_again_and_stored_once(served: Served, dial: Dial) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1, 20]
        message = remote.add_message("ann", talk, "hello")
        assert proxy.connections == 3
    assert message.seq == 1
    assert [m.content for m in served.service.get_messages("ann", talk).messages][:1] == ["hello"]
    assert sum(m.sender == "user" for m in served.service.get_messages("ann", talk).messages) == 1


def test_a_talk_whose_answer_was_lost_is_not_made_twice(served: Served, dial: Dial) -> None:
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1]
        with pytest.raises(roost.Unavailable, match="cannot reach the server"):
            remote.create_talk_session("ann")
    assert len(served.service.list_sessions("ann")) == 1


def test_a_delete_whose_answer_was_lost_is_done(served: Served, dial: Dial) -> None:
    talk = served.service.create_talk_session("ann")
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1]
        remote.delete("ann", talk)
    assert served.service.list_sessions("ann") == []


def test_a_stream_that_breaks_again_and_again_is_whole(served: Served, dial: Dial) -> None:
    talk = served.service.create_talk_session("ann", profile="slow")
    served.service.add_message("ann", talk, "go")
    texts: dict[int, str] = {}
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1000 + 137 * number for number in range(12)]
        for change in remote.stream_messages("ann", talk):
            assert not change.reset
            texts[change.message.seq] = texts.get(change.message.seq, "") + change.text
            assert texts[change.message.seq] == change.message.content
        assert proxy.connections > 2
    assert texts == {m.seq: m.content for m in served.service.get_messages("ann", talk).messages}


def test_a_server_that_is_not_there_is_unavailable_in_bounded_time(served: Served, dial: Dial) -> None:
    with failing(served.url) as proxy:
        url = proxy.url
    with dial(url, "token", patience=0.1) as remote:
        with pytest.raises(roost.Unavailable, match=url):
            remote.health()
        with pytest.raises(roost.Unavailable, match=url):
            list(remote.stream_messages("ann", "talk_1"))


def test_a_wrong_token_is_forbidden(served: Served, dial: Dial) -> None:
    with dial(served.url, "wrong") as remote, pytest.raises(roost.Forbidden, match="token"):
        remote.list_sessions("ann")


@pytest.mark.parametrize(
    "url", ["localhost:8501", "ftp://localhost", "http://", "", "http://[::1", "http://host:port", "http://x:99999", 5]
)
def test_a_url_that_is_none_is_refused(url: object, dial: Dial) -> None:
    with pytest.raises(roost.Invalid, match="http://host:port"), dial(url, None):
        pass


def test_a_url_with_a_password_is_refused_and_not_repeated(dial: Dial) -> None:
    with pytest.raises(roost.Invalid, match="pass a token") as refused, dial("http://ann:pass-word@localhost:1", None):
        pass
    assert "pass-word" not in str(refused.value)


def test_a_closed_client_says_so(served: Served, dial: Dial) -> None:
    with dial(served.url, served.identity.token) as remote:
        remote.health()
        remote.close()
        with pytest.raises(roost.Unavailable, match="closed"):
            remote.health()


@pytest.mark.parametrize("cursor", ["a\r\nHost: elsewhere", "ü", "\0"])
def test_a_cursor_that_is_none_is_refused_as_by_the_service(served: Served, remote: RemoteService, cursor: str) -> None:
    talk = served.service.create_talk_session("ann")
    for side in (served.service, remote):
        with pytest.raises(roost.Invalid):
            list(side.stream_messages("ann", talk, after=cursor))


def test_a_revoked_token_ends_streams_with_an_error(served: Served, dial: Dial) -> None:
    made = served.service.tokens.create("ann", "test")
    talk = served.service.create_talk_session("ann", profile="parrot")
    served.service.add_message("ann", talk, "hello")
    with dial(served.url, made.secret) as remote:
        stream = remote.stream_messages("ann", talk, follow=True)
        assert next(stream).text == "hello"
        served.service.tokens.revoke("ann", made.token.token_id)
        with pytest.raises(roost.Forbidden, match="revoked"):
            list(stream)


def test_a_token_that_cannot_be_sent_is_refused(served: Served, dial: Dial) -> None:
    with dial(served.url, "a\nb") as remote, pytest.raises(roost.Invalid, match="token"):
        remote.health()


def test_a_program_learns_the_user_of_its_token(served: Served, dial: Dial) -> None:
    made = served.service.tokens.create("ann", "test", scopes=["agents", "mail:read"])
    with dial(served.url, made.secret) as remote:
        assert remote.me() == roost.CurrentUser("ann", ("agents", "mail:read"))
        assert remote.agents.list("ann") == []
        with pytest.raises(roost.Forbidden, match="another user"):
            remote.agents.list("bob")
        with pytest.raises(roost.Forbidden, match="talks:read"):
            remote.list_sessions("ann")


def test_a_program_learns_the_role_of_its_account(served: Served, dial: Dial) -> None:
    served.service.users.add("local", "ann", role="admin")
    with dial(served.url, served.service.tokens.create("ann", "test").secret) as remote:
        assert remote.me() == roost.CurrentUser("ann", ("*",), Role.ADMIN)


def test_the_client_is_a_public_name_that_costs_nothing_until_it_is_used() -> None:
    assert (roost.connect, roost.aconnect) == (connect, aconnect)
    program = "import roost, sys; assert not {'pydantic', 'httpx2', 'roost.client'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True, timeout=60)
