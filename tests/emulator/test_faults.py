"""Every check: a kernel with exactly that fault is caught, and `test_instructions` runs the unedited one.

A fault is made by an edit of the PTX of a case: a barrier, a wait or a fence dropped, an address shifted.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import Case, global_pointers, kernel
from emulator.cases import ALL_CASES

from deuteron.emulator import EmulatorError, EmulatorOptions, UnknownInstruction, launch
from deuteron.errors import LaunchError, MemoryAccessError, OutOfResources

CASES = {case.name: case for case in ALL_CASES}


def edit(ptx: str, old: str, new: str = "", which: int = 0) -> str:
    """Replace one occurrence, which has to be there."""
    position = -1
    for _ in range(which + 1):
        position = ptx.index(old, position + 1)
    return ptx[:position] + new + ptx[position + len(old) :]


def run(case: Case, ptx: str, rng: np.random.Generator, **options) -> None:
    made = case.make(rng)
    launch(ptx, "k", case.grid, case.block, case.shared, made.args, case.cluster, EmulatorOptions(**options))


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
    "A registers changed behind the fence": (
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
    with pytest.raises(LaunchError, match="takes 1 arguments, got 0"):
        launch(kernel("", [".u64 x"]), "k", 1, 32)


@pytest.mark.parametrize("mode", ["early", "random"])
@pytest.mark.parametrize("name", ["cp.async", "bulk", "TMA and wgmma", "cluster", "tensor store add"])
def test_correct_kernels_do_not_depend_on_when_copies_complete(name: str, mode: str, rng: np.random.Generator):
    from emulator.case import check

    case = CASES[name]
    made = case.make(rng)
    options = EmulatorOptions(asynchronous=mode, seed=int(rng.integers(1000)))
    launch(case.ptx, "k", case.grid, case.block, case.shared, made.args, case.cluster, options)
    check(case, made)


def test_a_warp_barrier_is_enough_within_a_warp(rng: np.random.Generator):
    case = CASES["cp.async"]
    run(case, case.ptx.replace("bar.sync 0;", "bar.warp.sync -1;"), rng)


@pytest.mark.parametrize("fence", ["fence.mbarrier_init.release.cluster;", "fence.proxy.async;"])
def test_either_fence_is_enough_for_an_mbarrier(fence: str, rng: np.random.Generator):
    case = CASES["bulk"]
    run(case, edit(case.ptx, "fence.mbarrier_init.release.cluster; fence.proxy.async;", fence), rng)


RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"


def test_a_relaxed_barrier_shows_mbarriers_to_the_cluster(rng: np.random.Generator):
    case = CASES["cluster"]
    first = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    ptx = edit(case.ptx, first, RELAXED)
    run(case, ptx, rng)
    with pytest.raises(EmulatorError, match="race"):
        run(case, edit(ptx, "fence.mbarrier_init.release.cluster;"), rng)


@pytest.mark.parametrize(("which", "kind"), [(0, "race"), (1, "cluster")])
def test_a_relaxed_barrier_orders_no_accesses(which: int, kind: str, rng: np.random.Generator):
    case = CASES["cluster"]
    with pytest.raises(EmulatorError) as caught:
        run(case, edit(case.ptx, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", RELAXED, which), rng)
    assert caught.value.kind == kind


def test_memory_of_an_mbarrier_that_ended(rng: np.random.Generator):
    case = CASES["bulk"]
    end = "bar.sync 0; @!p mbarrier.inval.shared::cta.b64 [bar]; @!p st.shared.b64 [bar], 1;"
    run(
        case,
        edit(case.ptx, "bar.sync 0; @p bra END;", f"{end} @!p mbarrier.init.shared::cta.b64 [bar], 3; @p bra END;"),
        rng,
    )


def test_exit_with_a_copy_in_flight():
    body = (
        global_pointers(["x"])
        + """  .reg .b32 s; .shared .align 16 .b8 buffer[16]; mov.b32 s, buffer;
  cp.async.ca.shared.global [s], [x], 4; cp.async.commit_group;"""
    )
    with pytest.raises(EmulatorError, match="exits while the cp.async of PTX line"):
        launch(kernel(body, [".u64 p_x"]), "k", 1, 1, 0, (np.zeros(1, np.uint32),))


def test_an_accumulator_that_was_read_needs_a_fence(rng: np.random.Generator):
    """Products of one shape follow each other without a fence, but not where a thread looked at the sum between."""
    case = CASES["TMA and wgmma"]
    fence = "wgmma.fence.sync.aligned;"
    again = f"{fence} bra SKIP; SKIP:"
    assert edit(case.ptx, fence, again) != case.ptx
    ptx = edit(case.ptx, "bar.sync 0;\n  add.u32 k, k, 1;", "bar.sync 0; mov.b32 n, d3;\n  add.u32 k, k, 1;")
    run(case, ptx, rng)
    unfenced = ptx.replace("setp.ne.u32 p, k, 0;\n  wgmma.fence.sync.aligned;", "setp.ne.u32 p, k, 0;")
    first = edit(unfenced, " LOOP:", f" {fence} LOOP:")
    assert first != ptx
    with pytest.raises(EmulatorError, match="missing wgmma.fence.*d3"):
        run(case, first, rng)
    run(case, edit(first, "mov.b32 n, d3;"), rng)


def test_a_barrier_of_fewer_threads_than_come(rng: np.random.Generator):
    """Warps that are too many for a round wait for the next one: they are not ordered behind those of the first."""
    case = CASES["vectors"]
    with pytest.raises(EmulatorError, match="race"):
        run(case, edit(case.ptx, "bar.sync 0;", "bar.sync 0, 64;"), rng, asynchronous="late")


def test_rounds_of_a_barrier():
    """Four warps, two rounds of two; the last warp alone waits for ever."""
    launch(kernel("  bar.sync 1, 64;", []), "k", 1, 128)
    with pytest.raises(EmulatorError, match=r"(?s)deadlock.*32 of 96 threads arrived at barrier 1"):
        launch(kernel("  bar.sync 1, 96;", []), "k", 1, 128)


def test_late_data_is_wrong_without_checks(rng: np.random.Generator):
    """Without the checks a missing wait shows as a wrong result, every time."""
    case = CASES["cp.async"]
    made = case.make(rng)
    ptx = edit(case.ptx, "cp.async.wait_group 1;")
    launch(ptx, "k", 1, 128, 0, made.args, None, EmulatorOptions("late", check_shared=False))
    assert (made.args[1][:128] != made.expected[1][:128]).any()


def test_barriers_of_different_warps_in_one_instruction():
    """Two pairs of warps meet at barriers of their own, by a number in a register."""
    body = """  .reg .b32 t, id; .reg .pred p; mov.u32 t, %tid.x; shr.u32 id, t, 6; add.u32 id, id, 1;
  setp.lt.u32 p, t, 96; @p bra ALL; nanosleep.u32 10;
 ALL: bar.sync id, 64;"""
    launch(kernel(body, []), "k", 1, 128)
