"""Hooks: what a request becomes, and what of it can be chosen."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core.talks.messages import at
from roost.core.webhooks import hook as rules
from roost.core.webhooks.hook import Hook
from roost.errors import Invalid


def a_hook(task: str | None = None, headers: tuple[str, ...] = ()) -> Hook:
    return Hook("hook_1", "ann", "n", "e", None, task, headers, True, at(1.0))


@pytest.mark.parametrize(
    ("task", "prompt"),
    [
        (None, "<body {body}>"),
        ("Do {body} now", "Do <body {body}> now"),
        ("Do {body} and {body}", "Do <body {body}> and <body {body}>"),
        ("Do {0} {headers} %s", "Do {0} {headers} %s\n\n<body {body}>"),
    ],
)
def test_a_task_has_the_body_as_text_and_nothing_else_is_replaced(task: str | None, prompt: str) -> None:
    assert rules.prompt(a_hook(task), "<body {body}>") == prompt


@pytest.mark.parametrize(
    ("body", "data"),
    [
        ({"a": 1}, {"a": 1, "_headers": {"x-event": "push"}}),
        ([1], {"body": [1], "_headers": {"x-event": "push"}}),
        ({"_headers": "forged"}, {"_headers": {"x-event": "push"}}),
    ],
)
def test_chosen_headers_are_a_field_of_the_event_that_a_body_cannot_forge(body: Any, data: Any) -> None:
    headers = {"x-event": "push", "authorization": "secret"}
    assert rules.event_data(a_hook(headers=("x-event", "x-missing")), body, headers) == data
    assert rules.event_data(a_hook(), body, headers) == body


@pytest.mark.parametrize(
    "headers",
    ["x-event", ["Authorization"], ["cookie"], ["a b"], [""], [7j], None, [f"x{n}" for n in range(21)]],
)
def test_headers_that_hold_secrets_or_do_not_exist_are_refused(headers: object) -> None:
    with pytest.raises(Invalid):
        rules.checked_headers(headers)


def test_names_of_headers_are_in_lower_case_and_once() -> None:
    assert rules.checked_headers(["X-GitHub-Event", "x-github-event", "X-B"]) == ("x-github-event", "x-b")


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({}, None),
        ({"webhook-id": ""}, None),
        ({"webhook-id": "m", "idempotency-key": "k"}, "m"),
        ({"idempotency-key": "k"}, "k"),
        ({"x-hub-signature-256": "s", "x-github-delivery": "g", "webhook-id": "m"}, "g"),
        ({"x-hub-signature-256": "s", "webhook-signature": "v1,", "x-github-delivery": "g", "webhook-id": "m"}, "m"),
        ({"x-github-delivery": "g"}, None),
    ],
)
def test_the_id_of_a_request_is_that_of_its_scheme(headers: dict[str, str], found: str | None) -> None:
    assert rules.request_id(headers) == found


def test_a_long_id_is_stored_as_its_digest() -> None:
    one, two = (rules.request_id({"webhook-id": "x" * 10_000 + end}) for end in "ab")
    assert one != two
    assert len(str(one)) == 64


def test_a_token_is_random_and_its_digest_is_not_the_token() -> None:
    one, two = rules.new_token(), rules.new_token()
    assert (one != two, len(one), one[:5]) == (True, 48, "hook_")
    assert one not in rules.digest(one)
