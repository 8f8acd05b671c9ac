"""Each thing that the rules of rings object to: a small program that keeps them, and one change to it."""

from __future__ import annotations

import pytest

from deuteron.errors import InternalError, Location
from deuteron.ir.location import to_attribute
from deuteron.ir.ring_rules import ring_faults
from deuteron.ir.text import parse_module
from deuteron.ir.verifier import verify_ttgir

ENCODING = "#ttg.shared_linear<{offset = [], block = []}, alignment = 8>, #ttg.shared_memory, mutable"
BAR, BARS = f"!ttg.memdesc<1xi64, {ENCODING}>", f"!ttg.memdesc<2x1xi64, {ENCODING}>"
BITS = [[1 << bit] for bit in range(6)]
SHARED = f"#ttg.shared_linear<{{offset = {BITS}, block = []}}, alignment = 16>, #ttg.shared_memory, mutable"
BUFFER, BUFFERS = f"!ttg.memdesc<64xi32, {SHARED}>", f"!ttg.memdesc<2x64xi32, {SHARED}>"
BOX = "!tt.tensordesc<64xi32>"


def index(result: str, of: str, at: str, number: str = "2x1xi64") -> str:
    types = (BUFFERS, BUFFER) if of == "%buffers" else (BARS, BAR)
    return f'{result} = "ttg.memdesc_index"({of}, {at}) : ({types[0]}, i32) -> {types[1]}'


def init(barriers: str, count: int) -> str:
    lines = []
    for number in (0, 1):
        name = f"{barriers}{number}"
        lines.append(index(name, barriers, f"%c{number}"))
        lines.append(f'"ttng.init_barrier"({name}) <{{count = {count} : i32}}> : ({BAR}) -> ()')
    return "\n".join(lines)


def loop(phase: str, body: str) -> str:
    return f"""
    %r:2 = "scf.for"(%c0, %n, %c1, %c0, {phase}) ({{
    ^bb1(%k: i32, %i: i32, %p: i32):
      %i1, %p1 = "ttg.ring_next"(%i, %p) <{{slots = 2 : i32}}> : (i32, i32) -> (i32, i32)
      {index("%f", "%full", "%i")}
      {index("%e", "%empty", "%i")}
      {index("%m", "%buffers", "%i")}
      {body}
      "scf.yield"(%i1, %p1) : (i32, i32) -> ()
    }}) : (i32, i32, i32, i32, i32) -> (i32, i32)"""


ALLOCATE = f"""
    %c0 = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %c1 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %c2 = "arith.constant"() <{{value = 2 : i32}}> : () -> i32
    %on = "arith.constant"() <{{value = true}}> : () -> i1
    %buffers = "ttg.local_alloc"() : () -> {BUFFERS}
    %full = "ttg.local_alloc"() : () -> {BARS}
    %empty = "ttg.local_alloc"() : () -> {BARS}"""
FENCE = '"ttng.fence_mbarrier_init_release_cluster"() : () -> ()'
WAIT_FULL = f'"ttng.wait_barrier"(%f, %p, %m) : ({BAR}, i32, {BUFFER}) -> ()'
WAIT_EMPTY = f'"ttng.wait_barrier"(%e, %p) : ({BAR}, i32) -> ()'
SEGMENTS = "operandSegmentSizes = array<i32: 1, 0, 1>"
RELEASE = f'"ttng.arrive_barrier"(%e, %m) <{{count = 4 : i32, {SEGMENTS}}}> : ({BAR}, {BUFFER}) -> ()'
EXPECT = f'"ttng.barrier_expect"(%f, %on) <{{size = 256 : i32}}> : ({BAR}, i1) -> ()'
COPY = f'"ttng.async_tma_copy_global_to_local"(%box, %k, %f, %m, %on) : ({BOX}, i32, {BAR}, {BUFFER}, i1) -> ()'
BY_THREADS = f'"ttng.async_copy_mbarrier_arrive"(%f) <{{noIncrement}}> : ({BAR}) -> ()'
CONSUMER, PRODUCER = loop("%c0", f"{WAIT_FULL}\n{RELEASE}"), loop("%c1", f"{WAIT_EMPTY}\n{EXPECT}\n{COPY}")
RING = f"""
  "builtin.module"() ({{
    "tt.func"() <{{sym_name = "k", function_type = (i32, {BOX}) -> (), sym_visibility = "public"}}> ({{
    ^bb0(%n: i32, %box: {BOX}):
      {ALLOCATE}
      {init("%full", 1)}
      {init("%empty", 4)}
      {FENCE}
      "ttg.warp_specialize"() <{{partitionNumWarps = array<i32: 1>}}> ({{
        {CONSUMER}
        "ttg.warp_yield"() : () -> ()
      }}, {{
        {PRODUCER}
        "ttg.warp_return"() : () -> ()
      }}) : () -> ()
      "tt.return"() : () -> ()
    }}) : () -> ()
  }}) {{"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32}} : () -> ()"""


