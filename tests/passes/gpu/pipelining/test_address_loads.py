"""What loads of a loop depend on: how far ahead it is loaded, and what keeps it from that."""

from __future__ import annotations

from ir_text import parse_kernel
from xdsl.dialects import scf

from deuteron.ir.tt.memory import LoadOp
from deuteron.passes.gpu.pipelining.address_loads import AddressLoads


def load(name: str, offset: str) -> str:
    return f"""
      %p{name} = "tt.addptr"(%t, {offset}) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %{name} = "tt.load"(%p{name}) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
        cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : (!tt.ptr<i32>) -> i32"""


def loads_of(body: str, gives: str = "%c") -> tuple[scf.ForOp, dict[str, LoadOp]]:
    """A loop that carries %c."""
    module = parse_kernel(
        "%t: !tt.ptr<i32>, %n: i32, %s: i32",
        f"""
        %r = "scf.for"(%n, %n, %s, %n) ({{
        ^bb1(%k: i32, %c: i32):
          {body}
          "scf.yield"({gives}) : (i32) -> ()
        }}) : (i32, i32, i32, i32) -> i32""",
    )
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    return loop, {op.result.name_hint: op for op in loop.walk() if isinstance(op, LoadOp)}


def test_a_load_that_two_need_is_there_for_the_first():
    loop, loads = loads_of(load("a", "%k") + load("b", "%a") + load("x", "%a") + load("y", "%b"))
    addresses = AddressLoads(loop, lambda load, distance: None)
    a, b, x, y = (loads[name] for name in "abxy")
    assert addresses.obstacle(y, 2) is None
    assert addresses.with_sources({x: 2, y: 2}) == {x: 2, y: 2, b: 3, a: 4}
    assert addresses.sources(y) == {a, b}


def test_what_was_loaded_for_the_next_iteration_stays():
    loop, loads = loads_of(load("a", "%c") + load("x", "%a"), gives="%a")
    addresses = AddressLoads(loop, lambda load, distance: None)
    assert "its next address" in addresses.obstacle(loads["a"], 1)
    assert "its next address" in addresses.obstacle(loads["x"], 1)


def test_a_load_that_depends_on_what_an_earlier_iteration_loaded_may_run_ahead():
    loop, loads = loads_of(load("a", "%k") + load("x", "%c"), gives="%a")
    addresses = AddressLoads(loop, lambda load, distance: None)
    assert addresses.obstacle(loads["x"], 1) is None
    assert addresses.with_sources({loads["x"]: 1}) == {loads["x"]: 1, loads["a"]: 2}


def test_a_source_that_stays_by_its_distance():
    loop, loads = loads_of(load("a", "%k") + load("b", "%a") + load("x", "%b"))
    addresses = AddressLoads(loop, lambda load, distance: "too far" if distance > 3 else None)
    assert addresses.obstacle(loads["x"], 1) is None
    assert "too far" in addresses.obstacle(loads["x"], 2)
    assert addresses.obstacle(loads["b"], 2) is None


def test_two_of_two_and_so_on():
    """Each pair needs both of the pair before: 2**30 ways from the last to the first."""
    sums = [
        f'%s{n} = "arith.addi"(%a{n}, %b{n}) : (i32, i32) -> i32'
        + load(f"a{n + 1}", f"%s{n}")
        + load(f"b{n + 1}", f"%s{n}")
        for n in range(30)
    ]
    loop, loads = loads_of(load("a0", "%k") + load("b0", "%k") + "\n".join(sums))
    addresses = AddressLoads(loop, lambda load, distance: None)
    assert addresses.obstacle(loads["a30"], 1) is None
    assert addresses.with_sources({loads["a30"]: 1})[loads["b0"]] == 31
