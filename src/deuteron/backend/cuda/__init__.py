"""NVIDIA GPUs: what backend/gpu leaves open, PTX and cubin.

backend.py       options and stages            target.py, ptxas.py    architectures, the assembler
lowering.py      one kernel                    accesses.py            vectors of elements in memory
math.py, formats.py, mma.py, matrices.py       functions, conversions, mma.sync, ldmatrix
isa.py, atomics.py                             what the rules of all GPUs ask for
rules/           one file per op family that is NVIDIA's own, and the table of all rules
"""
