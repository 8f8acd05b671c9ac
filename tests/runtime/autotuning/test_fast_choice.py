"""Autotuned launches in machine code do what those in Python do, as long as the choice is what it was."""

import gc
import weakref

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import Config
from deuteron.errors import LaunchError, UsageError
from deuteron.runtime.autotuning.autotuner import Autotuner


@deuteron.jit
def kernel(a, n, c=7, B: tl.constexpr = 1, C: tl.constexpr = 2):
    pass


KERNELS = (kernel,)
CONFIGS = [Config({"B": 16}), Config({"B": 32}, num_warps=8), Config({"B": 64}, num_stages=2)]


def tune(configs=CONFIGS, key=("n",), fn=kernel, times=None):
    """A tuner that finds the configurations to take what `times` says of the value of B."""
    took = {16: 3.0, 32: 2.0, 64: 1.0} if times is None else times

    def bench(run, quantiles):
        launched = run.__closure__
        config = next(cell.cell_contents for cell in launched if isinstance(cell.cell_contents, dict))
        return [took[config["B"]]] * 3

    return deuteron.autotune(configs=list(configs), key=list(key), do_bench=bench)(fn)


@pytest.fixture
def python(monkeypatch):
    """The launches of tuners that were in Python."""
    found = []
    run = Autotuner.run_noted

    def counted(self, grid, args, keywords):
        found.append(len(args))
        return run(self, grid, args, keywords)

    monkeypatch.setattr(Autotuner, "run_noted", counted)
    return found


def arrays(*dtypes):
    return [np.zeros(64, dtype) for dtype in dtypes]


def launch(tuner, *args, grid=(2,), times=3, **keywords):
    """What the last of some launches returned, which is the kernel that was launched."""
    return [tuner[grid](*args, **keywords) for _ in range(times)][-1]


def test_a_choice_is_looked_up_without_python(log, slow, python):
    (x,) = arrays(np.float32)
    tuner = tune()
    first = launch(tuner, x, 5, times=1)
    tuner.best_config = None
    assert launch(tuner, x, 5, times=9) is first
    assert len(python) <= 3
    assert tuner.best_config == CONFIGS[2]
    assert first.name == "kernel" and log[-1][1] == (2, 1, 1)


def test_each_value_of_the_key_and_each_dtype_has_its_own_choice(log, slow, python):
    x, y = arrays(np.float32, np.float64)
    times = {16: 3.0, 32: 2.0, 64: 1.0}
    tuner = tune(times=times)
    expected = {}
    for array, n, best in ((x, 5, 16), (x, 6, 32), (y, 5, 64)):
        times.update({16: 9.0, 32: 9.0, 64: 9.0, best: 1.0})
        expected[array.dtype, n] = launch(tuner, array, n)
        assert tuner.best_config.kwargs == {"B": best}
    before = len(python)
    for array, n, best in ((y, 5, 64), (x, 5, 16), (x, 6, 32), (x, 5, 16)):
        assert tuner[(2,)](array, n) is expected[array.dtype, n]
        assert tuner.best_config.kwargs == {"B": best}
    assert len(python) == before


def test_the_grid_is_given_the_configuration(log, slow, python):
    (x,) = arrays(np.float32)
    tuner, given = tune(), []
    launch(tuner, x, 5, grid=lambda meta: given.append(dict(meta)) or (meta["B"],), times=5, C=9)
    assert len(python) < 5 and log[-1][1] == (64, 1, 1)
    assert all(list(meta.items()) == list(given[0].items()) for meta in given)
    assert given[-1]["B"] == 64 and given[-1]["C"] == 9 and given[-1]["num_stages"] == 2


@pytest.mark.parametrize("how", ["clear", "assign", "update", "replace", "configs", "in place", "hook", "kwargs"])
def test_what_a_choice_depends_on_is_heard(log, slow, python, how):
    (x,) = arrays(np.float32)
    tuner = tune([Config(config.kwargs, num_warps=config.num_warps) for config in CONFIGS])
    before = launch(tuner, x, 5, times=5)
    (key,) = tuner.cache
    other, called = tuner.configs[0], []
    change = {
        "clear": lambda: (tuner.cache.clear(), tuner.cache.__setitem__(key, other)),
        "assign": lambda: tuner.cache.__setitem__(key, other),
        "update": lambda: tuner.cache.update({key: other}),
        "replace": lambda: setattr(tuner, "cache", {key: other}),
        "configs": lambda: setattr(tuner, "configs", [other]),
        "in place": lambda: tuner.configs.__delitem__(slice(1, None)),
        "hook": lambda: setattr(tuner.best_config, "pre_hook", lambda named: called.append(named["B"])),
        "kwargs": lambda: setattr(tuner.best_config, "kwargs", {"B": 16}),
    }
    change[how]()
    after = launch(tuner, x, 5, times=4)
    if how == "hook":
        assert after is before and called == [64] * 4
    else:
        assert after is not before and tuner.best_config.kwargs == {"B": 16}


def test_what_is_wrong_raises_what_it_always_does(log, slow, python):
    (x,) = arrays(np.float32)
    tuner = tune()
    launch(tuner, x, 5)
    with pytest.raises(UsageError, match="autotune of 'kernel' chooses B"):
        tuner[(2,)](x, 5, B=16)
    with pytest.raises(LaunchError, match="takes a, n, c, B, C"):
        tuner[(2,)](x, 5, 7, 16)
    with pytest.raises(LaunchError, match="'wrong' is none of these and no option"):
        tuner[(2,)](x, 5, wrong=1)
    with pytest.raises(LaunchError, match="argument 'n' is missing"):
        tuner[(2,)](x)


def test_a_class_of_ones_own_is_asked(log, slow, python):
    class Own(Autotuner):
        def run(self, *args, **kwargs):
            return "own", super().run(*args, **kwargs)

    (x,) = arrays(np.float32)
    tuner = Own(kernel, kernel.arg_names, CONFIGS[:1], ["n"])
    assert launch(tuner, x, 5)[0] == "own"
    tuner = tune()
    launch(tuner, x, 5)
    tuner.run = lambda *args, **kwargs: "replaced"
    assert launch(tuner, x, 5) == "replaced"


def test_options_and_heuristics(log, slow, python):
    (x,) = arrays(np.float32)
    tuner = tune([Config({"B": 16}), Config({"B": 32})])
    tuner.configs = [tuner.configs[0]]
    assert launch(tuner, x, 5, enable_fp_fusion=False) is not launch(tuner, x, 5)
    computed = tune(fn=deuteron.heuristics({"C": lambda args: args["n"] + 1})(kernel))
    assert launch(computed, x, 5) is launch(computed, x, 5)


def test_a_copy_has_choices_of_its_own(log, slow, python):
    import copy

    (x,) = arrays(np.float32)
    tuner = tune()
    launch(tuner, x, 5)
    other = copy.copy(tuner)
    other.best_config = None
    launch(other, x, 5)
    assert other.best_config == CONFIGS[2]


def test_arguments_are_not_kept(log, slow, python):
    tuner = tune()

    class Array(np.ndarray):
        pass

    x = np.zeros(64, np.float32).view(Array)
    launch(tuner, x, 5, times=5)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None
