"""The passes that make ttgir of tile IR, in order.

dot_instructions.py  which instruction multiplies
clusters/            programs shared out over CTAs, which load together
descriptors/         blocks of tensors, by TMA
order_programs.py    programs with more to do first
count_moves.py       tiles that loops advance, carried as a number
batch_loads.py       loads in front of what waits for the first of them
reread_backwards.py  rows that are read again, from their end
scale_extrema.py     the largest of what is scaled
version_loops.py     loops that may run a few times, as they are beside what becomes of them
operands/            what dots are given
layouts/             which thread has which element
rings/               buffers that are filled ahead
specialization/      copies by warps of their own
pipelining/          copies and dots of other iterations
warp_groups/         dots that run on while threads compute
slices/              loops over slices of tiles that fill the registers many times
memory/              places in shared memory, and barriers
"""

from __future__ import annotations

from xdsl.passes import ModulePass

from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.batch_loads import BatchLoads
from deuteron.passes.gpu.clusters.plan_cta import PlanCTA
from deuteron.passes.gpu.count_moves import CountMoves
from deuteron.passes.gpu.descriptors.infer_descriptors import InferDescriptors
from deuteron.passes.gpu.descriptors.lower_descriptors import LowerDescriptors
from deuteron.passes.gpu.divide_naturals import DivideNaturals
from deuteron.passes.gpu.group_iterations import GroupIterations
from deuteron.passes.gpu.layouts.assign_layouts import AssignLayouts
from deuteron.passes.gpu.layouts.exchange_in_shared import ExchangeInShared
from deuteron.passes.gpu.layouts.gather_neighbours import GatherNeighbours
from deuteron.passes.gpu.layouts.merge_reductions import MergeReductions
from deuteron.passes.gpu.layouts.reduce_late import ReduceLate
from deuteron.passes.gpu.layouts.scatter_reductions import ScatterReductions
from deuteron.passes.gpu.memory.allocate_shared import AllocateShared
from deuteron.passes.gpu.memory.fence_acquires import FenceAcquires
from deuteron.passes.gpu.memory.fence_atomics import FenceAtomics
from deuteron.passes.gpu.memory.place_barriers import PlaceBarriers
from deuteron.passes.gpu.memory.shorten_lives import ShortenLives
from deuteron.passes.gpu.operands.load_once import LoadOnce
from deuteron.passes.gpu.operands.place_dot_operands import PlaceDotOperands
from deuteron.passes.gpu.operands.round_dot_operands import RoundDotOperands
from deuteron.passes.gpu.operands.split_dot_operands import SplitDotOperands
from deuteron.passes.gpu.operands.transpose_dots import TransposeDots
from deuteron.passes.gpu.operands.widen_dot_operands import WidenDotOperands
from deuteron.passes.gpu.operands.widen_sums import WidenSums
from deuteron.passes.gpu.order_programs import OrderPrograms
from deuteron.passes.gpu.pipelining.alternate_registers import AlternateRegisters
from deuteron.passes.gpu.pipelining.delay_dots import DelayDots
from deuteron.passes.gpu.pipelining.pipeline_loads import PipelineLoads
from deuteron.passes.gpu.reread_backwards import RereadBackwards
from deuteron.passes.gpu.scale_extrema import ScaleExtrema
from deuteron.passes.gpu.slices.slice_tiles import SliceTiles
from deuteron.passes.gpu.specialization.choose_functions import ChooseSpecialized
from deuteron.passes.gpu.specialization.specialize_warps import SpecializeWarps
from deuteron.passes.gpu.version_loops import VersionLoops
from deuteron.passes.gpu.warp_groups.fence_wgmma import FenceWGMMA
from deuteron.passes.gpu.warp_groups.issue_copies import IssueCopies
from deuteron.passes.gpu.warp_groups.issue_dots import IssueDots
from deuteron.passes.gpu.warp_groups.order_warp_groups import OrderWarpGroups
from deuteron.passes.gpu.warp_groups.overlap_wgmma import OverlapWGMMA
from deuteron.passes.gpu.warp_groups.release_buffers import ReleaseBuffers
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.fold import Fold


