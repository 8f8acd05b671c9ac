"""The numbers that the machine code knows tokens and constants by.

    numbers = Numbers(constexpr_token, is_its_own_token)
    numbers.of("i32:16")                7; the same number for the life of the process
    numbers.of("*fp32:16")              13, and *fp32 is 12, !*fp32 is 14, !*fp32:16 is 15
    numbers.of_constant(128)            (BY_INTEGER, 128)

Equal numbers mean equal tokens. A constant that is compared as an object lives as long as whoever keeps its number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from deuteron.backend.arrays import is_array_token, tokens_of_one_array
from deuteron.backend.launcher.records import BY_FLOAT, BY_IDENTITY, BY_INTEGER, BY_TOKEN
from deuteron.once import ForkLock

_SINGLETONS = (None, True, False)


class Numbers:
    """Tokens, texts, and the classes whose objects are compared by identity, as dictionaries that the code reads."""

    def __init__(self, constant_token: Callable[[Any], tuple[Any, Any]], is_its_own_token: Callable[[type], bool]):
        self.constant_token, self.is_its_own_token = constant_token, is_its_own_token
        self.tokens: dict[Any, int] = {}
        self.strings: dict[str, int] = {}
        self.identities: dict[type, bool] = {}
        self._next = 1
        self._lock = ForkLock()

    def of(self, token: Any) -> int:
        """The number of a token; raises TypeError for one that cannot be hashed."""
        found = self.tokens.get(token)
        if found is not None:
            return found
        with self._lock.here():
            if token not in self.tokens:
                self._add(tokens_of_one_array(token) if is_array_token(token) else [token])
            return self.tokens[token]

    def _add(self, tokens: list[Any]) -> None:
        first, self._next = self._next, self._next + len(tokens)  # an interrupt may lose numbers, and gives none twice
        self.tokens.update(zip(tokens, range(first, self._next), strict=True))

    def of_constant(self, value: Any) -> tuple[int, int]:
        """How the code compares a constexpr or an option, and as what."""
        kind = type(value)
        if any(value is one for one in _SINGLETONS):
            return BY_IDENTITY, id(value)
        if kind is int and -(1 << 63) <= value < 1 << 63:
            return BY_INTEGER, value
        if kind is float:
            return BY_FLOAT, struct.unpack("<Q", struct.pack("<d", value))[0]
        if kind is str:
            return BY_TOKEN, self._of_string(value)
        if self._is_identity(kind):
            return BY_IDENTITY, id(value)
        return BY_TOKEN, self.of(self.constant_token(value)[0])

    def _of_string(self, text: str) -> int:
        with self._lock.here():
            if text not in self.strings:
                number, self._next = self._next, self._next + 1
                self.strings[text] = number
            return self.strings[text]

    def _is_identity(self, kind: type) -> bool:
        """Whether objects of a class are equal to themselves alone, so that their token is as good as their address."""
        if kind in self.identities:
            return True
        if kind in (int, float, str) or not self.is_its_own_token(kind):
            return False
        if kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__:
            return False
        self.identities[kind] = True
        return True

    def compare_by_identity(self, kind: type) -> None:
        """Take the objects of a class, which never change, for equal to themselves alone."""
        self.identities[kind] = True
