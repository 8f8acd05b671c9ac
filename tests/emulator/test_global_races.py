"""Threads of a block that touch what others of it wrote in global memory, or write what they read."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import global_pointers, kernel

from deuteron.emulator import EmulatorError, EmulatorOptions, launch

BEGIN = (
    global_pointers(["x"])
    + """  .reg .b32 t, v, r; .reg .b64 mine, other; .reg .pred p, first;
  mov.u32 t, %tid.x; sub.u32 r, 127, t; setp.eq.u32 first, t, 0; setp.lt.u32 p, t, 32;
  mad.wide.u32 mine, t, 4, x; mad.wide.u32 other, r, 4, x;
"""
)


def run(body: str, grid: int = 1, size: int = 128, **options: object) -> np.ndarray:
    x = np.arange(100, 100 + size, dtype=np.uint32)
    launch(kernel(BEGIN + body, [".u64 p_x"]), "k", grid, 128, 0, (x,), None, EmulatorOptions(**options))
    return x


RACES = {
    "read after write": ("st.global.u32 [mine], t;", "ld.global.u32 v, [other];"),
    "write after read": ("ld.global.u32 v, [mine];", "st.global.u32 [other], t;"),
    "write after write": ("st.global.u32 [mine], t;", "st.global.u32 [other], t;"),
    "one thread writes what others read": ("@!first ld.global.u32 v, [x];", "@first st.global.u32 [x], t;"),
    "read after an atomic": ("red.global.add.u32 [mine], 1;", "ld.global.u32 v, [other];"),
    "an atomic after a write": ("st.global.u32 [mine], t;", "red.global.add.u32 [other], 1;"),
    "by a generic address": ("st.u32 [mine], t;", "ld.u32 v, [other];"),
    "bytes of a word": ("st.global.u8 [mine], t;", "ld.global.u32 v, [other];"),
}


@pytest.mark.parametrize("name", RACES)
def test_races(name: str):
    first, second = RACES[name]
    with pytest.raises(EmulatorError, match=r"race: accesses argument 0 .* with no barrier between") as caught:
        run(first + second)
    assert caught.value.kind == "race"
    run(f"{first} bar.sync 0; {second}")
    run(first + second, check_global=False)


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 v, [mine]; st.global.u32 [mine], t; ld.global.u32 v, [mine];",
        "red.global.add.u32 [mine], 1; red.global.add.u32 [other], 1;",
        "ld.global.u32 v, [other]; ld.global.u32 v, [mine];",
        "st.global.u32 [x], 7; st.global.u32 [x], 7;",  # what it is already
        "ld.global.u32 v, [x]; @first st.global.u32 [x], t;",  # all hold an element that one of them stores
        "@p st.global.u32 [mine], t; xor.b32 r, t, 1; mad.wide.u32 other, r, 4, x; @p ld.global.u32 v, [other];",
    ],
)
def test_no_races(body: str):
    run(body)


def test_threads_that_have_met_before_read_with_others():
    """Each at a time of its own: that of the last one was taken for that of the first."""
    meet = ".reg .pred q, one; setp.ge.u32 q, t, 64; setp.eq.u32 one, t, 70; @q bar.sync 1, 64; bar.sync 0;"
    run(meet + "ld.global.u32 v, [x]; bar.sync 0; @one st.global.u32 [x], t;")
    with pytest.raises(EmulatorError, match=r"race: accesses argument 0 .* with no barrier between"):
        run(meet + "ld.global.u32 v, [x]; @one st.global.u32 [x], t;")


def test_the_thread_that_races_is_named():
    """Not the one in its place among those that change anything."""
    body = ".reg .pred one; setp.eq.u32 one, t, 70; add.u32 v, t, 100; @one mov.u32 v, 7;"
    with pytest.raises(EmulatorError) as caught:
        run(body + "ld.u32 r, [other]; st.u32 [mine], v;")
    assert caught.value.place.threads == "70"


def test_other_blocks_are_the_affair_of_the_kernel():
    run("st.global.u32 [mine], 1; bar.sync 0; st.global.u32 [other], 2; bar.sync 0; ld.global.u32 v, [mine];", grid=3)


def test_a_read_by_a_few_of_many():
    """Threads of other warps read a word, which one that did not writes."""
    body = "@p bra SKIP; ld.global.u32 v, [x]; SKIP: @first st.global.u32 [x], r;"
    with pytest.raises(EmulatorError, match="that threads (32|127|32, 127) read"):
        run(body)
