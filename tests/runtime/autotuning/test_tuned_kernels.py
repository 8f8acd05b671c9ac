"""Autotuned kernels on the CPU, timed by what their configuration says: each option, and what is kept on disk."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.errors import AutotunerError, LaunchError, StrictError, UsageError
from deuteron.runtime.autotuning import trials

COSTS = {16: 3.0, 32: 1.0, 64: 2.0}
# Launches of kernels that work in place are counted here.
pytestmark = pytest.mark.filterwarnings("ignore:.*every trial has changed what it found")


@deuteron.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@deuteron.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@deuteron.jit
def doubled(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(BLOCK < 64)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def grid(meta):
    return (deuteron.cdiv(meta["n"], meta["BLOCK"]),)


class Bench:
    """Times are those of COSTS; a launch is known by the block that its configuration's hook or the grid names."""

    def __init__(self, costs=COSTS):
        self.costs, self.timed, self.block = costs, [], 0

    def grid(self, meta):
        self.block = meta["BLOCK"]
        return grid(meta)

    def __call__(self, fn, quantiles):
        fn()
        fn()
        self.timed.append(self.block)
        return [self.costs[self.block]] * 3


def configs(*blocks, **options):
    return [deuteron.Config({"BLOCK": block}, **options) for block in blocks]


def tuned(kernel, bench, blocks=(16, 32, 64), **options):
    return deuteron.autotune(configs=configs(*blocks), key=["n"], do_bench=bench, **options)(kernel)


def test_the_fastest_is_taken_and_launched():
    bench, x = Bench(), np.zeros(100, np.float32)
    kernel = tuned(add_one, bench, restore_value=["x_ptr"])
    kernel[bench.grid](x, 100)
    assert kernel.best_config.kwargs == {"BLOCK": 32} and np.array_equal(x, np.ones(100))
    kernel[bench.grid](x, 100)
    assert bench.timed == [16, 32, 64] and np.array_equal(x, np.full(100, 2))


def test_trials_add_to_what_is_reset():
    bench, x, out = Bench(), np.ones(100, np.float32), np.full(1, 7, np.float32)
    tuned(total, bench, reset_to_zero=["out_ptr"])[bench.grid](x, out, 100)
    assert out == 100


def test_what_does_not_compile_is_skipped_with_its_reason():
    bench, x = Bench(), np.ones(100, np.float32)
    kernel = tuned(doubled, bench, restore_value=["x_ptr"])
    kernel[bench.grid](x, 100)
    assert kernel.best_config.kwargs == {"BLOCK": 32} and np.array_equal(x, np.full(100, 2))
    assert "tl.static_assert(BLOCK < 64)" in kernel.configs_failures[configs(64)[0]]


def test_a_pruned_configuration_is_not_timed():
    bench, x = Bench(), np.ones(100, np.float32)
    prune = {"early_config_prune": lambda configs, named, **kwargs: configs[1:]}
    tuned(add_one, bench, prune_configs_by=prune)[bench.grid](x, n=100)
    assert bench.timed == [32, 64]


def test_all_fields_of_a_config_reach_the_compile(recorder):
    config = deuteron.Config({"BLOCK": 16}, num_warps=2, num_stages=5, num_ctas=2, maxnreg=64)
    deuteron.autotune([config], key=[])(add_one)[(1,)](np.zeros(16, np.float32), 16)
    options = recorder.compiled[-1].options
    assert (options.num_warps, options.num_stages, options.num_ctas, options.maxnreg) == (2, 5, 2, 64)


def test_a_config_can_name_the_text_that_is_compiled(tmp_path):
    text = add_one.warmup(np.zeros(16, np.float32), 16, BLOCK=16, grid=(1,)).asm["ttir"]
    (tmp_path / "add_one.ttir").write_text(text.replace("1.000000e+00", "5.000000e+00"))
    assert "1.000000e+00" in text
    config = deuteron.Config({"BLOCK": 16}, ir_override=str(tmp_path / "add_one.ttir"))
    x = np.zeros(16, np.float32)
    deuteron.autotune([config], key=[])(add_one)[(1,)](x, 16)
    assert np.array_equal(x, np.full(16, 5))


def test_options_are_computed_by_heuristics(recorder):
    kernel = deuteron.heuristics({"num_warps": lambda args: 8 if args["BLOCK"] > 32 else 2})(add_one)
    kernel[(1,)](np.zeros(16, np.float32), 16, BLOCK=64)
    assert recorder.compiled[-1].options.num_warps == 8


# What is kept.


