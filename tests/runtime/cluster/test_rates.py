"""Rate limits in a cluster: a client that uses several nodes gets no more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from roost.core.accounts.guesses import FREE, Guesser
from roost.hosts.pending import drive
from tests.api.account_pages.people import browser, joined, sign_in
from tests.api.routes.test_hooks import post
from tests.api.serving import Served, serving
from tests.conftest import eventually
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres

LIMITS = {"requests_per_second": 0.001, "request_burst": 6}
HOOK_LIMITS = {"hook_requests_per_second": 0.001, "hook_request_burst": 6}


def _admitted(server: Served, user: str) -> int:
    with server.browser(user) as client:
        return [client.get("/api/v1/profiles").status_code for _ in range(7)].count(200)


def test_nodes_share_the_requests_of_a_user(nodes: Nodes) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(one, limits=LIMITS)) for one in nodes.start({"echo": echo}, 3)]
        assert [_admitted(server, "ann") for server in servers] == [2, 2, 2]


def test_nodes_share_the_requests_to_a_hook(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    hook = started[0].hooks.create("ann", event="heard", secret=False)
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(one, limits=HOOK_LIMITS)) for one in started]
        answers = [post(server, hook.path).status_code for server in servers * 3]
    assert answers == [202] * 6 + [429] * 3


def test_a_node_that_leaves_gives_its_share_to_the_others(nodes: Nodes) -> None:
    first, second, third = nodes.start({"echo": echo}, 3)
    with serving(first, limits=LIMITS) as server:
        assert _admitted(server, "ann") == 2
        second.close()
        third.close()
        eventually(lambda: first.asynchronous.count_nodes() == 1)
        assert _admitted(server, "bob") == 6


def test_guesses_of_a_password_count_on_all_nodes(nodes: Nodes) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(one)) for one in nodes.start({"echo": echo}, 3)]
        joined(servers[0], "ann")
        thieves = [stack.enter_context(browser(server)) for server in servers]
        answers = [sign_in(thieves[number % 3], "ann", f"guess {number}").status_code for number in range(8)]
        assert answers == [401] * 5 + [429] * 3
        assert [sign_in(thief, "ann").status_code for thief in thieves] == [429] * 3


def test_of_guesses_on_all_nodes_at_the_same_moment_five_are_accepted(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)

    def guess(number: int) -> float:
        account, node = Guesser(f"account {number // 18}", "", "pair"), started[number % 3]
        return drive(node.asynchronous.users.count_guess(account))

    with ThreadPoolExecutor(9) as pool:
        waits = list(pool.map(guess, range(18 * 10)))
    assert [waits[start : start + 18].count(0) for start in range(0, 180, 18)] == [FREE] * 10


def test_strangers_delay_nobody_at_an_address_that_was_used_on_another_node(nodes: Nodes) -> None:
    first, second = nodes.start({"echo": echo}, 2)
    proxy = {"behind_proxy": True}
    with serving(first, **proxy) as one, serving(second, **proxy) as other:
        joined(one, "ann")
        with browser(one, **{"X-Forwarded-For": "192.0.2.1"}) as home:
            assert sign_in(home, "ann").status_code == 303
        for number in range(6):
            with browser(one, **{"X-Forwarded-For": f"198.51.100.{number}"}) as thief:
                sign_in(thief, "ann", "wrong")
        with browser(other, **{"X-Forwarded-For": "192.0.2.1"}) as home:
            assert sign_in(home, "ann").status_code == 303
        with browser(other, **{"X-Forwarded-For": "192.0.2.2"}) as elsewhere:
            assert sign_in(elsewhere, "ann").status_code == 429
