"""A backend that compiles nothing and records every compile and launch."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import pytest

from deuteron.options import CPUOptions, make_options

Compiled = namedtuple("Compiled", "name signature constexprs attrs options")
Launched = namedtuple("Launched", "kernel grid values")


class Recorder:
    """What `compile_with` and launches were given."""

    options_class = CPUOptions

    def __init__(self):
        self.compiled: list[Compiled] = []
        self.launched: list[Launched] = []

    def make_options(self, given):
        return make_options(CPUOptions, dict(given))

    def compile_with(self, backend, source, target, options):
        self.compiled.append(Compiled(source.name, source.signature, source.constexprs, source.attrs, options))
        kernel = SimpleNamespace(name=source.name, metadata=SimpleNamespace(may_write=lambda name: True))
        kernel.launch = lambda grid, values: self.launched.append(Launched(kernel, grid, list(values)))
        return kernel


@pytest.fixture
def recorder(monkeypatch):
    """Launches of JITFunctions go to this instead of to a compiler."""
    monkeypatch.delenv("DEUTERON_INTERPRET", raising=False)
    monkeypatch.delenv("DEUTERON_TARGET", raising=False)
    found = Recorder()
    monkeypatch.setattr("deuteron.runtime.jit.get_backend", lambda target: found)
    monkeypatch.setattr("deuteron.runtime.jit.compile_with", found.compile_with)
    return found
