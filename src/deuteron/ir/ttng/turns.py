"""Warpgroups in ping-pong, that is, by turns: `ttng.take_turn` and `ttng.pass_turn`.

    "ttng.take_turn"() : () -> ()      waits until the other warpgroup has passed the turn on
    ...                                what only one of them does at a time
    "ttng.pass_turn"() : () -> ()      goes on; the other one may begin

Two warpgroups of a region execute them. The first turn is the first warpgroup's: the second passes it on at the
beginning, and the first takes the last one at the end. `warpGroup` says that only this one executes an op.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, Effect, writes
from deuteron.ir.types import i32


class _TurnOp(IRDLOperation):
    warp_group = opt_prop_def(IntegerAttr, prop_name="warpGroup")

    def __init__(self, warp_group: int | None = None):
        super().__init__(properties={} if warp_group is None else {"warpGroup": IntegerAttr(warp_group, i32)})

    @property
    def only(self) -> int | None:
        """The warpgroup that executes it; None if both do."""
        return None if self.warp_group is None else self.warp_group.value.data

    def effects(self) -> list[Effect]:
        return [writes(OTHER)]

    def verify_(self) -> None:
        if self.only not in (None, 0, 1):
            raise VerifyException(f"{self.name} is of warpgroup 0 or 1, got {self.only}")


@irdl_op_definition
class TakeTurnOp(_TurnOp):
    """Waits for the turn."""

    name = "ttng.take_turn"


@irdl_op_definition
class PassTurnOp(_TurnOp):
    """Gives the turn to the other warpgroup."""

    name = "ttng.pass_turn"


OPS = [TakeTurnOp, PassTurnOp]
