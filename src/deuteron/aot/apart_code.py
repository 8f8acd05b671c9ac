"""What C says of arguments that the code of a kernel takes to be apart (`KernelMetadata.apart`).

    apart_text([record])       "The arrays of these arguments must not overlap: x and out. ..."; "" where there are none
    apart_code(...)            the statements of a function that knows the sizes of its arrays, and looks

A launch from Python looks at the arrays, and takes another kernel where they overlap. A C function is given addresses:
whoever calls it answers for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deuteron.aot.c_text import c_string
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.backend.metadata import Apart


def all_apart(pairs: Iterable[Apart]) -> list[Apart]:
    """What holds of all of them: of each two parameters once. Nobody compares numbers here."""
    found: dict[tuple[str, str], bool] = {}
    for pair in pairs:
        names = (pair.first, pair.second)
        found[names] = found.get(names, True) and pair.or_equal and not pair.equal
    return [Apart(*names, or_equal) for names, or_equal in found.items()]


def apart_text(records: Sequence[KernelRecord]) -> str:
    """The contract of a function that launches one of these kernels, as a sentence."""
    c_names = {param.name: param.c_name for record in records for param in record.c_params}
    pairs = all_apart(pair for record in records for pair in record.apart)
    described = [f"{c_names[pair.first]} and {c_names[pair.second]}" + " (1)" * pair.or_equal for pair in pairs]
    if not described:
        return ""
    may_equal = "; those with (1) may begin at one address" if any(pair.or_equal for pair in pairs) else ""
    return (
        f"The arrays of these arguments must not overlap{may_equal}: {', '.join(described)}. "
        f"What is compiled with -O may_alias=True takes any."
    )


def apart_code(kernel: str, pairs: Iterable[Apart], params: Sequence[ParamRecord], text: str, size: str) -> str:
    """The statements that return a status where arrays overlap; `params` are the pointers in the order of the spans."""
    numbers = {param.name: number for number, param in enumerate(params)}
    return "".join(_pair_code(kernel, pair, numbers, text, size) for pair in all_apart(pairs))


def _pair_code(kernel: str, pair: Apart, numbers: Mapping[str, int], text: str, size: str) -> str:
    spans = ", ".join(f"&deuteron_block.spans[{numbers[name]}]" for name in (pair.first, pair.second))
    names = ", ".join(map(c_string, (kernel, pair.first, pair.second)))
    return (
        f"  if (deuteron_meet({spans}, {int(pair.or_equal)}))\n    return deuteron_overlap({names}, {text}, {size});\n"
    )
