"""The autotuner: the fastest is taken, once for a key; arrays keep their content; failures are skipped and told."""

import math
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import testing
from deuteron.errors import AutotunerError, CompilationError, InternalError, OutOfResources, UsageError
from deuteron.runtime.autotuning import trial_timing
from deuteron.runtime.autotuning.torch_autotuners import TORCHS_MODULE
from deuteron.runtime.driver import driver
from deuteron.runtime.interface import KernelInterface

CONFIGS = [deuteron.Config({"BLOCK": block}) for block in (16, 32, 64)]


class FakeKernel(KernelInterface):
    """Is the faster the less BLOCK differs from n, adds 1 to `out` and records its launches. `bench` knows how fast."""

    __name__ = "fake"
    fn = None
    arg_names = ["out", "n", "BLOCK"]

    def __init__(self, failing=None, spilling=()):
        self.launches = []
        self.failing = failing or {}
        self.spilling = spilling
        self.cost = 0

    def run(self, *args, grid, warmup=False, **kwargs):
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        if named["BLOCK"] in self.failing:
            raise self.failing[named["BLOCK"]]
        if warmup:
            return f"compiled for {named['BLOCK']}"
        self.launches.append(named)
        self.cost = abs(named["n"] - named["BLOCK"])
        if named["out"] is not None:
            named["out"] += 1
        return SimpleNamespace(n_spills=4 if named["BLOCK"] in self.spilling else 0)

    def bench(self, fn, quantiles):
        fn()
        fn()
        return [self.cost] * len(quantiles)


def tuned(kernel, configs=CONFIGS, **options):
    return deuteron.autotune(configs=configs, key=["n"], **{"do_bench": kernel.bench, **options})(kernel)


def test_a_class_of_a_program_times_as_triton_does():
    class First(deuteron.runtime.Autotuner):
        def run(self, *args, **kwargs):
            timings = {config: self._bench(*args, config=config, **kwargs) for config in self.configs}
            self.timings = [timing[0] for timing in timings.values()]
            self.fn.run(*args, **kwargs, **self.configs[0].all_kwargs())

    fake = FakeKernel({64: UsageError("too large")})
    kernel = First(fake, fake.arg_names, CONFIGS, ["n"], None, None, do_bench=fake.bench)
    kernel[(1,)](None, 32)
    assert kernel.timings == [16, 0, math.inf] and len(fake.launches) == 5


class Doubled:
    """A function of Python that a program tunes as it tunes kernels."""

    def __init__(self):
        self.fn = lambda x, step: (x, step)
        self.steps = []

    def run(self, x, step, **options):
        assert not options.keys() & {"grid", "warmup"}
        self.steps.append(step)
        return self.fn(2 * x, step)


def test_a_function_that_is_no_kernel_is_tuned_and_called_without_a_grid():
    doubled = Doubled()
    steps = [deuteron.Config({"step": step}) for step in (1, 8, 4)]
    tuner = deuteron.runtime.Autotuner(
        doubled, ["x", "step"], steps, ["x"], None, None, do_bench=lambda fn, quantiles: [fn() or doubled.steps[-1]] * 3
    )
    assert tuner.run(x=5) == (10, 1) and tuner.base_fn is doubled.fn and doubled.steps == [1, 8, 4, 1]


def test_the_fastest_is_taken():
    kernel = tuned(FakeKernel())
    kernel[(1,)](None, 32)
    assert kernel.best_config is CONFIGS[1]
    assert kernel.fn.launches[-1]["BLOCK"] == 32
    assert set(kernel.configs_timings) == set(CONFIGS) and kernel.bench_time > 0


def test_a_key_is_tuned_once_and_another_again():
    kernel = tuned(FakeKernel())
    kernel[(1,)](None, 32)
    before = len(kernel.fn.launches)
    kernel[(1,)](None, 32)
    assert len(kernel.fn.launches) == before + 1
    kernel[(1,)](None, 64)
    assert kernel.best_config is CONFIGS[2] and len(kernel.cache) == 2


