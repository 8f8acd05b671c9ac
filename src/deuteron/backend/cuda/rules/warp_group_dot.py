"""ttng.warp_group_dot by wgmma, and its wait.

Accumulators are 64 rows by N columns for each warpgroup; a larger tile has several, each with one instruction for every
step along K. A synchronous dot waits for itself; the result of an asynchronous one is only passed on until a wait
ties it.
"""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from deuteron.backend.cuda.instructions.mma import tf32_word
from deuteron.backend.cuda.instructions.wgmma import Instructions, Matrix, Step, instruction_k
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import to_bits
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.shared_tile import SharedTile
from deuteron.backend.gpu.words import CONSTRAINTS, pack
from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError
from deuteron.ir.tt.dot import InputPrecision
from deuteron.ir.ttng.warp_group_dot import tile_of
from deuteron.ir.types import bit_width_of, element_type_of, f32, shape_of
from deuteron.layout.linear import WARP
from deuteron.layout.wgmma import M, instruction_n
from deuteron.passes.gpu.dot_instructions import type_obstacle

Place = tuple[int, int]
Tiles = list[list[Value]]

_WIDE = {"half": "float", "bfloat": "float"}


def warp_group_dot(ctx: Context, op: Operation, a: Fragment | SharedTile, b: SharedTile, c: Fragment) -> Fragment:
    unit = ctx.machine.wgmma
    obstacle = type_obstacle(op, unit) if unit else f"{ctx.machine.name} does not have it"
    if obstacle:
        raise CompilationError(f"ttng.warp_group_dot is wgmma: {obstacle}")
    narrow = c.registers[0].type
    wide = _WIDE.get(narrow, narrow)
    corners, tiles = _tiles(c.map(lambda value: ctx.b.fpext(value, wide)))
    sums = _multiply(ctx, op, a, b, c, corners, tiles)
    found = dict(zip(_registers(c, corners), (value for tile in sums for value in tile), strict=True))
    made = Fragment(c.layout, tuple(found[register] for register in range(len(c.registers))))
    return made.map(lambda value: ctx.b.fptrunc(value, narrow))


def _multiply(
    ctx: Context,
    op: Operation,
    a: Fragment | SharedTile,
    b: SharedTile,
    c: Fragment,
    corners: list[Place],
    tiles: Tiles,
) -> Tiles:
    moves = ((0, 0), (0, 0), *c.layout.of(WARP)[2:])  # the warps of a warpgroup share an instruction
    matrix_b = Matrix(ctx, b, [(0, column) for _, column in moves])
    matrix_a = Matrix(ctx, a, [(row, 0) for row, _ in moves]) if isinstance(a, SharedTile) else None
    rows = _row_words(ctx, op, a) if isinstance(a, Fragment) else lambda row, k: [matrix_a.at(row, k)]
    a_type, b_type = (element_type_of(tile_of(value.type)) for value in (op.a, op.b))
    a_axis, k = matrix_a.form.fast_axis if matrix_a else None, instruction_k(b_type)
    sum_type, depth = tiles[0][0].type, shape_of(tile_of(op.b.type))[0]
    instructions = Instructions(instruction_n(c.layout), a_type, b_type, sum_type, a_axis, matrix_b.form.fast_axis)

    def steps(begin: int, end: int) -> list[Step]:
        places = [(tile, place, step) for tile, place in enumerate(corners) for step in range(begin, end, k)]
        return [Step(tile, rows(row, at), matrix_b.at(at, column)) for tile, (row, column), at in places]

    if not op.part_depth:
        return instructions.issue(ctx.b, tiles, steps(0, depth), wait=not op.is_async.value.data)
    zeros, part = [[const(sum_type, 0)] * len(tile) for tile in tiles], max(op.part_depth, k)
    for begin in range(0, depth, part):
        sums = instructions.issue(ctx.b, zeros, steps(begin, begin + part), wait=True)
        tiles = [[ctx.b.fadd(x, y) for x, y in zip(*pair, strict=True)] for pair in zip(tiles, sums, strict=True)]
    return tiles


