"""The builder's arithmetic, comparisons and casts: one method for every opcode of LLVM IR.

    b.add(x, y)                         %.1 = add i32 %x, %y
    b.fmul(x, y)                        %.2 = fmul contract <8 x float> %x, %y
    b.icmp("slt", x, y)                 %.3 = icmp slt i32 %x, %y
    b.sext(x, "i64")                    %.4 = sext i32 %x to i64

Works on scalars and vectors alike. Floating instructions take `flags`, fast-math flags as text; without,
they get the builder's `fast_math`, which is "contract" where the option enable_fp_fusion is on. Integer
ones take "nsw", "nuw", "exact", "disjoint". A cast to the type that the value has already gives the value back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deuteron.backend.llvm.types import Value, integer_of, like

_TRACED = frozenset({"add", "sub", "shl", "lshr", "ashr", "and"})


class Arithmetic:
    """Mixed into Builder, which gives `_emit`, `intrinsic` and `fast_math`.

    `definitions` has how integers were made by opcodes with a constant, and by casts: what `fields.py` looks at;
    `differences` has the operands of those that were subtracted from each other.
    """

    fast_math: str
    definitions: dict[Value, tuple[str, Value, int]]
    differences: dict[Value, tuple[Value, Value]]

    @contextmanager
    def unfused(self) -> Iterator[None]:
        """Within, what rounds is not fused with what it is computed of."""
        outer, self.fast_math = self.fast_math, ""
        yield
        self.fast_math = outer

    def _emit(self, type: str, text: str, hint: str = "") -> Value:
        raise NotImplementedError

    def intrinsic(self, name: str, return_type: str, *args: Value) -> Value:
        raise NotImplementedError

    def _integer(self, opcode: str, a: Value, b: Value, flags: str) -> Value:
        result = self._emit(a.type, f"{opcode} {flags + ' ' if flags else ''}{a.type} {a.text}, {b.text}")
        if opcode in _TRACED and (number := integer_of(b)) is not None:
            self.definitions[result] = opcode, a, number
        elif opcode == "sub":
            self.differences[result] = a, b
        return result

    def _float(self, opcode: str, a: Value, b: Value, flags: str | None) -> Value:
        flags = self.fast_math if flags is None else flags
        return self._emit(a.type, f"{opcode} {flags + ' ' if flags else ''}{a.type} {a.text}, {b.text}")

    def _cast(self, opcode: str, a: Value, type: str) -> Value:
        if a.type == type:
            return a
        result = self._emit(type, f"{opcode} {a.type} {a.text} to {type}")
        if opcode in ("trunc", "zext", "sext"):
            self.definitions[result] = opcode, a, 0
        return result

    def add(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("add", a, b, flags)

    def sub(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("sub", a, b, flags)

    def mul(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("mul", a, b, flags)

    def sdiv(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("sdiv", a, b, flags)

    def udiv(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("udiv", a, b, flags)

    def srem(self, a: Value, b: Value) -> Value:
        return self._integer("srem", a, b, "")

    def urem(self, a: Value, b: Value) -> Value:
        return self._integer("urem", a, b, "")

    def shl(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("shl", a, b, flags)

    def lshr(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("lshr", a, b, flags)

    def ashr(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("ashr", a, b, flags)

    def and_(self, a: Value, b: Value) -> Value:
        return self._integer("and", a, b, "")

    def or_(self, a: Value, b: Value, flags: str = "") -> Value:
        return self._integer("or", a, b, flags)

    def xor(self, a: Value, b: Value) -> Value:
        return self._integer("xor", a, b, "")

    def smax(self, a: Value, b: Value) -> Value:
        return self.intrinsic("llvm.smax", a.type, a, b)

    def smin(self, a: Value, b: Value) -> Value:
        return self.intrinsic("llvm.smin", a.type, a, b)

    def umin(self, a: Value, b: Value) -> Value:
        return self.intrinsic("llvm.umin", a.type, a, b)

    def umax(self, a: Value, b: Value) -> Value:
        return self.intrinsic("llvm.umax", a.type, a, b)

    def fadd(self, a: Value, b: Value, flags: str | None = None) -> Value:
        return self._float("fadd", a, b, flags)

    def fsub(self, a: Value, b: Value, flags: str | None = None) -> Value:
        return self._float("fsub", a, b, flags)

    def fmul(self, a: Value, b: Value, flags: str | None = None) -> Value:
        return self._float("fmul", a, b, flags)

    def fdiv(self, a: Value, b: Value, flags: str | None = None) -> Value:
        return self._float("fdiv", a, b, flags)

    def frem(self, a: Value, b: Value, flags: str | None = None) -> Value:
        """Becomes a call of fmod, which is in libm: not for CPU kernels."""
        return self._float("frem", a, b, flags)

    def fneg(self, a: Value) -> Value:
        return self._emit(a.type, f"fneg {a.type} {a.text}")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, rounded once; a call of libm where the processor has no such instruction."""
        return self.intrinsic("llvm.fma", a.type, a, b, c)

    def sqrt(self, a: Value) -> Value:
        return self.intrinsic("llvm.sqrt", a.type, a)

    def fabs(self, a: Value) -> Value:
        return self.intrinsic("llvm.fabs", a.type, a)

    def copysign(self, a: Value, sign: Value) -> Value:
        return self.intrinsic("llvm.copysign", a.type, a, sign)

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self._emit(like(a.type, "i1"), f"icmp {predicate} {a.type} {a.text}, {b.text}")

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self._emit(like(a.type, "i1"), f"fcmp {predicate} {a.type} {a.text}, {b.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        text = f"select {condition.type} {condition.text}, {a.type} {a.text}, {b.type} {b.text}"
        return self._emit(a.type, text)

    def freeze(self, a: Value) -> Value:
        return self._emit(a.type, f"freeze {a.type} {a.text}")

    def trunc(self, a: Value, type: str) -> Value:
        return self._cast("trunc", a, type)

    def zext(self, a: Value, type: str) -> Value:
        return self._cast("zext", a, type)

    def sext(self, a: Value, type: str) -> Value:
        return self._cast("sext", a, type)

    def fptrunc(self, a: Value, type: str) -> Value:
        return self._cast("fptrunc", a, type)

    def fpext(self, a: Value, type: str) -> Value:
        return self._cast("fpext", a, type)

    def fptosi(self, a: Value, type: str) -> Value:
        return self._cast("fptosi", a, type)

    def fptoui(self, a: Value, type: str) -> Value:
        return self._cast("fptoui", a, type)

    def sitofp(self, a: Value, type: str) -> Value:
        return self._cast("sitofp", a, type)

    def uitofp(self, a: Value, type: str) -> Value:
        return self._cast("uitofp", a, type)

    def bitcast(self, a: Value, type: str) -> Value:
        return self._cast("bitcast", a, type)

    def addrspacecast(self, a: Value, type: str) -> Value:
        return self._cast("addrspacecast", a, type)

    def inttoptr(self, a: Value, type: str = "ptr") -> Value:
        return self._cast("inttoptr", a, type)

    def ptrtoint(self, a: Value, type: str = "i64") -> Value:
        return self._cast("ptrtoint", a, type)
