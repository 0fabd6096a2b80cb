"""Accounts on every store: sessions, invitations, identities, the last admin, and the audit list."""

from __future__ import annotations

from itertools import count

import pytest

from roost.core.accounts.users import Account, Role
from roost.errors import Conflict, Forbidden, NotFound
from roost.stores.sql.accounts import accounts, audit, sessions
from roost.stores.sql.accounts.audit import Action
from tests.contracts.conftest import Driven

NUMBERS = count()


def act(actor: str = "root", at: float = 0.0, action: str = "test") -> Action:
    return Action(f"audit_{next(NUMBERS):09}", 100.0 + at, actor, action, "10.0.0.1")


def added(store: Driven, name: str, role: Role = Role.USER) -> Account:
    found: Account = store.write(accounts.add, name, role, f"code of {name}", 200.0, act())
    return found


def with_password(store: Driven, name: str, role: Role = Role.USER) -> Account:
    added(store, name, role)
    found: Account = store.write(accounts.redeem, f"code of {name}", "hash", act(name))
    return found


def test_an_account_is_added_once_listed_by_name_and_has_no_password_yet(store: Driven) -> None:
    assert not store.read(accounts.exist)
    bob, ann = added(store, "bob"), added(store, "ann", Role.ADMIN)
    assert store.read(accounts.exist)
    assert (ann.role, ann.has_password, ann.disabled, ann.created.timestamp()) == (Role.ADMIN, False, None, 100.0)
    assert store.read(accounts.listed, 10, "") == [ann, bob]
    assert store.read(accounts.listed, 1, "") == [ann]
    assert store.read(accounts.listed, 10, "ann") == [bob]
    with pytest.raises(Conflict, match="users reset ann"):
        added(store, "ann")
    with pytest.raises(NotFound, match="users ls"):
        store.read(accounts.get, "carl")


def test_an_invitation_is_valid_once_and_until_it_expires(store: Driven) -> None:
    added(store, "ann")
    with pytest.raises(NotFound, match="expired"):
        store.write(accounts.redeem, "code of ann", "hash", act("ann", at=101.0))
    account = store.write(accounts.redeem, "code of ann", "hash", act("ann", at=99.0))
    assert (account.user_id, account.has_password) == ("ann", True)
    assert store.read(accounts.credentials, "ann") == (account, "hash")
    with pytest.raises(NotFound, match="used"):
        store.write(accounts.redeem, "code of ann", "other", act("ann"))
    assert store.read(accounts.credentials, "ann")[1] == "hash"


def test_a_new_invitation_replaces_the_old_one_and_the_password(store: Driven) -> None:
    before = with_password(store, "ann")
    after = store.write(accounts.reset, "ann", "second", 200.0, act())
    assert (after.has_password, after.session_epoch > before.session_epoch) == (False, True)
    store.write(accounts.reset, "ann", "third", 200.0, act())
    with pytest.raises(NotFound):
        store.read(accounts.invited, "second", 100.0)
    assert store.read(accounts.invited, "third", 100.0).user_id == "ann"


def test_a_disabled_account_has_no_session_and_no_invitation(store: Driven) -> None:
    before = with_password(store, "ann")
    assert store.read(accounts.session, "ann").epoch == before.session_epoch
    disabled = store.write(accounts.disable, "ann", act())
    assert store.write(accounts.disable, "ann", act()) == disabled
    assert store.read(accounts.session, "ann") is None
    assert store.read(accounts.credentials, "ann") is None
    with pytest.raises(Conflict, match="enable it first"):
        store.write(accounts.reset, "ann", "second", 200.0, act())
    enabled = store.write(accounts.enable, "ann", act())
    assert (enabled.disabled, enabled.has_password) == (None, True)
    assert store.read(accounts.session, "ann").epoch > before.session_epoch
    assert store.read(accounts.session, "never") is None


@pytest.mark.parametrize("state", ["invited", "reset"])
def test_an_invitation_of_a_disabled_account_cannot_be_redeemed(store: Driven, state: str) -> None:
    added(store, "ann")
    if state == "reset":
        store.write(accounts.reset, "ann", "code of ann", 200.0, act())
    store.write(accounts.disable, "ann", act())
    with pytest.raises(NotFound):
        store.write(accounts.redeem, "code of ann", "hash", act("ann"))


