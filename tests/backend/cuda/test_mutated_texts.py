"""Texts with something changed by lot: an error that says where, or tile IR; nothing else, and soon."""

import re

import pytest
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl
from deuteron.errors import IRError, UsageError
from deuteron.tools.opt import run

COUNT = 100
NUMBERS = ("0", "-1", "3", "17", "64", "2147483647", "-2147483648", "9223372036854775807", "99999999999999999999")
WORDS = r"%\w+|#\w+|\b(?:tt|ttg|ttng|arith|scf)\.\w+|\b(?:i1|i8|i32|i64|f16|f32)\b|(?<![\w#%.])-?\d+(?![\w.])"


@deuteron.jit
def changed(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        tile = tl.load(x + k * N * N + i[:, None] * N + i[None, :])
        acc = tl.dot(tile, tl.trans(tile), acc)
        acc = tl.where(tl.sum(acc, 1)[:, None] > 0, acc, tl.cumsum(acc, 0))
    tl.store(out + i[:, None] * N + i[None, :], acc)


def mutated(rng, text: str) -> str:
    """A word that is another of the text or an odd number, a line less, a line twice or elsewhere, a sign."""
    lines = re.sub(r" loc\([^()]*\)", "", text.partition("\n#loc")[0]).splitlines()
    number, kind = int(rng.integers(len(lines))), rng.integers(8)
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
    return "\n".join(lines) + "\n"


@pytest.mark.long
@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_a_text_that_was_changed_is_refused_or_is_tile_ir(rng, target, stage):
    x = aligned(rng.integers(0, 9, 64 * 64).astype("float16"))
    text = compile_for(target, changed, x, x.astype("float32"), 1, N=64).asm[stage]
    passes = "memory" if stage == "ttgir" else "tile"
    for _ in range(COUNT):
        other = mutated(rng, text)
        try:
            run(other, f"k.{stage}", passes, target)
        except UsageError:  # what the module says of its launch
            continue
        except IRError as error:
            assert error.location is not None, f"{error}\n{other}"
