"""Methods of the service for authenticated callers, independent of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from roost.api.limits.concurrency import ConcurrencyLimit
from roost.core.accounts.current_user import CurrentUser
from roost.core.accounts.tokens import ALL, allows
from roost.core.accounts.users import Role
from roost.core.journal.run_history import Replay, RunEntry
from roost.core.limits.limits import Limits
from roost.core.values.correlation import CLIENT
from roost.errors import Forbidden
from roost.protocol.namespaces import LONGEST_WAIT, Method, methods
from roost.service import AsyncAgentService
from roost.sync import HANDLERS

HELD = "timeout"
"""Methods with this parameter wait."""
LONG = "within"
"""Methods with this parameter may take as long as the client stays connected."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Authenticated user of a request, and its address."""

    user: str
    address: str = ""
    is_operator: bool = False
    """True for the local user and for holders of the local token: they also read tracebacks."""
    scopes: tuple[str, ...] = (ALL,)
    """Scopes of the API token, if the request has one."""

    def require(self, scope: str) -> None:
        """Raise Forbidden if the token lacks a scope."""
        if not allows(self.scopes, scope):
            raise Forbidden(f"this token does not have the scope {scope!r}: create one that has it")


async def current_user(service: AsyncAgentService, caller: Caller) -> CurrentUser:
    """Return what a caller may know about itself."""
    state = await service.users.session(caller.user)
    return CurrentUser(caller.user, caller.scopes, None if state is None else state.role)


class Endpoint:
    """Method of a namespace, called by users."""

    def __init__(self, service: AsyncAgentService, method: Method, waits: ConcurrencyLimit) -> None:
        self.method = method
        self._service = service
        self._namespace = service if method.namespace == "talks" else getattr(service, method.namespace)
        self._call = getattr(self._namespace, method.name)
        self._waits = waits

    @property
    def is_long(self) -> bool:
        """Return whether the call may take long, and is cancelled if the caller disconnects."""
        return self.method.has(LONG)

    async def call(self, caller: Caller, arguments: dict[str, Any], *, agent: str | None = None) -> Any:
        """Call the method; return its result, or the thing whose id is its result. `agent` must exist."""
        caller.require(self.method.scope)
        await self._require_role(caller)
        CLIENT.set(caller.address)
        if agent is not None:
            await self._service.agents.get(caller.user, agent)
        found = await self._done(caller, arguments)
        if shown_by := self.method.route.shown_by:
            found = await getattr(self._namespace, shown_by)(caller.user, found)
        return found if caller.is_operator else public(found)

    async def _require_role(self, caller: Caller) -> None:
        """Raise Forbidden if the method is for admins, and the caller is none. The role is read for each call."""
        if not self.method.requires_admin or caller.is_operator:
            return
        state = await self._service.users.session(caller.user)
        if state is None or state.role is not Role.ADMIN:
            raise Forbidden("only admins may do this: ask one of them")

    def as_json(self, found: Any) -> Any:
        """Convert what a call returned to JSON."""
        return self._shows.dump_python(self._shows.validate_python(found, from_attributes=True), mode="json")

    async def _done(self, caller: Caller, arguments: dict[str, Any]) -> Any:
        if not self.method.has(HELD):
            return await self._call(caller.user, **arguments)
        timeout = arguments.get(HELD)
        bounded = arguments | {HELD: LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT)}
        with self._waits.taken(caller.user, caller.address):
            return await self._call(caller.user, **bounded)

    @cached_property
    def _shows(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.method.shows)


def endpoints(service: AsyncAgentService, limits: Limits) -> Iterator[Endpoint]:
    """Yield all methods that users may call."""
    waits = ConcurrencyLimit("waits", limits)
    for name, kind in HANDLERS.items():
        for method in methods(name, kind):
            yield Endpoint(service, method, waits)


def public(found: Any) -> Any:
    """Return what any user may read: tracebacks and the texts of exceptions are for the operator alone."""
    if isinstance(found, RunEntry):
        return replace(found, traceback=None)
    if isinstance(found, Replay) and found.error is not None:
        return replace(found, error=found.error.partition(":")[0])
    return found
