"""The tile passes: what every target needs, in order."""

from __future__ import annotations

from xdsl.passes import ModulePass

from deuteron.machine.tile import TILES_OF_GPU, TileConfig
from deuteron.passes.tile.add_constants_last import AddConstantsLast
from deuteron.passes.tile.carry_parts import CarryParts
from deuteron.passes.tile.combine import Combine
from deuteron.passes.tile.decompose_scaled_dots import DecomposeScaledDots
from deuteron.passes.tile.drop_unit_dims import DropUnitDims
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.exchange_pairs import ExchangePairs
from deuteron.passes.tile.fold import Fold
from deuteron.passes.tile.group_programs import GroupPrograms
from deuteron.passes.tile.hoist_invariants import HoistInvariants
from deuteron.passes.tile.inline_calls import InlineCalls
from deuteron.passes.tile.leave_out_assertions import LeaveOutAssertions
from deuteron.passes.tile.merge_branches import MergeBranches
from deuteron.passes.tile.merge_common_subexpressions import MergeCommonSubexpressions
from deuteron.passes.tile.order_reductions import OrderReductions
from deuteron.passes.tile.rewrite_block_pointers import RewriteBlockPointers
from deuteron.passes.tile.rewrite_descriptors_to_pointers import RewriteDescriptorsToPointers
from deuteron.passes.tile.roll_loops import RollLoops
from deuteron.passes.tile.split_accesses import SplitAccesses
from deuteron.passes.tile.split_loops import SplitLoops
from deuteron.passes.tile.split_programs import SplitPrograms
from deuteron.passes.tile.translate_assembly import TranslateAssembly
from deuteron.passes.tile.unroll_accumulations import UnrollAccumulations
from deuteron.passes.tile.unroll_loops import UnrollLoops
from deuteron.passes.tile.unroll_short_loops import UnrollShortLoops
from deuteron.passes.tile.unswitch_loops import UnswitchLoops


def tile_passes(config: TileConfig = TILES_OF_GPU, debug: bool = True) -> list[ModulePass]:
    """The passes that turn the frontend's tile IR, or one that came as text, into what backends take.

    `debug`: whether assertions count.
    """
    return [
        # First: no pass has to mind what nobody checks.
        *([] if debug else [LeaveOutAssertions()]),
        # Before the rest: what it rolls no other pass sees unrolled, and calls are shorter than what they call.
        RollLoops(),
        # Early: everything below looks at one function.
        InlineCalls(),
        # Early: of a sorting network it leaves a third of the ops, and no reductions.
        ExchangePairs(),
        # After inlining: a function that is called may be part of one that combines. Before folding, for ranges.
        OrderReductions(),
        # After inlining: calls pass no descriptors or block pointers. Before what makes pointers of them.
        CarryParts(),
        # After parts are carried: which descriptor a block is of is known. Before what makes pointers of them.
        DropUnitDims(),
        # Before everything that makes addresses and masks cheap.
        RewriteBlockPointers(),
        # Before everything that makes addresses and masks cheap.
        RewriteDescriptorsToPointers(config.tma_bytes),
        # Before folding: no other pass knows scaled dots.
        DecomposeScaledDots(),
        # Before dead code: folded operands and branches not taken become unused.
        Fold(),
        # After folding: bounds are known. Before the rest, which sees what the copies have in common.
        UnrollShortLoops(config.num_threads) if config.loads_ahead else UnrollAccumulations(),
        # As above. After it: what asks to be unrolled is left to it.
        UnrollLoops(),
        # After unrolling: of known bounds it makes one loop.
        Fold(),
        # Before combining: a dead use would keep a dot or a load from being combined. Makes the rest cheaper.
        EliminateDeadCode(),
        # After dead code: what is not run may be anything. Before the rest, for which it is arithmetic.
        *([] if config.has_ptx else [TranslateAssembly()]),
        # Before combining: equal masks have to be one value.
        MergeCommonSubexpressions(),
        *(branch_passes(config) if config.loads_ahead else []),
        Combine(),
        # After combining: it would make loads of other masks of them. Before hoisting: what chooses may not change.
        *([SplitAccesses()] if config.splits_accesses else []),
        # After combining: an address is one sum. Before hoisting: what it repeats does not change in a loop.
        *([GroupPrograms()] if config.groups_programs else []),
        # After everything that makes ops in a loop.
        HoistInvariants(),
        # After hoisting: a sum that does not change stays one. Before equal sums are merged.
        AddConstantsLast(),
        # After hoisting: what was in two loops now stands side by side.
        MergeCommonSubexpressions(),
        # Last: what combining and merging left over.
        EliminateDeadCode(),
    ]


def branch_passes(config: TileConfig) -> list[ModulePass]:
    """Those that leave fewer branches around loads, and fewer masks in loops."""
    unswitch = [
        UnswitchLoops(),
        # After it: its conditions are constants.
        Fold(),
        # After folding: what is left may be merged now.
        MergeBranches(),
    ]
    return [
        # After equal values are one, as pointers have to be. Before hoisting: what is in an `if` stays.
        MergeBranches(),
        # After merging: loops are unswitched where it did nothing. Twice: each loop becomes four at most.
        *unswitch,
        *unswitch,
        # After unswitching: masks that one branch has are there by themselves. After equal masks are one value.
        *([SplitLoops(config.split_rows)] if config.split_rows is not None else []),
        # After branches are merged, which would merge these again.
        SplitPrograms(config.num_threads),
        # After both: masks of whole tiles are constants.
        Fold(),
    ]
