"""Accounts agree with a small model after any sequence of what admins and users do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import roost
from roost.core.accounts import passwords
from roost.core.accounts.users import Invitation, Role
from roost.errors import Conflict, NotFound
from roost.hosts.pending import drive

NAMES = st.sampled_from(["ann", "bob", "carl"])
PASSWORDS = st.sampled_from(["the first password", "the second password"])


@dataclass
class Known:
    """Account as the model knows it."""

    role: Role
    password: str | None = None
    code: str | None = None
    disabled: bool = False
    epoch: int = 0


class AccountMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._service = roost.open(f"sqlite:///{Path(self._folder.name)}/a.db")
        self._server = self._service.asynchronous.users
        self._accounts: dict[str, Known] = {}
        self._used: list[str] = []
        self._ended: dict[str, int] = {}

    def teardown(self) -> None:
        self._service.close()
        self._folder.cleanup()

    def _is_last_admin(self, name: str) -> bool:
        admins = {key for key, one in self._accounts.items() if one.role is Role.ADMIN and not one.disabled}
        return admins == {name}

    @rule(name=NAMES, role=st.sampled_from(Role))
    def add(self, name: str, role: Role) -> None:
        if name in self._accounts:
            with pytest.raises(Conflict):
                self._service.users.add("root", name, role=role)
            return
        made = self._service.users.add("root", name, role=role)
        assert made.account.session_epoch > self._ended.get(name, 0)
        self._accounts[name] = Known(role, code=made.code, epoch=made.account.session_epoch)

    @rule(name=NAMES, verb=st.sampled_from(["disable", "enable", "reset", "delete", "demote", "promote"]))
    def administer(self, name: str, verb: str) -> None:
        one = self._accounts.get(name)
        users = self._service.users
        acts: dict[str, Callable[[], object]] = {
            "disable": lambda: users.disable("root", name),
            "enable": lambda: users.enable("root", name),
            "reset": lambda: users.reset("root", name),
            "delete": lambda: users.delete("root", name),
            "demote": lambda: users.set_role("root", name, "user"),
            "promote": lambda: users.set_role("root", name, "admin"),
        }
        act = acts[verb]
        if one is None:
            with pytest.raises(NotFound):
                act()
        elif verb in ("disable", "delete", "demote") and self._is_last_admin(name):
            with pytest.raises(Conflict, match="last admin"):
                act()
        elif verb == "reset" and one.disabled:
            with pytest.raises(Conflict, match="enable it first"):
                act()
        else:
            self._apply(name, one, verb, act())

    def _apply(self, name: str, one: Known, verb: str, result: object) -> None:
        if verb in ("disable", "delete", "reset") and one.code:
            self._used.append(one.code)
        if verb == "delete":
            self._ended[name] = self._accounts.pop(name).epoch
        elif verb == "reset":
            assert isinstance(result, Invitation)
            one.password, one.code, one.epoch = None, result.code, one.epoch + 1
        elif verb in ("promote", "demote"):
            one.role = Role.ADMIN if verb == "promote" else Role.USER
        elif verb == "disable" and not one.disabled:
            one.disabled, one.code, one.epoch = True, None, one.epoch + 1
        elif verb == "enable":
            one.disabled = False

    @rule(name=NAMES, password=PASSWORDS)
    def redeem(self, name: str, password: str) -> None:
        one = self._accounts.get(name)
        if one is None or one.code is None:
            return
        drive(self._server.redeem(one.code, password, ""))
        self._used.append(one.code)
        one.password, one.code, one.epoch = password, None, one.epoch + 1

    @rule()
    def redeem_a_used_code(self) -> None:
        for code in self._used[-2:]:
            with pytest.raises(NotFound):
                drive(self._server.redeem(code, "the first password", ""))

    @rule(name=NAMES)
    def sign_out(self, name: str) -> None:
        drive(self._server.sign_out(name))
        if name in self._accounts:
            self._accounts[name].epoch += 1

    @rule(name=NAMES, password=PASSWORDS)
    def authenticate(self, name: str, password: str) -> None:
        one = self._accounts.get(name)
        is_right = one is not None and not one.disabled and one.password == password
        assert (drive(self._server.authenticate(name, password, "")) is not None) is is_right

    @invariant()
    def sessions_agree(self) -> None:
        for name in ("ann", "bob", "carl"):
            state, one = drive(self._server.session(name)), self._accounts.get(name)
            assert (state is not None) is (one is not None and not one.disabled)
            if state is not None and one is not None:
                assert (state.role, state.epoch) == (one.role, one.epoch)
        assert drive(self._server.exist()) is bool(self._accounts)


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hashes of the least cost: what is tested here is not their strength."""
    monkeypatch.setattr(passwords, "MEMORY_KIB", 8)
    monkeypatch.setattr(passwords, "ROUNDS", 1)
    passwords._hasher.cache_clear()
    yield
    passwords._hasher.cache_clear()


TestAccounts = AccountMachine.TestCase
