"""Makes loads of tiles of strided arrays, which products read, loads through tensor descriptors: TMA copies them.

    %p = a + rows[:, None] * stride + ks[None, :] + 64 * k           %d = "tt.make_tensor_descriptor"(%a, M, K, stride, 1)
    %x = "tt.load"(%p, rows < M & ks < K - 64 * k, 0)           ->   %x = "tt.descriptor_load"(%d, 128 * pid, 64 * k)

A pointer is taken apart into a kernel's argument, a stride for each coordinate, and offsets; an offset that a stride
divides moves the block along that dimension, another one becomes a dimension of its own. A mask gives sizes; where
there is none, nothing is out of bounds. A tile that goes round (`rows % M`) ends at M instead, where what the product
makes of the rows behind is stored nowhere.

What has to hold, else the load stays: base, strides and sizes come from arguments alone; they are aligned as TMA wants
them; offsets are not negative; nothing else writes there. Offsets count as not negative where nothing is subtracted
and every part is a program id, an induction variable that starts so, or a quotient or remainder of such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.polynomial import Atom, Monomial, Polynomial, coordinate
from deuteron.analysis.tile_polynomials import TilePolynomials, Wrap
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.tt.descriptor import DescriptorLoadOp, MakeTensorDescriptorOp, TensorDescType
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.shape import BroadcastOp, TransOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, i32, i64, is_pointer, is_tile, shape_of
from deuteron.passes.rewrite import replace

ALIGNMENT = 16  # bytes: of the base, of strides, of offsets along the innermost dimension
MAX_BOX = 256
MAX_RANK = 5
EVERYTHING = Polynomial.constant(2**31 - 1)