def test_another_dtype_is_tuned_again():
    kernel = tuned(FakeKernel())
    kernel[(1,)](np.zeros(1, np.float32), 16)
    kernel[(1,)](np.zeros(1, np.float64), 16)
    assert len(kernel.cache) == 2


def test_a_single_configuration_is_not_timed():
    kernel = tuned(FakeKernel(), CONFIGS[:1])
    kernel[(1,)](None, 32)
    assert len(kernel.fn.launches) == 1


def test_options_of_a_configuration_reach_the_launch():
    kernel = tuned(FakeKernel(), [deuteron.Config({"BLOCK": 16}, num_warps=8, num_stages=2, maxnreg=64)])
    kernel[(1,)](None, 32, extra=5)
    assert kernel.fn.launches[0] == {
        "out": None,
        "n": 32,
        "BLOCK": 16,
        "num_warps": 8,
        "num_stages": 2,
        "num_ctas": 1,
        "maxnreg": 64,
        "extra": 5,
    }


def test_restored_arrays_see_only_the_last_launch():
    out = np.array([5.0])
    tuned(FakeKernel(), restore_value=["out"])[(1,)](out, 16)
    assert out == [6.0]


def test_reset_arrays_start_from_zero():
    out = np.array([5.0])
    tuned(FakeKernel(), reset_to_zero=["out"])[(1,)](out, 16)
    assert out == [1.0]


def test_an_array_that_is_none_is_neither_reset_nor_restored():
    kernel = tuned(FakeKernel(), reset_to_zero=["out"], restore_value=["out"])
    kernel[(1,)](None, 16)
    assert kernel.best_config is CONFIGS[0]


def test_a_defect_is_not_skipped():
    kernel = tuned(FakeKernel({16: InternalError("stage llir")}))
    with pytest.raises(InternalError, match="stage llir"):
        kernel[(1,)](None, 32)


def test_a_failing_configuration_is_skipped():
    kernel = tuned(FakeKernel({16: OutOfResources(300, 200, "shared memory")}))
    kernel[(1,)](None, 16)
    assert kernel.best_config is CONFIGS[1]
    assert kernel.configs_timings[CONFIGS[0]] == [math.inf] * 3
    assert list(kernel.configs_failures) == CONFIGS[:1] and "shared memory" in kernel.configs_failures[CONFIGS[0]]


def test_a_spilling_configuration_is_skipped_where_another_does_not_spill():
    kernel = tuned(FakeKernel(spilling=[16]))
    kernel[(1,)](None, 16)
    assert kernel.best_config is CONFIGS[1]
    assert "it spills 16 bytes" in kernel.configs_failures[CONFIGS[0]]
    kernel = tuned(FakeKernel(spilling=[16, 32, 64]))
    kernel[(1,)](None, 16)
    assert kernel.best_config is CONFIGS[0] and not kernel.configs_failures


def test_an_interrupt_leaves_the_content_and_nothing_chosen():
    class Interrupted(FakeKernel):
        def run(self, *args, grid, warmup=False, **kwargs):
            super().run(*args, grid=grid, warmup=warmup, **kwargs)
            if kwargs["BLOCK"] == 32:
                raise KeyboardInterrupt

    out = np.array([5.0])
    kernel = tuned(Interrupted(), restore_value=["out"])
    with pytest.raises(KeyboardInterrupt):
        kernel[(1,)](out, 32)
    assert out == [5.0] and kernel.cache == {}


def test_content_is_restored_after_a_failing_trial():
    class Failing(FakeKernel):
        def run(self, *args, grid, warmup=False, **kwargs):
            super().run(*args, grid=grid, warmup=warmup, **kwargs)
            if kwargs["BLOCK"] == 16:
                raise CompilationError("too late")

    out = np.array([5.0])
    tuned(Failing(), restore_value=["out"])[(1,)](out, 32)
    assert out == [6.0]


