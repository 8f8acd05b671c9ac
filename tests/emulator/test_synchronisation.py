"""What is enough and what is not to order threads, copies and wgmma, instruction by instruction."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import check, global_pointers, kernel
from emulator.edits import CASES, edit, run

from deuteron.emulator import EmulatorError, EmulatorOptions, launch


@pytest.mark.parametrize("mode", ["early", "random"])
@pytest.mark.parametrize("name", ["cp.async", "bulk", "TMA and wgmma", "cluster", "tensor store add"])
def test_correct_kernels_do_not_depend_on_when_copies_complete(name: str, mode: str, rng: np.random.Generator):
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
    end += " @!p mbarrier.init.shared::cta.b64 [bar], 3; @p bra END;"
    run(case, edit(case.ptx, "bar.sync 0; @p bra END;", end), rng)


def test_exit_with_a_copy_in_flight():
    body = (
        global_pointers(["x"])
        + """  .reg .b32 s; .shared .align 16 .b8 buffer[16]; mov.b32 s, buffer;
  cp.async.ca.shared.global [s], [x], 4; cp.async.commit_group;"""
    )
    with pytest.raises(EmulatorError, match="exits while the cp.async of PTX line"):
        launch(kernel(body, [".u64 p_x"]), "k", 1, 1, 0, (np.zeros(1, np.uint32),))


def test_an_accumulator_that_was_read_needs_a_fence(rng: np.random.Generator):
    """wgmma of one shape follow each other without a fence, but not where a thread looked at the sum between."""
    case = CASES["TMA and wgmma"]
    fence = "wgmma.fence.sync.aligned;"
    ptx = edit(case.ptx, "bar.sync 0;\n  add.u32 k, k, 1;", "bar.sync 0; mov.b32 n, d3;\n  add.u32 k, k, 1;")
    run(case, ptx, rng)
    unfenced = edit(ptx, fence)
    first = edit(unfenced, " LOOP:", f" {fence} LOOP:")
    with pytest.raises(EmulatorError, match="missing wgmma.fence.*d3"):
        run(case, first, rng)
    run(case, edit(first, "mov.b32 n, d3;"), rng)


@pytest.mark.parametrize("written", ["", "setp.lt.u32 p, t, 64; @p mov.b32 d31, 1;"], ids=["none", "some threads"])
def test_accumulators_that_are_overwritten_need_no_value(written: str, rng: np.random.Generator):
    """Nothing is read where scale-d is 0; blocks that are not at the same step of a loop are together there."""
    case = CASES["wgmma.f16.n64.f32.128.SSKK"]
    run(case, edit(case.ptx, "mov.b32 d31, 0x3f800000;", written), rng)


def test_a_barrier_of_fewer_threads_than_come(rng: np.random.Generator):
    """Warps that are too many for a round wait for the next one: they are not ordered after those of the first."""
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
