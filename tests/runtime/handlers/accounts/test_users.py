"""Users of a service: invitations, passwords, sessions, and what the audit list says about them."""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

import roost
from roost.core.accounts import passwords
from roost.core.accounts.users import Account, Role
from roost.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from roost.hosts.pending import drive
from roost.ports import Pending
from roost.runtime.handlers.accounts import password_threads
from roost.runtime.handlers.accounts.actions import new_action
from roost.runtime.handlers.accounts.deletion import Deletions
from roost.runtime.handlers.accounts.users import Users
from roost.stores.sql.accounts import deletion
from roost.stores.sql.accounts.deletion import DeletionOrder
from tests.conftest import Open, eventually

T = TypeVar("T")
PASSWORD = "correct horse battery"


@pytest.fixture
def one(service: Open) -> roost.AgentService:
    return service()


@pytest.fixture
def server(one: roost.AgentService) -> Users:
    """The methods for servers."""
    return one.asynchronous.users


def signed_up(one: roost.AgentService, name: str, *, role: str = "user", password: str = PASSWORD) -> Account:
    code = one.users.add("root", name, role=role).code
    return drive(one.asynchronous.users.redeem(code, password, "10.0.0.1"))


def test_an_invited_user_sets_a_password_and_signs_in(one: roost.AgentService, server: Users) -> None:
    invitation = one.users.add("root", "ann")
    assert (invitation.expires - invitation.account.created).days == 7
    assert drive(server.authenticate("ann", PASSWORD, "")) is None
    account = drive(server.redeem(invitation.code, PASSWORD, "10.0.0.1"))
    assert drive(server.authenticate(" Ann ", PASSWORD, "")) == account == one.users.get("root", "ann")
    assert drive(server.authenticate("ann", PASSWORD + "x", "")) is None
    state = drive(server.session("ann"))
    assert state is not None
    assert (state.role, state.epoch) == (Role.USER, account.session_epoch)
    with pytest.raises(NotFound):
        drive(server.redeem(invitation.code, PASSWORD, ""))


@pytest.mark.parametrize("password", ["", "x" * 100_000, "a\0b", None, "\ud800"])
def test_what_cannot_be_a_password_is_wrong(one: roost.AgentService, server: Users, password: Any) -> None:
    signed_up(one, "ann")
    assert drive(server.authenticate("ann", password, "")) is None


def test_a_bad_password_leaves_the_invitation_valid(one: roost.AgentService, server: Users) -> None:
    code = one.users.add("root", "ann").code
    with pytest.raises(Invalid, match="10 to 1,000"):
        drive(server.redeem(code, "short", ""))
    for wrong in ("", "never", "x" * 100_000, "a\0"):
        with pytest.raises((NotFound, Invalid)):
            drive(server.redeem(wrong, PASSWORD, ""))
    assert drive(server.redeem(code, PASSWORD, "")).user_id == "ann"


def test_sessions_end_with_a_new_password_a_reset_a_sign_out_and_a_disabled_account(
    one: roost.AgentService, server: Users
) -> None:
    def epoch() -> int | None:
        state = drive(server.session("ann"))
        return None if state is None else state.epoch

    signed_up(one, "ann")
    epochs = [epoch()]
    drive(server.change_password("ann", PASSWORD, "another password", ""))
    epochs.append(epoch())
    drive(server.sign_out("ann"))
    epochs.append(epoch())
    code = one.users.reset("root", "ann").code
    epochs.append(epoch())
    drive(server.redeem(code, PASSWORD, ""))
    epochs.append(epoch())
    one.users.disable("root", "ann")
    assert epoch() is None
    assert drive(server.authenticate("ann", PASSWORD, "")) is None
    one.users.enable("root", "ann")
    epochs.append(epoch())
    assert None not in epochs
    assert len(set(epochs)) == len(epochs)
    assert drive(server.authenticate("ann", PASSWORD, "")) is not None


