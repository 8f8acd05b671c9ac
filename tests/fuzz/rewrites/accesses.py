"""Functions that access memory as `tl.load` and `tl.store` do, another way: `load_by_halves(p, two)`.

ACCESSES["load", "mask", "other"]       names and sources of those for tl.load(p, mask=m, other=o)
"""

from __future__ import annotations

import textwrap

OPERANDS = {
    "m": "m = tl.broadcast_to(m, p.shape) if len(p.shape) else m",
    "o": "o = tl.full(p.shape, o, p.dtype.element_ty) if isinstance(o, tl.constexpr) or len(o.shape) == 0 "
    "else tl.broadcast_to(o.to(p.dtype.element_ty), p.shape)",
    "v": "v = tl.full(p.shape, v, p.dtype.element_ty) if isinstance(v, tl.constexpr) or len(v.shape) == 0 "
    "else tl.broadcast_to(v.to(p.dtype.element_ty), p.shape)",
}
NAMES = {"mask": "m", "other": "o"}

LOADS = {
    "by_halves": """
        if p.numel < 2:
            return tl.load(p{of_x})
        {halves}
        a = tl.load(p0{of_x0})
        b = tl.load(p1{of_x1})
        return tl.reshape(tl.join(a, b), p.shape)
    """,
    "in_a_branch": """
        if two == 2:
            v = tl.load(p{of_x})
        else:
            v = tl.load(p{of_x})
        return v
    """,
    "in_a_loop": """
        v = tl.load(p{of_x})
        for k in range(two - 1):
            v = tl.load(p{of_x})
        return v
    """,
    "through_whole_numbers": """
        return tl.load(p.to(tl.int64).to(p.dtype){of_x})
    """,
}
STORES = {
    "by_halves": """
        if p.numel < 2:
            tl.store(p, v{of_x})
        else:
            {halves}
            tl.store(p0, v0{of_x0})
            tl.store(p1, v1{of_x1})
    """,
    "in_a_branch": """
        if two == 2:
            tl.store(p, v{of_x})
    """,
    "in_a_loop": """
        for k in range(two):
            tl.store(p, v{of_x})
    """,
    "by_turns": """
        if p.numel < 2:
            tl.store(p, v{of_x})
        else:
            for k in range(two):
                mine = tl.reshape(tl.arange(0, p.numel) % 2 == k, p.shape)
                tl.store(p, v, mask=mine{and_m})
    """,
}


def _functions(kind: str, bodies: dict[str, str], given: tuple[str, ...]) -> dict[str, str]:
    names = [NAMES[name] for name in given]
    parameters = ["p", *(["v"] if kind == "store" else []), *names]
    halves = [f"{x}0, {x}1 = tl.split(tl.reshape({x}, (p.numel // 2, 2)))" for x in parameters]
    places = {f"of_x{n}": "".join(f", {k}={NAMES[k]}{n}" for k in given) for n in ("", "0", "1")}
    prepared = [OPERANDS[x] for x in parameters if x in OPERANDS]
    found = {}
    for name, body in bodies.items():
        indent = "\n" + " " * (12 if kind == "store" else 8)
        filled = body.format(halves=indent.join(halves), and_m=" & m" if "m" in names else "", **places)
        function = "_".join([kind, *given, name])
        lines = "\n".join([*prepared, textwrap.dedent(filled).strip()])
        head = f"@triton.jit\ndef {function}({', '.join([*parameters, 'two'])}):\n"
        found[function] = head + textwrap.indent(lines, "    ")
    return found


ACCESSES = {
    **{("load", *given): _functions("load", LOADS, given) for given in ((), ("mask",), ("mask", "other"))},
    **{("store", *given): _functions("store", STORES, given) for given in ((), ("mask",))},
}
