"""What the emulator finds does not depend on which threads happen to run together, nor on when copies arrive.

Groups are split and joined for speed: blocks that are not at the same step of a loop are one group where their program
counters are equal, and a join that gives up lets warps or lanes go on alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import global_pointers, kernel
from emulator.edits import CASES, edit

from deuteron.emulator import EmulatorError, EmulatorOptions, launch

THREAD = ".reg .b32 t; .reg .pred p, q; mov.u32 t, %tid.x; setp.lt.u32 p, t, 64; setp.lt.u32 q, t, 1000;"
LATE = EmulatorOptions("late")


def run_text(body: str, threads: int = 128, args: tuple = (), params: tuple[str, ...] = ()) -> None:
    launch(kernel(body, [*params]), "k", 1, threads, 0, args, None, LATE)


WRITTEN = {
    "by all, under a predicate": "@p mov.b32 v, 1; @q mov.b32 v, 2; add.u32 v, v, 1;",
    "by each half": "@p mov.b32 v, 1; @!p mov.b32 v, 2; add.u32 v, v, 1;",
    "where it is read": "@p mov.b32 v, 1; @p add.u32 v, v, 1;",
    "where it is moved and read": "@p mov.b32 v, 1; mov.b32 w, v; @p add.u32 w, w, 1;",
    "half of a pair": "@p mov.b16 h, 1; mov.b32 v, {h, l}; mov.b32 {h, l}, v; @p add.u16 h, h, 1;",
    "moved as a float": "mov.f32 w, v; @p mov.b32 w, 1; @p add.u32 w, w, 1;",
    "taken apart": "mov.b32 {h, l}, v; @p mov.b16 h, 1; @p add.u16 h, h, 1;",
    "by nobody, read by nobody": "setp.gt.u32 p, t, 500; @p add.u32 w, v, 1; @p st.shared.b32 [0], v;",
}
UNWRITTEN = {
    "where it is read under a predicate": "@p mov.b32 v, 1; @q add.u32 v, v, 1;",
    "where it is moved under a predicate": "@p mov.b32 v, 1; mov.b32 w, 0; @q mov.b32 w, v; add.u32 w, w, 1;",
    "the predicate": "@p setp.lt.u32 r, t, 5; @r mov.b32 v, 1;",
    "where only others wrote it": "@p mov.b32 v, 1; @!p add.u32 v, v, 1;",
}
REGISTERS = " .reg .b32 v, w; .reg .b16 h, l; .reg .pred r; "


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_where_it_is_read(name: str):
    run_text(THREAD + REGISTERS + WRITTEN[name])


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_is_not_written_where_it_is_read(name: str):
    with pytest.raises(EmulatorError) as caught:
        run_text(THREAD + REGISTERS + UNWRITTEN[name])
    assert caught.value.kind == "unwritten register"


# One lane waits for a copy, which comes when nothing else can run, and all others are at the end of the branch before.
LANE_WAITS = (
    global_pointers(["x"])
    + THREAD
    + """ .reg .b32 s, b; .reg .pred e, done; .shared .align 128 .b8 buffer[16]; .shared .align 8 .b64 full;
  mov.b32 s, buffer; mov.b32 b, full; setp.ne.u32 e, t, 0;
  @e bra READY; mbarrier.init.shared::cta.b64 [b], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [x], 16, [b];
 WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [b], 0; @!done bra WAIT;
 READY: """
)
# One lane is long in a loop, and no other can do anything meanwhile.
LANE_IS_LONG = (
    global_pointers(["x"])
    + THREAD
    + """ .reg .b32 n; .reg .pred e, more; mov.b32 n, 0; setp.ne.u32 e, t, 0; @e bra READY;
 MORE: add.u32 n, n, 1; setp.lt.u32 more, n, 20000; @more bra MORE;
 READY: """
)
TOGETHER = {
    "bar.sync": "bar.sync 0;",
    "bar.red": ".reg .b32 c; bar.red.popc.u32 c, 0, p; setp.eq.u32 q, c, 64; @!q trap;",
    "mma": """.reg .b32 a<4>; .reg .b32 d<4>;
  mov.b32 a0, 0; mov.b32 a1, 0; mov.b32 a2, 0; mov.b32 a3, 0;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {a0, a1}, {a0, a1, a2, a3};""",
    "wgmma.fence": "wgmma.fence.sync.aligned;",
    "setmaxnreg": "setmaxnreg.dec.sync.aligned.u32 40;",
    "cluster barrier": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
}


@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("lane", [LANE_WAITS, LANE_IS_LONG], ids=["waits", "is long"])
def test_warps_and_lanes_wait_for_each_other(lane: str, name: str):
    run_text(lane + TOGETHER[name], args=(np.zeros(4, np.uint32),), params=(".u64 p_x",))


NEVER_COME = {
    "bar.sync": "barrier divergence",
    "mma": "warp divergence",
    "wgmma.fence": "warpgroup divergence",
    "setmaxnreg": "setmaxnreg",
}


@pytest.mark.parametrize("other", ["bar.warp.sync -1;", "exit;"])
@pytest.mark.parametrize("name", NEVER_COME)
def test_others_that_never_come_are_at_fault(name: str, other: str):
    """Lane 0 goes another way, on which it waits for the others, or exits: barriers need only those that are there."""
    text = f"{THREAD} setp.eq.u32 q, t, 0; @q bra OTHER; {TOGETHER[name]} bra END; OTHER: {other} END:"
    if (name, other) == ("bar.sync", "exit;"):
        run_text(text)
        return
    with pytest.raises(EmulatorError) as caught:
        run_text(text)
    assert caught.value.kind == NEVER_COME[name]


@pytest.mark.parametrize("block", [0, 1])
def test_a_wgmma_of_other_threads_is_not_in_flight(block: int, rng: np.random.Generator):
    """Block 0 has waited before the branches meet, block 1 has not, and then one of them uses its sums."""
    case = CASES["wgmma.f16.n64.f32.128.SSKK"]
    wait = "wgmma.wait_group.sync.aligned 0;"
    branch = f""".reg .b32 c; .reg .pred waits, uses; mov.u32 c, %ctaid.x;
  setp.eq.u32 waits, c, 0; setp.eq.u32 uses, c, {block}; @!waits bra MEET; {wait}
 MEET: @uses add.f32 d0, d0, 0f00000000; @!uses bra WAIT; add.f32 d1, d1, 0f00000000; WAIT: {wait}"""
    args = case.make(rng).args
    if block == 0:
        launch(edit(case.ptx, wait, branch), "k", 2, 128, case.shared, args, None, LATE)
        return
    with pytest.raises(EmulatorError, match=r"(?s)register in flight.*block \(1, 0, 0\)"):
        launch(edit(case.ptx, wait, branch), "k", 2, 128, case.shared, args, None, LATE)


COPY = (
    global_pointers(["x"])
    + THREAD
    + """ .reg .b32 s, n; .reg .b64 at; .shared .align 16 .b8 buffer[2048]; mov.b32 s, buffer; mad.lo.u32 s, t, 16, s;
  mul.wide.u32 at, t, 16; add.s64 at, at, x; selp.b32 n, 0, 16, p;
  cp.async.cg.shared.global [s], [at], 16, n; cp.async.wait_all;"""
)


def test_a_copy_of_some_threads_that_is_out_of_bounds():
    with pytest.raises(EmulatorError, match=r"(?s)out-of-bounds.*threads 127$"):
        run_text(COPY, args=(np.zeros(127 * 4, np.uint32),), params=(".u64 p_x",))


ARRIVES_TWICE = (
    global_pointers(["x"])
    + """ .reg .b32 s, b; .reg .pred done; .shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 full;
  mov.b32 s, buffer; mov.b32 b, full; mbarrier.init.shared::cta.b64 [b], 1; mbarrier.init.shared::cta.b64 [b+8], 1;
  mbarrier.expect_tx.shared::cta.b64 [b], 16;
  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b]; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b]; %s"""
).replace("full;", "full[2];", 1)
WAITS_FOR_EVER = " WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [b+8], 0; @!done bra WAIT;"
SPINS = " SPIN: mbarrier.test_wait.parity.shared::cta.b64 done, [b+8], 0; @!done bra SPIN;"


@pytest.mark.parametrize("end", ["", WAITS_FOR_EVER, SPINS], ids=["exits", "waits", "spins"])
def test_what_a_late_copy_does_wrong_has_a_place(end: str):
    with pytest.raises(EmulatorError, match=r"arrives 1 times at the mbarrier(.|\n)*PTX line"):
        run_text(ARRIVES_TWICE % end, 1, (np.zeros(4, np.uint32),), (".u64 p_x",))
