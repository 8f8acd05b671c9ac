"""PTX, as the rules of all GPUs ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from deuteron.backend.cuda.instructions import accesses, atomics, exponents, functions, quotients
from deuteron.backend.cuda.instructions.formats import PTXFloatConversion
from deuteron.backend.gpu.isa import ISA, NO_HINTS, AccessHints
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.backend.math.functions import Emit
from deuteron.backend.math.number import Function
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy
from deuteron.machine.gpu import GPU

_ALL_LANES, _LAST_LANE, _FIRST_LANE = const("i32", -1), const("i32", 31), const("i32", 0)
_LOAD_CACHE = {CacheModifier.CA: ".ca", CacheModifier.CG: ".cg", CacheModifier.CS: ".cs", CacheModifier.CV: ".cv"}
_STORE_CACHE = {CacheModifier.WB: ".wb", CacheModifier.CG: ".cg", CacheModifier.CS: ".cs", CacheModifier.WT: ".wt"}
_EVICTION = {EvictionPolicy.EVICT_FIRST: "evict_first", EvictionPolicy.EVICT_LAST: "evict_last"}


@dataclass(frozen=True)
class PTX(ISA):
    """For a machine, and a kernel whose programs are clusters of so many CTAs. Where exponentials flush, those below
    2**-126 are zero.
    """

    machine: GPU
    num_ctas: int = 1
    exponentials_flush: bool = True

    name = "CUDA"
    kernel_convention = "ptx_kernel"
    conversion = PTXFloatConversion
    float_unit = replace(ISA.float_unit, near_quotient=quotients.near_quotient, near_root=quotients.near_root)

    @property
    def functions(self) -> Mapping[str, Emit]:
        return functions.FUNCTIONS if self.exponentials_flush else functions.WITH_SUBNORMALS

    @property
    def extern_functions(self) -> Mapping[str, Function]:
        from deuteron.backend.cuda.instructions import extern  # deferred: 20 modules, for what few kernels have

        return extern.FLUSHING if self.exponentials_flush else extern.FUNCTIONS

    def thread_index(self, b: Builder) -> Value:
        return b.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", "i32", overloads=())

    def uniform(self, b: Builder, word: Value) -> Value:
        return self.shuffle(b, word, _FIRST_LANE)

    def shuffle(self, b: Builder, word: Value, lane: Value) -> Value:
        return b.call("i32", "llvm.nvvm.shfl.sync.idx.i32", _ALL_LANES, word, lane, _LAST_LANE)

    def shuffle_xor(self, b: Builder, word: Value, lane_mask: int) -> Value:
        return b.call("i32", "llvm.nvvm.shfl.sync.bfly.i32", _ALL_LANES, word, const("i32", lane_mask), _LAST_LANE)

    def barrier(self, b: Builder, num_threads: int, number: int | None) -> None:
        if number is None:
            b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", const("i32", 0), overloads=())
        else:
            counted = const("i32", number), const("i32", num_threads)
            b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count", "void", *counted, overloads=())

    def warp_barrier(self, b: Builder) -> None:
        b.intrinsic("llvm.nvvm.bar.warp.sync", "void", _ALL_LANES, overloads=())

    def program_id(self, b: Builder, axis: int) -> Value:
        return self._grid_register(b, "", axis)

    def num_programs(self, b: Builder, axis: int) -> Value:
        return self._grid_register(b, "n", axis)

    def _grid_register(self, b: Builder, prefix: str, axis: int) -> Value:
        """%ctaid.x; where a program is a cluster of CTAs, %clusterid.x."""
        unit = "cluster" if self.num_ctas > 1 else "cta"
        return b.call("i32", f"llvm.nvvm.read.ptx.sreg.{prefix}{unit}id.{'xyz'[axis]}")

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
        if hints.is_volatile:
            return accesses.load(b, type, address, count, mask, other, order=accesses.VOLATILE)
        modifiers = _modifiers(hints, _LOAD_CACHE)
        return accesses.load(b, type, address, count, mask, other, modifiers, policy=_policy(b, hints))

    def store(
        self,
        b: Builder,
        elements: Sequence[Value],
        address: Value,
        mask: Value | None = None,
        hints: AccessHints = NO_HINTS,
    ) -> None:
        accesses.store(b, elements, address, mask, _modifiers(hints, _STORE_CACHE), policy=_policy(b, hints))

    def atomic_width(self, op: Operation) -> int:
        return atomics.width_of(op, self.machine)

    def atomic_rmw(
        self, b: Builder, op: Operation, address: Value, values: Sequence[Value], guard: Value | None
    ) -> Sequence[Value]:
        return atomics.atomic_rmw(b, self.machine, op, address, values, guard)

    def atomic_cas(
        self, b: Builder, op: Operation, address: Value, compare: Value, value: Value, guard: Value | None
    ) -> Value:
        return atomics.atomic_cas(b, op, address, compare, value, guard)

    def atomic_load(self, b: Builder, op: Operation, address: Value, guard: Value | None) -> Value:
        return atomics.atomic_load(b, op, address, guard)

    def atomic_store(self, b: Builder, op: Operation, address: Value, value: Value, guard: Value | None) -> None:
        atomics.atomic_store(b, op, address, value, guard)

    def fence(self, b: Builder, op: Operation) -> None:
        atomics.fence(b, op)

    def keep_order(self, b: Builder) -> None:
        """ptxas moves nothing over the event of a performance monitor, which takes one issue slot; over clocks, warp
        barriers and branches that are never taken it does.
        """
        b.assembly(Touches.MEMORY, "void", "pmevent 0;", "")

    def global_timer(self, b: Builder) -> Value:
        return b.assembly(Touches.READS, "i64", "mov.u64 $0, %globaltimer;", "=l")

    def multiply_high(self, b: Builder, x: Value, y: Value) -> Value:
        if x.type == "i64":
            return b.call("i64", "llvm.nvvm.mulhi.ull", x, y)
        return super().multiply_high(b, x, y)

    def integers_to_floats(self, b: Builder, values: Sequence[Value], type: str, is_signed: bool) -> dict[Value, Value]:
        return exponents.convert(b, values, type, is_signed)

    def float_to_integer(self, b: Builder, x: Value, type: str, is_signed: bool) -> Value:
        """PTX says of `cvt.rzi` what we ask for, where no type has 64 bits; LLVM compares and selects besides, and has
        no name for it where a type has 8.
        """
        if (x.type, type) == ("float", "i32"):
            return b.call(type, "llvm.nvvm.f2i.rz" if is_signed else "llvm.nvvm.f2ui.rz", x)
        if x.type == "float" and type in ("i8", "i16"):
            return b.trunc(_narrow_integer(b, x, bit_width(type), is_signed), type)
        return super().float_to_integer(b, x, type, is_signed)

    def opaque(self, b: Builder, value: Value) -> Value:
        bits, letter = bit_width(value.type), "l" if value.type == "i64" else "r"
        return b.assembly(Touches.NOTHING, value.type, f"mov.b{bits} $0, $1;", f"={letter},{letter}", value)


def _narrow_integer(b: Builder, x: Value, bits: int, is_signed: bool) -> Value:
    """In a register, the rest of which is what its sign or 0 is."""
    low, end = (-(1 << bits - 1), 1 << bits - 1) if is_signed else (0, 1 << bits)
    text = f"cvt.rzi.{'s' if is_signed else 'u'}{bits}.f32 $0, $1;"
    return b.assembly(Touches.NOTHING, "i32", text, "=r,f", x, flags=f"range(i32 {low}, {end})")


def _modifiers(hints: AccessHints, cache: dict[CacheModifier, str]) -> str:
    """An eviction policy, of both caches, else a cache modifier: PTX takes one of them."""
    if (name := _EVICTION.get(hints.eviction)) is not None:
        return f".L1::{name}.L2::cache_hint"
    return cache.get(hints.cache, "")


def _policy(b: Builder, hints: AccessHints) -> Value | None:
    """What the L2 is told by an eviction policy, as an operand."""
    if (name := _EVICTION.get(hints.eviction)) is None:
        return None
    return b.assembly(Touches.NOTHING, "i64", f"createpolicy.fractional.L2::{name}.b64 $0, 1.0;", "=l")
