"""At home is a tile where it is computed: forwards from loads, dots and reductions."""

import pytest
from ir_text import parse_kernel, value_named

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.cuda.target import architecture
from deuteron.ir.tt.function import FuncOp
from deuteron.layout.distributed import default_blocked, mma_v2_accumulator, mma_v2_operand, slice_axis
from deuteron.layout.linear import REGISTER, LinearLayout
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.homes import Homes

CONFIG = GPUConfig(architecture(80).machine, num_warps=4)
TILE, POINTERS, HALVES = "tensor<64x64xf32>", "tensor<64x64x!tt.ptr<f32>>", "tensor<64x64xf16>"
SETUP = f"""
    %i = "tt.make_range"() <{{start = 0 : i32, end = 64 : i32}}> : () -> tensor<64xi32>
    %row = "tt.expand_dims"(%i) <{{axis = 0 : i32}}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %rows = "tt.broadcast"(%row) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %base = "tt.splat"(%p) : (!tt.ptr<f32>) -> {POINTERS}
    %along_rows = "tt.addptr"(%base, %rows) : ({POINTERS}, tensor<64x64xi32>) -> {POINTERS}
    %far = "arith.constant"() <{{value = dense<64> : tensor<64x64xi32>}}> : () -> tensor<64x64xi32>
    %below = "tt.trans"(%rows) <{{order = array<i32: 1, 0>}}> : (tensor<64x64xi32>) -> tensor<64x64xi32>
    %offsets = "arith.muli"(%below, %far) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %matrix = "tt.addptr"(%along_rows, %offsets) : ({POINTERS}, tensor<64x64xi32>) -> {POINTERS}
    %transposed = "tt.trans"(%matrix) <{{order = array<i32: 1, 0>}}> : ({POINTERS}) -> {POINTERS}
    %columns = "tt.trans"(%along_rows) <{{order = array<i32: 1, 0>}}> : ({POINTERS}) -> {POINTERS}
    %zeros = "arith.constant"() <{{value = dense<0.0> : {TILE}}}> : () -> {TILE}
    %scalar = "arith.constant"() <{{value = 1.0 : f32}}> : () -> f32
    %splat = "tt.splat"(%scalar) : (f32) -> {TILE}
    %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    """


def load(name: str, pointers: str) -> str:
    return f"""
    %{name} = "tt.load"({pointers}) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
        cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : ({POINTERS}) -> {TILE}"""


def store(pointers: str, value: str) -> str:
    return f"""
    "tt.store"({pointers}, {value}) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
        : ({POINTERS}, {TILE}) -> ()"""


def add(name: str, a: str, b: str) -> str:
    return f'\n    %{name} = "arith.addf"({a}, {b}) : ({TILE}, {TILE}) -> {TILE}'


def loop(starts: str, arguments: str, results: int, body: str) -> str:
    types = ", ".join([TILE] * results)
    given = types if results == 1 else f"({types})"
    return f"""
    %r:{results} = "scf.for"(%one, %n, %one, {starts}) ({{
    ^bb1(%k: i32, {arguments}):
      {body}
    }}) : (i32, i32, i32, {types}) -> {given}"""


def homes_of(body: str) -> dict[str, LinearLayout | None]:
    module = parse_kernel("%p: !tt.ptr<f32>, %n: i32, %c: i1", SETUP + body)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    homes = Homes(func, AxisInfoAnalysis(func), CONFIG, {})

    class Named(dict):
        def __missing__(self, name: str) -> LinearLayout | None:
            return homes.get(value_named(module, name))

    return Named()


def test_a_load_is_at_home_where_it_is_coalesced():
    homes = homes_of(load("x", "%along_rows") + load("y", "%columns"))
    assert homes["x"].of("lane")[0] == (0, 1) and homes["y"].of("lane")[0] == (1, 0)


def gather(name: str, numbers: str) -> str:
    """A load at numbers that were loaded."""
    return f"""
    %{name}_numbers = "arith.fptosi"({numbers}) : ({TILE}) -> tensor<64x64xi32>
    %{name}_pointers = "tt.addptr"(%base, %{name}_numbers) : ({POINTERS}, tensor<64x64xi32>) -> {POINTERS}
    """ + load(name, f"%{name}_pointers")


