"""What older versions of Triton accepted outside of kernels."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import testing
from deuteron.compat import old_spellings
from deuteron.compat.old_spellings import compile
from deuteron.errors import LaunchError, UsageError


@deuteron.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    ("signature", "constants"),
    [("*fp32, i32", {2: 16}), ({0: "*fp32:16", 1: "i32"}, {"BLOCK": 16}), ({"x_ptr": "*fp32", "n": "i32"}, {2: 16})],
)
def test_compile_as_triton_2_had_it(signature, constants):
    with pytest.warns(UserWarning, match="ASTSource"):
        kernel = compile(scale, signature=signature, constants=constants, target="cpu", device=0, num_warps=2)
    x = np.ones(16, np.float32)
    kernel[(1,)](x, 10)
    assert kernel.metadata.options["num_warps"] == 2 and x.tolist() == [2.0] * 10 + [1.0] * 6


def test_interpreted_always():
    kernel = deuteron.jit(scale.fn, interpret=True)
    x = np.ones(16, np.float32)
    assert kernel[(1,)](x, 16, BLOCK=16) is None and (x == 2).all() and not kernel.device_caches


def test_options_of_other_targets_are_ignored_with_a_warning():
    x = np.ones(16, np.float32)
    with pytest.warns(UserWarning, match="ignores the option 'waves_per_eu': for AMD's GPUs"):
        scale[(1,)](x, 16, BLOCK=16, waves_per_eu=2)
    with pytest.warns(UserWarning, match="ignores the option 'unit_flag': for Ascend's processors"):
        scale[(1,)](x, 16, BLOCK=16, unit_flag=True)
    with pytest.warns(UserWarning, match="'allowed_dot_input_precisions': tl.dot takes every type and precision"):
        scale[(1,)](x, 16, BLOCK=16, allowed_dot_input_precisions=("ieee",))
    with pytest.raises(LaunchError, match=r"'stream' is none of these and no option.*torch.cuda.stream"):
        scale[(1,)](x, 16, BLOCK=16, stream=0)
    with pytest.raises(LaunchError, match=r"'arch' is none of these and no option.*triton.compile for its target"):
        scale[(1,)](x, 16, BLOCK=16, arch="sm80")


def test_options_of_tritons_compiler_that_change_no_values_are_ignored():
    x = np.ones(16, np.float32)
    with pytest.warns(UserWarning, match="'ptx_options': Deuteron gives the assembler its own; enable_fp_fusion=False"):
        scale[(1,)](x, 16, BLOCK=16, ptx_options="-O1", warp_size=32, clc=False, sched4reg=False)
    assert (x == 2).all()


def test_an_option_of_none_is_left_out():
    x = np.ones(16, np.float32)
    scale[(1,)](x, 16, BLOCK=16, arch=None, num_warps=None, num_ctas=None, debug=None, stream=None)
    assert (x == 2).all()
    with pytest.raises(LaunchError, match="'num_warp' is none of these"):
        scale[(1,)](x, 16, BLOCK=16, num_warp=None)


def test_configurations_with_options_of_their_time():
    with pytest.warns(UserWarning, match="num_consumer_groups"):
        config = deuteron.Config({"BLOCK": 16}, num_warps=8, num_consumer_groups=2, reg_dec_producer=0)
    assert config == deuteron.Config({"BLOCK": 16}, num_warps=8)
    with pytest.warns(UserWarning, match="number of threads is DEUTERON_NUM_THREADS"):
        assert deuteron.Config({"BLOCK": 16}, num_cpu_threads=1) == deuteron.Config({"BLOCK": 16})
    with pytest.raises(UsageError, match="a Config has no 'BLOCK'"):
        deuteron.Config({}, BLOCK=16)


def test_autotune_with_times_by_position():
    with pytest.warns(UserWarning, match="warmup= and rep="):
        kernel = old_spellings.autotune([deuteron.Config({"BLOCK": 16})], ["n"], None, None, 2, 3)(scale)
    x = np.ones(16, np.float32)
    kernel[(1,)](x, 16)
    assert (x == 2).all() and kernel.restore_value == []
    assert old_spellings.autotune([deuteron.Config({"BLOCK": 16})], ["n"], restore_value=["x_ptr"])(scale).restore_value


def test_timing_and_comparing_as_triton_2_had_it():
    low, high = testing.do_bench(lambda: None, warmup=1, rep=1, percentiles=[0.2, 0.8], fast_flush=True)
    assert low <= high
    with pytest.raises(TypeError, match="fast_slush"):
        testing.do_bench(lambda: None, fast_slush=True)
    testing.assert_almost_equal([1.0], [1.01])
    with pytest.raises(AssertionError):
        testing.assert_almost_equal([1.0], [1.02])


def test_properties_of_the_device_as_triton_2_asked_for_them(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    with pytest.warns(UserWarning, match="driver.active.utils now"):
        utils = old_spellings.DRIVER_NAMES["CudaUtils"]()
    assert utils.get_device_properties(0)["multiprocessor_count"] >= 1
