"""Script of the guide: its texts, and the logic that chooses them.

All it knows it reads from the talk (`turn.history`) and from the docs, so a restart or an interrupted answer changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roost.brains.guide import doc_search
from roost.brains.guide.offers import offer_for
from roost.bundled_docs import Section
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.talk import title_from

# --- what it says ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of the guide; `called` matches prefixes of words that name it."""

    name: str
    called: str
    first: str
    more: str


TOPICS = (
    Topic(
        "stopping",
        r"stop|interrupt|cancel",
        "You can stop me at any word: press *Stop*, or just send another message. What I have said until then "
        "stays in the talk, marked as interrupted, and I continue with your last message.",
        "A stop has three stages: requested, acknowledged, and stopped. From the second one on "
        "nothing I say reaches you. Even an agent that refuses to end is cut off after about half a second.",
    ),
    Topic(
        "busy policies",
        r"busy|polic|queue|collect|steer|rollback",
        "Each talk has a *busy policy*: what a new message does while I am still answering. The usual one is "
        "`interrupt`. With `queue` I finish first, with `reject` the new message is refused.",
        "There are three more: `rollback` also withdraws what I have said so far, `steer` passes your message to the "
        "current answer, and `collect` waits until no message has arrived for a moment and answers all at once.",
    ),
    Topic(
        "memory",
        r"remember|memor|restart|crash|durab|lost\b|lose\b|history",
        "Nothing you say here is lost. Your message is on the disk before I see it, and my answer is saved while I "
        "write it. Stop the program, start it again, and this talk is still here.",
        "I have no memory of my own. I am shown the whole talk each time, and find your name and our topic in it. "
        "So it makes no difference to me whether the program was started again in between.",
    ),
    Topic(
        "reading along",
        r"tabs?\b|reload|stream|cursor|browser|reading",
        "You see my words as I write them. Open this talk in a second tab, or reload the page in the middle of an "
        "answer: you will find every message once, and the one being written keeps growing.",
        "A reader keeps a *cursor*, the position up to which it has read, and asks for everything after it. Reading "
        "removes nothing, so any number of readers can follow the same talk.",
    ),
    Topic(
        "models",
        r"models?\b|keys?\b|provider|llm|gpt",
        "I am not a language model: I am a short script, so I need no key and no network. Roost runs whatever you "
        "write as a Python function, and that function may call any model you like.",
        "Give your function to `roost.open`, or name it in `roost.toml`, and it can be chosen for a new talk. "
        "It gets the temperature and the instructions of a talk in `turn.profile`.",
    ),
    Topic(
        "brains",
        r"brain|python|function|program|code\b",
        "The code that answers is called a *brain*: a Python function that gets a turn and yields text. "
        "`turn.text` is your last message, and `turn.history` has all messages before it.",
        "A brain may be an async generator, or a plain one that blocks. A plain one gets a thread of its own, and "
        "should check `turn.stopping` regularly. Its `turn.state` is stored with the talk.",
    ),
    Topic(
        "Roost",
        r"roost|explain|what can you do",
        "Roost is a home for agents. You can talk with them, and they work on their own: with mail, tasks, schedules "
        "and meetings. Nothing is lost, and everything can be stopped. It all runs in one process on your own machine.",
        "You can talk on this page, in the terminal with `roost chat`, or from Python with `roost.open()`. "
        "To see agents play, report and plan, type `roost demo` in the terminal.",
    ),
)

QUESTION = "By the way, what is your name?"
GREETING = "Hello{name}! I am the guide, a small script that shows you around Roost."
INTERRUPTED = "I was interrupted; what I had said until then is kept above."
HELP = """Here is what you can say:

- **count**: I count slowly to 100. Interrupt me with another message.
- **long**: I give a long answer. Stop it, or reload the page meanwhile.
- **markdown**: I show a table and some code.
- **fail**: I fail in the middle of an answer, so that you see what happens then.
- **my name is …**, and later **what is my name?**
- Ask about {topics}; then **tell me more about it**.
- **create a first agent**, **schedule a task** or **start a demo meeting**: the page has a button for each."""
MARKDOWN = """### Markdown

Answers may have *emphasis*, **weight**, `code`, lists and quotes:

> The best way to predict what a program does is to run it.

| you send | you see |
| --- | --- |
| `count` | numbers, one after the other |
| `fail` | one sentence, and a way to try again |

```python
async def parrot(turn):
    for word in turn.text.split():
        yield word + " "
```

That was a whole brain."""
FAILING = "I am about to fail, as you asked. What I have said so far stays, and the next message works ag"
TRY = (
    "Try **help**, or **count** and then interrupt me.",
    "Try **markdown**, or ask me about stopping.",
    "Try **long** and reload the page, or ask me about memory.",
)