def test_a_load_of_which_no_elements_are_neighbours_is_at_home_where_its_addresses_are():
    """However wide the accesses are that load the numbers: no addresses are exchanged."""
    homes = homes_of(load("x", "%matrix") + load("y", "%transposed") + gather("a", "%x") + gather("b", "%y"))
    assert homes["x"] != homes["y"]
    assert homes["a"] == homes["x"] and homes["b"] == homes["y"]


def test_numbers_at_few_addresses_are_loaded_wherever_they_are_needed():
    """Of one row, repeated: 64 addresses."""
    homes = homes_of(load("x", "%along_rows") + gather("a", "%x"))
    assert homes["x"] is None and homes["a"] is not None


def test_columns_that_are_reduced_are_shared_out_to_warps_before_rows():
    assert homes_of(load("x", "%matrix"))["x"].of("warp") == ((1, 0), (2, 0))
    assert homes_of(load("x", "%matrix") + reduced("x", axis=0))["x"].of("warp") == ((0, 32), (1, 0))
    assert homes_of(load("x", "%matrix") + reduced("x", axis=1))["x"].of("warp") == ((1, 0), (2, 0))


def test_columns_whose_rows_are_loaded_in_loops_are_shared_out_to_warps_before_rows():
    rows, columns = repeated("each_row", axis=0), repeated("each_column", axis=1)
    in_loop = [load("x", "%matrix") + body + add("y", "%x", "%acc") for body in (rows, columns, rows + columns)]
    homes = [
        homes_of(loop("%zeros", f"%acc: {TILE}", 1, f'{body}\n"scf.yield"(%y) : ({TILE}) -> ()')) for body in in_loop
    ]
    assert [one["x"].of("warp") for one in homes] == [((0, 32), (1, 0)), ((1, 0), (2, 0)), ((1, 0), (2, 0))]
    assert homes_of(load("x", "%matrix") + rows)["x"].of("warp") == ((1, 0), (2, 0))


def repeated(name: str, axis: int) -> str:
    """A vector that is loaded, for all rows (axis 0) or columns."""
    pointers, shape = "tensor<64x!tt.ptr<f32>>", "1x64" if axis == 0 else "64x1"
    vector = load(f"{name}_loaded", f"%{name}_base").replace(POINTERS, pointers).replace(TILE, "tensor<64xf32>")
    return f"""
    %{name}_base = "tt.splat"(%p) : (!tt.ptr<f32>) -> {pointers} {vector}
    %{name}_line = "tt.expand_dims"(%{name}_loaded) <{{axis = {axis} : i32}}> : (tensor<64xf32>) -> tensor<{shape}xf32>
    %{name} = "tt.broadcast"(%{name}_line) : (tensor<{shape}xf32>) -> {TILE}"""


def reduced(name: str, axis: int) -> str:
    return f"""
    %sum = "tt.reduce"(%{name}) <{{axis = {axis} : i32}}> ({{
    ^bb2(%a: f32, %b: f32):
      %ab = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.reduce.return"(%ab) : (f32) -> ()
    }}) : ({TILE}) -> tensor<64xf32>"""


def test_a_thread_has_whole_rows_of_what_is_computed_and_reduced():
    homes = homes_of(reduced("zeros", axis=1))
    assert homes["sum"] == slice_axis(default_blocked([64, 64], 4), 1)
    narrow = "tensor<256x16xf32>"
    homes = homes_of(
        f'%few = "arith.constant"() <{{value = dense<0.0> : {narrow}}}> : () -> {narrow}'
        + reduced("few", axis=1).replace(TILE, narrow).replace("tensor<64xf32>", "tensor<256xf32>")
    )
    assert not any(homes["sum"].free_bits().values())


def test_a_load_is_not_repeated_in_all_threads_that_hold_its_address():
    """Of 64 sums of rows each thread has 16: a quarter of a number is its share."""
    numbers = f"""
    %sum = "tt.reduce"(%x) <{{axis = 1 : i32}}> ({{
    ^bb2(%a: f32, %b: f32):
      %ab = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.reduce.return"(%ab) : (f32) -> ()
    }}) : ({TILE}) -> tensor<64xf32>
    %at = "arith.fptosi"(%sum) : (tensor<64xf32>) -> tensor<64xi32>
    %start = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %there = "tt.addptr"(%start, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %found = "tt.load"(%there) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
        cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : (tensor<64x!tt.ptr<f32>>) -> tensor<64xf32>"""
    homes = homes_of(load("x", "%along_rows") + numbers)
    assert homes["there"].in_size(REGISTER) > homes["found"].in_size(REGISTER) == 1


