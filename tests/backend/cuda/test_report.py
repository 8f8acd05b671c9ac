"""The compile report: each topic on a kernel that shows it, always with the line of this file."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import rich
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler import nvdisasm
from deuteron.backend.cuda.report import make_report
from deuteron.compiler import IRSource
from deuteron.errors import Location

SOURCE = Path(__file__).read_text().splitlines()


def line(place: Location) -> str:
    """The text of a place, which has to be in this file."""
    assert place.file == __file__
    return SOURCE[place.line - 1]


@deuteron.jit
def copy(x, out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.arange(0, BLOCK) * STEP
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value, mask=i < n)


def report_copy(n, step, dtype=np.float32, align=aligned):
    x = align(np.zeros(4096, dtype))
    return compile_for("cuda:90", copy, x, x, n, BLOCK=1024, STEP=step).report()


def test_wide_accesses():
    report = report_copy(1024, 1)
    assert [(a.kind, a.num_bytes, a.limit) for a in report.accesses] == [("load", 16, None), ("store", 16, None)]
    assert [line(a.place).strip()[:8] for a in report.accesses] == ["value = ", "tl.store"]
    assert report.accesses[0].count == 2


@pytest.mark.parametrize(
    ("n", "step", "align", "limit"),
    [
        (1024, 2, aligned, "no two elements are known to be contiguous"),
        (1001, 1, aligned, "the mask may differ between any two elements"),
        (1024, 1, lambda x: aligned(x)[1:], "addresses are only known to be aligned to 4 bytes"),
    ],
)
def test_why_an_access_is_narrow(n, step, align, limit):
    for access in report_copy(n, step, align=align).accesses:
        assert (access.num_bytes, access.limit) == (4, limit)


@deuteron.jit
def scalars(x, out):
    tl.store(out, tl.load(x) + 1)


def test_scalars_are_called_so():
    x = aligned(np.zeros(4, np.float32))
    report = compile_for("cuda:90", scalars, x, x).report()
    assert [(a.kind, a.num_bytes, a.limit) for a in report.accesses] == [
        ("load", 4, "a scalar"),
        ("store", 4, "a scalar"),
    ]


@deuteron.jit
def matmul(a, b, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + j[None, :])
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
    tl.store(out + i[:, None] * N + j[None, :], acc)


def compile_matmul(target, dtype=np.float16, tile=(64, 64, 64), precision="tf32", **options):
    bm, bn, bk = tile
    a, b = aligned(np.zeros((bm, 4 * bk), dtype)), aligned(np.zeros((4 * bk, bn), dtype))
    out = aligned(np.zeros((bm, bn), np.float32))
    constants = {"BM": bm, "BN": bn, "BK": bk, "PRECISION": precision}
    return compile_for(target, matmul, a, b, out, bn, 4 * bk, **constants, **options)


PRODUCTS = [
    # target, dtype, tile, precision -> instruction, its number, operands, remark
    ("cuda:90", np.float16, (64, 64, 64), "tf32", "wgmma m64n64k16 f32.f16.f16", 4, "a and b in shared memory", None),
    (
        "cuda:80",
        np.float16,
        (64, 64, 32),
        "tf32",
        "mma.sync m16n8k16 f32.f16.f16.f32",
        16,
        "a and b in registers",
        None,
    ),
    (
        "cuda:90",
        np.float16,
        (32, 64, 32),
        "tf32",
        "mma.sync m16n8k16 f32.f16.f16.f32",
        8,
        "a and b in registers",
        "no wgmma: it takes 64 rows, there are 32",
    ),
    (
        "cuda:80",
        np.float32,
        (16, 16, 16),
        "ieee",
        "fma.rn.f32 (multiply-adds in each thread)",
        None,
        "a and b in registers",
        "no mma.sync: it does not multiply f32 with input_precision 'ieee'",
    ),
]


@pytest.mark.parametrize(
    ("target", "dtype", "tile", "precision", "instruction", "count", "operands", "remark"), PRODUCTS
)
def test_dots(target, dtype, tile, precision, instruction, count, operands, remark):
    (dot,) = compile_matmul(target, dtype, tile, precision).report().dots
    assert (dot.instruction, dot.operands, dot.remark) == (instruction, operands, remark)
    assert dot.count == (count or dot.count) > 0
    assert "tl.dot" in line(dot.place)
    assert dot.tile.startswith("x".join(map(str, tile)))


def test_blocks_that_are_copied_by_tma():
    for stages in (1, 3):
        report = compile_matmul("cuda:90", num_stages=stages).report()
        assert [(load.how, load.buffers, load.num_bytes) for load in report.pipelined] == [("TMA", stages, 8192)] * 2
        assert not report.not_pipelined


def test_pipelined_loads_and_their_buffers(by_pointers):
    report = compile_matmul("cuda:90", num_stages=3).report()
    assert [(load.how, load.buffers, load.num_bytes) for load in report.pipelined] == [("cp.async", 3, 64 * 64 * 2)] * 2
    assert ["tl.load(a" in line(report.pipelined[0].place), "tl.load(b" in line(report.pipelined[1].place)] == [
        True
    ] * 2
    assert not report.not_pipelined
    assert {(a.kind, a.num_bytes) for a in report.accesses if "tl.load" in line(a.place)} == {("copy", 16)}


def test_one_stage_is_not_pipelined(by_pointers):
    report = compile_matmul("cuda:90", num_stages=1).report()
    assert not report.pipelined
    assert {load.reason for load in report.not_pipelined} == {"num_stages is 1, below 2"}


@deuteron.jit
def in_loop(x, indices, out, n, KIND: tl.constexpr):
    i, at = tl.arange(0, 64), tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(n):
        if KIND == "list":
            at = tl.load(indices + at)
            tile = tl.load(x + at[:, None] * 64 + i[None, :])
            total = tl.dot(tile, tile, total)
        elif KIND == "by constant" or KIND == "by argument":
            tile = tl.load(x + (k // (n if KIND == "by argument" else 3)) * 4096 + i[:, None] * 64 + i[None, :])
            total = tl.dot(tile, tile, total)
        elif KIND == "atomic":
            tile = tl.load(x + k * 4096 + i[:, None] * 64 + i[None, :])
            total = tl.dot(tile, tile, total)
            tl.atomic_add(indices, 1)
        elif KIND == "branch":
            if k > 2:
                total += tl.load(x + k * 4096 + i[:, None] * 64 + i[None, :])
        elif KIND == "stores":
            tile = tl.load(x + k * 4096 + i[:, None] * 64 + i[None, :])
            total = tl.dot(tile, tile, total)
            tl.store(x + k * 4096 + i[:, None] * 64 + i[None, :], tile)
        else:
            total += tl.load(x + k * 4096 + i[:, None] * 64 + i[None, :])
            if KIND == "beside":
                ones = tl.full((64, 64), 1, tl.float16)
                total = tl.dot(ones, ones, total)
    tl.store(out + i[:, None] * 64 + i[None, :], total)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("list", "its address depends on a load that stays: it loads what its next address depends on"),
        ("atomic", "tt.atomic_rmw keeps the iterations in order"),
        ("branch", "it is in a branch"),
        ("stores", "the loop stores to the same argument"),
        ("beside", "no dot reads it"),
    ],
)
def test_why_a_load_is_not_pipelined(kind, reason):
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    report = compile_for("cuda:80", in_loop, x, aligned(np.zeros(1 << 12, np.int32)), out, 5, KIND=kind).report()
    found = [load for load in report.not_pipelined if load.reason.startswith(reason)]
    assert found and "tl.load(x" in line(found[-1].place)


def test_loads_without_dots_go_into_registers():
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    report = compile_for("cuda:80", in_loop, x, aligned(np.zeros(1 << 12, np.int32)), out, 5, KIND="plain").report()
    assert [load.how for load in report.pipelined] == ["registers"]
    assert [load.reason for load in report.not_pipelined] == ["it is the version of the loop for a few iterations"]
    assert "16 registers for what is loaded ahead, besides 32 for other tiles, of 191" in report.pipelined[0].remark


@pytest.mark.parametrize("kind", ["by constant", "by argument"])
def test_an_address_that_is_divided_is_known_ahead(kind):
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    indices = aligned(np.zeros(1 << 12, np.int32))
    report = compile_for("cuda:80", in_loop, x, indices, out, 5, KIND=kind).report()
    assert report.pipelined and not report.not_pipelined


@deuteron.jit
def in_loops(x, out, n):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(n):
        outer = tl.load(x + k * 4096 + at)
        for j in range(n):
            total = tl.dot(tl.load(x + j * 4096 + at), outer, total)
        step = 0
        while step * n < 9:
            total += tl.load(x + step * 4096 + at)
            step += k + 1
    tl.store(out + at, total)


def test_each_load_has_the_reason_of_its_own_loop(by_pointers):
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    report = compile_for("cuda:90", in_loops, x, out, 5).report()
    reasons = {line(load.place).strip()[:5]: load.reason for load in report.not_pipelined}
    assert reasons == {
        "outer": "the loop is not an innermost one",
        "total": "nothing says before an iteration of a `while`, or of a loop with `break`, that it comes",
    }
    assert [line(load.place).strip()[:15] for load in report.pipelined] == ["total = tl.dot("]


def test_a_pass_that_did_not_run_has_no_reason(monkeypatch):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "pipeline-loads")
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    report = compile_for("cuda:80", in_loops, x, out, 5).report()
    assert {load.reason for load in report.not_pipelined} == {"`pipeline-loads` did not look at it"}


@deuteron.jit
def half_filled(x, y, out, n):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in range(n):
        total = tl.dot(tl.load(x + k * 4096 + at, mask=at < n, other=1.0), tl.load(y + k * 4096 + at), total)
    tl.store(out + at, total)


def test_loads_into_registers_say_why():
    x, out = aligned(np.zeros(1 << 16, np.float16)), aligned(np.zeros(4096, np.float32))
    report = compile_for("cuda:90", half_filled, x, x.copy(), out, 5).report()
    into_registers = [load for load in report.pipelined if load.how == "registers"]
    assert [load.remark for load in into_registers] == [
        "one iteration ahead, into registers: it is not 0 where it is masked off"
    ]


@deuteron.jit
def transpose(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tl.trans(tl.load(x + i[:, None] * BLOCK + i[None, :])))


def test_conversions_and_barriers():
    x = aligned(np.zeros(64 * 64, np.float32))
    report = compile_for("cuda:90", transpose, x, x.copy(), BLOCK=64).report()
    (conversion,) = report.conversions
    assert (conversion.how, conversion.tile, conversion.shared_bytes) == ("shared memory", "64x64 f32", 16384)
    assert [barrier.instruction.split()[0] for barrier in report.barriers] == ["bar.sync"]
    assert report.shared_bytes == 16384


@deuteron.jit
def row_sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    y = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out + i[:, None] * COLUMNS + j[None, :], y / tl.sum(y, axis=1)[:, None])


def compile_spilling(target="cuda:90"):
    x = aligned(np.zeros(16 * 256, np.float32))
    return compile_for(target, row_sums, x, x.copy(), ROWS=16, COLUMNS=256, num_warps=1, maxnreg=40)


def test_what_the_standard_library_does_is_at_the_line_that_calls_it():
    kernel = compile_for("cuda:90", row_sums, *[aligned(np.zeros(4096, np.float32))] * 2, ROWS=1, COLUMNS=4096)
    barriers = [line(barrier.place) for barrier in kernel.report().barriers]
    assert any("tl.max" in text for text in barriers) and any("tl.sum" in text for text in barriers)


def test_spills():
    report = compile_spilling().report()
    used = report.resources
    assert min(used.registers, used.stack_bytes, used.spill_stores, used.spill_loads) > 0
    assert used.spill_bytes == used.spill_stores + used.spill_loads
    assert report.occupancy.ctas > 0
    assert f"spills a thread       {used.spill_stores} bytes stored, {used.spill_loads} bytes loaded" in str(report)


def test_lines_of_spills_from_machine_code():
    kernel = compile_spilling()
    sass = f'//## File "{__file__}", line 7\n /*00*/ STL.64 [R1], R2 ;\n /*10*/ @P0 LDL R3, [R1+0x8] ;\n'
    (spill,) = make_report({**kernel.asm, "sass": sass}, kernel.metadata).spills
    assert (spill.place, spill.stores, spill.loads) == (Location(__file__, 7), 1, 1)


@pytest.mark.skipif(not nvdisasm.has_disassembler(), reason="needs nvdisasm")
def test_machine_code_has_source_lines():
    kernel = compile_spilling()
    assert "STL" in kernel.asm["sass"] and __file__ in kernel.asm["sass"]
    assert all(spill.place.file == __file__ for spill in kernel.report().spills)


def test_serialised_dots_are_messages_with_a_line(tmp_path):
    """The wait after the loop taken away, ptxas puts its own."""
    ptx = compile_matmul("cuda:90").asm["ptx"]
    file = tmp_path / "matmul.ptx"
    file.write_text(re.sub(r"wgmma\.wait_group\.sync\.aligned 0;", "", ptx))
    report = deuteron.compile(IRSource(file), target="cuda:90").report()
    (message,) = report.messages
    assert re.search(r"\(C751\d\)", message.text)
    assert [place.file for place in message.places] == [__file__]
    assert "Messages of ptxas" in str(report) and "(C751" in str(report)


def test_messages_without_a_line_are_about_the_dots():
    kernel = compile_matmul("cuda:90")
    said = "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
    metadata = replace(kernel.metadata, resources={**kernel.metadata.resources, "warnings": [said]})
    (message,) = make_report(kernel.asm, metadata).messages
    assert ["tl.dot" in line(place) for place in message.places] == [True]


def test_a_cached_kernel_reports_the_same(monkeypatch):
    monkeypatch.delenv("DEUTERON_ALWAYS_COMPILE", raising=False)
    first, second = compile_matmul("cuda:90"), compile_matmul("cuda:90")
    assert second.is_cached and first.report() == second.report()


def test_as_data_and_in_colour():
    report = compile_matmul("cuda:90").report()
    assert json.loads(json.dumps(report.to_dict()))["resources"]["registers"] == report.resources.registers
    console = rich.console.Console(force_terminal=True, width=160, record=True, file=StringIO())
    console.print(report)
    assert "wgmma m64n64k16" in console.export_text()


@pytest.mark.parametrize(("num_ctas", "said"), [(1, None), (2, "2, a cluster")])
def test_how_many_blocks_run_a_program(num_ctas, said):
    x, out = (aligned(np.zeros(4096, np.float32)) for _ in range(2))
    report = compile_for("cuda:90", copy, x, out, 1024, BLOCK=1024, STEP=1, num_ctas=num_ctas).report()
    assert report.num_ctas == num_ctas and report.to_dict()["num_ctas"] == num_ctas
    assert dict(report.tables()[0].rows).get("CTAs of a program") == said
    assert report.accesses[0].count == 2 // num_ctas, "each block has its part"
