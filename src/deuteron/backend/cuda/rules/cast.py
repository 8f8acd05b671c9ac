"""Conversions between types, constants and selects."""

from __future__ import annotations

from itertools import batched

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation

from deuteron.backend.cpu.conversions import FP8E4NV, FP8E5, round_to_odd
from deuteron.backend.cuda.context import Context, Rule
from deuteron.backend.cuda.elements import FP8, from_bits, register_type, to_bits
from deuteron.backend.cuda.formats import FloatConversion
from deuteron.backend.cuda.fragment import Fragment, Operand, registers_of, with_registers
from deuteron.backend.cuda.rules.elementwise import Emit, each, plain
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.errors import CompilationError
from deuteron.interpreter.formats import FORMATS
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.convert import RoundingMode
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import element_type_of, f32, is_tile
from deuteron.layout.linear import REGISTER
