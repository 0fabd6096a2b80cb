"""Connections of a running Roost: each is kept in a file, and can be used at once."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import MutableMapping
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from roost import keys
from roost.brains import defaults
from roost.connections import added_profiles
from roost.connections.local_servers import LocalServer
from roost.connections.providers import ProviderInfo, cleaned
from roost.core.values.secrets import Redactor
from roost.errors import Conflict
from roost.ports import Brains, Profile

_UNSAFE = re.compile(r"[^\w.-]+")


class Connections:
    """Adds models to the registry of a running Roost. Its methods are for the owner alone; the caller checks that."""

    def __init__(
        self,
        brains: Brains,
        redactor: Redactor,
        *,
        secrets: Path,
        profiles: Path,
        environ: MutableMapping[str, str] = os.environ,
    ) -> None:
        self._brains = brains
        self._redactor = redactor
        self._secrets = secrets
        self._profiles = profiles
        self._environ = environ
        self._lock = threading.Lock()

    @property
    def missing_extra(self) -> str:
        """Return what must be installed before a model can be connected; empty if nothing."""
        return "" if find_spec("pydantic_ai") else "pip install 'roost[llm]'"

    def add_key(self, provider: ProviderInfo, key: str) -> Profile:
        """Keep the key of a provider in the secrets file, and return its profile.

        Raise Invalid for what cannot be a key, Conflict if the environment has another one, and Unavailable if the file
        cannot be written. No error contains the key.
        """
        key, name = cleaned(key), provider.variable
        self._redactor.hide(key)
        with self._lock:
            kept = keys.values_in(self._secrets).get(name) if self._secrets.is_file() else None
            if self._environ.get(name) not in (None, "", kept, key):
                raise Conflict(f"{name} is set in the environment, which takes precedence: change or remove it there")
            keys.write(self._secrets, name, key)
            self._environ[name] = key
            return self._brains.add(defaults.of_provider(provider.name))

    def add_local(self, server: LocalServer, model: str) -> Profile:
        """Return the profile of a model on this machine; it is also there after the next start."""
        with self._lock:
            place = f"{server.provider}:{model}", server.url
            for profile in self._brains.names():
                if (profile.model, profile.base_url) == place:
                    return profile
            about = f"A model of {server.name} on this machine."
            made = Profile(self._new_name(model), "llm", about, place[0], base_url=place[1])
            kept = added_profiles.read(self._profiles)
            added_profiles.write(self._profiles, [*(one for one in kept if one.name != made.name), made])
            return self._brains.add(made)

    def _new_name(self, model: str) -> str:
        """Return a name for a profile that no other has."""
        base = _UNSAFE.sub("-", model).strip("-.")[:80] or "model"
        names = (base if number == 1 else f"{base}-{number}" for number in count(1))
        return next(name for name in names if not self._brains.has(name))