def test_the_last_admin_that_can_sign_in_stays_one(store: Driven) -> None:
    added(store, "ann", Role.ADMIN)
    added(store, "bob", Role.ADMIN)
    store.write(accounts.disable, "bob", act())
    for refused in ((accounts.disable, "ann", act()), (accounts.set_role, "ann", Role.USER, act())):
        with pytest.raises(Conflict, match="the last admin"):
            store.write(*refused)
    store.write(accounts.set_role, "bob", Role.USER, act())
    store.write(accounts.enable, "bob", act())
    store.write(accounts.set_role, "bob", Role.ADMIN, act())
    assert store.write(accounts.set_role, "ann", Role.USER, act()).role is Role.USER
    assert store.write(accounts.disable, "ann", act()).disabled is not None


def test_a_password_is_changed_only_in_the_epoch_in_which_the_old_one_was_verified(store: Driven) -> None:
    account = with_password(store, "ann")
    changed = store.write(accounts.change_password, "ann", account.session_epoch, "new", act("ann"))
    assert store.read(accounts.credentials, "ann") == (changed, "new")
    with pytest.raises(Forbidden, match="signed out meanwhile"):
        store.write(accounts.change_password, "ann", account.session_epoch, "newer", act("ann"))
    store.write(accounts.sign_out, "ann")
    assert store.read(accounts.session, "ann").epoch > changed.session_epoch


def test_an_identity_gets_an_account_once_and_never_that_of_somebody_else(store: Driven) -> None:
    def identify(subject: str, suggested: str, issuer: str = "https://id") -> str:
        found = store.write(accounts.identify, issuer, subject, suggested, frozenset({"local"}), act("?"))
        return str(found.user_id)

    added(store, "ann")
    assert identify("1", "Ann ") == "ann-2"
    assert identify("1", "other") == "ann-2"
    assert identify("2", "ann") == "ann-3"
    assert identify("1", "ann", issuer="https://other") == "ann-4"
    assert identify("3", "local") == "local-2"
    assert identify("4", "../\0 é") == "user"
    assert identify("5", "x" * 500) == "x" * 56
    store.write(accounts.disable, "ann-2", act())
    with pytest.raises(Forbidden, match="disabled"):
        identify("1", "ann")


def test_every_action_is_in_the_audit_list_newest_first(store: Driven) -> None:
    added(store, "ann")
    with pytest.raises(Conflict):
        added(store, "ann")
    store.write(accounts.set_role, "ann", Role.ADMIN, act(action="users.set_role"))
    store.write(audit.add, act("ann", action="sign-in"), "ann", "x" * 2_000 + "\n")
    entries = store.read(audit.listed, 10, "")
    assert [(one.actor, one.action, one.target, one.detail[:10]) for one in entries] == [
        ("ann", "sign-in", "ann", "x" * 10),
        ("root", "users.set_role", "ann", "role admin"),
        ("root", "test", "ann", "role user"),
    ]
    assert (len(entries[0].detail), entries[0].address, entries[0].time.timestamp()) == (500, "10.0.0.1", 100.0)
    assert store.read(audit.listed, 10, entries[0].entry_id) == entries[1:]
    assert store.read(audit.listed, 1, "") == entries[:1]


def test_a_session_ends_alone_and_its_entry_is_removed_when_its_cookie_has_expired(store: Driven) -> None:
    with_password(store, "ann")
    store.write(sessions.end, "first", 150.0, act("ann", action="sign_out"))
    store.write(sessions.end, "first", 150.0, act("ann", action="sign_out"))
    assert store.read(accounts.session, "ann", "first") is None
    assert store.read(accounts.session, "ann", "second").role is Role.USER
    assert store.read(audit.listed, 1, "")[0].action == "sign_out"
    store.write(sessions.end, "second", 250.0, act("ann", at=51.0))
    assert store.read(accounts.session, "ann", "first") is not None  # it has expired by itself
    assert store.read(accounts.session, "ann", "second") is None


def test_an_identity_is_found_only_if_it_was_made_before_and_is_not_disabled(store: Driven) -> None:
    made = store.write(accounts.identify, "https://id.example", "1", "ann", (), act())
    assert store.read(accounts.identified, "https://id.example", "1") == made
    assert store.read(accounts.identified, "https://id.example", "2") is None
    assert store.read(accounts.identified, "https://other.example", "1") is None
    store.write(accounts.disable, made.user_id, act())
    assert store.read(accounts.identified, "https://id.example", "1") is None