# --- what it understands --------------------------------------------------------------------------

SHOWS = ("count", "long", "fail")
"""Commands that take a while or fail: skipped if a newer message follows."""

_COMMAND = re.compile(
    r"(?:please |show me |give me |an? )*(help|count|long|markdown|fail)(?:,? (?:please|me|answer|to 100|slowly))*"
)
_WORD = r"[^\W\d_][\w'’-]*"
_NAME = rf"({_WORD}(?: {_WORD}){{0,2}})"
_TELLS_NAME = re.compile(rf"(?i:\b(?:my name is|my name['’]s|call me|i am called))\s+{_NAME}")
_GIVES_NAME = re.compile(rf"(?:(?i:i am|i['’]m|it is|it['’]s|this is)\s+)?{_NAME}\s*[.!]?")
_NO_NAME = re.compile(r"yes|no|nope|ok|okay|sure|why|what|who|how|nothing|nobody|maybe|please|test")
_ASKS_NAME = re.compile(r"\bmy name\b.{0,200}\?|what(?: is|['’]s) my name|who am i\b|(?:know|remember) my name")
_ASKS_MORE = re.compile(r"\b(?:more|about it|is it|does it|did it|go on|continue)\b")
_GREETS = re.compile(r"(?:hi|hey|hello|hallo|good (?:morning|day|evening)|greetings)\b.{0,30}")
_THANKS = re.compile(r"(?:thanks|thank you|thx|bye|goodbye|see you)\b.{0,30}")
NAME_LENGTH = 40
REMEMBERED = 400
"""Messages of the history that are read: more would make long talks slow."""


@dataclass(frozen=True, slots=True)
class GuideMemory:
    """Facts read from a talk. `named`: the last message gave the name."""

    met: bool = False
    asked: bool = False
    name: str | None = None
    named: bool = False
    topic: Topic | None = None
    interrupted: bool = False

    @property
    def address(self) -> str:
        return f", {self.name}" if self.name else ""


@dataclass(frozen=True, slots=True)
class GuideReply:
    """Reply: `slowness` times as slow as usual; `asks` if a question may follow; `fails` instead of ending."""

    text: str
    asks: bool = True
    slowness: float = 1.0
    fails: bool = False


def recall(messages: Iterable[Message]) -> GuideMemory:
    """Read the facts from a talk."""
    met = asked = just_asked = interrupted = False
    name = told = topic = None
    for message in messages:
        if message.sender is Sender.AGENT:
            met = True
            just_asked = QUESTION in message.content
            asked = asked or just_asked
            interrupted = message.status is Status.INTERRUPTED
        else:
            told = name_in(message.content, just_asked=just_asked)
            name = told or name
            topic = topic_in(message.content) or topic
    return GuideMemory(met, asked, name, told is not None, topic, interrupted)


def name_in(said: str, *, just_asked: bool) -> str | None:
    """Return the name that the user gives, if any; a single word counts only right after the question."""
    if found := _TELLS_NAME.search(said):
        first, *rest = found[1].split(" ")
        rest = rest[: next((n for n, word in enumerate(rest) if word == "I" or not word[0].isupper()), None)]
    elif just_asked and not _is_understood(said) and (found := _GIVES_NAME.fullmatch(said.strip())):
        first, *rest = found[1].split(" ")
        if _NO_NAME.fullmatch(_plain(first)) or not all(word[0].isupper() for word in rest):
            return None
    else:
        return None
    return " ".join([first[0].upper() + first[1:], *rest])[:NAME_LENGTH]


def command_in(said: str) -> str | None:
    found = _COMMAND.fullmatch(_plain(said))
    return found[1] if found else None


