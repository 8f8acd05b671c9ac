"""Loops and branches of a random kernel, and what is done in them, by how often each kernel does what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from random_ir import values
from random_ir.text import Text
from random_ir.values import get

CARRIED = ("total", "total", "tile", "number", "number", "bit", "pointers", "mask", "rows")
END = 2**31 - 1


class Statements:
    """What a kernel does, and how often; where it `is_ordered`, some loads and atomics keep accesses in order."""

    def __init__(self, t: Text):
        self.t, self.rng = t, t.rng
        self.effects = self.rng.choice((0, 0, 0, 0.3, 1))
        self.is_ordered = t.chance(0.15)
        self.specialized = self.rng.choice((0, 0.3, 0.8))
        often: dict[Callable[[], object], float] = {
            lambda: values.load(t, self.is_ordered and t.chance(0.05)): 5,
            lambda: values.dot(t): 5,
            lambda: values.tile(t): 3,
            lambda: values.total(t): 3,
            lambda: values.number(t): 3,
            lambda: values.bit(t): 1,
            lambda: values.rows(t): 1,
            lambda: values.mask(t): 1,
            lambda: values.pointers(t): 0.5,
            lambda: values.gathered(t): 0.4,
            lambda: values.store(t): 0.5 * self.effects,
            lambda: values.store_number(t): 0.4 * self.effects,
            lambda: values.count(t, "acq_rel" if self.is_ordered and t.chance(0.4) else "relaxed"): 0.3 * self.effects,
            self.branch: 1,
            self.loop: 1,
            self.while_loop: 0.3,
        }
        self.often = {one: share * self.rng.choice((0.3, 1, 1, 2)) for one, share in often.items()}

    def some(self, least: int, most: int) -> None:
        for _ in range(self.rng.randint(least, most)):
            shallow = {one: share for one, share in self.often.items() if self._is_allowed(one)}
            self.rng.choices(list(shallow), list(shallow.values()))[0]()

    def _is_allowed(self, one: Callable[[], object]) -> bool:
        limits = {self.branch: 3, self.loop: 2, self.while_loop: 2}
        return self.t.depth < limits.get(one, 9)

    def loop(self) -> None:
        """Around dots of what it loads, mostly."""
        t, kinds = self.t, self._carried()
        begin, end, step = self._bounds()
        type = "i64" if t.chance(0.12) else "i32"
        if type == "i64":
            begin, end, step = (t.op(f"arith.extsi {one} : i32 to i64") for one in (begin, end, step))
        index, entering = t.name(), [get(t, kind) for kind in kinds]
        arguments, results = ([t.name() for _ in kinds] for _ in range(2))
        head = f"scf.for {index} = {begin} to {end} step {step}"
        given = ", ".join(f"{name} = {value}" for name, value in zip(arguments, entering, strict=True))
        head = f"{', '.join(results)} = {head} iter_args({given}) -> ({self._types(kinds)})" if kinds else head
        t.emit(f"{head} : {type} {{")
        with t.inside():
            self._add(kinds, arguments)
            narrow = t.op(f"arith.trunci {index} : i64 to i32") if type == "i64" else index
            number = t.let("number", f"arith.andi {narrow}, %last : i32")
            for _ in range(self.rng.choice((0, 1, 2, 2, 3))):
                values.load(t, place=number if t.chance(0.7) else "")
            self.some(1, 7)
            if t.chance(0.7):
                recent = t.of("tile")[-4:] or ["%zeros"]
                values.dot(t, self.rng.choice(recent), self.rng.choice(recent))
            self._yield(kinds)
        t.emit("}" + self._hints())
        self._add(kinds, results)

    def _carried(self) -> list[str]:
        kinds = [self.rng.choice(CARRIED) for _ in range(self.rng.choice((0, 1, 2, 2, 3, 3, 4, 5)))]
        if "total" not in kinds and self.t.chance(0.8):
            kinds.append("total")
        return kinds

    def _bounds(self) -> tuple[str, str, str]:
        """Of a few iterations, or none."""
        t, rng = self.t, self.rng
        match rng.choice(("given", "given", "begin", "before 0", "numbers", "end", "known", "known")):
            case "given":
                return "%zero", "%n", "%one"
            case "begin":
                return "%begin", "%n", "%step"
            case "before 0":
                return t.number(-3), "%n", t.number(rng.choice((1, 2, 3)))
            case "numbers":
                return get(t, "number"), get(t, "number"), rng.choice(("%one", "%step"))
            case "end":
                return t.number(END - rng.choice((1, 2, 3, 4, 5, 9))), t.number(END), t.number(rng.choice((1, 2, 3, 5)))
        return t.number(rng.randrange(-2, 3)), t.number(rng.randrange(-2, 6)), t.number(rng.choice((1, 2)))

    def _hints(self) -> str:
        stages = [f"tt.num_stages = {self.rng.choice((1, 2, 3, 4))} : i32"] if self.t.chance(0.3) else []
        warps = (
            ["tt.warp_specialize"] if self.t.chance(self.specialized) else ["tt.flatten"] if self.t.chance(0.1) else []
        )
        return f" {{{', '.join([*stages, *warps])}}}" if stages or warps else ""

    def while_loop(self) -> None:
        """Which counts a number down."""
        t, kinds = self.t, ["number", *self._carried()[:3]]
        entering = [get(t, kind) for kind in kinds]
        before, after, results = ([t.name() for _ in kinds] for _ in range(3))
        types = self._types(kinds)
        given = ", ".join(f"{name} = {value}" for name, value in zip(before, entering, strict=True))
        t.emit(f"{', '.join(results)} = scf.while ({given}) : ({types}) -> ({types}) {{")
        goes_on = t.op(f"arith.cmpi sgt, {before[0]}, %zero : i32")
        t.emit(f'"scf.condition"({goes_on}, {", ".join(before)}) : (i1, {types}) -> ()')
        t.emit("} do {")
        arguments = ", ".join(f"{name}: {t.types[kind]}" for name, kind in zip(after, kinds, strict=True))
        t.emit(f"^bb0({arguments}):")
        with t.inside():
            self._add(kinds, after)
            left = t.op(f"arith.subi {after[0]}, %one : i32")
            self.some(1, 4)
            self._yield(kinds, left)
        t.emit("}")
        self._add(kinds, results)

    def branch(self) -> None:
        t = self.t
        kinds = [
            self.rng.choice(("total", "tile", "number", "pointers", "mask"))
            for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]
        condition, results = get(t, "bit"), [t.name() for _ in kinds]
        head = f"scf.if {condition}"
        t.emit(f"{', '.join(results)} = {head} -> ({self._types(kinds)}) {{" if kinds else f"{head} {{")
        for ends in ("} else {", "}"):
            with t.inside():
                self.some(1, 3)
                self._yield(kinds)
            t.emit(ends)
        self._add(kinds, results)

    def _types(self, kinds: Sequence[str]) -> str:
        return ", ".join(self.t.types[kind] for kind in kinds)

    def _add(self, kinds: Sequence[str], names: Sequence[str]) -> None:
        for kind, name in zip(kinds, names, strict=True):
            self.t.add(kind, name)

    def _yield(self, kinds: Sequence[str], *first: str) -> None:
        """Anything, but mostly the last sum."""
        t = self.t
        given = [*first, *(self._given(kind) for kind in kinds[len(first) :])]
        t.emit(f'"scf.yield"({", ".join(given)}) : ({self._types(kinds)}) -> ()')

    def _given(self, kind: str) -> str:
        is_last = kind == "total" and self.t.of(kind) and self.t.chance(0.6)
        return self.t.of(kind)[-1] if is_last else get(self.t, kind)
