"""Which loops read rows again, from the end and past the caches, and that they compute what they did."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module

X = aligned(np.zeros(1 << 12, np.float32))


@pytest.fixture(autouse=True)
def one_version(monkeypatch):
    """Two are counted in test_version_loops.py."""
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "version-loops")


@deuteron.jit
def two_passes(x, w, out, n, BLOCK: tl.constexpr, CASE: tl.constexpr):
    row = x + tl.program_id(0) * n if CASE != "shared" else x
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, n, BLOCK, loop_unroll_factor=1):
        if CASE == "other":
            total += tl.load(w + start + i, mask=start + i < n, other=0)
        else:
            total += tl.load(row + start + i, mask=start + i < n, other=0)
    scale = tl.sum(total, 0)
    pointers = row + i
    for start in range(0, n, BLOCK):
        cache: tl.constexpr = ".cg" if CASE == "said" else ""
        x_i = tl.load(pointers if CASE == "carried" else row + start + i, mask=start + i < n, cache_modifier=cache)
        y = x_i * scale * tl.load(w + start + i, mask=start + i < n)
        tl.store(out + tl.program_id(0) * n + start + i, y, mask=start + i < n)
        pointers += BLOCK
    if CASE == "third":
        for start in range(0, n, BLOCK):
            mask = start + i < n
            tl.store(out + start + i, tl.load(row + start + i, mask=mask) + scale, mask=mask)
    if CASE == "scalar":
        tl.store(out, tl.load(row + 5) + scale)
    if CASE == "dot":
        tile = tl.broadcast_to(total[:, None], (BLOCK, BLOCK))
        tl.store(out + i[:, None] * BLOCK + i[None, :], tl.dot(tile, tile))


def text_of(kernel, *args, **given) -> str:
    return compile_for("cuda:90", kernel, *args, **given).asm["ttgir"]


def streamed(case: str) -> tuple[int, int, int]:
    """How many loads of tiles of ttgir are streamed, how many are forgotten last, and how many others there are."""
    loads = re.findall(r"tt\.load .*tensor<128x!tt\.ptr", text_of(two_passes, X, X, X, 1000, BLOCK=128, CASE=case))
    found, kept = (sum(word in load for load in loads) for word in ("cache_modifier = cs", "= evict_last"))
    return found, kept, len(loads) - found - kept


# The loads before the loop and in it, which has two iterations in one: of the row twice, of the weight once.
@pytest.mark.parametrize(
    ("case", "streams", "kept", "others"),
    [
        ("plain", 3, 3, 3),
        ("carried", 3, 3, 3),
        ("scalar", 3, 3, 3),
        ("third", 3, 6, 3),
        ("other", 0, 0, 9),
        ("said", 0, 0, 9),
        ("shared", 0, 0, 9),
        ("dot", 0, 0, 3),
    ],
)
def test_the_last_of_several_loops_streams(case, streams, kept, others):
    assert streamed(case) == (streams, kept, others)


@deuteron.jit
def again(x, out, n, begin, BLOCK: tl.constexpr, CASE: tl.constexpr):
    """Loops over a row; what the second one does decides whether it may go backwards."""
    row = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + row + start + i, mask=start + i < n, other=0)
    scale = tl.sum(total, 0)
    last = total
    for start in range(begin if CASE == "begin" else 0, n, BLOCK // 2 if CASE == "overlap" else BLOCK):
        place, mask = row + start + i, start + i < n
        y = tl.load(x + place, mask=mask, other=0) * scale
        if CASE == "carry":
            last = y
        if CASE == "in place":
            tl.store(x + place, y, mask=mask)
        elif CASE == "handed on":
            tl.store(x + place + BLOCK, y, mask=start + i + BLOCK < n)
        elif CASE == "one place":
            tl.store(out + i, y)
        elif CASE == "by halves":
            tl.store(out + start // 2 + i, y, mask=mask)
        elif CASE == "add":
            tl.atomic_add(out + i, y, mask=mask)
        elif CASE == "late":
            tl.store(out + place + BLOCK, y, mask=start + i + BLOCK < n)
        elif CASE == "print":
            tl.device_print("start", start)
            tl.store(out + place, y, mask=mask)
        else:
            tl.store(out + place, y, mask=mask)
    if CASE == "carry":
        tl.store(out + i, last)


# Whether the second loop goes backwards. What divides its index is there twice, of two iterations.
CASES = {
    "plain": True,
    "in place": True,
    "begin": False,
    "overlap": False,
    "carry": False,
    "handed on": False,
    "one place": False,
    "by halves": False,
    "add": False,
    "late": False,  # if `out` is `x`, the next iteration reads what this one writes
    "print": False,
}


@pytest.mark.parametrize(("case", "backwards"), CASES.items())
def test_what_goes_backwards(case, backwards):
    text = text_of(again, X, X[1024:], 1000, 0, BLOCK=128, CASE=case)
    assert sum(map(text.count, ("arith.divsi", "arith.divui"))) == backwards + 2 * (case == "by halves")


def test_what_is_relied_on_is_told():
    """Row and result may be one array, but no others that overlap."""
    kernel = compile_for("cuda:90", again, X, X[1024:], 1000, 0, BLOCK=128, CASE="plain")
    assert "tt.apart = #tt.pairs<[0, 1, 1, 0, 0]>" in kernel.asm["ttgir"]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", [case for case in CASES if case != "print"])
@pytest.mark.parametrize("n", [0, 1, 128, 300])
def test_what_is_computed_is_the_same(case, n):
    """Beside the interpreter, which takes loops as they are."""
    found = []
    for run in (emulate, interpret):
        random = np.random.default_rng(5)
        x, out = (aligned(random.integers(-3, 4, 1024).astype(np.float32)) for _ in range(2))
        run(again, x, out, n, 0, BLOCK=128, CASE=case, grid=(1, 1, 1))
        found.append((x, out))
    for ours, exact in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, exact)


def interpret(kernel, *args, grid, **constexprs) -> None:
    names = kernel.arg_names[: len(args)]
    signature = {n: "*fp32" if isinstance(a, np.ndarray) else "i32" for n, a in zip(names, args, strict=True)}
    signature |= dict.fromkeys(constexprs, "constexpr")
    run_module(lower_function(kernel, signature, constexprs, {}), args, grid)


def test_with_weights(rng):
    x, w = (aligned(rng.standard_normal(size).astype(np.float32)) for size in ((3, 300), 300))
    out = aligned(np.zeros((3, 300), np.float32))
    kernel = emulate(two_passes, x, w, out, 300, BLOCK=128, CASE="plain", grid=(3,))
    np.testing.assert_allclose(out, x * x.sum(1, keepdims=True) * w, rtol=1e-3, atol=1e-4)
    assert kernel.asm["ptx"].count("ld.global.cs") == 3 and kernel.asm["ptx"].count("st.global.cs") == 2
