"""Pages without a server of Roost cannot sign anybody in."""

from __future__ import annotations

from pathlib import Path

import pytest

import roost
from roost.api.pages import standalone


def test_a_store_whose_users_sign_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    standalone.service().close()
    with roost.open() as service:
        service.users.add("local", "ann")
    for _ in range(2):  # the store is not kept open
        with pytest.raises(roost.Unavailable, match="start `roost up` instead"):
            standalone.service()
