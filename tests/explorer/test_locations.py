"""The lines that light are right: every op of every example, after every pass, and the instructions that it becomes,
are from a line of a function of the kernel; what only certain lines write, such as a load, a dot or an exponential, is
from one of those. Nothing is sampled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from explorer.conftest import EXAMPLES
from explorer.kernels import KERNELS

import deuteron
from deuteron.aot.load import load_source
from deuteron.explorer.texts import located
from deuteron.explorer.texts.located import LocatedText, Places
from deuteron.explorer.texts.mlir import read_mlir

# What the line that an op, or an instruction, is from says, or the function that it calls.
OPS = {
    r"tt\.load|ttg\.async_copy_global_to_local|ttng\.async_tma_copy_global_to_local|ttng\.barrier_expect": "load",
    r"tt\.store|ttng\.async_tma_copy_local_to_global": "store",
    r"tt\.dot|ttng\.warp_group_dot|ttg\.sliced_dot": "dot",
    r"tt\.reduce": "sum|max|min",
    r"tt\.make_range": "arange",
    r"tt\.get_program_id": "program_id",
    r"math\.exp2?": "exp",
    r"math\.log2?": "log",
    r"math\.r?sqrt": "sqrt",
    r"arith\.divf": "/",
    r"ttng\.wait_barrier|ttg\.async_wait": "load|for|dot",
}
PTX = {
    r"ld\.global\S*|cp\.async\.(?:c[ag]|bulk\.tensor)\S*": "load",
    r"st\.global\S*": "store",
    r"wgmma\.mma_async\S*|mma\.sync\S*": "dot",
    r"ex2\.\S*": "exp",
    r"lg2\.\S*": "log",
    r"(?:r?sqrt)\.\S*": "sqrt",
    r"mov\.u32 .*%ctaid\.[xyz]": "program_id",
}
_OP = re.compile(r'^\s*(?:%[^=]*= )?"?((?:tt|ttg|ttng|arith|math|scf)\.\w+)')
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+ )?\{?[a-z]")


@cache
def functions(example: str) -> list[range]:
    """The lines of the functions of an example's file."""
    tree = ast.parse((EXAMPLES / f"{example}.py").read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [range(min(d.lineno for d in (*f.decorator_list, f)), f.end_lineno + 1) for f in found]


def texts_of(example: str, target: str) -> Iterator[tuple[str, LocatedText]]:
    """The tile IR after each pass, and the texts of what comes after."""
    kernel, signature = KERNELS[example]
    source = load_source(EXAMPLES / f"{example}.py", kernel, signature).source
    compiled = deuteron.compile(source, target, {"num_warps": 4})
    for text in compiled.passes():
        yield f"{text.stage} after {text.name}", read_mlir(text.text)
    if "ptx" in compiled.asm:
        yield "ptx", located("ptx", compiled.asm["ptx"])


def wrong(example: str, line: str, places: Places, kinds: dict[str, str], code: str) -> str | None:
    """What is wrong with the places of a line, in words."""
    source = (EXAMPLES / f"{example}.py").read_text().splitlines()
    for place in places:
        is_inside = any(place.line in lines for lines in functions(example))
        if place.file.rpartition("/")[2] != f"{example}.py" or not is_inside:
            return f"{code} is from {place}"
    expected = next((words for pattern, words in kinds.items() if re.fullmatch(pattern, code)), None)
    if expected is not None and not any(re.search(expected, source[place.line - 1]) for place in places):
        return f"{code} is from line {[place.line for place in places]}"
    return None


@pytest.mark.parametrize("example", KERNELS)
@pytest.mark.parametrize(
    "target", ["cuda:90", *(pytest.param(target, marks=pytest.mark.long) for target in ("cuda:80", "cpu"))]
)
def test_every_op_is_from_the_line_that_wrote_it(example, target):
    found, num_ops = [], 0
    for stage, text in texts_of(example, target):
        is_ptx, num_lost, num_lines = stage == "ptx", 0, 0
        for line, places in zip(text.lines, text.places, strict=True):
            code = _code_of(line, is_ptx)
            if code is None:
                continue
            num_lines += 1
            num_lost += not places
            if not places and not is_ptx:
                found.append(f"{stage}: no place: {line}")
            said = wrong(example, line, places, PTX if is_ptx else OPS, code)
            if said and (places or not is_ptx):
                found.append(f"{stage}: {said}")
        num_ops += num_lines
        # What LLVM merges or hoists has no line, by its own rules, and what loads arguments has none.
        assert not is_ptx or num_lost <= 8 + num_lines // 8, f"{num_lost} of {num_lines} instructions have no line"
    assert num_ops > 100
    assert found == []


def _code_of(line: str, is_ptx: bool) -> str | None:
    """The name of an op, or the instruction; None where a line is neither."""
    if not is_ptx:
        op = _OP.match(line)
        return op and op[1]
    if not _INSTRUCTION.match(line):
        return None
    known = next((match for pattern in PTX if (match := re.search(rf"(?<![\w.]){pattern}", line))), None)
    return known[0] if known else line.split()[0]
