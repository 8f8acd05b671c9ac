"""What dots are given: types that have an instruction, sums as wide as they are, and operands in shared memory.

load_once.py            packed words, once
split_dot_operands.py   f32 by way of parts in tf32 or bf16
round_dot_operands.py   f32 to tf32 before shared memory, where dots would each time
widen_dot_operands.py   fp8 by way of f16
widen_sums.py           sums of f16 as f32, while a loop adds to them
transpose_dots.py       computed operands first, where wgmma reads registers
place_dot_operands.py   operands in shared memory
register_operands.py    which ones are computed in registers instead, and in how many steps
parts.py                what a step computes of a tile
origins.py              what operands are made of
"""
