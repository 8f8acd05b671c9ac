"""Arithmetic on fragments that keeps them affine where it can.

    add(Affine(b, 1), Uniform(u))        Affine(b + u, 1)
    multiply(Affine(b, 1), Uniform(u))   Affine(b * u, u)
    advance(Uniform(p), Affine(b, 1))    Affine(p + 4 * b, 4)          tt.addptr of a pointer to f32

Integers of 32 bits that are widened to be an offset are taken as not overflowing in the lanes that are used, as whoever
computes offsets does; as values they wrap, and so does what is computed of them, addresses as well (`Affine.elements`).
Narrower ones are no offsets. What overflows on the way to an offset does no harm, since bases and steps wrap as their
type does.
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.cpu.emitter import Emitter
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, lanes_of, level_of
from deuteron.backend.cpu.plan.ops.declaration import OFFSET_BITS
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, vector, vector_const, width
from deuteron.dtypes import as_signed


def as_vector(emitter: Emitter, fragment: Fragment, lanes: int) -> Value:
    """The elements of all lanes as one LLVM value; a scalar where there is one lane."""
    b = emitter.at(fragment.level)
    if isinstance(fragment, Vector):
        return fragment.value
    if isinstance(fragment, Uniform):
        return b.splat(fragment.value, lanes)
    if fragment.elements is not None:
        return fragment.elements()
    step = lane_offsets(b, fragment, lanes)
    if fragment.base.type == "ptr":
        return b.gep("i8", fragment.base, step)
    return b.add(b.splat(fragment.base, lanes), step)


def lane_offsets(b: Builder, fragment: Affine, lanes: int) -> Value:
    """0, step, 2 * step, ... of the type of the base; i64 bytes for pointers."""
    type = "i64" if fragment.base.type == "ptr" else fragment.base.type
    if isinstance(fragment.step, int):
        return vector_const(type, [lane * fragment.step for lane in range(lanes)])
    return b.mul(b.splat(fragment.step, lanes), vector_const(type, range(lanes)))


def lanewise(emitter: Emitter, emit: Callable[..., Value], *fragments: Fragment) -> Fragment:
    """Emit `emit(builder, *values)` on scalars where all are uniform, on vectors otherwise."""
    level = level_of(*fragments)
    if all(isinstance(fragment, Uniform) for fragment in fragments):
        return Uniform(emit(emitter.at(level), *(fragment.value for fragment in fragments)), level)
    lanes = lanes_of(*fragments)
    values = [as_vector(emitter, fragment, lanes) for fragment in fragments]
    return of_value(emit(emitter.at(level), *values), level)


def of_value(value: Value, level: int) -> Fragment:
    return Vector(value, level) if width(value.type) > 1 else Uniform(value, level)


def add(emitter: Emitter, x: Fragment, y: Fragment) -> Fragment:
    return _combine(emitter, Builder.add, x, y)


def subtract(emitter: Emitter, x: Fragment, y: Fragment) -> Fragment:
    return _combine(emitter, Builder.sub, x, y)


def _combine(emitter: Emitter, emit: Callable[..., Value], x: Fragment, y: Fragment) -> Fragment:
    if isinstance(x, Vector) or isinstance(y, Vector) or (isinstance(x, Uniform) and isinstance(y, Uniform)):
        return lanewise(emitter, emit, x, y)
    level = level_of(x, y)
    b = emitter.at(level)
    base = emit(b, _base(x), _base(y))
    steps = _step(x), _step(y)
    if all(isinstance(step, int) for step in steps):
        step = _wrapped(steps[0] + steps[1] if emit is Builder.add else steps[0] - steps[1], base.type)
    else:
        step = emit(b, *(_step_value(step, base.type) for step in steps))
    return Affine(base, step, lanes_of(x, y), level, False, _elements(emitter, emit, x, y), _widened(x, y))


def multiply(emitter: Emitter, x: Fragment, y: Fragment) -> Fragment:
    if isinstance(y, Affine):
        x, y = y, x
    if not (isinstance(x, Affine) and isinstance(y, Uniform)):
        return lanewise(emitter, Builder.mul, x, y)
    level = level_of(x, y)
    b = emitter.at(level)
    step, elements = _scale(b, x.step, y.value), _elements(emitter, Builder.mul, x, y)
    return Affine(b.mul(x.base, y.value), step, x.lanes, level, False, elements, x.widened)


def _elements(emitter: Emitter, emit: Callable[..., Value], x: Fragment, y: Fragment) -> Callable[[], Value] | None:
    """Emits what is computed from elements that wrap around, where those of `x` or `y` may."""
    if not any(isinstance(fragment, Affine) and fragment.elements is not None for fragment in (x, y)):
        return None
    lanes, level = lanes_of(x, y), level_of(x, y)
    return lambda: emit(emitter.at(level), *(as_vector(emitter, fragment, lanes) for fragment in (x, y)))


def _widened(*fragments: Fragment) -> tuple[Affine, ...]:
    """What all of them are computed from that may wrap around between lanes."""
    found = [narrow for fragment in fragments if isinstance(fragment, Affine) for narrow in fragment.widened]
    return tuple(dict.fromkeys(found))


def truncate(emitter: Emitter, x: Fragment, type: str) -> Fragment:
    """Each lane: what counts up beyond the largest number goes on with the lowest, which no offset is taken to do."""
    return lanewise(emitter, _conversion(Builder.trunc, type), x)


def sign_extend(emitter: Emitter, x: Fragment, type: str) -> Fragment:
    """A range is one in any width; of other integers only offsets do not wrap around. Of fewer than 32 bits, which are
    seldom offsets, each lane.
    """
    convert = _conversion(Builder.sext, type)
    if not isinstance(x, Affine) or bit_width(x.base.type) < OFFSET_BITS:
        return lanewise(emitter, convert, x)
    b = emitter.at(x.level)
    step = _wrapped(x.step, type) if isinstance(x.step, int) else b.sext(x.step, type)
    widened = x.widened if x.is_range or x.base.type == type else (*x.widened, x)
    elements = (lambda: convert(emitter.at(x.level), as_vector(emitter, x, x.lanes))) if widened else None
    return Affine(b.sext(x.base, type), step, x.lanes, x.level, x.is_range, elements, widened)


def _conversion(emit: Callable[..., Value], type: str) -> Callable[..., Value]:
    return lambda b, value: emit(b, value, vector(type, width(value.type)))


def advance(emitter: Emitter, pointer: Fragment, offset: Fragment, element_bytes: int) -> Fragment:
    """A pointer plus an offset, which counts elements of so many bytes."""
    level, wide = level_of(pointer, offset), sign_extend(emitter, offset, "i64")
    if isinstance(pointer, Vector) or isinstance(wide, Vector):
        return _advance_vector(emitter, pointer, offset, element_bytes, level)
    b = emitter.at(level)
    base = b.gep("i8", _base(pointer), _times(b, _base(wide), element_bytes))
    if isinstance(pointer, Uniform) and isinstance(wide, Uniform):
        return Uniform(base, level)
    steps = _step(pointer), _scale(b, _step(wide), const("i64", element_bytes))
    step = sum(steps) if all(isinstance(s, int) for s in steps) else b.add(*(_step_value(s, "i64") for s in steps))
    elements = None
    if any(isinstance(fragment, Affine) and fragment.elements is not None for fragment in (pointer, wide)):
        elements = lambda: _advance_vector(emitter, pointer, offset, element_bytes, level).value  # noqa: E731
    return Affine(base, step, lanes_of(pointer, offset), level, False, elements, _widened(pointer, wide))


def _advance_vector(emitter: Emitter, pointer: Fragment, offset: Fragment, element_bytes: int, level: int) -> Fragment:
    lanes = lanes_of(pointer, offset)
    offsets = as_vector(emitter, offset, lanes)
    base = pointer.value if isinstance(pointer, Uniform) else as_vector(emitter, pointer, lanes)
    return Vector(emitter.at(level).gep(f"[{element_bytes} x i8]", base, offsets), level)


def _base(x: Uniform | Affine) -> Value:
    return x.value if isinstance(x, Uniform) else x.base


def _step(x: Uniform | Affine) -> int | Value:
    return 0 if isinstance(x, Uniform) else x.step


def _step_value(step: int | Value, type: str) -> Value:
    return const(type, step) if isinstance(step, int) else step


def _scale(b: Builder, step: int | Value, factor: Value) -> int | Value:
    if isinstance(step, int):
        if step == 0:
            return 0
        if factor.is_constant:
            return _wrapped(step * int(factor.text), factor.type)
        return factor if step == 1 else b.mul(factor, const(factor.type, step))
    return _times(b, step, int(factor.text)) if factor.is_constant else b.mul(step, factor)


def _wrapped(step: int, type: str) -> int:
    """Of integers of a type, or of pointers."""
    return as_signed(step, 64 if type == "ptr" else int(type[1:]))


def _times(b: Builder, value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    return const(value.type, int(value.text) * factor) if value.is_constant else b.mul(value, const(value.type, factor))
