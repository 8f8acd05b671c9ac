"""Launching: binding of arguments, what is compiled, what reaches the kernel, errors. The backend is a recorder."""

import inspect
import threading

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError, UsageError


@deuteron.jit
def scale(x_ptr, n, factor, BLOCK: tl.constexpr, KIND: tl.constexpr = "plain"):
    pass


@pytest.fixture(autouse=True)
def fresh(recorder):
    """No kernel of another test."""
    scale._launchers.clear()


def array(count=64, dtype=np.float32):
    """Aligned to 16 bytes."""
    raw = np.zeros(count + 16, dtype)
    return raw[(-raw.ctypes.data % 16) // raw.itemsize :][:count]


def test_what_is_compiled_and_launched(recorder):
    x = array()
    scale[(4,)](x, 1000, 0.5, BLOCK=128, num_warps=8, num_ctas=2)
    [compiled], [launched] = recorder.compiled, recorder.launched
    assert compiled.signature == {
        "x_ptr": "*fp32",
        "n": "i32",
        "factor": "fp32",
        "BLOCK": "constexpr",
        "KIND": "constexpr",
    }
    assert compiled.constexprs == {"BLOCK": 128, "KIND": "plain"}
    assert compiled.attrs == {"x_ptr": (("tt.divisibility", 16),)}
    assert (compiled.options.num_warps, compiled.options.num_ctas) == (8, 2)
    assert (launched.grid, launched.values) == ((4, 1, 1), [x.ctypes.data, 1000, 0.5])


def test_an_argument_of_one_is_folded_and_not_passed(recorder):
    x = array()
    scale[(1,)](x, 1, 2.0, BLOCK=128)
    assert recorder.compiled[0].constexprs["n"] == 1
    assert recorder.launched[0].values == [x.ctypes.data, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: scale[(2,)](x, 7, 0.5, 64),
        lambda x: scale[(2,)](x, 7, 0.5, BLOCK=64),
        lambda x: scale[(2,)](BLOCK=64, factor=0.5, n=7, x_ptr=x),
        lambda x: scale[(2,)](x, factor=0.5, BLOCK=64, n=7, KIND="plain"),
        lambda x: scale.run(x, 7, 0.5, 64, grid=(2,), warmup=False),
        lambda x: scale[lambda meta: (meta["n"] // 3,)](x, 7, 0.5, 64),
    ],
)
def test_all_ways_to_pass_arguments_are_one_kernel(recorder, call):
    x = array()
    scale[(2,)](x, 7, 0.5, BLOCK=64)
    call(x)
    assert len(recorder.compiled) == 1
    assert recorder.launched[0] == recorder.launched[1]


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((array(), 7, 0.5, 64), {"num_warps": 2}),
        ((array(), 7, 0.5, 64), {"num_ctas": 2}),
        ((array(), 16, 0.5, 64), {}),
        ((array(), 7, 0.5, 32), {}),
        ((array(), 7, 1, 64), {}),
        ((array(dtype=np.float16), 7, 0.5, 64), {}),
        ((array()[1:], 7, 0.5, 64), {}),
        ((array(), 7, 0.5, 64, True), {}),
        ((array(), 2**40, 0.5, 64), {}),
    ],
)
def test_other_types_hints_constants_or_options_are_another_kernel(recorder, args, options):
    scale[(2,)](array(), 7, 0.5, BLOCK=64)
    scale[(2,)](*args, **options)
    assert len(recorder.compiled) == 2


def test_the_compiled_kernel_is_returned(recorder):
    kernel = scale[(1,)](array(), 7, 0.5, 64)
    assert kernel is recorder.launched[0].kernel


@pytest.mark.parametrize("grid", [(0,), (4, 0), (1, 1, 0)])
def test_an_empty_grid_launches_nothing(recorder, grid):
    assert scale[grid](array(), 7, 0.5, 64).name == "scale"
    assert recorder.launched == []


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), tl.float32])
def test_warmup_compiles_for_a_dtype_and_launches_nothing(recorder, dtype):
    kernel = scale.warmup(dtype, 7, 0.5, BLOCK=64, grid=(1,))
    assert kernel.name == "scale" and recorder.launched == []
    assert recorder.compiled[0].signature["x_ptr"] == "*fp32"


def test_warmup_keeps_a_dtype_that_is_a_constexpr(recorder):
    scale.warmup(np.float16, 7, 0.5, BLOCK=64, KIND=tl.float32, grid=(1,))
    assert recorder.compiled[0].constexprs["KIND"] == tl.float32


