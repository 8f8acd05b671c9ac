"""What kernels print and assert, and the error for what cannot be compiled."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from deuteron.errors import CompilationError

_SETUP = """
    import sys; sys.path[:0] = {folders!r}
    import numpy as np, deuteron.language as tl
    from importlib.util import spec_from_file_location, module_from_spec
    spec = spec_from_file_location("shared", {conftest!r})
    shared = sys.modules["shared"] = module_from_spec(spec)
    spec.loader.exec_module(shared)
"""


def run_apart(tmp_path, kernel: str, call: str) -> subprocess.CompletedProcess:
    """A kernel in a process of its own, whose output is caught."""
    conftest, tests = str(Path(__file__).parents[1] / "conftest.py"), str(Path(__file__).parents[3])
    script = tmp_path / "script.py"
    setup = textwrap.dedent(_SETUP.format(folders=[str(tmp_path), tests], conftest=conftest))
    script.write_text(setup + textwrap.dedent(kernel) + textwrap.dedent(call))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)


PRINTING = """
    def kernel(x, y, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.device_print("x", tl.load(x + i))
        tl.device_print("both 100%", n, tl.load(y + i[:, None] + i[None, :]))
        tl.device_print("bits", tl.load(x + i), hex=True)
        tl.device_print("bits", tl.load(x).to(tl.bfloat16), tl.load(x).to(tl.float8e5), n == 7, n.to(tl.int8), hex=True)
        tl.device_print("done")
"""


def test_print_as_the_interpreter_does(tmp_path):
    call = """
    args = [np.arange(2, dtype=np.float32) - 1.5, np.array([-1, 2, 3], np.int16), 7]
    module = shared.tile_ir(kernel, args, {"BLOCK": 2})
    shared.run_module(module, args, (2, 1, 1))
    print("---", flush=True)
    shared.run_compiled(module, args, (2,), "native")
    """
    result = run_apart(tmp_path, PRINTING, call)
    interpreted, compiled = result.stdout.split("---\n")
    assert compiled == interpreted, result.stderr
    assert compiled.count("\n") == 2 * (2 + 1 + 4 + 2 + 4 + 1)


UNKNOWN = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> (), sym_visibility = "public"}> ({
  ^bb0(%p: !tt.ptr<f32>):
    %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
      evict = 1 : i32, isVolatile = false}> : (!tt.ptr<f32>) -> f32
    %y = "math.atanh"(%x) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32 loc("kernel.py":7:9)
    "tt.store"(%p, %y) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_an_op_without_a_rule_is_an_error_with_its_place(lower_text):
    with pytest.raises(CompilationError, match="math.atanh") as caught:
        lower_text(UNKNOWN)
    assert str(caught.value.location) == "kernel.py:7:9"
    assert "DEUTERON_INTERPRET=1" in caught.value.message
