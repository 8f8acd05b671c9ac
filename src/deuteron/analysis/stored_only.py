"""Whether elements of a load are used for nothing but the elements at their places that are stored.

    x = load(a + i)
    store(b + i, x * 2)             True: a thread that holds an element and does not store it has no use for it
    max(x), load(c + x), dot(x, y)  False: others get it from whichever thread has it

So where several threads load an element that one of them stores, it makes no difference what the others get.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue, Use

from deuteron.ir.forwarding import forwarded_to
from deuteron.ir.reached import reached
from deuteron.ir.tt.memory import StoreOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import is_tile


def is_stored_only(load: Operation) -> bool:
    if not is_tile(load.results[0].type):
        return False
    made = reached([load.results[0]], lambda value: [result for use in value.uses for result in _results(use) or ()])
    return all(_results(use) is not None for value in made for use in value.uses)


def _results(use: Use) -> Sequence[SSAValue] | None:
    """The tiles whose elements are computed of those that an op uses at their places; None where it does something
    else with them.
    """
    op = use.operation
    if isinstance(op, StoreOp):
        return []
    return op.results if is_elementwise(op) and not op.regions else forwarded_to(use) or None
