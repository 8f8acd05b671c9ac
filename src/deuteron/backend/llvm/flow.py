"""What comes before what in a function, on every way through it.

    a:  br c, then, end          immediate_dominators(edges, "a")     end: a, loop: end, after: loop, ...
    then: br end                 chains(edges, "a", "after")          [a, end, after], [loop, latch]
    end:  br loop
    loop: br latch
    latch: br c, loop, after
    after: ret

Each block of a chain is on every way from the one before it to the end, and back: between two of them is a part of the
function with one way in and one way out, with all of its loops. Blocks that do not lead to the end leave the function
in the middle of it; what they do belongs to the part that they are in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

Edges = Mapping[str, Sequence[str]]


def chains(edges: Edges, entry: str, end: str) -> list[list[str]]:
    """All chains of two blocks and more, outer ones first."""
    order = _finished(edges, entry)[::-1]
    dominators = immediate_dominators(edges, entry)
    if end not in dominators:
        return []
    after = immediate_dominators(reversed_edges(edges, order), end)
    tree = _Tree(dominators, entry)
    loop = _innermost_loops(edges, order, tree)
    follows = {name: _next(name, after, loop, tree) for name in order if name in after}
    started = set(follows) - set(follows.values())
    found = [_chain(name, follows) for name in order if name in started]
    return [chain for chain in found if len(chain) > 1]


def immediate_dominators(edges: Edges, root: str) -> dict[str, str]:
    """Of each block that the root leads to: the last one that is on every way to it. The root's is the root."""
    order = _finished(edges, root)
    number = {name: n for n, name in enumerate(order)}
    before = reversed_edges(edges, order)
    found = {root: root}

    def meet(a: str, b: str) -> str:
        while a != b:
            a, b = (found[a], b) if number[a] < number[b] else (a, found[b])
        return a

    changed = True
    while changed:
        changed = False
        for name in order[-2::-1]:
            known = [source for source in before[name] if source in found]
            nearest = known[0]
            for source in known[1:]:
                nearest = meet(nearest, source)
            changed |= found.get(name) != nearest
            found[name] = nearest
    return found


def reversed_edges(edges: Edges, names: Sequence[str]) -> dict[str, list[str]]:
    """For each block those of `names` that lead to it."""
    before: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        for target in edges[name]:
            before[target].append(name)
    return before


def reached(edges: Edges, first: str, last: str) -> list[str]:
    """The blocks from the first on, without the last and what comes after it."""
    found, pending = {first: None}, [first]
    while pending:
        for target in edges[pending.pop()]:
            if target != last and target not in found:
                found[target] = None
                pending.append(target)
    return list(found)


class _Tree:
    """The tree of dominators, numbered so that what a block dominates is a range."""

    def __init__(self, dominators: Mapping[str, str], root: str):
        children: dict[str, list[str]] = defaultdict(list)
        for name, nearest in dominators.items():
            if name != root:
                children[nearest].append(name)
        self._begin: dict[str, int] = {}
        self._end: dict[str, int] = {}
        pending = [(root, False)]
        while pending:
            name, is_done = pending.pop()
            if is_done:
                self._end[name] = len(self._begin)
                continue
            self._begin[name] = len(self._begin)
            pending.append((name, True))
            pending += [(child, False) for child in children[name]]

    def dominates(self, a: str, b: str) -> bool:
        return self._begin[a] <= self._begin[b] < self._end[a]


def _finished(edges: Edges, root: str) -> list[str]:
    """The blocks that a root leads to, each after all that it leads to but by ways back."""
    seen, order, pending = {root}, [], [(root, iter(edges[root]))]
    while pending:
        name, targets = pending[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                pending.append((target, iter(edges[target])))
                break
        else:
            order.append(name)
            pending.pop()
    return order


def _innermost_loops(edges: Edges, order: Sequence[str], tree: _Tree) -> dict[str, str]:
    """The header of the innermost loop around each block that is in one."""
    before, innermost = reversed_edges(edges, order), {}
    for header in order:
        latches = [source for source in before[header] if tree.dominates(header, source)]
        if latches:
            innermost |= dict.fromkeys(_body(before, header, latches), header)
    return innermost


def _body(before: Edges, header: str, latches: Sequence[str]) -> set[str]:
    body, pending = {header, *latches}, [name for name in latches if name != header]
    while pending:
        new = [source for source in before[pending.pop()] if source not in body]
        body.update(new)
        pending += new
    return body


def _next(name: str, after: Mapping[str, str], loop: Mapping[str, str], tree: _Tree) -> str | None:
    """The first block of the same loop that is on every way from this one to the end, if this one is on all to it."""
    later = after[name]
    while loop.get(later) != loop.get(name) and later != after[later]:
        later = after[later]
    return later if later != name and loop.get(later) == loop.get(name) and tree.dominates(name, later) else None


def _chain(name: str, follows: Mapping[str, str | None]) -> list[str]:
    chain = [name]
    while (following := follows.get(chain[-1])) is not None:
        chain.append(following)
    return chain
