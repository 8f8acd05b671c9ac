"""A kernel compiled for the CPU, through all stages: its texts, each as an input again, determinism, processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource, IRSource
from deuteron.errors import CompilationError, LaunchError, UsageError
from deuteron.options import Target


@deuteron.jit
def scale_rows(x_ptr, out_ptr, stride, factor, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n)
    tl.store(out_ptr + row * stride + i, x * factor, mask=i < n)


SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "stride": "i32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}


def make_source():
    return ASTSource(scale_rows, SIGNATURE, {"BLOCK": 32}, {(0,): [["tt.divisibility", 16]]})


def check(kernel):
    x = np.random.default_rng(5).standard_normal((7, 19), dtype=np.float32)
    out = np.full_like(x, np.nan)
    kernel[(7,)](x, out, 19, 2.5, 19)
    np.testing.assert_array_equal(out, x * np.float32(2.5))


def test_compiled_in_arguments_may_be_given_or_left_out():
    signature = {**SIGNATURE, "stride": "constexpr"}
    kernel = deuteron.compile(ASTSource(scale_rows, signature, {"BLOCK": 32, "stride": 1}), target="cpu")
    for arguments in [(1, 2.5, 19, 32), (1, 2.5, 19), (2.5, 19)]:
        x, out = np.arange(19, dtype=np.float32), np.full(19, np.nan, np.float32)
        kernel[(1,)](x, out, *arguments)
        np.testing.assert_array_equal(out, x * np.float32(2.5))
    with pytest.raises(LaunchError, match="takes x_ptr, out_ptr, factor, n, got 3 arguments"):
        kernel[(1,)](x, out, 2.5)


def test_stages_and_metadata():
    kernel = deuteron.compile(make_source(), target="cpu")
    assert set(kernel.asm) == {"ttir", "llir", "asm", "obj"}
    assert "tt.func" in kernel.asm["ttir"] and "@scale_rows" in kernel.asm["llir"]
    assert "scale_rows:" in kernel.asm["asm"] and kernel.asm["obj"].startswith(b"\x7fELF")
    assert list(kernel.stage_times) == ["source", "ttir", "llir", "obj"]
    assert [(p.name, p.type, p.divisibility) for p in kernel.metadata.params][:2] == [
        ("x_ptr", "*fp32", 16),
        ("out_ptr", "*fp32", 1),
    ]
    check(kernel)


def test_a_symbol_of_the_caller():
    kernel = deuteron.compile(make_source(), target="cpu", symbol="my_symbol")
    assert kernel.metadata.symbol == "my_symbol" and "my_symbol:" in kernel.asm["asm"]
    check(kernel)


@pytest.mark.parametrize("stage", ["ttir", "llir"])
def test_the_text_of_a_stage_is_an_input(tmp_path, stage):
    first = deuteron.compile(make_source(), target="cpu")
    path = tmp_path / f"scale.{stage}"
    path.write_text(first.asm[stage])
    again = deuteron.compile(str(path), target="cpu")
    assert again.name == "scale_rows" and again.hash != first.hash
    check(again)


def test_an_edited_stage_overrides_what_was_made(tmp_path, monkeypatch):
    text = deuteron.compile(make_source(), target="cpu").asm["llir"]
    (tmp_path / "scale_rows.llir").write_text(text.replace("fmul", "fadd"))
    monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path))
    out = np.zeros(4, np.float32)
    deuteron.compile(make_source(), target="cpu")[(1,)](np.ones(4, np.float32), out, 4, 10.0, 4)
    np.testing.assert_array_equal(out, [11.0] * 4)


def test_a_dump_holds_the_stages_and_the_ir_after_each_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_DUMP_DIR", str(tmp_path))
    kernel = deuteron.compile(make_source(), target="cpu")
    names = {path.name for path in (tmp_path / kernel.hash).iterdir()}
    assert {"scale_rows.ttir", "scale_rows.llir", "scale_rows.asm", "scale_rows.obj"} <= names
    assert any(name.startswith("scale_rows.pass01-") for name in names)


def test_an_error_in_the_kernel_passes_through():
    @deuteron.jit
    def wrong(x_ptr):
        tl.store(x_ptr, tl.arange(0, 100))

    with pytest.raises(CompilationError, match="power of") as caught:
        deuteron.compile(ASTSource(wrong, {"x_ptr": "*i32"}), target="cpu")
    assert caught.value.location.file == __file__


def test_a_target_that_there_is_not():
    with pytest.raises(UsageError, match="does not compile for 'hip' yet"):
        deuteron.compile(make_source(), target=Target("hip", "gfx942", 64), options={"num_warps": 4})


def test_an_option_that_there_is_not():
    with pytest.raises(UsageError, match="unknown option 'num_warp'"):
        deuteron.compile(make_source(), target="cpu", options={"num_warp": 4})


def test_a_ttir_text_without_locations_compiles():
    text = """
    "builtin.module"() ({
      "tt.func"() <{sym_name = "one", function_type = (!tt.ptr<f32>) -> (), sym_visibility = "public"}> ({
      ^bb0(%x: !tt.ptr<f32>):
        %c = "arith.constant"() <{value = 1.0 : f32}> : () -> f32
        "tt.store"(%x, %c) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()
        "tt.return"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    """
    x = np.zeros(2, np.float32)
    kernel = deuteron.compile(IRSource.from_text(text, "ttir"), target="cpu")
    kernel[(1,)](x)
    assert x.tolist() == [1.0, 0.0]
    assert "tt.store %x" in kernel.asm["ttir"] and 'loc("<ttir>":6:9)' in kernel.asm["ttir"]


COMPILE = """
import hashlib, sys
sys.path.insert(0, {folder!r})
import {module} as kernels
kernel = kernels.deuteron.compile(kernels.make_source(), target="cpu")
for name in ("ttir", "llir", "asm", "obj"):
    text = kernel.asm[name]
    print(name, hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest())
kernels.check(kernel)
"""


def start(cache, seed):
    folder, module = os.path.split(__file__)
    code = COMPILE.format(folder=folder, module=module.removesuffix(".py"))
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "DEUTERON_CACHE_DIR": str(cache)}
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)


def output(process):
    text, _ = process.communicate()
    assert process.returncode == 0
    return text


def test_two_processes_make_the_same_bytes(tmp_path):
    first, second = (output(start(tmp_path / str(seed), seed)) for seed in (1, 2))
    assert first == second and len(first.splitlines()) == 4


def test_processes_that_compile_at_once_share_one_cache(tmp_path):
    assert len({output(process) for process in [start(tmp_path, seed) for seed in range(4)]}) == 1
    assert len(list(tmp_path.rglob("*.kernel"))) == 1
    assert [path for path in tmp_path.rglob("*") if path.name.startswith(".")] == []


@deuteron.jit
def sum_of(out, pair, N: tl.constexpr):
    tl.store(out, pair[0] + pair[1] + N)


def test_tuples_are_given_as_at_a_launch():
    kernel = deuteron.compile(ASTSource(sum_of, {"out": "*i32", "pair": ("i32", "i32")}, {"N": 5}), "cpu")
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, (4, 2), 5)
    assert out[0] == 11
    kernel[(1,)](out, (7, 2))
    assert out[0] == 14


@deuteron.jit
def count_beside(out_ptr, AXIS: tl.constexpr):
    program = tl.program_id(AXIS)
    tl.store(out_ptr + program, tl.where(program < 65536, 1, 2), mask=program <= 65536)


@pytest.mark.parametrize("axis", [1, 2])
def test_more_programs_along_other_axes_than_a_gpu_has(axis):
    out = np.zeros(65540, np.int32)
    grid = [1, 1, 1]
    grid[axis] = len(out)
    signature = {"out_ptr": "*i32", "AXIS": "constexpr"}
    deuteron.compile(ASTSource(count_beside, signature, {"AXIS": axis}), target="cpu")[tuple(grid)](out)
    np.testing.assert_array_equal(out, [1] * 65536 + [2] + [0] * 3)
