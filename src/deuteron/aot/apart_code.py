"""What C says of arguments that the code of a kernel takes to be apart (`KernelMetadata.apart`).

    apart_text([record])       "The arrays of these arguments must not overlap: x and out. ..."; "" where there are none
    apart_code(...)            the statements of a function that knows the sizes of its arrays, and looks

A launch from Python looks at the arrays, and takes another kernel where they overlap. A C function is given addresses:
whoever calls it answers for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from deuteron.aot.c_text import c_string
from deuteron.aot.checked_params import pointers
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.backend.metadata import Apart, TileStep
from deuteron.layout.steps import WRAP


def all_apart(pairs: Iterable[Apart]) -> list[Apart]:
    """What holds of all of them: of each two parameters once. Nobody compares numbers here."""
    found: dict[tuple[str, str], bool] = {}
    for pair in pairs:
        names = (pair.first, pair.second)
        if pair.first != pair.second:
            found[names] = found.get(names, True) and pair.or_equal and not pair.equal and not pair.tiles
    return [Apart(*names, or_equal) for names, or_equal in found.items()]


def all_tiles(pairs: Iterable[Apart]) -> list[tuple[str, tuple[TileStep, ...]]]:
    """The parameters that tiles are stored through, of which no two elements may be at one place."""
    found = ((pair.first, tile) for pair in pairs if pair.first == pair.second for tile in pair.tiles)
    return list(dict.fromkeys(found))


def apart_text(records: Sequence[KernelRecord]) -> str:
    """The contract of a function that launches one of these kernels, as a sentence."""
    c_names = {param.name: param.c_name for record in records for param in record.c_params}
    relied_on = [pair for record in records for pair in record.apart]
    demands = [*_of_pairs(all_apart(relied_on), c_names), *_of_tiles(all_tiles(relied_on), c_names)]
    return " ".join([*demands, "What is compiled with the option may_alias takes any."]) if demands else ""


def _of_pairs(pairs: Sequence[Apart], c_names: Mapping[str, str]) -> Iterator[str]:
    described = [f"{c_names[pair.first]} and {c_names[pair.second]}" + " (1)" * pair.or_equal for pair in pairs]
    may_equal = "; those with (1) may begin at one address" if any(pair.or_equal for pair in pairs) else ""
    if described:
        yield f"The arrays of these arguments must not overlap{may_equal}: {', '.join(described)}."


def _of_tiles(tiles: Sequence[tuple[str, tuple[TileStep, ...]]], c_names: Mapping[str, str]) -> Iterator[str]:
    for name, tile in tiles:
        steps = ", ".join(_dimension_text(step, c_names) for step in tile)
        yield f"No two elements of a tile may be at one place in {c_names[name]}: {steps}."


def _dimension_text(step: TileStep, c_names: Mapping[str, str]) -> str:
    if (step.extent, step.factor) == WRAP:
        return f"less than {step.factor} in all"
    if step.extent < 0:
        return f"{-step.extent} rows of {_step_text(step, c_names)}"
    return f"{step.extent} elements in steps of {_step_text(step, c_names)}"


def _step_text(step: TileStep, c_names: Mapping[str, str]) -> str:
    if step.parameter is None:
        return str(step.factor)
    return c_names[step.parameter] if step.factor == 1 else f"{step.factor} * {c_names[step.parameter]}"


def apart_code(kernel: str, pairs: Sequence[Apart], arguments: Sequence[ParamRecord], text: str, size: str) -> str:
    """The statements that return a status where arrays overlap; of the arguments the pointers have spans, in order."""
    numbers = {param.name: number for number, param in enumerate(pointers(arguments))}
    c_names = {param.name: param.c_name for param in arguments}
    pair_code = [_pair_code(kernel, pair, numbers, text, size) for pair in all_apart(pairs)]
    tile_code = [_tile_code(kernel, name, tile, c_names, text, size) for name, tile in all_tiles(pairs)]
    return "".join([*pair_code, *tile_code])


def _tile_code(
    kernel: str, name: str, tile: Sequence[TileStep], c_names: Mapping[str, str], text: str, size: str
) -> str:
    steps = ", ".join(f"{{{step.extent}, {_step_code(step, c_names)}}}" for step in tile)
    names = ", ".join(map(c_string, (kernel, name, name)))
    return (
        f"  {{\n    const deuteron_step deuteron_steps[] = {{{steps}}};\n"
        f"    if (!deuteron_is_injective(deuteron_steps, {len(tile)}))\n"
        f"      return deuteron_overlap({names}, {text}, {size});\n  }}\n"
    )


def _step_code(step: TileStep, c_names: Mapping[str, str]) -> str:
    return str(step.factor) if step.parameter is None else f"{step.factor} * (int64_t){c_names[step.parameter]}"


def _pair_code(kernel: str, pair: Apart, numbers: Mapping[str, int], text: str, size: str) -> str:
    spans = ", ".join(f"&deuteron_block.spans[{numbers[name]}]" for name in (pair.first, pair.second))
    names = ", ".join(map(c_string, (kernel, pair.first, pair.second)))
    return (
        f"  if (deuteron_meet({spans}, {int(pair.or_equal)}))\n    return deuteron_overlap({names}, {text}, {size});\n"
    )
