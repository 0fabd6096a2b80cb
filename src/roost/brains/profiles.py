"""Profiles and the brains behind them: built in, given as functions, or named in the settings."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

from roost.brains import defaults
from roost.brains.files import Files
from roost.brains.gguf import Gguf
from roost.brains.guide import guide
from roost.brains.scripted import echo
from roost.errors import BrainFailed, Invalid
from roost.ports import Brain, Host, Profile

if TYPE_CHECKING:
    from roost.brains.llm import Llm

ADK = "adk"
LLM = "llm"
BUILT_IN: dict[str, Brain] = {"guide": guide, "echo": echo}
LOCAL = "gguf"
_ABOUT = {
    LOCAL: "A very small model on this machine: it chats, needs no key, and is often wrong.",
    "guide": "Explains Roost and shows what it can do; needs no model.",
    "echo": "Says what you said; needs no model.",
}

_LABELS = {LOCAL: "SmolLM2 135M on this machine"}

_DEMOS = {f"demo-{name}": f"roost.brains.demos:{name}" for name in ("player", "host", "reporter", "planner", "worker")}
"""Profiles that are there for `roost demo`, and offered to nobody."""


class Shelf:
    """All profiles of one Roost by name."""

    def __init__(
        self,
        given: Mapping[str, Brain] | None = None,
        configured: Sequence[Profile] = (),
        default: str | None = None,
        *,
        reload: bool = False,
        models: Path = Path("models"),
    ) -> None:
        self._written: dict[str, int] | None = {} if reload else None
        self._brains: dict[str, Brain] = {**BUILT_IN, **_checked(given or {})}
        self._unprepared = {name for name, brain in (given or {}).items() if hasattr(brain, "prepare")}
        """Given brains that want a thread for a moment before they are first asked."""
        self._profiles = {name: _built_in(name) for name in _ABOUT}
        self._profiles |= {name: Profile(name, name) for name in given or {}}
        self._profiles |= {profile.name: profile for profile in configured}
        self._files = Files(models, [profile.model for profile in configured])
        self._local: Gguf | None = None
        self._llm: Llm | None = None
        problem = self._files.why_not()
        self.without_model = str(problem) if problem else None
        asked = defaults.found()
        self._profiles = {profile.name: profile for profile in asked} | self._profiles
        better = [*(given or {}), *(p.name for p in (*configured, *asked))]
        self.default = self.profile(default).name if default else [*better, "guide" if problem else LOCAL][0]
        self.is_chosen = bool(default or better)
        if not self.is_chosen and not problem:
            self._advise(f"For a better one, {defaults.better()}.")
        elif not self.is_chosen and problem:
            self._advise(f"There is no model to talk with yet: {problem.advice}; or {defaults.better()}.")

    def _advise(self, advice: str) -> None:
        """Nothing better was found: say how to get it."""
        chosen = self._profiles[self.default]
        self._profiles[self.default] = replace(chosen, description=f"{chosen.description} {advice}")

    def open(self, host: Host) -> None:
        self._local = Gguf(host, self._files)

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
        for brain in list(self._brains.values()):
            if (close := getattr(brain, "close", None)) is not None:
                close()

    def names(self) -> Sequence[Profile]:
        """The default first, then as they were named; without the model on this machine, if there is none."""
        hidden = _built_in(LOCAL) if self.without_model else None
        shown = (profile for profile in self._profiles.values() if profile != hidden or profile.name == self.default)
        return sorted(shown, key=lambda p: p.name != self.default)

    def profile(self, name: str) -> Profile:
        found = self._profiles.get(str(name))
        if found is None and name in _DEMOS:
            return Profile(name, _DEMOS[name])
        if found is None:
            known = ", ".join(sorted(one.name for one in self.names()))
            raise Invalid(f"there is no profile {name!r:.80}: use one of {known}")
        return found

    def has(self, name: str) -> bool:
        return name in self._profiles or name in _DEMOS

    def check(self, profile: Profile) -> None:
        """Raise BrainFailed if it is clear that it cannot think; without all that it takes to ask a provider."""
        if profile.brain == LLM:
            if find_spec("pydantic_ai") is None:
                raise _needs_llm()
            defaults.key_of(profile)
        elif self.loaded(profile) is None:
            self.load(profile)

    def loaded(self, profile: Profile) -> Brain | None:
        if profile.brain == LOCAL and self._local is not None and self._local.is_prepared(profile):
            return self._local
        key = _key(profile)
        return None if key in self._unprepared else self._brains.get(key)

    def load(self, profile: Profile) -> Brain:
        if not profile.brain:
            raise BrainFailed(f"the profile {profile.name!r} does not exist any more", kind="profile")
        if profile.brain == LOCAL and self._local is not None:
            self._local.prepare(profile)
            return self._local
        if (given := self._brains.get(profile.brain)) is not None:
            given.prepare()  # type: ignore[union-attr]
            self._unprepared.discard(profile.brain)
            return given
        brain = self._found(profile)
        if self._written is None:  # else it is looked at again each time
            self._brains[_key(profile)] = brain
        return brain

    def _found(self, profile: Profile) -> Brain:
        if profile.brain == ADK:
            return _adk(profile, self._written)
        if profile.brain == LLM:
            self._llm = self._llm or _llm()
            self._llm.prepare(profile)
            return self._llm
        return _imported(profile.brain, self._written)


def _built_in(name: str) -> Profile:
    return Profile(name, name, _ABOUT[name], label=_LABELS.get(name, ""))


def _checked(given: Mapping[str, Brain]) -> Mapping[str, Brain]:
    for name, brain in given.items():
        if not callable(brain):
            raise Invalid(f"the brain {name!r} must be a generator function, not {type(brain).__name__}")
        if inspect.iscoroutinefunction(brain):
            raise Invalid(f"the brain {name!r} returns its answer: have it `yield` it, as a generator function does")
    return given


def _key(profile: Profile) -> str:
    """Under what its brain is kept: one an agent, and one a provider."""
    if profile.brain == LLM:
        return f"{LLM} {(profile.model or '').partition(':')[0]}"
    return f"{ADK} {profile.agent}" if profile.brain == ADK else profile.brain


def _llm() -> Llm:
    try:
        from roost.brains.llm import Llm  # an extra, and slow
    except ImportError as error:
        raise _needs_llm() from error
    return Llm()


def _needs_llm() -> BrainFailed:
    advice = "pip install 'roost[llm]', and start Roost again"
    return BrainFailed(f"models of providers need the extra: {advice}", kind="extra", advice=advice)


def _adk(profile: Profile, files: dict[str, int] | None) -> Brain:
    if not profile.agent:
        raise BrainFailed(
            f"the profile {profile.name!r} names no agent: set agent to module:root_agent, or to a folder", kind="brain"
        )
    try:
        from roost.brains.adk import Adk, in_folder  # an extra, and slow
    except ImportError as error:
        advice = "pip install 'roost[adk]', and start Roost again"
        raise BrainFailed(f"agents of the ADK need the extra: {advice}", kind="extra", advice=advice) from error
    brain = Adk(_named(profile.agent, files) if ":" in profile.agent else in_folder(profile.agent), profile.agent)
    brain.prepare()
    return brain


def _imported(name: str, files: dict[str, int] | None) -> Brain:
    """The function that `module:function` names; with `files`, as its file is now."""
    brain = _named(name, files)
    if not callable(brain):
        raise BrainFailed(f"the brain {name!r} is not a function", kind="brain")
    return brain  # type: ignore[no-any-return]


def _named(name: str, files: dict[str, int] | None) -> Any:
    module, _, function = name.partition(":")
    if not function:
        known = ", ".join([*BUILT_IN, LLM, ADK, LOCAL])
        raise BrainFailed(f"there is no brain {name!r}: use {known} or module:function", kind="brain")
    try:
        loaded = importlib.import_module(module)
        if files is not None:
            loaded = _fresh(loaded, files)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise BrainFailed(f"the brain {name!r} cannot be loaded: {_why(error, module)}", kind="brain") from error
    brain = getattr(loaded, function, None)
    if brain is None:
        where = loaded.__file__ or "it"
        raise BrainFailed(f"the brain {name!r} cannot be loaded: {where} has no {function!r}", kind="brain")
    return brain


def is_absent(error: BaseException | None, module: str) -> TypeGuard[ModuleNotFoundError]:
    """Whether the module itself was not found, and not one that it imports."""
    return isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")


def _why(error: BaseException, module: str) -> str:
    """What is wrong, and where: that the module is not there is another thing than that it is broken."""
    if is_absent(error, module):
        return f"there is no module {error.name!r} in the folder of roost.toml, nor where Python looks"
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    own = [frame for frame in frames if frame.filename != __file__]
    return f"{own[-1].filename}, line {own[-1].lineno}: {what}" if own else what


def _fresh(module: ModuleType, files: dict[str, int]) -> ModuleType:
    """The module, loaded again if its file was written since it was last asked for."""
    if module.__file__ is None:
        return module
    written = Path(module.__file__).stat().st_mtime_ns
    if files.get(module.__name__, written) != written:
        module = importlib.reload(module)
    files[module.__name__] = written
    return module
