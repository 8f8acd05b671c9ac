"""Programs run one at a time, x fastest."""

from __future__ import annotations

import numpy as np

STORE = "<{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>"
ATOMIC_ADD = "<{atomic_rmw_op = 4 : i32, sem = 4 : i32, scope = 1 : i32}>"


def test_order_and_ids(run_kernel):
    """Each program takes the next place and writes its id there."""
    count, out = np.zeros(1, np.int32), np.full((12, 4), 77, np.int32)
    body = '%one = "arith.constant"() <{value = 1 : i32}> : () -> i32\n'
    body += '%four = "arith.constant"() <{value = 4 : i32}> : () -> i32\n'
    body += f'%turn = "tt.atomic_rmw"(%count, %one) {ATOMIC_ADD} : (!tt.ptr<i32>, i32) -> i32\n'
    body += '%row = "arith.muli"(%turn, %four) : (i32, i32) -> i32\n'
    body += '%p0 = "tt.addptr"(%out, %row) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>\n'
    for axis in range(3):
        body += f'%id{axis} = "tt.get_program_id"() <{{axis = {axis} : i32}}> : () -> i32\n'
        body += f'"tt.store"(%p{axis}, %id{axis}) {STORE} : (!tt.ptr<i32>, i32) -> ()\n'
        body += f'%p{axis + 1} = "tt.addptr"(%p{axis}, %one) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>\n'
    body += '%n = "tt.get_num_programs"() <{axis = 1 : i32}> : () -> i32\n'
    body += f'"tt.store"(%p3, %n) {STORE} : (!tt.ptr<i32>, i32) -> ()'
    run_kernel("%count: !tt.ptr<i32>, %out: !tt.ptr<i32>", body, [count, out], grid=(3, 2, 2))
    assert out.tolist() == [[x, y, z, 2] for z in range(2) for y in range(2) for x in range(3)]


def test_an_empty_grid_runs_nothing(run_kernel):
    run_kernel("%out: !tt.ptr<i32>", '%p = "tt.call"() <{callee = @f}> : () -> i32', [None], grid=(0, 1, 1))
