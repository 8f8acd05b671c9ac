"""Properties of ops that are a member of an enumeration: the number that its text has must be one.

sem = prop_def(member_of(MemorySemantic))          sem = 9 : i32      does not verify
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint
from xdsl.irdl.constraints import VerificationContext
from xdsl.utils.exceptions import VerifyException


@dataclass(frozen=True)
class MemberOf(AttrConstraint[IntegerAttr]):
    """An integer that is one of some."""

    numbers: frozenset[int]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not isinstance(attr, IntegerAttr) or attr.value.data not in self.numbers:
            raise VerifyException(f"expected one of {', '.join(map(str, sorted(self.numbers)))}, got {attr}")

    def mapping_type_vars(self, type_var_mapping: dict) -> MemberOf:
        return self


def member_of(numbers: Iterable[int]) -> MemberOf:
    """The constraint of a property that is a member of an enumeration."""
    return MemberOf(frozenset(int(number) for number in numbers))
