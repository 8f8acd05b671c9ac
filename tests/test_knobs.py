"""Knobs: settings and hooks under Triton's names."""

import gc
import os
from types import SimpleNamespace

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.runtime import JITFunction
from deuteron.settings import settings

VARIABLES = ("INTERPRET", "DUMP_DIR", "OVERRIDE_DIR", "ALWAYS_COMPILE")


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(f"DEUTERON_{name}", "")
        monkeypatch.setenv(f"TRITON_{name}", "")
    groups = (knobs.cache, knobs.compilation, knobs.runtime, knobs.autotuning, knobs.nvidia, knobs.language)
    saved = [(group, dict(vars(group))) for group in groups]
    yield
    for group, values in saved:
        vars(group).clear()
        vars(group).update(values)


def test_a_knob_sets_the_setting():
    knobs.runtime.interpret = True
    assert settings.interpret and knobs.runtime.interpret
    knobs.runtime.interpret = False
    assert not settings.interpret and not knobs.runtime.interpret


def test_deuterons_variable_goes_before_tritons(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert settings.interpret
    monkeypatch.setenv("DEUTERON_INTERPRET", "0")
    assert not settings.interpret and not knobs.runtime.interpret


def test_a_knob_that_was_never_set_is_the_environments(monkeypatch):
    for text, value in (("1", True), ("0", False), ("TRUE", True), ("off", False), ("y", True), ("NO", False)):
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", text)
        assert knobs.compilation.always_compile is settings.always_compile is value


def test_what_was_set_is_taken_back(monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", "/somewhere")
    monkeypatch.setattr(knobs, "propagate_env", False)
    for take_back in (lambda: delattr(knobs.cache, "dir"), lambda: setattr(knobs.cache, "dir", knobs.env)):
        knobs.cache.dir = "/elsewhere"
        assert str(settings.cache_dir) == knobs.cache.dir == "/elsewhere"
        take_back()
        assert str(settings.cache_dir) == knobs.cache.dir == "/somewhere"


def test_a_set_knob_is_seen_by_processes_unless_told_not_to(monkeypatch):
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "0")
    monkeypatch.setattr(knobs, "propagate_env", False)
    knobs.compilation.dump_ir = True
    assert os.environ["TRITON_KERNEL_DUMP"] == "0" and knobs.compilation.dump_ir
    monkeypatch.setattr(knobs, "propagate_env", True)
    knobs.compilation.dump_ir = True
    assert os.environ["TRITON_KERNEL_DUMP"] == "1"


def test_a_scope_undoes_what_is_set_within(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dump_dir = tmp_path
        assert settings.dump_dir == tmp_path
    assert settings.dump_dir is None


def test_a_copy_is_its_own():
    with knobs.language.scope():
        other = knobs.language.copy()
        other.default_fp_fusion = False
        assert other.knobs["default_fp_fusion"] is False and "default_fp_fusion" not in vars(knobs.language)
        assert other.reset() is other and "default_fp_fusion" not in vars(other)


def test_groups_of_ones_own(monkeypatch):
    monkeypatch.setenv("FOO_COUNT", "7")

    class foo_knobs(knobs.base_knobs):
        name = knobs.env_str("FOO_NAME", "foo")
        count = knobs.env_int("FOO_COUNT")
        flag = knobs.env_opt_bool("FOO_FLAG")

    assert foo_knobs().knobs == {"name": "foo", "count": 7, "flag": None}
    monkeypatch.setenv("FOO_COUNT", "seven")
    with pytest.raises(RuntimeError, match="FOO_COUNT must be a whole number"):
        foo_knobs().count  # noqa: B018


def test_a_knob_without_use_says_so():
    with knobs.nvidia.scope(), pytest.warns(UserWarning, match="DISABLE_PTXAS_OPT"):
        knobs.nvidia.disable_ptxas_opt = True
        assert knobs.nvidia.disable_ptxas_opt
    with pytest.raises(AttributeError, match="no knob 'nonsense'"):
        knobs.nvidia.nonsense  # noqa: B018


def test_tritons_variables_mean_what_they_do_there(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", "")
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert settings.cache_dir == tmp_path / ".triton" / "cache" and settings.dump_dir is None
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    assert settings.dump_dir == tmp_path / ".triton" / "dump"
    monkeypatch.setenv("TRITON_DUMP_DIR", "/dumped")
    assert str(settings.dump_dir) == "/dumped"
    monkeypatch.setenv("TRITON_CACHE_DIR", "/cached")
    assert str(settings.cache_dir) == "/cached"


@deuteron.jit(launch_metadata=lambda grid, metadata, args: {"grid": grid, "n": args["n"], "of": metadata.name})
def fill(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    fill.device_caches.clear()
    return fill


def test_every_hook_is_called_in_order(kernel):
    events = []
    runtime = knobs.runtime
    runtime.jit_cache_hook = lambda **told: events.append(("cache", told["key"] in kernel.device_caches[0][0]))
    runtime.jit_post_compile_hook = lambda **told: events.append(("compiled", told["key"] in kernel.cache[0]))
    with runtime.scope():
        for name in ("kernel_load_start_hook", "kernel_load_end_hook"):
            setattr(runtime, name, lambda *told, name=name: events.append((name, told[2])))
        runtime.launch_enter_hook = lambda metadata: events.append(("enter", metadata.get()["n"]))
        runtime.launch_exit_hook = lambda metadata: events.append(("exit", metadata.get()["grid"]))
        kernel[(2,)](np.zeros(16, np.int32), 5, BLOCK=16)
        kernel[(1,)](np.zeros(16, np.int32), 6, BLOCK=16)
    assert events == [
        ("cache", False),
        ("compiled", True),
        ("kernel_load_start_hook", "fill"),
        ("kernel_load_end_hook", "fill"),
        ("enter", 5),
        ("exit", (2, 1, 1)),
        ("enter", 6),
        ("exit", (1, 1, 1)),
    ]


def test_a_hook_is_called_when_a_kernel_lets_go_of_its_code(kernel):
    events = []
    with knobs.runtime.scope():
        knobs.runtime.kernel_unload_hook = lambda module, function, name, *rest: events.append(name)
        compiled = kernel.warmup(np.zeros(16, np.int32), 5, BLOCK=16, grid=(1,))
        compiled.close()
        assert events == []  # nothing was loaded
        compiled.load()
        compiled.close()
        assert events == ["fill"]
        compiled.load()
        kernel.device_caches.clear()
        del compiled
        gc.collect()
        assert events == ["fill"] * 2


def test_what_a_compile_hook_is_told(kernel):
    told = {}
    knobs.runtime.jit_post_compile_hook = lambda **given: told.update(given)
    kernel.warmup(np.zeros(16, np.int32), 5, BLOCK=16, num_warps=8, grid=(1,))
    assert told["is_manual_warmup"] and not told["already_compiled"]
    assert told["fn"].name == "fill" and told["fn"].jit_function is kernel and told["repr"].startswith("fill[num_warps")
    found = told["compile"]
    assert found["constants"] == {"BLOCK": 16} and found["num_warps"] == 8 and found["is_warmup"]
    assert found["signature"] == {"x_ptr": "*i32", "n": "i32", "BLOCK": "constexpr"}


def test_a_compile_that_a_hook_refuses(kernel):
    x = np.zeros(16, np.int32)
    knobs.runtime.jit_cache_hook = lambda **told: True
    assert kernel[(1,)](x, 5, BLOCK=16) is None and not x.any()
    knobs.runtime.jit_cache_hook = None
    kernel[(1,)](x, 5, BLOCK=16)
    assert x.all()


def test_hooks_as_they_were_called_before(kernel, monkeypatch):
    events = []
    monkeypatch.setattr(JITFunction, "cache_hook", lambda **told: events.append("cache"))
    monkeypatch.setattr(JITFunction, "compiled_hook", lambda **told: events.append("compiled"))
    monkeypatch.setattr(deuteron.CompiledKernel, "launch_enter_hook", lambda metadata: events.append("enter"))
    compiled = kernel[(1,)](np.zeros(16, np.int32), 5, BLOCK=16)
    compiled[(1,)](np.zeros(16, np.int32), 5)
    assert events == ["cache", "compiled", "enter", "enter"]


def test_a_chain_calls_all_that_were_added():
    events = []
    for is_reversed in (False, True):
        chain = knobs.HookChain(reversed=is_reversed)
        assert not chain
        for name in "ab":
            chain.add(lambda name=name: events.append(name))
        chain.add(chain.calls[0])
        chain()
        chain.remove(chain.calls[0])
        chain()
    assert events == ["a", "b", "b", "b", "a", "b"]


def test_the_listener_is_told_of_every_compile(kernel):
    found = []
    knobs.compilation.listener = lambda **told: found.append(SimpleNamespace(**told))
    for _ in range(2):
        kernel.device_caches.clear()
        kernel[(1,)](np.zeros(16, np.int32), 5, BLOCK=16)
    first, second = found
    assert (first.cache_hit, second.cache_hit) == (False, True)
    assert first.times.total_lowering > 0 == second.times.total_lowering and second.times.total > 0
    assert first.metadata["hash"] == second.metadata["hash"] and first.metadata["num_warps"] == 4
