"""The CUDA backend as a target: stages as inputs, options, limits, errors."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.errors import CompilationError, IRError, OutOfResources, UsageError


@deuteron.jit
def transposed(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + j[:, None] * M + i[None, :], tl.trans(tile))


@pytest.mark.parametrize("stage", ["ttir", "ttgir", "llir", "ptx"])
def test_the_text_of_a_stage_gives_the_same_cubin(stage):
    x = aligned(np.zeros(1024, np.float32))
    kernel = compile_for("cuda:90", transposed, x, x, M=32, N=32)
    again = compile_text(kernel.asm[stage], stage=stage)
    assert again.asm["ptx"].split("\n", 1)[1] == kernel.asm["ptx"].split("\n", 1)[1]
    assert again.metadata.shared == kernel.metadata.shared


def test_ttgir_without_places_gets_them(rng):
    x, out = (aligned(rng.standard_normal(1024).astype(np.float32)) for _ in range(2))
    text = generic_asm(compile_for("cuda:90", transposed, x, out, M=32, N=32), "ttgir")
    lines = [line for line in text.splitlines() if '"ttg.barrier"' not in line]
    bare = "\n".join(lines).replace("allocation.offset = 0 : i32", "").replace("ttg.shared =", "was =")
    emulate_compiled(compile_text(bare, stage="ttgir"), x, out)
    np.testing.assert_array_equal(out.reshape(32, 32), x.reshape(32, 32).T)


@deuteron.jit
def twice_transposed(x, out, N: tl.constexpr):
    """Two exchanges in one place, with barriers between."""
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    for _ in range(2):
        tile = tl.trans(tl.cumsum(tile, 1))
    tl.store(out + i[:, None] * N + i[None, :], tile)


LIES = {
    "a negative place": ("allocation.offset = ", "allocation.offset = -"),
    "an odd place": ("allocation.offset = ", "allocation.offset = 1"),
    "no places": ("allocation.offset = ", "was = "),
    "too little memory": ("ttg.shared = ", "ttg.shared = 1 : i32, was = "),
    "no barriers": ("\n *ttg.barrier all.*", ""),
}


@pytest.mark.parametrize("lie", LIES)
def test_ttgir_that_lies_about_places_and_barriers_is_compiled_rightly(rng, lie):
    x, out = (aligned(rng.integers(0, 9, 1024).astype(np.float32)) for _ in range(2))
    text = compile_for("cuda:90", twice_transposed, x, out, N=32).asm["ttgir"]
    lying = re.sub(*LIES[lie], text)
    assert lying != text
    emulate_compiled(compile_text(lying, stage="ttgir"), x, out)
    np.testing.assert_array_equal(out.reshape(32, 32), x.reshape(32, 32).cumsum(1).cumsum(0))


@deuteron.jit
def squares(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        tile = tl.load(x + k * N * N + i[:, None] * N + i[None, :])
        acc = tl.dot(tile, tile, acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


WAIT = r"(%\w+) = \"ttng.warp_group_dot_wait\"\((%\w+)\).*\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("pendings = 0", "pendings = 1"), "no ttng.warp_group_dot_wait waits for this ttng.warp_group_dot"),
        ((WAIT, ""), "no ttng.warp_group_dot_wait waits|uses the sum of an asynchronous dot that is not waited for"),
    ],
)
def test_ttgir_that_does_not_wait_for_a_dot(change, message):
    x, out = aligned(np.zeros(4096, np.float16)), aligned(np.zeros(4096, np.float32))
    text = compile_for("cuda:90", squares, x, out, 1, N=64).asm["ttgir"]
    for waited, dot in re.findall(WAIT, text) if change[0] == WAIT else ():
        text = re.sub(rf"{waited}\b", dot, text)
    changed = re.sub(*change, text)
    assert changed != text
    with pytest.raises(IRError, match=message):
        compile_text(changed, stage="ttgir")


@pytest.mark.parametrize(
    ("change", "user"),
    [
        (("num = 2", "num = 3"), "ttg.local_load"),
        (("num = 0", "num = 1"), "ttg.local_dealloc"),
        ((r".*async_wait.*num = 2.*\n", ""), "ttg.local_load"),
        ((r".*async_wait.*num = 0.*\n", ""), "ttg.local_dealloc"),
        ((r".*async_commit_group.*\n", ""), "ttg.local_load"),
    ],
)
def test_ttgir_that_does_not_wait_for_a_copy(change, user):
    """One change at a time: of groups, the first, which the first iteration waits for, and that of the loop as well."""
    x, out = aligned(np.zeros(4096, np.float16)), aligned(np.zeros(4096, np.float32))
    text = compile_for("cuda:80", squares, x, out, 1, N=64, num_stages=4).asm["ttgir"]
    places = list(re.finditer(change[0], text))
    assert places
    for place in places:
        changed = text[: place.start()] + change[1] + text[place.end() :]
        with pytest.raises(IRError, match=f"{user} of what a copy in flight writes") as error:
            compile_text(changed, target="cuda:80", stage="ttgir")
        assert error.value.location is not None


def test_metadata_has_what_ptxas_reports():
    x = aligned(np.zeros(1024, np.float32))
    kernel = compile_for("cuda:90", transposed, x, x, M=32, N=32, maxnreg=32)
    assert kernel.metadata.shared == 4096
    assert 0 < kernel.metadata.resources["registers"] <= 32
    assert ".maxnreg 32" in kernel.asm["ptx"] and ".reqntid 128" in kernel.asm["ptx"]


def test_a_limit_of_more_registers_than_a_thread_may_have_is_none():
    x = aligned(np.zeros(1024, np.float32))
    kernel = compile_for("cuda:90", transposed, x, x, M=32, N=32, maxnreg=512)
    assert ".maxnreg 255" in kernel.asm["ptx"]


def test_the_source_line_of_every_instruction_is_kept():
    x = aligned(np.zeros(1024, np.float32))
    kernel = compile_for("cuda:90", transposed, x, x, M=32, N=32)
    assert ".loc" in kernel.asm["ptx"] and "test_backend.py" in kernel.asm["ptx"]
    assert ", debug" not in kernel.asm["ptx"]


@deuteron.jit
def large(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(out + i[None, :] * N + i[:, None], tl.cumsum(tl.trans(tile), 1))


def test_too_much_shared_memory_is_an_error_with_both_numbers():
    x = aligned(np.zeros((256, 256), np.float64))
    with pytest.raises(OutOfResources, match="shared memory") as caught:
        compile_for("cuda:86", large, x, x, N=256)
    assert caught.value.limit == 99 * 1024 < caught.value.required


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_warps": 3}, "num_warps must be a power of two"),
        ({"num_ctas": 3}, "num_ctas must be a power of two from 1 to 8, got 3"),
        ({"num_ctas": 16}, "num_ctas must be a power of two from 1 to 8, got 16"),
        ({"maxnreg": 5}, "maxnreg must be a whole number from 16 on, got 5"),
    ],
)
def test_options(options, message):
    x = np.zeros(128, np.float32)
    with pytest.raises(UsageError, match=message):
        compile_for("cuda:90", transposed, x, x, M=8, N=8, **options)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:89"])
def test_a_target_without_clusters(target):
    with pytest.raises(UsageError, match=f"2 CTAs, and {target} launches at most 1 together: say num_ctas=1"):
        compile_text("", target, num_ctas=2)


def test_an_unknown_architecture():
    with pytest.raises(UsageError, match="Deuteron compiles for cuda:80, cuda:86"):
        compile_text("", "cuda:75")


def test_llvm_text_that_llvm_does_not_accept():
    x = np.zeros(128, np.float32)
    text = compile_for("cuda:90", transposed, x, x, M=8, N=8).asm["llir"]
    with pytest.raises(IRError):
        compile_text(text.replace("ret void", "ret i32 %x"), stage="llir")


def test_equal_kernels_give_equal_text():
    x = aligned(np.zeros(1024, np.float32))
    first = compile_for("cuda:90", transposed, x, x, M=32, N=32).asm["llir"]
    second = compile_for("cuda:90", transposed, x, x, M=32, N=32, num_stages=2).asm["llir"]
    assert first.split("\n", 1)[1] == second.split("\n", 1)[1]
    assert instructions_with(compile_for("cuda:80", transposed, x, x, M=32, N=32), "bar.sync")


def test_an_op_without_a_rule_is_an_error_with_a_way_out():
    text = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32) -> (), sym_visibility = "public"}> ({
  ^bb0(%a: i32, %b: i32):
    %s, %c = "arith.addui_extended"(%a, %b) : (i32, i32) -> (i32, i1)
    "tt.assert"(%c) <{message = "carry", always}> : (i1) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
    with pytest.raises(CompilationError, match="cannot compile 'arith.addui_extended' yet"):
        compile_text(text)