def faults(text: str) -> list[str]:
    return [fault for _, fault in ring_faults(parse_module(text), lambda op: 128)]


def test_a_ring_that_keeps_the_rules():
    assert faults(RING) == []


def test_threads_that_copy_arrive_each():
    by_threads = RING.replace(f"{EXPECT}\n{COPY}", BY_THREADS)
    assert faults(by_threads.replace(init("%full", 1), init("%full", 128))) == []
    assert faults(by_threads) == ["128 arrivals at an mbarrier that counts 1"]


def test_the_verifier_names_the_op():
    module = parse_module(RING.replace(WAIT_EMPTY, ""))
    for op in module.walk():
        op.location = to_attribute(Location("k.py", 3, 1))
    with pytest.raises(InternalError, match="a slot is filled 1 times after 0 waits") as error:
        verify_ttgir(module, "a test")
    assert error.value.location.line == 3


BRANCH = '"scf.if"(%on) ({{\n{0}\n"scf.yield"() : () -> ()\n}}, {{}}) : (i1) -> ()'
INIT_THEN_FENCE, FENCE_THEN_INIT = f"{init('%empty', 4)}\n      {FENCE}", f"{FENCE}\n{init('%empty', 4)}"
SECOND = init("%full", 1).splitlines()[-1]
STEP = '"ttg.ring_next"(%i, %p) <{slots = 2 : i32}>'


INVAL = f'"ttng.inval_barrier"(%full0) : ({BAR}) -> ()'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (FENCE, "", "no ttng.fence_mbarrier_init_release_cluster is between it and the begin of its mbarrier"),
        (INIT_THEN_FENCE, FENCE_THEN_INIT, "no ttng.fence_mbarrier_init_release_cluster is between"),
        (SECOND, BRANCH.format(SECOND), "uses an mbarrier that is not initialised before it"),
        (SECOND, "", "slot 1 of these mbarriers is not initialised"),
        (init("%full", 1), "", "waits for an mbarrier that is not initialised"),
        (f"{EXPECT}\n{COPY}", "", "waits for an mbarrier that nothing arrives at"),
        (RELEASE, RELEASE.replace("count = 4", "count = 2"), "2 arrivals at an mbarrier that counts 4"),
        (EXPECT, f"{EXPECT}\n{EXPECT}", "2 arrivals at an mbarrier that counts 1"),
        (EXPECT, EXPECT.replace("256", "128"), "256 bytes are copied where 128 are expected"),
        (COPY, "", "0 bytes are copied where 256 are expected"),
        (RELEASE, "", "slots are read 1 times and released 0 times"),
        (RELEASE, f"{RELEASE}\n{RELEASE}", "slots are read 1 times and released 2 times"),
        (WAIT_EMPTY, "", "a slot is filled 1 times after 0 waits for it to be empty"),
        (f"{EXPECT}\n{COPY}", "", "a wait for a slot to be empty, which is not filled then"),
        (
            "(%full, %i)",
            "(%full, %k)",
            "an index is a constant or what ttg.ring_next gives, this one",
        ),
        ("(%full, %i)", "(%full, %c2)", "ttg.memdesc_index of 2 slots has the index 2"),
        (f"{WAIT_FULL}\n{RELEASE}", "", "arrives at an mbarrier that nothing waits for"),
        (init("%full", 1), "", "arrives at an mbarrier that is not initialised"),
        (FENCE, f"{FENCE}\n{INVAL}", "uses an mbarrier that has been made invalid"),
        (WAIT_FULL, f"{WAIT_FULL}\n{INVAL}", "is in a loop or branch that its mbarrier is not in"),
        (STEP, STEP.replace("slots = 2", "slots = 3"), "ttg.memdesc_index of 2 slots has an index that goes around 3"),
        (CONSUMER, CONSUMER.replace("%c1, %c0, %c0", "%c1, %c0, %c1"), "for slot 0 in phase 1, not for 0 in phase 0"),
        (CONSUMER, CONSUMER.replace("%c1, %c0, %c0", "%c1, %c1, %c0"), "for slot 1 in phase 0, not for 0 in phase 0"),
        (PRODUCER, PRODUCER.replace("%c1, %c0, %c1", "%c1, %c0, %c0"), "for slot 0 in phase 0, not for 0 in phase 1"),
        ("(%i1, %p1) : (i32, i32) -> ()", "(%i1, %p) : (i32, i32) -> ()", "the index and the phase do not come from"),
        (WAIT_FULL, WAIT_FULL.replace("%p", "%p1"), "the index and the phase do not come from the same ttg.ring_next"),
    ],
)
def test_faults(old: str, new: str, message: str):
    assert RING.count(old) >= 1
    assert any(message in fault for fault in faults(RING.replace(old, new))), faults(RING.replace(old, new))


