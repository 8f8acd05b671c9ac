"""A backend that compiles nothing and records every compile and launch; launches by machine code, too."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from types import SimpleNamespace

import pytest

import deuteron
from deuteron.backend.arguments import ArgumentSlots
from deuteron.backend.native_launch import NativeLaunch
from deuteron.options import CPUOptions, make_options
from deuteron.runtime import fast_launch

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
        metadata = SimpleNamespace(is_checked=False, apart=(), may_write=lambda name: True)
        kernel = SimpleNamespace(name=source.name, metadata=metadata, is_cached=True)
        kernel.launch = lambda grid, values: self.launched.append(Launched(kernel, grid, list(values)))
        return kernel


@pytest.fixture
def recorder(monkeypatch):
    """Launches of JITFunctions go to this instead of to a compiler."""
    monkeypatch.delenv("DEUTERON_INTERPRET", raising=False)
    monkeypatch.delenv("DEUTERON_TARGET", raising=False)
    monkeypatch.setenv("DEUTERON_COMPILE_PROCESSES", "1")
    found = Recorder()
    monkeypatch.setattr("deuteron.runtime.jit.get_backend", lambda target: found)
    monkeypatch.setattr("deuteron.runtime.jit.compile_with", found.compile_with)
    return found


_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


class Loaded:
    """What a backend loads; it notes launches, those of machine code as well."""

    def __init__(self, name, params, log, is_native):
        self.slots, self.log, self.is_native = ArgumentSlots(name, params), log, is_native
        self.function, self.status = _NATIVE(self.run_native), 0

    def __call__(self, grid, values):
        self.run_packed(tuple(grid), self.slots.pack(values))

    def run_packed(self, grid, packed, stream=None):
        self.log.append((self, grid, packed))

    def run_native(self, target, extents, values, stream):
        if self.status:
            return self.status
        grid = tuple((ctypes.c_int64 * 3).from_address(extents))
        self.log.append((self, grid, ctypes.string_at(values, 8 * self.slots.count)))
        return 0

    def native_launch(self):
        return NativeLaunch(ctypes.cast(self.function, ctypes.c_void_p).value, ()) if self.is_native else None


@pytest.fixture(params=["native", "packed"])
def log(request, monkeypatch, recorder):
    """Every launch from now on: what was launched, the grid, the packed arguments. Code is used from the first on."""
    found = []

    def compile_with(backend, source, target, options):
        recorder.compiled.append(source)
        params = [param for param in source.params if param.kind != "constexpr"]
        apart = () if options.may_alias else tuple(getattr(request.module, "APART", {}).get(source.name, ()))
        metadata = SimpleNamespace(
            is_checked=False, apart=apart, may_write=lambda name: name == "c", runtime_params=tuple(params)
        )
        launch = Loaded(source.name, params, found, request.param == "native")
        return SimpleNamespace(name=source.name, metadata=metadata, launch=launch, load=lambda: None, is_cached=True)

    monkeypatch.setattr("deuteron.runtime.jit.compile_with", compile_with)
    for name in ("FEW", "MANY"):
        monkeypatch.setattr(fast_launch, name, 0)
    for kernel in request.module.KERNELS:
        kernel._launchers.clear()
    yield found
    for kernel in request.module.KERNELS:
        kernel._launchers.clear()


@pytest.fixture
def slow(request, monkeypatch):
    """How many launches were in Python."""
    found = []
    run = deuteron.JITFunction.run_noted

    def counted(self, *args):
        found.append(self)
        return run(self, *args)

    monkeypatch.setattr(deuteron.JITFunction, "run_noted", counted)
    for kernel in request.module.KERNELS:
        kernel.fast.__init__(kernel)
    return found
