"""Registry of profiles and their brains: built in, given as functions, or named in the settings."""

from __future__ import annotations

import importlib
import inspect
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

from roost.brains import defaults, single_flight
from roost.brains.gguf import Gguf
from roost.brains.guide import guide
from roost.brains.model_files import DEFAULT, ModelFiles
from roost.brains.scripted import echo
from roost.brains.single_flight import SingleFlight
from roost.core.values.secrets import Redactor
from roost.errors import BrainFailed, Invalid
from roost.ports import Brain, Host, Profile
from roost.ports.profiles import TINY

if TYPE_CHECKING:
    from roost.brains.llm import Llm

ADK = "adk"
LLM = "llm"
BUILT_IN: dict[str, Brain] = {"guide": guide, "echo": echo}
LOCAL = "gguf"
_ABOUT = {
    LOCAL: "A very small model on this machine, for trying things out. It needs no key, and is often wrong.",
    "guide": "Explains Roost and answers questions about it from the docs. It is a script, not a model.",
    "echo": "Says what you said; needs no model.",
}

_LABELS = {LOCAL: TINY, "guide": "Guide"}

_ACTORS = ("player", "host", "reporter", "planner", "worker", "notebook")
_GUIDES = ("planner", "buyer", "watcher")
_DEMOS = {f"demo-{name}": f"roost.demos.brains:{name}" for name in _ACTORS}
_DEMOS |= {f"tour-{name}": f"roost.demos.tour_brains:{name}" for name in _GUIDES}
"""Profiles for demos and for the first agent of a user, which are not listed."""


class ProfileRegistry:
    """Profiles of one Roost by name."""

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
        self._flights = SingleFlight(nullcontext)
        self._redactor = Redactor()
        self._llm_lock: AbstractContextManager[object] = nullcontext()
        self._brains: dict[str, Brain] = {**BUILT_IN, **_checked(given or {})}
        self._unprepared = {name for name, brain in (given or {}).items() if hasattr(brain, "prepare")}
        """Given brains whose `prepare` must run on a thread before the first turn."""
        self._profiles = {name: _built_in(name) for name in _ABOUT}
        self._profiles |= {name: Profile(name, name) for name in given or {}}
        self._profiles |= {profile.name: _labelled(profile) for profile in configured}
        self._files = ModelFiles(models, [profile.model for profile in configured])
        self._local: Gguf | None = None
        self._llm: Llm | None = None
        asked = defaults.found()
        self._profiles = {profile.name: profile for profile in asked} | self._profiles
        better = [*(given or {}), *(p.name for p in (*configured, *asked))]
        self.default = self.profile(default).name if default else [*better, "guide"][0]
        self.is_chosen = bool(default or better)
        if not self.is_chosen:
            self._advise(f"To talk with a model, {defaults.better()}.")

    @property
    def without_model(self) -> str | None:
        """Return why no local model is available; it may be downloaded while the program runs."""
        problem = self._files.why_not()
        return str(problem) if problem else None

    def _advise(self, advice: str) -> None:
        """Add advice to the description of the default profile."""
        chosen = self._profiles[self.default]
        self._profiles[self.default] = replace(chosen, description=f"{chosen.description} {advice}")

    def open(self, host: Host, redactor: Redactor) -> None:
        self._redactor = redactor
        self._flights = SingleFlight(host.lock)
        self._llm_lock = host.lock()
        self._local = Gguf(host, self._files)

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
        for brain in list(self._brains.values()):
            if (close := getattr(brain, "close", None)) is not None:
                close()

    def names(self) -> Sequence[Profile]:
        """Return the profiles, the default first; without the local model if it is not installed."""
        hidden = _built_in(LOCAL) if self.without_model else None
        shown = (profile for profile in self._profiles.values() if profile != hidden or profile.name == self.default)
        return sorted(shown, key=lambda p: p.name != self.default)

    def add(self, profile: Profile) -> Profile:
        """Add a profile while Roost runs; return the existing one if there is one of this name."""
        known = dict(self._profiles)  # replaced as a whole: others may be reading it
        profile = known.setdefault(profile.name, profile)
        if not self.is_chosen:
            known[self.default] = _built_in(self.default)  # without the advice
            self.default, self.is_chosen = profile.name, True
        self._profiles = known
        return profile

    def profile(self, name: str) -> Profile:
        found = self._profiles.get(str(name))
        if found is None and name in _DEMOS:
            return Profile(name, _DEMOS[name])
        if found is None:
            known = ", ".join(sorted(profile.name for profile in self.names()))
            raise Invalid(f"there is no profile {name!r:.80}: use one of {known}")
        return found

    def has(self, name: str) -> bool:
        return name in self._profiles or name in _DEMOS

    def check(self, profile: Profile) -> None:
        """Raise BrainFailed if the brain clearly cannot run; loads no libraries of providers."""
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
        """Return the brain of a profile, loaded once for all threads that ask at the same time; may take long.

        Raises BrainFailed to each of them if it cannot be loaded; the next call tries again.
        """
        if not profile.brain:
            raise BrainFailed(f"the profile {profile.name!r} does not exist any more", kind="profile")
        if profile.brain == LOCAL and self._local is not None:
            return self._flights.do(f"{LOCAL} {profile.model} {profile.window}", lambda: self._load_local(profile))
        return self._flights.do(_key(profile), lambda: self._load(profile))

    def _load_local(self, profile: Profile) -> Brain:
        assert self._local is not None
        self._local.prepare(profile)
        return self._local

    def _load(self, profile: Profile) -> Brain:
        key = _key(profile)
        if (found := self._brains.get(key)) is None:
            found = self._learning(profile)
            if self._written is None:  # with `reload` it is checked each time
                self._brains[key] = found
        elif key in self._unprepared:
            found.prepare()  # type: ignore[union-attr]
            self._unprepared.discard(key)
        return found

    def _learning(self, profile: Profile) -> Brain:
        """Import or create a brain; variables that it adds to the environment may be secret."""
        try:
            return self._found(profile)
        finally:
            self._redactor.learn(os.environ)

    def _found(self, profile: Profile) -> Brain:
        if profile.brain == ADK:
            return _adk(profile, self._module, self._redactor)
        if profile.brain == LLM:
            return self._prepared_llm(profile)
        return _imported(profile.brain, self._module)

    def _prepared_llm(self, profile: Profile) -> Brain:
        """Prepare one provider at a time: their libraries build types on first use, which two threads must not do."""
        with self._llm_lock:
            self._llm = self._llm or _llm()
            self._llm.prepare(profile)
            return self._llm

    def _module(self, name: str) -> ModuleType:
        """Import a module; with `reload`, as its file is now. Functions of one module share the import."""

        def load() -> ModuleType:
            module = importlib.import_module(name)
            return module if self._written is None else _fresh(module, self._written)

        return self._flights.do(f"module {name}", load)


