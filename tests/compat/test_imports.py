"""Triton's paths: each in a process of its own, since it changes what `import triton` means."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deuteron

STATEMENTS = [
    "import triton; triton.jit; triton.autotune; triton.Config; triton.cdiv; triton.next_power_of_2; triton.heuristics",
    "import triton.language as tl; tl.load; tl.float32; tl.constexpr; tl.math.exp2",
    "from triton.language.extra import libdevice; libdevice.exp",
    "from triton.language.extra.cuda import libdevice; libdevice.sqrt",
    "from triton.language.math import exp, log2",
    "from triton.language.core import tensor, dtype",
    "from triton.language.standard import cdiv, sum, _log2; assert _log2(8) == 3",
    "from triton.language.standard import _indicator, _is_power_of_two, _get_flip_dim; assert _is_power_of_two(8)",
    "import triton.language as tl; assert tl.core.CONSTEXPR_0.value == 0 and not tl.standard._is_power_of_two(12)",
    "from triton.language.core import get_int_dtype; assert str(get_int_dtype(8, True)) == 'int8'",
    "from triton.experimental import gluon; from triton.experimental.gluon import language as g; gluon.jit; g.float32",
    "from importlib.util import find_spec as f; assert f('triton.language') and f('triton.ops.matmul') is None",
    "import triton.experimental.gluon.language as gl; from triton.experimental.gluon import jit, GluonJITFunction",
    "import triton.testing; triton.testing.do_bench; triton.testing.perf_report; triton.testing.Benchmark",
    "from triton.compiler import ASTSource, CompiledKernel, CompilationError, compile",
    "from triton.compiler.compiler import ASTSource, IRSource, make_backend",
    "from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct",
    "from triton.backends.compiler import GPUTarget; assert GPUTarget('cuda', 90, 32).arch == 90",
    "from triton.runtime import JITFunction, KernelInterface, MockTensor, TensorWrapper, reinterpret, Autotuner",
    "from triton.runtime.jit import JITFunction, KernelInterface; import triton; triton.runtime.jit.JITFunction",
    "from triton.runtime.autotuner import Autotuner, Config, Heuristics, OutOfResources",
    "from triton.runtime.autotuner import get_cache_manager, triton_key, get_cache_invalidating_env_vars as v; v()",
    "from triton._C.libtriton import get_cache_invalidating_env_vars as v; assert 'DEUTERON_TARGET' not in v()",
    "from triton.runtime.errors import OutOfResources, InterpreterError, PTXASError, AutotunerError",
    "from triton.runtime import driver; driver.active.get_current_target(); driver.active.get_current_device()",
    "import triton.runtime.driver; assert triton.runtime.driver.active.get_current_target().backend == 'cpu'",
    "from triton.runtime.driver import driver, DriverBase; driver.active.get_device_interface().synchronize()",
    "import triton; triton.runtime.driver.active.get_benchmarker()(lambda: 0, warmup=1, rep=1, quantiles=[0.5])",
    "from triton.runtime.cache import FileCacheManager, CacheManager, triton_key, default_cache_dir, get_dump_manager",
    "from triton.runtime._allocation import NullAllocator; import triton; triton.set_allocator(NullAllocator())",
    "from triton.runtime.jit import JITCallable, KernelParam, get_device_key, get_cuda_stream; get_device_key()",
    "from triton.language.core import constexpr_type, _unwrap_if_constexpr; assert _unwrap_if_constexpr(3) == 3",
    "import triton.language as tl; assert tl.str_to_ty('*fp16') == tl.pointer_type(tl.float16)",
    "import triton.language as tl; tl.libdevice.exp; tl.core.sum; from triton.language import libdevice",
    "import triton.language as tl; assert tl.core.CONSTEXPR_0 == 0 and isinstance(tl.core.CONSTEXPR_0, tl.constexpr)",
    "from triton.language.standard import _sum_combine, _elementwise_max, _argmax_combine_tie_break_left",
    "import triton; from importlib.metadata import version; assert version('triton') == triton.__version__",
    "import triton; triton.autotune([triton.Config({})], [], None, None, 25, 100)",
    "from triton._utils import find_paths_if, canonicalize_dtype; assert canonicalize_dtype('torch.int8') == 'i8'",
    "from triton.backends.nvidia.driver import libcuda_dirs; libcuda_dirs(); from triton.backends import backends",
    "from triton.tools.disasm import get_sass, extract; from triton.compiler.compiler import triton_key, LazyDict",
    "from triton.knobs import HookChain; import triton.knobs; assert triton.knobs.base_knobs and triton.knobs.amd",
    "import triton; triton.runtime.driver.active.utils.get_device_properties(0)['max_shared_mem']",
    "import triton; d = triton.runtime.driver.active; d.clear_cache(d.get_empty_cache_for_benchmark())",
    "import triton.testing; assert triton.testing.allclose(1.0, 1.001); triton.testing.get_dram_gbps",
    "import triton; assert triton.language.core.__file__.endswith('modules.py')",
    "from triton._C.libtriton import nvidia; nvidia.cublas.CublasLt(None).gemm",
    "from triton.testing import cuda_graph_without_gc; cuda_graph_without_gc(None)",
    "from triton.errors import TritonError; import triton; assert triton.TritonError is TritonError",
    "from triton import knobs; assert knobs.runtime.interpret is False",
    "import triton.tools; import triton; assert int(triton.__version__[0]) >= 3",
    "import importlib.util; assert importlib.util.find_spec('triton') and importlib.util.find_spec('triton.language')",
    "from triton.language.core import base_value, base_type, builtin, _unwrap_shape, _unwrap_iterable",
    "from triton.language.core import _tensor_member_fn, _add_reduction_docstr, tensor_descriptor_base, _to_tensor",
    "import triton.language as tl; f = tl.constexpr_function(lambda n: n + 1); assert f(tl.constexpr(2)) == 3",
    "from triton.language.core import _shape_check_impl as check, constexpr; assert check([constexpr(4), 2]) == [4, 2]",
    "from triton.language.standard import _bitonic_merge, _compare_and_swap, _get_int_dtype, _pick_sum_dtype",
    "from triton.language.extra.cuda.utils import num_threads; from triton.language.extra.cuda.gdc import gdc_wait",
    "from triton.language.extra.libdevice import fast_tanhf; from triton.language.target_info import is_hip_cdna4",
    "import triton.language as tl; tl._experimental_descriptor_load; tl.core._experimental_make_tensor_descriptor",
    "from triton.testing import _summarize_statistics as f; assert f((3.0, 1.0, 2.0), [0.5, 0.25], '') == [2.0, 1.5]",
    "from triton.testing import set_gpu_clock, nvsmi; from triton.tools.ragged_tma import load_ragged",
    "from triton._internal_testing import is_cuda, is_hip, is_hopper_or_newer; assert not is_cuda() and not is_hip()",
    "import triton, triton.language as tl; assert eval(repr(tl.bfloat16)) is tl.bfloat16",  # as Inductor writes it
    "from deuteron.language.functions.stable_text import stable_repr; import triton.language as tl; "
    "assert stable_repr(tl.int8) == 'dtype:int8'",
    "from triton._internal_testing import is_hip_mi300; assert not is_hip_mi300()",
    "import triton; triton.testing.runtime.driver.active.get_device_interface().synchronize()",
    "import triton.profiler as proton, triton.profiler.viewer; assert proton.viewer.parse and proton.scope",
    "from triton._utils import get_primitive_bitwidth; assert get_primitive_bitwidth('bf16') == 16",
    "import triton; assert not hasattr(triton, 'nonsense') and getattr(triton.language, 'nonsense', 1) == 1",
    "import triton, deuteron; assert triton.jit is deuteron.jit and triton.language.load is deuteron.language.load",
]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(deuteron.__file__).parents[1])}


def python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, **options)


IN_FORKS = """
import json, os, sys, tempfile
import deuteron.compat

