"""Actions for the audit list."""

from __future__ import annotations

from roost.core.values.correlation import CLIENT
from roost.ports import Host
from roost.stores.sql.accounts.audit import Action


def new_action(host: Host, actor: str, name: str, address: str | None = None) -> Action:
    """Return an action that happens now; by default from the address of the request that is being served."""
    return Action(host.new_id("audit"), host.clock.now(), actor, name, CLIENT.get() if address is None else address)
