"""Loads of any loops, iterations ahead: the interpreter, which looks where each load goes, stores the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_ir.programs import Program
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from deuteron.interpreter import run_module
from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, WRITE, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.text import parse_module
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.verifier import verify_ir
from deuteron.passes.carried_values import is_innermost
from deuteron.passes.gpu.pipelining.address_loads import AddressLoads
from deuteron.passes.gpu.pipelining.prefetch_loads import prefetch


def prefetch_some(module: ModuleOp, rng: random.Random) -> int:
    """Loads of loops that store nothing, each some iterations ahead; gives how many there are."""
    count = 0
    for loop in nested_ops(module, scf.ForOp):
        kinds = {effect.kind for _, effect in effects_inside(loop) if effect.resource is GLOBAL}
        if not is_innermost(loop) or kinds & {WRITE, ORDER, ORDER_OWN}:
            continue
        addresses, wanted = AddressLoads(loop, lambda load, distance: None), {}
        for load in (op for op in loop.body.block.ops if isinstance(op, LoadOp)):
            distance = rng.choice((0, 1, 1, 2, 3))
            if distance and addresses.obstacle(load, distance) is None:
                wanted[load] = distance
        count += len(wanted)
        prefetch(loop, addresses.with_sources(wanted))
    verify_ir(module, "loads ahead")
    return count


@pytest.mark.share(8)
@pytest.mark.parametrize("number", range(80))
def test_the_same_is_stored(seed, number):
    program = Program.of(seed + number)
    module = parse_module(program.text)
    prefetch_some(module, random.Random(seed))
    for launch, expected in zip(program.launches(), program.expected, strict=True):
        arrays = program.arrays()
        with np.errstate(all="ignore"):
            run_module(module, [*arrays, *launch], (1, 1, 1))
        for one, other in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(one.astype(np.float64), other.astype(np.float64), program.text)


def test_most_kernels_have_such_loads():
    counts = [prefetch_some(parse_module(Program.of(seed).text), random.Random(seed)) for seed in range(12)]
    assert sum(count > 0 for count in counts) >= 6 and max(counts) > 3
