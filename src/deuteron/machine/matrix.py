"""Instructions that multiply matrices: which tiles they take, of which types, and how warps hold these.

    mma_sync.takes("f16", "f16", "f32")       True
    mma_sync.rows, mma_sync.columns           16, 8: what a product has at least

Types have the names of tile IR; `tf32` is f32 that may be rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deuteron.layout.linear import LinearLayout

# Of the kind of instruction that every GPU here has: of a row of a along K, and of the smallest part of a result.
USUAL_DEPTH_BITS = 256
USUAL_ROWS, USUAL_COLUMNS = 16, 8
DotTypes = tuple[str, str, str]  # of the elements of a, of b, and of the result


@dataclass(frozen=True, kw_only=True)
class MatrixUnit:
    """One family of such instructions, executed by `warps` warps together.

    `rows`, `columns`: of the smallest part of a result. `depth_bits`: of a row of a along K, in every instruction.
    `flop_bits`: operations a cycle of a multiprocessor, times the bits of an operand's element; 0 is unknown.
    """

    rows: int
    columns: int
    depth_bits: int
    types: frozenset[DotTypes]
    flop_bits: int = 0
    warps: int = 1

    def takes(self, a: str, b: str, result: str) -> bool:
        """Whether it multiplies elements of these types into that one."""
        return (a, b, result) in self.types


@dataclass(frozen=True, kw_only=True)
class RegisterMatrixUnit(MatrixUnit):
    """One that takes its operands from registers. The layouts of tiles there are `accumulator(shape, warps)` and
    `operand(shape, warps, index, bit_width, neighbours)`, for the warps along each dimension; `neighbours` along K
    are those of a thread, no fewer than a word has. `f64_rows`: of its largest instruction for f64, which is
    to be had where a thread may have `f64_registers`; with fewer its rows are 8. Of fewer columns than `columns`, but
    `fewest_columns`, several lanes hold the same.
    """

    accumulator: Callable[..., LinearLayout]
    operand: Callable[..., LinearLayout]
    f64_rows: int = 8
    f64_registers: int = 0
    fewest_columns: int = 2
