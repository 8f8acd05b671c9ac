"""What dots are given: types that have an instruction, and operands in shared memory.

split_dot_operands.py   f32 by way of parts in tf32 or bf16
widen_dot_operands.py   fp8 by way of f16
place_dot_operands.py   operands in shared memory
"""
