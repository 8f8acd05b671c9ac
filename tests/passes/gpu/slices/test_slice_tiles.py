"""Kernels of very large tiles get loops over slices; those of tiles that fit into registers stay as they are."""

import importlib.util

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.language.extra import libdevice
from deuteron.passes.gpu.slices import slice_tiles
from deuteron.passes.gpu.slices.slice_tiles import SliceTiles

X = np.zeros(1 << 16, np.float32)


@deuteron.jit
def scaled(x, w, out, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    at = (i[:, None, None] * B + j[None, :, None]) * C + k[None, None, :]
    mask = (i < n)[:, None, None]
    tile = tl.load(x + at, mask=mask, other=0.0)
    tl.store(out + at, tile * tl.load(w + k)[None, None, :] + tl.exp(tile), mask=mask)


def loops_and_lines(shape: tuple[int, int, int]) -> tuple[int, int]:
    a, b, c = shape
    kernel = compile_for("cuda:90", scaled, X, X, X, 5, A=a, B=b, C=c)
    return kernel.asm["ttgir"].count("scf.for"), kernel.asm["ptx"].count("\n")


@pytest.mark.parametrize(("shape", "loops"), [((8, 32, 32), 0), ((64, 32, 32), 1)], ids=["64 registers", "512"])
def test_how_large(shape, loops):
    found, lines = loops_and_lines(shape)
    assert found == loops
    assert lines < 3500


@deuteron.jit
def in_place(x, out, A: tl.constexpr, B: tl.constexpr):
    """Loads and stores of one argument are in no loop together."""
    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    tile = tl.exp(tl.exp(tl.load(x + at)))
    tl.store(x + (A * B - 1 - at), tl.exp(tile))


def test_stores_come_after_all_loads():
    text = compile_for("cuda:90", in_place, X, X, A=256, B=256).asm["ttgir"]
    loops = text.split("scf.for")[1:]
    assert loops
    assert not any("tt.load" in loop and "tt.store" in loop.split("ttg.rolled")[0] for loop in loops)


@deuteron.jit
def functions(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tile = tl.load(x + at)
    tile = libdevice.pow(tile, 1.7) + tl.sin(tile) * tl.cos(tile)
    tl.store(out + at, libdevice.erf(tile) + libdevice.lgamma(tile) + libdevice.tan(tile))


@pytest.mark.parametrize(("size", "loops"), [(1024, 0), (4096, 1)])
def test_long_functions_of_fewer_registers(size, loops):
    """32 of a thread, which spilled 6 KB at once."""
    kernel = compile_for("cuda:90", functions, X, X, N=size)
    assert kernel.asm["ttgir"].count("scf.for") == loops
    assert kernel.metadata.resources["spill_bytes"] == 0


@deuteron.jit
def scanned(x, out, A: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + at, tl.cumsum(tl.cumsum(tl.load(x + at), 0), 1))


def test_scans_are_cut_along_the_other_dimension():
    """That along the rows, in which lanes take turns."""
    kernel = compile_for("cuda:90", scanned, X, X, A=128, B=128, num_warps=1)
    assert kernel.asm["ttgir"].count("scf.for") == 2
    assert kernel.asm["ptx"].count("\n") < 3500


@deuteron.jit
def sorted_row(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


def test_steps_of_a_sorting_network_are_in_loops_over_slices():
    """Those whose partners a slice has, of one row in one warp: 35,502 lines at once."""
    kernel = compile_for("cuda:90", sorted_row, X, X, N=4096, num_warps=1)
    assert kernel.asm["ttgir"].count("scf.for") >= 3
    assert kernel.asm["ptx"].count("\n") < 7000


BIG = """
at = (tl.arange(0, 64)[:, None, None] * 64 + tl.arange(0, 64)[None, :, None]) * 64 + tl.arange(0, 64)[None, None, :]
a = tl.load(x + at)
"""
# What is done with 8,192 elements of a thread, and was as many instructions, or ten times as many.
ONE_OP = {
    "a sum of all": "tl.store(y, tl.sum(tl.exp(a)))",
    "an index": "tl.store(y + tl.arange(0, 64), tl.argmax(tl.max(a, 2), 1))",
    "atomics": "tl.atomic_add(y + at, a + 1)",
    "what an atomic gives": "tl.store(x + at, tl.atomic_add(y + at, a + 1) * 2)",
    "compare and swap": "tl.store(x + at, tl.atomic_cas(y + at, a, a + 1))",
    "halves": "b, c = tl.split(tl.join(a * 2, tl.load(y + at)))\ntl.store(x + at, b + 1)\ntl.store(y + at, c)",
    "a transposed tile": "tl.store(y + tl.trans(at) * 2, tl.trans(a))\ntl.store(y + at, a)",
    "functions": "tl.store(y + at, libdevice.pow(a, a) + tl.sin(a))",
    "random numbers": "tl.store(y + at, tl.rand(n, at))",
    "assembly": "tl.store(y + at, tl.inline_asm_elementwise('add.f32 $0, $1, $1;', '=f,f', [a], tl.float32, True, 1))",
}


@pytest.mark.parametrize("name", ONE_OP)
def test_every_op_is_in_loops(tmp_path, name):
    path = tmp_path / f"{name.replace(' ', '_')}.py"
    body = "".join(f"    {line}\n" for line in (BIG.strip() + "\n" + ONE_OP[name]).splitlines())
    head = "import deuteron\nimport deuteron.language as tl\nfrom deuteron.language.extra import libdevice\n\n\n"
    path.write_text(f"{head}@deuteron.jit\ndef kernel(x, y, n):\n{body}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dtype = np.int32 if "swap" in name else np.float32
    kernel = compile_for("cuda:90", module.kernel, X.astype(dtype), X.astype(dtype), 5, num_warps=1)
    assert kernel.asm["ptx"].count("\n") < 4500


@deuteron.jit
def squared(x, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    square = tl.dot(tl.load(x + at), tl.load(x + N + at))
    tl.store(out + at, tl.dot(square, tl.load(x + 2 * N + at)))


@pytest.mark.parametrize(("least", "products"), [(1 << 20, 512), (-(1 << 20), 64)])
def test_dots_by_matrix_instructions_are_loops_along_k(monkeypatch, least, products):
    """64x64x64 of tf32 in one warp, in a kernel that is too long: operands in shared memory, or of another dot."""
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=least))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    kernel = compile_for("cuda:90", squared, X, X, N=64, num_warps=1)
    assert kernel.asm["ptx"].count("mma.sync") == products
    assert ("ttg.memdesc_slice" in kernel.asm["ttgir"]) == (products == 64)


def test_many_tiles_of_half_the_registers_are_in_loops(monkeypatch):
    """In a kernel that is too long all the same: 128 registers of a thread each."""
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=1000))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    loops = []
    for least in (1 << 20, 1000):
        monkeypatch.setattr("deuteron.passes.gpu.slices.slice_tiles.CROWDED_COST", least)
        kernel = compile_for("cuda:90", squared, X, X, N=64, num_warps=1)
        loops.append(kernel.asm["ttgir"].count("scf.for"))
    assert loops[1] > loops[0]


@deuteron.jit
def recurrent(q, k, v, state, out, steps, T: tl.constexpr, N: tl.constexpr):
    """A state of more elements than a thread has registers, where N is 128 and a warp is alone."""
    i, j, row = tl.arange(0, T)[:, None], tl.arange(0, N)[None, :], tl.arange(0, N)[:, None]
    tile = tl.load(state + row * N + j)
    for step in range(steps):
        at = (step * T + i) * N + j
        a, b, c = tl.load(q + at), tl.load(k + at), tl.load(v + at)
        total = tl.dot(a, tile.to(tl.float16)) + tl.dot(c, tl.trans(tile).to(tl.float16))
        tl.store(out + at, total)
        tile = tile * 0.5 + tl.dot(tl.trans(b), c)
    tl.store(state + row * N + j, tile)


def compiled_state(least_cost: int, monkeypatch):
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=least_cost))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    half = X.astype(np.float16)
    return compile_for("cuda:90", recurrent, half, half, half, X, X, 5, T=16, N=128, num_warps=1)