def test_what_comes_from_scalars_has_no_home():
    homes = homes_of(add("sum", "%splat", "%zeros"))
    assert [homes[name] for name in ("splat", "zeros", "sum", "i", "row", "rows")] == [None] * 6


def test_an_elementwise_op_is_where_its_first_operand_with_a_home_is():
    body = load("x", "%along_rows") + load("y", "%columns")
    homes = homes_of(body + add("a", "%splat", "%y") + add("b", "%x", "%y") + add("d", "%a", "%b"))
    assert homes["a"] == homes["y"] and homes["b"] == homes["x"] and homes["d"] == homes["y"]


def test_reductions_and_transpositions_follow_their_operand():
    body = (
        load("x", "%along_rows")
        + f"""
    %sum = "tt.reduce"(%x) <{{axis = 1 : i32}}> ({{
    ^bb2(%a: f32, %b: f32):
      %ab = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.reduce.return"(%ab) : (f32) -> ()
    }}) : ({TILE}) -> tensor<64xf32>
    %t = "tt.trans"(%x) <{{order = array<i32: 1, 0>}}> : ({TILE}) -> {TILE}
    use %sum : tensor<64xf32>"""
    )
    homes = homes_of(body)
    assert homes["sum"] == slice_axis(homes["x"], 1)
    assert homes["t"].of("lane") == tuple((b, a) for a, b in homes["x"].of("lane"))


def test_a_dot_is_at_home_where_it_is_accumulated():
    module = parse_kernel(
        "%p: !tt.ptr<f32>, %n: i32, %c: i1",
        SETUP
        + load("x", "%along_rows")
        + f"""
        %h = "arith.truncf"(%x) : ({TILE}) -> {HALVES}
        %d = "tt.dot"(%h, %h, %zeros) <{{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}}>
            : ({HALVES}, {HALVES}, {TILE}) -> {TILE}""",
    )
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    homes, dot = Homes(func, AxisInfoAnalysis(func), CONFIG, {}), value_named(module, "d")
    warps = [2, 2]
    assert homes.get(dot) == mma_v2_accumulator([64, 64], warps)
    a, b = (mma_v2_operand([64, 64], warps, index, 16) for index in range(2))
    assert homes.operands_of(dot.owner) == [a, b, homes.get(dot)]


ENTERS = f'"scf.yield"(%next) : ({TILE}) -> ()'


@pytest.mark.parametrize(
    ("start", "body", "expected"),
    [
        # Yielded in a layout of its own: there, wherever it enters.
        ("%y", load("next", "%along_rows"), "x"),
        # Made of itself: where it enters.
        ("%y", add("next", "%acc", "%acc"), "y"),
        # From scalars: where the first access wants it.
        ("%zeros", add("next", "%acc", "%splat") + store("%columns", "%acc"), "y"),
        # From scalars: where that is with which the first op has to do.
        ("%zeros", add("next", "%acc", "%splat") + add("part", "%y", "%next"), "y"),
    ],
)
def test_what_a_loop_carries(start, body, expected):
    both = load("x", "%along_rows") + load("y", "%columns")
    homes = homes_of(both + loop(start, f"%acc: {TILE}", 1, f"{body}\n{ENTERS}"))
    assert homes["acc"] == homes[expected]


def test_what_a_loop_carries_and_nobody_wants_has_the_default():
    homes = homes_of(loop("%zeros", f"%acc: {TILE}", 1, add("next", "%acc", "%splat") + "\n" + ENTERS))
    assert homes["acc"] == default_blocked([64, 64], 4)


