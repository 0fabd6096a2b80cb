"""Models: each profile, and each agent of the user."""

from __future__ import annotations

import openai
import pytest

from tests.api.openai.clients import USER, said
from tests.api.serving import Served


def test_profiles_and_ones_own_agents_are_models(served: Served, client: openai.OpenAI) -> None:
    served.service.agents.create(USER, "d", profile="parrot")
    served.service.agents.create("ann", "hers", profile="parrot")
    found = {model.id: model.owned_by for model in client.models.list()}
    assert found == {profile.name: "roost" for profile in served.service.profiles()} | {"agent:d": USER}
    assert client.models.retrieve("agent:d").id == "agent:d"
    assert client.models.retrieve("parrot").object == "model"


@pytest.mark.parametrize("model", ["nope", "agent:nobody", "agent:hers", "agent:ann/hers", "a/b/c"])
def test_another_model_is_not_found(served: Served, client: openai.OpenAI, model: str) -> None:
    served.service.agents.create("ann", "hers", profile="parrot")
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve(model)
    assert missing.value.code == "model_not_found"


def test_an_agent_answers_in_a_talk_of_its_own(served: Served, client: openai.OpenAI) -> None:
    served.service.agents.create(USER, "d", profile="parrot")
    answer = client.chat.completions.create(model="agent:d", messages=said("a", "b", "c"))
    assert answer.choices[0].message.content == "c "
    talk = served.service.create_talk_session(USER, agent="d")
    for name in ("agent:d", f"agent:{USER}/d"):
        client.chat.completions.create(model=name, messages=said("x"), extra_headers={"Roost-Talk": talk})
    assert len(served.service.get_messages(USER, talk).messages) == 4
    with pytest.raises(openai.BadRequestError, match="'agent:d'"):
        client.chat.completions.create(model="parrot", messages=said("x"), extra_headers={"Roost-Talk": talk})


def test_a_shared_agent_of_another_user_answers_by_its_full_name(served: Served, client: openai.OpenAI) -> None:
    served.service.agents.create("ann", "hers", profile="parrot", shared=True)
    answer = client.chat.completions.create(model="agent:ann/hers", messages=said("x"))
    assert answer.choices[0].message.content == "x "


def test_many_models_are_read_in_pages(served: Served, client: openai.OpenAI) -> None:
    served.service.agents.create_many(USER, [f"a{number:04}" for number in range(1_200)], profile="parrot")
    found: list[str] = []
    has_more = True
    while has_more:
        query = {"after": found[-1]} if found else {}
        page = client.models.list(extra_query=query)
        found += [model.id for model in page.data]
        has_more = page.has_more  # type: ignore[attr-defined]
    assert len(found) == len(set(found)) == 1_200 + len(served.service.profiles())
    small = client.models.list(extra_query={"limit": 2})
    assert [model.id for model in small.data] == found[:2]
    rest = client.models.list(extra_query={"limit": 500, "after": found[1]})
    assert rest.data[0].id == found[2]


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 501}, {"limit": "x"}, {"after": "nope"}, {"after": "agent:\n"}]
)
def test_wrong_pages_are_bad_requests(client: openai.OpenAI, query: dict[str, object]) -> None:
    with pytest.raises(openai.BadRequestError):
        client.models.list(extra_query=query)