USE = f'"ttng.init_barrier"(%bar) <{{count = 1 : i32}}> : ({BAR}) -> ()'
END = f'"ttg.local_dealloc"(%bar) : ({BAR}) -> ()'
ALLOC = f'%bar = "ttg.local_alloc"() : () -> {BAR}'


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ((ALLOC, BRANCH.format(USE), END), []),
        ((USE, ALLOC), ["ttng.init_barrier uses shared memory that is not allocated before it, where it sees it"]),
        ((ALLOC, END, BRANCH.format(USE)), ["ttng.init_barrier uses shared memory after the end of its life"]),
    ],
)
def test_the_life_of_a_buffer(ops: tuple[str, ...], expected: list[str]):
    text = "\n".join(ops)
    module = f"""
    "builtin.module"() ({{
      "tt.func"() <{{sym_name = "k", function_type = (i1) -> (), sym_visibility = "public"}}> ({{
      ^bb0(%on: i1):
        {text}
        "tt.return"() : () -> ()
      }}) : () -> ()
    }}) : () -> ()"""
    assert faults(module) == expected


LATE = f"""
      %late = "arith.cmpi"(%c0, %k) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
      "ttng.arrive_barrier"(%e, %late) <{{count = 4 : i32, {SEGMENTS.replace("0, 1", "1, 0")}}}> : ({BAR}, i1) -> ()"""
LAST = LATE.replace("%late", "%ran").replace("%k", "%n").replace("%e,", "%f2,")
AFTER = index("%f2", "%empty", "%r#0") + LAST
RELEASED_LATE = RING.replace(RELEASE, LATE).replace('"ttg.warp_yield"', f'{AFTER}\n"ttg.warp_yield"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RELEASED_LATE, []),
        (RELEASED_LATE.replace(LAST, ""), ["1 slots are left to be released later, 0 releases are under a predicate"]),
        (
            RELEASED_LATE.replace(LAST, LAST + LAST.replace("%ran", "%again")),
            ["8 arrivals at an mbarrier that counts 4"],
        ),
        (RELEASED_LATE.replace(LATE, f"{LATE}\n{RELEASE}"), ["8 arrivals at an mbarrier that counts 4"]),
    ],
)
def test_a_slot_may_be_released_an_iteration_late_and_the_last_after_the_loop(text: str, expected: list[str]):
    assert faults(text)[:1] == expected