def test_where_all_fail_each_reason_is_told():
    failing = {16: CompilationError("sixteen"), 32: OutOfResources(3, 2, "registers"), 64: UsageError("sixty-four")}
    with pytest.raises(AutotunerError) as caught:
        tuned(FakeKernel(failing))[(1,)](None, 32)
    message = str(caught.value)
    assert "no configuration of kernel 'fake' can be run" in message
    assert all(
        text in message for text in ("BLOCK: 16", "sixteen", "BLOCK: 32", "registers", "BLOCK: 64", "sixty-four")
    )


def test_an_error_that_is_not_ours_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        tuned(FakeKernel({16: ZeroDivisionError()}))[(1,)](None, 32)


def test_early_prune_chooses_the_trials():
    seen = {}

    def prune(configs, named_args, **kwargs):
        seen.update(named_args)
        return [config for config in configs if config.kwargs["BLOCK"] >= named_args["n"]]

    kernel = tuned(FakeKernel(), prune_configs_by={"early_config_prune": prune})
    kernel[(1,)](None, 32)
    assert seen == {"out": None, "n": 32} and CONFIGS[0] not in kernel.configs_timings


def test_nothing_left_by_early_prune():
    kernel = tuned(FakeKernel(), prune_configs_by={"early_config_prune": lambda configs, named_args: []})
    with pytest.raises(AutotunerError, match="left no configuration"):
        kernel[(1,)](None, 32)


@pytest.mark.parametrize("name, top_k", [("top_k", 2), ("top_k", 0.67), ("configs_top_k", 2)])
def test_a_model_ranks_the_trials(name, top_k):
    """`configs_top_k` is what torch.compile calls it."""
    model = {"perf_model": lambda BLOCK, **_: -BLOCK, name: top_k}
    kernel = tuned(FakeKernel(), prune_configs_by=model)
    kernel[(1,)](None, 32)
    assert set(kernel.configs_timings) == {CONFIGS[1], CONFIGS[2]}


def test_hooks_run_around_each_trial():
    events = []
    configs = [deuteron.Config({"BLOCK": b}, pre_hook=lambda args: events.append(args["BLOCK"])) for b in (16, 32)]
    kernel = tuned(
        FakeKernel(),
        configs,
        pre_hook=lambda args: events.append("before"),
        post_hook=lambda args, exception: events.append(exception),
        do_bench=lambda fn, quantiles: (fn(), len(events))[1],
    )
    kernel[(1,)](None, 32)
    assert events == [16, "before", None, 32, "before", None, 16]


def test_a_pre_hook_that_takes_reset_only_is_called_after_the_trials():
    events = []

    def before(args, reset_only=False):
        events.append((args["BLOCK"], reset_only))

    tuned(FakeKernel(), CONFIGS[:2], pre_hook=before)[(1,)](None, 32)
    assert events == [(16, False)] * 2 + [(32, False)] * 2 + [(32, True)]


def test_hooks_replace_resetting_and_restoring():
    out = np.array([5.0])
    tuned(FakeKernel(), CONFIGS[:2], pre_hook=lambda args: None, reset_to_zero=["out"])[(1,)](out, 16)
    assert out == [5.0 + 2 * 2 + 1]


def test_a_post_hook_is_told_of_what_failed():
    seen = []
    failing = {16: OutOfResources(3, 2, "registers")}
    tuned(FakeKernel(failing), post_hook=lambda args, exception: seen.append((args["BLOCK"], exception)))[(1,)](
        None, 64
    )
    assert seen[0] == (16, failing[16]) and seen[1:] == [(32, None), (32, None), (64, None), (64, None)]


def test_without_do_bench_the_active_driver_times(monkeypatch):
    seen = []

    def bench(fn, quantiles):
        seen.append(quantiles)
        fn()
        return [1.0] * 3

    monkeypatch.setattr(driver, "_chosen", SimpleNamespace(get_benchmarker=lambda: bench))
    tuned(FakeKernel(), do_bench=None)[(1,)](None, 16)
    assert seen == [(0.5, 0.2, 0.8)] * 3


