"""Random kernels of loads, stores and atomics, for the order of their accesses.

    source_of(rng)      @deuteron.jit
                        def kernel(a, b, out, n, WAYS...):
                            i = tl.arange(0, 256)
                            src, dst, v = a + 4, b + 4, i
                            v = v * 3 + tl.load(src + i, mask=i < n, other=5)
                            tl.store(dst + i, v)
                            for k in tl.range(0, 3, num_stages=2):
                                ...

Each element of a tile belongs to one thread, and between barriers every access of a tile is at the same place, so that
no two threads race. Pointers change places, come from branches and selections; what is loaded goes into what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SIZE = 256
MARGIN = 32
HEAD = f"""import deuteron
import deuteron.language as tl


@deuteron.jit
def kernel(a, b, out, n):
    i = tl.arange(0, {SIZE})
    src, dst, v, w = a, b, i, i * 7
"""
TAIL = f"""    tl.store(out + i, v)
    tl.store(out + {SIZE} + i, w)
"""
POINTERS = ["src", "dst", "a", "b"]
CONDITIONS = ["n > 100", "n % 2 == 0", "n < 50"]
DEPTH = 2


class _Program:
    def __init__(self, rng: np.random.Generator):
        self._rng = rng
        self._shift = 0

    def lines(self) -> Iterator[str]:
        yield from self._block("    ", DEPTH, ["n"])

    def _pick(self, *options: object) -> object:
        return options[self._rng.integers(len(options))]

    def _block(self, indent: str, depth: int, scalars: list[str]) -> Iterator[str]:
        for _ in range(self._rng.integers(2, 5)):
            yield from (indent + line for line in self._statement(depth, scalars))

    def _statement(self, depth: int, scalars: list[str]) -> Iterator[str]:
        kinds = ["load", "load", "store", "store", "atomic", "swap", "choose", "barrier"]
        kind = self._pick(*kinds, *(["if", "for", "for"] if depth else []))
        yield from getattr(self, f"_{kind}")(depth, scalars)

    def _at(self) -> str:
        return f"{self._pick(*POINTERS)} + {self._shift} + i"

    def _mask(self, scalars: list[str]) -> str:
        scalar = self._pick(*scalars)
        return str(self._pick("", f", mask=i < {scalar}", f", mask=i >= {scalar}", f", mask=(i % 4) != ({scalar} % 4)"))

    def _value(self) -> str:
        return str(self._pick("v", "w", "v + w", "v * 3 - w", "7"))

    def _load(self, depth: int, scalars: list[str]) -> Iterator[str]:
        mask = self._mask(scalars)
        other = ", other=5" if mask else ""
        target = self._pick("v", "w")
        yield f"{target} = {target} * 3 + tl.load({self._at()}{mask}{other})"

    def _store(self, depth: int, scalars: list[str]) -> Iterator[str]:
        yield f"tl.store({self._at()}, {self._value()}{self._mask(scalars)})"

    def _atomic(self, depth: int, scalars: list[str]) -> Iterator[str]:
        sem = self._pick("relaxed", "acq_rel", "acquire", "release")
        name, mask = self._pick("add", "max", "xchg", "and"), self._mask(scalars)
        call = f'tl.atomic_{name}({self._at()}, i + {self._value()}{mask}, sem="{sem}")'
        yield call if mask else str(self._pick(call, f"w = w * 5 + {call}"))

    def _swap(self, depth: int, scalars: list[str]) -> Iterator[str]:
        yield "src, dst = dst, src"

    def _choose(self, depth: int, scalars: list[str]) -> Iterator[str]:
        name, scalar = self._pick("src", "dst"), self._pick(*scalars)
        yield f"{name} = tl.where({scalar} % 2 == 0, {self._pick(*POINTERS)}, {self._pick(*POINTERS)})"

    def _barrier(self, depth: int, scalars: list[str]) -> Iterator[str]:
        """What follows may be of other places, if it is in no loop that begins at those of before."""
        yield "tl.debug_barrier()"
        if depth == DEPTH:
            self._shift = self._pick(0, 1, 4, 16, MARGIN)

    def _if(self, depth: int, scalars: list[str]) -> Iterator[str]:
        yield f"if {self._pick(*CONDITIONS)}:"
        yield from self._block("    ", depth - 1, scalars)
        if self._pick(True, False):
            yield "else:"
            yield from self._block("    ", depth - 1, scalars)

    def _for(self, depth: int, scalars: list[str]) -> Iterator[str]:
        index, stages = f"k{depth}", self._pick("", ", num_stages=2", ", num_stages=3")
        yield f"for {index} in tl.range(0, {self._pick('3', 'n % 5')}{stages}):"
        yield from self._block("    ", depth - 1, [*scalars, index])


def source_of(rng: np.random.Generator) -> str:
    """The source of a module with a kernel."""
    return HEAD + "\n".join(_Program(rng).lines()) + "\n" + TAIL
