"""LLVM IR as the input of a compile for the CPU: assembly, object, launch."""

import re

import numpy as np
import pytest

import deuteron
from deuteron.backend.llvm.targets import machine
from deuteron.backend.metadata import KernelMetadata, make_param
from deuteron.compiler import ASTSource, IRSource
from deuteron.errors import DeuteronError, IRError, LaunchError, UsageError
from deuteron.options import Target

METADATA = KernelMetadata(
    "scale", "scale_it", Target("cpu", "native", 1), {}, (make_param("out", "*fp64"), make_param("factor", "fp64"))
)
LLIR = f"""; deuteron kernel {METADATA.to_json()}
define void @scale_it(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %out_slot = load ptr, ptr %args
  %out = load ptr, ptr %out_slot
  %factor_field = getelementptr ptr, ptr %args, i64 1
  %factor_slot = load ptr, ptr %factor_field
  %factor = load double, ptr %factor_slot
  br label %loop
loop:
  %p = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %number = uitofp i64 %p to double
  %product = fmul double %number, %factor
  %place = getelementptr double, ptr %out, i64 %p
  store double %product, ptr %place
  %next = add i64 %p, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@pytest.fixture
def kernel():
    return deuteron.compile(IRSource.from_text(LLIR, "llir"), target="cpu")


def test_name_symbol_and_parameters_come_from_the_text(kernel):
    assert (kernel.name, kernel.metadata.symbol) == ("scale", "scale_it")
    assert kernel.metadata.params == METADATA.params


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_it_runs(kernel, count):
    out = np.full(count + 1, np.nan)
    kernel[(count,)](out.ctypes.data, 0.5)
    np.testing.assert_array_equal(out[:-1], np.arange(count) * 0.5)
    assert np.isnan(out[-1])


def test_arrays_are_taken_too_if_they_have_the_type(kernel):
    out = np.full(8, np.nan)
    kernel[(8,)](out, 2)
    np.testing.assert_array_equal(out, np.arange(8) * 2)
    with pytest.raises(LaunchError, match=r"'out' of kernel 'scale': expected \*fp64, got an array of \*fp32"):
        kernel[(8,)](out.astype(np.float32), 2)


def test_a_wrong_number_of_arguments(kernel):
    with pytest.raises(LaunchError, match="kernel 'scale' takes out, factor, got 3 arguments"):
        kernel[(8,)](1, 2, 3)


def test_its_texts(kernel):
    assert list(kernel.asm) == ["llir", "obj", "asm"]
    assert re.search(r"^scale_it:", kernel.asm["asm"], re.MULTILINE)
    assert b"scale_it" in kernel.asm["obj"]


def test_its_own_text_again_gives_the_same_object(kernel):
    again = deuteron.compile(IRSource.from_text(kernel.asm["llir"], "llir"), target="cpu")
    assert again.asm["obj"] == kernel.asm["obj"]


def test_a_text_that_llvm_does_not_accept():
    with pytest.raises(IRError, match="expected type|expected instruction") as caught:
        deuteron.compile(IRSource.from_text(LLIR.replace("fmul double", "fmul doubel"), "llir"), target="cpu")
    assert caught.value.location.file == "<llir>"


def test_another_cpu_gives_another_kernel(kernel):
    other = deuteron.compile(IRSource.from_text(LLIR, "llir"), target="cpu:x86-64-v2")
    assert other.hash != kernel.hash and str(other.metadata.target) == "cpu:x86-64-v2"


def test_a_cpu_that_does_not_exist():
    with pytest.raises(UsageError, match="unknown CPU 'x86-64-v9'"):
        deuteron.compile(IRSource.from_text(LLIR, "llir"), target="cpu:x86-64-v9")


@deuteron.jit
def double(x, y, n, BLOCK: deuteron.language.constexpr):
    i = deuteron.language.arange(0, BLOCK)
    value = deuteron.language.load(x + i, mask=i < n)
    deuteron.language.store(y + i, value * 2, mask=i < n)


def text_of(stage: str, target: str, **options: object) -> IRSource:
    source = ASTSource(double, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 64})
    return IRSource.from_text(deuteron.compile(source, target, options).asm[stage], stage)


def test_code_that_looks_at_the_ends_of_arrays_is_told_them():
    kernel = deuteron.compile(text_of("llir", "cpu", check="bounds"), target="cpu")
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert kernel.metadata.is_checked
    kernel[(1,)](x, y, 64)
    np.testing.assert_array_equal(y, x * 2)
    with pytest.raises(DeuteronError, match="beyond|outside|bounds"):
        kernel[(1,)](x[:32], y, 64)
    with pytest.raises(UsageError, match="the llir is for check='bounds', and check='' was asked for"):
        deuteron.compile(text_of("llir", "cpu", check="bounds"), "cpu", {"check": ""})


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("cuda:90", {"num_warps": 4}, "num_warps=8, and num_warps=4"),
        ("cuda:90", {"num_warps": 8, "num_ctas": 2}, "num_ctas=1, and num_ctas=2"),
        ("cuda:80", {"num_warps": 8}, "cuda:90, and cuda:80"),
    ],
)
def test_what_it_was_compiled_for(target, options, message):
    with pytest.raises(UsageError, match=f"the llir is for {message} was asked for"):
        deuteron.compile(text_of("llir", "cuda:90", num_warps=8), target, options)


@pytest.mark.parametrize(
    "attribute", ['"target-features"="+avx512f"', '"target-cpu" = "znver5"', '"tune-cpu"="znver5"']
)
def test_functions_for_a_processor_of_their_own(attribute):
    text = f"{LLIR}declare void @other() #0\nattributes #0 = {{ {attribute} }}\n"
    with pytest.raises(IRError, match=f"the attribute {re.escape(attribute)} is for a processor of its own") as caught:
        deuteron.compile(IRSource.from_text(text, "llir"), target="cpu:x86-64")
    assert caught.value.location.line == LLIR.count("\n") + 2


def test_the_kernel_is_in_the_text():
    text = LLIR.replace("@scale_it", "@scale_them")
    with pytest.raises(IRError, match="the llir has no function 'scale_it', which its first line says is the kernel"):
        deuteron.compile(IRSource.from_text(text, "llir"), target="cpu")


@pytest.mark.skipif(machine() != "x86_64", reason="of CPUs for x86-64")
def test_a_cpu_without_the_instructions_of_another():
    text = """
define void @scale_it(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {
  %out_slot = load ptr, ptr %args
  %out = load ptr, ptr %out_slot
  %old = cmpxchg ptr %out, i128 0, i128 1 seq_cst seq_cst, align 16
  ret void
}
"""
    source = IRSource.from_text(LLIR.partition("\n")[0] + text, "llir")
    out = np.zeros(8)
    deuteron.compile(source, target="cpu:x86-64-v2")[(1,)](out[out.ctypes.data // 8 % 2 :].ctypes.data, 0.5)
    assert out.view(np.int64).sum() == 1
    with pytest.raises(LaunchError, match="calls __\\w*16, which this process does not have: LLVM has no instruction"):
        deuteron.compile(source, target="cpu:x86-64")[(1,)](out.ctypes.data, 0.5)


def test_what_a_folder_is_for_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    deuteron.compile(IRSource.from_text(LLIR, "llir"), target="cpu")
    assert {path.suffix for path in tmp_path.rglob("scale.*")} == {".llir", ".asm", ".obj"}