def test_a_password_is_changed_only_with_the_current_one(one: roost.AgentService, server: Users) -> None:
    signed_up(one, "ann")
    with pytest.raises(Forbidden, match="current password is wrong"):
        drive(server.change_password("ann", "wrong password", "another password", ""))
    with pytest.raises(Invalid, match="10 to 1,000"):
        drive(server.change_password("ann", PASSWORD, "short", ""))
    assert drive(server.authenticate("ann", PASSWORD, "")) is not None


def test_an_identity_cannot_take_a_reserved_name_or_that_of_anybody_who_has_data(
    one: roost.AgentService, server: Users
) -> None:
    one.create_talk_session("visitor")
    one.agents.create("owner", "d", start=False)
    server.reserved.add("local")
    names = [drive(server.identify("https://id", name, name, "")).user_id for name in ("visitor", "owner", "local")]
    assert names == ["visitor-2", "owner-2", "local-2"]
    assert one.list_sessions("visitor-2") == []


def test_bad_arguments_are_named_and_change_nothing(one: roost.AgentService) -> None:
    one.users.add("root", "ann", role="admin")
    before = one.users.list("root"), one.users.audit("root")
    calls: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
        (one.users.add, ("root", "Ann B"), Invalid, "lower-case"),
        (one.users.add, ("", "bob"), Invalid, "the user id"),
        (one.users.add, ("root", "ann"), Conflict, "already"),
        (one.users.set_role, ("root", "ann", "king"), Invalid, "use one of user, admin"),
        (one.users.set_role, ("root", "ann", "user"), Conflict, "last admin"),
        (one.users.disable, ("root", "never"), NotFound, "no account 'never'"),
        (one.users.enable, ("root", "\0"), Invalid, "NUL"),
        (one.users.reset, ("root", 5), Invalid, "must be a text"),
    ]
    for call, given, kind, told in calls:
        with pytest.raises(kind, match=told):
            call(*given)
    assert (one.users.list("root"), one.users.audit("root")) == before


def test_the_audit_list_names_actor_and_target_and_holds_no_secret(one: roost.AgentService, server: Users) -> None:
    account = signed_up(one, "ann")
    code = one.users.reset("root", "ann").code
    token = one.tokens.create("ann", "ci", scopes=["talks"])
    one.tokens.revoke("ann", token.token.token_id)
    drive(server.record("ann", "sign-in", "ann", "10.0.0.7", f"with {token.secret}"))
    entries = one.users.audit("root")
    assert [(entry.actor, entry.action, entry.target) for entry in reversed(entries)] == [
        ("root", "users.add", "ann"),
        ("ann", "users.redeem", "ann"),
        ("root", "users.reset", "ann"),
        ("ann", "tokens.create", "ann"),
        ("ann", "tokens.revoke", "ann"),
        ("ann", "sign-in", "ann"),
    ]
    told = repr(entries)
    assert not [secret for secret in (PASSWORD, code, token.secret, "argon2") if secret in told]
    assert "10.0.0.7" in told
    assert account.has_password