def gpu_passes(config: GPUConfig) -> list[ModulePass]:
    """The passes that turn tile IR into ttgir that can be lowered, for every machine: one that lacks what a pass makes
    use of is left as it is.
    """
    return [
        # First: after it a program is that of one CTA.
        PlanCTA(config),
        # Before dead code: it leaves the rounded sums in the loop to nobody. Before layouts: sums have one.
        WidenSums(config),
        # After it: whole tiles of which only parts are needed.
        EliminateDeadCode(),
        # Before what follows: pointers are plain in tile IR.
        InferDescriptors(config),
        # After it: a tile that TMA copies is one of its own. Before layouts: it changes shapes.
        LoadOnce(),
        # After dead code: loads that nobody needs are none. Before loads are pipelined: those ahead are alike.
        RereadBackwards(),
        # After it: of two loops over the same rows it looks for iterations that are alike. Before what writes them out.
        VersionLoops(config),
        # After loops that run a few times have a version that stays.
        GroupIterations(config),
        # After groups of iterations: of known bounds they are one loop.
        Fold(),
        # After groups of iterations, in which it finds more. Before loads are pipelined: what is left is done as it is.
        BatchLoads(config),
        # After dead code and descriptors: the new ids are not known to be positive.
        OrderPrograms(),
        # Before layouts: the dots that it makes have instructions, and so layouts, of their own.
        SplitDotOperands(config),
        # Before layouts: which instruction multiplies, and so which layouts operands have, depends on their types.
        WidenDotOperands(config),
        # After types are final: which operands are computed. Before operands are placed: the first may be in registers.
        TransposeDots(config),
        # Before layouts: what goes through shared memory is not converted in registers.
        PlaceDotOperands(config),
        # Before layouts: what a loop carries has one.
        CountMoves(),
        AssignLayouts(config),
        # After layouts: what a thread holds of a sum. Before reductions are merged: those after loops, too.
        ReduceLate(),
        # After layouts: which warps hold parts of a result.
        MergeReductions(),
        # After layouts: registers and buffers are counted.
        ChooseSpecialized(config),
        # Before warps are specialised: they copy in the order in which delayed dots read.
        DelayDots(config, loads=True),
        # Before loads are pipelined: those that other warps copy are not.
        SpecializeWarps(config),
        # After it: addresses, which the warps that compute do not need any more.
        EliminateDeadCode(),
        # After layouts: where a copy goes depends on them. It makes the buffers that the next ones order accesses of.
        PipelineLoads(config),
        # After it: the pointers of the iteration itself, which nobody reads any more.
        EliminateDeadCode(),
        # After dead code: of two iterations each has what it needs. Before memory: nothing in them exchanges.
        AlternateRegisters(config),
        # After loads are pipelined: what is copied ahead stays in its slot until the next iteration.
        DelayDots(config),
        # After loads are pipelined: what was not copied ahead is copied where it is.
        LowerDescriptors(),
        # After loads are copies: what dots read is in shared memory. Before dots are asynchronous: waits follow.
        IssueDots(),
        # Before dots are asynchronous: what copies is behind one then, and waits follow.
        IssueCopies(),
        # After it: what a dot reads has to stay until it is done.
        OverlapWGMMA(config),
        # After it: until when a dot reads is known.
        ReleaseBuffers(),
        # After it: a fence comes before the dot, not between it and its wait.
        FenceWGMMA(),
        # After everything that makes copies. Before atomics are ordered by fences: their order says that they acquire.
        FenceAcquires(),
        # After everything that asks what may move over an atomic.
        FenceAtomics(),
        # After dots by wgmma, which take what is there. Before slices: what rounds is one of their ops.
        RoundDotOperands(config),
        # After everything that looks for loops and loads. Before memory: what it puts into loops exchanges there.
        SliceTiles(),
        # After dots of other iterations, which move over straight code only. Before memory: what branches may exchange.
        ScaleExtrema(),
        # After slices, in which a thread has parts of fewer rows. Before memory: results are converted.
        ScatterReductions(),
        # After slices, in which a thread has fewer elements. Before memory: elements are converted.
        GatherNeighbours(),
        # After slices, which take what is far too much. Before memory: what is in use when is known then.
        ShortenLives(config),
        # After slices, in which a tile is fewer shuffles. Before memory: it is needed for what is exchanged.
        ExchangeInShared(config),
        *memory_passes(),
        # After everything that asks what numbers are.
        DivideNaturals(),
        # After barriers: of two warpgroups that wait for each other within a turn, one would not get there.
        OrderWarpGroups(config),
    ]


def memory_passes() -> list[ModulePass]:
    """The last of them, which ttgir that comes as text may not have been through."""
    return [
        # After everything that makes or removes users of shared memory.
        AllocateShared(),
        # Last: what overlaps is known when everything has its place.
        PlaceBarriers(),
    ]