def _built_in(name: str) -> Profile:
    return Profile(name, name, _ABOUT[name], label=_LABELS.get(name, ""))


def _labelled(profile: Profile) -> Profile:
    """Return a profile of the settings; one with the very small model says so."""
    is_tiny = profile.brain == LOCAL and profile.model in (None, DEFAULT) and not profile.label
    return replace(profile, label=f"{profile.name}: {TINY}") if is_tiny else profile


def _checked(given: Mapping[str, Brain]) -> Mapping[str, Brain]:
    for name, brain in given.items():
        if not callable(brain):
            raise Invalid(f"the brain {name!r} must be a generator function, not {type(brain).__name__}")
        if inspect.iscoroutinefunction(brain):
            raise Invalid(f"the brain {name!r} returns its answer: use `yield`, as a generator function does")
    return given


def _key(profile: Profile) -> str:
    """Return the key of its brain: one per agent, and one per provider."""
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
    return BrainFailed(f"models of providers need an extra: {advice}", kind="extra", advice=advice)


def _adk(profile: Profile, module_of: Callable[[str], ModuleType], redactor: Redactor) -> Brain:
    if not profile.agent:
        raise BrainFailed(
            f"the profile {profile.name!r} names no agent: set agent to module:root_agent, or to a folder", kind="brain"
        )
    try:
        from roost.brains.adk import Adk, in_folder, variables_of  # an extra, and slow
    except ImportError as error:
        advice = "pip install 'roost[adk]', and start Roost again"
        raise BrainFailed(f"agents of the ADK need an extra: {advice}", kind="extra", advice=advice) from error
    if ":" in profile.agent:
        found = _named(profile.agent, module_of)
    else:
        redactor.learn(variables_of(profile.agent), is_private=True)  # before its code runs, which may log them
        found = in_folder(profile.agent)
    brain = Adk(found, profile.agent)
    brain.prepare()
    return brain


def _imported(name: str, module_of: Callable[[str], ModuleType]) -> Brain:
    """Return the function that `module:function` names."""
    brain = _named(name, module_of)
    if not callable(brain):
        raise BrainFailed(f"the brain {name!r} is not a function", kind="brain")
    return brain  # type: ignore[no-any-return]


def _named(name: str, module_of: Callable[[str], ModuleType]) -> Any:
    module, _, function = name.partition(":")
    if not function:
        known = ", ".join([*BUILT_IN, LLM, ADK, LOCAL])
        raise BrainFailed(f"there is no brain {name!r}: use {known} or module:function", kind="brain")
    try:
        loaded = module_of(module)
    except (Exception, SystemExit) as error:  # the import may raise anything
        raise BrainFailed(f"the brain {name!r} cannot be loaded: {_why(error, module)}", kind="brain") from error
    brain = getattr(loaded, function, None)
    if brain is None:
        where = loaded.__file__ or "it"
        raise BrainFailed(f"the brain {name!r} cannot be loaded: {where} has no {function!r}", kind="brain")
    return brain


def is_absent(error: BaseException | None, module: str) -> TypeGuard[ModuleNotFoundError]:
    """Return whether the module itself was not found, rather than one that it imports."""
    return isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")


def _why(error: BaseException, module: str) -> str:
    """Return the cause and place of a failed import: a missing module, or an error in it."""
    if is_absent(error, module):
        return f"there is no module {error.name!r} in the folder of roost.toml, nor where Python looks"
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    own = [frame for frame in frames if frame.filename not in (__file__, single_flight.__file__)]
    return f"{own[-1].filename}, line {own[-1].lineno}: {what}" if own else what


def _fresh(module: ModuleType, files: dict[str, int]) -> ModuleType:
    """Return the module, reloaded if its file has changed."""
    if module.__file__ is None:
        return module
    written = Path(module.__file__).stat().st_mtime_ns
    if files.get(module.__name__, written) != written:
        module = importlib.reload(module)
    files[module.__name__] = written
    return module