def topic_in(said: str) -> Topic | None:
    plain = _plain(said)
    return next((topic for topic in TOPICS if re.search(rf"\b(?:{topic.called})", plain)), None)


def answer(said: str, memory: GuideMemory, number: int) -> GuideReply:
    """Return the reply to a message, given the talk up to it, itself included."""
    plain, hint = _plain(said), TRY[number % len(TRY)]
    topic = topic_in(said)
    if command := command_in(said):
        return _COMMANDS[command]
    if memory.named:
        return GuideReply(f"Nice to meet you{memory.address}! I will remember that. {hint}")
    if _ASKS_NAME.search(said.casefold()):
        return GuideReply(f"Your name is {memory.name}." if memory.name else "You have not told me your name yet.")
    if _ASKS_MORE.search(plain):
        return _more(topic or memory.topic)
    if topic is not None:
        return GuideReply(topic.first + _read_more(said) + _offered(said))
    if _GREETS.fullmatch(plain):
        return GuideReply(f"Good to see you{memory.address}. {hint}" if memory.met else f"{TOPICS[-1].first} {hint}")
    if _THANKS.fullmatch(plain):
        return GuideReply(f"You are welcome{memory.address}. Nothing of this is lost when you leave.")
    if sections := doc_search.find(said):
        return GuideReply(_from_docs(sections) + _offered(said))
    if offer := offer_for(said):
        return GuideReply(str(offer))
    excerpt = title_from(said) if plain else "…"
    return GuideReply(f"I am only a script, and have no answer to “{excerpt}”. {hint}")


def script(history: Sequence[Message], new: Sequence[Message]) -> list[GuideReply]:
    """Return the replies, paragraph by paragraph."""
    before, now = recall(history), recall([*history, *new])
    said = []
    if not before.met:
        said.append(GuideReply(GREETING.format(name=now.address)))
    elif before.interrupted:
        said.append(GuideReply(INTERRUPTED))
    for number, message in enumerate(new, start=1):
        if message is new[-1] or command_in(message.content) not in SHOWS:
            so_far = [*history, *new[:number]]
            said.append(answer(message.content, recall(so_far), len(so_far)))
    if said and said[-1].asks and now.name is None and not now.asked:
        said.append(GuideReply(QUESTION))
    return said


def _from_docs(sections: Sequence[Section]) -> str:
    """Return the beginning of the best section, and links to all of them."""
    best, *others = sections
    text = f"{best.excerpt}\n\nFrom the docs: {best.link}" if best.excerpt else f"See {best.link}"
    return f"{text}. Also: {', '.join(one.link for one in others)}." if others else f"{text}."


def _read_more(said: str) -> str:
    sections = doc_search.find(said)
    return f"\n\nIn the docs: {', '.join(one.link for one in sections)}." if sections else ""


def _offered(said: str) -> str:
    offer = offer_for(said)
    return f"\n\n{offer}" if offer else ""


def _more(topic: Topic | None) -> GuideReply:
    if topic is None:
        return GuideReply(f"More about what? We have not talked about anything yet: ask me about {_listed()}.")
    return GuideReply(f"More about {topic.name}: {topic.more}")


def _plain(said: str) -> str:
    return " ".join(said.casefold().split()).strip(" .!?,…*`\"'")


def _is_understood(said: str) -> bool:
    plain = _plain(said)
    known = (_GREETS.fullmatch(plain), _THANKS.fullmatch(plain), _ASKS_MORE.search(plain), topic_in(said))
    return command_in(said) is not None or any(known)


def _listed() -> str:
    names = [topic.name for topic in TOPICS]
    return f"{', '.join(names[:-1])} or {names[-1]}"


_COMMANDS = {
    "help": GuideReply(HELP.format(topics=_listed())),
    "markdown": GuideReply(MARKDOWN),
    "count": GuideReply(", ".join(map(str, range(1, 101))) + ".", asks=False, slowness=10),
    "long": GuideReply("\n\n".join(f"### {t.name.capitalize()}\n\n{t.first}\n\n{t.more}" for t in TOPICS), asks=False),
    "fail": GuideReply(FAILING, asks=False, fails=True),
}
