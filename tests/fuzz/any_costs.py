"""Has the compiler decide by lot where it weighs costs: what is right must not depend on what is fast.

    with any_costs(seed=7): ...               short functions are sliced and rolled, warps specialised where possible
    with any_costs(seed=7, CPU_COSTS): ...    all launches store past the caches, long functions are short ones

Every threshold below is left as it is, or becomes one of the others. None of them is there for correctness. Of the
passes that may be left out some are.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest import mock

from deuteron.backend.cpu.memory.streaming import launch_streams
from deuteron.ir.types import i1
from deuteron.passes.by_name import known_passes
from deuteron.passes.gpu.specialization import choose_functions
from deuteron.passes.gpu.specialization.bundle_loads import plan_rings
from deuteron.passes.gpu.specialization.plan_slots import plan_specialization
from deuteron.passes.optimisation import Optimisation

Costs = tuple[tuple[str, str, tuple[Any, ...]], ...]
MUCH = 1 << 30
SHARE_LEFT = 0.35
SHARE_WITHOUT = 0.06


def _is_possible(self: choose_functions.ChooseSpecialized, func: Any) -> bool:
    if not choose_functions._is_in_order(func):
        return False
    plans = plan_rings(func, self.config.machine)
    return plan_specialization(func, plans, self.config) is not None


def _always(*args: Any) -> bool:
    return True


def _never(*args: Any) -> bool:
    return False


def _streams_always(b: Any, streams: Any, cache_bytes: int, *given: Any) -> Any:
    return launch_streams(b, streams, 0, *given)


BY_WAY = ((MUCH, 64 * MUCH), (-MUCH, 64 * MUCH), (MUCH, -64 * MUCH))  # by threads, by lanes, shared out
# Of a module, or a class in it: what is said there, and what it may be instead; names that belong together, together.
COSTS: Costs = (
    ("analysis.addresses.load_accesses", "MOST_NEIGHBOURS", (2, 4, 32)),
    ("analysis.along_axis", "WARP_BITS_TOGETHER", (1, 2)),
    ("analysis.shared_memory.shared_conversion", "MAX_BYTES", (256, 2048)),
    ("analysis.shared_memory.warp_parts", "SHUFFLE_LATENCY, EXCHANGE_LATENCY", BY_WAY),
    ("backend.gpu.advanced_pointers", "FEW, MOST_FILLED, ROOM", ((1, 0, 0), (1, 1 / 4, 1 / 2), (MUCH, 1, 1))),
    ("backend.gpu.rules.combine", "MIN_CHAIN", (1, 64)),
    ("backend.gpu.rules.dot", "MULTIPLY_ADDS, OF_ALL_DOTS, LEAST", ((1, 1, 1), (64, 64, 1))),
    ("backend.gpu.rules.scan_warps", "SHUFFLE_LATENCY", (-MUCH, MUCH)),
    ("passes.gpu.dot_instructions", "FEW_COLUMNS", (0, 256)),
    ("passes.gpu.dot_instructions", "MAX_SHARE", (0, 1 / 16)),
    ("passes.gpu.layouts.computed_operands", "MOST_NEIGHBOURS", (2, 4)),
    ("passes.gpu.batch_loads", "LEAST_KEPT", (0, MUCH)),
    ("passes.gpu.layouts.loads_in_place", "ACCESSES", (0, MUCH)),
    ("passes.gpu.layouts.loads_in_place", "_reads_neighbours", (_always,)),
    ("passes.gpu.layouts.repeated_loads", "MOST_FOLLOWING", (0, MUCH)),
    ("passes.gpu.layouts.reduce_late", "MOST_PARTS", (0, MUCH)),
    ("passes.gpu.layouts.merge_reductions", "MOST_TRIED", (0, 1)),
    ("passes.gpu.layouts.scanned_loads", "MOST_BYTES", (16, 256)),
    ("passes.gpu.layouts.stores_in_place", "ACCESSES", (0, MUCH)),
    ("passes.gpu.layouts.stores_in_place", "_writes_neighbours", (_always,)),
    ("passes.gpu.memory.allocate_shared", "OWN_BYTES", (0, 0, 64)),
    ("passes.gpu.memory.shorten_lives", "live_registers", (lambda func: MUCH,)),
    ("passes.gpu.operands.place_dot_operands", "REGISTER_SHARE", (1 / 64, 2)),
    ("passes.gpu.operands.place_dot_operands", "MIN_OPERAND_SHARE", (1 / 64,)),
    ("passes.gpu.operands.register_operands", "TILES_SHARE", (0, 8)),
    ("passes.gpu.operands.register_operands", "MOST_STEPS", (1, 2)),
    ("passes.gpu.operands.transpose_dots", "_cycles", (lambda dot, computed: MUCH,)),
    ("passes.gpu.pipelining.chained_dots", "TILES_SHARE", (8,)),
    ("passes.gpu.pipelining.chained_dots", "MIN_ITERATIONS", (0,)),
    ("passes.gpu.pipelining.choose_loads", "FEW, ROOM", ((0, 0), (0, 1 / 4), (MUCH, MUCH))),
    ("passes.gpu.pipelining.choose_loads", "MAX_BYTES_OF_ADDRESSES", (0, 8, MUCH)),
    ("passes.gpu.pipelining.choose_loads", "MAX_REGISTERS_BESIDE_DOTS", (0, MUCH)),
    ("passes.gpu.pipelining.loads_into_registers", "ROOM", (0, 1 / 16, 64)),
    ("passes.gpu.layouts.scatter_reductions", "MOST", (0.0, 1.0, 4.0)),
    ("passes.gpu.layouts.gather_neighbours", "MOST", (0.0, 1.0, 16.0)),
    ("passes.gpu.slices.costs", "REGISTER_BITS", (0, 64, 1024)),
    ("passes.gpu.slices.groups", "MANY", (2, 8)),
    ("passes.gpu.slices.groups", "IN_SLICE", (1, 2, 4)),
    ("passes.gpu.slices.groups", "HEAVY", (4, 64)),
    ("passes.gpu.slices.groups", "OF_SLICE", (8, 64)),
    ("passes.gpu.slices.groups", "LEAST_IN_SLICE", (1,)),
    ("passes.gpu.slices.groups", "MOST_IN_SLICE", (1, 8, MUCH)),
    ("passes.gpu.slices.loop_dots", "MANY, IN_ITERATION", ((64, 32), (64, 1), (512, 64))),
    ("passes.gpu.slices.loop_dots", "MANY_MATRICES, MATRICES", ((2, 1), (4, 2), (16, 8))),
    ("passes.gpu.slices.slice_tiles", "LEAST_IN_GROUP, LEAST_WITH_DOT", ((-MUCH, -MUCH), (0, 0))),
    ("passes.gpu.slices.slice_tiles", "CROWDED_COST, LEAST_IN_CROWD, SHARE_IN_CROWD", ((0, -MUCH, 0), (0, 0, 1 / 64))),
    ("passes.gpu.slices.slice_tiles", "cost_of_all", (lambda func: MUCH,)),
    ("passes.gpu.specialization.choose_functions:ChooseSpecialized", "_is_chosen", (_is_possible,)),
    ("passes.gpu.warp_groups.order_warp_groups", "MIN_RATIO", (0,)),
    ("passes.gpu.warp_groups.overlap_wgmma", "CROWDED", (0, 1 / 8, MUCH)),
    ("passes.tile.roll_loops", "LEAST_ITERATIONS", (2, 3)),
    ("passes.tile.roll_loops", "FEWEST_ITERATIONS", (2,)),
    ("passes.tile.roll_loops", "LEAST_SHARE", (0,)),
    ("passes.tile.roll_loops", "_cost", (lambda op: MUCH,)),
    ("passes.tile.split_loops", "MAX_OPS", (0, MUCH)),
    (
        "passes.tile.split_programs",
        "MOST_INSTRUCTIONS, MOST_FOR_EACH, MOST_MASKS",
        ((MUCH, MUCH, -1), (MUCH, MUCH, 7), (0, 0, 7)),
    ),
    ("passes.tile.unroll_accumulations", "FACTOR", (1, 2, 3)),
    ("passes.tile.unroll_short_loops", "MOST_INSTRUCTIONS, MOST_REGISTERS", ((0, 0), (MUCH, MUCH))),
    ("passes.gpu.scale_extrema", "LEAST", (1, MUCH)),
    ("passes.gpu.version_loops", "FEW, MOST_INSTRUCTIONS", ((1, 0), (1, MUCH), (9, MUCH))),
    ("passes.gpu.group_iterations", "MOST_INSTRUCTIONS, MOST_REGISTERS", ((0, 0), (MUCH, MUCH))),
    ("passes.tile.unswitch_loops", "MAX_OPS", (0, MUCH)),
)

CPU_COSTS: Costs = (
    ("backend.cpu.memory.lane_loops", "MAX_CHUNK", (4, 64)),
    ("backend.cpu.loop_nests", "MAX_UNROLL", (1, 2, 8)),
    ("backend.cpu.loops", "MAX_UNROLL", (1, 2, 8)),
    ("backend.cpu.loops", "MIN_PARTED, MIN_PARTED_COMPUTED", ((1, 1), (2, 4), (16, 16))),
    ("backend.cpu.lowering", "launch_streams", (_streams_always,)),
    ("backend.cpu.parts", "MIN_PARTED", (1, 16)),
    ("backend.cpu.plan.fuse", "MOST_STORES", (1, 2)),
    ("backend.cpu.plan.vectors.axes", "MAX_LANES", (128, 256)),
    ("backend.cpu.plan.vectors.axes", "MAX_STRIDED_LANES", (4, 8, 32)),
    ("backend.cpu.plan.vectors.axes", "MAX_TURNED_LANES, MIN_TURNED_LANES", ((4, 4), (8, 2), (16, 2))),
    ("backend.cpu.plan.vectors.axes", "MAX_TURNED_OPS", (0, MUCH)),
    ("backend.cpu.plan.vectors.axes", "MAX_UNROLLED_OPS", (1, 16, 512)),
    ("backend.cpu.plan.vectors.axes", "MIN_PACKED_COLUMNS", (1, 16)),
    ("backend.cpu.plan.tiles.costs", "WORTH_KEEPING", (0.5, 2.0, 64.0)),
    ("backend.cpu.plan.tiles.costs", "_LOADED_AGAIN", (0.0, 64.0)),
    ("backend.cpu.plan.products.direct", "_MOST_COLUMNS_OF_TILES, _MOST_COLUMNS", ((0, 0), (16, 16))),
    ("backend.cpu.plan.vectors.neighbours", "_LEAST_ROWS", (1, 64)),
    ("backend.cpu.plan.ops.algorithms", "MAX_UNROLLED", (1, 4, 16)),
    ("backend.cpu.plan.tiles.orders", "_LOOP_WEIGHT", (1, 1024)),
    ("backend.cpu.plan.products.reuse", "ROOM_OF_B", (0, 1 / 256, 1 / 64)),
    ("backend.cpu.products.blocking", "_MANY_ROWS", (8, 32, 1024)),
    ("passes.tile.split_accesses", "MOST_STRIPS", (1, 2, 8)),
    ("backend.cpu.plan.products.reuse", "MOST_ENTRIES", (1, 2, 16)),
    (
        "backend.cpu.plan.products.steps_together",
        "TILE_DEPTH, VECTOR_DEPTH, MOST_DEPTH",
        ((64, 64, 64), (1024, 1024, 4096)),
    ),
    ("backend.cpu.plan.programs.streams", "MIN_ROW_BYTES", (16, 64)),
    ("backend.cpu.plan.programs.streams", "MOST_STORES", (1, MUCH)),
    ("passes.tile.group_programs", "_gain", (lambda op, lift, known: 1, lambda op, lift, known: lift.axis)),
    ("passes.tile.group_programs", "ROW_BYTES", (16, 512)),
    ("passes.tile.grouping.lift_programs:Lift", "are_few", (lambda lift, b: b.constant(False, i1),)),
    ("backend.llvm.pieces", "MOST", (0, 8)),
    ("backend.llvm.pieces", "ENOUGH", (1, 12)),
    ("backend.llvm.pieces", "LEAST", (1, 4)),
)


def _optimisations() -> list[str]:
    return [name for name, one in known_passes().items() if issubclass(one, Optimisation)]


def owner_of(place: str) -> Any:
    """The module, or the class in it."""
    module, _, name = place.partition(":")
    owner = import_module(f"deuteron.{module}")
    return getattr(owner, name) if name else owner


@contextmanager
def any_costs(seed: int, costs: Costs = COSTS) -> Iterator[dict[str, Any]]:
    """Gives what was chosen, by name."""
    rng, chosen = random.Random(seed), {}
    with ExitStack() as stack:
        for place, names, others in costs:
            value: int | float | Callable | tuple = rng.choice(others)
            if rng.random() >= SHARE_LEFT:
                chosen[f"{place}.{names}"] = value
                values = value if isinstance(value, tuple) else (value,)
                for name, one in zip(names.split(", "), values, strict=True):
                    stack.enter_context(mock.patch.object(owner_of(place), name, one))
        chosen["without"] = ",".join(name for name in _optimisations() if rng.random() < SHARE_WITHOUT)
        stack.enter_context(mock.patch.dict(os.environ, {"DEUTERON_DISABLE_PASSES": chosen["without"]}))
        yield chosen