def test_a_kernel_warmed_up_is_the_one_launched(recorder):
    scale.warmup(tl.float32, 7, 0.5, BLOCK=64, grid=(1,))
    scale[(1,)](array(), 7, 0.5, BLOCK=64)
    assert len(recorder.compiled) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: scale[(1,)](x, 7, 0.5),
            "kernel 'scale' takes x_ptr, n, factor, BLOCK, KIND: argument 'BLOCK' is miss",
        ),
        (lambda x: scale[(1,)](x, 7, 0.5, 64, "a", 9), "got 6 arguments"),
        (lambda x: scale[(1,)](x, 7, 0.5, 64, n=8), "argument 'n' is given twice"),
        (lambda x: scale[(1,)](x, 7, 0.5, BLOK=64, BLOCK=64), "'BLOK' is none of these and no option: num_warps"),
        (lambda x: scale[(1,)]("x", 7, 0.5, 64), "argument 'x_ptr' of kernel 'scale': expected an array"),
        (
            lambda x: scale[(1,)](x, 2**70, 0.5, 64),
            "argument 'n' of kernel 'scale': an integer argument has at most 64",
        ),
        (
            lambda x: scale[(1,)](x, 7, 0.5, [bytearray()]),
            "argument 'BLOCK' of kernel 'scale': a constexpr must be hashable",
        ),
    ],
)
def test_wrong_arguments(recorder, call, message):
    with pytest.raises(LaunchError, match=message.replace("(", r"\(")):
        call(array())
    assert recorder.launched == []


def test_an_array_on_a_device_that_no_kernel_runs_on_is_named(recorder):
    class Tensor:
        dtype, device = "torch.float32", type("device", (), {"type": "xpu"})

        def data_ptr(self):
            return 0

    with pytest.raises(LaunchError, match="argument 'x_ptr' of kernel 'scale': it is on device 'xpu'"):
        scale[(1,)](Tensor(), 7, 0.5, 64)


def test_an_option_with_an_impossible_value(recorder):
    with pytest.raises(UsageError, match="num_warps must be a power of two"):
        scale[(1,)](array(), 7, 0.5, 64, num_warps=3)


def test_options_that_cannot_be_hashed(recorder):
    with pytest.raises(UsageError, match="options of kernel 'scale' must be hashable"):
        scale[(1,)](array(), 7, 0.5, 64, num_warps=[4])


def test_decorator_options(recorder):
    @deuteron.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr"], debug=True, noinline=True)
    def kernel(x_ptr, n):
        pass

    kernel[(1,)](array(), 1)
    assert recorder.compiled[0].signature == {"x_ptr": "*fp32", "n": "i32"}
    assert recorder.compiled[0].attrs == {} and recorder.compiled[0].options.debug


def test_pre_run_hooks_see_the_arguments(recorder):
    @deuteron.jit
    def kernel(n):
        pass

    seen = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
    kernel[(1,)](7, num_warps=2)
    assert seen == [((7,), {"num_warps": 2})]


def test_a_kernel_has_no_items():
    """Python asks what has `__getitem__` for item 0, 1, ..., and a kernel would take each for a grid."""
    for kernel in (scale, deuteron.autotune([deuteron.Config({})], [])(scale)):
        with pytest.raises(TypeError, match="not iterable"):
            list(kernel)


def test_calling_a_kernel_without_a_grid():
    with pytest.raises(UsageError, match=r"launch it as a kernel with scale\[grid\]"):
        scale(array(), 7, 0.5, 64)


def test_a_target_in_the_environment_is_a_kernel_of_its_own(recorder, monkeypatch):
    scale[(1,)](array(), 7, 0.5, 64)
    monkeypatch.setenv("DEUTERON_TARGET", "cpu:x86-64-v3")
    scale[(1,)](array(), 7, 0.5, 64)
    assert len(recorder.compiled) == 2


def test_threads_compile_a_kernel_once(recorder):
    x = array()
    threads = [threading.Thread(target=lambda: scale[(1,)](x, 7, 0.5, 64)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recorder.compiled) == 1 and len(recorder.launched) == 16


@deuteron.jit
def named(x, FACTOR: tl.constexpr):
    pass


@deuteron.jit(interpret=True)
def interpreted(x):
    tl.store(x, 7)


def test_the_interpreter_can_be_asked_for(monkeypatch):
    monkeypatch.delenv("DEUTERON_INTERPRET", raising=False)
    x = np.zeros(1, np.int32)
    assert interpreted[(1,)](x) is None
    assert x[0] == 7


def test_a_keyword_that_is_meant_to_be_a_parameter():
    with pytest.raises(LaunchError, match="argument 'FACTOR' is missing, and there is no 'FACTR'. Did you mean 'FACT"):
        named[(1,)](np.zeros(1, np.float32), FACTR=3)


def test_programs_can_ask_which_options_jit_has():
    fn, *options = inspect.signature(deuteron.jit).parameters.values()
    assert fn.default is None and all(option.kind is option.KEYWORD_ONLY for option in options)
    assert {"do_not_specialize", "do_not_specialize_on_alignment", "repr"} <= {option.name for option in options}
