"""The REST routes, one by one, through a real server."""

from __future__ import annotations

import json

import pytest

from roost.protocol.namespaces import Method
from tests.api.serving import Served
from tests.conftest import settled


def test_a_talk_is_made_found_changed_and_deleted(served: Served) -> None:
    with served.browser("ann") as ann:
        made = ann.post("/api/v1/talks", json={"profile": "parrot", "temperature": 0.5})
        talk = made.json()["talkSessionId"]
        assert made.status_code == 201
        assert ann.get(f"/api/v1/talks/{talk}").json()["options"] == {"temperature": 0.5}
        assert [t["talkSessionId"] for t in ann.get("/api/v1/talks").json()["items"]] == [talk]
        changed = ann.patch(f"/api/v1/talks/{talk}", json={"title": "Birds", "busy": "queue", "options": {}})
        assert (changed.json()["title"], changed.json()["busy"], changed.json()["options"]) == ("Birds", "queue", {})
        assert ann.delete(f"/api/v1/talks/{talk}").status_code == 204
        assert ann.get(f"/api/v1/talks/{talk}").status_code == 404


def test_a_new_method_for_talks_has_a_route_without_a_declaration() -> None:
    async def fork_here(self: object, user_id: str, talk_session_id: str, *, at_message: int = 1) -> str:
        return ""

    method = Method("talks", "fork_here", fork_here)
    user, given = method.request("ann", "talk_a/b", at_message=2)
    assert (method.route.verb, user, list(method.takes.model_fields)) == ("POST", "ann", ["at_message"])
    assert method.path == "talks/{talk_id}/fork-here"
    assert method.placed(given) == ("talks/talk_a%2Fb/fork-here", {}, {"atMessage": 2})
    assert method.result("talk_c", "ann") == "talk_c"


def test_a_talk_is_not_told_its_owner_and_a_body_is_needed(served: Served) -> None:
    with served.browser("ann") as ann:
        made = ann.post("/api/v1/talks", json={})
        path = f"/api/v1/talks/{made.json()['talkSessionId']}"
        assert "userId" not in made.json()
        assert (ann.post("/api/v1/talks").status_code, ann.patch(path).status_code) == (422, 422)
        assert ann.post(f"{path}/stop").status_code == 200
        assert [ann.post(f"{path}/stop", json={"wait": wait}).status_code for wait in (31, -1)] == [422, 422]
        unknown = ann.patch(path, json={"options": {"colour": "blue"}})
        assert (unknown.status_code, "colour: unknown field" in unknown.text) == (422, True)


