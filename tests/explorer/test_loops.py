"""Kernels for the CPU: their nests, and the lines of their code."""

import re

import pytest
from explorer.conftest import EXAMPLES, explored, kernel


def every(loops):
    for loop in loops:
        yield loop
        yield from every(loop.items)


def lines_of(exploration, places):
    source = (EXAMPLES / f"{exploration.kernel.removesuffix('_kernel')}.py").read_text().splitlines()
    return [source[exploration.places[place][1] - 1] for place in places]


def test_nests_of_a_matmul():
    found = explored("matmul", "cpu").exploration
    assert [loop.kind for loop in found.loops if loop.items] == ["for"]
    loops = list(every(found.loops))
    (dot,) = (loop for loop in loops if loop.kind == "dot")
    assert dot.shape == (64, 64) and "tl.dot" in lines_of(found, [dot.place])[0]
    assert set(dot.roots[0].reads) >= {"a", "b"}
    kept = {root.kept for loop in loops if loop.kind == "nest" for root in loop.roots if root.kind == "keep"}
    assert {"a", "b", "acc"} <= kept
    (stored,) = (loop for loop in loops for root in loop.roots if root.kind == "store")
    assert stored.axis == 1 and stored.lanes > 1 and "acc" in stored.roots[0].reads
    for loop in loops:
        for root in loop.roots:
            for name, place in root.fused:
                assert name != "tt.load" or "load" in lines_of(found, [place])[0]


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_code_is_that_of_the_kernel_with_lines(name):
    found = explored(name, "cpu").exploration
    asm = next(stage for stage in found.stages if stage.name == "asm")
    assert instructions(asm.lines) == instructions(kernel(name, "cpu").asm["asm"].splitlines())
    assert sum(map(bool, asm.at)) > 0.8 * len(instructions(asm.lines))
    for wanted, said in (("vfmadd", "dot"), ("vmaxps", "max") if name == "attention" else ("vfmadd", "dot")):
        places = [at[0] for line, at in zip(asm.lines, asm.at, strict=True) if wanted in line and at]
        assert any(said in line for line in lines_of(found, places)), wanted


def instructions(lines):
    """The instructions of assembly, whatever labels and constants are called."""
    code = (re.sub(r"\\.L\\w+", ".L", line.split("#")[0].expandtabs(8).strip()) for line in lines)
    return [line for line in code if re.match(r"[a-z]", line) and not line.endswith(":")]


def test_a_page_for_the_cpu(show):
    page = explored("matmul", "cpu")
    shown = show(page)
    shown.click("[data-line='40']")
    asm = "explorer.view.panes[1]"
    assert shown.evaluate(f"{asm}.stage") == "asm"
    lit = f"{asm}.list.rows.filter((r) => / (lit|exact)/.test({asm}.classes(r))).map((r) => r.text)"
    assert any("vfmadd" in line for line in shown.evaluate(lit))
    shown.press("2")
    assert any("keep acc" in text for text in shown.texts(".root-head"))
    assert shown.evaluate("document.querySelectorAll('.loop.dot .hit, .loop.dot.hit').length") > 0
    shown.hover(".loop.for > .loop-title")
    assert "range(0, K, BLOCK_K)" in shown.texts(".source .row.lit")[0]