@pytest.mark.parametrize(
    ("options", "name", "given"),
    [
        ({"warmup": 3, "rep": 7}, "do_bench", {"warmup": 3, "rep": 7}),
        ({"rep": 7, "use_cuda_graph": True}, "do_bench_cudagraph", {"rep": 7}),
    ],
)
def test_what_the_timing_is_told(monkeypatch, options, name, given):
    seen = []

    def bench(fn, quantiles, **keywords):
        seen.append(keywords)
        fn()
        return [len(seen)] * 3

    monkeypatch.setattr(testing, name, bench)
    kernel = tuned(FakeKernel(), do_bench=None, **options)
    kernel[(1,)](None, 16)
    assert kernel.best_config is CONFIGS[0] and seen[0] == given


def test_a_hopeless_configuration_is_timed_shortly(monkeypatch):
    fake = FakeKernel()

    def bench(fn, quantiles, rep):
        fn()
        return [1.0 + fake.cost] * 3

    monkeypatch.setattr(testing, "do_bench", bench)
    monkeypatch.setattr(trial_timing, "shortest", lambda fn, enough: (fn(), 1.0 + fake.cost)[1])
    kernel = tuned(fake, do_bench=None, rep=1)
    kernel[(1,)](None, 16)
    assert [config["BLOCK"] for config in fake.launches] == [16, 32, 64, 16]
    assert kernel.configs_timings[CONFIGS[1]] == [17.0] * 3 and kernel.best_config is CONFIGS[0]


def test_threads_that_launch_together_tune_once():
    kernel = tuned(FakeKernel())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: kernel[(1,)](None, n), [16, 32] * 20))
    assert kernel.cache == {(16,): CONFIGS[0], (32,): CONFIGS[1]}
    assert len(kernel.fn.launches) == 40 + 2 * 2 * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_tunes_while_the_parent_does():
    entered, left = threading.Event(), threading.Event()

    def prune(configs, named, **kwargs):
        entered.set()
        left.wait()
        return configs

    slow = tuned(FakeKernel(), prune_configs_by={"early_config_prune": prune})
    thread = threading.Thread(target=lambda: slow[(1,)](None, 16))
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        kernel = tuned(FakeKernel())
        kernel[(1,)](None, 16)
        os._exit(0 if kernel.best_config is CONFIGS[0] else 1)
    left.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("top_k", [0, 1.5, True, "all"])
def test_a_top_k_that_is_none(top_k):
    with pytest.raises(UsageError, match="top_k is a positive whole number, or a share up to 1.0"):
        tuned(FakeKernel(), prune_configs_by={"perf_model": len, "top_k": top_k})


def test_without_a_model_top_k_is_not_asked_for():
    kernel = tuned(FakeKernel(), prune_configs_by={"perf_model": None, "top_k": None})
    kernel[(1,)](None, 32)
    assert kernel.best_config in kernel.configs


def test_a_model_that_leaves_all_keeps_their_order():
    seen = []
    tuned(FakeKernel(), prune_configs_by={"perf_model": seen.append, "top_k": 3})[(1,)](None, 32)
    assert seen == []


def test_a_key_of_prune_configs_by_that_is_not_known():
    with pytest.raises(UsageError, match="early_config_prune, perf_model and top_k, got 'early_prune'"):
        tuned(FakeKernel(), prune_configs_by={"early_prune": len})


def test_warmup_compiles_every_configuration():
    kernel = tuned(FakeKernel())
    assert kernel.warmup(None, 32, grid=(1,)) == ["compiled for 16", "compiled for 32", "compiled for 64"]
    assert kernel.fn.launches == []


def test_a_parameter_both_tuned_and_given():
    with pytest.raises(UsageError, match="autotune of 'fake' chooses BLOCK: leave it out"):
        tuned(FakeKernel())[(1,)](None, 32, BLOCK=16)