def test_states_that_no_registers_hold_are_carried_in_memory(monkeypatch):
    """512 registers of a thread: dots take and give slices of it, loops over which stay loops."""
    whole, sliced = (compiled_state(least, monkeypatch) for least in (1 << 20, 1000))
    loop = next(line for line in sliced.asm["ttgir"].splitlines() if "scf.for" in line and "%step" in line)
    assert "128x128" not in loop
    assert sliced.asm["ptx"].count("mma.sync") * 4 <= whole.asm["ptx"].count("mma.sync")
    assert sliced.metadata.resources["spill_bytes"] * 4 <= whole.metadata.resources["spill_bytes"]


@deuteron.jit
def gathered_rows(x, rows, y, out, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    i, k, j = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]
    a = tl.load(y + i * K + k[None, :])
    acc = tl.zeros((M, N), tl.float32)
    for step in range(n):
        row = tl.load(rows + step * K + k)
        acc = tl.dot(a, tl.load(x + row[:, None] * N + j), acc)
    tl.store(out + i * N + j, acc)


def test_pointers_that_were_in_memory_are_known_to_be_neighbours(monkeypatch):
    """Copies that run on take the pointers of all slices, which have to be neighbours."""
    for name, value in (("groups.IN_SLICE", 4), ("groups.HEAVY", 4), ("slice_tiles.LEAST_WITH_DOT", -(1 << 20))):
        monkeypatch.setattr(f"deuteron.passes.gpu.slices.{name}", value)
    monkeypatch.setattr("deuteron.passes.gpu.slices.slice_tiles.LEAST_IN_GROUP", -(1 << 20))
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=-(1 << 20)))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    half, index = X.astype(np.float16), X.astype(np.int32)
    kernel = compile_for("cuda:90", gathered_rows, half, index, half, X, 5, M=64, K=64, N=32, num_warps=4)
    assert "x!tt.ptr<f16>" in "".join(line for line in kernel.asm["ttgir"].splitlines() if "private_load" in line)
    assert "cp.async.cg" in kernel.asm["ptx"]


