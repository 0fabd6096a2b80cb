"""The account page: password, API tokens, and signing out everywhere."""

from __future__ import annotations

import re

from tests.api.account_pages.people import PASSWORD, browser, error_in, joined, sign_in
from tests.api.serving import Served, ask
from tests.api.test_tokens import client
from tests.conftest import eventually

NEW = "another one entirely"


def test_a_password_is_changed_and_other_browsers_are_signed_out(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as ann, browser(served) as other:
        sign_in(ann, "ann")
        sign_in(other, "ann")
        given = {"current": PASSWORD, "password": NEW, "again": NEW}
        wrong = {
            "The current password is wrong.": given | {"current": "wrong"},
            "The two passwords are not the same.": given | {"again": "x"},
            "The password must have 10": given | {"password": "short", "again": "short"},
        }
        for told, data in wrong.items():
            refused = ann.post("/account/password", data=data)
            assert (refused.status_code >= 400, error_in(refused)[: len(told)]) == (True, told)
        assert ask(other, "agents.list").status_code == 200
        changed = ann.post("/account/password", data=given)
        assert (changed.status_code, changed.headers["location"]) == (303, "/account?done=password")
        assert "The password was changed." in ann.get("/account?done=password").text
        assert ask(ann, "agents.list").status_code == 200
        eventually(lambda: ask(other, "agents.list").status_code == 401)
        assert sign_in(other, "ann").status_code == 401
        assert sign_in(other, "ann", NEW).status_code == 303


def test_the_current_password_cannot_be_guessed_with_a_stolen_session(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as thief:
        sign_in(thief, "ann")
        data = {"password": NEW, "again": NEW}
        codes = [thief.post("/account/password", data=data | {"current": f"{n}"}).status_code for n in range(6)]
        assert codes == [403] * 5 + [429]
        assert thief.post("/account/password", data=data | {"current": PASSWORD}).status_code == 429


def test_a_token_is_created_shown_once_and_revoked(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as ann:
        sign_in(ann, "ann")
        data = {"name": "<b>laptop</b>", "access": "*:read", "expires": "2592000"}
        made = ann.post("/account/tokens", data=data)
        found = re.search(r"roost_[\w-]+", made.text)
        assert found is not None
        assert "<b>laptop" not in made.text
        assert made.headers["cache-control"] == "no-store"
        listed = ann.get("/account").text
        assert found.group() not in listed
        assert "Read only, expires on" in listed
        with client(served, found.group()) as program:
            assert ask(program, "agents.list").status_code == 200
            assert ask(program, "agents.create", agentId="d").status_code == 403
            assert program.get("/account").status_code == 403
        [token] = served.service.tokens.list("ann")
        assert ann.post("/account/revoke", data={"token": token.token_id}).status_code == 303
        assert served.service.tokens.list("ann") == []
        assert "there is no token" in ann.post("/account/revoke", data={"token": token.token_id}).text.lower()


def test_a_token_that_cannot_be_created_gets_a_sentence(served: Served) -> None:
    joined(served, "ann")
    joined(served, "bob")
    with browser(served) as ann, browser(served) as bob:
        sign_in(ann, "ann")
        sign_in(bob, "bob")
        good = {"name": "laptop", "access": "*", "expires": ""}
        for bad in ({"name": ""}, {"access": "everything"}, {"expires": "soon"}, {"expires": "-1"}, {"expires": "nan"}):
            refused = ann.post("/account/tokens", data=good | bad)
            assert (refused.status_code, error_in(refused) != "") == (422, True), bad
        assert served.service.tokens.list("ann") == []
        ann.post("/account/tokens", data=good)
        [token] = served.service.tokens.list("ann")
        assert bob.post("/account/revoke", data={"token": token.token_id}).status_code == 404
        assert len(served.service.tokens.list("ann")) == 1


def test_signing_out_everywhere_ends_all_sessions(served: Served) -> None:
    joined(served, "ann", "admin")
    with browser(served) as one, browser(served) as other:
        sign_in(one, "ann")
        sign_in(other, "ann")
        assert "<b>ann</b> (admin)" in one.get("/account").text
        assert one.post("/account/sign-out").headers["location"] == "/sign-in"
        eventually(lambda: ask(other, "agents.list").status_code == 401)
    assert served.service.users.audit("local")[0].action == "sign_out"


def test_the_local_user_without_an_account_has_only_tokens(served: Served) -> None:
    with browser(served) as own:
        own.get("/enter", params={"code": served.identity.invite()})
        page = own.get("/account").text
        assert "API tokens" in page
        assert "Current password" not in page
        assert "Sign out everywhere" not in page
