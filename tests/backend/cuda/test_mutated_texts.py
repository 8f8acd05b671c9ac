"""Texts with something changed by lot: an error that says where, or tile IR; nothing else, and soon."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text

import deuteron
import deuteron.language as tl
from deuteron.errors import IRError, Location, UsageError
from deuteron.ir.location import to_attribute
from deuteron.ir.text import parse_module, print_module
from deuteron.tools.opt import run

COUNT = 100
NUMBERS = ("0", "-1", "3", "17", "64", "2147483647", "-2147483648", "9223372036854775807", "99999999999999999999")
WORDS = r"%\w+|#\w+|\b(?:tt|ttg|ttng|arith|scf)\.\w+|\b(?:i1|i8|i32|i64|f16|f32)\b|(?<![\w#%.])-?\d+(?![\w.])"

BRACKETS = r"\([^()]*\)|\{[^{}]*\}|<[^<>]*>|\[[^\[\]]*\]"


@deuteron.jit
def changed(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        tile = tl.load(x + k * N * N + i[:, None] * N + i[None, :])
        acc = tl.dot(tile, tl.trans(tile), acc)
        acc = tl.where(tl.sum(acc, 1)[:, None] > 0, acc, tl.cumsum(acc, 0))
    while n > 1:
        acc, n = acc * 2, n // 2
    tl.store(out + i[:, None] * N + i[None, :], acc)


def mutated(rng, text: str) -> str:
    """A word that is another of the text or an odd number, a line less, a line twice or elsewhere, a sign, no part."""
    lines = re.sub(r" loc\([^()]*\)", "", text.partition("\n#loc")[0]).splitlines()
    number, kind = int(rng.integers(len(lines))), rng.integers(10)
    line = lines.pop(number)
    found = list(re.finditer(WORDS, line))
    if kind < 5 and found:
        word = found[rng.integers(len(found))]
        alike = [*re.findall(WORDS, "\n".join(lines)), *NUMBERS]
        alike = [other for other in alike if other[0] == word[0][0] or other[-1].isdigit() and word[0][-1].isdigit()]
        lines.insert(number, line[: word.start()] + str(rng.choice(alike or NUMBERS)) + line[word.end() :])
    elif kind == 5:
        lines[number:number] = [line, line]
    elif kind == 6 and line:
        place = int(rng.integers(len(line)))
        lines.insert(number, line[:place] + str(rng.choice(list('(){}<>[],:%#"! é'))) + line[place + 1 :])
    elif kind > 7:
        lines.insert(number, without_part(rng, line))
    return "\n".join(lines) + "\n"


def without_part(rng, line: str) -> str:
    """Less what is between two brackets, or these as well."""
    found = list(re.finditer(BRACKETS, line))
    if not found:
        return line
    part, inside = found[rng.integers(len(found))], int(rng.integers(2))
    return line[: part.start() + inside] + line[part.end() - inside :]


@pytest.mark.long
@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
@pytest.mark.parametrize(("target", "is_generic"), [("cuda:80", False), ("cuda:90", False), ("cuda:90", True)])
def test_a_text_that_was_changed_is_refused_or_is_tile_ir(rng, target, is_generic, stage):
    x = aligned(rng.integers(0, 9, 64 * 64).astype("float16"))
    text = compile_for(target, changed, x, x.astype("float32"), 3, N=64).asm[stage]
    text = print_module(parse_module(text), locations=False, generic=True) if is_generic else text
    passes = "memory" if stage == "ttgir" else "tile"
    for _ in range(COUNT):
        other = mutated(rng, text)
        try:
            run(other, f"k.{stage}", passes, target)
        except UsageError:  # what the module says of its launch
            continue
        except IRError as error:
            assert error.location is not None, f"{error}\n{other}"


@pytest.mark.parametrize("stage", ["llir", "ptx"])
def test_code_that_was_changed_is_refused_or_compiled(rng, stage):
    x = aligned(rng.integers(0, 9, 64 * 64).astype("float16"))
    text = compile_for("cuda:90", changed, x, x.astype("float32"), 1, N=16).asm[stage]
    head, _, body = text.partition("\n")
    for _ in range(COUNT // 10):
        other = f"{head}\n{mutated(rng, body)}"
        try:
            compile_text(other, "cuda:90", stage)
        except IRError as error:
            assert error.location is not None, f"{error}\n{other}"


@pytest.mark.parametrize(
    ("word", "other", "message"),
    [
        ("[$0]", "[$17]", "LLVM ends its process on the llir: .* SIGABRT"),  # an operand that the assembly has not
        ("[$0]", "{$0}", "ptxas does not accept the PTX"),
    ],
)
def test_what_goes_on_to_be_code_and_is_none(word, other, message):
    x = aligned(np.zeros(64 * 64, np.float16))
    text = compile_for("cuda:90", changed, x, x.astype("float32"), 1, N=16).asm["llir"]
    changed_text = re.sub(r"(st\.shared[^\[\n]*)" + re.escape(word), lambda found: found[1] + other, text, count=1)
    assert changed_text != text
    with pytest.raises(IRError, match=message) as caught:
        compile_text(changed_text, "cuda:90", "llir")
    assert caught.value.location is not None


def test_ptx_that_is_none_is_said_with_its_line():
    x = aligned(np.zeros(64 * 64, np.float16))
    text = compile_for("cuda:90", changed, x, x.astype("float32"), 1, N=16).asm["ptx"]
    lines = text.splitlines()
    number = next(number for number, line in enumerate(lines) if "st.global" in line)
    lines[number] = "\tst.nowhere;"
    with pytest.raises(IRError, match=rf"ptxas does not accept the PTX for sm_90a: line {number + 1}: ") as caught:
        compile_text("\n".join(lines), "cuda:90", "ptx")
    assert caught.value.location.line == number + 1


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\udcffb"])
def test_the_place_of_a_kernel_may_have_any_name(name):
    x = aligned(np.zeros(64 * 64, np.float16))
    lines = compile_for("cuda:90", changed, x, x.astype("float32"), 1, N=16).asm["ttir"].splitlines()
    module = parse_module("\n".join(lines))
    for op in module.walk():
        op.location = to_attribute(Location(f"/tmp/{name}/{name}.py", 1))
    for target in ("cpu", "cuda:90"):
        compile_text(print_module(module), target, "ttir")
