"""The page in a browser: the lines that light together, the passes, what it says; its size and how soon it is there."""

import re

import pytest
from explorer.conftest import explored


def line_of(page, text: str) -> int:
    """The number of the source line that has a text."""
    lines = [
        (part.first + n, line) for f in page.exploration.files for part in f.parts for n, line in enumerate(part.lines)
    ]
    return next(number for number, line in lines if text in line)


def lit(shown, pane: int) -> list[str]:
    """The lines of a pane that are lit, and of which some are in view."""
    holder = f"explorer.view.panes[{pane}]"
    assert shown.evaluate(f"!!{holder}.element.querySelector('.row.lit, .row.exact')")
    return shown.evaluate(
        f"{holder}.list.rows.filter((r) => / (lit|exact)/.test({holder}.classes(r))).map((r) => r.text)"
    )


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_a_line_lights_what_it_became(show, name):
    page = explored(name, "cuda:90")
    assert len(page.html) < 3_000_000
    shown = show(page)
    assert shown.evaluate("performance.now()") < 5_000  # a second on a quiet machine
    line = line_of(page, "tl.store(")
    shown.click(f"[data-line='{line}']")
    assert any("tt.store" in text for text in lit(shown, 0))
    assert any("st.global" in text for text in lit(shown, 1))
    assert f"{name}.py:{line}" in shown.texts("#status")[0]
    assert "pinned" in shown.evaluate(f"document.querySelector(\"[data-line='{line}']\").className")
    shown.press("Escape")
    assert shown.texts(".row.lit") == []


def test_a_row_lights_its_source(show):
    shown = show(explored("matmul", "cuda:90"))
    pane = "explorer.view.panes[0]"
    number = shown.evaluate(f"{pane}.text.lines.findIndex((line) => line.includes('warp_group_dot'))")
    shown.evaluate(f"{pane}.list.reveal({number})")
    shown.hover(f".column.stage [data-number='{number}']")
    assert any("tl.dot(a, b)" in text for text in shown.texts(".source .row.lit"))
    assert re.search(r"matmul\.py:40:\d+", shown.texts("#where")[0])


def test_the_passes(show):
    shown = show(explored("matmul", "cuda:90"))
    assert shown.texts(".pass-name")[0] == "all passes"
    shown.press("[")
    before = shown.texts(".pass-name")[0]
    assert before != "all passes" and shown.texts(".row.add") != []
    for _ in range(40):
        shown.press("[")
    assert (
        shown.texts(".pass-name")[0] == "before the passes of ttir"
        and shown.evaluate("document.querySelector('.stages').value") == "ttir"
    )
    shown.press("]")
    assert shown.texts(".row.del") != []
    shown.press("d")
    assert shown.texts(".row.del") == []


def test_keys(show):
    shown = show(explored("attention", "cpu"))
    shown.press("j")
    shown.press("j")
    assert len(shown.texts(".source .row.pinned")) == 1
    shown.press("2")
    assert "processor" in shown.texts(".report table")[0]
    theme = shown.evaluate("document.documentElement.dataset.theme")
    shown.press("t")
    assert shown.evaluate("document.documentElement.dataset.theme") != theme