def test_addresses_are_not_left_in_memory(monkeypatch):
    """Of those of a whole copy a thread needs one for each vector, and not all 128 in 1 KB of its memory."""
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=1000))
    monkeypatch.setattr("deuteron.passes.gpu.slices.slice_tiles.CROWDED_COST", 1000)
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    half, index = X.astype(np.float16), X.astype(np.int32)
    text = compile_for("cuda:90", gathered_rows, half, index, half, X, 5, M=64, K=64, N=256).asm["ttgir"]
    assert "ttg.async_copy" in text
    assert not any("tt.ptr" in line for line in text.splitlines() if "ttg.private_" in line)


@deuteron.jit
def chosen(x, y, out, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.zeros((N, N), tl.float32)
    if n > 3:
        tile = tl.dot(tl.exp(tl.load(x + at)), tl.exp(tl.load(y + at)), input_precision="ieee")
    tl.store(out + at, tl.exp(tile))


def test_crowded_kernels_have_no_whole_tiles(monkeypatch):
    """Neither of what goes to shared memory, nor of what a branch gives, nor of sums by multiply-adds."""
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=1000))
    monkeypatch.setattr("deuteron.passes.gpu.slices.slice_tiles.CROWDED_COST", 1000)
    text = compile_for("cuda:90", chosen, X, X, X, 5, N=64, num_warps=1).asm["ttgir"]
    stores = [line for line in text.splitlines() if "ttg.local_store" in line]
    assert len(stores) == 2
    assert not any("(tensor<64x64xf32" in line for line in stores)
    dot = next(line for line in text.splitlines() if '"ttg.sliced_dot"' in line)
    assert dot.rpartition("->")[2].strip().startswith(("tensor<16x64xf32", "tensor<64x16xf32"))
    assert not any("scf.if" in line and "tensor" in line for line in text.splitlines())


