"""The JavaScript client under Node against a real server: calls, streams, errors, and a network that fails."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

import roost
from roost.sync import HANDLERS
from tests.api.conftest import BRAINS
from tests.api.serving import Served, serving
from tests.client.nodes import CLIENT, end, run, start
from tests.client.proxy import failing
from tests.client.test_hostile import untouched
from tests.client.test_http import answering
from tests.conftest import Open
from tools import javascript_client

CHUNKS = 10_000


async def long(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(CHUNKS):
        yield f"w{number}🐦 "
        if number % 100 == 0:
            await asyncio.sleep(0)


async def noting(turn: roost.Turn) -> AsyncIterator[roost.Chunk | str]:
    yield roost.Chunk("hmm ", channel="thinking")
    yield roost.Chunk("yes", channel="thinking")
    yield "so "
    yield "be it"


@pytest.fixture
def served(service: Open) -> Iterator[Served]:
    with serving(service({**BRAINS, "long": long, "noting": noting})) as running:
        yield running


@pytest.fixture
def token(served: Served) -> str:
    return served.service.tokens.create("ann", "test").secret


def test_the_error_on_an_old_node_names_the_version_that_is_needed(served: Served, token: str) -> None:
    story = """
    delete globalThis.WebSocket;
    tell(await roost.me().catch((error) => error.message));
    """
    (told,) = run(story, served.url, token)
    assert told.endswith("it has no WebSocket: use Node 22 or newer, or a browser")


def test_a_conversation_is_streamed_stopped_and_continued(served: Served, token: str) -> None:
    story = """
    tell(await roost.me());
    const { talkSessionId } = await roost.talks.createTalkSession({ profile: "parrot", title: "Grüße 🐦" });
    await roost.talks.addMessage({ talkSessionId, content: "hello 🐦 there" });
    let text = "", last;
    for await (const change of roost.talks.streamMessages({ talkSessionId })) {
      if (change.message.sender === "agent") text += change.text;
      last = change.message;
    }
    tell(text === last.content, last.content, last.status);
    const endless = (await roost.talks.createTalkSession({ profile: "endless" })).talkSessionId;
    await roost.talks.addMessage({ talkSessionId: endless, content: "go" });
    for await (const { message } of roost.talks.streamMessages({ talkSessionId: endless, follow: true })) {
      if (message.content === "part1 ") break;
    }
    const receipt = await roost.talks.stop({ talkSessionId: endless, wait: 20 });
    const page = await roost.talks.getMessages({ talkSessionId: endless });
    tell(receipt.quiesced !== null, page.messages.at(-1).status, (await roost.talks.listSessions()).length);
    """
    user, *told = run(story, served.url, token)
    assert user == {"userId": "ann", "scopes": ["*"], "role": None}
    assert told == [True, "hello 🐦 there ", "complete", True, "interrupted", 2]


def test_ten_thousand_chunks_with_notes_are_the_stored_text(served: Served, token: str) -> None:
    story = """
    const sent = [];
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) {
      sent.push(JSON.parse(text).method);
      return send.call(this, text);
    };
    for (const profile of ["long", "noting"]) {
      const { talkSessionId } = await roost.talks.createTalkSession({ profile });
      await roost.talks.addMessage({ talkSessionId, content: "go" });
      let whole = "", count = 0, message, middle = null;
      for await (const change of roost.talks.streamMessages({ talkSessionId })) {
        message = change.message;
        if (message.sender !== "agent") continue;
        whole += change.text;
        if (sent.includes("talk.getMessages")) throw new Error("the text was read again");
        if (whole.length > 10_000 && middle === null) middle = { cursor: change.cursor, length: whole.length };
        count++;
      }
      const stored = (await roost.talks.getMessages({ talkSessionId })).messages.at(-1);
      tell(whole === stored.content, message.content === stored.content, stored.content.length, count);
      tell(JSON.stringify(message.notes) === JSON.stringify(stored.notes), stored.notes.length);
      sent.length = 0;
      if (middle === null) continue;
      for await (const change of roost.talks.streamMessages({ talkSessionId, after: middle.cursor })) {
        tell(change.message.content === whole, change.text === whole.slice(middle.length));
        break;
      }
      sent.length = 0;
    }
    """
    whole = "".join(f"w{number}🐦 " for number in range(CHUNKS))
    told = run(story, served.url, token)
    assert told[:3] == [True, True, len(whole.encode("utf-16-le")) // 2]
    assert told[3] > 1
    assert told[4:8] == [True, 0, True, True]
    assert told[8:10] == [True, True]
    assert told[-2:] == [True, 1]


def test_agents_tasks_mail_meetings_and_files_are_used(served: Served, token: str) -> None:
    story = """
    await roost.agents.create({ agentId: "d", config: { profile: "parrot" } });
    const taskId = await roost.tasks.send({ to: "d", prompt: "say this" });
    tell((await roost.tasks.wait({ taskId })).result);
    const arrived = (async () => { for await (const mail of roost.mail.follow()) return mail.subject; })();
    const facts = roost.agents.follow({ agentId: "e" });
    const created = facts.next();
    let made = false;
    do {
      await roost.mail.send({ to: "user:ann", subject: "News", body: "…" });
      await roost.agents.create({ agentId: "e", start: false });
      await roost.agents.delete({ agentId: "e" });
      const both = Promise.all([arrived, created]).then(() => true);
      made = await Promise.race([both, new Promise((later) => setTimeout(later, 50, false))]);
    } while (!made);
    tell(await arrived, (await created).value.about);
    await facts.return();
    const meetingId = await roost.meetings.call({ topic: "Plans", optional: ["agent:d"] });
    await roost.meetings.end({ meetingId, minutes: "fine" });
    for await (const view of roost.meetings.watch({ meetingId })) tell(view.phase);
    const file = await roost.talks.addAttachment({ name: "Grüße 🐦.txt", data: "seeds" });
    tell(file.name, new TextDecoder().decode(await roost.talks.getAttachment(file)));
    tell((await roost.call("agent.list", { limit: 1 })).length);
    """
    told = run(story, served.url, token)
    assert told == ["say this ", "News", "ann/e", "ended", "Grüße 🐦.txt", "seeds", 1]


def test_every_method_of_the_service_is_one_of_the_client(served: Served, token: str) -> None:
    names = run(
        "tell(Object.fromEntries(Object.entries(roost).map(([n, m]) => [n, Object.keys(m)])));", served.url, token
    )
    types = javascript_client.TYPES.read_text()
    [found] = names
    assert len(found) == len(HANDLERS)
    for namespace, methods in found.items():
        assert f"  {namespace}: " in types
        assert [name for name in methods if f"  {name}(" not in types] == []


def test_errors_have_names_codes_and_sentences(served: Served, token: str) -> None:
    bob = served.service.tokens.create("bob", "test", scopes=["mail:read"]).secret
    story = """
    tell(await failure(roost.agents.get({ agentId: "nobody" })), await failure(roost.agents.create({})));
    tell(await failure(roost.call("no.such")), await failure(roost.talks.getAttachment({ attachmentId: "x" })));
    const stream = roost.talks.streamMessages({ talkSessionId: "talk_1" });
    tell(await failure(stream.next()));
    const other = connect(url, { token: given[0] });
    tell(await failure(other.agents.list()));
    other.close();
    const nobody = connect(url, { token: "roost_wrong" });
    tell(await failure(nobody.me()));
    nobody.close();
    tell(await failure((async () => connect("ftp://x"))()), await failure(nobody.me()));
    """
    told = run(story, served.url, token, bob)
    assert [one[:3] for one in told] == [
        [True, "NotFound", "not_found"],
        [True, "Invalid", "invalid"],
        [True, "MethodNotFound", "method_not_found"],
        [True, "NotFound", "not_found"],
        [True, "NotFound", "not_found"],
        [True, "Forbidden", "forbidden"],
        [True, "Forbidden", "forbidden"],
        [True, "Invalid", "invalid"],
        [True, "Unavailable", "unavailable"],
    ]
    assert "agentId" in told[1][3]
    assert "agents:read" in told[5][3]
    assert "token" in told[6][3]
    assert not any(secret in str(told) for secret in (token, bob, "roost_wrong"))


def test_calls_and_streams_are_cancelled_by_a_signal(served: Served, token: str) -> None:
    story = """
    const { talkSessionId } = await roost.talks.createTalkSession({ profile: "parrot" });
    await roost.agents.create({ agentId: "d", start: false });
    const taskId = await roost.tasks.send({ to: "d", prompt: "never" });
    const control = new AbortController();
    const { signal } = control;
    const wait = roost.tasks.wait({ taskId }, { signal });
    const stream = roost.talks.streamMessages({ talkSessionId, follow: true }, { signal }).next();
    await roost.me();
    control.abort();
    tell((await wait.catch((error) => error)).name, (await stream.catch((error) => error)).name);
    tell((await roost.me({ signal }).catch((error) => error)).name, (await roost.me()).userId);
    const waiting = roost.tasks.wait({ taskId });
    const following = roost.mail.follow().next();
    await roost.me();
    roost.close();
    tell((await failure(waiting))[1], (await failure(following))[1], (await failure(roost.me()))[1]);
    """
    assert run(story, served.url, token) == ["AbortError"] * 3 + ["ann"] + ["Unavailable"] * 3


def test_a_slow_reader_is_bounded_and_misses_nothing(served: Served, token: str) -> None:
    service = served.service
    cursor = service.mail.arrivals("ann", after="0").cursor
    for number in range(700):
        service.mail.send("ann", "user:ann", str(number), "x")
    story = """
    const sent = { subscribe: 0, unsubscribe: 0 };
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) {
      sent[JSON.parse(text).method]++;
      return send.call(this, text);
    };
    const seen = [];
    for await (const mail of roost.mail.follow({ after: given[0] })) {
      while (sent.unsubscribe === 0) await new Promise(setImmediate); // until its buffer is full
      seen.push(mail.subject);
      if (seen.length === 700) break;
    }
    tell(seen.every((subject, number) => subject === String(number)), sent.subscribe > 1);
    """
    assert run(story, served.url, token, cursor) == [True, True]


def test_requests_and_streams_survive_lost_connections(served: Served, token: str) -> None:
    story = """
    const { talkSessionId } = await roost.talks.createTalkSession({ profile: "slow" });
    await roost.talks.addMessage({ talkSessionId, content: "go" });
    const texts = {};
    for await (const { message, text, reset } of roost.talks.streamMessages({ talkSessionId })) {
      texts[message.seq] = reset ? text : (texts[message.seq] ?? "") + text;
      if (texts[message.seq] !== message.content) tell("not the whole text");
    }
    tell(talkSessionId, texts);
    """
    with failing(served.url) as proxy:
        proxy.cuts = [600 + 100 * number for number in range(8)]
        talk, texts = run(story, proxy.url, token)
        assert proxy.connections > 2
    stored = served.service.get_messages("ann", talk).messages
    assert texts == {str(message.seq): message.content for message in stored}


def test_a_server_that_stays_away_is_unavailable(served: Served, token: str) -> None:
    with failing(served.url) as proxy:
        url = proxy.url
    told = run(
        "tell(await failure(roost.me()), await failure(roost.mail.follow({ after: '0' }).next()));",
        url,
        token,
        patience=0.2,
    )
    assert [one[1] for one in told] == ["Unavailable"] * 2


def test_a_revoked_token_ends_streams_with_an_error(served: Served) -> None:
    made = served.service.tokens.create("ann", "test")
    story = """
    const mail = failure(roost.mail.follow({ after: "0" }).next());
    await roost.me();
    await roost.tokens.revoke({ tokenId: given[0] });
    tell((await mail)[1], (await failure(roost.me()))[1]);
    """
    assert run(story, served.url, made.secret, made.token.token_id) == ["Forbidden", "Forbidden"]


def test_a_server_that_never_answers_is_unavailable(token: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        [told] = run("tell(await failure(roost.me()));", url, token, patience=0.1)
    assert told[:2] == [True, "Unavailable"]


def test_a_client_works_again_after_the_server_was_away(served: Served, token: str) -> None:
    story = """
    tell((await failure(roost.me()))[1]);
    await new Promise((resolve) => process.stdin.once("data", resolve) && console.log("away"));
    process.stdin.destroy();
    tell((await roost.me()).userId);
    """
    with failing(served.url) as proxy:
        proxy.server = None
        process = start(story, proxy.url, token, patience=0.1)
        assert process.stdout is not None
        assert process.stdout.readline() == "away\n"
        proxy.server = served.url
        assert end(process, "go on\n") == ["Unavailable", "ann"]


def test_the_server_gives_the_client_and_its_types_to_anyone(served: Served) -> None:
    with served.browser(None) as anyone:
        code, types = anyone.get("/client/roost.mjs"), anyone.get("/client/roost.d.mts")
        assert code.content == CLIENT.read_bytes()
        assert code.headers["content-type"].startswith("text/javascript")
        assert types.text == javascript_client.TYPES.read_text()
        again = anyone.get("/client/roost.mjs", headers={"If-None-Match": code.headers["etag"]})
        assert again.status_code == 304
        assert anyone.get("/client/other.mjs").status_code == 404


# --- hostile servers -------------------------------------------------------------------------------------


@contextmanager
def sending(*messages: str | bytes) -> Iterator[str]:
    """A server that answers the first request of each connection with these messages."""

    def talk(connection: ServerConnection) -> None:
        connection.recv()
        for message in messages:
            connection.send(message)
        with suppress(ConnectionClosed):
            connection.recv()

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize("message", ["", "{", b"\xff\x00", "<html>"], ids=repr)
def test_messages_that_are_no_json_are_unavailable(message: str | bytes) -> None:
    story = "tell(await failure(roost.me()), await failure(roost.mail.follow({ after: '0' }).next()));"
    with sending(message) as url:
        told = run(story, url, "secret-token")
    assert [one[:2] for one in told] == [[True, "Unavailable"]] * 2
    assert "secret-token" not in str(told)


def test_messages_that_belong_to_nothing_are_ignored() -> None:
    strange = [
        "5",
        "null",
        "[]",
        "{}",
        '{"id":99,"result":1}',
        '{"method":"event"}',
        '{"method":"ended","params":null}',
    ]
    strange += ['{"method":"event","params":{"subscription":"x"}}', '{"id":{},"error":{}}', '"x"', "[1, [2]]"]
    with sending(*strange, '{"id":1,"result":{"userId":"ann","scopes":[]}}') as url:
        assert run("tell((await roost.me()).userId);", url, "token") == ["ann"]


def test_errors_of_any_form_are_errors() -> None:
    with sending('{"id":1,"error":{"code":5,"message":"x","data":[]}}') as url:
        assert run("tell(await failure(roost.me()));", url, "token") == [[True, "Internal", "internal", "x"]]


def test_the_token_does_not_follow_a_redirect() -> None:
    with untouched() as elsewhere:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/rpc\r\nContent-Length: 0\r\n\r\n".encode()
        with answering(*[moved] * 2) as (url, sent):
            [told] = run("tell(await failure(roost.me()));", url, "secret-token", patience=0)
    assert told[:2] == [True, "Unavailable"]
    assert b"Bearer secret-token" in sent[0]