def stored(path: Path) -> list[dict]:
    return json.loads(path.read_text())["choices"]


def test_another_process_finds_what_was_timed(tmp_path):
    x, found = np.zeros(100, np.float32), []
    for _ in range(2):
        bench = Bench()
        kernel = tuned(add_one, bench, cache_results=tmp_path / "add.json", restore_value=["x_ptr"])
        kernel[bench.grid](x, 100)
        found.append(bench.timed)
        assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert found == [[16, 32, 64], []]
    (choice,) = stored(tmp_path / "add.json")
    assert choice["key"] == {"n": 100} and choice["types"] == {"x_ptr": "fp32"} and choice["device"].startswith("cpu:")
    assert choice["timings"][1] == {"config": configs(32)[0].all_kwargs(), "ms": [1.0] * 3}


def test_of_a_changed_list_only_what_is_new_is_timed(tmp_path):
    x, bench = np.zeros(100, np.float32), Bench({**COSTS, 128: 0.5})
    for blocks in ((16, 32), (32, 64, 128)):
        kernel = tuned(add_one, bench, blocks, cache_results=tmp_path)
        kernel[bench.grid](x, 100)
    assert bench.timed == [16, 32, 64, 128] and kernel.best_config.kwargs == {"BLOCK": 128}
    (file,) = tmp_path.glob("*.json")
    assert ".add_one.cpu-" in file.name
    assert [timing["config"]["BLOCK"] for timing in stored(file)[0]["timings"]] == [16, 32, 64, 128]


def test_another_key_dtype_and_source_are_timed_again(tmp_path):
    bench = Bench()
    for kernel, dtype, n in ((add_one, np.float32, 100), (add_one, np.float32, 99), (add_one, np.int32, 100)):
        tuned(kernel, bench, cache_results=tmp_path / "all.json")[bench.grid](np.zeros(100, dtype), n)
    tuned(doubled, bench, (16, 32), cache_results=tmp_path / "all.json")[bench.grid](np.zeros(100, np.float32), 100)
    assert len(bench.timed) == 3 * 3 + 2 and len(stored(tmp_path / "all.json")) == 4


def test_timings_in_the_cache_folder_are_those_of_one_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    bench, x = Bench(), np.zeros(100, np.float32)
    for compiler in ("0.1 aa", "0.1 aa", "0.2 bb"):
        monkeypatch.setattr("deuteron.runtime.autotuning.tuned_store.compiler_text", lambda text=compiler: text)
        tuned(add_one, bench, cache_results=True)[bench.grid](x, 100)
    assert len(bench.timed) == 2 * 3
    monkeypatch.setenv("DEUTERON_TUNED_DIR", str(tmp_path / "committed"))
    for compiler in ("0.1 aa", "0.2 bb"):
        monkeypatch.setattr("deuteron.runtime.autotuning.tuned_store.compiler_text", lambda text=compiler: text)
        tuned(add_one, bench)[bench.grid](x, 100)
    assert len(bench.timed) == 3 * 3 and len(list((tmp_path / "committed").glob("*.json"))) == 1


def test_an_interrupt_keeps_what_was_timed(tmp_path):
    class Interrupted(Bench):
        def __call__(self, fn, quantiles):
            if len(self.timed) == 2:
                raise KeyboardInterrupt
            return super().__call__(fn, quantiles)

    x, bench, then = np.zeros(100, np.float32), Interrupted(), Bench()
    with pytest.raises(KeyboardInterrupt):
        tuned(add_one, bench, cache_results=tmp_path / "a.json", restore_value=["x_ptr"])[bench.grid](x, 100)
    assert np.array_equal(x, np.zeros(100))
    tuned(add_one, then, cache_results=tmp_path / "a.json")[then.grid](x, 100)
    assert bench.timed == [16, 32] and then.timed == [64]


def test_what_fails_only_now_is_not_kept(tmp_path):
    class Failing(Bench):
        def __call__(self, fn, quantiles):
            if len(self.timed) == 1:
                self.timed.append(0)
                raise LaunchError("out of memory")
            return super().__call__(fn, quantiles)

    x, bench, then = np.zeros(100, np.float32), Failing(), Bench()
    tuned(add_one, bench, cache_results=tmp_path / "a.json")[bench.grid](x, 100)
    assert bench.timed == [16, 0, 64]
    kernel = tuned(add_one, then, cache_results=tmp_path / "a.json")
    kernel[then.grid](x, 100)
    assert then.timed == [32] and kernel.best_config.kwargs == {"BLOCK": 32}


