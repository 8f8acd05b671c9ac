"""Programs that are clusters of blocks: what is launched, and what tells a program and a block which it is."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for, compile_text, emulate, emulate_compiled, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def place(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    width, height = tl.num_programs(0), tl.num_programs(1)
    tl.store(out + x + width * (y + height * z), 100 * x + 10 * y + z)


@pytest.mark.parametrize("target", ["cuda:90", "cuda:100", "cuda:120"])
@pytest.mark.parametrize("num_ctas", [1, 2, 4, 8])
def test_the_grid_counts_programs(num_ctas, target):
    out = np.full(25, -1, np.int32)
    emulate(place, out, grid=(3, 4, 2), target=target, num_ctas=num_ctas)
    z, y, x = np.indices((2, 4, 3))
    np.testing.assert_array_equal(out, [*(100 * x + 10 * y + z).ravel(), -1])


@pytest.mark.parametrize("num_ctas", [2, 8])
def test_the_kernel_says_how_large_its_clusters_are(num_ctas):
    kernel = compile_for("cuda:90", place, np.zeros(1, np.int32), num_ctas=num_ctas)
    assert ".explicitcluster" in kernel.asm["ptx"] and f".reqnctapercluster {num_ctas}, 1, 1\n" in kernel.asm["ptx"]
    assert kernel.metadata.num_ctas == num_ctas
    assert not instructions_with(kernel, "ctaid")


def test_a_program_of_one_block_is_no_cluster():
    kernel = compile_for("cuda:90", place, np.zeros(1, np.int32), num_ctas=1)
    assert "explicitcluster" not in kernel.asm["ptx"] and not instructions_with(kernel, "%cluster")
    assert instructions_with(kernel, "%ctaid.x")


@deuteron.jit
def show(n):
    tl.device_print("n", n)


def test_what_is_printed_names_the_program():
    printed = []
    emulate_compiled(compile_for("cuda:90", show, 7, num_ctas=2), 7, grid=(3,), printed=printed)
    assert set(printed) == {f"pid ({program}, 0, 0) idx () n: 7\n" for program in range(3)}


# Each block writes its number in the cluster to where its program and that number say.
RANKS = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<i32>) -> (), sym_visibility = "public"}> ({
  ^bb0(%out: !tt.ptr<i32>):
    %rank = "ttng.cluster_cta_rank"() : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %four = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %first = "arith.muli"(%pid, %four) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %i = "arith.addi"(%first, %rank) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %to = "tt.addptr"(%out, %i) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%to, %rank) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 4 : i32, "ttg.shared" = 0 : i32} : () -> ()
"""


def test_the_number_of_a_block_in_its_cluster():
    out = np.full(13, -1, np.int32)
    emulate_compiled(compile_text(RANKS, stage="ttgir", num_ctas=4), out, grid=(3,))
    np.testing.assert_array_equal(out, [0, 1, 2, 3] * 3 + [-1])


@deuteron.jit
def promised_rows(x, out, stride, R: tl.constexpr, C: tl.constexpr):
    rows = tl.multiple_of(tl.program_id(0) * R + tl.arange(0, R), R)
    at = rows[:, None] * stride + tl.arange(0, C)[None, :]
    tl.store(out + at, tl.load(x + at) + rows[:, None])


@pytest.mark.parametrize("num_ctas", [2, 4])
def test_promises_about_rows_of_which_a_block_has_some(rng, num_ctas):
    """What divides the first of four rows does not divide the others."""
    x = rng.integers(-99, 99, (8, 71), np.int32)
    out = np.zeros_like(x)
    emulate(promised_rows, x, out, 71, R=4, C=64, grid=(2,), num_ctas=num_ctas, num_warps=1)
    np.testing.assert_array_equal(out[:, :64], x[:, :64] + np.arange(8)[:, None])
