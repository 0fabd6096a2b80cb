"""The server answers as its OpenAPI description says, whatever is sent: no failure, and no undocumented answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from roost import Limits
from tests.api.conftest import BRAINS, deploy
from tests.api.serving import serving
from tests.conftest import Open

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FAST = Limits(
    drain=0.5,
    request_burst=1e9,
    requests_per_second=1e9,
    address_request_burst=1e9,
    address_requests_per_second=1e9,
)


def test_every_answer_is_as_described(service: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the tool keeps files in the working directory
    asked = []
    with serving(service(BRAINS, tools=[deploy], limits=FAST), limits=FAST) as served:
        token = {"Authorization": f"Bearer {served.identity.token}"}
        schema = schemathesis.openapi.from_url(f"{served.url}/api/v1/openapi.json", headers=token)
        for found in schema.exclude(path_regex="/(stream|wait|replay)$").get_all_operations():  # these wait
            assert isinstance(found, Ok)
            operation = found.ok()

            @hypothesis.settings(max_examples=8, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
            @hypothesis.given(case=operation.as_strategy())
            def answered(case: schemathesis.Case[Any]) -> None:
                case.call_and_validate(checks=CHECKS, headers=token)

            answered()
            asked.append(operation.label)
        assert served.service.health().problem is None
    assert len(asked) > 100