@pytest.mark.parametrize(("registers", "is_crowded"), [(127, True), (1 << 20, False)])
def test_fewer_instructions_crowd_a_kernel_whose_tiles_spill(monkeypatch, registers, is_crowded):
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=1000))
    for name, value in (("SPILLING_COST", 1000), ("SPILLING_REGISTERS", registers)):
        monkeypatch.setattr(f"deuteron.passes.gpu.slices.slice_tiles.{name}", value)
    text = compile_for("cuda:90", chosen, X, X, X, 5, N=64, num_warps=1).asm["ttgir"]
    assert any("scf.if" in line and "tensor" in line for line in text.splitlines()) != is_crowded


@deuteron.jit
def few_rows(q, k, v, out, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    d, n, m = tl.arange(0, D), tl.arange(0, N), tl.arange(0, M)
    keys = tl.load(k + n[:, None] * D + d[None, :])
    scores = tl.dot(tl.load(q + m[:, None] * D + d[None, :]), keys.T)
    p = tl.exp(scores - tl.max(scores, 1)[:, None])
    values = tl.load(v + n[:, None] * D + d[None, :])
    tl.store(out + m[:, None] * D + d[None, :], tl.dot(p.to(tl.float16), values))


@pytest.mark.parametrize("rows", [2, 4])
def test_dots_of_fewer_rows_than_an_instruction_has_are_cut(rows):
    half = X.astype(np.float16)
    text = compile_for("cuda:90", few_rows, half, half, half, X, M=rows, N=1024, D=64, num_warps=1).asm["ttgir"]
    assert text.count("scf.for") > 1


@deuteron.jit
def above_sum(x, out, A: tl.constexpr, B: tl.constexpr):
    """What a whole tile sums up to, a scalar, is known when all slices are done: what takes it is in another loop."""
    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    tile = tl.load(x + at)
    threshold = tl.sum(tl.exp(tl.sin(tl.exp(tl.sin(tl.exp(tile))))))
    kept = tl.where(tile >= threshold, tile, -float("inf"))
    tl.store(out + at, tl.exp(tl.sin(kept - tl.max(kept, axis=1)[:, None])))


def test_scalars_that_are_sums_of_all_slices_end_a_group():
    text = compile_for("cuda:90", above_sum, X, X, A=64, B=128, num_warps=1).asm["ttgir"]
    assert text.count("scf.for") > 1


@deuteron.jit
def capped_attention(q, k, v, out, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns, at = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + at[None, :])
    total, weight = tl.zeros((M, D), tl.float32), tl.zeros((M,), tl.float32)
    for start in range(0, n, N):
        places = (start + columns)[:, None] * D + at[None, :]
        scores = tl.dot(query, tl.load(k + places).T) * 0.125
        scores = 20.0 * (1.0 - 2.0 / (tl.exp(scores * 0.1) + 1.0))
        weights = tl.exp(tl.where(rows[:, None] >= start + columns[None, :], scores, -float("inf")))
        weight += tl.sum(weights, axis=1)
        total = tl.dot(weights.to(tl.float16), tl.load(v + places), total)
    tl.store(out + rows[:, None] * D + at[None, :], total / weight[:, None])


@pytest.mark.parametrize(("times", "is_sliced"), [(slice_tiles.TIMES_BESIDE_DOTS, False), (1, True)])
def test_loops_on_tensor_cores_stay_whole_where_they_fit(monkeypatch, times, is_sliced):
    """They took 1.8 times as long in slices, through memory from dot to dot."""
    monkeypatch.setattr(slice_tiles, "TIMES_BESIDE_DOTS", times)
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=3000))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    arrays = [X.astype(np.float16)] * 3
    text = compile_for("cuda:90", capped_attention, *arrays, X, 5, M=128, N=128, D=64).asm["ttgir"]
    assert ("ttg.private_alloc" in text) == is_sliced
