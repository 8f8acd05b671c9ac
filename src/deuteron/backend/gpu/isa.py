"""What the rules of all GPUs take from a target: instructions that LLVM does not spell alike for every GPU.

    ctx.isa.shuffle(b, word, lane)                   a word of another lane: shfl.sync.idx, ds_bpermute
    ctx.isa.load(b, "i16", address, 8, mask)         ld.global.v4.b32, global_load_dwordx4
    ctx.isa.functions["exp"](b, x)

A target is a subclass. What has a body here works everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation

from deuteron.backend.gpu.formats import FloatConversion
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.backend.math.functions import FUNCTIONS, Emit
from deuteron.backend.math.number import FloatUnit, Function
from deuteron.errors import CompilationError
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy


@dataclass(frozen=True)
class AccessHints:
    """What is known of an access of memory: what caches should do; it must be done, and now."""

    cache: CacheModifier = CacheModifier.NONE
    eviction: EvictionPolicy = EvictionPolicy.NORMAL
    is_volatile: bool = False


NO_HINTS = AccessHints()


class ISA(ABC):
    """The instructions of a target. Words are i32; `functions` are those of the dialect `math`, `divide` and
    `remainder`, for float and double; `extern_functions` those of libdevice that the target has better ones for.
    """

    name: ClassVar[str]  # of the backend, in errors
    kernel_convention: ClassVar[str]  # LLVM's calling convention
    conversion: ClassVar[type[FloatConversion]] = FloatConversion
    functions: ClassVar[Mapping[str, Emit]] = FUNCTIONS
    float_unit: ClassVar[FloatUnit] = FloatUnit(fuses=True, rounds=True, doubles=False)

    @property
    def extern_functions(self) -> Mapping[str, Function]:
        return {}

    # -- threads ---

    @abstractmethod
    def thread_index(self, b: Builder) -> Value:
        """The number of the thread in its CTA."""

    @abstractmethod
    def uniform(self, b: Builder, word: Value) -> Value:
        """A word that is equal in all lanes, so that code generation knows that."""

    @abstractmethod
    def shuffle(self, b: Builder, word: Value, lane: Value) -> Value:
        """The word of another lane."""

    @abstractmethod
    def shuffle_xor(self, b: Builder, word: Value, lane_mask: int) -> Value:
        """The word of the lane whose number is XORed with a mask."""

    @abstractmethod
    def barrier(self, b: Builder, num_threads: int, number: int | None) -> None:
        """So many threads wait for each other, and see what they wrote to memory: all of the CTA, or those that come to
        the barrier of that number.
        """

    @abstractmethod
    def warp_barrier(self, b: Builder) -> None:
        """The threads of a warp wait for each other, and see what they wrote to memory."""

    @abstractmethod
    def program_id(self, b: Builder, axis: int) -> Value:
        """The program's number along an axis of the grid."""

    @abstractmethod
    def num_programs(self, b: Builder, axis: int) -> Value:
        """The extent of the grid along an axis."""

    # -- memory ---

    @abstractmethod
    def load(
        self,
        b: Builder,
        type: str,
        address: Value,
        count: int,
        mask: Value | None = None,
        other: Sequence[Value] = (),
        hints: AccessHints = NO_HINTS,
    ) -> list[Value]:
        """`count` elements of an integer type; where the mask is off, `other` or 0."""

    @abstractmethod
    def store(
        self,
        b: Builder,
        elements: Sequence[Value],
        address: Value,
        mask: Value | None = None,
        hints: AccessHints = NO_HINTS,
    ) -> None:
        """Store elements of an integer type, where the mask is on."""

    def atomic_width(self, op: Operation) -> int:
        """How many neighbouring elements, a power of two, `atomic_rmw` takes together."""
        return 1

    def atomic_rmw(
        self, b: Builder, op: Operation, address: Value, values: Sequence[Value], guard: Value | None
    ) -> Sequence[Value]:
        """Do a `tt.atomic_rmw` of neighbouring elements, each atomic by itself, where the guard is on.

        Gives the bits that were there, else 0.
        """
        raise CompilationError(f"the {self.name} backend has no atomics yet. Let one program write each element.")

    def atomic_cas(
        self, b: Builder, op: Operation, address: Value, compare: Value, value: Value, guard: Value | None
    ) -> Value:
        """Do a `tt.atomic_cas` of one element, where the guard is on; gives the bits that were there, else 0."""
        raise CompilationError(f"the {self.name} backend has no atomics yet. Let one program write each element.")

    def atomic_load(self, b: Builder, op: Operation, address: Value, guard: Value | None) -> Value:
        """Do a `tt.atomic_load` of one element, where the guard is on; gives its bits, else 0."""
        raise CompilationError(f"the {self.name} backend has no atomics yet. Let one program write each element.")

    def atomic_store(self, b: Builder, op: Operation, address: Value, value: Value, guard: Value | None) -> None:
        """Do a `tt.atomic_store` of one element, where the guard is on."""
        raise CompilationError(f"the {self.name} backend has no atomics yet. Let one program write each element.")

    def fence(self, b: Builder, op: Operation) -> None:
        """Do a `ttg.fence`."""
        raise CompilationError(f"the {self.name} backend has no fences yet. Let one program write each element.")

    def keep_order(self, b: Builder) -> None:  # noqa: B027  a target whose assembler keeps it has nothing to say
        """Have the assembler put nothing that comes after this before it."""

    def global_timer(self, b: Builder) -> Value:
        """Nanoseconds of a clock that all programs share, i64."""
        raise CompilationError(f"the {self.name} backend has no clock yet. Wait without a timeout.")

    # -- arithmetic ---

    def multiply_high(self, b: Builder, x: Value, y: Value) -> Value:
        """The upper half of the product of unsigned integers."""
        bits = bit_width(x.type)
        wide = f"i{2 * bits}"
        return b.trunc(b.lshr(b.mul(b.zext(x, wide), b.zext(y, wide)), const(wide, bits)), x.type)

    def integers_to_floats(self, b: Builder, values: Sequence[Value], type: str, is_signed: bool) -> dict[Value, Value]:
        """What some of these integers are as numbers of a type, where that is faster than to convert each."""
        return {}

    def float_to_integer(self, b: Builder, x: Value, type: str, is_signed: bool) -> Value:
        """Towards zero; what does not fit becomes the nearest number that does, NaN 0. One of 8 or 16 bits by way of
        32: a float would be compared with itself besides, because of NaN.
        """
        if bit_width(type) in (8, 16):
            number = self.float_to_integer(b, x, "i32", is_signed=True)
            return b.trunc(_clamped(b, number, bit_width(type), is_signed), type)
        name = "llvm.fptosi.sat" if is_signed else "llvm.fptoui.sat"
        return b.intrinsic(name, type, x, overloads=(type, x.type))

    def opaque(self, b: Builder, value: Value) -> Value:
        """An i32 or i64 of which LLVM is to know nothing."""
        return value


def _clamped(b: Builder, number: Value, bits: int, is_signed: bool) -> Value:
    """An i32 within the range of so many bits."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    for name, bound in (("llvm.smax", low), ("llvm.smin", high)):
        number = b.intrinsic(name, "i32", number, const("i32", bound), overloads=("i32",))
    return number