@pytest.mark.parametrize("option", ["reset_to_zero", "restore_value"])
def test_names_that_are_no_parameters(option):
    with pytest.raises(UsageError, match="no parameter 'oout': there are out, n, BLOCK"):
        tuned(FakeKernel(), **{option: ["oout"]})


def test_what_was_chosen_is_printed_when_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("DEUTERON_PRINT_AUTOTUNING", "1")
    tuned(FakeKernel({64: UsageError("too large")}))[(1,)](None, 32)
    printed = capsys.readouterr().out
    assert "Autotuning kernel fake" in printed and "best config selected: BLOCK: 32" in printed
    assert "skipped BLOCK: 64, num_warps: 4, num_stages: 3, num_ctas: 1: too large" in printed


def test_the_attributes_of_a_configuration_are_its_options():
    """Programs make configurations of what `dir` lists."""
    names = {name for name in dir(deuteron.Config({})) if not name.startswith("__")}
    options = {"num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override"}
    assert names == {"kwargs", "all_kwargs", "pre_hook", *options}


def test_configurations_are_values():
    assert deuteron.Config({"A": 1}) == deuteron.Config({"A": 1})
    assert deuteron.Config({"A": 1}) != deuteron.Config({"A": 1}, num_warps=8)
    assert len({deuteron.Config({"A": 1}), deuteron.Config({"A": 1})}) == 1
    assert str(deuteron.Config({"A": 1})) == "A: 1, num_warps: 4, num_stages: 3, num_ctas: 1"


def by_torch(kernel, configs, **options):
    """The autotuner that torch.compile makes of a kernel: it is known by the module that calls."""
    text = "autotuner = autotune(configs, key=[], **options)(kernel)"
    names = {"__name__": TORCHS_MODULE, "autotune": deuteron.autotune}
    exec(text, names | {"configs": configs, "options": options, "kernel": kernel}, made := {})
    return made["autotuner"]


@pytest.mark.parametrize("options", [{}, {"prune_configs_by": {"perf_model": None, "configs_top_k": 1.0}}])
def test_an_autotuner_that_torch_makes_restores_what_the_programs_does(options):
    """torch.compile leaves away reset_to_zero and restore_value: see torch_autotuners.py."""
    kernel, configs = FakeKernel(), [deuteron.Config({"BLOCK": block}) for block in (16, 32)]
    tuned(kernel, reset_to_zero=["out"])
    for _ in range(2):
        torchs = by_torch(kernel, configs, **options)
        assert (torchs.reset_to_zero, torchs.restore_value) == (["out"], [])
    tuned(kernel, restore_value=["out"])
    assert by_torch(kernel, configs[:1], **options).reset_to_zero == []
    with pytest.raises(UsageError, match="its autotuners differ in reset_to_zero or restore_value"):
        by_torch(kernel, configs, **options)


def test_configurations_of_the_same_code_are_timed_once():
    @deuteron.jit
    def double(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i) * 2.0)

    blocks = [(block, warps, stages) for block in (16, 32) for warps in (4, 8) for stages in (1, 2)]
    configs = [deuteron.Config({"BLOCK": b}, num_warps=w, num_stages=s) for b, w, s in blocks]
    hooked = deuteron.Config({"BLOCK": 16}, pre_hook=lambda named: None)
    timed = []

    def bench(fn, quantiles):
        fn()
        timed.append(fn)
        return [float(len(timed))] * len(quantiles)

    tuned = deuteron.autotune([*configs, hooked], key=[], do_bench=bench, restore_value=["x"])(double)
    tuned[(1,)](np.ones(32, np.float32))
    assert len(timed) == 3
    assert [tuned.configs_timings[config][0] for config in (*configs, hooked)] == [1.0] * 4 + [2.0] * 4 + [3.0]
    assert tuned.best_config == configs[0]
