"""Layouts of a ttgir with something changed by lot: they say who holds what, so that results stay, or it is refused."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text

import deuteron
import deuteron.language as tl
from deuteron.emulator import run_kernel
from deuteron.errors import CompilationError, IRError, OutOfResources

COUNT = 12
VECTOR = r"\[\d+(?:, \d+)*\]"
SPREAD = "expand_dims|broadcast|addptr|make_range|trans|reshape"  # ops for which most changes are refused
DOTS = {
    "mma": ("cuda:80", "float16", "float32", (32, 32, 32), "tf32"),
    "tf32": ("cuda:80", "float32", "float32", (32, 16, 32), "tf32"),
    "int8": ("cuda:80", "int8", "int32", (32, 32, 64), "tf32"),
    "fp64": ("cuda:90", "float64", "float64", (16, 16, 16), "ieee"),
    "multiply-add": ("cuda:80", "float32", "float32", (16, 16, 16), "ieee"),
    "wgmma": ("cuda:90", "float16", "float32", (64, 32, 32), "tf32"),
    "registers": ("cuda:90", "int8", "float32", (64, 32, 32), "tf32"),
}


@deuteron.jit
def product(x, y, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(x + i[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + j[None, :])
    if z.dtype.element_ty == tl.float32 and x.dtype.element_ty == tl.int8:
        a, b = a.to(tl.float16), b.to(tl.float16)
    c = tl.dot(a, b, input_precision=PRECISION, out_dtype=z.dtype.element_ty)
    tl.store(z + i[:, None] * N + j[None, :], c)


@deuteron.jit
def many_ops(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    t, index = tl.load(x + i[:, None] * N + i[None, :]), tl.load(y + i)
    s = tl.cumsum(t, 1) + tl.sum(t, 1)[:, None] + tl.trans(tl.cumsum(t, 0, reverse=True))
    g = tl.gather(s, tl.broadcast_to(index[:, None], (N, N)), 0)
    a, b = tl.split(tl.join(g, s).reshape(N, 2, N).permute(0, 2, 1))
    found = tl.sort(a) + tl.max(b, 0)[None, :] + tl.histogram(index, N)[:, None]
    tl.store(z + i[:, None] * N + i[None, :], found)
    tl.store(z + N * N + tl.arange(0, 2 * N), tl.cat(index, index * 2, can_reorder=False))
    old = tl.atomic_add(z + N * N + 2 * N + i, index)
    tl.store(z + N * N + 3 * N + i, old + tl.argmax(t, 0))


def mutated(rng: np.random.Generator, text: str, is_dot: bool) -> str:
    """One basis of a layout is another's, zero, or the sum of two."""
    lines = text.splitlines()
    aliases = [number for number, line in enumerate(lines) if re.match(r"#(linear|shared)\d* = ", line)]
    if is_dot:
        aliases = [number for number in aliases if not is_spread(lines[number].split()[0], lines)]
    number = int(rng.choice(aliases))
    vectors = [match.span() for match in re.finditer(VECTOR, lines[number])]
    if len(vectors) < 2:
        return text
    (first, second), line = sorted(rng.choice(len(vectors), 2, replace=False)), lines[number]
    (a, b), (c, d) = vectors[first], vectors[second]
    one, other = line[a:b], line[c:d]
    zero, both = (
        re.sub(r"\d+", "0", one),
        str([int(p) ^ int(q) for p, q in zip(*map(entries, (one, other)), strict=True)]),
    )
    new = [(other, one), (other, one), (zero, other), (one, zero), (both, other), (one, both)][rng.integers(6)]
    lines[number] = line[:a] + new[0] + line[b:c] + new[1] + line[d:]
    return "\n".join(lines) + "\n"


def entries(vector: str) -> list[str]:
    return re.findall(r"\d+", vector)


def is_spread(alias: str, lines: list[str]) -> bool:
    return any(re.search(rf"{alias}\b", line) and re.search(SPREAD, line) for line in lines)


def check(rng: np.random.Generator, target: str, kernel, args: list[np.ndarray], **constexprs) -> None:
    compiled = compile_for(target, kernel, *args, **constexprs)
    run_kernel(compiled.asm["ptx"], compiled.metadata, (1,), args)
    expected, text = args[-1].copy(), compiled.asm["ttgir"]
    for _ in range(COUNT):
        other = mutated(rng, text, kernel is product)
        try:
            changed = compile_text(other, target, "ttgir")
        except (IRError, CompilationError, OutOfResources) as error:
            assert not isinstance(error, IRError) or error.location is not None
            continue
        args[-1][...] = 0
        run_kernel(changed.asm["ptx"], changed.metadata, (1,), args)
        np.testing.assert_array_equal(args[-1], expected, err_msg=other.partition("module")[0])


@pytest.mark.share(2)
@pytest.mark.parametrize("case", DOTS)
def test_dots(case, rng):
    target, operand, result, (m, n, k), precision = DOTS[case]
    x, y = (aligned(rng.integers(-4, 5, size).astype(operand)) for size in (m * k, k * n))
    check(rng, target, product, [x, y, aligned(np.zeros(m * n, result))], M=m, N=n, K=k, PRECISION=precision)


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_other_ops(target, rng):
    n = 16
    x, y = aligned(rng.integers(0, 9, n * n).astype("int32")), aligned(rng.integers(0, n, n).astype("int32"))
    check(rng, target, many_ops, [x, y, aligned(np.zeros(n * n + 4 * n, "int32"))], N=n)


@pytest.mark.parametrize(
    ("target", "change", "message"),
    [
        ("cuda:80", ("inputPrecision = tf32", "inputPrecision = ieee"), "f32 with input_precision 'ieee'"),
        ("cuda:90", ("inputPrecision = 0 : i32", "inputPrecision = 2 : i32"), "f32 with input_precision 'ieee'"),
    ],
)
def test_a_precision_that_the_instruction_does_not_have(target, change, message, rng):
    x, y = (aligned(rng.random(64 * 64, "float32")) for _ in range(2))
    text = compile_for(target, product, x, y, x.copy(), M=64, N=64, K=64, PRECISION="tf32").asm["ttgir"]
    assert change[0] in text
    with pytest.raises(CompilationError, match=message):
        compile_text(text.replace(*change), target, "ttgir")
