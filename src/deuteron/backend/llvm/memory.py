"""The builder's memory instructions and those that put vectors together.

    b.gep("float", p, i)                      %.1 = getelementptr float, ptr %p, i64 %i
    b.load("<8 x float>", p, align=4)         %.2 = load <8 x float>, ptr %p, align 4
    b.store(x, p, align=4)                    store <8 x float> %x, ptr %p, align 4
    b.masked_load("<8 x float>", p, 4, mask)  lanes with a false mask are not read, but hold `other` (zero)
    b.splat(x, 8)                             x in eight lanes
    b.atomicrmw("fadd", p, x)                 %.3 = atomicrmw fadd ptr %p, float %x monotonic, align 4

`metadata` of a store is text such as "!nontemporal !3". A gep is not `inbounds` by itself: the addresses of
masked lanes may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.llvm.types import Value, byte_width, const, element, like, poison, vector, width, zero

# what a masked store takes in the place of an integer
_FLOATS_OF_WIDTH = {"i16": "half", "i32": "float", "i64": "double"}


class Memory:
    """Mixed into Builder, which gives `_emit`, `_append`, `intrinsic`, `bitcast` and `freeze`."""

    def _emit(self, type: str, text: str, hint: str = "") -> Value:
        raise NotImplementedError

    def _emit_in_entry(self, type: str, text: str) -> Value:
        raise NotImplementedError

    def _append(self, text: str) -> None:
        raise NotImplementedError

    def bitcast(self, value: Value, type: str) -> Value:
        raise NotImplementedError

    def freeze(self, a: Value) -> Value:
        raise NotImplementedError

    def intrinsic(self, name: str, return_type: str, *args: Value, overloads: Sequence[str] | None = None) -> Value:
        raise NotImplementedError

    def alloca(self, type: str, count: int | Value = 1, align: int = 64) -> Value:
        """Memory of this call, in the entry block where its size is known: elsewhere it would move the stack."""
        if isinstance(count, int):
            return self._emit_in_entry("ptr", f"alloca {type}, {const('i32', count)}, align {align}")
        return self._emit("ptr", f"alloca {type}, {count}, align {align}")

    def gep(self, element_type: str, ptr: Value, index: Value, flags: str = "") -> Value:
        """The address `index` elements after `ptr`; either may be a vector. Flags: "inbounds", "nuw"."""
        type = vector(element(ptr.type), max(width(ptr.type), width(index.type)))
        flags = flags + " " if flags else ""
        return self._emit(type, f"getelementptr {flags}{element_type}, {ptr}, {index}")

    def load(self, type: str, ptr: Value, align: int = 0, hint: str = "") -> Value:
        return self._emit(type, f"load {type}, {ptr}, align {align or byte_width(type)}", hint)

    def store(self, value: Value, ptr: Value, align: int = 0, metadata: str = "") -> None:
        tail = f", {metadata}" if metadata else ""
        self._append(f"store {value}, {ptr}, align {align or byte_width(value.type)}{tail}")

    def masked_load(self, type: str, ptr: Value, align: int, mask: Value, other: Value | None = None) -> Value:
        address = Value(f"ptr align {align}", ptr.text)
        return self.intrinsic("llvm.masked.load", type, address, mask, other or zero(type), overloads=(type, "ptr"))

    def masked_store(self, value: Value, ptr: Value, align: int, mask: Value) -> None:
        """Store the lanes that are on. Integers are kept from what narrowed them: see docs/llvm.md."""
        address = Value(f"ptr align {align}", ptr.text)
        type = element(value.type)
        if type == "i8":
            value = self._fenced_bytes(value)
        elif type.startswith("i"):
            value = self.bitcast(value, like(value.type, _FLOATS_OF_WIDTH[type]))
        self.intrinsic("llvm.masked.store", "void", value, address, mask, overloads=(value.type, "ptr"))

    def _fenced_bytes(self, value: Value) -> Value:
        """The same bytes, behind a fence for floats, of which no instruction is left."""
        num_bytes = width(value.type)
        floats = vector("half", num_bytes // 2) if num_bytes < 4 else vector("float", num_bytes // 4)
        words = self.bitcast(self.freeze(value), floats)  # else one byte of poison would be four
        fenced = self.intrinsic("llvm.arithmetic.fence", floats, words, overloads=[floats])
        return self.bitcast(fenced, value.type)

    def masked_gather(self, type: str, ptrs: Value, align: int, mask: Value) -> Value:
        """Lanes that are off hold zero."""
        addresses = Value(f"{ptrs.type} align {align}", ptrs.text)
        return self.intrinsic("llvm.masked.gather", type, addresses, mask, zero(type), overloads=(type, ptrs.type))

    def atomicrmw(self, opcode: str, ptr: Value, value: Value, ordering: str = "monotonic") -> Value:
        """The value before. Opcodes: add fadd and or xor xchg max min umax umin fmax fmin; scalars only."""
        align = byte_width(value.type)
        return self._emit(value.type, f"atomicrmw {opcode} {ptr}, {value} {ordering}, align {align}")

    def load_atomic(self, type: str, ptr: Value, ordering: str) -> Value:
        """An integer; orderings: monotonic, acquire."""
        return self._emit(type, f"load atomic {type}, {ptr} {ordering}, align {byte_width(type)}")

    def store_atomic(self, value: Value, ptr: Value, ordering: str) -> None:
        """An integer; orderings: monotonic, release."""
        self._append(f"store atomic {value}, {ptr} {ordering}, align {byte_width(value.type)}")

    def cmpxchg(
        self,
        ptr: Value,
        expected: Value,
        desired: Value,
        success: str = "monotonic",
        failure: str = "monotonic",
    ) -> Value:
        """The value before; it was replaced where it equals `expected`. Integers and pointers only."""
        orders = f"{success} {failure}, align {byte_width(desired.type)}"
        pair = self._emit(f"{{ {desired.type}, i1 }}", f"cmpxchg {ptr}, {expected}, {desired} {orders}")
        return self.extractvalue(pair, 0, desired.type)

    def prefetch_to_second_cache(self, ptr: Value) -> None:
        """Ask for what is going to be read, but not at once; if there is no memory at the address, nothing happens."""
        hints = const("i32", 0), const("i32", 2), const("i32", 1)  # read, less often used, data
        self.intrinsic("llvm.prefetch", "void", ptr, *hints, overloads=["ptr"])

    def prefetch_to_write(self, ptr: Value) -> None:
        """Ask for what is going to be written, if the address is one; where it is not, nothing happens."""
        hints = const("i32", 1), const("i32", 3), const("i32", 1)  # written, often used, data
        self.intrinsic("llvm.prefetch", "void", ptr, *hints, overloads=["ptr"])

    def fence(self, ordering: str) -> None:
        self._append(f"fence {ordering}")

    def extractelement(self, a: Value, index: int | Value) -> Value:
        index = const("i64", index) if isinstance(index, int) else index
        return self._emit(element(a.type), f"extractelement {a}, {index}")

    def insertelement(self, a: Value, value: Value, index: int | Value) -> Value:
        index = const("i64", index) if isinstance(index, int) else index
        return self._emit(a.type, f"insertelement {a}, {value}, {index}")

    def extractvalue(self, a: Value, index: int, type: str) -> Value:
        """A member, of this type, of a struct."""
        return self._emit(type, f"extractvalue {a}, {index}")

    def insertvalue(self, a: Value, value: Value, index: int) -> Value:
        return self._emit(a.type, f"insertvalue {a}, {value}, {index}")

    def shufflevector(self, a: Value, b: Value | None, mask: Sequence[int]) -> Value:
        """Elements of a and b (numbered on after those of a) in the order of the mask; -1 is any element."""
        b = b or poison(a.type)
        elements = ", ".join(f"i32 {index}" if index >= 0 else "i32 poison" for index in mask)
        text = f"shufflevector {a}, {b}, <{len(mask)} x i32> <{elements}>"
        return self._emit(f"<{len(mask)} x {element(a.type)}>", text)

    def splat(self, scalar: Value, count: int) -> Value:
        """The scalar in every lane; of one lane it is the scalar."""
        if count == 1:
            return scalar
        type = vector(scalar.type, count)
        if scalar.is_constant:
            return Value(type, f"splat ({scalar})")
        first = self.insertelement(poison(type), scalar, 0)
        text = f"shufflevector {first}, {type} poison, {like(type, 'i32')} zeroinitializer"
        return self._emit(type, text)
