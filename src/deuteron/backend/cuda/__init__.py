"""NVIDIA GPUs: what backend/gpu leaves open, PTX and cubin.

backend.py target.py    options and stages, architectures
lowering.py rules/      one kernel; one file per op family that is NVIDIA's own, and the table of all rules
instructions/           what the rules of all GPUs ask for, as PTX has it
assembler/              PTX to machine code
launch/                 kernels on a GPU
report/                 what the compile report says of a kernel
"""
