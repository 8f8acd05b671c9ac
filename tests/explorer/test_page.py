"""The page in a browser: the lines that light together, the passes, what it says; its size and how soon it is there."""

import re

import numpy as np
import pytest
from explorer.conftest import explored, kernel

from deuteron.errors import UsageError
from deuteron.explorer import explore
from deuteron.explorer.variant import variant


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


@pytest.mark.parametrize(("target", "store"), [("cuda:90", "st.global"), ("cpu", "vmov")])
@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_a_line_lights_what_it_became(show, name, target, store):
    page = explored(name, target)
    assert len(page.html) < 3_000_000
    shown = show(page)
    assert shown.evaluate("performance.now()") < 5_000  # a second on a quiet machine
    line = line_of(page, "tl.store(")
    shown.click(f"[data-line='{line}']")
    assert any("tt.store" in text for text in lit(shown, 0))
    assert any(store in text for text in lit(shown, 1))
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
    shown.press("3")
    assert "processor" in shown.texts(".report table")[0]
    theme = shown.evaluate("document.documentElement.dataset.theme")
    shown.press("t")
    assert shown.evaluate("document.documentElement.dataset.theme") != theme


def test_an_element_says_who_holds_it(show):
    page = explored("matmul", "cuda:90")
    shown = show(page)
    shown.press("2")
    layouts = page.exploration.layouts.layouts
    name = next(value for value in page.exploration.layouts.values if value.name == "%acc")
    wanted = f"{layouts[name.layout].name}{name.type}"
    shown.evaluate(f"[...document.querySelectorAll('.item')].find((e) => e.textContent.startsWith('{wanted}')).click()")
    shown.wait("document.querySelectorAll('canvas.tile').length == 1")
    shown.wait("document.querySelector('canvas.tile').tile.cell > 1")
    x, y = shown.evaluate(MIDDLE.format(row=17, column=9))
    shown.move(x, y)
    said = shown.texts("#layout-readout")[0]
    bases = layouts[name.layout].bases
    found = re.fullmatch(r"element \(17, 9\): warp (\d+), lane (\d+), register (\d+), thread (\d+)", said)
    assert found, said
    warp, lane, register, thread = map(int, found.groups())
    assert held(bases, {"warp": warp, "lane": lane, "register": register}) == (17, 9) and thread == 32 * warp + lane
    shown.click("[data-mode='lane']")
    assert shown.evaluate("document.querySelector(\"[data-mode='lane']\").getAttribute('aria-pressed')") == "true"


# Where the middle of an element of the drawn tile is.
MIDDLE = """(() => {{
  const canvas = document.querySelector('canvas.tile'), box = canvas.getBoundingClientRect();
  const [x, y] = canvas.tile.middle({row} * canvas.tile.picture.columns + {column});
  return [box.left + x, box.top + y];
}})()"""


def held(bases, numbers):
    """The coordinates that registers, lanes and warps of these numbers have."""
    found = (0, 0)
    for name, number in numbers.items():
        for bit, basis in enumerate(bases[name]):
            if number >> bit & 1:
                found = tuple(a ^ b for a, b in zip(found, basis, strict=True))
    return found


def test_a_conversion_and_a_dot(show):
    shown = show(explored("matmul", "cuda:90"))
    shown.press("2")
    assert "m64n64k16" in shown.texts(".detail h2")[0]
    shown.wait("[...document.querySelectorAll('.product canvas')].every((canvas) => canvas.tile.cell > 1)")
    shown.hover(".product > div:nth-child(3) canvas")
    assert re.match(r"c, element \(\d+, \d+\): warp", shown.texts("#layout-readout")[0])
    shown.evaluate("[...document.querySelectorAll('.item')].find((e) => e.textContent.includes('through')).click()")
    shown.wait("document.querySelectorAll('.stop').length == 3 && document.querySelector('.stop canvas').tile.cell > 1")
    shown.hover(".stop:nth-child(1) canvas")
    assert re.search(r"warp \d+, lane \d+.*byte \d+, bank \d+.*warp \d+, lane \d+", shown.texts("#layout-readout")[0])


def test_the_timeline(show):
    page = explored("attention", "cuda:90")
    shown = show(page)
    shown.press("3")
    shown.wait("document.querySelectorAll('.bar-copy').length > 3")
    shown.hover(".bar-dot rect")
    assert re.search(r"bundle \d+\nattention.py:\d+", shown.texts("#tip")[0])
    assert len(shown.texts(".source .row.lit")) == 1
    line = line_of(page, "k = tl.load(")
    shown.click(f"[data-line='{line}']")
    assert shown.evaluate("document.querySelectorAll('.bar-copy.hit').length") > 3


def test_two_configurations(show):
    page = explore(kernel("matmul", "cuda:90"), variant(kernel("matmul", "cuda:90"), {"num_stages": 2, "BLOCK_K": 64}))
    shown = show(page)
    assert [chip for chip in shown.texts(".chip.differs")] == ["num_stages 3 \u2194 2", "BLOCK_K 32 \u2194 64"]
    line = line_of(page, "tl.dot(")
    shown.click(f"[data-line='{line}']")
    assert all(any("warp_group_dot" in text for text in lit(shown, pane)) for pane in (0, 1))
    shown.press("4")
    rows = shown.texts(".report tr")
    index = next(number for number, row in enumerate(rows) if row.startswith("Ashared memory"))
    assert rows[index + 1].startswith("Bshared memory") and any(row.startswith("A Bthreads") for row in rows)


def test_a_profile(show):
    m, n, k = 64, 64, 64
    a, b, c = np.ones((m, k), np.float16), np.ones((k, n), np.float16), np.zeros((m, n), np.float32)
    page = kernel("matmul", "cuda:80").explore(grid=(1, 1), args=(a, b, c, m, n, k, k, n, n))
    assert not c.any()  # it ran on copies
    lines = [one for one in page.exploration.profile.lines if one.place is not None]
    stored = next(one for one in lines if page.exploration.places[one.place][1] == line_of(page, "tl.store("))
    assert stored.sectors == stored.ideal_sectors == m * n * 4 // 32
    shown = show(page)
    gauge = shown.texts(".source option").index("sectors of memory")
    shown.choose(".source select", str(gauge))
    row = shown.texts(f"[data-line='{line_of(page, 'tl.store(')}'] .gauge")
    assert row == [f"{m * n * 4 // 32}"]
    shown.press("4")
    assert "Profile on the emulator, grid 1×1×1" in shown.texts(".report h2")


def test_a_kernel_that_does_not_run_on_the_emulator():
    with pytest.raises(UsageError, match="the emulator runs kernels for cuda"):
        kernel("matmul", "cpu").explore(grid=(1,))
    with pytest.raises(UsageError, match="has no option or constexpr 'num_warp'. Did you mean 'num_warps'"):
        variant(kernel("matmul", "cpu"), {"num_warp": 4})


def test_a_notebook_has_the_page_in_a_frame(show, tmp_path):
    page = explored("matmul", "cpu")
    text = f"<!doctype html><body data-ready=true>{page._repr_html_()}"
    (tmp_path / "notebook.html").write_text(text)
    shown = show(page)
    shown.call("Page.navigate", url=(tmp_path / "notebook.html").as_uri())
    shown.wait("document.querySelector('iframe')?.contentDocument?.body?.dataset.ready")
    assert shown.evaluate("document.querySelector('iframe').contentDocument.querySelectorAll('.row').length") > 10
