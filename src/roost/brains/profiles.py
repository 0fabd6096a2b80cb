"""Profiles and the brains behind them: built in, given as functions, or named in the settings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from roost.brains.guide import guide
from roost.brains.scripted import echo
from roost.errors import BrainFailed, Invalid
from roost.ports import Brain, Profile

BUILT_IN: dict[str, Brain] = {"guide": guide, "echo": echo}
_ABOUT = {
    "guide": "Explains Roost and shows what it can do; needs no model.",
    "echo": "Says what you said; needs no model.",
}


class Shelf:
    """All profiles of one Roost by name."""

    def __init__(
        self,
        given: Mapping[str, Brain] | None = None,
        configured: Sequence[Profile] = (),
        default: str | None = None,
        *,
        reload: bool = False,
    ) -> None:
        self._files: dict[str, int] | None = {} if reload else None
        self._brains: dict[str, Brain] = {**BUILT_IN, **_checked(given or {})}
        self._profiles = {name: Profile(name, name, about) for name, about in _ABOUT.items()}
        self._profiles |= {name: Profile(name, name) for name in given or {}}
        self._profiles |= {profile.name: profile for profile in configured}
        best = [*(given or {}), *(profile.name for profile in configured), "guide"]
        self.default = self.profile(default).name if default else best[0]

    def names(self) -> Sequence[Profile]:
        """The default first, then as they were named."""
        return sorted(self._profiles.values(), key=lambda p: p.name != self.default)

    def profile(self, name: str) -> Profile:
        found = self._profiles.get(str(name))
        if found is None:
            known = ", ".join(sorted(self._profiles))
            raise Invalid(f"there is no profile {name!r:.80}: use one of {known}")
        return found

    def loaded(self, profile: Profile) -> Brain | None:
        return self._brains.get(profile.brain)

    def load(self, profile: Profile) -> Brain:
        if not profile.brain:
            raise BrainFailed(f"the profile {profile.name!r} does not exist any more", kind="profile")
        brain = _imported(profile.brain, self._files)
        if self._files is None:  # else it is looked at again each time
            self._brains[profile.brain] = brain
        return brain


def _checked(given: Mapping[str, Brain]) -> Mapping[str, Brain]:
    for name, brain in given.items():
        if not callable(brain):
            raise Invalid(f"the brain {name!r} must be a generator function, not {type(brain).__name__}")
        if inspect.iscoroutinefunction(brain):
            raise Invalid(f"the brain {name!r} returns its answer: have it `yield` it, as a generator function does")
    return given


def _imported(name: str, files: dict[str, int] | None) -> Brain:
    """The function that `module:function` names; with `files`, as its file is now."""
    module, _, function = name.partition(":")
    try:
        loaded = importlib.import_module(module)
        if files is not None:
            loaded = _fresh(loaded, files)
        brain = getattr(loaded, function)
    except Exception as error:  # whatever a module does when it is imported
        raise BrainFailed(f"the brain {name!r} cannot be loaded: {error}", kind="brain") from error
    if not callable(brain):
        raise BrainFailed(f"the brain {name!r} is not a function", kind="brain")
    return brain  # type: ignore[no-any-return]


def _fresh(module: ModuleType, files: dict[str, int]) -> ModuleType:
    """The module, loaded again if its file was written since it was last asked for."""
    if module.__file__ is None:
        return module
    written = Path(module.__file__).stat().st_mtime_ns
    if files.get(module.__name__, written) != written:
        module = importlib.reload(module)
    files[module.__name__] = written
    return module
