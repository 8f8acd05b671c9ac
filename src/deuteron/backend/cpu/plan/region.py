"""A block of a kernel once it is planned, of which a root may have one of its own.

Region([Nest(...), Dot(...), For(op, Region([...]))])               what these are: `items.py`
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Region:
    """The items of a block, in order."""

    items: list = field(default_factory=list)
