"""tt.dot by mma.sync where the accumulator is in its layout, else as on every GPU."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from deuteron.backend.cuda.instructions.mma import Read, instruction_for
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.rules.dot import in_wide_sums, multiply_add
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.errors import CompilationError
from deuteron.layout.distributed import is_mma_v2_accumulator
from deuteron.passes.gpu.dot_instructions import obstacle_to_mma

Place = tuple[int, ...]


def dot(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    if not is_mma_v2_accumulator(c.layout):
        return in_wide_sums(multiply_add, ctx, op, a, b, c)
    if obstacle := obstacle_to_mma(op, ctx.machine):  # which a layout given as text does not ask for
        raise CompilationError(f"the layout of the sums is that of mma.sync, and {obstacle}")
    return in_wide_sums(_by_mma, ctx, op, a, b, c)


def _by_mma(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    """For each step along K, all 16x8 tiles of the accumulator: neighbours do not wait for each other."""
    instruction = instruction_for(op, ctx.machine.mma, ctx.machine.registers.allowed(ctx.options.maxnreg))
    at_c = register_at(c.layout)
    corners = [place for place in at_c if not place[-2] & 8 and not place[-1] & 1]
    per_word = instruction.per_word
    sums = {corner: [c.registers[register] for register in _tile(at_c, corner)] for corner in corners}
    for k in range(0, a.layout.shape[-1], instruction.k):
        operands_a = _operands(ctx.b, instruction.operand_a, a, {(*p[:-2], p[-2]) for p in corners}, k, 1, per_word)
        operands_b = _operands(ctx.b, instruction.operand_b, b, {(*p[:-2], p[-1]) for p in corners}, k, 0, per_word)
        for p in corners:
            x, y = operands_a[*p[:-2], p[-2]], operands_b[*p[:-2], p[-1]]
            sums[p] = instruction.multiply(ctx.b, x, y, sums[p])
    found = {register: value for p in corners for register, value in zip(_tile(at_c, p), sums[p], strict=True)}
    return Fragment(c.layout, tuple(found[at_c[place]] for place in positions(c.layout)))


def _tile(at_c: dict[Place, int], corner: Place) -> list[int]:
    """The registers of a thread in the 16x8 tile of the accumulator that begins there."""
    *batch, row, column = corner
    return [at_c[*batch, row + r, column + c] for r, c in ((0, 0), (0, 1), (8, 0), (8, 1))]


def _operands(
    b: Builder, make: Callable[..., list[Value]], tile: Fragment, places: set[Place], k: int, axis: int, per_word: int
) -> dict[Place, list[Value]]:
    """The words of each row of a, or column of b, at one step along K, which is `axis`; places are sorted, for equal
    output.
    """
    known = register_at(tile.layout)
    at_k = _places_along_k(known, axis, per_word)

    def reader(batch: Place) -> Read:
        if axis == 0:
            return lambda row, column: tile.registers[known[*batch, at_k[row], column]]
        return lambda row, column: tile.registers[known[*batch, row, at_k[column]]]

    return {place: make(b, reader(place[:-1]), place[-1], k) for place in sorted(places)}


def _places_along_k(known: dict[Place, int], axis: int, per_word: int) -> dict[int, int]:
    """Where a thread has what the instruction reads at a place along K: both in order, since it may hold neighbours
    that the instruction reads in several steps.
    """
    held = sorted({place[axis - 2] for place in known})
    lanes = 3 * per_word  # the bits of a place along K that say which lane has it
    read = [k for k in range(4 * len(held)) if not k & lanes]
    return dict(zip(read, held, strict=True))


RULES: dict[str, Rule] = {"tt.dot": dot}