def test_hashes_run_on_two_threads_and_those_that_wait_are_bounded(
    one: roost.AgentService, server: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, started = threading.Event(), threading.Semaphore(0)
    names: set[str] = set()

    def slow(_: str, __: str | None) -> bool:
        names.add(threading.current_thread().name)
        started.release()
        go.wait(30)
        return False

    monkeypatch.setattr(passwords, "matches", slow)
    monkeypatch.setattr(password_threads, "MOST_WAITING", 3)

    def call(_: int) -> object:
        return drive(server.authenticate("ann", PASSWORD, ""))

    with ThreadPoolExecutor(5) as pool:
        calls = [pool.submit(call, number) for number in range(2)]
        assert started.acquire(timeout=30)
        assert started.acquire(timeout=30)
        calls += [pool.submit(call, number) for number in range(3)]
        eventually(lambda: len(server._threads._waiting) == 3)
        with pytest.raises(Unavailable, match="try again"):
            call(0)
        assert not started.acquire(blocking=False)
        go.set()
        assert [one.result(30) for one in calls] == [None] * 5
    assert names == {"roost-password"}
    eventually(lambda: server._threads._threads == 0)


def _same_work(server: Users, name: str, seen: list[str | None]) -> Coroutine[Any, Any, Account | None]:
    del seen[:]
    return server.authenticate(name, PASSWORD, "")


def test_a_name_without_an_account_or_a_password_takes_the_same_work(
    one: roost.AgentService, server: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.users.add("root", "bob")
    signed_up(one, "carl")
    one.users.disable("root", "carl")
    seen: list[str | None] = []
    real = passwords.matches

    def counted(password: str, stored: str | None) -> bool:
        seen.append(stored)
        return real(password, stored)

    monkeypatch.setattr(passwords, "matches", counted)
    for name in ("never", "bob", "carl", "", "\0"):
        assert drive(_same_work(server, name, seen)) is None
        assert seen == [None], name


def test_two_deletions_of_one_user_wait_for_each_other_and_spare_a_new_user_of_the_name(
    one: roost.AgentService, server: Users
) -> None:
    signed_up(one, "ann")
    one.agents.create_many("ann", [f"agent-{number}" for number in range(20)], start=False)
    with ThreadPoolExecutor(4) as pool:
        deletions = [pool.submit(one.users.delete, "root", "ann") for _ in range(4)]
        results = [deletion.exception(60) for deletion in deletions]
    assert {type(result) for result in results} <= {type(None), NotFound}
    assert None in results
    assert [entry.action for entry in one.users.audit("root")].count("users.delete") == 1
    one.users.add("root", "ann")
    drive(one.roost.deletions.sweep())
    assert [account.user_id for account in one.users.list("root")] == ["ann"]


def test_a_name_to_which_mail_was_sent_is_not_given_to_somebody_else(one: roost.AgentService, server: Users) -> None:
    one.agents.create("bob", "d", start=False)
    one.mail.send("bob", "user:bob", "subject", "body", sender="agent:d")
    assert drive(server.identify("https://id", "1", "bob", "")).user_id == "bob-2"


def test_a_deletion_that_another_call_has_begun_and_failed_to_finish_is_finished(
    one: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_up(one, "ann")
    began, fails, real = threading.Event(), threading.Event(), Deletions._leave_meetings
    calls, run = [], Deletions.run

    async def counted(self: Deletions, order: DeletionOrder) -> None:
        calls.append(order)
        await run(self, order)

    async def leave(self: Deletions, order: DeletionOrder) -> None:
        if not began.is_set():
            began.set()
            assert fails.wait(30)
            raise Unavailable("the store is away")
        await real(self, order)

    monkeypatch.setattr(Deletions, "_leave_meetings", leave)
    monkeypatch.setattr(Deletions, "run", counted)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.users.delete, "root", "ann")
        assert began.wait(30)
        second = pool.submit(one.users.delete, "root", "ann")
        eventually(lambda: len(calls) == 2)
        fails.set()
        assert isinstance(first.exception(30), Unavailable)
        assert second.exception(30) is None
    assert one.users.list("root") == []


def test_a_deletion_that_fails_does_not_delay_those_of_others(
    one: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Deletions._leave_meetings

    async def leave(self: Deletions, order: DeletionOrder) -> None:
        if order.user_id == "ann":
            raise Unavailable("the store is away")
        await real(self, order)

    monkeypatch.setattr(Deletions, "_leave_meetings", leave)
    context = one.roost.context
    for name in ("ann", "bob"):
        signed_up(one, name)
        by = new_action(context.host, "root", "users.delete")
        written(context.store.write(deletion.begin, name, f"deleted-{name}", by))
    drive(one.roost.deletions.sweep())
    assert [account.user_id for account in one.users.list("root")] == ["ann"]


def written(pending: Pending[T]) -> T:
    async def awaited() -> T:
        return await pending

    return drive(awaited())