def error_of(statement):
    with tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            exec(statement, {})
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        return errors.read() + f"ended with {status}" if status else ""

print(json.dumps({statement: error_of(statement) for statement in sys.argv[1:]}))
"""


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What each statement says, in a fork of a process that has nothing but Deuteron under Triton's name."""
    command = [sys.executable, "-c", IN_FORKS, *STATEMENTS]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, check=True).stdout)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_resolves_to_deuteron(errors, statement):
    assert errors[statement] == ""


def test_an_installed_triton_is_not_taken(tmp_path):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("raise RuntimeError('the real one')")
    found = python("import deuteron.compat, triton; print(triton.jit.__module__)", cwd=tmp_path)
    assert found.stdout.strip() == "deuteron.runtime.jit", found.stderr


def test_a_triton_imported_before_is_refused(tmp_path):
    (tmp_path / "triton.py").write_text("")
    found = python("import triton, deuteron.compat", cwd=tmp_path)
    assert "Triton itself is already imported, from" in found.stderr and "triton.py" in found.stderr


def test_installing_twice_changes_nothing():
    found = python("import deuteron.compat as c, triton, sys; c.install(); assert sys.modules['triton'] is triton")
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import triton.nonsense", "Deuteron has no module 'triton.nonsense'"),
        ("import triton.profiler.language", "'triton.profiler.language': nothing is timed within kernels"),
        ("import triton; triton.nonsense", "Deuteron has no 'triton.nonsense'"),
        ("from triton.language import nonsense", "ImportError: Deuteron has no 'triton.language.nonsense'"),
        ("from triton.language.core import extrn", "ImportError: Deuteron has no 'triton.language.core.extrn'"),
        (
            "from triton.testing import do_bench, cuda_memcheck",
            "cuda_memcheck': DEUTERON_CHECK=bounds, and the emulator",
        ),
        ("from triton.runtime import build", "'triton.runtime.build': kernels need no C compiler"),
        ("from triton.language.extra import hip", "'triton.language.extra.hip': it is for AMD's GPUs"),
        (
            "from triton.language.core import nv_tma_desc_type",
            "it is of Triton 3.0 to 3.3; pass triton.tools.tensor_descriptor",
        ),
        (
            "import triton.ops.matmul",
            "no module 'triton.ops.matmul': Triton took its ready-made kernels out",
        ),
        ("import triton.ops.matmul_perf_model; import triton.ops.blocksparse", "no module 'triton.ops.blocksparse'"),
        ("from triton._C.libtriton import amd", "no 'triton._C.libtriton.amd': it is for AMD's GPUs"),
        ("import triton.language.extra.cann.libdevice", "extra.cann': it is for Ascend's processors"),
        ("from triton.experimental import gsan", "Deuteron has no 'triton.experimental.gsan'"),
        ("import triton.experimental.gluon.language.nvidia.hopper", "Gluon is a language of its own"),
    ],
)
def test_what_is_not_there(statement, message):
    assert message in python(f"import deuteron.compat\n{statement}").stderr