def test_tiles_that_change_places_share_a_home():
    """Each is yielded for the other: one of them is converted where it enters, none in the loop."""
    both = load("x", "%along_rows") + load("y", "%columns")
    arguments, turned = f"%a: {TILE}, %b: {TILE}", f'"scf.yield"(%b, %a) : ({TILE}, {TILE}) -> ()'
    homes = homes_of(both + loop("%x, %y", arguments, 2, turned))
    assert homes["a"] == homes["b"] == homes["x"]


def test_branches():
    body = (
        load("x", "%along_rows")
        + load("y", "%columns")
        + f"""
    %r = "scf.if"(%c) ({{
      "scf.yield"(%zeros) : ({TILE}) -> ()
    }}, {{
      "scf.yield"(%y) : ({TILE}) -> ()
    }}) : (i1) -> {TILE}
    %s = "scf.if"(%c) ({{
      "scf.yield"(%x) : ({TILE}) -> ()
    }}, {{
      "scf.yield"(%y) : ({TILE}) -> ()
    }}) : (i1) -> {TILE}"""
    )
    homes = homes_of(body)
    assert homes["r"] == homes["y"] and homes["s"] == homes["x"]


def test_a_while_loop():
    body = (
        load("y", "%columns")
        + f"""
    %r = "scf.while"(%y) ({{
    ^bb1(%a: {TILE}):
      "scf.condition"(%c, %a) : (i1, {TILE}) -> ()
    }}, {{
    ^bb2(%b: {TILE}):
      %next = "arith.addf"(%b, %b) : ({TILE}, {TILE}) -> {TILE}
      "scf.yield"(%next) : ({TILE}) -> ()
    }}) : ({TILE}) -> {TILE}"""
    )
    homes = homes_of(body)
    assert homes["a"] == homes["y"], "where it enters, since what is made of it comes from there"
    assert homes["b"] is not None and homes["r"] == homes["b"]


def nested(depth: int, body: str) -> str:
    """Loops in loops, each of which carries a tile that the one in it begins with."""
    for level in reversed(range(depth)):
        start = f"%a{level - 1}" if level else "%zeros"
        inner = body if level == depth - 1 else f'{body}\n"scf.yield"(%r{level + 1}) : ({TILE}) -> ()'
        body = f"""
    %r{level} = "scf.for"(%one, %n, %one, {start}) ({{
    ^bb{level}(%k{level}: i32, %a{level}: {TILE}):
      {inner}
    }}) : (i32, i32, i32, {TILE}) -> {TILE}"""
    return body


def turned(value: str) -> str:
    return f'%next = "tt.trans"({value}) <{{order = array<i32: 1, 0>}}> : ({TILE}) -> {TILE}'


@pytest.mark.parametrize("made", [add("next", "{carried}", "%x"), add("next", "%x", "{carried}"), turned("{carried}")])
def test_loops_in_loops_are_swept_as_often_as_there_are_loops(made, monkeypatch):
    """Each sweeps its body twice; of the transposed tile no sweep leaves what the one before it did."""
    swept, sweep = [], Homes._sweep
    monkeypatch.setattr(Homes, "_sweep", lambda self, block: (swept.append(block), sweep(self, block)))

    def sweeps(depth: int) -> int:
        swept.clear()
        body = made.replace("{carried}", f"%a{depth - 1}")
        homes_of(load("x", "%along_rows") + nested(depth, f"{body}\n{ENTERS}"))
        return len(swept)

    assert sweeps(12) - sweeps(8) == sweeps(8) - sweeps(4) <= 4 * 8


def taken(name: str, numbers: str) -> str:
    """Elements of %x at numbers."""
    return f"""
    %{name} = "tt.gather"(%x, {numbers}) <{{axis = 1 : i32}}> : ({TILE}, tensor<64x64xi32>) -> {TILE}"""


def test_a_gather_at_numbers_without_a_home_is_where_it_takes_from():
    numbers = '%ones = "arith.constant"() <{value = dense<1> : tensor<64x64xi32>}> : () -> tensor<64x64xi32>'
    loaded = '%numbers = "arith.fptosi"(%y) : (' + TILE + ") -> tensor<64x64xi32>"
    loads = load("x", "%transposed") + load("y", "%matrix")
    homes = homes_of(loads + numbers + loaded + taken("a", "%ones") + taken("b", "%numbers"))
    assert homes["a"] == homes["x"] and homes["b"] == homes["y"] != homes["x"]
