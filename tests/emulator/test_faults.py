"""Every check: a kernel with exactly that fault is caught, and `test_instructions` runs the unedited one.

A fault is made by an edit of the PTX of a case: a barrier, a wait or a fence dropped, an address shifted.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import global_pointers, kernel
from emulator.edits import CASES, edit, run

from deuteron.emulator import EmulatorError, UnknownInstruction, launch
from deuteron.errors import LaunchError, MemoryAccessError, OutOfResources

RELEASES = ("red.release.gpu.global.add.u32 [x], 0", "st.release.sys.global.b32 [x], 7", "fence.acq_rel.gpu")
FAULTS = {
    "load out of bounds": (
        "vectors",
        "add.s64 at, x, at;",
        "add.s64 at, x, at; add.s64 at, at, 16;",
        0,
        "out-of-bounds",
    ),
    "store out of bounds": ("vectors", "add.s64 to, o, at;", "sub.s64 to, o, 16;", 0, "out-of-bounds"),
    "shared out of bounds": ("vectors", "st.shared.v2.b32 [s+8]", "st.shared.v2.b32 [s+2048]", 0, "out-of-bounds"),
    "misaligned vector": ("vectors", "[at];", "[at+4];", 0, "misaligned"),
    "misaligned shared vector": (
        "vectors",
        "ld.shared.v4.b32 {r0, r1, r2, r3}, [s];",
        "ld.shared.v4.b32 {r0, r1, r2, r3}, [s+8];",
        0,
        "misaligned",
    ),
    "unwritten register": ("vectors", "mov.u32 t, %tid.x;", "", 0, "unwritten register"),
    "unwritten shared memory": ("vectors", "st.shared.v2.b32 [s+8], {r1, r0};", "", 0, "unwritten shared memory"),
    "race without barrier": ("vectors", "bar.sync 0;", "", 0, "race"),
    "race of two writers": (
        "vectors",
        "mad.lo.u32 s, t, 16, s;",
        "shr.u32 r0, t, 1; mad.lo.u32 s, r0, 16, s;",
        0,
        "race",
    ),
    "race of named barriers": ("named barriers", "bar.sync 2, 128;", "", 0, "race"),
    "barrier with too many": ("named barriers", "bar.sync 2, 128;", "bar.sync 2, 160;", 0, "barrier"),
    "barrier deadlock": ("named barriers", "bar.arrive 1, 128;", "", 0, "deadlock"),
    "barrier divergence": (
        "divergent.shfl",
        "add.u32 d, a, 20;",
        "add.u32 d, a, 20; bar.sync 0;",
        0,
        "barrier divergence",
    ),
    "member mask": (
        "divergent.shfl",
        "shfl.sync.bfly.b32 d, d, 1, 31, -1;",
        "shfl.sync.bfly.b32 d, d, 1, 31, 15;",
        0,
        "member mask",
    ),
    "warp sync in a branch": (
        "divergent.shfl",
        "add.u32 d, a, 20;",
        "bar.warp.sync -1; add.u32 d, a, 20;",
        0,
        "deadlock",
    ),
    "warp barrier for a block": ("vectors", "bar.sync 0;", "bar.warp.sync -1;", 0, "race"),
    "cp.async without wait": ("cp.async", "cp.async.wait_group 1;", "", 0, "asynchronous data"),
    "cp.async with too weak a wait": (
        "cp.async",
        "cp.async.wait_group 0;",
        "cp.async.wait_group 1;",
        0,
        "asynchronous data",
    ),
    "cp.async without barrier": ("cp.async", "bar.sync 0;", "", 0, "race"),
    "cp.async without commit": (
        "cp.async",
        "[s], [at], 16; cp.async.commit_group;",
        "[s], [at], 16;",
        0,
        "asynchronous data",
    ),
    "bulk copy without wait": (
        "bulk",
        " WAITING: { .reg .pred w; W: mbarrier.try_wait.parity.shared::cta.b64 w, [bar], 0; @w bra D; bra W; D: }",
        "WAITING:",
        0,
        "asynchronous data",
    ),
    "too few bytes expected": ("bulk", "[bar], 4096;", "[bar], 4112;", 0, "deadlock"),
    "no arrival": (
        "bulk",
        "mbarrier.arrive.expect_tx.shared::cta.b64 state, [bar], 4096;",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 4096;",
        0,
        "deadlock",
    ),
    "wrong parity": ("tensor.2d", "[bar], 0; @w", "[bar], 1; @w", 0, ("asynchronous data", "deadlock")),
    "mbarrier without init": ("bulk", "mbarrier.init.shared::cta.b64 [bar], 1;", "", 0, "mbarrier"),
    "mbarrier init without barrier": ("bulk", "READY: bar.sync 0;", "READY:", 0, "race"),
    "bulk load out of bounds": ("bulk", "[x+1024], 3072", "[x+1040], 3072", 0, "out-of-bounds"),
    "bulk store out of bounds": ("bulk", "[out], [s], 4096", "[out+16], [s], 4096", 0, "out-of-bounds"),
    "bulk size": ("bulk", "[s], [x], 1024, [bar]", "[s], [x], 1020, [bar]", 0, "bulk copy"),
    "tensor box misaligned": (
        "tensor.2d",
        "mov.b32 s, buffer;",
        "mov.b32 s, buffer; add.u32 s, s, 64;",
        0,
        "bulk copy",
    ),
    "innermost coordinate misaligned": ("tensor.2d", "[m0, {24, 30}]", "[m0, {25, 30}]", 0, "bulk copy"),
    "tensor store at a negative place": ("tensor store ", "[m0, {24, 28}]", "[m0, {24, -4}]", 0, "bulk copy"),
    "tensor reduction at a negative place": ("tensor store add", "[m0, {24, 28}]", "[m0, {-4, 28}]", 0, "bulk copy"),
    "not a tensor map": ("tensor.2d", "cvta.param.u64 m0, m0;", "mov.b64 m0, out;", 0, "bulk copy"),
    "store without proxy fence": (
        "tensor store ",
        "fence.proxy.async.shared::cta; bar.sync 0; @p",
        "bar.sync 0; @p",
        0,
        "missing proxy fence",
    ),
    "wgmma without proxy fence": (
        "wgmma.f16.n64.f32.128.SSKK",
        "fence.proxy.async.shared::cta; bar.sync 0;",
        "bar.sync 0;",
        0,
        "missing proxy fence",
    ),
    "wgmma without wait": (
        "wgmma.f16.n64.f32.128.SSKK",
        "wgmma.wait_group.sync.aligned 0;",
        "",
        0,
        "register in flight",
    ),
    "wgmma that adds to what was not written": (
        "wgmma.f16.n64.f32.128.SSKK",
        "mov.b32 d31, 0x3f800000;\n  wgmma.fence.sync.aligned;\n  setp.ne.u32",
        "wgmma.fence.sync.aligned; setp.eq.u32",
        0,
        "unwritten register",
    ),
    "wgmma that adds to what some threads did not write": (
        "wgmma.f16.n64.f32.128.SSKK",
        "mov.b32 d31, 0x3f800000;\n  wgmma.fence.sync.aligned;\n  setp.ne.u32",
        "setp.lt.u32 p, t, 64; @p mov.b32 d31, 0x3f800000; wgmma.fence.sync.aligned; setp.eq.u32",
        0,
        "unwritten register",
    ),
    "wgmma without commit": (
        "wgmma.f16.n64.f32.128.SSKK",
        "wgmma.commit_group.sync.aligned;",
        "",
        0,
        "register in flight",
    ),
    "A registers changed in flight": (
        "wgmma.bf16.n16.f32.64.RS",
        "wgmma.commit_group.sync.aligned;",
        "mov.b32 a1, 0; wgmma.commit_group.sync.aligned;",
        0,
        "register in flight",
    ),
    "descriptor within a pattern": (
        "wgmma.f16.n64.f32.128.SSKK",
        "add.s64 da, da, at;",
        "add.s64 da, da, at; add.s64 da, da, 8;",
        0,
        "descriptor",
    ),
    "wgmma by half a warpgroup": (
        "wgmma.f16.n64.f32.128.SSKK",
        "wgmma.fence.sync.aligned;",
        "setp.lt.u32 p, t, 64; @p wgmma.fence.sync.aligned;",
        0,
        "warpgroup divergence",
    ),
    "stage overwritten too early": (
        "TMA and wgmma",
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 2;",
        0,
        "asynchronous data",
    ),
    "mbarrier without a fence": (
        "bulk",
        "fence.mbarrier_init.release.cluster; fence.proxy.async;",
        "",
        0,
        "missing proxy fence",
    ),
    "mbarrier initialised twice": (
        "bulk",
        "mbarrier.init.shared::cta.b64 [bar+8], 1;",
        "mbarrier.init.shared::cta.b64 [bar], 1;",
        0,
        "mbarrier",
    ),
    "store over an mbarrier": ("bulk", "bar.sync 0; @p bra END;", "@!p st.shared.b32 [bar+4], t;", 0, "mbarrier"),
    "load of an mbarrier": ("bulk", "bar.sync 0; @p bra END;", "ld.shared.b64 at, [bar];", 0, "mbarrier"),
    "mbarrier ends while others wait": (
        "bulk",
        "bar.sync 0; @p bra END;",
        "@p bra END; mbarrier.inval.shared::cta.b64 [bar];",
        0,
        ("race", "mbarrier"),
    ),
    "mbarrier ends while a copy completes on it": (
        "bulk",
        " WAITING:",
        "mbarrier.inval.shared::cta.b64 [bar]; WAITING:",
        0,
        ("mbarrier", "race"),
    ),
    "first wgmma without a fence": (
        "wgmma.f16.n64.f32.128.SSKK",
        "wgmma.fence.sync.aligned;",
        "",
        0,
        "missing wgmma.fence",
    ),
    "A registers changed after the fence": (
        "wgmma.bf16.n16.f32.64.RS",
        "wgmma.fence.sync.aligned;",
        "wgmma.fence.sync.aligned; mov.b32 a1, 0;",
        0,
        "missing wgmma.fence",
    ),
    "bulk store at the exit": ("bulk", "cp.async.bulk.wait_group 0;", "", 0, "asynchronous data"),
    "tensor store at the exit": (
        "tensor store ",
        "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;",
        "",
        0,
        "asynchronous data",
    ),
    **{
        f"bulk store before {release}": (
            "bulk",
            "cp.async.bulk.wait_group 0;",
            f"cp.async.bulk.wait_group.read 0; {release}; cp.async.bulk.wait_group 0;",
            0,
            "asynchronous data",
        )
        for release in RELEASES
    },
    "bulk load at the exit": ("bulk", " WAITING:", " WAITING: bra END;", 0, "asynchronous data"),
    "wgmma at the exit": (
        "wgmma.f16.n64.f32.128.SSKK",
        "wgmma.commit_group.sync.aligned;",
        "wgmma.commit_group.sync.aligned; exit;",
        0,
        "asynchronous data",
    ),
    "wgmma of another warp of the warpgroup": (
        "TMA and wgmma",
        "wgmma.wait_group.sync.aligned 0;\n  bar.sync 0;",
        "wgmma.wait_group.sync.aligned 0;",
        0,
        "race",
    ),
    "cluster without barrier": (
        "cluster",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "",
        0,
        ("race", "unwritten shared memory"),
    ),
    "cluster without its first barrier": (
        "cluster",
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
        "",
        0,
        ("race", "mbarrier", "cluster"),
    ),
    "cluster without its last barrier": (
        "cluster",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "",
        1,
        "cluster",
    ),
    "cluster without its last wait": ("cluster", "barrier.cluster.wait.aligned;", "", 1, "cluster"),
    "cluster without its last arrival": ("cluster", "barrier.cluster.arrive.aligned;", "", 1, "barrier"),
    "two arrivals at a cluster's barrier": (
        "cluster",
        "barrier.cluster.wait.acquire.aligned;",
        "",
        0,
        ("barrier", "mbarrier", "race", "cluster"),
    ),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("is_done", [False, True])
def test_a_bulk_store_before_what_does_not_release_it(release: str, is_done: bool, rng: np.random.Generator):
    """What was waited for may be released; of what is done in the block alone others learn nothing."""
    case = CASES["bulk"]
    told = release if is_done else release.replace("sys", "cta").replace("gpu", "cta")
    wait = "cp.async.bulk.wait_group 0;" if is_done else "cp.async.bulk.wait_group.read 0;"
    run(case, edit(case.ptx, "cp.async.bulk.wait_group 0;", f"{wait} {told}; cp.async.bulk.wait_group 0;"), rng)


@pytest.mark.parametrize("mode", ["late", "early", "random"])
@pytest.mark.parametrize("name", FAULTS)
def test_is_caught(name: str, mode: str, rng: np.random.Generator):
    case_name, old, new, which, kind = FAULTS[name]
    case = CASES[case_name]
    with pytest.raises(EmulatorError) as caught:
        run(case, edit(case.ptx, old, new, which), rng, asynchronous=mode, seed=int(rng.integers(1000)))
    kinds = (kind,) if isinstance(kind, str) else kind
    assert caught.value.kind in kinds, str(caught.value)
    assert caught.value.place.ptx_line > 0
    assert caught.value.place.block is not None


def test_out_of_bounds_names_instruction_threads_and_array(rng: np.random.Generator):
    case = CASES["vectors"]
    ptx = edit(case.ptx, "add.s64 at, x, at;", "add.s64 at, x, at; add.s64 at, at, 16;")
    with pytest.raises(
        MemoryAccessError, match=r"reads 16 bytes .* past the end of argument 0 \(uint32\[128, 4\]\)"
    ) as caught:
        run(case, ptx, rng)
    assert "ld.global.nc" in str(caught.value)
    assert "block (0, 0, 0), threads 127" in str(caught.value)


def test_says_the_source_line(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("first\n    y = load(x)\n")
    body = global_pointers(["x"]) + "  .reg .b32 v;\n  .loc 1 2 9\n  ld.global.b32 v, [x+4];"
    ptx = kernel(body, [".u64 p_x"], module=f'.file 1 "{source}"\n')
    with pytest.raises(EmulatorError) as caught:
        launch(ptx, "k", 1, 32, 0, (np.zeros(1, np.uint32),))
    assert str(caught.value).startswith(f"{source}:2:9: error: out-of-bounds")
    assert "y = load(x)" in str(caught.value)


def test_read_only_array():
    x = np.zeros(1, np.uint32)
    x.flags.writeable = False
    body = global_pointers(["x"]) + "  st.global.b32 [x], 1;"
    with pytest.raises(EmulatorError, match="read-only"):
        launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (x,))


def test_unknown_instruction_names_its_line():
    ptx = kernel("  .reg .b32 a;\n  frobnicate.b32 a, a;", [])
    line = ptx[: ptx.index("frobnicate")].count("\n") + 1
    with pytest.raises(UnknownInstruction, match=f"PTX line {line}: unknown instruction: frobnicate.b32"):
        launch(ptx, "k", 1, 32)


def test_unknown_modifier_names_it():
    with pytest.raises(UnknownInstruction, match=r"unknown modifier '.quickly'"):
        launch(kernel("  .reg .b32 a;\n  add.quickly.s32 a, a, a;", []), "k", 1, 32)


def test_partly_written_register():
    body = """  .reg .b32 t, v; .reg .pred p; mov.u32 t, %tid.x; setp.lt.u32 p, t, 7;
  @p mov.b32 v, t; add.u32 t, v, 1;"""
    with pytest.raises(EmulatorError, match=r"(?s)reads register v.*threads 7-31"):
        launch(kernel(body, []), "k", 1, 32)


PAIR = """  .reg .b16 h, never, a, b; .reg .b32 p, q; .reg .pred c; .reg .b32 t;
  mov.b16 h, 0x3c00; mov.u32 t, %tid.x; setp.lt.u32 c, t, 3; @c bra PACK; mov.b16 h, 0x4000;
 PACK: mov.b32 p, {h, never}; fma.rn.f16x2 q, p, p, p; mov.b32 {a, b}, q;"""


def test_half_of_a_pair_may_stay_unwritten():
    body = global_pointers(["x"]) + PAIR + " st.global.b16 [x], a;"
    x = np.zeros(1, np.float16)
    launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (x,))
    assert x[0] == 6


@pytest.mark.parametrize(
    "use",
    [
        "add.rn.f16 a, a, b;",
        "mov.b32 q, {b, a}; mov.b32 {a, b}, q; st.global.b16 [x], a;",
        "mov.b16 a, b; st.global.b16 [x], a;",
        "st.global.b32 [x], q;",
    ],
)
def test_the_half_that_was_never_written_may_not_be_used(use: str):
    body = global_pointers(["x"]) + PAIR + use
    with pytest.raises(EmulatorError, match="unwritten register"):
        launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (np.zeros(2, np.float16),))


# The high word is never written, as where LLVM has found that nobody needs it.
WORD = """  .reg .b32 t, never, low; .reg .b64 w, v; .reg .b16 h; .reg .pred c; mov.u32 t, %tid.x; setp.lt.u32 c, t, 0;
  mov.b64 w, {t, never}; selp.b64 v, 0, w, c; mad.lo.s64 v, v, 3, 5; shl.b64 v, v, 1; xor.b64 v, v, 1; """


@pytest.mark.parametrize(
    "use",
    [
        "cvt.u32.u64 low, v;",
        "cvt.u16.u64 h, v; cvt.u32.u16 low, h;",
        "and.b64 v, v, 255; setp.eq.u64 c, v, 11; cvt.u32.u64 low, v;",
        "shl.b64 v, v, 32; shr.s64 v, v, 32; setp.eq.s64 c, v, 11; cvt.u32.u64 low, v;",
    ],
)
def test_half_of_a_word_may_stay_unwritten(use: str):
    _store_low(use, "low")


def test_half_of_a_word_that_is_stored_may_stay_unwritten():
    _store_low("", "v")


def _store_low(use: str, stored: str) -> None:
    body = global_pointers(["x"]) + WORD + use + f" mad.wide.u32 x, t, 4, x; st.global.b32 [x], {stored};"
    x = np.zeros(32, np.int32)
    launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (x,))
    np.testing.assert_array_equal(x, (np.arange(32) * 3 + 5) * 2 ^ 1)


@pytest.mark.parametrize(
    "use",
    [
        "st.global.b64 [x], v;",
        "setp.eq.u64 c, v, 11;",
        "shr.u64 v, v, 8;",
        "mul.hi.u64 v, v, v;",
        "mov.b64 {low, never}, v; add.u32 low, never, 1;",
        "add.s64 x, x, v; st.global.b32 [x], t;",
        "shl.b64 v, 1, never;",
        "shl.b64 v, v, 31; shr.u64 v, v, 31;",
    ],
)
def test_the_half_of_a_word_that_was_never_written_may_not_be_used(use: str):
    body = global_pointers(["x"]) + WORD + use
    with pytest.raises(EmulatorError, match="unwritten register"):
        launch(kernel(body, [".u64 p_x"]), "k", 1, 32, 0, (np.zeros(2, np.float64),))


def test_deadlock_says_who_waits_for_what():
    body = """  .reg .b32 t; .reg .pred p; mov.u32 t, %tid.x; setp.lt.u32 p, t, 32; @p bra END; bar.sync 3, 128;
 END:"""
    with pytest.raises(EmulatorError, match=r"(?s)deadlock.*96 of 128 threads arrived at barrier 3.*threads 32-127"):
        launch(kernel(body, []), "k", 1, 128)


def test_trap():
    with pytest.raises(EmulatorError, match="trap"):
        launch(kernel("  trap;", []), "k", 1, 32)


def test_endless_loop():
    with pytest.raises(EmulatorError, match="no progress"):
        launch(kernel(" L: bra L;", []), "k", 1, 32)


def test_shared_memory_over_the_limit():
    with pytest.raises(OutOfResources, match="233000"):
        launch(kernel("", [], module=".extern .shared .align 16 .b8 s[];"), "k", 1, 32, 233000)


def test_number_of_arguments():
    with pytest.raises(LaunchError, match="takes 1 argument, got 0"):
        launch(kernel("", [".u64 x"]), "k", 1, 32)