def test_a_message_is_answered_and_read_back(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with served.browser("ann") as ann:
        sent = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": "grüß dich 🐦"})
        assert (sent.status_code, sent.json()["seq"], sent.json()["sender"]) == (201, 1, "user")
        settled(served.service, "ann", talk)
        page = ann.get(f"/api/v1/talks/{talk}/messages").json()
        assert [m["content"] for m in page["messages"]] == ["grüß dich 🐦", "grüß dich 🐦 "]
        nothing = ann.get(f"/api/v1/talks/{talk}/messages", params={"after": page["cursor"]}).json()
        assert nothing["messages"] == []
        older = ann.get(f"/api/v1/talks/{talk}/messages", params={"before": 2, "limit": 1}).json()
        assert [m["seq"] for m in older["messages"]] == [1]


def test_the_same_key_is_the_same_message_and_other_content_a_conflict(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with served.browser("ann") as ann:
        path = f"/api/v1/talks/{talk}/messages"
        first = ann.post(path, json={"content": "one", "key": "k"})
        assert ann.post(path, json={"content": "one", "key": "k"}).json()["seq"] == first.json()["seq"]
        conflict = ann.post(path, json={"content": "two", "key": "k"})
        assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")


def test_stopping_gives_a_receipt_and_keeps_what_was_said(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="endless")
    served.service.add_message("ann", talk, "go")
    for change in served.service.stream_messages("ann", talk):
        if change.message.content == "part1 ":
            break
    with served.browser("ann") as ann:
        receipt = ann.post(f"/api/v1/talks/{talk}/stop", json={"wait": 5}).json()
        assert all(receipt[stage] for stage in ("requested", "acknowledged", "quiesced"))
        last = ann.get(f"/api/v1/talks/{talk}/messages").json()["messages"][-1]
        assert (last["content"], last["status"]) == ("part1 ", "interrupted")


def test_a_busy_talk_that_rejects_says_busy(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="endless", busy="reject")
    served.service.add_message("ann", talk, "go")
    with served.browser("ann") as ann:
        refused = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": "more"})
    assert (refused.status_code, refused.json()["code"]) == (409, "busy")


@pytest.mark.parametrize(
    "body",
    [
        '{"content": ""}',
        '{"content": "a\\u0000b"}',
        '{"content": 7}',
        '{"content": "x", "more": 1}',
        "{}",
        "[]",
        "nonsense",
        '{"content": "\\ud800"}',
        '{"content": "x", "busy": "never"}',
        "[" * 100_000,
    ],
)
def test_a_bad_message_is_refused_with_one_shape_and_changes_nothing(unchanged: Served, body: str) -> None:
    talk = unchanged.service.create_talk_session("ann", profile="parrot")
    with unchanged.browser("ann", **{"Content-Type": "application/json"}) as ann:
        refused = ann.post(f"/api/v1/talks/{talk}/messages", content=body)
    assert refused.status_code in (400, 422)
    assert set(refused.json()) == {"type", "title", "status", "detail", "code"}
    assert unchanged.service.get_messages("ann", talk).messages == ()


def test_only_json_is_taken(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with served.browser("ann", **{"Content-Type": "text/plain"}) as ann:
        refused = ann.post(f"/api/v1/talks/{talk}/messages", content=json.dumps({"content": "x"}))
    assert refused.status_code == 422
    assert served.service.get_messages("ann", talk).messages == ()


def test_a_change_that_is_refused_in_part_changes_nothing(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot", title="Before")
    with served.browser("ann") as ann:
        refused = ann.patch(f"/api/v1/talks/{talk}", json={"title": "After", "profile": "nobody"})
        assert refused.status_code == 422
        bad_title = ann.patch(f"/api/v1/talks/{talk}", json={"title": "x" * 500, "profile": "slow"})
        assert bad_title.status_code == 422
    found = served.service.get_session("ann", talk)
    assert (found.title, found.profile) == ("Before", "parrot")


def test_profiles_tell_nothing_of_where_their_code_lies(served: Served) -> None:
    with served.browser("ann") as ann:
        profiles = ann.get("/api/v1/profiles").json()["profiles"]
    assert {"parrot", "guide", "echo"} <= {profile["name"] for profile in profiles}
    assert all("brain" not in profile for profile in profiles)


def test_health_and_openapi_are_served(served: Served) -> None:
    with served.browser(None) as nobody:
        assert nobody.get("/healthz").json() == {"name": "roost", "status": "ok"}
        assert nobody.get("/readyz").status_code == 200
        assert "/api/v1/talks/{talk_id}/stream" in nobody.get("/api/v1/openapi.json").json()["paths"]
        nothing = nobody.get("/api/v1/nothing")
        assert (nothing.status_code, nothing.json()["code"]) == (404, "not_found")


def test_a_server_whose_workers_are_down_is_not_ready(served: Served) -> None:
    served.service.roost.supervisor.down = "too many crashes"
    with served.browser("ann") as ann:
        assert ann.get("/readyz").status_code == 503
        assert ann.get("/api/v1/health").json()["problem"] == "too many crashes"


def test_a_server_whose_store_does_not_answer_is_not_ready(served: Served) -> None:
    with served.browser("ann") as ann:
        served.service.roost.context.store.close()
        assert ann.get("/readyz").status_code == 503
        assert ann.get("/healthz").status_code == 200
        assert ann.get("/api/v1/talks").json()["code"] == "unavailable"
