"""tt.addptr, tt.load, tt.store: neighbouring registers with neighbouring addresses in one access of up to 128 bits.

Of replicated elements, one thread stores one. What registers load from one address is loaded once.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import access_vectors
from deuteron.analysis.addresses.load_accesses import Access, load_accesses
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment, Operand, registers_of, with_registers
from deuteron.backend.gpu.isa import AccessHints
from deuteron.backend.gpu.rules.elementwise import each
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value, bit_width
from deuteron.ir.tt.memory import KEEPS_ORDER, CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.types import byte_width_of, pointee_of


def addptr(ctx: Context, op: Operation, pointer: Operand, offset: Operand) -> Operand:
    element = bits_type(pointee_of(op.result.type))

    def emit(address: Value, index: Value) -> Value:
        return ctx.b.gep(element, address, index if bit_width(index.type) > 1 else ctx.b.sext(index, "i32"))

    return each(emit, pointer, offset)


def load(
    ctx: Context, op: Operation, pointer: Operand, mask: Operand | None = None, other: Operand | None = None
) -> Operand:
    type, b = op.result.type, ctx.b
    pointers, masks = registers_of(pointer), registers_of(mask) if mask is not None else None
    others = [to_bits(b, value, type) for value in registers_of(other)] if other is not None else None
    hints = AccessHints(*_caching(op), bool(op.is_volatile.value.data))
    results: list[Value | None] = [None] * len(pointers)
    made: dict[tuple, list[Value]] = {}
    for first, elements in _accesses(ctx, op, pointer):
        filled = {element: register for register, element in elements.items()}
        wanted = tuple(others[filled[element]] for element in range(len(filled))) if others else ()
        what = pointers[first], len(filled), masks[first] if masks else None, wanted
        if what not in made or hints.is_volatile:
            made[what] = ctx.isa.load(b, bits_type(type), *what, hints)
        for register, element in elements.items():
            results[register] = from_bits(b, made[what][element], type)
    if KEEPS_ORDER in op.attributes:
        ctx.isa.keep_order(b)
    return with_registers(pointer, results)


def store(ctx: Context, op: Operation, pointer: Operand, value: Operand, mask: Operand | None = None) -> None:
    type, b = op.value.type, ctx.b
    pointers, elements = registers_of(pointer), registers_of(value)
    masks = registers_of(mask) if mask is not None else None
    layout = pointer.layout if isinstance(pointer, Fragment) else None
    owner, owned = ctx.threads.owner(layout), set(owned_registers(layout) if layout else [0])
    for group in vectors(ctx, pointer, op.ptr, op.mask):
        if group[0] in owned:
            bits = [to_bits(b, elements[r], type) for r in group]
            guard = both(ctx, owner, masks[group[0]] if masks else None)
            ctx.isa.store(b, bits, pointers[group[0]], guard, AccessHints(*_caching(op)))


def _accesses(ctx: Context, op: LoadOp, pointer: Operand) -> list[Access]:
    return load_accesses(op, pointer.layout, ctx.info) if isinstance(pointer, Fragment) else [Access(0, {0: 0})]


def _caching(op: Operation) -> tuple[CacheModifier, EvictionPolicy]:
    return CacheModifier(op.cache.value.data), EvictionPolicy(op.evict.value.data)


def both(ctx: Context, x: Value | None, y: Value | None) -> Value | None:
    """The conjunction of two conditions, of which None is true."""
    if x is None or y is None:
        return x or y
    return ctx.b.and_(x, y)


def vectors(ctx: Context, pointer: Operand, value: SSAValue, mask: SSAValue | None) -> list[list[int]]:
    """The registers of each access, in the order of their addresses."""
    if not isinstance(pointer, Fragment):
        return [[0]]
    mask_info = ctx.info.of_mask(mask)
    return access_vectors(pointer.layout, ctx.info.of(value), mask_info, byte_width_of(pointee_of(value.type)))


RULES: dict[str, Rule] = {"tt.addptr": addptr, "tt.load": load, "tt.store": store}