def _corners(c: Fragment) -> list[Place]:
    """Where the accumulators of the instructions begin, of the first warpgroup."""
    n = instruction_n(c.layout)
    return sorted({(row // M * M, column // n * n) for row, column in positions(c.layout)})


def _registers(c: Fragment, corners: list[Place]) -> list[int]:
    """The registers of each accumulator, in the order of the instruction's operands."""
    at, n = register_at(c.layout), instruction_n(c.layout)
    return [
        at[row + 8 * (index // 2 % 2), column + 8 * (index // 4) + index % 2]
        for row, column in corners
        for index in range(n // 2)
    ]


def _tiles(c: Fragment) -> tuple[list[Place], Tiles]:
    corners, size = _corners(c), instruction_n(c.layout) // 2
    values = [c.registers[register] for register in _registers(c, corners)]
    return corners, [values[begin : begin + size] for begin in range(0, len(values), size)]


def _row_words(ctx: Context, op: Operation, a: Fragment):
    """The four words of operand a at a row and a step along K: rows 0 and 8, then the same 128 bits further."""
    at, per_word = register_at(a.layout), 32 // bit_width_of(op.a.type)

    def word(row: int, k: int) -> Value:
        elements = [a.registers[at[row, k + index]] for index in range(per_word)]
        if element_type_of(op.a.type) == f32:
            return tf32_word(ctx.b, elements[0], InputPrecision(op.input_precision.value.data))
        return pack(ctx.b, [to_bits(ctx.b, element, op.a.type) for element in elements])[0]

    return lambda row, k: [word(row + r, k + d) for d in (0, 4 * per_word) for r in (0, 8)]


def warp_group_dot_wait(ctx: Context, op: Operation, *inputs: Fragment) -> list[Fragment]:
    """Everything in flight goes through the wait, so that nothing uses it before. Of what is only read until then
    nobody uses the output: it has to be there, so that LLVM gives its registers to nothing else.

    A new block begins after it: into the block after a loop LLVM sinks what is used there, and where the wait is not
    the first instruction of that block, ptxas waits for every dot instead (C7514).
    """
    is_used = [bool(list(output.uses)) for output in op.outputs]
    values = [value for one, used in zip(inputs, is_used, strict=True) if used for value in one.registers]
    read = [(one, value.type) for one, value, used in zip(inputs, op.inputs, is_used, strict=True) if not used]
    kept = [word for one, type in read for word in _words(ctx, one, type)]
    outputs = [f"={CONSTRAINTS[value.type]}" for value in values]
    constraints = ",".join([*outputs, *map(str, range(len(values))), *(CONSTRAINTS[word.type] for word in kept)])
    text = f"wgmma.wait_group.sync.aligned {op.pendings.value.data};"
    type = "{ " + ", ".join(value.type for value in values) + " }" if values else "void"
    operands = [*values, *kept]
    result = ctx.b.assembly(Touches.MEMORY, type, text, constraints, *operands, attributes="convergent nounwind")
    following = ctx.b.block("waited")
    ctx.b.br(following)
    ctx.b.position(following)
    waited = iter([ctx.b.extractvalue(result, index, value.type) for index, value in enumerate(values)])
    return [one.map(lambda _: next(waited)) if used else one for one, used in zip(inputs, is_used, strict=True)]


def _words(ctx: Context, fragment: Fragment, type: Attribute) -> list[Value]:
    """The registers of an operand, as a dot has them."""
    return pack(ctx.b, [to_bits(ctx.b, value, type) for value in fragment.registers])


RULES: dict[str, Rule] = {
    "ttng.warp_group_dot": warp_group_dot,
    "ttng.warp_group_dot_wait": warp_group_dot_wait,
}