def test_where_all_that_is_kept_failed_it_is_tried_again(tmp_path):
    for _ in range(2):
        bench = Bench()
        with pytest.raises(AutotunerError, match="tl.static_assert"):
            tuned(doubled, bench, (64, 128), cache_results=tmp_path / "a.json")[bench.grid](np.zeros(9, np.float32), 9)
    assert len(stored(tmp_path / "a.json")[0]["timings"]) == 2


def test_a_strict_launch_compiles_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_STRICT", "1")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    bench = Bench()
    with pytest.raises(StrictError, match="would be compiled by a launch"):
        tuned(deuteron.jit(add_one.fn), bench)[bench.grid](np.zeros(9, np.float32), 9)


def test_a_terminal_shows_the_best_and_what_was_skipped(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    bench, x = Bench(), np.ones(100, np.float32)
    tuned(doubled, bench)[bench.grid](x, 100)
    shown = sys.stderr.getvalue()
    assert "autotuning doubled" in shown and "best 1 ms: BLOCK: 32" in shown
    assert "doubled: skipped BLOCK: 64, num_warps: 4" in shown


def test_configurations_with_hooks_are_not_kept(tmp_path):
    bench, x = Bench(), np.zeros(100, np.float32)
    hooked = configs(16, 32, pre_hook=lambda args: None)
    deuteron.autotune(hooked, ["n"], do_bench=bench, cache_results=tmp_path / "a.json")(add_one)[bench.grid](x, 100)
    assert not (tmp_path / "a.json").exists()


def test_a_file_that_is_none_is_left_alone(tmp_path):
    (tmp_path / "a.json").write_text("<<<<<<< HEAD\n")
    bench, x = Bench(), np.zeros(100, np.float32)
    with pytest.warns(UserWarning, match="cannot read the timings"):
        tuned(add_one, bench, cache_results=tmp_path / "a.json")[bench.grid](x, 100)
    assert (tmp_path / "a.json").read_text() == "<<<<<<< HEAD\n"


def test_the_listener_is_told(tmp_path, monkeypatch):
    bench, x, told = Bench(), np.zeros(100, np.float32), []
    monkeypatch.setattr(knobs.autotuning, "listener", lambda **event: told.append(event))
    for _ in range(2):
        tuned(add_one, bench, cache_results=tmp_path / "a.json")[bench.grid](x, 100)
    assert [event["cache_hit"] for event in told] == [False, True]
    assert told[0]["duration"] > 0 and told[1]["duration"] is None
    assert told[1]["configs_timings"] == {config: [COSTS[config.kwargs["BLOCK"]]] * 3 for config in configs(16, 32, 64)}


# In processes.


def test_configurations_compile_in_processes(tmp_path, monkeypatch):
    """Those after the first are in the cache before they are timed."""
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_COMPILE_PROCESSES", "2")
    monkeypatch.setattr("deuteron.compiler.ahead.is_worth_it", lambda *args: True)
    bench, x = Bench(), np.zeros(100, np.float32)
    local = deuteron.jit(add_one.fn)
    before = len(deuteron.recompiles())
    kernel = tuned(local, bench, restore_value=["x_ptr"])
    kernel[bench.grid](x, 100)
    assert [made.is_cached for made in deuteron.recompiles()[before:]] == [True] * 3
    assert kernel.best_config.kwargs == {"BLOCK": 32} and np.array_equal(x, np.ones(100))


def test_a_process_that_dies_costs_one_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    died = trials.CompilerDied("the compiler's process ended with status -6")
    monkeypatch.setenv("DEUTERON_COMPILE_PROCESSES", "2")
    monkeypatch.setattr("deuteron.compiler.ahead.is_worth_it", lambda *args: True)
    monkeypatch.setattr("deuteron.compiler.ahead.compile_ahead", lambda jobs, processes: [(0, died)])
    bench, x = Bench(), np.zeros(100, np.float32)
    kernel = tuned(deuteron.jit(add_one.fn), bench)
    with pytest.warns(UserWarning, match="ended with status -6: a defect of Deuteron"):
        kernel[bench.grid](x, 100)
    assert kernel.best_config.kwargs == {"BLOCK": 64} and bench.timed == [16, 64]


def test_a_number_of_processes_that_is_none(monkeypatch):
    monkeypatch.setenv("DEUTERON_COMPILE_PROCESSES", "few")
    bench = Bench()
    with pytest.raises(UsageError, match="DEUTERON_COMPILE_PROCESSES must be a positive whole number, got 'few'"):
        tuned(add_one, bench)[bench.grid](np.zeros(100, np.float32), 100)