ABSENT_IN_KERNELS = """
import deuteron.compat
import triton
import triton.language as tl

@triton.jit
def of_torch(x_ptr):
    tl.store(x_ptr, tl.half)

@triton.jit
def of_libdevice(x_ptr):
    tl.store(x_ptr, tl.tanh(tl.load(x_ptr)))

@triton.jit
def of_numpy(x_ptr):
    tl.store(x_ptr, tl.math.mean(tl.load(x_ptr)))

@triton.jit
def for_amd(x_ptr):
    tl.store(x_ptr, tl.extra.hip.libdevice.pow(2.0, 3.0))

@triton.jit
def misspelled(x_ptr):
    tl.store(x_ptr, tl.laod(x_ptr))

for kernel in (of_torch, of_libdevice, of_numpy, for_amd, misspelled):
    try:
        kernel.warmup(triton.MockTensor(tl.float32), grid=(1,))
    except triton.TritonError as error:
        print(str(error).splitlines()[0])
"""


def test_what_takes_the_place_of_a_name_in_a_kernel(tmp_path):
    """A kernel's errors know Triton's modules as what they stand for."""
    program = tmp_path / "program.py"
    program.write_text(ABSENT_IN_KERNELS)
    said = python(f"import runpy; runpy.run_path({str(program)!r})").stdout.splitlines()
    of_torch, of_libdevice, of_numpy, for_amd, misspelled = said
    assert of_torch.endswith("'triton.language' has no 'half'. It is called tl.float16.")
    assert "has no 'tanh'. It is in libdevice:" in of_libdevice
    assert of_numpy.endswith("has no 'mean'. Use tl.sum(x, axis) / n.")
    assert "has no 'hip': it is for AMD's GPUs, which Deuteron has not;" in for_amd
    assert misspelled.endswith("'triton.language' has no 'laod'. Did you mean 'load'?")


def test_names_say_a_module_that_they_can_be_imported_from():
    """Generated code imports a name that a kernel uses without a module from its `__module__`."""
    found = python("""
import deuteron, deuteron.compat, importlib, pickle
import triton.language as tl
from triton.language.extra import libdevice

for value in (tl.load, tl.sum, tl.constexpr, tl.dtype, tl.tensor, tl.cdiv, tl.rand, libdevice.tanh):
    assert value.__module__.startswith("triton."), value
    assert getattr(importlib.import_module(value.__module__), value.__name__) is value, value
assert pickle.loads(pickle.dumps(tl.float32)) == tl.float32 and pickle.loads(pickle.dumps(tl.constexpr(3))).value == 3
""")
    assert found.returncode == 0, found.stderr
    keys = {python(f"import deuteron{way}; print(deuteron.language.sum.cache_key)").stdout for way in ("", ".compat")}
    assert len(keys) == 1, "what a kernel is compiled to does not depend on it"
