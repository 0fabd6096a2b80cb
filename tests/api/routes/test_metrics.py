"""P3: the numbers for Prometheus, and who may read them."""

from __future__ import annotations

import re

import httpx
import pytest

import roost
from roost.core.monitoring.metrics import Histogram, Metric, MetricKind
from roost.protocol import prometheus
from tests.api.conftest import parrot
from tests.api.serving import Served, serving
from tests.conftest import Open

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? (-?[0-9.e+-]+)')


async def parrot_or_not(turn: roost.Turn):  # type: ignore[no-untyped-def]
    if "sk-secret" in turn.text:
        raise RuntimeError("sk-secret in an error")
    async for word in parrot(turn):
        yield word


def value(text: str, line: str) -> float:
    [found] = [one for one in text.splitlines() if one.startswith(f"{line} ")]
    return float(found.rpartition(" ")[2])


def test_every_line_is_what_prometheus_reads(served: Served) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    task = served.service.tasks.send("ann", "d", "hello")
    served.service.tasks.wait("ann", task)
    with served.command_line() as program:
        reply = program.get("/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = reply.text.splitlines()
    assert [line for line in lines if not line.startswith("# ") and not LINE.fullmatch(line)] == []
    assert value(reply.text, 'roost_runs_total{kind="task",outcome="done"}') == 1
    assert value(reply.text, "roost_awake_agents") == 1


def test_a_histogram_has_cumulative_buckets_up_to_infinity() -> None:
    histogram = Histogram((0.5, 1.0))
    for seconds in (0.1, 0.7, 0.7, 9.0):
        histogram.add(seconds)
    metric = Metric("m", MetricKind.HISTOGRAM, "Help.", {("a",): histogram}, ("kind",))
    assert prometheus.text([metric]) == (
        "# HELP m Help.\n# TYPE m histogram\n"
        'm_bucket{kind="a",le="0.5"} 1\nm_bucket{kind="a",le="1"} 3\nm_bucket{kind="a",le="+Inf"} 4\n'
        'm_sum{kind="a"} 10.5\nm_count{kind="a"} 4\n'
    )


def test_a_label_cannot_break_its_line() -> None:
    metric = Metric("m", MetricKind.COUNTER, "Help.", {('a"\n\\',): 1}, ("kind",))
    assert prometheus.text([metric]).splitlines()[2] == 'm{kind="a\\"\\n\\\\"} 1'


def test_programs_on_this_machine_and_the_local_user_read_them(served: Served) -> None:
    assert httpx.get(f"{served.url}/metrics", trust_env=False).status_code == 200
    with served.browser("local") as local, served.command_line() as program:
        assert local.get("/metrics").status_code == 200
        assert program.get("/metrics").status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "Origin", "Sec-Fetch-Site"])
def test_metrics_are_not_served_through_a_proxy_or_to_a_page(served: Served, header: str) -> None:
    reply = httpx.get(f"{served.url}/metrics", headers={header: "x"}, trust_env=False)
    assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")


def test_other_users_read_none(served: Served) -> None:
    with served.browser("ann") as ann:
        assert ann.get("/metrics").status_code == 403


def test_the_numbers_for_programs_are_the_local_users(served: Served) -> None:
    with served.browser("local") as local, served.command_line() as program, served.browser("ann") as ann:
        for allowed in (local, program):
            told = allowed.get("/api/v1/metrics").json()["metrics"]
            assert "roost_awake_agents" in [metric["name"] for metric in told]
        assert ann.get("/api/v1/metrics").status_code == 403
    assert httpx.get(f"{served.url}/api/v1/metrics", trust_env=False).status_code == 401


def test_no_name_no_text_and_no_secret_is_in_the_numbers(service: Open) -> None:
    with serving(service({"parrot": parrot_or_not})) as served:
        served.service.agents.create("ann-sk-secret", "d-sk-secret", profile="parrot", max_attempts=1)
        task = served.service.tasks.send("ann-sk-secret", "d-sk-secret", "my sk-secret")
        assert served.service.tasks.wait("ann-sk-secret", task).status == "failed"
        with served.command_line() as program:
            text = program.get("/metrics").text
    assert value(text, 'roost_errors_total{fault="internal"}') == 1
    assert value(text, "roost_dead_letters_total") == 1
    assert "sk-secret" not in text
