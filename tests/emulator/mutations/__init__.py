"""A mutation test of synchronisation: every synchronising instruction of our PTX is needed, and the emulator notices.

    PYTHONPATH=src:tests python -m emulator.mutations [WORD ...] [--seeds 8]        (make mutations)

launches.py   kernels that the compiler made, with arguments, as they are launched
mutants.py    the PTX of a kernel with one instruction left out or weakened
explained.py  the mutants that may survive, and why

A mutant is caught where the emulator complains or a result differs. One that survives is a hole of the emulator, or an
instruction that the compiler need not emit.
"""
