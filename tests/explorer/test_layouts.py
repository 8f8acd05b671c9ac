"""Layouts as data: they are those of ttgir, at their lines; accesses and conflicts agree with what warps do."""

from itertools import product

import pytest
from explorer.conftest import explored, kernel

from deuteron.explorer.texts import located
from deuteron.layout.conversion import plan_shared
from deuteron.layout.distributed import blocked, mma_v2_accumulator, mma_v2_operand
from deuteron.layout.linear import LANE, REGISTER, LinearLayout
from deuteron.layout.shared import mma_shared, row_major, swizzled
from deuteron.layout.shared_access import Offsets, conflicts, find_matrices

TILES = {
    "rows": blocked([32, 64], [1, 8], [4, 8], [4, 1], [1, 0]),
    "columns": blocked([32, 64], [4, 1], [8, 4], [1, 4], [0, 1]),
    "accumulator": mma_v2_accumulator([32, 64], [2, 2]),
    "operand": mma_v2_operand([32, 64], [2, 2], 0, 16),
}
MEMORIES = {
    "plain": row_major([32, 64]),
    "swizzled": swizzled([32, 64], (1, 0), 8, 1, 8),
    "for dots": mma_shared([32, 64], 1, 2),
    "columns": row_major([32, 64], (0, 1)),
}


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_values_are_at_their_lines(name):
    compiled, found = kernel(name, "cuda:90"), explored(name, "cuda:90").exploration.layouts
    lines = located("ttgir", compiled.asm["ttgir"]).lines
    assert len(found.values) > 20
    for value in found.values:
        line, layout = lines[value.line], found.layouts[value.layout]
        assert value.name in line.strip().partition(" = ")[0].split(", ")
        if not line.endswith("({"):  # those with regions have their types at the end
            assert f"{value.type.rpartition('x')[0]}x" in line and f", {layout.name}" in line
    for dot in found.dots:
        assert "dot" in lines[dot.line] and dot.kind == "wgmma"
        assert found.layouts[dot.b.layout].space == "shared" and found.layouts[dot.c.layout].space == "registers"
    for conversion in found.conversions:
        source, result = (found.layouts[number] for number in (conversion.source, conversion.result))
        assert "convert_layout" in lines[conversion.line] and source.shape == result.shape
        assert f"{source.name}>" in lines[conversion.line] and f"{result.name}>" in lines[conversion.line]


def test_matrices_of_mma():
    found = explored("matmul", "cuda:80").exploration.layouts
    assert {access.how for access in found.accesses if access.kind == "load"} <= {"ldmatrix", "ldmatrix.trans"}
    assert found.accesses != () and all(access.conflicts == 0 for access in found.accesses)
    assert {(dot.kind, dot.instruction) for dot in found.dots} == {("mma", (16, 8, 16))}


@pytest.mark.parametrize(("tile", "memory"), [*product(TILES, MEMORIES)])
def test_conflicts_are_those_of_the_banks(tile, memory):
    """Counted lane by lane: the most different words that the lanes served together want of one bank."""
    layout, held = TILES[tile], MEMORIES[memory]
    offsets = Offsets.of(layout, held, 2)
    size = offsets.vector_bytes
    assert conflicts(offsets.lanes, size) == _counted(layout, held, size) - 1


def _counted(layout: LinearLayout, memory: LinearLayout, size: int) -> int:
    to_offset = layout.compose(memory.right_inverse())
    begins = [2 * to_offset(register=0, lane=lane, warp=0, block=0)[0] & -max(size, 4) for lane in range(32)]
    together = min(32, 128 // max(size, 4))
    most = 0
    for first in range(0, 32, together):
        words = {begin + word for begin in begins[first : first + together] for word in range(0, max(size, 4), 4)}
        banks = [word // 4 % 32 for word in words]
        most = max(most, *(banks.count(bank) for bank in banks))
    return most


@pytest.mark.parametrize(("tile", "memory"), [*product(TILES, MEMORIES)])
def test_vectors_are_neighbours_of_one_thread(tile, memory):
    layout, held = TILES[tile], MEMORIES[memory]
    to_offset = layout.compose(held.right_inverse())
    here = {2 * to_offset(register=r, lane=5, warp=1, block=0)[0] for r in range(layout.in_size(REGISTER))}
    size = Offsets.of(layout, held, 2).vector_bytes
    assert all({begin + byte for byte in range(0, size, 2)} <= here for begin in here if begin % size == 0)


def test_matrices_have_rows_of_16_bytes():
    found = find_matrices(Offsets.of(TILES["operand"], MEMORIES["swizzled"], 2))
    assert found is not None and not found.transposed and conflicts(found.rows, 16) == 0
    plain = find_matrices(Offsets.of(TILES["operand"], MEMORIES["plain"], 2))
    assert conflicts(plain.rows, 16) == 7
    assert find_matrices(Offsets.of(TILES["rows"], MEMORIES["plain"], 2)) is None


def test_a_conversion_has_no_conflicts_that_its_plan_has_not():
    source, result = TILES["accumulator"], TILES["rows"]
    scratch = plan_shared(source, result, 32).scratch
    for layout in (source, result):
        offsets = Offsets.of(layout, scratch, 4)
        assert (
            conflicts(offsets.lanes, offsets.vector_bytes) == _counted_words(layout, scratch, offsets.vector_bytes) - 1
        )


def _counted_words(layout: LinearLayout, memory: LinearLayout, size: int) -> int:
    to_offset = layout.compose(memory.right_inverse())
    lanes = range(layout.in_size(LANE))
    begins = [4 * to_offset(register=0, lane=lane, warp=0, block=0)[0] & -size for lane in lanes]
    together = 128 // size
    counts = []
    for first in range(0, 32, together):
        words = {begin + word for begin in begins[first : first + together] for word in range(0, size, 4)}
        counts += [[word // 4 % 32 for word in words].count(bank) for bank in range(32)]
    return max(counts)
