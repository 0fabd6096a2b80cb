"""Rates of requests that are allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.api.limits import rate_limits
from roost.api.limits.rate_limits import RateLimit
from tests.api.serving import serving
from tests.conftest import Open


def test_a_user_above_the_rate_limit_has_to_wait_and_others_do_not(service: Open) -> None:
    limits = {"requests_per_second": 0.001, "request_burst": 5}
    with serving(service(), limits=limits) as served, served.browser("ann") as ann, served.browser("bob") as bob:
        assert [ann.get("/api/v1/profiles").status_code for _ in range(7)] == [200] * 5 + [429] * 2
        assert bob.get("/api/v1/profiles").status_code == 200


def test_new_users_of_one_address_share_what_the_address_has(service: Open) -> None:
    limits = {"address_requests_per_second": 0.001, "address_request_burst": 5}
    with serving(service(), limits=limits) as served:
        answers = []
        for number in range(7):
            with served.browser(f"visitor {number}") as fresh:
                answers.append(fresh.get("/api/v1/profiles").status_code)
        with served.command_line() as own:
            assert own.get("/api/v1/profiles").status_code == 200
    assert answers == [200] * 5 + [429] * 2


@given(st.lists(st.floats(0, 5), max_size=200))
def test_no_user_gets_more_than_the_rate_and_the_burst(pauses: list[float]) -> None:
    now = [0.0]
    asked = RateLimit(lambda: now[0], per_second=2, burst=5)
    admitted = 0
    for pause in pauses:
        now[0] += pause
        admitted += asked.admits("ann")
    assert admitted <= 5 + 2 * now[0] + 1e-6


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 2)), max_size=200))
def test_nodes_together_admit_no_more_than_one_alone(requests: list[tuple[float, int]]) -> None:
    now = [0.0]
    nodes = [RateLimit(lambda: now[0], per_second=2, burst=6, nodes=lambda: 3) for _ in range(3)]
    admitted = 0
    for pause, node in requests:
        now[0] += pause
        admitted += nodes[node].admits("ann")
        nodes[node].charge("bob", 1)
    assert admitted <= 6 + 2 * now[0] + 1e-6


def test_the_share_of_a_node_follows_the_number_of_nodes() -> None:
    now, count = [0.0], [1]
    asked = RateLimit(lambda: now[0], per_second=6, burst=6, nodes=lambda: count[0])
    assert asked.admits("ann")
    count[0] = 3
    assert [asked.admits("ann") for _ in range(3)] == [True, True, False]
    now[0] = 1.0
    assert [asked.admits("ann") for _ in range(3)] == [True, True, False]
    count[0] = 1
    now[0] = 2.0
    assert [asked.admits("ann") for _ in range(7)] == [True] * 6 + [False]


def test_a_limit_smaller_than_the_number_of_nodes_still_admits_requests() -> None:
    asked = RateLimit(lambda: 0.0, per_second=1, burst=2, nodes=lambda: 5)
    assert [asked.admits("ann") for _ in range(2)] == [True, False]


def test_the_bucket_fills_up_again() -> None:
    now = [0.0]
    asked = RateLimit(lambda: now[0], per_second=1, burst=1)
    assert asked.admits("ann")
    assert not asked.admits("ann")
    now[0] = 1.0
    assert asked.admits("ann")


def test_it_remembers_a_bounded_number_of_askers() -> None:
    asked = RateLimit(lambda: 0.0, per_second=1, burst=1)
    for number in range(rate_limits.MOST_KEYS + 10):
        asked.admits(f"visitor {number}")
    assert len(asked._buckets) == rate_limits.MOST_KEYS
