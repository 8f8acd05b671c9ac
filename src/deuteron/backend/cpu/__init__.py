"""Kernels for processors: tile IR as fused loop nests over vectors.

backend.py           the target: options and stages
lowering.py          the entry, `lower_module`, and the kernel's interface
plan/                on tile IR: what is kept in memory, which loops there are, who shares memory
loops.py rules/      code for the nests, and for each op, one file per op family
context.py emitter.py fragment.py algebra.py    what is known while code is emitted
memory/              the user's memory and the scratch memory
products/            matrix products, on vectors and on tiles of AMX
math/                the mathematical functions, of those of backend/math
launch/              what loads a kernel and runs its programs on threads
target.py            what a CPU has

c = tl.load(a + i) + tl.load(b + i)     for i in 0..1024 step 16: load, load, add, store; no tile is ever in memory
"""
