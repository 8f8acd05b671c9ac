"""Kernels for processors: tile IR as fused loop nests over vectors.

backend.py                          the target: options and stages
lowering.py                         the entry, `lower_module`, and the kernel's interface
plan/                               on tile IR: what is kept in memory, which loops there are, who shares memory
loops.py rules/                     code for the nests, and for each op, one file per op family
context.py emitter.py fragment.py algebra.py    what is known while code is emitted
access.py lane_loops.py places.py elements.py formats.py    the user's memory, the scratch memory, element types
microkernel.py transpose.py         matrix products; shared_products.py: equal ones, once
math.py                             the mathematical functions, of those of backend/math
driver.py trampoline.py thread_pool.py pool_code.py pool_layout.py together.py control.py    launching
target.py                           what a CPU has

c = tl.load(a + i) + tl.load(b + i)     for i in 0..1024 step 16: load, load, add, store; no tile is ever in memory
"""
