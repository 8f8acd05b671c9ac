"""The table of rules: which function decodes which instruction.

    rules = Rules()

    @rules.pure("add", "sub", kind="int")
    def decode_add(d: Decoding): ...

The key is the start of the opcode (`cp.async.bulk`) and, where an opcode serves several, the kind of its last type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`make(decoding)` returns the closure; see `deuteron.emulator.decoder` for the two kinds."""

    make: Callable
    is_pure: bool
    allows_in_flight: bool = False


class Rules(dict[tuple[str, str], Rule]):
    """Rules by start of the opcode and kind of type (empty: any)."""

    def pure(self, *names: str, kind: str = "") -> Callable[[Callable], Callable]:
        return self._adder(names, kind, True, False)

    def effect(self, *names: str, allows_in_flight: bool = False) -> Callable[[Callable], Callable]:
        return self._adder(names, "", False, allows_in_flight)

    def _adder(self, names: tuple[str, ...], kind: str, is_pure: bool, in_flight: bool) -> Callable:
        def add(make: Callable) -> Callable:
            for name in names:
                self[name, kind] = Rule(make, is_pure, in_flight)
            return make

        return add


def merge_rules(*tables: Rules) -> Rules:
    """One table of several; the same key twice is a mistake."""
    merged = Rules()
    for table in tables:
        twice = merged.keys() & table.keys()
        assert not twice, f"two rules for {sorted(twice)}"
        merged.update(table)
    return merged
