"""The passes and rules that GPUs share know no NVIDIA: kernels for AMD GPUs, of 64 lanes, down to their assembly."""

import re

import pytest
from backend.cuda.launching import compile_text
from backend.gpu.amdgcn import MI200, AMDGCNBackend

import deuteron
import deuteron.language as tl
from deuteron.backend import BACKENDS
from deuteron.compiler import ASTSource
from deuteron.errors import IRError, UsageError
from deuteron.machine.gpu import GPUConfig


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(BACKENDS, "amdgcn", AMDGCNBackend())


def compile_for_amdgcn(kernel, signature, constants, num_warps=4, hinted=()):
    """The ttgir and the assembly; hinted arguments are divisible by 16."""
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in hinted}
    source = ASTSource(kernel, signature, constants, attrs)
    asm = deuteron.compile(source, "amdgcn:gfx90a", {"num_warps": num_warps}).asm
    return asm["ttgir"], asm["gcn"]


@deuteron.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def test_vector_addition():
    ttgir, assembly = compile_for_amdgcn(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024})
    assert '"ttg.threads-per-warp" = 64' in ttgir and 'ttg.target = "amdgcn:gfx90a"' in ttgir
    for instruction in ("global_load_dword ", "v_add_f32", "global_store_dword "):
        assert assembly.count(instruction) == (8 if "load" in instruction else 4)  # 1024 elements, 256 threads
    assert ".amdhsa_wavefront_size32" not in assembly


def test_aligned_arguments_make_vectors():
    signature = {"x": "*fp16", "y": "*fp16", "out": "*fp16", "n": "i32"}
    _, assembly = compile_for_amdgcn(add, signature, {"BLOCK": 2048}, hinted=("x", "y", "out", "n"))
    assert assembly.count("global_load_dwordx4") == 2 and assembly.count("global_store_dwordx4") == 1


@deuteron.jit
def row_sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tl.store(out + i, tl.sum(tl.load(x + i[:, None] * COLUMNS + j[None, :]), 1))


@pytest.mark.parametrize(("num_warps", "steps"), [(1, 6), (4, 6)])
def test_a_reduction_goes_through_six_bits_of_the_lane(num_warps, steps):
    signature, constants = {"x": "*fp32", "out": "*fp32"}, {"ROWS": 1, "COLUMNS": 1024}
    _, assembly = compile_for_amdgcn(row_sums, signature, constants, num_warps)
    assert assembly.count("ds_bpermute_b32") == steps
    assert ("s_barrier" in assembly) == (num_warps > 1)


@deuteron.jit
def everything(x, y, out, n, N: tl.constexpr):
    """A loop of products, a transposition, a scan, functions, narrow floats."""
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for k in tl.range(n, num_stages=3):
        acc = tl.dot(tl.load(x + places + k * N * N), tl.trans(tl.load(y + places + k * N * N)), acc)
    acc = tl.exp(acc) + tl.sin(acc) + tl.cumsum(acc, 1).to(tl.float8e5).to(tl.float32) / 3
    tl.store(out + places, acc.to(tl.float16))


@pytest.mark.parametrize("hinted", [(), ("x", "y", "out")])
def test_the_rules_of_other_ops(hinted):
    """Without matrix instructions products are multiply-adds; loads ahead go through registers."""
    signature = {"x": "*fp16", "y": "*fp16", "out": "*fp16", "n": "i32"}
    ttgir, assembly = compile_for_amdgcn(everything, signature, {"N": 32}, hinted=hinted)
    assert "v_fma" in assembly and "ds_bpermute" in assembly
    assert not re.findall(r'"ttng\.|"ttg\.async|tt\.descriptor', ttgir)
    assert "lds" not in " ".join(re.findall(r"global_load\S*", assembly))


@deuteron.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


def test_atomics():
    _, assembly = compile_for_amdgcn(histogram, {"x": "*i32", "counts": "*i32", "n": "i32"}, {"BLOCK": 256})
    assert assembly.count("global_atomic_add ") == 1


def test_what_cannot_be_launched():
    with pytest.raises(UsageError, match="2048 threads, and amdgcn:gfx90a launches at most 1024: say num_warps=16"):
        GPUConfig(MI200, num_warps=32)
    with pytest.raises(UsageError, match="clusters of 2 CTAs, and amdgcn:gfx90a launches at most 1 together"):
        GPUConfig(MI200, num_ctas=2)


def test_its_ttgir_is_not_for_nvidia():
    ttgir, _ = compile_for_amdgcn(row_sums, {"x": "*fp32", "out": "*fp32"}, {"ROWS": 1, "COLUMNS": 64}, num_warps=1)
    with pytest.raises(UsageError, match="the ttgir is for warps of 64 threads, cuda:90 has warps of 32"):
        compile_text(ttgir, "cuda:90", "ttgir", num_warps=1)
    with pytest.raises(IRError, match="is not for warps of 32 threads"):
        compile_text(ttgir.replace('"ttg.threads-per-warp" = 64', '"ttg.threads-per-warp" = 32'), stage="ttgir")
